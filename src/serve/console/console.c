/* serve/console/console.c - see console.h.
 *
 * The page shows what untrusted code printed. So the browser is told to run only our own files, to
 * talk only to this server, and to refuse every way of turning text into HTML or script. */
#include "serve/console/console.h"

#include <sodium.h>
#include <string.h>

#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/server/server.h"

static const char content_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
	"require-trusted-types-for 'script'; trusted-types 'none'";

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define SVG "image/svg+xml"

/* The files of web/: its name in the path, what it is, and the symbol that meson.build gives it. */
#define FILES(X)                                                                                   \
	X("index.html", HTML, index_html)                                                          \
	X("icon.svg", SVG, icon_svg)                                                               \
	X("base.css", CSS, base_css)                                                               \
	X("layout.css", CSS, layout_css)                                                           \
	X("parts.css", CSS, parts_css)                                                             \
	X("views.css", CSS, views_css)                                                             \
	X("main.js", SCRIPT, main_js)                                                              \
	X("api.js", SCRIPT, api_js)                                                                \
	X("dom.js", SCRIPT, dom_js)                                                                \
	X("format.js", SCRIPT, format_js)                                                          \
	X("icons.js", SCRIPT, icons_js)                                                            \
	X("parts.js", SCRIPT, parts_js)                                                            \
	X("highlight.js", SCRIPT, highlight_js)                                                    \
	X("editor.js", SCRIPT, editor_js)                                                          \
	X("terminal.js", SCRIPT, terminal_js)                                                      \
	X("bitmap.js", SCRIPT, bitmap_js)                                                          \
	X("outputs.js", SCRIPT, outputs_js)                                                        \
	X("result.js", SCRIPT, result_js)                                                          \
	X("questions.js", SCRIPT, questions_js)                                                    \
	X("examples.js", SCRIPT, examples_js)                                                      \
	X("playground.js", SCRIPT, playground_js)                                                  \
	X("setup.js", SCRIPT, setup_js)                                                            \
	X("sessions.js", SCRIPT, sessions_js)                                                      \
	X("executions.js", SCRIPT, executions_js)                                                  \
	X("approvals.js", SCRIPT, approvals_js)                                                    \
	X("files.js", SCRIPT, files_js)                                                            \
	X("policy.js", SCRIPT, policy_js)                                                          \
	X("doctor.js", SCRIPT, doctor_js)                                                          \
	X("audit.js", SCRIPT, audit_js)                                                            \
	X("keys.js", SCRIPT, keys_js)

#define DECLARE(file, type, symbol)                                                                \
	extern const unsigned char web_##symbol[];                                                 \
	extern const unsigned long web_##symbol##_len;
#define ROW(file, type, symbol) { (file), (type), web_##symbol, &web_##symbol##_len },

FILES(DECLARE)

struct page {
	const char *name, *type;
	const unsigned char *bytes;
	const unsigned long *len;
};

static const struct page pages[] = { FILES(ROW) };

static void add_headers(struct httpd_exchange *x, const char *tag)
{
	httpd_add_header(x, "Content-Security-Policy", content_policy);
	httpd_add_header(x, "Referrer-Policy", "no-referrer");
	httpd_add_header(x, "Cross-Origin-Opener-Policy", "same-origin");
	httpd_add_header(x, "Cross-Origin-Resource-Policy", "same-origin");
	if (tag) {
		httpd_add_header(x, "ETag", tag);
		httpd_add_header(x, "Cache-Control", "no-cache");
	}
}

/* A file of another version has another tag, so a browser never mixes two versions. */
static void answer_page(struct httpd_exchange *x, const struct page *p)
{
	const char *known = httpd_header(x, "If-None-Match");
	unsigned char hash[crypto_generichash_BYTES_MIN];
	char tag[2 * sizeof(hash) + 3];

	(void)crypto_generichash(hash, sizeof(hash), p->bytes, *p->len, NULL, 0);
	(void)sodium_bin2hex(tag + 1, sizeof(tag) - 1, hash, sizeof(hash));
	tag[0] = tag[sizeof(tag) - 2] = '"';
	tag[sizeof(tag) - 1] = '\0';
	bool is_known = known && str_eq(known, tag);
	add_headers(x, tag);
	if (is_known)
		httpd_answer(x, 304, NULL, NULL, 0);
	else
		httpd_answer(x, 200, p->type, p->bytes, *p->len);
}

static void answer_index(struct httpd_exchange *x, void *server)
{
	(void)server;
	answer_page(x, &pages[0]);
}

static void answer_file(struct httpd_exchange *x, void *server)
{
	const char *name = httpd_param(x, "file");

	(void)server;
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (str_eq(pages[i].name, name)) {
			answer_page(x, &pages[i]);
			return;
		}
	problem_answer_as(x, 404, "not_found", "the console has no such file",
			  "the console begins at /");
}

/* What the page must know before there is a key: whether it needs one. */
static void answer_about(struct httpd_exchange *x, void *server)
{
	const struct server *s = server;
	const char *text = s->no_keys ? "{\"keys\":false}" : "{\"keys\":true}";

	add_headers(x, NULL);
	httpd_answer(x, 200, "application/json", text, strlen(text));
}

#define OPEN(pattern, function)                                                                    \
	{                                                                                          \
		.method = "GET", .path = (pattern), .right = HTTPD_OPEN, .fn = (function),         \
		.flags = HTTPD_QUICK                                                               \
	}

#define KEY(pattern, function)                                                                     \
	{                                                                                          \
		.method = "GET", .path = (pattern), .right = HTTPD_KEY, .fn = (function)           \
	}
#define ACT(verb, rest, name)                                                                      \
	{                                                                                          \
		.method = (verb), .path = "/console/tenants/{tenant}/sessions/{session}" rest,     \
		.right = HTTPD_ADMIN, .fn = console_act, .body_max = 2, .detail = (name)           \
	}

const struct httpd_route console_routes[] = {
	OPEN("/", answer_index),
	KEY("/console/me", console_show_me),
	KEY("/console/sessions", console_list_sessions),
	KEY("/console/executions", console_list_executions),
	ACT("POST", "/interrupt", "session.interrupt"),
	ACT("POST", "/cancel", "session.cancel"),
	ACT("DELETE", "", "session.close"),
	OPEN("/console/about", answer_about),
	OPEN("/console/{file}", answer_file),
	{ 0 },
};
