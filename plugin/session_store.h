/* session_store.h - a folder of compiled models, so that the second start of a model maps a file.
 *
 *   FOLDER/                 mode 0700 and this user's, or it is refused: a .oxla is native code
 *     secret                the key of all keys (session_content.h)
 *     stamps/               what is known of files without reading them
 *     models/KEY/source     what a model declares
 *     models/KEY/KEY.oxla   a program of it
 *     models/KEY/KEY.weights  constants that its programs have in common, as a .oxla without thunks
 *
 * Files come by renaming, so that none is ever seen half written; what is damaged or does not fit is not there.  Whoever adds a
 * program removes those that were not used for longest, until the folder is within its size.  Several processes may use it at
 * once, and one may clear it meanwhile: what is mapped stays. */
#ifndef PLUGIN_SESSION_STORE_H
#define PLUGIN_SESSION_STORE_H

#include "plugin/session_content.h"
#include "runtime/image.h"

enum { PLUG_STORE_GIGABYTES = 8 }; /* of a folder that is given no size */

typedef struct plug_store {
  int folder, models; /* -1: not open */
  uint64_t max_bytes;
  bool verify; /* each time that a file is opened, not once after a start of the system */
  plug_contents contents;
} plug_store;

/* Makes the folder if it is not there.  INVALID_ARGUMENT: somebody else could write in it.  max_bytes 0: the default. */
STATUS_MUST_USE status plug_store_open(const char *path, uint64_t max_bytes, plug_store *out);
void plug_store_close(plug_store *c);

/* Maps a program's file, and its base, for the life of the arena; NULL: it is not there, or damaged (then it is removed). */
rt_image *plug_store_get(plug_store *c, arena *a, plug_key model, plug_key program);
/* The file of weights of that key, as a base for programs. */
rt_image *plug_store_get_weights(plug_store *c, arena *a, plug_key model, plug_key weights);
/* Best effort: a full disk makes no error.  The producer is not asked for: it tells which file that is. */
STATUS_MUST_USE status plug_store_put(plug_store *c, plug_key model, plug_key program, rt_image image);
STATUS_MUST_USE status plug_store_put_weights(plug_store *c, plug_key model, plug_key weights, rt_image image);
void plug_store_remove(plug_store *c, plug_key model, plug_key program);

/* What a model declares, as bytes; model: its key as text. */
rt_span plug_store_get_source(plug_store *c, arena *a, const char *model);
void plug_store_put_source(plug_store *c, plug_key model, rt_span bytes);

typedef struct plug_store_entry {
  char model[PLUG_KEY_TEXT], name[PLUG_KEY_TEXT];
  bool weights; /* of programs; else a program */
  uint64_t bytes;
  int64_t used; /* nanoseconds since the epoch */
} plug_store_entry;

/* All programs and weights, the last used first. */
void plug_store_list(const plug_store *c, arena *a, plug_store_entry **out, uint32_t *n);
/* Removes entry k of those, and its model's folder with the last. */
void plug_store_drop(const plug_store *c, const plug_store_entry *entries, uint32_t n, uint32_t k);
/* Removes those that were not used for longest until the rest has at most so many bytes, and what dead processes left. */
void plug_store_trim(const plug_store *c, uint64_t bytes);

#endif
