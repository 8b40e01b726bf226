/* store.h - a folder of compiled models, so that the second start of a model maps a file.
 *
 *   FOLDER/                 mode 0700 and this user's, or it is refused: a .oxla is native code
 *     secret                the key of all keys (fingerprint.h)
 *     stamps/               what is known of files without reading them
 *     models/KEY/source     what a model declares
 *     models/KEY/KEY.oxla   a program of it
 *     models/KEY/KEY.weights  constants that its programs have in common, as a .oxla without thunks
 *
 * Files come by renaming, so that none is ever seen half written; what is damaged or does not fit is not there. Whoever
 * adds a program removes those that were not used for longest, until the folder is within its size.  Several processes
 * may use it at once, and one may clear it meanwhile: what is mapped stays. */
#ifndef PLUGIN_SESSION_STORE_H
#define PLUGIN_SESSION_STORE_H

#include "plugin/session/fingerprint.h"
#include "runtime/program/image.h"

enum { CONTENT_STORE_GIGABYTES = 8 }; /* of a folder that is given no size */

typedef struct content_store {
  int folder, models; /* -1 means not open */
  uint64_t max_bytes;
  bool verify; /* each time that a file is opened, not once after a start of the system */
  fingerprints contents;
} content_store;

/* Makes the folder if it is not there.  INVALID_ARGUMENT: somebody else could write in it.  max_bytes 0: the default.
 */
STATUS_MUST_USE status content_store_open(const char *path, uint64_t max_bytes, content_store *out);
void content_store_close(content_store *c);

/* Maps a program's file, and its base, for the life of the arena; NULL if it is not there, or damaged (then it is
 * removed). */
rt_image *content_store_get(content_store *c, arena *a, content_key model, content_key program);
/* The file of weights of that key, as a base for programs. */
rt_image *content_store_get_weights(content_store *c, arena *a, content_key model, content_key weights);
/* Best effort: a full disk makes no error.  The producer is not asked for: it tells which file that is. */
STATUS_MUST_USE status content_store_put(content_store *c, content_key model, content_key program, rt_image image);
STATUS_MUST_USE status content_store_put_weights(content_store *c, content_key model, content_key weights,
                                                 rt_image image);
void content_store_remove(content_store *c, content_key model, content_key program);

/* What a model declares, as bytes; model: its key as text. */
rt_span content_store_get_source(content_store *c, arena *a, const char *model);
void content_store_put_source(content_store *c, content_key model, rt_span bytes);

typedef struct content_store_entry {
  char model[CONTENT_KEY_TEXT], name[CONTENT_KEY_TEXT];
  bool weights; /* of programs; else a program */
  uint64_t bytes;
  int64_t used; /* nanoseconds since the epoch */
} content_store_entry;

/* All programs and weights, the last used first. */
void content_store_list(const content_store *c, arena *a, content_store_entry **out, uint32_t *n);
/* Removes entry k of those, and its model's folder with the last. */
void content_store_drop(const content_store *c, const content_store_entry *entries, uint32_t n, uint32_t k);
/* Removes those that were not used for longest until the rest has at most so many bytes, and what dead processes left.
 */
void content_store_trim(const content_store *c, uint64_t bytes);

#endif
