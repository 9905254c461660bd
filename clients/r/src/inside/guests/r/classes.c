/* inside/guests/r/classes.c - whether an object is what its class says. R's own C code trusts some
 * classes, and the methods of some others run what the object names: a client must not be given
 * such an object by a guest. */
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/encode.h"

static bool has(SEXP class, const char *name)
{
	for (int i = 0; i < LENGTH(class); i++)
		if (!strcmp(CHAR(STRING_ELT(class, i)), name))
			return true;
	return false;
}

static bool is_number(SEXP v)
{
	return TYPEOF(v) == INTSXP || TYPEOF(v) == REALSXP;
}

static bool is_factor(SEXP v)
{
	SEXP levels = encode_attribute(v, R_LevelsSymbol);
	if (TYPEOF(v) != INTSXP || TYPEOF(levels) != STRSXP || Rf_any_duplicated(levels, FALSE))
		return false;
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (INTEGER(v)[i] != NA_INTEGER &&
		    (INTEGER(v)[i] < 1 || INTEGER(v)[i] > LENGTH(levels)))
			return false;
	return true;
}

static bool is_zone(SEXP v)
{
	SEXP zone = encode_attribute(v, Rf_install("tzone"));
	if (zone == R_NilValue)
		return true;
	if (TYPEOF(zone) != STRSXP || (LENGTH(zone) != 1 && LENGTH(zone) != 3))
		return false;
	for (int i = 0; i < LENGTH(zone); i++)
		if (STRING_ELT(zone, i) == NA_STRING)
			return false;
	return true;
}

static bool is_unit(SEXP v)
{
	SEXP unit = encode_attribute(v, Rf_install("units"));
	return is_number(v) && TYPEOF(unit) == STRSXP && LENGTH(unit) == 1 &&
	       instant_unit(CHAR(STRING_ELT(unit, 0))) > 0;
}

/* The fields of broken-down times, each of the right type and length. */
static bool is_times(SEXP v)
{
	static const char *const fields[] = { "sec",  "min",  "hour",  "mday", "mon",   "year",
					      "wday", "yday", "isdst", "zone", "gmtoff" };
	SEXP names = encode_attribute(v, R_NamesSymbol);
	if (TYPEOF(v) != VECSXP || LENGTH(v) < 9 || LENGTH(v) > 11 || TYPEOF(names) != STRSXP)
		return false;
	R_xlen_t n = XLENGTH(VECTOR_ELT(v, 0));
	for (int i = 0; i < LENGTH(v); i++) {
		SEXP one = VECTOR_ELT(v, i);
		int type = i == 0 ? REALSXP : i == 9 ? STRSXP : INTSXP;
		if (strcmp(CHAR(STRING_ELT(names, i)), fields[i]) != 0 || TYPEOF(one) != type ||
		    XLENGTH(one) != n)
			return false;
	}
	return is_zone(v);
}

static bool is_instant(SEXP v)
{
	return is_number(v) && is_zone(v);
}

static bool is_double(SEXP v)
{
	return TYPEOF(v) == REALSXP;
}

static bool is_series(SEXP v)
{
	return encode_attribute(v, R_TspSymbol) != R_NilValue;
}

static bool is_call(SEXP v)
{
	return TYPEOF(v) == LANGSXP;
}

bool classes_fit(SEXP v, SEXP class)
{
	static const struct {
		const char *class;
		bool (*fits)(SEXP v);
	} rules[] = {
		{ "factor", is_factor },    { "data.frame", frame_is_sound },
		{ "POSIXlt", is_times },    { "POSIXct", is_instant },
		{ "Date", is_number },      { "difftime", is_unit },
		{ "integer64", is_double }, { "ts", is_series },
		{ "formula", is_call },
	};

	for (int i = 0; i < LENGTH(class); i++)
		if (STRING_ELT(class, i) == NA_STRING)
			return false;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (has(class, rules[i].class) && !rules[i].fits(v))
			return false;
	return true;
}

/* Their methods draw, open files, pages or connections, look up functions by name, or run code that
 * the object contains, most of them as soon as it is printed. */
bool classes_are_refused(SEXP class)
{
	static const char *const refused[] = {
		"DLLInfo",
		"DLLInfoList",
		"DLLRegisteredRoutines",
		"NativeRoutineList",
		"NativeSymbol",
		"NativeSymbolInfo",
		"RegisteredNativeSymbol",
		"SecureSession",
		"SecureSessionPool",
		"bibentry",
		"browseVignettes",
		"citation",
		"connection",
		"cordon_class",
		"cordon_connection",
		"cordon_handle",
		"cordon_process",
		"cordon_result",
		"function",
		"gTree",
		"gg",
		"ggplot",
		"ggplot2::ggplot",
		"grob",
		"gtable",
		"help_files_with_topic",
		"hsearch",
		"htmlwidget",
		"json_text",
		"ls_str",
		"news_db",
		"news_db_from_Rd",
		"packageIQR",
		"packageInfo",
		"patchwork",
		"recordedplot",
		"securer_tool",
		"shiny.appobj",
		"shiny.tag",
		"shiny.tag.list",
		"srcfile",
		"srcfilealias",
		"srcfilecopy",
		"srcref",
		"trellis",
		"url",
		"vignette",
	};
	for (int i = 0; i < LENGTH(class); i++)
		for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++)
			if (!strcmp(CHAR(STRING_ELT(class, i)), refused[k]))
				return true;
	return false;
}

/* ---- S4 */

static bool holds(SEXP call)
{
	int failed = 0;
	PROTECT(call);
	SEXP said = R_tryEvalSilent(call, R_BaseEnv, &failed);
	UNPROTECT(1);
	return !failed && TYPEOF(said) == LGLSXP && LENGTH(said) == 1 && LOGICAL(said)[0] == TRUE;
}

static SEXP of_methods(const char *function)
{
	return Rf_lang3(Rf_install("::"), Rf_install("methods"), Rf_install(function));
}

static bool is_loaded(const char *package)
{
	SEXP name = PROTECT(Rf_mkString(package));
	bool is = holds(Rf_lang2(Rf_install("isNamespaceLoaded"), name));
	UNPROTECT(1);
	return is;
}

/* C code of packages trusts the slots of their classes. So in a client an object of a package's
 * class must be valid, and the package must be there to say so. */
bool classes_fit_s4(SEXP v, SEXP class)
{
	SEXP package = encode_attribute(class, Rf_install("package"));
	if (!decode_is_guarded)
		return true;
	if (LENGTH(class) != 1 || classes_are_refused(class))
		return false;
	SEXP name = PROTECT(Rf_ScalarString(STRING_ELT(class, 0)));
	SEXP is_class = PROTECT(of_methods("isClass"));
	bool is_known = holds(Rf_lang2(is_class, name));
	bool is_own = TYPEOF(package) == STRSXP && LENGTH(package) == 1 &&
		      !strcmp(CHAR(STRING_ELT(package, 0)), ".GlobalEnv");
	UNPROTECT(2);
	if (!is_known)
		return is_own;
	if (!is_own && (TYPEOF(package) != STRSXP || LENGTH(package) != 1 ||
			!is_loaded(CHAR(STRING_ELT(package, 0)))))
		return false;
	SEXP valid = PROTECT(of_methods("validObject"));
	SEXP yes = PROTECT(Rf_ScalarLogical(TRUE));
	bool is = holds(Rf_lang4(valid, v, yes, yes));
	UNPROTECT(2);
	return is;
}
