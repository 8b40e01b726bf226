/* size_text.c - see size_text.h. */
#include "runtime/program/size_text.h"

#include <inttypes.h>
#include <string.h>

bool size_is_symbol(const rt_program *p, uint32_t k) { return p->sizes[k].op == DIM_SYMBOL; }

void size_write_dimensions(FILE *f, const rt_program *p, uint32_t k) {
  rt_size place = p->params[p->sizes[k].a].shape.dims[p->sizes[k].b];
  const char *separator = "";
  for (uint32_t i = 0; i < p->n_params; i++) {
    for (int d = 0; d < p->params[i].shape.rank; d++) {
      if (p->params[i].shape.dims[d] == place) {
        const rt_io *io = &p->params[i];
        fprintf(f, io->told ? "%selement %s[%d]" : "%s%s[%d]", separator, io->name, io->told ? (int)io->element : d);
        separator = ", ";
      }
    }
  }
}

bool size_is_pin(const rt_definition *d) { return *d->equals && !d->equals[strspn(d->equals, "0123456789")]; }

const char *size_why_static(arena *a, const rt_program *p) {
  const char *text = "the model is for one set of sizes only";
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    const rt_definition *d = &p->definitions[k];
    text = arena_printf(a, "%s%s %s = %s (%s)", text, k ? "," : ":", d->symbol, d->equals, d->source);
  }
  return text;
}

/* Writes the operator of a source, which is the label of a node, such as "fc1: Gemm" or 'Gemm that makes "y"'. */
static void copy_operator(const char *source, char *out, size_t size) {
  const char *end = strstr(source, " that makes \""), *colon = end ? NULL : strrchr(source, ':');
  const char *name = colon && colon[1] == ' ' ? colon + 2 : source;
  snprintf(out, size, "%.*s", end ? (int)(end - name) : (int)strlen(name), name);
}

typedef char operator_text[128];

/* Sets `name` to the operator that asked for definition k, and returns how many pins that operator asked for; 0 if a
 * pin before definition k has the same operator. */
static uint32_t pins_like(const rt_program *p, uint32_t k, operator_text name) {
  uint32_t n = 0;
  copy_operator(p->definitions[k].source, name, sizeof(operator_text));
  for (uint32_t i = 0; i < p->n_definitions; i++) {
    operator_text other;
    copy_operator(p->definitions[i].source, other, sizeof other);
    bool same = size_is_pin(&p->definitions[i]) && strcmp(name, other) == 0;
    if (same && i < k) {
      return 0;
    }
    n += same;
  }
  return n;
}

static void write_pins(FILE *f, const rt_program *p) {
  const char *separator = "";
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    operator_text name;
    uint32_t n = size_is_pin(&p->definitions[k]) ? pins_like(p, k, name) : 0;
    if (n) {
      fprintf(f, "%s%" PRIu32 " by %s", separator, n, name);
      separator = ", ";
    }
  }
  fputs(*separator ? "\n" : "none\n", f);
}

static void begin_line(FILE *f, int indent, int width, const char *what) {
  fprintf(f, "%*s%-*s ", indent, "", width, what);
}

void size_write_heading(FILE *f, int width, const char *what, const rt_program *p) {
  const char *separator = " but ";
  begin_line(f, 0, width, "sizes");
  fprintf(f, "one %s for all sizes", what);
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    const rt_definition *d = &p->definitions[k];
    if (size_is_pin(d)) {
      fprintf(f, "%s%s = %s", separator, d->symbol, d->equals);
      separator = ", ";
    }
  }
  if (p->n_guards) {
    fprintf(f, ", if %" PRIu32 " guard%s", p->n_guards, p->n_guards == 1 ? " holds" : "s hold");
  }
  fputs("\n", f);
}

void size_write_lines(FILE *f, int indent, int width, const rt_program *p) {
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    if (size_is_symbol(p, k)) {
      begin_line(f, indent, width, "symbol");
      fprintf(f, "%s: ", p->sizes[k].name);
      size_write_dimensions(f, p, k);
      fputs("\n", f);
    }
  }
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    const rt_definition *d = &p->definitions[k];
    begin_line(f, indent, width, size_is_pin(d) ? "pin" : "definition");
    fprintf(f, "%s = %s: %s\n", d->symbol, d->equals, d->source);
  }
  begin_line(f, indent, width, "pins");
  write_pins(f, p);
  for (uint32_t k = 0; k < p->n_guards; k++) {
    begin_line(f, indent, width, "guard");
    fprintf(f, "%s: %s\n", p->guards[k].text, p->guards[k].source);
  }
}
