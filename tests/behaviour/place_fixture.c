/* tests/behaviour/place_fixture.c - see place_fixture.h. */
#include "place_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "harness/test.h"
#include "session/welcome.h"

/* Far more than anything here takes, also under a sanitizer. */
enum { PATIENCE_MS = 60000, LANGUAGES = 4 };

static const struct {
	enum guest_kind kind;
	const char *program, *arguments[5];
} languages[LANGUAGES] = {
	{ GUEST_KIND_SH, "/usr/bin/bash", { "bash", "-c" } },
	{ GUEST_KIND_PYTHON, "/usr/bin/python3", { "python3", "-c" } },
	{ GUEST_KIND_R, "/usr/lib/R/bin/exec/R", { "R", "--vanilla", "--no-echo", "-e" } },
	{ GUEST_KIND_NODE, "/usr/bin/node", { "node", "-e" } },
};

bool site_has(enum guest_kind kind)
{
	for (size_t i = 0; i < LANGUAGES; i++)
		if (languages[i].kind == kind)
			return access(languages[i].program, X_OK) == 0;
	return false;
}

static const char token[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* The launch of the language's runtime, or of the code alone. */
static void make_launch(const struct policy *p, enum guest_kind kind, const char *code,
			struct launch *ret)
{
	struct guest_options o = { .kind = kind, .policy = p, .token = token };
	size_t i = 0;

	while (languages[i].kind != kind)
		i++;
	ASSERT_EQ(guest_launch(&o, ret, NULL), 0);
	if (!code)
		return;
	strlist_done(&ret->argv);
	for (size_t k = 0; languages[i].arguments[k]; k++)
		ASSERT_EQ(strlist_add(&ret->argv, languages[i].arguments[k]), 0);
	ASSERT_EQ(strlist_add(&ret->argv, code), 0);
	if (kind != GUEST_KIND_SH)
		return;
	free(ret->executable);
	ret->executable = str_dup("/usr/bin/bash");
}

struct ends {
	int in, out, wire;
};

static struct ends open_ends(struct tenant *t, bool has_wire)
{
	struct ends e = { -1, -1, -1 };
	int p[2];

	*t = (struct tenant){ .wire = -1 };
	ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
	e.in = p[0];
	t->in = p[1];
	ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
	t->out = p[0];
	e.out = p[1];
	if (!has_wire)
		return e;
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	t->wire = p[0];
	e.wire = p[1];
	return e;
}

static void close_ends(struct ends *e)
{
	close_fdp(&e->in);
	close_fdp(&e->out);
	close_fdp(&e->wire);
}

static struct box_options options(const struct site *s, const struct launch *l,
				  const struct ends *e)
{
	return (struct box_options){ .policy = &s->policy,
				     .launch = l,
				     .stdin_fd = e->in,
				     .stdout_fd = e->out,
				     .stderr_fd = e->out,
				     .wire_fd = e->wire };
}

static void init(struct site *s, const char *const *settings)
{
	struct wall_probe machine;

	*s = (struct site){ 0 };
	ASSERT_EQ(policy_init_level(&s->policy, LEVEL_STANDARD, NULL), 0);
	for (; settings && *settings; settings++)
		ASSERT_EQ(policy_apply_set(&s->policy, *settings, NULL), 0);
	wall_probe(&s->policy, &machine, NULL);
	needs(machine.has_namespaces, "user namespaces");
}

static struct box *start(const struct site *s, const struct launch *l, const struct ends *ends)
{
	struct launch also[LANGUAGES] = { 0 };
	const struct launch *list[LANGUAGES];
	struct box_options o = options(s, l, ends);
	struct cordon_error *e = NULL;
	struct box *b = NULL;

	o.stays = true;
	o.also = list;
	for (size_t i = 0; i < LANGUAGES; i++)
		if (site_has(languages[i].kind)) {
			make_launch(&s->policy, languages[i].kind, NULL, &also[o.also_count]);
			list[o.also_count] = &also[o.also_count];
			o.also_count++;
		}
	if (box_start(&o, &b, &e) < 0 || box_wait_ready(b, deadline_after_ms(PATIENCE_MS), &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	for (size_t i = 0; i < o.also_count; i++)
		launch_done(&also[i]);
	return b;
}

void site_open(struct site *ret, const char *script, const char *const *settings)
{
	struct site *s = ret;
	struct launch launch = { 0 };

	init(s, settings);
	make_launch(&s->policy, GUEST_KIND_SH, script, &launch);
	struct ends ends = open_ends(&s->first, false);
	s->place = start(s, &launch, &ends);
	ASSERT_EQ(box_first(s->place, &s->first.box, NULL), 0);
	close_ends(&ends);
	launch_done(&launch);
}

static void must_greet(const struct policy *p, int wire)
{
	size_t len;
	char hello[4096];
	cleanup_free char *welcome = welcome_line(&(struct welcome_options){ .policy = p }, &len);

	ASSERT(read(wire, hello, sizeof(hello)) > 0);
	ASSERT_EQ(write(wire, welcome, len), len);
	ASSERT_EQ(write(wire, "\n", 1), 1);
}

void site_fork(struct site *ret, const char *const *settings)
{
	struct site *s = ret;
	struct launch launch = { 0 };
	struct guest_options guest = { .kind = GUEST_KIND_PYTHON,
				       .mode = GUEST_TEMPLATE,
				       .token = token };
	struct tenant template;
	struct box_fork_fds forked;
	struct cordon_error *e = NULL;
	char line[128];

	needs(site_has(GUEST_KIND_PYTHON), "python3");
	init(s, settings);
	guest.policy = &s->policy;
	ASSERT_EQ(guest_launch(&guest, &launch, NULL), 0);
	struct ends ends = open_ends(&template, true);
	s->template = start(s, &launch, &ends);
	must_greet(&s->policy, template.wire);
	close_ends(&ends);
	launch_done(&launch);

	ends = open_ends(&s->first, true);
	ASSERT_EQ(box_prepare(&s->policy, s->template, &s->place, &forked, NULL), 0);
	int fds[4 + BOX_FORK_FDS] = { ends.wire, ends.in, ends.out, ends.out };
	for (int i = 0; i < BOX_FORK_FDS; i++)
		fds[4 + i] = forked.fds[i] >= 0 ? forked.fds[i] : ends.in;
	int len = snprintf(line, sizeof(line), "{\"type\":\"spawn\",\"token\":\"%s\"}\n", token);
	ASSERT_EQ(os_fds_send(template.wire, line, (size_t)len, fds, 4 + BOX_FORK_FDS), len);
	box_fork_fds_done(&forked);
	close_ends(&ends);
	if (box_wait_ready(s->place, deadline_after_ms(PATIENCE_MS), &e) < 0) {
		tenant_read(&template);
		test_fail(__FILE__, __LINE__, "%s: %s", cordon_error_message(e), template.text);
	}
	ASSERT_EQ(box_first(s->place, &s->first.box, NULL), 0);
	must_greet(&s->policy, s->first.wire);
	s->keep = template;
}

void site_close(struct site *s)
{
	tenant_done(&s->first);
	s->place = box_free(s->place);
	if (s->template)
		tenant_done(&s->keep);
	s->template = box_free(s->template);
	policy_done(&s->policy);
}

int site_try(struct site *s, struct tenant *ret, enum guest_kind kind, const char *code)
{
	struct launch launch = { 0 };
	struct ends ends = open_ends(ret, !code);

	make_launch(&s->policy, kind, code, &launch);
	const struct box_options o = options(s, &launch, &ends);
	int r = box_join(s->place, &o, &ret->box, NULL);
	close_ends(&ends);
	launch_done(&launch);
	return r;
}

void site_join(struct site *s, struct tenant *ret, enum guest_kind kind, const char *code)
{
	struct cordon_error *e = NULL;

	ASSERT_EQ(site_try(s, ret, kind, code), 0);
	if (box_wait_ready(ret->box, deadline_after_ms(PATIENCE_MS), &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

/* False: end of file. */
static bool read_some(struct tenant *t)
{
	struct pollfd p = { .fd = t->out, .events = POLLIN };

	if (poll(&p, 1, PATIENCE_MS) <= 0)
		test_fail(__FILE__, __LINE__, "a guest does not print more than '%s'", t->text);
	ASSERT(t->len < TENANT_TEXT - 1);
	ssize_t n = read(t->out, t->text + t->len, TENANT_TEXT - 1 - t->len);
	if (n <= 0)
		return false;
	t->len += (size_t)n;
	t->text[t->len] = '\0';
	return true;
}

void tenant_await(struct tenant *t, const char *text)
{
	while (!strstr(t->text, text))
		if (!read_some(t))
			test_fail(__FILE__, __LINE__, "a guest ended after '%s'", t->text);
}

void tenant_read(struct tenant *t)
{
	while (read_some(t))
		;
}

int tenant_wait(struct tenant *t)
{
	struct cordon_error *e = NULL;

	ASSERT(box_wait_gone(t->box, deadline_after_ms(PATIENCE_MS)));
	if (box_failure(t->box, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	ASSERT_EQ(box_look(t->box).stage, BOX_EXITED);
	return box_look(t->box).wait_status;
}

void tenant_done(struct tenant *t)
{
	t->box = box_free(t->box);
	close_fdp(&t->in);
	close_fdp(&t->out);
	close_fdp(&t->wire);
}

const char *site_run(struct site *s, enum guest_kind kind, const char *code, int *ret_status)
{
	static _Thread_local char text[TENANT_TEXT];
	struct tenant t;

	site_join(s, &t, kind, code);
	int status = tenant_wait(&t);
	tenant_read(&t);
	memcpy(text, t.text, sizeof(text));
	tenant_done(&t);
	if (ret_status)
		*ret_status = status;
	return text;
}
