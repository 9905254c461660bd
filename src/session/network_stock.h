/* session/network_stock.h - keeps one gateway ready for the next session of a template. Each serves
 * one session only and is a program of its own, not a fork of another, so that no two have the same
 * address layout: a gateway reads what hostile code sends it. */
#pragma once

#include "session/network.h"

struct network_stock;

/* Starts the first one. The policy must outlive the stock. *ret stays NULL if the policy opens no
 * network. Functions that get a NULL stock do nothing. */
int network_stock_open(const struct policy *p, struct network_stock **ret,
		       struct cordon_error **reterr);
/* Waits for a gateway that is being started. */
struct network_stock *network_stock_close(struct network_stock *stock); /* returns NULL */
/* As network_fill_template, with the first gateway: before any other call. */
int network_stock_fill(const struct network_stock *stock, bool is_pod, struct launch *l,
		       struct cordon_error **reterr);
/* The one that is ready, now the caller's; NULL: none is. Any thread may call it. */
struct network_spare *network_stock_take(struct network_stock *stock);
/* If there is none, starts one in a thread of its own. If that fails, sessions start theirs
 * themselves and learn why. Any thread may call it. */
void network_stock_renew(struct network_stock *stock);
