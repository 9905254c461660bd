/* cli/plots.c - see plots.h. */
#include "cli/plots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/str.h"
#include "cli/transfer.h"

enum { KITTY_CHUNK = 4096, MAX_RESULT = 64 << 20 };

enum protocol { PROTOCOL_NONE, PROTOCOL_KITTY, PROTOCOL_ITERM };

/* Only what the terminal itself says counts: a sequence that it does not know would be shown as
 * text. Inside tmux and screen it would not arrive. */
static enum protocol protocol(void)
{
	const char *term = getenv("TERM"), *program = getenv("TERM_PROGRAM"),
		   *other = getenv("LC_TERMINAL");

	if (!isatty(1) || !term || getenv("TMUX") || str_starts(term, "screen") ||
	    str_starts(term, "tmux"))
		return PROTOCOL_NONE;
	if (str_eq(term, "xterm-kitty") || str_eq(term, "xterm-ghostty"))
		return PROTOCOL_KITTY;
	if (str_eq(program, "iTerm.app") || str_eq(program, "WezTerm") ||
	    str_eq(program, "mintty") || str_eq(other, "iTerm2"))
		return PROTOCOL_ITERM;
	return PROTOCOL_NONE;
}

static void show_kitty(const char *data, size_t len)
{
	for (size_t at = 0; at < len; at += KITTY_CHUNK) {
		size_t n = len - at < KITTY_CHUNK ? len - at : KITTY_CHUNK;

		/* q=2: the terminal does not answer, which would be read as keys */
		printf("\x1b_G%sm=%d;%.*s\x1b\\", at == 0 ? "f=100,a=T,q=2," : "", at + n < len,
		       (int)n, data + at);
	}
	(void)putchar('\n');
}

/* The data comes from the guest. It is decoded and encoded again here, so that it is base64 of a
 * PNG and nothing else. */
static bool show_inline(const json_t *o)
{
	static const char signature[] = "\x89PNG\r\n\x1a\n";
	const char *data = json_string_value(json_object_get(o, "data"));
	cleanup_free void *bytes = NULL;
	enum protocol p = protocol();
	size_t len = 0;

	if (p == PROTOCOL_NONE || !data ||
	    !str_eq(json_string_value(json_object_get(o, "mime")), "image/png") ||
	    base64_decode(data, strlen(data), &bytes, &len, NULL) < 0 || len < sizeof(signature) ||
	    memcmp(bytes, signature, sizeof(signature) - 1) != 0)
		return false;
	cleanup_free char *text = base64_encode(bytes, len, &len);
	if (!text)
		return false;
	if (p == PROTOCOL_KITTY)
		show_kitty(text, len);
	else
		printf("\x1b]1337;File=inline=1:%s\a\n", text);
	return true;
}

static const char *directory(struct plots *p)
{
	const char *given = cli_value(p->c, "out-dir"), *tmp = getenv("TMPDIR");

	if (given || p->folder)
		return given ? given : p->folder;
	p->folder = str_printf("%s/cordon-plots-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (p->folder && !mkdtemp(p->folder)) {
		free(p->folder);
		p->folder = NULL;
	}
	return p->folder;
}

static void save(struct plots *p, const json_t *o)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *path = NULL;
	const char *dir = directory(p);

	if (!dir)
		cli_error(p->c, "there is no directory for plots; --out-dir names one");
	else if (transfer_output(dir, ++p->count, o, &path, &e) < 0)
		cli_error(p->c, "%s", cordon_error_message(e));
	else if (p->names_on_stderr)
		cli_error(p->c, "saved %s (%s)", path,
			  json_string_value(json_object_get(o, "mime")));
	else
		printf("saved %s\n", path);
}

void plots_show(struct plots *p, const json_t *outputs, bool has_text)
{
	json_t *o;
	size_t i;

	json_array_foreach(outputs, i, o)
	{
		const char *mime = json_string_value(json_object_get(o, "mime"));
		bool is_plot =
			mime && (str_starts(mime, "image/") || str_eq(mime, "application/pdf"));

		/* A table is printed as text already. */
		if (!is_plot && has_text && !cli_has(p->c, "out-dir"))
			continue;
		if ((!is_plot || !show_inline(o)) && !p->are_saved)
			save(p, o);
	}
	fflush(stdout);
}

void plots_show_result(struct plots *p, struct cordon_result *r)
{
	const char *text = cordon_result_json(r);
	cleanup_json json_t *j = NULL;

	if (text && json_parse(text, strlen(text), MAX_RESULT, &j, NULL) == 0)
		plots_show(p, json_object_get(j, "outputs"), cordon_result_value_text(r));
}

void plots_done(struct plots *p)
{
	free(p->folder);
	p->folder = NULL;
}
