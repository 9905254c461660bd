/* serve/rpc/session_quota.h - limits on the sessions of several clients together, and on the memory
 * that their policies allow. See client_session.h for client_session_charge. */
#pragma once

#include "serve/rpc/client_session.h"

/* Counts sessions in this quota and in those above, all or none; NULL: no quota. -CORDON_LIMIT: not
 * now. -CORDON_DENIED: never. */
int session_quota_take(struct client_session_quota *quota, unsigned sessions,
		       struct cordon_error **reterr);
/* Counts an execution in this quota and in those above; NULL: no quota. Ended with
 * session_quota_end. */
int session_quota_begin(struct client_session_quota *quota, struct cordon_error **reterr);
void session_quota_end(struct client_session_quota *quota);
/* Counts bytes of attachments. False: there is no room for them. quota NULL: there always is. */
bool session_quota_attach(struct client_session_quota *quota, uint64_t bytes);
void session_quota_detach(struct client_session_quota *quota, uint64_t bytes);
void session_quota_give_back(struct client_session_quota *q, uint64_t memory, unsigned sessions);
