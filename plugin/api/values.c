/* values.c - sequences, maps and optionals as inputs and outputs. */
#include <stdlib.h>

#include "plugin/api/internal.h"

/* --- inputs --- */

void api_drop_list(oxla_run *run, size_t input) {
  free((void *)(uintptr_t)run->lists[input].items);
  run->lists[input] = (literal_list){0};
}

static status read_tensor(const char *name, const oxla_tensor *t, literal *out) {
  TRY(api_shape(name, t->type, t->rank, t->dims, &out->shape));
  out->data = t->data;
  CHECK_THAT(t->data || shape_elements(&out->shape) == 0, STATUS_INVALID_ARGUMENT, "it has no data");
  return NULL;
}

/* Copies the list of a value's elements, whose data stays the caller's; *out is NULL after a failure. */
static status copy_list(const char *name, size_t n, const oxla_tensor *elements, literal **out) {
  CHECK_THAT(n <= UINT32_MAX, STATUS_RESOURCE, "a list of %zu tensors", n);
  *out = calloc(n + 1, sizeof **out);
  CHECK_THAT(*out, STATUS_RESOURCE, "out of memory");
  for (size_t k = 0; k < n; k++) {
    status failed = read_tensor(name, &elements[k], &(*out)[k]);
    if (failed) {
      free(*out);
      *out = NULL;
      return status_prefix(failed, "tensor %zu", k);
    }
  }
  return NULL;
}

/* Sets an input to a sequence or map of the tensors in `elements`. */
static status set_list(oxla_run *run, const char *name, shape_kind kind, oxla_type type, size_t n,
                       const oxla_tensor *elements) {
  uint32_t k;
  literal *items = NULL;
  shape s;
  TRY(api_find_input(run, name, &k));
  const model_value *v = &session_source(run->model->session)->inputs[k];
  TRY(status_prefix(api_shape(name, type, 0, NULL, &s), "input"));
  TRY(status_prefix(copy_list(name, n, elements, &items), "input '%s'", name));
  s.kind = (uint8_t)kind;
  const literal_list list = {(uint32_t)n, items};
  const literal l = literal_make(s, &list);
  status failed = status_prefix(literal_check_elements(&l, SHAPE_ARRAY, v->key), "input '%s'", name);
  failed = failed ? failed : api_put_input(run, k, &s, &run->lists[k], false);
  if (failed) {
    free(items);
    return failed;
  }
  run->lists[k] = list;
  return NULL;
}

static status set_sequence(oxla_run *run, const char *name, oxla_type type, size_t n, const oxla_tensor *elements) {
  CHECK_THAT(n == 0 || elements, STATUS_INVALID_ARGUMENT, "no list of tensors is given");
  return set_list(run, name, SHAPE_SEQUENCE, type, n, elements);
}

oxla_error *oxla_set_sequence(oxla_run *run, const char *name, oxla_type type, size_t n, const oxla_tensor *elements) {
  return api_error(set_sequence(run, name, type, n, elements));
}

static status set_map(oxla_run *run, const char *name, const oxla_tensor *keys, const oxla_tensor *values) {
  CHECK_THAT(keys && values, STATUS_INVALID_ARGUMENT, "argument %s is NULL", keys ? "values" : "keys");
  return set_list(run, name, SHAPE_MAP, values->type, 2, (const oxla_tensor[]){*keys, *values});
}

oxla_error *oxla_set_map(oxla_run *run, const char *name, const oxla_tensor *keys, const oxla_tensor *values) {
  return api_error(set_map(run, name, keys, values));
}

static status set_absent(oxla_run *run, const char *name) {
  uint32_t k;
  TRY(api_find_input(run, name, &k));
  literal l = literal_absent((dtype)session_source(run->model->session)->inputs[k].shape.type);
  return api_put_input(run, k, &l.shape, NULL, false);
}

oxla_error *oxla_set_absent(oxla_run *run, const char *name) { return api_error(set_absent(run, name)); }

/* --- outputs --- */

/* Returns what the last execution computed for an output, and the output as it is declared. */
static status computed(const oxla_run *run, const char *name, literal *out, const model_value **declared) {
  uint32_t k;
  TRY(api_find_output(run, name, &k));
  CHECK_THAT(run->executed, STATUS_INVALID_ARGUMENT, "output '%s': the run has not been executed", name);
  *out = literal_make(run->outputs[k].shape, run->outputs[k].data);
  *declared = &session_source(run->model->session)->outputs[k];
  return NULL;
}

static status get_elements(const oxla_run *run, const char *name, oxla_kind *kind, size_t *n) {
  literal l;
  const model_value *declared;
  TRY(computed(run, name, &l, &declared));
  CHECK_THAT(kind && n, STATUS_INVALID_ARGUMENT, "argument %s is NULL", kind ? "n" : "kind");
  bool sequence = l.shape.kind == SHAPE_SEQUENCE;
  *n = sequence ? literal_elements(&l)->n : l.shape.kind != SHAPE_OPTIONAL;
  bool known = sequence && *n; /* otherwise only the declaration says what the elements would be */
  *kind = api_kind((shape_kind)l.shape.kind,
                   known ? (shape_kind)literal_elements(&l)->items[0].shape.kind : declared->element);
  return NULL;
}

oxla_error *oxla_get_elements(const oxla_run *run, const char *name, oxla_kind *kind, size_t *n) {
  return api_error(get_elements(run, name, kind, n));
}

static void show_array(const literal *l, oxla_tensor *out) {
  *out = api_tensor(&l->shape);
  out->data = (void *)(uintptr_t)l->data;
  out->bytes = (size_t)shape_bytes(&l->shape);
}

/* Returns element `index` of an output that is a sequence, or the output itself if it is a map and `index` is 0. */
static status element_at(const oxla_run *run, const char *name, size_t index, shape_kind wanted, literal *out) {
  literal l;
  const model_value *declared;
  TRY(computed(run, name, &l, &declared));
  bool is_sequence = l.shape.kind == SHAPE_SEQUENCE;
  size_t n = is_sequence ? literal_elements(&l)->n : 1;
  CHECK_THAT(is_sequence || (l.shape.kind == SHAPE_MAP && wanted == SHAPE_MAP),
             STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE, "output '%s' is %s, which has no %s", name,
             SHAPE_STR(NULL, &l.shape), wanted == SHAPE_MAP ? "maps" : "elements");
  CHECK_THAT(index < n, STATUS_INVALID_ARGUMENT, "output '%s' has %zu elements, and no element %zu", name, n, index);
  *out = is_sequence ? literal_elements(&l)->items[index] : l;
  CHECK_THAT(out->shape.kind == wanted, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE, "element %zu of output '%s' is %s",
             index, name, SHAPE_STR(NULL, &out->shape));
  return NULL;
}

static status get_element(const oxla_run *run, const char *name, size_t index, oxla_tensor *out) {
  literal l;
  TRY(element_at(run, name, index, SHAPE_ARRAY, &l));
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  show_array(&l, out);
  return NULL;
}

oxla_error *oxla_get_element(const oxla_run *run, const char *name, size_t index, oxla_tensor *out) {
  return api_error(get_element(run, name, index, out));
}

static status get_map(const oxla_run *run, const char *name, size_t index, oxla_tensor *keys, oxla_tensor *values) {
  literal l;
  TRY(element_at(run, name, index, SHAPE_MAP, &l));
  CHECK_THAT(keys && values, STATUS_INVALID_ARGUMENT, "argument %s is NULL", keys ? "values" : "keys");
  show_array(&literal_elements(&l)->items[0], keys);
  show_array(&literal_elements(&l)->items[1], values);
  return NULL;
}

oxla_error *oxla_get_map(const oxla_run *run, const char *name, size_t index, oxla_tensor *keys, oxla_tensor *values) {
  return api_error(get_map(run, name, index, keys, values));
}
