/* modules/wasm_cache.c - see wasm_cache.h. Also the commands added to a pod. Untrusted modules are
 * parsed, translated and compiled only in a sandbox; the host only moves bytes and keeps a list. */
#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/str.h"
#include "cordon/pod.h"
#include "guest/podimage.h"
#include "modules/wasm_cache.h"

enum {
	NAME_BYTES = 32,
	ADDED_MAX = 64,
	MODULE_BYTES = 32 << 20,
	META_BYTES = 64 << 10,
	LIST_BYTES = 1 << 20,
};

static int no_memory(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* The name becomes a file name, so it must not contain a path. */
static int check_name(const char *name, struct cordon_error **reterr)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_+.-";
	size_t len = name ? strlen(name) : 0;

	if (len == 0 || len > NAME_BYTES || strspn(name, letters) != len || name[0] == '.' ||
	    name[0] == '-' || name[0] == '+')
		return err_set(reterr, CORDON_INVALID,
			       "a command's name has 1 to %d letters, digits or _ + . - and begins "
			       "with a letter, digit or _",
			       NAME_BYTES);
	return 0;
}

static int added_path(const char *kind, const char *name, const char *end, char **ret,
		      struct cordon_error **reterr)
{
	char dir[PATH_MAX];

	if (!podimage_added(dir, sizeof(dir)))
		return err_set(reterr, CORDON_INVALID,
			       "no directory for commands: set HOME or XDG_DATA_HOME");
	*ret = str_printf("%s/%s%s%s%s", dir, kind, name ? "/" : "", name ? name : "", end);
	return *ret ? 0 : no_memory(reterr);
}

static int cache_path(const char *hash, const char *abi, const char *end, char **ret,
		      struct cordon_error **reterr)
{
	const char *cache = getenv("CORDON_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");

	if (cache && *cache == '/')
		*ret = str_printf("%s/modules/%s-%s%s", cache, hash, abi, end);
	else if (xdg && *xdg == '/')
		*ret = str_printf("%s/cordon/modules/%s-%s%s", xdg, hash, abi, end);
	else if (home && *home == '/')
		*ret = str_printf("%s/.cache/cordon/modules/%s-%s%s", home, hash, abi, end);
	else
		return err_set(reterr, CORDON_INVALID,
			       "no directory for the cache: set HOME or CORDON_CACHE");
	return *ret ? 0 : no_memory(reterr);
}

/* Creates every directory above the file. Readable, because sandboxes of other users map the
 * files. */
static int make_parents(const char *path, mode_t mode, struct cordon_error **reterr)
{
	cleanup_free char *copy = str_dup(path);

	if (!copy)
		return no_memory(reterr);
	for (char *at = copy + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(copy, mode) != 0 && errno != EEXIST)
			return err_errno(reterr, errno, "make '%s'", copy);
		*at = '/';
	}
	return 0;
}

int wasm_cache_save(const char *path, mode_t mode, const void *bytes, size_t len,
		    struct cordon_error **reterr)
{
	int r = make_parents(path, 0755, reterr);

	return r < 0 ? r : file_save(path, mode, bytes, len, reterr);
}

/* The image's table: module, version and commands, separated by tabs. */
static int load_programs(const char *image, json_t *ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_free char *path = str_printf("%s/programs", image);
	char *line, *rest = NULL, *word, *words;

	if (!path)
		return no_memory(reterr);
	buf_init(&text, LIST_BYTES);
	int r = file_load(path, LIST_BYTES, &text, reterr);
	if (r < 0)
		return r;
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *version = strchr(line, '\t'),
		     *commands = version ? strchr(version + 1, '\t') : NULL;
		json_t *list = json_array();

		if (commands) {
			*version++ = *commands++ = '\0';
			for (word = strtok_r(commands, " ", &words); word;
			     word = strtok_r(NULL, " ", &words))
				json_array_append_new(list, json_string(word));
			json_array_append_new(ret, json_pack("{s:s, s:s, s:O}", "name", line,
							     "version", version, "commands", list));
		}
		json_decref(list);
	}
	return 0;
}

/* Root's sandboxes run as another user, so files that are closed to others are closed to them. */
static int check_reach(struct cordon_error **reterr)
{
	cleanup_free char *path = NULL;
	struct stat st;
	int r = added_path("bin", "", "", &path, reterr);

	if (r == 0)
		r = make_parents(path, 0755, reterr);
	if (r < 0 || !path || geteuid() != 0)
		return r;
	for (char *at = path; r == 0 && (at = strchr(at + 1, '/'));) {
		*at = '\0';
		if (stat(path, &st) != 0 || !(st.st_mode & S_IXOTH))
			r = err_set(
				reterr, CORDON_DENIED,
				"sandboxes of root cannot enter '%s': open it to others, or set "
				"XDG_DATA_HOME to a directory that is",
				path);
		*at = '/';
	}
	return r;
}

/* bash prefers these to any command. */
static bool is_builtin(const char *name)
{
	static const char *const names[] = {
		"alias",   "bg",      "bind",    "break",    "builtin",   "caller",   "case",
		"cd",      "command", "compgen", "complete", "compopt",   "continue", "coproc",
		"declare", "dirs",    "disown",  "do",       "done",      "elif",     "else",
		"enable",  "esac",    "eval",    "exec",     "exit",      "export",   "fc",
		"fg",      "fi",      "for",     "function", "getopts",   "hash",     "help",
		"history", "if",      "in",      "jobs",     "let",       "local",    "logout",
		"mapfile", "popd",    "pushd",   "read",     "readarray", "readonly", "return",
		"select",  "set",     "shift",   "shopt",    "source",    "suspend",  "then",
		"time",    "times",   "trap",    "type",     "typeset",   "ulimit",   "umask",
		"unalias", "unset",   "until",   "wait",     "while",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

static int check_free(const char *image, const char *name, bool replace,
		      struct cordon_error **reterr)
{
	cleanup_json json_t *programs = json_array();
	cleanup_free char *path = NULL;
	size_t i, k;
	json_t *one, *command;
	int r = load_programs(image, programs, reterr);

	if (r == 0)
		r = added_path("bin", name, "", &path, reterr);
	if (r < 0)
		return r;
	json_array_foreach(programs, i, one)
	{
		json_array_foreach(json_object_get(one, "commands"), k, command)
		{
			if (str_eq(json_string_value(command), name))
				return err_set(
					reterr, CORDON_EXISTS,
					"'%s' is a command of the image: choose another name",
					name);
		}
	}
	if (is_builtin(name))
		return err_set(reterr, CORDON_EXISTS,
			       "'%s' is a builtin of the shell: choose another name", name);
	if (!replace && path && access(path, F_OK) == 0)
		return err_set(reterr, CORDON_EXISTS,
			       "a command '%s' was added before: remove or replace it", name);
	return 0;
}

static int load_abi(const char *image, char ret[32], struct cordon_error **reterr)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_free char *path = str_printf("%s/translate/abi", image);

	buf_init(&text, 16);
	int r = path ? file_load(path, 16, &text, NULL) : -CORDON_NOMEM;
	size_t n = r == 0 ? strspn(buf_text(&text), "0123456789") : 0;
	if (n == 0 || n > 8)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the pod's image in '%s' cannot translate modules: build it anew "
			       "with `make pod`",
			       image);
	memcpy(ret, text.data, n);
	ret[n] = '\0';
	return 0;
}

int wasm_cache_make(const struct wasm_cache_image *image, const char *hash,
		    const struct wasm_compile_job *job, struct wasm_compiled *ret,
		    struct cordon_error **reterr)
{
	cleanup_free char *object = NULL, *imports = NULL;
	int r = cache_path(hash, image->abi, "", &object, reterr);

	if (r == 0)
		r = cache_path(hash, image->abi, ".imports", &imports, reterr);
	if (r < 0)
		return r;
	if (file_load(object, WASM_COMPILE_OBJECT_BYTES, &ret->object, NULL) == 0 &&
	    file_load(imports, META_BYTES, &ret->imports, NULL) == 0)
		return 0;
	buf_clear(&ret->object);
	buf_clear(&ret->imports);
	r = wasm_compile_run(image->path, job, ret, reterr);
	if (r == 0)
		r = wasm_cache_save(object, 0600, ret->object.data, ret->object.len, reterr);
	if (r == 0)
		r = wasm_cache_save(imports, 0600, buf_text(&ret->imports), ret->imports.len,
				    reterr);
	return r;
}

static json_t *import_list(const struct wasm_compiled *c)
{
	cleanup_free char *copy = str_dup(buf_text(&c->imports));
	char *rest = NULL;
	json_t *list = json_array();

	for (char *word = copy ? strtok_r(copy, " \n", &rest) : NULL; word;
	     word = strtok_r(NULL, " \n", &rest))
		json_array_append_new(list, json_string(word));
	return list;
}

/* Saves the list's entry first. A command without an entry would never be shown; an entry without
 * an object is. */
static int keep(const char *name, const char *abi, const char *hash,
		const struct wasm_compile_job *job, const struct wasm_compiled *c,
		struct cordon_error **reterr)
{
	cleanup_free char *meta = NULL, *object = NULL, *text = NULL;
	cleanup_json json_t *j =
		json_pack("{s:s, s:s, s:I, s:s, s:o}", "name", name, "sha256", hash, "bytes",
			  (json_int_t)job->len, "abi", abi, "imports", import_list(c));
	int r = added_path("list", name, ".json", &meta, reterr);

	if (r == 0)
		r = added_path("bin", name, "", &object, reterr);
	if (r < 0)
		return r;
	text = j ? json_text(j, NULL) : NULL;
	if (!text)
		return no_memory(reterr);
	r = wasm_cache_save(meta, 0644, text, strlen(text), reterr);
	return r < 0 ? r : wasm_cache_save(object, 0555, c->object.data, c->object.len, reterr);
}

static int count_added(void)
{
	cleanup_free char *dir = NULL;
	int n = 0;

	if (added_path("bin", NULL, "", &dir, NULL) < 0)
		return 0;
	DIR *d = opendir(dir);
	if (!d)
		return 0;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

int wasm_cache_find_image(struct wasm_cache_image *ret, struct cordon_error **reterr)
{
	int r = podimage_get(ret->path, sizeof(ret->path), reterr);

	return r < 0 ? r : load_abi(ret->path, ret->abi, reterr);
}

void wasm_cache_hash(const void *bytes, size_t len, char ret[static WASM_CACHE_HASH])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, bytes, len);
	hex_encode(ret, hash, sizeof(hash));
}

int cordon_pod_add(const char *name, const void *bytes, size_t len,
		   const struct cordon_pod_add_options *opts, struct cordon_error **reterr)
{
	const struct cordon_pod_add_options none = { 0 };
	cleanup_wasm_compiled struct wasm_compiled t = { 0 };
	struct wasm_cache_image image;
	char hex[WASM_CACHE_HASH];
	int r = check_name(name, reterr);

	opts = opts ? opts : &none;
	struct wasm_compile_job job = { bytes, len, opts->timeout_ms ? opts->timeout_ms : 600000 };
	if (r == 0)
		r = wasm_cache_find_image(&image, reterr);
	if (r == 0)
		r = check_free(image.path, name, opts->replace, reterr);
	if (r == 0)
		r = check_reach(reterr);
	if (r < 0)
		return r;
	if (len > MODULE_BYTES)
		return err_set(reterr, CORDON_LIMIT, "the module is too large: %zu bytes of %d",
			       len, MODULE_BYTES);
	if (count_added() >= ADDED_MAX)
		return err_set(reterr, CORDON_LIMIT, "%d commands were added: remove some first",
			       ADDED_MAX);
	wasm_cache_hash(bytes, len, hex);
	wasm_compiled_init(&t);
	r = wasm_cache_make(&image, hex, &job, &t, reterr);
	return r < 0 ? r : keep(name, image.abi, hex, &job, &t, reterr);
}

int cordon_pod_remove(const char *name, struct cordon_error **reterr)
{
	cleanup_free char *meta = NULL, *object = NULL;
	int r = check_name(name, reterr);

	if (r == 0)
		r = added_path("bin", name, "", &object, reterr);
	if (r == 0)
		r = added_path("list", name, ".json", &meta, reterr);
	if (r < 0)
		return r;
	bool had_object = unlink(object) == 0, had_meta = unlink(meta) == 0;
	if (!had_object && !had_meta)
		return err_set(reterr, CORDON_NOT_FOUND, "no command '%s' was added", name);
	return 0;
}

static void list_one(const char *dir, const char *file, const char *abi, json_t *ret)
{
	cleanup_free char *path = str_printf("%s/%s", dir, file), *object = NULL;
	cleanup_json json_t *j = NULL;

	if (!path || !str_ends(file, ".json") || json_parse_file(path, META_BYTES, &j, NULL) < 0)
		return;
	const char *name = json_string_value(json_object_get(j, "name"));
	if (!name || check_name(name, NULL) < 0 || added_path("bin", name, "", &object, NULL) < 0)
		return;
	bool is_current = access(object, R_OK) == 0 &&
			  str_eq(json_string_value(json_object_get(j, "abi")), abi);
	json_object_set_new(j, "is_current", json_boolean(is_current));
	json_object_del(j, "abi");
	json_array_append(ret, j);
}

static int list_added(const char *abi, json_t *ret, struct cordon_error **reterr)
{
	cleanup_free char *dir = NULL;
	struct dirent **entries = NULL;
	int r = added_path("list", NULL, "", &dir, reterr);

	if (r < 0)
		return r;
	int n = scandir(dir, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		list_one(dir, entries[i]->d_name, abi, ret);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

int cordon_pod_list(char **ret_json, struct cordon_error **reterr)
{
	char image[PATH_MAX], abi[32] = "";
	cleanup_json json_t *programs = json_array(), *added = json_array(), *all = NULL;
	bool has_image = podimage_find(image, sizeof(image));
	int r = has_image ? load_programs(image, programs, reterr) : 0;

	if (r < 0)
		return r;
	if (has_image)
		(void)load_abi(image, abi, NULL);
	r = list_added(abi, added, reterr);
	if (r < 0)
		return r;
	all = json_pack("{s:s?, s:O, s:O}", "image", has_image ? image : NULL, "programs", programs,
			"added", added);
	*ret_json = all ? json_text(all, NULL) : NULL;
	return *ret_json ? 0 : no_memory(reterr);
}
