/* order.c - see order.h.
 *
 * Elements become unsigned keys of the same order, so that one radix sort serves all types.  To find the first few, the
 * best elements so far are kept while the line is scanned for elements that come before the last of them.  Few elements
 * do, and the scan compares many at a time. */
#include "backend_cpu/runtime/order.h"

#include <string.h>

enum {
  SHORT = 32, /* up to this many items are sorted by insertion */
  FEW = 16,   /* up to this many wanted items are kept in order while the line is read */
  ROOM = 64, /* if more are wanted, 2 * wanted + ROOM items are gathered, then all but the first `wanted` are dropped */
  LOOK = 1 << 18, /* a sort of at least this many items checks the run's budget before each pass */
  /* In a line (the elements that are ordered together) of at least LONG elements, SAMPLE of them are read first, to
   * estimate a limit beyond which elements are dropped unsorted. */
  SAMPLE = 512,
  LONG = 4096
};

/* --- keys --- */

/* Returns a key for the bits of a float: NaN is above all numbers, and -0 equals 0. */
static inline uint64_t float_key(uint64_t bits, unsigned width, uint64_t infinity) {
  uint64_t sign = (uint64_t)1 << (width - 1), magnitude = bits & (sign - 1);
  if (magnitude > infinity) {
    return 2 * sign - 1;
  }
  return bits & sign ? sign - magnitude : sign + magnitude;
}

static inline uint64_t load_bits(const void *p, size_t bytes) {
  uint64_t v = 0;
  memcpy(&v, p, bytes);
  return v;
}

static inline uint64_t key_of(dtype type, const void *data, int64_t k) {
  const char *p = (const char *)data + (size_t)k * dtype_bytes(type);
  switch (type) {
    case DTYPE_F64: return float_key(load_bits(p, 8), 64, 0x7ff0000000000000u);
    case DTYPE_F32: return float_key(load_bits(p, 4), 32, 0x7f800000u);
    case DTYPE_F16: return float_key(load_bits(p, 2), 16, 0x7c00u);
    case DTYPE_BF16: return float_key(load_bits(p, 2), 16, 0x7f80u);
    case DTYPE_S64: return load_bits(p, 8) ^ (uint64_t)1 << 63;
    case DTYPE_S32: return load_bits(p, 4) ^ (uint64_t)1 << 31;
    default: break;
  }
  if (dtype_is_float(type)) { /* floats of 8 bits and less are exact in f32 */
    float f = (float)dtype_load_f64(type, p);
    return float_key(load_bits(&f, 4), 32, 0x7f800000u);
  }
  uint64_t v = (uint64_t)dtype_load_i64(type, p);
  return dtype_is_signed(type) ? v ^ (uint64_t)1 << 63 : v;
}

static inline cpu_item item_at(const cpu_line *l, int64_t k) {
  uint64_t key = key_of(l->type, l->data, k);
  return (cpu_item){l->descending ? ~key : key, k};
}

/* Writes an item for each element of the line l to x. f32, the commonest type, has a loop of its own. */
static void load_items(const cpu_line *l, cpu_item *x) {
  uint64_t flip = l->descending ? UINT64_MAX : 0;
  for (int64_t k = 0; l->type == DTYPE_F32 && k < l->n; k++) {
    x[k] = (cpu_item){key_of(DTYPE_F32, l->data, k) ^ flip, k};
  }
  for (int64_t k = 0; l->type != DTYPE_F32 && k < l->n; k++) {
    x[k] = item_at(l, k);
  }
}

/* --- sorting --- */

static void insert(cpu_item *x, int64_t n, cpu_item v) {
  for (; n > 0 && x[n - 1].key > v.key; n--) {
    x[n] = x[n - 1];
  }
  x[n] = v;
}

/* Copies x to `to`, stably sorted by one byte of the keys. */
static void scatter_by(const cpu_item *x, int64_t n, int shift, cpu_item *to) {
  int64_t next[256] = {0}, sum = 0;
  for (int64_t k = 0; k < n; k++) {
    next[x[k].key >> shift & 255]++;
  }
  for (int d = 0; d < 256; d++) {
    int64_t count = next[d];
    next[d] = sum;
    sum += count;
  }
  for (int64_t k = 0; k < n; k++) {
    to[next[x[k].key >> shift & 255]++] = x[k];
  }
}

/* Returns the bits in which keys differ. */
static uint64_t differing(const cpu_item *x, int64_t n) {
  uint64_t diff = 0;
  for (int64_t k = 1; k < n; k++) {
    diff |= x[k].key ^ x[0].key;
  }
  return diff;
}

/* Sorts stably by the keys, with `other` as scratch memory.  Returns x or `other`, whichever holds the result. */
static cpu_item *sort_items(const mem_budget *budget, cpu_item *x, cpu_item *other, int64_t n) {
  if (n <= SHORT) {
    for (int64_t k = 1; k < n; k++) {
      insert(x, k, x[k]);
    }
    return x;
  }
  uint64_t diff = differing(x, n);
  for (int shift = 0; shift < 64; shift += 8) {
    if (!(diff >> shift & 255)) {
      continue;
    }
    if (n >= LOOK && budget_expired(budget)) {
      return x;
    }
    scatter_by(x, n, shift, other);
    cpu_item *t = x;
    x = other;
    other = t;
  }
  return x;
}

/* Returns the key of rank `rank`, counted from 0, among keys[n], which are overwritten. */
static uint64_t select_key(uint64_t *keys, int64_t n, int64_t rank) {
  for (int shift = 56; shift >= 0 && n > 1; shift -= 8) {
    int64_t count[256] = {0}, m = 0;
    for (int64_t k = 0; k < n; k++) {
      count[keys[k] >> shift & 255]++;
    }
    uint64_t d = 0;
    for (; rank >= count[d]; d++) {
      rank -= count[d];
    }
    if (count[d] == n) {
      continue;
    }
    for (int64_t k = 0; k < n; k++) {
      keys[m] = keys[k];
      m += (keys[k] >> shift & 255) == d;
    }
    n = m;
  }
  return keys[0];
}

/* --- scanning --- */

/* Defines a function that returns the first position from k on whose element x may come before the limit t, or n if
 * there is none.  It skips elements for which the comparison `x within t` (<= or >=) is true, so it may also return a
 * NaN.  `vectors` is true if every processor has a vector instruction for the comparison. */
#define SCAN(name, type, within, vectors)                                                       \
  static int64_t name(const void *data, int64_t k, int64_t n, const void *limit) {              \
    typedef type vector __attribute__((vector_size(16), aligned(1), may_alias));                \
    typedef uint64_t words __attribute__((vector_size(16)));                                    \
    enum { AT_ONCE = 4 * 16 / sizeof(type) };                                                   \
    const type *x = data, t = *(const type *)limit;                                             \
    for (; vectors && k + AT_ONCE <= n; k += AT_ONCE) {                                         \
      const vector *v = (const vector *)(x + k);                                                \
      words w = (words)((v[0] within t) & (v[1] within t) & (v[2] within t) & (v[3] within t)); \
      if ((w[0] & w[1]) != UINT64_MAX) {                                                        \
        break;                                                                                  \
      }                                                                                         \
    }                                                                                           \
    while (k < n && x[k] within t) {                                                            \
      k++;                                                                                      \
    }                                                                                           \
    return k;                                                                                   \
  }
SCAN(f32_up, float, >=, true)
SCAN(f32_down, float, <=, true)
SCAN(f64_up, double, >=, true)
SCAN(f64_down, double, <=, true)
SCAN(s32_up, int32_t, >=, true)
SCAN(s32_down, int32_t, <=, true)
SCAN(s64_up, int64_t, >=, false)
SCAN(s64_down, int64_t, <=, false)

static int64_t scan(const cpu_line *l, int64_t k, int64_t limit) {
  const void *at = (const char *)l->data + (size_t)limit * dtype_bytes(l->type);
  switch (l->type) {
    case DTYPE_F32: return (l->descending ? f32_down : f32_up)(l->data, k, l->n, at);
    case DTYPE_F64: return (l->descending ? f64_down : f64_up)(l->data, k, l->n, at);
    case DTYPE_S32: return (l->descending ? s32_down : s32_up)(l->data, k, l->n, at);
    case DTYPE_S64: return (l->descending ? s64_down : s64_up)(l->data, k, l->n, at);
    default: return k;
  }
}

/* --- finding the first few elements --- */

/* Finds the first `wanted` items of the line, where `wanted` is small, by keeping them in order while the line is
 * scanned. */
static void keep_few(const cpu_line *l, cpu_item *x, int64_t wanted) {
  for (int64_t k = 0; k < wanted; k++) {
    insert(x, k, item_at(l, k));
  }
  for (int64_t k = wanted; (k = scan(l, k, x[wanted - 1].place)) < l->n; k++) {
    cpu_item v = item_at(l, k);
    if (v.key < x[wanted - 1].key) {
      insert(x, wanted - 1, v);
    }
  }
}

/* Removes all but the first `wanted` (in sorted order) of the items x[n], which are in the order of their positions and
 * stay so.  Returns the remaining item that is last in sorted order. */
static cpu_item drop_worse(cpu_item *x, int64_t n, int64_t wanted, uint64_t *keys) {
  for (int64_t k = 0; k < n; k++) {
    keys[k] = x[k].key;
  }
  uint64_t last = select_key(keys, n, wanted - 1);
  int64_t before = 0, m = 0;
  for (int64_t k = 0; k < n; k++) {
    before += x[k].key < last;
  }
  cpu_item worst = {last, 0};
  for (int64_t k = 0, equal = wanted - before; k < n; k++) {
    bool same = x[k].key == last;
    if (x[k].key < last || (same && equal-- > 0)) {
      worst.place = same ? x[k].place : worst.place;
      x[m++] = x[k];
    }
  }
  return worst;
}

/* Gathers in x the first `wanted` of the items that come before the item `limit`; if limit.place is -1, of all items.
 * They are not sorted.  Returns how many there are. */
static int64_t gather(const cpu_line *l, cpu_item *x, int64_t wanted, cpu_item limit, uint64_t *keys) {
  int64_t room = wanted > (l->n - ROOM) / 2 ? l->n : 2 * wanted + ROOM, m = 0;
  for (int64_t k = 0; k < l->n; k++) {
    k = limit.place < 0 ? k : scan(l, k, limit.place);
    if (k == l->n) {
      break;
    }
    x[m] = item_at(l, k);
    m += limit.place < 0 || x[m].key < limit.key;
    if (m == room && m > wanted) {
      limit = drop_worse(x, m, wanted, keys);
      m = wanted;
    }
  }
  if (m > wanted) {
    (void)drop_worse(x, m, wanted, keys);
    m = wanted;
  }
  return m;
}

/* Estimates a limit by a sample: returns an item such that, probably, somewhat more than `wanted` elements come before
 * it.  Its place is -1 if a limit would not save time. */
static cpu_item estimate_limit(const cpu_line *l, cpu_item *x, int64_t wanted, uint64_t *keys) {
  int64_t rank = (int64_t)((double)wanted / (double)l->n * SAMPLE * 1.25) + 6;
  if (l->n < LONG || rank > SAMPLE / 4) {
    return (cpu_item){0, -1};
  }
  for (int64_t k = 0; k < SAMPLE; k++) {
    x[k] = item_at(l, (int64_t)((double)k * (double)l->n / SAMPLE));
    keys[k] = x[k].key;
  }
  uint64_t key = select_key(keys, SAMPLE, rank);
  int64_t k = 0;
  while (x[k].key != key) {
    k++;
  }
  return x[k];
}

const cpu_item *cpu_order(const cpu_line *l, int64_t wanted, void *scratch) {
  cpu_item *x = scratch, *other = x + l->n;
  uint64_t *keys = (uint64_t *)(other + l->n);
  if (wanted < l->n && wanted <= FEW && wanted > 0) {
    keep_few(l, x, wanted);
    return x;
  }
  if (wanted > l->n / 4) {
    load_items(l, x);
    return sort_items(l->budget, x, other, l->n);
  }
  int64_t n = gather(l, x, wanted, estimate_limit(l, x, wanted, keys), keys);
  if (n < wanted) { /* too few elements come before the sampled limit */
    n = gather(l, x, wanted, (cpu_item){0, -1}, keys);
  }
  return sort_items(l->budget, x, other, n);
}
