/* session/limit_evidence.c - see limit_evidence.h. */
#include "session/limit_evidence.h"

#include <string.h>
#include <sys/statvfs.h>

static bool says(const struct evidence *v, const char *words)
{
	return v->err_text && strstr(v->err_text, words);
}

bool limit_is_full(const struct engine *e)
{
	struct statvfs s;

	return e->box->workspace_fd >= 0 && fstatvfs(e->box->workspace_fd, &s) == 0 &&
	       (s.f_bavail * s.f_bsize < 65536 || s.f_ffree == 0);
}

bool limit_has_no_inode(const struct engine *e)
{
	struct statvfs s;

	return e->box->workspace_fd >= 0 && fstatvfs(e->box->workspace_fd, &s) == 0 &&
	       s.f_ffree == 0;
}

bool limit_has_filled_disk(const struct evidence *v, const struct engine *e)
{
	return limit_is_full(e) && (!v->was_full || says(v, "No space left on device"));
}

bool limit_is_out_of_memory(const struct evidence *v, const struct engine *e,
			    const struct policy *p)
{
	uint64_t watched = box_look(e->box).memory_peak_bytes;
	uint64_t counted = e->counted.memory_peak_bytes;

	return e->counted.oom_kills > v->before.oom_kills ||
	       (watched > counted ? watched : counted) >= p->memory_bytes - p->memory_bytes / 8;
}

bool limit_has_filled_memory(const struct evidence *v, const struct engine *e,
			     const struct policy *p)
{
	uint64_t watched = box_look(e->box).memory_peak_bytes;

	return watched >= p->memory_bytes - p->memory_bytes / 8 &&
	       (watched > v->watched_before || says(v, "annot allocate memory") ||
		says(v, "emory exhausted"));
}

/* The control group and RLIMIT_NPROC both refuse with EAGAIN. Only the group counts refusals, and
 * RLIMIT_NPROC refuses first. Without a group there is only the guest's word. */
bool limit_is_crowded(const struct evidence *v, struct engine *e, const struct policy *p)
{
	return !box_look(e->box).has_groups || e->counted.pids_refused > v->before.pids_refused ||
	       box_processes(e->box, BOX_PROCESSES_PEAK, 0) >= policy_tasks(p);
}

/* bash, Python and node all print the C library's message for EAGAIN. */
static bool says_crowded(const struct evidence *v)
{
	return says(v, "Resource temporarily unavailable");
}

static bool has_peaked(struct engine *e, const struct policy *p)
{
	return box_processes(e->box, BOX_PROCESSES_PEAK, 0) >= policy_tasks(p) ||
	       box_look(e->box).processes_peak >= policy_tasks(p);
}

/* Without a control group, which counts refusals, the current number of processes decides: pid 1,
 * the guest and its children. */
bool limit_has_been_crowded(const struct evidence *v, struct engine *e, const struct policy *p)
{
	bool peaked = has_peaked(e, p), is_new = peaked && !v->was_crowded;

	e->was_crowded = peaked || e->was_crowded;
	return e->counted.pids_refused > v->before.pids_refused || is_new ||
	       (peaked && says_crowded(v)) ||
	       (!box_look(e->box).has_groups &&
		box_processes(e->box, BOX_PROCESSES_NOW, policy_tasks(p)) + 1 >= policy_tasks(p));
}

bool limit_was_met_by_forks(const struct evidence *v, struct engine *e, const struct policy *p)
{
	if (!says(v, "fork: ") || !says_crowded(v))
		return false;
	box_count(e->box, &e->counted);
	return limit_is_crowded(v, e, p);
}

/* Reading the peak each time would slow every execution of a session. In a place others ran since
 * the last one, so nothing that was read then is still true. */
void limit_evidence_begin(struct evidence *v, struct engine *e, const struct policy *p)
{
	if (e->place && e->wire)
		e->was_crowded = has_peaked(e, p);
	v->was_crowded = e->was_crowded;
	v->was_full = limit_is_full(e);
	v->watched_before = box_look(e->box).memory_peak_bytes;
}

/* Other endings may have reached the peak too. */
void limit_evidence_end(const struct evidence *v, struct engine *e, const struct policy *p)
{
	if (!e->was_crowded && (v->timed_out || v->cancelled || says_crowded(v)))
		e->was_crowded = has_peaked(e, p);
}
