/* The connections of the HTTP server: which are closed, and which are served. */
#include "serve/http/httpdoor.h"

#include <sys/socket.h>
#include <unistd.h>

#include "harness/test.h"

enum { CONNECTED = 8 };

struct caller {
	int mine, its;
	struct httpdoor_guest *guest;
};

static void call_at(struct httpdoor *d, struct caller *c)
{
	int pair[2];

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	*c = (struct caller){ pair[0], pair[1], httpdoor_enter(d, pair[1]) };
	ASSERT(c->guest);
}

static void hang_up(struct httpdoor *d, struct caller *c)
{
	httpdoor_leave(d, c->guest);
	close(c->its);
	close(c->mine);
}

static bool is_put_out(const struct caller *c)
{
	char byte;

	return recv(c->mine, &byte, 1, MSG_DONTWAIT) == 0;
}

static struct httpdoor *open_door(unsigned served, uint64_t header_ms, uint64_t body_ms)
{
	const struct httpdoor_options o = { served, CONNECTED, header_ms, body_ms };
	struct httpdoor *d = NULL;

	ASSERT_EQ(httpdoor_new(&o, &d, NULL), 0);
	return d;
}

TEST(strangers_give_way_the_oldest_first)
{
	struct httpdoor *d = open_door(2, 0, 0);
	struct caller all[3 * CONNECTED];

	call_at(d, &all[0]);
	ASSERT(httpdoor_begin(d, all[0].guest)); /* known, and served */
	call_at(d, &all[1]);
	ASSERT(httpdoor_begin(d, all[1].guest));
	httpdoor_end(d, all[1].guest); /* known, and idle */
	for (int i = 2; i < 3 * CONNECTED; i++)
		call_at(d, &all[i]);
	for (int i = 0; i < 3 * CONNECTED; i++)
		ASSERT_EQ(is_put_out(&all[i]), i >= 2 && i < 2 * CONNECTED + 2);
	/* Where everybody is known, who is idle gives way. */
	for (int i = 2 * CONNECTED + 2; i < 3 * CONNECTED; i++) {
		ASSERT(httpdoor_begin(d, all[i].guest));
		httpdoor_end(d, all[i].guest);
	}
	struct caller late;
	call_at(d, &late);
	ASSERT(is_put_out(&all[1]) && !is_put_out(&all[0]));
	hang_up(d, &late);
	for (int i = 0; i < 3 * CONNECTED; i++)
		hang_up(d, &all[i]);
	httpdoor_free(d);
}

TEST(places_are_for_requests)
{
	struct httpdoor *d = open_door(2, 0, 0);
	struct caller a, b, c;

	call_at(d, &a);
	call_at(d, &b);
	call_at(d, &c);
	ASSERT(httpdoor_begin(d, a.guest));
	ASSERT(httpdoor_begin(d, b.guest));
	ASSERT(!httpdoor_begin(d, c.guest));
	httpdoor_end(d, c.guest); /* none was taken */
	ASSERT(!httpdoor_begin(d, c.guest));
	httpdoor_received(d, a.guest);
	httpdoor_end(d, a.guest);
	ASSERT(httpdoor_begin(d, c.guest));
	hang_up(d, &c); /* in the middle of it */
	ASSERT(httpdoor_begin(d, a.guest));
	ASSERT(!is_put_out(&a) && !is_put_out(&b));
	hang_up(d, &a);
	hang_up(d, &b);
	httpdoor_free(d);
}

/* recv() returns when the door has shut the connection; if it does not, the test's time ends. */
TEST(who_says_nothing_is_put_out)
{
	struct httpdoor *d = open_door(2, 1, 1);
	struct caller stranger, known, slow;
	char byte;

	call_at(d, &known);
	ASSERT(httpdoor_begin(d, known.guest));
	httpdoor_received(d, known.guest);
	call_at(d, &slow);
	ASSERT(httpdoor_begin(d, slow.guest)); /* its body never comes */
	call_at(d, &stranger);
	ASSERT_EQ(recv(stranger.mine, &byte, 1, 0), 0);
	ASSERT_EQ(recv(slow.mine, &byte, 1, 0), 0);
	ASSERT(!is_put_out(&known));
	hang_up(d, &stranger);
	hang_up(d, &slow);
	hang_up(d, &known);
	httpdoor_free(d);
}
