/* guest/pod.c - the WebAssembly userland; its image is built by `make pod`. */
#include <errno.h>

#include "guest/languages.h"

int pod_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	(void)o;
	l->filter = LAUNCH_POD;
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "there is no pod image on this machine: build one with `make pod`");
}
