/* cli/line_history.c - see line_history.h. In the file an entry is a line; a newline inside an
 * entry is the unit separator of ASCII. */
#include "cli/line_history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"

enum { ENTRIES_MAX = 1000, FILE_MAX = 8 << 20, SEPARATOR = '\x1f' };

/* ${XDG_STATE_HOME:-~/.local/state}/cordon/history-NAME */
static char *history_path(const char *name)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	cleanup_free char *dir = state && state[0] ? str_printf("%s/cordon", state)
				 : home            ? str_printf("%s/.local/state/cordon", home)
						   : NULL;

	if (!dir)
		return NULL;
	for (char *p = dir + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		(void)mkdir(dir, 0700);
	}
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return NULL;
	return str_printf("%s/history-%s", dir, name);
}

static void exchange(char *text, char from, char to)
{
	for (; *text; text++)
		if (*text == from)
			*text = to;
}

static void read_entries(const char *path, struct strlist *ret)
{
	cleanup_buf struct buf text = { 0 };
	char *save = NULL;

	buf_init(&text, FILE_MAX);
	if (!path || file_load(path, FILE_MAX, &text, NULL) < 0 || text.len == 0)
		return;
	for (char *s = strtok_r(text.data, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
		exchange(s, SEPARATOR, '\n');
		if (str_is_utf8(s, strlen(s)))
			(void)strlist_add(ret, s);
	}
}

void line_history_load(struct line_history *h, const char *name)
{
	h->path = history_path(name);
	read_entries(h->path, &h->entries);
	h->loaded = h->entries.count;
}

void line_history_add(struct line_history *h, const char *text)
{
	size_t n = h->entries.count;

	if (text[strspn(text, " \t\n")] && (n == 0 || !str_eq(h->entries.items[n - 1], text)))
		(void)strlist_add(&h->entries, text);
}

bool line_history_find(const struct line_history *h, const char *text, size_t before, size_t *ret)
{
	for (size_t i = before < h->entries.count ? before : h->entries.count; i-- > 0;) {
		if (strstr(h->entries.items[i], text)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static void save(struct line_history *h)
{
	cleanup_strlist struct strlist all = { 0 };
	cleanup_buf struct buf text = { 0 };

	read_entries(h->path, &all);
	for (size_t i = h->loaded; i < h->entries.count; i++)
		(void)strlist_add(&all, h->entries.items[i]);
	buf_init(&text, FILE_MAX);
	for (size_t i = all.count > ENTRIES_MAX ? all.count - ENTRIES_MAX : 0; i < all.count; i++) {
		exchange(all.items[i], '\n', SEPARATOR);
		(void)buf_printf(&text, "%s\n", all.items[i]);
	}
	if (text.len > 0)
		(void)file_save(h->path, 0600, text.data, text.len, NULL);
}

void line_history_done(struct line_history *h)
{
	if (h->path && h->entries.count > h->loaded)
		save(h);
	strlist_done(&h->entries);
	free(h->path);
	*h = (struct line_history){ 0 };
}
