/* winograd.c - the kernels of winograd.h: transform, multiply, finish. */
#include "emit/winograd.h"

#include <math.h>

#include "emit/gemm.h"
#include "emit/writer.h"

enum { MOST = EMIT_WINOGRAD_MOST };

typedef struct winograd {
  emit_writer *w;
  const emit_winograd *p;
  const emit_ir *ir;
  hlo_value convolution;  /* what the epilogue starts from */
  LLVMValueRef x, u;      /* the input, packed weights */
  LLVMValueRef zeros;     /* a vector of them */
  LLVMValueRef room, line; /* on the stack: vectors of a half transformed square, of rows of results */
  int lanes[2];           /* of vectors along the channels and along the outputs */
  bool unrolled; /* lines are transformed one after the other in registers: larger code, worth it for few channels */
} winograd;

/* Vectors between the transforms of columns and of rows, [row][column]: in registers, or in the room on the stack. */
typedef struct square {
  LLVMValueRef v[MOST][MOST];
} square;

/* --- arithmetic on positions: i64 --- */

static LLVMValueRef number(const winograd *g, int64_t n) { return emit_i64(g->ir, n); }

static LLVMValueRef add(const winograd *g, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(g->ir->builder, x, y, "");
}

static LLVMValueRef scaled(const winograd *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : LLVMBuildNSWMul(g->ir->builder, x, number(g, n), "");
}

static LLVMValueRef plus(const winograd *g, LLVMValueRef x, int64_t n) { return n ? add(g, x, number(g, n)) : x; }

static LLVMValueRef quotient(const winograd *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : emit_opaque(g->ir, LLVMBuildUDiv(g->ir->builder, x, number(g, n), ""));
}

static LLVMValueRef remainder_of(const winograd *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? number(g, 0) : emit_opaque(g->ir, LLVMBuildURem(g->ir->builder, x, number(g, n), ""));
}

static LLVMValueRef lesser(const winograd *g, LLVMValueRef x, LLVMValueRef y) {
  return emit_intrinsic2(g->ir, "llvm.smin", x, y);
}

/* --- memory: f32 --- */

/* x may lie before its array while only part of what is read there is used: not in bounds. */
static LLVMValueRef address(const winograd *g, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildGEP2(g->ir->builder, g->ir->f32, base, &at, 1, "");
}

static LLVMValueRef load(const winograd *g, LLVMValueRef from, int lanes) {
  LLVMValueRef v = LLVMBuildLoad2(g->ir->builder, emit_vector_type(g->ir->f32, lanes), from, "");
  LLVMSetAlignment(v, sizeof(float));
  return v;
}

static void store(const winograd *g, LLVMValueRef v, LLVMValueRef to) {
  LLVMSetAlignment(LLVMBuildStore(g->ir->builder, v, to), sizeof(float));
}

/* --- transforms along one dimension --- */

static LLVMValueRef times_plus(const winograd *g, double c, LLVMValueRef x, LLVMValueRef y) {
  LLVMBuilderRef b = g->ir->builder;
  return c == 1    ? LLVMBuildFAdd(b, y, x, "")
         : c == -1 ? LLVMBuildFSub(b, y, x, "")
                   : emit_fma(g->ir, emit_f(x, c), x, y);
}

/* The polynomial with x[0], x[2], x[4], ... for its powers; the highest one has coefficient 1. */
static LLVMValueRef apply(const winograd *g, int degree, const double *coefficients, const LLVMValueRef *x) {
  LLVMValueRef sum = x[2 * degree];
  for (int j = degree - 1; j >= 0; j--) {
    sum = times_plus(g, coefficients[j], x[2 * j], sum);
  }
  return sum;
}

/* B' x in place: the polynomial without a point stands for that point, once for it and once for its negative. */
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

/* A' x in place, into the first m: the values of a polynomial's coefficients at the points. */
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

/* G x in place, r numbers to `size`. */
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

/* n vectors whose places are `step` elements apart. */
static void load_line(const winograd *g, LLVMValueRef from, int64_t n, int64_t step, int lanes, LLVMValueRef *line) {
  for (int64_t k = 0; k < n; k++) {
    line[k] = load(g, address(g, from, number(g, k * step)), lanes);
  }
}

static void store_line(const winograd *g, const LLVMValueRef *line, int64_t n, LLVMValueRef to, int64_t step) {
  for (int64_t k = 0; k < n; k++) {
    store(g, line[k], address(g, to, number(g, k * step)));
  }
}

/* Column `at` of the square gets n numbers. */
static void put_column(const winograd *g, square *s, LLVMValueRef at, const LLVMValueRef *line, int64_t n) {
  const int64_t lanes = g->p->lanes, columns = emit_winograd_size(g->p, 1);
  if (!g->unrolled) {
    store_line(g, line, n, address(g, g->room, scaled(g, at, lanes)), columns * lanes);
    return;
  }
  for (int64_t k = 0; k < n; k++) {
    s->v[k][LLVMConstIntGetSExtValue(at)] = line[k];
  }
}

static void get_row(const winograd *g, const square *s, LLVMValueRef at, int lanes, LLVMValueRef *line) {
  const int64_t step = g->p->lanes, columns = emit_winograd_size(g->p, 1);
  if (!g->unrolled) {
    load_line(g, address(g, g->room, scaled(g, at, columns * step)), columns, step, lanes, line);
    return;
  }
  for (int64_t k = 0; k < columns; k++) {
    line[k] = s->v[LLVMConstIntGetSExtValue(at)][k];
  }
}

typedef void line_fn(const winograd *g, const void *data, LLVMValueRef at, square *s);

static void each_line(const winograd *g, int64_t n, line_fn *write, const void *data, square *s) {
  emit_loop l;
  for (int64_t k = 0; g->unrolled && k < n; k++) {
    write(g, data, number(g, k), s);
  }
  if (!g->unrolled) {
    emit_loop_begin(g->ir, &l, number(g, 0), number(g, n), 1, true, 0, NULL);
    write(g, data, l.iv, s);
    emit_loop_end(g->ir, &l, NULL);
  }
}

/* --- places --- */

typedef struct place {
  LLVMValueRef image, at[2]; /* the first place of a tile in the result */
} place;

static place place_of(const winograd *g, LLVMValueRef tile) {
  const emit_winograd *p = g->p;
  LLVMValueRef line = quotient(g, tile, p->tiles[1]);
  return (place){.image = quotient(g, line, p->tiles[0]),
                 .at = {scaled(g, remainder_of(g, line, p->tiles[0]), p->m[0]),
                        scaled(g, remainder_of(g, tile, p->tiles[1]), p->m[1])}};
}

/* --- transform --- */

typedef struct patch {
  place from;              /* in the input; may lie outside */
  LLVMValueRef start;      /* its element */
  LLVMValueRef rows[MOST]; /* i1: the row lies inside */
} patch;

/* Can dimension d of a patch leave the input? */
static bool is_padded(const winograd *g, int d) {
  const emit_winograd *p = g->p;
  return p->low[d] > 0 || (p->tiles[d] - 1) * p->m[d] - p->low[d] + emit_winograd_size(p, d) > p->in[d];
}

/* i1: place number `at` of the patch lies in the input; NULL where it always does. */
static LLVMValueRef is_inside(const winograd *g, const patch *s, int d, LLVMValueRef at) {
  return is_padded(g, d) ? emit_icmp(g->ir, LLVMIntULT, add(g, s->from.at[d], at), number(g, g->p->in[d])) : NULL;
}

static LLVMValueRef both(const winograd *g, LLVMValueRef x, LLVMValueRef y) {
  return !x ? y : !y ? x : LLVMBuildAnd(g->ir->builder, x, y, "");
}

typedef struct transforming {
  const patch *from;
  LLVMValueRef channel, to; /* where the vector lies along the channels, the tile's row of V */
} transforming;

static void transform_column(const winograd *g, const void *data, LLVMValueRef at, square *s) {
  const transforming *t = data;
  const emit_winograd *p = g->p;
  const int64_t rows = emit_winograd_size(p, 0);
  LLVMValueRef line[MOST];
  LLVMValueRef column = address(g, g->x, add(g, add(g, t->from->start, t->channel), scaled(g, at, p->channels)));
  LLVMValueRef inside = is_inside(g, t->from, 1, at);
  for (int64_t i = 0; i < rows; i++) {
    LLVMValueRef from = address(g, column, number(g, i * p->in[1] * p->channels));
    LLVMValueRef there = both(g, t->from->rows[i], inside);
    line[i] = load(g, there ? emit_select(g->ir, there, from, g->zeros) : from, g->lanes[0]);
  }
  forward(g, rows, line);
  put_column(g, s, at, line, rows);
}

static void transform_row(const winograd *g, const void *data, LLVMValueRef at, square *s) {
  const transforming *t = data;
  const int64_t columns = emit_winograd_size(g->p, 1), plane = g->p->v_plane;
  LLVMValueRef line[MOST];
  get_row(g, s, at, g->lanes[0], line);
  forward(g, columns, line);
  store_line(g, line, columns, address(g, t->to, add(g, t->channel, scaled(g, at, columns * plane))), plane);
}

/* Vectors of `lanes` over [0, n): the last one is moved back to end with the last element. */
static LLVMValueRef begin_vectors(const winograd *g, emit_loop *l, LLVMValueRef from, LLVMValueRef to, int64_t n, int lanes,
                                  bool runs) {
  emit_loop_begin(g->ir, l, from, to, lanes, runs, 0, NULL);
  return n % lanes ? lesser(g, l->iv, number(g, n - lanes)) : l->iv;
}

static void transform_tile(const winograd *g, const patch *s, LLVMValueRef to) {
  emit_loop l;
  LLVMValueRef c = begin_vectors(g, &l, number(g, 0), number(g, g->p->channels), g->p->channels, g->lanes[0], true);
  transforming t = {s, c, to};
  square numbers;
  each_line(g, emit_winograd_size(g->p, 1), transform_column, &t, &numbers);
  each_line(g, emit_winograd_size(g->p, 0), transform_row, &t, &numbers);
  emit_loop_end(g->ir, &l, NULL);
}

/* Tiles first + [0, n) into rows [0, n) of V. */
static void transform(const winograd *g, LLVMValueRef first, LLVMValueRef n, LLVMValueRef v) {
  const emit_winograd *p = g->p;
  emit_loop l;
  emit_loop_begin(g->ir, &l, number(g, 0), n, 1, false, 0, NULL);
  patch s = {.from = place_of(g, add(g, first, l.iv))};
  for (int d = 0; d < 2; d++) {
    s.from.at[d] = plus(g, s.from.at[d], -p->low[d]);
  }
  for (int64_t k = 0; k < emit_winograd_size(p, 0); k++) {
    s.rows[k] = is_inside(g, &s, 0, number(g, k));
  }
  LLVMValueRef line = add(g, scaled(g, s.from.image, p->in[0]), s.from.at[0]);
  s.start = emit_opaque(g->ir, scaled(g, add(g, scaled(g, line, p->in[1]), s.from.at[1]), p->channels));
  LLVMValueRef to = emit_opaque(g->ir, address(g, v, scaled(g, l.iv, p->v_row)));
  transform_tile(g, &s, to);
  emit_loop_end(g->ir, &l, NULL);
}

/* --- multiply --- */

static int64_t panel_size(const emit_winograd *p) { return p->channels * emit_winograd_panel(p); }

/* The next panel comes from far away: each block of rows brings a part of it nearer, so that reading it takes all the time that
 * computing does.  first: of the block's rows. */
static void fetch_ahead(const winograd *g, LLVMValueRef first, emit_gemm *block) {
  const emit_winograd *p = g->p;
  int64_t blocks = (p->block + p->rows - 1) / p->rows, each = (p->vectors + blocks - 1) / blocks;
  int64_t shared = (blocks + p->vectors - 1) / p->vectors; /* blocks that ask for the same, if there are more than vectors */
  LLVMValueRef part = quotient(g, first, p->rows * shared);
  block->ahead = add(g, number(g, panel_size(p)), scaled(g, part, each * p->lanes));
  block->n_ahead = (int)each;
}

/* `rows` rows of V by one panel, over all channels. */
static void multiply_block(const winograd *g, LLVMValueRef first, LLVMValueRef v, LLVMValueRef u, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_gemm block = {.tile = {(int)p->rows, (int)p->vectors, (int)p->lanes}, .type = DTYPE_F32, .a = v, .b = u,
                     .a_row = p->v_row, .a_k = 1, .b_k = emit_winograd_panel(p), .b_vector = p->lanes,
                     .k = number(g, p->channels)};
  fetch_ahead(g, first, &block);
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  emit_gemm_zero(g->ir, &block, sums);
  emit_gemm_block(g->ir, &block, sums);
  for (int64_t i = 0; i < p->rows; i++) {
    for (int64_t j = 0; j < p->vectors; j++) {
      store(g, sums[i * p->vectors + j], address(g, m, number(g, i * p->m_row + j * p->lanes)));
    }
  }
}

/* All rows below n (and what fills the last block) by one panel. */
static void multiply_panel(const winograd *g, LLVMValueRef n, LLVMValueRef v, LLVMValueRef u, LLVMValueRef m) {
  emit_loop l;
  emit_loop_begin(g->ir, &l, number(g, 0), n, g->p->rows, false, 0, NULL);
  multiply_block(g, l.iv, address(g, v, scaled(g, l.iv, g->p->v_row)), u, address(g, m, scaled(g, l.iv, g->p->m_row)));
  emit_loop_end(g->ir, &l, NULL);
}

/* The products of n tiles with the panels [from, to), which become the first ones of M. */
static void multiply(const winograd *g, LLVMValueRef n, LLVMValueRef from, LLVMValueRef to, LLVMValueRef v, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_loop products, panels;
  emit_loop_begin(g->ir, &products, number(g, 0), number(g, emit_winograd_products(p)), 1, true, 0, NULL);
  LLVMValueRef v_plane = address(g, v, scaled(g, products.iv, p->v_plane));
  LLVMValueRef m_plane = address(g, m, scaled(g, products.iv, p->m_plane));
  LLVMValueRef u_plane = address(g, g->u, scaled(g, products.iv, emit_winograd_panels(p) * panel_size(p)));
  emit_loop_begin(g->ir, &panels, from, to, 1, false, 0, NULL);
  LLVMValueRef column = scaled(g, LLVMBuildNSWSub(g->ir->builder, panels.iv, from, ""), emit_winograd_panel(p));
  multiply_panel(g, n, v_plane, address(g, u_plane, scaled(g, panels.iv, panel_size(p))), address(g, m_plane, column));
  emit_loop_end(g->ir, &panels, NULL);
  emit_loop_end(g->ir, &products, NULL);
}

/* --- multiply, with weights that are transformed late --- */

/* One vector of outputs of one channel: its taps, a panel apart, to products that are `plane` elements apart. */
static void spread_taps(const winograd *g, LLVMValueRef from, LLVMValueRef to, int64_t plane) {
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

/* n channels of a panel, W[n][taps][panel], to U[products][u_plane]. */
static void spread_weights(const winograd *g, LLVMValueRef n, LLVMValueRef w, LLVMValueRef u) {
  const emit_winograd *p = g->p;
  const int64_t panel = emit_winograd_panel(p);
  emit_loop channels, vectors;
  emit_loop_begin(g->ir, &channels, number(g, 0), n, 1, true, 0, NULL);
  LLVMValueRef from = address(g, w, scaled(g, channels.iv, p->r[0] * p->r[1] * panel));
  LLVMValueRef to = address(g, u, scaled(g, channels.iv, panel));
  emit_loop_begin(g->ir, &vectors, number(g, 0), number(g, panel), p->lanes, true, 0, NULL);
  spread_taps(g, address(g, from, vectors.iv), address(g, to, vectors.iv), p->u_plane);
  emit_loop_end(g->ir, &vectors, NULL);
  emit_loop_end(g->ir, &channels, NULL);
}

/* What a product of one chunk brings nearer of the next chunk's weights, which lie at `next` and come from far away: every k asks
 * for `each` of its vectors, each of which is a tap's of the k-th channel or one that another k would as well ask for. */
static LLVMValueRef fetch_next(const winograd *g, LLVMValueRef product, LLVMValueRef next, LLVMValueRef u, int *each) {
  const emit_winograd *p = g->p;
  LLVMBuilderRef b = g->ir->builder;
  int64_t vectors = p->r[0] * p->r[1] * p->vectors, products = emit_winograd_products(p);
  *each = (int)((vectors + products - 1) / products);
  LLVMValueRef first = scaled(g, product, *each), region = quotient(g, first, p->vectors);
  LLVMValueRef at = add(g, scaled(g, region, p->chunk * emit_winograd_panel(p)), scaled(g, remainder_of(g, first, p->vectors), p->lanes));
  LLVMValueRef apart = LLVMBuildSub(b, LLVMBuildPtrToInt(b, next, g->ir->i64, ""), LLVMBuildPtrToInt(b, u, g->ir->i64, ""), "");
  return add(g, at, LLVMBuildAShr(b, apart, number(g, 2), ""));
}

typedef struct multiplying {
  LLVMValueRef channel, n; /* the chunk's first, and how many */
  LLVMValueRef ahead;      /* as in emit_gemm */
  int n_ahead;
} multiplying;

/* Rows of V by a chunk of channels of a panel; sums start at zero or where the channels before left them in M. */
static void add_block(const winograd *g, const multiplying *of, LLVMValueRef v, LLVMValueRef u, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_gemm block = {.tile = {(int)p->rows, (int)p->vectors, (int)p->lanes}, .type = DTYPE_F32, .a = v, .b = u,
                     .a_row = p->v_row, .a_k = 1, .b_k = emit_winograd_panel(p), .b_vector = p->lanes, .k = of->n,
                     .ahead = of->ahead, .n_ahead = of->n_ahead};
  LLVMValueRef sums[EMIT_GEMM_SUMS], first = emit_icmp(g->ir, LLVMIntEQ, of->channel, number(g, 0));
  emit_gemm_zero(g->ir, &block, sums);
  for (int64_t k = 0; k < p->rows * p->vectors && p->chunk < p->channels; k++) {
    LLVMValueRef at = address(g, m, number(g, k / p->vectors * p->m_row + k % p->vectors * p->lanes));
    sums[k] = emit_select(g->ir, first, sums[k], load(g, at, (int)p->lanes));
  }
  emit_gemm_block(g->ir, &block, sums);
  for (int64_t k = 0; k < p->rows * p->vectors; k++) {
    store(g, sums[k], address(g, m, number(g, k / p->vectors * p->m_row + k % p->vectors * p->lanes)));
  }
}

/* n tiles by one panel: channels in chunks, whose weights are transformed to U first. */
static void multiply_late(const winograd *g, LLVMValueRef n, LLVMValueRef v, LLVMValueRef w, LLVMValueRef u, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  const int64_t panel = emit_winograd_panel(p);
  emit_loop chunks, products, rows;
  emit_loop_begin(g->ir, &chunks, number(g, 0), number(g, p->channels), p->chunk, true, 0, NULL);
  LLVMValueRef left = LLVMBuildNSWSub(g->ir->builder, number(g, p->channels), chunks.iv, "");
  LLVMValueRef some = p->channels % p->chunk ? lesser(g, left, number(g, p->chunk)) : number(g, p->chunk);
  LLVMValueRef weights = address(g, w, scaled(g, chunks.iv, p->r[0] * p->r[1] * panel));
  spread_weights(g, some, weights, u);
  emit_loop_begin(g->ir, &products, number(g, 0), number(g, emit_winograd_products(p)), 1, true, 0, NULL);
  LLVMValueRef v_plane = address(g, v, add(g, scaled(g, products.iv, p->v_plane), chunks.iv));
  LLVMValueRef m_plane = address(g, m, scaled(g, products.iv, p->m_plane));
  LLVMValueRef u_plane = address(g, u, scaled(g, products.iv, p->u_plane));
  multiplying of = {.channel = chunks.iv, .n = some};
  of.ahead = fetch_next(g, products.iv, address(g, weights, number(g, p->chunk * p->r[0] * p->r[1] * panel)), u_plane, &of.n_ahead);
  emit_loop_begin(g->ir, &rows, number(g, 0), n, p->rows, false, 0, NULL);
  add_block(g, &of, address(g, v_plane, scaled(g, rows.iv, p->v_row)), u_plane,
            address(g, m_plane, scaled(g, rows.iv, p->m_row)));
  emit_loop_end(g->ir, &rows, NULL);
  emit_loop_end(g->ir, &products, NULL);
  emit_loop_end(g->ir, &chunks, NULL);
}

/* --- finish --- */

/* The epilogue of the vector at row i and column j of the tile, column j of the line. */
static void finish_vector(const winograd *g, const place *at, LLVMValueRef i, LLVMValueRef j, LLVMValueRef k,
                          LLVMValueRef line) {
  emit_element *e = &g->w->e;
  const shape *s = hlo_shape(g->convolution);
  uint32_t mark = emit_table_mark(e->x.table);
  int before = e->x.lanes;
  e->x.lanes = g->lanes[1];
  emit_index *index = emit_index_new(&e->x, s->rank, s->dims);
  emit_axis_at(index, 0, emit_pos_at(at->image, 1));
  if (g->p->spatial == 2) {
    emit_axis_at(index, 1, emit_pos_at(add(g, at->at[0], i), 1));
  }
  emit_axis_at(index, s->rank - 2, emit_pos_at(add(g, at->at[1], j), 1));
  emit_axis_at(index, s->rank - 1, (emit_pos){k, g->lanes[1] > 1, 1});
  LLVMValueRef value = load(g, address(g, line, scaled(g, j, g->p->lanes)), g->lanes[1]);
  emit_element_set(e, g->convolution, index, (emit_pair){value, NULL});
  emit_store_roots(g->w, index);
  e->x.lanes = before;
  emit_table_release(e->x.table, mark);
}

/* How much of a tile lies in the result. */
static LLVMValueRef extent_of(const winograd *g, const place *at, int d) {
  const emit_winograd *p = g->p;
  LLVMValueRef left = LLVMBuildNSWSub(g->ir->builder, number(g, p->out[d]), at->at[d], "");
  return p->out[d] % p->m[d] ? lesser(g, left, number(g, p->m[d])) : number(g, p->m[d]);
}

/* data: the tile's vector in M. */
static void finish_column(const winograd *g, const void *data, LLVMValueRef at, square *s) {
  const emit_winograd *p = g->p;
  const int64_t rows = emit_winograd_size(p, 0), columns = emit_winograd_size(p, 1);
  LLVMValueRef line[MOST], m = *(const LLVMValueRef *)data;
  load_line(g, address(g, m, scaled(g, at, p->m_plane)), rows, columns * p->m_plane, g->lanes[1], line);
  backward(g, rows, p->m[0], line);
  put_column(g, s, at, line, p->m[0]);
}

static void finish_row(const winograd *g, LLVMValueRef at, square *s, LLVMValueRef to) {
  const emit_winograd *p = g->p;
  LLVMValueRef line[MOST];
  get_row(g, s, at, g->lanes[1], line);
  backward(g, emit_winograd_size(p, 1), p->m[1], line);
  store_line(g, line, p->m[1], to, p->lanes);
}

/* A vector of outputs of one tile, [m, m + lanes) of M: those of its places that lie in the result. */
static void finish_tile(const winograd *g, const place *at, LLVMValueRef m, LLVMValueRef k) {
  const emit_winograd *p = g->p;
  const int64_t row = p->m[1] * p->lanes;
  square s;
  emit_loop l, c;
  each_line(g, emit_winograd_size(p, 1), finish_column, &m, &s);
  for (int64_t i = 0; g->unrolled && i < p->m[0]; i++) {
    finish_row(g, number(g, i), &s, address(g, g->line, number(g, i * row)));
  }
  emit_loop_begin(g->ir, &l, number(g, 0), extent_of(g, at, 0), 1, true, 0, NULL);
  LLVMValueRef line = g->unrolled ? address(g, g->line, scaled(g, l.iv, row)) : g->line;
  if (!g->unrolled) {
    finish_row(g, l.iv, &s, line);
  }
  emit_loop_begin(g->ir, &c, number(g, 0), extent_of(g, at, 1), 1, true, 0, NULL);
  finish_vector(g, at, l.iv, c.iv, k, line);
  emit_loop_end(g->ir, &c, NULL);
  emit_loop_end(g->ir, &l, NULL);
}

/* Tiles first + [0, n), rows [0, n) of M, whose columns are the outputs [from, to). */
static void finish(const winograd *g, LLVMValueRef first, LLVMValueRef n, LLVMValueRef from, LLVMValueRef to, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_loop tiles, vectors;
  emit_loop_begin(g->ir, &tiles, number(g, 0), n, 1, false, 0, NULL);
  place at = place_of(g, add(g, first, tiles.iv));
  LLVMValueRef row = address(g, m, scaled(g, tiles.iv, p->m_row));
  LLVMValueRef k = begin_vectors(g, &vectors, from, to, p->outputs, g->lanes[1], true);
  LLVMValueRef column = LLVMBuildNSWSub(g->ir->builder, k, from, "");
  finish_tile(g, &at, emit_opaque(g->ir, address(g, row, column)), k);
  emit_loop_end(g->ir, &vectors, NULL);
  emit_loop_end(g->ir, &tiles, NULL);
}

/* --- kernels --- */

static int64_t v_elements(const emit_winograd *p) { return emit_winograd_products(p) * p->v_plane; }

static int64_t m_elements(const emit_winograd *p) { return emit_winograd_products(p) * p->m_plane; }

/* Slabs of outputs: multiplied, then finished while they are in the cache. */
static void write_slabs(const winograd *g, LLVMValueRef first, LLVMValueRef n, LLVMValueRef v, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  int64_t panels = emit_winograd_panels(p), step = p->slab / emit_winograd_panel(p);
  emit_loop l;
  emit_loop_begin(g->ir, &l, number(g, 0), number(g, panels), step, true, 0, NULL);
  LLVMValueRef to = lesser(g, plus(g, l.iv, step), number(g, panels));
  multiply(g, n, l.iv, to, v, m);
  LLVMValueRef end = lesser(g, scaled(g, to, emit_winograd_panel(p)), number(g, p->outputs));
  finish(g, first, n, scaled(g, l.iv, emit_winograd_panel(p)), end, m);
  emit_loop_end(g->ir, &l, NULL);
}

/* The grid is parts of the tiles, each in blocks. */
static void write_fused(const winograd *g, LLVMValueRef scratch) {
  const emit_winograd *p = g->p;
  int64_t tiles = emit_winograd_all_tiles(p);
  emit_loop parts, blocks;
  emit_loop_begin(g->ir, &parts, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef begin = quotient(g, scaled(g, parts.iv, tiles), p->parts);
  LLVMValueRef end = quotient(g, scaled(g, plus(g, parts.iv, 1), tiles), p->parts);
  LLVMValueRef v = address(g, scratch, scaled(g, parts.iv, v_elements(p) + m_elements(p)));
  emit_loop_begin(g->ir, &blocks, begin, end, p->block, false, 0, NULL);
  LLVMValueRef n = lesser(g, LLVMBuildNSWSub(g->ir->builder, end, blocks.iv, ""), number(g, p->block));
  transform(g, blocks.iv, n, v);
  write_slabs(g, blocks.iv, n, v, address(g, v, number(g, v_elements(p))));
  emit_loop_end(g->ir, &blocks, NULL);
  emit_loop_end(g->ir, &parts, NULL);
  g->w->info->grid = p->parts;
}

/* The grid is panels of weights, product by product. */
static void write_products(const winograd *g, LLVMValueRef v, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_loop l;
  emit_loop_begin(g->ir, &l, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef product = quotient(g, l.iv, emit_winograd_panels(p)), panel = remainder_of(g, l.iv, emit_winograd_panels(p));
  LLVMValueRef row = add(g, scaled(g, product, p->m_plane), scaled(g, panel, emit_winograd_panel(p)));
  multiply_panel(g, number(g, emit_winograd_all_tiles(p)), address(g, v, scaled(g, product, p->v_plane)),
                 address(g, g->u, scaled(g, l.iv, panel_size(p))), address(g, m, row));
  emit_loop_end(g->ir, &l, NULL);
  g->w->info->grid = emit_winograd_products(p) * emit_winograd_panels(p);
}

/* The grid is workers, each with some of the panels' shares of the tiles. */
static void write_late(const winograd *g, LLVMValueRef v, LLVMValueRef m, LLVMValueRef late) {
  const emit_winograd *p = g->p;
  const int64_t shares = emit_winograd_shares(p), pieces = emit_winograd_panels(p) * shares;
  emit_loop workers, l;
  emit_loop_begin(g->ir, &workers, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef from = quotient(g, scaled(g, workers.iv, pieces), p->workers);
  LLVMValueRef to = quotient(g, scaled(g, plus(g, workers.iv, 1), pieces), p->workers);
  LLVMValueRef u = address(g, late, scaled(g, workers.iv, emit_winograd_late_elements(p)));
  emit_loop_begin(g->ir, &l, from, to, 1, false, 0, NULL);
  LLVMValueRef panel = quotient(g, l.iv, shares), tile = scaled(g, remainder_of(g, l.iv, shares), p->share);
  LLVMValueRef left = LLVMBuildNSWSub(g->ir->builder, number(g, emit_winograd_all_tiles(p)), tile, "");
  LLVMValueRef column = add(g, scaled(g, tile, p->m_row), scaled(g, panel, emit_winograd_panel(p)));
  multiply_late(g, lesser(g, left, number(g, p->share)), address(g, v, scaled(g, tile, p->v_row)),
                address(g, g->u, scaled(g, panel, panel_size(p) * p->r[0] * p->r[1])), u, address(g, m, column));
  emit_loop_end(g->ir, &l, NULL);
  emit_loop_end(g->ir, &workers, NULL);
  g->w->info->grid = p->workers;
}

static void write_phase(const winograd *g, uint32_t phase, LLVMValueRef scratch) {
  const emit_winograd *p = g->p;
  LLVMValueRef m = address(g, scratch, number(g, v_elements(p)));
  if (phase == 1) {
    if (p->late) {
      write_late(g, scratch, m, address(g, m, number(g, m_elements(p))));
    } else {
      write_products(g, scratch, m);
    }
    return;
  }
  LLVMValueRef n = LLVMBuildNSWSub(g->ir->builder, g->w->end, g->w->begin, "");
  int64_t row = phase ? p->m_row : p->v_row;
  LLVMValueRef rows = address(g, phase ? m : scratch, scaled(g, g->w->begin, row));
  if (phase == 0) {
    transform(g, g->w->begin, n, rows);
  } else {
    finish(g, g->w->begin, n, number(g, 0), number(g, p->outputs), rows);
  }
  g->w->info->grid = emit_winograd_all_tiles(p);
}

/* About in nanoseconds: numbers that are transformed, and multiplications. */
static double cost_of(const emit_winograd *p, uint32_t phase) {
  double tiles = (double)(emit_winograd_all_tiles(p) * emit_winograd_products(p)), c = (double)p->channels, k = (double)p->outputs;
  double costs[] = {0.1 * tiles * c, 0.02 * tiles * c * k, 0.1 * tiles * k};
  return p->phased ? costs[phase] : costs[0] + costs[1] + costs[2];
}

static hlo_value find_convolution(const hlo_instr *i) {
  if (i->op == HLO_CONVOLUTION) {
    return hlo_result((hlo_instr *)i, 0);
  }
  hlo_instr *k = hlo_callee(i, 0)->first;
  while (k->op != HLO_CONVOLUTION) {
    k = k->next;
  }
  return hlo_result(k, 0);
}

/* Which operand of i the convolution reads as v. */
static uint32_t operand_of(const hlo_instr *i, hlo_value v) {
  if (i->op == HLO_CONVOLUTION) {
    return 0;
  }
  while (v.def->op == HLO_RESHAPE) {
    v = v.def->operands[0];
  }
  return (uint32_t)hlo_int(v.def, HLO_ATTR_INDEX);
}

/* The widest vectors for n elements, the last of which may overlap the one before; not where `exact`. */
static int lanes_for(int64_t n, int64_t lanes, bool exact) {
  while (lanes > n || (exact && n % lanes)) {
    lanes /= 2;
  }
  return (int)lanes;
}

static LLVMValueRef make_zeros(const winograd *g) {
  LLVMTypeRef type = emit_vector_type(g->ir->f32, g->lanes[0]);
  LLVMValueRef zeros = LLVMAddGlobal(g->ir->module, type, "zeros");
  LLVMSetInitializer(zeros, LLVMConstNull(type));
  LLVMSetGlobalConstant(zeros, true);
  LLVMSetLinkage(zeros, LLVMInternalLinkage);
  return zeros;
}

/* Transforms in registers save a quarter of their time, and take LLVM twice as long where the square is a large one. */
static bool is_worth_unrolling(const emit_winograd *p) {
  double sums = (double)p->channels * (double)p->outputs / (double)(p->channels + p->outputs); /* a transformed number */
  return emit_winograd_products(p) <= 16 || sums < 40;
}

/* For n vectors, on the stack. */
static LLVMValueRef make_room(const winograd *g, int64_t n) {
  LLVMTypeRef type = LLVMArrayType2(g->ir->f32, (uint64_t)(n * g->p->lanes));
  LLVMValueRef room = LLVMBuildAlloca(g->ir->builder, type, "");
  LLVMSetAlignment(room, 64);
  return room;
}

status emit_winograd_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                            const emit_winograd *p, uint32_t phase, emit_kernel_info *info) {
  emit_writer w;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  winograd g = {.w = &w, .p = p, .ir = w.e.w, .convolution = find_convolution(i)};
  bool shared = false;
  for (uint32_t k = 0; k < w.n_results; k++) {
    shared = shared || w.shared[k]; /* nothing may be computed again where an operand was overwritten */
  }
  g.lanes[0] = lanes_for(p->channels, p->lanes, false);
  g.lanes[1] = lanes_for(p->outputs, p->lanes, shared);
  g.x = w.e.inputs[operand_of(i, g.convolution.def->operands[0])].base;
  g.u = emit_writer_buffer(&w, (uint32_t)p->weights);
  g.zeros = make_zeros(&g);
  g.unrolled = is_worth_unrolling(p);
  g.room = make_room(&g, emit_winograd_products(p));
  g.line = make_room(&g, p->m[0] * p->m[1]);
  LLVMValueRef scratch = emit_writer_buffer(&w, i->n_operands + i->n_results);
  if (p->phased) {
    write_phase(&g, phase, scratch);
  } else {
    write_fused(&g, scratch);
  }
  w.cost = cost_of(p, phase);
  emit_writer_end(&w);
  return NULL;
}
