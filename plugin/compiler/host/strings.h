/* strings.h - what host-interpreted operators on strings share: the bytes of an array's strings, and numbers for new
 * ones.
 */
#ifndef PLUGIN_COMPILER_HOST_STRINGS_H
#define PLUGIN_COMPILER_HOST_STRINGS_H

#include "plugin/compiler/interpreter_internal.h"

typedef struct host_text {
  const char *bytes;
  size_t n;
} host_text;

/* Fails if the run has no table of strings. */
STATUS_MUST_USE status host_need_strings(const interpreted_node *n);
/* Returns input k, which must be an array of strings, with a reference for the caller. */
STATUS_MUST_USE status host_string_input(const interpreted_node *n, size_t k, host_array **out);
/* Returns the bytes of element k, which are valid as long as the run. */
STATUS_MUST_USE status host_text_of(const interpreted_node *n, const host_array *a, int64_t k, host_text *out);
/* Returns the number of a string, which is added to the run's table if it is new. */
uint64_t host_number_of(const interpreted_node *n, const void *bytes, size_t size);
/* Makes an array for strings. */
STATUS_MUST_USE status host_strings_new(const interpreted_node *n, const shape *s, host_array **out,
                                        uint64_t **numbers);

#endif
