/* Seats: who waits for whom. A seat that is offloaded has no session, so nothing is started here.
 */
#include "serve/seat.h"

#include "base/str.h"
#include "harness/test.h"

struct scene {
	struct seats seats;
	struct seat *seat;
	int result;
	bool was_cancelled;
};

static void set_scene(struct scene *x)
{
	*x = (struct scene){ 0 };
	seats_init(&x->seats);
	ASSERT_EQ(seat_new(&x->seats, SEAT_SESSION, false, &x->seat, NULL), 0);
	x->seat->is_offloaded = true;
	(void)str_copy(x->seat->id, sizeof(x->seat->id), "s1");
}

/* Waits until another thread has set a field of the seat. */
static void wait_until(struct scene *x, const bool *field)
{
	pthread_mutex_lock(&x->seats.lock);
	while (!*field)
		pthread_cond_wait(&x->seats.changed, &x->seats.lock);
	pthread_mutex_unlock(&x->seats.lock);
}

static pthread_t start(void *(*fn)(void *), struct scene *x)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, fn, x), 0);
	return thread;
}

/* As mount, offload and rehydrate do. */
static void *move(void *arg)
{
	struct scene *x = arg;
	struct seat *mine = seat_get(&x->seats, "s1", SEAT_SESSION);

	x->result = mine ? seat_lock(&x->seats, mine, 1, NULL) : -CORDON_NOT_FOUND;
	if (x->result == 0)
		(void)seat_unlock(&x->seats, mine, NULL);
	seat_end(&x->seats, x->seat);
	seat_put(&x->seats, mine);
	return NULL;
}

static void *cancel(void *arg)
{
	struct scene *x = arg;
	struct seat *mine = seat_get(&x->seats, "s1", SEAT_SESSION);

	x->was_cancelled = seat_cancel(&x->seats, mine);
	seat_put(&x->seats, mine);
	return NULL;
}

static void *close_it(void *arg)
{
	struct scene *x = arg;

	seat_close(&x->seats, seat_get(&x->seats, "s1", SEAT_SESSION));
	return NULL;
}

static void finish(struct scene *x)
{
	seat_put(&x->seats, x->seat);
	seats_close(&x->seats);
	seats_done(&x->seats);
}

/* The exchange waits for a reference of who cancels, who waits for the end of the exchange. */
TEST(seat_cancel_after_the_lock)
{
	struct scene x;

	set_scene(&x);
	struct seat *user = seat_get(&x.seats, "s1", SEAT_SESSION);
	ASSERT_EQ(seat_begin(&x.seats, x.seat, NULL, NULL), 0);
	pthread_t mover = start(move, &x);
	wait_until(&x, &x.seat->is_moving);
	pthread_t canceller = start(cancel, &x);
	pthread_join(canceller, NULL);
	pthread_join(mover, NULL);
	ASSERT_EQ(x.result, -CORDON_CANCELLED);
	ASSERT(x.was_cancelled);
	ASSERT(!x.seat->is_moving && !x.seat->is_exchanging);
	seat_put(&x.seats, user);
	finish(&x);
}

TEST(seat_cancel_before_the_lock)
{
	struct scene x;

	set_scene(&x);
	ASSERT_EQ(seat_begin(&x.seats, x.seat, NULL, NULL), 0);
	pthread_t canceller = start(cancel, &x);
	wait_until(&x, &x.seat->is_unwanted);
	pthread_t mover = start(move, &x);
	pthread_join(canceller, NULL);
	pthread_join(mover, NULL);
	ASSERT_EQ(x.result, -CORDON_CANCELLED);
	ASSERT(x.was_cancelled);
	finish(&x);
}

/* Once nobody else has it the exchange goes on to its end, and a cancel does not wait for that. */
TEST(seat_cancel_of_an_exchange)
{
	struct scene x;

	set_scene(&x);
	ASSERT_EQ(seat_begin(&x.seats, x.seat, NULL, NULL), 0);
	ASSERT_EQ(seat_lock(&x.seats, x.seat, 0, NULL), 0);
	struct seat *user = seat_get(&x.seats, "s1", SEAT_SESSION);
	ASSERT(!seat_cancel(&x.seats, user));
	seat_put(&x.seats, user);
	(void)seat_unlock(&x.seats, x.seat, NULL);
	seat_end(&x.seats, x.seat);
	finish(&x);
}

TEST(seat_close_during_the_lock)
{
	struct scene x;

	set_scene(&x);
	struct seat *user = seat_get(&x.seats, "s1", SEAT_SESSION);
	ASSERT_EQ(seat_begin(&x.seats, x.seat, NULL, NULL), 0);
	pthread_t mover = start(move, &x);
	wait_until(&x, &x.seat->is_moving);
	pthread_t closer = start(close_it, &x);
	pthread_join(mover, NULL);
	ASSERT_EQ(x.result, -CORDON_CANCELLED);
	seat_put(&x.seats, user);
	seat_put(&x.seats, x.seat);
	pthread_join(closer, NULL);
	ASSERT(!x.seats.first && x.seats.sessions == 0);
	seats_done(&x.seats);
}

/* Eight threads, whatever they meet. */
static void *mix(void *arg)
{
	struct scene *x = arg;

	for (int i = 0; i < 3000; i++) {
		struct seat *mine = seat_get(&x->seats, "s1", SEAT_SESSION);
		if (seat_begin(&x->seats, mine, NULL, NULL) < 0) {
			(void)seat_cancel(&x->seats, mine);
		} else {
			if (seat_lock(&x->seats, mine, 1, NULL) == 0)
				(void)seat_unlock(&x->seats, mine, NULL);
			seat_end(&x->seats, mine);
		}
		seat_put(&x->seats, mine);
	}
	return NULL;
}

TEST(seat_exchanges_and_cancels_by_eight)
{
	struct scene x;
	pthread_t threads[8];

	set_scene(&x);
	for (int i = 0; i < 8; i++)
		threads[i] = start(mix, &x);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(x.seat->refs, 2);
	finish(&x);
}
