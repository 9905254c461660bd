/* policy/ports.c - the ports of `expose`. */
#include <stdlib.h>

#include "policy/name.h"
#include "policy/policy.h"

/* Below these a guest cannot listen: it has no privilege. */
enum { PORT_LOW = 1024, PORT_HIGH = 65535, PORT_DIGITS = 5, PROXY_PORT = 3128 };

/* Reads digits; moves *text behind them. 0: no port. */
static unsigned read_port(const char **text)
{
	unsigned port = 0;

	for (int digits = 0; **text >= '0' && **text <= '9'; ++*text)
		if (++digits > PORT_DIGITS || (digits > 1 && port == 0))
			return 0;
		else
			port = port * 10 + (unsigned)(**text - '0');
	return port >= PORT_LOW && port <= PORT_HIGH ? port : 0;
}

static bool parse(const char *text, unsigned *ret_low, unsigned *ret_high)
{
	*ret_low = *ret_high = read_port(&text);
	if (*text == '-') {
		text++;
		*ret_high = read_port(&text);
	}
	return *text == '\0' && *ret_low > 0 && *ret_high >= *ret_low;
}

bool name_is_ports(const char *s)
{
	unsigned low, high;

	return parse(s, &low, &high);
}

bool policy_exposes(const struct policy *p, unsigned port)
{
	unsigned low, high;

	for (size_t i = 0; i < p->expose.count; i++)
		if (parse(p->expose.items[i], &low, &high) && port >= low && port <= high)
			return true;
	return false;
}

static bool has_gateway(const struct policy *p)
{
	return p->network.allow_count > 0 || p->network.block_count > 0;
}

bool policy_has_sockets(const struct policy *p)
{
	return has_gateway(p) || p->expose.count > 0;
}

/* Whoever connects to a port of the gateway would use the sandbox's network and its secrets. */
unsigned policy_gateway_port(const struct policy *p)
{
	if (has_gateway(p) && policy_exposes(p, PROXY_PORT))
		return PROXY_PORT;
	for (size_t i = 0; i < p->network.allow_count; i++)
		if (policy_exposes(p, p->network.allow[i].port))
			return p->network.allow[i].port;
	return 0;
}
