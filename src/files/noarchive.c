/* files/noarchive.c - replaces unpack.c in a build without libarchive and zstd: returns errors. */
#include "files/export.h"
#include "files/unpack.h"

static int missing(struct cordon_error **reterr)
{
	return err_set(
		reterr, CORDON_UNSUPPORTED,
		"this build cannot read or write archives: build it with libarchive and libzstd "
		"(Debian: libarchive-dev libzstd-dev)");
}

int export_write(struct workspace *ws, const char *state, int fd, struct cordon_error **reterr)
{
	(void)ws, (void)state, (void)fd;
	return missing(reterr);
}

int export_read(struct workspace *ws, int fd, bool is_rehydration, char **ret_report_json,
		char **ret_state, struct cordon_error **reterr)
{
	(void)ws, (void)fd, (void)is_rehydration, (void)ret_report_json, (void)ret_state;
	return missing(reterr);
}

int export_each(int fd, unpack_entry_fn fn, void *arg, struct cordon_error **reterr)
{
	(void)fd, (void)fn, (void)arg;
	return missing(reterr);
}

ssize_t unpack_entry_data(const struct unpack_entry *e, void *bytes, size_t len)
{
	(void)e, (void)bytes, (void)len;
	return -1;
}

int unpack_from_fd(struct workspace *ws, const char *path, int tar_fd, char **ret_report_json,
		   struct cordon_error **reterr)
{
	(void)ws, (void)path, (void)tar_fd, (void)ret_report_json;
	return missing(reterr);
}
