/* segment.c - imports the next segment of a graph: those nodes of a frame (frame.h) that can be imported now become a
 * module. */
#include <string.h>

#include "frontend/import/import.h"
#include "frontend/import/scope.h"
#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

/* The largest result, in bytes, that is folded during the import: enough for shape arithmetic, but not for weights. */
enum { FOLD_BYTES = 64 * 1024 };

/* --- values of the frame --- */

shape onnx_told_shape(dim element) { return shape_make(DTYPE_U8, 2, (dim[]){element, 0}); }

bool onnx_holds_sizes(const shape *s) {
  bool counts = dtype_is_int((dtype)s->type) || s->type == DTYPE_PRED;
  return s->kind == SHAPE_ARRAY && s->rank <= 1 && counts && shape_is_static(s) && shape_elements(s) <= HLO_MAX_SIZES;
}

/* Returns the symbol for dimension k of an array (`what` is "") or for its element k (`what` is "value").  If it has a
 * definition (onnx_definition), returns the expression that it equals.  `value` is the present extent or element; the
 * hint is `value`, or the frame's least_hint if that is larger. */
static dim open_size(onnx_importer *im, hlo_builder *b, const char *name, const char *what, int k, int64_t value) {
  const onnx_frame *f = im->frame;
  int64_t hint = value > f->least_hint ? value : f->least_hint;
  dim d = dim_own(f->dims, arena_printf(im->arena, "%s.%s%d", name, what, k));
  hlo_fail(b, onnx_open_dim(f->dims, f->definitions, d, hint, &d));
  return d;
}

static hlo_value push_parameter(onnx_importer *im, onnx_array_use use, shape s) {
  *ARENA_PUSH(im->arena, im->params.items, im->params.n, im->params.cap) = use;
  return hlo_result(hlo_parameter(im->module->entry, s), 0);
}

static hlo_value add_parameter(onnx_importer *im, hlo_builder *b, const char *name, onnx_array *array) {
  shape s = array->value.shape;
  for (int k = 0; im->frame->dims && k < s.rank; k++) {
    s.dims[k] = array->open_dims >> k & 1 ? open_size(im, b, name, "", k, s.dims[k]) : s.dims[k];
  }
  return push_parameter(im, (onnx_array_use){.name = name, .array = array}, s);
}

/* Returns the truth value `element` as a constant, 0 or 1.  A guard makes the module valid for this value
 * only. */
static dim truth(onnx_importer *im, const char *name, dim element) {
  dim_set_source(im->frame->dims, arena_printf(im->arena, "the content of '%s'", name));
  return !dim_equal(im->frame->dims, element, 0);
}

/* Adds the array, some of whose elements are open (onnx_array.open_elements), as an instruction `sizes`.  For each open
 * element there is a symbol and an additional parameter, which tells its value (onnx_told_shape); the other elements,
 * and open ones that are no valid sizes, are constants. */
static hlo_value add_sizes(onnx_importer *im, hlo_builder *b, const char *name, onnx_array *array) {
  const literal *l = &array->value;
  dim elements[HLO_MAX_SIZES];
  int n = (int)shape_elements(&l->shape);
  uint64_t told = 0;
  for (int k = 0; k < n; k++) {
    int64_t value = literal_i64(l, k);
    uint64_t bit = (uint64_t)1 << k;
    if (!(array->open_elements & bit) || value < 0 || value > DIM_MAX) {
      elements[k] = dim_signed_const(im->frame->dims, value);
      continue;
    }
    elements[k] = open_size(im, b, name, "value", k, value);
    (void)push_parameter(im, (onnx_array_use){name, array, bit}, onnx_told_shape(elements[k]));
    elements[k] = l->shape.type == DTYPE_PRED ? truth(im, name, elements[k]) : elements[k];
    told |= bit;
  }
  *ARENA_PUSH(im->arena, im->constants.items, im->constants.n, im->constants.cap) = (onnx_array_use){name, array, told};
  return hlo_sizes(b, (dtype)l->shape.type, l->shape.rank ? n : -1, elements);
}

/* Adds the array to the module as a constant.  It is copied, since the segment may run again after the array is
 * freed. */
static hlo_value add_constant(onnx_importer *im, hlo_builder *b, const char *name, onnx_array *array) {
  *ARENA_PUSH(im->arena, im->constants.items, im->constants.n, im->constants.cap) = (onnx_array_use){name, array, 0};
  const literal *l = &array->value;
  return hlo_constant(b, literal_make(l->shape, arena_memdup(im->arena, l->data, (size_t)shape_bytes(&l->shape))));
}

static hlo_value add_array(onnx_importer *im, hlo_builder *b, const char *name, onnx_array *array) {
  if (!array->known) {
    return add_parameter(im, b, name, array);
  }
  bool is_open = im->frame->dims && array->open_elements && onnx_holds_sizes(&array->value.shape);
  return is_open ? add_sizes(im, b, name, array) : add_constant(im, b, name, array);
}

/* Adds a sequence, or an optional without an element.  Maps are read by host-interpreted nodes only. */
static hlo_value add_list(onnx_importer *im, hlo_builder *b, const char *name, onnx_array *sequence) {
  bool map = sequence->value.shape.kind == SHAPE_MAP || !sequence->elements ||
             (sequence->n && sequence->elements[0]->value.shape.kind != SHAPE_ARRAY);
  if (map) {
    hlo_fail(b, status_error(STATUS_INVALID_MODEL, "'%s' is a map or a sequence of maps", name));
    return (hlo_value){0};
  }
  onnx_array_uses *all = &im->segment->sequences;
  hlo_value *elements = ARENA_NEW_N(im->arena, hlo_value, sequence->n);
  *ARENA_PUSH(im->arena, all->items, all->n, all->cap) = (onnx_array_use){name, sequence, 0};
  for (uint32_t k = 0; k < sequence->n; k++) {
    elements[k] = add_array(im, b, onnx_element_name(im->arena, name, k), sequence->elements[k]);
  }
  dtype type = (dtype)sequence->value.shape.type;
  return sequence->value.shape.kind == SHAPE_OPTIONAL ? onnx_absent_make(im->arena, type)
                                                      : onnx_sequence_make(im->arena, type, sequence->n, elements);
}

static bool value_in(onnx_scope *s, const char *name, hlo_value *out) {
  onnx_importer *im = s->importer;
  onnx_array *array;
  literal *initializer;
  hlo_fail(s->b, onnx_frame_find(s->frame, im->arena, name, &array, &initializer));
  if (s->b->error) {
    *out = (hlo_value){0};
    return true;
  }
  if (array && array->value.shape.kind != SHAPE_ARRAY) {
    *out = add_list(im, s->b, name, array);
  } else if (array) {
    *out = add_array(im, s->b, name, array);
  } else if (initializer) {
    *out = hlo_constant(s->b, *initializer);
  } else {
    *out = (hlo_value){0};
  }
  return array || initializer || onnx_frame_leaves_out(s->frame, name);
}

bool onnx_frame_value(onnx_scope *s, const char *name, hlo_value *out) {
  if (str_map_get(&s->importer->deferred, name)) {
    s->importer->requirements.deferred = true;
    return false;
  }
  bool found = value_in(s, name, out);
  if (found) {
    onnx_scope_define(s, name, *out);
  }
  return found;
}

/* --- nodes that are host-interpreted because they read sequences --- */

/* An onnx_reads_fn. */
static bool is_sequence_of(void *frame, const char *name) {
  const onnx_array *array = NULL;
  for (const onnx_frame *f = *(const onnx_frame **)frame; f && !array; f = f->outer) {
    array = str_map_get(&f->arrays, name);
  }
  return array && array->elements;
}

static bool has_sequences(const onnx_frame *f) {
  for (; f; f = f->outer) {
    uint32_t at = 0;
    const char *name;
    void *array;
    while (str_map_next(&f->arrays, &at, &name, &array)) {
      if (array && ((onnx_array *)array)->elements) {
        return true;
      }
    }
  }
  return false;
}

bool onnx_reads_sequences(const onnx_scope *s, const Onnx__NodeProto *node) {
  onnx_importer *im = s->importer;
  if (!s->frame || !im->sequences) {
    return false;
  }
  const onnx_frame *frame = s->frame;
  return onnx_visit_reads(im->arena, node, is_sequence_of, &frame);
}

/* --- the nodes --- */

/* An onnx_reads_fn. */
static bool is_deferred(void *importer, const char *name) {
  return str_map_get(&((const onnx_importer *)importer)->deferred, name) != NULL;
}

/* Returns true if the node or one of its bodies reads a result of a deferred node.  The node's onnx_requirements do not
 * show this reliably, since the import of a body stops at the first failure. */
static bool reads_deferred(onnx_importer *im, const Onnx__NodeProto *node) {
  return onnx_visit_reads(im->arena, node, is_deferred, im);
}

/* Marks node k as host-interpreted (the host runs it between segments) if it must be and need not wait for other
 * values, otherwise as deferred.  Sets `asked` of the arrays whose contents it needs, and adds its outputs to
 * im->deferred. */
static void defer(onnx_importer *im, size_t k) {
  const onnx_requirements *w = &im->requirements;
  const Onnx__NodeProto *node = im->frame->nodes[k];
  bool host_interpreted = w->host_interpreted && !w->deferred && !w->asked.n && !reads_deferred(im, node);
  im->segment->states[k] = host_interpreted ? ONNX_NODE_HOST_INTERPRETED : ONNX_NODE_DEFERRED;
  for (uint32_t i = 0; i < w->asked.n; i++) {
    w->asked.items[i].array->asked = true;
  }
  for (size_t o = 0; o < node->n_output; o++) {
    *str_map_put(&im->deferred, node->output[o]) = im;
  }
}

/* Notes why the segment is not the whole model, unless a reason is known already. */
static void note_deferred(onnx_importer *im, const char *text) {
  im->segment->deferred = im->segment->deferred ? im->segment->deferred : text;
}

/* Handles a node that failed, and takes ownership of `failed`.  The node is deferred if the failure comes from its
 * onnx_requirements (it needs values that this segment does not have), or if the failure can be listed as a finding;
 * otherwise the import fails. */
static status refuse_or_defer(onnx_scope *s, size_t k, status failed) {
  onnx_importer *im = s->importer;
  const Onnx__NodeProto *node = im->frame->nodes[k];
  bool contents = onnx_requires_contents(&im->requirements);
  status in_builder = hlo_builder_take_error(s->b); /* set if the failure occurred while inputs were looked up */
  if (in_builder) {
    status_free(failed);
    failed = in_builder;
  }
  if (!contents && !im->requirements.deferred && !onnx_list_finding(s, node, failed)) {
    return status_at_node(failed, onnx_node_label(im->arena, node));
  }
  note_deferred(im, onnx_describe_failure(s, node, failed));
  if (contents && !im->segment->reason) {
    im->segment->reason = onnx_describe_failure(s, node, failed);
  }
  status_free(failed);
  defer(im, k);
  return NULL;
}

/* Removes the guards that node k, which does not become part of the segment, has added since there were n.  Its
 * equations stay if the import is to be repeated with them, since the node may become part of the segment then. */
static void forget_guards(onnx_importer *im, size_t k, uint32_t n) {
  const onnx_frame *f = im->frame;
  uint32_t left;
  if (f->equations) {
    dim_forget_guards(f->dims, n, f->equations[k] != ONNX_EQUATIONS_IN_VAIN);
    (void)dim_guards(f->dims, &left);
    f->equations[k] = left > n ? ONNX_EQUATIONS_ASKED : f->equations[k];
  }
}

bool onnx_segment_asked_in_vain(const onnx_frame *f, const onnx_segment *p) {
  bool found = false;
  for (size_t k = 0; k < f->n_nodes; k++) {
    if (f->equations[k] == ONNX_EQUATIONS_ASKED && p->states[k] != ONNX_NODE_DONE) {
      f->equations[k] = ONNX_EQUATIONS_IN_VAIN;
      found = true;
    }
  }
  return found;
}

/* Imports all nodes that have not run yet.  `contents` receives the names of values whose contents deferred nodes need.
 */
static status import_nodes(onnx_scope *s, str_map *contents) {
  onnx_importer *im = s->importer;
  const onnx_frame *f = im->frame;
  for (size_t k = 0; k < f->n_nodes; k++) {
    if (f->states[k] == ONNX_NODE_DONE) {
      continue;
    }
    TRY(budget_check(arena_budget(im->arena)));
    im->requirements = (onnx_requirements){0};
    im->node = (uint32_t)k;
    uint32_t n_guards = 0;
    if (f->equations) {
      (void)dim_guards(f->dims, &n_guards);
    }
    status failed = onnx_import_node(s, f->nodes[k]);
    im->segment->states[k] = ONNX_NODE_DONE;
    if (failed) {
      forget_guards(im, k, n_guards);
      TRY(refuse_or_defer(s, k, failed));
      for (uint32_t i = 0; i < im->requirements.contents.n; i++) {
        *str_map_put(contents, im->requirements.contents.items[i]) = im;
      }
    }
  }
  return NULL;
}

/* --- the results of the segment --- */

typedef struct root_list {
  uint32_t n, cap, cap_names;
  hlo_value *values;
} root_list;

static void add_root(onnx_importer *im, root_list *roots, const char *name, hlo_value v) {
  uint32_t n = roots->n;
  *ARENA_PUSH(im->arena, roots->values, roots->n, roots->cap) = v;
  *ARENA_PUSH(im->arena, im->module->result_names, n, roots->cap_names) = arena_strdup(im->arena, name);
}

/* Adds a result of the segment to the roots.  Each element of a sequence becomes a root of its own. */
static void add_leaving(onnx_importer *im, root_list *roots, const char *name, hlo_value v) {
  onnx_segment *p = im->segment;
  if (onnx_is_array(v)) {
    add_root(im, roots, name, v);
    return;
  }
  uint32_t n = onnx_sequence_length(v);
  *ARENA_PUSH(im->arena, p->leaving, p->n_leaving, p->cap_leaving) =
      (onnx_leaving){arena_strdup(im->arena, name), (shape_kind)hlo_shape(v)->kind, hlo_type(v), n, roots->n};
  for (uint32_t k = 0; k < n; k++) {
    add_root(im, roots, onnx_element_name(im->arena, name, k), onnx_sequence_elements(v)[k]);
  }
}

/* Adds to the roots the values of this segment that deferred nodes read, except the frame's outputs, which add_outputs
 * adds. */
static void add_needed(onnx_scope *s, root_list *roots) {
  onnx_importer *im = s->importer;
  const onnx_frame *f = im->frame;
  str_map needed;
  str_map_init(&needed, im->arena);
  for (size_t k = 0; k < f->n_nodes; k++) {
    if (im->segment->states[k] != ONNX_NODE_DONE) {
      onnx_add_reads(&needed, f->nodes[k]);
    }
  }
  for (size_t k = 0; k < f->n_outputs; k++) {
    *str_map_put(&needed, onnx_frame_output(f, k)) = NULL;
  }
  for (size_t k = 0; k < f->n_nodes; k++) {
    bool fresh = im->segment->states[k] == ONNX_NODE_DONE && f->states[k] != ONNX_NODE_DONE;
    for (size_t o = 0; fresh && o < f->nodes[k]->n_output; o++) {
      const char *name = f->nodes[k]->output[o];
      hlo_value *v = *name ? str_map_get(&s->values, name) : NULL;
      if (v && v->def && str_map_get(&needed, name)) {
        add_leaving(im, roots, name, *v);
      }
    }
  }
}

/* Adds to the roots the frame's outputs, except those that deferred nodes compute.  Outputs that earlier segments have
 * computed, which are arrays of the frame already, are added only if `all` is set. */
static status add_outputs(onnx_scope *s, bool all, root_list *roots) {
  onnx_importer *im = s->importer;
  for (size_t k = 0; k < im->frame->n_outputs; k++) {
    const char *name = onnx_frame_output(im->frame, k);
    hlo_value v = {0};
    if (str_map_get(&im->deferred, name) || (!all && str_map_get(&im->frame->arrays, name))) {
      continue;
    }
    CHECK_THAT(onnx_scope_lookup(s, name, &v) && v.def, STATUS_INVALID_MODEL, "graph output '%s' is not defined", name);
    add_leaving(im, roots, name, v);
  }
  return NULL;
}

static uint64_t open_sizes(const onnx_importer *im, hlo_value sizes) {
  dim elements[HLO_MAX_SIZES];
  int n = hlo_sizes_of(sizes, elements);
  uint64_t open = 0;
  for (int k = 0; k < n; k++) {
    int64_t value;
    open |= (uint64_t)!dim_signed_value(im->module->dims, elements[k], &value) << k;
  }
  return open;
}

/* Returns the mask of the elements of a list of sizes that depend on symbols or on data: all that are not constants.  A
 * list that is joined from others, such as the number of boxes that are left and the constant 4, is taken apart, to
 * `depth` levels. */
static uint64_t open_elements_of(const onnx_importer *im, hlo_value v, int depth) {
  int64_t n = shape_elements(hlo_shape(v));
  if (hlo_literal(v) || n == 0) {
    return 0;
  }
  if (v.def->op == HLO_SIZES) {
    return open_sizes(im, v);
  }
  if (v.def->op != HLO_CONCAT || depth == 0) {
    return UINT64_MAX >> (HLO_MAX_SIZES - n);
  }
  uint64_t open = 0;
  int64_t at = 0;
  for (uint32_t k = 0; k < v.def->n_operands && at < n; k++) {
    open |= open_elements_of(im, v.def->operands[k], depth - 1) << at;
    at += shape_elements(hlo_shape(v.def->operands[k]));
  }
  return open;
}

/* Notes which dimensions and elements of a result depend on symbols or on data. */
static void note_open(const onnx_importer *im, hlo_value v, uint32_t *open_dims, uint64_t *open_elements) {
  enum { MOST_JOINS = 8 };
  const shape *s = hlo_shape(v);
  for (int k = 0; k < s->rank; k++) {
    bool open = !dim_is_const(s->dims[k]) || onnx_dynamic_dim_get(im, v, k).def;
    *open_dims |= (uint32_t)open << k;
  }
  *open_elements = onnx_holds_sizes(s) ? open_elements_of(im, v, MOST_JOINS) : 0;
}

static status set_roots(onnx_scope *s, bool signature, const str_map *contents) {
  onnx_importer *im = s->importer;
  onnx_segment *p = im->segment;
  root_list roots = {0};
  im->module->result_names = ARENA_NEW_N(im->arena, const char *, 1);
  TRY(add_outputs(s, signature && p->complete, &roots));
  add_needed(s, &roots);
  p->known = ARENA_NEW_N(im->arena, bool, roots.n);
  p->open_dims = ARENA_NEW_N(im->arena, uint32_t, roots.n);
  p->open_elements = ARENA_NEW_N(im->arena, uint64_t, roots.n);
  for (uint32_t k = 0; k < roots.n; k++) {
    hlo_value v = roots.values[k];
    p->known[k] = hlo_literal(v) || v.def->op == HLO_SIZES || str_map_get(contents, im->module->result_names[k]);
    note_open(im, v, &p->open_dims[k], &p->open_elements[k]);
  }
  onnx_set_roots(im, roots.n, roots.values);
  return NULL;
}

/* --- the segment --- */

/* Adds a parameter for each input of the graph that is an array of the frame, in order, so that the module's parameters
 * are the model's inputs.  After them come the parameters that tell the values of elements of inputs (onnx_told_shape).
 * Nodes that read an input without an array, whose shape was not given or which is a sequence, a map or an optional,
 * are deferred. */
static void add_signature(onnx_scope *s) {
  onnx_importer *im = s->importer;
  const Onnx__GraphProto *g = im->frame->graph;
  for (size_t k = 0; k < g->n_input; k++) {
    const char *name = g->input[k]->name;
    onnx_array *array = str_map_get(&im->frame->arrays, name);
    bool list = g->input[k]->type && onnx_is_list_type(g->input[k]->type);
    if (!array && (list || im->frame->findings) && !onnx_model_has_initializer(im->frame->model, name)) {
      *str_map_put(&im->deferred, name) = im;
    }
    if (!array && list) {
      note_deferred(im, arena_printf(im->arena, "input '%s' is a sequence, a map or an optional", name));
      im->segment->reason = im->segment->reason ? im->segment->reason : im->segment->deferred;
    }
    if (array) {
      onnx_scope_define(s, name, add_parameter(im, s->b, name, array));
    }
  }
  for (size_t k = 0; k < g->n_input; k++) {
    const char *name = g->input[k]->name;
    onnx_array *array = str_map_get(&im->frame->arrays, name);
    if (array && array->known) {
      onnx_scope_define(s, name, add_array(im, s->b, name, array));
    }
  }
}

/* Returns false if the model has an output that is no array, so that the segment cannot be the whole of it. */
static bool are_arrays(const onnx_scope *s) {
  onnx_importer *im = s->importer;
  for (size_t k = 0; k < im->frame->n_outputs; k++) {
    const char *name = onnx_frame_output(im->frame, k);
    const hlo_value *v = str_map_get(&s->values, name);
    if (v && v->def && !onnx_is_array(*v)) {
      note_deferred(im, arena_printf(im->arena, "output '%s' is %s", name, SHAPE_STR(NULL, hlo_shape(*v))));
      return false;
    }
  }
  return true;
}

static void finish(onnx_importer *im) {
  onnx_segment *p = im->segment;
  p->module = im->module;
  p->params = im->params;
  im->module->param_names = ARENA_NEW_N(im->arena, const char *, im->params.n);
  for (uint32_t k = 0; k < im->params.n; k++) {
    im->module->param_names[k] = arena_strdup(im->arena, im->params.items[k].name);
  }
  p->constants = im->constants;
  hlo_module_clean(im->module);
}

static status import_frame(onnx_scope *s, bool signature) {
  onnx_importer *im = s->importer;
  str_map contents; /* the names of values whose contents deferred nodes need */
  str_map_init(&contents, im->arena);
  if (signature) {
    add_signature(s);
    if (!im->frame->findings) { /* if the frame lists findings, initializers are imported when a node reads them, so
                                   that errors name the node */
      TRY(onnx_import_initializers(s, im->frame->graph));
    }
  }
  TRY(hlo_builder_take_error(s->b));
  TRY(import_nodes(s, &contents));
  im->segment->complete = true;
  for (size_t k = 0; k < im->frame->n_nodes; k++) {
    im->segment->complete &= im->segment->states[k] == ONNX_NODE_DONE;
  }
  im->segment->complete &= !signature || are_arrays(s);
  TRY(set_roots(s, signature, &contents));
  TRY(hlo_builder_take_error(s->b));
  finish(im);
  return NULL;
}

status onnx_import_segment(arena *a, const onnx_frame *f, bool signature, hlo_eval_fn *eval, onnx_segment *out) {
  const char *name = f->graph ? f->graph->name : f->function->proto->name;
  hlo_module *m = hlo_module_create(a, name && *name ? name : "model");
  m->dims = f->dims ? f->dims : m->dims;
  m->entry = hlo_computation_create(m, "main");
  hlo_builder b = hlo_builder_make(m->entry);
  b.eval = eval;
  b.fold_bytes = FOLD_BYTES;
  *out = (onnx_segment){.states = arena_memdup(a, f->states, f->n_nodes)};
  onnx_importer importer = {.arena = a,
                            .module = m,
                            .frame = f,
                            .segment = out,
                            .sequences = has_sequences(f),
                            .tells_inputs = signature && f->dims};
  onnx_scope scope = {.importer = &importer,
                      .b = &b,
                      .frame = f,
                      .function = f->function,
                      .call = f->call,
                      .opsets = onnx_frame_opsets(f),
                      .place = f->place,
                      .n_nodes = f->n_nodes,
                      .nodes = f->nodes,
                      .depth = f->depth};
  str_map_init(&scope.values, a);
  str_map_init(&importer.deferred, a);
  TRY(onnx_scope_check_depth(&scope));
  return import_frame(&scope, signature);
}
