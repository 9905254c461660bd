/* net/gateway/conn.h - one connection of the guest, from its first byte to its last. Every callback
 * changes the connection and ends in conn_run(), the only place where one is freed. */
#pragma once

#include "net/gateway/body.h"
#include "net/gateway/bulk.h"
#include "net/gateway/http.h"
#include "net/gateway/hub.h"

enum conn_state {
	CONN_INTAKE,   /* reading what the guest wants */
	CONN_GREETED,  /* SOCKS5: greeted, the request follows */
	CONN_WAITING,  /* for an approval, an address or a connection */
	CONN_CLASSIFY, /* the tunnel stands; what will be spoken in it? */
	CONN_TUNNEL,
	CONN_EXCHANGE, /* HTTP, one request after the other */
	CONN_REFUSED,  /* refused before the client sent anything: its protocol is not known yet */
	CONN_LEAVING,  /* the last answer is on its way */
	CONN_CLOSED,
};

/* What waits for dial.c to be done. */
enum conn_purpose { PURPOSE_TUNNEL, PURPOSE_REQUEST };

/* One request, or one tunnel, for the audit log. */
struct request_audit {
	bool is_open;
	uint64_t started_ns;
	char method[HTTP_METHOD_MAX + 1];
	char *path; /* NULL: not seen */
	unsigned status;
	uint64_t bytes_out, bytes_in; /* payload towards and from the server */
};

enum exchange_phase {
	EXCHANGE_HEAD, /* waiting for a request */
	EXCHANGE_DIAL,
	EXCHANGE_BUSY, /* request out, response in */
};

struct exchange {
	enum exchange_phase phase;
	unsigned client_minor;
	bool keep_client, keep_server, close_after;
	bool has_answer_head;
	bool chunk_request, chunk_answer; /* how the payload is framed anew */
	struct body request, answer;
	bool used_secret;
	bool is_guarded; /* the host has secrets: they are taken out of whatever it answers */
	struct secret_filter *filter;
};

struct conn {
	struct hub *hub;
	struct conn *prev, *next;
	uint64_t id;
	enum hub_front front;
	enum conn_state state;
	bool is_socks;              /* a SOCKS reply is owed */
	bool speaks_http;           /* a refusal can be said in HTTP now */
	bool is_fixed;              /* a tunnel: the target cannot change any more */
	bool is_running, is_opened; /* is_opened: TLS towards the server is ours */
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
	struct address address; /* that was connected */
	struct host dialled;    /* whom server belongs to */
	uint16_t dialled_port;
	uint64_t ask_id;
	bool is_asked; /* approved already */
	bool is_connecting, is_proxy_greeting;
	char *dial_headers; /* what the host program is shown, JSON text */
	struct exchange exchange;
	struct request_audit audit;
	deadline_ns deadline;
	deadline_ns tunnel_end; /* 0: no tunnel stands */
	json_t *refusal;        /* CONN_REFUSED: what will be said, NULL: nothing */
	unsigned refusal_status;
};

/* conn.c */
int conn_new(struct hub *hub, int fd, enum hub_front front, struct cordon_error **reterr);
void conn_run(struct conn *c);
void conn_abort(struct conn *c); /* at once, with a reset */
void conn_leave(struct conn *c); /* after what is queued */
/* Closes without an answer, but not before the client's first bytes: some clients miss a reset that
 * comes while they still connect, and wait for ever. Takes body over. */
void conn_refuse_later(struct conn *c, unsigned status, json_t *body);
void conn_tick(struct conn *c); /* time passes */
struct conn *conn_by_ask(struct hub *hub, uint64_t ask_id);

/* Large bodies of plain connections bypass the queues; left: bytes of the body that are still to
 * come. True: conn_bulk_step() does it. */
bool conn_is_bulk(struct conn *c, uint64_t left);
/* Returns the bytes that were taken from the server. */
size_t conn_bulk_step(struct conn *c, uint64_t max, bool *ret_progress);

/* intake.c */
bool intake_step(struct conn *c);
/* dns over TCP */
bool intake_step_dns(struct conn *c);
/* One query of the guest, however it came. */
size_t intake_answer_dns(struct hub *hub, const uint8_t *query, size_t len, uint8_t *ret);

/* dial.c: approval, resolution, the check of every address, connection. Ends in
 * tunnel_connected(), exchange_connected(), or a refusal. */
void dial_start(struct conn *c, enum conn_purpose purpose);
void dial_answer(struct conn *c, bool allow, const char *reason);
void dial_cancel(struct conn *c);
bool dial_step(struct conn *c);

/* tunnel.c */
enum speech { SPEECH_MORE, SPEECH_TLS, SPEECH_HTTP, SPEECH_OTHER };
/* A request line, as far as it is there; never SPEECH_TLS. */
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

/* refuse.c: what the guest is answered, and the audit event about it. */
bool refuse_step(struct conn *c);
void refuse_by_rule(struct conn *c, const struct rule_verdict *v);
void refuse_mismatch(struct conn *c, const char *what, const char *other);
/* kind: "limit", "timeout", "failed", "protocol" */
void refuse_for(struct conn *c, unsigned status, const char *kind, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void request_audit_start(struct conn *c, const char *method, const char *path);
/* Counts against the limits of the request and the execution; false: c was refused. */
bool request_audit_count(struct conn *c, uint64_t out, uint64_t in);
void request_audit_end(struct conn *c, const char *outcome, const char *problem);
void request_audit_denial(struct hub *hub, const char *operation, const struct host *h,
			  uint16_t port, const char *method, const struct rule_verdict *v);
