/* cli/init.c - `cordon init`: asks what the code is for, and writes a policy file and its
 * explanation. */
#include <cordon/cordon.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/choice.h"
#include "cli/policy_file.h"
#include "cli/profile_option.h"
#include "cli/verb.h"

#define DEFAULT_FILE "cordon.json"
#define FOLDER "/data"

enum { ANSWER_BYTES = 4200 }; /* a terminal's line has at most 4096 */

/* No answer is the least. */
static int choose_purpose(struct cordon_policy **p, const char *answer,
			  struct cordon_error **reterr)
{
	struct cordon_policy *chosen = NULL;
	int r = choice_named(answer[0] ? answer : "strict", &chosen, reterr);

	if (r < 0)
		return r;
	cordon_policy_free(*p);
	*p = chosen;
	return 0;
}

static int add_hosts(struct cordon_policy **p, const char *answer, struct cordon_error **reterr)
{
	cleanup_free char *hosts = str_dup(answer);
	size_t len = 0;

	if (!hosts)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (; *answer; answer++)
		if (*answer != ' ' && *answer != '\t')
			hosts[len++] = *answer;
	hosts[len] = '\0';
	return len ? choice_set(*p, "network.allow+=", hosts, reterr) : 0;
}

static int add_folder(struct cordon_policy **p, const char *answer, struct cordon_error **reterr)
{
	cleanup_free char *mount = str_printf("%s:" FOLDER ":ro", answer);

	if (!answer[0])
		return 0;
	if (access(answer, R_OK) != 0)
		return err_errno(reterr, errno, "'%s'", answer);
	return mount ? choice_add_mount(*p, mount, reterr)
		     : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static const struct question {
	const char *text;
	int (*apply)(struct cordon_policy **p, const char *answer, struct cordon_error **reterr);
} questions[] = {
	{ "1. What is the code for? One of the profiles above, or a level: permissive, standard, "
	  "strict.\n   [strict] ",
	  choose_purpose },
	{ "2. Which more hosts may it reach? Separate them by commas.\n   [none] ", add_hosts },
	{ "3. Which folder of this machine may it read, as " FOLDER "?\n   [none] ", add_folder },
};

/* Asks again after a bad answer. */
static int ask(const struct cli *c, const struct question *q, struct cordon_policy **p,
	       struct cordon_error **reterr)
{
	char answer[ANSWER_BYTES];

	for (;;) {
		cleanup_error struct cordon_error *e = NULL;

		fputs(q->text, stderr);
		if (!fgets(answer, sizeof(answer), stdin))
			return err_set(reterr, CORDON_CANCELLED,
				       "there was no answer: nothing was written");
		answer[strcspn(answer, "\n")] = '\0';
		if (q->apply(p, answer, &e) == 0)
			return 0;
		(void)cli_fail(c, e);
	}
}

static int ask_all(const struct cli *c, struct cordon_policy **ret, struct cordon_error **reterr)
{
	cleanup_choice struct cordon_policy *p = NULL;
	int r = 0;

	(void)profile_print_all(c);
	(void)putchar('\n');
	(void)fflush(stdout);
	for (size_t i = 0; r == 0 && i < sizeof(questions) / sizeof(*questions); i++)
		r = ask(c, &questions[i], &p, reterr);
	if (r == 0)
		r = cordon_policy_check(p, reterr);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

/* cordon.json has its explanation in cordon.txt: JSON has no comments. */
static char *name_of_text(const char *path)
{
	size_t len = strlen(path) - (str_ends(path, ".json") ? strlen(".json") : 0);
	cleanup_free char *stem = str_ndup(path, len);

	return stem ? str_printf("%s.txt", stem) : NULL;
}

static char *text_of(const struct cordon_policy *p, const char *path)
{
	cleanup_free char *sentences = cordon_policy_explain(p);

	return sentences
		       ? str_printf("What the policy %s means, as it was written first.\n\n"
				    "  cordon run --policy %s FILE    run a program with it\n"
				    "  cordon policy check %s         after a change: is it valid, "
				    "and what does it mean now?\n"
				    "  cordon policy show %s          every field, also those of "
				    "the level\n\n%s",
				    path, path, path, path, sentences)
		       : NULL;
}

static int save(const struct cli *c, const struct cordon_policy *p, const char *path,
		struct cordon_error **reterr)
{
	cleanup_free char *text_path = name_of_text(path), *text = text_of(p, path);
	bool replaces = cli_has(c, "force");

	if (!text_path || !text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	/* Neither is written if one of them exists. */
	if (!replaces && access(text_path, F_OK) == 0)
		return err_set(reterr, CORDON_EXISTS, "'%s' exists; -f replaces it", text_path);
	int r = policy_file_save(p, path, replaces, reterr);
	if (r == 0)
		r = policy_file_save_text(text, text_path, replaces, reterr);
	if (r == 0)
		printf("%s is the policy, %s explains it. Try: cordon run --policy %s FILE\n", path,
		       text_path, path);
	return r;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *p = NULL;
	cleanup_error struct cordon_error *e = NULL;
	const char *path = argc ? argv[0] : DEFAULT_FILE;

	/* Before the questions, not after them. */
	if (!cli_has(c, "force") && access(path, F_OK) == 0) {
		(void)err_set(&e, CORDON_EXISTS, "'%s' exists; -f replaces it", path);
		return cli_fail(c, e);
	}
	if (choice_is_given(c)) {
		if (choice_policy(c, NULL, &p, &e) < 0)
			return choice_fail(c, e);
	} else if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		return cli_usage(c,
				 "there is no terminal to ask on: give --profile or --level, and "
				 "--allow-host, --mount or other options instead of answers");
	} else if (ask_all(c, &p, &e) < 0) {
		return cli_fail(c, e);
	}
	return save(c, p, path, &e) < 0 ? cli_fail(c, e) : 0;
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ "force", 'f', NULL, "replace files that exist", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon init", "ask three questions, and write cordon.json and cordon.txt" },
	{ "cordon init --profile web-reader --mount notes:/data:ro reader.json",
	  "the same without questions" },
	{ 0 },
};

const struct verb verb_init = {
	.name = "init",
	.summary = "write a policy file to start from",
	.usage = "[OPTION...] [FILE]",
	.options = options,
	.run = run,
	.about = "Asks what the code is for (a profile or a level), which hosts it may reach and "
		 "which folder it may read, and writes a policy: the level, and what differs from "
		 "it. An empty answer permits nothing. With any option of the policy it asks "
		 "nothing.\n\n"
		 "FILE is " DEFAULT_FILE " unless named. A policy is JSON, which has no comments: "
		 "a second file, which ends in .txt, explains it in sentences. Existing files are "
		 "replaced only with -f.",
	.max_operands = 1,
	.examples = examples,
};
