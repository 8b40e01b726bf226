/* fingerprint.h - what a file holds, as a key: the same key, the same bytes.
 *
 * Keys are hashes under a secret of the cache's own (base/hash.h), so that nobody can make a model that is taken for
 * another.  A file that has been read once is known again without reading: a stamp remembers its device, inode, size
 * and times of change with the key, and holds until the next boot.  It cannot lie silently: a change of contents
 * changes the time of change (ctime), which programs cannot set; a stamp is only written once that time is two seconds
 * past, so that no change hides in the clock's grain; and some spread samples of the bytes are compared. */
#ifndef PLUGIN_SESSION_FINGERPRINT_H
#define PLUGIN_SESSION_FINGERPRINT_H

#include <sys/stat.h>

#include "base/hash.h"
#include "runtime/host/thread_pool.h"

typedef hash128 content_key;

enum { CONTENT_KEY_TEXT = 33 };

typedef struct fingerprints {
  int folder; /* of the stamps; not owned */
  hash_secret secret;
  uint64_t boot; /* 0 means it is not known, and there are no stamps */
} fingerprints;

void fingerprints_init(fingerprints *c, int folder, const hash_secret *secret);

content_key content_key_of(const fingerprints *c, rt_thread_pool *pool, const void *bytes, size_t size);
content_key content_key_join(const fingerprints *c, content_key a, content_key b);
/* 32 digits. */
void content_key_text(content_key k, char out[CONTENT_KEY_TEXT]);

/* Of a regular file; *st is how it was then.  IO: it cannot be read, or changes meanwhile. */
STATUS_MUST_USE status content_key_of_file(const fingerprints *c, rt_thread_pool *pool, int fd, struct stat *st,
                                           content_key *out);
/* Returns true if nothing was written to the file in between. */
bool fingerprint_same_file(const struct stat *a, const struct stat *b);

/* For files that only we write: that one was found whole, and whether that still holds. */
void fingerprint_mark_whole(const fingerprints *c, int fd);
bool fingerprint_is_whole(const fingerprints *c, int fd);
/* That such a file was used, and when it was last, in nanoseconds since the epoch.  The times of its stamp tell, since
 * setting those of the file itself would change its time of change too. */
void fingerprint_mark_used(const fingerprints *c, int fd, const struct timespec *when);
int64_t fingerprint_last_used(const fingerprints *c, const struct stat *st);

#endif
