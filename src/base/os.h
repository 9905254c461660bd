/* base/os.h - what differs between operating systems and is no wall: one implementation per folder,
 * today base/linux. The event loop (loop.h) and condition variables (condvar.h) are implemented
 * there too. No other file includes a header of one system (tools/check-rooms).
 *
 * Descriptors that are made here are close-on-exec. An int is a descriptor or 0, or -errno;
 * errno says it too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

/* Fills with the kernel's randomness; ends the process if there is none. */
void os_random(void *ret, size_t len);

/* An anonymous file in memory. Sealable: it can never be executed, and os_seal fixes its bytes. */
int os_memory_file(const char *name, bool is_sealable);
int os_seal(int fd);

/* An event: readable from os_event_set until os_event_clear. Neither waits; both are for any
 * thread. */
int os_event_open(void);
int os_event_set(int fd);
void os_event_clear(int fd);

/* A timer: readable from that moment until it is cleared; 0: never. */
int os_timer_open(void);
int os_timer_set(int fd, deadline_ns at);
void os_timer_clear(int fd);

/* A set of descriptors, and itself one: readable when one of them is. */
int os_watch_open(void);
int os_watch_add(int set, int fd, void *tag);
/* Before the descriptor is closed: another process may still have a copy. */
void os_watch_remove(int set, int fd);
/* The tag of one that is readable now; false: none is. */
bool os_watch_next(int set, void **ret_tag);

/* Readable when that child has ended. */
int os_process_open(pid_t pid);
/* No core dump, and no other process of the user may look into this one. */
int os_process_hide(void);
/* A name of this program for exec(2), also if its file was replaced. */
#define OS_PROGRAM "/proc/self/exe"
/* This program's file, in at most size - 1 bytes; false: unknown. */
bool os_program_path(char *ret, size_t size);
/* Closes every descriptor from first up. */
int os_close_from(int first);

/* The user at the other end of a Unix socket. */
int os_peer_uid(int fd, uid_t *ret);
/* A message with descriptors on a Unix socket; -1 and errno as from sendmsg(2). At most OS_FDS. */
enum { OS_FDS = 64 };
ssize_t os_fds_send(int fd, const void *bytes, size_t len, const int *fds, size_t count);
/* The same way back, without waiting. The descriptors are the caller's, also if the message is
 * wrong; those that do not fit are closed. */
ssize_t os_fds_receive(int fd, void *bytes, size_t len, int *ret_fds, size_t max,
		       size_t *ret_count);

/* Opens beneath dir_fd: neither "..", nor an absolute path, nor a link leads out (-EXDEV). Tries
 * again while somebody renames on the way, but not for ever. */
enum {
	OS_NO_LINKS = 1 << 0,  /* a link on the path is -ELOOP */
	OS_NO_MOUNTS = 1 << 1, /* a mount point on the path is -EXDEV */
};
int os_open_beneath(int dir_fd, const char *path, int flags, mode_t mode, unsigned how);
/* Renames in one directory; an existing name is -EEXIST. */
int os_rename_new(int dir_fd, const char *from, const char *to);
/* 1: the file system is in memory and has a quota of its own; 0: not. */
int os_is_in_memory(int fd);

/* Whose files this thread makes and opens; (id)-1 changes nothing. Both return the former id. Other
 * threads keep theirs. */
uid_t os_file_uid(uid_t to);
gid_t os_file_gid(gid_t to);
