/* base/error.c - see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#undef err_set /* the functions; analysers see macros */
#undef err_errno
#undef err_limit

enum { TEXT_MAX_BYTES = 8192 };

struct cordon_error {
	enum cordon_code code;
	int os_errno;
	enum err_limit limit;
	char *message;
	struct cordon_error *cause;
};

/* Reporting an error must not fail for lack of memory, so this one is static. */
static struct cordon_error err_oom = { .code = CORDON_NOMEM, .os_errno = ENOMEM };

static enum cordon_code code_of_errno(int os_errno)
{
	switch (os_errno) {
	case EACCES:
	case EPERM:
	case EXDEV: /* openat2(RESOLVE_BENEATH), if the path leads out */
	case ELOOP:
		return CORDON_DENIED;
	case ENOENT:
		return CORDON_NOT_FOUND;
	case ENOMEM:
		return CORDON_NOMEM;
	case ENOSYS:
	case EOPNOTSUPP:
		return CORDON_UNSUPPORTED;
	case EEXIST:
		return CORDON_EXISTS;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EMFILE:
	case ENFILE:
		return CORDON_LIMIT;
	case EINVAL:
	case ENAMETOOLONG:
	case EISDIR:
	case ENOTDIR:
		return CORDON_INVALID;
	default:
		return CORDON_OS;
	}
}

PRINTF_LIKE(3, 0)
static int push(struct cordon_error **reterr, struct cordon_error frame, const char *fmt,
		va_list ap)
{
	if (!reterr)
		return -(int)frame.code;

	struct cordon_error *e = mem_alloc(sizeof(*e));
	if (e)
		frame.message = str_vprintf(fmt, ap);
	if (!frame.message) {
		free(e);
		cordon_error_free(frame.cause);
		*reterr = &err_oom;
		return -CORDON_NOMEM;
	}
	*e = frame;
	*reterr = e;
	return -(int)frame.code;
}

int err_set(struct cordon_error **reterr, enum cordon_code code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = push(reterr, (struct cordon_error){ .code = code }, fmt, ap);
	va_end(ap);
	return r;
}

int err_errno(struct cordon_error **reterr, int os_errno, const char *fmt, ...)
{
	struct cordon_error frame = { .code = code_of_errno(os_errno), .os_errno = os_errno };
	va_list ap;
	va_start(ap, fmt);
	int r = push(reterr, frame, fmt, ap);
	va_end(ap);
	return r;
}

int err_limit(struct cordon_error **reterr, enum err_limit kind, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = push(reterr, (struct cordon_error){ .code = CORDON_LIMIT, .limit = kind }, fmt, ap);
	va_end(ap);
	return r;
}

enum err_limit err_limit_of(const struct cordon_error *e)
{
	while (e && !e->limit)
		e = e->cause;
	return e ? e->limit : ERR_LIMIT_PASSING;
}

int err_copy(struct cordon_error **reterr, const struct cordon_error *e)
{
	int r = e ? err_set(reterr, e->code, "%s", cordon_error_message(e))
		  : err_set(reterr, CORDON_NOMEM, "out of memory");

	if (e && reterr && *reterr != &err_oom) {
		(*reterr)->os_errno = cordon_error_errno(e);
		(*reterr)->limit = err_limit_of(e);
	}
	return r;
}

int err_wrap(struct cordon_error **reterr, int r, const char *fmt, ...)
{
	if (!reterr || !*reterr)
		return r;
	struct cordon_error frame = { .code = (*reterr)->code, .cause = *reterr };
	va_list ap;
	va_start(ap, fmt);
	(void)push(reterr, frame, fmt, ap);
	va_end(ap);
	return r;
}

enum cordon_code cordon_error_code(const struct cordon_error *e)
{
	return e ? e->code : CORDON_OK;
}

int cordon_error_errno(const struct cordon_error *e)
{
	for (; e; e = e->cause)
		if (e->os_errno)
			return e->os_errno;
	return 0;
}

const char *cordon_error_message(const struct cordon_error *e)
{
	return e && e->message ? e->message : "out of memory";
}

const struct cordon_error *cordon_error_cause(const struct cordon_error *e)
{
	return e ? e->cause : NULL;
}

/* Messages of files begin with "ENOENT: "; one of the guest may contain the text. */
static bool says_errno(const struct cordon_error *e)
{
	const char *name = strerrorname_np(e->os_errno);

	return strstr(e->message, strerror(e->os_errno)) || (name && strstr(e->message, name));
}

char *err_text(const struct cordon_error *e)
{
	struct buf b;

	buf_init(&b, TEXT_MAX_BYTES);
	for (; e; e = e->cause) {
		(void)buf_printf(&b, "%s%s", b.len > 0 ? ": " : "", cordon_error_message(e));
		if (!e->cause && e->os_errno && e->message && !says_errno(e))
			(void)buf_printf(&b, ": %s", strerror(e->os_errno));
	}
	return b.len > 0 ? buf_take(&b) : NULL;
}

struct cordon_error *cordon_error_free(struct cordon_error *e)
{
	while (e && e != &err_oom) {
		struct cordon_error *cause = e->cause;
		free(e->message);
		free(e);
		e = cause;
	}
	return NULL;
}

static const struct {
	const char *name;
	int exit_status, rpc;
} codes[] = {
#define X(id, name, exit_status, rpc, meaning) { name, exit_status, rpc },
	CORDON_CODES(X)
#undef X
};

static size_t index_of(enum cordon_code code)
{
	return (size_t)code < sizeof(codes) / sizeof(*codes) ? (size_t)code : CORDON_OS;
}

const char *cordon_code_name(enum cordon_code code)
{
	return codes[index_of(code)].name;
}

int cordon_code_exit_status(enum cordon_code code)
{
	return codes[index_of(code)].exit_status;
}

int cordon_code_rpc(enum cordon_code code)
{
	return codes[index_of(code)].rpc;
}
