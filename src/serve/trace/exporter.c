/* serve/trace/exporter.c - see exporter.h. */
#include "serve/trace/exporter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/os.h"
#include "net/host/fetch.h"
#include "net/host/gateway_process.h"
#include "serve/trace/otlp.h"

enum { ANSWER_MAX = 64 << 10, WAIT_MAX_S = 30, HEADERS_MAX = 32 };

/* A collector often has a name in the operator's own network. The operator has named it; so its
 * addresses may be private. Those of cloud metadata stay closed. */
static const char *const networks[] = {
	"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
	"fc00::/7",    "::1"
};

static int add_rule(struct exporter *e, const char *host)
{
	struct policy_net_rule *r = &e->policy.network.allow[e->policy.network.allow_count];

	r->host = str_dup(host);
	r->port = e->endpoint.port;
	if (!r->host)
		return -CORDON_NOMEM;
	e->policy.network.allow_count++;
	return 0;
}

static int make_policy(struct exporter *e)
{
	size_t count = sizeof(networks) / sizeof(*networks);
	struct policy_network *n = &e->policy.network;

	n->response_bytes = ANSWER_MAX;
	n->allow = mem_alloc((count + 1) * sizeof(*n->allow));
	int r = n->allow ? add_rule(e, e->endpoint.host) : -CORDON_NOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_rule(e, networks[i]);
	return r;
}

/* What a header may be is checked by the gateway; here only whether it can be read on the way. */
static int add_headers(struct exporter *e, const char *const *headers, struct cordon_error **reterr)
{
	int r = strlist_add(&e->headers, "Content-Type: application/json");

	if (r == 0)
		r = strlist_add(&e->headers, "User-Agent: cordon");
	if (headers && headers[0] && !e->endpoint.is_tls && !e->endpoint.is_loopback)
		return err_set(reterr, CORDON_DENIED,
			       "http:// would show the headers of OTEL_EXPORTER_OTLP_HEADERS to "
			       "the network: use https://");
	for (size_t i = 0; r == 0 && headers && headers[i]; i++)
		r = i < HEADERS_MAX ? strlist_add(&e->headers, headers[i])
				    : err_set(reterr, CORDON_INVALID,
					      "there are more than %d headers for the collector",
					      HEADERS_MAX);
	return r;
}

static struct gateway_options gateway_of(const struct exporter *e)
{
	return (struct gateway_options){ .policy = &e->policy, .ca_file = e->ca_file };
}

static int take_authorities(struct exporter *e, const char *file, struct cordon_error **reterr)
{
	if (!file)
		return 0;
	e->ca_file = str_dup(file);
	if (!e->ca_file)
		return -CORDON_NOMEM;
	return access(file, R_OK) == 0 ? 0
				       : err_set(reterr, CORDON_NOT_FOUND,
						 "the authorities '%.200s' cannot be read", file);
}

/* Whether there is a program at all that can send a request. */
static int check_gateway(const struct exporter *e, struct cordon_error **reterr)
{
	const struct gateway_options g = gateway_of(e);
	unsigned char ignored[32];
	int r = gateway_process_hash(&g, ignored, reterr);

	return r < 0 ? err_wrap(reterr, r, "traces") : 0;
}

int exporter_init(struct exporter *e, const struct tracer_options *o, struct cordon_error **reterr)
{
	*e = (struct exporter){ .stop_fd = -1 };
	int r = endpoint_parse(o->url, o->is_whole, &e->endpoint, reterr);
	if (r == 0)
		r = add_headers(e, o->headers, reterr);
	if (r == 0)
		r = make_policy(e);
	if (r == 0)
		r = take_authorities(e, o->ca_file, reterr);
	if (r == 0)
		r = check_gateway(e, reterr);
	if (r == 0 && (e->stop_fd = os_event_open()) < 0)
		r = err_set(reterr, CORDON_OS, "there are too many open files");
	if (r == -CORDON_NOMEM && reterr && !*reterr)
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		exporter_done(e);
	return r;
}

void exporter_done(struct exporter *e)
{
	struct policy_network *n = &e->policy.network;

	for (size_t i = 0; n->allow && i < n->allow_count; i++)
		free(n->allow[i].host);
	free(n->allow);
	endpoint_done(&e->endpoint);
	for (size_t i = 0; i < e->headers.count; i++)
		explicit_bzero(e->headers.items[i], strlen(e->headers.items[i]));
	strlist_done(&e->headers);
	free(e->ca_file);
	if (e->stop_fd >= 0)
		(void)close(e->stop_fd);
	*e = (struct exporter){ .stop_fd = -1 };
}

void exporter_stop(struct exporter *e)
{
	(void)os_event_set(e->stop_fd);
}

/* Retry-After in seconds; a date is not worth the trouble. */
static uint64_t wait_of(const json_t *headers)
{
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)headers, i, one)
	{
		const char *name = json_string_value(json_array_get(one, 0));
		const char *value = json_string_value(json_array_get(one, 1));
		if (!str_eq(name, "retry-after") || !value)
			continue;
		unsigned long s = value[0] >= '0' && value[0] <= '9' ? strtoul(value, NULL, 10) : 0;
		return (s < WAIT_MAX_S ? s : WAIT_MAX_S) * 1000;
	}
	return 0;
}

/* These and no others say that the same request may succeed later. */
static bool is_for_now(unsigned status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void judge(const struct fetch_result *f, struct exporter_answer *ret)
{
	if (f->status >= 200 && f->status < 300) {
		ret->outcome = EXPORTER_SENT;
		ret->rejected = otlp_rejected(buf_text(&f->body), f->body.len);
		return;
	}
	ret->outcome = is_for_now(f->status) ? EXPORTER_AGAIN : EXPORTER_LOST;
	ret->wait_ms = wait_of(f->headers);
	ret->why = str_printf("the collector answered with status %u", f->status);
}

void exporter_send(struct exporter *e, const void *body, size_t len, uint64_t timeout_ms,
		   struct exporter_answer *ret)
{
	cleanup_error struct cordon_error *problem = NULL;
	cleanup_fetch struct fetch_result f = { 0 };
	const struct fetch_options o = { .gateway = gateway_of(e),
					 .url = e->endpoint.url,
					 .method = "POST",
					 .headers = (const char *const *)e->headers.items,
					 .body = body,
					 .body_len = len,
					 .no_redirects = true,
					 .timeout_ms = timeout_ms,
					 .stop_fd = e->stop_fd };

	*ret = (struct exporter_answer){ .outcome = EXPORTER_LOST };
	int r = fetch_run(&o, &f, &problem);
	if (r == 0) {
		judge(&f, ret);
		return;
	}
	/* No connection, or none that lasted. What is forbidden or not valid stays so. */
	if (r == -CORDON_OS || r == -CORDON_TIMEOUT)
		ret->outcome = EXPORTER_AGAIN;
	ret->why = str_dup(cordon_error_message(problem));
}
