/* interpreter.c - runs host-interpreted If, Loop, Scan and calls of functions: each body has a frame
 * (frontend/import/frame.h) of its own and runs segment by segment. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "frontend/model/attributes.h"
#include "frontend/model/functions.h"
#include "frontend/import/import.h"
#include "frontend/import/importer.h"
#include "frontend/import/sequence.h"
#include "plugin/compiler/interpreter_internal.h"
#include "plugin/compiler/segments.h"

status interpreter_input(const interpreted_node *n, size_t k, host_array **out) {
  CHECK_THAT(k < n->node->n_input && *n->node->input[k], STATUS_INVALID_MODEL, "input %zu is missing", k);
  return interpreter_find(n->run, n->outer, n->node->input[k], out);
}

bool interpreter_has_input(const interpreted_node *n, size_t k) {
  return k < n->node->n_input && *n->node->input[k] && !onnx_frame_leaves_out(n->outer, n->node->input[k]);
}

status interpreter_scalar(const host_array *a, const char *what, int64_t *out) {
  const shape *s = host_array_shape(a);
  CHECK_THAT(
      s->kind == SHAPE_ARRAY && shape_elements(s) == 1 && (s->type == DTYPE_PRED || dtype_is_int((dtype)s->type)),
      STATUS_INVALID_MODEL, "%s is %s; one element is needed", what, SHAPE_STR(NULL, s));
  *out = literal_i64(&a->base.value, 0);
  return NULL;
}

/* --- bodies --- */

status interpreter_find_body(const interpreted_node *n, const char *attribute, int which, interpreter_body *out) {
  *out = (interpreter_body){.n = n, .which = which};
  TRY(onnx_attr_graph(n->node, attribute, &out->graph));
  return interpreter_site_below(n->run, n->site, n->number, which, &out->site);
}

/* Defines ONNX_FRAME_STEP, from which random operators derive their seeds, in the body's frame: a hash of the
 * number of the loop's iteration and of ONNX_FRAME_STEP of the frame around it, so that each iteration of a
 * nested loop has its own value. */
static status define_step(const interpreter_body *b, onnx_frame *f, int64_t step) {
  onnx_array *outer;
  literal *none;
  host_array *a;
  if (step < 0) {
    return NULL;
  }
  TRY(onnx_frame_find(b->n->outer, f->arena, ONNX_FRAME_STEP, &outer, &none));
  uint64_t around = outer ? (uint64_t)literal_i64(&outer->value, 0) : 0;
  literal number = literal_scalar_i64(f->arena, DTYPE_U64, (int64_t)hash_mix(around, (uint64_t)step + 1));
  TRY(host_array_copy(b->n->run, &number, &a));
  *str_map_put(&f->arrays, ONNX_FRAME_STEP) = a;
  return NULL;
}

status interpreter_run_body(const interpreter_body *b, size_t n_inputs, host_array *const *inputs, int64_t step,
                            host_array **outputs) {
  const onnx_frame *outer = b->n->outer;
  CHECK_THAT(b->graph->n_input == n_inputs, STATUS_INVALID_MODEL, "the body has %zu inputs instead of %zu",
             b->graph->n_input, n_inputs);
  onnx_frame *f = interpreter_frame(b->n->run, outer, b->graph, outer->function, outer->call);
  f->place = hash_mix(outer->place, hash_mix(b->n->number, (uint64_t)b->which));
  f->depth = outer->depth + 1;
  for (size_t k = 0; k < n_inputs; k++) {
    interpreter_define(f, b->graph->input[k]->name, inputs[k]);
  }
  TRY(define_step(b, f, step));
  TRY(interpreter_run_frame(b->n->run, b->site, f, outputs));
  interpreter_frame_end(b->n->run, f);
  return NULL;
}

status interpreter_define_outputs(const interpreted_node *n, size_t count, host_array *const *values) {
  CHECK_THAT(n->node->n_output <= count, STATUS_INVALID_MODEL, "the node has %zu outputs but %zu are given",
             n->node->n_output, count);
  for (size_t k = 0; k < count; k++) {
    interpreter_define(n->outer, k < n->node->n_output ? n->node->output[k] : "", values[k]);
  }
  return NULL;
}

status interpreter_declared_shape(const interpreter_body *b, size_t output, shape *out) {
  const Onnx__ValueInfoProto *v = b->graph->output[output];
  dim_table *dims = dim_table_create(b->n->outer->arena);
  CHECK_THAT(v->type, STATUS_INVALID_MODEL, "no step was made, and the body's output '%s' has no type", v->name);
  TRY(onnx_value_shape(dims, v, out));
  for (int d = 0; d < out->rank; d++) {
    out->dims[d] = dim_is_const(out->dims[d]) ? out->dims[d] : 0;
  }
  return NULL;
}

/* --- If --- */

status interpret_if(const interpreted_node *n) {
  host_array *cond;
  int64_t taken;
  interpreter_body b;
  TRY(interpreter_input(n, 0, &cond));
  TRY(interpreter_scalar(cond, "cond", &taken));
  host_array_release(cond);
  TRY(interpreter_find_body(n, taken ? "then_branch" : "else_branch", taken ? 0 : 1, &b));
  host_array **outputs = ARENA_NEW_N(n->outer->arena, host_array *, b.graph->n_output + 1);
  TRY(interpreter_run_body(&b, 0, NULL, -1, outputs));
  return interpreter_define_outputs(n, b.graph->n_output, outputs);
}

/* --- calls --- */

/* Defines ONNX_FRAME_STEP of the caller's frame in the frame of a function, which sees no other value from
 * outside. */
static status inherit_step(const onnx_frame *outer, onnx_frame *f) {
  onnx_array *step;
  literal *none;
  TRY(onnx_frame_find(outer, f->arena, ONNX_FRAME_STEP, &step, &none));
  if (step) {
    *str_map_put(&f->arrays, ONNX_FRAME_STEP) = host_array_retain((host_array *)step);
  }
  return NULL;
}

static status run_call(const interpreted_node *n, const onnx_function *callee) {
  const Onnx__FunctionProto *proto = callee->proto;
  interpreter_site *site;
  TRY(interpreter_site_below(n->run, n->site, n->number, 0, &site));
  onnx_frame *f = interpreter_frame(n->run, NULL, NULL, callee, n->node);
  f->place = hash_mix(n->outer->place, n->number);
  f->depth = n->outer->depth + 1;
  TRY(inherit_step(n->outer, f));
  for (size_t k = 0; k < proto->n_input && k < n->node->n_input; k++) {
    host_array *a;
    if (interpreter_has_input(n, k)) {
      TRY(interpreter_input(n, k, &a));
      interpreter_define(f, proto->input[k], a);
    }
  }
  host_array **outputs = ARENA_NEW_N(n->outer->arena, host_array *, n->node->n_output + 1);
  TRY(interpreter_run_frame(n->run, site, f, outputs));
  interpreter_frame_end(n->run, f);
  return interpreter_define_outputs(n, n->node->n_output, outputs);
}

/* --- Loop and Scan --- */

/* The elements of a scan output that the iterations so far have computed.  They are stacked along `axis`, in
 * reverse order if `backward`. */
typedef struct elements {
  uint32_t n, cap;
  host_array **items;
  int64_t axis;
  bool backward;
} elements;

typedef struct loop {
  const interpreted_node *n;
  interpreter_body body;
  size_t first_input, first_output; /* the index of the first state among the body's inputs, and among its outputs */
  size_t n_states, n_scans;         /* the number of states, and of scan outputs */
  host_array **inputs, **outputs;   /* of the body, in the current iteration */
  shape *states;                    /* the shapes of the states before the first iteration */
  elements *scans;
} loop;

/* The elements of an array at one index along `axis` are an array of shape `s`, without that dimension.  Sets how they
 * are copied: as *outer blocks of *inner bytes each. */
static void extents(const shape *s, int64_t axis, int64_t *outer, size_t *inner) {
  *outer = 1;
  *inner = dtype_bytes((dtype)s->type);
  for (int d = 0; d < s->rank; d++) {
    if (d < axis) {
      *outer *= s->dims[d];
    } else {
      *inner *= (size_t)s->dims[d];
    }
  }
}

/* Stacks the elements of scan output k to one array with a new dimension, and releases them. */
static status stack(const loop *l, size_t k, host_array **out) {
  elements *e = &l->scans[k];
  shape one, all;
  int64_t axis, outer;
  size_t inner;
  if (e->n) {
    one = *host_array_shape(e->items[0]);
  } else {
    TRY(interpreter_declared_shape(&l->body, l->first_output + l->n_states + k, &one));
  }
  CHECK_THAT(one.kind != SHAPE_UNRANKED, STATUS_UNSUPPORTED,
             "no step was made, and the rank of scan output %zu is unknown", k);
  CHECK_THAT(one.kind == SHAPE_ARRAY, STATUS_INVALID_MODEL, "scan output %zu is %s; a tensor is needed", k,
             SHAPE_STR(NULL, &one));
  CHECK_THAT(one.rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "scan output %zu of rank %d", k, one.rank);
  TRY(onnx_axis(e->axis, one.rank + 1, &axis));
  all = one;
  memmove(all.dims + axis + 1, all.dims + axis, (size_t)(one.rank - axis) * sizeof *all.dims);
  all.dims[axis] = e->n;
  all.rank++;
  TRY(shape_check(&all, "a scan output"));
  TRY(host_array_new(l->n->run, &all, out));
  extents(&one, axis, &outer, &inner);
  for (uint32_t i = 0; i < e->n; i++) {
    const shape *s = host_array_shape(e->items[i]);
    CHECK_THAT(shape_equal(s, &one), STATUS_INVALID_MODEL, "scan output %zu is %s in step %" PRIu32 " but %s in step 0",
               k, SHAPE_STR(NULL, s), i, SHAPE_STR(NULL, &one));
    size_t at = e->backward ? e->n - 1 - i : i;
    for (int64_t o = 0; o < outer; o++) {
      memcpy((char *)host_array_data(*out) + ((size_t)o * e->n + at) * inner,
             (char *)host_array_data(e->items[i]) + (size_t)o * inner, inner);
    }
    host_array_release(e->items[i]);
  }
  return NULL;
}

/* Makes an array of the elements at `index` along the axis, without that dimension. */
static status pick(interpreter_run *run, const host_array *a, int64_t axis, int64_t index, host_array **out) {
  shape s = *host_array_shape(a);
  int64_t outer, count = s.dims[axis];
  size_t inner;
  memmove(s.dims + axis, s.dims + axis + 1, (size_t)(s.rank - axis - 1) * sizeof *s.dims);
  s.dims[--s.rank] = 0;
  TRY(host_array_new(run, &s, out));
  extents(&s, axis, &outer, &inner);
  for (int64_t o = 0; o < outer; o++) {
    memcpy((char *)host_array_data(*out) + (size_t)o * inner,
           (char *)host_array_data(a) + (size_t)(o * count + index) * inner, inner);
  }
  return NULL;
}

/* Sets the fields of `l` from the number of the body's inputs and outputs, and reads the first values of the states,
 * which are the node's inputs from number `first` on. */
static status open_loop(loop *l, const interpreted_node *n, bool is_scan, size_t n_states, size_t first) {
  *l = (loop){.n = n, .first_input = is_scan ? 0 : 2, .first_output = is_scan ? 0 : 1, .n_states = n_states};
  TRY(interpreter_find_body(n, "body", 0, &l->body));
  const Onnx__GraphProto *g = l->body.graph;
  arena *a = n->outer->arena;
  CHECK_THAT(g->n_output >= l->first_output + n_states, STATUS_INVALID_MODEL,
             "body has %zu outputs; at least %zu are needed", g->n_output, l->first_output + n_states);
  CHECK_THAT(g->n_input >= l->first_input + n_states, STATUS_INVALID_MODEL,
             "body has %zu inputs; at least %zu are needed", g->n_input, l->first_input + n_states);
  l->n_scans = g->n_output - l->first_output - n_states;
  l->inputs = ARENA_NEW_N(a, host_array *, g->n_input + 1);
  l->outputs = ARENA_NEW_N(a, host_array *, g->n_output + 1);
  l->scans = ARENA_NEW_N(a, elements, l->n_scans + 1);
  l->states = ARENA_NEW_N(a, shape, n_states + 1);
  for (size_t k = 0; k < n_states; k++) {
    TRY(interpreter_input(n, first + k, &l->inputs[l->first_input + k]));
    l->states[k] = *host_array_shape(l->inputs[l->first_input + k]);
  }
  return NULL;
}

/* Runs the body once.  The states that it returns become inputs of the next iteration, and its scan outputs
 * are kept. */
static status step(loop *l, size_t n_inputs, int64_t number) {
  arena *a = l->n->outer->arena;
  TRY(budget_check(l->n->run->options->budget));
  TRY(interpreter_run_body(&l->body, n_inputs, l->inputs, number, l->outputs));
  for (size_t k = 0; k < l->n_states; k++) {
    const shape *after = host_array_shape(l->outputs[l->first_output + k]), *before = &l->states[k];
    CHECK_THAT(onnx_may_become(before, after), STATUS_INVALID_MODEL, "state %zu is %s before a step but %s after it", k,
               SHAPE_STR(NULL, before), SHAPE_STR(NULL, after));
    l->inputs[l->first_input + k] = l->outputs[l->first_output + k];
  }
  for (size_t k = 0; k < l->n_scans; k++) {
    elements *e = &l->scans[k];
    *ARENA_PUSH(a, e->items, e->n, e->cap) = l->outputs[l->first_output + l->n_states + k];
  }
  return NULL;
}

static status finish_loop(loop *l) {
  host_array **results = ARENA_NEW_N(l->n->outer->arena, host_array *, l->n_states + l->n_scans + 1);
  for (size_t k = 0; k < l->n_states; k++) {
    results[k] = l->inputs[l->first_input + k];
  }
  for (size_t k = 0; k < l->n_scans; k++) {
    TRY(stack(l, k, &results[l->n_states + k]));
  }
  return interpreter_define_outputs(l->n, l->n_states + l->n_scans, results);
}

status interpret_loop(const interpreted_node *n) {
  loop l;
  host_array *limit;
  int64_t trips = INT64_MAX, go = 1;
  CHECK_THAT(n->node->n_input >= 2, STATUS_INVALID_MODEL,
             "%zu inputs; M and cond are required; an empty name leaves one out", n->node->n_input);
  CHECK_THAT(interpreter_has_input(n, 0) || interpreter_has_input(n, 1), STATUS_UNSUPPORTED,
             "neither M nor cond is given: the loop never ends");
  TRY(open_loop(&l, n, false, n->node->n_input - 2, 2));
  if (interpreter_has_input(n, 0)) {
    TRY(interpreter_input(n, 0, &limit));
    TRY(interpreter_scalar(limit, "M", &trips));
    host_array_release(limit);
  }
  if (interpreter_has_input(n, 1)) {
    TRY(interpreter_input(n, 1, &limit));
    TRY(interpreter_scalar(limit, "cond", &go));
    host_array_release(limit);
  }
  for (int64_t i = 0; i < trips && go; i++) {
    literal number = literal_make(shape_scalar(DTYPE_S64), &i),
            yes = literal_make(shape_scalar(DTYPE_PRED), &(uint8_t){1});
    TRY(host_array_copy(n->run, &number, &l.inputs[0]));
    TRY(host_array_copy(n->run, &yes, &l.inputs[1]));
    TRY(status_prefix(step(&l, n->node->n_input, i), "body, step %" PRId64, i));
    if (interpreter_has_input(n, 1)) {
      TRY(interpreter_scalar(l.outputs[0], "the body's condition", &go));
    }
    host_array_release(l.outputs[0]);
  }
  return finish_loop(&l);
}

/* Returns entry k of the attribute `name`, which must have `count` entries; 0 if the node does not have it. */
static status list_entry(const interpreted_node *n, const char *name, size_t k, size_t count, int64_t *out) {
  const int64_t *values;
  size_t given;
  TRY(onnx_attr_ints(n->node, name, &values, &given));
  CHECK_THAT(given == 0 || given == count, STATUS_INVALID_MODEL, "%s has %zu entries instead of %zu", name, given,
             count);
  *out = given ? values[k] : 0;
  return NULL;
}

typedef struct scan_input {
  host_array *array;
  int64_t axis, backward;
} scan_input;

static status open_scan(const interpreted_node *n, loop *l, size_t *n_in, scan_input **in, int64_t *trips) {
  int64_t m, backward;
  TRY(onnx_attr_int(n->node, "num_scan_inputs", 0, &m));
  CHECK_THAT(m >= 1 && m <= (int64_t)n->node->n_input, STATUS_INVALID_MODEL, "num_scan_inputs is %" PRId64, m);
  *n_in = (size_t)m;
  TRY(open_loop(l, n, true, n->node->n_input - *n_in, 0));
  *in = ARENA_NEW_N(n->outer->arena, scan_input, *n_in);
  for (size_t k = 0; k < *n_in; k++) {
    scan_input *x = &(*in)[k];
    TRY(interpreter_input(n, l->n_states + k, &x->array));
    TRY(list_entry(n, "scan_input_axes", k, *n_in, &x->axis));
    TRY(list_entry(n, "scan_input_directions", k, *n_in, &x->backward));
    TRY(onnx_axis(x->axis, host_array_shape(x->array)->rank, &x->axis));
    int64_t steps = host_array_shape(x->array)->dims[x->axis];
    CHECK_THAT(k == 0 || steps == *trips, STATUS_INVALID_MODEL,
               "scan input %zu has %" PRId64 " steps but input 0 has %" PRId64, k, steps, *trips);
    *trips = steps;
  }
  for (size_t k = 0; k < l->n_scans; k++) {
    TRY(list_entry(n, "scan_output_axes", k, l->n_scans, &l->scans[k].axis));
    TRY(list_entry(n, "scan_output_directions", k, l->n_scans, &backward));
    l->scans[k].backward = backward != 0;
  }
  return NULL;
}

status interpret_scan(const interpreted_node *n) {
  loop l;
  size_t n_in;
  scan_input *in;
  int64_t trips = 0;
  TRY(open_scan(n, &l, &n_in, &in, &trips));
  for (int64_t i = 0; i < trips; i++) {
    for (size_t k = 0; k < n_in; k++) {
      int64_t index = in[k].backward ? trips - 1 - i : i;
      TRY(pick(n->run, in[k].array, in[k].axis, index, &l.inputs[l.n_states + k]));
    }
    TRY(status_prefix(step(&l, l.n_states + n_in, i), "body, step %" PRId64, i));
  }
  for (size_t k = 0; k < n_in; k++) {
    host_array_release(in[k].array);
  }
  return finish_loop(&l);
}

/* --- all host-interpreted nodes --- */

#define DOMAIN(id, name) __attribute__((unused)) static const char id[] = name;
#include "frontend/model/onnx_domains.def"
#undef DOMAIN

static status run_node(const interpreted_node *n) {
  const onnx_function *callee = onnx_model_callee(n->outer->model, n->node);
  if (callee) {
    return run_call(n, callee);
  }
  static const struct {
    const char *domain, *name;
    interpret_fn *run;
  } all[] = {
#define row_no(domain, name, importer)
#define row_for_body(domain, name, importer) {domain, name, interpret_##importer},
#define row_for_sequences(domain, name, importer) {domain, name, interpret_##importer},
#define row_asked(domain, name, importer) {domain, name, interpret_##importer},
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, symbols, work, host, importer) \
  row_##host(domain, name, importer)
#include "frontend/operators/onnx_ops.def"
  };
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    if (strcmp(n->node->domain, all[k].domain) == 0 && strcmp(n->node->op_type, all[k].name) == 0) {
      return all[k].run(n);
    }
  }
  return status_error(STATUS_UNSUPPORTED, "its sizes depend on what it computes itself");
}

status interpreter_run_node(interpreter_run *run, interpreter_site *site, onnx_frame *f, size_t k) {
  interpreted_node n = {.run = run, .site = site, .outer = f, .number = k};
  status failed = onnx_frame_node(f, f->arena, k, &n.node);
  failed = failed ? failed : run_node(&n);
  return status_prefix(failed, "%s", onnx_node_label(f->arena, f->nodes[k]));
}
