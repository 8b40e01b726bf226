/* strings.h - tables of strings (base/tensor/string_table.h) as bytes. */
#ifndef RUNTIME_PROGRAM_STRINGS_H
#define RUNTIME_PROGRAM_STRINGS_H

#include "base/tensor/string_table.h"
#include "runtime/program/program.h"

/* Writes all strings of the table; NULL is a table that has only the empty string. */
void rt_put_strings(rt_writer *w, const string_table *t);
/* Returns a table on the arena that has the same strings under the same numbers. */
string_table *rt_get_strings(rt_reader *r, arena *a);

#endif
