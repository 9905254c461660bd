/* build/consumer.c - a ten-line program that uses the installed library. */
#include <cordon/cordon.h>
#include <stdio.h>

int main(void)
{
	struct cordon_error *e = NULL;
	printf("libcordon %s, %s\n", cordon_version(), cordon_code_name(cordon_error_code(e)));
	cordon_error_free(e);
	return 0;
}
