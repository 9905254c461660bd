/* prove/doctor.c - cordon_doctor: what this machine can enforce, layer by layer, and its guests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cordon/cordon.h"
#include "guest/guest.h"
#include "guest/languages.h"
#include "policy/policy.h"
#include "wall/wall.h"

enum { VERSION_MS = 10000 };

/* Runs the interpreter in the sandbox to get its version, so it is known to start there. */
static int ask_version(enum guest_kind kind, const struct policy *p, char *ret, size_t size,
		       struct cordon_error **reterr)
{
	cleanup_launch struct launch l = { 0 };
	cleanup_box struct box *box = NULL;
	struct guest_options o = { .kind = kind, .mode = GUEST_SCRIPT, .policy = p, .code = "" };
	int out[2];

	int r = guest_launch(&o, &l, reterr);
	if (r < 0)
		return r;
	cleanup_free char *program = str_dup(l.executable);
	const char *const argv[] = { guest_name(kind), "--version", NULL };
	strlist_done(&l.argv);
	free(l.executable);
	l.executable = NULL;
	if (!program || language_command(&l, program, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch");
	if (pipe(out) != 0)
		return err_errno(reterr, errno, "open a pipe");
	struct box_options options = { .policy = p,
				       .launch = &l,
				       .stdin_fd = -1,
				       .stdout_fd = out[1],
				       .stderr_fd = out[1],
				       .wire_fd = -1 };
	r = box_start(&options, &box, reterr);
	close(out[1]);
	if (r == 0 && box_wait_gone(box, deadline_after_ms(VERSION_MS)))
		r = box_failure(box, reterr);
	ssize_t n = r == 0 ? read(out[0], ret, size - 1) : 0;
	close(out[0]);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (r < 0)
		return r;
	/* An interpreter that fails has no version: its message is the reason. */
	int status = box_look(box).wait_status;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "it does not tell its version: %s",
			       ret[0] ? ret : "it printed nothing");
	return 0;
}

static json_t *guests_json(const struct policy *p)
{
	static const enum guest_kind kinds[] = { GUEST_KIND_PYTHON, GUEST_KIND_R, GUEST_KIND_NODE,
						 GUEST_KIND_SH, GUEST_KIND_POD };
	json_t *a = json_array();

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		cleanup_error struct cordon_error *e = NULL;
		char version[160] = "";
		int r = ask_version(kinds[i], p, version, sizeof(version), &e);
		json_t *o = json_object();

		json_object_set_new(o, "guest", json_string(guest_name(kinds[i])));
		json_object_set_new(o, "there", json_boolean(r == 0));
		json_object_set_new(o, "version",
				    r == 0 ? json_string_lossy(version, strlen(version))
					   : json_null());
		json_object_set_new(o, "why",
				    r == 0 ? json_null() : json_string(cordon_error_message(e)));
		json_array_append_new(a, o);
	}
	return a;
}

int cordon_doctor(char **ret_json, struct cordon_error **reterr)
{
	cleanup_json json_t *o = json_object();
	struct wall_probe wall;
	struct policy p;
	struct utsname u;

	int r = policy_init_level(&p, LEVEL_STANDARD, reterr);
	if (r < 0)
		return r;
	(void)uname(&u);
	json_object_set_new(o, "version", json_string(cordon_version()));
	json_object_set_new(o, "kernel", json_string(u.release));
	json_object_set_new(o, "machine", json_string(u.machine));
	wall_probe(&p, &wall, o);
	if (!wall.has_namespaces) /* then show what its guests can do on that rung */
		p.require &= ~(uint32_t)LAYERS_NAMESPACES;
	json_object_set_new(o, "guests", guests_json(&p));
	policy_done(&p);
	*ret_json = json_text(o, NULL);
	return *ret_json ? 0 : err_errno(reterr, ENOMEM, "the ladder");
}
