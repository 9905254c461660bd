/* net/gateway/stream.h - one end of a connection: a non-blocking socket, with or without TLS, and a
 * bounded queue for each direction. */
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
	bool is_readable, is_writable; /* as last reported by the loop */
	bool is_eof;                   /* the peer has closed; `in` may still hold bytes */
	bool is_broken;                /* reset, or TLS failed: no more reads or writes */
	bool shut_wanted, is_shut;
	bool is_bypassed;             /* bulk.c reads the socket instead of stream_fill() */
	bool is_paused;               /* reading is suspended */
	bool has_bulk;                /* bulk.c has bytes to write to it */
	uint64_t bytes_in, bytes_out; /* payload since stream_open */
};

/* Takes ownership of the socket. fn is called on its events and must call stream_event(). */
void stream_open(struct stream *s, struct loop *l, int fd, loop_fd_fn fn, void *arg);
void stream_event(struct stream *s, uint32_t events);
/* Starts TLS. Bytes that were already read are passed to it. */
void stream_start_tls(struct stream *s, struct tls *t);
/* Both move what they can; true: they moved something. */
bool stream_fill(struct stream *s);
bool stream_flush(struct stream *s);
/* Closes the sending side after the queued bytes. */
void stream_shut(struct stream *s);
/* Registers with the loop the events to wait for. */
void stream_watch(struct stream *s, bool want_read);
/* Closes with a reset, so that the peer cannot take a partial answer for a complete one. */
void stream_abort(struct stream *s);
void stream_close(struct stream *s);
