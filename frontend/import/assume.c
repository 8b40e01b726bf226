/* assume.c - searches for sizes at which a model can be imported: each attempt that fails tells by its guards which
 * answers about sizes led to the failure. */
#include "frontend/import/assume.h"

#include <string.h>

#include "base/dim/answer.h"
#include "frontend/import/symbolic.h"

/* The assumed sizes of an import that failed, in the order of their list. */
typedef struct trial {
  const struct trial *before;
  int64_t *sizes;
} trial;

/* A search for sizes at which a model can be imported. */
typedef struct search {
  arena *arena, *attempt; /* the arenas of the search and of the last import */
  onnx_dim_bindings *sizes;
  const trial *trials;
  dim_table *dims; /* the table of the last import */
  onnx_definitions definitions;
} search;

static void end_attempt(void *data) {
  search *s = data;
  arena_destroy(s->attempt);
  s->attempt = NULL;
}

/* Returns the size of an assumed dimension after the change, or -1 if it then has none. */
static int64_t size_after(search *s, const onnx_dim_binding *assumed, const dim_change *c) {
  dim symbol = dim_symbol(s->dims, assumed->name), defined;
  int64_t size;
  status failed = onnx_open_dim(s->dims, &s->definitions, symbol, assumed->value, &defined);
  bool known = !failed && dim_changed_hint(s->dims, defined, c, &size) && size > 0;
  status_free(failed);
  return known ? size : -1;
}

static bool was_tried(const search *s, const int64_t *sizes) {
  for (const trial *t = s->trials; t; t = t->before) {
    if (memcmp(t->sizes, sizes, s->sizes->n * sizeof *sizes) == 0) {
      return true;
    }
  }
  return false;
}

/* Sets the assumed sizes to what the change makes of them.  Returns false if these are no sizes, or were tried. */
static bool take_change(search *s, const dim_change *c) {
  uint32_t n = s->sizes->n;
  trial *t = ARENA_NEW(s->arena, trial);
  *t = (trial){s->trials, ARENA_NEW_N(s->arena, int64_t, n)};
  for (uint32_t k = 0; k < n; k++) {
    t->sizes[k] = size_after(s, &s->sizes->items[k], c);
    if (t->sizes[k] < 0) {
      return false;
    }
  }
  if (was_tried(s, t->sizes)) {
    return false;
  }
  for (uint32_t k = 0; k < n; k++) {
    s->sizes->items[k].value = t->sizes[k];
  }
  s->trials = t;
  return true;
}

/* Returns true if the guard says that a size is not 0 or not 1.  These sizes are special cases, so they are tried
 * last. */
static bool excludes_special(const dim_guard *g) {
  return g->relation == DIM_NOT_EQUAL && (g->a == 0 || g->a == 1 || g->b == 0 || g->b == 1);
}

static bool change_answer(search *s, const dim_guard *g) {
  dim_change changes[DIM_CHANGES];
  uint32_t n = dim_changes_of_answer(s->dims, g, changes);
  for (uint32_t k = 0; k < n; k++) {
    if (take_change(s, &changes[k])) {
      return true;
    }
  }
  return false;
}

/* Sets the assumed sizes to others, at which an answer of the last import is different: the last answer that its last
 * node got, or else an earlier one.  Returns false if there are none that were not tried. */
static bool change_sizes(search *s) {
  uint32_t n;
  const dim_guard *guards = dim_guards(s->dims, &n);
  for (uint32_t end = n, begin; end; end = begin) {
    for (begin = end - 1; begin && strcmp(guards[begin - 1].source, guards[end - 1].source) == 0;) {
      begin--;
    }
    for (int special = 0; special < 2; special++) {
      for (uint32_t k = end; k-- > begin;) {
        if (excludes_special(&guards[k]) == special && change_answer(s, &guards[k])) {
          return true;
        }
      }
    }
  }
  return false;
}

/* Returns true if the import may succeed at other sizes. */
static bool may_depend_on_sizes(const search *s, status failed) {
  unsigned about = status_get_subject(failed);
  return s->dims && status_get_code(failed) != STATUS_RESOURCE && about != STATUS_ABOUT_OPERATOR &&
         about != STATUS_ABOUT_VALUE && about != STATUS_ABOUT_TYPE;
}

static status try_sizes(search *s, const onnx_model *m, const onnx_import_options *options) {
  hlo_module *module;
  bool complete;
  end_attempt(s);
  s->attempt = arena_create(arena_budget(s->arena));
  s->definitions = (onnx_definitions){0};
  return onnx_import_attempts(s->attempt, m, options, &s->definitions, &s->dims, &module, &complete);
}

/* Imports the model at different sizes until that succeeds. */
static status find_sizes(search *s, const onnx_model *m, const onnx_import_options *options) {
  enum { IMPORTS = 100 };
  status first = try_sizes(s, m, options), failed = first;
  for (int k = 1; failed && k < IMPORTS && may_depend_on_sizes(s, failed) && change_sizes(s); k++) {
    if (failed != first) {
      status_free(failed);
    }
    failed = try_sizes(s, m, options);
  }
  if (failed != first) {
    status_free(failed ? failed : first);
  }
  return failed ? first : NULL;
}

/* --- smaller sizes --- */

/* Returns true if the last import has a guard, or an upper bound if only these count, that the change breaks. */
static bool breaks_a_guard(const search *s, bool bounds, const dim_change *c) {
  uint32_t n;
  const dim_guard *guards = dim_guards(s->dims, &n);
  bool breaks = false;
  for (uint32_t k = 0; k < n && !breaks; k++) {
    bool counts = !bounds || guards[k].relation == DIM_AT_MOST || guards[k].relation == DIM_LESS;
    breaks = counts && dim_breaks_guard(s->dims, &guards[k], c);
  }
  return breaks;
}

/* Makes assumed size k 1 if the model can be imported at that, too. */
static status make_one(search *s, const onnx_model *m, const onnx_import_options *options, uint32_t k) {
  int64_t *size = &s->sizes->items[k].value, found = *size;
  if (found == 1 || breaks_a_guard(s, false, &(dim_change){dim_symbol(s->dims, s->sizes->items[k].name), 1})) {
    return NULL;
  }
  *size = 1;
  status failed = try_sizes(s, m, options);
  if (failed && status_get_code(failed) != STATUS_RESOURCE) {
    status_free(failed);
    *size = found;
    failed = try_sizes(s, m, options); /* it succeeded before; later attempts need its guards */
  }
  return failed;
}

/* Makes the first dimension of each input 1 where the model can be imported at that, too.  It usually counts the items
 * of a batch, and the search changes all sizes if one alone helps nothing, so that there would be 768 pictures where
 * each is to have 768 rows. */
static status make_batches_small(search *s, const onnx_model *m, const onnx_import_options *options) {
  for (size_t i = 0; i < m->graph->n_input; i++) {
    shape x;
    TRY(onnx_value_shape(s->dims, m->graph->input[i], &x));
    for (uint32_t k = 0; k < s->sizes->n && x.rank > 0; k++) {
      TRY(x.dims[0] == dim_symbol(s->dims, s->sizes->items[k].name) ? make_one(s, m, options, k) : NULL);
    }
  }
  return NULL;
}

/* --- sizes beyond pins and upper bounds --- */

/* A size that is larger than the assumed one by this factor counts as any size.  A bound that is farther away is one of
 * the model, as the number of positions that it knows. */
enum { FAR = 512 };

/* Returns true if the last import has an upper bound of the symbol that `times` its hint exceeds. */
static bool exceeds(const search *s, dim symbol, int64_t times) {
  int64_t hint;
  return dim_hint(s->dims, symbol, &hint) && breaks_a_guard(s, true, &(dim_change){symbol, times * hint});
}

/* How an assumed size may limit the program of the last import, from the least to the most. */
typedef enum limit { NO_LIMIT, BOUNDED, PINNED } limit;

/* Returns the limit of assumed size k; sets *symbol if that is a bound of a symbol. */
static limit limit_of(search *s, uint32_t k, dim *symbol) {
  dim_symbols all = {0};
  dim defined = 0;
  status failed = onnx_resolve_dim(s->dims, &s->definitions, dim_symbol(s->dims, s->sizes->items[k].name), &defined);
  if (!failed) {
    dim_add_symbols(s->dims, defined, &all);
  }
  status_free(failed);
  for (uint32_t j = 0; j < all.n; j++) {
    if (exceeds(s, all.items[j], FAR)) {
      *symbol = all.items[j];
      return BOUNDED;
    }
  }
  return all.n ? NO_LIMIT : PINNED;
}

static uint32_t sum_limits(search *s) {
  uint32_t sum = 0;
  dim symbol;
  for (uint32_t k = 0; k < s->sizes->n; k++) {
    sum += limit_of(s, k, &symbol);
  }
  return sum;
}

/* Makes assumed size k larger, and those that must be equal to it.  Returns false, with the sizes as they were, if that
 * changes nothing about its limit, or no sizes are left that were not tried. */
static bool enlarge(search *s, uint32_t k, limit least, int64_t times) {
  dim symbol;
  int64_t hint, value = s->sizes->items[k].value;
  limit l = limit_of(s, k, &symbol);
  if (l < least) {
    return false;
  }
  if (l == BOUNDED) {
    return exceeds(s, symbol, times) && dim_hint(s->dims, symbol, &hint) &&
           take_change(s, &(dim_change){symbol, times * hint});
  }
  for (uint32_t j = 0; j < s->sizes->n; j++) {
    if (limit_of(s, j, &symbol) == PINNED && s->sizes->items[j].value == value) {
      s->sizes->items[j].value = times * value;
    }
  }
  return true;
}

/* Imports the model with assumed size k beyond its limit.  Returns false, with the sizes as they were, if that fails or
 * helps nothing. */
static bool go_beyond(search *s, const onnx_model *m, const onnx_import_options *options, uint32_t k, limit least,
                      int64_t times) {
  uint32_t n = s->sizes->n, before = sum_limits(s);
  onnx_dim_binding *sizes = arena_memdup(s->arena, s->sizes->items, n * sizeof *sizes);
  if (!enlarge(s, k, least, times)) {
    return false;
  }
  status failed = try_sizes(s, m, options);
  bool better = !failed && sum_limits(s) < before;
  status_free(failed);
  if (!better) {
    memcpy(s->sizes->items, sizes, n * sizeof *sizes);
    status_free(try_sizes(s, m, options)); /* it succeeded before; later attempts need its guards */
  }
  return better;
}

/* Looks for sizes with fewer limits of the kind `least` or more.  A size may well be pinned for good, as when a weight
 * has 10 rows, so there are few attempts. */
static bool find_beyond(search *s, const onnx_model *m, const onnx_import_options *options, limit least) {
  enum { ATTEMPTS = 12 };
  bool found = false;
  dim symbol;
  int attempts = 0;
  for (uint32_t k = 0; k < s->sizes->n; k++) {
    bool better = false;
    for (int64_t times = 8; times <= FAR && !better && limit_of(s, k, &symbol) >= least; times *= 8) {
      better = attempts++ < ATTEMPTS && go_beyond(s, m, options, k, least, times);
    }
    found |= better;
  }
  return found;
}

/* --- the shapes of the inputs --- */

static status assume(arena *a, const onnx_model *m, const onnx_import_options *options, shape *shapes, bool *beyond) {
  onnx_dim_bindings list = {0};
  onnx_import_options o = *options;
  search *s = ARENA_NEW(a, search);
  onnx_frame *f;
  o.assumed = &list;
  TRY(onnx_frame_main(a, m, &o, &f));
  *s = (search){.arena = a, .sizes = &list};
  arena_cleanup(a, end_attempt, s);
  status failed = find_sizes(s, m, &o);
  if (!failed && options->open_dim == 1 && !options->alone) {
    failed = make_batches_small(s, m, &o);
  }
  if (!failed && options->alone) {
    (void)find_beyond(s, m, &o, PINNED);
  }
  if (!failed && beyond) {
    *beyond = find_beyond(s, m, &o, BOUNDED);
  }
  end_attempt(s);
  TRY(failed);
  TRY(onnx_frame_main(a, m, &o, &f));
  for (size_t k = 0; k < m->graph->n_input; k++) {
    const onnx_array *array = str_map_get(&f->arrays, m->graph->input[k]->name);
    shapes[k] = array ? array->value.shape : (shape){0};
  }
  return NULL;
}

status onnx_assume_sizes(arena *a, const onnx_model *m, const onnx_import_options *options, shape *shapes) {
  return assume(a, m, options, shapes, NULL);
}

status onnx_assume_beyond(arena *a, const onnx_model *m, const onnx_import_options *options, shape *shapes,
                          bool *found) {
  return assume(a, m, options, shapes, found);
}
