/* serve/fake.h - what a test can learn from the fake library. */
#pragma once

#include <cordon/session.h>

/* Called for every session that is opened; NULL: nobody. */
extern void (*fake_on_open)(const struct cordon_session_options *o);
