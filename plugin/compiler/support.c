/* support.c - checks which nodes of a model can be compiled, and why the others cannot. */
#include "plugin/compiler/support.h"

#include <inttypes.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "frontend/import/assume.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/bind.h"
#include "plugin/compiler/internal.h"

typedef struct check_support {
  arena *a;
  const char *path;
  rt_span bytes; /* the model's file */
  const compile_request *request;
  support_report *out;
  const onnx_model *m;
  dim_table *dims;
  onnx_input_shape *inputs, *declared; /* the inputs with given or assumed sizes, and as the model declares them */
  uint32_t n_inputs, cap_problems, cap_notes, cap_values, cap_dim_names;
  bool open; /* whether the size of a dimension is assumed, since none is given, or an input has no rank */
} check_support;

static void add_problem(check_support *c, const char *text) {
  *ARENA_PUSH(c->a, c->out->problems, c->out->n_problems, c->cap_problems) = text;
}

static void add_status(check_support *c, status s) {
  add_problem(c, arena_strdup(c->a, status_message(s)));
  status_free(s);
}

operator_use *operator_uses(arena *a, const void *onnx_usage, uint32_t n) {
  const onnx_op_usage *used = onnx_usage;
  operator_use *out = ARENA_NEW_N(a, operator_use, n);
  for (uint32_t k = 0; k < n; k++) {
    const onnx_op_usage *u = &used[k];
    out[k] = (operator_use){.domain = *u->domain ? u->domain : "ai.onnx",
                            .name = u->name,
                            .opset = u->opset,
                            .since = u->row ? u->row->since : 0,
                            .supported = onnx_op_is_supported(u->row),
                            .count = u->count};
  }
  return out;
}

static status check_ops(check_support *c) {
  onnx_op_usage *used;
  TRY(onnx_list_ops(c->a, c->m, &used, &c->out->n_ops));
  c->out->ops = operator_uses(c->a, used, c->out->n_ops);
  for (uint32_t k = 0; k < c->out->n_ops; k++) {
    const operator_use *u = &c->out->ops[k];
    if (!u->supported) {
      add_problem(c, arena_printf(c->a, u->since ? "%s.%s (version %d)" : "%s.%s: there is no such operator", u->domain,
                                  u->name, u->since));
    }
  }
  return NULL;
}

/* Adds the names of an input's symbolic dimensions to the list, except those that are there and those that the importer
 * made up, which begin with '_'. */
static void list_dim_names(check_support *c, const shape *s) {
  for (int d = 0; d < s->rank; d++) {
    const char *name = dim_name(c->dims, s->dims[d]);
    if (name && *name != '_' && !dim_is_listed(name, c->out->dim_names, c->out->n_dim_names)) {
      *ARENA_PUSH(c->a, c->out->dim_names, c->out->n_dim_names, c->cap_dim_names) = name;
    }
  }
}

static const char *shown_name(const check_support *c, const char *given) {
  const char *found = dim_find_name(c->a, given, c->out->dim_names, c->out->n_dim_names);
  return found ? found : given;
}

/* Replaces the names of dimensions in the request by those in the list, which the importer gives them. */
static void show_names(check_support *c) {
  compile_request *r = arena_memdup(c->a, c->request, sizeof *r);
  compiler_dim *dims = arena_memdup(c->a, r->dims, r->n_dims * sizeof *dims);
  dim_range *ranges = arena_memdup(c->a, r->ranges, r->n_ranges * sizeof *ranges);
  for (uint32_t k = 0; k < r->n_dims; k++) {
    dims[k].name = shown_name(c, dims[k].name);
  }
  for (uint32_t k = 0; k < r->n_ranges; k++) {
    ranges[k].name = shown_name(c, ranges[k].name);
  }
  r->dims = dims;
  r->ranges = ranges;
  c->request = r;
}

/* Returns the size that the request gives to a symbolic dimension; -1 if it gives none. */
static dim size_of(const check_support *c, const char *name) {
  for (uint32_t k = 0; k < c->request->n_dims; k++) {
    if (strcmp(name, c->request->dims[k].name) == 0) {
      return c->request->dims[k].value;
    }
  }
  return -1;
}

static dim likely_size(const check_support *c, const char *name) {
  for (uint32_t k = 0; k < c->request->n_ranges; k++) {
    if (strcmp(name, c->request->ranges[k].name) == 0) {
      return c->request->ranges[k].most;
    }
  }
  return c->request->open_dim;
}

/* Replaces the symbolic dimensions of an input by the sizes that the request gives them, or by assumed ones. */
static void close_input(check_support *c, shape *s) {
  for (int d = 0; d < s->rank; d++) {
    const char *name = dim_name(c->dims, s->dims[d]);
    dim size = name ? size_of(c, name) : s->dims[d];
    s->dims[d] = size < 0 ? likely_size(c, name) : size;
    c->open |= size < 0;
  }
}

/* Prints a shape with the names of its symbolic dimensions; "?" stands for a name that the importer made up, which
 * begins with '_'. */
static const char *shape_for_people(check_support *c, const shape *s) {
  if (!shape_is_array(s)) {
    return shape_print(c->a, c->dims, s);
  }
  const char *text = "";
  for (int d = 0; d < s->rank; d++) {
    const char *name = dim_name(c->dims, s->dims[d]);
    text = arena_printf(c->a, "%s%s%s", text, d ? "," : "",
                        name && *name == '_' ? "?" : dim_print(c->a, c->dims, s->dims[d]));
  }
  return arena_printf(c->a, "%s[%s]", dtype_name((dtype)s->type), s->kind == SHAPE_UNRANKED ? "..." : text);
}

/* Lists an input or output with its declared shape, and sets *s to the shape.  Returns false if no type is declared, or
 * if the declaration is not supported or invalid.  *failed, which the caller owns, then says why; it is NULL if no type
 * is declared. */
static bool list_value(check_support *c, const char *what, const Onnx__ValueInfoProto *v, shape *s, status *failed) {
  *failed = v->type ? onnx_value_shape(c->dims, v, s) : NULL;
  bool known = v->type && !*failed;
  *ARENA_PUSH(c->a, c->out->values, c->out->n_values, c->cap_values) =
      arena_printf(c->a, "%-7s %s: %s", what, v->name, known ? shape_for_people(c, s) : "?");
  return known;
}

/* Lists the inputs and outputs, and collects the shapes of the inputs, so that the import can tell which
 * inputs' contents it needs. */
static void check_values(check_support *c) {
  const Onnx__GraphProto *g = c->m->graph;
  shape s;
  status failed;
  c->inputs = ARENA_NEW_N(c->a, onnx_input_shape, g->n_input);
  for (size_t k = 0; k < g->n_input; k++) {
    if (onnx_model_has_initializer(c->m, g->input[k]->name)) {
      continue;
    }
    if (!list_value(c, "input", g->input[k], &s, &failed)) {
      add_status(c, failed ? failed : status_error(STATUS_INVALID_MODEL, "input '%s' has no type", g->input[k]->name));
      continue;
    }
    if (s.kind == SHAPE_UNRANKED) {
      c->open = true;
      continue;
    }
    if (!shape_is_array(&s)) {
      continue; /* what reads it waits for a run */
    }
    list_dim_names(c, &s);
    c->inputs[c->n_inputs++] = (onnx_input_shape){.name = g->input[k]->name, .shape = s};
  }
  show_names(c);
  c->declared = arena_memdup(c->a, c->inputs, c->n_inputs * sizeof *c->inputs);
  for (uint32_t k = 0; k < c->n_inputs; k++) {
    close_input(c, &c->inputs[k].shape);
  }
  for (size_t k = 0; k < g->n_output; k++) {
    (void)list_value(c, "output", g->output[k], &s, &failed);
    if (failed && status_get_code(failed) == STATUS_UNSUPPORTED) { /* an invalid declaration of an output is ignored */
      add_status(c, failed);
    } else {
      status_free(failed);
    }
  }
}

/* Replaces assumed sizes by sizes at which the model can be imported, if there are such sizes. */
static void assume_sizes(check_support *c) {
  const Onnx__GraphProto *g = c->m->graph;
  onnx_import_options o = compiler_import_options(c->a, c->request);
  shape *shapes = ARENA_NEW_N(c->a, shape, g->n_input);
  status failed = onnx_assume_sizes(c->a, c->m, &o, shapes);
  for (size_t k = 0, n = 0; !failed && k < g->n_input; k++) {
    if (n < c->n_inputs && strcmp(c->inputs[n].name, g->input[k]->name) == 0) {
      c->inputs[n++].shape = shapes[k];
    }
  }
  status_free(failed);
}

/* Returns the sizes that are assumed, such as "n = 1, x[1] = 1", or "none". */
static const char *assumed_sizes(const check_support *c) {
  const char *text = "";
  str_map seen;
  str_map_init(&seen, c->a);
  for (uint32_t k = 0; k < c->n_inputs; k++) {
    const shape *declared = &c->declared[k].shape;
    for (int d = 0; d < declared->rank; d++) {
      const char *name = dim_name(c->dims, declared->dims[d]);
      if (name && size_of(c, name) < 0 && !str_map_get(&seen, name)) {
        *str_map_put(&seen, name) = &seen;
        name = *name == '_' ? arena_printf(c->a, "%s[%d]", c->declared[k].name, d) : name;
        text = arena_printf(c->a, "%s%s%s = %" PRId64, text, *text ? ", " : "", name, c->inputs[k].shape.dims[d]);
      }
    }
  }
  return *text ? text : "none";
}

static void add_note(check_support *c, const char *text) {
  *ARENA_PUSH(c->a, c->out->notes, c->out->n_notes, c->cap_notes) = text;
}

/* Adds a problem.  But if the size of a dimension was assumed (c->open), an invalid node is only a note, since it may
 * be valid at other sizes. */
static void add_finding(check_support *c, status_code code, const char *text) {
  if (c->open && code != STATUS_UNSUPPORTED) {
    add_note(c, arena_printf(c->a, "%s; assumed sizes: %s (--dim NAME=SIZE and --shape change that)", text,
                             assumed_sizes(c)));
  } else {
    add_problem(c, text);
  }
}

/* Imports the model and adds the problems that the import finds: attributes, types, sizes.  Problems with unsupported
 * operators are left out, since check_ops has added them. */
static void check_nodes(check_support *c) {
  hlo_module *m;
  onnx_findings findings = {0};
  bool wants = false, complete;
  const char *deferred = NULL;
  onnx_import_options options = {.inputs = c->inputs,
                                 .n_inputs = c->n_inputs,
                                 .open_dim = c->request->open_dim,
                                 .wanted = ARENA_NEW_N(c->a, bool, c->n_inputs),
                                 .findings = &findings,
                                 .deferred = &deferred,
                                 .eval = ref_fold};
  status failed = onnx_import(c->a, c->m, &options, &m, &complete);
  for (uint32_t k = 0; failed && k < c->n_inputs; k++) {
    if (options.wanted[k]) {
      wants = true;
      add_note(c, arena_printf(c->a, "the contents of input %s decide sizes: compile and run with --input",
                               c->inputs[k].name));
    }
  }
  c->out->n_findings = findings.n;
  c->out->findings = ARENA_NEW_N(c->a, compiler_finding, findings.n);
  for (uint32_t k = 0; k < findings.n; k++) {
    c->out->findings[k] = (compiler_finding){findings.items[k].code, findings.items[k].node, findings.items[k].text};
    if (findings.items[k].subject != STATUS_ABOUT_OPERATOR) {
      add_finding(c, findings.items[k].code, findings.items[k].text);
    }
  }
  if (!failed && deferred) {
    add_note(c, arena_printf(c->a, "what depends on this was not looked at: %s", deferred));
  }
  if (failed && !wants) {
    add_finding(c, status_get_code(failed), arena_strdup(c->a, status_message(failed)));
  }
  status_free(failed);
}

/* Imports the model for all sizes, and adds notes that say which nodes pin sizes, or why this import is not possible.
 * Even after a successful import, the backend may decline to compile the module for all sizes. */
static void check_sizes(check_support *c) {
  hlo_module *m;
  onnx_definitions found = {0};
  bool complete;
  onnx_import_options o = compiler_import_options(c->a, c->request);
  const char *deferred = NULL;
  o.inputs = c->inputs;
  o.n_inputs = c->n_inputs;
  o.deferred = &deferred;
  status failed = onnx_import_symbolic(c->a, c->m, &o, &found, &m, &complete);
  if (failed || !complete) {
    const char *reason =
        failed ? status_message(failed) : arena_printf(c->a, "the model runs segment by segment, since %s", deferred);
    add_note(c, arena_printf(c->a, "no program is for all sizes: %s", reason));
    status_free(failed);
    return;
  }
  for (uint32_t k = 0; k < found.n; k++) {
    const onnx_definition *d = &found.items[k];
    add_note(c, arena_printf(c->a, "for all sizes: %s needs %s = %s", d->source, d->symbol, d->equals));
  }
  add_note(c, hlo_is_static(m) ? "each set of sizes gets a program of its own" : "one program can serve all sizes");
}

static status check_guarded(void *data) {
  check_support *c = data;
  onnx_model *m;
  *c->out = (support_report){0};
  TRY(onnx_model_from_memory(c->a, c->bytes.data, c->bytes.size, c->path, NULL, &m));
  c->m = m;
  TRY(check_ops(c));
  c->dims = dim_table_create(c->a);
  check_values(c);
  if (c->open) {
    assume_sizes(c);
  }
  check_nodes(c);
  if (c->open && c->out->n_problems == 0) {
    check_sizes(c);
  }
  return NULL;
}

status compiler_check_support(arena *a, const char *path, rt_span bytes, const compile_request *request,
                              support_report *out) {
  return guard_run(check_guarded,
                   &(check_support){.a = a, .path = path, .bytes = bytes, .request = request, .out = out});
}
