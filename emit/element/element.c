/* element.c - the walk from a value down to its inputs; see element.h. */
#include "emit/element/element.h"

#include <assert.h>

#include "base/arith.h"
#include "emit/element/elementwise.h"
#include "emit/math/math.h"
#include "hlo/analysis/queries.h"

static emit_op_fn *const emitters[HLO_OP_COUNT] = {
    [HLO_SIZES] = emit_sizes_list,
    [HLO_COPY] = emit_copy,
    [HLO_IOTA] = emit_iota,
    [HLO_BROADCAST] = emit_broadcast,
    [HLO_RESHAPE] = emit_reshape,
    [HLO_TRANSPOSE] = emit_transpose,
    [HLO_REVERSE] = emit_reverse,
    [HLO_SLICE] = emit_slice,
    [HLO_PAD] = emit_pad,
    [HLO_CONCAT] = emit_concatenate,
    [HLO_DYNAMIC_SLICE] = emit_dynamic_slice,
    [HLO_GATHER] = emit_gather,
    [HLO_DYNAMIC_UPDATE_SLICE] = emit_dynamic_update_slice,
    [HLO_RNG] = emit_rng,
    [HLO_REDUCE] = emit_reduce,
    [HLO_ARG_REDUCE] = emit_arg_reduce,
    [HLO_REDUCE_WINDOW] = emit_reduce_window,
    [HLO_ARG_REDUCE_WINDOW] = emit_arg_reduce_window,
    [HLO_DOT] = emit_dot,
    [HLO_CONVOLUTION] = emit_convolution,
};

emit_op_fn *emit_op_emitter(hlo_op op) { return emitters[op]; }

emit_pair emit_splat_pair(const emit_element *e, emit_pair v) {
  if (e->x.lanes == 1) {
    return v;
  }
  return (emit_pair){emit_splat(e->w, v.v, e->x.lanes), v.im ? emit_splat(e->w, v.im, e->x.lanes) : NULL};
}

emit_pair emit_select_pair(const emit_element *e, LLVMValueRef c, emit_pair x, emit_pair y) {
  return (emit_pair){emit_select(e->w, c, x.v, y.v), x.im ? emit_select(e->w, c, x.im, y.im) : NULL};
}

const emit_input *emit_find_input(const emit_element *e, hlo_value v) {
  for (uint32_t k = 0; k < e->n_inputs; k++) {
    if (hlo_value_equal(e->inputs[k].value, v)) {
      return &e->inputs[k];
    }
  }
  return NULL;
}

/* --- constants --- */

static LLVMValueRef constant_array(emit_element *e, const literal *l) {
  uintptr_t key[5] = {5, (uintptr_t)l, 0, 0, 0};
  const emit_pair *found = emit_table_find(e->x.table, key);
  if (found) {
    return found->v;
  }
  dtype t = (dtype)l->shape.type;
  bool pair = dtype_is_complex(t);
  int64_t n = shape_elements(&l->shape);
  LLVMValueRef *elements = ARENA_NEW_N(e->w->arena, LLVMValueRef, (size_t)n * 2);
  int64_t m = 0;
  for (int64_t k = 0; k < n; k++) {
    emit_pair v = emit_number_at(e->w, t, (const char *)l->data + (size_t)k * dtype_bytes(t));
    elements[m++] = t == DTYPE_PRED ? LLVMConstInt(e->w->i8, LLVMConstIntGetZExtValue(v.v), false) : v.v;
    if (pair) {
      elements[m++] = v.im;
    }
  }
  LLVMTypeRef type = emit_memory_type(e->w, t);
  LLVMValueRef g = LLVMAddGlobal(e->w->module, LLVMArrayType2(type, (uint64_t)m), "constant");
  LLVMSetInitializer(g, LLVMConstArray2(type, elements, (uint64_t)m));
  LLVMSetGlobalConstant(g, true);
  LLVMSetLinkage(g, LLVMInternalLinkage);
  LLVMSetAlignment(g, 64);
  emit_table_put(e->x.table, key, (emit_pair){g, NULL});
  return g;
}

static emit_pair constant(emit_element *e, const literal *l, emit_pos at) {
  if (literal_is_splat(l)) {
    return emit_splat_pair(e, emit_number_at(e->w, (dtype)l->shape.type, l->data));
  }
  return emit_load(e, constant_array(e, l), (dtype)l->shape.type, at, false, true);
}

/* --- the walk from a value to the inputs --- */

static bool is_number(hlo_value v, double number) {
  const literal *l = hlo_literal(v);
  return l && literal_is_splat(l) && dtype_load_f64((dtype)l->shape.type, l->data) == number;
}

/* Returns the value that the instruction i should read in place of its operand v.  If i converts v to an integer of at
 * most 16 bits, and v is a clamp of a float to exactly the range of the integer type, this is the operand of the clamp,
 * since the conversion clamps as well.  Otherwise it is v. */
static hlo_value unclamped(const hlo_instr *i, hlo_value v) {
  dtype to = (dtype)i->shapes[0].type;
  const hlo_instr *x = v.def;
  if (i->op != HLO_CONVERT || x->op != HLO_CLAMP || !dtype_is_float(hlo_type(v)) || !dtype_is_int(to) ||
      dtype_get_info(to)->bits > 16) {
    return v;
  }
  int digits = (int)dtype_get_info(to)->bits - dtype_is_signed(to);
  double most = (double)(((int64_t)1 << digits) - 1), least = dtype_is_signed(to) ? -most - 1 : 0;
  return is_number(x->operands[0], least) && is_number(x->operands[2], most) ? x->operands[1] : v;
}

/* Returns which operand of a product in f32 is a logistic function that nothing else uses.  Product and logistic are
 * then computed together, which is faster (emit_times_logistic).  Returns -1 if there is no such operand, and in
 * row-wise fusions. */
static int gate_of(const emit_element *e, const hlo_instr *i) {
  if (i->op != HLO_MUL || i->shapes[0].type != DTYPE_F32 || e->rows) {
    return -1;
  }
  for (int k = 1; k >= 0; k--) {
    hlo_value v = i->operands[k];
    if (v.def->op == HLO_LOGISTIC && hlo_used_once(v) && !emit_find_input(e, v)) {
      return k;
    }
  }
  return -1;
}

static bool number_of(hlo_value v, double *number) {
  literal l;
  bool known = hlo_splat_of(v, &l);
  *number = known ? literal_f64(&l, 0) : 0;
  return known;
}

/* Returns true if `clamp` is clamp(0, y, high). */
static bool is_gate(const hlo_instr *clamp, double high) {
  double low, most;
  return clamp->op == HLO_CLAMP && number_of(clamp->operands[0], &low) && low == 0 &&
         number_of(clamp->operands[2], &most) && most == high;
}

/* Returns true for x * clamp(0, y, c) / c in f32, which is how exporters write hard-swish.  The division is then
 * replaced by a multiplication by *inverse = 1/c, which is faster; the result differs by at most one ULP. */
static bool divides_gate(const hlo_instr *i, double *inverse) {
  const hlo_instr *x = i->operands[0].def;
  double by;
  if (i->op != HLO_DIV || i->shapes[0].type != DTYPE_F32 || x->op != HLO_MUL || !number_of(i->operands[1], &by) ||
      !(by >= EMIT_LEAST_DIVISOR && by <= EMIT_MOST_DIVISOR)) {
    return false;
  }
  *inverse = (double)(float)(1 / by);
  return is_gate(x->operands[0].def, by) || is_gate(x->operands[1].def, by);
}

static emit_pair elementwise(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_pair args[3], r;
  if (i->op == HLO_CONVERT && emit_quantize(e, (dtype)i->shapes[0].type, unclamped(i, i->operands[0]), at, &r)) {
    return r;
  }
  double inverse;
  int gate = gate_of(e, i);
  if (gate >= 0) {
    LLVMValueRef x = emit_value(e, i->operands[1 - gate], at).v;
    return (emit_pair){emit_times_logistic(e->w, x, emit_value(e, i->operands[gate].def->operands[0], at).v), NULL};
  }
  assert(i->n_operands <= 3);
  for (uint32_t k = 0; k < i->n_operands;
       k++) { /* scalar operands are the bounds of clamp and the condition of select */
    bool scalar = hlo_rank(i->operands[k]) == 0 && at->rank > 0;
    args[k] = emit_value(e, unclamped(i, i->operands[k]), scalar ? emit_index_new(&e->x, 0, NULL) : at);
  }
  if (divides_gate(i, &inverse)) {
    return (emit_pair){LLVMBuildFMul(e->w->builder, args[0].v, emit_f(args[0].v, inverse), ""), NULL};
  }
  return emit_elementwise(e->w, i, args);
}

/* Returns true if the operands of i are computed without a branch, so that threads that compute i together also compute
 * them together. */
static bool keeps_together(const hlo_instr *i) {
  return hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_COPY || i->op == HLO_RESHAPE || i->op == HLO_BROADCAST ||
         i->op == HLO_TRANSPOSE || i->op == HLO_REDUCE || i->op == HLO_ARG_REDUCE || i->op == HLO_DOT;
}

static emit_pair compute(emit_element *e, hlo_value v, const emit_index *i, emit_pos at) {
  const emit_input *in = emit_find_input(e, v);
  const literal *l = hlo_literal(v);
  if (l && (!in || literal_is_splat(l))) {
    return constant(e, l, at);
  }
  if (in && in->sizes) {
    return emit_sizes_list(e, in->sizes, i);
  }
  if (in) {
    return emit_load(e, in->base, hlo_type(v), at, in->shared, false);
  }
  emit_pair known;
  if (e->rows && emit_row_value(e->rows, v, i, &known)) {
    return known;
  }
  emit_op_fn *f = emitters[v.def->op];
  emit_team *team = e->team;
  e->team = keeps_together(v.def) ? team : NULL;
  emit_pair r = f ? f(e, v.def, i) : elementwise(e, v.def, i);
  e->team = team;
  return r;
}

/* Returns index i, which is the same in all lanes, as an index for one lane. */
static const emit_index *uniform_index(emit_element *e, const emit_index *i) {
  emit_index *u = emit_index_new(&e->x, i->rank, i->dims);
  for (int k = 0; k < i->rank; k++) {
    emit_pos p = emit_index_dim(&e->x, i, k);
    assert(p.step == 0);
    emit_axis_at(u, k, p);
  }
  return u;
}

typedef struct value_key {
  uintptr_t key[5];
} value_key;

static value_key key_of(const emit_element *e, hlo_value v, emit_pos at) {
  return (value_key){{16 + v.index, (uintptr_t)v.def, (uintptr_t)e->x.lanes, (uintptr_t)at.base, (uintptr_t)at.step}};
}

void emit_element_set(emit_element *e, hlo_value v, const emit_index *i, emit_pair value) {
  value_key k = key_of(e, v, emit_index_linear(&e->x, i));
  emit_table_put(e->x.table, k.key, value);
}

emit_pair emit_value(emit_element *e, hlo_value v, const emit_index *i) {
  emit_pos at = emit_index_linear(&e->x, i);
  value_key k = key_of(e, v, at);
  const emit_pair *found = emit_table_find(e->x.table, k.key);
  if (found) {
    return *found;
  }
  emit_pair r;
  int lanes = e->x.lanes;
  if (lanes > 1 && at.step == 0) { /* the element is the same in all lanes, so it is computed once as a scalar */
    const emit_index *u = uniform_index(e, i);
    e->x.lanes = 1;
    r = emit_value(e, v, u);
    e->x.lanes = lanes;
    r = emit_splat_pair(e, r);
  } else {
    r = compute(e, v, i, at);
  }
  emit_table_put(e->x.table, k.key, r);
  return r;
}

static int64_t start_at(const literal *l, int64_t k, int64_t limit) {
  dtype t = (dtype)l->shape.type;
  int64_t n = dtype_load_i64(t, (const char *)l->data + (size_t)k * dtype_bytes(t));
  n = n < 0 && !dtype_is_signed(t) ? limit : n; /* dtype_load_i64 returns a u64 above INT64_MAX as a negative number */
  return n < 0 ? 0 : n > limit ? limit : n;
}

/* Returns true if the elements of the constant l at the positions `at` have evenly spaced values, and sets *start to
 * these values, clamped to [0, limit]. */
static bool known_start(const emit_element *e, const literal *l, emit_pos at, int64_t limit, emit_pos *start) {
  if (!l || !emit_pos_inside(at, 0, shape_elements(&l->shape))) {
    return false;
  }
  int64_t first = start_at(l, at.least, limit), step = 0;
  for (int64_t k = at.least + 1; k < at.past; k++) {
    int64_t n = start_at(l, k, limit) - start_at(l, k - 1, limit);
    step = k == at.least + 1 ? n : step;
    if (n != step) {
      return false;
    }
  }
  *start = emit_pos_add_const(&e->x, emit_pos_scale(&e->x, emit_pos_add_const(&e->x, at, -at.least), step), first);
  return true;
}

emit_pos emit_start(emit_element *e, hlo_value v, const emit_index *i, dim limit) {
  emit_pos known;
  if (dim_is_const(limit) && known_start(e, hlo_literal(v), emit_index_linear(&e->x, i), limit, &known)) {
    return known;
  }
  bool uniform = e->x.lanes == 1 || emit_index_linear(&e->x, i).step == 0;
  int lanes = e->x.lanes;
  const emit_index *at = uniform && lanes > 1 ? uniform_index(e, i) : i;
  e->x.lanes = uniform ? 1 : lanes;
  LLVMValueRef n = emit_value(e, v, at).v;
  n = LLVMBuildIntCast2(e->w->builder, n, emit_type_like(n, e->w->i64), dtype_is_signed(hlo_type(v)), "");
  LLVMValueRef most = emit_size_like(&e->x, n, limit);
  n = emit_intrinsic2(e->w, "llvm.smax", emit_intrinsic2(e->w, "llvm.smin", n, most), emit_i(n, 0));
  e->x.lanes = lanes;
  return uniform ? emit_pos_at(n, 1) : emit_pos_scattered(&e->x, n);
}
