/* node_case.h - tests of importers as rows of text, each with a node, its inputs and the expected outputs.
 *
 *   {"Slice", 1, "starts=[1] ends=[-1]", "f32[3]:1,2,3", "f32[1]:2"}
 *
 * An operator of another domain than ONNX's has it before its name, as in "com.example:Squareplus"; the number is then
 * that domain's version.  Attributes: k=3 is an int, a=0.5 a float (it has a point), p=[1,2] ints, q=[0.5] floats,
 * mode=edge a string and value=f32[1]:7 a tensor.  Inputs are arrays separated by spaces; "-" is an absent one.  Inputs
 * after a '=' are initializers; the others are graph inputs, whose values the import gets if it asks for them.  The
 * expected result is an array for each output, or a part of an error message: after "!" that of a STATUS_INVALID_MODEL,
 * after "?" that of a STATUS_UNSUPPORTED, after "#" that of any error.
 *
 * A case with results is imported once more with every dimension of its inputs open (frontend/import/symbolic.h).  The
 * module, bound to the sizes of the case, must give the expected results too; bound to sizes that are larger by one, it
 * must compute what the model imported for these sizes does. */
#ifndef TESTS_UNIT_FRONTEND_NODE_CASE_H
#define TESTS_UNIT_FRONTEND_NODE_CASE_H

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "backend_ref/eval.h"
#include "frontend/import/symbolic.h"
#include "frontend/model/tensor.h"
#include "hlo/ir/bind.h"
#include "tests/hlo/same_values.h"
#include "tests/unit/frontend/build_model.h"

typedef struct node_case {
  const char *op;
  int opset;
  const char *attributes, *inputs, *expected;
} node_case;

enum { NODE_CASE_MAX = 16 };

/* Parses an array such as "f32[2]:1,2", which ends at a space or the end of the text, and moves *text behind it. */
static inline literal case_literal(arena *a, const char **text) {
  shape s;
  void *data;
  status bad = shape_parse(NULL, text, &s);
  ck_assert_msg(!bad, "%s in %s", status_message(bad), *text);
  ck_assert_msg(**text == ':', "no ':' before %s", *text);
  ++*text;
  literal l = literal_new(a, s, &data);
  size_t size = dtype_bytes(s.type);
  for (int64_t k = 0, n = shape_elements(&s); k < n; k++) {
    char *end, *at = (char *)data + (size_t)k * size;
    if (dtype_is_float(s.type)) {
      dtype_store_f64(s.type, at, strtod(*text, &end), true, DTYPE_ROUND_NEAREST);
    } else {
      dtype_store_i64(s.type, at,
                      dtype_is_unsigned(s.type) ? (int64_t)strtoull(*text, &end, 10) : strtoll(*text, &end, 10));
    }
    ck_assert_msg(end != *text, "too few elements before '%s'", *text);
    *text = end + (*end == ',');
  }
  ck_assert_msg(**text == '\0' || **text == ' ', "too many elements: '%s'", *text);
  return l;
}

static inline Onnx__TensorProto *case_tensor(arena *a, const char *name, const literal *l) {
  Onnx__TensorProto *t = new_tensor(a, name, dtype_get_info(l->shape.type)->onnx, l->shape.rank, l->shape.dims);
  set_raw(a, t, l->data, (size_t)shape_bytes(&l->shape));
  return t;
}

/* Parses a list attribute, such as [1,2] (ints) or [0.5,1.5] (floats). */
static inline void case_list(arena *a, Onnx__AttributeProto *t, const char *text) {
  bool floats = strchr(text, '.');
  size_t n = 0, room = strlen(text);
  t->type = floats ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  t->ints = ARENA_NEW_N(a, int64_t, room);
  t->floats = ARENA_NEW_N(a, float, room);
  for (const char *c = text + 1; *c && *c != ']'; n++) {
    char *end;
    if (floats) {
      t->floats[n] = strtof(c, &end);
    } else {
      t->ints[n] = strtoll(c, &end, 10);
    }
    c = end + (*end == ',');
  }
  t->n_ints = floats ? 0 : n;
  t->n_floats = floats ? n : 0;
}

static inline void case_attribute(arena *a, Onnx__NodeProto *node, const char *name, const char *value) {
  Onnx__AttributeProto *t = add_attribute(a, node, name);
  bool number = isdigit((unsigned char)*value) || *value == '-' || *value == '.';
  t->has_type = 1;
  if (strchr(value, ':')) {
    literal l = case_literal(a, &value);
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    t->t = case_tensor(a, "", &l);
  } else if (*value == '[') {
    case_list(a, t, value);
  } else if (number && strchr(value, '.')) {
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    t->has_f = 1;
    t->f = strtof(value, NULL);
  } else if (number) {
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    t->has_i = 1;
    t->i = strtoll(value, NULL, 10);
  } else {
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    t->has_s = 1;
    t->s.data = (uint8_t *)arena_strdup(a, value);
    t->s.len = strlen(value);
  }
}

static inline void case_attributes(arena *a, Onnx__NodeProto *node, const char *text) {
  while (*text) {
    size_t length = strcspn(text, " "), equals = strcspn(text, "=");
    ck_assert_msg(equals < length, "no '=' in %s", text);
    case_attribute(a, node, arena_strndup(a, text, equals), arena_strndup(a, text + equals + 1, length - equals - 1));
    text += length + strspn(text + length, " ");
  }
}

/* Declares an input.  If `open` is set, its dimensions are declared as symbols. */
static inline Onnx__ValueInfoProto *case_input(arena *a, const char *name, const literal *l, bool open) {
  Onnx__ValueInfoProto *v = new_value(a, name);
  v->type = PB_NEW(a, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  v->type->tensor_type = PB_NEW(a, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  v->type->tensor_type->has_elem_type = 1;
  v->type->tensor_type->elem_type = dtype_get_info(l->shape.type)->onnx;
  v->type->tensor_type->shape = PB_NEW(a, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  for (int k = 0; k < l->shape.rank; k++) {
    Onnx__TensorShapeProto__Dimension *d =
        PB_NEW(a, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = l->shape.dims[k];
    if (open) {
      d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
      d->dim_param = arena_printf(a, "%s.%d", name, k);
    }
    PB_ADD(a, v->type->tensor_type->shape->dim, v->type->tensor_type->shape->n_dim, d);
  }
  return v;
}

typedef struct case_run {
  arena *arena;
  const node_case *c;
  bool open; /* whether the model's inputs have symbolic dimensions */
  uint32_t n_inputs, n_outputs;
  onnx_input_shape inputs[NODE_CASE_MAX];
  literal values[NODE_CASE_MAX], expected[NODE_CASE_MAX], *results;
} case_run;

static inline void case_inputs(case_run *r, Onnx__GraphProto *g, Onnx__NodeProto *node) {
  arena *a = r->arena;
  const char *text = r->c->inputs;
  for (int k = 0; *text; k++, text += strspn(text, " ")) {
    char *name = arena_printf(a, "in%d", k);
    if (*text == '-') {
      PB_ADD(a, node->input, node->n_input, arena_strdup(a, ""));
      text++;
      continue;
    }
    bool constant = *text == '=';
    text += constant;
    literal l = case_literal(a, &text);
    PB_ADD(a, node->input, node->n_input, name);
    if (constant) {
      PB_ADD(a, g->initializer, g->n_initializer, case_tensor(a, name, &l));
    } else {
      PB_ADD(a, g->input, g->n_input, case_input(a, name, &l, r->open));
      r->inputs[r->n_inputs] = (onnx_input_shape){.name = name, .shape = l.shape};
      r->values[r->n_inputs++] = l;
    }
  }
}

static inline Onnx__ModelProto *case_model(case_run *r) {
  arena *a = r->arena;
  Onnx__ModelProto *m = new_model(a, "", "");
  const char *colon = strchr(r->c->op, ':'), *op = colon ? colon + 1 : r->c->op;
  const char *domain = arena_strndup(a, r->c->op, colon ? (size_t)(colon - r->c->op) : 0);
  Onnx__NodeProto *node = domain_node(a, m, domain, r->c->opset, op, "");
  case_attributes(a, node, r->c->attributes);
  case_inputs(r, m->graph, node);
  const char *text = r->c->expected;
  bool fails = strchr("!?#", *text);
  const onnx_op_row *row = onnx_op_find(domain, op, r->c->opset);
  do {
    char *name = arena_printf(a, "out%" PRIu32, r->n_outputs);
    if (!fails) {
      r->expected[r->n_outputs] = case_literal(a, &text);
      text += strspn(text, " ");
    }
    PB_ADD(a, node->output, node->n_output, name);
    PB_ADD(a, m->graph->output, m->graph->n_output, new_value(a, name));
    r->n_outputs++;
  } while (fails ? row && r->n_outputs < row->min_outputs : *text != '\0');
  return m;
}

/* Cuts results with dynamic dimensions to their sizes, which the module returns as additional results. */
static inline void case_cut(const hlo_module *h, literal *results) {
  for (uint32_t k = 0; h->size_of && k < h->entry->n_roots; k++) {
    if (h->size_of[k].axis >= 0) {
      literal *l = &results[h->size_of[k].result];
      int64_t sizes[SHAPE_MAX_RANK];
      memcpy(sizes, l->shape.dims, sizeof sizes);
      sizes[h->size_of[k].axis] = literal_i64(&results[k], 0);
      literal_compact(&l->shape, (void *)(uintptr_t)l->data, sizes);
    }
  }
}

static inline status case_load(case_run *r, onnx_model **out) {
  size_t size;
  uint8_t *bytes = pack(r->arena, case_model(r), &size);
  return onnx_model_from_memory(r->arena, bytes, size, NULL, NULL, out);
}

/* Imports the model, again with the values of inputs if the import asks for them.  With `definitions`, it is imported
 * with symbols. */
static inline status case_import(case_run *r, const onnx_model *m, onnx_definitions *definitions, hlo_module **out) {
  arena *a = r->arena;
  bool wanted[NODE_CASE_MAX] = {false};
  onnx_import_options options = {
      .inputs = r->inputs, .n_inputs = r->n_inputs, .wanted = wanted, .unchecked = r->open, .eval = ref_fold};
  bool complete;
  for (bool again = true; again;) {
    status failed = definitions ? onnx_import_symbolic(a, m, &options, definitions, out, &complete)
                                : onnx_import(a, m, &options, out, &complete);
    failed = failed || complete ? failed : status_error(STATUS_UNSUPPORTED, "sizes depend on what is computed");
    again = false;
    for (uint32_t k = 0; failed && k < r->n_inputs; k++) {
      if (wanted[k] && !r->inputs[k].value) {
        r->inputs[k].value = &r->values[k];
        r->inputs[k].use = ONNX_CONTENT_CONSTANT;
        again = true;
      }
    }
    if (failed && !again) {
      return failed;
    }
    status_free(failed);
  }
  return NULL;
}

static inline status case_evaluate(case_run *r, const hlo_module *h) {
  r->results = ARENA_NEW_N(r->arena, literal, h->entry->n_roots);
  TRY(ref_eval_computation(h->entry, r->values, r->arena, r->results));
  case_cut(h, r->results);
  return NULL;
}

static inline status case_call(void *data) {
  case_run *r = data;
  onnx_model *m;
  hlo_module *h;
  TRY(case_load(r, &m));
  TRY(case_import(r, m, NULL, &h));
  return case_evaluate(r, h);
}

static inline status case_bind(case_run *r, const hlo_module *general, hlo_module **out) {
  shape *shapes = ARENA_NEW_N(r->arena, shape, general->entry->n_params);
  for (uint32_t k = 0; k < general->entry->n_params; k++) {
    shapes[k] = r->inputs[k].shape;
  }
  return hlo_bind(r->arena, general, shapes, out);
}

/* Enlarges all dimensions of inputs that the import has not defined as constants. */
static inline void case_enlarge(case_run *r, const hlo_module *general) {
  for (uint32_t k = 0; k < r->n_inputs; k++) {
    for (int d = 0; d < r->inputs[k].shape.rank; d++) {
      r->inputs[k].shape.dims[d] += !dim_is_const(general->entry->params[k]->shapes[0].dims[d]);
    }
  }
}

/* Imports the model with symbols, and evaluates the module that is bound to the sizes of the case.  Then compares the
 * module that is bound to larger sizes with the model imported for these.  Sizes for which either is refused are not
 * compared. */
static inline status case_symbols(void *data) {
  case_run *r = data;
  onnx_model *m;
  onnx_definitions definitions = {0};
  hlo_module *general, *bound, *exact;
  r->open = true;
  TRY(case_load(r, &m));
  TRY(case_import(r, m, &definitions, &general));
  TRY(case_bind(r, general, &bound));
  TRY(case_evaluate(r, bound));
  case_enlarge(r, general);
  status refused = case_import(r, m, NULL, &exact);
  refused = refused ? refused : case_bind(r, general, &bound);
  if (refused) {
    status_free(refused);
    return NULL;
  }
  return same_values(exact, bound, SAME_BITS, r->arena);
}

static inline void case_compare(const node_case *c, const literal *want, const literal *got) {
  ck_assert_msg(shape_equal(&want->shape, &got->shape), "%s-%d %s: got %s", c->op, c->opset, c->attributes,
                SHAPE_STR(NULL, &got->shape));
  for (int64_t k = 0, n = shape_elements(&want->shape); k < n; k++) {
    bool equal;
    if (dtype_is_float(want->shape.type)) {
      double w = literal_f64(want, k), g = literal_f64(got, k);
      double relative = dtype_bytes(want->shape.type) < 4 ? 4e-3 : 1e-5;
      equal = w == g || (isnan(w) && isnan(g)) || fabs(w - g) <= 1e-6 + relative * fabs(w);
      ck_assert_msg(equal, "%s-%d %s: element %d is %g, not %g", c->op, c->opset, c->attributes, (int)k, g, w);
    } else {
      long long w = literal_i64(want, k), g = literal_i64(got, k);
      ck_assert_msg(w == g, "%s-%d %s: element %d is %lld, not %lld", c->op, c->opset, c->attributes, (int)k, g, w);
    }
  }
}

static inline void run_node_case(const node_case *c) {
  case_run r = {.arena = arena_create(NULL), .c = c};
  status s = guard_run(case_call, &r);
  char kind = *c->expected;
  if (strchr("!?#", kind)) {
    status_code code = kind == '!' ? STATUS_INVALID_MODEL : kind == '?' ? STATUS_UNSUPPORTED : status_get_code(s);
    ck_assert_msg(s && status_get_code(s) == code && strstr(status_message(s), c->expected + 1),
                  "%s-%d %s %s: \"%s\" (%s) lacks \"%s\"", c->op, c->opset, c->attributes, c->inputs, status_message(s),
                  status_code_name(status_get_code(s)), c->expected + 1);
    status_free(s);
  } else {
    ck_assert_msg(!s, "%s-%d %s %s: %s", c->op, c->opset, c->attributes, c->inputs, status_message(s));
    for (uint32_t k = 0; k < r.n_outputs; k++) {
      case_compare(c, &r.expected[k], &r.results[k]);
    }
    case_run open = {.arena = r.arena, .c = c};
    s = guard_run(case_symbols, &open);
    ck_assert_msg(!s, "%s-%d %s %s with symbols: %s", c->op, c->opset, c->attributes, c->inputs, status_message(s));
    for (uint32_t k = 0; k < r.n_outputs; k++) {
      case_compare(c, &open.expected[k], &open.results[k]);
    }
  }
  arena_destroy(r.arena);
}

#endif
