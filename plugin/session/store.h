/* store.h - a folder of compiled models.  When a model is opened again, its program is mapped from there.
 *
 *   FOLDER/                 must have mode 0700 and belong to this user, since a .oxla file is native code
 *     secret                the secret under which all keys are hashed (fingerprint.h)
 *     stamps/               the fingerprints, by which files are recognised without reading them
 *     models/KEY/source     the description of a model
 *     models/KEY/KEY.oxla   a program of the model
 *     models/KEY/KEY.weights  the constants that the model's programs share, as a .oxla file without thunks
 *     models/KEY/KEY.kernels  kernels that programs of all models share; the first key is of the options
 *     models/KEY/KEY.code   code that the driver of a device compiled; the first key is of driver and device, the
 *                           second key of what was compiled
 *
 * Files are written under another name and renamed, so that none is ever seen incomplete.  A file that is damaged or
 * does not match its key is ignored.  Adding a program removes the files that have not been used for the longest time,
 * until the folder is within its limit; after code was added, content_store_close does that.  Several processes may use
 * the folder at once, and one may clear it meanwhile: mapped files stay valid. */
#ifndef PLUGIN_SESSION_STORE_H
#define PLUGIN_SESSION_STORE_H

#include <stdatomic.h>

#include "plugin/session/fingerprint.h"
#include "runtime/program/image.h"
#include "runtime/program/target.h"

enum { CONTENT_STORE_GIGABYTES = 8 }; /* the limit for a folder in GiB if none is given */

typedef struct content_store {
  int folder, models; /* -1 means that it is not open */
  uint64_t max_bytes;
  atomic_bool has_grown; /* whether code was added; if so, content_store_close trims the store */
  bool verify; /* whether checksums are compared each time that a file is opened, not only once after each boot */
  fingerprints contents;
} content_store;

/* Opens the folder, and creates it if it does not exist.  Returns INVALID_ARGUMENT if it belongs to another user or if
 * others have access to it.  max_bytes is the limit for the size of the folder; 0 means CONTENT_STORE_GIGABYTES. */
STATUS_MUST_USE status content_store_open(const char *path, uint64_t max_bytes, content_store *out);
void content_store_close(content_store *c);

typedef enum content_kind { CONTENT_PROGRAM, CONTENT_WEIGHTS, CONTENT_KERNELS, CONTENT_CODE } content_kind;

typedef struct content_store_entry {
  char model[CONTENT_KEY_TEXT], name[CONTENT_KEY_TEXT]; /* for kernels and code, `model` is not the key of a
                                                           model (see above) */
  content_kind kind;
  uint64_t bytes;
  int64_t used; /* in nanoseconds since the epoch */
} content_store_entry;

/* Maps a program's file, and the file of weights on which it is based, until the arena is destroyed.  Marks both files
 * as used.  Returns NULL if one of them does not exist or is damaged.  A damaged file is removed, and so is a program
 * without its weights. */
rt_image *content_store_get(content_store *c, arena *a, content_key model, content_key program);
/* Like content_store_get, for the file of weights that the model's programs share. */
rt_image *content_store_get_weights(content_store *c, arena *a, content_key model, content_key weights);
/* Like content_store_get, for an entry of content_store_list. */
rt_image *content_store_get_entry(content_store *c, arena *a, const content_store_entry *e);
/* Store a program, weights or kernels.  Errors, such as that of a full disk, leave no file.  The file gets its own key
 * as text in place of image.producer, so that content_store_get can check that the file belongs to the key. */
STATUS_MUST_USE status content_store_put(content_store *c, content_key model, content_key program, rt_image image);
STATUS_MUST_USE status content_store_put_weights(content_store *c, content_key model, content_key weights,
                                                 rt_image image);
STATUS_MUST_USE status content_store_put_kernels(content_store *c, content_key options, content_key kernels,
                                                 rt_image image);
/* Returns functions that find and keep code in the store.  They are thread-safe, and valid as long as it is open. */
rt_code_cache content_store_code(content_store *c);
void content_store_remove(content_store *c, content_key model, content_key program);

/* Returns the description of a model as bytes on the arena, which are empty if there is none; `model` is its key as
 * text. */
rt_span content_store_get_source(content_store *c, arena *a, const char *model);
void content_store_put_source(content_store *c, content_key model, rt_span bytes);

/* Returns all programs, weights, kernels and code, the last used first. */
void content_store_list(const content_store *c, arena *a, content_store_entry **out, uint32_t *n);
/* Removes the file of entry k of the list.  If no other entry of the list is of the same model, the description and the
 * folder of the model are removed, too. */
void content_store_drop(const content_store *c, const content_store_entry *entries, uint32_t n, uint32_t k);
/* Removes the files that were not used for the longest time until the rest has at most `bytes` bytes.  Also removes
 * temporary files that are so old that the processes that wrote them must have ended.  Does nothing if another process
 * is trimming the folder. */
void content_store_trim(const content_store *c, uint64_t bytes);

#endif
