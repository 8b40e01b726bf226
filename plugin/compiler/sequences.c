/* sequences.c - the host-interpreted operators on sequences.  A new sequence shares the arrays of the old one; only its
 * list of elements is new. */
#include <inttypes.h>

#include "frontend/import/sequence.h"
#include "plugin/compiler/interpreter_internal.h"

#define INVALID STATUS_INVALID_MODEL

/* The limit of the length of a sequence, since SequenceInsert copies the whole list: n insertions take n^2 steps. */
enum { MOST_ELEMENTS = 1 << 16 };

/* Returns input k, which must be a sequence, with a reference for the caller. */
static status sequence_input(const interpreted_node *n, size_t k, host_array **out) {
  TRY(interpreter_input(n, k, out));
  CHECK_THAT(host_is_sequence(*out) && (*out)->base.elements, INVALID, "input '%s' is %s; a sequence is needed",
             n->node->input[k], SHAPE_STR(NULL, host_array_shape(*out)));
  return NULL;
}

/* Reads input k as a position in a sequence of `length` elements; if it is absent, the position is `def`.  If `end` is
 * set, the position may be `length` itself. */
static status read_position(const interpreted_node *n, size_t k, int64_t length, bool end, int64_t def, int64_t *out) {
  int64_t position = def;
  if (interpreter_has_input(n, k)) {
    host_array *a;
    TRY(interpreter_input(n, k, &a));
    TRY(interpreter_scalar(a, "position", &position));
    host_array_release(a);
  }
  return onnx_sequence_position(position, length, end, out);
}

static status define_one(const interpreted_node *n, host_array *value) {
  return interpreter_define_outputs(n, 1, &value);
}

/* Makes a sequence of the elements of `from` without element `skip`, if that is not -1, and with `more` before element
 * `at`, if `more` is not NULL.  Takes over the reference to `more`. */
static status edit(const interpreted_node *n, const host_array *from, int64_t skip, int64_t at, host_array *more,
                   host_array **out) {
  host_array **list = ARENA_NEW_N(n->outer->arena, host_array *, (size_t)from->base.n + 1);
  uint32_t count = 0;
  for (uint32_t k = 0; k <= from->base.n; k++) {
    if (more && k == at) {
      list[count++] = more;
    }
    if (k < from->base.n && k != skip) {
      list[count++] = host_array_retain(host_list_element(from, k));
    }
  }
  return host_list_new(n->run, SHAPE_SEQUENCE, (dtype)host_array_shape(from)->type, count, list, out);
}

status interpret_identity(const interpreted_node *n) {
  host_array *a;
  TRY(interpreter_input(n, 0, &a));
  return define_one(n, a);
}

status interpret_sequence_at(const interpreted_node *n) {
  host_array *s;
  int64_t at;
  TRY(sequence_input(n, 0, &s));
  TRY(read_position(n, 1, s->base.n, false, 0, &at));
  host_array *element = host_array_retain(host_list_element(s, (uint32_t)at));
  host_array_release(s);
  return define_one(n, element);
}

status interpret_sequence_length(const interpreted_node *n) {
  host_array *s, *length;
  TRY(sequence_input(n, 0, &s));
  int64_t count = s->base.n;
  literal number = literal_make(shape_scalar(DTYPE_S64), &count);
  TRY(host_array_copy(n->run, &number, &length));
  host_array_release(s);
  return define_one(n, length);
}

status interpret_sequence_erase(const interpreted_node *n) {
  host_array *s, *left;
  int64_t at;
  TRY(sequence_input(n, 0, &s));
  TRY(read_position(n, 1, s->base.n, false, -1, &at));
  TRY(edit(n, s, at, -1, NULL, &left));
  host_array_release(s);
  return define_one(n, left);
}

status interpret_sequence_insert(const interpreted_node *n) {
  host_array *s, *tensor, *all;
  int64_t at;
  TRY(sequence_input(n, 0, &s));
  TRY(interpreter_input(n, 1, &tensor));
  const shape *t = host_array_shape(tensor);
  CHECK_THAT(t->kind == SHAPE_ARRAY && t->type == host_array_shape(s)->type, INVALID,
             "tensor is %s, but the sequence is %s", SHAPE_STR(NULL, t), SHAPE_STR(NULL, host_array_shape(s)));
  CHECK_THAT(s->base.n < MOST_ELEMENTS, STATUS_RESOURCE, "a sequence of more than %d tensors", MOST_ELEMENTS);
  TRY(read_position(n, 2, s->base.n, true, s->base.n, &at));
  TRY(edit(n, s, -1, at, tensor, &all));
  host_array_release(s);
  return define_one(n, all);
}

/* --- SequenceMap --- */

typedef struct map {
  const interpreted_node *n;
  interpreter_body body;
  host_array **inputs, **arguments, **roots; /* inputs of the node; inputs and outputs of the body in an
                                                iteration */
  host_array **elements;                     /* elements[k * steps + i] is output k of iteration i */
  uint32_t steps;
} map;

static status open_map(const interpreted_node *n, map *m) {
  arena *a = n->outer->arena;
  *m = (map){.n = n};
  TRY(interpreter_find_body(n, "body", 0, &m->body));
  m->inputs = ARENA_NEW_N(a, host_array *, n->node->n_input);
  m->arguments = ARENA_NEW_N(a, host_array *, n->node->n_input);
  TRY(sequence_input(n, 0, &m->inputs[0]));
  m->steps = m->inputs[0]->base.n;
  for (size_t k = 1; k < n->node->n_input; k++) {
    TRY(interpreter_input(n, k, &m->inputs[k]));
    CHECK_THAT(!host_is_sequence(m->inputs[k]) || m->inputs[k]->base.n == m->steps, INVALID,
               "input %zu is a sequence of %" PRIu32 " tensors, but input 0 is one of %" PRIu32, k,
               m->inputs[k]->base.n, m->steps);
  }
  m->roots = ARENA_NEW_N(a, host_array *, m->body.graph->n_output);
  m->elements = ARENA_NEW_N(a, host_array *, m->body.graph->n_output * (size_t)m->steps + 1);
  return NULL;
}

static status map_step(map *m, uint32_t i) {
  size_t n_inputs = m->n->node->n_input;
  TRY(budget_check(m->n->run->options->budget));
  for (size_t k = 0; k < n_inputs; k++) {
    host_array *a = m->inputs[k];
    m->arguments[k] = host_array_retain(host_is_sequence(a) ? host_list_element(a, i) : a);
  }
  TRY(interpreter_run_body(&m->body, n_inputs, m->arguments, i, m->roots));
  for (size_t k = 0; k < m->body.graph->n_output; k++) {
    host_array *first = i ? m->elements[k * m->steps] : m->roots[k];
    const shape *s = host_array_shape(m->roots[k]);
    CHECK_THAT(s->kind == SHAPE_ARRAY && s->type == host_array_shape(first)->type, INVALID,
               "output %zu is %s; a tensor of %s is needed", k, SHAPE_STR(NULL, s),
               dtype_name(host_array_shape(first)->type));
    m->elements[k * m->steps + i] = m->roots[k];
  }
  return NULL;
}

status interpret_sequence_map(const interpreted_node *n) {
  map m;
  TRY(open_map(n, &m));
  for (uint32_t i = 0; i < m.steps; i++) {
    TRY(status_prefix(map_step(&m, i), "body, step %" PRIu32, i));
  }
  for (size_t k = 0; k < m.body.graph->n_output; k++) {
    shape s;
    if (m.steps) {
      s = *host_array_shape(m.elements[k * m.steps]);
    } else {
      TRY(interpreter_declared_shape(&m.body, k, &s));
    }
    TRY(host_list_new(n->run, SHAPE_SEQUENCE, (dtype)s.type, m.steps, m.elements + k * m.steps, &m.roots[k]));
  }
  for (size_t k = 0; k < n->node->n_input; k++) {
    host_array_release(m.inputs[k]);
  }
  return interpreter_define_outputs(n, m.body.graph->n_output, m.roots);
}
