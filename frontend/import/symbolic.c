/* symbolic.c - pins symbols, and imports a model or segment again until its guards have no equations that are not
 * definitions yet (symbolic.h). */
#include "frontend/import/symbolic.h"

#include <inttypes.h>
#include <string.h>

#include "base/dim/extreme.h"
#include "frontend/import/scope.h"
#include "hlo/ir/fold_sizes.h"

/* --- symbols --- */

typedef struct resolution {
  dim_table *dims;
  const onnx_definitions *definitions;
  status failed;
} resolution;

/* Returns the definition of a symbol as an expression of symbols that have no definition, or the symbol itself if it
 * has none.  A later definition never contains a symbol that has an earlier one, so the recursion ends. */
static dim resolve(void *data, dim symbol) {
  resolution *r = data;
  for (uint32_t k = 0; k < r->definitions->n && !r->failed; k++) {
    const char *text = r->definitions->items[k].equals;
    if (strcmp(r->definitions->items[k].symbol, dim_name(r->dims, symbol)) == 0) {
      dim d = symbol;
      r->failed = dim_parse(r->dims, &text, &d);
      return r->failed ? symbol : dim_substitute(r->dims, d, resolve, r);
    }
  }
  return symbol;
}

status onnx_resolve_dim(dim_table *t, const onnx_definitions *definitions, dim symbol, dim *out) {
  resolution r = {.dims = t, .definitions = definitions};
  *out = resolve(&r, symbol);
  return r.failed;
}

/* Gives the symbol the hint that it had in an earlier attempt, if it has none. */
static dim recall_hint(void *data, dim symbol) {
  resolution *r = data;
  int64_t hint;
  for (uint32_t k = 0; k < r->definitions->n_hints && !dim_hint(r->dims, symbol, &hint); k++) {
    const onnx_known_hint *known = &r->definitions->hints[k];
    if (strcmp(known->symbol, dim_name(r->dims, symbol)) == 0) {
      dim_set_hint(r->dims, symbol, known->hint);
    }
  }
  return symbol;
}

status onnx_open_dim(dim_table *t, const onnx_definitions *definitions, dim symbol, int64_t value, dim *out) {
  dim free;
  int64_t factor, rest, hint;
  TRY(onnx_resolve_dim(t, definitions, symbol, out));
  if (dim_linear(t, *out, &free, &factor, &rest) && !dim_hint(t, free, &hint)) {
    dim_set_hint(t, free, (value - rest) / factor);
  }
  (void)dim_substitute(t, *out, recall_hint, &(resolution){.dims = t, .definitions = definitions});
  return NULL;
}

/* --- what importers ask --- */

static bool pin_shape(dim_table *t, const shape *s) {
  for (int k = 0; k < s->rank; k++) {
    (void)dim_pin(t, s->dims[k]);
  }
  return !shape_is_static(s);
}

bool onnx_pin_shape(const onnx_node *n, const shape *s) { return pin_shape(onnx_dims(n), s); }

bool onnx_may_pin(const onnx_node *n) {
  const onnx_importer *im = n->scope->importer;
  return !im->frame->equations || im->frame->equations[im->node] != ONNX_EQUATIONS_IN_VAIN;
}

bool onnx_pin_inputs(const onnx_node *n) {
  bool pinned = false;
  for (uint32_t k = 0; k < n->n_in; k++) {
    pinned |= onnx_has_in(n, k) && pin_shape(onnx_dims(n), hlo_shape(n->in[k]));
  }
  return pinned;
}

status onnx_check_symbols(const onnx_node *n, const onnx_op_row *row) {
  dim_set_source(onnx_dims(n), n->b->source);
  CHECK_THAT(row->symbols != onnx_symbols_fixed || !onnx_pin_inputs(n), STATUS_UNSUPPORTED,
             "%s is imported for constant sizes only", n->proto->op_type);
  return NULL;
}

status onnx_need_constant_dims(const onnx_node *n, uint32_t k, const char *what) {
  CHECK_THAT(!pin_shape(onnx_dims(n), hlo_shape(n->in[k])), STATUS_UNSUPPORTED,
             "the dimensions of %s must be constants", what);
  return NULL;
}

status onnx_const_dim(const onnx_node *n, dim d, const char *what, int64_t *out) {
  *out = dim_pin(onnx_dims(n), d);
  CHECK_THAT(dim_is_const(d), STATUS_UNSUPPORTED, "%s must be a constant", what);
  return NULL;
}

/* Marks the instructions from which v is computed.  Returns false if v is computed from data, so that constant sizes
 * would not make v a constant. */
static bool find_operands(hlo_computation *c, hlo_value v, bool *needed) {
  needed[v.def->id] = true;
  for (const hlo_instr *i = c->last; i; i = i->prev) { /* operands come before their users in the list */
    bool source = i->op == HLO_CONSTANT || i->op == HLO_SIZES || i->op == HLO_IOTA;
    if (needed[i->id] && i->n_operands == 0 && !source) {
      return false;
    }
    for (uint32_t k = 0; needed[i->id] && k < i->n_operands; k++) {
      needed[i->operands[k].def->id] = true;
    }
  }
  return true;
}

static bool pin_instr(dim_table *t, const hlo_instr *i) {
  bool pinned = i->op == HLO_SIZES;
  for (uint32_t k = 0; pinned && k < hlo_n_ints(i, HLO_ATTR_ELEMENTS); k++) {
    (void)dim_pin(t, hlo_ints(i, HLO_ATTR_ELEMENTS)[k]);
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    pinned |= pin_shape(t, &i->shapes[k]);
  }
  return pinned;
}

/* Pins the symbols of the marked instructions.  Returns false if there are none. */
static bool pin_marked(dim_table *t, const hlo_computation *c, const bool *marked) {
  bool pinned = false;
  HLO_FOR_EACH(i, c) { pinned |= marked[i->id] && pin_instr(t, i); }
  return pinned;
}

/* Keeps only the marks of instructions of which floats are computed, as in the square root of a number of tokens.  The
 * others are arithmetic on sizes, which needs no constants. */
static void keep_operands_of_floats(const hlo_computation *c, const bool *marked, bool *kept) {
  for (const hlo_instr *i = c->last; i; i = i->prev) {
    kept[i->id] |= marked[i->id] && dtype_is_float((dtype)i->shapes[0].type);
    for (uint32_t k = 0; kept[i->id] && k < i->n_operands; k++) {
      kept[i->operands[k].def->id] = true;
    }
  }
}

bool onnx_pin_value(const onnx_node *n, hlo_value v) {
  hlo_computation *c = n->b->computation;
  if (!n->scope->importer->frame->dims) {
    return false;
  }
  hlo_number(c);
  bool *needed = ARENA_NEW_N(n->arena, bool, c->n_ids), *of_floats = ARENA_NEW_N(n->arena, bool, c->n_ids);
  if (!find_operands(c, v, needed)) {
    return false;
  }
  keep_operands_of_floats(c, needed, of_floats);
  return pin_marked(onnx_dims(n), c, of_floats) || pin_marked(onnx_dims(n), c, needed);
}

static const dim *dims_from(const onnx_node *n, const int64_t *ints, int64_t count) {
  dim *list = ARENA_NEW_N(n->arena, dim, (size_t)count);
  for (int64_t k = 0; k < count; k++) {
    int64_t v = ints[k] < -DIM_MAX ? -DIM_MAX : ints[k] > DIM_MAX ? DIM_MAX : ints[k];
    list[k] = dim_signed_const(onnx_dims(n), v);
  }
  return list;
}

status onnx_const_dims(const onnx_node *n, uint32_t k, const char *what, const dim **values, int64_t *count) {
  dim elements[HLO_MAX_SIZES];
  const int64_t *ints;
  if (onnx_has_in(n, k) && n->in[k].def->op == HLO_SIZES) {
    *count = hlo_sizes_of(n->in[k], elements);
    *values = arena_memdup(n->arena, elements, (size_t)*count * sizeof *elements);
    return NULL;
  }
  TRY(onnx_const_ints(n, k, what, &ints, count));
  *values = dims_from(n, ints, *count);
  return NULL;
}

status onnx_dims_attr_or_input(const onnx_node *n, const char *name, uint32_t k, const dim **values, int64_t *count) {
  const int64_t *ints;
  if (onnx_has_in(n, k)) {
    return onnx_const_dims(n, k, name, values, count);
  }
  TRY(onnx_ints_attr_or_input(n, name, k, &ints, count));
  *values = ints ? dims_from(n, ints, *count) : NULL;
  return NULL;
}

bool onnx_has_dims(const onnx_node *n, const shape *s, int rank, const dim *dims) {
  bool equal = s->rank == rank;
  for (int k = 0; k < rank && equal; k++) {
    equal = dim_equal(onnx_dims(n), s->dims[k], dims[k]);
  }
  return equal;
}

bool onnx_shapes_equal(const onnx_node *n, const shape *a, const shape *b) {
  return a->kind == b->kind && a->type == b->type && onnx_has_dims(n, a, b->rank, b->dims);
}

/* --- the import --- */

static bool is_defined(const onnx_definitions *d, const char *symbol) {
  for (uint32_t k = 0; k < d->n; k++) {
    if (strcmp(d->items[k].symbol, symbol) == 0) {
      return true;
    }
  }
  return false;
}

static void note_hints(arena *a, dim_table *t, dim d, onnx_definitions *out) {
  dim_symbols all = {0};
  dim_add_symbols(t, d, &all);
  for (uint32_t k = 0; k < all.n; k++) {
    int64_t hint;
    if (dim_hint(t, all.items[k], &hint)) {
      *ARENA_PUSH(a, out->hints, out->n_hints, out->cap_hints) =
          (onnx_known_hint){arena_strdup(a, dim_name(t, all.items[k])), hint};
    }
  }
}

static void define(arena *a, dim_table *t, const dim_guard *g, dim symbol, dim equals, onnx_definitions *out) {
  const char *name = dim_name(t, symbol);
  if (!is_defined(out, name)) {
    *ARENA_PUSH(a, out->items, out->n, out->cap) =
        (onnx_definition){arena_strdup(a, name), dim_print(a, t, equals), arena_strdup(a, g->source), NULL};
    note_hints(a, t, equals, out);
  }
}

/* Appends the definitions that follow from equations among the guards to *out, and returns true if there are any new
 * ones.  Pins of symbols to constants come first, and are all that is taken if `constants` is set, since expressions
 * may contain these symbols.  Only one equation between expressions is taken at a time, since others may follow from
 * it. */
static bool take_equations(arena *a, dim_table *t, bool constants, onnx_definitions *out) {
  uint32_t n, before = out->n;
  dim symbol, equals;
  for (int expressions = 0; expressions < (constants ? 1 : 2) && out->n == before; expressions++) {
    for (uint32_t k = 0; k < (dim_guards(t, &n), n) && (!expressions || out->n == before); k++) {
      const dim_guard g = dim_guards(t, &n)[k]; /* new guards may move the others */
      if (dim_guard_solve(t, &g, &symbol, &equals) && (expressions || dim_is_const(equals))) {
        define(a, t, &g, symbol, equals, out);
      }
    }
  }
  return out->n > before;
}

/* A guard on a remainder (width % 8 == 0) does not say that two sizes are equal, so it can stay a guard. */
static bool is_remainder(const dim_table *t, const dim_guard *g) {
  return dim_get_kind(t, g->a) == DIM_MOD && dim_is_const(g->b);
}

/* The symbols of an equation that are divided by constants, and the least common multiple of the constants up to
 * LARGEST, which must be 1 before. */
typedef struct divided {
  dim_table *table;
  int64_t multiple;
  dim_symbols symbols;
} divided;

static int64_t common_multiple(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y) {
    int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

static void find_divisions(divided *d, dim e) {
  enum { LARGEST = 1 << 12 };
  if (dim_is_const(e) || e == DIM_OVERFLOW || dim_get_kind(d->table, e) == DIM_SYMBOL) {
    return;
  }
  dim by = dim_rhs(d->table, e);
  if (dim_get_kind(d->table, e) == DIM_FLOORDIV && by > 1 && by <= LARGEST && d->multiple <= LARGEST) {
    d->multiple = common_multiple(d->multiple, by);
    dim_add_symbols(d->table, dim_lhs(d->table, e), &d->symbols);
    return;
  }
  find_divisions(d, dim_lhs(d->table, e));
  find_divisions(d, by);
}

/* Returns true if a definition has introduced the symbol (onnx_definition.multiple). */
static bool is_introduced(const onnx_definitions *d, const char *symbol) {
  for (uint32_t k = 0; k < d->n; k++) {
    if (d->items[k].multiple && strcmp(d->items[k].multiple, symbol) == 0) {
      return true;
    }
  }
  return false;
}

/* Symbols, and what takes the place of each of them. */
typedef struct replacements {
  dim_symbols symbols, by;
} replacements;

static dim replaced(void *data, dim symbol) {
  const replacements *r = data;
  for (uint32_t k = 0; k < r->symbols.n; k++) {
    if (r->symbols.items[k] == symbol) {
      return r->by.items[k];
    }
  }
  return symbol;
}

/* Returns true if the equation is known to hold for all values of the other symbols if this symbol is `by`. */
static bool holds_with(dim_table *t, const dim_guard *g, dim symbol, dim by) {
  replacements r = {.symbols = {1, {symbol}}, .by = {1, {by}}};
  return dim_known_equal(t, dim_substitute(t, g->a, replaced, &r), dim_substitute(t, g->b, replaced, &r));
}

/* An equation such as 2*((h+31)/32) = (h+15)/16 holds if h is a multiple of 32.  (It comes from two paths through a
 * network, of which one halves the size more often.)  So h is defined as 32*h.m for a new symbol h.m, plus the
 * remainder of h's hint by 32.  A deeper part of the network may ask the same of h.m.  It becomes a multiple only if
 * the hint of the next symbol is not 0; since that hint is smaller each time, this ends even if no multiple helps.  If
 * it is enough that one symbol of the equation is a multiple, as in rows*columns/4*4 = rows*columns, others stay as
 * they are (`alone`). */
static bool take_remainders(arena *a, dim_table *t, const dim_guard *g, bool alone, onnx_definitions *out) {
  divided d = {.table = t, .multiple = 1};
  uint32_t before = out->n;
  find_divisions(&d, g->a);
  find_divisions(&d, g->b);
  for (uint32_t k = 0; k < d.symbols.n && !(alone && out->n > before); k++) {
    int64_t hint;
    const char *name = dim_name(t, d.symbols.items[k]);
    if (!is_defined(out, name) && dim_hint(t, d.symbols.items[k], &hint) &&
        (!is_introduced(out, name) || hint >= d.multiple)) {
      dim multiple = dim_own(t, arena_printf(a, "%s.m", name));
      dim by = dim_add(t, dim_mul(t, d.multiple, multiple), hint % d.multiple);
      if (alone && !holds_with(t, g, d.symbols.items[k], by)) {
        continue;
      }
      const char *own = arena_strdup(a, dim_name(t, multiple));
      const char *equals = arena_printf(a, "%" PRId64 "*%s+%" PRId64, d.multiple, own, hint % d.multiple);
      *ARENA_PUSH(a, out->items, out->n, out->cap) =
          (onnx_definition){arena_strdup(a, name), equals, arena_strdup(a, g->source), own};
    }
  }
  return out->n > before;
}

/* An equation such as height/16*width = width holds for every width if the height is 16: pins one symbol if that makes
 * the equation hold for all values of the others. */
static bool pin_one(arena *a, dim_table *t, const dim_guard *g, onnx_definitions *out) {
  dim_symbols all = {0};
  dim_add_symbols(t, g->a, &all);
  dim_add_symbols(t, g->b, &all);
  for (uint32_t k = 0; k < all.n && all.n > 1; k++) {
    int64_t hint;
    if (dim_hint(t, all.items[k], &hint) && holds_with(t, g, all.items[k], hint)) {
      define(a, t, g, all.items[k], hint, out);
      return true;
    }
  }
  return false;
}

static bool holds_symbol(const dim_symbols *all, dim symbol) {
  bool found = false;
  for (uint32_t k = 0; k < all->n; k++) {
    found |= all->items[k] == symbol;
  }
  return found;
}

/* Pairs the symbol, which is in one side of an equation, with one that has the same hint and is only in the other side.
 */
static void pair_symbol(dim_table *t, dim symbol, const dim_symbols *others, const dim_symbols *own, replacements *p) {
  int64_t hint, other;
  for (uint32_t k = 0; k < others->n && dim_hint(t, symbol, &hint); k++) {
    dim x = others->items[k];
    if (!holds_symbol(own, x) && !holds_symbol(&p->by, x) && dim_hint(t, x, &other) && other == hint) {
      dim_add_symbols(t, symbol, &p->symbols);
      dim_add_symbols(t, x, &p->by);
      return;
    }
  }
}

/* An equation such as batch*length = rows*columns holds if batch = rows and length = columns: defines symbols of one
 * side as those of the other side with the same hints, if the equation then holds for all values.  (It comes from
 * arrays of different segments, or different inputs, of which the import does not know that they belong together.) */
static bool equate_symbols(arena *a, dim_table *t, const dim_guard *g, onnx_definitions *out) {
  dim_symbols left = {0}, right = {0};
  replacements p = {0};
  dim_add_symbols(t, g->a, &left);
  dim_add_symbols(t, g->b, &right);
  for (uint32_t k = 0; k < left.n; k++) {
    if (!holds_symbol(&right, left.items[k])) {
      pair_symbol(t, left.items[k], &right, &left, &p);
    }
  }
  bool holds = p.symbols.n > 0 && dim_known_equal(t, dim_substitute(t, g->a, replaced, &p), g->b);
  for (uint32_t k = 0; k < p.symbols.n && holds; k++) {
    define(a, t, g, p.symbols.items[k], p.by.items[k], out);
  }
  return holds;
}

/* Handles equations that cannot be solved for a symbol: defines one as a multiple (take_remainders), or pins one
 * (pin_one), or defines several as multiples, or as others (equate_symbols), or, as for 2*h = 3*w, pins all symbols of
 * the equation.  Returns true if there are new definitions. */
static bool pin_unsolved(arena *a, dim_table *t, onnx_definitions *out) {
  uint32_t n, before;
  const dim_guard *guards = dim_guards(t, &n);
  before = n;
  for (uint32_t k = 0; k < before; k++) {
    const dim_guard g = guards[k]; /* new guards may move the others */
    if (g.relation == DIM_EQUAL && !is_remainder(t, &g)) {
      if (take_remainders(a, t, &g, true, out) || pin_one(a, t, &g, out) || take_remainders(a, t, &g, false, out) ||
          equate_symbols(a, t, &g, out)) {
        return true;
      }
      dim_set_source(t, g.source);
      (void)dim_pin(t, g.a);
      (void)dim_pin(t, g.b);
      guards = dim_guards(t, &n);
    }
  }
  return n > before && take_equations(a, t, false, out);
}

/* Returns an error if a question about sizes could not be answered, since the module may then be wrong.  Call it only
 * when neither pins nor equations make another import necessary. */
static status check_answers(const dim_table *t) {
  const char *source = dim_unanswered(t), *unhinted = dim_unhinted(t);
  CHECK_THAT(!source, STATUS_UNSUPPORTED, "%s: what is computed from sizes is too large", source);
  CHECK_THAT(!unhinted, STATUS_UNSUPPORTED, "%s: this size is not known when the model is compiled", unhinted);
  return NULL;
}

static bool must_decide(const dim_table *t, bool failed, bool *decide) {
  bool must = dim_must_decide_extremes(t, failed);
  *decide = *decide || must;
  return must;
}

/* Decides whether another import is necessary: appends definitions to the list, or sets *decide, with which the next
 * import decides about minima and maxima (base/dim/extreme.h).  An import that failed may have done so for want of a
 * definition, so minima and maxima count as the cause only if there are no new ones.  A size that is a constant may
 * also change what the others are compared with, so such definitions come first. */
static bool try_again(arena *a, dim_table *t, bool failed, onnx_definitions *definitions, bool *decide) {
  return take_equations(a, t, true, definitions) || must_decide(t, false, decide) ||
         take_equations(a, t, false, definitions) || pin_unsolved(a, t, definitions) || must_decide(t, failed, decide);
}

enum { ATTEMPTS = 100 };

static status too_many_attempts(void) {
  return status_error(STATUS_UNSUPPORTED, "the sizes of the model's inputs depend on each other in too many ways");
}

status onnx_import_attempts(arena *a, const onnx_model *m, const onnx_import_options *options,
                            onnx_definitions *definitions, dim_table **dims, hlo_module **out, bool *complete) {
  bool decide = false;
  *dims = NULL;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    onnx_import_options o = *options;
    onnx_frame *f;
    o.symbols = definitions;
    TRY(onnx_frame_main(a, m, &o, &f));
    *dims = f->dims;
    if (take_equations(a, f->dims, true, definitions)) {
      continue; /* contents of inputs have pinned sizes, without which nodes could only be imported by further pins */
    }
    if (decide) {
      dim_decide_extremes(f->dims);
    }
    if (options->alone) {
      dim_forgo_special_cases(f->dims);
    }
    status failed = onnx_import_frame(a, f, &o, out, complete);
    if (try_again(a, f->dims, failed, definitions, &decide)) {
      status_free(failed);
      continue;
    }
    TRY(failed);
    return check_answers(f->dims);
  }
  return too_many_attempts();
}

status onnx_import_symbolic(arena *a, const onnx_model *m, const onnx_import_options *options,
                            onnx_definitions *definitions, hlo_module **out, bool *complete) {
  dim_table *unused;
  return onnx_import_attempts(a, m, options, definitions, &unused, out, complete);
}

status onnx_import_open_segment(arena *a, const onnx_frame *f, int64_t least_hint, hlo_eval_fn *eval,
                                onnx_segment *out) {
  onnx_definitions definitions = {0};
  onnx_frame open = *f;
  open.definitions = &definitions;
  open.least_hint = least_hint;
  open.equations = arena_calloc(a, f->n_nodes + 1, 1);
  bool decide = false;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    open.dims = dim_table_create(a);
    if (decide) {
      dim_decide_extremes(open.dims);
    }
    status failed = onnx_import_segment(a, &open, false, eval, out);
    if (!try_again(a, open.dims, failed, &definitions, &decide)) {
      if (!failed && onnx_segment_asked_in_vain(&open, out)) {
        definitions = (onnx_definitions){0};
        decide = false;
        continue;
      }
      out->definitions = definitions;
      TRY(failed);
      return check_answers(open.dims);
    }
    status_free(failed);
  }
  return too_many_attempts();
}
