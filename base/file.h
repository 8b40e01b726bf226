/* file.h - whole files in and out. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"

/* Maps a regular file read-only until the arena ends; an empty one gives size 0 and a pointer that is not
 * NULL. Directories, pipes and devices are refused without waiting for them.  Errors (IO, INVALID_ARGUMENT)
 * name the path.  Whoever truncates the file while it is mapped ends the process with SIGBUS. */
STATUS_MUST_USE status file_map(arena *a, const char *path, const uint8_t **bytes, size_t *size);

/* The same for an open descriptor, which stays open; `name` is for messages. */
STATUS_MUST_USE status file_map_fd(arena *a, int fd, const char *name, const uint8_t **bytes, size_t *size);

/* Writes a file whole or not at all: under a temporary name beside it, then renamed.  What is no regular file
 * (/dev/stdout, a pipe) is written to as it is. */
STATUS_MUST_USE status file_write(const char *path, const void *bytes, size_t size);

#endif
