/* kernel.c - kernel functions: their beginning and end, the loops over results, and the choice of the kind of kernel.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit/llvm/function.h"
#include "emit/math/math.h"
#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"
#include "emit/kernel/module.h"
#include "emit/llvm/metadata.h"
#include "emit/element/loop_plan.h"
#include "emit/kernel/special.h"
#include "emit/kernel/writer.h"

/* Makes two alias scopes: inputs and results, which never overlap.  Accesses to an input that shares a buffer with a
 * result have no scope. */
static void make_scopes(emit_element *e, const char *name) {
  const emit_ir *w = e->w;
  LLVMMetadataRef domain[] = {LLVMMDStringInContext2(w->context, name, strlen(name))};
  LLVMMetadataRef d = LLVMMDNodeInContext2(w->context, domain, 1);
  static const char *const names[] = {"inputs", "results"};
  LLVMValueRef *scopes[] = {&e->scope_inputs, &e->scope_results};
  for (int k = 0; k < 2; k++) {
    LLVMMetadataRef parts[] = {LLVMMDStringInContext2(w->context, names[k], strlen(names[k])), d, domain[0]};
    LLVMMetadataRef scope = LLVMMDNodeInContext2(w->context, parts, 3);
    *scopes[k] = emit_metadata_node(w, &scope, 1);
  }
  e->invariant = emit_metadata_node(w, NULL, 0);
}

/* --- the function and its buffers --- */

static bool is_shared(const emit_writer *w, int32_t operand) {
  for (uint32_t k = 0; k < w->n_results; k++) {
    if (w->alias[k] == operand) {
      return true;
    }
  }
  return false;
}

static const emit_execution_ops *execution_of(const emit_target *t) {
  static const emit_execution_ops *const rows[] = {[EMIT_RANGES] = &emit_ranges, [EMIT_BLOCKS] = &emit_blocks};
  return rows[t->execution];
}

static void begin_function(emit_writer *w, const char *name) {
  emit_ir *ir = w->e.w;
  ir->function = LLVMAddFunction(ir->module, name, w->execution->type(ir));
  emit_mark_function(ir);
  emit_mark_parameters(ir);
  LLVMPositionBuilderAtEnd(ir->builder, emit_block(ir, "entry"));
  make_scopes(&w->e, name);
}

static void bind_buffers(emit_writer *w, emit_input *inputs) {
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    inputs[k].shared = is_shared(w, (int32_t)k);
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    w->shared[k] = w->alias[k] >= 0;
  }
  emit_bind_parameters(w, inputs);
  w->execution->bind(w);
}

void emit_nest(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data) {
  w->execution->nest(w, rank, extents, lanes, serial, body, data);
}

/* Returns the vector width for the largest element type among the kernel's inputs and results. */
static int writer_lanes(const emit_writer *w) {
  int lanes = w->e.w->target->lanes;
  size_t largest = 1;
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    size_t bytes = dtype_bytes(hlo_type(w->e.inputs[k].value));
    largest = bytes > largest ? bytes : largest;
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    size_t bytes = dtype_bytes(hlo_type(w->roots[k]));
    largest = bytes > largest ? bytes : largest;
  }
  if (lanes == 1 || largest == 4) {
    return lanes;
  }
  return largest >= 8 ? (lanes > 4 ? lanes / 2 : lanes) : lanes * 2;
}

LLVMValueRef emit_row_memory(const emit_ir *w, dtype t, int64_t elements) {
  LLVMBasicBlockRef here = emit_here(w);
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(w->function);
  LLVMPositionBuilder(w->builder, entry, LLVMGetFirstInstruction(entry));
  LLVMValueRef n = emit_i64(w, dtype_is_complex(t) ? 2 * elements : elements);
  LLVMValueRef memory = LLVMBuildArrayAlloca(w->builder, emit_memory_type(w, t), n, "row");
  LLVMSetAlignment(memory, 64);
  LLVMPositionBuilderAtEnd(w->builder, here);
  emit_add_text_attribute(w, "probe-stack", "inline-asm");
  return memory;
}

LLVMValueRef emit_first_of_part(const emit_writer *w, LLVMValueRef part, dim parts, dim n) {
  const emit_ir *ir = w->e.w;
  LLVMValueRef lines = LLVMBuildNSWMul(ir->builder, part, emit_size(&w->e.x, n), "");
  return LLVMBuildUDiv(ir->builder, lines, emit_size(&w->e.x, parts), "");
}

/* --- results by loops over their elements --- */

emit_pos emit_result_pos(const emit_writer *w, const emit_index *at) {
  const emit_indexer *x = &w->e.x;
  const hlo_in_place_update *p = w->place;
  if (!p) {
    return emit_index_linear(x, at);
  }
  dim *dims = ARENA_NEW_N(w->e.w->arena, dim, 2);
  dims[0] = p->rows;
  dims[1] = p->run;
  const emit_index *run = emit_index_reshape(x, at, 2, dims);
  emit_pos row = emit_pos_scale(x, emit_index_dim(x, run, 0), p->pitch);
  return emit_pos_add(x, row, emit_pos_add_const(x, emit_index_dim(x, run, 1), p->first));
}

/* If a result shares the buffer of an operand, and the threads of a block or of a warp compute an element together and
 * one of them stores it, makes them wait until all have read the old contents of the buffer.  The threads of a warp
 * wait for each other where they exchange values. */
static void await_readers(emit_writer *w) {
  bool shared = false;
  for (uint32_t k = 0; k < w->n_results; k++) {
    shared = shared || w->shared[k];
  }
  if (shared && w->stores && w->uniform == EMIT_UNIFORM_BLOCK) {
    emit_barrier(w);
  } else if (shared && w->stores && w->uniform == EMIT_UNIFORM_WARP) {
    (void)emit_lane_xor(w, LLVMConstNull(w->e.w->i32), 1);
  }
}

/* All values are computed before any is stored, since a result may overwrite an operand. */
void emit_store_roots(emit_writer *w, const emit_index *at) {
  emit_element *e = &w->e;
  emit_pair *values = ARENA_NEW_N(e->w->arena, emit_pair, w->n_results);
  for (uint32_t k = 0; k < w->n_results; k++) {
    const shape *s = hlo_shape(w->roots[k]);
    values[k] = emit_value(e, w->roots[k], emit_index_reshape(&e->x, at, s->rank, s->dims));
  }
  emit_pos linear = emit_result_pos(w, at);
  await_readers(w);
  LLVMBasicBlockRef after = w->stores ? emit_if_begin(e->w, w->stores) : NULL;
  for (uint32_t k = 0; k < w->n_results; k++) {
    emit_store(e, w->results[k], hlo_type(w->roots[k]), linear, values[k], w->shared[k]);
  }
  if (after) {
    emit_if_end(e->w, after);
  }
}

uint32_t emit_writer_operand_number(const emit_writer *w, hlo_value v) {
  while (v.def->op == HLO_RESHAPE && w->e.body) {
    v = v.def->operands[0];
  }
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    if (hlo_value_equal(w->e.inputs[k].value, v)) {
      return k;
    }
  }
  assert(!"an operand of the contraction is not one of the kernel");
  return 0;
}

bool emit_is_light(const hlo_instr *i) {
  enum { MANY = 8 };
  uint32_t n = 0;
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j; j = j->next) {
    bool free = j->op == HLO_PARAMETER || j->op == HLO_CONSTANT || j->op == HLO_BROADCAST || j->op == HLO_RESHAPE;
    n += emit_is_math(j->op) ? MANY : !free && j->op != HLO_DYNAMIC_UPDATE_SLICE;
  }
  return n < MANY;
}

static void store_roots(emit_writer *w, const void *data, const emit_index *at) {
  (void)data;
  emit_store_roots(w, at);
}

/* For elements that take math, merges the innermost loop with the one around it if it is shorter than any vector: lanes
 * that are computed from scattered positions cost less than math on single elements.  Returns the number of loops. */
static int merge_short_loop(const emit_writer *w, int rank, dim *extents) {
  dim inner = extents[rank - 1];
  if (rank == 1 || !dim_is_const(inner) || inner == 1 || emit_choose_lanes(inner, w->e.wide) > 1) {
    return rank;
  }
  extents[rank - 2] = dim_mul(w->e.x.sizes->table, extents[rank - 2], inner);
  return rank - 1;
}

static void write_loops(emit_writer *w) {
  emit_dim_boundaries boundaries = {0};
  bool rows = false, math = false;
  int columns = 0;
  for (uint32_t k = 0; k < w->n_results; k++) {
    emit_dim_boundaries_of(&w->e, w->roots[k], &boundaries);
    columns = columns ? columns : emit_column_vectors(&w->e, w->roots[k]);
    rows = rows || emit_prefers_row_loop(&w->e, w->roots[k]);
    math = math || emit_takes_math(&w->e, w->roots[k]);
  }
  if (w->place && boundaries.n < EMIT_MAX_DIM_BOUNDARIES) {
    boundaries.at[boundaries.n++] = w->place->run;
  }
  const emit_indexer *x = &w->e.x;
  const shape *s = hlo_shape(w->roots[0]);
  dim *extents = ARENA_NEW_N(w->e.w->arena, dim, SHAPE_MAX_RANK + 1);
  dim total = emit_dims_product(x, s->dims, 0, s->rank);
  int rank = w->rows ? 1 + emit_loop_extents(x, &boundaries, total / w->rows, extents + 1)
                     : emit_loop_extents(x, &boundaries, total, extents);
  extents[0] = w->rows ? w->rows : extents[0];
  if (w->e.w->target->execution == EMIT_BLOCKS) {
    emit_nest(w, rank, extents, emit_block_lanes(w, rank, extents), false, store_roots, NULL);
    return;
  }
  rank = rows || columns || w->rows || !math ? rank : merge_short_loop(w, rank, extents);
  dim inner = extents[rank - 1], outer = emit_dims_product(x, extents, 0, rank - 1);
  w->split_points =
      rows || columns ? NULL : emit_split_points_of(&w->e, w->n_results, w->roots, inner, &w->n_split_points);
  bool pairs = math && !w->e.w->target->small;
  int lanes = rows                ? 1
              : columns           ? emit_lanes_of_vectors(&w->e, outer, inner, columns)
              : w->n_split_points ? w->e.wide
              : pairs             ? emit_lanes_of_vectors(&w->e, outer, inner, EMIT_MATH_VECTORS)
                                  : emit_choose_lanes(inner, w->e.wide);
  emit_nest(w, rank, extents, lanes, false, store_roots, NULL);
}

/* --- an instruction's kernel --- */

static double elements_of(const hlo_instr *i, const shape *s) {
  return emit_likely_elements(i->parent->module->dims, s);
}

static double cost_of(const hlo_instr *i) {
  double n = 0;
  for (uint32_t k = 0; k < i->n_results; k++) {
    n += elements_of(i, &i->shapes[k]);
  }
  switch (hlo_info(i)->kind) {
    case HLO_ELEMENTWISE: return n * (emit_is_math(i->op) ? 1 : 0.15);
    case HLO_MOVEMENT: return n * 0.2;
    case HLO_RANDOM: return n;
    case HLO_CONTRACTION: {
      double k =
          i->op == HLO_CONVOLUTION ? (double)shape_product(hlo_shape(i->operands[1]), 1, hlo_rank(i->operands[1])) : 1;
      for (uint32_t j = 0; i->op == HLO_DOT && j < hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT); j++) {
        dim d = hlo_shape(i->operands[0])->dims[hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[j]];
        k *= emit_likely_size(i->parent->module->dims, d);
      }
      return n * k * 0.2;
    }
    case HLO_WINDOW: {
      double k = 1;
      for (uint32_t j = 0; j < hlo_n_ints(i, HLO_ATTR_WINDOW); j++) {
        k *= (double)hlo_ints(i, HLO_ATTR_WINDOW)[j];
      }
      return n * k * 0.5;
    }
    case HLO_STRUCTURE: return i->op == HLO_PARAMETER ? n * 0.1 : 0;
    default: return (n + (i->n_operands ? elements_of(i, hlo_shape(i->operands[0])) : 0)) * 0.3;
  }
}

static double total_cost(const hlo_instr *i) {
  if (i->op != HLO_FUSION) {
    return cost_of(i);
  }
  double sum = 0;
  for (const hlo_instr *j = hlo_callee(i, 0)->first; j; j = j->next) {
    sum += cost_of(j);
  }
  return sum;
}

static bool is_small(const shape *s) { return shape_is_static(s) && shape_elements(s) < (int64_t)1 << 30; }

/* Returns true if all positions (offsets of elements in their arrays), also those a little outside of the arrays, fit
 * in an i32.  That is so if all shapes are static and the arrays have fewer than 2^30 elements. */
static bool fits_narrow(const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (!is_small(&i->shapes[k])) {
      return false;
    }
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!is_small(hlo_shape(i->operands[k]))) {
      return false;
    }
  }
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j; j = j->next) {
    if (!fits_narrow(j)) {
      return false;
    }
  }
  return true;
}

static void set_values(emit_writer *w, emit_input *inputs) {
  const hlo_instr *i = w->i;
  const hlo_computation *c = w->e.body;
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    inputs[k].value = c ? hlo_result(c->params[k], 0) : i->operands[k];
    inputs[k].sizes = i->operands[k].def->op == HLO_SIZES ? i->operands[k].def : NULL;
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    w->roots[k] = c ? c->roots[k] : hlo_result((hlo_instr *)i, k);
  }
}

/* Sets w->place if the instruction is an in-place update of an array that is already in the result's buffer, so that
 * only the changed part is written.  If buffers are not assigned yet (`assigned` is false), the whole array is written.
 */
static status set_place(emit_writer *w, bool assigned, emit_input *inputs) {
  hlo_in_place_update place;
  bool output = w->i->op == HLO_FUSION && hlo_int(w->i, HLO_ATTR_FUSION) == HLO_FUSION_OUTPUT;
  if (!assigned || !hlo_in_place_update_of(w->i, &place)) {
    return NULL;
  }
  if (w->alias[0] != (int32_t)place.base) {
    CHECK_THAT(!output, STATUS_INTERNAL, "a part of an array is to be written, which is not in the result's buffer");
    return NULL;
  }
  w->place = arena_memdup(w->e.w->arena, &place, sizeof place);
  w->cost -= cost_of(w->roots[0].def) - 0.2 * emit_likely_elements(w->e.x.sizes->table, hlo_shape(place.value));
  w->roots[0] = place.value;
  w->shared[0] = inputs[place.base].shared = false;
  return NULL;
}

status emit_writer_begin(emit_writer *w, emit_module *m, const char *name, const hlo_instr *i,
                         const emit_options *options, uint32_t n_more, emit_kernel_info *info) {
  const char *why = NULL;
  bool can = emit_is_special(i) ? emit_supports_special(i, &why) : emit_supports(i, &why);
  CHECK_THAT(can, STATUS_UNSUPPORTED, "%s: %s", hlo_info(i)->name, why);
  emit_ir *ir = emit_module_ir_of(m);
  arena *a = ir->arena;
  int32_t *none = ARENA_NEW_N(a, int32_t, i->n_results);
  memset(none, 0xff, i->n_results * sizeof *none);
  emit_input *inputs = ARENA_NEW_N(a, emit_input, i->n_operands);
  *info = (emit_kernel_info){.n_buffers = i->n_operands + i->n_results + n_more};
  *w = (emit_writer){.i = i, .n_results = i->n_results, .info = info, .cost = total_cost(i)};
  w->alias = options && options->alias ? options->alias : none;
  w->rows = options ? options->rows : 0;
  w->e = (emit_element){.w = ir, .n_inputs = i->n_operands, .inputs = inputs};
  w->e.body = i->op == HLO_FUSION ? hlo_callee(i, 0) : NULL;
  emit_sizes *sizes = ARENA_NEW(a, emit_sizes);
  sizes->table = i->parent->module->dims;
  w->e.x = (emit_indexer){ir, emit_table_create(a), 1, fits_narrow(i), sizes};
  w->roots = ARENA_NEW_N(a, hlo_value, w->n_results);
  w->results = ARENA_NEW_N(a, LLVMValueRef, w->n_results);
  w->shared = ARENA_NEW_N(a, bool, w->n_results);
  set_values(w, inputs);
  w->e.wide = writer_lanes(w);
  w->execution = execution_of(ir->target);
  begin_function(w, name);
  bind_buffers(w, inputs);
  return set_place(w, w->alias != none, inputs);
}

void emit_writer_end(emit_writer *w) {
  LLVMBuildRetVoid(w->e.w->builder);
  const emit_sizes *sizes = w->e.x.sizes;
  emit_kernel_info *info = w->info;
  info->n_sizes = sizes->n_dims;
  info->sizes = sizes->dims;
  info->n_args = info->n_args > info->n_sizes ? info->n_args : info->n_sizes;
  info->item_cost = info->grid ? w->cost / fmax(emit_likely_size(sizes->table, info->grid), 1) : 0;
  if (w->execution->end) {
    w->execution->end(w);
  }
}

/* --- further functions of a kernel --- */

void emit_writer_enter(emit_writer *w, const char *name, const char *parameters, emit_outer_function *outer) {
  emit_ir *ir = w->e.w;
  emit_indexer *x = &w->e.x;
  *outer = (emit_outer_function){*ir, emit_here(ir), x->table, *x->sizes, w->e.inputs, w->results};
  emit_input *inputs = arena_memdup(ir->arena, w->e.inputs, w->e.n_inputs * sizeof *inputs);
  w->e.inputs = inputs;
  w->results = ARENA_NEW_N(ir->arena, LLVMValueRef, w->n_results);
  ir->function = emit_add_internal_function(ir, name, emit_shared_type(ir, parameters));
  ir->watch = NULL;
  emit_mark_parameters(ir);
  LLVMPositionBuilderAtEnd(ir->builder, emit_block(ir, "entry"));
  x->table = emit_table_create(ir->arena);
  emit_bind_parameters(w, inputs);
  emit_reload_sizes(x, 0);
}

LLVMValueRef emit_writer_leave(emit_writer *w, const emit_outer_function *outer) {
  emit_ir *ir = w->e.w;
  emit_indexer *x = &w->e.x;
  LLVMValueRef f = ir->function;
  LLVMBuildRetVoid(ir->builder);
  *ir = outer->ir;
  LLVMPositionBuilderAtEnd(ir->builder, outer->here);
  x->table = outer->table;
  x->sizes->args = outer->sizes.args;
  x->sizes->values = outer->sizes.values;
  x->sizes->n_values = outer->sizes.n_values;
  x->sizes->cap_values = outer->sizes.cap_values;
  emit_reload_sizes(x, outer->sizes.n_values);
  w->e.buffers = LLVMGetParam(ir->function, EMIT_BUFFERS);
  w->e.inputs = outer->inputs;
  w->results = outer->results;
  return f;
}

static status check_function(const emit_writer *w) {
  CHECK_THAT(!w->e.x.sizes->overflow && w->info->grid != DIM_OVERFLOW, STATUS_UNSUPPORTED,
             "%s: a size has too many terms", hlo_info(w->i)->name);
  return w->execution->check ? w->execution->check(w) : NULL;
}

status emit_writer_check(const emit_writer *w) {
  status s = check_function(w);
  if (s) {
    LLVMDeleteFunction(w->e.w->function);
  }
  return s;
}

status emit_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                   emit_kernel_info *info) {
  emit_writer w;
  CHECK_THAT(!emit_is_special(i), STATUS_UNSUPPORTED, "%s: its kernels have writers of their own", hlo_info(i)->name);
  TRY(emit_writer_begin(&w, m, name, i, options, 0, info));
  if (!shape_is_empty(&i->shapes[0])) {
    if (emit_is_update(&w)) {
      emit_write_update(&w);
    } else if (emit_is_row_fusion(&w)) {
      emit_write_row_fusion(&w);
    } else if (emit_is_tiles(&w)) {
      emit_write_tiles(&w);
    } else if (emit_is_block_transpose(&w)) {
      emit_write_block_transpose(&w);
    } else if (emit_is_pooling(&w)) {
      emit_write_pooling(&w);
    } else if (emit_is_team_reduction(&w)) {
      emit_write_team_reduction(&w);
    } else {
      write_loops(&w);
    }
  }
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
