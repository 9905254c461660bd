/* session/session_process.h - commands in the background of a session: one thread each, their
 * output, and their results until somebody waits for them. */
#pragma once

#include "cordon/command.h"
#include "session/session.h"

struct processes;

/* Waits for the threads of all processes, which must have been told to end (context_shut_all). */
void session_process_end_all(struct cordon_session *root);
struct processes *session_process_free_all(struct processes *p);
/* The number of a command in the background that runs; 0: none. */
uint64_t session_process_running(struct cordon_session *root);
/* Its number in the sandbox. 0: it has not begun; -1: it has ended, or there is none. */
pid_t session_process_pid(struct cordon_session *s, uint64_t process);
/* A copy of the result of one that has ended, also from its last callback. NULL: it still runs, or
 * could not be run. */
struct cordon_result *session_process_result(struct cordon_session *s, uint64_t process);
/* As cordon_process_list. */
json_t *session_process_json(struct cordon_session *root);
