/* program.c - reads and writes configs, and computes properties of buffers and results. */
#include "runtime/program/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"

/* --- writing configs --- */

static void put(rt_writer *w, const void *data, size_t n) {
  if (n > UINT32_MAX / 2 - w->n) {
    guard_fail("a thunk's config is too large");
  }
  if (w->n + n > w->cap) {
    uint32_t cap = (uint32_t)(w->n + n) * 2;
    w->bytes = arena_grow(w->arena, w->bytes, w->n, cap);
    w->cap = cap;
  }
  if (n) {
    memcpy(w->bytes + w->n, data, n);
  }
  w->n += (uint32_t)n;
}

/* Writes byte by byte, so that files are little-endian everywhere. */
void rt_put_i64(rt_writer *w, int64_t v) {
  uint8_t bytes[8];
  for (int k = 0; k < 8; k++) {
    bytes[k] = (uint8_t)((uint64_t)v >> (8 * k));
  }
  put(w, bytes, sizeof bytes);
}

void rt_put_f64(rt_writer *w, double v) {
  int64_t bits;
  memcpy(&bits, &v, sizeof bits);
  rt_put_i64(w, bits);
}

void rt_put_i64s(rt_writer *w, uint32_t n, const int64_t *v) {
  rt_put_i64(w, n);
  for (uint32_t k = 0; k < n; k++) {
    rt_put_i64(w, v[k]);
  }
}

void rt_put_bytes(rt_writer *w, const void *data, size_t n) {
  rt_put_i64(w, (int64_t)n);
  put(w, data, n);
}

void rt_put_text(rt_writer *w, const char *text) {
  text = text ? text : "";
  rt_put_bytes(w, text, strlen(text) + 1);
}

rt_span rt_written(const rt_writer *w) { return (rt_span){w->bytes, w->n}; }

/* --- names of constants --- */

rt_span rt_program_code_name(const rt_program *p, uint32_t k) {
  return p->code_names ? p->code_names[k] : (rt_span){NULL, 0};
}

rt_span rt_program_name(const rt_program *p, uint32_t k) { return p->names ? p->names[k] : (rt_span){NULL, 0}; }

uint32_t rt_program_find(const rt_program *p, rt_span name, uint64_t size) {
  uint32_t k = name.size && p->names ? 0 : p->n_constants;
  while (k < p->n_constants && !(p->constants[k].size == size && p->names[k].size == name.size &&
                                 memcmp(p->names[k].data, name.data, name.size) == 0)) {
    k++;
  }
  return k;
}

/* --- reading configs --- */

rt_reader rt_reader_make(rt_span s) { return (rt_reader){.at = s.data, .end = (const uint8_t *)s.data + s.size}; }

static const uint8_t *get(rt_reader *r, uint64_t n) {
  if (r->bad || n > (uint64_t)(r->end - r->at)) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *bytes = r->at;
  r->at += n;
  return bytes;
}

int64_t rt_get_i64(rt_reader *r) {
  const uint8_t *bytes = get(r, 8);
  uint64_t v = 0;
  for (int k = 0; bytes && k < 8; k++) {
    v |= (uint64_t)bytes[k] << (8 * k);
  }
  return (int64_t)v;
}

int64_t rt_get_in(rt_reader *r, int64_t low, int64_t high) {
  int64_t v = rt_get_i64(r);
  if (r->bad || v < low || v > high) {
    r->bad = true;
    return low;
  }
  return v;
}

double rt_get_f64(rt_reader *r) {
  int64_t bits = rt_get_i64(r);
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

const int64_t *rt_get_i64s(rt_reader *r, arena *a, uint32_t *n) {
  *n = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 8);
  int64_t *list = ARENA_NEW_N(a, int64_t, *n);
  for (uint32_t k = 0; k < *n; k++) {
    list[k] = rt_get_i64(r);
  }
  return list;
}

rt_span rt_get_bytes(rt_reader *r) {
  uint64_t n = (uint64_t)rt_get_i64(r);
  const uint8_t *bytes = get(r, n);
  return bytes ? (rt_span){bytes, n} : (rt_span){"", 0};
}

const char *rt_get_text(rt_reader *r) {
  rt_span s = rt_get_bytes(r);
  if (s.size == 0 || ((const char *)s.data)[s.size - 1] != '\0') {
    r->bad = true;
    return "";
  }
  return s.data;
}

status rt_reader_end(const rt_reader *r, const char *what) {
  CHECK_THAT(!r->bad && r->at == r->end, STATUS_INVALID_FILE, "%s: its description is damaged", what);
  return NULL;
}

/* --- labels --- */

static size_t append(char text[RT_LABEL_BYTES], size_t n, const char *before, const char *part, const char *behind) {
  int more = snprintf(text + n, RT_LABEL_BYTES - n, "%s%s%s", before, part, behind);
  return n + (size_t)more < RT_LABEL_BYTES ? n + (size_t)more : RT_LABEL_BYTES - 1;
}

size_t rt_thunk_write_label(const rt_program *p, const rt_thunk *t, char text[RT_LABEL_BYTES]) {
  enum { MOST = 12 };
  size_t n = 0;
  *text = '\0';
  for (uint32_t k = 0; k < t->n_nodes && k <= MOST; k++) {
    n = append(text, n, k ? " + " : "", k == MOST ? "..." : p->nodes[t->nodes[k]].text, "");
  }
  (void)append(text, n, n ? " (" : "", t->operation, n ? ")" : "");
  return n;
}

const char *rt_thunk_label(arena *a, const rt_program *p, const rt_thunk *t) {
  char text[RT_LABEL_BYTES];
  (void)rt_thunk_write_label(p, t, text);
  return arena_strdup(a, text);
}

/* --- buffers --- */

int64_t rt_buffer_elements(const rt_buffer *b) {
  int64_t n = 1;
  for (int k = 0; k < b->rank; k++) {
    n = mul_saturated(n, b->extents[k]);
  }
  return n;
}

int64_t rt_buffer_bytes(const rt_buffer *b) {
  int64_t last = 0;
  for (int k = 0; k < b->rank; k++) {
    if (b->extents[k] == 0) {
      return 0;
    }
    last = add_saturated(last, mul_saturated(b->extents[k] - 1, b->strides[k]));
  }
  return mul_saturated(add_saturated(last, 1), (int64_t)dtype_bytes(b->type));
}

bool rt_buffer_is_dense(const rt_buffer *b) {
  int64_t stride = 1;
  for (int k = b->rank - 1; k >= 0; k--) {
    if (b->extents[k] != 1 && b->strides[k] != stride) {
      return false;
    }
    stride = mul_saturated(stride, b->extents[k]);
  }
  return true;
}

uint32_t rt_program_outputs(const rt_program *p) {
  uint32_t n = 0;
  while (n < p->n_results && !p->results[n].is_size) {
    n++;
  }
  return n;
}

bool rt_program_extents(const rt_program *p, uint32_t k, void *const *results, int64_t extents[SHAPE_MAX_RANK]) {
  bool cut = false;
  memcpy(extents, p->results[k].shape.dims, SHAPE_MAX_RANK * sizeof *extents);
  for (uint32_t i = k + 1; i < p->n_results; i++) {
    const rt_io *io = &p->results[i];
    if (io->is_size && io->sized == k) {
      int64_t size = *(const int64_t *)results[i], bound = extents[io->axis];
      extents[io->axis] = size < 0 ? 0 : size < bound ? size : bound;
      cut = true;
    }
  }
  return cut;
}
