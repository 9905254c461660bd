/* fuzz/wasi.c - random calls with random arguments at the pod's WASI layer. */
#include "../pod/door_fixture.h" /* inside/pod */

#include "inside/pod/runtime/wasi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PROC_EXIT = 6, POLL_ONEOFF = 41, CALLS = 46, NAMES = 4096 };

/* Names that lead somewhere, where addresses are likely to point. */
static void fill(void)
{
	static const char *const names[] = { "tmp/file", "../etc/passwd", "tmp/up", "tmp/escape",
					     "/etc",     "tmp",           ".",      "new" };

	for (uint64_t i = 0; i < 8; i++)
		fixture_string(NAMES + 16 * i, names[i]);
	for (uint64_t i = 0; i < 64; i++) { /* vectors of small buffers */
		const uint32_t pair[2] = { (uint32_t)(8192 + 64 * i), 32 };

		memcpy(fixture_memory.data + 2048 + 8 * i, pair, sizeof pair);
	}
}

static uint64_t argument(const uint8_t *data)
{
	uint32_t v;

	memcpy(&v, data + 1, 4);
	switch (data[0] % 5) {
	case 0:
		return v % 40;
	case 1:
		return NAMES + 16 * (v % 8);
	case 2:
		return v % (FIXTURE_BYTES + 64);
	case 3:
		return 2048 + 8 * (v % 64);
	default:
		return data[0] > 200 ? (uint64_t)v << 32 | v : v;
	}
}

/* A byte chooses the call, then nine arguments of a byte and four. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *const words[] = { "program", "argument", "", NULL };
	static bool is_open;

	if (!is_open) {
		fixture_open();
		fixture_private_stdio();
		is_open = true;
		if (image_arguments(&fixture, words, words + 1) || wasi_start(&fixture))
			abort();
	}
	fixture_private_stdio();
	fill();
	for (; size >= 1 + 9 * 5; data += 1 + 9 * 5, size -= 1 + 9 * 5) {
		uint32_t call = data[0] % (CALLS + 1), e;
		uint64_t a[WASI_ARGS];

		for (int i = 0; i < WASI_ARGS; i++)
			a[i] = argument(data + 1 + 5 * i);
		if (call == PROC_EXIT)
			continue;
		if (call == POLL_ONEOFF) /* it would wait: only for what it refuses */
			a[2] = a[2] % 2 ? 0 : UINT32_MAX;
		e = wasi_call(&fixture, call, a);
		if (e > WASI_NOTCAPABLE)
			abort();
	}
	fixture_public_stdio();
	return 0;
}
