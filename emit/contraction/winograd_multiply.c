/* winograd_multiply.c - Winograd's products: transformed tiles by panels of weights, which are transformed before or
 * on the fly. */
#include "base/arith.h"
#include "emit/contraction/winograd_internal.h"
#include "emit/product/gemm.h"

/* --- products with transformed weights --- */

/* The function that multiplies rows of V by one panel of weights, over all channels:
 *
 *     void f(v, u, m, n, channels, v_row, m_row, period)
 *
 * with the addresses of the rows, of the panel and of the rows of M, the number of rows, and the distances between
 * rows. While the panel is multiplied, the one after it is prefetched: it is in a larger cache or in memory.  Each
 * block of rows prefetches some of its vectors (emit_gemm.ahead); `period` rows prefetch the same ones. */
enum { PANEL_V, PANEL_U, PANEL_M, PANEL_N, PANEL_CHANNELS, PANEL_V_ROW, PANEL_M_ROW, PANEL_PERIOD, PANEL_PARAMETERS };

static void multiply_rows(const winograd *g, const winograd_panel *code, LLVMValueRef first, const LLVMValueRef *p) {
  const emit_gemm_tile *t = &code->tile;
  int64_t panel = (int64_t)t->vectors * t->lanes;
  LLVMValueRef part = emit_opaque(g->ir, LLVMBuildUDiv(g->ir->builder, first, p[PANEL_PERIOD], ""));
  emit_gemm block = {.tile = *t,
                     .type = DTYPE_F32,
                     .a = address(g, p[PANEL_V], emit_mul(g->ir, first, p[PANEL_V_ROW])),
                     .b = p[PANEL_U],
                     .a_row_size = p[PANEL_V_ROW],
                     .a_k = 1,
                     .b_k = panel,
                     .b_vector = t->lanes,
                     .ahead = add(g, emit_times(g->ir, p[PANEL_CHANNELS], panel),
                                  emit_times(g->ir, part, (int64_t)code->n_ahead * t->lanes)),
                     .n_ahead = code->n_ahead,
                     .k = p[PANEL_CHANNELS]};
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  emit_gemm_zero(g->ir, &block, sums);
  emit_gemm_block(g->ir, &block, sums);
  for (int i = 0; i < t->rows; i++) {
    LLVMValueRef to = address(g, p[PANEL_M], emit_mul(g->ir, plus(g, first, i), p[PANEL_M_ROW]));
    for (int j = 0; j < t->vectors; j++) {
      store(g, sums[i * t->vectors + j], address(g, to, number(g, (int64_t)j * t->lanes)));
    }
  }
}

static void write_panel(emit_ir *w, const void *data) {
  const winograd_panel *code = data;
  const winograd g = {.ir = w};
  LLVMValueRef p[PANEL_PARAMETERS];
  emit_loop l;
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &l, number(&g, 0), p[PANEL_N], code->tile.rows, false, 0, NULL);
  multiply_rows(&g, code, l.iv, p);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared winograd_panel_function(const emit_ir *w, const winograd_panel *p) {
  const char *name =
      arena_printf(w->arena, "winograd_panel_%dx%dx%d_%d", p->tile.rows, p->tile.vectors, p->tile.lanes, p->n_ahead);
  return (emit_shared){name, WINOGRAD_PANEL_TYPES, write_panel, p};
}

/* Returns the number of blocks of rows. */
static int64_t row_blocks(const emit_winograd *p) { return ceil_div(p->block, p->rows); }

winograd_panel winograd_panel_of(const emit_winograd *p) {
  return (winograd_panel){{(int)p->rows, (int)p->vectors, (int)p->lanes}, (int)ceil_div(p->vectors, row_blocks(p))};
}

int64_t winograd_period(const emit_winograd *p) { return p->rows * ceil_div(row_blocks(p), p->vectors); }

void winograd_multiply_panel(const winograd *g, LLVMValueRef n, LLVMValueRef v, LLVMValueRef u, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  const winograd_panel panel = winograd_panel_of(p);
  const emit_shared function = winograd_panel_function(g->ir, &panel);
  LLVMValueRef arguments[PANEL_PARAMETERS] = {
      v, u, m, n, number(g, p->channels), number(g, p->v_row), number(g, p->m_row), number(g, winograd_period(p))};
  emit_call_shared(g->ir, &function, arguments);
}

/* --- products with the on-the-fly transform of weights --- */

/* Transforms the weights of n channels of a panel, W[n][taps][panel], to the matrices U, which are u_plane elements
 * apart. */
static void spread_weights(const winograd *g, LLVMValueRef n, LLVMValueRef w, LLVMValueRef u) {
  const emit_winograd *p = g->p;
  const int64_t panel = emit_winograd_panel(p);
  emit_loop channels, vectors;
  emit_loop_begin(g->ir, &channels, number(g, 0), n, 1, true, 0, NULL);
  LLVMValueRef from = address(g, w, scaled(g, channels.iv, p->r[0] * p->r[1] * panel));
  LLVMValueRef to = address(g, u, scaled(g, channels.iv, panel));
  emit_loop_begin(g->ir, &vectors, number(g, 0), number(g, panel), p->lanes, true, 0, NULL);
  winograd_spread(g, address(g, from, vectors.iv), address(g, to, vectors.iv), p->u_plane);
  emit_loop_end(g->ir, &vectors, NULL);
  emit_loop_end(g->ir, &channels, NULL);
}

/* While one chunk of channels is multiplied, the weights of the next chunk, which begin at `next`, are prefetched.
 * Each of the a*a matrix products prefetches a part of them.  Returns the distance from u to the part that product
 * number `product` prefetches (emit_gemm.ahead), and sets *each to the number of its vectors for each k. */
static LLVMValueRef fetch_next(const winograd *g, LLVMValueRef product, LLVMValueRef next, LLVMValueRef u, int *each) {
  const emit_winograd *p = g->p;
  LLVMBuilderRef b = g->ir->builder;
  int64_t vectors = p->r[0] * p->r[1] * p->vectors, products = emit_winograd_products(p);
  *each = (int)((vectors + products - 1) / products);
  LLVMValueRef first = scaled(g, product, *each), region = quotient(g, first, p->vectors);
  LLVMValueRef at = add(g, scaled(g, region, p->chunk * emit_winograd_panel(p)),
                        scaled(g, remainder_of(g, first, p->vectors), p->lanes));
  LLVMValueRef apart =
      LLVMBuildSub(b, LLVMBuildPtrToInt(b, next, g->ir->i64, ""), LLVMBuildPtrToInt(b, u, g->ir->i64, ""), "");
  return add(g, at, LLVMBuildAShr(b, apart, number(g, 2), ""));
}

typedef struct multiplying {
  LLVMValueRef channel, n; /* the first channel of the chunk, and the number of its channels */
  LLVMValueRef ahead;      /* ahead and n_ahead are as in emit_gemm */
  int n_ahead;
} multiplying;

/* Multiplies a block of rows of V by a chunk of channels of a panel.  The sums start at zero in the first chunk, and
 * otherwise at the sums of the chunks before, which are in M. */
static void add_block(const winograd *g, const multiplying *of, LLVMValueRef v, LLVMValueRef u, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_gemm block = {.tile = {(int)p->rows, (int)p->vectors, (int)p->lanes},
                     .type = DTYPE_F32,
                     .a = v,
                     .b = u,
                     .a_row = p->v_row,
                     .a_k = 1,
                     .b_k = emit_winograd_panel(p),
                     .b_vector = p->lanes,
                     .k = of->n,
                     .ahead = of->ahead,
                     .n_ahead = of->n_ahead};
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

void winograd_multiply_on_the_fly(const winograd *g, LLVMValueRef n, LLVMValueRef v, LLVMValueRef w, LLVMValueRef u,
                                  LLVMValueRef m) {
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
  of.ahead = fetch_next(g, products.iv, address(g, weights, number(g, p->chunk * p->r[0] * p->r[1] * panel)), u_plane,
                        &of.n_ahead);
  emit_loop_begin(g->ir, &rows, number(g, 0), n, p->rows, false, 0, NULL);
  add_block(g, &of, address(g, v_plane, scaled(g, rows.iv, p->v_row)), u_plane,
            address(g, m_plane, scaled(g, rows.iv, p->m_row)));
  emit_loop_end(g->ir, &rows, NULL);
  emit_loop_end(g->ir, &products, NULL);
  emit_loop_end(g->ir, &chunks, NULL);
}
