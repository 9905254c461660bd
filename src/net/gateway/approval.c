/* net/gateway/approval.c - see approval.h. */
#include "net/gateway/approval.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/gateway/conn.h"

struct approval {
	uint64_t id;
	char *question; /* JSON text, without the id */
	size_t waiting; /* connections that wait for it */
	struct approval *next;
};

static struct approval **find(struct approvals *a, uint64_t id, const char *question)
{
	struct approval **p = &a->first;

	while (*p && (question ? !str_eq((*p)->question, question) : (*p)->id != id))
		p = &(*p)->next;
	return p;
}

/* Removes the approval from the list and tells the host program. */
static void close_approval(struct hub *hub, struct approval **p)
{
	struct approval *a = *p;

	*p = a->next;
	control_send(&hub->control,
		     json_pack("{s:s, s:I}", "type", "ask.over", "id", (json_int_t)a->id));
	free(a->question);
	free(a);
}

void approvals_done(struct approvals *a)
{
	while (a->first) {
		struct approval *next = a->first->next;
		free(a->first->question);
		free(a->first);
		a->first = next;
	}
}

static json_t *question_of(const struct conn *c)
{
	json_t *headers = NULL;

	if (c->dial_headers)
		(void)json_parse(c->dial_headers, strlen(c->dial_headers), 0, &headers, NULL);
	return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s?, s:b, s:o?}", "type", "ask", "execution",
			 c->hub->execution, "host", c->target.name, "port", (int)c->port, "method",
			 c->audit.method, "path", c->audit.path, "tls", c->is_opened, "headers",
			 headers);
}

/* An answered question frees its place at once. One that ended without an answer frees it after a
 * while. */
static bool has_room(struct approvals *a)
{
	uint64_t now = clock_now_ns(), step = APPROVALS_FORGET_MS * 1000000ULL;

	if (a->open == 0)
		a->forgotten_ns = now;
	while (a->open > 0 && now - a->forgotten_ns >= step) {
		a->open--;
		a->forgotten_ns += step;
	}
	return a->open < APPROVALS_OPEN;
}

static void refuse_too_many(struct conn *c)
{
	struct rule_verdict v = { 0 };

	(void)str_copy(v.rule, sizeof(v.rule), "network.ask");
	(void)snprintf(v.reason, sizeof(v.reason),
		       "%d requests wait for an approval, or ended without one", APPROVALS_OPEN);
	(void)str_copy(v.remedy, sizeof(v.remedy),
		       "answer the approvals that are pending, and try again a second later");
	refuse_by_rule(c, &v);
}

static bool open_approval(struct hub *hub, json_t *question, char *text, uint64_t *ret_id)
{
	struct approval *a = mem_alloc(sizeof(*a));

	if (!a)
		return false;
	*a = (struct approval){ .id = ++hub->next_id, .waiting = 1, .next = hub->approvals.first };
	a->question = text;
	hub->approvals.first = a;
	hub->approvals.open++;
	(void)json_object_set_new(question, "id", json_integer((json_int_t)a->id));
	control_send(&hub->control, json_incref(question));
	*ret_id = a->id;
	return true;
}

bool approval_ask(struct conn *c)
{
	struct hub *hub = c->hub;
	cleanup_json json_t *question = question_of(c);
	cleanup_free char *text = question ? json_text(question, NULL) : NULL;

	if (!text) {
		refuse_for(c, 503, "failed", "out of memory");
		return false;
	}
	/* A host program with a callback is asked about every single request, so none are
	 * joined. */
	struct approval *same = hub->config.callback ? NULL : *find(&hub->approvals, 0, text);
	if (same) {
		same->waiting++;
		c->ask_id = same->id;
		return true;
	}
	if (!has_room(&hub->approvals)) {
		refuse_too_many(c);
		return false;
	}
	if (!open_approval(hub, question, text, &c->ask_id)) {
		refuse_for(c, 503, "failed", "out of memory");
		return false;
	}
	text = NULL; /* now owned by the approval */
	return true;
}

void approval_leave(struct conn *c)
{
	struct approval **p = find(&c->hub->approvals, c->ask_id, NULL);

	if (c->ask_id != 0 && *p && --(*p)->waiting == 0)
		close_approval(c->hub, p);
	c->ask_id = 0;
}

void approval_answer(struct hub *hub, uint64_t id, bool allow, const char *reason)
{
	struct approval **p = find(&hub->approvals, id, NULL);
	struct conn *c;

	if (!*p)
		return;
	close_approval(hub, p);
	if (hub->approvals.open > 0)
		hub->approvals.open--;
	while ((c = conn_by_ask(hub,
				id))) /* the answer ends the waiting, and perhaps the connection */
		dial_answer(c, allow, reason);
}
