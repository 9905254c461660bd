/* inside/guests/node/node_buffer.h - descriptors of the host's files for binary columns
 * (docs/values.md), which JavaScript can neither receive nor map. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reads from the wire, and keeps a descriptor that comes with it in *ret_fd. As recvmsg(2). */
int buffer_receive(void *to, size_t size, int *ret_fd);
/* Copies into a file through a mapping: the limit on the size of files does not apply to it. */
bool buffer_fill(int fd, size_t at, const void *bytes, size_t len);
