/* files/export.c - see export.h. */
#include "files/export.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "files/blob.h"
#include "files/pack.h"
#include "files/path_lookup.h"

#define DEFAULT_MAX_BYTES (UINT64_C(4) << 30)
/* Headers and padding of the archive, in addition to the contents. */
#define OVERHEAD (UINT64_C(64) << 20)
#define OVERHEAD_A_FILE 4096

static int put(void *arg, const void *bytes, size_t len)
{
	return blob_writer_put(arg, bytes, len);
}

static int put_state(struct tar *t, const char *state)
{
	struct tar_entry e = { .name = UNPACK_STATE_NAME, .mode = S_IFREG | 0600 };
	if (!state)
		return 0;
	e.size = strlen(state);
	int r = tar_begin(t, &e);
	r = r < 0 ? r : tar_data(t, state, e.size);
	return r < 0 ? r : tar_end(t);
}

/* ENOSPC here is about the host's disk, not the workspace. */
static int fail_write(int r, struct cordon_error **reterr)
{
	if (r == -ENAMETOOLONG)
		return err_set(reterr, CORDON_LIMIT,
			       "a path in the workspace has more than %d characters", PATH_MAX - 1);
	return err_errno(reterr, -r, "write the export");
}

int export_write(struct workspace *ws, const char *state, int fd, struct cordon_error **reterr)
{
	cleanup_blob_writer struct blob_writer *w = NULL;
	int r = blob_writer_open(fd, &w, reterr);
	if (r < 0)
		return r;
	struct tar t = { .write = put, .arg = w };
	{
		cleanup_owner struct owner owner = { 0 };
		r = path_lookup_enter(ws, &owner, reterr);
		if (r < 0)
			return r;
		r = put_state(&t, state);
		r = r < 0 ? r : pack_workspace(ws, &t);
	}
	r = r < 0 ? r : tar_finish(&t);
	if (r < 0)
		return fail_write(r, reterr);
	return blob_writer_finish(w, reterr);
}

static uint64_t most_inside(const struct workspace *ws)
{
	uint64_t max_bytes = ws && ws->opts.max_bytes ? ws->opts.max_bytes : DEFAULT_MAX_BYTES;
	uint64_t files = ws && ws->opts.max_files ? ws->opts.max_files : 65536;
	if (files > (UINT64_C(1) << 24))
		files = UINT64_C(1) << 24;
	uint64_t extra = OVERHEAD + OVERHEAD_A_FILE * files;
	return max_bytes < UINT64_MAX - extra ? max_bytes + extra : UINT64_MAX;
}

int export_read(struct workspace *ws, int fd, bool is_rehydration, char **ret_report_json,
		char **ret_state, struct cordon_error **reterr)
{
	cleanup_blob_reader struct blob_reader *b = NULL;
	cleanup_unpack_report struct unpack_report trial = { 0 }, report = { 0 };
	struct unpack_options opts = { .dry = true, .is_rehydration = is_rehydration };
	int r = blob_reader_open(fd, most_inside(ws), &b, reterr);
	if (r == 0)
		r = unpack_stream(ws, &opts, blob_reader_next, b, &trial, reterr);
	if (r == 0)
		r = blob_reader_rewind(b, reterr);
	opts.dry = false;
	if (r == 0)
		r = unpack_stream(ws, &opts, blob_reader_next, b, &report, reterr);
	if (r < 0)
		return r;
	cleanup_free char *json = ret_report_json ? unpack_report_json(&report) : NULL;
	if (ret_report_json && !json)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (ret_report_json)
		*ret_report_json = TAKE_PTR(json);
	if (ret_state)
		*ret_state = TAKE_PTR(report.state);
	return 0;
}

int export_each(int fd, unpack_entry_fn fn, void *arg, struct cordon_error **reterr)
{
	cleanup_blob_reader struct blob_reader *b = NULL;
	struct unpack_options opts = { 0 };
	int r = blob_reader_open(fd, most_inside(NULL), &b, reterr);
	return r < 0 ? r : unpack_each(&opts, blob_reader_next, b, fn, arg, reterr);
}
