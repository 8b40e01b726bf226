/* kernel.c - kernel functions: their frame, the loops over results, the kind of kernel for an instruction. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit/llvm/math.h"
#include "emit/kernel/module.h"
#include "emit/element/loop_plan.h"
#include "emit/kernel/writer.h"

/* --- attributes and metadata --- */

static void add_trait(const emit_ir *w, unsigned at, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  assert(kind);
  LLVMAddAttributeAtIndex(w->function, at, LLVMCreateEnumAttribute(w->context, kind, 0));
}

static void add_text(const emit_ir *w, const char *name, const char *value) {
  LLVMAttributeRef a =
      LLVMCreateStringAttribute(w->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(w->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

static LLVMValueRef node(const emit_ir *w, LLVMMetadataRef *parts, size_t n) {
  return LLVMMetadataAsValue(w->context, LLVMMDNodeInContext2(w->context, parts, n));
}

/* Inputs and results are two scopes that never overlap; what shares a buffer with a result is in neither. */
static void make_scopes(emit_element *e, const char *name) {
  const emit_ir *w = e->w;
  LLVMMetadataRef domain[] = {LLVMMDStringInContext2(w->context, name, strlen(name))};
  LLVMMetadataRef d = LLVMMDNodeInContext2(w->context, domain, 1);
  static const char *const names[] = {"inputs", "results"};
  LLVMValueRef *scopes[] = {&e->scope_inputs, &e->scope_results};
  for (int k = 0; k < 2; k++) {
    LLVMMetadataRef parts[] = {LLVMMDStringInContext2(w->context, names[k], strlen(names[k])), d, domain[0]};
    LLVMMetadataRef scope = LLVMMDNodeInContext2(w->context, parts, 3);
    *scopes[k] = node(w, &scope, 1);
  }
  e->invariant = node(w, NULL, 0);
}

static void set_number(const emit_ir *w, LLVMValueRef v, const char *kind, int64_t n) {
  LLVMMetadataRef m = LLVMValueAsMetadata(emit_i64(w, n));
  LLVMSetMetadata(v, LLVMGetMDKindIDInContext(w->context, kind, (unsigned)strlen(kind)), node(w, &m, 1));
}

/* Pointer number k of the table that a kernel on a CPU is given. */
static LLVMValueRef load_buffer(const emit_element *e, LLVMValueRef table, uint32_t k, const shape *s,
                                bool known_size) {
  const emit_ir *w = e->w;
  LLVMValueRef at = emit_i64(w, k), p = LLVMBuildInBoundsGEP2(w->builder, w->ptr, table, &at, 1, "");
  LLVMValueRef v = LLVMBuildLoad2(w->builder, w->ptr, p, "");
  LLVMSetAlignment(v, 8);
  LLVMSetMetadata(v, LLVMGetMDKindIDInContext(w->context, "invariant.load", 14), e->invariant);
  set_number(w, v, "align", 64);
  if (shape_bytes(s)) {
    LLVMSetMetadata(v, LLVMGetMDKindIDInContext(w->context, "nonnull", 7), e->invariant);
    if (known_size) {
      set_number(w, v, "dereferenceable", shape_bytes(s));
    }
  }
  return v;
}

/* --- the frame --- */

static bool is_shared(const emit_writer *w, int32_t operand) {
  for (uint32_t k = 0; k < w->n_results; k++) {
    if (w->alias[k] == operand) {
      return true;
    }
  }
  return false;
}

static void begin_function(emit_writer *w, const char *name) {
  emit_ir *ir = w->e.w;
  bool gpu = ir->target->gpu;
  uint32_t n = w->info->n_buffers;
  LLVMTypeRef *types = ARENA_NEW_N(ir->arena, LLVMTypeRef, n + 4);
  for (uint32_t k = 0; k < (gpu ? n : 2); k++) {
    types[k] = ir->ptr;
  }
  types[gpu ? n : 2] = types[gpu ? n + 1 : 3] = ir->i64;
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, gpu ? n : 4, false);
  ir->function = LLVMAddFunction(ir->module, name, type);
  add_trait(ir, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
  add_text(ir, "no-builtins", "true");
  if (ir->target->vector_bits) {
    char bits[16];
    snprintf(bits, sizeof bits, "%d", ir->target->vector_bits);
    add_text(ir, "prefer-vector-width", bits);
  }
  for (unsigned k = 1; k <= (gpu ? n : 2); k++) {
    add_trait(ir, k, "nocapture");
    if (!gpu) {
      add_trait(ir, k, "noalias");
      add_trait(ir, k, "readonly");
    }
  }
  LLVMPositionBuilderAtEnd(ir->builder, emit_block(ir, "entry"));
  make_scopes(&w->e, name);
}

static void bind_buffers(emit_writer *w, emit_input *inputs) {
  emit_ir *ir = w->e.w;
  bool gpu = ir->target->gpu;
  LLVMValueRef table = LLVMGetParam(ir->function, 0);
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    const shape *s = hlo_shape(inputs[k].value);
    inputs[k].base = gpu ? LLVMGetParam(ir->function, k) : load_buffer(&w->e, table, k, s, !w->rows);
    inputs[k].shared = is_shared(w, (int32_t)k);
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    uint32_t number = w->e.n_inputs + k;
    w->results[k] =
        gpu ? LLVMGetParam(ir->function, number) : load_buffer(&w->e, table, number, &w->i->shapes[k], !w->rows);
    w->shared[k] = w->alias[k] >= 0;
  }
  ir->watch = NULL;
  if (!gpu) {
    LLVMValueRef at = emit_i64(ir, w->info->n_buffers);
    ir->watch =
        LLVMBuildLoad2(ir->builder, ir->ptr, LLVMBuildInBoundsGEP2(ir->builder, ir->ptr, table, &at, 1, ""), "");
    w->begin = LLVMGetParam(ir->function, 2);
    w->end = LLVMGetParam(ir->function, 3);
  }
}

LLVMValueRef emit_row_memory(const emit_ir *w, dtype t, int64_t elements) {
  LLVMBasicBlockRef here = emit_here(w);
  LLVMPositionBuilderBefore(w->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(w->function)));
  LLVMTypeRef type = LLVMArrayType2(emit_memory_type(w, t), (uint64_t)(dtype_is_complex(t) ? 2 * elements : elements));
  LLVMValueRef memory = LLVMBuildAlloca(w->builder, type, "row");
  LLVMSetAlignment(memory, 64);
  LLVMPositionBuilderAtEnd(w->builder, here);
  add_text(w, "probe-stack", "inline-asm");
  return memory;
}

/* Marks the function as one that the host launches. */
static void mark_gpu_entry(const emit_ir *ir) {
  enum { PTX_KERNEL = 71 };
  LLVMSetFunctionCallConv(ir->function, PTX_KERNEL);
  LLVMMetadataRef parts[] = {LLVMValueAsMetadata(ir->function), LLVMMDStringInContext2(ir->context, "kernel", 6),
                             LLVMValueAsMetadata(LLVMConstInt(ir->i32, 1, false))};
  LLVMAddNamedMetadataOperand(ir->module, "nvvm.annotations", node(ir, parts, 3));
}

/* --- results by loops over their elements --- */

emit_pos emit_result_pos(const emit_writer *w, const emit_index *at) {
  const emit_indexer *x = &w->e.x;
  const hlo_in_place_update *p = w->place;
  if (!p) {
    return emit_index_linear(x, at);
  }
  int64_t *dims = ARENA_NEW_N(w->e.w->arena, int64_t, 2);
  dims[0] = p->rows;
  dims[1] = p->run;
  const emit_index *run = emit_index_reshape(x, at, 2, dims);
  emit_pos row = emit_pos_scale(x, emit_index_dim(x, run, 0), p->pitch);
  return emit_pos_add(x, row, emit_pos_add_const(x, emit_index_dim(x, run, 1), p->first));
}

/* All values before any store: a result may lie over an operand. */
void emit_store_roots(emit_writer *w, const emit_index *at) {
  emit_element *e = &w->e;
  emit_pair *values = ARENA_NEW_N(e->w->arena, emit_pair, w->n_results);
  for (uint32_t k = 0; k < w->n_results; k++) {
    const shape *s = hlo_shape(w->roots[k]);
    values[k] = emit_value(e, w->roots[k], emit_index_reshape(&e->x, at, s->rank, s->dims));
  }
  emit_pos linear = emit_result_pos(w, at);
  for (uint32_t k = 0; k < w->n_results; k++) {
    emit_store(e, w->results[k], hlo_type(w->roots[k]), linear, values[k], w->shared[k]);
  }
}

LLVMValueRef emit_writer_operand(const emit_writer *w, hlo_value v) {
  while (v.def->op == HLO_RESHAPE && w->e.body) {
    v = v.def->operands[0];
  }
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    if (hlo_value_equal(w->e.inputs[k].value, v)) {
      return w->e.inputs[k].base;
    }
  }
  assert(!"an operand of the contraction is not one of the kernel");
  return NULL;
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

static void write_loops(emit_writer *w) {
  emit_dim_boundaries cuts = {0};
  bool rows = false, columns = false;
  for (uint32_t k = 0; k < w->n_results; k++) {
    emit_dim_boundaries_of(&w->e, w->roots[k], &cuts);
    columns = columns || emit_sums_columns(&w->e, w->roots[k]);
    rows = rows || emit_prefers_row_loop(&w->e, w->roots[k]);
  }
  if (w->place && cuts.n < EMIT_MAX_DIM_BOUNDARIES) {
    cuts.at[cuts.n++] = w->place->run;
  }
  int64_t *extents = ARENA_NEW_N(w->e.w->arena, int64_t, SHAPE_MAX_RANK + 1),
          total = shape_elements(hlo_shape(w->roots[0]));
  int rank =
      w->rows ? 1 + emit_loop_extents(&cuts, total / w->rows, extents + 1) : emit_loop_extents(&cuts, total, extents);
  extents[0] = w->rows ? w->rows : extents[0];
  int64_t inner = extents[rank - 1], outer = total / inner;
  w->split_points =
      rows || columns ? NULL : emit_split_points_of(&w->e, w->n_results, w->roots, inner, &w->n_split_points);
  int lanes = rows                ? 1
              : columns           ? emit_column_lanes(outer, inner, w->e.wide)
              : w->n_split_points ? w->e.wide
                                  : emit_choose_lanes(inner, w->e.wide);
  emit_nest(w, rank, extents, lanes, false, store_roots, NULL);
}

/* --- an instruction's kernel --- */

static double cost_of(const hlo_instr *i) {
  double n = 0;
  for (uint32_t k = 0; k < i->n_results; k++) {
    n += (double)shape_elements(&i->shapes[k]);
  }
  switch (hlo_info(i)->kind) {
    case HLO_ELEMENTWISE: return n * (emit_is_math(i->op) ? 1 : 0.15);
    case HLO_MOVEMENT: return n * 0.2;
    case HLO_RANDOM: return n;
    case HLO_CONTRACTION: {
      double k =
          i->op == HLO_CONVOLUTION ? (double)shape_product(hlo_shape(i->operands[1]), 1, hlo_rank(i->operands[1])) : 1;
      for (uint32_t j = 0; i->op == HLO_DOT && j < hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT); j++) {
        k *= (double)hlo_shape(i->operands[0])->dims[hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[j]];
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
    default: return (n + (i->n_operands ? (double)shape_elements(hlo_shape(i->operands[0])) : 0)) * 0.3;
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

/* Positions inside of arrays of fewer than 2^30 elements fit an i32, also a little outside. */
static bool fits_narrow(const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (shape_elements(&i->shapes[k]) >= (int64_t)1 << 30) {
      return false;
    }
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (shape_elements(hlo_shape(i->operands[k])) >= (int64_t)1 << 30) {
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
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    w->roots[k] = c ? c->roots[k] : hlo_result((hlo_instr *)i, k);
  }
}

/* A part of what lies in the result's buffer: nothing else of it is read or written. */
static status set_place(emit_writer *w, emit_input *inputs) {
  hlo_in_place_update place;
  bool output = w->i->op == HLO_FUSION && hlo_int(w->i, HLO_ATTR_FUSION) == HLO_FUSION_OUTPUT;
  if (w->e.w->target->gpu || !hlo_in_place_update_of(w->i, &place)) {
    return NULL;
  }
  if (w->alias[0] != (int32_t)place.base) {
    CHECK_THAT(!output, STATUS_INTERNAL, "a part of an array is to be written, which is not in the result's buffer");
    return NULL;
  }
  w->place = arena_memdup(w->e.w->arena, &place, sizeof place);
  w->cost -= cost_of(w->roots[0].def) - 0.2 * (double)shape_elements(hlo_shape(place.value));
  w->roots[0] = place.value;
  w->shared[0] = inputs[place.base].shared = false;
  return NULL;
}

static status check_target(const emit_target *t, const hlo_instr *i) {
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : i; j; j = i == j ? NULL : j->next) {
    bool f64 = j->n_operands && hlo_type(j->operands[0]) == DTYPE_F64;
    bool remainder = t->gpu && j->op == HLO_REM && dtype_is_float(hlo_type(j->operands[0]));
    CHECK_THAT(emit_math_supported(t, j->op, f64) && !remainder, STATUS_UNSUPPORTED, "%s of %s needs a library on %s",
               hlo_info(j)->name, dtype_name(hlo_type(j->operands[0])), t->triple);
    bool serial = j->op == HLO_SCATTER || j->op == HLO_CUMULATIVE;
    CHECK_THAT(!(t->gpu && serial), STATUS_UNSUPPORTED, "%s is not written for %s", hlo_info(j)->name, t->triple);
  }
  return NULL;
}

status emit_writer_begin(emit_writer *w, emit_module *m, const char *name, const hlo_instr *i,
                         const emit_options *options, uint32_t n_more, emit_kernel_info *info) {
  const char *why = NULL;
  CHECK_THAT(emit_supports(i, &why), STATUS_UNSUPPORTED, "%s: %s", hlo_info(i)->name, why);
  emit_ir *ir = emit_module_ir_of(m);
  TRY(check_target(ir->target, i));
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
  w->e.x = (emit_indexer){ir, emit_table_create(a), 1, fits_narrow(i)};
  w->roots = ARENA_NEW_N(a, hlo_value, w->n_results);
  w->results = ARENA_NEW_N(a, LLVMValueRef, w->n_results);
  w->shared = ARENA_NEW_N(a, bool, w->n_results);
  set_values(w, inputs);
  w->e.wide = ir->target->gpu ? 1 : emit_writer_lanes(w);
  begin_function(w, name);
  bind_buffers(w, inputs);
  return set_place(w, inputs);
}

void emit_writer_end(emit_writer *w) {
  LLVMBuildRetVoid(w->e.w->builder);
  if (w->e.w->target->gpu) {
    mark_gpu_entry(w->e.w);
  }
  w->info->item_cost = w->info->grid ? w->cost / (double)w->info->grid : 0;
}

LLVMValueRef emit_writer_buffer(const emit_writer *w, uint32_t k) {
  static const shape any = {.type = DTYPE_U8, .rank = 1};
  return load_buffer(&w->e, LLVMGetParam(w->e.w->function, 0), k, &any, true);
}

LLVMValueRef emit_writer_arg(const emit_writer *w, uint32_t k) {
  const emit_ir *ir = w->e.w;
  LLVMValueRef at = emit_i64(ir, k), table = LLVMGetParam(ir->function, 1);
  LLVMValueRef v =
      LLVMBuildLoad2(ir->builder, ir->i64, LLVMBuildInBoundsGEP2(ir->builder, ir->i64, table, &at, 1, ""), "");
  LLVMSetAlignment(v, 8);
  LLVMSetMetadata(v, LLVMGetMDKindIDInContext(ir->context, "invariant.load", 14), w->e.invariant);
  return v;
}

status emit_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                   emit_kernel_info *info) {
  emit_writer w;
  TRY(emit_writer_begin(&w, m, name, i, options, 0, info));
  if (shape_elements(&i->shapes[0])) {
    if (emit_is_update(&w)) {
      emit_write_update(&w);
    } else if (emit_is_row_fusion(&w)) {
      emit_write_row_fusion(&w);
    } else if (emit_is_tiles(&w)) {
      emit_write_tiles(&w);
    } else if (emit_is_pooling(&w)) {
      emit_write_pooling(&w);
    } else {
      write_loops(&w);
    }
  }
  emit_writer_end(&w);
  return NULL;
}
