/* parse.c - the parser; text.h describes the format.  The text is not trusted: sizes are checked before memory is
 * allocated, recursion is for expressions of dimensions only and limited, and hlo_verify checks the result. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "hlo/ir/shape_rules.h"
#include "hlo/text/text_internal.h"
#include "hlo/text/verify.h"

typedef struct parser {
  text_in in;
  const hlo_parse_options *options;
  int64_t budget; /* how many bytes the elements of further splats may take */
  hlo_module *module;
  arena *scratch;       /* temporary memory for the whole text */
  arena *local;         /* temporary memory for one computation */
  str_map computations; /* from name to hlo_computation */
  str_map values;       /* from name without % to hlo_value, for the computation that is being read */
  hlo_computation *computation;
} parser;

/* A growing list.  Some lists are on the arena for the computation, others on that of the module. */
#define LIST_OF(type) \
  struct {            \
    type *items;      \
    uint32_t n, cap;  \
  }
typedef LIST_OF(hlo_value) value_list;
typedef LIST_OF(hlo_size_of) size_list;
typedef LIST_OF(shape) shape_list;
typedef LIST_OF(const char *) name_list;

enum { MAX_ATTRS = 16 };

/* The contents of one instruction's line. */
typedef struct line {
  const char *start;
  hlo_op op;
  name_list results;
  value_list operands;
  shape_list shapes;
  hlo_attr attrs[MAX_ATTRS];
  const char *config, *source;
} line;

/* --- names and values --- */

/* Reads a bare or quoted name into a string on the module's arena. */
static status read_name(parser *p, const char **out) {
  const char *word = NULL;
  size_t n = 0;
  if (text_at_quote(&p->in)) {
    return text_read_quoted(&p->in, out);
  }
  TRY(text_read_word(&p->in, "_.-", &word, &n));
  *out = arena_strndup(p->in.arena, word, n);
  return NULL;
}

static status read_value_name(parser *p, const char **out) {
  const char *word = NULL;
  size_t n = 0;
  TRY(text_expect(&p->in, "%"));
  TRY(text_read_word(&p->in, "_.", &word, &n));
  *out = arena_strndup(p->local, word, n);
  return NULL;
}

static status define(parser *p, const char *name, hlo_instr *i, uint32_t index) {
  void **known = str_map_put(&p->values, name);
  CHECK_THAT(!*known, STATUS_INVALID_FILE, "%%%s is defined twice", name);
  hlo_value v = hlo_result(i, index);
  *known = arena_memdup(p->local, &v, sizeof v);
  return NULL;
}

static status read_value(parser *p, hlo_value *out) {
  const char *name = NULL;
  text_skip(&p->in);
  const char *start = p->in.at;
  TRY(read_value_name(p, &name));
  const hlo_value *v = str_map_get(&p->values, name);
  if (!v) {
    p->in.at = start;
    return status_error(STATUS_INVALID_FILE, "%%%s is not defined before its use", name);
  }
  *out = *v;
  return NULL;
}

static status read_shape(parser *p, shape *out) {
  text_skip(&p->in);
  return shape_parse(p->module->dims, &p->in.at, out);
}

static status read_config(parser *p, const char **out) {
  *out = "";
  if (!text_accept_word(&p->in, "config")) {
    return NULL;
  }
  TRY(text_expect(&p->in, "="));
  return text_read_quoted(&p->in, out);
}

static status read_source(parser *p, const char **out) {
  *out = "";
  return text_accept(&p->in, "@") ? text_read_quoted(&p->in, out) : NULL;
}

/* --- attributes --- */

typedef struct int_list {
  int64_t *items;
  uint32_t n, cap;
} int_list;

static status read_dim(parser *p, bool is_signed, int64_t *out) {
  text_skip(&p->in);
  TRY((is_signed ? dim_parse_signed : dim_parse)(p->module->dims, &p->in.at, out));
  CHECK_THAT(*out != DIM_OVERFLOW, STATUS_INVALID_FILE, "the dimension is negative or too large");
  return NULL;
}

static status read_ints(parser *p, hlo_attr_kind kind, hlo_attr *v) {
  int_list list = {0};
  TRY(text_expect(&p->in, "["));
  while (!text_accept(&p->in, "]")) {
    int64_t item = 0;
    if (list.n) {
      TRY(text_expect(&p->in, ","));
    }
    TRY(kind == HLO_KIND_INTS ? text_read_int(&p->in, &item) : read_dim(p, kind == HLO_KIND_SIGNED_DIMS, &item));
    *ARENA_PUSH(p->local, list.items, list.n, list.cap) = item;
  }
  v->n = list.n;
  v->ints = arena_memdup(p->module->arena, list.items, list.n * sizeof *list.items);
  return NULL;
}

static status read_floats(parser *p, hlo_attr *v) {
  struct {
    double *items;
    uint32_t n, cap;
  } list = {0};
  TRY(text_expect(&p->in, "["));
  while (!text_accept(&p->in, "]")) {
    double item = 0;
    if (list.n) {
      TRY(text_expect(&p->in, ","));
    }
    TRY(text_read_double(&p->in, &item));
    *ARENA_PUSH(p->local, list.items, list.n, list.cap) = item;
  }
  v->n_floats = list.n;
  v->floats = arena_memdup(p->module->arena, list.items, list.n * sizeof *list.items);
  return NULL;
}

static status read_computations(parser *p, hlo_attr *v) {
  struct {
    hlo_computation **items;
    uint32_t n, cap;
  } list = {0};
  TRY(text_expect(&p->in, "["));
  while (!text_accept(&p->in, "]")) {
    const char *name = NULL;
    if (list.n) {
      TRY(text_expect(&p->in, ","));
    }
    text_skip(&p->in);
    const char *start = p->in.at;
    TRY(read_name(p, &name));
    hlo_computation *c = str_map_get(&p->computations, name);
    if (!c) {
      p->in.at = start;
      return status_error(STATUS_INVALID_FILE, "computation %s is not defined before its use", name);
    }
    *ARENA_PUSH(p->local, list.items, list.n, list.cap) = c;
  }
  v->n_comps = list.n;
  v->comps = arena_memdup(p->module->arena, list.items, list.n * sizeof *list.items);
  return NULL;
}

static status read_bool(parser *p, hlo_attr *v) {
  v->i = text_accept_word(&p->in, "true");
  if (!v->i && !text_accept_word(&p->in, "false")) {
    return text_expected(&p->in, "true or false");
  }
  return NULL;
}

static status read_enum(parser *p, hlo_attr_kind kind, hlo_attr *v) {
  const char *word = NULL;
  size_t n = 0;
  text_skip(&p->in);
  const char *start = p->in.at;
  TRY(text_read_word(&p->in, "-", &word, &n));
  for (v->i = 0; hlo_enum_name(kind, v->i); v->i++) {
    const char *name = hlo_enum_name(kind, v->i);
    if (strlen(name) == n && memcmp(name, word, n) == 0) {
      return NULL;
    }
  }
  p->in.at = start;
  return status_error(STATUS_INVALID_FILE, "'%.*s' is no value of this attribute", (int)(n < 40 ? n : 40), word);
}

static status read_attr_value(parser *p, hlo_attr_kind kind, hlo_attr *v) {
  switch (kind) {
    case HLO_KIND_INT: return text_read_int(&p->in, &v->i);
    case HLO_KIND_BOOL: return read_bool(p, v);
    case HLO_KIND_STRING: return text_read_quoted(&p->in, &v->s);
    case HLO_KIND_INTS:
    case HLO_KIND_DIMS:
    case HLO_KIND_SIGNED_DIMS: return read_ints(p, kind, v);
    case HLO_KIND_FLOATS: return read_floats(p, v);
    case HLO_KIND_LITERAL: return text_read_literal(&p->in, p->module->dims, p->options, &p->budget, &v->value);
    case HLO_KIND_COMPS: return read_computations(p, v);
    default: return read_enum(p, kind, v);
  }
}

/* Reads one `name=value`.  *seen is the set of attributes that were read before, as bits. */
static status read_attr(parser *p, line *l, uint32_t *seen) {
  const hlo_op_info *info = hlo_op_get_info(l->op);
  const char *word = NULL;
  size_t n = 0;
  text_skip(&p->in);
  const char *start = p->in.at;
  TRY(text_read_word(&p->in, "_-", &word, &n));
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    const hlo_attr_info *attr = hlo_attr_get_info(info->attrs[k]);
    if (strlen(attr->name) == n && memcmp(attr->name, word, n) == 0 && !(*seen >> k & 1)) {
      *seen |= (uint32_t)1 << k;
      TRY(text_expect(&p->in, "="));
      return status_prefix(read_attr_value(p, attr->kind, &l->attrs[k]), "%s", attr->name);
    }
  }
  p->in.at = start;
  return status_error(STATUS_INVALID_FILE, "%s has no attribute '%.*s', or has it already", info->name,
                      (int)(n < 40 ? n : 40), word);
}

static status read_attrs(parser *p, line *l) {
  const hlo_op_info *info = hlo_op_get_info(l->op);
  uint32_t seen = 0;
  if (text_accept(&p->in, "{")) {
    while (!text_accept(&p->in, "}")) {
      if (seen) {
        TRY(text_expect(&p->in, ","));
      }
      TRY(read_attr(p, l, &seen));
    }
  }
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    CHECK_THAT(seen >> k & 1, STATUS_INVALID_FILE, "%s needs the attribute %s", info->name,
               hlo_attr_get_info(info->attrs[k])->name);
  }
  return NULL;
}

/* --- instructions --- */

static status read_result_names(parser *p, line *l) {
  text_skip(&p->in);
  if (p->in.at[0] != '%') {
    return NULL;
  }
  do {
    const char *name = NULL;
    TRY(read_value_name(p, &name));
    *ARENA_PUSH(p->local, l->results.items, l->results.n, l->results.cap) = name;
  } while (text_accept(&p->in, ","));
  return text_expect(&p->in, "=");
}

static status read_op(parser *p, line *l) {
  const char *word = NULL;
  size_t n = 0;
  text_skip(&p->in);
  const char *start = p->in.at;
  TRY(text_read_word(&p->in, "-", &word, &n));
  l->op = hlo_op_from_name(word, n);
  if (l->op == HLO_OP_COUNT || l->op == HLO_PARAMETER) {
    p->in.at = start;
    return status_error(STATUS_INVALID_FILE, "there is no operation '%.*s' here", (int)(n < 40 ? n : 40), word);
  }
  return NULL;
}

static status read_operands(parser *p, line *l) {
  TRY(text_expect(&p->in, "("));
  while (!text_accept(&p->in, ")")) {
    hlo_value v;
    if (l->operands.n) {
      TRY(text_expect(&p->in, ","));
    }
    TRY(read_value(p, &v));
    *ARENA_PUSH(p->local, l->operands.items, l->operands.n, l->operands.cap) = v;
  }
  return NULL;
}

static status read_shapes(parser *p, line *l) {
  TRY(text_expect(&p->in, ":"));
  if (text_accept(&p->in, "(")) {
    return text_expect(&p->in, ")");
  }
  do {
    shape s;
    TRY(read_shape(p, &s));
    *ARENA_PUSH(p->local, l->shapes.items, l->shapes.n, l->shapes.cap) = s;
  } while (text_accept(&p->in, ","));
  return NULL;
}

/* Checks that the shapes which the text declares are those which the operation infers. */
static status check_shapes(const line *l, hlo_instr *i) {
  const dim_table *dims = i->parent->module->dims;
  TRY(hlo_infer(i));
  for (uint32_t k = 0; k < i->n_results; k++) {
    CHECK_THAT(shape_equal(&i->shapes[k], &l->shapes.items[k]), STATUS_INVALID_MODEL,
               "result %u is declared %s but is %s", k, SHAPE_STR(dims, &l->shapes.items[k]),
               SHAPE_STR(dims, &i->shapes[k]));
  }
  return NULL;
}

static status make_instr(parser *p, const line *l) {
  const hlo_op_info *info = hlo_op_get_info(l->op);
  TRY(hlo_check_arity(l->op, l->operands.n, l->shapes.n));
  CHECK_THAT(l->results.n == l->shapes.n, STATUS_INVALID_FILE, "%s has %u names but %u shapes for its results",
             info->name, l->results.n, l->shapes.n);
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    TRY(status_prefix(hlo_verify_attr(p->module, info->attrs[k], &l->attrs[k]), "%s", info->name));
  }
  hlo_instr *i = hlo_instr_create(p->computation, NULL, l->op, l->operands.n, l->operands.items, l->shapes.n);
  i->config = l->config;
  i->source = l->source;
  memcpy(i->attrs, l->attrs, info->n_attrs * sizeof *i->attrs);
  if (l->shapes.n) {
    memcpy(i->shapes, l->shapes.items, l->shapes.n * sizeof *i->shapes);
  }
  TRY(status_prefix(check_shapes(l, i), "%s", info->name));
  for (uint32_t k = 0; k < l->results.n; k++) {
    TRY(define(p, l->results.items[k], i, k));
  }
  return budget_check(arena_budget(p->module->arena));
}

static status read_instr(parser *p) {
  line l = {0};
  text_skip(&p->in);
  l.start = p->in.at;
  TRY(read_result_names(p, &l));
  TRY(read_op(p, &l));
  TRY(read_operands(p, &l));
  TRY(read_attrs(p, &l));
  TRY(read_shapes(p, &l));
  TRY(read_config(p, &l.config));
  TRY(read_source(p, &l.source));
  const char *end = p->in.at;
  p->in.at = l.start; /* errors from here on are reported at the start of the line */
  status s = make_instr(p, &l);
  if (s) {
    return l.source[0] ? status_prefix(s, "%s", l.source) : s;
  }
  p->in.at = end;
  return NULL;
}

/* --- computations --- */

/* Reads the quoted name after a parameter or root of the entry, and appends it to names; appends NULL if there is none.
 * Other computations have no such names. */
static status read_optional_name(parser *p, bool entry, name_list *names) {
  const char *name = NULL;
  if (entry && text_at_quote(&p->in)) {
    TRY(text_read_quoted(&p->in, &name));
  }
  *ARENA_PUSH(p->module->arena, names->items, names->n, names->cap) = name;
  return NULL;
}

/* Returns the list of names, or NULL if all names are missing. */
static const char **names_or_null(const name_list *names) {
  for (uint32_t k = 0; k < names->n; k++) {
    if (names->items[k]) {
      return names->items;
    }
  }
  return NULL;
}

static status read_params(parser *p, bool entry) {
  name_list names = {0};
  TRY(text_expect(&p->in, "("));
  while (!text_accept(&p->in, ")")) {
    const char *name = NULL;
    shape s;
    if (p->computation->n_params) {
      TRY(text_expect(&p->in, ","));
    }
    TRY(read_value_name(p, &name));
    TRY(text_expect(&p->in, ":"));
    TRY(read_shape(p, &s));
    CHECK_THAT(p->computation->n_params < HLO_MAX_VALUES, STATUS_RESOURCE, "there are more than %d parameters",
               HLO_MAX_VALUES);
    hlo_instr *i = hlo_parameter(p->computation, s);
    TRY(define(p, name, i, 0));
    TRY(read_optional_name(p, entry, &names));
    TRY(read_source(p, &i->source));
  }
  if (entry) {
    p->module->param_names = names_or_null(&names);
  }
  return NULL;
}

/* Reads " size of RESULT:AXIS" after a root of the entry, if it is there. */
static status read_size_of(parser *p, const value_list *roots, size_list *sizes) {
  hlo_size_of *s = ARENA_PUSH(p->module->arena, sizes->items, sizes->n, sizes->cap);
  int64_t result, axis;
  s->axis = -1;
  if (!text_accept_word(&p->in, "size")) {
    CHECK_THAT(sizes->n == 1 || sizes->items[sizes->n - 2].axis < 0, STATUS_INVALID_FILE,
               "sizes of results must stand behind all results");
    return NULL;
  }
  CHECK_THAT(text_accept_word(&p->in, "of"), STATUS_INVALID_FILE, "\"size of RESULT:AXIS\" is wanted");
  TRY(text_read_int(&p->in, &result));
  TRY(text_expect(&p->in, ":"));
  TRY(text_read_int(&p->in, &axis));
  CHECK_THAT(result >= 0 && result < (int64_t)sizes->n - 1 && sizes->items[result].axis < 0 && axis >= 0 &&
                 axis < hlo_rank(roots->items[result]),
             STATUS_INVALID_FILE, "size of %lld:%lld: there is no such dimension", (long long)result, (long long)axis);
  const shape *size = hlo_shape(roots->items[sizes->n - 1]);
  CHECK_THAT(size->type == DTYPE_S64 && size->rank == 0, STATUS_INVALID_FILE, "a size is s64[]");
  *s = (hlo_size_of){(uint32_t)result, (int)axis};
  return NULL;
}

/* Reads " carried in PARAMETER[:AXIS to LENGTH]" after a root of the entry and sets *any, if that text is there. */
static status read_carried(parser *p, hlo_carried *c, bool *any) {
  int64_t axis = -1;
  *c = (hlo_carried){.parameter = -1, .axis = -1};
  if (!text_accept_word(&p->in, "carried")) {
    return NULL;
  }
  bool fits = *any = text_accept_word(&p->in, "in");
  TRY(text_read_int(&p->in, &c->parameter));
  if (text_accept(&p->in, ":")) {
    TRY(text_read_int(&p->in, &axis));
    fits = fits && axis >= 0 && axis < SHAPE_MAX_RANK && text_accept_word(&p->in, "to");
    TRY(fits ? read_dim(p, false, &c->length) : NULL);
  }
  c->axis = (int)axis;
  CHECK_THAT(fits && c->parameter >= 0, STATUS_INVALID_FILE, "\"carried in PARAMETER[:AXIS to LENGTH]\" is wanted");
  return NULL;
}

static status read_roots(parser *p, bool entry) {
  name_list names = {0};
  value_list roots = {0};
  size_list sizes = {0};
  hlo_carried *carried = NULL;
  uint32_t n_carried = 0, cap_carried = 0;
  bool any = false;
  while (!text_accept(&p->in, "}")) {
    hlo_value v;
    if (roots.n) {
      TRY(text_expect(&p->in, ","));
    }
    TRY(read_value(p, &v));
    CHECK_THAT(roots.n < HLO_MAX_VALUES, STATUS_RESOURCE, "there are more than %d roots", HLO_MAX_VALUES);
    *ARENA_PUSH(p->local, roots.items, roots.n, roots.cap) = v;
    TRY(read_optional_name(p, entry, &names));
    if (entry) {
      TRY(read_size_of(p, &roots, &sizes));
      TRY(read_carried(p, ARENA_PUSH(p->module->arena, carried, n_carried, cap_carried), &any));
    }
  }
  hlo_set_roots(p->computation, roots.n, roots.items);
  if (entry) {
    p->module->result_names = names_or_null(&names);
    p->module->size_of = sizes.n && sizes.items[sizes.n - 1].axis >= 0 ? sizes.items : NULL;
    p->module->carried = any ? carried : NULL;
  }
  return NULL;
}

static status open_computation(parser *p) {
  const char *name = NULL;
  TRY(read_name(p, &name));
  CHECK_THAT(!str_map_get(&p->computations, name), STATUS_INVALID_FILE, "computation %s is defined twice", name);
  p->computation = hlo_computation_create(p->module, name);
  return NULL;
}

static status read_computation(parser *p, bool entry) {
  arena_destroy(p->local);
  p->local = NULL;
  p->local = arena_create(arena_budget(p->module->arena));
  str_map_init(&p->values, p->local);
  TRY(open_computation(p));
  TRY(read_params(p, entry));
  TRY(text_expect(&p->in, "{"));
  while (!text_accept_word(&p->in, "return")) {
    TRY(read_instr(p));
  }
  TRY(read_roots(p, entry));
  *str_map_put(&p->computations, p->computation->name) =
      p->computation; /* added only now, so that it cannot call itself */
  if (entry) {
    p->module->entry = p->computation;
  }
  return NULL;
}

/* --- modules --- */

static status read_version(parser *p) {
  int64_t version = 0;
  if (!text_accept(&p->in, "onnx-xla hlo ")) {
    return text_expected(&p->in, "'onnx-xla hlo' and a version");
  }
  TRY(text_read_int(&p->in, &version));
  CHECK_THAT(version == HLO_TEXT_VERSION, STATUS_UNSUPPORTED,
             "this is HLO text of version %" PRId64 "; only version %d can be read", version, HLO_TEXT_VERSION);
  return NULL;
}

static status read_module(parser *p) {
  TRY(read_version(p));
  if (!text_accept_word(&p->in, "module")) {
    return text_expected(&p->in, "'module'");
  }
  TRY(text_read_quoted(&p->in, &p->module->name));
  p->module->kernels_assigned = text_accept_word(&p->in, "kernels_assigned");
  TRY(text_expect(&p->in, "{"));
  while (text_accept_word(&p->in, "computation")) {
    TRY(read_computation(p, false));
  }
  if (!text_accept_word(&p->in, "entry")) {
    return text_expected(&p->in, "'computation' or 'entry'");
  }
  TRY(read_computation(p, true));
  TRY(text_expect(&p->in, "}"));
  text_skip(&p->in);
  return p->in.at == p->in.end ? NULL : text_expected(&p->in, "the end");
}

static status at_position(const parser *p, status s) {
  uint32_t line_number = 1;
  const char *line_start = p->in.start;
  for (const char *c = p->in.start; c < p->in.at; c++) {
    if (*c == '\n') {
      line_number++;
      line_start = c + 1;
    }
  }
  return status_prefix(s, "%u:%td", line_number, p->in.at - line_start + 1);
}

typedef struct parse_job {
  parser *parser;
  arena *arena;
  const char *text;
  size_t n;
} parse_job;

static status parse(void *data) {
  parse_job *job = data;
  parser *p = job->parser;
  CHECK_THAT(job->n < INT32_MAX, STATUS_RESOURCE, "the text is longer than 2 GiB");
  p->scratch = arena_create(arena_budget(job->arena));
  char *copy = arena_alloc(p->scratch, job->n + 1);
  if (job->n) {
    memcpy(copy, job->text, job->n);
  }
  p->in = (text_in){copy, copy, copy + job->n, job->arena};
  p->module = hlo_module_create(job->arena, "");
  str_map_init(&p->computations, p->scratch);
  status s = read_module(p);
  dim_take_symbols(p->module->dims);
  return s ? at_position(p, s) : hlo_verify(p->module);
}

status hlo_parse(arena *a, const char *text, size_t n, const hlo_parse_options *options, hlo_module **out) {
  parser p = {.options = options, .budget = options && options->max_bytes ? options->max_bytes : (int64_t)1 << 30};
  c_locale outer = c_locale_enter();
  status s = guard_run(parse, &(parse_job){&p, a, text, n});
  c_locale_leave(outer);
  *out = s ? NULL : p.module;
  arena_destroy(p.local);
  arena_destroy(p.scratch);
  return s;
}
