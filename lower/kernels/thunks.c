/* thunks.c - see thunks.h. */
#include "lower/kernels/thunks.h"

#include <string.h>

#include "hlo/analysis/in_place_update.h"
#include "lower/kernels/special.h"

/* --- views --- */

/* Returns true if only dimensions of one element move, so that the memory stays the same. */
static bool is_trivial_transpose(const hlo_instr *i) {
  const shape *s = hlo_shape(i->operands[0]);
  int64_t last = -1;
  for (int d = 0; d < s->rank; d++) {
    int64_t from = hlo_ints(i, HLO_ATTR_PERMUTATION)[d];
    if (s->dims[from] != 1) {
      if (from < last) {
        return false;
      }
      last = from;
    }
  }
  return true;
}

static dim elements(const hlo_instr *i, const shape *s) {
  return shape_dim_product(i->parent->module->dims, s, 0, s->rank);
}

bool lower_is_view(const hlo_instr *i) {
  switch (i->op) {
    case HLO_RESHAPE: return true;
    case HLO_BITCAST: return hlo_is_bitcast_view(i);
    case HLO_BROADCAST: /* a view if it only adds dimensions of one element */
      return hlo_shape(i->operands[0])->kind == SHAPE_ARRAY &&
             elements(i, &i->shapes[0]) == elements(i, hlo_shape(i->operands[0]));
    case HLO_TRANSPOSE: return is_trivial_transpose(i);
    default: return false;
  }
}

/* Returns true if no result has an element, so that no thunk is needed. */
static bool is_empty(const hlo_instr *i) {
  bool empty = true;
  for (uint32_t k = 0; k < i->n_results; k++) {
    empty = empty && shape_is_empty(&i->shapes[k]);
  }
  return empty;
}

/* --- copies --- */

bool lower_is_concat_of_many(const hlo_instr *i) {
  enum { MANY = 64 };
  return i->op == HLO_CONCAT && i->n_operands > MANY && shape_is_static(&i->shapes[0]);
}

bool lower_same_buffer(const rt_buffer *a, const rt_buffer *b) {
  return a->space == b->space && a->index == b->index && a->offset == b->offset;
}

void lower_copy_buffer(lower_context *c, const hlo_instr *i, rt_buffer from, rt_buffer to) {
  rt_thunk *copy = lower_bare_thunk(c, "copy", i);
  lower_add_buffer(c, copy, from);
  copy->n_inputs = 1;
  lower_add_buffer(c, copy, to);
}

/* Lowers a concatenation of static shapes to one copy for each operand. */
static void concat_by_copies(lower_context *c, const hlo_instr *i) {
  rt_buffer result = lower_buffer(c, hlo_result((hlo_instr *)i, 0));
  int64_t dimension = hlo_int(i, HLO_ATTR_DIMENSION);
  size_t step = (size_t)result.strides[dimension] * dtype_bytes((dtype)result.type);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    const shape *s = hlo_shape(i->operands[k]);
    rt_buffer place = result;
    place.extents = arena_memdup(lower_arena(c), s->dims, s->rank * sizeof *s->dims);
    if (shape_elements(s)) {
      lower_copy_buffer(c, i, lower_buffer(c, i->operands[k]), place);
    }
    result.offset += (int64_t)((size_t)s->dims[dimension] * step);
  }
}

status lower_without_kernel(lower_context *c, const hlo_instr *i, const char *target, bool *done) {
  *done = true;
  if (is_empty(i)) {
    return NULL;
  }
  switch (i->op) {
    case HLO_EMPTY: return NULL;
    case HLO_COPY:
      lower_copy_buffer(c, i, lower_buffer(c, i->operands[0]), lower_buffer(c, hlo_result((hlo_instr *)i, 0)));
      return NULL;
    case HLO_CUSTOM_CALL:
    case HLO_COMPOSITE:
      return status_error(STATUS_UNSUPPORTED, "the %s target does not know %s '%s'", target, hlo_info(i)->name,
                          hlo_attr_of(i, HLO_ATTR_NAME)->s);
    default: break;
  }
  if (lower_is_concat_of_many(i)) {
    concat_by_copies(c, i);
    return NULL;
  }
  *done = i->op == HLO_IOTA && lower_only_positions(i);
  return NULL;
}

/* --- kernels --- */

void lower_bring_base(lower_context *c, const hlo_instr *i) {
  hlo_in_place_update place;
  if (hlo_in_place_update_of(i, &place)) {
    rt_buffer base = lower_buffer(c, i->operands[place.base]), result = lower_buffer(c, hlo_result((hlo_instr *)i, 0));
    if (!lower_same_buffer(&base, &result)) {
      lower_copy_buffer(c, i, base, result);
    }
  }
}

rt_thunk *lower_kernel_thunk_replacing(lower_context *c, const lower_kernels *k, const hlo_instr *i, uint32_t operand,
                                       rt_buffer b) {
  rt_thunk *t = lower_thunk_replacing(c, lower_kernels_kind(k), i, operand, b);
  hlo_in_place_update place;
  if (hlo_in_place_update_of(i, &place)) {
    t->buffers[place.base] = t->buffers[i->n_operands];
  }
  return t;
}

rt_thunk *lower_kernel_thunk(lower_context *c, const lower_kernels *k, const hlo_instr *i) {
  return lower_kernel_thunk_replacing(c, k, i, UINT32_MAX, (rt_buffer){0});
}

/* Returns for each result the operand that shares its buffer, or -1. */
static const int32_t *aliases(arena *a, const hlo_instr *i, const rt_thunk *t) {
  int32_t *alias = ARENA_NEW_N(a, int32_t, i->n_results + 1);
  hlo_in_place_update place;
  if (hlo_in_place_update_of(i, &place)) {
    alias[0] = (int32_t)place.base;
    return alias;
  }
  for (uint32_t r = 0; r < i->n_results; r++) {
    alias[r] = -1;
    for (uint32_t k = 0; k < i->n_operands && alias[r] < 0; k++) {
      alias[r] = lower_same_buffer(&t->buffers[k], &t->buffers[i->n_operands + r]) ? (int32_t)k : -1;
    }
  }
  return alias;
}

status lower_add_kernel(lower_context *c, lower_kernels *k, rt_thunk *t, const hlo_instr *i,
                        const lower_kernel_writer *writer, const lower_kernel_call *call) {
  return lower_kernels_add(k, i, aliases(lower_arena(c), i, t), writer, call, &t->config);
}

static status attach_sequence(rt_sequence *s, size_table *sizes, const lower_kernels *kernels) {
  for (uint32_t k = 0; k < s->n; k++) {
    rt_thunk *t = &s->thunks[k];
    if (strcmp(t->kind, lower_kernels_kind(kernels)) == 0) {
      TRY(lower_kernels_attach(kernels, sizes, t));
    }
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      TRY(attach_sequence(&t->bodies[b], sizes, kernels));
    }
  }
  return NULL;
}

status lower_kernels_attach_program(size_table *sizes, const lower_kernels *kernels, const lower_object_code *code) {
  rt_program *p = sizes->program;
  p->n_code = code->n;
  p->code = code->objects;
  p->code_names = code->names;
  TRY(attach_sequence(&p->body, sizes, kernels));
  return size_table_finish(sizes);
}
