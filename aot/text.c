/* text.c - appends formatted texts, and lines of templates with their fields filled in; see text.h. */
#include "aot/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "aot/templates.inc"

void aot_put(aot_lines *t, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  size_t more = (size_t)vsnprintf(NULL, 0, format, args) + 1;
  if (t->n + more > t->cap) {
    t->cap = 2 * (t->n + more);
    t->bytes = arena_grow(t->h->arena, t->bytes, t->n, t->cap);
  }
  t->n += (size_t)vsnprintf(t->bytes + t->n, more, format, again);
  va_end(again);
  va_end(args);
}

/* Returns the field whose @NAME@ begins at `at`; NULL if there is none. */
static const aot_field *field_at(const char *at, uint32_t n, const aot_field *fields) {
  for (uint32_t k = 0; k < n; k++) {
    size_t length = strlen(fields[k].name);
    if (strncmp(at + 1, fields[k].name, length) == 0 && at[length + 1] == '@') {
      return &fields[k];
    }
  }
  return NULL;
}

static void put_line(aot_lines *t, const char *line, uint32_t n, const aot_field *fields) {
  while (*line) {
    size_t plain = strcspn(line, "@");
    aot_put(t, "%.*s", (int)plain, line);
    line += plain;
    const aot_field *f = *line ? field_at(line, n, fields) : NULL;
    if (f) {
      aot_put(t, "%s", f->text);
      line += strlen(f->name) + 2;
    } else if (*line) {
      aot_put(t, "%c", *line++);
    }
  }
}

void aot_put_template(aot_lines *t, aot_template which, uint32_t n, const aot_field *fields) {
  static const char *const *const templates[] = {
      [AOT_POOL] = pool, [AOT_MAIN] = main_c, [AOT_MAKEFILE] = makefile, [AOT_CMAKE_LISTS] = cmake_lists};
  for (const char *const *line = templates[which]; *line; line++) {
    put_line(t, *line, n, fields);
  }
}
