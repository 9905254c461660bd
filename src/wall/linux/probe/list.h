/* wall/linux/probe/list.h - every attack that `cordon doctor --prove` and tests/escape run: one
 * list for the program that tries them and for the host that judges the outcome. Plain data. */
#pragma once

#include "wall/attack_table.h"

/* X(id, what it tries, control, flags, what stops it if all layers that can be switched off are
 * off) */
#define PROBES_SPACE(X)                                                                            \
	X(userns_unshare, "new user namespace by unshare", CONTROL_PLAIN, 0, "namespaces")         \
	X(userns_clone, "new user namespace by clone", CONTROL_PLAIN, 0, "namespaces")             \
	X(userns_clone3, "new user namespace by clone3", CONTROL_PLAIN, 0, "namespaces")           \
	X(netns_unshare, "new network namespace", CONTROL_SPACE, 0, "capabilities")                \
	X(timens_unshare, "new time namespace", CONTROL_SPACE, 0, "capabilities")                  \
	X(setns_parent, "enter the namespaces of the parent", CONTROL_SPACE, 0, "namespaces")      \
	X(mount_tmpfs, "mount a file system", CONTROL_SPACE, 0, "capabilities")                    \
	X(mount_bind, "bind a directory elsewhere", CONTROL_SPACE, 0, "capabilities")              \
	X(mount_remount, "remount the root writable", CONTROL_SPACE, 0, "capabilities")            \
	X(mount_proc, "mount a whole proc", CONTROL_SPACE, 0, "capabilities")                      \
	X(mount_cgroup, "mount the control groups", CONTROL_SPACE, 0, "capabilities")              \
	X(mount_setattr, "make a read-only mount writable", CONTROL_SPACE, 0, "capabilities")      \
	X(umount, "unmount what hides the host", CONTROL_SPACE, 0, "capabilities")                 \
	X(fsopen, "new mount API: fsopen", CONTROL_SPACE, 0, "capabilities")                       \
	X(open_tree, "new mount API: open_tree", CONTROL_SPACE, 0, "capabilities")                 \
	X(pivot_root, "pivot_root", CONTROL_SPACE, 0, "capabilities")                              \
	X(chroot, "chroot", CONTROL_SPACE, 0, "capabilities")                                      \
	X(hostname, "change the host name", CONTROL_SPACE, 0, "capabilities")                      \
	X(become_root, "become uid 0", CONTROL_SPACE, 0, "namespaces")                             \
	X(change_ids, "change to another user or group", CONTROL_ROOT, 0, "namespaces")            \
	X(capabilities, "hold a capability", CONTROL_PLAIN, PROBE_SPACED, "capabilities")          \
	X(uid_map, "write the id map", CONTROL_PLAIN, 0, "namespaces")

#define PROBES_KERNEL(X)                                                                           \
	X(io_uring, "io_uring", CONTROL_PLAIN, 0, "seccomp")                                       \
	X(userfaultfd, "userfaultfd", CONTROL_PLAIN, 0, "seccomp")                                 \
	X(keyctl, "kernel keyring: keyctl", CONTROL_PLAIN, 0, "seccomp")                           \
	X(add_key, "kernel keyring: add_key", CONTROL_PLAIN, 0, "seccomp")                         \
	X(request_key, "kernel keyring: request_key", CONTROL_PLAIN, 0, "seccomp")                 \
	X(bpf, "load into bpf", CONTROL_ROOT, 0, "capabilities")                                   \
	X(perf, "perf events", CONTROL_PLAIN, 0, "seccomp")                                        \
	X(personality, "switch address randomisation off", CONTROL_PLAIN, 0, "seccomp")            \
	X(modify_ldt, "change the local descriptor table", CONTROL_PLAIN, 0, "seccomp")            \
	X(iopl, "use I/O ports", CONTROL_ROOT, 0, "capabilities")                                  \
	X(open_by_handle, "open a host file by its handle", CONTROL_ROOT, 0, "capabilities")       \
	X(name_to_handle, "learn a file's handle", CONTROL_PLAIN, 0, "seccomp")                    \
	X(seccomp_notify, "own filter with a listener", CONTROL_PLAIN, 0, "seccomp")               \
	X(prctl_mm, "prctl: move the memory map", CONTROL_PLAIN, 0, "seccomp")                     \
	X(fanotify, "watch files with fanotify", CONTROL_PLAIN, 0, "capabilities")                 \
	X(listmount, "list mounts by listmount", CONTROL_PLAIN, 0, "seccomp")                      \
	X(syslog, "read the kernel's log", CONTROL_ROOT, 0, "capabilities")                        \
	X(adjtime, "change the clock", CONTROL_ROOT, 0, "capabilities")                            \
	X(reboot, "reboot", CONTROL_ROOT, 0, "capabilities")                                       \
	X(module, "load a kernel module", CONTROL_ROOT, 0, "capabilities")                         \
	X(accounting, "switch process accounting", CONTROL_ROOT, 0, "capabilities")                \
	X(realtime, "take a real-time priority", CONTROL_ROOT, 0, "capabilities")                  \
	X(nice_up, "raise the own priority", CONTROL_ROOT, 0, "capabilities")                      \
	X(affinity, "leave the assigned processor", CONTROL_PLAIN, 0, "seccomp")                   \
	X(int80, "32-bit system calls by int 0x80", CONTROL_PLAIN, 0, "seccomp")                   \
	X(x32, "x32 system calls", CONTROL_PLAIN, 0, "seccomp")                                    \
	X(shm_host, "attach System V memory of the host", CONTROL_PLAIN, 0, "namespaces")          \
	X(aio, "asynchronous I/O, counted for the whole machine", CONTROL_PLAIN, 0, "seccomp")     \
	X(sysv_queue, "make a System V message queue", CONTROL_PLAIN, 0, "seccomp")                \
	X(sysv_semaphore, "make a System V semaphore", CONTROL_PLAIN, 0, "seccomp")                \
	X(message_queue, "make a POSIX message queue", CONTROL_PLAIN, 0, "rlimits")                \
	X(terminal_input, "type into the terminal (TIOCSTI)", CONTROL_PLAIN, PROBE_TTY, "session") \
	X(terminal_take, "take the controlling terminal", CONTROL_PLAIN, PROBE_TTY, "seccomp")     \
	X(terminal_linux, "paste by TIOCLINUX", CONTROL_PLAIN, PROBE_TTY, "session")               \
	X(terminal_discipline, "change the terminal's line discipline", CONTROL_PLAIN, PROBE_TTY,  \
	  "seccomp")                                                                               \
	X(core_limit, "allow core dumps again", CONTROL_PLAIN, 0, "rlimits")

#define PROBES_PROCESS(X)                                                                          \
	X(ptrace_child, "trace a child", CONTROL_PLAIN, 0, "seccomp")                              \
	X(ptrace_parent, "trace the parent", CONTROL_PLAIN, 0, "namespaces")                       \
	X(vm_read_parent, "read the parent's memory", CONTROL_PLAIN, 0, "namespaces")              \
	X(vm_write_child, "write another process's memory", CONTROL_PLAIN, 0, "seccomp")           \
	X(mem_parent, "open the parent's /proc/PID/mem", CONTROL_PLAIN, 0, "hidepid")              \
	X(environ_parent, "read the parent's environment", CONTROL_PLAIN, 0, "hidepid")            \
	X(root_parent, "reach the host through the parent's root", CONTROL_PLAIN, 0, "hidepid")    \
	X(fds_parent, "list the parent's descriptors", CONTROL_PLAIN, 0, "hidepid")                \
	X(pidfd_getfd, "copy a descriptor of the parent", CONTROL_PLAIN, 0, "namespaces")          \
	X(kcmp, "compare with the parent by kcmp", CONTROL_PLAIN, 0, "namespaces")                 \
	X(prlimit_parent, "change the parent's limits", CONTROL_PLAIN, 0, "namespaces")            \
	X(renice_host, "change the priority of a host process", CONTROL_PLAIN, 0, "namespaces")    \
	X(renice_parent, "change the priority of the parent", CONTROL_PLAIN, PROBE_ALONE,          \
	  "seccomp")                                                                               \
	X(signal_parent, "signal the parent", CONTROL_PLAIN, PROBE_ALONE, "namespaces")            \
	X(signal_host, "signal a process of the host", CONTROL_PLAIN, 0, "namespaces")             \
	X(signal_all, "signal everything", CONTROL_PLAIN, PROBE_ALONE, "namespaces")               \
	X(pidfd_host, "open a process of the host", CONTROL_PLAIN, 0, "namespaces")                \
	X(list_host, "see processes of the host", CONTROL_PLAIN, 0, "namespaces")                  \
	X(environment, "find a secret in the environment", CONTROL_PLAIN, 0, "environment")        \
	X(descriptors, "use a descriptor of the host", CONTROL_PLAIN, 0, "descriptors")            \
	X(pass_descriptor, "hand the host a descriptor", CONTROL_PLAIN, PROBE_PASSED, "wire")      \
	X(survive_setsid, "outlive the sandbox by setsid and two forks", CONTROL_PLAIN,            \
	  PROBE_SURVIVOR, "namespaces")                                                            \
	X(survive_signals, "outlive it stopped, with all signals ignored", CONTROL_PLAIN,          \
	  PROBE_SURVIVOR, "namespaces")

#define PROBES_SOCKET(X)                                                                           \
	X(inet, "IPv4 stream socket", CONTROL_PLAIN, PROBE_OPENS, "seccomp")                       \
	X(inet6, "IPv6 stream socket", CONTROL_PLAIN, 0, "seccomp")                                \
	X(inet_datagram, "IPv4 datagram socket", CONTROL_PLAIN, PROBE_BESIDE, "seccomp")           \
	X(raw, "raw socket", CONTROL_SPACE, PROBE_BESIDE, "capabilities")                          \
	X(packet, "packet socket", CONTROL_SPACE, PROBE_BESIDE, "capabilities")                    \
	X(netlink, "netlink socket", CONTROL_PLAIN, PROBE_BESIDE, "seccomp")                       \
	X(vsock, "socket to the hypervisor (AF_VSOCK)", CONTROL_PLAIN, PROBE_BESIDE, "seccomp")    \
	X(unix_stream, "Unix socket", CONTROL_PLAIN, PROBE_BESIDE, "seccomp")                      \
	X(any_family, "socket of any of 48 families", CONTROL_PLAIN, 0, "seccomp")                 \
	X(tcp_host, "connect to a TCP service of the host", CONTROL_PLAIN, PROBE_BESIDE,           \
	  "namespaces")                                                                            \
	X(udp_host, "send to a UDP service of the host", CONTROL_PLAIN, PROBE_BESIDE,              \
	  "namespaces")                                                                            \
	X(abstract_host, "connect to an abstract socket of the host", CONTROL_PLAIN, PROBE_BESIDE, \
	  "namespaces")                                                                            \
	X(path_host, "connect to a socket file of the host", CONTROL_PLAIN, PROBE_BESIDE,          \
	  "mount view")                                                                            \
	X(sendmsg_abstract, "send from a socketpair to an abstract socket", CONTROL_PLAIN, 0,      \
	  "namespaces")                                                                            \
	X(sendmsg_path, "send from a socketpair to a socket file", CONTROL_PLAIN, 0, "mount view") \
	X(mail_mounted, "send a descriptor from a socketpair to a socket in a mounted folder",     \
	  CONTROL_PLAIN, 0, "seccomp")                                                             \
	X(mail_many, "the same by sendmmsg", CONTROL_PLAIN, 0, "seccomp")                          \
	X(mail_raw, "the same from a raw socketpair", CONTROL_PLAIN, 0, "seccomp")                 \
	X(socket_filter, "load a filter program into a socket", CONTROL_PLAIN, 0, "seccomp")       \
	X(socket_filter_group, "load one for a group of sockets", CONTROL_PLAIN, 0, "seccomp")     \
	X(socket_filter_lock, "lock a socket's filter", CONTROL_PLAIN, 0, "seccomp")               \
	X(gateway_host, "reach a TCP service of the host through the gateway", CONTROL_PLAIN, 0,   \
	  "namespaces")                                                                            \
	X(net_tables, "read the host's connections", CONTROL_PLAIN, PROBE_BESIDE, "namespaces")

#define PROBES_FILE(X)                                                                             \
	X(host_file, "read a file of the host", CONTROL_PLAIN, 0, "mount view")                    \
	X(host_chmod, "change the mode of a host file", CONTROL_PLAIN, 0, "mount view")            \
	X(host_times, "change the times of a host file", CONTROL_PLAIN, 0, "mount view")           \
	X(host_truncate, "truncate a host file", CONTROL_PLAIN, 0, "mount view")                   \
	X(host_dotdot, "climb out by ..", CONTROL_PLAIN, 0, "mount view")                          \
	X(host_symlink, "follow a planted link out", CONTROL_PLAIN, 0, "mount view")               \
	X(host_self_root, "leave through /proc/self/root", CONTROL_PLAIN, 0, "mount view")         \
	X(host_self_cwd, "leave through /proc/self/cwd", CONTROL_PLAIN, 0, "mount view")           \
	X(mounted_lease, "take a lease on a mounted file", CONTROL_PLAIN, 0, "seccomp")            \
	X(mounted_flock, "lock a mounted file, for which the host then waits", CONTROL_PLAIN, 0,   \
	  "seccomp")                                                                               \
	X(mounted_notify, "watch a mounted folder by F_NOTIFY", CONTROL_PLAIN, 0, "seccomp")       \
	X(shadow, "read /etc/shadow", CONTROL_ROOT, 0, "mount view")                               \
	X(write_usr, "write a program of the host", CONTROL_ROOT, 0, "read-only mounts")           \
	X(write_etc, "write /etc/passwd", CONTROL_ROOT, 0, "read-only mounts")                     \
	X(write_root, "make a file in /", CONTROL_SPACE, 0, "read-only mounts")                    \
	X(write_self, "write the running program", CONTROL_PLAIN, PROBE_ALONE, "read-only mounts") \
	X(hard_link, "hard link to a host file", CONTROL_PLAIN, 0, "mount view")                   \
	X(device_node, "make a device file", CONTROL_ROOT, 0, "capabilities")                      \
	X(file_capability, "give a file capabilities", CONTROL_ROOT, 0, "capabilities")            \
	X(setuid_honoured, "gain rights by a setuid program", CONTROL_PLAIN, 0, "no_new_privs")    \
	X(core_pattern, "open core_pattern for writing", CONTROL_ROOT, 0, "proc subset")           \
	X(release_agent, "open release_agent for writing", CONTROL_ROOT, 0, "mount view")          \
	X(cgroup_tasks, "leave the control group", CONTROL_ROOT, 0, "mount view")                  \
	X(sysctl_read, "read kernel settings", CONTROL_PLAIN, 0, "proc subset")                    \
	X(proc_leaks, "read kallsyms, modules, iomem", CONTROL_PLAIN, 0, "proc subset")            \
	X(proc_memory, "read the size of the host's memory", CONTROL_PLAIN, 0, "proc subset")      \
	X(sysfs, "read /sys", CONTROL_PLAIN, 0, "mount view")                                      \
	X(oom_score, "open oom_score_adj for writing", CONTROL_PLAIN, 0, "landlock")               \
	X(dev_kmsg, "open /dev/kmsg", CONTROL_ROOT, 0, "mount view")                               \
	X(dev_mem, "open /dev/mem or a disk", CONTROL_ROOT, 0, "mount view")                       \
	X(dev_ptmx, "open a new terminal", CONTROL_PLAIN, 0, "mount view")                         \
	X(dev_pts, "open a terminal of the host or of another sandbox", CONTROL_PLAIN, PROBE_TTY,  \
	  "mount view")                                                                            \
	X(dev_kvm, "open /dev/kvm, /dev/fuse or /dev/net/tun", CONTROL_ROOT, 0, "mount view")

#define PROBES_EXEC(X)                                                                             \
	X(memfd_exec, "run a program from memory", CONTROL_PLAIN, 0, "seccomp")                    \
	X(memfd_sealed_exec, "run a memory file that is not executable", CONTROL_PLAIN, 0,         \
	  "memfd seal")                                                                            \
	X(execveat_exec, "run a program by descriptor", CONTROL_PLAIN, 0, "noexec mounts")         \
	X(workspace_exec, "run a program from the workspace", CONTROL_PLAIN, PROBE_SWITCHED,       \
	  "noexec mounts")                                                                         \
	X(workspace_script, "run a script from the workspace by its #! line", CONTROL_PLAIN,       \
	  PROBE_SWITCHED, "noexec mounts")                                                         \
	X(workspace_fd, "run a program from the workspace as /proc/self/fd/N", CONTROL_PLAIN,      \
	  PROBE_SWITCHED, "noexec mounts")                                                         \
	X(workspace_map, "map a file of the workspace as a library is mapped", CONTROL_PLAIN,      \
	  PROBE_SPACED | PROBE_SWITCHED, "noexec mounts")                                          \
	X(workspace_protect, "map such a file, then make it executable", CONTROL_PLAIN,            \
	  PROBE_SPACED | PROBE_SWITCHED, "noexec mounts")                                          \
	X(workspace_loader, "have the loader start a program of the workspace", CONTROL_PLAIN,     \
	  PROBE_SPACED | PROBE_SWITCHED, "noexec mounts")                                          \
	X(unlisted_exec, "run a program that the policy does not name", CONTROL_PLAIN,             \
	  PROBE_LISTED, "mount view")                                                              \
	X(unlisted_loader, "have the loader start such a program", CONTROL_PLAIN, PROBE_LISTED,    \
	  "mount view")

#define PROBES_BOMB(X)                                                                             \
	X(forks, "more processes than allowed", CONTROL_PLAIN, PROBE_ONCE, "process limit")        \
	X(threads, "more threads than allowed", CONTROL_PLAIN, PROBE_ONCE, "process limit")        \
	X(memory, "more memory than allowed", CONTROL_PLAIN, PROBE_ONCE, "memory limit")           \
	X(memory_shared, "more shared memory than allowed", CONTROL_PLAIN, PROBE_ONCE,             \
	  "memory limit")                                                                          \
	X(memory_memfd, "more memory in memory files", CONTROL_PLAIN, PROBE_ONCE, "memory limit")  \
	X(memory_spread, "more memory over several processes", CONTROL_PLAIN, PROBE_ONCE,          \
	  "memory limit")                                                                          \
	X(memory_tables, "more memory in page tables", CONTROL_PLAIN, PROBE_ONCE, "memory limit")  \
	X(memory_pairs, "more memory in socketpairs", CONTROL_PLAIN, PROBE_ONCE, "memory limit")   \
	X(memory_tcp, "more memory in TCP's buffers", CONTROL_PLAIN, PROBE_ONCE, "memory limit")   \
	X(charge_epoll, "memory in epoll items that nobody counts", CONTROL_PLAIN, PROBE_CHARGED,  \
	  "memory limit")                                                                          \
	X(charge_pipes, "memory in pipes that nobody counts", CONTROL_PLAIN, PROBE_CHARGED,        \
	  "memory limit")                                                                          \
	X(charge_sockets, "memory in sockets that nobody counts", CONTROL_PLAIN, PROBE_CHARGED,    \
	  "memory limit")                                                                          \
	X(charge_names, "memory in names that are not there", CONTROL_PLAIN, PROBE_CHARGED,        \
	  "memory limit")                                                                          \
	X(links, "more names of one file than there may be files", CONTROL_PLAIN,                  \
	  PROBE_ONCE | PROBE_SPACED, "workspace quota")                                            \
	X(watches, "more inotify watches than a sandbox has", CONTROL_PLAIN, PROBE_ONCE,           \
	  "namespaces")                                                                            \
	X(disk, "more bytes in the workspace than allowed", CONTROL_PLAIN,                         \
	  PROBE_ONCE | PROBE_SPACED, "workspace quota")                                            \
	X(inodes, "more files in the workspace than allowed", CONTROL_PLAIN,                       \
	  PROBE_ONCE | PROBE_SPACED, "workspace quota")                                            \
	X(big_file, "a bigger file than allowed", CONTROL_PLAIN, PROBE_ONCE, "rlimits")            \
	X(sparse_file, "a bigger file than allowed, full of holes", CONTROL_PLAIN, PROBE_ONCE,     \
	  "rlimits")                                                                               \
	X(locks, "file locks, which no control group counts", CONTROL_PLAIN,                       \
	  PROBE_ONCE | PROBE_TOLD, "lock limit")                                                   \
	X(locks_shared, "the same from processes that share their descriptors", CONTROL_PLAIN,     \
	  PROBE_ONCE, "seccomp")                                                                   \
	X(watch_instances, "most of the user's inotify instances", CONTROL_PLAIN, PROBE_ONCE,      \
	  "namespaces")                                                                            \
	X(queued_signals, "many of the user's queued signals", CONTROL_PLAIN, PROBE_ONCE,          \
	  "rlimits")                                                                               \
	X(timers, "many timers, which count as queued signals", CONTROL_PLAIN, PROBE_ONCE,         \
	  "rlimits")                                                                               \
	X(open_files, "more descriptors than allowed", CONTROL_PLAIN, PROBE_ONCE, "rlimits")       \
	X(cpu, "more processor time than allowed", CONTROL_PLAIN, PROBE_ONCE, "rlimits")

#define PROBES(X)                                                                                  \
	PROBES_SPACE(X)                                                                            \
	PROBES_KERNEL(X)                                                                           \
	PROBES_PROCESS(X)                                                                          \
	PROBES_SOCKET(X)                                                                           \
	PROBES_FILE(X)                                                                             \
	PROBES_EXEC(X)                                                                             \
	PROBES_BOMB(X)

/* The attacks of attacks.py. X(id, what it tries, flags, what stops it) */
#define PYTHON_PROBES(X)                                                                           \
	X(py_subprocess, "start a program with subprocess", PROBE_LISTED, "mount view")            \
	X(py_system, "start a shell with os.system", PROBE_LISTED, "mount view")                   \
	X(py_unshare, "new user namespace by ctypes", 0, "seccomp")                                \
	X(py_ptrace, "trace the parent by ctypes", 0, "seccomp")                                   \
	X(py_setuid, "become root with os.setuid", 0, "namespaces")                                \
	X(py_chroot, "os.chroot", 0, "seccomp")                                                    \
	X(py_machine_code, "machine code of its own that makes a 32-bit system call", 0,           \
	  "seccomp")                                                                               \
	X(py_connect, "connect to a TCP service of the host", PROBE_BESIDE, "seccomp")             \
	X(py_http, "fetch a page from the host", PROBE_BESIDE, "seccomp")                          \
	X(py_unix, "connect to an abstract socket of the host", PROBE_BESIDE, "seccomp")           \
	X(py_unix_file, "connect to a socket file of the host", 0, "seccomp")                      \
	X(py_host_file, "open a file of the host", 0, "mount view")                                \
	X(py_walk, "find a file of the host by walking from the root", 0, "mount view")            \
	X(py_link_race,                                                                            \
	  "open a name while a thread turns it from an own file into a link to the host's", 0,     \
	  "mount view")                                                                            \
	X(py_environment, "find a secret in the environment", 0, "environment")                    \
	X(py_descriptors, "read through a descriptor of the host", 0, "descriptors")               \
	X(py_kill, "signal a process of the host", 0, "namespaces")                                \
	X(py_processes, "list the processes of the host", 0, "namespaces")                         \
	X(py_write_library, "change the library that everybody imports", 0, "landlock")            \
	X(py_terminal, "open a new terminal", 0, "mount view")                                     \
	X(py_memfd, "run a program from memory", 0, "seccomp")                                     \
	X(py_planted, "run a program from the workspace", PROBE_SWITCHED, "noexec mounts")         \
	X(py_forks, "more processes than allowed", 0, "process limit")                             \
	X(py_threads, "more threads than allowed", 0, "process limit")                             \
	X(py_memory, "more memory than allowed", 0, "memory limit")                                \
	X(py_survive, "outlive the sandbox as a daemon", PROBE_SURVIVOR, "namespaces")             \
	X(py_idle_cpu, "burn CPU time between executions, with the soft limit lifted", PROBE_IDLE, \
	  "idle watch")                                                                            \
	X(py_sibling_name, "meet another session under an abstract name", PROBE_SIBLING,           \
	  "seccomp")                                                                               \
	X(py_sibling_port, "connect to a port that another sandbox listens on",                    \
	  PROBE_SIBLING | PROBE_EXPOSED, "namespaces")                                             \
	X(py_sibling_descriptors, "leave no descriptor on its way to a new session",               \
	  PROBE_SIBLING, "rlimits")                                                                \
	X(py_sibling_watches, "leave no inotify instance to another session",                      \
	  PROBE_SIBLING | PROBE_SPACED, "namespaces")                                              \
	X(py_sibling_signals, "leave no queued signal to another session",                         \
	  PROBE_SIBLING | PROBE_SPACED, "namespaces")                                              \
	X(py_sibling_memory, "change the memory that sessions of one template share",              \
	  PROBE_SIBLING, "sealed memory")                                                          \
	X(py_columns_mapped, "change binary columns after the host has checked them",              \
	  PROBE_COLUMNS, "seals")                                                                  \
	X(py_columns_overlap, "have the host read beyond the binary columns", PROBE_COLUMNS,       \
	  "wire")                                                                                  \
	X(build_host_file, "build step: open a file of the host", PROBE_BUILD, "mount view")       \
	X(build_session_file, "build step: read the files of the session that it is for",          \
	  PROBE_BUILD, "another sandbox")                                                          \
	X(build_connect, "build step: connect to a service beside the registry", PROBE_BUILD,      \
	  "namespaces")                                                                            \
	X(build_proxy, "build step: fetch from it through the gateway", PROBE_BUILD, "gateway")    \
	X(build_redirect, "build step: be led to it by the registry", PROBE_BUILD, "gateway")      \
	X(build_publish, "build step: send something to the registry", PROBE_BUILD, "gateway")     \
	X(build_survive, "build step: leave a process behind", PROBE_BUILD | PROBE_SURVIVOR,       \
	  "namespaces")                                                                            \
	X(build_bytes, "build step: more bytes than packages.bytes", PROBE_BUILD, "tmpfs size")    \
	X(build_files, "build step: more files than allowed", PROBE_BUILD, "tmpfs inodes")         \
	X(build_cache, "build step: leave something for the next installation",                    \
	  PROBE_BUILD | PROBE_SIBLING, "another sandbox")
