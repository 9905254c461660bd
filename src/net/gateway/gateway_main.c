/* net/gateway/gateway_main.c - cordon-gateway CONFIG_FD CONTROL_FD RELAY_FD: a process that parses
 * what the guest sends, so that the host program need not. Started by net/host/gateway.c. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/os.h"
#include "net/gateway/confine.h"
#include "net/gateway/hub.h"

/* Drops what it does not need: core dumps, the host's uid, most descriptors. */
static int settle(const struct config *c, struct cordon_error **reterr)
{
	struct rlimit none = { 0 }, files = { 4096, 4096 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_NOFILE, &files);
	(void)signal(SIGPIPE, SIG_IGN);
	if (c->gid &&
	    (setgroups(0, NULL) < 0 || setresgid((gid_t)c->gid, (gid_t)c->gid, (gid_t)c->gid) < 0))
		return err_errno(reterr, errno, "become group %u", (unsigned)c->gid);
	if (c->uid && setresuid((uid_t)c->uid, (uid_t)c->uid, (uid_t)c->uid) < 0)
		return err_errno(reterr, errno, "become user %u", (unsigned)c->uid);
	/* After changing the uid, which resets it. */
	int r = os_process_hide();
	return r < 0 ? err_errno(reterr, -r, "not dumpable") : 0;
}

static int read_config(int fd, struct config *ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_json json_t *obj = NULL;

	buf_init(&text, CONFIG_MAX_BYTES);
	int r = file_read_to_end(fd, &text, reterr);
	if (r == 0)
		r = json_parse(buf_text(&text), text.len, CONFIG_MAX_BYTES, &obj, reterr);
	if (r == 0)
		r = config_read(obj, ret, reterr);
	if (text.data)
		explicit_bzero(text.data, text.len);
	return r;
}

static int serve(const int fds[static 3], struct cordon_error **reterr)
{
	cleanup_config struct config config = { 0 };
	cleanup_loop struct loop *l = NULL;
	struct confine_result confined = { 0 };
	struct hub *hub = NULL;

	int r = read_config(fds[0], &config, reterr);
	(void)close(fds[0]);
	if (r == 0)
		r = settle(&config, reterr);
	if (r == 0)
		r = loop_new(&l, reterr);
	if (r == 0)
		r = hub_new(l, &config, fds[1], fds[2], &hub, reterr);
	if (r == 0) /* after TLS has loaded its authorities, before the first byte of the guest */
		r = confine_self(hub->config.ca_file, &confined, reterr);
	if (r == 0) {
		hub_tell_ready(hub, &confined);
		host_request_start(hub->request);
	}
	if (r == 0)
		r = loop_run(l, reterr);
	hub_free(hub);
	return r;
}

/* The host program waits for the first message. It gets the reason. */
static void report(int fd, const struct cordon_error *e)
{
	cleanup_buf struct buf reason = { 0 };
	size_t len = 0;

	buf_init(&reason, 4096);
	for (const struct cordon_error *c = e; c; c = cordon_error_cause(c))
		(void)buf_printf(&reason, "%s%s", c == e ? "" : ": ", cordon_error_message(c));
	cleanup_json json_t *line = json_pack("{s:s, s:s, s:o}", "type", "failed", "code",
					      cordon_code_name(cordon_error_code(e)), "reason",
					      json_string_lossy(buf_text(&reason), reason.len));
	cleanup_free char *text = line ? json_text(line, &len) : NULL;
	if (!text || file_write_all(fd, text, len) < 0 || file_write_all(fd, "\n", 1) < 0)
		log_error_chain("cordon-gateway", e);
}

static int parse_fd(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text && !*end && n >= 0 && n < INT_MAX ? (int)n : -1;
}

int main(int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	int fds[3];

	for (int i = 0; i < 3; i++)
		if (argc != 4 || (fds[i] = parse_fd(argv[i + 1])) < 0) {
			fprintf(stderr, "usage: cordon-gateway CONFIG_FD CONTROL_FD RELAY_FD\n");
			return 2;
		}
	int report_fd = fcntl(fds[1], F_DUPFD_CLOEXEC, 3); /* the hub closes its own copy */
	if (serve(fds, &e) == 0)
		return 0;
	report(report_fd, e);
	return 125;
}
