/* inside/guests/r/turn.c - an execution from its message to its result. Contains what every
 * execution does: R code would take ten times as long, and in a newly forked session every page
 * that it touches must be copied first. What few executions need is in cordon_guest.R and called by
 * name. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside/guests/r/r_columns.h"
#include "inside/guests/r/turn.h"

/* After R's own types. */
#include <R_ext/Parse.h>
#include <Rembedded.h>

/* R internals that no header declares. */
extern Rboolean R_Visible;
const char *R_curErrorBuf(void);

enum stage { STAGE_IDLE, STAGE_PARSE, STAGE_CONTEXT, STAGE_RUN, STAGE_SHOW };
/* The part of a result's message that is not its value: one in REST_PART. */
enum { REST_PART = 32 };
enum kept { KEPT_CODE, KEPT_EXPRS, KEPT_CALL, KEPT_WARNINGS, KEPT_COUNT };

/* One thread, one execution at a time. */
static struct {
	SEXP runtime; /* the environment of cordon_guest.R */
	SEXP words;   /* words that restricted calls begin with */
	SEXP kept;    /* objects that describe a failure, protected from the collector */
	enum stage stage;
	int at;                     /* the current expression, from 1 */
	bool is_running, is_asking; /* is_asking: stdin comes from a person */
	unsigned long calls;
	size_t rpc_bytes, message_bytes, value_bytes;
	bool sends_columns; /* the value may have binary columns */
	bool shows_all;     /* every visible value is printed */
	bool is_ahead;      /* made in advance: nobody waits yet */
	struct bytes id, out, result_name, directory,
		error; /* error: R's last error message when it began */
} turn;

size_t turn_limit(SEXP bytes, bool is_tool)
{
	if (bytes != R_NilValue)
		return (size_t)Rf_asReal(bytes);
	return is_tool ? turn.message_bytes : turn.rpc_bytes;
}

static SEXP kept(enum kept which)
{
	return VECTOR_ELT(turn.kept, which);
}

static SEXP keep(enum kept which, SEXP v)
{
	SET_VECTOR_ELT(turn.kept, which, v);
	return v;
}

static SEXP ask(const char *name, SEXP a, SEXP b)
{
	SEXP f = Rf_findVarInFrame(turn.runtime, Rf_install(name));
	SEXP call = PROTECT(b ? Rf_lang3(f, a, b) : Rf_lang2(f, a));
	SEXP out = Rf_eval(call, R_BaseEnv);
	UNPROTECT(1);
	return out;
}

static SEXP quoted(SEXP v)
{
	return Rf_lang2(R_QuoteSymbol, v);
}

const char *turn_id(void)
{
	return turn.id.len ? turn.id.data : "0";
}

unsigned long turn_next_call(void)
{
	return turn.is_running ? ++turn.calls : 0;
}

static void set_text(struct bytes *b, const char *text, size_t len)
{
	b->len = 0;
	bytes_add(b, text, len);
	bytes_char(b, 0);
	b->len--;
}

/* ---- the reply */

/* Adds the working directory if the host does not know it yet. */
static void put_directory(struct bytes *b)
{
	char now[4096];
	if (!getcwd(now, sizeof(now)) || !strcmp(now, turn.directory.data))
		return; /* removed, or the same */
	set_text(&turn.directory, now, strlen(now));
	bytes_text(b, ",\"cwd\":");
	json_quote(b, now, strlen(now));
}

static void put_warnings(struct bytes *b)
{
	SEXP w = kept(KEPT_WARNINGS);
	if (TYPEOF(w) != STRSXP || !LENGTH(w))
		return;
	bytes_text(b, ",\"warnings\":[");
	for (int i = 0; i < LENGTH(w) && i < 64; i++) {
		const char *t = CHAR(STRING_ELT(w, i));
		bytes_text(b, i ? "," : "");
		json_quote(b, t, strlen(t));
	}
	bytes_char(b, ']');
}

static void put_value_error(struct bytes *b, const char *message)
{
	bytes_text(
		b,
		"\"ok\":false,\"error\":{\"kind\":\"value\",\"name\":\"ValueError\",\"message\":");
	json_quote(b, message, strlen(message));
	bytes_char(b, '}');
}

static void head(struct bytes *b)
{
	b->len = 0;
	bytes_format(b, "{\"type\":\"result\",\"id\":%s,", turn_id());
}

/* out contains all but the end. */
static void reply(void)
{
	struct bytes *b = &turn.out;
	turn.is_running = false;
	turn.stage = STAGE_IDLE;
	wire_flush_all();
	put_warnings(b);
	put_directory(b);
	bytes_text(b, "}\n");
	if (b->len > turn.rpc_bytes) {
		char why[96];
		snprintf(why, sizeof(why), "The result is too large (%zu bytes, max %zu)",
			 b->len - 1, turn.rpc_bytes);
		head(b);
		put_value_error(b, why);
		bytes_text(b, "}\n");
	}
	wire_say(b->data, b->len);
	if (b->cap > 1 << 20)
		bytes_done(b);
}

/* As print() shows it; nothing for NULL. */
static void put_text(struct bytes *b, SEXP v, const char *function)
{
	size_t before = b->len;
	if (v == R_NilValue)
		return;
	bytes_text(b, ",\"text\":");
	if (text_plain(b, v))
		return;
	SEXP q = PROTECT(quoted(v));
	SEXP text = PROTECT(ask(function, q, NULL));
	if (TYPEOF(text) == STRSXP && LENGTH(text) == 1) {
		const void *top = vmaxget();
		const char *t = Rf_translateCharUTF8(STRING_ELT(text, 0));
		json_quote(b, t, strlen(t));
		vmaxset(top);
	} else {
		b->len = before;
	}
	UNPROTECT(2);
}

/* {"ok":true} with the value, and its printed form if it is visible. */
static void put_value(struct bytes *b, SEXP v, bool is_visible)
{
	size_t before = b->len;
	SEXP printed = Rf_findVarInFrame(turn.runtime, Rf_install("printed"));
	bytes_text(b, "\"ok\":true,\"value\":");
	columns_begin(turn.sends_columns ? (double)turn.value_bytes : 0);
	const char *why = encode_value(b, v, printed, turn.rpc_bytes);
	bool is_large = columns_bytes() > 0;
	if (!why)
		why = turn_put_columns(b);
	if (!why && b->len > turn.rpc_bytes - turn.rpc_bytes / REST_PART)
		why = "the value is too large";
	if (why) {
		b->len = before;
		bytes_text(b, "\"ok\":true");
		keep(KEPT_WARNINGS, turn_lacks(kept(KEPT_WARNINGS), why));
	}
	if (is_visible)
		put_text(b, v, (why || is_large) && TYPEOF(v) == VECSXP ? "outline_of" : "text_of");
}

/* ---- before the code */

static void take_context(struct json context, struct json table)
{
	turn.stage = STAGE_CONTEXT; /* a bad value is an error of this execution */
	if (json_kind(table) == '{')
		turn_take_columns(table);
	SEXP values = PROTECT(decode_value(context));
	SEXP names = PROTECT(Rf_getAttrib(values, R_NamesSymbol));
	for (R_xlen_t i = 0; TYPEOF(values) == VECSXP && i < XLENGTH(names); i++)
		if (LENGTH(STRING_ELT(names, i)))
			Rf_defineVar(Rf_installTrChar(STRING_ELT(names, i)), VECTOR_ELT(values, i),
				     R_GlobalEnv);
	UNPROTECT(2);
	columns_drop();
}

static void take_directory(struct json directory)
{
	struct bytes path = { 0 };
	char now[4096];
	json_string(directory, &path);
	bytes_char(&path, 0);
	if (chdir(path.data) == 0 && getcwd(now, sizeof(now))) /* if it no longer exists, stay */
		set_text(&turn.directory, now, strlen(now));
	bytes_done(&path);
}

static void take_fields(struct json m)
{
	struct json env = json_get(m, "env"), in = json_get(m, "stdin");
	struct json context = json_get(m, "context"), directory = json_get(m, "directory");
	text_locale();
	if (json_kind(env) == '{') {
		SEXP v = PROTECT(decode_value(env));
		ask("change_env", v, NULL);
		UNPROTECT(1);
	}
	if (json_kind(in) == '"') {
		SEXP path = PROTECT(Rf_ScalarString(decode_string(in)));
		wire_stdin(path);
		UNPROTECT(1);
	}
	if (json_kind(directory) == '"')
		take_directory(directory);
	if (json_kind(json_get(m, "args")) == '[')
		arguments_take(json_get(m, "args"));
	if (json_kind(context) == '{')
		take_context(context, json_get(m, "buffer"));
	turn.sends_columns = json_kind(json_get(m, "buffers")) == 't';
	turn.stage = STAGE_PARSE;
}

/* Without source references, which cost as much as a small execution and are not needed for one
 * line. On a syntax error, R's own parse() gives the message. */
static SEXP parse(SEXP code)
{
	const char *t = CHAR(STRING_ELT(code, 0));
	if (!strchr(t, '\n') && !strstr(t, "function") && !strstr(t, "\\(")) {
		ParseStatus status;
		SEXP exprs = PROTECT(R_ParseVector(code, -1, &status, R_NilValue));
		UNPROTECT(1);
		if (status == PARSE_OK)
			return exprs;
	}
	return ask("parsed", code, NULL);
}

/* Whether the code assigns the variable that replaces the last expression as result. */
static bool stores_result(SEXP code, SEXP exprs)
{
	if (!strstr(CHAR(STRING_ELT(code, 0)), turn.result_name.data))
		return false;
	SEXP name = PROTECT(Rf_mkString(turn.result_name.data));
	bool stores = Rf_asLogical(ask("assigns", exprs, name)) == TRUE;
	UNPROTECT(1);
	return stores;
}

static SEXP result_variable(void)
{
	return Rf_findVarInFrame3(R_GlobalEnv, Rf_install(turn.result_name.data), TRUE);
}

/* .Internal(f(…)), without the closure around it. */
static SEXP internal(SEXP call)
{
	PROTECT(call);
	call = PROTECT(Rf_lang2(Rf_install(".Internal"), call));
	SEXP out = Rf_eval(call, R_BaseEnv);
	UNPROTECT(2);
	return out;
}

/* A sink() ends with its execution. */
static void end_sinks(void)
{
	for (int is_output = 0; is_output < 2; is_output++) {
		SEXP which = PROTECT(Rf_ScalarLogical(is_output));
		SEXP n = internal(Rf_lang2(Rf_install("sink.number"), which));
		if (Rf_asInteger(n) != (is_output ? 0 : 2)) /* 2 is the number of stderr() */
			ask("end_sinks", which, NULL);
		UNPROTECT(1);
	}
}

/* Prints warnings that options(warn = 0) defers until R is at its prompt, which it never is
 * here. */
static void say_warnings(void)
{
	internal(Rf_lang1(Rf_install("printDeferredWarnings")));
}

SEXP turn_warnings(void)
{
	say_warnings();
	return R_NilValue;
}

/* ---- the code */

/* As R's own prompt does. */
static void show_one(SEXP value)
{
	SEXP q = PROTECT(quoted(value));
	ask("show_one", q, NULL);
	UNPROTECT(1);
}

/* The value of the last expression; NULL: none. */
static SEXP evaluate(SEXP exprs, bool *ret_is_visible)
{
	SEXP value = NULL;
	PROTECT_INDEX at;
	PROTECT_WITH_INDEX(R_NilValue, &at);
	for (R_xlen_t i = 0; i < XLENGTH(exprs); i++) {
		SEXP q = PROTECT(quoted(VECTOR_ELT(exprs, i)));
		/* With eval(), because return() at the top level needs its frame. */
		SEXP call = keep(KEPT_CALL, Rf_lang3(Rf_install("eval"), q, R_GlobalEnv));
		UNPROTECT(1);
		turn.at = (int)i + 1;
		R_Visible = TRUE;
		REPROTECT(value = Rf_eval(call, R_BaseEnv), at);
		*ret_is_visible = R_Visible;
		if (turn.shows_all && R_Visible && i + 1 < XLENGTH(exprs))
			show_one(value);
	}
	UNPROTECT(1);
	return value;
}

/* Sends plots and tables. */
static void show(SEXP value, bool is_visible)
{
	SEXP plots = Rf_findVarInFrame(turn.runtime, Rf_install("plot_files"));
	if (plots == R_NilValue && (!value || !is_visible || !OBJECT(value)))
		return;
	SEXP q = PROTECT(quoted(value ? value : R_NilValue));
	SEXP visible = PROTECT(Rf_ScalarLogical(value && is_visible));
	ask("finish", q, visible);
	UNPROTECT(2);
}

/* A forked session has no temporary directory yet, and after a restore it may be gone. */
static void check_tempdir(void)
{
	if (R_TempDir && access(R_TempDir, W_OK) == 0)
		return;
	SEXP check = PROTECT(Rf_ScalarLogical(TRUE));
	internal(Rf_lang2(Rf_install("tempdir"), check));
	UNPROTECT(1);
}

static void begin(struct json m)
{
	struct json id = json_get(m, "id");
	set_text(&turn.id, id.len ? id.at : "0", id.len ? id.len : 1);
	wire_begin(turn.id.data);
	turn.calls = 0;
	turn.at = 0;
	turn.stage = STAGE_PARSE;
	wire_mend();
	end_sinks();
	check_tempdir();
	set_text(&turn.error, R_curErrorBuf(), strlen(R_curErrorBuf()));
	keep(KEPT_EXPRS, R_NilValue);
	keep(KEPT_CALL, R_NilValue);
	keep(KEPT_WARNINGS, R_NilValue);
}

static void run(struct json m)
{
	bool is_visible = false;
	begin(m);
	take_fields(m);
	turn.is_asking = json_kind(json_get(m, "asking")) == 't';
	turn.shows_all = json_kind(json_get(m, "show")) == 't';
	SEXP code = keep(KEPT_CODE, Rf_ScalarString(text_code(json_get(m, "code"))));
	SEXP exprs = keep(KEPT_EXPRS, parse(code));
	if (json_kind(json_get(m, "validate")) == 't' &&
	    text_has_word(CHAR(STRING_ELT(code, 0)), turn.words))
		keep(KEPT_WARNINGS, ask("advice_of", exprs, code));
	bool stores = stores_result(code, exprs);
	SEXP before = result_variable();
	turn.stage = STAGE_RUN;
	turn.is_running = true;
	wire_interruptible(true);
	SEXP value = evaluate(exprs, &is_visible);
	PROTECT(value ? value : R_NilValue);
	wire_interruptible(false);
	turn.stage = STAGE_SHOW;
	say_warnings();
	show(value, is_visible);
	SEXP after = PROTECT(result_variable());
	head(&turn.out);
	wire_interruptible(true);
	if (after != R_UnboundValue && (stores || after != before))
		put_value(&turn.out, after, true);
	else if (value)
		put_value(&turn.out, value, is_visible);
	else
		bytes_text(&turn.out, "\"ok\":true");
	wire_interruptible(false);
	show(NULL, false); /* what printing has drawn */
	UNPROTECT(2);
	reply();
}

/* Answers a prompt's question about code, which does not run. */
static void inspect(struct json m)
{
	begin(m);
	SEXP code = keep(KEPT_CODE, Rf_ScalarString(text_code(json_get(m, "code"))));
	bool is_status = json_is(json_get(m, "question"), "is_complete");
	turn.stage = STAGE_SHOW;
	wire_interruptible(true);
	SEXP value = PROTECT(ask(is_status ? "completeness" : "completions", code, NULL));
	head(&turn.out);
	put_value(&turn.out, value, false);
	wire_interruptible(false);
	UNPROTECT(1);
	reply();
}

/* ---- what R calls */

SEXP turn_init(SEXP runtime, SEXP words)
{
	turn.runtime = runtime;
	turn.words = words;
	turn.kept = PROTECT(Rf_allocVector(VECSXP, KEPT_COUNT));
	R_PreserveObject(turn.runtime);
	R_PreserveObject(turn.words);
	R_PreserveObject(turn.kept);
	UNPROTECT(1);
	turn.rpc_bytes = 1 << 23;
	turn.message_bytes = 1 << 20;
	set_text(&turn.result_name, "result", 6);
	set_text(&turn.directory, "/home/user", 10);
	return R_NilValue;
}

/* In a forked session: gives it its own random seed and temporary names. */
void turn_renew(void)
{
	SEXP seed = PROTECT(Rf_ScalarInteger(template_random()));
	internal(Rf_lang5(Rf_install("set.seed"), seed, R_NilValue, R_NilValue, R_NilValue));
	srand((unsigned)template_random()); /* for the names of tempfile() */
	handle_renew();
	UNPROTECT(1);
}

static void take_list(struct json v, const char *function)
{
	const char *at = NULL;
	struct json key, item;
	if (!json_each(v, &at, &key, &item))
		return; /* empty */
	SEXP list = PROTECT(decode_value(v));
	ask(function, list, NULL);
	UNPROTECT(1);
}

/* Reads the session's options; false: the host is gone. */
SEXP turn_welcome(void)
{
	struct json m, o, name;
	if (!wire_line(&m) || !json_is(json_get(m, "type"), "welcome"))
		return Rf_ScalarLogical(FALSE);
	o = json_get(m, "guest_options");
	name = json_get(o, "result_name");
	if (json_kind(name) == '"' && name.len > 2) {
		turn.result_name.len = 0;
		json_string(name, &turn.result_name);
		bytes_char(&turn.result_name, 0);
		turn.result_name.len--;
	}
	turn.rpc_bytes = json_number(json_get(o, "rpc_bytes"), turn.rpc_bytes);
	turn.value_bytes = json_number(json_get(o, "value_bytes"), 0);
	turn.message_bytes = json_number(json_get(o, "message_bytes"), turn.message_bytes);
	turn.is_ahead = json_kind(json_get(o, "ahead")) == 't';
	take_list(json_get(o, "env"), "change_env");
	take_list(json_get(o, "tools"), "change_tools");
	return Rf_ScalarLogical(TRUE);
}

/* Runs executions in advance, so that the usual pages are copied before anyone waits. */
static void rehearse(void)
{
	static const char line[] = "{\"id\":0,\"validate\":true,\"code\":\"1+1\"}";
	turn.is_ahead = false;
	if (!wire_idle(3))
		return;
	wire_mute(true);
	for (int i = 0; i < 8; i++)
		run((struct json){ line, sizeof(line) - 1 });
	wire_mute(false);
}

/* Serves until the host closes the wire; or runs the given lines and discards the replies. Leaves
 * by a jump if code fails: cordon_guest.R replies and calls again. */
SEXP turn_serve(SEXP lines)
{
	struct json m;
	wire_mute(TYPEOF(lines) == STRSXP);
	if (turn.is_ahead)
		rehearse();
	for (R_xlen_t i = 0; TYPEOF(lines) == STRSXP && i < XLENGTH(lines); i++) {
		const char *t = CHAR(STRING_ELT(lines, i));
		run((struct json){ t, strlen(t) });
	}
	while (TYPEOF(lines) != STRSXP && wire_line(&m) && !json_is(json_get(m, "type"), "exit"))
		if (json_is(json_get(m, "type"), "execute"))
			run(m);
		else if (json_is(json_get(m, "type"), "inspect"))
			inspect(m);
	return R_NilValue;
}

static void top(void *function)
{
	SEXP call = PROTECT(Rf_lang1(function));
	Rf_eval(call, R_BaseEnv);
	UNPROTECT(1);
}

/* Calls the function; false: the code jumped to the top level past all handlers, which would end a
 * non-interactive R. */
SEXP turn_top(SEXP function)
{
	return Rf_ScalarLogical(R_ToplevelExec(top, function));
}

SEXP turn_state(void)
{
	static const char *const stages[] = { "idle", "parse", "context", "run", "show" };
	static const char *const names[] = { "stage", "at",          "code", "exprs",
					     "call",  "result_name", "" };
	SEXP out = PROTECT(Rf_mkNamed(VECSXP, (const char **)(uintptr_t)names));
	SET_VECTOR_ELT(out, 0, Rf_mkString(stages[turn.stage]));
	SET_VECTOR_ELT(out, 1, Rf_ScalarInteger(turn.at));
	SET_VECTOR_ELT(out, 2, kept(KEPT_CODE));
	SET_VECTOR_ELT(out, 3, kept(KEPT_EXPRS));
	SET_VECTOR_ELT(out, 4, kept(KEPT_CALL));
	SET_VECTOR_ELT(out, 5, Rf_mkString(turn.result_name.data));
	UNPROTECT(1);
	return out;
}

/* R's message for an unhandled error, if there was one. */
SEXP turn_error(void)
{
	const char *said = R_curErrorBuf();
	return Rf_mkString(turn.error.data && !strcmp(said, turn.error.data) ? "" : said);
}

SEXP turn_asking(void)
{
	return Rf_ScalarLogical(turn.is_asking);
}

SEXP turn_running(void)
{
	return Rf_ScalarLogical(turn.is_running);
}

/* The reply of an execution that was not completed: its fields, after the stored variable. */
SEXP turn_reply(SEXP fields, SEXP stored)
{
	SEXP v = PROTECT(Rf_asLogical(stored) == TRUE ? result_variable() : R_UnboundValue);
	head(&turn.out);
	if (v != R_UnboundValue)
		put_value(&turn.out, v, true);
	bytes_text(&turn.out, CHAR(STRING_ELT(fields, 0)));
	UNPROTECT(1);
	reply();
	return R_NilValue;
}
