/* serve/remote/remote_methods.c - see remote_methods.h. */
#include "serve/remote/remote_methods.h"

#include <string.h>

#include "base/str.h"

enum who { NOBODY, ADMINISTRATOR, ANYBODY };

struct rule {
	const char *method;
	enum who who;
	const char *why;     /* the end of the sentence, if not everybody may */
	const char *refused; /* parameters that nobody may send, separated by blanks; NULL: none */
	const char *instead; /* what to do without them */
};

#define BY_VALUE "send the bytes in 'data'"
#define IN_ANSWER "leave it out, and take the bytes from the answer"
#define OPEN .refused = "host_tools", .instead = "use 'tools', which the client runs"
#define STORE .who = ADMINISTRATOR, .why = "uses the workspaces that all clients have saved"
#define PROJECT .why = "copies a directory of the server's machine: use files.put_tar with 'data'"
#define PORTS .why = "opens a port of the server's machine"

/* They have nothing of the host's. */
static const char *const harmless[] = {
	"end",
	"initialize",
	"version",
	"policy.show",
	"policy.check",
	"policy.diff",
	"validate",
	"sanitize",
	"doctor",
	"pod.list",
	"pool.list",
	"cancel",
	"kill",
	"approval.resolve",
	"session.execute",
	"session.context",
	"session.cancel",
	"session.interrupt",
	"session.inspect",
	"session.install",
	"session.restart",
	"session.close",
	"session.describe",
	"session.setenv",
	"session.list",
	"session.fork",
	"session.exposed",
	"session.command",
	"process.list",
	"process.wait",
	"process.kill",
	"process.signal",
	"process.resize",
	"process.write",
	"process.output",
	"files.read",
	"files.write",
	"files.append",
	"files.list",
	"files.stat",
	"files.mkdir",
	"files.move",
	"files.remove",
	"files.rm",
	"files.watch",
	"files.changes",
	"files.unwatch",
	"snapshot.create",
	"snapshot.restore",
	"snapshot.remove",
	"snapshot.list",
	"pool.execute",
	"pool.acquire",
	"pool.status",
	"pool.close",
	"mount",
	"offload",
	"rehydrate",
	"run",
	"env.set",
	"env.get",
	"sandbox.suspend",
	"sandbox.resume",
	"sandbox.list",
	"sandbox.remove",
	"sandbox.destroy",
	"sandbox.fork",
	"shell.history.list",
	"shell.history.clear",
};

static const struct rule rules[] = {
	/* Some parameters name what is the host's. */
	{ .method = "session.open", .who = ANYBODY, OPEN },
	{ .method = "session.run", .who = ANYBODY, OPEN },
	{ .method = "pool.open", .who = ANYBODY, OPEN },
	{ .method = "create", .who = ANYBODY, OPEN },
	{ .method = "sandbox.create", .who = ANYBODY, OPEN },
	{ .method = "fetch",
	  .who = ANYBODY,
	  .refused = "ca_file",
	  .instead = "the server's authorities are used" },
	{ .method = "files.put_tar", .who = ANYBODY, .refused = "from", .instead = BY_VALUE },
	{ .method = "files.get_tar", .who = ANYBODY, .refused = "to", .instead = IN_ANSWER },
	{ .method = "files.import", .who = ANYBODY, .refused = "from", .instead = BY_VALUE },
	{ .method = "files.export", .who = ANYBODY, .refused = "to", .instead = IN_ANSWER },
	{ .method = "persistence.import", .who = ANYBODY, .refused = "from", .instead = BY_VALUE },
	{ .method = "persistence.export", .who = ANYBODY, .refused = "to", .instead = IN_ANSWER },
	{ .method = "saved.import", STORE, .refused = "from", .instead = BY_VALUE },
	{ .method = "export.read", STORE, .refused = "to", .instead = IN_ANSWER },
	/* What all clients of the server share. */
	{ .method = "saved.list", STORE },
	{ .method = "saved.read", STORE },
	{ .method = "saved.remove", STORE },
	{ .method = "export.list", STORE },
	{ .method = "export.diff", STORE },
	{ .method = "doctor.prove", .who = ADMINISTRATOR, .why = "attacks the server's machine" },
	/* The host's own. */
	{ .method = "files.upload",
	  .why = "reads a file of the server's machine: use files.append" },
	{ .method = "files.download",
	  .why = "writes a file of the server's machine: use files.read" },
	{ .method = "project.open", PROJECT },
	{ .method = "project.diff", PROJECT },
	{ .method = "project.apply", PROJECT },
	{ .method = "project.close", PROJECT },
	{ .method = "session.expose", PORTS },
	{ .method = "session.unexpose", PORTS },
	{ .method = "audit.verify",
	  .why = "reads a file of the server's machine: run cordon audit verify" },
	{ .method = "pod.add",
	  .why = "changes the commands of all clients: run cordon pod add there" },
	{ .method = "pod.remove",
	  .why = "changes the commands of all clients: run cordon pod remove there" },
};

static bool is_harmless(const char *method)
{
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (str_eq(harmless[i], method))
			return true;
	return false;
}

static const struct rule *find(const char *method)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (str_eq(rules[i].method, method))
			return &rules[i];
	return NULL;
}

/* The first parameter of the list that is given; NULL: none. */
static const char *find_given(const char *list, const json_t *params, char *ret, size_t size)
{
	for (const char *at = list; at && *at;) {
		at += strspn(at, " ");
		size_t n = strcspn(at, " ");
		if (n >= size)
			return NULL;
		memcpy(ret, at, n);
		ret[n] = '\0';
		if (json_object_get(params, ret))
			return ret;
		at += n;
	}
	return NULL;
}

int remote_methods_permit(const struct rpc_method *m, const json_t *params, bool is_admin,
			  struct cordon_error **reterr)
{
	const struct rule *r = find(m->name);
	char name[32];

	if (is_harmless(m->name))
		return 0;
	if (!r)
		return err_set(reterr, CORDON_DENIED,
			       "%s is not offered by a server: use the local program", m->name);
	if (r->who == NOBODY || (r->who == ADMINISTRATOR && !is_admin))
		return err_set(reterr, CORDON_DENIED, "%s is not offered by a server%s: it %s",
			       m->name, r->who == NOBODY ? "" : " without an administrator's key",
			       r->why);
	if (find_given(r->refused, params, name, sizeof(name)))
		return err_set(reterr, CORDON_DENIED,
			       "'%s' of %s names something of the server's machine: %s", name,
			       m->name, r->instead);
	return 0;
}
