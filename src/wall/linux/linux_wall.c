/* wall/linux/linux_wall.c - see linux_wall.h. */
#include "wall/linux/linux_wall.h"

#include "wall/linux/denials.h"
#include "wall/linux/evidence.h"
#include "wall/linux/ladder.h"
#include "wall/linux/linux_attacks.h"
#include "wall/linux/linux_box.h"
#include "wall/linux/processes.h"

static void probe(struct wall_probe *ret, json_t *report)
{
	struct machine m;

	machine_probe(&m);
	if (report)
		ladder_report(&m, report);
	*ret = (struct wall_probe){ .has_namespaces = m.has_userns,
				    .has_groups = m.cgroup_dir[0][0] != '\0' };
}

const struct wall linux_wall = {
	.name = "linux",
	.probe = probe,
	.can_fork = linux_box_can_fork,
	.worker_uid = machine_box_uid,
	.start = linux_box_start,
	.prepare = linux_box_prepare,
	.join = linux_box_join,
	.ask_socket = linux_box_ask_socket,
	.take_socket = linux_box_take_socket,
	.terminal = linux_box_terminal,
	.wait_ready = linux_box_wait_ready,
	.wait_gone = linux_box_wait_gone,
	.is_gone = linux_box_is_gone,
	.has_ended = linux_box_has_ended,
	.is_stopped = processes_are_stopped,
	.interrupt = linux_box_interrupt,
	.signal = linux_box_signal,
	.end = linux_box_end,
	.kill = linux_box_kill,
	.release = linux_box_release,
	.free = linux_box_free,
	.pid = linux_box_first_pid,
	.inner_pid = processes_inner_pid,
	.freeze = processes_freeze,
	.find_guest = linux_box_find_guest,
	.look = linux_box_look,
	.count = linux_box_count,
	.cpu_us = processes_cpu_us,
	.processes = processes_count,
	.usage = evidence_usage,
	.failure = linux_box_failure,
	.assurance = evidence_assurance,
	.count_denials = denials_count,
	.denials = denials_list,
	.saw_exec = denials_saw_exec,
	.attacks = linux_attacks,
};
