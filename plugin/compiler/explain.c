/* explain.c - explains what became of one node of a model; see compiler_api.explain. */
#include <string.h>

#include "hlo/text/text.h"
#include "plugin/compiler/internal.h"

/* Returns true if a list of labels, such as "a: Conv + b: Relu (output fusion)", contains this label. */
static bool mentions(const char *text, const char *label) {
  size_t n = strlen(label);
  for (const char *at = text; (at = strstr(at, label)); at++) {
    bool begins = at == text || at[-1] == '"' || (at - text > 1 && strncmp(at - 2, "+ ", 2) == 0);
    if (begins && strchr(" :;\"", at[n])) { /* strchr also finds the terminating zero */
      return true;
    }
  }
  return false;
}

static bool is_operation(const hlo_instr *i) { return i->op != HLO_CONSTANT && i->op != HLO_PARAMETER; }

/* Returns true if the instruction comes from the node of that label, or is a fusion with an operation from it. */
static bool is_about(const hlo_instr *i, const char *label) {
  bool about = mentions(i->source, label);
  for (const hlo_instr *j = i->op == HLO_FUSION && !about ? hlo_callee(i, 0)->first : NULL; j && !about; j = j->next) {
    about = is_operation(j) && mentions(j->source, label);
  }
  return about;
}

/* --- while the passes run --- */

typedef struct explaining {
  const char *label;
  arena *a;
  bool begun;           /* whether the backend has shown the module, which it need not do (rt_compile_options.dump) */
  bool folded;          /* whether the node was a constant in the imported module */
  uint32_t operations;  /* the number of the node's operations, except constants, after the last pass so far */
  const char *imported; /* the names of the operations that the import made of the node */
  const char *gone;     /* the pass that removed the last of the node's operations; NULL if some are left */
  const char *left;     /* the lines of the final module that are about the node */
} explaining;

static bool is_fused_body(const hlo_module *m, const hlo_computation *c) {
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      if (i->op == HLO_FUSION && hlo_callee(i, 0) == c) {
        return true;
      }
    }
  }
  return false;
}

static bool has_constant(const explaining *e, const hlo_module *m) {
  bool found = false;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i && !found; i = i->next) {
      found = i->op == HLO_CONSTANT && mentions(i->source, e->label);
    }
  }
  return found;
}

/* Returns the names of the node's operations and sets *n to their number; if `lines` is set, returns the operations as
 * lines of text instead, leaves out those inside fusions, and sets *n to 0. */
static const char *list_operations(const explaining *e, const hlo_module *m, bool lines, uint32_t *n) {
  const char *text = "";
  *n = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    bool body = lines && is_fused_body(m, m->computations[k]);
    for (const hlo_instr *i = m->computations[k]->first; i && !body; i = i->next) {
      if (is_operation(i) && is_about(i, e->label)) {
        text = lines ? arena_printf(e->a, "%s  %s\n", text, hlo_instr_text(e->a, i))
                     : arena_printf(e->a, "%s%s%s", text, (*n)++ ? ", " : "", hlo_info(i)->name);
      }
    }
  }
  return text;
}

/* An rt_compile_options.dump function that records what is left of the node.  `name` is "000-input.hlo" before the
 * passes, "007-fold.hlo" after the pass fold, "042-final.hlo" or "final" after all of them, or the name of another
 * phase of the compiler. */
static status look(void *data, const char *name, const struct hlo_module *m) {
  explaining *e = data;
  uint32_t n;
  const char *dash = strchr(name, '-');
  if (!dash && strcmp(name, "final") != 0) { /* the dump of another phase, not of a pass */
    return NULL;
  }
  name = dash ? dash + 1 : name;
  const char *names = list_operations(e, m, false, &n);
  if (!e->begun) {
    e->begun = true;
    e->imported = names;
    e->folded = has_constant(e, m);
  } else if (n == 0 && e->operations) {
    e->gone = arena_strndup(e->a, name, strcspn(name, "."));
  }
  e->gone = n ? NULL : e->gone;
  e->operations = n;
  if (strncmp(name, "final", strlen("final")) == 0) {
    e->left = list_operations(e, m, true, &n);
  }
  return NULL;
}

/* --- what was made of the module --- */

static bool is_thunk_of(const rt_program *p, const rt_thunk *t, const char *node) {
  bool found = false;
  for (uint32_t k = 0; k < t->n_nodes && !found; k++) {
    found = strcmp(p->nodes[t->nodes[k]].text, node) == 0;
  }
  return found;
}

static void add_thunks(explaining *e, const rt_program *p, const rt_sequence *s, const char **text) {
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    if (is_thunk_of(p, t, e->label)) {
      *text = arena_printf(e->a, "%s  %s%s%s: %s\n", *text, t->kind, t->note && *t->note ? ", " : "",
                           t->note ? t->note : "", rt_thunk_label(e->a, p, t));
    }
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      add_thunks(e, p, &t->bodies[b], text);
    }
  }
}

static const char *list_algorithms(const explaining *e, const rt_report *r) {
  const char *text = "";
  for (uint32_t k = 0; k < r->n_tuned; k++) {
    const rt_tuned *t = &r->tuned[k];
    if (mentions(t->what, e->label)) {
      text = arena_printf(e->a, "%s  %s (%s)%s%s\n", text, t->winner, t->how, *t->times ? ": us " : "", t->times);
    }
  }
  return text;
}

/* Returns the lines of the table of buffers (rt_report.buffers) that are about the node. */
static const char *list_buffers(const explaining *e, const char *table) {
  const char *text = "";
  for (const char *at = table ? table : ""; *at;) {
    size_t n = strcspn(at, "\n");
    const char *line = arena_strndup(e->a, at, n);
    if (strchr(line, '@') && mentions(strchr(line, '@'), e->label)) {
      text = arena_printf(e->a, "%s%s\n", text, line);
    }
    at += n + (at[n] == '\n');
  }
  return text;
}

static const char *section(const explaining *e, const char *title, const char *lines) {
  return *lines ? arena_printf(e->a, "%s\n%s", title, lines) : "";
}

/* --- the node --- */

typedef struct explain_call {
  const compiler_model *s;
  const compile_request *request;
  const char *node;
  arena *a;
  const char **text;
} explain_call;

static status explain_node(void *data) {
  explain_call *c = data;
  explaining e = {.a = c->a, .imported = "", .left = ""};
  TRY(compiler_find_node(c->s, c->node, c->a, &e.label));
  const compiler_api *compiler = onnx_xla_compiler_get(COMPILER_ABI);
  compile_request request = *c->request;
  request.options.keep_text = true; /* makes the compiler write the table of buffers */
  request.options.dump = look;
  request.options.dump_data = &e;
  rt_program *program;
  rt_report report = {0};
  TRY(compiler->compile(c->s, &request, c->a, &program, &report));
  CHECK_THAT(program, STATUS_UNSUPPORTED,
             "the model runs segment by segment, since sizes depend on what it computes: there is no "
             "one program to explain a node in");
  const char *fate =
      !e.begun
          ? "the backend does not show its passes, so what the node was imported as and what became of it is not known"
      : !*e.imported && e.folded ? "folded to a constant while importing"
      : !*e.imported ? "imported without instructions: its results are arrays that existed before, or are not used"
      : e.gone       ? arena_printf(c->a, "imported as %s\nnothing of it is left since pass %s", e.imported, e.gone)
                     : arena_printf(c->a, "imported as %s", e.imported);
  const char *thunks = "";
  add_thunks(&e, program, &program->body, &thunks);
  *c->text = arena_printf(c->a, "%s\n%s\n%s%s%s%s", e.label, fate, section(&e, "after the passes", e.left),
                          section(&e, "algorithm", list_algorithms(&e, &report)), section(&e, "thunks", thunks),
                          section(&e, "buffers", list_buffers(&e, report.buffers)));
  return NULL;
}

status compiler_explain(const compiler_model *s, const compile_request *request, const char *node, arena *a,
                        const char **text) {
  return guard_run(explain_node, &(explain_call){s, request, node, a, text});
}
