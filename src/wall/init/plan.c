/* wall/init/plan.c - see plan.h. The plan comes from the host, which is trusted, through a sealed
 * memfd; the checks here guard against a mismatched build, not against the guest. */
#include "wall/init/plan.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

int plan_map(struct job *j, int plan_fd, int status_fd)
{
	struct stat st;

	if (fstat(plan_fd, &st) != 0)
		return -errno;
	if ((size_t)st.st_size < sizeof(struct plan))
		return -EINVAL;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, plan_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	j->plan = p;
	if (j->plan->magic != PLAN_MAGIC || j->plan->version != PLAN_VERSION ||
	    j->plan->size != (uint64_t)st.st_size)
		return -EPROTO;
	void *s =
		mmap(NULL, sizeof(struct status), PROT_READ | PROT_WRITE, MAP_SHARED, status_fd, 0);
	if (s == MAP_FAILED)
		return -errno;
	j->status = s;
	return 0;
}

const void *plan_at(const struct job *j, uint32_t offset)
{
	return (const char *)j->plan + (offset < j->plan->size ? offset : 0);
}

const char *plan_text(const struct job *j, uint32_t offset)
{
	return offset ? plan_at(j, offset) : "";
}

int plan_fail(struct job *j, enum stage stage, uint32_t detail, int os_errno)
{
	j->status->stage = stage;
	j->status->detail = detail;
	j->status->os_errno = os_errno;
	j->status->state = STATE_FAILED;
	return -1;
}
