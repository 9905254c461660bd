/* session/template.c - see template.h. Templates are shared by all sessions of this process with
 * the same guest and policy, so the list of them is the one global of the library; a lock guards
 * it. Sessions of one template share its address layout and hash seed: it is replaced by count and
 * age. */
#include "session/template.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "session/timeline.h"
#include "session/welcome.h"

enum { MAX_FORKS = 1000, MAX_AGE_S = 600, MAX_IDLE = 16, TOKEN_DIGITS = 64, SPAWN_FDS = 9 };

struct template
{
	enum guest_kind kind;
	uint8_t hash[32];
	struct policy policy;
	struct box *box;
	struct wire *wire;
	int null_fd;
	unsigned refs; /* its sessions are inside its pid namespace: they end with it */
	unsigned forks;
	bool is_retired; /* not for new sessions; freed with its last reference */
	uint64_t born_ns, used_ns;
	pthread_mutex_t lock; /* one spawn request at a time */
	struct template *next;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct template *registry;

static struct template *destroy(struct template *t)
{
	if (!t)
		return NULL;
	box_free(t->box);
	wire_free(t->wire);
	close_fdp(&t->null_fd);
	policy_done(&t->policy);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

/* stdin, stdout and stderr of a template are nobody's. */
static int start_box(struct template *t, const char *token, struct cordon_error **reterr)
{
	cleanup_launch struct launch launch = { 0 };
	struct guest_options guest = {
		.kind = t->kind, .mode = GUEST_TEMPLATE, .policy = &t->policy, .token = token
	};
	int pair[2];

	int r = guest_launch(&guest, &launch, reterr);
	if (r < 0)
		return r;
	t->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (t->null_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(reterr, errno, "open the template's wire");
	struct wire_options wire = { .token = token };
	struct box_options box = { .policy = &t->policy,
				   .launch = &launch,
				   .stdin_fd = t->null_fd,
				   .stdout_fd = t->null_fd,
				   .stderr_fd = t->null_fd,
				   .wire_fd = pair[1] };
	r = box_start(&box, &t->box, reterr);
	close(pair[1]);
	if (r == 0)
		r = wire_new(pair[0], &wire, &t->wire, reterr);
	if (r < 0)
		close(pair[0]);
	return r;
}

static int greet(struct template *t, struct cordon_error **reterr)
{
	size_t len;
	cleanup_free char *line =
		welcome_line(&(struct welcome_options){ .policy = &t->policy }, &len);
	deadline_ns deadline = deadline_after_ms(ENGINE_START_MS);
	struct wire_message m;
	int r = line ? box_wait_ready(t->box, deadline, reterr) : -CORDON_NOMEM;

	while (r == 0 && (r = wire_next(t->wire, &m, reterr)) == 0) {
		struct pollfd p = { .fd = wire_fd(t->wire), .events = POLLIN };

		if (wire_is_closed(t->wire))
			return err_set(reterr, CORDON_OS, "the %s template ended while it started",
				       guest_name(t->kind));
		if (poll(&p, 1, deadline_poll_ms(deadline)) == 0)
			return err_set(reterr, CORDON_TIMEOUT,
				       "the %s template did not start in time",
				       guest_name(t->kind));
		r = wire_fill(t->wire, reterr);
		r = r < 0 ? r : 0;
	}
	if (r < 0)
		return r;
	r = wire_send_line(t->wire, line, len, reterr);
	return r < 0 ? r : 0;
}

static int start(enum guest_kind kind, const struct policy *p, const uint8_t hash[static 32],
		 struct template **ret, struct cordon_error **reterr)
{
	char token[TOKEN_DIGITS + 1];
	struct template *t = mem_alloc(sizeof(*t));

	if (!t)
		return err_errno(reterr, ENOMEM, "start a template");
	pthread_mutex_init(&t->lock, NULL);
	t->null_fd = -1;
	t->kind = kind;
	memcpy(t->hash, hash, 32);
	t->born_ns = t->used_ns = clock_now_ns();
	random_hex(token, TOKEN_DIGITS);
	int r = policy_copy(&t->policy, p, reterr);
	if (r == 0)
		r = start_box(t, token, reterr);
	if (r == 0)
		r = greet(t, reterr);
	if (r < 0) {
		destroy(t);
		return r;
	}
	*ret = t;
	return 0;
}

static bool is_worn(const struct template *t)
{
	return t->forks >= MAX_FORKS || clock_now_ns() - t->born_ns > MAX_AGE_S * 1000000000ULL ||
	       box_is_gone(t->box);
}

/* Takes everything out of the list that nobody uses and that is worn, or is too much. */
static struct template *sweep(void)
{
	struct template *out = NULL, **p = &registry;
	unsigned idle = 0;

	while (*p) {
		struct template *t = *p;

		if (is_worn(t))
			t->is_retired = true;
		if (t->refs == 0 && (t->is_retired || ++idle > MAX_IDLE)) {
			*p = t->next;
			t->next = out;
			out = t;
		} else {
			p = &t->next;
		}
	}
	return out;
}

static void destroy_all(struct template *t)
{
	while (t) {
		struct template *next = t->next;

		destroy(t);
		t = next;
	}
}

int template_get(enum guest_kind kind, const struct policy *p, struct template **ret,
		 struct cordon_error **reterr)
{
	uint8_t hash[32];
	struct template *t, *dead;
	int r = policy_hash(p, hash);

	if (r < 0)
		return err_errno(reterr, ENOMEM, "hash the policy");
	pthread_mutex_lock(&registry_lock);
	dead = sweep();
	for (t = registry; t; t = t->next)
		if (t->kind == kind && !t->is_retired && memcmp(t->hash, hash, 32) == 0)
			break;
	if (!t) {
		r = start(kind, p, hash, &t, reterr);
		if (r == 0) {
			t->next = registry;
			registry = t;
		}
	}
	if (r == 0) {
		t->refs++;
		t->used_ns = clock_now_ns();
		*ret = t;
	}
	pthread_mutex_unlock(&registry_lock);
	destroy_all(dead);
	return r;
}

struct template *template_put(struct template *t)
{
	struct template *dead;

	if (!t)
		return NULL;
	pthread_mutex_lock(&registry_lock);
	t->refs--;
	dead = sweep();
	pthread_mutex_unlock(&registry_lock);
	destroy_all(dead);
	return NULL;
}

void template_release_all(void)
{
	struct template *dead;

	pthread_mutex_lock(&registry_lock);
	for (struct template *t = registry; t; t = t->next)
		t->is_retired = true;
	dead = sweep();
	pthread_mutex_unlock(&registry_lock);
	destroy_all(dead);
}

static int send_request(struct template *t, const char *token, const int fds[SPAWN_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(SPAWN_FDS * sizeof(int))];
	} u = { .room = { 0 } };
	char line[128];
	int len = snprintf(line, sizeof(line), "{\"type\":\"spawn\",\"token\":\"%s\"}\n", token);
	struct iovec iov = { .iov_base = line, .iov_len = (size_t)len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };

	u.head.cmsg_level = SOL_SOCKET;
	u.head.cmsg_type = SCM_RIGHTS;
	u.head.cmsg_len = CMSG_LEN(SPAWN_FDS * sizeof(int));
	memcpy(CMSG_DATA(&u.head), fds, SPAWN_FDS * sizeof(int));
	for (;;) {
		ssize_t n = sendmsg(wire_fd(t->wire), &msg, MSG_NOSIGNAL);

		if (n == len)
			return 0;
		if (n >= 0)
			return -EIO; /* a line of 100 bytes is never split by a socket that has room
				      */
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		struct pollfd p = { .fd = wire_fd(t->wire), .events = POLLOUT };
		(void)poll(&p, 1, 1000);
	}
}

int template_fork(struct template *t, struct engine *e, struct cordon_error **reterr)
{
	char token[TOKEN_DIGITS + 1];
	struct engine_ends ends = ENGINE_ENDS_NONE;
	struct box_seat seat = { .control_fd = -1, .status_fd = -1 };

	random_hex(token, TOKEN_DIGITS);
	int r = engine_ends_open(&ends, true, reterr);
	if (r < 0)
		return r;
	r = box_prepare(&t->policy, t->box, &e->box, &seat, reterr);
	if (r < 0) {
		engine_ends_done(&ends);
		return r;
	}
	timeline_mark(e->timeline, TIMELINE_SEATED);
	int fds[SPAWN_FDS] = { ends.wire,      ends.in,    ends.out,   ends.err,  seat.control_fd,
			       seat.status_fd, t->null_fd, t->null_fd, t->null_fd };
	for (int i = 0; i < MACHINE_CONTROLLERS; i++)
		if (seat.cgroup_fds[i] >= 0)
			fds[6 + i] = seat.cgroup_fds[i];
	pthread_mutex_lock(&t->lock);
	r = send_request(t, token, fds);
	t->forks++;
	pthread_mutex_unlock(&t->lock);
	if (r < 0)
		r = err_errno(reterr, -r, "ask the template for a session");
	else
		r = engine_adopt(e, &ends, &t->policy, token, reterr);
	timeline_mark(e->timeline, TIMELINE_ASKED);
	box_seat_done(&seat);
	engine_ends_done(&ends);
	return r;
}
