/* The mounts of a place: those of all its languages, once each, parents first. */
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "wall/linux/place_binds.h"

/* "host>guest:flags ..." in the order of the mounts. */
static const char *merged(const struct launch *first, const struct launch *second)
{
	static char text[1024];
	const struct launch *also[] = { second };
	struct blueprint_options o = { .launch = first, .also = also, .also_count = 1 };
	struct launch_bind *all = NULL;
	size_t count = 0, len = 0;

	ASSERT_EQ(place_binds_merge(&o, &all, &count), 0);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s>%s:%u ", all[i].host,
					all[i].guest, all[i].flags);
	free(all);
	return text;
}

TEST(each_path_is_mounted_once)
{
	cleanup_launch struct launch a = { 0 }, b = { 0 };

	ASSERT_EQ(launch_bind(&a, "/usr/bin/x", NULL, BIND_OPTIONAL), 0);
	ASSERT_EQ(launch_bind(&b, "/usr/bin/x", NULL, BIND_EXEC), 0);
	ASSERT_STREQ(merged(&a, &b), "/usr/bin/x>/usr/bin/x:4 ");
}

TEST(a_directory_comes_before_what_is_below_it)
{
	cleanup_launch struct launch a = { 0 }, b = { 0 };

	ASSERT_EQ(launch_bind(&a, "/home/me/data", "/data/sub", 0), 0);
	ASSERT_EQ(launch_bind(&b, "/srv", "/data", 0), 0);
	ASSERT_STREQ(merged(&a, &b), "/srv>/data:0 /home/me/data>/data/sub:0 ");
}

TEST(what_a_directory_shows_already_is_left_out)
{
	cleanup_launch struct launch a = { 0 }, b = { 0 };

	ASSERT_EQ(launch_bind(&a, "/usr/lib/python3", NULL, 0), 0);
	ASSERT_EQ(launch_bind(&a, "/usrlocal", NULL, 0), 0);
	ASSERT_EQ(launch_bind(&b, "/usr", NULL, BIND_EXEC), 0);
	ASSERT_STREQ(merged(&a, &b), "/usr>/usr:4 /usrlocal>/usrlocal:0 ");
}

TEST(no_language_makes_anothers_files_writable)
{
	cleanup_launch struct launch a = { 0 }, b = { 0 };

	ASSERT_EQ(launch_bind(&a, "/srv", "/data", 0), 0);
	ASSERT_EQ(launch_bind(&b, "/home/me", "/data", BIND_WRITABLE), 0);
	ASSERT_STREQ(merged(&a, &b), "/srv>/data:0 ");
}

TEST(a_writable_directory_hides_nothing)
{
	cleanup_launch struct launch a = { 0 }, b = { 0 };

	ASSERT_EQ(launch_bind(&a, "/srv/in", NULL, 0), 0);
	ASSERT_EQ(launch_bind(&b, "/srv", NULL, BIND_WRITABLE), 0);
	ASSERT_STREQ(merged(&a, &b), "/srv>/srv:2 /srv/in>/srv/in:0 ");
}
