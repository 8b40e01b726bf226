/* reduce.c - reductions over whole dimensions, and the row kernels that windows and scans also use. */
#include <math.h>
#include <string.h>

#include "backend_ref/complex.h"
#include "backend_ref/ref.h"

/* --- row kernels: a is the accumulator, b the element --- */

#define ROW(name, T, expression)                                                                  \
  static void name(void *accs, const void *xs, int64_t acc_stride, int64_t x_stride, int64_t n) { \
    T *acc = accs;                                                                                \
    const T *x = xs;                                                                              \
    if (acc_stride == 0) { /* all elements are reduced to one, which is kept in a register */     \
      T a = *acc;                                                                                 \
      for (int64_t k = 0; k < n; k++) {                                                           \
        T b = x[k * x_stride];                                                                    \
        a = (expression);                                                                         \
      }                                                                                           \
      *acc = a;                                                                                   \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t k = 0; k < n; k++) {                                                             \
      T a = acc[k * acc_stride], b = x[k * x_stride];                                             \
      acc[k * acc_stride] = (expression);                                                         \
    }                                                                                             \
  }

/* Sums with Neumaier's compensation: rounding errors are summed separately, since other targets' sums are compared with
 * these. */
static void sum_f64(double *acc, const double *x, int64_t x_stride, int64_t n) {
  double sum = 0, lost = 0;
  for (int64_t k = 0; k < n; k++) {
    double b = x[k * x_stride], next = sum + b;
    lost += fabs(sum) >= fabs(b) ? (sum - next) + b : (b - next) + sum;
    sum = next;
  }
  *acc += isfinite(sum) ? sum + lost : sum;
}

static void add_f64(void *accs, const void *xs, int64_t acc_stride, int64_t x_stride, int64_t n) {
  double *acc = accs;
  const double *x = xs;
  if (acc_stride == 0) {
    sum_f64(acc, x, x_stride, n);
    return;
  }
  for (int64_t k = 0; k < n; k++) {
    acc[k * acc_stride] += x[k * x_stride];
  }
}

ROW(mul_f64, double, a *b)
ROW(max_f64, double, a != a ? a : b != b ? b : a == b ? (signbit(a) ? b : a) : a > b ? a : b)
ROW(min_f64, double, a != a ? a : b != b ? b : a == b ? (signbit(a) ? a : b) : a < b ? a : b)
ROW(add_s64, int64_t, (int64_t)((uint64_t)a + (uint64_t)b))
ROW(mul_s64, int64_t, (int64_t)((uint64_t)a *(uint64_t)b))
ROW(max_s64, int64_t, a > b ? a : b)
ROW(min_s64, int64_t, a < b ? a : b)
ROW(add_u64, uint64_t, a + b)
ROW(mul_u64, uint64_t, a *b)
ROW(max_u64, uint64_t, a > b ? a : b)
ROW(min_u64, uint64_t, a < b ? a : b)
ROW(and_u64, uint64_t, a &b)
ROW(or_u64, uint64_t, a | b)
ROW(xor_u64, uint64_t, a ^ b)
ROW(add_c128, double complex, a + b)
ROW(mul_c128, double complex, ref_product(a, b))

ref_row_kernel *ref_row(hlo_reducer r, ref_class c) {
  /* The bitwise operations of unsigned integers serve signed ones as well. */
  static ref_row_kernel *const rows[][REF_CLASSES] = {
      [HLO_REDUCE_ADD] = {NULL, add_f64, add_s64, add_u64, add_c128},
      [HLO_REDUCE_MUL] = {NULL, mul_f64, mul_s64, mul_u64, mul_c128},
      [HLO_REDUCE_MAX] = {NULL, max_f64, max_s64, max_u64},
      [HLO_REDUCE_MIN] = {NULL, min_f64, min_s64, min_u64},
      [HLO_REDUCE_AND] = {[REF_S64] = and_u64, [REF_U64] = and_u64},
      [HLO_REDUCE_OR] = {[REF_S64] = or_u64, [REF_U64] = or_u64},
      [HLO_REDUCE_XOR] = {[REF_S64] = xor_u64, [REF_U64] = xor_u64},
      [HLO_REDUCE_REPLACE] = {NULL},
  };
  return rows[r][c];
}

/* Stores the largest or smallest value of the type, which is infinite if the type has infinities, as an element of the
 * type. ref_load then converts it like the elements of the operand. */
static void store_extreme(dtype t, bool largest, void *element) {
  const dtype_info *info = dtype_get_info(t);
  if (info->kind == DTYPE_CLASS_FLOAT) {
    dtype_store_f64(t, element, largest ? INFINITY : -INFINITY, false, DTYPE_ROUND_NEAREST);
    if (!isinf(dtype_load_f64(t, element))) {
      dtype_store_f64(t, element, largest ? dtype_max_f64(t) : dtype_lowest_f64(t), true, DTYPE_ROUND_NEAREST);
    }
    return;
  }
  bool is_signed = info->kind == DTYPE_CLASS_SIGNED;
  int value_bits = is_signed ? info->bits - 1 : info->bits;
  uint64_t max = value_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << value_bits) - 1;
  dtype_store_i64(t, element, largest ? (int64_t)max : is_signed ? -(int64_t)max - 1 : 0);
}

void ref_identity(hlo_reducer r, dtype t, ref_class c, void *values, int64_t n) {
  double element[2] = {0}, buffer[2]; /* room for one element of any type */
  if (r == HLO_REDUCE_MUL) {
    int64_t one = 1;
    dtype_convert(DTYPE_S64, &one, t, element, 1, false, DTYPE_ROUND_NEAREST);
  } else if (r == HLO_REDUCE_MAX || r == HLO_REDUCE_MIN) {
    store_extreme(t, r == HLO_REDUCE_MIN, element);
  } else if (r == HLO_REDUCE_AND) {
    dtype_store_i64(t, element, -1);
  }
  const void *value = ref_load(t, c, element, 0, 1, buffer);
  size_t size = ref_class_bytes(c);
  for (int64_t k = 0; k < n; k++) {
    memcpy((char *)values + (size_t)k * size, value, size);
  }
}

/* --- reduce --- */

/* The operand's dimensions, and for each the stride of the accumulators, which is 0 if the dimension is reduced.
 * Neighbouring dimensions that are both reduced, or both not, are merged. */
typedef struct reduction {
  int rank;
  int64_t extents[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK];
} reduction;

static reduction plan_reduction(const ref_call *c) {
  const shape *x = &c->in[0].shape;
  bool reduced[SHAPE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < hlo_n_ints(c->i, HLO_ATTR_DIMENSIONS); k++) {
    reduced[hlo_ints(c->i, HLO_ATTR_DIMENSIONS)[k]] = true;
  }
  reduction r = {.rank = 0};
  int64_t stride = shape_elements(&c->out[0].shape);
  for (int d = 0; d < x->rank; d++) {
    bool joins = d && reduced[d] == reduced[d - 1];
    int at = joins ? r.rank - 1 : r.rank++;
    r.extents[at] = joins ? r.extents[at] * x->dims[d] : x->dims[d];
    if (!reduced[d]) {
      stride /= x->dims[d];
    }
    r.strides[at] = reduced[d] ? 0 : stride;
  }
  if (r.rank == 0) {
    r.extents[r.rank++] = 1;
  }
  return r;
}

status ref_reduce(ref_call *c) {
  dtype t = (dtype)c->in[0].shape.type;
  hlo_reducer reducer = (hlo_reducer)hlo_int(c->i, HLO_ATTR_REDUCER);
  ref_class class = ref_sum_class(t);
  ref_row_kernel *kernel = ref_row(reducer, class);
  if (!kernel) {
    return ref_unsupported(c->i);
  }
  char *acc = ref_begin(c, 0, class);
  ref_identity(reducer, t, class, acc, shape_elements(&c->out[0].shape));
  if (shape_elements(&c->in[0].shape)) {
    reduction r = plan_reduction(c);
    int outer = r.rank - 1;
    int64_t index[SHAPE_MAX_RANK] = {0}, at = 0, n = r.extents[outer], stride = r.strides[outer];
    int64_t size = (int64_t)ref_class_bytes(class);
    ref_buffer buffer;
    do {
      char *row = acc + ref_offset(outer, r.strides, index) * size;
      for (int64_t k = 0; k < n; k += REF_CHUNK) {
        int64_t m = n - k < REF_CHUNK ? n - k : REF_CHUNK;
        kernel(row + k * stride * size, ref_load(t, class, c->in[0].data, at + k, m, &buffer), stride, 1, m);
        TRY(ref_work(c, m));
      }
      at += n;
    } while (ref_next(outer, r.extents, index));
  }
  ref_finish(c, 0, class, acc);
  return NULL;
}

/* --- arg-reduce --- */

typedef struct extreme {
  ref_class class;
  bool largest, last;
} extreme;

/* Returns true if x replaces `best`, the largest or smallest of the elements before x.  The first NaN is never
 * replaced. */
static bool beats(const extreme *e, const void *x, const void *best) {
  if (ref_is_nan(e->class, best)) {
    return false;
  }
  if (ref_is_nan(e->class, x)) {
    return true;
  }
  int order = ref_order(e->class, x, best);
  return order == 0 ? e->last : (order > 0) == e->largest;
}

status ref_arg_reduce(ref_call *c) {
  const shape *x = &c->in[0].shape;
  ref_lines l = ref_lines_of(x, hlo_int(c->i, HLO_ATTR_DIMENSION));
  extreme e = {ref_class_of((dtype)x->type), hlo_int(c->i, HLO_ATTR_LARGEST), hlo_int(c->i, HLO_ATTR_LAST)};
  const char *values = ref_load_all(c, &c->in[0], e.class);
  int64_t *r = ref_begin(c, 0, REF_S64), size = (int64_t)ref_class_bytes(e.class);
  for (int64_t o = 0; o < l.outer; o++) {
    for (int64_t i = 0; i < l.inner; i++) {
      const char *line = values + (o * l.n * l.inner + i) * size;
      int64_t best = 0;
      for (int64_t k = 1; k < l.n; k++) {
        if (beats(&e, line + k * l.inner * size, line + best * l.inner * size)) {
          best = k;
        }
      }
      r[o * l.inner + i] = best;
      TRY(ref_work(c, l.n));
    }
  }
  ref_finish(c, 0, REF_S64, r);
  return NULL;
}
