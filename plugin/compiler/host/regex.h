/* regex.h - regular expressions of RE2's syntax, matched by PCRE2.  (RE2 is a library for C++ alone.)
 *
 * PCRE2 tries one way of matching after another, so that some patterns, such as (a*)*b, take exponential time: a match
 * that needs more than REGEX_MOST_STEPS is refused as STATUS_RESOURCE. */
#ifndef PLUGIN_COMPILER_HOST_REGEX_H
#define PLUGIN_COMPILER_HOST_REGEX_H

#include "base/arena.h"

enum { REGEX_MOST_STEPS = 2000000 };

typedef struct regex regex;

/* Makes a regular expression, which is freed with the arena and may be used by one thread at a time.  The error is
 * STATUS_UNSUPPORTED if onnx-xla was built without PCRE2, and those of regex_translate. */
STATUS_MUST_USE status regex_create(arena *a, const char *pattern, regex **out);
/* Sets *out to whether the whole string matches.  One that is not UTF-8 does not. */
STATUS_MUST_USE status regex_matches(regex *r, const char *text, size_t n, bool *out);
/* Looks for the first match that begins at `from` or later.  Sets *found to whether there is one, and [*start, *end) to
 * its bytes.  The text must be UTF-8. */
STATUS_MUST_USE status regex_find(regex *r, const char *text, size_t n, size_t from, bool *found, size_t *start,
                                  size_t *end);

#endif
