/* fuzz/module.c - the loader of the pod's added commands: everything that it accepts is inside what
 * it mapped. */
#include "inside/pod/runtime/module.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct module_object o = { 0 };
	const char *why = NULL;
	int fd = memfd_create("module", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	int r = module_map(fd, &o, &why);
	close(fd);
	if (r) {
		if (r > 0 || !why || !*why)
			abort();
		return 0;
	}
	uintptr_t base = (uintptr_t)o.base, head = (uintptr_t)o.head,
		  enter = (uintptr_t)o.head->enter;
	if (o.span > MODULE_SPAN || head < base || head + sizeof(*o.head) > base + o.span ||
	    enter < base || enter >= base + o.span || o.head->abi != MODULE_ABI)
		abort();
	/* All that it says is its head can be read, and nothing was mapped outside. */
	if (memcmp(o.head->magic, MODULE_MAGIC, sizeof(o.head->magic)) != 0 ||
	    munmap(o.base, o.span) != 0)
		abort();
	return 0;
}
