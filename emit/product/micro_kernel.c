/* micro_kernel.c - see micro_kernel.h.  The blocks of a model's products differ in few ways, so LLVM writes the code of
 * a block once for many kernels. */
#include "emit/product/micro_kernel.h"

#include <assert.h>

#include "emit/llvm/arithmetic.h"
#include "emit/llvm/function.h"
#include "emit/llvm/number.h"

/* Loads entry k of the table `loops`. */
static LLVMValueRef entry(const emit_ir *w, LLVMValueRef table, int k) {
  LLVMValueRef at = emit_i64(w, k), p = LLVMBuildInBoundsGEP2(w->builder, w->i64, table, &at, 1, "");
  return LLVMBuildLoad2(w->builder, w->i64, p, "");
}

/* Sets loops[] as the table says.  Returns the number of vectors of a panel that the loops read; without panels, the
 * number has no meaning. */
static LLVMValueRef read_loops(const emit_ir *w, const emit_micro_kernel *m, LLVMValueRef table,
                               emit_gemm_loop *loops) {
  LLVMValueRef vectors = emit_i64(w, 1);
  for (int k = m->n_loops; k-- > 0;) {
    int at = EMIT_MICRO_FIRST_LOOP + k * EMIT_MICRO_LOOP_ENTRIES;
    bool one = m->contiguous && k + 1 == m->n_loops;
    loops[k].n = entry(w, table, at);
    loops[k].a = one ? emit_i64(w, 1) : entry(w, table, at + 1);
    loops[k].b = m->panels ? emit_times(w, vectors, m->tile.lanes) : entry(w, table, at + 2);
    vectors = LLVMBuildNSWMul(w->builder, vectors, loops[k].n, "");
  }
  return vectors;
}

/* Sets the sums to the vectors with which the panels begin, and moves g->b after the first of them. */
static void start_at_head(const emit_ir *w, emit_gemm *g, LLVMValueRef *sums) {
  LLVMTypeRef element = emit_memory_type(w, g->type), type = emit_vector_type(element, g->tile.lanes);
  for (int v = 0; v < g->tile.vectors; v++) {
    LLVMValueRef offset = LLVMBuildNSWMul(w->builder, g->b_vector_size, emit_i64(w, v), "");
    LLVMValueRef from = LLVMBuildInBoundsGEP2(w->builder, element, g->b, &offset, 1, "");
    LLVMValueRef start = LLVMBuildLoad2(w->builder, type, from, "");
    LLVMSetAlignment(start, (unsigned)dtype_bytes(g->type));
    for (int r = 0; r < g->tile.rows; r++) {
      sums[r * g->tile.vectors + v] = start;
    }
  }
  LLVMValueRef one = emit_i64(w, 1);
  g->b = LLVMBuildInBoundsGEP2(w->builder, type, g->b, &one, 1, "");
}

static void write_body(emit_ir *w, const void *data) {
  const emit_micro_kernel *m = data;
  LLVMValueRef parameters[EMIT_MICRO_PARAMETERS], sums[EMIT_GEMM_SUMS];
  LLVMGetParams(w->function, parameters);
  LLVMValueRef table = parameters[EMIT_MICRO_LOOPS];
  emit_gemm g = {.tile = m->tile,
                 .type = m->type,
                 .dot = m->dot,
                 .dot_flips = m->dot_flips,
                 .a = parameters[EMIT_MICRO_A],
                 .b = parameters[EMIT_MICRO_B],
                 .a_row_size = entry(w, table, EMIT_MICRO_ROW),
                 .b_vector = m->tile.lanes};
  emit_gemm_loop loops[EMIT_MICRO_MOST_LOOPS];
  LLVMValueRef vectors = read_loops(w, m, table, loops);
  if (m->panels) {
    vectors = m->head ? emit_add(w, vectors, emit_i64(w, 1)) : vectors;
    g.b_vector_size = emit_times(w, vectors, g.tile.lanes);
  }
  emit_gemm_zero(w, &g, sums);
  if (m->head) {
    start_at_head(w, &g, sums);
  }
  emit_gemm_nest(w, &g, m->n_loops, loops, sums);
  emit_gemm_store(w, &g, sums, parameters[EMIT_MICRO_TILE]);
  LLVMBuildRetVoid(w->builder);
}

LLVMValueRef emit_micro_kernel_of(const emit_ir *w, const emit_micro_kernel *m) {
  assert(m->n_loops >= 1 && m->n_loops <= EMIT_MICRO_MOST_LOOPS);
  const char *name =
      arena_printf(w->arena, "gemm_%dx%dx%d_%s%s%s%s%s_%d%s", m->tile.rows, m->tile.vectors, m->tile.lanes,
                   dtype_name(m->type), m->dot ? dtype_name(m->dot) : "", m->dot_flips ? "f" : "", m->panels ? "p" : "",
                   m->head ? "h" : "", m->n_loops, m->contiguous ? "c" : "");
  return emit_shared_function(w, &(emit_shared){name, EMIT_MICRO_TYPES, write_body, m});
}
