/* files/unpack.h - unpacks an untrusted tar stream into a workspace. Skips and reports entries that
 * are not allowed. Refuses the whole stream if it looks like an attack. */
#pragma once

#include <sys/types.h>

#include "files/skipped.h"
#include "files/workspace.h"

/* Returns the next bytes of the stream: their number, 0 at the end, or -1 with an error set. */
typedef ssize_t (*unpack_read_fn)(void *arg, const void **ret, struct cordon_error **reterr);

struct unpack_options {
	const char *into;     /* directory that names are relative to; NULL: the guest's root */
	uint64_t max_bytes;   /* total size of contents; 0: the quota, or 4 GiB */
	uint64_t max_entries; /* 0: 1,000,000 */
	bool dry;             /* check everything, change nothing */
	bool is_rehydration;  /* the workspace is offloaded, and stays so for others meanwhile */
};

struct unpack_report {
	uint64_t files, directories, links, bytes;
	struct skipped skipped;
	char *state; /* as given to export_write; NULL: none */
};

int unpack_stream(struct workspace *ws, const struct unpack_options *opts, unpack_read_fn read,
		  void *arg, struct unpack_report *ret, struct cordon_error **reterr);
void unpack_report_done(struct unpack_report *r);
/* The caller frees it; NULL: out of memory. */
char *unpack_report_json(const struct unpack_report *r);

/* Unpacks a plain tar stream from a descriptor into a directory, which is created. ret_report_json
 * may be NULL. */
int unpack_from_fd(struct workspace *ws, const char *path, int tar_fd, char **ret_report_json,
		   struct cordon_error **reterr);

/* One entry of a stream, to list and read it without a workspace. */
struct unpack_entry {
	const char *name; /* the guest's absolute path: "/home/user/a" */
	struct cordon_file_info info;
	const char *link;     /* target of a link or NULL */
	struct archive *data; /* for unpack_entry_data, inside the callback */
};
typedef int (*unpack_entry_fn)(const struct unpack_entry *e, void *arg);
/* Calls fn for each acceptable entry. A return value other than 0 ends it and is returned. */
int unpack_each(const struct unpack_options *opts, unpack_read_fn read, void *arg,
		unpack_entry_fn fn, void *fn_arg, struct cordon_error **reterr);
/* The next bytes of the entry: their number, 0 at the end, or -1. A hole reads as zeros. */
ssize_t unpack_entry_data(const struct unpack_entry *e, void *bytes, size_t len);

/* Archive member that holds environment and working directory. */
#define UNPACK_STATE_NAME ".cordon/state.json"

#define cleanup_unpack_report CLEANUP(unpack_report_done)
