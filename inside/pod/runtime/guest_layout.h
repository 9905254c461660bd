/* inside/pod/runtime/guest_layout.h - kernel structures that have another layout in a 32-bit
 * guest. */
#pragma once

#include <sys/resource.h>
#include <time.h>

#include "inside/pod/runtime/process.h"

/* 1: a time, 0: a null pointer, -1: a bad pointer. The upper half of the guest's nanoseconds is
 * padding. */
static inline int guest_timespec(const struct w2c_sys *p, uint64_t at, struct timespec *ret)
{
	const char *t;
	uint32_t nsec;

	if (!at)
		return 0;
	t = guest_at(p, at, 16);
	if (!t)
		return -1;
	memcpy(&ret->tv_sec, t, 8);
	memcpy(&nsec, t + 8, 4);
	ret->tv_nsec = nsec;
	return 1;
}

/* Two times of 16 bytes, then 14 longs of 32 bits; the rest of the guest's struct is reserved. */
#define GUEST_RUSAGE 88
static inline void guest_put_rusage(void *to, const struct rusage *usage)
{
	uint32_t *out = (uint32_t *)((char *)to + 32);
	long values[14];

	memcpy(to, usage, 32);
	memcpy(values, (const char *)usage + 32, sizeof values);
	for (int i = 0; i < 14; i++)
		out[i] = values[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)values[i];
}
