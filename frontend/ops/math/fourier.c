/* fourier.c - the discrete Fourier transform of any length, built from dots and elementwise operations.
 *
 * Up to MATRIX_MAX points it is one dot with a matrix of cosines and sines, which is a constant, or is computed in each
 * run if the number of points is symbolic.  A larger number of points is split into
 * two factors (Cooley and Tukey): transforms of the length of one factor, a multiplication by twiddle factors,
 * transforms of the length of the other.  A prime number of points becomes a convolution, which is computed by
 * transforms whose length is a power of two (Bluestein).  A complex number is a pair in the last dimension.  In the
 * comments, E(x) is the complex number cos(2 pi x) + sqrt(-1) sin(2 pi x), i numbers inputs and k numbers results. */
#include "frontend/ops/math/fourier.h"

#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

enum { MATRIX_MAX = 1024 };

/* Returns cos(2 pi a / n).  The angle is reduced to the first eighth of a turn as an integer, so that results of 0, 1
 * and -1 are exact. */
static double cosine(int64_t a, int64_t n) {
  bool negative = false;
  a %= n;
  a = 2 * (a < 0 ? a + n : a); /* a full turn is 2n from here on */
  a = a > n ? 2 * n - a : a;
  if (2 * a > n) {
    a = n - a;
    negative = true;
  }
  double c = 4 * a > n ? sin(M_PI * (double)(n - 2 * a) / (2 * (double)n)) : cos(M_PI * (double)a / (double)n);
  return negative ? -c : c;
}

static double sine(int64_t a, int64_t n) { return cosine(4 * (a % n) - n, 4 * n); }

/* A constant whose elements table_set sets. */
typedef struct table {
  literal l;
  void *data;
} table;

static table table_new(const onnx_node *n, dtype type, int rank, const dim *dims) {
  table t;
  t.l = literal_new(n->arena, shape_make(type, rank, dims), &t.data);
  return t;
}

static void table_set(const table *t, int64_t k, double value) {
  dtype_store_f64((dtype)t->l.shape.type, (char *)t->data + (size_t)k * dtype_bytes((dtype)t->l.shape.type), value,
                  false, DTYPE_ROUND_NEAREST);
}

/* --- up to MATRIX_MAX points: one dot --- */

/* Return the number of bins that the transform reads, and the number that it returns. */
static dim half_of(const onnx_node *n, const onnx_fourier *f) {
  return dim_add_const(onnx_dims(n), dim_floordiv(onnx_dims(n), f->n, 2), 1);
}
static dim bins_taken(const onnx_node *n, const onnx_fourier *f) {
  return f->inverse && f->one_sided ? half_of(n, f) : f->n;
}
static dim bins_given(const onnx_node *n, const onnx_fourier *f) {
  return !f->inverse && f->one_sided ? half_of(n, f) : f->n;
}

/* Returns the factor by which input bin i is multiplied.  The input of a one-sided inverse transform does not have the
 * bins that are conjugates of other bins; those other bins count twice. */
static double bin_weight(const onnx_fourier *f, int64_t i) {
  double once = f->inverse ? 1 / (double)f->n : 1;
  return f->inverse && f->one_sided && i != 0 && 2 * i != f->n ? 2 * once : once;
}

/* Returns the matrix of the transform, [bins_taken, parts, bins_given, given_parts].  Its elements are E(-i k / n) or,
 * for the inverse transform, the conjugates, each multiplied by bin_weight(f, i).  parts and given_parts, the numbers
 * of parts of an input and of a result, are 1 (real) or 2 (complex). */
static hlo_value matrix(const onnx_node *n, const onnx_fourier *f, dtype type, int64_t parts, int64_t given_parts) {
  int64_t taken = bins_taken(n, f), given = bins_given(n, f), at = 0;
  double *cosines = ARENA_NEW_N(n->arena, double, (size_t)f->n), *sines = ARENA_NEW_N(n->arena, double, (size_t)f->n);
  for (int64_t a = 0; a < f->n; a++) {
    cosines[a] = cosine(a, f->n);
    sines[a] = f->inverse ? -sine(a, f->n) : sine(a, f->n);
  }
  table t = table_new(n, type, 4, (dim[]){taken, parts, given, given_parts});
  for (int64_t i = 0; i < taken; i++) {
    for (int64_t p = 0; p < parts; p++) {
      for (int64_t k = 0; k < given; k++) {
        for (int64_t q = 0; q < given_parts; q++) {
          int64_t a = i * k % f->n;
          table_set(&t, at++, bin_weight(f, i) * (p == q ? cosines[a] : p > q ? sines[a] : -sines[a]));
        }
      }
    }
  }
  return hlo_constant(n->b, t.l);
}

/* --- the same for a symbolic number of points --- */

/* Returns the number of points as an array of f64. */
static hlo_value points_as(const onnx_node *n, const onnx_fourier *f, shape s) {
  s.type = DTYPE_F64;
  return hlo_broadcast(n->b, hlo_convert(n->b, hlo_sizes(n->b, DTYPE_S64, -1, &f->n), DTYPE_F64), s, NULL);
}

/* Returns i k % n as s64[bins_taken, bins_given].  The quotient is computed in f64, in which it is exact: products of
 * two numbers below 2^10 are far from the numbers at which a quotient could be rounded to the next integer. */
static hlo_value angle_numbers(const onnx_node *n, const onnx_fourier *f) {
  hlo_builder *b = n->b;
  shape s = shape_make(DTYPE_S64, 2, (dim[]){bins_taken(n, f), bins_given(n, f)});
  hlo_value product = hlo_convert(b, hlo_binary(b, HLO_MUL, hlo_iota(b, s, 0), hlo_iota(b, s, 1)), DTYPE_F64);
  hlo_value points = points_as(n, f, s), turns = hlo_unary(b, HLO_FLOOR, hlo_binary(b, HLO_DIV, product, points));
  return hlo_convert(b, hlo_binary(b, HLO_SUB, product, hlo_binary(b, HLO_MUL, turns, points)), DTYPE_S64);
}

/* Returns bin_weight of each input bin, f64[bins_taken]. */
static hlo_value bin_weights(const onnx_node *n, const onnx_fourier *f) {
  hlo_builder *b = n->b;
  shape s = shape_make(DTYPE_F64, 1, (dim[]){bins_taken(n, f)});
  hlo_value once = hlo_splat(b, s, 1), points = points_as(n, f, s);
  if (f->one_sided) {
    hlo_value i = hlo_iota(b, s, 0), last = hlo_compare(b, HLO_EQ, onnx_binary_scalar(b, HLO_MUL, i, 2), points);
    hlo_value alone = hlo_binary(b, HLO_OR, onnx_compare_scalar(b, HLO_EQ, i, 0), last);
    once = hlo_select(b, alone, once, hlo_splat(b, s, 2));
  }
  return hlo_binary(b, HLO_DIV, once, points);
}

/* Does what `cosine` does for arrays of f64; 0 <= a < turn. */
static hlo_value open_cosine(hlo_builder *b, hlo_value a, hlo_value turn) {
  a = onnx_binary_scalar(b, HLO_MUL, a, 2); /* a full turn is 2 * turn from here on */
  a = hlo_binary(b, HLO_MIN, a, hlo_binary(b, HLO_SUB, onnx_binary_scalar(b, HLO_MUL, turn, 2), a));
  hlo_value negative = hlo_compare(b, HLO_GT, onnx_binary_scalar(b, HLO_MUL, a, 2), turn);
  a = hlo_binary(b, HLO_MIN, a, hlo_binary(b, HLO_SUB, turn, a));
  hlo_value above = hlo_binary(b, HLO_SUB, turn, onnx_binary_scalar(b, HLO_MUL, a, 2));
  hlo_value s =
      hlo_binary(b, HLO_DIV, onnx_binary_scalar(b, HLO_MUL, above, M_PI), onnx_binary_scalar(b, HLO_MUL, turn, 2));
  hlo_value c = hlo_binary(b, HLO_DIV, onnx_binary_scalar(b, HLO_MUL, a, M_PI), turn);
  hlo_value steep = hlo_compare(b, HLO_GT, onnx_binary_scalar(b, HLO_MUL, a, 4), turn);
  c = hlo_select(b, steep, hlo_unary(b, HLO_SIN, s), hlo_unary(b, HLO_COS, c));
  return hlo_select(b, negative, hlo_unary(b, HLO_NEG, c), c);
}

static hlo_value open_sine(hlo_builder *b, hlo_value a, hlo_value turn) {
  hlo_value wide = onnx_binary_scalar(b, HLO_MUL, turn, 4);
  a = hlo_binary(b, HLO_SUB, onnx_binary_scalar(b, HLO_MUL, a, 4), turn);
  a = hlo_select(b, onnx_compare_scalar(b, HLO_LT, a, 0), hlo_binary(b, HLO_ADD, a, wide), a);
  return open_cosine(b, a, wide);
}

/* Does what `matrix` does. */
static hlo_value open_matrix(const onnx_node *n, const onnx_fourier *f, dtype type, int64_t parts,
                             int64_t given_parts) {
  static hlo_value (*const functions[])(hlo_builder *, hlo_value, hlo_value) = {open_cosine, open_sine};
  hlo_builder *b = n->b;
  shape s = shape_make(DTYPE_F64, 1, &f->n);
  hlo_value numbers = angle_numbers(n, f), points = points_as(n, f, s), trig[2], rows[2];
  hlo_value weights = f->inverse ? hlo_convert(b, bin_weights(n, f), type) : (hlo_value){0};
  for (int k = 0; k < 2; k++) {
    hlo_value values = hlo_convert(b, functions[k](b, hlo_iota(b, s, 0), points), type);
    trig[k] = hlo_take(b, values, numbers, 0);
    if (f->inverse) {
      trig[k] = hlo_binary(b, HLO_MUL, trig[k], hlo_broadcast(b, weights, *hlo_shape(trig[k]), (int64_t[]){0}));
    }
    trig[k] = onnx_insert_dim(b, trig[k], 2);
  }
  hlo_value minus = hlo_unary(b, HLO_NEG, trig[1]);
  hlo_value below = f->inverse ? minus : trig[1], above = f->inverse ? trig[1] : minus; /* p > q, and p < q */
  for (int64_t p = 0; p < parts; p++) {
    hlo_value row[] = {p ? below : trig[0], p ? trig[0] : above};
    rows[p] = onnx_insert_dim(b, hlo_concatenate(b, (uint32_t)given_parts, row, 2), 1);
  }
  return hlo_concatenate(b, (uint32_t)parts, rows, 1);
}

/* --- any number of points: x and the result are [rows, n, 2], of which only `rows` may be symbolic; the results of an
 * inverse transform are not yet multiplied by 1 / n (transform_rows does that) --- */

/* Returns the real (k = 0) or imaginary (k = 1) parts of x. */
static hlo_value part(hlo_builder *b, hlo_value x, int64_t k) { return hlo_slice_dim(b, x, hlo_rank(x) - 1, k, k + 1); }

/* Multiplies x, an array of complex numbers, by the complex constants c + sqrt(-1) s.  The dimensions of c and s are
 * those of x without the first one, and with extent 1 in place of the last one. */
static hlo_value turned(hlo_builder *b, hlo_value x, const table *c, const table *s) {
  hlo_value re = part(b, x, 0), im = part(b, x, 1);
  int64_t dims[SHAPE_MAX_RANK];
  for (int k = 0; k < c->l.shape.rank; k++) {
    dims[k] = k + 1;
  }
  hlo_value cs = hlo_broadcast(b, hlo_constant(b, c->l), *hlo_shape(re), dims);
  hlo_value sn = hlo_broadcast(b, hlo_constant(b, s->l), *hlo_shape(re), dims);
  hlo_value parts[] = {hlo_binary(b, HLO_SUB, hlo_binary(b, HLO_MUL, re, cs), hlo_binary(b, HLO_MUL, im, sn)),
                       hlo_binary(b, HLO_ADD, hlo_binary(b, HLO_MUL, re, sn), hlo_binary(b, HLO_MUL, im, cs))};
  return hlo_concatenate(b, 2, parts, hlo_rank(x) - 1);
}

static hlo_value many_points(const onnx_node *n, hlo_value x, bool inverse);

static hlo_value few_points(const onnx_node *n, hlo_value x, bool inverse) {
  onnx_fourier f = {.n = hlo_shape(x)->dims[1]};
  hlo_dot_dims d = {.n_contract = 2, .lhs_contract = (int64_t[]){1, 2}, .rhs_contract = (int64_t[]){0, 1}};
  if (inverse) { /* exchanging real and imaginary parts before and after a transform makes it the inverse one */
    x = hlo_reverse(n->b, x, 1, (int64_t[]){2});
  }
  x = hlo_dot(n->b, x, matrix(n, &f, hlo_type(x), 2, 2), &d);
  return inverse ? hlo_reverse(n->b, x, 1, (int64_t[]){2}) : x;
}

/* Cooley and Tukey's step for n = p q points.  With i = i1 q + i2 and k = k1 + p k2 it transforms over i1, multiplies
 * by E(-i2 k1 / n), or by its conjugate for an inverse transform, and transforms over i2. */
static hlo_value split_points(const onnx_node *n, hlo_value x, int64_t p, bool inverse) {
  static const int64_t exchange[] = {0, 2, 1, 3};
  hlo_builder *b = n->b;
  dim_table *dims = onnx_dims(n);
  dim rows = hlo_shape(x)->dims[0], count = hlo_shape(x)->dims[1], q = count / p;
  x = hlo_transpose(b, hlo_reshape(b, x, 4, (dim[]){rows, p, q, 2}), exchange);
  x = many_points(n, hlo_reshape(b, x, 3, (dim[]){dim_mul(dims, rows, q), p, 2}), inverse);
  table c = table_new(n, hlo_type(x), 3, (dim[]){q, p, 1}), s = table_new(n, hlo_type(x), 3, (dim[]){q, p, 1});
  for (int64_t i = 0; i < q; i++) {
    for (int64_t k = 0; k < p; k++) {
      table_set(&c, i * p + k, cosine(i * k, count));
      table_set(&s, i * p + k, inverse ? sine(i * k, count) : -sine(i * k, count));
    }
  }
  x = hlo_transpose(b, turned(b, hlo_reshape(b, x, 4, (dim[]){rows, q, p, 2}), &c, &s), exchange);
  x = many_points(n, hlo_reshape(b, x, 3, (dim[]){dim_mul(dims, rows, p), q, 2}), inverse);
  x = hlo_transpose(b, hlo_reshape(b, x, 4, (dim[]){rows, p, q, 2}), exchange);
  return hlo_reshape(b, x, 3, (dim[]){rows, count, 2});
}

/* Bluestein's algorithm.  Since i k = (i^2 + k^2 - (k - i)^2) / 2, the transform is a multiplication by E(-i^2 / 2n), a
 * convolution over i with E((k - i)^2 / 2n), and a multiplication by E(-k^2 / 2n). */
static hlo_value prime_points(const onnx_node *n, hlo_value x, bool inverse) {
  hlo_builder *b = n->b;
  dim rows = hlo_shape(x)->dims[0];
  int64_t count = hlo_shape(x)->dims[1], around = 1;
  dtype type = hlo_type(x);
  while (around < 2 * count - 1) {
    around *= 2;
  }
  table c = table_new(n, type, 2, (dim[]){count, 1}), s = table_new(n, type, 2, (dim[]){count, 1});
  table filter = table_new(n, type, 3, (dim[]){1, around, 2});
  memset(filter.data, 0, (size_t)shape_bytes(&filter.l.shape));
  for (int64_t i = 0; i < count; i++) {
    int64_t a = i * i % (2 * count), places[] = {i, i ? around - i : 0};
    double co = cosine(a, 2 * count), si = inverse ? -sine(a, 2 * count) : sine(a, 2 * count);
    table_set(&c, i, co);
    table_set(&s, i, -si);
    for (int k = 0; k < 2; k++) {
      table_set(&filter, 2 * places[k], co / (double)around);
      table_set(&filter, 2 * places[k] + 1, si / (double)around);
    }
  }
  static const int64_t none[3];
  x = hlo_pad(b, turned(b, x, &c, &s), hlo_scalar(b, type, 0), none, (int64_t[]){0, around - count, 0}, NULL);
  hlo_value g = many_points(n, hlo_constant(b, filter.l), false);
  x = many_points(n, x, false);
  g = hlo_broadcast_to(b, g, hlo_shape(x));
  hlo_value re = part(b, x, 0), im = part(b, x, 1), gr = part(b, g, 0), gi = part(b, g, 1);
  hlo_value parts[] = {hlo_binary(b, HLO_SUB, hlo_binary(b, HLO_MUL, re, gr), hlo_binary(b, HLO_MUL, im, gi)),
                       hlo_binary(b, HLO_ADD, hlo_binary(b, HLO_MUL, re, gi), hlo_binary(b, HLO_MUL, im, gr))};
  x = many_points(n, hlo_concatenate(b, 2, parts, 2), true);
  x = hlo_slice(b, x, none, (dim[]){rows, count, 2}, NULL);
  return turned(b, x, &c, &s);
}

static hlo_value many_points(const onnx_node *n, hlo_value x, bool inverse) {
  if (n->b->error) {
    return x;
  }
  int64_t count = hlo_shape(x)->dims[1], p = 1;
  if (count <= MATRIX_MAX) {
    return few_points(n, x, inverse);
  }
  for (int64_t k = 2; k <= count / k; k++) { /* finds the largest factor up to the square root */
    p = count % k == 0 ? k : p;
  }
  return p > 1 ? split_points(n, x, p, inverse) : prime_points(n, x, inverse);
}

/* Extends the n / 2 + 1 bins of a one-sided transform to all n bins; the missing ones are conjugates. */
static hlo_value mirrored(hlo_builder *b, const onnx_fourier *f, hlo_value x) {
  hlo_value tail = hlo_slice_dim(b, x, 1, 1, f->n - f->n / 2);
  tail = hlo_reverse(b, tail, 1, (int64_t[]){1});
  hlo_value parts[] = {part(b, tail, 0), hlo_unary(b, HLO_NEG, part(b, tail, 1))};
  return hlo_concatenate(b, 2, (hlo_value[]){x, hlo_concatenate(b, 2, parts, 2)}, 1);
}

/* Transforms x, [rows, bins_taken, parts], to [rows, bins_given, given_parts]. */
static hlo_value transform_rows(const onnx_node *n, const onnx_fourier *f, hlo_value x, int64_t given_parts) {
  hlo_builder *b = n->b;
  int64_t parts = hlo_shape(x)->dims[2];
  if (!dim_is_const(f->n) || f->n <= MATRIX_MAX) {
    hlo_dot_dims d = {.n_contract = 2, .lhs_contract = (int64_t[]){1, 2}, .rhs_contract = (int64_t[]){0, 1}};
    return hlo_dot(b, x, (dim_is_const(f->n) ? matrix : open_matrix)(n, f, hlo_type(x), parts, given_parts), &d);
  }
  if (parts == 1) {
    x = hlo_concatenate(b, 2, (hlo_value[]){x, hlo_like(b, x, 0)}, 2);
  }
  x = f->inverse && f->one_sided ? mirrored(b, f, x) : x;
  x = many_points(n, x, f->inverse);
  x = given_parts == 1 ? part(b, x, 0) : x;
  x = hlo_slice_dim(b, x, 1, 0, bins_given(n, f));
  return f->inverse ? onnx_binary_scalar(b, HLO_MUL, x, 1 / (double)f->n) : x;
}

/* Cuts x along the axis to its first `count` elements, or pads it with zeros to that number. */
static hlo_value resize_axis(const onnx_node *n, hlo_value x, int64_t axis, dim count) {
  dim_table *t = onnx_dims(n);
  shape missing = *hlo_shape(x);
  dim have = missing.dims[axis];
  if (dim_at_most(t, count, have)) {
    return hlo_slice_dim(n->b, x, axis, 0, count);
  }
  missing.dims[axis] = dim_sub(t, count, have);
  return hlo_concatenate(n->b, 2, (hlo_value[]){x, hlo_splat(n->b, missing, 0)}, axis);
}

hlo_value onnx_fourier_transform(const onnx_node *n, const onnx_fourier *f, hlo_value x, int64_t axis) {
  hlo_builder *b = n->b;
  dtype type = hlo_type(x);
  x = onnx_widen(b, resize_axis(n, x, axis, bins_taken(n, f)));
  if (b->error) {
    return x;
  }
  int64_t last = hlo_rank(x) - 1, there[SHAPE_MAX_RANK], back[SHAPE_MAX_RANK];
  for (int64_t k = 0; k <= last; k++) { /* moves the axis to the place before the last dimension */
    there[k] = k < axis || k == last ? k : k == last - 1 ? axis : k + 1;
    back[there[k]] = k;
  }
  x = hlo_transpose(b, x, there);
  shape s = *hlo_shape(x);
  x = hlo_reshape(b, x, 3,
                  (dim[]){shape_dim_product(onnx_dims(n), &s, 0, (int)last - 1), s.dims[last - 1], s.dims[last]});
  s.dims[last - 1] = bins_given(n, f);
  s.dims[last] = f->inverse && f->one_sided ? 1 : 2;
  x = transform_rows(n, f, x, s.dims[last]);
  x = hlo_transpose(b, hlo_reshape(b, x, s.rank, s.dims), back);
  return hlo_convert(b, x, type);
}
