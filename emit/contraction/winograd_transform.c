/* winograd_transform.c - Winograd's transforms: their points and polynomials, along one dimension, of tiles of the
 * input, of weights, and of sums of products back to results. */
#include <math.h>
#include <string.h>

#include "emit/contraction/winograd_internal.h"

enum { MOST = EMIT_WINOGRAD_MOST };

/* --- interpolation points --- */

/* These points had the smallest measured errors of those with few significant bits (the points 0, ±1 and ±2 have two to
 * four times the error of those used for size 6).  In two dimensions errors multiply; three or four pairs of points,
 * which F(4,5) and F(4,7) need, are accurate enough in one dimension only. */
int emit_winograd_points(int64_t size, double *points) {
  static const double of[][EMIT_WINOGRAD_PAIRS] = {{1}, {0.625, 1.5}, {0.5, 1, 2}, {0.5, 0.75, 1.25, 2}};
  int n = (int)(size - 2) / 2;
  memcpy(points, of[size < 4 ? 0 : n - 1], (size_t)n * sizeof *points);
  return n;
}

int emit_winograd_polynomial(int64_t size, int without, double *coefficients) {
  double points[EMIT_WINOGRAD_PAIRS];
  int n = emit_winograd_points(size, points), degree = 0;
  coefficients[0] = 1;
  for (int k = 0; k < n; k++) {
    if (k == without) {
      continue;
    }
    double square = points[k] * points[k];
    coefficients[degree + 1] = coefficients[degree];
    for (int j = degree; j > 0; j--) {
      coefficients[j] = coefficients[j - 1] - square * coefficients[j];
    }
    coefficients[0] *= -square;
    degree++;
  }
  return degree;
}

void emit_winograd_weight_matrix(int64_t size, int64_t r, double g[EMIT_WINOGRAD_MOST][EMIT_WINOGRAD_MOST]) {
  double points[EMIT_WINOGRAD_PAIRS], c[EMIT_WINOGRAD_PAIRS + 1];
  memset(g, 0, EMIT_WINOGRAD_MOST * sizeof *g);
  if (r == 1) {
    g[0][0] = 1;
    return;
  }
  int n = emit_winograd_points(size, points);
  emit_winograd_polynomial(size, -1, c);
  g[0][0] = 1 / c[0];
  g[size - 1][r - 1] = 1;
  for (int k = 0; k < n; k++) {
    double p = points[k], value = 0;
    for (int j = emit_winograd_polynomial(size, k, c); j >= 0; j--) {
      value = value * p * p + c[j];
    }
    for (int64_t j = 0; j < r; j++) {
      double power = pow(p, (double)j) / (2 * p * p * value);
      g[1 + 2 * k][j] = power;
      g[2 + 2 * k][j] = j % 2 ? -power : power;
    }
  }
}

/* --- transforms along one dimension --- */

static LLVMValueRef times_plus(const winograd *g, double c, LLVMValueRef x, LLVMValueRef y) {
  LLVMBuilderRef b = g->ir->builder;
  return c == 1    ? LLVMBuildFAdd(b, y, x, "")
         : c == -1 ? LLVMBuildFSub(b, y, x, "")
                   : emit_fma(g->ir, emit_f(x, c), x, y);
}

/* Returns the sum of coefficients[j] * x[2 * j], as a polynomial with x[0], x[2], x[4], ... in place of the powers; its
 * highest coefficient is 1. */
static LLVMValueRef apply(const winograd *g, int degree, const double *coefficients, const LLVMValueRef *x) {
  LLVMValueRef sum = x[2 * degree];
  for (int j = degree - 1; j >= 0; j--) {
    sum = times_plus(g, coefficients[j], x[2 * j], sum);
  }
  return sum;
}

/* Computes B' x in place.  The rows of B' for a point and for its negative come from the polynomial of all other
 * points. */
static void forward(const winograd *g, int64_t size, LLVMValueRef *x) {
  double points[EMIT_WINOGRAD_PAIRS], c[EMIT_WINOGRAD_PAIRS + 1];
  LLVMValueRef out[MOST];
  if (size == 1) {
    return;
  }
  int pairs = emit_winograd_points(size, points), degree = emit_winograd_polynomial(size, -1, c);
  out[0] = apply(g, degree, c, x);
  out[size - 1] = apply(g, degree, c, x + 1);
  for (int k = 0; k < pairs; k++) {
    degree = emit_winograd_polynomial(size, k, c);
    LLVMValueRef odd = apply(g, degree, c, x + 1), even = apply(g, degree, c, x + 2);
    out[1 + 2 * k] = times_plus(g, points[k], odd, even);
    out[2 + 2 * k] = times_plus(g, -points[k], odd, even);
  }
  for (int64_t k = 0; k < size; k++) {
    x[k] = out[k];
  }
}

/* Computes A' x in place: the first m elements are sums over the points, each with a power of its point. */
static void backward(const winograd *g, int64_t size, int64_t m, LLVMValueRef *x) {
  LLVMBuilderRef b = g->ir->builder;
  double points[EMIT_WINOGRAD_PAIRS];
  LLVMValueRef sum[EMIT_WINOGRAD_PAIRS], difference[EMIT_WINOGRAD_PAIRS], out[MOST];
  if (size == 1) {
    return;
  }
  int pairs = emit_winograd_points(size, points);
  for (int k = 0; k < pairs; k++) {
    sum[k] = LLVMBuildFAdd(b, x[1 + 2 * k], x[2 + 2 * k], "");
    difference[k] = LLVMBuildFSub(b, x[1 + 2 * k], x[2 + 2 * k], "");
  }
  for (int64_t i = 0; i < m; i++) {
    out[i] = i == 0 ? x[0] : i == m - 1 ? x[size - 1] : NULL;
    for (int k = 0; k < pairs; k++) {
      LLVMValueRef v = i % 2 ? difference[k] : sum[k];
      double power = pow(points[k], (double)i);
      out[i] = out[i] ? times_plus(g, power, v, out[i]) : LLVMBuildFMul(b, v, emit_f(v, power), "");
    }
  }
  for (int64_t i = 0; i < m; i++) {
    x[i] = out[i];
  }
}

/* Computes G x in place, from r numbers to `size`. */
static void spread(const winograd *g, int64_t size, int64_t r, LLVMValueRef *x) {
  double c[MOST][MOST];
  LLVMValueRef out[MOST];
  if (r == 1) {
    return;
  }
  emit_winograd_weight_matrix(size, r, c);
  out[0] = LLVMBuildFMul(g->ir->builder, x[0], emit_f(x[0], c[0][0]), "");
  out[size - 1] = x[r - 1];
  for (int64_t k = 1; k + 1 < size; k += 2) {
    LLVMValueRef even = LLVMBuildFMul(g->ir->builder, x[0], emit_f(x[0], c[k][0]), "");
    for (int64_t j = 2; j < r; j += 2) {
      even = emit_fma(g->ir, emit_f(x[0], c[k][j]), x[j], even);
    }
    out[k] = out[k + 1] = even;
    for (int64_t j = 1; j < r; j += 2) {
      out[k] = emit_fma(g->ir, emit_f(x[0], c[k][j]), x[j], out[k]);
      out[k + 1] = emit_fma(g->ir, emit_f(x[0], -c[k][j]), x[j], out[k + 1]);
    }
  }
  for (int64_t k = 0; k < size; k++) {
    x[k] = out[k];
  }
}

/* Returns the address that is k * step elements after `base`. */
static LLVMValueRef stepped(const winograd *g, LLVMValueRef base, int64_t k, dim step) {
  return address(g, base, size(g, dim_mul(table(g), k, step)));
}

/* Loads n vectors that are `step` elements apart. */
static void load_line(const winograd *g, LLVMValueRef from, int64_t n, dim step, int lanes, LLVMValueRef *line) {
  for (int64_t k = 0; k < n; k++) {
    line[k] = load(g, stepped(g, from, k, step), lanes);
  }
}

static void store_line(const winograd *g, const LLVMValueRef *line, int64_t n, LLVMValueRef to, dim step) {
  for (int64_t k = 0; k < n; k++) {
    store(g, line[k], stepped(g, to, k, step));
  }
}

/* --- transforms of tiles, as functions that kernels share --- */

static const char *name_of(const emit_ir *w, const char *what, const winograd_tile *t) {
  return arena_printf(w->arena, "winograd_%s_%dx%d_%dx%dx%d", what, (int)t->size[0], (int)t->size[1], (int)t->m[0],
                      (int)t->m[1], t->lanes);
}

static LLVMValueRef make_zeros(const emit_ir *w, int lanes) {
  LLVMTypeRef type = emit_vector_type(w->f32, lanes);
  LLVMValueRef zeros = LLVMAddGlobal(w->module, type, "zeros");
  LLVMSetInitializer(zeros, LLVMConstNull(type));
  LLVMSetGlobalConstant(zeros, true);
  LLVMSetLinkage(zeros, LLVMInternalLinkage);
  return zeros;
}

/* The function that transforms a patch, which is the part of the input from which one tile is transformed, for one
 * vector of channels.  Its parameters are: the address of the patch's first vector; the distances in the input from row
 * to row and from column to column; bits that say which rows and which columns of the patch lie in the input; the
 * address in V, and the distance between V's planes. */
enum { FORWARD_FROM, FORWARD_ROW, FORWARD_COLUMN, FORWARD_ROWS, FORWARD_COLUMNS, FORWARD_TO, FORWARD_PLANE, N_FORWARD };

/* Loads the vectors of a column of the patch, and zeros where it lies outside of the input. */
static void load_column(const winograd *g, const winograd_tile *t, const LLVMValueRef *p, LLVMValueRef j,
                        LLVMValueRef zeros, LLVMValueRef *line) {
  LLVMBuilderRef b = g->ir->builder;
  LLVMValueRef column = address(g, p[FORWARD_FROM], LLVMBuildNSWMul(b, p[FORWARD_COLUMN], j, ""));
  LLVMValueRef bit = LLVMBuildAnd(b, LLVMBuildLShr(b, p[FORWARD_COLUMNS], j, ""), number(g, 1), "");
  LLVMValueRef outside = emit_icmp(g->ir, LLVMIntEQ, bit, number(g, 0));
  LLVMValueRef rows = emit_select(g->ir, outside, number(g, 0), p[FORWARD_ROWS]);
  for (int64_t i = 0; i < t->size[0]; i++) {
    LLVMValueRef from = address(g, column, emit_times(g->ir, p[FORWARD_ROW], i));
    LLVMValueRef inside = LLVMBuildAnd(b, rows, number(g, (int64_t)1 << i), "");
    inside = emit_icmp(g->ir, LLVMIntNE, inside, number(g, 0));
    line[i] = load(g, emit_select(g->ir, inside, from, zeros), t->lanes);
  }
}

static void write_forward(emit_ir *w, const void *data) {
  const winograd_tile *t = data;
  const winograd g = {.ir = w}; /* the functions that it is passed to read nothing else */
  const int64_t rows = t->size[0], columns = t->size[1], lanes = t->lanes;
  emit_loop l;
  LLVMValueRef p[N_FORWARD], line[MOST], zeros = make_zeros(w, t->lanes);
  LLVMValueRef half = emit_row_memory(w, DTYPE_F32, rows * columns * lanes);
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &l, number(&g, 0), number(&g, columns), 1, true, 0, NULL);
  load_column(&g, t, p, l.iv, zeros, line);
  forward(&g, rows, line);
  LLVMValueRef column = address(&g, half, emit_times(w, l.iv, lanes));
  for (int64_t i = 0; i < rows; i++) {
    store(&g, line[i], address(&g, column, number(&g, i * columns * lanes)));
  }
  emit_loop_end(w, &l, NULL);
  emit_loop_begin(w, &l, number(&g, 0), number(&g, rows), 1, true, 0, NULL);
  LLVMValueRef row = address(&g, half, emit_times(w, l.iv, columns * lanes));
  for (int64_t j = 0; j < columns; j++) {
    line[j] = load(&g, address(&g, row, number(&g, j * lanes)), t->lanes);
  }
  forward(&g, columns, line);
  LLVMValueRef to = LLVMBuildNSWMul(w->builder, emit_times(w, p[FORWARD_PLANE], columns), l.iv, "");
  to = address(&g, p[FORWARD_TO], to);
  for (int64_t j = 0; j < columns; j++) {
    store(&g, line[j], address(&g, to, emit_times(w, p[FORWARD_PLANE], j)));
  }
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared winograd_forward_function(const emit_ir *w, const winograd_tile *t) {
  return (emit_shared){name_of(w, "forward", t), WINOGRAD_FORWARD_TYPES, write_forward, t};
}

/* The function that transforms one vector of a tile's outputs back: its address in M, the distance between M's planes,
 * and the address to which the rows of results go, as contiguous vectors. */
enum { BACKWARD_FROM, BACKWARD_PLANE, BACKWARD_TO, N_BACKWARD };

static void write_backward(emit_ir *w, const void *data) {
  const winograd_tile *t = data;
  const winograd g = {.ir = w};
  const int64_t rows = t->size[0], columns = t->size[1], lanes = t->lanes;
  emit_loop l;
  LLVMValueRef p[N_BACKWARD], line[MOST];
  LLVMValueRef half = emit_row_memory(w, DTYPE_F32, t->m[0] * columns * lanes);
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &l, number(&g, 0), number(&g, columns), 1, true, 0, NULL);
  LLVMValueRef from = address(&g, p[BACKWARD_FROM], LLVMBuildNSWMul(w->builder, p[BACKWARD_PLANE], l.iv, ""));
  for (int64_t i = 0; i < rows; i++) {
    line[i] = load(&g, address(&g, from, emit_times(w, p[BACKWARD_PLANE], i * columns)), t->lanes);
  }
  backward(&g, rows, t->m[0], line);
  LLVMValueRef column = address(&g, half, emit_times(w, l.iv, lanes));
  for (int64_t i = 0; i < t->m[0]; i++) {
    store(&g, line[i], address(&g, column, number(&g, i * columns * lanes)));
  }
  emit_loop_end(w, &l, NULL);
  emit_loop_begin(w, &l, number(&g, 0), number(&g, t->m[0]), 1, true, 0, NULL);
  LLVMValueRef row = address(&g, half, emit_times(w, l.iv, columns * lanes));
  for (int64_t j = 0; j < columns; j++) {
    line[j] = load(&g, address(&g, row, number(&g, j * lanes)), t->lanes);
  }
  backward(&g, columns, t->m[1], line);
  LLVMValueRef to = address(&g, p[BACKWARD_TO], emit_times(w, l.iv, t->m[1] * lanes));
  for (int64_t j = 0; j < t->m[1]; j++) {
    store(&g, line[j], address(&g, to, number(&g, j * lanes)));
  }
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared winograd_backward_function(const emit_ir *w, const winograd_tile *t) {
  return (emit_shared){name_of(w, "backward", t), WINOGRAD_BACKWARD_TYPES, write_backward, t};
}

/* --- the transform of weights --- */

void winograd_spread(const winograd *g, LLVMValueRef from, LLVMValueRef to, int64_t plane) {
  const emit_winograd *p = g->p;
  const int64_t rows = emit_winograd_size(p, 0), columns = emit_winograd_size(p, 1), panel = emit_winograd_panel(p);
  LLVMValueRef half[MOST][MOST], line[MOST];
  for (int64_t j = 0; j < p->r[1]; j++) {
    load_line(g, address(g, from, number(g, j * panel)), p->r[0], p->r[1] * panel, (int)p->lanes, line);
    spread(g, rows, p->r[0], line);
    for (int64_t i = 0; i < rows; i++) {
      half[i][j] = line[i];
    }
  }
  for (int64_t i = 0; i < rows; i++) {
    spread(g, columns, p->r[1], half[i]);
    store_line(g, half[i], columns, address(g, to, number(g, i * columns * plane)), plane);
  }
}
