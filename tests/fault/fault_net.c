/* fault/fault_net.c - rules, secrets, URLs, configuration, fake addresses and the host's own
 * requests when memory runs out. */
#include <sys/socket.h>
#include <unistd.h>

#include "harness/fault.h"
#include "net/gateway/config.h"
#include "net/gateway/fake_address.h"
#include "net/gateway/host_request.h"
#include "net/gateway/hub.h"
#include "net/gateway/url.h"

TEST(configuration)
{
	static const char text[] =
		"{\"allow\": [{\"host\": \"a.test\", \"port\": 443, \"methods\": [\"GET\"], "
		"\"path\": \"/v1\"},"
		" {\"host\": \"*.b.test\"}], \"block\": [{\"host\": \"10.0.0.0/8\"}], \"secrets\": "
		"[{\"name\": \"X\","
		" \"value\": \"long enough\", \"host\": \"a.test\"}], \"resolve\": {\"c.test\": "
		"[\"1.2.3.4\"]},"
		" \"upstream_proxy\": \"http://u:p@proxy.test:3128\", \"ca_file\": \"/x\"}";

	cleanup_json json_t *obj = NULL;

	ASSERT_EQ(json_parse(text, sizeof(text) - 1, 0, &obj, NULL), 0);
	FAULT_LOOP
	{
		struct config c = { 0 };
		cleanup_error struct cordon_error *e = NULL;
		int r = config_read(obj, &c, &e);
		ASSERT_FAULT(r);
		config_done(&c);
	}
}

TEST(urls)
{
	FAULT_LOOP
	{
		cleanup_url struct url u = { 0 }, v = { 0 };
		int r = url_parse("http://user@example.org:81/a/../b?c", 35, &u, NULL);
		if (r == 0)
			r = url_resolve(&u, "../x", 4, &v, NULL);
		ASSERT_FAULT(r);
	}
}

TEST(secrets)
{
	FAULT_LOOP
	{
		struct secret_list l = { 0 };
		struct secret_filter *f = NULL;
		struct host h = { .name = "a.test" };
		size_t ready;
		int r = secret_list_add(&l, "X", "a \"secret\"", "a.test", NULL, NULL);
		if (r == 0)
			r = secret_filter_new(&l, &h, &f, NULL);
		if (r == 0 && !secret_filter_feed(f, "some text", 9, true, &ready))
			r = -CORDON_NOMEM;
		ASSERT_FAULT(r);
		secret_filter_free(f);
		secret_list_done(&l);
	}
}

TEST(fake_addresses)
{
	FAULT_LOOP
	{
		cleanup_fake_address struct fake_address *s = NULL;
		struct host h = { .name = "a.test" };
		struct address v4, v6;
		int r = fake_address_new(&s, NULL);
		if (r == 0)
			r = fake_address_add(s, &h, &v4, &v6);
		ASSERT_FAULT(r);
	}
}

TEST(own_requests)
{
	static const char text[] =
		"{\"url\": \"https://a.test/x\", \"method\": \"POST\", \"body\": \"aGk=\", "
		"\"headers\": [\"A: b\", \"C: d\"], \"redirects\": 5, \"https_only\": true}";
	cleanup_json json_t *spec = NULL;
	cleanup_loop struct loop *l = NULL;

	ASSERT_EQ(json_parse(text, sizeof(text) - 1, 0, &spec, NULL), 0);
	ASSERT_EQ(loop_new(&l, NULL), 0);
	FAULT_LOOP
	{
		struct hub hub = { .loop = l, .control.loop = l };
		struct host_request *e = NULL;
		int pair[2];
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		int r = host_request_new(&hub, spec, pair[1], &e, NULL);
		ASSERT_FAULT(r);
		host_request_free(e);
		/* Whatever became of it, its end of the pair is closed. */
		char c;
		ASSERT_EQ(read(pair[0], &c, 1), 0);
		(void)close(pair[0]);
	}
}
