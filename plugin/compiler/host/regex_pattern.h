/* regex_pattern.h - writes regular expressions of RE2's syntax, which ONNX and ONNX Runtime have, in PCRE2's. */
#ifndef PLUGIN_COMPILER_HOST_REGEX_PATTERN_H
#define PLUGIN_COMPILER_HOST_REGEX_PATTERN_H

#include "base/arena.h"

enum { REGEX_MOST_NESTED = 200, REGEX_MOST_REPETITIONS = 1000 };

/* Sets *pcre2 to a pattern for PCRE2, on the arena, that matches what `re2` matches for RE2.  What PCRE2 has and RE2
 * has not (back-references, looking around, atomic groups, verbs) is refused as STATUS_INVALID_MODEL.
 * STATUS_UNSUPPORTED
 * are \C, \pC, \S in brackets, a negated class beside a named one there, and under the flag i \p and in brackets \W and
 * [:^...:]. */
STATUS_MUST_USE status regex_translate(arena *a, const char *re2, const char **pcre2);

#endif
