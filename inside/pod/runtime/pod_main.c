/* inside/pod/runtime/pod_main.c - cordon-pod: runs a program of the image behind the door. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/guests/sh/host_wire.h"
#include "inside/guests/sh/shell_check.h"
#include "inside/pod/runtime/agent.h"
#include "inside/pod/runtime/bridge.h"
#include "inside/pod/runtime/checkpoint.h"
#include "inside/pod/runtime/door.h"
#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/instance.h"
#include "inside/pod/runtime/module.h"
#include "inside/pod/runtime/path.h"
#include "inside/pod/runtime/pod_seal.h"
#include "inside/pod/runtime/run.h"
#include "inside/pod/runtime/syntax.h"
#include "wall/linux/format.h"

#define MAX_FDS 1024
#define OUR_FDS 16

struct options {
	const char *root;       /* a directory; NULL: the sandbox has set the root */
	const char *commands;   /* allowlist; NULL: all */
	const char *modules[2]; /* directories of added commands; NULL: none */
	uint64_t memory;        /* bytes per process; 0: 4 GiB */
	uint64_t files;         /* descriptors per process, including ours; 0: the kernel's limit */
	int serve;              /* the agent's descriptor, or -1 */
	int denials;            /* where refused commands are reported, or -1 */
	bool seal;              /* load the door's own filter */
	bool network;           /* HTTP_PROXY names the gateway, the only address */
	bool warm;              /* start Python once and resume it from a snapshot */
	/* 'W': a session, with docs/wire.md on descriptor 3 · 'T': a template · 'V': check shell
	 * code on stdin without running it · 'P': print the seal's filter · 0: none of these */
	char mode;
};

static int usage(FILE *to, int status)
{
	fputs("usage: cordon-pod [options] PROGRAM [ARGUMENT...]\n"
	      "       cordon-pod [options] --serve FD\n"
	      "  --root DIR       paths are beneath DIR (for use without a wall)\n"
	      "  --commands LIST  the only commands that may be executed\n"
	      "  --modules DIR    commands added to the image's, as cordon pod add makes them; "
	      "twice\n"
	      "  --memory BYTES   of one process\n"
	      "  --files COUNT    open files of one process\n"
	      "  --denials FD     a socket on which refused commands are reported\n"
	      "  --seal           a system call filter with the door's own list\n"
	      "  --network        programs may connect to the proxy of HTTP_PROXY, on loopback\n"
	      "  --warm           make a snapshot of a started Python first\n"
	      "  --serve FD       be a session's agent: see docs/pod.md\n"
	      "  --wire           be a session of cordon's: see docs/wire.md\n"
	      "  --template       fork such sessions\n"
	      "  --validate       check the shell code on standard input; run nothing\n"
	      "  --show-seal      print the filter of --seal, in hexadecimal\n"
	      "  --version        print the versions of Cordon, the shell and Python\n"
	      "  --list           print the commands of the image\n"
	      "  --door           print the system calls a program may make, and why\n",
	      to);
	return status;
}

static int list_commands(void)
{
	for (size_t i = 0; i < pod_command_count; i++)
		printf("%s\t%s\n", pod_commands[i].name, pod_commands[i].program->name);
	return 0;
}

static int list_door(void)
{
	for (size_t i = 0; i < door_count; i++)
		printf("%-20s %s\n", door_table[i].name, door_table[i].reason);
	return 0;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "cordon-pod: %s: %s\n", what, strerror(error < 0 ? -error : error));
	return 125;
}

/* A template's sessions get their own limit when they are sealed. */
static int limit_descriptors(const struct options *o, const struct rlimit *rl)
{
	if (o->mode == 'T')
		return 0;
	return setrlimit(RLIMIT_NOFILE, rl) ? -errno : 0;
}

/* Moves our descriptors above the guest's and closes everything else that was inherited. */
static int arrange_descriptors(struct w2c_sys *p, const struct options *o)
{
	struct rlimit rl;
	int from[PRIVATE_COUNT], root = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return -errno;
	if (rl.rlim_cur > MAX_FDS)
		rl.rlim_cur = MAX_FDS;
	if (o->files && rl.rlim_cur > o->files)
		rl.rlim_cur = o->files;
	if (rl.rlim_cur < (rlim_t)2 * OUR_FDS)
		return -EMFILE;
	p->fd_limit = p->fd_soft = (int)rl.rlim_cur - OUR_FDS;
	if (o->root) {
		root = open(o->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -errno;
	}
	for (int i = 0; i < PRIVATE_COUNT; i++)
		from[i] = p->fds[i] = -1;
	from[PRIVATE_ROOT] = root;
	from[PRIVATE_DENIALS] = o->denials;
	from[PRIVATE_AGENT] = o->serve;
	from[PRIVATE_NULL] = null;
	for (int i = 0; i < PRIVATE_COUNT; i++) {
		if (from[i] < 0)
			continue;
		p->fds[i] = fcntl(from[i], F_DUPFD, p->fd_limit);
		if (p->fds[i] < 0)
			return -errno;
	}
	/* A template keeps what forking a session needs (inside/lib/fork.c). */
	syscall(SYS_close_range,
		o->mode == 'T'   ? INIT_FD_CGROUP
		: o->mode == 'W' ? 4
				 : 3,
		p->fd_limit - 1, 0);
	syscall(SYS_close_range, p->fd_limit + PRIVATE_COUNT, ~0u, 0);
	return limit_descriptors(o, &rl);
}

static int enter_root(struct w2c_sys *p, const struct options *o)
{
	if (o->root) {
		p->rooted = true;
		if (!realpath(o->root, p->root))
			return -errno;
		if (!strcmp(p->root, "/"))
			p->root[0] = 0;
		if (chdir(o->root))
			return -errno;
	}
	path_find_proc(p);
	return 0;
}

static const struct option known[] = {
	{ "root", required_argument, NULL, 'r' },
	{ "commands", required_argument, NULL, 'c' },
	{ "modules", required_argument, NULL, 'M' },
	{ "memory", required_argument, NULL, 'm' },
	{ "files", required_argument, NULL, 'f' },
	{ "denials", required_argument, NULL, 'd' },
	{ "serve", required_argument, NULL, 's' },
	{ "seal", no_argument, NULL, 'S' },
	{ "network", no_argument, NULL, 'n' },
	{ "warm", no_argument, NULL, 'w' },
	{ "wire", no_argument, NULL, 'W' },
	{ "template", no_argument, NULL, 'T' },
	{ "validate", no_argument, NULL, 'V' },
	{ "show-seal", no_argument, NULL, 'P' },
	{ "list", no_argument, NULL, 'l' },
	{ "door", no_argument, NULL, 'D' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'v' },
	{ 0 },
};

static int parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		switch (c) {
		case 'r':
			o->root = optarg;
			break;
		case 'c':
			o->commands = optarg;
			break;
		case 'M':
			o->modules[o->modules[0] != NULL] = optarg;
			break;
		case 'm':
			o->memory = strtoull(optarg ? optarg : "", NULL, 10);
			break;
		case 'f':
			o->files = strtoull(optarg ? optarg : "", NULL, 10);
			break;
		case 'd':
			o->denials = (int)strtol(optarg ? optarg : "", NULL, 10);
			break;
		case 's':
			o->serve = (int)strtol(optarg ? optarg : "", NULL, 10);
			break;
		case 'S':
			o->seal = true;
			break;
		case 'n':
			o->network = true;
			break;
		case 'w':
			o->warm = true;
			break;
		case 'W':
		case 'T':
		case 'V':
		case 'P':
			o->mode = (char)c;
			break;
		case 'l':
			exit(list_commands());
		case 'D':
			exit(list_door());
		case 'h':
			exit(usage(stdout, 0));
		case 'v':
			exit(puts(pod_version) < 0);
		default:
			return -EINVAL;
		}
	}
	return optind < argc || o->serve >= 0 || o->mode ? 0 : -EINVAL;
}

/* The port of "http://127.0.0.1:PORT"; 0: another address. */
static uint16_t gateway_port(void)
{
	static const char prefix[] = "http://127.0.0.1:";
	const char *url = getenv("HTTP_PROXY");
	unsigned long port = 0;

	if (url && !strncmp(url, prefix, sizeof prefix - 1))
		port = strtoul(url + sizeof prefix - 1, NULL, 10);
	return port < 65536 ? (uint16_t)port : 0;
}

/* Everything that needs the machine, before any guest code runs. */
static int prepare(struct w2c_sys *p, const struct options *o)
{
	const char *unknown = NULL;
	int r;

	door_init();
	p->gateway_port = o->network ? gateway_port() : 0;
	if (instance_open(o->memory))
		return fail("memory reservation", errno);
	r = arrange_descriptors(p, o);
	if (r)
		return fail("descriptors", r);
	r = enter_root(p, o);
	if (r)
		return fail(o->root, r);
	r = image_open(p);
	if (r)
		return fail("the image's /usr/bin", r);
	for (int i = 0; i < 2 && o->modules[i]; i++) {
		r = module_open(p, o->modules[i]);
		if (r)
			return fail(o->modules[i], r);
	}
	r = o->commands ? image_allow(p, o->commands, &unknown) : 0;
	if (r)
		return fail("commands", r);
	if (unknown && o->mode != 'W' && o->mode != 'T') {
		fprintf(stderr, "cordon-pod: --commands: no such command: %s\n", unknown);
		return 2;
	}
	if (o->mode != 'T') /* its sessions must write their id maps first */
		prctl(PR_SET_DUMPABLE, 0);
	return 0;
}

int main(int argc, char **argv, char **envp)
{
	static struct w2c_sys process;
	struct options o = { .serve = -1, .denials = -1 };
	char token[HOST_TOKEN_DIGITS + 1];
	int r;

	if (parse(argc, argv, &o))
		return usage(stderr, 2);
	if (o.mode == 'P') {
		seal_print(o.network);
		return 0;
	}
	r = prepare(&process, &o);
	if (r)
		return r;
	if (o.warm)
		checkpoint_make(&process);
	host_take_token(token);
	if (o.mode == 'T')
		return bridge_serve(&process, envp, template_serve(&process, token), o.seal);
	if (o.mode == 'W')
		return bridge_serve(&process, envp, token, o.seal);
	if (o.seal && (r = seal_install(process.gateway_port != 0)))
		return fail("seccomp", r);
	if (o.mode == 'V') {
		syntax_use(&process);
		return shell_check_main();
	}
	if (o.serve >= 0)
		return serve_requests(&process, envp);
	r = image_choose(&process, argv[optind]);
	if (r) {
		fprintf(stderr, "cordon-pod: %s: %s\n", argv[optind], strerror(-r));
		return r == -ENOENT ? 127 : 126;
	}
	r = image_arguments(&process, argv + optind, envp);
	if (r)
		return fail("arguments", r);
	run_programs(&process);
}
