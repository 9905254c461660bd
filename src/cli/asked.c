/* cli/asked.c - see asked.h. */
#include "cli/asked.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/own_file.h"

enum { DENIALS_MAX = 1000 };

static const char *const keys[] = { "operation", "target", "remedy" };
enum { KEYS = sizeof(keys) / sizeof(*keys) };

static int nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

void asked_done(struct asked *a)
{
	free(a->folder);
	free(a->name);
	free(a->path);
	json_decref(a->allowed);
	json_decref(a->never);
	*a = (struct asked){ 0 };
}

static void hash(const void *bytes, size_t len, char ret[65])
{
	unsigned char sum[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(sum, bytes, len);
	sodium_bin2hex(ret, 65, sum, sizeof(sum));
}

static const char *text_of(const json_t *denial, const char *key)
{
	const char *text = json_string_value(json_object_get(denial, key));

	return text ? text : "";
}

/* What is not plainly false counts as claimed. */
static bool is_claimed(const json_t *denial)
{
	const json_t *claimed = json_object_get(denial, "claimed");

	return claimed && !json_is_false(claimed);
}

/* The remedy differs with the policy, which makes it no other denial. */
bool asked_has(const json_t *denials, const json_t *denial)
{
	for (size_t i = 0; i < json_array_size(denials); i++) {
		const json_t *known = json_array_get(denials, i);
		if (str_eq(text_of(known, "operation"), text_of(denial, "operation")) &&
		    str_eq(text_of(known, "target"), text_of(denial, "target")))
			return true;
	}
	return false;
}

int asked_add(json_t *denials, const json_t *denial)
{
	json_t *kept = json_object();
	int r = kept ? 0 : -1;

	for (size_t k = 0; r == 0 && k < KEYS; k++)
		r = json_object_set_new(kept, keys[k], json_string(text_of(denial, keys[k])));
	if (r == 0)
		r = json_object_set_new(kept, "claimed", json_boolean(is_claimed(denial)));
	if (r < 0) {
		json_decref(kept);
		return -CORDON_NOMEM;
	}
	return json_array_append_new(denials, kept) < 0 ? -CORDON_NOMEM : 0;
}

static int take_list(const json_t *answers, const char *key, json_t *to,
		     struct cordon_error **reterr)
{
	json_t *list = NULL;
	int r = json_get_array(answers, "", key, &list, reterr);

	if (r == 0 && json_array_size(list) > DENIALS_MAX)
		return err_set(reterr, CORDON_INVALID, "/%s has more than %d denials", key,
			       DENIALS_MAX);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const json_t *d = json_array_get(list, i);
		for (size_t k = 0; k < KEYS; k++)
			if (!json_is_string(json_object_get(d, keys[k])))
				return err_set(reterr, CORDON_INVALID, "/%s/%zu has no %s", key, i,
					       keys[k]);
		r = asked_add(to, d) < 0 ? nomem(reterr) : 0;
	}
	return r;
}

/* Answers for another content are dropped: nobody has seen what the code does now. */
static int take(struct asked *a, const char *text, struct cordon_error **reterr)
{
	static const char *const members[] = { "path", "sha256", "allowed", "never" };
	cleanup_json json_t *answers = NULL;
	const char *sha256 = NULL;
	int r = json_parse(text, strlen(text), 0, &answers, reterr);

	if (r == 0 && !json_is_object(answers))
		return err_set(reterr, CORDON_INVALID, "it is not a JSON object");
	if (r == 0)
		r = json_check_keys(answers, "", members, sizeof(members) / sizeof(*members),
				    reterr);
	if (r == 0)
		r = json_get_string(answers, "", "sha256", &sha256, reterr);
	if (r < 0)
		return r;
	a->is_outdated = !str_eq(sha256, a->sha256);
	if (a->is_outdated)
		return 0;
	r = take_list(answers, "allowed", a->allowed, reterr);
	return r < 0 ? r : take_list(answers, "never", a->never, reterr);
}

static int load(struct asked *a, struct cordon_error **reterr)
{
	cleanup_free char *text = NULL;
	int r = a->folder ? own_file_load(a->folder, a->name, true, &text, reterr) : 0;

	if (r == 0 && text)
		r = take(a, text, reterr);
	return r < 0 ? err_wrap(reterr, r, "earlier answers in '%s/%s'", a->folder, a->name) : 0;
}

int asked_load(struct asked *ret, const char *file, const void *content, size_t len,
	       struct cordon_error **reterr)
{
	cleanup_asked struct asked a = { .folder = own_file_folder("asked"),
					 .allowed = json_array(),
					 .never = json_array(),
					 .path = realpath(file, NULL) };
	char key[65] = "";

	if (!a.path)
		return err_errno(reterr, errno, "find '%s'", file);
	hash(a.path, strlen(a.path), key);
	hash(content, len, a.sha256);
	a.name = str_printf("%s.json", key);
	if (!a.name || !a.allowed || !a.never)
		return nomem(reterr);
	int r = load(&a, reterr);
	if (r == 0) {
		*ret = a;
		a = (struct asked){ 0 };
	}
	return r;
}

int asked_save(const struct asked *a, struct cordon_error **reterr)
{
	cleanup_json json_t *answers = json_pack(
		"{s:o, s:s, s:O, s:O}", "path", json_string_lossy(a->path, strlen(a->path)),
		"sha256", a->sha256, "allowed", a->allowed, "never", a->never);
	cleanup_free char *pretty = answers ? json_text_pretty(answers) : NULL;
	cleanup_free char *text = pretty ? str_printf("%s\n", pretty) : NULL;

	if (!a->folder)
		return err_set(reterr, CORDON_NOT_FOUND,
			       "there is no place for the answer: neither HOME nor "
			       "XDG_CONFIG_HOME is set");
	return text ? own_file_save(a->folder, a->name, text, reterr) : nomem(reterr);
}
