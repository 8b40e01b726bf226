/* scan.c - the importer of Scan, which becomes an HLO `while` over the elements of its scan inputs. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/scope.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/control/loop_internal.h"
#include "hlo/ir/fold_sizes.h"

/* Reads an attribute that lists `count` directions or axes; if it is absent, all are 0. */
static status read_scan_list(const onnx_node *n, const char *name, uint32_t count, int64_t *out) {
  const int64_t *values;
  size_t given;
  TRY(onnx_attr_ints(n->proto, name, &values, &given));
  CHECK_THAT(given == 0 || given == count, STATUS_INVALID_MODEL, "%s has %zu entries instead of %u", name, given,
             count);
  for (uint32_t k = 0; k < count; k++) {
    out[k] = given ? values[k] : 0;
  }
  return NULL;
}

static status read_scan_axes(const onnx_node *n, const char *axes, const char *directions, uint32_t count,
                             onnx_loop_axis *out) {
  int64_t *values = ARENA_NEW_N(n->arena, int64_t, 2 * (size_t)count + 1);
  if (axes) {
    TRY(read_scan_list(n, axes, count, values));
  }
  TRY(read_scan_list(n, directions, count, values + count));
  for (uint32_t k = 0; k < count; k++) {
    CHECK_THAT((values[count + k] | 1) == 1, STATUS_INVALID_MODEL, "%s[%u] is %" PRId64 "; it must be 0 or 1",
               directions, k, values[count + k]);
    out[k] = (onnx_loop_axis){values[k], values[count + k] != 0};
  }
  return NULL;
}

/* Computes how many of the node's inputs from number `first` on are states and how many are scan inputs, makes the
 * lists of *l, and checks the body's numbers of inputs and outputs. */
static status read_scan(onnx_node *n, uint32_t first, onnx_loop *l) {
  int64_t m;
  TRY(onnx_attr_required(n->proto, "num_scan_inputs"));
  TRY(onnx_attr_int(n->proto, "num_scan_inputs", 0, &m));
  CHECK_THAT(m >= 1 && m <= (int64_t)n->n_in - first, STATUS_INVALID_MODEL,
             "num_scan_inputs is %" PRId64 "; it must be within 1..%u", m, n->n_in - first);
  *l = (onnx_loop){.n = n, .is_scan = true, .n_in = (uint32_t)m, .n_states = n->n_in - first - (uint32_t)m};
  for (uint32_t k = first; k < n->n_in; k++) {
    CHECK_THAT(onnx_has_in(n, k), STATUS_INVALID_MODEL, "input %u is missing", k);
  }
  l->states = ARENA_NEW_N(n->arena, hlo_value, l->n_states + 1);
  l->scans = ARENA_NEW_N(n->arena, hlo_value, l->n_in + 1);
  l->in = ARENA_NEW_N(n->arena, onnx_loop_axis, l->n_in + 1);
  TRY(onnx_loop_check_arity(l));
  l->out = ARENA_NEW_N(n->arena, onnx_loop_axis, l->n_out + 1);
  return NULL;
}

/* Sets the number of iterations to the extent of the scan axes, which must be the same for all scan
 * inputs. */
static status count_steps(onnx_loop *l) {
  dim_table *t = onnx_dims(l->n);
  for (uint32_t k = 0; k < l->n_in; k++) {
    const shape *s = hlo_shape(l->scans[k]);
    TRY(status_prefix(onnx_axis(l->in[k].axis, s->rank, &l->in[k].axis), "scan input %u, %s", k, SHAPE_STR(t, s)));
    dim steps = s->dims[l->in[k].axis];
    CHECK_THAT(k == 0 || dim_equal(t, steps, l->trip), STATUS_INVALID_MODEL,
               "scan input %u has %s steps but input 0 has %s", k, dim_print(l->n->arena, t, steps),
               dim_print(l->n->arena, t, l->trip));
    l->trip = k == 0 ? steps : l->trip;
  }
  return NULL;
}

/* Returns the number of iterations for batch element i; it is within bounds even if these are not checked
 * (onnx_import_options.unchecked).  The standard does not define the elements of scan outputs for the remaining
 * iterations; here they are 0. */
static hlo_value length_of(const onnx_loop *l, dim i) {
  hlo_builder *b = l->n->b;
  hlo_value n = hlo_convert(b, onnx_pick(b, l->n->in[0], 0, i), DTYPE_S64);
  return hlo_clamp(b, hlo_scalar_int(b, DTYPE_S64, 0), n, hlo_sizes(b, DTYPE_S64, -1, &l->trip));
}

/* Adds scan input k, which holds the number of each iteration, counted from `first`.  Random operators in the
 * body use it; otherwise dead code elimination removes it. */
static void set_step_input(onnx_loop *l, uint32_t k, dim first) {
  hlo_builder *b = l->n->b;
  hlo_value numbers = hlo_iota(b, shape_make(DTYPE_S64, 1, &l->trip), 0);
  l->scans[k] = onnx_binary_dim(b, HLO_ADD, numbers, first);
  l->in[k] = (onnx_loop_axis){0};
  l->n_in = k + 1;
}

/* In version 8 the first dimension of every array is the batch, and scan inputs are scanned along dimension 1.  There
 * is a `while` for each batch element. */
static status import_scan_8(onnx_node *n, int64_t batch) {
  onnx_loop l;
  hlo_builder *b = n->b;
  TRY(read_scan(n, 1, &l));
  TRY(read_scan_axes(n, NULL, "directions", l.n_in, l.in));
  for (uint32_t k = 1; k < n->n_in; k++) {
    TRY(onnx_need_rank(n, k, "an input", k > l.n_states ? 2 : 1, SHAPE_MAX_RANK));
    CHECK_THAT(dim_equal(onnx_dims(n), onnx_in_shape(n, k)->dims[0], onnx_in_shape(n, 1)->dims[0]),
               STATUS_INVALID_MODEL, "input %u is %s but input 1 is %s; the batches differ", k,
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)), SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 1)));
  }
  TRY(onnx_need_dims(n, 0, "sequence_lens", 1, &batch));
  CHECK_THAT(batch >= 1 && batch <= ONNX_LOOP_MAX_UNROLLED, STATUS_UNSUPPORTED,
             "a batch of %" PRId64 "; 1..%d are supported", batch, ONNX_LOOP_MAX_UNROLLED);
  uint32_t n_results = l.n_states + l.n_out, n_scans = l.n_in;
  hlo_value *results = ARENA_NEW_N(n->arena, hlo_value, n_results + 1);
  hlo_value *parts = ARENA_NEW_N(n->arena, hlo_value, (size_t)batch * n_results + 1);
  for (dim i = 0; i < batch; i++) {
    for (uint32_t k = 0; k < l.n_states + n_scans; k++) {
      *(k < l.n_states ? &l.states[k] : &l.scans[k - l.n_states]) = onnx_pick(b, n->in[1 + k], 0, i);
    }
    if (i == 0) {
      TRY(count_steps(&l));
      TRY(onnx_has_in(n, 0) ? onnx_check_below(n, n->in[0], "sequence_lens", dim_add_const(onnx_dims(n), l.trip, 1))
                            : NULL);
    }
    set_step_input(&l, n_scans, dim_mul(onnx_dims(n), i, l.trip));
    if (i == 0) {
      TRY(onnx_loop_import_body(&l));
    }
    if (onnx_has_in(n, 0)) {
      l.length = length_of(&l, i);
    }
    TRY(onnx_loop_build_while(&l, results));
    for (uint32_t k = 0; k < n_results; k++) {
      parts[k * (size_t)batch + (size_t)i] = onnx_insert_dim(b, results[k], 0);
    }
  }
  for (uint32_t k = 0; k < n->n_out; k++) {
    n->out[k] = hlo_concatenate(b, (uint32_t)batch, parts + k * (size_t)batch, 0);
  }
  return NULL;
}

static status import_scan_9(onnx_node *n) {
  onnx_loop l;
  TRY(read_scan(n, 0, &l));
  TRY(read_scan_axes(n, "scan_input_axes", "scan_input_directions", l.n_in, l.in));
  TRY(read_scan_axes(n, "scan_output_axes", "scan_output_directions", l.n_out, l.out));
  onnx_copy_values(l.states, n->in, l.n_states);
  onnx_copy_values(l.scans, n->in + l.n_states, l.n_in);
  TRY(count_steps(&l));
  set_step_input(&l, l.n_in, 0);
  TRY(onnx_loop_import_body(&l));
  hlo_value *results = ARENA_NEW_N(n->arena, hlo_value, l.n_states + l.n_out + 1);
  TRY(onnx_loop_build_while(&l, results));
  onnx_copy_values(n->out, results, n->n_out);
  return NULL;
}

/* If the body cannot be imported for symbolic sizes, they are pinned.  If it cannot be imported for constant sizes
 * either, a node of version 9 or later is host-interpreted. */
status onnx_import_scan(onnx_node *n) {
  onnx_requirements before = n->scope->importer->requirements;
  int64_t batch = 0;
  if (n->since == 8) {
    CHECK_THAT(onnx_has_in(n, 1), STATUS_INVALID_MODEL, "input 1 is missing");
    TRY(onnx_need_rank(n, 1, "an input", 1, SHAPE_MAX_RANK));
    TRY(onnx_const_dim(n, onnx_in_shape(n, 1)->dims[0], "the batch", &batch));
  }
  status s = n->since == 8 ? import_scan_8(n, batch) : import_scan_9(n);
  if (s && status_get_code(s) == STATUS_UNSUPPORTED) {
    if (onnx_may_pin(n) && onnx_pin_inputs(n)) {
      n->scope->importer->requirements = before;
    } else if (n->since > 8) {
      onnx_require_interpreter(n);
    }
  }
  return s;
}
