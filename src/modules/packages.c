/* modules/packages.c - see packages.h. A registry is a directory or an http(s) URL with a file
 * packages.json: {"packages": [{"name", "version", "summary", "file", "sha256"}]}. A file is a
 * WebAssembly module, which becomes a command, or a wheel, which the pod's pip unpacks. URLs are
 * fetched by the host's HTTP client, in a gateway process and under the rules of the session's
 * policy. */
#include "modules/packages.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "guest/podimage.h"
#include "modules/installer.h"
#include "modules/wasm_cache.h"
#include "net/host/fetch.h"
#include "policy/name.h"
#include "session/session.h"

#define REGISTRY "/usr/share/cordon/packages"

enum {
	INDEX_BYTES = 1 << 20,
	TABLE_BYTES = 1 << 20,
	TRANSLATE_MS = 120000,
	WHY_BYTES = 300,
	STAMP_BYTES = 128
};

/* Why a package is refused: an error code of the pod's package manager, and a text. */
struct refusal {
	const char *code;
	char why[WHY_BYTES];
};

struct preparation {
	const struct policy *policy;
	const char *registry;
	char dir[PATH_MAX];
	struct wasm_cache_image image;
	json_t *index; /* entries of the registry */
	json_t *kept;  /* files to keep, by their path in dir */
	struct buf table;
	struct refusal no_index; /* why there is no index */
	uint64_t count;          /* packages made ready */
	bool passing;            /* a refusal may be temporary */
};

#define REFUSE(r, code_, ...)                                                                      \
	((r)->code = (code_), (void)snprintf((r)->why, sizeof((r)->why), __VA_ARGS__), -1)

static bool is_address(const char *registry)
{
	return str_starts(registry, "http://") || str_starts(registry, "https://");
}

/* Turns the client's error into a refusal: denied, too large, or unreachable. */
static int fetch_refusal(int code, const struct cordon_error *e, const char *address, size_t max,
			 struct refusal *why)
{
	const char *host = strstr(address, "://") + 3;
	int len = (int)strcspn(host, "/");

	switch (-code) {
	case CORDON_DENIED:
		return REFUSE(why, "E_PKG_HOST_DENIED",
			      "Host '%.*s' is not in the allowed hosts list", len, host);
	case CORDON_LIMIT:
		return REFUSE(why, "E_PKG_TOO_LARGE", "it has more than %zu bytes", max);
	case CORDON_TIMEOUT:
		return REFUSE(why, "E_PKG_UNREACHABLE", "%.*s does not answer in time", len, host);
	default:
		return REFUSE(why, "E_PKG_UNREACHABLE", "%.250s", cordon_error_message(e));
	}
}

static int fetch(const struct preparation *w, const char *address, size_t max, struct buf *ret,
		 struct refusal *why)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_fetch struct fetch_result r = { 0 };
	cleanup_policy struct policy policy = { 0 };
	struct fetch_options o = { .gateway = { .policy = &policy }, .url = address };
	uint64_t *most = &policy.network.response_bytes;

	if (policy_copy(&policy, w->policy, NULL) < 0)
		return REFUSE(why, "E_PKG_NOT_FOUND", "out of memory");
	*most = *most && *most < max ? *most : max;
	int code = fetch_run(&o, &r, &e);
	if (code < 0)
		return fetch_refusal(code, e, address, *most, why);
	if (r.status == 404 || r.status == 410)
		return REFUSE(why, "E_PKG_NOT_FOUND", "the registry does not have it");
	if (r.status != 200)
		return REFUSE(why, "E_PKG_UNREACHABLE", "the registry answers with status %u",
			      r.status);
	if (r.body.len > max || buf_add(ret, r.body.data, r.body.len) < 0)
		return REFUSE(why, "E_PKG_TOO_LARGE", "it has more than %zu bytes", max);
	return 0;
}

static int load(const struct preparation *w, const char *name, size_t max, struct buf *ret,
		struct refusal *why)
{
	cleanup_free char *path = str_printf("%s/%s", w->registry, name);

	if (!path)
		return REFUSE(why, "E_PKG_NOT_FOUND", "out of memory");
	buf_init(ret, max);
	if (is_address(w->registry))
		return fetch(w, path, max, ret, why);
	int r = file_load(path, max, ret, NULL);
	if (r == -CORDON_LIMIT)
		return REFUSE(why, "E_PKG_TOO_LARGE", "it has more than %zu bytes", max);
	return r < 0 ? REFUSE(why, "E_PKG_NOT_FOUND", "the registry does not have it") : 0;
}

static const char *text_of(const json_t *entry, const char *key)
{
	const char *s = json_string_value(json_object_get(entry, key));

	return s ? s : "";
}

static const json_t *find(const struct preparation *w, const char *name)
{
	size_t i;
	json_t *one;

	json_array_foreach(w->index, i, one)
	{
		if (str_eq(text_of(one, "name"), name))
			return one;
	}
	return NULL;
}

/* Stores the package where the pod finds it; its hash was checked. */
static int put(struct preparation *w, const json_t *entry, const struct buf *bytes,
	       const char *hash, struct refusal *why)
{
	cleanup_wasm_compiled struct wasm_compiled t = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	const char *file = text_of(entry, "file");
	struct wasm_compile_job job = { buf_text(bytes), bytes->len, TRANSLATE_MS };
	bool wheel = str_ends(file, ".whl");
	cleanup_free char *place = str_printf("%s/%s", wheel ? "wheels" : "bin",
					      wheel ? file : text_of(entry, "name"));
	cleanup_free char *path = place ? str_printf("%s/%s", w->dir, place) : NULL;
	int r = path ? 0 : -1;

	wasm_compiled_init(&t);
	if (r == 0 && wheel)
		r = wasm_cache_save(path, 0444, buf_text(bytes), bytes->len, &e);
	else if (r == 0 && wasm_cache_make(&w->image, hash, &job, &t, &e) == 0)
		r = wasm_cache_save(path, 0555, t.object.data, t.object.len, &e);
	else
		r = -1;
	if (r < 0 || json_object_set_new(w->kept, place, json_true()) < 0)
		return REFUSE(why, "E_PKG_INVALID", "%.250s",
			      e ? cordon_error_message(e) : "out of memory");
	return 0;
}

static int make(struct preparation *w, const json_t *entry, struct refusal *why)
{
	cleanup_buf struct buf bytes = { 0 };
	const char *file = text_of(entry, "file"), *sum = text_of(entry, "sha256");
	char hash[WASM_CACHE_HASH];

	if (w->count >= w->policy->package_count)
		return REFUSE(why, "E_PKG_LIMIT", "Maximum of %llu packages reached",
			      (unsigned long long)w->policy->package_count);
	if (!name_is_package(file))
		return REFUSE(why, "E_PKG_INVALID_NAME", "its file name is not a plain name");
	if (strlen(sum) != WASM_CACHE_HASH - 1)
		return REFUSE(why, "E_PKG_INTEGRITY", "the registry gives no SHA-256 of it");
	if (load(w, file, w->policy->package_bytes, &bytes, why) < 0)
		return -1;
	wasm_cache_hash(buf_text(&bytes), bytes.len, hash);
	if (!str_eq(hash, sum))
		return REFUSE(why, "E_PKG_INTEGRITY",
			      "it does not have the SHA-256 of the registry");
	if (put(w, entry, &bytes, hash, why) < 0)
		return -1;
	w->count++;
	return 0;
}

/* Writes one line of the table. Text of the registry must not add lines. */
static int add_line(struct preparation *w, const char *name, const json_t *entry,
		    const struct refusal *why)
{
	cleanup_free char *line = str_printf(
		"%.64s\t%.40s\t%s\t%.300s", name,
		entry && *text_of(entry, "version") ? text_of(entry, "version") : "-",
		why->code ? why->code : "ok", why->code ? why->why : text_of(entry, "summary"));
	unsigned tabs = 0;

	if (!line)
		return -CORDON_NOMEM;
	for (char *c = line; *c; c++)
		if ((*c == '\t' && ++tabs > 3) || (*c != '\t' && (unsigned char)*c < ' ') ||
		    *c == 0x7f)
			*c = ' ';
	return buf_printf(&w->table, "%s\n", line);
}

static int prepare_one(struct preparation *w, const char *name)
{
	struct refusal why = { 0 };
	const json_t *entry = find(w, name);

	if (!name_is_package(name) || strlen(name) > 32)
		(void)REFUSE(&why, "E_PKG_INVALID_NAME", "invalid package name");
	else if (!w->index)
		why = w->no_index;
	else if (!entry)
		(void)REFUSE(&why, "E_PKG_NOT_FOUND", "the registry does not have it");
	else if (make(w, entry, &why) < 0)
		w->passing |= str_eq(why.code, "E_PKG_NOT_FOUND") ||
			      str_eq(why.code, "E_PKG_UNREACHABLE") ||
			      str_eq(why.code, "E_PKG_HOST_DENIED");
	return add_line(w, name, entry, &why);
}

static int prepare_all(struct preparation *w)
{
	const struct policy_list *list = &w->policy->packages;
	size_t i;
	json_t *one;
	int r = 0;

	for (size_t k = 0; r == 0 && !list->all && k < list->names.count; k++)
		r = prepare_one(w, list->names.items[k]);
	if (!list->all)
		return r;
	json_array_foreach(w->index, i, one)
	{
		r = prepare_one(w, text_of(one, "name"));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Removes files that an earlier index allowed and this one does not. */
static void sweep(const struct preparation *w, const char *sub)
{
	cleanup_free char *path = str_printf("%s/%s", w->dir, sub);
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *one;

	while (d && (one = readdir(d))) {
		cleanup_free char *place = str_printf("%s/%s", sub, one->d_name);

		if (one->d_name[0] != '.' && !(place && json_object_get(w->kept, place)))
			(void)unlinkat(dirfd(d), one->d_name, 0);
	}
	if (d)
		closedir(d);
}

/* Whether the same index was prepared for the same image. The stamp is written last. */
static bool is_ready(const struct preparation *w, const char *stamp)
{
	cleanup_buf struct buf was = { 0 };
	cleanup_free char *path = str_printf("%s/stamp", w->dir);

	buf_init(&was, STAMP_BYTES);
	return path && file_load(path, STAMP_BYTES, &was, NULL) == 0 &&
	       str_eq(buf_text(&was), stamp);
}

/* Removes the stamp: nothing is ready until the new table is complete. */
static void forget(const struct preparation *w)
{
	cleanup_free char *path = str_printf("%s/stamp", w->dir);

	if (path)
		(void)unlink(path);
}

static int save(const struct preparation *w, const char *name, const char *text, size_t len,
		struct cordon_error **reterr)
{
	cleanup_free char *path = str_printf("%s/%s", w->dir, name);

	return path ? wasm_cache_save(path, 0644, text, len, reterr)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static void load_index(struct preparation *w, struct buf *ret_text)
{
	cleanup_json json_t *j = NULL;

	if (load(w, "packages.json", INDEX_BYTES, ret_text, &w->no_index) < 0)
		return;
	if (json_parse(buf_text(ret_text), ret_text->len, INDEX_BYTES, &j, NULL) < 0)
		(void)REFUSE(&w->no_index, "E_PKG_NOT_FOUND", "the registry's list cannot be read");
	else
		w->index = json_incref(json_object_get(j, "packages"));
}

int packages_prepare(const struct policy *p, struct cordon_error **reterr)
{
	struct preparation w = { .policy = p };
	cleanup_buf struct buf index = { 0 };
	char hash[WASM_CACHE_HASH], stamp[STAMP_BYTES];
	const char *named = getenv("CORDON_REGISTRY");

	if (!podimage_packages(p, w.dir, sizeof(w.dir)) ||
	    wasm_cache_find_image(&w.image, NULL) < 0)
		return 0; /* no packages, or the launch reports what is missing */
	w.registry = named && *named ? named : REGISTRY;
	load_index(&w, &index);
	wasm_cache_hash(buf_text(&index), index.len, hash);
	snprintf(stamp, sizeof(stamp), "%s-%s", hash, w.image.abi);
	int r = 0;
	if (!w.index || !is_ready(&w, stamp)) {
		forget(&w);
		buf_init(&w.table, TABLE_BYTES);
		w.kept = json_object();
		r = w.kept ? prepare_all(&w) : -CORDON_NOMEM;
		if (r < 0)
			r = err_set(reterr, (enum cordon_code) - r, "the table of packages");
		if (r == 0) {
			sweep(&w, "bin");
			sweep(&w, "wheels");
			r = save(&w, "bin/.keep", "", 0, reterr);
		}
		if (r == 0)
			r = save(&w, "table", buf_text(&w.table), w.table.len, reterr);
		if (r == 0 && w.index && !w.passing)
			r = save(&w, "stamp", stamp, strlen(stamp), reterr);
		buf_done(&w.table);
	}
	json_decref(w.index);
	json_decref(w.kept);
	return r;
}

__attribute__((constructor)) static void hook(void)
{
	session_prepare_packages = packages_prepare;
	session_install_packages = installer_open;
}
