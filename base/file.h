/* file.h - whole files in and out. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/stat.h>

#include "base/arena.h"

/* Reading takes about as long as the page faults of a mapping up to this size, and what was read nobody can change. */
enum { FILE_MAX_COPIED = 1 << 20 };

/* Opens a regular file for reading, and says how it is.  Others are refused without waiting for them.  Errors (IO,
 * INVALID_ARGUMENT) name the path. */
STATUS_MUST_USE status file_open(const char *path, int *fd, struct stat *st);

/* The bytes of a regular file until the arena ends, at a multiple of 64: a copy up to FILE_MAX_COPIED, else mapped
 * read-only; an empty one gives size 0 and a pointer that is not NULL.  Directories, pipes and devices are refused
 * without waiting for them. Errors (IO, INVALID_ARGUMENT) name the path.  What is mapped shows what others write into
 * the file, which file_check finds out; whoever truncates it while it is being read ends the process with SIGBUS. Files
 * that are replaced by renaming stay as they were. */
STATUS_MUST_USE status file_map(arena *a, const char *path, const uint8_t **bytes, size_t *size);

/* The same for an open descriptor, which stays open; `name` is for messages. */
STATUS_MUST_USE status file_map_fd(arena *a, int fd, const char *name, const uint8_t **bytes, size_t *size);

/* IO: a file that is mapped on this arena was written to since.  From any thread. */
STATUS_MUST_USE status file_check(arena *a);
/* Whether the address lies in a file that is mapped on this arena. */
bool file_is_mapped(arena *a, const void *data);

/* Writes a file whole or not at all: under a temporary name beside it, then renamed.  What is no regular file
 * (/dev/stdout, a pipe) is written to as it is. */
STATUS_MUST_USE status file_write(const char *path, const void *bytes, size_t size);

#endif
