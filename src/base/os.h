/* base/os.h - what differs between operating systems, apart from the walls: one implementation per
 * directory, at present base/linux. The event loop (loop.h) and condition variables (condvar.h) are
 * implemented there too. No other file includes a header of one system (tools/check-rooms).
 *
 * Descriptors that are made here are close-on-exec. Functions of type int return a descriptor or 0,
 * or -errno; they set errno too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

/* Fills with random bytes of the kernel; ends the process if that fails. */
void os_random(void *ret, size_t len);

/* An anonymous file in memory. Sealable: it can never be executed, and os_seal makes its bytes
 * constant. */
int os_memory_file(const char *name, bool is_sealable);
int os_seal(int fd);
/* Its size is constant. */
int os_seal_size(int fd);
/* Its bytes are constant, but it can still be cut off, which frees them. */
int os_seal_bytes(int fd);

/* For a program that runs long: large blocks go back to the kernel when they are freed. The C
 * library would keep those of each thread. */
void os_memory_release(void);

/* An event: readable from os_event_set until os_event_clear. Neither blocks; any thread may call
 * them. */
int os_event_open(void);
int os_event_set(int fd);
void os_event_clear(int fd);

/* A timer: readable from that moment until it is cleared; 0: never. */
int os_timer_open(void);
int os_timer_set(int fd, deadline_ns at);
void os_timer_clear(int fd);

/* A set of descriptors, which is a descriptor itself: readable if one of them is. */
int os_watch_open(void);
int os_watch_add(int set, int fd, void *tag);
/* The same, but it counts as readable only once, when the other side has closed a socket. */
int os_watch_add_hangup(int set, int fd, void *tag);
/* Before the descriptor is closed: another process may still have a copy. */
void os_watch_remove(int set, int fd);
/* The tag of one that is readable now; false: none. */
bool os_watch_next(int set, void **ret_tag);

/* Readable when that child has ended. */
int os_process_open(pid_t pid);
/* No core dump, and no other process of the user may inspect this one. */
int os_process_hide(void);
/* The name of this thread in tools such as top(1): at most 15 bytes. */
void os_thread_name(const char *name);
/* A path of this program for exec(2), valid even if its file was replaced. */
#define OS_PROGRAM "/proc/self/exe"
/* This program's file, in at most size - 1 bytes; false: unknown. */
bool os_program_path(char *ret, size_t size);

/* The user at the other end of a Unix socket. */
int os_peer_uid(int fd, uid_t *ret);
/* A message with descriptors on a Unix socket; -1 and errno as from sendmsg(2). At most OS_FDS. */
enum { OS_FDS = 64 };
ssize_t os_fds_send(int fd, const void *bytes, size_t len, const int *fds, size_t count);
/* Receives such a message, without blocking. The caller owns the descriptors, also if the message
 * is invalid; those that do not fit are closed. */
ssize_t os_fds_receive(int fd, void *bytes, size_t len, int *ret_fds, size_t max,
		       size_t *ret_count);

/* Copies bytes of a file from *at on to a pipe or socket, and moves *at. */
int os_send_file(int to_fd, int file_fd, off_t *at, size_t len);
/* Lets a pipe hold more, as far as that is allowed. */
void os_pipe_widen(int fd);

/* Opens beneath dir_fd: "..", an absolute path or a link that leads out is -EXDEV. Retries while
 * the path is being renamed, but not for ever. */
enum {
	OS_NO_LINKS = 1 << 0,  /* a link on the path is -ELOOP */
	OS_NO_MOUNTS = 1 << 1, /* a mount point on the path is -EXDEV */
};
int os_open_beneath(int dir_fd, const char *path, int flags, mode_t mode, unsigned how);
/* Renames in one directory; an existing name is -EEXIST. */
int os_rename_new(int dir_fd, const char *from, const char *to);
/* 1: the file system is in memory and has a quota of its own; 0: it is not. */
int os_is_in_memory(int fd);

/* The owner of files that this thread makes and opens; (id)-1 changes nothing. Both return the
 * former id. Other threads keep theirs. */
uid_t os_file_uid(uid_t to);
gid_t os_file_gid(gid_t to);

/* Extended attributes of an open file: names one after the other, each with its NUL; the length, or
 * a negative errno. */
ssize_t os_attribute_list(int fd, char *names, size_t size);
ssize_t os_attribute_get(int fd, const char *name, void *value, size_t size);
int os_attribute_set(int fd, const char *name, const void *value, size_t len);
int os_attribute_remove(int fd, const char *name);
