/* base/version.c - which version of the library this is. */
#include <cordon/cordon.h>

const char *cordon_version(void)
{
	return CORDON_VERSION;
}
