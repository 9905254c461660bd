/* cli/main.c - finds the verb, reads its options, runs it. */
#include <cordon/cordon.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "base/os.h"
#include "base/random.h"
#include "base/str.h"
#include "cli/verb.h"

enum { DESCRIPTORS_MAX = 65536 };

static int run_verb(struct cli *c, int argc, char **argv)
{
	int count = 0;
	int status = cli_parse(c, argc, argv, &count);

	if (status != 0)
		return status;
	if (cli_has(c, "help")) {
		verb_print_help(c, c->verb);
		return 0;
	}
	return c->verb->run(c, count, argv);
}

static int choose(struct cli *c, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name)
		name = "help"; /* no arguments: show the help */
	if (str_eq(name, "--version") || str_eq(name, "-V"))
		name = "version";
	else if (str_eq(name, "--help") || str_eq(name, "-h"))
		name = "help";
	const struct verb *v = verb_find(name);
	if (v) {
		c->verb = v;
		return argc > 1 ? run_verb(c, argc - 2, argv + 2) : run_verb(c, 0, argv + 1);
	}
	const char *kind = name[0] == '-' ? "option" : "verb", *nearest = verb_nearest(name);
	if (nearest && name[0] != '-')
		return cli_usage(c, "unknown verb '%s'; did you mean '%s'?", name, nearest);
	return cli_usage(c, "unknown %s '%s'", kind, name);
}

/* As random as jansson's own seed, which would open a file. */
static void seed_json(void)
{
	size_t seed;

	random_bytes(&seed, sizeof(seed));
	json_object_seed(seed);
}

/* Opens missing standard streams. Otherwise the next file we open would get that number, and the
 * code's output would go there. Opened for reading only, so writing to it is an error. */
static bool fill_ends(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			return false;
	return true;
}

/* A session needs some twenty descriptors, a pool many times that. The usual soft limit of 1024 is
 * for programs with select(2), which this one does not use. Code in a sandbox has its own
 * limits. */
static void raise_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= DESCRIPTORS_MAX)
		return;
	l.rlim_cur = l.rlim_max < DESCRIPTORS_MAX ? l.rlim_max : DESCRIPTORS_MAX;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

int main(int argc, char **argv)
{
	struct cli c;

	if (!fill_ends())
		return cordon_code_exit_status(CORDON_OS);
	raise_descriptors();
	os_memory_release();
	/* Where a limit on the size of files is met, a workspace or an audit log cannot be written:
	 * an error to be told, not the end of the program. */
	(void)signal(SIGXFSZ, SIG_IGN);
	seed_json();
	cli_init(&c);
	int status = choose(&c, argc, argv);
	/* A full disk behind stdout must not look like success. */
	if (fflush(stdout) != 0 && status == 0) {
		cli_error(&c, "cannot write to standard output");
		status = cordon_code_exit_status(CORDON_OS);
	}
	cli_done(&c);
	return status;
}
