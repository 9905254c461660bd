/* tests/net/turns.c - turns POLICY GUEST DELAY_MS CODE…: executes each code in one session, and
 * approves pending requests after a delay, from another thread ("never": does not). Prints an array
 * of results. For tests/net/guests. */
#include <cordon/cordon.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct approver {
	struct cordon_session *session;
	char id[160], kind[32], what[256];
	unsigned delay_ms, asked;
	bool is_mute;
};

static void *decide(void *arg)
{
	struct approver *d = arg;

	usleep(d->delay_ms * 1000);
	(void)cordon_session_resolve(d->session, d->id, true, NULL, NULL, NULL);
	return NULL;
}

static void on_approval(const struct cordon_approval *a, void *arg)
{
	struct approver *d = arg;
	pthread_t thread;

	snprintf(d->id, sizeof(d->id), "%s", a->id);
	snprintf(d->what, sizeof(d->what), "%s: %s", a->kind, a->what);
	d->asked++;
	if (!d->is_mute && pthread_create(&thread, NULL, decide, d) == 0)
		pthread_detach(thread);
}

int main(int argc, char **argv)
{
	struct approver approver = { .delay_ms =
					     argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0,
				     .is_mute = argc > 3 && strcmp(argv[3], "never") == 0 };
	struct cordon_policy *policy = NULL;
	struct cordon_error *e = NULL;
	json_t *out = json_array();

	if (argc < 5 || cordon_policy_new(NULL, &policy, &e) < 0 ||
	    cordon_policy_apply_json(policy, argv[1], &e) < 0)
		return 2;
	struct cordon_session_options o = { .guest = argv[2],
					    .policy = policy,
					    .approval = on_approval,
					    .approval_arg = &approver };
	if (cordon_session_open(&o, &approver.session, &e) < 0) {
		fprintf(stderr, "turns: %s\n", cordon_error_message(e));
		return 1;
	}
	for (int i = 4; i < argc; i++) {
		struct cordon_execute_options x = { .code = argv[i], .code_len = strlen(argv[i]) };
		struct cordon_result *r = NULL;

		if (cordon_session_execute(approver.session, &x, &r, &e) < 0) {
			fprintf(stderr, "turns: %s\n", cordon_error_message(e));
			return 1;
		}
		json_t *one = json_loads(cordon_result_json(r), 0, NULL);
		json_object_set_new(one, "asked", json_string(approver.what));
		json_object_set_new(one, "times", json_integer(approver.asked));
		json_array_append_new(out, one);
		cordon_result_free(r);
	}
	json_dumpf(out, stdout, 0);
	json_decref(out);
	cordon_session_close(approver.session);
	cordon_policy_free(policy);
	return 0;
}
