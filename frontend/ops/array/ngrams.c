/* ngrams.c - counts n-grams by a trie of their items; see ngrams.h.
 *
 * The items of the pool are numbered, and so are the prefixes of its n-grams of each length.  A prefix of k + 1 items
 * is found by the number of its prefix of k items and that of its last item.  So a few searches in sorted constants
 * find the n-grams that begin at all positions of all rows, whose counts are then raised by a scatter.  Their time
 * grows with the logarithm of the size of the pool. */
#include "frontend/ops/array/ngrams.h"

#include <stdlib.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

size_t onnx_ngrams_end(const onnx_ngrams *p, size_t length) {
  return length < p->n_starts ? (size_t)p->starts[length] : p->n_pool;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Sorted numbers without repetitions.  The number of a value is its position. */
typedef struct numbered {
  int64_t *values, count;
} numbered;

/* Sorts values[count] and removes repetitions. */
static numbered number(int64_t *values, int64_t count) {
  numbered r = {values, 0};
  qsort(values, (size_t)count, sizeof *values, by_value);
  for (int64_t k = 0; k < count; k++) {
    if (k == 0 || values[k] != values[r.count - 1]) {
      values[r.count++] = values[k];
    }
  }
  return r;
}

static int64_t number_of(const numbered *x, int64_t value) {
  const int64_t *at = bsearch(&value, x->values, (size_t)x->count, sizeof value, by_value);
  return at - x->values;
}

/* An n-gram of the pool. */
typedef struct gram {
  const int64_t *items;
  size_t length;
  int64_t column, prefix; /* the column of its counts; the number of its prefix of the current length; of one item, that
                             of the item */
} gram;

/* The trie of the n-grams whose lengths are counted. */
typedef struct trie {
  const onnx_node *n;
  size_t first, last; /* the lengths of the shortest and of the longest of these n-grams */
  numbered items;     /* all items of these n-grams */
  gram *grams;        /* [n_grams]: all n-grams of the pool */
  int64_t n_grams;
  int64_t width;       /* the number of columns */
  int64_t *counted_in; /* [width]: for the column of an n-gram, that of the first equal one, in which it is counted */
} trie;

static bool is_counted(const trie *t, const gram *g) { return g->length >= t->first && g->length <= t->last; }

/* Returns the n-grams of the pool. */
static gram *grams_of(const onnx_node *n, const onnx_ngrams *p) {
  gram *grams = ARENA_NEW_N(n->arena, gram, p->n_grams + 1), *next = grams;
  for (size_t length = 1; length <= p->n_starts; length++) {
    for (size_t at = (size_t)p->starts[length - 1]; at < onnx_ngrams_end(p, length); at += length) {
      *next = (gram){p->pool + at, length, p->columns[next - grams], 0};
      next++;
    }
  }
  return grams;
}

/* Numbers the prefixes of `length` items, which are at least 2, and returns their keys: the number of the prefix that
 * is one item shorter, times the number of all items, plus the number of its last item. */
static numbered extend(trie *t, size_t length) {
  int64_t count = 0, *keys = ARENA_NEW_N(t->n->arena, int64_t, (size_t)t->n_grams + 1);
  for (gram *g = t->grams; g < t->grams + t->n_grams; g++) {
    if (is_counted(t, g) && g->length >= length) {
      g->prefix = g->prefix * t->items.count + number_of(&t->items, g->items[length - 1]);
      keys[count++] = g->prefix;
    }
  }
  numbered all = number(keys, count);
  for (gram *g = t->grams; g < t->grams + t->n_grams; g++) {
    g->prefix = is_counted(t, g) && g->length >= length ? number_of(&all, g->prefix) : 0;
  }
  return all;
}

/* Returns, for each of the `count` prefixes of `length` items, the column of the n-gram that it is, or `width`, which
 * is no column.  Returns NULL if no n-gram of that length is counted. */
static const int64_t *columns_at(trie *t, size_t length, int64_t count) {
  int64_t *out = ARENA_NEW_N(t->n->arena, int64_t, (size_t)count + 1);
  bool any = false;
  for (int64_t k = 0; k < count; k++) {
    out[k] = t->width;
  }
  for (const gram *g = t->grams; g < t->grams + t->n_grams; g++) {
    if (is_counted(t, g) && g->length == length) {
      int64_t *at = &out[g->prefix];
      *at = *at == t->width ? g->column : *at;
      t->counted_in[g->column] = *at;
      any = true;
    }
  }
  return any ? out : NULL;
}

/* --- searches --- */

/* Returns s64[size], the values and then copies of the last one, up to a power of two, for onnx_search. */
static hlo_value filled(const onnx_node *n, const int64_t *values, int64_t count) {
  int64_t size = 1;
  while (size < count) {
    size *= 2;
  }
  void *data;
  literal l = literal_new(n->arena, shape_make(DTYPE_S64, 1, &size), &data);
  for (int64_t k = 0; k < size; k++) {
    ((int64_t *)data)[k] = values[k < count ? k : count - 1];
  }
  return hlo_constant(n->b, l);
}

/* Returns the numbers of the elements of x, or -1 for those that are not in the list. */
static hlo_value numbers_in(const onnx_node *n, const numbered *list, hlo_value x) {
  hlo_builder *b = n->b;
  hlo_value keys = filled(n, list->values, list->count), at = onnx_search(b, keys, x);
  hlo_value found = hlo_compare(b, HLO_EQ, hlo_take(b, keys, at, 0), x);
  at = hlo_binary(b, HLO_MIN, at, hlo_like(b, at, (double)(list->count - 1))); /* copies of the last one are the last */
  return hlo_select(b, found, at, hlo_like(b, at, -1));
}

/* Returns the columns of the n-grams that the prefixes are. */
static hlo_value columns_of(const trie *t, const int64_t *columns, int64_t count, hlo_value prefixes) {
  hlo_builder *b = t->n->b;
  hlo_value zero = hlo_like(b, prefixes, 0), safe = hlo_binary(b, HLO_MAX, prefixes, zero);
  hlo_value found = hlo_take(b, onnx_s64_array(t->n, columns, 1, (dim[]){count}), safe, 0);
  return hlo_select(b, hlo_compare(b, HLO_LT, prefixes, zero), hlo_like(b, found, (double)t->width), found);
}

/* Raises the counts in these columns of each row, s64[rows, places]. */
static hlo_value raise_counts(hlo_builder *b, hlo_value counts, hlo_value columns) {
  const int64_t rows = 0, along = 1;
  hlo_gather_dims d = {.n_collapsed = 1,
                       .collapsed = &along,
                       .n_batch = 1,
                       .operand_batch = &rows,
                       .indices_batch = &rows,
                       .n_map = 1,
                       .map = &along,
                       .index_vector_dim = 2};
  hlo_value ones = hlo_splat(b, shape_with_type(*hlo_shape(columns), DTYPE_F32), 1);
  return hlo_scatter(b, counts, onnx_insert_dim(b, columns, 2), ones, &d, HLO_REDUCE_ADD);
}

/* --- the levels of the trie --- */

/* Returns the prefixes of one more item: those of x[rows, places] whose next item is `distance` from their last one. */
static hlo_value longer(const trie *t, const numbered *keys, hlo_value prefixes, hlo_value items, size_t length,
                        int64_t distance) {
  hlo_builder *b = t->n->b;
  int64_t offset = (int64_t)(length - 1) * distance;
  dim places = dim_add_const(onnx_dims(t->n), hlo_shape(items)->dims[1], -offset);
  hlo_value before = hlo_slice_dim(b, prefixes, 1, 0, places);
  hlo_value item = hlo_slice_dim(b, items, 1, offset, hlo_shape(items)->dims[1]);
  hlo_value key = hlo_binary(b, HLO_ADD, onnx_times(b, before, (double)t->items.count), item);
  hlo_value none = hlo_compare(b, HLO_LT, hlo_binary(b, HLO_MIN, before, item), hlo_like(b, item, 0));
  return numbers_in(t->n, keys, hlo_select(b, none, hlo_like(b, key, -1), key));
}

/* Adds the n-grams of all lengths to the counts.  The prefixes that are found grow from length to length, for each
 * distance between items up to `most`. */
static hlo_value count_levels(trie *t, hlo_value counts, hlo_value items, int64_t most) {
  dim extent = hlo_shape(items)->dims[1];
  hlo_value *found = NULL; /* the prefixes for each distance; those of one item are the same for all */
  uint32_t n_found = 0, cap = 0;
  for (size_t length = 1; length <= t->last; length++) {
    numbered keys = length > 1 ? extend(t, length) : t->items;
    const int64_t *columns = columns_at(t, length, keys.count);
    int64_t distances = length == 1 ? 1 : length == 2 ? most : (int64_t)n_found;
    for (int64_t d = 1; d <= distances && dim_at_most(onnx_dims(t->n), (dim)(length - 1) * d + 1, extent); d++) {
      hlo_value before = length > 2 ? found[d - 1] : items;
      hlo_value x = length > 1 ? longer(t, &keys, before, items, length, d) : items;
      counts = columns ? raise_counts(t->n->b, counts, columns_of(t, columns, keys.count, x)) : counts;
      if (length == 2) {
        *ARENA_PUSH(t->n->arena, found, n_found, cap) = x;
      } else if (length > 2) {
        found[d - 1] = x;
      }
    }
  }
  return counts;
}

/* Copies the counts of n-grams to equal ones that come later in the pool. */
static hlo_value copy_equals(const trie *t, hlo_value counts) {
  bool same = true;
  for (int64_t k = 0; k < t->width; k++) {
    same = same && t->counted_in[k] == k;
  }
  return same ? counts : onnx_take_known(t->n->b, counts, 1, t->counted_in, t->width);
}

hlo_value onnx_count_ngrams(const onnx_node *n, const onnx_ngrams *p, hlo_value x) {
  trie t = {.n = n, .first = (size_t)p->shortest, .grams = grams_of(n, p), .n_grams = (int64_t)p->n_grams};
  t.last = (size_t)(p->longest < (int64_t)p->n_starts ? p->longest : (int64_t)p->n_starts);
  t.width = p->width;
  int64_t count = 0, *items = ARENA_NEW_N(n->arena, int64_t, p->n_pool + 1);
  for (const gram *g = t.grams; g < t.grams + t.n_grams; g++) {
    for (size_t k = 0; is_counted(&t, g) && k < g->length; k++) {
      items[count++] = g->items[k];
    }
  }
  hlo_value counts = hlo_splat(n->b, shape_make(DTYPE_F32, 2, (dim[]){hlo_shape(x)->dims[0], t.width}), 0);
  if (count == 0) {
    return counts;
  }
  t.items = number(items, count);
  for (gram *g = t.grams; g < t.grams + t.n_grams; g++) {
    g->prefix = is_counted(&t, g) ? number_of(&t.items, g->items[0]) : 0;
  }
  t.counted_in = ARENA_NEW_N(n->arena, int64_t, (size_t)t.width + 1);
  for (int64_t k = 0; k < t.width; k++) {
    t.counted_in[k] = k;
  }
  counts = count_levels(&t, counts, numbers_in(n, &t.items, x), t.last > 1 ? p->skips + 1 : 1);
  return copy_equals(&t, counts);
}
