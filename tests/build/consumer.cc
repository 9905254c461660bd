// build/consumer.cc - the public headers as C++ sees them.
#include <cordon/cordon.h>

#include <cstdio>

int main()
{
	cordon_error *e = nullptr;
	cordon_session *s = nullptr;
	cordon_session_options options = {};
	options.guest = "cobol";
	int r = cordon_session_open(&options, &s, &e);
	cordon_error_free(e);
	std::printf("libcordon %s, %s\n", cordon_version(), r < 0 && !s ? "ok" : "opened");
	return 0;
}
