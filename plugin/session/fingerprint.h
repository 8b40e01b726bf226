/* fingerprint.h - keys of files: equal keys mean equal contents.
 *
 * Keys are hashes under a secret of the cache (base/hash.h), so that nobody can make a model that is mistaken for
 * another.  A file that was read once is recognised without reading it again: its fingerprint contains its device,
 * inode, size and times of change together with the key, and is valid until the next boot.
 *
 * A change of a file is always noticed, since it changes the file's ctime, which programs cannot set.  Only a change
 * that follows another within the resolution of the clock would leave the ctime the same; therefore a fingerprint is
 * not written before the ctime is more than two seconds in the past.  Files of the cache folder are excepted
 * (fingerprint_mark_whole), since they are never written to after they got their name.  In addition,
 * content_key_of_file compares samples of the bytes, spread over the file. */
#ifndef PLUGIN_SESSION_FINGERPRINT_H
#define PLUGIN_SESSION_FINGERPRINT_H

#include <sys/stat.h>

#include "base/hash.h"
#include "runtime/host/thread_pool.h"

typedef hash128 content_key;

enum { CONTENT_KEY_TEXT = 33 };

typedef struct fingerprints {
  int folder; /* the folder of the fingerprints; not owned */
  hash_secret secret;
  uint64_t boot; /* a number that identifies the last start of the system; 0 if it is not known, and then
                    there are no fingerprints */
} fingerprints;

void fingerprints_init(fingerprints *c, int folder, const hash_secret *secret);

content_key content_key_of(const fingerprints *c, rt_thread_pool *pool, const void *bytes, size_t size);
content_key content_key_join(const fingerprints *c, content_key a, content_key b);
/* Writes 32 hexadecimal digits. */
void content_key_text(content_key k, char out[CONTENT_KEY_TEXT]);

/* Computes the key of a regular file; *st is its status at that time.  Returns IO if it cannot be read or changes
 * meanwhile. */
STATUS_MUST_USE status content_key_of_file(const fingerprints *c, rt_thread_pool *pool, int fd, struct stat *st,
                                           content_key *out);
/* Returns true if `a` and `b`, obtained at two times, are of the same file and nothing was written to it in between. */
bool fingerprint_same_file(const struct stat *a, const struct stat *b);

/* For files of the cache folder: fingerprint_mark_whole records that a file was checked and is undamaged.
 * fingerprint_is_whole returns true if this was recorded and the file has not changed since. */
void fingerprint_mark_whole(const fingerprints *c, int fd);
bool fingerprint_is_whole(const fingerprints *c, int fd);
/* fingerprint_mark_used records that a file of the cache folder was used, and fingerprint_last_used returns the time of
 * its last use, or of its last writing if that is later, in nanoseconds since the epoch.  The time of the use is stored
 * as the modification time of the file in which the fingerprint is kept, since setting a time of the file itself would
 * change its ctime. */
void fingerprint_mark_used(const fingerprints *c, int fd, const struct timespec *when);
int64_t fingerprint_last_used(const fingerprints *c, const struct stat *st);

#endif
