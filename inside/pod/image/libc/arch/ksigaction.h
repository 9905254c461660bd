/* inside/pod/image/libc/arch/ksigaction.h - what sigaction() hands to signal.c; never seen by the
 * kernel. */
#include <features.h>
struct k_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned mask[2];
};
#define __restore_rt ((void (*)(void))0)
#define __restore ((void (*)(void))0)
