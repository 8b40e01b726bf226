/* import_entry.c - makes the frame of the main graph from the input shapes and values that a caller gives; imports a
 * model as one module, or as its first segment. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/frame.h"
#include "frontend/import/import.h"
#include "frontend/import/symbolic.h"

/* --- declared types --- */

/* Returns the type of the elements of a sequence, of an optional, or of the values of a map; NULL if it is another
 * type, or does not say. */
static const Onnx__TypeProto *element_type(const Onnx__TypeProto *type) {
  switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return type->sequence_type->elem_type;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE: return type->optional_type->elem_type;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return type->map_type->value_type;
    default: return NULL;
  }
}

static shape_kind kind_of(const Onnx__TypeProto *type) {
  switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return SHAPE_SEQUENCE;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE: return SHAPE_OPTIONAL;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return SHAPE_MAP;
    default: return SHAPE_ARRAY;
  }
}

bool onnx_is_list_type(const Onnx__TypeProto *type) { return kind_of(type) != SHAPE_ARRAY; }

shape_kind onnx_element_kind(const Onnx__TypeProto *type) {
  const Onnx__TypeProto *element = element_type(type);
  return element ? kind_of(element) : SHAPE_ARRAY;
}

dtype onnx_key_type(const Onnx__TypeProto *type) {
  while (type && kind_of(type) != SHAPE_MAP) {
    type = element_type(type);
  }
  return type ? dtype_from_onnx(type->map_type->key_type) : DTYPE_INVALID;
}

/* Returns true for the types that are supported: sequences, maps and optionals of tensors, sequences of maps, and
 * optional sequences of tensors. */
static bool is_supported(const Onnx__TypeProto *type) {
  const Onnx__TypeProto *element = element_type(type);
  shape_kind kind = kind_of(type), inner = onnx_element_kind(type);
  bool nested = (kind == SHAPE_SEQUENCE && inner == SHAPE_MAP) || (kind == SHAPE_OPTIONAL && inner == SHAPE_SEQUENCE);
  element = element && nested ? element_type(element) : element;
  return element && element->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && (nested || inner == SHAPE_ARRAY);
}

static status list_shape(const char *name, const Onnx__TypeProto *type, shape *out) {
  CHECK_THAT(is_supported(type), STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "'%s' is of a type that is not supported: tensors, sequences, maps and optionals of tensors, sequences of "
             "maps, and optional sequences of tensors are",
             name);
  dtype key = onnx_key_type(type);
  bool has_keys = kind_of(type) == SHAPE_MAP || onnx_element_kind(type) == SHAPE_MAP;
  CHECK_THAT(!has_keys || key == DTYPE_S64 || key == DTYPE_STR, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "'%s' is a map whose keys are %s; int64 and strings are supported", name, dtype_name(key));
  const Onnx__TypeProto *tensor = type;
  while (kind_of(tensor) != SHAPE_ARRAY) {
    tensor = element_type(tensor);
  }
  dtype t = dtype_from_onnx(tensor->tensor_type->elem_type);
  CHECK_THAT(t != DTYPE_INVALID, STATUS_INVALID_MODEL, "'%s' has the unknown element type %d", name,
             (int)tensor->tensor_type->elem_type);
  *out = shape_scalar(t);
  out->kind = (uint8_t)kind_of(type);
  return NULL;
}

status onnx_value_shape(dim_table *dims, const Onnx__ValueInfoProto *v, shape *out) {
  CHECK_THAT(v->type, STATUS_INVALID_MODEL, "'%s' has no type", v->name);
  return onnx_type_shape(dims, v->name, v->type, out);
}

status onnx_type_shape(dim_table *dims, const char *name, const Onnx__TypeProto *type, shape *out) {
  if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
    return list_shape(name, type, out);
  }
  const Onnx__TypeProto__Tensor *t = type->tensor_type;
  dtype element = dtype_from_onnx(t->elem_type);
  CHECK_THAT(element != DTYPE_INVALID, STATUS_INVALID_MODEL, "'%s' has the unknown element type %d", name,
             (int)t->elem_type);
  if (!t->shape) {
    *out = shape_scalar(element);
    out->kind = SHAPE_UNRANKED;
    return NULL;
  }
  CHECK_THAT(t->shape->n_dim <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "'%s' has rank %zu, above %d",
             name, t->shape->n_dim, SHAPE_MAX_RANK);
  *out = shape_scalar(element);
  out->rank = (uint8_t)t->shape->n_dim;
  for (int k = 0; k < out->rank; k++) {
    const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[k];
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0) {
      out->dims[k] = d->dim_value;
    } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && *d->dim_param &&
               strcmp(d->dim_param, "?") != 0) {
      out->dims[k] = dim_named(dims, d->dim_param);
    } else { /* the dimension is absent, or a negative number, which some exporters write for "any size" */
      out->dims[k] = dim_nameless(dims, name, k);
    }
  }
  return shape_check(out, name);
}

/* --- values of symbolic dimensions: those that the caller gives, then those that follow from given input shapes --- */

typedef struct binding {
  dim symbol;
  int64_t value;
  const char *name; /* the symbol's name, or that of the dimension whose place the symbol takes (bind_dim) */
  bool is_option;   /* whether onnx_import_options.dims gives the value */
} binding;

typedef struct bindings {
  arena *arena;
  const onnx_import_options *options;
  dim_table *dims;
  binding *items;
  uint32_t n, cap;
  const char *differing; /* see onnx_frame */
} bindings;

static void bind_symbol(bindings *b, dim symbol, int64_t value, const char *name, bool is_option) {
  *ARENA_PUSH(b->arena, b->items, b->n, b->cap) = (binding){symbol, value, name, is_option};
}

static const binding *find_binding(const bindings *b, dim symbol) {
  for (uint32_t k = 0; k < b->n; k++) {
    if (b->items[k].symbol == symbol) {
      return &b->items[k];
    }
  }
  return NULL;
}

/* Gives *want, the declared dimension k of an input, its size as value.  Many models call dimensions by one name that
 * do not always have the same size, and ONNX Runtime runs these with any sizes.  So if another input has given the name
 * another size, *want becomes a symbol of its own.  Returns false if the size is not allowed.  Some exporters write 0
 * for "any size", so a declared 0 accepts every size. */
static bool bind_dim(bindings *b, const char *input, int k, dim *want, int64_t size) {
  if (dim_is_const(*want)) {
    return *want == 0 || *want == size;
  }
  const binding *known = find_binding(b, *want);
  const char *name = dim_name(b->dims, *want);
  if (known && (known->is_option || known->value == size)) {
    return known->value == size;
  }
  if (known) {
    b->differing =
        arena_printf(b->arena, "the inputs give '%s' the sizes %" PRId64 " and %" PRId64, name, known->value, size);
    *want = dim_nameless(b->dims, input, k);
  }
  bind_symbol(b, *want, size, name, false);
  return true;
}

/* Checks the shape that the caller gives for an input against the declared one, and binds the symbolic dimensions of
 * the declared shape to the sizes of the given one. */
static status bind_given(bindings *b, const char *name, shape *declared, const shape *given) {
  const shape model = *declared;
  bool any_rank = declared->kind == SHAPE_UNRANKED;
  CHECK_THAT(given->type == declared->type && (any_rank || given->rank == declared->rank),
             STATUS_INVALID_ARGUMENT | (given->type == declared->type ? STATUS_ABOUT_SHAPE : STATUS_ABOUT_TYPE),
             "input '%s' is %s; the model wants %s", name, SHAPE_STR(NULL, given), SHAPE_STR(b->dims, declared));
  for (int k = 0; !any_rank && k < given->rank; k++) {
    const binding *known = find_binding(b, model.dims[k]);
    CHECK_THAT(bind_dim(b, name, k, &declared->dims[k], given->dims[k]), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
               "input '%s' is %s; dimension %d of %s must be %" PRId64, name, SHAPE_STR(NULL, given), k,
               SHAPE_STR(b->dims, &model), known ? known->value : model.dims[k]);
  }
  return NULL;
}

static const onnx_input_shape *given_input(const onnx_import_options *o, const char *name) {
  for (uint32_t k = 0; k < o->n_inputs; k++) {
    if (strcmp(o->inputs[k].name, name) == 0) {
      return &o->inputs[k];
    }
  }
  return NULL;
}

static const dim_range *find_range(const bindings *b, const char *name) {
  for (uint32_t k = 0; k < b->options->n_ranges; k++) {
    if (strcmp(b->options->ranges[k].name, name) == 0) {
      return &b->options->ranges[k];
    }
  }
  return NULL;
}

/* Adds guards that d, a dimension that stays symbolic, is within the range.  Returns an error if `value`, the size of
 * d for which the model is imported, is not. */
static status keep_range(const bindings *b, const dim_range *r, dim d, int64_t value) {
  CHECK_THAT(value >= r->least && value <= r->most, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
             "dimension '%s' is %" PRId64 ", outside of its range, %" PRId64 " to %" PRId64, r->name, value, r->least,
             r->most);
  dim_set_source(b->dims, arena_printf(b->arena, "range of %s", r->name));
  (void)dim_set_range(b->dims, d, r->least, r->most);
  return NULL;
}

/* Returns the size that is assumed for d, which nothing else gives.  The first eight differ, so that no dimensions are
 * equal by chance, and none is a multiple of another; all are multiples of 32, since many networks halve pictures five
 * times. */
static int64_t assumed_size(const bindings *b, dim d) {
  static const int64_t sizes[] = {64, 96, 160, 224, 352, 416, 544, 608};
  onnx_dim_bindings *list = b->options->assumed;
  if (!list) {
    return b->options->open_dim;
  }
  for (uint32_t k = 0; k < list->n; k++) {
    if (strcmp(list->items[k].name, dim_name(b->dims, d)) == 0) {
      return list->items[k].value;
    }
  }
  int64_t size = sizes[list->n % (sizeof sizes / sizeof *sizes)];
  *ARENA_PUSH(b->arena, list->items, list->n, list->cap) =
      (onnx_dim_binding){arena_strdup(b->arena, dim_name(b->dims, d)), size};
  return size;
}

/* Replaces the symbolic dimensions of an input's shape by their values or, if symbols are kept, gives them their values
 * as hints. */
static status close_shape(const bindings *b, const char *name, shape *s) {
  CHECK_THAT(s->kind != SHAPE_UNRANKED, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
             "the model declares no rank for input '%s', so its shape must be given", name);
  for (int k = 0; k < s->rank; k++) {
    dim d = s->dims[k];
    if (dim_is_const(d)) {
      continue;
    }
    const binding *known = find_binding(b, d);
    const dim_range *range = find_range(b, known ? known->name : dim_name(b->dims, d));
    int64_t value = known ? known->value : range ? range->most : assumed_size(b, d);
    CHECK_THAT(known || value > 0, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
               "dimension %d (%s) of input '%s' has no value", k, dim_name(b->dims, d), name);
    s->dims[k] = value;
    if (b->options->symbols) {
      TRY(onnx_open_dim(b->dims, b->options->symbols, d, value, &s->dims[k]));
      TRY(range ? keep_range(b, range, s->dims[k], value) : NULL);
    }
  }
  return shape_check(s, name);
}

/* Returns the shape that the caller gives for an input, or the declared shape if the caller gives none. */
static status given_shape(bindings *b, const Onnx__ValueInfoProto *input, shape *out) {
  const onnx_input_shape *given = given_input(b->options, input->name);
  TRY(onnx_value_shape(b->dims, input, out));
  if (given) {
    TRY(bind_given(b, input->name, out, &given->shape));
    /* With symbols, the declared symbolic dimensions are kept.  Constant ones get the given sizes, since a
     * declared 0 accepts every size. */
    bool keep = b->options->symbols && out->kind != SHAPE_UNRANKED;
    for (int k = 0; k < given->shape.rank && keep; k++) {
      out->dims[k] = dim_is_const(out->dims[k]) ? given->shape.dims[k] : out->dims[k];
    }
    *out = keep ? *out : given->shape;
  }
  return NULL;
}

/* Returns true if the input becomes an array of the frame.  An input with an initializer does not, since the
 * initializer is looked up when a node reads it.  If findings are listed, an input without a given shape does not
 * either, since it then counts as missing.  Sequences, maps and optionals have no arrays: what reads them waits for a
 * run. */
static bool has_array(const onnx_model *m, const onnx_import_options *o, const Onnx__ValueInfoProto *v) {
  return !onnx_model_has_initializer(m, v->name) && (!o->findings || given_input(o, v->name)) &&
         !(v->type && onnx_is_list_type(v->type));
}

/* Pins the symbols in the shape of an input whose content the import uses.  Returns the shape without symbols. */
static shape pin_content(const onnx_frame *f, const char *name, const shape *s) {
  shape closed = *s;
  if (f->dims) {
    dim_set_source(f->dims, arena_printf(f->arena, "the content of input '%s'", name));
    for (int k = 0; k < s->rank; k++) {
      closed.dims[k] = dim_is_const(s->dims[k]) ? s->dims[k] : dim_pin(f->dims, s->dims[k]);
    }
  }
  return closed;
}

static status add_array(onnx_frame *f, const char *name, const shape *s, const onnx_input_shape *given) {
  onnx_array *array = ARENA_NEW(f->arena, onnx_array);
  array->value.shape = *s;
  array->value.data = given && given->value ? given->value->data : NULL;
  if (given && given->use) {
    shape closed = pin_content(f, name, s);
    s = &closed;
    CHECK_THAT(shape_equal(&given->value->shape, s), STATUS_INVALID_ARGUMENT,
               "the value of input '%s' is %s instead of %s", name, SHAPE_STR(NULL, &given->value->shape),
               SHAPE_STR(f->dims, s));
    array->value = *given->value;
    array->known = true;
    array->open_elements = given->use == ONNX_CONTENT_SYMBOLS ? UINT64_MAX : 0;
  }
  *str_map_put(&f->arrays, name) = array;
  return NULL;
}

status onnx_frame_main(arena *a, const onnx_model *model, const onnx_import_options *options, onnx_frame **out) {
  const Onnx__GraphProto *g = model->graph;
  onnx_frame *f = *out = onnx_frame_create(a, model, NULL, g, NULL, NULL);
  for (uint32_t k = 0; k < options->n_inputs && options->wanted; k++) {
    options->wanted[k] = false;
  }
  f->findings = options->findings;
  f->unchecked = options->unchecked;
  bindings b = {.arena = a, .options = options, .dims = dim_table_create(a)};
  f->dims = options->symbols ? b.dims : NULL;
  f->definitions = options->symbols;
  for (uint32_t k = 0; k < options->n_dims; k++) {
    dim symbol = dim_symbol(b.dims, options->dims[k].name);
    bind_symbol(&b, symbol, options->dims[k].value, options->dims[k].name, true);
  }
  shape *shapes = ARENA_NEW_N(a, shape, g->n_input);
  for (size_t k = 0; k < g->n_input; k++) {
    if (has_array(model, options, g->input[k])) {
      TRY(given_shape(&b, g->input[k], &shapes[k]));
    }
  }
  for (size_t k = 0; k < g->n_input; k++) {
    const char *name = g->input[k]->name;
    if (has_array(model, options, g->input[k])) {
      TRY(close_shape(&b, name, &shapes[k]));
      TRY(add_array(f, name, &shapes[k], given_input(options, name)));
    }
  }
  f->differing = b.differing;
  return NULL;
}

/* --- a whole model --- */

status onnx_import(arena *a, const onnx_model *model, const onnx_import_options *options, hlo_module **out,
                   bool *complete) {
  onnx_frame *f;
  TRY(onnx_frame_main(a, model, options, &f));
  return onnx_import_frame(a, f, options, out, complete);
}

/* If the model is not valid at sizes that differ where the model gives them one name, the caller's sizes are at fault.
 */
static status blame_sizes(const onnx_frame *f, status failed) {
  status_code about = status_get_subject(failed);
  bool is_of_sizes = status_get_code(failed) == STATUS_INVALID_MODEL && (!about || about == STATUS_ABOUT_SHAPE);
  return f->differing && is_of_sizes
             ? status_suffix(failed, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "%s", f->differing)
             : failed;
}

status onnx_import_frame(arena *a, const onnx_frame *f, const onnx_import_options *options, hlo_module **out,
                         bool *complete) {
  onnx_segment segment;
  TRY(blame_sizes(f, onnx_import_segment(a, f, true, options->eval, &segment)));
  const char *asked = NULL;
  for (uint32_t k = segment.module->entry->n_params; k-- > 0;) {
    asked = segment.params.items[k].array->asked ? segment.module->param_names[k] : asked;
  }
  for (uint32_t k = 0; k < options->n_inputs && options->wanted; k++) {
    const onnx_array *array = str_map_get(&f->arrays, options->inputs[k].name);
    options->wanted[k] = array && array->asked;
  }
  CHECK_THAT(!asked, STATUS_UNSUPPORTED | STATUS_ABOUT_VALUE, "%s; that depends on the content of input '%s'",
             segment.reason, asked);
  if (options->deferred) {
    *options->deferred = options->findings ? segment.reason : segment.deferred; /* nodes behind findings wait, too */
  }
  *complete = segment.complete;
  *out = segment.module;
  return NULL;
}
