/* cli/approval.c - see approval.h. */
#include "cli/approval.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

bool approval_mode(const char *text, struct approval_desk *d)
{
	if (!text)
		d->mode = isatty(2) ? APPROVAL_ASK : APPROVAL_DENY;
	else if (str_eq(text, "ask"))
		d->mode = APPROVAL_ASK;
	else if (str_eq(text, "allow"))
		d->mode = APPROVAL_ALLOW;
	else if (str_eq(text, "deny"))
		d->mode = APPROVAL_DENY;
	else
		return false;
	return true;
}

/* Control characters could draw a false question. */
static void print_safe(int fd, const char *text)
{
	char out[1024];
	size_t n = 0;

	for (; *text && n < sizeof(out); text++)
		out[n++] = (unsigned char)*text < 32 || *text == 127 ? '?' : *text;
	(void)file_write_all(fd, out, n);
}

static bool ask(const struct cordon_approval *a)
{
	char answer[64] = "";
	cleanup_close int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (tty < 0)
		return false;
	print_safe(tty, "The sandboxed code asks for ");
	print_safe(tty, a->what);
	print_safe(tty, " ");
	print_safe(tty, a->detail);
	(void)file_write_all(tty, "\nAllow it? [y/N] ", 17);
	ssize_t n = read(tty, answer, sizeof(answer) - 1);
	return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

void approval_decide(const struct cordon_approval *a, void *arg)
{
	struct approval_desk *d = arg;
	bool allow = d->mode == APPROVAL_ALLOW || (d->mode == APPROVAL_ASK && ask(a));

	(void)cordon_session_resolve(d->session, a->id, allow, NULL,
				     allow ? NULL : "the user said no", NULL);
}
