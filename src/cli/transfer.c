/* cli/transfer.c - see transfer.h. */
#include "cli/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/progress.h"

enum { MAX_FILE = 1 << 30, MAX_RESULT = 64 << 20 };

static int split(const char *text, char **ret_left, const char **ret_right,
		 struct cordon_error **reterr)
{
	const char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return err_set(reterr, CORDON_INVALID, "'%s' is not FROM:TO", text);
	*ret_left = str_ndup(text, (size_t)(colon - text));
	*ret_right = colon + 1;
	return *ret_left ? 0 : -CORDON_NOMEM;
}

int transfer_in(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr)
{
	const char *text;

	for (size_t i = 0; (text = cli_value_at(c, "file", i)); i++) {
		cleanup_free char *host = NULL;
		cleanup_buf struct buf bytes = { 0 };
		cleanup_progress struct progress p = { 0 };
		const char *guest;
		struct stat st;

		buf_init(&bytes, MAX_FILE);
		int r = split(text, &host, &guest, reterr);
		if (r == 0)
			progress_begin(&p, text, stat(host, &st) == 0 ? (uint64_t)st.st_size : 0);
		if (r == 0)
			r = file_load(host, MAX_FILE, &bytes, reterr);
		if (r == 0)
			r = cordon_file_write(s, guest, buf_text(&bytes), bytes.len, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "--file %s", text);
	}
	return 0;
}

int transfer_out(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr)
{
	const char *text;

	for (size_t i = 0; (text = cli_value_at(c, "out", i)); i++) {
		cleanup_free char *guest = NULL, *bytes = NULL;
		cleanup_progress struct progress p = { 0 };
		struct cordon_file_info info = { 0 };
		const char *host;
		size_t len = 0;

		int r = split(text, &guest, &host, reterr);
		if (r == 0)
			r = cordon_file_stat(s, guest, &info, reterr);
		if (r == 0)
			progress_begin(&p, text, info.size);
		if (r == 0)
			r = cordon_file_read(s, guest, &bytes, &len, reterr);
		if (r == 0)
			r = file_save(host, 0644, bytes, len, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "--out %s", text);
	}
	return 0;
}

static const char *ending_of(const char *mime)
{
	static const char *const table[][2] = {
		{ "image/png", "png" },         { "image/svg+xml", "svg" }, { "text/html", "html" },
		{ "application/json", "json" }, { "image/jpeg", "jpg" },    { "text/plain", "txt" },
		{ "application/pdf", "pdf" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(table[i][0], mime))
			return table[i][1];
	return "bin";
}

static int save_output(const struct cli *c, const char *dir, size_t number, const json_t *o,
		       struct cordon_error **reterr)
{
	const char *mime = json_string_value(json_object_get(o, "mime"));
	const char *data = json_string_value(json_object_get(o, "data"));
	const char *encoding = json_string_value(json_object_get(o, "encoding"));
	cleanup_free void *decoded = NULL;
	size_t len = data ? strlen(data) : 0;
	const void *bytes = data;

	if (!mime || !data)
		return 0;
	if (str_eq(encoding, "base64")) {
		int r = base64_decode(data, len, &decoded, &len, reterr);
		if (r < 0)
			return r;
		bytes = decoded;
	}
	cleanup_free char *path = str_printf("%s/output-%zu.%s", dir, number, ending_of(mime));
	if (!path)
		return err_errno(reterr, ENOMEM, "save an output");
	int r = file_save(path, 0644, bytes, len, reterr);
	if (r == 0)
		cli_error(c, "saved %s (%s)", path, mime);
	return r;
}

int transfer_outputs(const struct cli *c, struct cordon_result *r, const char *dir,
		     struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;
	const char *text = cordon_result_json(r);
	size_t i;
	json_t *o;

	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make the directory '%s'", dir);
	int done = json_parse(text, strlen(text), MAX_RESULT, &j, reterr);
	if (done < 0)
		return done;
	json_array_foreach(json_object_get(j, "outputs"), i, o)
	{
		done = save_output(c, dir, i + 1, o, reterr);
		if (done < 0)
			return done;
	}
	return 0;
}
