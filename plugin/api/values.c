/* values.c - sequences and optionals as inputs and outputs. */
#include <stdlib.h>

#include "plugin/api/internal.h"

static oxla_kind kind_of(const model_value *v) {
  switch (v ? v->shape.kind : SHAPE_ARRAY) {
    case SHAPE_SEQUENCE: return OXLA_SEQUENCE;
    case SHAPE_OPTIONAL: return OXLA_OPTIONAL;
    default: return OXLA_TENSOR;
  }
}

oxla_kind oxla_input_kind(const oxla_model *model, size_t index) {
  const compiler_model *s = session_source(model->session);
  return kind_of(index < s->n_inputs ? &s->inputs[index] : NULL);
}

oxla_kind oxla_output_kind(const oxla_model *model, size_t index) {
  const compiler_model *s = session_source(model->session);
  return kind_of(index < s->n_outputs ? &s->outputs[index] : NULL);
}

/* --- inputs --- */

void api_drop_list(oxla_run *run, size_t input) {
  free((void *)(uintptr_t)run->lists[input].items);
  run->lists[input] = (literal_list){0};
}

/* Makes the list of a sequence's elements, whose data stays the caller's; *out is NULL after a failure. */
static status make_items(const model_value *v, oxla_type type, size_t n, const oxla_tensor *elements, literal **out) {
  *out = calloc(n + 1, sizeof **out);
  CHECK_THAT(*out, STATUS_RESOURCE, "out of memory");
  status failed = NULL;
  for (size_t k = 0; !failed && k < n; k++) {
    const oxla_tensor *e = &elements[k];
    literal *l = &(*out)[k];
    failed = api_shape(v->name, e->type, e->rank, e->dims, &l->shape);
    l->data = e->data;
    if (!failed && e->type != type) {
      failed = status_error(STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE, "tensor %zu is %s, not of the type %d", k,
                            SHAPE_STR(NULL, &l->shape), (int)type);
    }
    if (!failed && !e->data && shape_elements(&l->shape)) {
      failed = status_error(STATUS_INVALID_ARGUMENT, "tensor %zu has no data", k);
    }
  }
  if (failed) {
    free(*out);
    *out = NULL;
  }
  return status_prefix(failed, "input '%s'", v->name);
}

static status set_sequence(oxla_run *run, const char *name, oxla_type type, size_t n, const oxla_tensor *elements) {
  uint32_t k;
  literal *items;
  TRY(api_find_input(run, name, &k));
  const model_value *v = &session_source(run->model->session)->inputs[k];
  CHECK_THAT(n == 0 || elements, STATUS_INVALID_ARGUMENT, "input '%s': no list of tensors is given", name);
  CHECK_THAT(n <= UINT32_MAX, STATUS_RESOURCE, "input '%s': a sequence of %zu tensors", name, n);
  TRY(make_items(v, type, n, elements, &items));
  shape s;
  status failed = api_shape(name, type, 0, NULL, &s);
  s.kind = SHAPE_SEQUENCE;
  failed = failed ? failed : api_put_input(run, k, &s, &run->lists[k], false);
  if (failed) {
    free(items);
    return failed;
  }
  run->lists[k] = (literal_list){(uint32_t)n, items};
  return NULL;
}

oxla_error *oxla_set_sequence(oxla_run *run, const char *name, oxla_type type, size_t n, const oxla_tensor *elements) {
  return api_error(set_sequence(run, name, type, n, elements));
}

static status set_absent(oxla_run *run, const char *name) {
  uint32_t k;
  TRY(api_find_input(run, name, &k));
  literal l = literal_absent((dtype)session_source(run->model->session)->inputs[k].shape.type);
  return api_put_input(run, k, &l.shape, NULL, false);
}

oxla_error *oxla_set_absent(oxla_run *run, const char *name) { return api_error(set_absent(run, name)); }

/* --- outputs --- */

static status computed(const oxla_run *run, const char *name, literal *out) {
  uint32_t k;
  TRY(api_find_output(run, name, &k));
  CHECK_THAT(run->executed, STATUS_INVALID_ARGUMENT, "output '%s': the run has not been executed", name);
  *out = literal_make(run->outputs[k].shape, run->outputs[k].data);
  return NULL;
}

static status get_elements(const oxla_run *run, const char *name, oxla_kind *kind, size_t *n) {
  literal l;
  TRY(computed(run, name, &l));
  CHECK_THAT(kind && n, STATUS_INVALID_ARGUMENT, "argument %s is NULL", kind ? "n" : "kind");
  switch (l.shape.kind) {
    case SHAPE_SEQUENCE: *kind = OXLA_SEQUENCE, *n = literal_elements(&l)->n; break;
    case SHAPE_OPTIONAL: *kind = OXLA_OPTIONAL, *n = 0; break;
    default: *kind = OXLA_TENSOR, *n = 1;
  }
  return NULL;
}

oxla_error *oxla_get_elements(const oxla_run *run, const char *name, oxla_kind *kind, size_t *n) {
  return api_error(get_elements(run, name, kind, n));
}

static status get_element(const oxla_run *run, const char *name, size_t index, oxla_tensor *out) {
  literal l;
  TRY(computed(run, name, &l));
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  CHECK_THAT(l.shape.kind == SHAPE_SEQUENCE, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "output '%s' is %s, which is no sequence", name, SHAPE_STR(NULL, &l.shape));
  CHECK_THAT(index < literal_elements(&l)->n, STATUS_INVALID_ARGUMENT, "output '%s' has %u tensors, and no tensor %zu",
             name, literal_elements(&l)->n, index);
  const literal *e = &literal_elements(&l)->items[index];
  *out = api_tensor(&e->shape);
  out->data = (void *)(uintptr_t)e->data;
  out->bytes = (size_t)shape_bytes(&e->shape);
  return NULL;
}

oxla_error *oxla_get_element(const oxla_run *run, const char *name, size_t index, oxla_tensor *out) {
  return api_error(get_element(run, name, index, out));
}
