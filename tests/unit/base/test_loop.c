/* unit/base/test_loop.c - descriptors, timers, children, signals, and removal while they fire. */
#include "base/loop.h"
#include "harness/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

struct seen {
	int count, value;
	struct loop_source *source, *other;
};

static struct loop *new_loop(void)
{
	struct loop *l = NULL;
	ASSERT_EQ(loop_new(&l, NULL), 0);
	return l;
}

static void on_readable(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct seen *s = arg;
	char byte;

	ASSERT(events & EPOLLIN);
	ASSERT_EQ(read(fd, &byte, 1), 1);
	s->value = byte;
	if (++s->count == 2)
		loop_stop(l);
}

TEST(a_descriptor_is_heard_as_often_as_it_speaks)
{
	struct loop *l = new_loop();
	struct seen s = { 0 };
	int fds[2];

	ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
	ASSERT_EQ(loop_add_fd(l, fds[0], EPOLLIN, on_readable, &s, &s.source, NULL), 0);
	ASSERT_EQ(write(fds[1], "ab", 2), 2);
	ASSERT_EQ(loop_run(l, NULL), 0);
	ASSERT_EQ(s.count, 2);
	ASSERT_EQ(s.value, 'b');
	ASSERT(!loop_free(l));
	ASSERT(fcntl(fds[0], F_GETFD) >= 0); /* the descriptor stays the caller's */
	close(fds[0]);
	close(fds[1]);
}

TEST(a_regular_file_cannot_be_watched_and_a_bad_descriptor_neither)
{
	struct loop *l = new_loop();
	struct cordon_error *e = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	ASSERT_EQ(loop_add_fd(l, -1, EPOLLIN, on_readable, NULL, NULL, &e), -CORDON_OS);
	e = cordon_error_free(e);
	ASSERT(loop_add_fd(l, fd, EPOLLIN, on_readable, NULL, NULL, &e) < 0);
	cordon_error_free(e);
	close(fd);
	loop_free(l);
}

static void on_first(struct loop *l, void *arg)
{
	(void)l;
	((struct seen *)arg)->value = ((struct seen *)arg)->value * 10 + 1;
}

static void on_second(struct loop *l, void *arg)
{
	((struct seen *)arg)->value = ((struct seen *)arg)->value * 10 + 2;
	loop_stop(l);
}

TEST(timers_fire_once_in_order_and_never_is_never)
{
	struct loop *l = new_loop();
	struct seen s = { 0 };

	ASSERT_EQ(loop_add_timer(l, deadline_after_ms(60), on_second, &s, NULL, NULL), 0);
	ASSERT_EQ(loop_add_timer(l, deadline_after_ms(0), on_first, &s, NULL, NULL), 0);
	ASSERT_EQ(loop_add_timer(l, 0, on_first, &s, NULL, NULL), 0);
	ASSERT_EQ(loop_run(l, NULL), 0);
	ASSERT_EQ(s.value, 12);
	loop_free(l);
}

static void on_remove_both(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct seen *s = arg;

	(void)fd;
	(void)events;
	s->count++;
	s->source = loop_source_remove(s->source); /* one of them is being called right now */
	s->other = loop_source_remove(s->other);
	loop_stop(l);
}

TEST(a_source_may_remove_itself_and_others_that_are_ready)
{
	struct loop *l = new_loop();
	struct seen s = { 0 };
	int a[2], b[2];

	ASSERT_EQ(pipe2(a, O_CLOEXEC), 0);
	ASSERT_EQ(pipe2(b, O_CLOEXEC), 0);
	ASSERT_EQ(loop_add_fd(l, a[0], EPOLLIN, on_remove_both, &s, &s.source, NULL), 0);
	ASSERT_EQ(loop_add_fd(l, b[0], EPOLLIN, on_remove_both, &s, &s.other, NULL), 0);
	ASSERT_EQ(write(a[1], "x", 1), 1);
	ASSERT_EQ(write(b[1], "x", 1), 1);
	ASSERT_EQ(loop_run(l, NULL), 0);
	ASSERT_EQ(s.count, 1);
	loop_free(l);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

static void on_writable(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct seen *s = arg;

	(void)fd;
	ASSERT(events & EPOLLOUT);
	s->count++;
	ASSERT_EQ(loop_change_fd(s->source, 0), 0); /* ready for ever, and not to be heard again */
	ASSERT_EQ(loop_add_timer(l, deadline_after_ms(20), on_second, s, NULL, NULL), 0);
}

TEST(events_can_be_changed)
{
	struct loop *l = new_loop();
	struct seen s = { 0 };
	int fds[2];

	ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
	ASSERT_EQ(loop_add_fd(l, fds[1], EPOLLOUT, on_writable, &s, &s.source, NULL), 0);
	ASSERT_EQ(loop_run(l, NULL), 0);
	ASSERT_EQ(s.count, 1);
	loop_free(l);
	close(fds[0]);
	close(fds[1]);
}

static void count_wake(struct loop *l, void *arg)
{
	struct seen *s = arg;

	if (++s->count == 3000)
		loop_stop(l);
}

struct waker {
	struct loop *loop;
	struct seen *seen;
};

static void *wake_often(void *arg)
{
	struct waker *w = arg;

	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(loop_wake(w->loop, count_wake, w->seen), 0);
	return NULL;
}

TEST(wakes_from_many_threads_each_arrive_once)
{
	struct loop *l = new_loop();
	struct seen s = { 0 };
	struct waker w = { l, &s };
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, wake_often, &w), 0);
	ASSERT_EQ(loop_run(l, NULL), 0);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(pthread_join(threads[i], NULL), 0);
	ASSERT_EQ(s.count, 3000);
	loop_free(l);
}

TEST(freeing_drops_what_never_fired)
{
	struct loop *l = new_loop();
	struct seen s = { 0 };

	ASSERT_EQ(loop_add_timer(l, deadline_after_ms(100000), on_first, &s, NULL, NULL), 0);
	ASSERT_EQ(loop_wake(l, count_wake, &s), 0);
	ASSERT(!loop_free(l));
	ASSERT_EQ(s.count, 0);
	ASSERT(!loop_free(NULL));
}
