/* contract.c - dot and convolution, both as one loop that multiplies rows of one operand with panels of the other.
 *
 * A panel holds PANEL columns, stored as [k][PANEL], in f64 (for floats), 64-bit integers or complex f64.  The inner
 * loop runs over the columns of the panel, so that it vectorises without changing the order of any sum. */
#include <string.h>

#include "backend_ref/complex.h"
#include "backend_ref/ref.h"

enum { PANEL = 8 };

/* Computes sums[PANEL] = row[n] times panel[n][PANEL]. */
typedef void tile_fn(const void *row, const void *panel, int64_t n, void *sums);

#define TILE(name, T, product)                                                  \
  static void name(const void *row, const void *panel, int64_t n, void *sums) { \
    const T *x = row, *y = panel;                                               \
    T s[PANEL] = {0};                                                           \
    for (int64_t k = 0; k < n; k++, y += PANEL) {                               \
      T v = x[k];                                                               \
      for (int j = 0; j < PANEL; j++) {                                         \
        s[j] += product(v, y[j]);                                               \
      }                                                                         \
    }                                                                           \
    memcpy(sums, s, sizeof s);                                                  \
  }

#define PLAIN_PRODUCT(x, y) ((x) * (y))

TILE(tile_f64, double, PLAIN_PRODUCT)
TILE(tile_u64, uint64_t, PLAIN_PRODUCT)
TILE(tile_c128, double complex, ref_product)

static tile_fn *tile_of(ref_class c) {
  return c == REF_F64 ? tile_f64 : c == REF_C128 ? tile_c128 : tile_u64; /* s64 sums have the same bits as u64 */
}

/* --- dot --- */

/* The dimensions of an operand by their role r (BATCH, FREE or CONTRACT): there are n[r] of them, listed in dims[r],
 * and extents[r] is the product of their extents. */
typedef struct arrangement {
  int n[3];
  int64_t dims[3][SHAPE_MAX_RANK], extents[3];
} arrangement;

enum { BATCH, FREE, CONTRACT };

static void list_dims(arrangement *r, int which, const hlo_instr *i, hlo_attr_id attr, bool *seen) {
  r->n[which] = (int)hlo_n_ints(i, attr);
  for (int k = 0; k < r->n[which]; k++) {
    r->dims[which][k] = hlo_ints(i, attr)[k];
    seen[r->dims[which][k]] = true;
  }
}

static arrangement arrange(const hlo_instr *i, const shape *s, hlo_attr_id batch, hlo_attr_id contract) {
  arrangement r = {.n = {0}};
  bool seen[SHAPE_MAX_RANK] = {false};
  list_dims(&r, BATCH, i, batch, seen);
  list_dims(&r, CONTRACT, i, contract, seen);
  for (int d = 0; d < s->rank; d++) {
    if (!seen[d]) {
      r.dims[FREE][r.n[FREE]++] = d;
    }
  }
  for (int which = 0; which < 3; which++) {
    r.extents[which] = 1;
    for (int k = 0; k < r.n[which]; k++) {
      r.extents[which] *= s->dims[r.dims[which][k]];
    }
  }
  return r;
}

/* Returns the operand transposed to [BATCH, second, third], where the last two are FREE and CONTRACT in either order,
 * with its elements converted to `class` (ref_class). */
static const void *arranged(ref_call *c, uint32_t operand, const arrangement *r, int second, int third,
                            ref_class class) {
  const literal *l = &c->in[operand];
  const int order[] = {BATCH, second, third};
  int64_t strides[SHAPE_MAX_RANK];
  shape s = l->shape;
  ref_box b = {.rank = s.rank};
  shape_strides(&l->shape, strides);
  bool moved = false;
  for (int k = 0, at = 0; k < 3; k++) {
    for (int d = 0; d < r->n[order[k]]; d++, at++) {
      int64_t from = r->dims[order[k]][d];
      moved = moved || from != at;
      s.dims[at] = b.extents[at] = l->shape.dims[from];
      b.from[at] = strides[from];
    }
  }
  if (!moved) {
    return ref_load_all(c, l, class);
  }
  shape_strides(&s, b.to);
  void *data;
  literal copy = literal_new(ref_scratch(c), s, &data);
  ref_move(dtype_bytes((dtype)s.type), &b, data, l->data);
  return ref_load_all(c, &copy, class);
}

/* Copies columns [first, first + m) of y[depth][columns] into the panel.  Columns of the panel from m on are not
 * written. */
static void fill_panel(char *panel, const char *y, int64_t depth, int64_t columns, int64_t first, int64_t m,
                       size_t size) {
  for (int64_t k = 0; k < depth; k++) {
    memcpy(panel + (size_t)(k * PANEL) * size, y + (size_t)(k * columns + first) * size, (size_t)m * size);
  }
}

status ref_dot(ref_call *c) {
  arrangement x = arrange(c->i, &c->in[0].shape, HLO_ATTR_LHS_BATCH, HLO_ATTR_LHS_CONTRACT);
  arrangement y = arrange(c->i, &c->in[1].shape, HLO_ATTR_RHS_BATCH, HLO_ATTR_RHS_CONTRACT);
  ref_class class = ref_sum_class((dtype)c->out[0].shape.type);
  size_t size = ref_class_bytes(class);
  const char *px = arranged(c, 0, &x, FREE, CONTRACT, class), *py = arranged(c, 1, &y, CONTRACT, FREE, class);
  int64_t rows = x.extents[FREE], columns = y.extents[FREE], depth = x.extents[CONTRACT];
  char *panel = arena_calloc(ref_scratch(c), (size_t)depth * PANEL, size), *r = ref_begin(c, 0, class);
  tile_fn *tile = tile_of(class);
  double complex sums[PANEL];
  for (int64_t batch = 0; batch < x.extents[BATCH]; batch++) {
    for (int64_t first = 0; first < columns; first += PANEL) {
      int64_t m = columns - first < PANEL ? columns - first : PANEL;
      fill_panel(panel, py, depth, columns, first, m, size);
      for (int64_t row = 0; row < rows; row++) {
        tile(px + (size_t)(row * depth) * size, panel, depth, sums);
        TRY(ref_work(c, depth * PANEL));
        memcpy(r + (size_t)(row * columns + first) * size, sums, (size_t)m * size);
      }
    }
    px += (size_t)(rows * depth) * size;
    py += (size_t)(depth * columns) * size;
    r += (size_t)(rows * columns) * size;
  }
  ref_finish(c, 0, class, r - (size_t)(x.extents[BATCH] * rows * columns) * size);
  return NULL;
}

/* --- convolution --- */

typedef struct convolution {
  int spatial;
  const int64_t *strides, *low, *lhs_dilation, *rhs_dilation;
  int64_t groups, x_channels, group_channels, out_channels;
  int64_t x_dims[SHAPE_MAX_RANK], taps_dims[SHAPE_MAX_RANK], out_dims[SHAPE_MAX_RANK];
  int64_t x_points, taps, out_points; /* the products of x_dims, of taps_dims and of out_dims */
  int64_t x_strides[SHAPE_MAX_RANK], channel_stride;
  bool last; /* whether the layout is channels-last */
} convolution;

static int64_t take_dims(int n, const int64_t *from, int64_t *to) {
  int64_t product = 1;
  for (int d = 0; d < n; d++) {
    to[d] = from[d];
    product *= from[d];
  }
  return product;
}

static convolution convolution_of(const ref_call *c) {
  const hlo_instr *i = c->i;
  const shape *x = &c->in[0].shape, *w = &c->in[1].shape, *out = &c->out[0].shape;
  bool last = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST;
  int first = last ? 1 : 2, channel = last ? x->rank - 1 : 1;
  int64_t strides[SHAPE_MAX_RANK];
  convolution v = {.spatial = x->rank - 2,
                   .strides = hlo_ints(i, HLO_ATTR_STRIDES),
                   .low = hlo_ints(i, HLO_ATTR_LOW),
                   .lhs_dilation = hlo_ints(i, HLO_ATTR_LHS_DILATION),
                   .rhs_dilation = hlo_ints(i, HLO_ATTR_RHS_DILATION),
                   .groups = hlo_int(i, HLO_ATTR_GROUPS),
                   .x_channels = x->dims[channel],
                   .group_channels = w->dims[1],
                   .out_channels = w->dims[0],
                   .last = last};
  v.x_points = take_dims(v.spatial, x->dims + first, v.x_dims);
  v.taps = take_dims(v.spatial, w->dims + 2, v.taps_dims);
  v.out_points = take_dims(v.spatial, out->dims + first, v.out_dims);
  shape_strides(x, strides);
  memcpy(v.x_strides, strides + first, (size_t)v.spatial * sizeof *strides);
  v.channel_stride = strides[channel];
  return v;
}

/* Returns the offset, in one channel of an image, of the element that tap `tap` reads for result point `point`; -1 if
 * it is padding or lies between dilated elements. */
static int64_t seen_by(const convolution *v, const int64_t *point, const int64_t *tap) {
  int64_t offset = 0;
  for (int d = 0; d < v->spatial; d++) {
    int64_t at = point[d] * v->strides[d] - v->low[d] + tap[d] * v->rhs_dilation[d];
    if (at < 0 || at % v->lhs_dilation[d] || at / v->lhs_dilation[d] >= v->x_dims[d]) {
      return -1;
    }
    offset += at / v->lhs_dilation[d] * v->x_strides[d];
  }
  return offset;
}

/* Fills offsets[taps][PANEL] for the m result points from `point` on, and advances `point` past them.  Columns from m
 * on are set to -1. */
static status find_offsets(ref_call *c, const convolution *v, int64_t m, int64_t *point, int64_t *offsets) {
  memset(offsets, 0xff, (size_t)(v->taps * PANEL) * sizeof *offsets);
  for (int64_t j = 0; j < m; j++) {
    int64_t tap[SHAPE_MAX_RANK] = {0};
    for (int64_t t = 0; t < v->taps; t++) {
      offsets[t * PANEL + j] = seen_by(v, point, tap);
      ref_next(v->spatial, v->taps_dims, tap);
      TRY(ref_work(c, 1));
    }
    ref_next(v->spatial, v->out_dims, point);
  }
  return NULL;
}

#define GATHER_PANEL(T)                                     \
  do {                                                      \
    const T *from = x;                                      \
    T *to = panel;                                          \
    for (int64_t k = 0; k < v->group_channels; k++) {       \
      for (int64_t t = 0; t < v->taps * PANEL; t++, to++) { \
        *to = offsets[t] < 0 ? 0 : from[offsets[t]];        \
      }                                                     \
      from += v->channel_stride;                            \
    }                                                       \
  } while (0)

/* Gathers the input elements panel[channels of the group][taps][PANEL], in the order in which a row of the kernel has
 * its weights. */
static void gather_panel(const convolution *v, ref_class class, const void *x, const int64_t *offsets, void *panel) {
  if (class == REF_C128) {
    GATHER_PANEL(double complex);
  } else if (class == REF_F64) {
    GATHER_PANEL(double);
  } else {
    GATHER_PANEL(uint64_t);
  }
}

/* Stores sums[m] as result points [first, first + m) of channel o of one image. */
static void put_sums(const convolution *v, char *image, int64_t o, int64_t first, int64_t m, const char *sums,
                     size_t size) {
  for (int64_t j = 0; j < m; j++) {
    int64_t at = v->last ? (first + j) * v->out_channels + o : o * v->out_points + first + j;
    memcpy(image + (size_t)at * size, sums + (size_t)j * size, size);
  }
}

/* Convolves one image. x are its elements and `image` the results, all converted to `class` (ref_class). */
static status convolve_image(ref_call *c, const convolution *v, ref_class class, const char *x, const char *kernel,
                             int64_t *offsets, char *panel, char *image) {
  int64_t depth = v->group_channels * v->taps, rows = v->out_channels / v->groups, point[SHAPE_MAX_RANK] = {0};
  size_t size = ref_class_bytes(class);
  tile_fn *tile = tile_of(class);
  double complex sums[PANEL];
  for (int64_t first = 0; first < v->out_points; first += PANEL) {
    int64_t m = v->out_points - first < PANEL ? v->out_points - first : PANEL;
    TRY(find_offsets(c, v, m, point, offsets));
    for (int64_t g = 0; g < v->groups; g++) {
      int64_t base = g * v->group_channels * v->channel_stride;
      gather_panel(v, class, x + base * (int64_t)size, offsets, panel);
      for (int64_t o = g * rows; o < (g + 1) * rows; o++) {
        tile(kernel + (size_t)(o * depth) * size, panel, depth, sums);
        put_sums(v, image, o, first, m, (const char *)sums, size);
        TRY(ref_work(c, depth * PANEL));
      }
    }
  }
  return NULL;
}

status ref_convolution(ref_call *c) {
  convolution v = convolution_of(c);
  dtype from = (dtype)c->in[0].shape.type, to = (dtype)c->out[0].shape.type;
  ref_class class = ref_sum_class(to);
  size_t size = ref_class_bytes(class);
  int64_t in_image = v.x_channels * v.x_points, out_image = v.out_channels * v.out_points;
  arena *scratch = ref_scratch(c);
  const char *kernel = ref_load_all(c, &c->in[1], class);
  int64_t *offsets = ARENA_NEW_N(scratch, int64_t, (size_t)(v.taps * PANEL));
  char *panel = arena_calloc(scratch, (size_t)(v.group_channels * v.taps) * PANEL, size);
  char *x = arena_calloc(scratch, (size_t)in_image, size), *image = arena_calloc(scratch, (size_t)out_image, size);
  void *r = ref_result(c, 0);
  for (int64_t n = 0; n < c->in[0].shape.dims[0]; n++) {
    const char *px = ref_load(from, class, c->in[0].data, n * in_image, in_image, x);
    TRY(convolve_image(c, &v, class, px, kernel, offsets, panel, image));
    ref_store(to, class, image, r, n * out_image, out_image);
  }
  return NULL;
}
