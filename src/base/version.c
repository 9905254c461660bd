/* base/version.c - the version of the library. */
#include <cordon/cordon.h>

const char *cordon_version(void)
{
	return CORDON_VERSION;
}
