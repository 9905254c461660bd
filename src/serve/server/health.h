/* serve/server/health.h - what watches the server asks: is it alive, does it take work. */
#pragma once

#include "serve/http/httpd.h"

/* For a table of httpd.h, with the struct server as arg. */
extern const struct httpd_route health_routes[];
