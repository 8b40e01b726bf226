/* log.h - the log of what was measured: a text file on disk with one line per problem, to which lines are only
 * appended.
 *
 *     2 <tab> key <tab> how <tab> winner <tab> times <tab> what <tab> check
 *
 * key and check are hexadecimal hashes: key of all that the times depend on, check of the line before it.  `how` is
 * guess, fast or full; times are microseconds, such as "library:p4=123.4,kernel=400.0"; `what` describes the problem
 * for people.  Of several lines with one key the most thorough counts, and of equally thorough ones the first.  Damaged
 * lines are ignored. */
#ifndef AUTOTUNE_LOG_H
#define AUTOTUNE_LOG_H

#include "base/arena.h"

typedef enum autotune_log_how { AUTOTUNE_LOG_ESTIMATE, AUTOTUNE_LOG_FAST, AUTOTUNE_LOG_FULL } autotune_log_how;

typedef struct autotune_log_entry {
  uint64_t key;
  autotune_log_how how;
  /* Texts without tabs and control characters.  Otherwise they may contain anything, since the file may be damaged. */
  const char *winner, *times, *what;
} autotune_log_entry;

typedef struct autotune_log autotune_log;

/* Opens the log and reads it.  With path NULL it is empty and not kept on disk.  A file that is not a regular file of
 * this user, or is too large, is neither read nor written; *warning (on the arena, otherwise NULL) then says so, or
 * that lines were damaged.  The log is closed with the arena. */
autotune_log *autotune_log_open(arena *a, const char *path, const char **warning);

/* Returns the entry for the key, or NULL if there is none. */
const autotune_log_entry *autotune_log_find(const autotune_log *l, uint64_t key);

/* Adds an entry in memory and, if possible, to the file.  Each entry is one write, so that processes may share the
 * file.  Strings are copied; characters that a line cannot contain become '?'. */
void autotune_log_add(autotune_log *l, const autotune_log_entry *e);

#endif
