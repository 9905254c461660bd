/* files/offload.c - see offload.h. */
#include "files/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/os.h"
#include "files/export.h"
#include "files/listing.h"
#include "files/path_lookup.h"

static int hand_over(int fd, const char *id, offload_save_fn save, void *arg,
		     struct cordon_error **reterr)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_errno(reterr, errno, "offload the workspace");
	size_t len = (size_t)st.st_size;
	void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_errno(reterr, errno, "offload the workspace");
	int r = save(id, bytes, len, arg, reterr);
	(void)munmap(bytes, len);
	return r;
}

/* Removes everything in the trees, but not the trees themselves. */
static int empty(struct workspace *ws)
{
	for (int t = 0; t < WORKSPACE_TREES; t++) {
		static const char *const self[] = { "." };
		cleanup_listing struct listing l = { .base_fd = -1 };
		int r = listing_read(&l, ws->tree_fd[t], self, 1, true);
		uint32_t first = r == 0 ? l.entries[0].first_child : 0;
		uint32_t end = r == 0 ? first + l.entries[0].child_count : 0;
		for (uint32_t i = first; r == 0 && i < end; i++)
			r = removal_at(ws, ws->tree_fd[t], listing_name(&l, i));
		if (r < 0)
			return r;
	}
	return 0;
}

int offload_save(struct workspace *ws, const char *id, const char *state, offload_save_fn save,
		 void *arg, struct cordon_error **reterr)
{
	if (ws->is_offloaded)
		return 0;
	cleanup_close int fd = os_memory_file("cordon-offload", false);
	if (fd < 0)
		return err_errno(reterr, -fd, "offload the workspace");
	int r = export_write(ws, state, fd, reterr);
	if (r == 0)
		r = hand_over(fd, id, save, arg, reterr);
	if (r < 0)
		return r;
	cleanup_owner struct owner owner = { 0 };
	r = path_lookup_enter(ws, &owner, reterr);
	if (r < 0)
		return r;
	ws->is_offloaded = true;
	/* Everything is saved. Files that cannot be removed, because something still writes there,
	 * stay until the workspace is loaded again. An error now would claim that nothing was
	 * offloaded. */
	(void)empty(ws);
	return 0;
}

int offload_load(struct workspace *ws, const char *id, offload_load_fn load, void *arg,
		 char **ret_state, struct cordon_error **reterr)
{
	if (ret_state)
		*ret_state = NULL;
	if (!ws->is_offloaded)
		return 0;
	cleanup_free void *bytes = NULL;
	size_t len = 0;
	int r = load(id, &bytes, &len, arg, reterr);
	if (r < 0)
		return r;
	cleanup_close int fd = -1;
	r = file_from_bytes("cordon-rehydrate", bytes, len, &fd, reterr);
	if (r < 0)
		return r;
	/* Others come in when everything is there: what they remove meanwhile would fail us. */
	r = export_read(ws, fd, true, NULL, ret_state, reterr);
	if (r == 0)
		ws->is_offloaded = false;
	return r;
}
