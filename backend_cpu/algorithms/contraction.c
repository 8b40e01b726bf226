/* contraction.c - which epilogues a library call computes, and the library plan of a contraction. */
#include "backend_cpu/algorithms/contraction.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "backend_cpu/algorithms/geometry.h"
#include "emit/contraction/depthwise.h"
#include "emit/kernel/kernel.h"
#include "emit/product/product.h"
#include "emit/llvm/likely.h"
#include "hlo/analysis/queries.h"
#include "hlo/analysis/in_place_update.h"

/* Where values are looked up: in the body of a fusion, whose parameters then stand for the fusion's operands, or
 * outside of fusions. */
typedef struct scope {
  const hlo_instr *fusion; /* the fusion in whose body the values are; NULL if they are not in a body */
} scope;

/* Returns the fusion's operand if v is a parameter of the fusion's body, and v otherwise. */
static hlo_value outside(scope s, hlo_value v) {
  bool inside = s.fusion && v.def->op == HLO_PARAMETER && v.def->parent == hlo_callee(s.fusion, 0);
  return inside ? s.fusion->operands[hlo_int(v.def, HLO_ATTR_INDEX)] : v;
}

static bool is_reshape(hlo_value v) { return v.def->op == HLO_RESHAPE; }

/* --- operands of an epilogue --- */

/* Returns true if v is a constant whose elements are all equal, or comes from one by broadcasts and reshapes, inside of
 * the fusion or outside; sets *number to the element. */
static bool splat_of(scope s, hlo_value v, double *number) {
  v = outside(s, v);
  while (v.def->op == HLO_BROADCAST || is_reshape(v)) {
    v = outside(s, v.def->operands[0]);
  }
  const literal *l = hlo_literal(v);
  if (!l || !literal_is_splat(l)) {
    return false;
  }
  *number = literal_f64(l, 0);
  return true;
}

/* Finds the array that v, which has the shape `result`, is a broadcast of; it may be v itself.  *dims becomes a mask of
 * the result's dimensions that the array has.  Returns false if the array is or would be computed in the body of the
 * fusion, or is not of type `type`. */
static bool array_of(scope s, hlo_value v, const shape *result, dtype type, uint32_t *dims, hlo_value *array) {
  *dims = 0;
  if (v.def->op == HLO_BROADCAST) {
    const int64_t *to = hlo_ints(v.def, HLO_ATTR_DIMENSIONS);
    v = v.def->operands[0];
    for (int d = 0; d < hlo_rank(v); d++) {
      *dims |= hlo_shape(v)->dims[d] == result->dims[to[d]] ? 1u << to[d] : 0;
    }
  } else {
    *dims = (1u << result->rank) - 1;
  }
  while (is_reshape(v)) {
    v = v.def->operands[0];
  }
  if (s.fusion ? v.def->op != HLO_PARAMETER : hlo_is_free(v.def)) { /* fusions get copies of free instructions */
    return false;
  }
  *array = outside(s, v);
  return hlo_type(v) == type;
}

/* --- epilogues --- */

/* What an operation, or an activation of several operations, that follows the contraction adds to a plan. */
typedef struct step {
  bool is_post_op, is_array; /* is_post_op: whether the library can compute it, or a generated kernel if is_own */
  bool is_own;
  bool is_convert, is_bias;
  dtype to; /* the type of a conversion's result */
  cpu_post_op post_op;
  hlo_value array;
} step;

static step unary_step(cpu_post_op_kind kind, double alpha, double beta) {
  return (step){.is_post_op = true, .post_op = {.kind = kind, .alpha = alpha, .beta = beta}};
}

/* Returns the step that computes x op number, or number op x if `swapped`. */
static step splat_step(hlo_op op, bool swapped, double number) {
  switch (op) {
    case HLO_ADD: return unary_step(CPU_POST_OP_LINEAR, 1, number);
    case HLO_SUB:
      return swapped ? unary_step(CPU_POST_OP_LINEAR, -1, number) : unary_step(CPU_POST_OP_LINEAR, 1, -number);
    case HLO_MUL: return unary_step(CPU_POST_OP_LINEAR, number, 0);
    case HLO_MAX:
      return number == 0 ? unary_step(CPU_POST_OP_RELU, 0, 0) : unary_step(CPU_POST_OP_CLIP, number, INFINITY);
    case HLO_MIN: return unary_step(CPU_POST_OP_CLIP, -INFINITY, number);
    default: return (step){0};
  }
}

/* Returns true if oneDNN 2.6 broadcasts an array with these dimensions correctly in a binary post-op of a convolution.
 * For all arrays except one number, one number per channel, or one per element of the result, it computes wrong results
 * without an error.  A matrix product's arrays may have any dimensions. */
static bool library_stretches(const hlo_instr *convolution, uint32_t dims) {
  const shape *r = &convolution->shapes[0];
  uint32_t channels = hlo_int(convolution, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST ? 1u << (r->rank - 1) : 2, all = 0;
  for (int d = 0; d < r->rank; d++) {
    all |= r->dims[d] != 1 ? 1u << d : 0;
  }
  dims &= all;
  return dims == 0 || dims == (channels & all) || dims == all;
}

static step array_step(scope s, const hlo_instr *contraction, hlo_op op, bool swapped, hlo_value v) {
  cpu_post_op_kind kind = CPU_POST_OP_ADD;
  switch (op) {
    case HLO_ADD: break;
    case HLO_SUB: kind = CPU_POST_OP_SUB; break;
    case HLO_MUL: kind = CPU_POST_OP_MUL; break;
    case HLO_DIV: kind = CPU_POST_OP_DIV; break;
    case HLO_MAX: kind = CPU_POST_OP_MAX; break;
    case HLO_MIN: kind = CPU_POST_OP_MIN; break;
    default: return (step){0};
  }
  step r = {.is_post_op = true, .is_array = true, .post_op = {.kind = kind}};
  uint32_t dims;
  if ((swapped && (op == HLO_SUB || op == HLO_DIV)) ||
      !array_of(s, v, &contraction->shapes[0], hlo_type(v), &dims, &r.array)) {
    return (step){0};
  }
  r.post_op.dims = dims;
  bool fits = contraction->op == HLO_DOT ? cpu_dot_dims(contraction, dims, &r.post_op.dims)
                                         : library_stretches(contraction, dims);
  return fits ? r : (step){0};
}

/* Returns true if the clamp makes no difference, because its result is converted to bytes, and that conversion
 * saturates at the same bounds or at narrower ones. */
static bool converts_anyway(const hlo_instr *clamp, double low, double high) {
  const hlo_instr *next = clamp->n_uses == 1 ? clamp->uses[0].user : NULL;
  if (!next || next->op != HLO_CONVERT || hlo_is_root(hlo_result((hlo_instr *)clamp, 0))) {
    return false;
  }
  dtype to = (dtype)next->shapes[0].type;
  return (to == DTYPE_U8 || to == DTYPE_S8) && low <= dtype_lowest_f64(to) && high >= dtype_max_f64(to);
}

static step clamp_step(scope s, const hlo_instr *consumer, uint32_t operand) {
  double low, high;
  if (operand != 1 || !splat_of(s, consumer->operands[0], &low) || !splat_of(s, consumer->operands[2], &high)) {
    return (step){0};
  }
  if (converts_anyway(consumer, low, high)) {
    return unary_step(CPU_POST_OP_LINEAR, 1, 0);
  }
  return low == 0 && high == INFINITY ? unary_step(CPU_POST_OP_RELU, 0, 0) : unary_step(CPU_POST_OP_CLIP, low, high);
}

/* Returns true if the contraction sums products of s16, which only generated kernels do. */
static bool sums_s16(const hlo_instr *contraction) {
  return hlo_widens_sums(contraction) && !hlo_sums_bytes(contraction);
}

/* Returns the step for an operation on sums of products of small integers.  The s32 sums may first get a bias of one
 * s32 per channel and then be converted to f32.  A conversion to a type of 8 bits must be the last step. */
static step integer_step(scope s, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  dtype to = (dtype)consumer->shapes[0].type;
  bool sum = hlo_type(consumer->operands[operand]) == DTYPE_S32;
  if (consumer->op == HLO_CONVERT) {
    bool fits = sum ? to == DTYPE_F32 : to == DTYPE_U8 || to == DTYPE_S8;
    return (step){.is_post_op = fits, .is_convert = fits, .to = to};
  }
  step r = {0};
  if (sum && consumer->op == HLO_ADD && !hlo_value_equal(consumer->operands[0], consumer->operands[1])) {
    r = array_step(s, contraction, HLO_ADD, operand == 1, consumer->operands[1 - operand]);
    r.is_bias = true;
  }
  return r;
}

static step step_of(scope s, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  double number;
  if (consumer->n_results != 1 || !shape_same_dims(&consumer->shapes[0], &contraction->shapes[0])) {
    return (step){0};
  }
  bool narrows = consumer->op == HLO_CONVERT && hlo_type(consumer->operands[0]) == DTYPE_F32;
  if (narrows && consumer->shapes[0].type == DTYPE_S16) {
    return (step){.is_post_op = true, .is_own = true};
  }
  if (consumer->op == HLO_CONVERT || consumer->shapes[0].type != DTYPE_F32) {
    return hlo_widens_sums(contraction) ? integer_step(s, contraction, consumer, operand) : (step){0};
  }
  switch (consumer->op) {
    case HLO_ROUND: return unary_step(CPU_POST_OP_ROUND, 0, 0);
    case HLO_LOGISTIC: return unary_step(CPU_POST_OP_LOGISTIC, 0, 0);
    case HLO_TANH: return unary_step(CPU_POST_OP_TANH, 0, 0);
    case HLO_ABS: return unary_step(CPU_POST_OP_ABS, 0, 0);
    case HLO_SQRT: return unary_step(CPU_POST_OP_SQRT, 0, 0);
    case HLO_CLAMP: return clamp_step(s, consumer, operand);
    default: break;
  }
  if (consumer->n_operands != 2 || hlo_value_equal(consumer->operands[0], consumer->operands[1])) {
    return (step){0};
  }
  hlo_value other = consumer->operands[1 - operand];
  step r = splat_of(s, other, &number) ? splat_step(consumer->op, operand == 1, number) : (step){0};
  return r.is_post_op ? r : array_step(s, contraction, consumer->op, operand == 1, other);
}

/* Returns true if this post-op may be a CPU_POST_OP_SUM, which reads its array from the result's buffer.  Only the
 * first added array that has other dimensions than the channels may be read in this way. */
static bool may_be_sum(const cpu_contraction *c, const cpu_post_op *post_op) {
  bool sum = post_op->kind == CPU_POST_OP_ADD && !cpu_sums_bytes(&c->g);
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    const cpu_post_op *before = &c->post_ops[k];
    sum = sum && before->kind != CPU_POST_OP_SUM &&
          !(before->kind == CPU_POST_OP_ADD && cpu_reads_by_position(&c->g, before));
  }
  return sum;
}

/* Returns true if the library would compute the convolution by plain loops if this post-op were added: not all of its
 * implementations support arrays of the result's shape (onednn_primitive.c). */
static bool slows_library(const cpu_contraction *c, const cpu_post_op *post_op) {
  cpu_contraction with = *c;
  if (c->g.op != CPU_CONVOLUTION || !cpu_reads_by_position(&c->g, post_op) || may_be_sum(c, post_op)) {
    return false;
  }
  with.post_ops[with.n_post_ops++] = *post_op;
  return !cpu_library_is_fast(&with);
}

/* Returns true if x is 0 or a normal number of f32. */
static bool is_normal(double x) { return x == 0 || (fabs(x) >= FLT_MIN && fabs(x) <= FLT_MAX); }

/* Makes one CPU_POST_OP_LINEAR of two.  Returns false if its numbers would not be f32: x * 1e30 * 1e30 is finite for
 * small x. */
static bool merge_linear(cpu_post_op *first, const cpu_post_op *second) {
  double alpha = first->alpha * second->alpha, beta = first->beta * second->alpha + second->beta;
  if (first->kind != CPU_POST_OP_LINEAR || second->kind != CPU_POST_OP_LINEAR || !is_normal(alpha) ||
      !is_normal(beta)) {
    return false;
  }
  first->alpha = alpha;
  first->beta = beta;
  return true;
}

/* Appends a post-op.  Two CPU_POST_OP_LINEAR in a row become one, and for sums of bytes one that changes nothing is
 * left out.  Returns false if there are too many post-ops, if the library would then use plain loops, or if the result
 * would be wrong: if there are two unary post-ops of one kind with different parameters, oneDNN 2.6 computes both with
 * the parameters of one of them. */
static bool add_post_op(cpu_contraction *c, const cpu_post_op *post_op) {
  if (cpu_sums_bytes(&c->g) && post_op->kind == CPU_POST_OP_LINEAR && post_op->alpha == 1 && post_op->beta == 0) {
    return true;
  }
  if (c->n_post_ops && merge_linear(&c->post_ops[c->n_post_ops - 1], post_op)) {
    return true;
  }
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    if (post_op->kind != CPU_POST_OP_SUM && post_op->kind <= CPU_POST_OP_LAST_UNARY &&
        c->post_ops[k].kind == post_op->kind &&
        (c->post_ops[k].alpha != post_op->alpha || c->post_ops[k].beta != post_op->beta)) {
      return false;
    }
  }
  if (c->n_post_ops == CPU_MAX_POST_OPS || slows_library(c, post_op)) {
    return false;
  }
  c->post_ops[c->n_post_ops++] = *post_op;
  return true;
}

/* Returns true if the results of the call c are whole numbers after its post-ops. */
static bool are_whole(const cpu_contraction *c) {
  for (uint32_t k = c->n_post_ops; k-- > 0;) {
    const cpu_post_op *p = &c->post_ops[k];
    if (p->kind == CPU_POST_OP_ROUND) {
      return true;
    }
    if (p->kind != CPU_POST_OP_LINEAR || p->alpha != 1 || p->beta != rint(p->beta)) {
      return false;
    }
  }
  return false;
}

/* Makes `to` the type of the call's result.  A conversion to bytes ends the call.  When the library stores bytes it
 * rounds as CPU_POST_OP_ROUND does and saturates, so such a post-op at the end is dropped.  Returns false for a
 * conversion to bytes of numbers that are not whole. */
static bool add_conversion(cpu_contraction *c, dtype to) {
  c->g.result_type = to;
  if (to == DTYPE_F32) {
    return true;
  }
  if (!are_whole(c)) {
    return false;
  }
  c->n_post_ops -= c->post_ops[c->n_post_ops - 1].kind == CPU_POST_OP_ROUND;
  return true;
}

/* Adds a step to the call, but not the array that it reads.  Returns false if the library cannot compute it there. */
static bool count_step(cpu_contraction *c, const step *s) {
  if (s->is_own) {
    return false;
  }
  if (s->is_convert) {
    return add_conversion(c, s->to);
  }
  if (s->is_bias) {
    bool fits = s->post_op.dims == cpu_channels_mask(&c->g) && c->n_post_ops == 0 && !c->g.has_bias;
    c->g.has_bias = 1;
    return fits;
  }
  return add_post_op(c, &s->post_op);
}

static bool scope_splat(const void *data, hlo_value v, double *number) {
  return splat_of(*(const scope *)data, v, number);
}

static step activation_step(const hlo_activation *a) {
  static const cpu_post_op_kind kinds[] = {[HLO_SWISH] = CPU_POST_OP_SWISH,
                                           [HLO_GELU_ERF] = CPU_POST_OP_GELU_ERF,
                                           [HLO_GELU_TANH] = CPU_POST_OP_GELU_TANH,
                                           [HLO_HARD_SWISH] = CPU_POST_OP_HARDSWISH};
  return unary_step(kinds[a->kind], a->kind == HLO_SWISH ? a->alpha : 0, 0);
}

/* Sets *out to the step that follows *x if all users of *x belong to it: an activation of several operations, or one
 * operation.  Sets *x to its result.  Returns false if there is no such step, or none that the library computes. */
static bool next_step(scope s, const hlo_instr *contraction, hlo_instr **x, step *out) {
  hlo_activation a;
  if (hlo_find_activation(*x, scope_splat, &s, &a)) {
    *out = activation_step(&a);
    *x = a.members[a.n - 1];
  } else if ((*x)->n_uses == 1) {
    *out = step_of(s, contraction, (*x)->uses[0].user, (*x)->uses[0].operand);
    *x = (*x)->uses[0].user;
  } else {
    return false;
  }
  return out->is_post_op;
}

/* Returns true if the call's results show that the library's logistic function gives 0 instead of numbers below 2^-125
 * (oneDNN 2.6): an infinity times such a number is no NaN, and its logarithm is finite.  Bytes do not show it, unless
 * the number is multiplied by an array or by a huge number. */
static bool shows_underflow(const cpu_contraction *c) {
  double lost = 0; /* the most by which the number computed so far may differ */
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    const cpu_post_op *p = &c->post_ops[k];
    switch (p->kind) {
      case CPU_POST_OP_LOGISTIC: lost = fmax(lost, 0x1p-125); break;
      case CPU_POST_OP_SWISH: lost = fmax(2 * lost, 0x1p-118 / fabs(p->alpha)); break; /* 2^7 > -ln 2^-150 */
      case CPU_POST_OP_LINEAR: lost = lost > 0 ? lost * fabs(p->alpha) : 0; break;
      case CPU_POST_OP_SQRT: lost = sqrt(lost); break;
      case CPU_POST_OP_MUL:
      case CPU_POST_OP_DIV: lost = lost > 0 ? INFINITY : 0; break;
      default: lost *= 2; /* a number that changes by 1 changes the result by less than 2 */
    }
  }
  bool bytes = c->g.result_type == DTYPE_U8 || c->g.result_type == DTYPE_S8;
  return bytes ? lost > 0x1p-24 : lost > 0;
}

/* Returns true if one library call can compute the chain of operations from the contraction to `end`, followed by
 * `last`.  *right becomes whether the results are right, too (shows_underflow). */
static bool chain_fits(const cpu_geometry *g, const hlo_instr *contraction, const hlo_instr *end, const step *last,
                       bool *right) {
  cpu_contraction c = {.g = *g};
  const scope here = {NULL};
  for (hlo_instr *x = (hlo_instr *)contraction; x != end;) {
    step next;
    if (!next_step(here, contraction, &x, &next) || !count_step(&c, &next)) {
      return false;
    }
  }
  bool fits = last->is_post_op && count_step(&c, last);
  *right = !shows_underflow(&c);
  return fits;
}

bool cpu_needs_own_kernel(const cpu_asked *about, const hlo_instr *contraction) {
  return about->options->own_kernels || emit_takes_sizes(contraction) || sums_s16(contraction);
}

/* Returns true if a kernel of "gemm" or "depthwise" should compute an epilogue that the library computes wrongly.  In a
 * provisional program, and in reduced precision, which only the library offers, a library call and a kernel for the
 * epilogue are better. */
static bool has_better_kernel(const cpu_asked *about, const hlo_instr *contraction) {
  emit_product product;
  emit_depthwise depthwise;
  const rt_compile_options *o = about->options;
  return !o->provisional && !o->numerics.reduced_precision &&
         (emit_product_of(contraction, &product) ||
          (hlo_literal(contraction->operands[1]) && emit_depthwise_of(contraction, &depthwise)));
}

/* Returns true if one library call or kernel computes the contraction, the operations that follow it up to `end`, and
 * then `last`.  Where a generated kernel is needed, this is a kernel of "gemm" or "depthwise", which take any number of
 * steps.  In small code (emit_target.small) the plain loops take the steps, too, so that the sums are not written to
 * memory before the steps. */
static bool takes_step(const cpu_asked *about, const hlo_instr *contraction, const hlo_instr *end, const step *last) {
  cpu_geometry g;
  emit_product product;
  emit_depthwise depthwise;
  bool right;
  if (last->is_own || cpu_needs_own_kernel(about, contraction)) {
    return last->is_post_op && (about->target->small || emit_product_of(contraction, &product) ||
                                emit_depthwise_of(contraction, &depthwise));
  }
  return !cpu_library_is_blas() && cpu_geometry_sizes(contraction, &g) &&
         cpu_geometry_multiplications(&g) >= CPU_SMALL_CONTRACTION && cpu_geometry_of(contraction, &g) &&
         chain_fits(&g, contraction, end, last, &right) && (right || has_better_kernel(about, contraction));
}

bool cpu_takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  step last = step_of((scope){NULL}, contraction, consumer, operand);
  return last.is_post_op && takes_step(data, contraction, consumer->operands[operand].def, &last);
}

bool cpu_takes_activation(void *data, const hlo_instr *contraction, const hlo_instr *x, const hlo_activation *a) {
  step last = activation_step(a);
  return takes_step(data, contraction, x, &last);
}

/* --- library plans --- */

static bool add_step(cpu_library_plan *p, const step *s) {
  cpu_contraction *c = &p->c;
  uint32_t everything = c->g.op == CPU_MATMUL ? 7 : (1u << (c->g.spatial + 2)) - 1;
  bool bytes = cpu_sums_bytes(&c->g); /* the bias of sums of bytes is s32 */
  if (s->is_convert || s->is_bias) {
    p->bias = s->is_bias ? s->array : p->bias;
    return count_step(c, s);
  }
  if (s->post_op.kind == CPU_POST_OP_ADD && s->post_op.dims == cpu_channels_mask(&c->g) && c->n_post_ops == 0 &&
      !c->g.has_bias && !bytes) {
    c->g.has_bias = 1;
    p->bias = s->array;
    return true;
  }
  uint32_t before = c->n_post_ops;
  if (!add_post_op(c, &s->post_op)) {
    return false;
  }
  if (c->n_post_ops == before && !s->is_array) {
    return true;
  }
  cpu_post_op *post_op = &c->post_ops[c->n_post_ops - 1];
  int64_t dims[CPU_MAX_RANK], elements = 1;
  for (int d = cpu_contraction_dims(c, dims); d-- > 0;) {
    elements *= dims[d];
  }
  bool whole = s->is_array && (post_op->dims & everything) == everything;
  whole = whole || (s->is_array && shape_elements(hlo_shape(s->array)) == elements);
  if (post_op->kind == CPU_POST_OP_ADD && whole && !p->sum.def && !hlo_literal(s->array) && !bytes) {
    *post_op = (cpu_post_op){.kind = CPU_POST_OP_SUM};
    p->sum = s->array;
  } else if (s->is_array) {
    p->arrays[cpu_contraction_arrays(c) - 1] = s->array;
  }
  return true;
}

static bool read_epilogue(cpu_library_plan *p, scope s, hlo_instr *contraction) {
  hlo_instr *x = contraction;
  const hlo_computation *body = contraction->parent;
  while (x != body->roots[0].def) {
    step next;
    if (!next_step(s, contraction, &x, &next) || !add_step(p, &next)) {
      return false;
    }
  }
  return body->n_roots == 1;
}

/* Finds the value outside of the fusion that the contraction reads as v, also through reshapes, which make no
 * difference to the library.  Returns false if the fusion computes the operand. */
static bool read_operand(scope s, hlo_value v, hlo_value *out) {
  while (s.fusion && is_reshape(v)) {
    v = v.def->operands[0];
  }
  *out = outside(s, v);
  return !s.fusion || v.def->op == HLO_PARAMETER;
}

hlo_instr *cpu_find_contraction(const hlo_instr *i) {
  if (i->op == HLO_DOT || i->op == HLO_CONVOLUTION) {
    return (hlo_instr *)i;
  }
  if (i->op != HLO_FUSION || hlo_int(i, HLO_ATTR_FUSION) != HLO_FUSION_OUTPUT) {
    return NULL;
  }
  hlo_instr *found = NULL;
  for (hlo_instr *k = hlo_callee(i, 0)->first; k; k = k->next) {
    if (k->op == HLO_DOT || k->op == HLO_CONVOLUTION) {
      if (found) {
        return NULL;
      }
      found = k;
    }
  }
  return found;
}

/* Returns the largest magnitude that a sum of products of bytes can have, over all outputs. */
static double largest_sum(const cpu_geometry *g, const literal *weights) {
  double most = 0, byte = g->lhs_type == DTYPE_U8 ? 255 : 128;
  bool product = g->op == CPU_MATMUL;
  int64_t outputs = product ? g->n : g->out_channels,
          terms = product ? g->k : shape_elements(&weights->shape) / outputs;
  int64_t along = product ? g->rhs_k : 1, next = product ? g->rhs_n : terms;
  const int8_t *w = weights->data;
  for (int64_t o = 0; o < outputs; o++) {
    double sum = 0;
    for (int64_t k = 0; k < terms; k++) {
      sum += fabs((double)w[o * next + k * along]);
    }
    most = fmax(most, sum * byte);
  }
  return most;
}

static double largest_bias(const cpu_library_plan *p) {
  const literal *l = p->bias.def ? hlo_literal(p->bias) : NULL;
  double most = p->bias.def && !l ? INFINITY : 0;
  for (int64_t k = 0; l && k < shape_elements(&l->shape); k++) {
    most = fmax(most, fabs(literal_f64(l, k)));
  }
  return most;
}

/* Returns false if the result is s32 and could be inexact.  The library computes the bias, post-ops and conversions in
 * f32, so sums with their bias must fit into the 24 bits of f32, and there must be no post-ops. */
static bool has_exact_sums(const cpu_library_plan *p) {
  const double whole = 1 << 24;
  return p->c.g.result_type != DTYPE_S32 ||
         (p->c.n_post_ops == 0 && largest_sum(&p->c.g, hlo_literal(p->weights)) + largest_bias(p) < whole);
}

bool cpu_library_plan_read(const hlo_instr *i, cpu_library_plan *p) {
  hlo_instr *contraction = cpu_find_contraction(i);
  if (!contraction || !cpu_geometry_of(contraction, &p->c.g)) {
    return false;
  }
  scope s = {i->op == HLO_FUSION ? i : NULL};
  p->instr = i;
  if (!read_operand(s, contraction->operands[0], &p->lhs) || !read_operand(s, contraction->operands[1], &p->weights) ||
      (s.fusion && (!read_epilogue(p, s, contraction) || shows_underflow(&p->c)))) {
    return false;
  }
  p->c.g.packed =
      hlo_literal(p->weights) && !cpu_library_is_blas() && (p->c.g.op == CPU_CONVOLUTION || p->c.g.batch == 1);
  return !cpu_sums_bytes(&p->c.g) || (p->c.g.packed && has_exact_sums(p));
}

/* --- other questions of passes --- */

/* The algorithms "gemm" and "depthwise" can update in place, since they store vector by vector.  The library cannot. */
bool cpu_takes_in_place_update(void *data, const hlo_instr *i) {
  emit_product product;
  emit_depthwise depthwise;
  hlo_in_place_update already;
  const cpu_asked *about = data;
  return !about->options->provisional && cpu_find_contraction(i) && i->shapes[0].type == DTYPE_F32 &&
         !hlo_in_place_update_of(i, &already) && (emit_product_of(i, &product) || emit_depthwise_of(i, &depthwise));
}

double cpu_multiplications(const hlo_instr *i) {
  const dim_table *t = i->parent->module->dims;
  double n = emit_likely_elements(t, &i->shapes[0]);
  if (i->op == HLO_CONVOLUTION) {
    for (int d = 1; d < hlo_rank(i->operands[1]); d++) { /* computed weights may have symbolic dimensions, too */
      n *= emit_likely_size(t, hlo_shape(i->operands[1])->dims[d]);
    }
    return n;
  }
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT); k++) {
    n *= emit_likely_size(t, hlo_shape(i->operands[0])->dims[hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[k]]);
  }
  return n;
}
