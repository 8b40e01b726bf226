/* sequence.c - the sequence operators, which rearrange lists of HLO values during the import (sequence.h). */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/scope.h"
#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"

#define INVALID STATUS_INVALID_MODEL

static status check_length(int64_t n) {
  CHECK_THAT(n <= ONNX_SEQUENCE_MAX, STATUS_RESOURCE, "a sequence of %" PRId64 " tensors; at most %d are supported", n,
             ONNX_SEQUENCE_MAX);
  return NULL;
}

/* --- making --- */

status onnx_import_sequence_empty(onnx_node *n) {
  dtype type;
  TRY(onnx_dtype_attr(n, "dtype", DTYPE_F32, &type));
  n->out[0] = onnx_sequence_make(n->arena, type, 0, NULL);
  return NULL;
}

status onnx_import_sequence_construct(onnx_node *n) {
  TRY(check_length(n->n_in));
  for (uint32_t k = 0; k < n->n_in; k++) {
    CHECK_THAT(onnx_has_in(n, k), INVALID, "input %" PRIu32 " is missing", k);
  }
  n->out[0] = onnx_sequence_make(n->arena, hlo_type(n->in[0]), n->n_in, n->in);
  return NULL;
}

/* --- positions --- */

/* Reads input k, or `def` if it is absent, as a position in a sequence of `length` elements.  If `end` is set, the
 * position may be `length` itself. */
static status read_position(const onnx_node *n, uint32_t k, int64_t length, bool end, int64_t def, int64_t *out) {
  int64_t position = def;
  if (onnx_has_in(n, k)) {
    TRY(onnx_const_int(n, k, "position", &position));
  }
  return onnx_sequence_position(position, length, end, out);
}

status onnx_import_sequence_at(onnx_node *n) {
  int64_t at;
  TRY(read_position(n, 1, onnx_sequence_length(n->in[0]), false, 0, &at));
  n->out[0] = onnx_sequence_elements(n->in[0])[at];
  return NULL;
}

status onnx_import_sequence_length(onnx_node *n) {
  n->out[0] = hlo_scalar_int(n->b, DTYPE_S64, onnx_sequence_length(n->in[0]));
  return NULL;
}

status onnx_import_sequence_erase(onnx_node *n) {
  uint32_t length = onnx_sequence_length(n->in[0]);
  const hlo_value *old = onnx_sequence_elements(n->in[0]);
  int64_t at;
  TRY(read_position(n, 1, length, false, -1, &at));
  hlo_value *left = ARENA_NEW_N(n->arena, hlo_value, length);
  for (uint32_t k = 0; k + 1 < length; k++) {
    left[k] = old[k < at ? k : k + 1];
  }
  n->out[0] = onnx_sequence_make(n->arena, hlo_type(n->in[0]), length - 1, left);
  return NULL;
}

status onnx_import_sequence_insert(onnx_node *n) {
  uint32_t length = onnx_sequence_length(n->in[0]);
  const hlo_value *old = onnx_sequence_elements(n->in[0]);
  int64_t at;
  CHECK_THAT(hlo_type(n->in[0]) == hlo_type(n->in[1]), INVALID, "tensor is %s, but the sequence is %s",
             SHAPE_STR(onnx_dims(n), hlo_shape(n->in[1])), SHAPE_STR(onnx_dims(n), hlo_shape(n->in[0])));
  TRY(check_length((int64_t)length + 1));
  TRY(read_position(n, 2, length, true, length, &at));
  hlo_value *all = ARENA_NEW_N(n->arena, hlo_value, length + 1);
  for (uint32_t k = 0; k <= length; k++) {
    all[k] = k < at ? old[k] : k == at ? n->in[1] : old[k - 1];
  }
  n->out[0] = onnx_sequence_make(n->arena, hlo_type(n->in[0]), length + 1, all);
  return NULL;
}

/* --- SplitToSequence --- */

/* The extents of the n parts along the axis: either they are listed, or each part has the extent `each`, but the last
 * one may be smaller. */
typedef struct parts {
  int64_t n, each, extent; /* `extent` is the extent of the axis, and is not set if the parts are listed */
  const dim *listed;       /* NULL if all parts have the extent `each` */
} parts;

static status list_parts(const onnx_node *n, dim extent, parts *out) {
  dim_table *t = onnx_dims(n);
  dim sum = 0;
  TRY(onnx_const_dims(n, 1, "split", &out->listed, &out->n));
  for (int64_t k = 0; k < out->n; k++) {
    CHECK_THAT(dim_at_most(t, 0, out->listed[k]), INVALID, "split[%" PRId64 "] is %s", k,
               dim_print(n->arena, t, out->listed[k]));
    sum = dim_add(t, sum, out->listed[k]);
  }
  CHECK_THAT(sum != DIM_OVERFLOW && dim_equal(t, sum, extent), INVALID, "the sum of split is %s instead of %s",
             dim_print(n->arena, t, sum), dim_print(n->arena, t, extent));
  return NULL;
}

/* Reads the input `split` and computes the number of parts.  If the parts have equal extents, their number must be a
 * constant, and therefore the extent of the axis must be a constant, too. */
static status count_parts(const onnx_node *n, dim extent, parts *out) {
  *out = (parts){.each = 1};
  if (onnx_has_in(n, 1) && hlo_rank(n->in[1]) > 0) {
    TRY(list_parts(n, extent, out));
  } else {
    if (onnx_has_in(n, 1)) {
      TRY(onnx_const_int(n, 1, "split", &out->each));
    }
    CHECK_THAT(out->each >= 1, INVALID, "split is %" PRId64 "; parts have at least one element", out->each);
    TRY(onnx_const_dim(n, extent, "the extent of the axis", &out->extent));
    out->n = out->extent / out->each + (out->extent % out->each != 0);
  }
  return check_length(out->n);
}

status onnx_import_split_to_sequence(onnx_node *n) {
  const shape *s = onnx_in_shape(n, 0);
  int64_t axis;
  dim start = 0;
  bool keep;
  parts p;
  TRY(onnx_axis_attr(n, 0, s->rank, &axis));
  TRY(onnx_attr_bool(n->proto, "keepdims", true, &keep));
  TRY(count_parts(n, s->dims[axis], &p));
  keep |= onnx_has_in(n, 1); /* the standard ignores keepdims if `split` is given */
  hlo_value *elements = ARENA_NEW_N(n->arena, hlo_value, (size_t)p.n);
  for (int64_t k = 0; k < p.n && !n->b->error; k++) {
    int64_t left = p.extent - k * p.each;
    dim size = p.listed ? p.listed[k] : p.each < left ? p.each : left, end = dim_add(onnx_dims(n), start, size);
    elements[k] = keep ? hlo_slice_dim(n->b, n->in[0], axis, start, end) : onnx_pick(n->b, n->in[0], axis, start);
    start = end;
  }
  n->out[0] = onnx_sequence_make(n->arena, hlo_type(n->in[0]), (uint32_t)p.n, elements);
  return NULL;
}

/* --- ConcatFromSequence --- */

static status check_stackable(const onnx_node *n) {
  const hlo_value *elements = onnx_sequence_elements(n->in[0]);
  for (uint32_t k = 1; k < onnx_sequence_length(n->in[0]); k++) {
    CHECK_THAT(onnx_shapes_equal(n, hlo_shape(elements[k]), hlo_shape(elements[0])), INVALID,
               "tensor %" PRIu32 " of the sequence is %s, but tensor 0 is %s; with new_axis they must be alike", k,
               SHAPE_STR(onnx_dims(n), hlo_shape(elements[k])), SHAPE_STR(onnx_dims(n), hlo_shape(elements[0])));
  }
  CHECK_THAT(hlo_rank(elements[0]) < SHAPE_MAX_RANK, STATUS_UNSUPPORTED,
             "tensors of rank %d get a new axis; at most %d are supported", hlo_rank(elements[0]), SHAPE_MAX_RANK);
  return NULL;
}

status onnx_import_concat_from_sequence(onnx_node *n) {
  uint32_t length = onnx_sequence_length(n->in[0]);
  const hlo_value *elements = onnx_sequence_elements(n->in[0]);
  int64_t axis;
  bool stack;
  CHECK_THAT(length > 0, INVALID, "input_sequence is empty: what is concatenated has no shape");
  TRY(onnx_attr_required(n->proto, "axis"));
  TRY(onnx_attr_bool(n->proto, "new_axis", false, &stack));
  TRY(onnx_axis_attr(n, 0, hlo_rank(elements[0]) + (stack ? 1 : 0), &axis));
  hlo_value *all = arena_memdup(n->arena, elements, length * sizeof *all);
  if (stack) {
    TRY(check_stackable(n));
    for (uint32_t k = 0; k < length; k++) {
      all[k] = onnx_insert_dim(n->b, elements[k], axis);
    }
  }
  n->out[0] = hlo_concatenate(n->b, length, all, axis);
  return NULL;
}

/* --- SequenceMap --- */

/* The largest number of iterations of all SequenceMap nodes together.  Their bodies are unrolled, and the
 * numbers of iterations of nested nodes multiply. */
enum { MAX_STEPS = 1 << 16 };

/* Returns the number of iterations of a SequenceMap, which is the length of the input sequences; they must
 * have equal lengths. */
static status check_lengths(const onnx_node *n, uint32_t *steps) {
  *steps = onnx_sequence_length(n->in[0]);
  for (uint32_t k = 1; k < n->n_in; k++) {
    CHECK_THAT(onnx_has_in(n, k), INVALID, "input %" PRIu32 " is missing", k);
    CHECK_THAT(!onnx_is_sequence(n->in[k]) || onnx_sequence_length(n->in[k]) == *steps, INVALID,
               "input %" PRIu32 " is a sequence of %" PRIu32 " tensors, but input 0 is one of %" PRIu32, k,
               onnx_sequence_length(n->in[k]), *steps);
  }
  onnx_importer *im = n->scope->importer;
  CHECK_THAT(*steps <= MAX_STEPS - im->n_written_out, STATUS_RESOURCE, "bodies of SequenceMap run more than %d times",
             MAX_STEPS);
  im->n_written_out += *steps;
  return NULL;
}

/* Returns the element type of output k: that of its elements, or the declared type if the sequence is empty. */
static status element_type(const onnx_node *n, uint32_t k, uint32_t steps, const hlo_value *elements, dtype *out) {
  const Onnx__GraphProto *g;
  shape s;
  if (steps) {
    *out = hlo_type(elements[0]);
  } else {
    TRY(onnx_attr_graph(n->proto, "body", &g));
    TRY(onnx_value_shape(dim_table_create(n->arena), g->output[k], &s));
    *out = (dtype)s.type;
  }
  for (uint32_t i = 0; i < steps; i++) {
    const shape *e = hlo_shape(elements[i]);
    CHECK_THAT(e->kind == SHAPE_ARRAY && e->type == *out, INVALID,
               "body, step %" PRIu32 ": output %" PRIu32 " is %s; a tensor of %s is needed", i, k,
               SHAPE_STR(onnx_dims(n), e), dtype_name(*out));
  }
  return NULL;
}

static status map_step(onnx_node *n, uint32_t step, hlo_value *inputs, hlo_value *roots) {
  for (uint32_t k = 0; k < n->n_in; k++) {
    inputs[k] = onnx_is_sequence(n->in[k]) ? onnx_sequence_elements(n->in[k])[step] : n->in[k];
  }
  hlo_value number = hlo_scalar_int(n->b, DTYPE_S64, step);
  TRY(onnx_import_inline(n, "body", n->n_in, inputs, number, n->n_out, roots));
  TRY(hlo_builder_take_error(n->b));
  for (uint32_t k = 0; k < n->n_out; k++) {
    CHECK_THAT(!onnx_require_sizes(n->scope->importer, roots[k]), STATUS_UNSUPPORTED,
               "the size of output %" PRIu32 " depends on data", k);
  }
  return NULL;
}

status onnx_import_sequence_map(onnx_node *n) {
  uint32_t steps;
  TRY(check_lengths(n, &steps));
  hlo_value *inputs = ARENA_NEW_N(n->arena, hlo_value, n->n_in), *roots = ARENA_NEW_N(n->arena, hlo_value, n->n_out);
  hlo_value *elements = ARENA_NEW_N(n->arena, hlo_value, (size_t)n->n_out * steps + 1);
  for (uint32_t i = 0; i < steps; i++) {
    TRY(budget_check(arena_budget(n->arena)));
    TRY(status_prefix(map_step(n, i, inputs, roots), "body, step %" PRIu32, i));
    for (uint32_t k = 0; k < n->n_out; k++) {
      elements[(size_t)k * steps + i] = roots[k];
    }
  }
  for (uint32_t k = 0; k < n->n_out; k++) {
    dtype type;
    const hlo_value *own = elements + (size_t)k * steps;
    TRY(element_type(n, k, steps, own, &type));
    n->out[k] = onnx_sequence_make(n->arena, type, steps, own);
  }
  return NULL;
}
