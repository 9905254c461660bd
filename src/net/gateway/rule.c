/* net/gateway/rule.c - see rule.h. */
#include "net/gateway/rule.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/gateway/url.h"

enum rule_kind { RULE_NAME, RULE_BELOW, RULE_ANY, RULE_BLOCK };

struct rule {
	enum rule_kind kind;
	const char *list; /* "network.allow" or "network.block" */
	size_t index;
	char *text;
	struct host host; /* RULE_NAME; for RULE_BELOW the suffix */
	struct address_block block;
	uint16_t port;
	struct strlist methods;
	char *path; /* normalised prefix or NULL */
};

struct ruleset {
	struct rule *allow, *block;
	size_t allow_count, block_count;
	bool ask;
};

static int parse_pattern(struct rule *r, struct cordon_error **reterr)
{
	const char *text = r->text;

	if (strcmp(text, "*") == 0) {
		r->kind = RULE_ANY;
		return 0;
	}
	if (address_parse_block(text, &r->block)) {
		r->kind = RULE_BLOCK;
		return 0;
	}
	if (strchr(text, '/'))
		return err_set(
			reterr, CORDON_INVALID,
			"not a block of addresses (like 10.0.0.0/8, no bits after the prefix)");
	r->kind = RULE_NAME;
	if (strncmp(text, "*.", 2) == 0) {
		r->kind = RULE_BELOW;
		text += 2;
	}
	if (strchr(text, '*'))
		return err_set(reterr, CORDON_INVALID,
			       "a '*' stands only alone or as '*.' before a name");
	int ret = host_parse(text, strlen(text), &r->host, reterr);
	if (ret < 0)
		return ret;
	if (!host_is_literal(&r->host))
		return 0;
	if (r->kind == RULE_BELOW)
		return err_set(reterr, CORDON_INVALID, "an address has no sub-domains");
	r->kind = RULE_BLOCK;
	r->block = (struct address_block){ .base = r->host.addr,
					   .bits = r->host.addr.family == 4 ? 32 : 128 };
	return 0;
}

static int rule_init(struct rule *r, const struct policy_net_rule *src,
		     struct cordon_error **reterr)
{
	r->port = src->port;
	r->text = str_dup(src->host ? src->host : "");
	if (!r->text || strlist_copy(&r->methods, &src->methods) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int ret = parse_pattern(r, reterr);
	if (ret < 0)
		return err_wrap(reterr, ret, "%s[%zu] '%s'", r->list, r->index, r->text);
	if (!src->path_prefix)
		return 0;
	if (src->path_prefix[0] != '/')
		return err_set(reterr, CORDON_INVALID, "%s[%zu] '%s': a path begins with '/'",
			       r->list, r->index, r->text);
	return url_normalise_path(src->path_prefix, strlen(src->path_prefix), &r->path, reterr);
}

static int rules_init(struct rule **ret, size_t *ret_count, const struct policy_net_rule *src,
		      size_t count, const char *list, struct cordon_error **reterr)
{
	if (count == 0)
		return 0;
	*ret = mem_array(count, sizeof(**ret));
	if (!*ret)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		(*ret)[i].list = list;
		(*ret)[i].index = i;
		*ret_count = i + 1;
		int r = rule_init(&(*ret)[i], &src[i], reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int ruleset_new(const struct policy_network *net, struct ruleset **ret,
		struct cordon_error **reterr)
{
	cleanup_ruleset struct ruleset *rs = mem_alloc(sizeof(*rs));
	if (!rs)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	rs->ask = net->ask;
	int r = rules_init(&rs->allow, &rs->allow_count, net->allow, net->allow_count,
			   "network.allow", reterr);
	if (r == 0)
		r = rules_init(&rs->block, &rs->block_count, net->block, net->block_count,
			       "network.block", reterr);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(rs);
	return 0;
}

static void rules_free(struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(rules[i].text);
		free(rules[i].path);
		strlist_done(&rules[i].methods);
	}
	free(rules);
}

struct ruleset *ruleset_free(struct ruleset *rs)
{
	if (!rs)
		return NULL;
	rules_free(rs->allow, rs->allow_count);
	rules_free(rs->block, rs->block_count);
	free(rs);
	return NULL;
}

static bool host_matches(const struct rule *r, const struct host *h)
{
	switch (r->kind) {
	case RULE_NAME:
		return host_equal(&r->host, h);
	case RULE_BELOW:
		return host_is_below(h, r->host.name);
	case RULE_ANY:
		return !host_is_literal(h); /* an address literal must be named itself */
	case RULE_BLOCK:
		return host_is_literal(h) && address_in_block(&h->addr, &r->block);
	}
	return false;
}

static bool allow_port_matches(const struct rule *r, uint16_t port)
{
	return port == 0 || (r->port ? r->port == port : port == 80 || port == 443);
}

static bool is_limited(const struct rule *r)
{
	return r->methods.count > 0 || r->path;
}

static bool method_matches(const struct rule *r, const char *method)
{
	if (r->methods.count == 0)
		return true;
	for (size_t i = 0; i < r->methods.count; i++)
		if (strcasecmp(r->methods.items[i], method) == 0)
			return true;
	/* A rule for GET also allows HEAD. */
	return strcasecmp(method, "HEAD") == 0 && strlist_has(&r->methods, "GET");
}

/* "/v1" allows "/v1", "/v1/…" and "/v1?…", not "/v1x". "/v1/" allows what is below it. */
static bool path_matches(const struct rule *r, const char *path, bool in_doubt)
{
	if (!r->path || strcmp(r->path, "/") == 0)
		return true;
	size_t len = strlen(r->path);
	if (url_path_is_ambiguous(path))
		return in_doubt;
	if (strncmp(path, r->path, len) != 0)
		return false;
	return r->path[len - 1] == '/' || path[len] == '\0' || path[len] == '/' || path[len] == '?';
}

/* in_doubt: the answer for a path that servers interpret differently. */
static bool request_matches(const struct rule *r, const struct rule_query *q, bool in_doubt)
{
	return (!q->method || method_matches(r, q->method)) &&
	       (!q->path || path_matches(r, q->path, in_doubt));
}

static void name_rule(struct rule_verdict *v, const struct rule *r)
{
	(void)snprintf(v->rule, sizeof(v->rule), "%s[%zu] %s", r->list, r->index, r->text);
}

static void explain_host(const struct ruleset *rs, const struct rule_query *q,
			 struct rule_verdict *v)
{
	const char *name = q->host->name;

	(void)snprintf(v->rule, sizeof(v->rule), "no rule");
	if (rs->allow_count == 0 && rs->block_count == 0)
		(void)snprintf(v->reason, sizeof(v->reason),
			       "host %s: networking is not configured (default deny)", name);
	else if (rs->allow_count == 0)
		(void)snprintf(v->reason, sizeof(v->reason),
			       host_is_literal(q->host) ? "address %s is not named in network.allow"
							: "host %s has only ports 80 and 443 open",
			       name);
	else
		(void)snprintf(v->reason, sizeof(v->reason), "%s %s is not in network.allow",
			       host_is_literal(q->host) ? "address" : "host", name);
	if (q->port == 0 || q->port == 80 || q->port == 443)
		(void)snprintf(v->remedy, sizeof(v->remedy),
			       "add \"%s\" to network.allow (--allow-host %s)", name, name);
	else
		(void)snprintf(v->remedy, sizeof(v->remedy),
			       "add {\"host\": \"%s\", \"port\": %u} to network.allow "
			       "(--allow-host %s:%u)",
			       name, q->port, name, q->port);
}

static void explain_limit(const struct rule *r, const struct rule_query *q, struct rule_verdict *v)
{
	name_rule(v, r);
	if (!method_matches(r, q->method ? q->method : ""))
		(void)snprintf(v->reason, sizeof(v->reason), "method %.32s is not open for host %s",
			       q->method ? q->method : "?", q->host->name);
	else
		(void)snprintf(v->reason, sizeof(v->reason), "path %.128s is not open for host %s",
			       q->path ? q->path : "?", q->host->name);
	(void)snprintf(v->remedy, sizeof(v->remedy), "widen the methods or the path of %.200s",
		       v->rule);
}

static void explain_port(const struct rule *r, const struct rule_query *q, struct rule_verdict *v)
{
	name_rule(v, r);
	(void)snprintf(v->reason, sizeof(v->reason), "port %u of host %s is not in network.allow",
		       q->port, q->host->name);
	(void)snprintf(v->remedy, sizeof(v->remedy),
		       "add {\"host\": \"%s\", \"port\": %u} to network.allow (--allow-host %s:%u)",
		       q->host->name, q->port, q->host->name, q->port);
}

static void decide_allow(const struct ruleset *rs, const struct rule_query *q,
			 struct rule_verdict *v)
{
	const struct rule *other_port = NULL, *limited = NULL, *found = NULL;

	for (size_t i = 0; i < rs->allow_count; i++) {
		const struct rule *r = &rs->allow[i];
		if (!host_matches(r, q->host))
			continue;
		if (!allow_port_matches(r, q->port)) {
			other_port = other_port ? other_port : r;
			continue;
		}
		if (!request_matches(r, q, false)) {
			limited = limited ? limited : r;
			continue;
		}
		v->raw |= r->port != 0 && !is_limited(r);
		/* A rule without limits on methods and paths wins over one with limits. */
		if (!found || (is_limited(found) && !is_limited(r)))
			found = r;
	}
	if (found) {
		v->allowed = true;
		v->inspect = is_limited(found);
		name_rule(v, found);
	} else if (limited) {
		explain_limit(limited, q, v);
	} else if (other_port) {
		explain_port(other_port, q, v);
	} else {
		explain_host(rs, q, v);
	}
}

static bool block_could_match(const struct rule *r, const struct rule_query *q)
{
	return host_matches(r, q->host) && request_matches(r, q, true) &&
	       (r->port == 0 || q->port == 0 || r->port == q->port);
}

static void decide_block(const struct ruleset *rs, const struct rule_query *q,
			 struct rule_verdict *v)
{
	for (size_t i = 0; i < rs->block_count; i++) {
		const struct rule *r = &rs->block[i];
		if (!block_could_match(r, q))
			continue;
		/* A rule with limits blocks only the requests that it names. If method and path are
		 * not visible, they must be inspected. */
		if ((r->port != 0 && q->port == 0) || (is_limited(r) && (!q->method || !q->path))) {
			v->inspect |= is_limited(r);
			continue;
		}
		v->inspect = false;
		name_rule(v, r);
		(void)snprintf(v->reason, sizeof(v->reason), "host %s is in network.block",
			       q->host->name);
		(void)snprintf(v->remedy, sizeof(v->remedy),
			       "add \"%s\" to network.allow, which wins over network.block",
			       q->host->name);
		return;
	}
	if (host_is_literal(q->host) || (q->port != 0 && q->port != 80 && q->port != 443)) {
		v->inspect = false;
		explain_host(rs, q, v);
		return;
	}
	v->allowed = true;
	(void)snprintf(v->rule, sizeof(v->rule), "not in network.block");
}

void ruleset_decide(const struct ruleset *rs, const struct rule_query *q, struct rule_verdict *ret)
{
	*ret = (struct rule_verdict){ 0 };
	if (rs->allow_count > 0)
		decide_allow(rs, q, ret);
	else if (rs->block_count > 0)
		decide_block(rs, q, ret);
	else
		explain_host(rs, q, ret);
	ret->ask = ret->allowed && rs->ask;
}

/* A wide block does not count as naming an address: 0.0.0.0/0 allows the public Internet, not the
 * machine's own network. Metadata services need a rule with their exact address. */
static bool names_address(const struct rule *r, const struct address *a, enum address_class class)
{
	if (r->kind != RULE_BLOCK || !address_in_block(a, &r->block))
		return false;
	if (class == ADDRESS_METADATA)
		return r->block.bits == (a->family == 4 ? 32 : 128);
	return class == ADDRESS_PUBLIC || r->block.bits >= (a->family == 4 ? 8 : 7);
}

void ruleset_decide_address(const struct ruleset *rs, const struct host *host,
			    const struct address *a, uint16_t port, struct rule_verdict *ret)
{
	enum address_class class = address_classify(a);
	char text[ADDRESS_TEXT_SIZE];

	*ret = (struct rule_verdict){ 0 };
	address_text(a, text);
	for (size_t i = 0; rs->allow_count == 0 && i < rs->block_count; i++) {
		const struct rule *r = &rs->block[i];
		if (r->kind != RULE_BLOCK || !address_in_block(a, &r->block) || is_limited(r) ||
		    (r->port && r->port != port))
			continue;
		name_rule(ret, r);
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "host %s resolves to %s, which is in network.block", host->name,
			       text);
		(void)snprintf(ret->remedy, sizeof(ret->remedy), "remove %s from network.block",
			       r->text);
		return;
	}
	for (size_t i = 0; i < rs->allow_count; i++) {
		const struct rule *r = &rs->allow[i];
		if (!names_address(r, a, class) || !allow_port_matches(r, port))
			continue;
		ret->allowed = true;
		name_rule(ret, r);
		return;
	}
	if (class == ADDRESS_PUBLIC && !host_is_literal(host)) {
		ret->allowed = true;
		(void)snprintf(ret->rule, sizeof(ret->rule), "public address");
		return;
	}
	(void)snprintf(ret->rule, sizeof(ret->rule), "%s", address_class_name(class));
	if (host_is_literal(host))
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "address %s is %s and not named in network.allow", text,
			       address_class_name(class));
	else
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "host %s resolves to %s, %s that is not named in network.allow",
			       host->name, text, address_class_name(class));
	(void)snprintf(ret->remedy, sizeof(ret->remedy), "add \"%s\" to network.allow", text);
}

static void add_port(uint16_t *ports, size_t *count, size_t max, uint16_t port)
{
	size_t i = 0;

	while (i < *count && ports[i] < port)
		i++;
	if ((i < *count && ports[i] == port) || *count == max)
		return;
	memmove(ports + i + 1, ports + i, (*count - i) * sizeof(*ports));
	ports[i] = port;
	++*count;
}

size_t ruleset_ports(const struct ruleset *rs, uint16_t *ret, size_t max)
{
	size_t count = 0;
	bool defaults = rs->allow_count == 0 && rs->block_count > 0;

	for (size_t i = 0; i < rs->allow_count; i++) {
		if (rs->allow[i].port)
			add_port(ret, &count, max, rs->allow[i].port);
		else
			defaults = true;
	}
	if (defaults) {
		add_port(ret, &count, max, 80);
		add_port(ret, &count, max, 443);
	}
	return count;
}

bool ruleset_has_limits(const struct ruleset *rs)
{
	for (size_t i = 0; i < rs->allow_count; i++)
		if (is_limited(&rs->allow[i]))
			return true;
	for (size_t i = 0; rs->allow_count == 0 && i < rs->block_count; i++)
		if (is_limited(&rs->block[i]))
			return true;
	return false;
}
