/* text.h - texts that grow, and the templates of aot/templates/. */
#ifndef AOT_TEXT_H
#define AOT_TEXT_H

#include "aot/host.h"

/* A text that grows on the arena of the host. */
typedef struct aot_lines {
  const aot_host *h;
  char *bytes; /* ends with a null character that is not counted in n */
  size_t n, cap;
} aot_lines;

/* Appends a text, formatted as by printf. */
void aot_put(aot_lines *t, const char *format, ...) STATUS_PRINTF(2, 3);

typedef enum aot_template { AOT_POOL, AOT_MAIN, AOT_MAKEFILE, AOT_CMAKE_LISTS } aot_template;

/* What replaces @NAME@ in a template. */
typedef struct aot_field {
  const char *name, *text;
} aot_field;

/* Appends a template, in which the texts of the n fields replace their @NAME@. */
void aot_put_template(aot_lines *t, aot_template which, uint32_t n, const aot_field *fields);

#endif
