/* inside/guests/node/interrupt.c - ends code that never returns to the event loop. The host writes
 * a message that names the execution, then sends SIGINT. If the loop runs, JavaScript handles it.
 * If not, a thread looks for the message and makes V8 terminate the running code, provided that we
 * called it and it can return to us. A callback of Node itself cannot: Node would not survive that.
 * It gets some time, then the whole process ends. V8's functions are looked up by name, so its
 * headers are not needed to build this. */
#include "inside/guests/node/interrupt.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WIRE 3
#define STEP_MS 10    /* for the loop to run */
#define AGAIN_MS 100  /* until programs get another SIGINT */
#define GRACE_MS 2000 /* from an interrupt to the forced end */

static struct {
	pthread_mutex_t lock; /* guards everything below, except the bell */
	sem_t bell;           /* posted when SIGINT arrives */
	char id[24];          /* of the running execution; empty: none */
	bool is_told;         /* a message for it has arrived */
	bool is_held;   /* V8 must not terminate the running code: it would not return to us */
	bool is_saying; /* a message is being written */
	bool is_ending; /* V8 was asked to terminate the running code */
	void *isolate;
	void (*terminate)(void *isolate);
	void (*resume)(void *isolate);
	void (*loop)(int); /* libuv's handler for SIGINT, which wakes the loop */
} my = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_sigint(int signo)
{
	int saved = errno;

	(void)sem_post(&my.bell);
	if (my.loop)
		my.loop(signo);
	errno = saved;
}

/* Whether the message is waiting in the socket. While code runs nothing else can be there: answers
 * of tool calls are read at once. */
static bool is_named(void)
{
	char text[1024];
	ssize_t n = recv(WIRE, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT);
	size_t len = strlen(my.id);

	if (n <= 0)
		return false;
	text[n] = 0;
	for (char *at = text; (at = strstr(at, "\"interrupt\""));) {
		at += strcspn(at, "0123456789\n");
		if (strncmp(at, my.id, len) == 0 && !strchr("0123456789", at[len]))
			return true;
	}
	return false;
}

static void wait_step(void)
{
	pthread_mutex_unlock(&my.lock);
	(void)poll(NULL, 0, STEP_MS);
	pthread_mutex_lock(&my.lock);
}

/* The last resort. The result says that the state is lost; the host starts another Node. */
static void give_up(void)
{
	char line[256];
	int n = snprintf(line, sizeof(line),
			 "{\"type\":\"result\",\"id\":%s,\"ok\":false,\"error\":{\"kind\":"
			 "\"interrupted\",\"name\":\"Interrupted\",\"message\":\"The execution was "
			 "interrupted\"},\"restarted\":true}\n",
			 my.id);
	char rest[1024];

	/* Unread input would make the host see an error before it has read this. */
	while (recv(WIRE, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
	if (!my.is_saying && send(WIRE, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		_exit(1);
	_exit(0);
}

/* Until the execution has ended. */
static void insist(void)
{
	char id[sizeof(my.id)];

	memcpy(id, my.id, sizeof(id));
	for (int ms = 0; *id && (my.is_told || is_named()); ms += STEP_MS) {
		my.is_told = true;
		wait_step();
		if (strcmp(id, my.id) != 0)
			return;
		if (ms > GRACE_MS)
			give_up();
		if (!my.is_held) {
			my.is_ending = true;
			my.terminate(my.isolate);
		}
		/* The code may have started a program and wait for it since the host's signal. */
		if (ms == AGAIN_MS)
			(void)kill(0, SIGINT);
	}
}

static void *listen_for_bell(void *arg)
{
	for (;;) {
		while (sem_wait(&my.bell) < 0)
			;
		pthread_mutex_lock(&my.lock);
		insist();
		pthread_mutex_unlock(&my.lock);
	}
	return arg;
}

/* Code may have replaced the handler. */
static void put_handler(void)
{
	struct sigaction mine = { .sa_handler = on_sigint, .sa_flags = SA_RESTART }, was;

	sigfillset(&mine.sa_mask);
	if (sigaction(SIGINT, NULL, &was) < 0 || was.sa_handler == on_sigint)
		return;
	bool is_function = was.sa_handler != SIG_DFL && was.sa_handler != SIG_IGN;
	my.loop = is_function && !(was.sa_flags & SA_SIGINFO) ? was.sa_handler : my.loop;
	(void)sigaction(SIGINT, &mine, NULL);
}

/* The functions of V8 that this needs; returns the name of one that is missing. */
static const char *find_functions(void *(**ret_current)(void))
{
	const struct {
		const char *name;
		void **to;
	} functions[] = {
		{ "_ZN2v87Isolate10GetCurrentEv", (void **)ret_current },
		{ "_ZN2v87Isolate18TerminateExecutionEv", (void **)&my.terminate },
		{ "_ZN2v87Isolate24CancelTerminateExecutionEv", (void **)&my.resume },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		*functions[i].to = dlsym(RTLD_DEFAULT, functions[i].name);
		if (!*functions[i].to)
			return functions[i].name;
	}
	return NULL;
}

static int start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, was;

	sigfillset(&all);
	int r = pthread_attr_init(&attr);
	if (r != 0)
		return r;
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	r = pthread_create(&thread, &attr, listen_for_bell, NULL);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

bool interrupt_watch(char *reason, size_t size)
{
	void *(*current)(void) = NULL;
	const char *missing = find_functions(&current);

	if (missing) {
		snprintf(reason, size, "this Node has no %s", missing);
		return false;
	}
	int r = sem_init(&my.bell, 0, 0) < 0 ? errno : 0;
	my.isolate = current();
	if (r == 0)
		put_handler();
	if (r == 0)
		r = start_thread();
	if (r != 0)
		snprintf(reason, size, "no thread can be made: %s", strerror(r));
	return r == 0;
}

void interrupt_begin(const char *id)
{
	pthread_mutex_lock(&my.lock);
	strncpy(my.id, id, sizeof(my.id) - 1);
	my.is_told = my.is_saying = false;
	my.is_held = true;
	put_handler();
	pthread_mutex_unlock(&my.lock);
}

/* Called with the lock held. */
static void resume(void)
{
	if (my.is_ending)
		my.resume(my.isolate);
	my.is_ending = false;
}

bool interrupt_hold(bool is_held)
{
	pthread_mutex_lock(&my.lock);
	bool was_held = my.is_held;
	my.is_held = is_held;
	if (is_held)
		resume();
	pthread_mutex_unlock(&my.lock);
	return was_held;
}

void interrupt_tell(void)
{
	pthread_mutex_lock(&my.lock);
	my.is_told = true;
	pthread_mutex_unlock(&my.lock);
	(void)sem_post(&my.bell);
}

void interrupt_say(bool is_saying)
{
	pthread_mutex_lock(&my.lock);
	my.is_saying = is_saying;
	pthread_mutex_unlock(&my.lock);
}

bool interrupt_end(void)
{
	pthread_mutex_lock(&my.lock);
	bool is_told = my.is_told;
	memset(my.id, 0, sizeof(my.id));
	resume();
	pthread_mutex_unlock(&my.lock);
	return is_told;
}
