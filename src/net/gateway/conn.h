/* net/gateway/conn.h - one connection of the guest, from its first byte to its last. Each callback
 * changes the connection and ends in conn_run(), the only place that frees one. */
#pragma once

#include "net/gateway/body.h"
#include "net/gateway/bulk.h"
#include "net/gateway/http.h"
#include "net/gateway/hub.h"

enum conn_state {
	CONN_INTAKE,   /* reading the guest's request */
	CONN_GREETED,  /* SOCKS5: greeting done, the request follows */
	CONN_WAITING,  /* for an approval, a lookup or a connection */
	CONN_CLASSIFY, /* the tunnel is open; its protocol is not known yet */
	CONN_TUNNEL,
	CONN_EXCHANGE, /* HTTP, one request after the other */
	CONN_REFUSED,  /* refused before the client sent anything: its protocol is not known yet */
	CONN_LEAVING,  /* sending the last answer */
	CONN_CLOSED,
};

/* What to do after dial.c has connected. */
enum conn_purpose { PURPOSE_TUNNEL, PURPOSE_REQUEST };

/* One request or tunnel, for the audit log. */
struct request_audit {
	bool is_open;
	uint64_t started_ns;
	char method[HTTP_METHOD_MAX + 1];
	char *path; /* NULL: not visible */
	unsigned status;
	uint64_t bytes_out, bytes_in; /* payload to and from the server */
};

enum exchange_phase {
	EXCHANGE_HEAD, /* waiting for a request */
	EXCHANGE_DIAL,
	EXCHANGE_BUSY, /* sending the request, receiving the response */
};

struct exchange {
	enum exchange_phase phase;
	unsigned client_minor;
	bool keep_client, keep_server, close_after;
	bool has_answer_head;
	bool chunk_request, chunk_answer; /* send as chunks */
	struct body request, answer;
	bool used_secret;
	bool is_guarded; /* the host has secrets: they are removed from its answers */
	struct secret_filter *filter;
};

struct conn {
	struct hub *hub;
	struct conn *prev, *next;
	uint64_t id;
	enum hub_front front;
	enum conn_state state;
	bool is_socks;    /* a SOCKS reply must still be sent */
	bool speaks_http; /* the client can receive a refusal in HTTP now */
	bool is_fixed;    /* a tunnel: the target cannot change */
	bool is_running,
		is_opened; /* is_opened: the gateway makes the TLS connection to the server */
	struct stream client, server;
	struct bulk bulk; /* from server to client */
	struct host target;
	uint16_t port;
	struct rule_verdict verdict;
	/* dialling */
	enum conn_purpose purpose;
	struct resolve_job *job;
	struct resolve_result found;
	size_t next_address;
	struct address address; /* of the connected server */
	struct host dialled;    /* host that `server` is connected to */
	uint16_t dialled_port;
	uint64_t ask_id;
	bool is_asked; /* already approved */
	bool is_connecting, is_proxy_greeting;
	char *dial_headers; /* JSON text for the host program's decision */
	struct exchange exchange;
	struct request_audit audit;
	deadline_ns deadline;
	deadline_ns tunnel_end; /* 0: no tunnel */
	json_t *refusal;        /* CONN_REFUSED: the answer; NULL: none */
	unsigned refusal_status;
};

/* conn.c */
int conn_new(struct hub *hub, int fd, enum hub_front front, struct cordon_error **reterr);
void conn_run(struct conn *c);
void conn_abort(struct conn *c); /* closes at once, with a reset */
void conn_leave(struct conn *c); /* closes after sending what is queued */
/* Closes without an answer, but waits for the client's first bytes: some clients miss a reset that
 * arrives while they connect, and wait for ever. Takes ownership of body. */
void conn_refuse_later(struct conn *c, unsigned status, json_t *body);
void conn_tick(struct conn *c); /* checks the deadlines */
struct conn *conn_by_ask(struct hub *hub, uint64_t ask_id);

/* Large bodies without TLS bypass the queues. left: bytes of the body still to come. True: use
 * conn_bulk_step(). */
bool conn_is_bulk(struct conn *c, uint64_t left);
/* Returns how many bytes were read from the server. */
size_t conn_bulk_step(struct conn *c, uint64_t max, bool *ret_progress);

/* intake.c */
bool intake_step(struct conn *c);
/* DNS over TCP */
bool intake_step_dns(struct conn *c);
/* Answers one DNS query of the guest, from either transport. */
size_t intake_answer_dns(struct hub *hub, const uint8_t *query, size_t len, uint8_t *ret);

/* dial.c: asks for approval, resolves, checks every address, connects. Ends in tunnel_connected(),
 * exchange_connected(), or a refusal. */
void dial_start(struct conn *c, enum conn_purpose purpose);
void dial_answer(struct conn *c, bool allow, const char *reason);
void dial_cancel(struct conn *c);
bool dial_step(struct conn *c);

/* tunnel.c */
enum speech { SPEECH_MORE, SPEECH_TLS, SPEECH_HTTP, SPEECH_OTHER };
/* Recognises a request line, even if incomplete; never returns SPEECH_TLS. */
enum speech tunnel_look_for_http(const char *bytes, size_t len);
void tunnel_connected(struct conn *c);
bool tunnel_step_classify(struct conn *c);
bool tunnel_step(struct conn *c);

/* exchange.c, answer.c */
void exchange_start(struct conn *c);
void exchange_connected(struct conn *c);
bool exchange_step(struct conn *c);
void exchange_done(struct conn *c);
bool answer_step(struct conn *c);

/* refuse.c: the guest's answer and the audit event. */
bool refuse_step(struct conn *c);
void refuse_by_rule(struct conn *c, const struct rule_verdict *v);
void refuse_mismatch(struct conn *c, const char *what, const char *other);
/* kind: "limit", "timeout", "failed", "protocol" */
void refuse_for(struct conn *c, unsigned status, const char *kind, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void request_audit_start(struct conn *c, const char *method, const char *path);
/* Counts bytes against the limits of request and execution; false: c was refused. */
bool request_audit_count(struct conn *c, uint64_t out, uint64_t in);
void request_audit_end(struct conn *c, const char *outcome, const char *problem);
void request_audit_denial(struct hub *hub, const char *operation, const struct host *h,
			  uint16_t port, const char *method, const struct rule_verdict *v);
