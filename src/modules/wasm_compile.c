/* modules/wasm_compile.c - see wasm_compile.h. The module may exploit the translator or the
 * compiler, so both run in a session of the guest sh: no network, and of the host's files only
 * /usr. */
#include "modules/wasm_compile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cordon/files.h"
#include "cordon/policy.h"
#include "cordon/session.h"

enum { FILE_BYTES = 4 << 20, IMPORTS_BYTES = 64 << 10, REASON_BYTES = 300 };

static const char script[] =
	"cd /workspace || exit 4\n"
	"for tool in node gcc; do\n"
	"	command -v $tool > /dev/null || { echo \"missing $tool\"; exit 5; }\n"
	"done\n"
	"node translate.js module.wasm object 2> /dev/null\n";

void wasm_compiled_init(struct wasm_compiled *c)
{
	buf_init(&c->object, WASM_COMPILE_OBJECT_BYTES);
	buf_init(&c->imports, IMPORTS_BYTES);
}

void wasm_compiled_done(struct wasm_compiled *c)
{
	buf_done(&c->object);
	buf_done(&c->imports);
}

DEFINE_FREEP(struct cordon_session *, cordon_session_close)
DEFINE_FREEP(struct cordon_policy *, cordon_policy_free)
DEFINE_FREEP(struct cordon_result *, cordon_result_free)

static int open_session(uint64_t timeout_ms, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	CLEANUP(cordon_policy_freep) struct cordon_policy *p = NULL;
	/* The translator reserves 2 GiB of address space for its stack and touches little of it. */
	char json[512];
	int r = cordon_policy_new("standard", &p, reterr);

	snprintf(json, sizeof(json),
		 "{\"timeout_ms\": %llu, \"cpu_seconds\": %llu, \"memory_bytes\": %llu, "
		 "\"fs_bytes\": %llu, \"file_bytes\": %llu, \"processes\": 32, "
		 "\"file_count\": 1000}",
		 (unsigned long long)timeout_ms, (unsigned long long)timeout_ms / 1000 + 1,
		 4ULL << 30, 768ULL << 20, 256ULL << 20);
	if (r == 0)
		r = cordon_policy_apply_json(p, json, reterr);
	if (r < 0)
		return r;
	struct cordon_session_options o = { .guest = "sh", .policy = p, .cold = true };
	return cordon_session_open(&o, ret, reterr);
}

static int give(struct cordon_session *s, const char *image, const char *name,
		struct cordon_error **reterr)
{
	cleanup_buf struct buf bytes = { 0 };
	cleanup_free char *from = str_printf("%s/translate/%s", image, name);
	cleanup_free char *to = str_printf("/workspace/%s", name);

	if (!from || !to)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	buf_init(&bytes, FILE_BYTES);
	int r = file_load(from, FILE_BYTES, &bytes, reterr);
	return r < 0 ? r : cordon_file_write(s, to, buf_text(&bytes), bytes.len, reterr);
}

static int fill(struct cordon_session *s, const char *image, const struct wasm_compile_job *job,
		struct cordon_error **reterr)
{
	static const char *const names[] = { "wasm2c",    "translate.js", "object.c",   "module.h",
					     "program.h", "wasm-rt.h",    "wasi_list.h" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(*names); i++)
		r = give(s, image, names[i], reterr);
	if (r == 0)
		r = cordon_file_write(s, "/workspace/module.wasm", job->bytes, job->len, reterr);
	return r;
}

/* The guest's last line of output, without characters that could control a terminal. */
static void last_line(const struct cordon_result *result, char ret[REASON_BYTES])
{
	size_t len = 0, n = 0;
	const char *text = cordon_result_stdout(result, &len), *from;

	while (len && text[len - 1] == '\n')
		len--;
	from = len ? memrchr(text, '\n', len) : NULL;
	from = from ? from + 1 : text;
	for (; len && from < text + len && n < REASON_BYTES - 1; from++)
		ret[n++] = *from >= ' ' && *from <= '~' ? *from : '.';
	ret[n] = '\0';
}

static int explain(const struct cordon_result *result, const char *said,
		   const struct wasm_compile_job *job, struct cordon_error **reterr)
{
	const char *kind = cordon_result_error_kind(result);

	if (str_starts(said, "refused "))
		return err_set(reterr, CORDON_INVALID, "the module is refused: %s", said + 8);
	if (str_starts(said, "missing "))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "translating a module needs %s: install the packages gcc and nodejs",
			       said + 8);
	if (str_eq(kind, "timeout") || str_eq(kind, "cpu"))
		return err_set(reterr, CORDON_TIMEOUT, "translating took longer than %llu s",
			       (unsigned long long)job->timeout_ms / 1000);
	if (kind && !str_eq(kind, "exception"))
		return err_set(reterr, CORDON_LIMIT,
			       "translating reached a limit of its sandbox: %s", kind);
	return err_set(reterr, CORDON_INVALID, "the module is refused: the translator failed");
}

static int collect(struct cordon_session *s, const char *said, struct wasm_compiled *ret,
		   struct cordon_error **reterr)
{
	cleanup_free char *bytes = NULL;
	struct cordon_file_info info;
	size_t len = 0;
	int r = cordon_file_stat(s, "/workspace/object", &info, reterr);

	if (r < 0)
		return r;
	if (info.type != CORDON_FILE || info.size > WASM_COMPILE_OBJECT_BYTES)
		return err_set(reterr, CORDON_LIMIT, "the translated module is too large");
	r = cordon_file_read(s, "/workspace/object", &bytes, &len, reterr);
	if (r < 0)
		return r;
	if (len < 64 || memcmp(bytes, "\177ELF", 4) != 0)
		return err_set(reterr, CORDON_INVALID, "the translator made no object");
	if (buf_add(&ret->object, bytes, len) < 0 || buf_add_str(&ret->imports, said + 2) < 0)
		return err_set(reterr, CORDON_LIMIT, "the translated module is too large");
	return 0;
}

int wasm_compile_run(const char *image, const struct wasm_compile_job *job,
		     struct wasm_compiled *ret, struct cordon_error **reterr)
{
	CLEANUP(cordon_session_closep) struct cordon_session *s = NULL;
	CLEANUP(cordon_result_freep) struct cordon_result *result = NULL;
	struct cordon_execute_options e = { .code = script };
	char said[REASON_BYTES];
	int r = open_session(job->timeout_ms, &s, reterr);

	if (r == 0)
		r = fill(s, image, job, reterr);
	if (r == 0)
		r = cordon_session_execute(s, &e, &result, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "the translator's sandbox");
	last_line(result, said);
	if (!cordon_result_success(result) || !str_starts(said, "ok"))
		return explain(result, said, job, reterr);
	return collect(s, said, ret, reterr);
}
