/* serve/console/console.h - the web console at /: the files of web/ and their headers. */
#pragma once

#include "serve/http/httpd.h"

/* The argument of the table is the struct server. */
extern const struct httpd_route console_routes[];

/* console_sessions.c */
void console_list_sessions(struct httpd_exchange *x, void *server);
void console_list_executions(struct httpd_exchange *x, void *server);
void console_show_me(struct httpd_exchange *x, void *server);
void console_act(struct httpd_exchange *x, void *server);
