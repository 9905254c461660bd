/* prove/attack_package.c - see attack_package.h. An installation takes seconds, so one build step
 * runs attack_NAME of all these attacks. What came of each is in the package, where the session
 * reads it. For PROBE_SIBLING, another session then installs a package whose build step is
 * sibling_NAME. */
#include "prove/attack_package.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cordon/files.h"
#include "cordon/packages.h"
#include "cordon/session.h"
#include "policy/public.h"
#include "prove/attack_python.h"
#include "prove/package_server.h"
#include "session/leftovers.h"
#include "wall/wall.h"

/* What the session has, and no package may see. */
#define PRIVATE_FILE "/home/user/cordon-private"

#define BUILD                                                                                      \
	"\nimport zipfile\n"                                                                       \
	"def build_wheel(where, *_):\n"                                                            \
	"    name, info = '" PACKAGE_NAME "-1.0-py3-none-any.whl', '" PACKAGE_NAME                 \
	"-1.0.dist-info/'\n"                                                                       \
	"    said = {name: try_attack(%s + name, WORDS) for name in NAMES}\n"                      \
	"    with zipfile.ZipFile(os.path.join(where, name), 'w') as z:\n"                         \
	"        z.writestr('" PACKAGE_NAME ".py', 'said = ' + repr(said))\n"                      \
	"        z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: " PACKAGE_NAME       \
	"\\nVersion: 1.0\\n')\n"                                                                   \
	"        z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: cordon\\n"            \
	"Root-Is-Purelib: true\\nTag: py3-none-any\\n')\n"                                         \
	"        z.writestr(info + 'RECORD', '')\n"                                                \
	"    return name\n"

/* The attacks, what they must know, and the backend that calls them. role: a text of Python. */
static int put_package(const struct trial_options *o, const char *role, const json_t *names,
		       struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(o->policy)->attacks();
	cleanup_buf struct buf code = { 0 };
	cleanup_json json_t *words = attack_python_words(o->bait);
	cleanup_free char *text = words ? json_text(words, NULL) : NULL;
	cleanup_free char *list = json_text(names, NULL);

	buf_init(&code, 1 << 18);
	if (!text || !list || buf_add(&code, wall.python, wall.python_len) < 0 ||
	    buf_printf(&code, "\nWORDS, NAMES = %s, %s\n" BUILD, text, list, role) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return package_server_set(o->bait->packages, buf_text(&code), code.len, reterr);
}

static int set_policy(const struct trial_options *o, struct policy *p, struct cordon_error **reterr)
{
	cleanup_free char *index = str_printf("packages.pip_index=http://127.0.0.1:%u/simple",
					      package_server_port(o->bait->packages));
	const char *const sets[] = { "packages.pip=" PACKAGE_NAME, "workspace_exec=true",
				     "packages.bytes=32M", index };
	int r = index ? policy_copy(p, o->policy, reterr)
		      : err_set(reterr, CORDON_NOMEM, "out of memory");

	for (size_t i = 0; r == 0 && i < sizeof(sets) / sizeof(*sets); i++)
		r = policy_apply_set(p, sets[i], reterr);
	return r;
}

static int open_session(const struct trial_options *o, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	struct cordon_policy policy = { 0 };
	struct cordon_session_options options = { .guest = "python", .policy = &policy };
	const char *secret = o->bait->secret;

	int r = set_policy(o, &policy.p, reterr);
	if (r == 0)
		r = cordon_session_open(&options, ret, reterr);
	policy_done(&policy.p);
	if (r < 0)
		return r;
	r = cordon_file_write(*ret, PRIVATE_FILE, secret, strlen(secret), reterr);
	if (r < 0)
		*ret = cordon_session_close(*ret);
	return r;
}

static int read_said(struct cordon_session *s, json_t **ret, struct cordon_error **reterr)
{
	struct cordon_execute_options x = { .code = "import " PACKAGE_NAME "; " PACKAGE_NAME
						    ".said" };
	struct cordon_result *result = NULL;
	int r = cordon_session_execute(s, &x, &result, reterr);

	if (r < 0)
		return r;
	const char *text = cordon_result_value_json(result);
	if (text)
		(void)json_parse(text, strlen(text), 0, ret, NULL);
	cordon_result_free(result);
	return 0;
}

/* What to say of attacks that were not carried out. Without pip there is nothing to attack. */
static void note_failure(int r, const struct cordon_error *why, const json_t *names, json_t *said)
{
	cleanup_free char *text = str_printf("failed: %.200s", cordon_error_message(why));
	size_t i;
	json_t *name;

	json_array_foreach(names, i, name)
	{
		json_object_set_new(said, json_string_value(name),
				    json_string(r == -CORDON_UNSUPPORTED ? "not here"
						: text                   ? text
									 : "failed"));
	}
}

/* Installs a package that tries these, for a new session. said: {name: what came of it} */
static int try_build(const struct trial_options *o, const char *role, const json_t *names,
		     json_t *said, struct cordon_error **reterr)
{
	static const char *const packages[] = { PACKAGE_NAME, NULL };
	struct cordon_install_options options = { .names = packages };
	cleanup_error struct cordon_error *why = NULL;
	cleanup_json json_t *now = NULL;
	struct cordon_session *s = NULL;
	int r = put_package(o, role, names, reterr);

	if (r == 0)
		r = open_session(o, &s, reterr);
	if (r < 0)
		return r;
	int failed = cordon_session_install(s, &options, NULL, &why);
	if (failed < 0)
		note_failure(failed, why, names, said);
	else
		r = read_said(s, &now, reterr);
	if (now)
		(void)json_object_update(said, now);
	cordon_session_close(s);
	return r;
}

/* All attacks that are build steps, at once. A process that one of them left must be gone when the
 * installation is over. */
static int try_all(const struct trial_options *o, struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(o->policy)->attacks();
	cleanup_json json_t *names = json_array();
	json_t *said = o->bait->built;

	for (size_t i = 0; i < wall.count; i++)
		if (wall.table[i].flags & PROBE_BUILD)
			json_array_append_new(names, json_string(wall.table[i].name));
	int r = try_build(o, "'attack_'", names, said, reterr);
	for (size_t i = 0; r == 0 && i < wall.count; i++) {
		const struct attack *a = &wall.table[i];
		const char *was = json_string_value(json_object_get(said, a->name));

		if ((a->flags & PROBE_BUILD) && (a->flags & PROBE_SURVIVOR) &&
		    str_eq(was, "worked") && leftovers_end(o->bait->marker) == 0)
			json_object_set_new(said, a->name,
					    json_string("refused nothing left of it"));
	}
	return r;
}

int attack_package_inside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr)
{
	const char *name = o->attack->name;
	json_t *said = o->bait->built;
	struct trial t = { .outcome = TRIAL_BROKEN, .said = "nothing was said" };
	int r = json_object_get(said, name) ? 0 : try_all(o, reterr);
	const char *was = json_string_value(json_object_get(said, name));

	if (r == 0 && (o->attack->flags & PROBE_SIBLING) && str_eq(was, "worked")) {
		cleanup_json json_t *one = json_pack("[s]", name);
		r = one ? try_build(o, "'sibling_'", one, said, reterr)
			: err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	was = json_string_value(json_object_get(said, name));
	if (was)
		attack_python_said(was, &t);
	if (r == 0)
		*ret = t;
	return r;
}
