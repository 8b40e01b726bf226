/* example.c - a program that runs the object once, and what builds it. */
#include "aot/text.h"

#include <inttypes.h>
#include <string.h>

/* Returns sizes for the symbolic dimensions as C arguments: `first` stands before the first one, and `before` before
 * each of the others.  The size of the room (AOT_ROOM) is larger than the others, so that carried arrays grow. */
static const char *sizes(const aot_host *h, const char *first, const char *before) {
  const char *text = "";
  int64_t largest = AOT_LIKELY;
  for (uint32_t k = 0; k < h->n_dims; k++) {
    largest = h->likely_dims[k] > largest ? h->likely_dims[k] : largest;
  }
  for (uint32_t k = 0; k < h->n_dims; k++) {
    bool is_room = strncmp(h->dims[k], AOT_ROOM, sizeof AOT_ROOM - 1) == 0;
    text = arena_printf(h->arena, "%s%s%" PRId64, text, k ? before : first, is_room ? 2 * largest : h->likely_dims[k]);
  }
  return text;
}

/* Returns the option for the linker by which the program finds a shared library in its own folder, or "" if none is
 * needed. */
static const char *link_option(const aot_options *o) {
  const char *dot = strrchr(o->file, '.');
  return dot && strcmp(dot, ".so") == 0 ? " -Wl,-rpath,'$$ORIGIN'" : "";
}

static aot_file write_file(const aot_host *h, const char *name, aot_template which, uint32_t n,
                           const aot_field *fields) {
  aot_lines t = {.h = h};
  aot_put_template(&t, which, n, fields);
  return (aot_file){name, t.bytes};
}

void aot_write_example(const aot_host *h, aot_file out[AOT_EXAMPLE_FILES]) {
  const aot_field fields[] = {{"PREFIX", h->options->prefix},     {"CAPITALS", h->object->upper},
                              {"HEADER", h->options->header},     {"OBJECT", h->options->file},
                              {"SIZES", sizes(h, "", ", ")},      {"BOUND", sizes(h, ", ", ", ")},
                              {"LINKED", link_option(h->options)}};
  enum { N = sizeof fields / sizeof *fields };
  out[0] = write_file(h, "main.c", AOT_MAIN, N, fields);
  out[1] = write_file(h, "Makefile", AOT_MAKEFILE, N, fields);
  out[2] = write_file(h, "CMakeLists.txt", AOT_CMAKE_LISTS, N, fields);
}
