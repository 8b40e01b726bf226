/* write.c - texts of differences, files with examples, and the ONNX nodes of instructions; see write.h. */
#include "verify/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/tensor/npy.h"
#include "hlo/text/text.h"

const char *verify_difference_text(arena *a, const verify_difference *d) {
  return arena_printf(a,
                      "result %" PRIu32 ": %" PRId64 " of %" PRId64 " elements differ; element %" PRId64
                      " is %.9g, not %.9g (%.2g allowed; the largest is %.3g)",
                      d->result, d->n_wrong, d->n_elements, d->element, d->got, d->want, d->allowed, d->largest);
}

static int64_t constant_bytes(const hlo_module *m) {
  int64_t n = 0;
  for (const hlo_instr *i = m->entry->first; i; i = i->next) {
    n += i->op == HLO_CONSTANT ? shape_bytes(&i->shapes[0]) : 0;
  }
  return n;
}

/* Returns true if a file with that stem exists.  A finding may have a file of each kind with the same stem. */
static bool is_taken(arena *a, const char *stem) {
  return access(arena_printf(a, "%s.hlo", stem), F_OK) == 0 || access(arena_printf(a, "%s.onnx", stem), F_OK) == 0;
}

status verify_claim(arena *a, const char *folder, const char *extension, const char **stem) {
  for (int k = 1;; k++) {
    *stem = arena_printf(a, "%s/verify-%d", folder, k);
    const char *file = arena_printf(a, "%s.%s", *stem, extension);
    int fd = is_taken(a, *stem) ? -1 : open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    CHECK_THAT(fd >= 0 || errno == EEXIST || is_taken(a, *stem), STATUS_IO, "%s: %s", file, strerror(errno));
    if (fd >= 0) {
      close(fd);
      return NULL;
    }
  }
}

status verify_write_example(arena *a, const char *stem, const char *extension, const void *bytes, size_t size,
                            uint32_t n_inputs, const char **names, const literal *inputs, verify_example *out) {
  const char *file = arena_printf(a, "%s.%s", stem, extension), **files = ARENA_NEW_N(a, const char *, n_inputs + 1);
  TRY(file_write(file, bytes, size));
  for (uint32_t k = 0; k < n_inputs; k++) {
    uint8_t *array;
    size_t array_size;
    files[k] = arena_printf(a, "%s.%" PRIu32 ".npy", file, k);
    TRY(npy_format(a, &inputs[k], NULL, &array, &array_size));
    TRY(file_write(files[k], array, array_size));
  }
  *out = (verify_example){file, n_inputs, names, files};
  return NULL;
}

/* --- the ONNX nodes of instructions --- */

typedef struct sources {
  arena *a;
  str_map seen;
  uint32_t n, cap;
  const char **items;
} sources;

static sources no_sources(arena *a) {
  sources s = {.a = a};
  str_map_init(&s.seen, a);
  return s;
}

/* Returns true for constants, broadcasts of constants and iotas, whose sources say little: passes merge equal ones,
 * which may come from nodes far apart in the model. */
static bool is_known(const hlo_instr *i) {
  bool repeats = i->op == HLO_BROADCAST && i->operands[0].def->op == HLO_CONSTANT;
  return i->op == HLO_CONSTANT || i->op == HLO_IOTA || repeats;
}

/* Adds the sources of an instruction and of the computations that it calls.  The source of a fusion itself is ignored,
 * since it is a list of nodes for people to read. */
static void add_sources(sources *s, const hlo_instr *i) {
  bool is_node = *i->source && i->op != HLO_FUSION && i->op != HLO_PARAMETER && !is_known(i);
  if (is_node && !str_map_get(&s->seen, i->source)) {
    char *source = arena_strdup(s->a, i->source);
    *str_map_put(&s->seen, source) = source;
    *ARENA_PUSH(s->a, s->items, s->n, s->cap) = source;
  }
  for (uint32_t k = 0; k < hlo_n_callees(i); k++) {
    for (const hlo_instr *j = hlo_callee(i, k)->first; j; j = j->next) {
      add_sources(s, j);
    }
  }
}

static void tell_sources(const sources *s, verify_finding *f) {
  f->n_sources = s->n;
  f->sources = s->items;
}

void verify_name_sources(arena *a, const hlo_instr *i, verify_finding *f) {
  sources s = no_sources(a);
  add_sources(&s, i);
  tell_sources(&s, f);
}

static const char **input_names(arena *a, uint32_t n) {
  const char **names = ARENA_NEW_N(a, const char *, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    names[k] = arena_printf(a, "input_%" PRIu32, k);
  }
  return names;
}

status verify_write(arena *a, const char *folder, hlo_module *m, const literal *inputs, verify_finding *f) {
  const int64_t most = (int64_t)64 << 20;
  const char *text, *stem;
  size_t size;
  uint32_t n = m->entry->n_params;
  if (!folder || constant_bytes(m) > most) {
    return NULL;
  }
  sources s = no_sources(a);
  for (const hlo_instr *i = m->entry->first; i; i = i->next) {
    add_sources(&s, i);
  }
  tell_sources(&s, f);
  TRY(hlo_print(a, m, NULL, &text, &size));
  TRY(verify_claim(a, folder, "hlo", &stem));
  f->stem = stem;
  return verify_write_example(a, stem, "hlo", text, size, n, input_names(a, n), inputs, &f->module);
}
