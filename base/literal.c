#include "base/literal.h"

#include <assert.h>
#include <string.h>

literal literal_make(shape s, const void *data) { return (literal){.shape = s, .data = data}; }

literal literal_new(arena *a, shape s, void **data) {
  *data = arena_alloc_aligned(a, (size_t)shape_bytes(&s), 64);
  return literal_make(s, *data);
}

literal literal_scalar_f64(arena *a, dtype type, double value) {
  void *data;
  literal l = literal_new(a, shape_scalar(type), &data);
  dtype_store_f64(type, data, value, true, DTYPE_ROUND_NEAREST);
  return l;
}

literal literal_scalar_i64(arena *a, dtype type, int64_t value) {
  if (dtype_is_float(type) || dtype_is_complex(type)) {
    return literal_scalar_f64(a, type, (double)value);
  }
  void *data;
  literal l = literal_new(a, shape_scalar(type), &data);
  dtype_store_i64(type, data, value);
  return l;
}

literal literal_s64s(arena *a, const int64_t *values, int64_t n) {
  void *data;
  literal l = literal_new(a, shape_make(DTYPE_S64, 1, &n), &data);
  if (n) {
    memcpy(data, values, (size_t)n * sizeof *values);
  }
  return l;
}

static const void *element(const literal *l, int64_t index) {
  return (const char *)l->data + (size_t)index * dtype_bytes(l->shape.type);
}

double literal_f64(const literal *l, int64_t index) { return dtype_load_f64(l->shape.type, element(l, index)); }

int64_t literal_i64(const literal *l, int64_t index) { return dtype_load_i64(l->shape.type, element(l, index)); }

bool literal_is_splat(const literal *l) {
  size_t size = dtype_bytes(l->shape.type), total = (size_t)shape_bytes(&l->shape);
  /* An array equals itself moved by one element exactly if all its elements are equal. */
  return total && memcmp(l->data, (const char *)l->data + size, total - size) == 0;
}

bool literal_equal(const literal *a, const literal *b) {
  return shape_equal(&a->shape, &b->shape) &&
         (a->data == b->data || memcmp(a->data, b->data, (size_t)shape_bytes(&a->shape)) == 0);
}

/* FNV-1a over words; long arrays are sampled, equality is what decides. */
uint64_t literal_hash(const literal *l) {
  const unsigned char *bytes = l->data;
  size_t n = (size_t)shape_bytes(&l->shape), step = n > 4096 ? n / 4096 : 1;
  uint64_t h = 1469598103934665603u ^ l->shape.type;
  for (int i = 0; i < l->shape.rank; i++) {
    h = (h ^ (uint64_t)l->shape.dims[i]) * 1099511628211u;
  }
  for (size_t i = 0; i < n; i += step) {
    h = (h ^ bytes[i]) * 1099511628211u;
  }
  return h;
}
