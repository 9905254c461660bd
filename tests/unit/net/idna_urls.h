/* unit/net/idna_urls.h - URLs with non-ASCII hosts; same columns as urls.h. */
{ "http://m\xc3\xbcnchen.de/", "xn--mnchen-3ya.de:80", 1 },
	{ "http://M\xc3\x9cNCHEN.de/", "xn--mnchen-3ya.de:80", 1 },
	{ "http://mu\xcc\x88nchen.de/", "xn--mnchen-3ya.de:80", 1 }, /* decomposed */
	{ "http://m%C3%BCnchen.de/", "xn--mnchen-3ya.de:80", 1 },
	{ "http://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de:80", 1 },
	{ "http://XN--MNCHEN-3YA.DE/", "xn--mnchen-3ya.de:80", 1 },
	{ "http://munchen.de/", "munchen.de:80", 0 },
	{ "http://\xef\xbd\x85xample.com/", "example.com:80", 1 }, /* full-width e */
	{ "http://\xe2\x93\x94xample.com/", "example.com:80", 1 }, /* circled e */
	{ "http://example\xe3\x80\x82"
	  "com/",
	  "example.com:80", 1 }, /* ideographic full stop */
	{ "http://example\xef\xbc\x8e"
	  "com/",
	  "example.com:80", 1 }, /* full-width full stop */
	{ "http://example\xef\xbd\xa1"
	  "com/",
	  "example.com:80", 1 }, /* half-width full stop */
	{ "http://evil\xe3\x80\x82test/", "evil.test:80", 0 },
	{ "http://evil.test\xe3\x80\x82"
	  "example.org/",
	  "evil.test.example.org:80", 1 },
	{ "http://ex\xc2\xad"
	  "ample.com/",
	  "example.com:80", 1 }, /* soft hyphen is ignored */
	{ "http://ex\xe2\x80\x8b"
	  "ample.com/",
	  "example.com:80", 1 }, /* zero-width space too */
	{ "http://\xef\xbb\xbf"
	  "example.com/",
	  "example.com:80", 1 },                                      /* byte order mark */
	{ "http://\xd0\xb5xample.com/", "xn--xample-2of.com:80", 0 }, /* Cyrillic e */
	{ "http://ex\xd0\xb0mple.com/", "xn--exmple-4nf.com:80", 0 }, /* Cyrillic a */
	{ "http://evil.test\xef\xbc\x8f.example.org/", NULL, 0 },     /* full-width slash */
	{ "http://evil.test\xef\xbc\x9f.example.org/", NULL, 0 },     /* full-width ? */
	{ "http://evil.test\xef\xbc\x83.example.org/", NULL, 0 },     /* full-width # */
	{ "http://evil.test\xef\xbc\xa0"
	  "example.com/",
	  NULL, 0 }, /* full-width @ */
	{ "http://evil.test\xef\xbc\x9a"
	  "80/",
	  NULL, 0 },                                              /* full-width : */
	{ "http://evil.test\xe2\x84\x80.example.org/", NULL, 0 }, /* a/c */
	{ "http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/", "127.0.0.1:80", 0 },
	{ "http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/", "127.0.0.1:80", 0 }, /* circled */
	{ "http://127\xe3\x80\x82"
	  "0\xe3\x80\x82"
	  "0\xe3\x80\x82"
	  "1/",
	  "127.0.0.1:80", 0 },
	{ "http://\xef\xbc\x90x7f.1/", "127.0.0.1:80", 0 }, /* full-width 0 before x */
	{ "http://fa\xc3\x9f.de/", "xn--fa-hia.de:80", 0 }, { "http://xn--/", NULL, 0 },
	{ "http://xn--a/", NULL, 0 }, { "http://xn--\xc3\xbc/", NULL, 0 },
	{ "http://\xff\xfe/", NULL, 0 }, { "http://\xc0\xae/", NULL, 0 },
	{ "http://%ff/", NULL, 0 }, { "http://ex%E2%80%8Bample.com/", "example.com:80", 1 },
	{ "http://evil.test%EF%BC%8F.example.org/", NULL, 0 },
