/* cli/files.c - `cordon files`: lists, copies and compares saved workspaces and exports. */
#include <cordon/cordon.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/progress.h"
#include "cli/verb.h"

enum { CHUNK = 256 * 1024 };

/* What the library wrote as text; NULL: out of memory. */
static json_t *parsed(const char *text)
{
	json_t *j = NULL;

	return json_parse(text, strlen(text), 0, &j, NULL) < 0 ? NULL : j;
}

static int open_saved(const struct cli *c, const char *name, int *ret_fd)
{
	cleanup_error struct cordon_error *e = NULL;
	if (str_eq(name, "-")) {
		*ret_fd = dup(STDIN_FILENO);
		return 0;
	}
	return cordon_saved_open(name, ret_fd, &e) < 0 ? cli_fail(c, e) : 0;
}

/* The guest chose the names. Characters that could control a terminal are escaped as in C. */
static void put_name(const char *s)
{
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s, next = (unsigned char)s[1];
		bool is_c1 = ch == 0xc2 && next >= 0x80 && next < 0xa0;

		if (is_c1)
			printf("\\x%02x\\x%02x", ch, next);
		else if (ch < 0x20 || ch == 0x7f || ch == '\\')
			printf("\\x%02x", ch);
		else
			putchar(*s);
		s += is_c1;
	}
}

struct ls {
	const char *path; /* NULL: everything */
	bool is_long, is_json;
	json_t *all;
	size_t count;
};

static bool is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	while (n && dir[n - 1] == '/')
		n--;
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

static int ls_one(const char *path, const struct cordon_file_info *info, const char *link,
		  void *arg)
{
	static const char *const types[] = { "file", "directory", "link", "other" };
	struct ls *l = arg;
	if (l->path && !is_beneath(path, l->path))
		return 0;
	l->count++;
	if (l->is_json) {
		json_t *item = json_pack("{s:o, s:s, s:I, s:i, s:I}", "path",
					 json_string_lossy(path, strlen(path)), "type",
					 types[info->type], "size", (json_int_t)info->size, "mode",
					 (int)info->mode, "mtime_ns", (json_int_t)info->mtime_ns);
		if (item && link)
			json_object_set_new(item, "link", json_string_lossy(link, strlen(link)));
		return item && !json_array_append_new(l->all, item) ? 0 : -CORDON_NOMEM;
	}
	if (l->is_long)
		printf("%c%04o %12llu ", "-dl?"[info->type], info -> mode,
		       (unsigned long long)info -> size);
	put_name(path);
	if (l->is_long && link) {
		fputs(" -> ", stdout);
		put_name(link);
	}
	putchar('\n');
	return 0;
}

static int print_text(const struct cli *c, char *text)
{
	cleanup_free char *owned = text;
	if (!text) {
		cli_error(c, "out of memory");
		return cordon_code_exit_status(CORDON_NOMEM);
	}
	puts(text);
	return 0;
}

static int list_names(const struct cli *c)
{
	cleanup_error struct cordon_error *e = NULL;
	char *json = NULL;
	if (cordon_saved_list(&json, &e) < 0)
		return cli_fail(c, e);
	if (cli_has(c, "json"))
		return print_text(c, json);
	cleanup_json json_t *list = parsed(json);
	size_t i;
	json_t *one;
	free(json);
	json_array_foreach(list, i, one)
	{
		printf("%-32s %12lld  %s\n", json_string_value(json_object_get(one, "name")),
		       (long long)json_integer_value(json_object_get(one, "bytes")),
		       json_string_value(json_object_get(one, "saved")));
	}
	return 0;
}

static int ls(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_close int fd = -1;
	if (argc < 2)
		return list_names(c);
	cleanup_free char *path = NULL;
	if (argc > 2)
		path = str_printf("%s%s", argv[2][0] == '/' ? "" : "/home/user/", argv[2]);
	int status = open_saved(c, argv[1], &fd);
	if (status)
		return status;
	cleanup_json json_t *all = json_array();
	struct ls l = { .path = path,
			.is_long = cli_has(c, "long"),
			.is_json = cli_has(c, "json"),
			.all = all };
	if (cordon_export_list(fd, ls_one, &l, &e) < 0)
		return cli_fail(c, e);
	if (path && !l.count) {
		cli_error(c, "ENOENT: no such file: '%s'", path);
		return cordon_code_exit_status(CORDON_NOT_FOUND);
	}
	return l.is_json ? print_text(c, json_text(all, NULL)) : 0;
}

static int cat(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_close int fd = -1;
	if (argc != 3)
		return cli_usage(c, "cat needs a workspace and a path");
	int status = open_saved(c, argv[1], &fd);
	if (status)
		return status;
	return cordon_export_read(fd, argv[2], STDOUT_FILENO, &e) < 0 ? cli_fail(c, e) : 0;
}

static int ignore(const char *path, const struct cordon_file_info *info, const char *link,
		  void *arg)
{
	(void)path, (void)info, (void)link, (void)arg;
	return 0;
}

static uint64_t size_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static int copy(const struct cli *c, int from, int to)
{
	cleanup_progress struct progress p = { 0 };
	cleanup_free char *chunk = malloc(CHUNK);
	progress_begin(&p, "export", size_of(from));
	if (!chunk || lseek(from, 0, SEEK_SET) < 0) {
		cli_error(c, "cannot read the workspace");
		return 125;
	}
	for (;;) {
		ssize_t n = file_read_full(from, chunk, CHUNK);
		int r = n > 0 ? file_write_all(to, chunk, (size_t)n) : (int)n;
		if (r < 0) {
			cli_error(c, "cannot write: %s", strerror(-r));
			return 125;
		}
		if (n == 0)
			return 0;
		p.done += (uint64_t)n;
	}
}

static int check_export(int fd, struct cordon_error **reterr)
{
	cleanup_progress struct progress p = { 0 };
	progress_begin(&p, "check the export", size_of(fd));
	return cordon_export_list(fd, ignore, NULL, reterr);
}

static int import_shown(const char *name, int fd, char **ret_report, struct cordon_error **reterr)
{
	cleanup_progress struct progress p = { 0 };
	progress_begin(&p, "import", size_of(fd));
	return cordon_saved_import(name, fd, ret_report, reterr);
}

static int refuse_to_write(const struct cli *c, const char *path, int e)
{
	cli_error(c, "%s: %s%s", path, strerror(e), e == EEXIST ? " (--force replaces it)" : "");
	return 125;
}

/* Writes into a pipe or device. A regular file is replaced only when the new one is complete, so
 * that a full disk leaves the old one. */
static int export_to(const struct cli *c, int fd, const char *path)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_file_draft struct file_draft d = { .fd = -1, .dir_fd = -1 };
	bool replaces = cli_has(c, "force");
	struct stat st;

	bool is_there = lstat(path, &st) == 0;
	if (is_there && (!replaces || S_ISLNK(st.st_mode)))
		return refuse_to_write(c, path, replaces ? ELOOP : EEXIST);
	if (is_there && !S_ISREG(st.st_mode)) {
		cleanup_close int out = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
		return out < 0 ? refuse_to_write(c, path, errno) : copy(c, fd, out);
	}
	if (file_draft_open(&d, path, &e) < 0)
		return cli_fail(c, e);
	int status = copy(c, fd, d.fd);
	if (status)
		return status;
	if (file_draft_publish(&d, 0600, replaces, &e) < 0)
		return cordon_error_errno(e) == EEXIST ? refuse_to_write(c, path, EEXIST)
						       : cli_fail(c, e);
	return 0;
}

static int export(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_close int fd = -1;
	if (argc < 2 || argc > 3)
		return cli_usage(c, "export needs a workspace, and a file or nothing");
	bool to_stdout = argc < 3 || str_eq(argv[2], "-");
	if (to_stdout && isatty(STDOUT_FILENO))
		return cli_usage(c, "an export is binary: name a file, or redirect the output");
	int status = open_saved(c, argv[1], &fd);
	if (status)
		return status;
	/* A damaged file is better found now than when it is needed. */
	if (check_export(fd, &e) < 0)
		return cli_fail(c, e);
	if (to_stdout)
		return copy(c, fd, STDOUT_FILENO);
	return export_to(c, fd, argv[2]);
}

static int import(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_close int fd = -1;
	if (argc != 3)
		return cli_usage(c, "import needs a name and a file");
	fd = str_eq(argv[2], "-") ? dup(STDIN_FILENO) : open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		cli_error(c, "%s: %s", argv[2], strerror(errno));
		return cordon_code_exit_status(CORDON_NOT_FOUND);
	}
	char *report = NULL;
	if (import_shown(argv[1], fd, &report, &e) < 0)
		return cli_fail(c, e);
	if (cli_has(c, "json"))
		return print_text(c, report);
	cleanup_json json_t *j = parsed(report);
	size_t i;
	json_t *one;
	free(report);
	json_array_foreach(json_object_get(j, "skipped"), i, one)
	{
		cli_error(c, "skipped %s: %s", json_string_value(json_object_get(one, "path")),
			  json_string_value(json_object_get(one, "reason")));
	}
	printf("%lld files, %lld bytes\n",
	       (long long)json_integer_value(json_object_get(j, "files")),
	       (long long)json_integer_value(json_object_get(j, "bytes")));
	return 0;
}

/* The guest's text, escaped like its names, but with newlines and tabs. */
static void put_lines(const struct cli *c, const char *s)
{
	static const enum cli_style styles[] = {
		['+'] = STYLE_GREEN, ['-'] = STYLE_RED, ['@'] = STYLE_DIM
	};

	while (s && *s) {
		size_t n = strcspn(s, "\n");
		unsigned char first = (unsigned char)*s;
		bool is_styled = n && first < sizeof(styles) / sizeof(*styles) && styles[first];

		fputs("  ", stdout);
		if (is_styled)
			fputs(cli_style(c, styles[first]), stdout);
		for (size_t i = 0; i < n; i++) {
			unsigned char ch = (unsigned char)s[i];
			if ((ch < 0x20 && ch != '\t') || ch == 0x7f)
				printf("\\x%02x", ch);
			else
				putchar(ch);
		}
		if (is_styled)
			fputs(cli_style(c, STYLE_PLAIN), stdout);
		putchar('\n');
		s += n + (s[n] == '\n');
	}
}

static int diff(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_close int old = -1, new = -1;
	if (argc != 3)
		return cli_usage(c, "diff needs two workspaces");
	int status = open_saved(c, argv[1], &old);
	if (!status)
		status = open_saved(c, argv[2], &new);
	if (status)
		return status;
	char *json = NULL;
	if (cordon_export_diff(old, new, &json, &e) < 0)
		return cli_fail(c, e);
	cleanup_json json_t *list = parsed(json);
	bool differ = json_array_size(list) > 0;
	if (cli_has(c, "json")) {
		(void)print_text(c, json);
		return differ;
	}
	free(json);
	size_t i;
	json_t *one;
	json_array_foreach(list, i, one)
	{
		printf("%-8s ", json_string_value(json_object_get(one, "change")));
		put_name(json_string_value(json_object_get(one, "path")));
		putchar('\n');
		if (!cli_has(c, "brief"))
			put_lines(c, json_string_value(json_object_get(one, "diff")));
	}
	return differ;
}

static int remove_saved(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	if (argc != 2)
		return cli_usage(c, "rm needs the name of a workspace");
	return cordon_saved_remove(argv[1], &e) < 0 ? cli_fail(c, e) : 0;
}

static int run(struct cli *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct cli *c, int argc, char **argv);
	} table[] = { { "ls", ls },         { "cat", cat },   { "export", export },
		      { "import", import }, { "diff", diff }, { "rm", remove_saved } };
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(argv[0], table[i].name))
			return table[i].run(c, argc, argv);
	return cli_usage(c, "unknown: %s", argv[0]);
}

static const struct cli_option options[] = {
	{ "long", 'l', NULL, "ls: also type, mode, size and link target", false },
	{ "json", 0, NULL, "ls, import, diff: as JSON", false },
	{ "brief", 'q', NULL, "diff: only the names, not the lines of texts", false },
	{ "force", 'f', NULL, "export: replace the file", false },
	{ 0 },
};

static const char *const words[] = { "ls", "cat", "export", "import", "diff", "rm", NULL };

static const struct cli_example examples[] = {
	{ "cordon files ls", "the saved workspaces" },
	{ "cordon files ls -l mine /workspace", "the files in one" },
	{ "cordon files cat mine /workspace/result.csv", "print one file" },
	{ "cordon files export mine mine.cws", "export it to a file" },
	{ "cordon files import copy mine.cws", "import it under another name" },
	{ "cordon files diff mine copy", "what differs between two" },
	{ 0 },
};

const struct verb verb_files = {
	.name = "files",
	.summary = "look into, export, import and compare saved workspaces",
	.usage = "ls|cat|export|import|diff|rm [OPTION...] [WORKSPACE [PATH|FILE|WORKSPACE]]",
	.options = options,
	.run = run,
	.about = "A WORKSPACE is the name of a saved workspace (cordon run --workspace NAME), "
		 "the path of an export (with a slash in it, or ending in .cws), or '-' for "
		 "standard input.\n\n"
		 "import takes the valid entries of the file and names what it skips: paths "
		 "that lead out of the workspace, devices, links to files that are not in it, "
		 "duplicates. It refuses a damaged file, or one that expands like a zip bomb, "
		 "as a whole. diff exits with 1 if there are differences.",
	.words = words,
	.min_operands = 1,
	.max_operands = 3,
	.examples = examples,
};
