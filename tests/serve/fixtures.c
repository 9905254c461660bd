/* serve/fixtures.c - the MCP server over HTTP with the tools that the official conformance suite
 * calls by name, besides our own. Prints its address; ends when its stdin ends. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "serve/http/httpd.h"
#include "serve/mcp/mcphttp.h"
#include "serve/mcp/mcptool.h"

static const char pixel[] =
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIA"
	"X8jx0gAAAABJRU5ErkJggg==";
static const char wave[] = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

static void pause_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000L };

	(void)nanosleep(&t, NULL);
}

static int say_text(struct mcpcall *c, struct cordon_error **reterr)
{
	(void)reterr;
	c->text = str_dup("This is a simple text response for testing.");
	return 0;
}

static void add_part(struct mcpcall *c, const char *type, const char *data, const char *mime)
{
	json_array_append_new(c->content, json_pack("{s:s, s:s, s:s}", "type", type, "data", data,
						    "mimeType", mime));
}

static void add_resource(struct mcpcall *c, const char *uri, const char *mime, const char *text)
{
	json_array_append_new(c->content,
			      json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "resource", "resource",
					"uri", uri, "mimeType", mime, "text", text));
}

static int show_image(struct mcpcall *c, struct cordon_error **reterr)
{
	(void)reterr;
	add_part(c, "image", pixel, "image/png");
	return 0;
}

static int play_audio(struct mcpcall *c, struct cordon_error **reterr)
{
	(void)reterr;
	add_part(c, "audio", wave, "audio/wav");
	return 0;
}

static int embed_resource(struct mcpcall *c, struct cordon_error **reterr)
{
	(void)reterr;
	add_resource(c, "test://embedded-resource", "text/plain",
		     "This is an embedded resource content.");
	return 0;
}

static int mix_content(struct mcpcall *c, struct cordon_error **reterr)
{
	(void)reterr;
	c->text = str_dup("Multiple content types test:");
	add_part(c, "image", pixel, "image/png");
	add_resource(c, "test://mixed-content-resource", "application/json",
		     "{\"test\":\"data\",\"value\":123}");
	return 0;
}

static int write_log(struct mcpcall *c, struct cordon_error **reterr)
{
	static const char *const lines[] = { "Tool execution started", "Tool processing data",
					     "Tool execution completed" };

	for (size_t i = 0; i < 3; i++) {
		mcpcall_log(c, "info", lines[i]);
		pause_ms(50);
	}
	return say_text(c, reterr);
}

static int make_progress(struct mcpcall *c, struct cordon_error **reterr)
{
	for (int i = 0; i <= 100; i += 50) {
		mcpcall_progress(c, i, 100, NULL);
		pause_ms(50);
	}
	return say_text(c, reterr);
}

static int fail_always(struct mcpcall *c, struct cordon_error **reterr)
{
	(void)c;
	return err_set(reterr, CORDON_INVALID,
		       "This tool intentionally returns an error for testing");
}

static int want_sampling(struct mcpcall *c, struct cordon_error **reterr)
{
	const json_t *capabilities = json_object_get(c->meta, MCP_META "clientCapabilities");

	if (json_object_get(capabilities, "sampling"))
		return say_text(c, reterr);
	c->refusal =
		json_pack("{s:i, s:s, s:{s:{s:{}}}}", "code", -32021, "message",
			  "the client cannot sample", "data", "requiredCapabilities", "sampling");
	return 0;
}

static const struct mcptool fixtures[] = {
	{ "test_simple_text", "text", say_text, .is_read_only = true },
	{ "test_image_content", "an image", show_image, .is_read_only = true },
	{ "test_audio_content", "a sound", play_audio, .is_read_only = true },
	{ "test_embedded_resource", "a resource", embed_resource, .is_read_only = true },
	{ "test_multiple_content_types", "all of it", mix_content, .is_read_only = true },
	{ "test_tool_with_logging", "three lines", write_log, .is_read_only = true },
	{ "test_logging_tool", "three lines", write_log, .is_read_only = true },
	{ "test_tool_with_progress", "three steps", make_progress, .is_read_only = true },
	{ "test_streaming_elicitation", "three steps", make_progress, .is_read_only = true },
	{ "test_error_handling", "an error", fail_always, .is_read_only = true },
	{ "test_missing_capability", "wants sampling", want_sampling, .is_read_only = true },
};

enum { FIXTURES = sizeof(fixtures) / sizeof(*fixtures), OWN_MAX = 32 };

int main(void)
{
	static struct mcptool all[FIXTURES + OWN_MAX + 1];
	cleanup_error struct cordon_error *e = NULL;
	struct mcphttp_options options = { .mcp = { .tools = all } };
	struct mcphttp *room = NULL;
	struct httpd *server = NULL;
	char byte;

	memcpy(all, fixtures, sizeof(fixtures));
	for (size_t i = 0; i < OWN_MAX && mcptool_table[i].name; i++)
		all[FIXTURES + i] = mcptool_table[i];
	(void)signal(SIGPIPE, SIG_IGN);
	int r = mcphttp_new(&options, &room, &e);
	const struct httpd_table tables[] = { { mcphttp_routes, room }, { 0 } };
	const struct httpd_options o = { .address = "127.0.0.1:0", .tables = tables };
	if (r == 0)
		r = httpd_start(&o, &server, &e);
	if (r < 0) {
		fprintf(stderr, "%s\n", cordon_error_message(e));
		return 1;
	}
	printf("listening at http://%s/mcp\n", httpd_address(server));
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (mcphttp_close(room))
		(void)httpd_stop(server);
	mcphttp_free(room);
	return 0;
}
