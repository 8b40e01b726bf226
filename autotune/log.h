/* log.h - the tuning log: a text file with the measured times, one line per problem, to which lines are only appended.
 *
 *     2 <tab> key <tab> how <tab> winner <tab> times <tab> what <tab> check
 *
 * key and check are hexadecimal hashes: key of everything that the times depend on, check of the text before it in the
 * line.  `how` is guess (chosen by estimates), fast (timed with RT_TUNE_FAST) or full (timed with RT_TUNE_FULL); times
 * are microseconds, such as "library:p4=123.4,kernel=400.0"; `what` describes the problem for people.  If several lines
 * have the same key, the most thorough one counts, and the first among equally thorough ones.  Damaged lines are
 * ignored. */
#ifndef AUTOTUNE_LOG_H
#define AUTOTUNE_LOG_H

#include "base/arena.h"

typedef enum autotune_log_how { AUTOTUNE_LOG_ESTIMATE, AUTOTUNE_LOG_FAST, AUTOTUNE_LOG_FULL } autotune_log_how;

typedef struct autotune_log_entry {
  uint64_t key;
  autotune_log_how how;
  /* Texts without tabs and control characters.  Apart from that they may contain anything, since the file may be
   * damaged. */
  const char *winner, *times, *what;
} autotune_log_entry;

typedef struct autotune_log autotune_log;

/* Opens the log and reads it.  If path is NULL, the log is empty and not written to a file.  A file is neither read nor
 * written if it cannot be opened, if it is a symbolic link or not a regular file of this user, if others can write to
 * it, or if it is larger than 64 MiB.  Then *warning says why.  *warning also says if lines were damaged.  It is on the
 * arena, and NULL if there is nothing to tell.  The log is closed when the arena is destroyed. */
autotune_log *autotune_log_open(arena *a, const char *path, const char **warning);

/* Returns the entry for the key, or NULL if there is none. */
const autotune_log_entry *autotune_log_find(const autotune_log *l, uint64_t key);

/* Adds an entry in memory and, if possible, to the file.  Each entry is one write, so that processes may share the
 * file.  Strings are copied and cut after 2048 bytes; characters that a line cannot contain become '?'. */
void autotune_log_add(autotune_log *l, const autotune_log_entry *e);

#endif
