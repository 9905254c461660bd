/* inside/pod/runtime/pod_packages.c - writes the Python packages of tools as one uncompressed zip
 * archive. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "inside/pod/runtime/toolbox.h"

enum { ARCHIVE_MAX = 32 << 20, ENTRIES_MAX = 4096, NAME_MAX_BYTES = 1024 };

/* A package's code calls its tool through the command, under the same rules as the shell. */
static const char module[] =
	"import json as _json\n"
	"import subprocess as _subprocess\n\n\n"
	"class ToolError(RuntimeError):\n"
	"    \"\"\"A tool failed, or the host refused the call.\"\"\"\n\n\n"
	"def is_extension(name):\n"
	"    return name in _tools\n\n\n"
	"def call(name, /, *words, **args):\n"
	"    if name not in _tools:\n"
	"        raise ToolError('Unknown tool: ' + name)\n"
	"    if _tools[name]:\n"
	"        words = [str(w) for w in args.get('args', words)]\n"
	"        stdin = args.get('stdin', '')\n"
	"        stdin = stdin.encode() if isinstance(stdin, str) else stdin\n"
	"    else:\n"
	"        words = ['--%s=%s' % (k, v if isinstance(v, str) else _json.dumps(v))\n"
	"                 for k, v in args.items()] + ['--'] + [str(w) for w in words]\n"
	"        stdin = b''\n"
	"    done = _subprocess.run(['/usr/bin/' + name, *words], input=stdin, "
	"capture_output=True)\n"
	"    out, err = done.stdout.decode(), done.stderr.decode()\n"
	"    if _tools[name]:\n"
	"        return {'stdout': out, 'stderr': err, 'exitCode': done.returncode,\n"
	"                'exit_code': done.returncode}\n"
	"    if done.returncode:\n"
	"        raise ToolError(err.strip())\n"
	"    try:\n"
	"        return _json.loads(out)\n"
	"    except ValueError:\n"
	"        return out[:-1] if out.endswith('\\n') else out\n";

struct archive {
	struct bytes *out;
	struct bytes directory;
	unsigned count;
};

static uint32_t crc(const char *data, size_t len)
{
	uint32_t c = ~0u;

	for (size_t i = 0; i < len; i++) {
		c ^= (uint8_t)data[i];
		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
	}
	return ~c;
}

static void number(struct bytes *b, uint32_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		bytes_char(b, (char)(v >> 8 * i));
}

/* The fields that local header and directory entry share. */
static void common(struct bytes *b, const char *name, const struct bytes *text)
{
	number(b, 20, 2);     /* version */
	number(b, 0x0800, 2); /* names are UTF-8 */
	number(b, 0, 2);      /* stored */
	number(b, 0x00210000, 4);
	number(b, crc(text->data, text->len), 4);
	number(b, (uint32_t)text->len, 4);
	number(b, (uint32_t)text->len, 4);
	number(b, (uint32_t)strlen(name), 2);
	number(b, 0, 2);
}

static void add(struct archive *a, const char *name, const struct bytes *text)
{
	uint32_t at = (uint32_t)a->out->len;

	if (a->out->len + text->len > ARCHIVE_MAX || a->count == ENTRIES_MAX)
		return;
	number(a->out, 0x04034b50, 4);
	common(a->out, name, text);
	bytes_text(a->out, name);
	bytes_add(a->out, text->data, text->len);
	number(&a->directory, 0x02014b50, 4);
	number(&a->directory, 20, 2);
	common(&a->directory, name, text);
	for (int i = 0; i < 3; i++)
		number(&a->directory, 0, 2);
	number(&a->directory, 0100444u << 16, 4);
	number(&a->directory, at, 4);
	bytes_text(&a->directory, name);
	a->count++;
}

static void end(struct archive *a)
{
	uint32_t at = (uint32_t)a->out->len;

	bytes_add(a->out, a->directory.data, a->directory.len);
	number(a->out, 0x06054b50, 4);
	number(a->out, 0, 4);
	number(a->out, a->count, 2);
	number(a->out, a->count, 2);
	number(a->out, (uint32_t)a->directory.len, 4);
	number(a->out, at, 4);
	number(a->out, 0, 2);
	bytes_done(&a->directory);
}

static void add_text(struct archive *a, const char *package, const char *file, const char *text)
{
	struct bytes b = { 0 };
	char name[NAME_MAX_BYTES];

	snprintf(name, sizeof name, "%s%s%s", package, *package ? "/" : "", file);
	bytes_text(&b, text);
	add(a, name, &b);
	bytes_done(&b);
}

static void add_package(struct archive *a, struct json spec)
{
	struct json files = json_get(spec, "python_package"), key, value;
	bool has_init = json_get(files, "__init__.py").len,
	     has_shim = json_get(files, "_shim.py").len;
	struct bytes package = { 0 };
	const char *at = NULL;
	char shim[NAME_MAX_BYTES];

	json_string(json_get(spec, "name"), &package);
	bytes_char(&package, 0);
	while (json_each(files, &at, &key, &value)) {
		struct bytes name = { 0 }, text = { 0 };

		bytes_format(&name, "%s/", package.data);
		json_string(key, &name);
		bytes_char(&name, 0);
		json_string(value, &text);
		if (json_kind(value) == '"' && name.len < NAME_MAX_BYTES)
			add(a, name.data, &text);
		bytes_done(&name);
		bytes_done(&text);
	}
	if (!has_init)
		add_text(a, package.data, "__init__.py", "");
	snprintf(shim, sizeof shim,
		 "from cordon import call as _call\n\n\n"
		 "def run(*args, stdin=''):\n"
		 "    return _call('%.200s', args=[str(a) for a in args], stdin=stdin)\n",
		 package.data);
	if (!has_shim && json_kind(json_get(spec, "command")) == 't')
		add_text(a, package.data, "_shim.py", shim);
	bytes_done(&package);
}

int packages_write(struct json specs, struct bytes *ret)
{
	struct archive a = { .out = ret };
	struct bytes own = { 0 };
	struct json key, spec;
	const char *at = NULL;

	bytes_add(&own, module, sizeof module - 1);
	bytes_text(&own, "\n\n_tools = {");
	while (json_each(specs, &at, &key, &spec)) {
		struct json name = json_get(spec, "name");

		bytes_add(&own, name.at, name.len);
		bytes_text(&own,
			   json_kind(json_get(spec, "command")) == 't' ? ": True, " : ": False, ");
		if (json_kind(json_get(spec, "python_package")) == '{')
			add_package(&a, spec);
	}
	bytes_text(&own, "}\n");
	if (at) { /* there are tools */
		add(&a, "cordon.py", &own);
		add_text(&a, "", "codepod_ext.py",
			 "from cordon import call, is_extension  # noqa\n");
		end(&a);
	}
	bytes_done(&own);
	return (int)a.count;
}
