/* serve/http/upgrade.c - a connection that changes to another protocol. See httpd.h. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/str.h"
#include "serve/http/httpd_exchange.h"

enum { HEAD_MAX = 32 << 10 };

struct httpd_link {
	struct httpd_exchange *x;
	struct MHD_UpgradeResponseHandle *handle; /* of the library; NULL: TLS */
	struct tls_link *tls;
};

bool httpd_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at && *at;) {
		at += strspn(at, " \t,");
		size_t n = strcspn(at, " \t,");
		if (n == len && strncasecmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

bool httpd_asks_upgrade(struct httpd_exchange *x, const char *protocol)
{
	return httpd_has_word(httpd_header(x, "Connection"), "Upgrade") &&
	       httpd_has_word(httpd_header(x, "Upgrade"), protocol);
}

/* Small messages must not wait for each other, and a peer that vanished without a word is noticed.
 */
static void tune(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 }, { IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};

	for (size_t k = 0; i && k < sizeof(options) / sizeof(*options);
	     k++) /* not on Unix sockets */
		(void)setsockopt(i->connect_fd, options[k].level, options[k].name,
				 &options[k].value, sizeof(options[k].value));
}

static struct httpd_link *link_new(struct httpd_exchange *x)
{
	struct httpd_link *link = mem_alloc(sizeof(*link));

	if (link)
		*link = (struct httpd_link){ .x = x };
	return link;
}

/* From here on the connection is no request any more. */
static void leave_http(struct httpd_exchange *x)
{
	tune(x->connection);
	httpd_exchange_log(x);
	if (x->is_admitted && x->server->options.leave)
		x->server->options.leave(x, x->server->options.admit_arg);
	x->is_admitted = false;
	hangup_remove(x->server->hangup, &x->hangup);
	x->is_upgraded = true;
	httpdoor_upgrade(x->server->door, httpd_guest(x->connection));
}

/* The library calls it in the thread of the connections, after it has sent the answer. */
static void on_upgrade(void *arg, struct MHD_Connection *c, void *context, const char *early,
		       size_t len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct httpd_exchange *x = arg;
	httpd_upgraded_fn fn = TAKE_PTR(x->upgraded);
	struct httpd_link *link = link_new(x);

	(void)c;
	(void)context;
	leave_http(x);
	if (link)
		link->handle = handle;
	else
		(void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
	fn(link, fd, early, len, x->upgraded_arg);
}

void upgrade_give_up(struct httpd_exchange *x)
{
	httpd_upgraded_fn fn = TAKE_PTR(x->upgraded);

	if (fn)
		fn(NULL, -1, NULL, 0, x->upgraded_arg);
}

static int make_head(const struct httpd_exchange *x, const char *protocol, struct buf *ret)
{
	buf_init(ret, HEAD_MAX);
	int r = buf_printf(ret,
			   "HTTP/1.1 101 Switching Protocols\r\n"
			   "Connection: Upgrade\r\nUpgrade: %s\r\n",
			   protocol);
	for (size_t i = 0; r == 0 && i + 1 < x->passed.count; i += 2)
		r = buf_printf(ret, "%s: %s\r\n", x->passed.items[i], x->passed.items[i + 1]);
	return r < 0 ? r : buf_add_str(ret, "\r\n");
}

/* The connection stays suspended, so the library uses neither the socket nor the TLS session.
 * False: it goes on as a request. */
static bool take_tls(struct httpd_exchange *x, const char *protocol)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	void *session = i ? i->tls_session : NULL;

	i = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	cleanup_buf struct buf head = { 0 };
	bool is_good = make_head(x, protocol, &head) == 0;
	struct httpd_link *link = link_new(x);
	int fd = -1;
	if (!i || !session || !is_good || !link ||
	    tls_link_open(x->server->pump, session, i->connect_fd, head.data, &link->tls, &fd,
			  NULL) < 0) {
		free(link);
		return false;
	}
	x->status = MHD_HTTP_SWITCHING_PROTOCOLS;
	httpd_ref(x);
	leave_http(x);
	httpd_upgraded_fn fn = TAKE_PTR(x->upgraded);
	fn(link, fd, NULL, 0, x->upgraded_arg);
	return true;
}

/* The exchange lives until the library reports the end of the request, which for such a connection
 * comes when the link is closed. */
void httpd_answer_upgrade(struct httpd_exchange *x, const char *protocol, httpd_upgraded_fn fn,
			  void *arg)
{
	x->upgraded = fn;
	x->upgraded_arg = arg;
	if (x->server->pump && take_tls(x, protocol))
		return;
	struct MHD_Response *r = MHD_create_response_for_upgrade(on_upgrade, x);
	httpd_add_header(x, "Upgrade", protocol);
	httpd_exchange_answer(x, MHD_HTTP_SWITCHING_PROTOCOLS, NULL, r);
}

void httpd_link_close(struct httpd_link *link)
{
	if (link->handle)
		(void)MHD_upgrade_action(link->handle, MHD_UPGRADE_ACTION_CLOSE);
	if (link->tls) {
		tls_link_close(link->tls);
		httpd_exchange_resume(link->x); /* without an answer the connection is closed */
		httpd_put(link->x);
	}
	free(link);
}
