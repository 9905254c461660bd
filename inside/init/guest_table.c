/* inside/init/guest_table.c - see guest_table.h. */
#include "inside/init/guest_table.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside/init/family.h"

struct entry guest_table[TABLE_SIZE];
unsigned guest_table_count = 1;

/* Killed with a guest and perhaps not gone yet. */
static struct {
	pid_t pid;
	struct entry *entry;
} dying[FAMILY_MOST];
static unsigned dying_count;

struct entry *guest_table_add(void)
{
	struct entry *found = NULL;
	unsigned living = 0;

	for (unsigned i = 0; i < guest_table_count; i++) {
		living += guest_table[i].is_used && guest_table[i].pid > 0;
		/* The first guest's page is the place's, so its entry stays the first's. */
		if (i > 0 && !found && !guest_table[i].is_used)
			found = &guest_table[i];
	}
	if (living >= PLACE_GUESTS || (!found && guest_table_count == TABLE_SIZE))
		return NULL;
	if (!found)
		found = &guest_table[guest_table_count++];
	*found = (struct entry){ .is_used = true, .control = -1, .report = -1, .listener = -1 };
	return found;
}

struct entry *guest_table_find(pid_t pid)
{
	for (unsigned i = 0; i < guest_table_count; i++)
		if (guest_table[i].is_used && guest_table[i].pid == pid)
			return &guest_table[i];
	return NULL;
}

static void drop(struct entry *e)
{
	if (e == &guest_table[0])
		return;
	plan_unmap(&e->job);
	e->is_used = false;
}

void guest_table_settle(struct entry *e)
{
	if (!e->is_used || e->pid > 0 || e->dying > 0)
		return;
	if (e->control >= 0) {
		/* A process that is just being forked may have a copy. */
		(void)shutdown(e->control, SHUT_RDWR);
		close(e->control);
		e->control = -1;
	}
	if (e->report >= 0)
		close(e->report);
	e->report = -1;
	if (e->listener < 0)
		drop(e);
}

void guest_table_end(struct entry *e)
{
	static pid_t killed[FAMILY_MOST];
	unsigned count = 0;

	if (e->pid <= 0)
		return;
	if (!family_end(e->pid, killed, &count)) {
		(void)kill(-1, SIGKILL);
		return;
	}
	for (unsigned i = 0; i < count && dying_count < FAMILY_MOST; i++) {
		dying[dying_count].pid = killed[i];
		dying[dying_count++].entry = e;
		e->dying++;
	}
}

void guest_table_forget(pid_t pid)
{
	for (unsigned i = 0; i < dying_count;) {
		struct entry *e = dying[i].entry;
		bool is_gone = pid ? dying[i].pid == pid : family_is_gone(dying[i].pid);

		if (!is_gone) {
			i++;
			continue;
		}
		dying[i] = dying[--dying_count];
		e->dying--;
		guest_table_settle(e);
	}
}

bool guest_table_waits(void)
{
	return dying_count > 0;
}
