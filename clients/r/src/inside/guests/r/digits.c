/* inside/guests/r/digits.c - integers too large for R's numbers: their digits, as text of class
 * bigint. */
#include <stdint.h>
#include <string.h>

#include "inside/guests/r/encode.h"

static bool is_number(SEXP s, size_t max)
{
	const char *t = CHAR(s);
	size_t n = strspn(t + (*t == '-'), "0123456789");
	return n > 0 && n <= max && !t[n + (*t == '-')] && (t[*t == '-'] != '0' || n == 1);
}

bool digits_are_digits(SEXP v)
{
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (STRING_ELT(v, i) != NA_STRING && !is_number(STRING_ELT(v, i), SIZE_MAX))
			return false;
	return true;
}

/* 18 digits fit in 64 bits. */
bool digits_are_narrow(SEXP v)
{
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (STRING_ELT(v, i) != NA_STRING && !is_number(STRING_ELT(v, i), 18))
			return false;
	return true;
}

void digits_put(struct bytes *b, SEXP v, R_xlen_t i)
{
	bytes_text(b, STRING_ELT(v, i) == NA_STRING ? "null" : CHAR(STRING_ELT(v, i)));
}

void digits_put_big(struct bytes *b, SEXP v, R_xlen_t i)
{
	SEXP s = STRING_ELT(v, i);
	const void *top = vmaxget();
	if (s == NA_STRING) {
		bytes_text(b, "null");
	} else if (is_number(s, SIZE_MAX)) {
		bytes_text(b, "{\"$\":\"int\",\"v\":\"");
		bytes_text(b, CHAR(s));
		bytes_text(b, "\"}");
	} else {
		const char *t = Rf_translateCharUTF8(s);
		json_quote(b, t, strlen(t));
	}
	vmaxset(top);
}

void digits_list(struct encoder *e, SEXP v)
{
	if (!encode_take(e, XLENGTH(v)))
		return;
	bytes_char(e->b, '[');
	for (R_xlen_t i = 0; i < XLENGTH(v) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		digits_put_big(e->b, v, i);
		if (i % 256 == 0)
			encode_take(e, 0);
	}
	bytes_char(e->b, ']');
}
