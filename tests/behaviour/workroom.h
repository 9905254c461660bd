/* tests/behaviour/workroom.h - a session with its files for tests: its output, and what the host
 * finds in its workspace. */
#pragma once

#include <cordon/cordon.h>

/* settings: "key=value" for the standard policy, ended by NULL; NULL: none. workspace: its
 * persistent name, or NULL. A machine that lacks a layer or the guest's program is named (needs()).
 */
struct cordon_session *open_with(const char *guest, const char *const *settings,
				 const char *workspace);
/* What the code printed, until the next call; "!" before it and the error after it when it failed.
 */
const char *run(struct cordon_session *s, const char *code);
/* Code with its own words for %s. */
const char *runf(struct cordon_session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The host's side of its files. What cannot be read is "!" and why, until the next call. */
void put(struct cordon_session *s, const char *path, const char *text);
const char *get(struct cordon_session *s, const char *path);
