/* net/gateway/stream.h - one end of a connection: a non-blocking socket, perhaps with TLS on it,
 * and a bounded queue for each direction. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "net/gateway/fifo.h"

struct tls;

struct stream {
	int fd; /* -1: none */
	struct tls *tls;
	struct loop *loop;
	struct loop_source *source;
	loop_fd_fn fn;
	void *arg;
	uint32_t events;
	struct fifo in, out;
	bool is_readable, is_writable; /* as epoll last said */
	bool is_eof;                   /* the peer will send no more; in may still hold bytes */
	bool is_broken;                /* reset, or TLS failed: nothing more comes or goes */
	bool shut_wanted, is_shut;
	bool is_bypassed;             /* bulk.c reads it, stream_fill() does not */
	bool is_paused;               /* nothing is to be read for now */
	bool has_bulk;                /* bulk.c holds bytes for it */
	uint64_t bytes_in, bytes_out; /* payload since stream_open */
};

/* Takes the socket over; fn is called on its events and must call stream_event(). */
void stream_open(struct stream *s, struct loop *l, int fd, loop_fd_fn fn, void *arg);
void stream_event(struct stream *s, uint32_t epoll_events);
/* From now on TLS; bytes that were read already are given to it. */
void stream_start_tls(struct stream *s, struct tls *t);
/* Both move what they can and tell whether that was anything. */
bool stream_fill(struct stream *s);
bool stream_flush(struct stream *s);
/* No more will be written after what is in the queue. */
void stream_shut(struct stream *s);
/* Tells the loop what to wait for. */
void stream_watch(struct stream *s, bool want_read);
/* Closes with a reset, so that the peer cannot take a partial answer for a complete one. */
void stream_abort(struct stream *s);
void stream_close(struct stream *s);
