/* inside/pod/runtime/wasi.c - see wasi.h. Finds a call; the program itself, time, randomness. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/wasi.h"

#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

#include "inside/pod/runtime/door.h"

#define WASI(name, parameters) WASI_FN(name);
#include "inside/pod/runtime/wasi_list.h"
#undef WASI

#define WASI(name, parameters) wasi_##name,
static wasi_fn *const table[] = {
#include "inside/pod/runtime/wasi_list.h"
};
#undef WASI

uint32_t wasi_call(struct w2c_sys *p, uint32_t call, const uint64_t a[WASI_ARGS])
{
	if (call >= sizeof table / sizeof *table)
		return WASI_NOSYS;
	wasi_clear(p);
	return table[call](p, a);
}

uint32_t wasi_error(int64_t r)
{
	/* In the order of WASI's numbers, from 1. */
	static const uint8_t numbers[] = {
		E2BIG,           EACCES,       EADDRINUSE,   EADDRNOTAVAIL, EAFNOSUPPORT,
		EAGAIN,          EALREADY,     EBADF,        EBADMSG,       EBUSY,
		ECANCELED,       ECHILD,       ECONNABORTED, ECONNREFUSED,  ECONNRESET,
		EDEADLK,         EDESTADDRREQ, EDOM,         EDQUOT,        EEXIST,
		EFAULT,          EFBIG,        EHOSTUNREACH, EIDRM,         EILSEQ,
		EINPROGRESS,     EINTR,        EINVAL,       EIO,           EISCONN,
		EISDIR,          ELOOP,        EMFILE,       EMLINK,        EMSGSIZE,
		EMULTIHOP,       ENAMETOOLONG, ENETDOWN,     ENETRESET,     ENETUNREACH,
		ENFILE,          ENOBUFS,      ENODEV,       ENOENT,        ENOEXEC,
		ENOLCK,          ENOLINK,      ENOMEM,       ENOMSG,        ENOPROTOOPT,
		ENOSPC,          ENOSYS,       ENOTCONN,     ENOTDIR,       ENOTEMPTY,
		ENOTRECOVERABLE, ENOTSOCK,     ENOTSUP,      ENOTTY,        ENXIO,
		EOVERFLOW,       EOWNERDEAD,   EPERM,        EPIPE,         EPROTO,
		EPROTONOSUPPORT, EPROTOTYPE,   ERANGE,       EROFS,         ESPIPE,
		ESRCH,           ESTALE,       ETIMEDOUT,    ETXTBSY,       EXDEV,
	};

	if (r >= 0)
		return WASI_OK;
	for (size_t i = 0; i < sizeof numbers; i++)
		if (numbers[i] == -r)
			return (uint32_t)i + 1;
	return WASI_IO;
}

void *wasi_at(const struct w2c_sys *p, uint64_t at, uint64_t len)
{
	uint64_t size = p->memory->size;

	at = (uint32_t)at;
	return at > size || len > size - at ? NULL : p->memory->data + at;
}

bool wasi_put(const struct w2c_sys *p, uint64_t at, const void *from, size_t len)
{
	void *to = wasi_at(p, at, len);

	if (to)
		memcpy(to, from, len);
	return to;
}

bool wasi_put32(const struct w2c_sys *p, uint64_t at, uint64_t value)
{
	uint32_t v = (uint32_t)value;

	return wasi_put(p, at, &v, sizeof v);
}

bool wasi_put64(const struct w2c_sys *p, uint64_t at, uint64_t value)
{
	return wasi_put(p, at, &value, sizeof value);
}

#define SCRATCH_FIRST 16u /* 0 is the door's null pointer */

void wasi_clear(struct w2c_sys *p)
{
	p->wasi->used = SCRATCH_FIRST;
}

uint64_t wasi_note(struct w2c_sys *p, const void *from, size_t len)
{
	struct wasi *w = p->wasi;
	uint32_t at = (w->used + 7) & ~7u;

	if (len > WASI_SCRATCH - at)
		return 0;
	if (from)
		memcpy(w->room + at, from, len);
	else
		memset(w->room + at, 0, len);
	w->used = at + (uint32_t)len;
	return at;
}

void *wasi_noted(const struct w2c_sys *p, uint64_t at)
{
	return p->wasi->room + at;
}

int64_t wasi_door(struct w2c_sys *p, long n, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	wasm_rt_memory_t *guest = p->memory;
	int64_t r;

	p->memory = &p->wasi->scratch;
	r = (int64_t)w2c_sys_call(p, (uint64_t)n, a, b, c, d, 0, 0);
	p->memory = guest;
	return r;
}

void wasi_finish(struct w2c_sys *p, uint32_t status)
{
	(void)p;
	_exit((int)(status & 255));
}

/* Writes pointers to the strings, and the strings. */
static uint32_t put_vector(struct w2c_sys *p, const struct vector *v, uint64_t list, uint64_t room)
{
	char *strings = wasi_at(p, room, v->bytes);
	uint8_t *pointers = wasi_at(p, list, 4 * v->count);

	if (!strings || !pointers)
		return WASI_FAULT;
	for (size_t i = 0; i < v->count; i++) {
		uint32_t at = (uint32_t)(room + (uint64_t)(v->at[i] - v->strings));

		memcpy(pointers + 4 * i, &at, sizeof at);
	}
	if (v->bytes)
		memcpy(strings, v->strings, v->bytes);
	return WASI_OK;
}

WASI_FN(args_get)
{
	return put_vector(p, &p->argv, a[0], a[1]);
}

WASI_FN(environ_get)
{
	return put_vector(p, &p->envp, a[0], a[1]);
}

static uint32_t put_sizes(struct w2c_sys *p, const struct vector *v, const uint64_t a[2])
{
	return wasi_put32(p, a[0], v->count) && wasi_put32(p, a[1], v->bytes) ? WASI_OK
									      : WASI_FAULT;
}

WASI_FN(args_sizes_get)
{
	return put_sizes(p, &p->argv, a);
}

WASI_FN(environ_sizes_get)
{
	return put_sizes(p, &p->envp, a);
}

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
				    CLOCK_THREAD_CPUTIME_ID };

static uint32_t put_time(struct w2c_sys *p, long call, uint64_t clock, uint64_t to)
{
	struct timespec ts;
	uint64_t at;
	int64_t r;

	if (clock >= sizeof clocks / sizeof *clocks)
		return WASI_INVAL;
	at = wasi_note(p, NULL, sizeof ts);
	r = wasi_door(p, call, (uint64_t)clocks[clock], at, 0, 0);
	memcpy(&ts, wasi_noted(p, at), sizeof ts);
	if (r < 0)
		return wasi_error(r);
	return wasi_put64(p, to, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec)
		       ? WASI_OK
		       : WASI_FAULT;
}

WASI_FN(clock_res_get)
{
	return put_time(p, SYS_clock_getres, a[0], a[1]);
}

WASI_FN(clock_time_get)
{
	return put_time(p, SYS_clock_gettime, a[0], a[2]);
}

WASI_FN(proc_exit)
{
	wasi_finish(p, (uint32_t)a[0]);
}

WASI_FN(sched_yield)
{
	(void)a;
	return wasi_error(wasi_door(p, SYS_sched_yield, 0, 0, 0, 0));
}

WASI_FN(random_get)
{
	uint64_t len = (uint32_t)a[1], done = 0;
	char *to = wasi_at(p, a[0], len);

	if (!to)
		return WASI_FAULT;
	while (done < len) {
		ssize_t n = getrandom(to + done, len - done, 0);

		if (n < 0 && errno != EINTR)
			return wasi_error(-errno);
		done += n > 0 ? (uint64_t)n : 0;
	}
	return WASI_OK;
}

/* A pod offers such programs no signals and sockets. */
#define ABSENT(name)                                                                               \
	WASI_FN(name)                                                                              \
	{                                                                                          \
		(void)p;                                                                           \
		(void)a;                                                                           \
		return WASI_NOSYS;                                                                 \
	}
ABSENT(proc_raise)
ABSENT(sock_accept)
ABSENT(sock_recv)
ABSENT(sock_send)
ABSENT(sock_shutdown)
