/* literal.c - makes and compares constant arrays. */
#include "base/tensor/literal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"

literal literal_make(shape s, const void *data) { return (literal){.shape = s, .data = data}; }

literal literal_new(arena *a, shape s, void **data) {
  *data = arena_alloc_aligned(a, (size_t)shape_bytes(&s), 64);
  return literal_make(s, *data);
}

/* A string is stored as its number. */
static dtype number_type(dtype type) { return type == DTYPE_STR ? DTYPE_S64 : type; }

literal literal_scalar_f64(arena *a, dtype type, double value) {
  void *data;
  literal l = literal_new(a, shape_scalar(type), &data);
  dtype_store_f64(number_type(type), data, value, true, DTYPE_ROUND_NEAREST);
  return l;
}

literal literal_scalar_i64(arena *a, dtype type, int64_t value) {
  void *data;
  literal l = literal_new(a, shape_scalar(type), &data);
  dtype_convert(DTYPE_S64, &value, number_type(type), data, 1, true, DTYPE_ROUND_NEAREST);
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

bool literal_is_aligned(const literal *l) {
  size_t size = l->shape.kind == SHAPE_ARRAY ? dtype_bytes((dtype)l->shape.type) : 1;
  return (uintptr_t)l->data % size == 0;
}

const void *literal_aligned(const literal *l, arena *a) {
  size_t bytes = (size_t)shape_bytes(&l->shape);
  return literal_is_aligned(l) ? l->data : memcpy(arena_alloc_aligned(a, bytes, 64), l->data, bytes);
}

static const void *element(const literal *l, int64_t index) {
  return (const char *)l->data + (size_t)index * dtype_bytes(l->shape.type);
}

double literal_f64(const literal *l, int64_t index) { return dtype_load_f64(l->shape.type, element(l, index)); }

int64_t literal_i64(const literal *l, int64_t index) { return dtype_load_i64(l->shape.type, element(l, index)); }

bool literal_is_splat(const literal *l) {
  size_t size = dtype_bytes(l->shape.type), total = (size_t)shape_bytes(&l->shape);
  /* All elements are equal if and only if the array equals itself moved by one element. */
  return total && memcmp(l->data, (const char *)l->data + size, total - size) == 0;
}

bool literal_is_whole(const literal *l) {
  int64_t k = 0, n = shape_elements(&l->shape);
  while (k < n && rint(literal_f64(l, k)) == literal_f64(l, k)) {
    k++;
  }
  return k == n;
}

bool literal_equal(const literal *a, const literal *b) {
  if (!shape_equal(&a->shape, &b->shape)) {
    return false;
  }
  size_t bytes = (size_t)shape_bytes(&a->shape);
  return !bytes || a->data == b->data || memcmp(a->data, b->data, bytes) == 0;
}

/* Hashes only the ends and the middle of a long array.  That is enough for hash tables, which compare the arrays
 * themselves, and avoids reading all pages of an array in a file. */
uint64_t literal_hash(const literal *l) {
  enum { BLOCK = 1024, BLOCKS = 3 };
  size_t bytes = (size_t)shape_bytes(&l->shape);
  uint64_t h = hash_bytes(l->shape.dims, l->shape.rank * sizeof *l->shape.dims, hash_seed() ^ l->shape.type);
  if (bytes <= BLOCK * BLOCKS) {
    return bytes ? hash_bytes(l->data, bytes, h) : h;
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    h = hash_bytes((const char *)l->data + (bytes - BLOCK) * i / (BLOCKS - 1), BLOCK, h);
  }
  return h;
}

void literal_compact(shape *s, void *data, const int64_t *sizes) {
  /* the bytes of one step along dimension d after the inner dimensions were compacted */
  size_t inner = dtype_bytes((dtype)s->type);
  for (int d = s->rank - 1; d >= 0; d--) {
    int64_t outer = 1, bound = s->dims[d];
    for (int k = 0; k < d; k++) {
      outer *= s->dims[k];
    }
    size_t from = (size_t)bound * inner, to = (size_t)sizes[d] * inner;
    for (int64_t k = 1; k < outer && to < from; k++) {
      memmove((char *)data + (size_t)k * to, (char *)data + (size_t)k * from, to);
    }
    s->dims[d] = sizes[d];
    inner = to;
  }
}
