/* log.h - what was measured, on disk: one text file, a line a contraction, that is only ever appended to.
 *
 *     1 <tab> key <tab> how <tab> winner <tab> times <tab> what <tab> check
 *
 * key and check are hexadecimal hashes, of what decides about times and of the line before it; `how` is guess, fast or
 * full; times are "library:p4=123.4,kernel=400.0", microseconds; `what` is for people.  Of two lines with one key the
 * one that was measured more thoroughly holds, else the first.  Lines that are damaged count as absent. */
#ifndef AUTOTUNE_LOG_H
#define AUTOTUNE_LOG_H

#include "base/arena.h"

typedef enum autotune_log_how { AUTOTUNE_LOG_ESTIMATE, AUTOTUNE_LOG_FAST, AUTOTUNE_LOG_FULL } autotune_log_how;

typedef struct autotune_log_entry {
  uint64_t key;
  autotune_log_how how;
  /* Texts without tabs and control characters; their other contents are not to be trusted. */
  const char *winner, *times, *what;
} autotune_log_entry;

typedef struct autotune_log autotune_log;

/* path NULL: an empty log that is kept nowhere.  A file that is no regular one of this user's, or too large, is neither
 * read nor written; *warning (on the arena, else NULL) says so, or that lines were damaged.  Closed with the arena. */
autotune_log *autotune_log_open(arena *a, const char *path, const char **warning);

/* NULL: nothing is known. */
const autotune_log_entry *autotune_log_find(const autotune_log *l, uint64_t key);

/* In memory and, if it is possible, on disk: each entry with one write, so that processes may share the file.  Strings
 * are copied; characters that cannot stand in a line become '?'. */
void autotune_log_add(autotune_log *l, const autotune_log_entry *e);

#endif
