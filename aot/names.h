/* names.h - C identifiers from the names of a model, which may be any text. */
#ifndef AOT_NAMES_H
#define AOT_NAMES_H

#include "base/arena.h"

/* Returns identifiers for n texts, which differ from each other even if all are written in capitals: a number is
 * appended to an identifier that an earlier text has. */
const char **aot_identifiers(arena *a, uint32_t n, const char *const *texts);
/* Returns the text in capitals. */
const char *aot_capitals(arena *a, const char *text);
/* Returns the first 80 characters of the text as they may stand in a comment and in a string of C.  All characters but
 * printable ASCII, and also '"', '\\', '*', '/' and '?', become '_'. */
const char *aot_printable(arena *a, const char *text);

#endif
