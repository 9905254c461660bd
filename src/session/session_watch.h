/* session/session_watch.h - directories of a session that the host watches (cordon/files.h). */
#pragma once

struct cordon_session;

/* Accepts a session that has none. No call may be running. */
void session_watch_end(struct cordon_session *root);
