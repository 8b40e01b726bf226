/* narrow_operands.c - which contractions multiply small integers, or f32 by weights that stay small integers; see
 * contraction.h. */
#include "backend_cpu/algorithms/contraction.h"

#include "backend_cpu/algorithms/geometry.h"
#include "emit/contraction/depthwise.h"
#include "emit/llvm/likely.h"
#include "emit/product/gemm.h"
#include "emit/product/product.h"
#include "hlo/analysis/quantized.h"

/* Returns a parameter like the contraction's first operand, but with channels last and integers of type t. */
static hlo_value integer_operand(hlo_computation *c, const hlo_instr *contraction, dtype t) {
  const shape *x = hlo_shape(contraction->operands[0]);
  shape s = shape_with_type(*x, t);
  bool first = contraction->op == HLO_CONVOLUTION && hlo_int(contraction, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST;
  for (int k = 1; first && k < x->rank; k++) {
    s.dims[k] = x->dims[k + 1 < x->rank ? k + 1 : 1];
  }
  return hlo_result(hlo_parameter(c, s), 0);
}

/* Returns the contraction of integers that the passes would make of this one, in a module of its own that has the same
 * table of sizes; NULL if it would not be valid. */
static const hlo_instr *of_integers(arena *a, const hlo_instr *contraction, dtype lhs) {
  enum { IMAGE = 3 }; /* the number of channels to which hlo/passes/qdq_fusion.c adds a fourth one */
  hlo_module *m = hlo_module_create(a, "integers");
  m->dims = contraction->parent->module->dims;
  hlo_computation *c = hlo_computation_create(m, "integers");
  shape w = shape_with_type(*hlo_shape(contraction->operands[1]), lhs == DTYPE_S16 ? DTYPE_S16 : DTYPE_S8);
  hlo_value operands[] = {integer_operand(c, contraction, lhs), {0}};
  if (contraction->op == HLO_CONVOLUTION && lhs != DTYPE_S16 && w.dims[1] == IMAGE &&
      hlo_int(contraction, HLO_ATTR_GROUPS) == 1) {
    shape *x = &operands[0].def->shapes[0];
    x->dims[x->rank - 1] = w.dims[1] = IMAGE + 1;
  }
  operands[1] = hlo_result(hlo_parameter(c, w), 0);
  hlo_instr *i = hlo_instr_clone(c, NULL, contraction, operands);
  if (i->op == HLO_CONVOLUTION) {
    hlo_attr_of(i, HLO_ATTR_LAYOUT)->i = HLO_CHANNELS_LAST;
  }
  status bad = hlo_infer(i);
  status_free(bad);
  return bad ? NULL : i;
}

/* Returns true if a generated kernel should multiply integers in this contraction: a kernel of "gemm" or "depthwise",
 * or in small code (emit_target.small) the plain loops, since bytes take a quarter of the memory of f32. */
static bool kernels_take(const emit_target *t, const hlo_instr *contraction, dtype lhs) {
  enum { NARROWEST = 4 }; /* the fewest columns that fill a vector: a vector has at least 4 dot groups */
  emit_product product;
  emit_depthwise depthwise;
  arena *a = arena_create(arena_budget(contraction->parent->module->arena));
  const hlo_instr *i = of_integers(a, contraction, lhs);
  bool depthwise_takes = i && emit_depthwise_of(i, &depthwise) && depthwise.group == 1;
  bool takes = depthwise_takes || (i && emit_product_of(i, &product) && product.columns >= NARROWEST);
  takes = t->small ? i && lhs != DTYPE_S16 : takes && emit_gemm_has_dots(t, lhs, NARROWEST);
  arena_destroy(a);
  return takes && (t->small || cpu_multiplications(contraction) >= CPU_SMALL_CONTRACTION);
}

bool cpu_takes_narrow_operands(void *data, const hlo_instr *contraction, dtype lhs) {
  const cpu_asked *about = data;
  cpu_geometry g;
  bool integers = contraction->shapes[0].type == DTYPE_S32;
  if (about->options->numerics.exact && !integers) {
    return false;
  }
  if (lhs == DTYPE_S16 || cpu_needs_own_kernel(about, contraction)) {
    return kernels_take(about->target, contraction, lhs);
  }
  return cpu_geometry_sizes(contraction, &g) && cpu_geometry_multiplications(&g) >= CPU_SMALL_CONTRACTION &&
         (g.op == CPU_CONVOLUTION || g.batch == 1) && cpu_library_has_bytes();
}

/* Returns true if a kernel can read whole vectors of columns, perhaps after the pass epilogue has stored scales and
 * zero points for it. */
static bool will_have_whole_vectors(const hlo_quantized_weights *w) {
  return hlo_has_whole_vectors(w) || (hlo_stored_numbers(w->scale) && (!w->zero.def || hlo_stored_numbers(w->zero)));
}

/* Quantised weights that do not fit in a core's cache should stay small integers until they are multiplied: with few
 * rows, reading them takes most of the time, and f32 would take up to eight times the memory.  With more rows than
 * MOST_ROWS, this takes about as long as products of f32 where AVX-512 converts the weights between the multiplications
 * (emit_small), but 1.7 times as long without (doc/measurements/cpu-quantised.md).  With --exact this is not allowed,
 * since scaling the sum of a block rounds differently from scaling each weight. */
bool cpu_takes_quantized_weights(void *data, const hlo_instr *dot) {
  enum { MOST_ROWS = 16, LEAST_WEIGHTS = 1 << 18, BITS = 512 };
  const cpu_asked *about = data;
  hlo_quantized_weights w;
  if (about->options->numerics.exact || !hlo_quantized_weights_of(dot, &w) || !emit_product_reads_quantized(&w) ||
      !will_have_whole_vectors(&w) || (double)w.sums * (double)w.columns < LEAST_WEIGHTS) {
    return false;
  }
  return about->target->vector_bits == BITS ||
         emit_likely_elements(dot->parent->module->dims, &dot->shapes[0]) <= (double)(MOST_ROWS * w.columns);
}
