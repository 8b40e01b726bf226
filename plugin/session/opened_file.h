/* opened_file.h - a model's file, which is opened once, so that its kind, its key and its bytes belong to one file even
 * if another file replaces it at its path. */
#ifndef PLUGIN_SESSION_OPENED_FILE_H
#define PLUGIN_SESSION_OPENED_FILE_H

#include "plugin/session/fingerprint.h"

typedef enum opened_kind { OPENED_MODEL, OPENED_HLO, OPENED_IMAGE } opened_kind;

typedef struct opened_file {
  const char *path;     /* NULL means the caller has the bytes in memory */
  opened_kind kind;     /* a .oxla file is recognised when it is opened, HLO text only when it is mapped */
  const uint8_t *bytes; /* the contents: mapped or copied by opened_file_map, and NULL before; or the caller's bytes */
  size_t size;
  content_key key; /* the key of the bytes, after opened_file_find_key */
  int fd;          /* -1 means closed, or in memory */
  struct stat was; /* the file's status when it was opened, or when its key was made */
} opened_file;

/* Opens the regular file at `path`.  If `path` is NULL, takes the bytes instead, which are borrowed.  The descriptor is
 * closed with the arena at the latest.  Errors name the path. */
STATUS_MUST_USE status opened_file_open(arena *a, const char *path, const void *bytes, size_t size, opened_file **out);
/* Sets f->bytes and f->size to the file's contents, which are valid until the arena is destroyed, as file_map does. */
STATUS_MUST_USE status opened_file_map(opened_file *f, arena *a);
/* Finds the key of the file's bytes.  The file is only read if there is no fingerprint that contains the key. */
STATUS_MUST_USE status opened_file_find_key(opened_file *f, const fingerprints *c, rt_thread_pool *pool);
/* Returns true if the file was written to, removed or replaced since it was opened or its key was made.  Always returns
 * false after opened_file_close. */
bool opened_file_has_changed(const opened_file *f);
/* Closes the descriptor; what was mapped stays. */
void opened_file_close(opened_file *f);

#endif
