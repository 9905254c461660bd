/* session/template.c - see template.h. All sessions of this process with the same guest and policy
 * share templates, so the list of them is the library's only global; a lock guards it. Nothing slow
 * happens under that lock: a starting template is already in the list, and only those who need it
 * wait for it. Sessions of one template share its address layout and hash seed, so it is replaced
 * by count and age. */
#include "session/template.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "session/network_stock.h"
#include "session/place_views.h"
#include "session/pulse.h"
#include "session/timeline.h"
#include "session/welcome.h"

/* MAX_FORKS: a template's start takes as much CPU time as thirty sessions, R's as a hundred. A call
 * that meets it waits for a processor, so starts must be rarer than one call in a hundred.
 * AHEAD: the next template is started when this percentage of its life is over. */
enum {
	MAX_FORKS = 10000,
	MAX_AGE_S = 600,
	AHEAD = 75,
	MAX_IDLE = 16,
	TOKEN_DIGITS = 64,
	ENDS = 4, /* the wire and three streams; the rest is the wall's */
	SPAWN_FDS = ENDS + BOX_FORK_FDS,
};

enum state { STARTING, READY, FAILED };

struct template
{
	enum guest_kind kind;
	uint8_t hash[32];
	struct policy policy;
	unsigned languages; /* of places: as in template_key, and so are the tools */
	struct strlist tools;
	struct box *box;
	struct wire *wire;
	struct network_stock *stock; /* gateways for its sessions; NULL: the policy opens none */
	int null_fd;
	unsigned refs; /* its sessions are in its pid namespace and end with it */
	_Atomic unsigned forks;
	enum state state; /* guarded by registry_lock, as are is_retired, is_followed, error, refs
			     and used_ns */
	bool is_retired;  /* no new sessions; freed with its last reference */
	bool is_followed; /* its successor was started */
	struct cordon_error *error; /* why the start failed */
	uint64_t born_ns, used_ns;
	pthread_mutex_t lock; /* one spawn request at a time */
	struct template *next;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t registry_changed = PTHREAD_COND_INITIALIZER;
static struct template *registry;
static unsigned followers; /* threads that start a successor; guarded by registry_lock */

static struct template *destroy(struct template *t)
{
	if (!t)
		return NULL;
	box_free(t->box);
	wire_free(t->wire);
	network_stock_close(t->stock);
	close_fdp(&t->null_fd);
	policy_done(&t->policy);
	strlist_done(&t->tools);
	cordon_error_free(t->error);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

/* One of places has the files of all their languages. */
static int start_with_views(struct template *t, struct box_options *o, struct cordon_error **reterr)
{
	struct place_views views = { 0 };
	int r = t->languages ? place_views_make(t->languages, &t->policy, &t->tools, &views, reterr)
			     : 0;

	o->stays = t->languages != 0;
	o->also = views.list;
	o->also_count = views.count;
	if (r == 0)
		r = box_start(o, &t->box, reterr);
	place_views_done(&views);
	return r;
}

/* A template does not use its stdin, stdout and stderr. */
static int start_box(struct template *t, const char *token, struct cordon_error **reterr)
{
	cleanup_launch struct launch launch = { 0 };
	struct guest_options guest = {
		.kind = t->kind, .mode = GUEST_TEMPLATE, .policy = &t->policy, .token = token
	};
	int pair[2];

	int r = guest_launch(&guest, &launch, reterr);
	if (r == 0)
		r = network_stock_fill(t->stock, t->kind == GUEST_KIND_POD, &launch, reterr);
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
	r = start_with_views(t, &box, reterr);
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
	struct pulse pulse = pulse_begin(t->box, deadline_after_ms(ENGINE_START_MS));
	struct wire_message m;
	int r = line ? pulse_wait_ready(&pulse, t->box, reterr)
		     : err_errno(reterr, ENOMEM, "greet the template");

	while (r == 0 && (r = wire_next(t->wire, &m, reterr)) == 0) {
		if (wire_is_closed(t->wire))
			return err_set(reterr, CORDON_OS, "the %s template ended while it started",
				       guest_name(t->kind));
		r = pulse_wait(&pulse, wire_fd(t->wire), POLLIN, reterr);
		if (r == 0)
			r = wire_fill(t->wire, reterr);
		r = r < 0 ? r : 0;
	}
	if (r < 0)
		return r;
	r = wire_send_line(t->wire, line, len, reterr);
	return r < 0 ? r : 0;
}

/* Back to the state before start_once(). */
static void reset(struct template *t)
{
	t->box = box_free(t->box);
	t->wire = wire_free(t->wire);
	t->stock = network_stock_close(t->stock);
	close_fdp(&t->null_fd);
}

static int start_once(struct template *t, struct cordon_error **reterr)
{
	char token[TOKEN_DIGITS + 1];

	random_hex(token, TOKEN_DIGITS);
	int r = network_stock_open(&t->policy, &t->stock, reterr);
	if (r == 0)
		r = start_box(t, token, reterr);
	if (r == 0)
		r = greet(t, reterr);
	if (r == 0)
		box_find_guest(t->box); /* looked up now, while only this thread uses the box */
	return r;
}

/* True if the starting template was stopped or killed from outside. A start that fails by itself
 * looks different. */
static bool was_lost(struct template *t)
{
	if (!t->box)
		return false;
	if (box_is_stopped(t->box))
		return true;
	if (!box_is_gone(t->box))
		return false;
	const struct box_state s = box_look(t->box); /* only now is it the last */
	return s.stage != BOX_FAILED && (s.stage != BOX_EXITED || WIFSIGNALED(s.wait_status));
}

/* Called without the lock. The template is already in the list, but no other thread touches it
 * while it starts. */
static int start(struct template *t, struct cordon_error **reterr)
{
	struct cordon_error *e = NULL;
	int r = start_once(t, &e);

	if (r < 0 && was_lost(t)) {
		e = cordon_error_free(e);
		reset(t);
		r = start_once(t, &e);
	}
	if (r < 0)
		reset(t);
	*reterr = e;
	return r;
}

static int new_template(const struct template_key *k, const uint8_t hash[static 32],
			struct template **ret, struct cordon_error **reterr)
{
	struct template *t = mem_alloc(sizeof(*t));

	if (!t)
		return err_errno(reterr, ENOMEM, "start a template");
	pthread_mutex_init(&t->lock, NULL);
	t->null_fd = -1;
	t->kind = k->kind;
	t->languages = k->languages;
	t->state = STARTING;
	memcpy(t->hash, hash, 32);
	t->born_ns = t->used_ns = clock_now_ns();
	int r = policy_copy(&t->policy, k->policy, reterr);
	if (r == 0 && k->tools && strlist_copy(&t->tools, k->tools) < 0)
		r = err_errno(reterr, ENOMEM, "start a template");
	if (r < 0) {
		destroy(t);
		return r;
	}
	*ret = t;
	return 0;
}

/* True if this percentage of its life is over. */
static bool is_aged(const struct template *t, unsigned parts)
{
	return t->forks >= MAX_FORKS / 100 * parts ||
	       clock_now_ns() - t->born_ns > (uint64_t)parts * (MAX_AGE_S / 100) * 1000000000;
}

static bool is_worn(const struct template *t)
{
	return t->state == READY && (is_aged(t, 100) || box_has_ended(t->box));
}

/* Removes unused templates from the list that are too old, forked too often, or too many. */
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

static bool is_for(const struct template *t, enum guest_kind kind, const uint8_t hash[static 32])
{
	return t->kind == kind && !t->is_retired && memcmp(t->hash, hash, 32) == 0;
}

static void enlist(struct template *t)
{
	t->refs++;
	t->next = registry;
	registry = t;
}

/* Called with the lock held; releases it meanwhile. The template is already in the list. */
static int bring_up(struct template *t)
{
	struct cordon_error *e = NULL;

	pthread_mutex_unlock(&registry_lock);
	int r = start(t, &e);
	pthread_mutex_lock(&registry_lock);
	t->error = e;
	t->state = r < 0 ? FAILED : READY;
	t->is_retired = t->is_retired || r < 0;
	pthread_cond_broadcast(&registry_changed);
	return r;
}

/* The thread that starts the successor. When that is ready, the old template gets no new
 * sessions. */
static void *follow(void *arg)
{
	struct template *t = arg, *dead;

	pthread_mutex_lock(&registry_lock);
	int r = bring_up(t);
	for (struct template *o = registry; r == 0 && !t->is_retired && o; o = o->next)
		if (o != t && is_for(o, t->kind, t->hash))
			o->is_retired = true;
	t->refs--;
	dead = sweep();
	pthread_mutex_unlock(&registry_lock);
	destroy_all(dead);
	pthread_mutex_lock(&registry_lock);
	followers--;
	pthread_cond_broadcast(&registry_changed);
	pthread_mutex_unlock(&registry_lock);
	return NULL;
}

/* Starts a template in the background. Signals are blocked, so that they go to the host's own
 * threads. */
static void start_behind(const struct template_key *key, const uint8_t hash[static 32])
{
	struct template *next = NULL;
	sigset_t all, before;
	pthread_t thread;

	if (new_template(key, hash, &next, NULL) < 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int e = pthread_create(&thread, NULL, follow, next);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e != 0) {
		destroy(next);
		return;
	}
	(void)pthread_detach(thread);
	enlist(next);
	followers++;
}

/* Starts the successor while this template still serves. If that fails, this one is used to its
 * end. */
static void start_next(struct template *t)
{
	struct template_key key = { t->kind, &t->policy, t->languages, &t->tools };

	t->is_followed = true;
	start_behind(&key, t->hash);
}

/* A ready template if there is one, else one that is starting, else NULL. */
static struct template *find(enum guest_kind kind, const uint8_t hash[static 32])
{
	struct template *starting = NULL;

	for (struct template *t = registry; t; t = t->next) {
		if (!is_for(t, kind, hash))
			continue;
		if (t->state != STARTING)
			return t;
		starting = t;
	}
	return starting;
}

/* Takes a reference to a ready template. Called with the lock held; releases it while one
 * starts. */
static int take(const struct template_key *key, const uint8_t hash[static 32],
		struct template **ret, struct cordon_error **reterr)
{
	struct template *t = find(key->kind, hash);

	if (t) {
		t->refs++;
		while (t->state == STARTING)
			pthread_cond_wait(&registry_changed, &registry_lock);
	} else {
		int r = new_template(key, hash, &t, reterr);
		if (r < 0)
			return r;
		enlist(t);
		(void)bring_up(t);
	}
	t->used_ns = clock_now_ns();
	if (t->state == READY) {
		if (!t->is_followed && !t->is_retired && is_aged(t, AHEAD))
			start_next(t);
		*ret = t;
		return 0;
	}
	t->refs--;
	if (!t->error)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	cleanup_free char *why = err_text(t->error);
	return err_set(reterr, cordon_error_code(t->error), "%s",
		       why ? why : cordon_error_message(t->error));
}

/* The policy, and for places what their root has besides. */
static int hash_key(const struct template_key *k, uint8_t ret[static 32])
{
	crypto_hash_sha256_state state;
	int r = policy_hash(k->policy, ret);

	if (r < 0 || !k->languages)
		return r;
	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, ret, 32);
	crypto_hash_sha256_update(&state, (const unsigned char *)&k->languages,
				  sizeof(k->languages));
	for (size_t i = 0; k->tools && i < k->tools->count; i++)
		crypto_hash_sha256_update(&state, (const unsigned char *)k->tools->items[i],
					  strlen(k->tools->items[i]) + 1);
	crypto_hash_sha256_final(&state, ret);
	return 0;
}

int template_get(const struct template_key *key, struct template **ret,
		 struct cordon_error **reterr)
{
	uint8_t hash[32];
	struct template *dead, *more;
	int r = hash_key(key, hash);

	if (r < 0)
		return err_errno(reterr, ENOMEM, "hash the policy");
	pthread_mutex_lock(&registry_lock);
	dead = sweep();
	r = take(key, hash, ret, reterr);
	more = r < 0 ? sweep() : NULL;
	pthread_mutex_unlock(&registry_lock);
	destroy_all(dead);
	destroy_all(more);
	return r;
}

struct template *template_ref(struct template *t)
{
	if (!t)
		return NULL;
	pthread_mutex_lock(&registry_lock);
	t->refs++;
	pthread_mutex_unlock(&registry_lock);
	return t;
}

/* If the template dies too, it does so this soon after its new session. */
enum { LOST_MS = 500 };

bool template_check(struct template *t, bool is_silent)
{
	struct pollfd p[] = { { .fd = t->box->control_fd, .events = POLLRDHUP },
			      { .fd = wire_fd(t->wire), .events = POLLRDHUP } };
	bool is_lost = poll(p, 2, is_silent || box_is_stopped(t->box) ? 0 : LOST_MS) > 0 ||
		       box_is_stopped(t->box);

	if (is_lost || is_silent) {
		pthread_mutex_lock(&registry_lock);
		t->is_retired = true;
		pthread_mutex_unlock(&registry_lock);
	}
	return is_lost;
}

const struct box *template_box(const struct template *t)
{
	return t->box;
}

bool template_is_ready(const struct template_key *key)
{
	uint8_t hash[32];

	if (hash_key(key, hash) < 0)
		return false;
	pthread_mutex_lock(&registry_lock);
	const struct template *t = find(key->kind, hash);
	bool is_ready = t && t->state == READY;
	if (!t)
		start_behind(key, hash);
	pthread_mutex_unlock(&registry_lock);
	return is_ready;
}

enum guest_kind template_kind(const struct template *t)
{
	return t->kind;
}

struct network_stock *template_stock(const struct template *t)
{
	return t->stock;
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
	while (followers > 0)
		pthread_cond_wait(&registry_changed, &registry_lock);
	dead = sweep();
	pthread_mutex_unlock(&registry_lock);
	destroy_all(dead);
}

static int send_request(struct template *t, const char *token, const int fds[SPAWN_FDS],
			struct cordon_error **reterr)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "{\"type\":\"spawn\",\"token\":\"%s\"}\n", token);
	struct pulse pulse = pulse_begin(t->box, deadline_after_ms(ENGINE_START_MS));
	for (;;) {
		ssize_t n = os_fds_send(wire_fd(t->wire), line, (size_t)len, fds, SPAWN_FDS);

		if (n == len)
			return 0;
		if (n >= 0) /* a socket with room never splits a line of 100 bytes */
			errno = EIO;
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return err_errno(reterr, errno, "ask the template for a session");
		int r = pulse_wait(&pulse, wire_fd(t->wire), POLLOUT, reterr);
		if (r < 0)
			return r;
	}
}

int template_fork(struct template *t, struct network *n, struct engine *e, struct box **ret_box,
		  struct cordon_error **reterr)
{
	char token[TOKEN_DIGITS + 1];
	struct engine_ends ends = ENGINE_ENDS_NONE;
	struct box_fork_fds forked = { 0 };

	random_hex(token, TOKEN_DIGITS);
	int r = engine_ends_open(&ends, true, reterr);
	if (r < 0)
		return r;
	r = box_prepare(&t->policy, t->box, ret_box, &forked, reterr);
	if (r == 0)
		r = network_fork_fds(n, &forked.fds[BOX_FORK_RELAY], &forked.fds[BOX_FORK_OWN_FILE],
				     reterr);
	if (r < 0) {
		box_fork_fds_done(&forked);
		engine_ends_done(&ends);
		return r;
	}
	timeline_mark(e->timeline, TIMELINE_RESOURCES);
	int fds[SPAWN_FDS] = { ends.wire, ends.in, ends.out, ends.err };
	for (int i = 0; i < BOX_FORK_FDS; i++)
		fds[ENDS + i] = forked.fds[i] >= 0 ? forked.fds[i] : t->null_fd;
	pthread_mutex_lock(&t->lock);
	r = send_request(t, token, fds, reterr);
	t->forks++;
	pthread_mutex_unlock(&t->lock);
	if (r == 0)
		r = engine_adopt(e, &ends, &t->policy, token, reterr);
	timeline_mark(e->timeline, TIMELINE_ASKED);
	network_launched(n);
	box_fork_fds_done(&forked);
	engine_ends_done(&ends);
	return r;
}
