/* inside/guests/r/text.c - text of values and code that needs no R evaluation. */
#include <langinfo.h>
#include <string.h>

#include <R_ext/PrtUtil.h>

#include "inside/guests/r/turn.h"

static bool is_plain_string(const char *t)
{
	for (; *t; t++)
		if (*t < ' ' || *t > '~' || *t == '"' || *t == '\\')
			return false;
	return true;
}

#define TEXT_BYTES 65536 /* as in the other guests; the value itself is sent too */

static void put_string(struct bytes *b, const char *t)
{
	bool is_long = strlen(t) > TEXT_BYTES;
	bytes_format(b, "\"[1] \\\"%.*s%s\"", TEXT_BYTES, t, is_long ? "..." : "\\\"");
}

/* Uses R's own formatting, but not the connections and methods of capture.output(print()), which
 * take 0.1 ms. */
bool text_plain(struct bytes *b, SEXP v)
{
	int w, d, e;
	void Rf_PrintDefaults(void); /* applies options(); no header declares it */
	if (!Rf_isVectorAtomic(v) || XLENGTH(v) != 1 || ATTRIB(v) != R_NilValue)
		return false;
	switch (TYPEOF(v)) {
	case REALSXP:
		Rf_PrintDefaults();
		Rf_formatReal(REAL(v), 1, &w, &d, &e, 0);
		bytes_format(b, "\"[1] %s\"", Rf_EncodeReal0(REAL(v)[0], w, d, e, "."));
		return true;
	case INTSXP:
		if (INTEGER(v)[0] == NA_INTEGER)
			bytes_text(b, "\"[1] NA\"");
		else
			bytes_format(b, "\"[1] %d\"", INTEGER(v)[0]);
		return true;
	case LGLSXP:
		bytes_format(b, "\"[1] %s\"",
			     LOGICAL(v)[0] == NA_LOGICAL ? "NA"
			     : LOGICAL(v)[0]             ? "TRUE"
							 : "FALSE");
		return true;
	case STRSXP:
		if (STRING_ELT(v, 0) == NA_STRING || !is_plain_string(CHAR(STRING_ELT(v, 0))))
			return false;
		put_string(b, CHAR(STRING_ELT(v, 0)));
		return true;
	default:
		return false;
	}
}

/* R reads and prints code in the locale's characters; others become <U+00E9>. So the locale is
 * always UTF-8, whatever LC_ALL says or the code has set. */
void text_locale(void)
{
	static const char *const names[] = { "C.UTF-8", "C.utf8", "en_US.UTF-8" };
	for (size_t i = 0; i < 3 && strcmp(nl_langinfo(CODESET), "UTF-8") != 0; i++) {
		SEXP name = PROTECT(Rf_mkString(names[i]));
		SEXP which = PROTECT(Rf_mkString("LC_CTYPE"));
		SEXP call = PROTECT(Rf_lang3(Rf_install("Sys.setlocale"), which, name));
		R_tryEvalSilent(call, R_BaseEnv, NULL);
		UNPROTECT(3);
	}
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_';
}

bool text_has_word(const char *code, SEXP words)
{
	for (int i = 0; i < LENGTH(words); i++) {
		const char *word = CHAR(STRING_ELT(words, i));
		size_t len = strlen(word);
		for (const char *p = code; (p = strstr(p, word)); p += len)
			if ((p == code || !is_name(p[-1])) && !is_name(p[len]))
				return true;
	}
	return false;
}

SEXP text_code(struct json text)
{
	SEXP code = json_kind(text) == '"' ? decode_string(text) : R_BlankString;
	const char *t = CHAR(code);
	struct bytes plain = { 0 };

	if (strncmp(t, "\xef\xbb\xbf", 3) == 0)
		t += 3;
	else if (!strchr(t, '\r'))
		return code;
	for (; *t; t++)
		if (t[0] != '\r' || t[1] != '\n')
			bytes_char(&plain, *t);
	code = Rf_mkCharLenCE(plain.len ? plain.data : "", (int)plain.len, CE_UTF8);
	bytes_done(&plain);
	return code;
}
