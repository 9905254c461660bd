/* session/session_expose.h - ports of a session's sandbox that the host can connect to
 * (cordon/expose.h). */
#pragma once

struct cordon_session;

/* Before the engine and the place are freed. Accepts a session that has none. */
void session_expose_end(struct cordon_session *root);
