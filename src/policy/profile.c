/* policy/profile.c - see profile.h. The documents are the files of profiles/, made into arrays by
 * tools/embed.c. */
#include "policy/profile.h"

#include "base/str.h"

extern const unsigned char profile_build[], profile_data_science[], profile_grader[],
	profile_shell_agent[], profile_web_reader[];

const struct profile profile_table[] = {
	{ "build", "compile and test a project: long, every program, many processes; no network",
	  profile_build },
	{ "data-science", "Python and R on large data: 4 GiB, every core; no network, no programs",
	  profile_data_science },
	{ "grader", "code of strangers, briefly: small limits, short output; no network",
	  profile_grader },
	{ "shell-agent", "commands of an agent: every program, also its own; no network",
	  profile_shell_agent },
	{ "web-reader", "read public web pages: GET and HEAD only; no programs",
	  profile_web_reader },
};

const size_t profile_count = sizeof(profile_table) / sizeof(*profile_table);

const struct profile *profile_find(const char *name)
{
	for (size_t i = 0; i < profile_count; i++)
		if (str_eq(profile_table[i].name, name))
			return &profile_table[i];
	return NULL;
}
