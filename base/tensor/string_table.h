/* string_table.h - numbers for strings: arrays of strings (DTYPE_STR) have these in place of the bytes.
 *
 * Equal strings of a table have equal numbers, which are counted from 0; 0 is always the empty string, so memory of
 * zeros is an array of empty strings.  A table may extend another one: it then has the strings of that one, too, under
 * the same numbers.  So programs have numbers for the strings of their model, and each run adds those of its inputs. */
#ifndef BASE_TENSOR_STRING_TABLE_H
#define BASE_TENSOR_STRING_TABLE_H

#include "base/arena.h"

typedef struct string_table string_table;

/* Makes a table on the arena.  `extended` is the table that it extends, which must outlive it and not change any more;
 * NULL if there is none. */
string_table *string_table_create(arena *a, const string_table *extended);
/* Returns the number of the string, which may have any bytes.  A new string is copied to the arena. */
uint64_t string_table_add(string_table *t, const void *bytes, size_t n);
/* Returns the bytes of string k, followed by a NUL, and sets *n to their number; returns NULL if there is no string k.
 */
const char *string_table_text(const string_table *t, uint64_t k, size_t *n);
/* Adds all strings of another table, in their order: a table that begins as that one gives them the same numbers. */
void string_table_add_all(string_table *t, const string_table *other);
/* Returns the number of strings. */
uint64_t string_table_count(const string_table *t);

#endif
