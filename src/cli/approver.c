/* cli/approver.c - see approver.h. */
#include "cli/approver.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

bool approval_mode(const char *text, struct approver *d)
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

enum { SHOWN_BYTES = 16384 };

/* Control characters could forge a question, and text that is left out must be mentioned. */
static void print_safe(int fd, const char *text)
{
	cleanup_buf struct buf out = { 0 };
	size_t len = strlen(text), shown = len < SHOWN_BYTES ? len : SHOWN_BYTES;
	cleanup_free char *head = str_ndup(text, shown);

	buf_init(&out, SIZE_MAX);
	(void)buf_add_printable(&out, head ? head : "?");
	if (shown < len)
		(void)buf_printf(&out, "\n(%zu bytes more are not shown)", len - shown);
	(void)file_write_all(fd, buf_text(&out), out.len);
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
	struct approver *d = arg;
	bool allow = d->mode == APPROVAL_ALLOW || (d->mode == APPROVAL_ASK && ask(a));

	(void)cordon_session_resolve(d->session, a->id, allow, NULL,
				     allow ? NULL : "the user denied it", NULL);
}
