/* cli/shell_plot.c - plots in `cordon shell`: inside the terminal if it says that it can show
 * them, else as files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "cli/shell_state.h"
#include "cli/transfer.h"

enum { KITTY_CHUNK = 4096 };

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
	if (str_eq(program, "iTerm.app") || str_eq(program, "WezTerm") || str_eq(other, "iTerm2"))
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

static const char *directory(struct shell *sh)
{
	const char *given = cli_value(sh->c, "out-dir"), *tmp = getenv("TMPDIR");

	if (given || sh->plots)
		return given ? given : sh->plots;
	sh->plots = str_printf("%s/cordon-plots-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (sh->plots && !mkdtemp(sh->plots)) {
		free(sh->plots);
		sh->plots = NULL;
	}
	return sh->plots;
}

static void save(struct shell *sh, const json_t *o)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *path = NULL;
	const char *dir = directory(sh);

	if (!dir)
		cli_error(sh->c, "there is no directory for plots; --out-dir names one");
	else if (transfer_output(dir, ++sh->plot_count, o, &path, &e) < 0)
		cli_error(sh->c, "%s", cordon_error_message(e));
	else
		printf("saved %s\n", path);
}

void shell_plot_show(struct shell *sh, const json_t *outputs, bool has_text)
{
	json_t *o;
	size_t i;

	json_array_foreach(outputs, i, o)
	{
		const char *mime = json_string_value(json_object_get(o, "mime"));
		bool is_plot =
			mime && (str_starts(mime, "image/") || str_eq(mime, "application/pdf"));

		/* A table is printed as text already. */
		if (!is_plot && has_text && !cli_has(sh->c, "out-dir"))
			continue;
		if (!is_plot || !show_inline(o))
			save(sh, o);
	}
}
