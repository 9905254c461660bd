/* wall/linux/probe/probe.h - the targets of an attack (host objects laid out as bait, given as
 * NAME=VALUE arguments) and the limits that it tries to exceed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bait {
	const char *file;          /* a readable file of the host */
	const char *secret;        /* its text, also the value of an environment variable */
	const char *abstract;      /* name of an abstract stream socket, without the NUL */
	const char *abstract_mail; /* of an abstract datagram socket */
	const char *path;          /* of a stream socket file */
	const char *path_mail;     /* of a datagram socket file */
	const char *shared;        /* a directory that the policy shows: a socket, a file */
	const char *shared_host;   /* its path outside */
	const char *marker;        /* word in the command line of processes that must not survive */
	const char *seal;          /* a filter to load first, in hexadecimal; NULL: none */
	long tcp, udp;             /* ports on 127.0.0.1 */
	long pid;                  /* a process of the host */
	long shm;                  /* a System V segment, -1: none */
	long descriptor;           /* number of an open descriptor of the host */
	/* Limits. */
	long processes, open_files, cpu_seconds;
	uint64_t memory_bytes, fs_bytes, file_count, file_bytes;
	long groups;     /* 1: there is a control group to count memory */
	long network;    /* 1: stream sockets are allowed, and lead only to the gateway */
	long empty;      /* 1: PROBE_CHARGED: allocate nothing */
	bool is_control; /* outside the sandbox: use a harmless target of our own */
};

/* 0: it worked; an errno: refused; negative: not applicable here. */
typedef int (*probe_fn)(const struct bait *b);

enum { NOT_HERE = -1 };

/* errno if r is negative, else 0: most attacks are one call. */
int probe_verdict(long r);
/* Runs fn in a child. Returns its verdict, EFAULT for a crash, or an errno for a signal that means
 * refusal: ENOSYS for SIGSYS, ENOMEM for SIGKILL, ETIME for SIGXCPU, EFBIG for SIGXFSZ. */
int probe_in_child(probe_fn fn, const struct bait *b);
/* How a child passes its verdict on, and how it is read. */
_Noreturn void probe_exit(int verdict);
int probe_decode(int status);
/* Status of a child that was started with fork: exit code, or 128 + signal. */
int probe_wait(int pid);
/* An unused name in the workspace or, outside, in /tmp. */
void probe_name(char *ret, size_t size, const char *word);
/* Whether a file contains the secret. 0, ENODATA, or why it cannot be read. */
int probe_find_secret(const char *path, const char *secret);
