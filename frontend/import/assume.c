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

status onnx_assume_sizes(arena *a, const onnx_model *m, const onnx_import_options *options, shape *shapes) {
  onnx_dim_bindings list = {0};
  onnx_import_options o = *options;
  search *s = ARENA_NEW(a, search);
  onnx_frame *f;
  o.assumed = &list;
  TRY(onnx_frame_main(a, m, &o, &f));
  *s = (search){.arena = a, .sizes = &list};
  arena_cleanup(a, end_attempt, s);
  status failed = find_sizes(s, m, &o);
  end_attempt(s);
  TRY(failed);
  TRY(onnx_frame_main(a, m, &o, &f));
  for (size_t k = 0; k < m->graph->n_input; k++) {
    const onnx_array *array = str_map_get(&f->arrays, m->graph->input[k]->name);
    shapes[k] = array ? array->value.shape : (shape){0};
  }
  return NULL;
}
