/* tests/soak/scenes.c - see scenes.h. If nothing was killed meanwhile, each scene checks the
 * result; otherwise the call only has to return. */
#include "soak/scenes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "soak/kills.h"

static atomic_uint wrong;
static const char *const guests[SHARED] = { "python", "sh", "r", "node" };
static const char *const sums[SHARED] = { "print(6*7)", "echo $((6*7))", "cat(6*7); cat('\\n')",
					  "console.log(6*7)" };

unsigned scenes_wrong(void)
{
	return atomic_load(&wrong);
}

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	va_list ap;

	if (atomic_fetch_add(&wrong, 1) >= 20)
		return;
	char line[400];
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	for (char *c = line; *c; c++)
		if (*c == '\n')
			*c = ' ';
	printf("# %s\n", line);
}

/* Executes and compares what was printed; want NULL: whatever happens is right. */
static void expect(struct cordon_session *s, const char *code, const char *want)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = code, .timeout_ms = 60000 };
	struct cordon_result *r = NULL;
	unsigned before = kills_mark();
	int got = cordon_session_execute(s, &o, &r, &e);

	if (want && got < 0 && kills_spared(before))
		complain("%.40s: %s", code, cordon_error_message(e));
	if (want && got == 0 && kills_spared(before) &&
	    strcmp(cordon_result_stdout(r, NULL), want) != 0)
		complain("%.40s: printed '%.40s', %s", code, cordon_result_stdout(r, NULL),
			 cordon_result_error(r) ? cordon_result_error(r) : "no error");
	cordon_result_free(r);
}

static struct cordon_session *open_one(const char *guest, struct cordon_tools *tools,
				       struct cordon_policy *policy)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session_options o = { .guest = guest, .tools = tools, .policy = policy };
	struct cordon_session *s = NULL;
	unsigned before = kills_mark();

	if (cordon_session_open(&o, &s, &e) < 0 && kills_spared(before))
		complain("open %s: %s", guest, cordon_error_message(e));
	return s;
}

static void pooled(struct world *w, unsigned *seed)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = "6*7", .timeout_ms = 60000 };
	struct cordon_result *r = NULL;
	unsigned before = kills_mark();

	if (cordon_pool_execute(w->pools[(unsigned)rand_r(seed) % POOLS], &o, 60000, &r, &e) < 0) {
		if (kills_spared(before))
			complain("pool: %s", cordon_error_message(e));
	} else if (!cordon_result_success(r) && kills_spared(before)) {
		complain("pool: %s", cordon_result_error(r));
	}
	cordon_result_free(r);
}

static void taken(struct world *w, unsigned *seed)
{
	struct cordon_pool *p = w->pools[(unsigned)rand_r(seed) % POOLS];
	struct cordon_session *s = NULL;

	if (cordon_pool_acquire(p, 60000, &s, NULL) < 0)
		return;
	expect(s, rand_r(seed) % 2 ? "quit()" : "1", NULL);
	cordon_pool_release(p, s);
}

static void fresh(struct world *w, unsigned *seed)
{
	unsigned k = (unsigned)rand_r(seed) % SHARED;
	struct cordon_session *s = open_one(guests[k], NULL, NULL);

	(void)w;
	if (s)
		expect(s, sums[k], "42\n");
	cordon_session_close(s);
}

static void in_pod(struct world *w, unsigned *seed)
{
	struct cordon_session *s = w->has_pod ? open_one("pod", NULL, NULL) : NULL;

	if (s)
		expect(s, rand_r(seed) % 2 ? "echo 42" : "seq 42 | tail -n 1", "42\n");
	cordon_session_close(s);
}

static void crash(struct world *w, unsigned *seed)
{
	static const char *const codes[] = { "import os; os.kill(os.getpid(), 11)",
					     "import os; os._exit(3)", "while True: pass",
					     "b = bytearray(1 << 30)" };
	struct cordon_execute_options o = { .code = codes[(unsigned)rand_r(seed) % 4],
					    .timeout_ms = 200 };
	struct cordon_session *s = open_one("python", NULL, NULL);
	struct cordon_result *r = NULL;

	(void)w;
	if (!s)
		return;
	(void)cordon_file_write(s, "kept", "x", 1, NULL);
	(void)cordon_session_execute(s, &o, &r, NULL);
	cordon_result_free(r);
	expect(s, "print(open('kept').read())", "x\n");
	cordon_session_close(s);
}

static void tools(struct world *w, unsigned *seed)
{
	struct cordon_session *s = open_one("python", w->tools, NULL);

	(void)seed;
	if (s)
		expect(s, "print(sum(now(n=i) for i in range(20)), later(n=2))", "190 2\n");
	cordon_session_close(s);
}

static void files(struct world *w, unsigned *seed)
{
	struct cordon_session *s = open_one("sh", NULL, NULL);
	int fd = memfd_create("export", MFD_CLOEXEC);
	char *json = NULL;

	(void)w;
	if (s && fd >= 0) {
		char bytes[5000];
		memset(bytes, 'a' + rand_r(seed) % 26, sizeof(bytes));
		(void)cordon_file_write(s, "d/e/f", bytes, sizeof(bytes), NULL);
		(void)cordon_snapshot_create(s, "one", NULL);
		(void)cordon_file_remove(s, "d", true, NULL);
		(void)cordon_snapshot_restore(s, "one", NULL);
		expect(s, "wc -c < d/e/f", "5000\n");
		(void)cordon_files_export(s, fd, NULL);
		(void)lseek(fd, 0, SEEK_SET);
		(void)cordon_files_import(s, fd, &json, NULL);
		expect(s, "wc -c < d/e/f", "5000\n");
	}
	free(json);
	if (fd >= 0)
		close(fd);
	cordon_session_close(s);
}

static void network(struct world *w, unsigned *seed)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_policy *p = NULL;
	char set[64], code[200];

	(void)seed;
	snprintf(set, sizeof(set), "network.allow=127.0.0.1:%u", w->port);
	snprintf(code, sizeof(code),
		 "import urllib.request as u; "
		 "print(u.urlopen('http://127.0.0.1:%u/').read().decode())",
		 w->port);
	if (cordon_policy_new(NULL, &p, &e) < 0 || cordon_policy_set(p, set, &e) < 0)
		complain("network: %s", cordon_error_message(e));
	struct cordon_session *s = open_one("python", NULL, p);
	if (s)
		expect(s, code, "hello\n");
	cordon_session_close(s);
	cordon_policy_free(p);
}

/* Everything that may be called on a session that others use, too. */
static void shared(struct world *w, unsigned *seed)
{
	unsigned k = (unsigned)rand_r(seed) % SHARED;
	struct cordon_session *s = w->shared[k];
	struct cordon_result *r = NULL;
	struct cordon_execute_options o = { .code = sums[k], .timeout_ms = 2000 };
	char *text = NULL;
	size_t len;

	switch ((unsigned)rand_r(seed) % 14) {
	case 0:
		(void)cordon_session_cancel(s, NULL);
		break;
	case 1:
		(void)cordon_session_interrupt(s, NULL);
		break;
	case 2:
		(void)cordon_session_restart(s, NULL);
		break;
	case 3:
		(void)cordon_session_is_alive(s);
		break;
	case 4:
		text = cordon_session_describe(s);
		break;
	case 5:
		(void)cordon_session_setenv(s, "A", "b", NULL);
		text = cordon_session_getenv(s, "A");
		break;
	case 6:
		(void)cordon_session_resolve(s, "net-1", true, NULL, NULL, NULL);
		break;
	case 7:
		(void)cordon_file_write(s, "a", "b", 1, NULL);
		(void)cordon_file_read(s, "a", &text, &len, NULL);
		break;
	case 8:
		(void)cordon_snapshot_create(s, "s", NULL);
		break;
	case 9:
		(void)cordon_snapshot_restore(s, "s", NULL);
		break;
	case 10:
		text = cordon_snapshot_list(s);
		break;
	case 11:
		o.code = k == 0 ? "import os; os.kill(os.getpid(), 9)" : "exit 1";
		/* fallthrough */
	default:
		(void)cordon_session_execute(s, &o, &r, NULL);
	}
	cordon_result_free(r);
	free(text);
}

/* A supervisor, of a template or of a sandbox of its own, or a gateway. */
static void kill_child(struct world *w, unsigned *seed)
{
	(void)w;
	if (!kills_one(seed, 1))
		complain("what ends with a killed process lives on");
}

const struct scene scenes[] = {
	{ "pooled", pooled, 300 },       { "taken", taken, 30 },     { "fresh", fresh, 60 },
	{ "pod", in_pod, 15 },           { "crash", crash, 10 },     { "tools", tools, 20 },
	{ "files", files, 20 },          { "network", network, 10 }, { "shared", shared, 100 },
	{ "kill_child", kill_child, 1 }, { NULL, NULL, 0 },
};

static enum cordon_answer answer_now(struct cordon_call *c, void *arg)
{
	const char *n = strchr(cordon_call_args(c), ':');

	(void)arg;
	char text[32];
	snprintf(text, sizeof(text), "%ld", n ? strtol(n + 1, NULL, 10) : -1);
	(void)cordon_call_value(c, text, NULL);
	return CORDON_ANSWER_VALUE;
}

static void *answer_call(void *arg)
{
	(void)answer_now(arg, NULL);
	return NULL;
}

static enum cordon_answer answer_later(struct cordon_call *c, void *arg)
{
	pthread_t t;

	(void)arg;
	if (pthread_create(&t, NULL, answer_call, c) != 0)
		return answer_now(c, NULL);
	pthread_detach(t);
	return CORDON_ANSWER_PENDING;
}

void scenes_open(struct world *w)
{
	cleanup_error struct cordon_error *e = NULL;
	const struct cordon_tool now = { .name = "now",
					 .args_json = "{\"n\": \"number\"}",
					 .fn = answer_now },
				 later = { .name = "later",
					   .args_json = "{\"n\": \"number\"}",
					   .fn = answer_later };

	if (cordon_tools_new(&w->tools, &e) < 0 || cordon_tools_add(w->tools, &now, &e) < 0 ||
	    cordon_tools_add(w->tools, &later, &e) < 0)
		complain("tools: %s", cordon_error_message(e));
	for (unsigned i = 0; i < SHARED; i++)
		w->shared[i] = open_one(guests[i], NULL, NULL);
	for (unsigned i = 0; i < POOLS; i++) {
		struct cordon_pool_options o = { .session = { .guest = i ? "r" : "python" },
						 .size = 4 - 2 * i };
		if (cordon_pool_new(&o, &w->pools[i], &e) < 0)
			complain("pool: %s", cordon_error_message(e));
	}
}

void scenes_close(struct world *w)
{
	for (unsigned i = 0; i < SHARED; i++)
		w->shared[i] = cordon_session_close(w->shared[i]);
	for (unsigned i = 0; i < POOLS; i++)
		w->pools[i] = cordon_pool_free(w->pools[i]);
	w->tools = cordon_tools_unref(w->tools);
}
