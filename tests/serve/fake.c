/* serve/fake.c - a library whose sessions, pools and files hold nothing, to test servers alone. */
#include <cordon/cordon.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/host/fetch.h"
#include "net/host/gateway_process.h"
#include "serve/fake.h"
#include "session/pool.h"

struct cordon_session {
	char id[32];
};
struct cordon_pool {
	int nothing;
};
struct cordon_project {
	int nothing;
};
struct cordon_result {
	char *json;
	bool is_long; /* the code was "long": all parts are, and it failed */
};

void (*fake_on_open)(const struct cordon_session_options *o);

/* No front door may open what a client names while nobody knows who that is. */
int open64(const char *path, int flags, ...);
int open64(const char *path, int flags, ...)
{
	(void)path;
	(void)flags;
	errno = EACCES;
	return -1;
}

int cordon_session_open(const struct cordon_session_options *o, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	static unsigned count;
	struct cordon_session *s = mem_alloc(sizeof(*s));

	if (fake_on_open && o)
		fake_on_open(o);
	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	snprintf(s->id, sizeof(s->id), "sess_%u", ++count % 8);
	*ret = s;
	return 0;
}

struct cordon_session *cordon_session_close(struct cordon_session *s)
{
	free(s);
	return NULL;
}

int cordon_session_end(struct cordon_session *s, struct cordon_error **reterr)
{
	(void)reterr;
	free(s);
	return 0;
}

int cordon_session_save(struct cordon_session *s, struct cordon_error **reterr)
{
	(void)s, (void)reterr;
	return 0;
}

static char *copy(const char *text)
{
	return str_dup(text);
}

static int copied(char **ret, const char *text, struct cordon_error **reterr)
{
	*ret = copy(text);
	return *ret ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

int cordon_session_execute(struct cordon_session *s, const struct cordon_execute_options *o,
			   struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_result *r = mem_alloc(sizeof(*r));

	(void)s;
	if (!r)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (o->output)
		o->output(1, o->code, o->code_len ? o->code_len : strlen(o->code), o->output_arg);
	r->json =
		copy("{\"success\":true,\"result\":1,\"stdout\":\"\",\"stderr\":\"\",\"outputs\":[{"
		     "\"mime\":\"image/png\",\"encoding\":\"base64\",\"data\":\"AA==\"},"
		     "{\"mime\":\"image/svg+xml\",\"encoding\":\"text\",\"data\":\"<svg/>\"},"
		     "{\"mime\":\"text/html\",\"encoding\":\"text\",\"data\":\"<p>\"},"
		     "{\"mime\":\"application/json\",\"encoding\":\"text\",\"data\":"
		     "\"{\\\"columns\\\":[\\\"a\\\"],\\\"index\\\":[0],\\\"data\\\":[[1]]}\"}],"
		     "\"exception\":{\"line\":2},\"restarted\":true}");
	r->is_long = str_eq(o->code, "long");
	if (!r->json) {
		free(r);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	*ret = r;
	return 0;
}

int cordon_run(const struct cordon_session_options *session, const struct cordon_execute_options *o,
	       struct cordon_result **ret, struct cordon_error **reterr)
{
	(void)session;
	return cordon_session_execute(NULL, o, ret, reterr);
}

int session_reopen(const struct cordon_session_options *opts, const char *id,
		   struct cordon_session **ret, struct cordon_error **reterr);
int session_reopen(const struct cordon_session_options *opts, const char *id,
		   struct cordon_session **ret, struct cordon_error **reterr)
{
	return id[0] ? cordon_session_open(opts, ret, reterr) : -CORDON_INVALID;
}

struct cordon_result *cordon_result_free(struct cordon_result *r)
{
	if (r)
		free(r->json);
	free(r);
	return NULL;
}

/* Longer than a model is shown, and with characters of two bytes. */
static const char *long_text(void)
{
	static char text[40001];

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = i % 2 ? '\xa9' : '\xc3';
	return text;
}

#define FIXED(type, name, value)                                                                   \
	type name                                                                                  \
	{                                                                                          \
		return value;                                                                      \
	}
FIXED(bool, cordon_result_success(const struct cordon_result *r), !r->is_long)
FIXED(int, cordon_result_buffer(const struct cordon_result *r, uint64_t *ret_bytes),
      (*ret_bytes = 0, r ? -1 : -2))
FIXED(const char *, cordon_result_json(struct cordon_result *r), r->json)
FIXED(const char *, cordon_result_value_text(const struct cordon_result *r), r ? "1" : NULL)
FIXED(const char *, cordon_result_error(const struct cordon_result *r),
      r->is_long ? long_text() : NULL)
FIXED(const char *, cordon_result_error_kind(const struct cordon_result *r),
      r->is_long ? "exception" : NULL)
FIXED(const char *, cordon_result_traceback(const struct cordon_result *r),
      r->is_long ? long_text() : NULL)
FIXED(const char *, cordon_result_value_json(struct cordon_result *r), r ? "{\"code\":\"1\"}" : "")
FIXED(char *, cordon_result_losses_text(const struct cordon_result *r), r ? copy("lost") : NULL)
FIXED(bool, cordon_result_truncated(const struct cordon_result *r, int stream),
      r->is_long &&stream == 1)
FIXED(char *, cordon_result_denials_text(const struct cordon_result *r),
      r ? copy("denied\n") : NULL)
FIXED(char *, cordon_result_restart_text(const struct cordon_result *r), r ? copy("") : NULL)
FIXED(int, cordon_result_exit_status(const struct cordon_result *r), r ? 0 : 1)
FIXED(const char *, cordon_session_id(const struct cordon_session *s), s->id)
uint64_t session_memory_bytes(struct cordon_session *s);
FIXED(uint64_t, session_memory_bytes(struct cordon_session *s), s ? 64 << 20 : 0)
uint64_t session_value_bytes(const struct cordon_session *s);
FIXED(uint64_t, session_value_bytes(const struct cordon_session *s), s ? 1 << 20 : 0)
FIXED(char *, cordon_session_describe(const struct cordon_session *s), s ? copy("{}") : NULL)
FIXED(char *, cordon_snapshot_list(struct cordon_session *s), s ? copy("[]") : NULL)

const char *cordon_result_stdout(const struct cordon_result *r, size_t *ret_len)
{
	const char *text = r->is_long ? long_text() : "out";

	*ret_len = strlen(text);
	return text;
}

const char *cordon_result_stderr(const struct cordon_result *r, size_t *ret_len)
{
	return cordon_result_stdout(r, ret_len);
}

/* Those that do nothing, with or without an argument. */
#define OK1(name)                                                                                  \
	int name(struct cordon_session *s, struct cordon_error **reterr)                           \
	{                                                                                          \
		(void)s, (void)reterr;                                                             \
		return 0;                                                                          \
	}
#define OK2(name, type)                                                                            \
	int name(struct cordon_session *s, type a, struct cordon_error **reterr)                   \
	{                                                                                          \
		(void)s, (void)a, (void)reterr;                                                    \
		return 0;                                                                          \
	}
#define OK3(name, type, other)                                                                     \
	int name(struct cordon_session *s, type a, other b, struct cordon_error **reterr)          \
	{                                                                                          \
		(void)s, (void)a, (void)b, (void)reterr;                                           \
		return 0;                                                                          \
	}
#define OK4(name, type, other, third)                                                              \
	int name(struct cordon_session *s, type a, other b, third c, struct cordon_error **reterr) \
	{                                                                                          \
		(void)s, (void)a, (void)b, (void)c, (void)reterr;                                  \
		return 0;                                                                          \
	}
OK1(cordon_session_cancel)
OK1(cordon_session_interrupt)
OK1(cordon_session_kill)
OK1(cordon_session_restart)
OK3(cordon_session_inspect, const struct cordon_inspect_options *, char **)
int cordon_session_install(struct cordon_session *s, const struct cordon_install_options *o,
			   char **ret_json, struct cordon_error **reterr)
{
	(void)s;
	if (!o->names || !o->names[0])
		return err_set(reterr, CORDON_INVALID, "there is no package to install");
	*ret_json = str_dup("{\"manager\":\"pip\",\"packages\":{},\"count\":0}");
	return *ret_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}
OK3(cordon_session_setenv, const char *, const char *)
char *cordon_session_getenv(struct cordon_session *s, const char *name)
{
	(void)s;
	return str_dup(name);
}
OK2(cordon_snapshot_create, const char *)
OK2(cordon_snapshot_restore, const char *)
OK2(cordon_snapshot_remove, const char *)
OK4(cordon_file_write, const char *, const void *, size_t)
OK4(cordon_file_append, const char *, const void *, size_t)
OK3(cordon_file_mkdir, const char *, bool)
OK3(cordon_file_move, const char *, const char *)
OK3(cordon_file_remove, const char *, bool)
int cordon_watch_open(struct cordon_session *s, const char *path, bool recursive, uint64_t *ret,
		      struct cordon_error **reterr)
{
	(void)s, (void)path, (void)recursive, (void)reterr;
	*ret = 1;
	return 0;
}
int cordon_watch_wait(struct cordon_session *s, uint64_t watch, uint64_t wait_ms, char **ret_json,
		      struct cordon_error **reterr)
{
	(void)s, (void)watch, (void)wait_ms;
	*ret_json = str_dup("[]");
	return *ret_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}
OK2(cordon_watch_close, uint64_t)
OK4(cordon_file_put_tar, const char *, int, char **)
OK4(cordon_file_get_tar, const char *, int, char **)

int cordon_session_resolve(struct cordon_session *s, const char *id, bool allow, const char *value,
			   const char *reason, struct cordon_error **reterr)
{
	(void)s, (void)id, (void)allow, (void)value, (void)reason;
	return err_set(reterr, CORDON_NOT_FOUND, "no such approval");
}

int cordon_session_fork(struct cordon_session *s, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	(void)s;
	return cordon_session_open(NULL, ret, reterr);
}

/* One process, number 1, that has ended. */
int cordon_session_context(struct cordon_session *s, const char *language, const char *name,
			   struct cordon_session **ret, struct cordon_error **reterr)
{
	(void)language, (void)name, (void)reterr;
	*ret = s;
	return 0;
}

int cordon_process_start(struct cordon_session *s, const struct cordon_command_options *o,
			 uint64_t *ret, struct cordon_error **reterr)
{
	(void)s, (void)reterr;
	*ret = 1;
	if (o->output)
		o->output(1, o->command, strlen(o->command), o->output_arg);
	if (o->ended)
		o->ended(1, o->ended_arg);
	return 0;
}

int cordon_process_wait(struct cordon_session *s, uint64_t process, uint64_t wait_ms,
			struct cordon_result **ret, struct cordon_error **reterr)
{
	const struct cordon_execute_options o = { .code = "" };

	(void)process, (void)wait_ms;
	return cordon_session_execute(s, &o, ret, reterr);
}

OK2(cordon_process_kill, uint64_t)
OK2(cordon_session_unexpose, unsigned)
FIXED(char *, cordon_session_exposed(struct cordon_session *s), s ? copy("[]") : NULL)

int cordon_session_expose(struct cordon_session *s, unsigned port,
			  const struct cordon_expose_options *opts, char **ret_address,
			  struct cordon_error **reterr)
{
	(void)s, (void)port, (void)opts;
	return copied(ret_address, "/run/8000.sock", reterr);
}

int cordon_process_resize(struct cordon_session *s, uint64_t process, unsigned rows,
			  unsigned columns, struct cordon_error **reterr)
{
	(void)s, (void)process, (void)rows, (void)columns, (void)reterr;
	return 0;
}

int cordon_process_signal(struct cordon_session *s, uint64_t process, int signal_number,
			  struct cordon_error **reterr)
{
	(void)s, (void)process, (void)signal_number, (void)reterr;
	return 0;
}

int cordon_process_write(struct cordon_session *s, uint64_t process, const void *bytes, size_t len,
			 size_t *ret_len, struct cordon_error **reterr)
{
	(void)s, (void)process, (void)bytes, (void)reterr;
	*ret_len = len;
	return 0;
}

int cordon_process_output(struct cordon_session *s, uint64_t process, int stream, uint64_t offset,
			  char **ret, size_t *ret_len, uint64_t *ret_offset,
			  struct cordon_error **reterr)
{
	(void)s, (void)process, (void)stream;
	*ret_offset = offset;
	*ret_len = 3;
	return copied(ret, "out", reterr);
}

FIXED(char *, cordon_process_list(struct cordon_session *s), s ? copy("[]") : NULL)

int cordon_file_read(struct cordon_session *s, const char *path, char **ret, size_t *ret_len,
		     struct cordon_error **reterr)
{
	(void)s;
	*ret_len = strlen(path);
	return copied(ret, path, reterr);
}

int cordon_file_read_at(struct cordon_session *s, const char *path, uint64_t offset, void *bytes,
			size_t len, size_t *ret_len, struct cordon_error **reterr)
{
	(void)s, (void)path, (void)offset, (void)reterr;
	memset(bytes, 'x', len);
	*ret_len = len;
	return 0;
}

int cordon_file_stat(struct cordon_session *s, const char *path, struct cordon_file_info *ret,
		     struct cordon_error **reterr)
{
	(void)s;
	*ret = (struct cordon_file_info){ .type = CORDON_FILE, .size = strlen(path) };
	return path[0] == '/' ? 0 : err_errno(reterr, ENOENT, "look at '%s'", path);
}

int cordon_file_list(struct cordon_session *s, const char *path, cordon_file_list_fn fn, void *arg,
		     struct cordon_error **reterr)
{
	const struct cordon_file_info info = { .type = CORDON_DIRECTORY };

	(void)s, (void)reterr;
	return fn(path, &info, arg);
}

int cordon_files_export(struct cordon_session *s, int fd, struct cordon_error **reterr)
{
	(void)s;
	return write(fd, "state", 5) == 5 ? 0 : err_errno(reterr, errno, "write");
}

int cordon_files_import(struct cordon_session *s, int fd, char **ret, struct cordon_error **reterr)
{
	(void)s, (void)fd;
	return ret ? copied(ret, "{}", reterr) : 0;
}

int cordon_saved_list(char **ret, struct cordon_error **reterr)
{
	return copied(ret, "[]", reterr);
}

int cordon_saved_open(const char *name, int *ret_fd, struct cordon_error **reterr)
{
	(void)ret_fd;
	return err_set(reterr, CORDON_NOT_FOUND, "there is no '%.50s'", name);
}

int cordon_saved_import(const char *name, int fd, char **ret, struct cordon_error **reterr)
{
	(void)name, (void)fd;
	return copied(ret, "{}", reterr);
}

int cordon_saved_remove(const char *name, struct cordon_error **reterr)
{
	return cordon_saved_open(name, NULL, reterr);
}

int cordon_export_list(int fd, cordon_export_fn fn, void *arg, struct cordon_error **reterr)
{
	const struct cordon_file_info info = { .type = CORDON_SYMLINK };

	(void)fd, (void)reterr;
	return fn("a", &info, "b", arg);
}

int cordon_export_read(int fd, const char *path, int out_fd, struct cordon_error **reterr)
{
	(void)fd, (void)path, (void)out_fd, (void)reterr;
	return 0;
}

int cordon_export_diff(int a, int b, char **ret, struct cordon_error **reterr)
{
	(void)a, (void)b;
	return copied(ret, "[]", reterr);
}

int cordon_project_open(struct cordon_session *s, const char *dir, struct cordon_project **ret,
			struct cordon_error **reterr)
{
	(void)s, (void)dir;
	*ret = mem_alloc(sizeof(**ret));
	return *ret ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

struct cordon_project *cordon_project_close(struct cordon_project *p)
{
	free(p);
	return NULL;
}

int cordon_project_diff(struct cordon_project *p, char **ret, struct cordon_error **reterr)
{
	(void)p;
	return copied(ret, "{}", reterr);
}

int cordon_project_apply(struct cordon_project *p, const char *const *paths, size_t count,
			 char **ret, struct cordon_error **reterr)
{
	(void)paths, (void)count;
	return cordon_project_diff(p, ret, reterr);
}

int cordon_pool_new(const struct cordon_pool_options *o, struct cordon_pool **ret,
		    struct cordon_error **reterr)
{
	(void)o;
	*ret = mem_alloc(sizeof(**ret));
	return *ret ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

struct cordon_pool *cordon_pool_free(struct cordon_pool *p)
{
	free(p);
	return NULL;
}

int cordon_pool_acquire(struct cordon_pool *p, uint64_t wait_ms, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	(void)p, (void)wait_ms;
	return cordon_session_open(NULL, ret, reterr);
}

void cordon_pool_release(struct cordon_pool *p, struct cordon_session *s)
{
	(void)p;
	(void)cordon_session_close(s);
}

void pool_queue(struct cordon_pool *p, struct pool_waiter *w)
{
	(void)cordon_pool_acquire(p, 0, &w->session, &w->error);
	w->is_done = true;
	w->wake(w);
}

void pool_check_waiters(struct cordon_pool *p)
{
	(void)p;
}

void pool_leave(struct cordon_pool *p, struct pool_waiter *w, bool gives_back)
{
	if (!gives_back)
		return;
	cordon_pool_release(p, w->session);
	w->session = NULL;
}

struct cordon_pool_status cordon_pool_get_status(const struct cordon_pool *p)
{
	(void)p;
	return (struct cordon_pool_status){ .total = 1 };
}

int cordon_validate(const char *guest, const char *code, size_t len, char **ret,
		    struct cordon_error **reterr)
{
	(void)guest, (void)code, (void)len;
	return copied(ret, "{\"valid\":true}", reterr);
}

int cordon_doctor(char **ret, struct cordon_error **reterr)
{
	return copied(ret, "{}", reterr);
}

int cordon_audit_verify(const char *path, const char *prev, struct cordon_audit_report *ret,
			struct cordon_error **reterr)
{
	(void)prev, (void)ret;
	return err_set(reterr, CORDON_NOT_FOUND, "there is no '%.50s'", path);
}

int cordon_pod_list(char **ret, struct cordon_error **reterr)
{
	return copied(ret, "{\"programs\":[],\"added\":[]}", reterr);
}

int cordon_pod_add(const char *name, const void *bytes, size_t len,
		   const struct cordon_pod_add_options *opts, struct cordon_error **reterr)
{
	(void)bytes, (void)opts;
	return len ? 0 : err_set(reterr, CORDON_INVALID, "'%.50s' is empty", name);
}

int cordon_pod_remove(const char *name, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOT_FOUND, "there is no '%.50s'", name);
}

int cordon_fetch(const struct cordon_fetch_options *o, struct cordon_fetch_result *ret,
		 struct cordon_error **reterr)
{
	int r = copied(&ret->url, o->url, reterr);

	if (r == 0)
		r = copied(&ret->headers, "[]", reterr);
	if (r == 0)
		r = copied(&ret->body, "body", reterr);
	if (r < 0)
		cordon_fetch_done(ret);
	ret->body_len = 4;
	return r;
}

void cordon_fetch_done(struct cordon_fetch_result *r)
{
	free(r->url);
	free(r->headers);
	free(r->body);
}

/* ---- for a tracer, which no test here has */

int fetch_run(const struct fetch_options *o, struct fetch_result *ret, struct cordon_error **reterr)
{
	(void)o;
	(void)ret;
	return err_set(reterr, CORDON_OS, "there is no network");
}

void fetch_result_done(struct fetch_result *r)
{
	(void)r;
}

int gateway_process_hash(const struct gateway_options *options, uint8_t ret[static 32],
			 struct cordon_error **reterr)
{
	(void)options;
	(void)ret;
	return err_set(reterr, CORDON_UNSUPPORTED, "there is no gateway");
}
