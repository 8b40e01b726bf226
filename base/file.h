/* file.h - reads, maps and writes whole files. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/stat.h>

#include "base/arena.h"

/* Files up to this size are read into memory and not mapped.  Reading takes about as long as the page faults of a
 * mapping would, and nobody can change the copy. */
enum { FILE_MAX_COPIED = 1 << 20 };

/* Opens a regular file for reading, and sets *fd to its descriptor and *st to what fstat tells of it.  Anything but a
 * regular file is refused, without waiting for it; then *fd is -1.  Errors (IO, INVALID_ARGUMENT) name the path. */
STATUS_MUST_USE status file_open(const char *path, int *fd, struct stat *st);

/* Returns the bytes of a regular file, valid until the arena is destroyed, at an address that is a multiple of 64.
 * Files up to FILE_MAX_COPIED are copied, larger ones are mapped read-only.  For an empty file the size is 0, and the
 * pointer is not NULL but may have any alignment.  Directories, pipes and devices are refused without waiting for them.
 * Errors (IO, INVALID_ARGUMENT) name the path.
 *
 * If somebody writes to a mapped file, the mapped bytes change; file_check detects that.  If somebody truncates it
 * while it is read, SIGBUS ends the process.  If another file is renamed to its path, the mapped bytes stay as they
 * were. */
STATUS_MUST_USE status file_map(arena *a, const char *path, const uint8_t **bytes, size_t *size);

/* Like file_map, for an open descriptor, which stays open.  `name` is used in messages. */
STATUS_MUST_USE status file_map_fd(arena *a, int fd, const char *name, const uint8_t **bytes, size_t *size);

/* Returns an IO error if a file that is mapped on this arena was written to since it was mapped.  A file that was
 * renamed or replaced by renaming since then is not checked.  Any thread may call this. */
STATUS_MUST_USE status file_check(arena *a);
/* Returns true if the address lies in a file that is mapped on this arena. */
bool file_is_mapped(arena *a, const void *data);

/* Creates a folder and those of its parents that are missing, as mkdir -p does; only their owner may use them.  Returns
 * false, with errno, if that fails.  Returns true if there is something of that name already, be it a folder or not. */
bool file_make_folders(const char *path);

/* Creates a new file beside `path`, which is relative to the open folder (AT_FDCWD: to the current one), and opens it
 * for writing.  No other thread or process has the file.  Writes its name to `name`, which has `room` bytes, and
 * returns its descriptor, or -1 with errno.  The umask applies to `mode`, as mkstemp cannot do. */
int file_create_temporary(int folder, const char *path, mode_t mode, char *name, size_t room);

/* Replaces a file by these bytes, or leaves it as it is if that fails: writes a temporary file in the same folder and
 * renames it.  Anything but a regular file (/dev/stdout, a pipe) is written to directly. */
STATUS_MUST_USE status file_write(const char *path, const void *bytes, size_t size);

#endif
