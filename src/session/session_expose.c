/* session/session_expose.c - see session_expose.h. */
#include "session/session_expose.h"

#include <errno.h>
#include <string.h>

#include "cordon/expose.h"
#include "net/host/port_forward.h"
#include "session/place.h"
#include "session/session.h"

/* Asks the sandbox that the session has now. Holding the lock, nobody frees its box. */
static int ask(void *arg, int *ret_fd)
{
	struct cordon_session *root = arg;

	pthread_mutex_lock(&root->lock);
	struct box *b = root->place    ? place_box(root->place)
			: root->engine ? root->engine->box
				       : NULL;
	int r = b && !root->is_closed ? box_ask_socket(b, ret_fd, NULL) : -CORDON_STATE;
	pthread_mutex_unlock(&root->lock);
	return r;
}

/* is_known: it was exposed before, so the machine can. To ask it takes a process. */
static int check(const struct cordon_session *root, unsigned port, bool is_known,
		 struct cordon_error **reterr)
{
	struct wall_probe machine;

	if (root->kind == GUEST_KIND_POD)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "nothing can listen in a pod; remedy: use python, r, node or sh");
	if (!policy_exposes(&root->policy, port))
		return err_set(reterr, CORDON_DENIED,
			       "the policy does not expose port %u; to allow it: expose: name the "
			       "port (expose+=%u)",
			       port, port);
	if (is_known)
		return 0;
	wall_probe(&root->policy, &machine, NULL);
	if (!machine.has_namespaces)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "a port to be reached needs a network namespace, and user "
			       "namespaces are not available here");
	return 0;
}

/* The one of this session; made when it is first needed. It lives as long as the session. */
static int have_forward(struct cordon_session *root, struct port_forward **ret,
			struct cordon_error **reterr)
{
	struct port_forward_options o = { .ask = ask, .arg = root };
	int r = 0;

	pthread_mutex_lock(&root->lock);
	if (root->is_closed)
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	else if (!root->forward)
		r = port_forward_new(&o, &root->forward, reterr);
	*ret = root->forward;
	pthread_mutex_unlock(&root->lock);
	return r;
}

static struct port_forward *forward_of(struct cordon_session *root)
{
	pthread_mutex_lock(&root->lock);
	struct port_forward *f = root->forward;
	pthread_mutex_unlock(&root->lock);
	return f;
}

static void record(struct cordon_session *root, const char *event, unsigned port,
		   const char *address)
{
	struct audit_event *e = audit_begin(root->audit, event, root->id);

	if (!e)
		return;
	audit_add_uint(e, "port", port);
	if (address)
		audit_add_text(e, "address", address, strlen(address));
	(void)audit_commit(e, NULL);
}

int cordon_session_expose(struct cordon_session *s, unsigned port,
			  const struct cordon_expose_options *opts, char **ret_address,
			  struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	struct port_forward_target t = { .port = port };
	struct port_forward *f = forward_of(root);
	int r = check(root, port, f && port_forward_has(f, port), reterr);

	if (opts) {
		t.host_port = opts->host_port;
		t.path = opts->path;
	}
	if (r == 0)
		r = have_forward(root, &f, reterr);
	if (r == 0)
		r = port_forward_add(f, &t, ret_address, reterr);
	if (r == 0)
		record(root, "port_expose", port, *ret_address);
	return r < 0 ? r : 0;
}

int cordon_session_unexpose(struct cordon_session *s, unsigned port, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	struct port_forward *f = forward_of(root);
	int r = f ? port_forward_remove(f, port, reterr)
		  : err_set(reterr, CORDON_NOT_FOUND, "port %u is not exposed", port);

	if (r == 0)
		record(root, "port_unexpose", port, NULL);
	return r;
}

char *cordon_session_exposed(struct cordon_session *s)
{
	struct port_forward *f = forward_of(session_root(s));
	cleanup_json json_t *a = f ? port_forward_list(f) : json_array();

	return json_text(a, NULL);
}

void session_expose_end(struct cordon_session *root)
{
	pthread_mutex_lock(&root->lock);
	struct port_forward *f = TAKE_PTR(root->forward);
	pthread_mutex_unlock(&root->lock);
	port_forward_free(f);
}
