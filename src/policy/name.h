/* policy/name.h - which words are valid in a policy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool name_is_module(const char *s);   /* numpy, os.path */
bool name_is_command(const char *s);  /* grep, [ : no slash, no white space */
bool name_is_tool(const char *s);     /* ^[A-Za-z.][A-Za-z0-9_.]*$ */
bool name_is_proxy(const char *s);    /* "environment", or an http:// URL without credentials */
bool name_is_ports(const char *s);    /* "8000", "3000-3010": ports that need no privilege */
bool name_is_package(const char *s);  /* name of a Python distribution */
bool name_is_npm(const char *s);      /* left-pad, @scope/name */
bool name_is_cran(const char *s);     /* data.table */
bool name_is_registry(const char *s); /* http(s) URL without credentials, or as name_is_path */
bool name_is_variable(const char *s); /* ^[A-Za-z_][A-Za-z0-9_]*$ */
bool name_is_passable(const char *s); /* may be copied from the host */
bool name_is_settable(const char *s); /* may be given a value */
bool name_is_result(const char *s);   /* a variable of Python or R */
bool name_is_path(const char *s);     /* absolute, no "..", no control characters */
bool name_is_file(const char *s);     /* not empty, no control characters, not below /dev */
bool name_is_header(const char *s);   /* an HTTP header's name */
bool name_is_method(const char *s);   /* an HTTP method, upper case */
bool name_is_sync(const char *s);     /* when the audit log is synced to disk */

/* Whether path equals root or is below it. Both normalised. */
bool name_is_below(const char *path, const char *root);
