/* policy/mount.c - mounts: host paths, or bytes, that the code sees. */
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "policy/array.h"
#include "policy/name.h"

enum { MOUNTS_MAX = 256 };

static const char *const modes[] = {
	[MOUNT_SNAPSHOT] = "snapshot", [MOUNT_LIVE_RO] = "ro", [MOUNT_LIVE_RW] = "rw"
};

static int mode_from_name(const char *name, const char *where, enum policy_mount_mode *ret,
			  struct cordon_error **reterr)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (str_eq(name, modes[i])) {
			*ret = (enum policy_mount_mode)i;
			return 0;
		}
	return err_set(reterr, CORDON_INVALID,
		       "%s: the mode must be snapshot, ro or rw, got: %.40s", where, name);
}

/* Gives each path one spelling: no "//", no "/./", no trailing slash. Refuses "..". */
static int set_path(char **ret, const char *path, const char *where, const char *which,
		    struct cordon_error **reterr)
{
	if (!name_is_path(path))
		return err_set(reterr, CORDON_INVALID,
			       "%s: the %s path must be absolute and without '..', got: %.200s",
			       where, which, path);
	char *out = str_dup(path);
	if (!out)
		return kind_nomem(reterr);
	size_t len = 0;
	for (const char *s = path; *s;) {
		size_t part = strcspn(s + 1, "/") + 1; /* including its slash */
		if (part > 1 && !(part == 2 && s[1] == '.')) {
			memmove(out + len, s, part);
			len += part;
		}
		s += part;
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	*ret = out;
	return 0;
}

static void item_done(void *item)
{
	struct policy_mount *m = item;

	free(m->host);
	free(m->guest);
	free(m->bytes);
	*m = (struct policy_mount){ 0 };
}

/* Parses "host:guest[:mode]" into a zeroed mount. */
static int read_text(struct policy_mount *m, const char *where, const char *text,
		     struct cordon_error **reterr)
{
	const char *colon = strchr(text, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
	int r = 0;

	if (!colon)
		return err_set(
			reterr, CORDON_INVALID,
			"%s must be HOST:GUEST or HOST:GUEST:MODE (snapshot, ro, rw), got: %.200s",
			where, text);
	cleanup_free char *host = str_ndup(text, (size_t)(colon - text));
	cleanup_free char *guest =
		second ? str_ndup(colon + 1, (size_t)(second - colon - 1)) : str_dup(colon + 1);
	if (!host || !guest)
		return kind_nomem(reterr);
	if (second)
		r = mode_from_name(second + 1, where, &m->mode, reterr);
	if (r == 0)
		r = set_path(&m->host, host, where, "host", reterr);
	if (r == 0)
		r = set_path(&m->guest, guest, where, "guest", reterr);
	return r;
}

static int read_bytes(struct policy_mount *m, const char *where, const json_t *obj,
		      struct cordon_error **reterr)
{
	const json_t *plain = json_object_get(obj, "bytes"),
		     *coded = json_object_get(obj, "bytes_base64");
	void *decoded = NULL;

	if (plain && coded)
		return err_set(reterr, CORDON_INVALID, "%s has both bytes and bytes_base64", where);
	if (!json_is_string(plain ? plain : coded))
		return err_set(reterr, CORDON_INVALID, "%s: %s must be a text", where,
			       plain ? "bytes" : "bytes_base64");
	if (coded) {
		int r = base64_decode(json_string_value(coded), json_string_length(coded), &decoded,
				      &m->bytes_len, reterr);
		m->bytes = decoded;
		return r < 0 ? err_wrap(reterr, r, "%s: bytes_base64 is not valid base64", where)
			     : 0;
	}
	m->bytes_len = json_string_length(plain);
	/* One byte more, because the pointer must not be NULL: it marks a mount by value. */
	m->bytes = mem_dup(json_string_value(plain), m->bytes_len + 1);
	return m->bytes ? 0 : kind_nomem(reterr);
}

static int read_object(struct policy_mount *m, const char *where, const json_t *j,
		       struct cordon_error **reterr)
{
	static const char *const keys[] = { "host", "guest", "mode", "bytes", "bytes_base64" };
	const char *host = NULL, *guest = NULL, *mode = NULL;
	bool by_value = json_object_get(j, "bytes") || json_object_get(j, "bytes_base64");
	int r = array_keys(j, where, keys, sizeof(keys) / sizeof(*keys), reterr);

	if (r == 0)
		r = array_text(j, where, "host", &host, reterr);
	if (r == 0)
		r = array_text(j, where, "guest", &guest, reterr);
	if (r == 0)
		r = array_text(j, where, "mode", &mode, reterr);
	if (r < 0)
		return r;
	if (!guest || !host == !by_value)
		return err_set(reterr, CORDON_INVALID,
			       "%s needs guest, and either host or bytes or bytes_base64", where);
	if (mode)
		r = mode_from_name(mode, where, &m->mode, reterr);
	if (r == 0 && by_value && m->mode != MOUNT_SNAPSHOT)
		r = err_set(reterr, CORDON_INVALID, "%s: bytes can only have the mode snapshot",
			    where);
	if (r == 0)
		r = set_path(&m->guest, guest, where, "guest", reterr);
	if (r == 0)
		r = by_value ? read_bytes(m, where, j, reterr)
			     : set_path(&m->host, host, where, "host", reterr);
	return r;
}

static int item_read(void *item, const char *where, const json_t *j, struct cordon_error **reterr)
{
	if (json_is_object(j))
		return read_object(item, where, j, reterr);
	if (!kind_string(j))
		return kind_refuse(where, "an object or a text HOST:GUEST[:MODE]", j, reterr);
	return read_text(item, where, kind_string(j), reterr);
}

static json_t *item_write(const void *item, bool with_secrets)
{
	const struct policy_mount *m = item;

	(void)with_secrets;
	if (m->host)
		return json_pack("{s:s, s:s, s:s}", "host", m->host, "guest", m->guest, "mode",
				 modes[m->mode]);
	cleanup_free char *coded = base64_encode(m->bytes, m->bytes_len, NULL);
	return coded ? json_pack("{s:s, s:s}", "guest", m->guest, "bytes_base64", coded) : NULL;
}

static int item_copy(void *dst, const void *src)
{
	struct policy_mount *to = dst;
	const struct policy_mount *from = src;

	to->mode = from->mode;
	to->host = str_dup(from->host);
	to->guest = str_dup(from->guest);
	if ((from->host && !to->host) || !to->guest)
		return -CORDON_NOMEM;
	if (!from->bytes)
		return 0;
	to->bytes = mem_alloc(from->bytes_len + 1);
	if (!to->bytes)
		return -CORDON_NOMEM;
	memcpy(to->bytes, from->bytes, from->bytes_len);
	to->bytes_len = from->bytes_len;
	return 0;
}

static int item_say(const void *item, struct buf *b)
{
	static const char *const how[] = {
		[MOUNT_SNAPSHOT] = "a copy",
		[MOUNT_LIVE_RO] = "live, read-only",
		[MOUNT_LIVE_RW] = "live and WRITABLE",
	};
	const struct policy_mount *m = item;

	if (m->host)
		return buf_printf(b, "%s as %s (%s)", m->host, m->guest, how[m->mode]);
	return buf_printf(b, "%zu bytes as %s (by value)", m->bytes_len, m->guest);
}

static const struct array_of items = {
	.size = sizeof(struct policy_mount),
	.max = MOUNTS_MAX,
	.read = item_read,
	.write = item_write,
	.copy = item_copy,
	.done = item_done,
	.say = item_say,
};
const struct kind kind_mounts = ARRAY_KIND(&items);

int policy_parse_mount(const char *text, struct policy_mount *ret, struct cordon_error **reterr)
{
	struct policy_mount m = { 0 };
	int r = read_text(&m, "mount", text, reterr);

	if (r < 0)
		item_done(&m);
	else
		*ret = m;
	return r;
}
