/* pass.c - the registry of passes and the runner of pipelines. */
#include "hlo/passes/pass.h"

#include <string.h>

#include "base/clock.h"
#include "hlo/text/verify.h"

/* --- the registry of passes --- */

enum {
#define PROPERTY(name, meaning) name##_NUMBER,
#include "hlo/passes/passes.def"
  N_PROPERTIES
};
enum {
#define PROPERTY(name, meaning) name = 1 << name##_NUMBER,
#define PROPERTY_SET(name, properties) name = properties,
#include "hlo/passes/passes.def"
};

static const struct {
  const char *name, *meaning;
} properties[] = {
#define PROPERTY(name, meaning) {#name, meaning},
#include "hlo/passes/passes.def"
};

/* The last row is empty, because C has no empty arrays. */
static const hlo_pass_info passes[] = {
#define PASS(name, requires, forbids, sets, clears, contract) \
  {#name, requires, forbids, sets, clears, contract, pass_##name},
#include "hlo/passes/passes.def"
    {.name = NULL}};

const hlo_pass_info *hlo_pass_list(uint32_t *n) {
  *n = sizeof passes / sizeof *passes - 1;
  return passes;
}

static bool same_name(const char *name, const char *text, size_t length) {
  for (size_t k = 0; k < length; k++) {
    if (name[k] != (text[k] == '-' ? '_' : text[k])) {
      return false; /* the 0 at the end of `name` differs, too, since `text` contains no 0 */
    }
  }
  return name[length] == '\0';
}

const hlo_pass_info *hlo_pass_find(const char *name, size_t length) {
  for (const hlo_pass_info *p = passes; p->name; p++) {
    if (same_name(p->name, name, length)) {
      return p;
    }
  }
  return NULL;
}

status hlo_pass_parse_list(arena *a, const char *names, const hlo_pass **steps, uint32_t *n) {
  hlo_pass *items = NULL;
  uint32_t cap = 0;
  *n = 0;
  while (*names) {
    size_t length = strcspn(names, ",");
    const hlo_pass_info *info = hlo_pass_find(names, length);
    CHECK_THAT(info, STATUS_INVALID_ARGUMENT, "there is no pass '%.*s'", (int)(length < 60 ? length : 60), names);
    *ARENA_PUSH(a, items, *n, cap) = (hlo_pass){.name = info->name, .run = info->run};
    names += length + (names[length] == ',');
  }
  *steps = items;
  return NULL;
}

/* --- records and notes --- */

void hlo_pass_note(pass_context *c, const char *what, int64_t value) {
  for (uint32_t k = 0; k < c->n_notes; k++) {
    if (strcmp(c->notes[k].pass, c->pass) == 0 && strcmp(c->notes[k].what, what) == 0) {
      c->notes[k].value += value;
      return;
    }
  }
  *ARENA_PUSH(c->arena, c->notes, c->n_notes, c->cap_notes) = (pass_note){c->pass, what, value};
}

hlo_builder hlo_pass_builder(pass_context *c, hlo_computation *computation, hlo_instr *at) {
  hlo_builder b = hlo_builder_make(computation);
  b.before = at;
  b.eval = c->eval;
  b.fold_bytes = c->fold_bytes;
  b.pass = c;
  b.source = at ? at->source : "";
  return b;
}

static pass_record *record_of(pass_context *c, const char *name) {
  for (uint32_t k = 0; k < c->n_records; k++) {
    if (strcmp(c->records[k].name, name) == 0) {
      return &c->records[k];
    }
  }
  pass_record *r = ARENA_PUSH(c->arena, c->records, c->n_records, c->cap_records);
  r->name = name;
  return r;
}

static int64_t count_instructions(const hlo_module *m) {
  int64_t n = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      n++;
    }
  }
  return n;
}

/* --- one pass --- */

typedef struct pass_call {
  const hlo_pass *pass;
  hlo_module *module;
  pass_context *context;
  bool changed;
} pass_call;

/* Returns an internal error with the message of s, since a broken module is the fault of the pass and not of the model.
 * If s is NULL or STATUS_RESOURCE, returns s itself. */
static status pass_fault(status s) {
  if (!s || status_get_code(s) == STATUS_RESOURCE) {
    return s;
  }
  status fault = status_error(STATUS_INTERNAL, "it left a module that breaks a rule: %s", status_message(s));
  status_free(s);
  return fault;
}

static status dump(hlo_module *m, pass_context *c, const char *name) {
  if (!c->dump) {
    return NULL;
  }
  return c->dump(c->dump_data, arena_printf(c->arena, "%03u-%s.hlo", c->n_dumps++, name), m);
}

/* Runs one pass.  run_step calls this function by guard_run, since the pass may run out of memory. */
static status call_pass(void *data) {
  pass_call *call = data;
  pass_context *c = call->context;
  hlo_module *m = call->module;
  pass_record *record = record_of(c, call->pass->name);
  int64_t before = count_instructions(m);
  uint64_t hash = c->check_changed ? hlo_module_hash(m) : 0, start = clock_nanoseconds();
  c->scratch = arena_create(arena_budget(m->arena));
  TRY(call->pass->run(m, c, &call->changed));
  record->nanoseconds += clock_nanoseconds() - start;
  CHECK_THAT(!c->check_changed || call->changed || hash == hlo_module_hash(m), STATUS_INTERNAL,
             "it changed the module and did not say so");
  if (call->changed) {
    hlo_module_clean(m);
  }
  record->runs++;
  record->changes += call->changed;
  record->instructions += count_instructions(m) - before;
  if (c->check_changed) {
    TRY(pass_fault(hlo_verify(m)));
  }
  return call->changed ? dump(m, c, call->pass->name) : NULL;
}

static status run_step(hlo_module *m, const hlo_pass *step, pass_context *c, bool *changed) {
  pass_call call = {step, m, c, false};
  const char *outer = c->pass;
  arena *outer_scratch = c->scratch; /* restored below, since a pass may itself run passes */
  c->pass = step->name;
  c->scratch = NULL;
  status s = budget_check(arena_budget(m->arena));
  s = s ? s : guard_run(call_pass, &call);
  arena_destroy(c->scratch);
  c->scratch = outer_scratch;
  c->pass = outer;
  *changed = *changed || call.changed;
  return status_prefix(s, "pass %s", step->name);
}

/* --- checking the order of a pipeline --- */

enum { MAX_ROUNDS = 8, MAX_NESTING = 8 };

/* The properties that hold at a step, and for each the pass that changed it last, or NULL. */
typedef struct pipeline_state {
  uint32_t holds;
  const char *changed_by[N_PROPERTIES];
} pipeline_state;

/* Returns the row of passes.def, or NULL if the step has none. */
static const hlo_pass_info *info_of(const hlo_pass *step) {
  for (const hlo_pass_info *p = passes; p->name; p++) {
    if (p->run == step->run) {
      return p;
    }
  }
  return NULL;
}

static status check_place(const hlo_pass_info *p, const pipeline_state *s) {
  for (uint32_t k = 0; k < N_PROPERTIES; k++) {
    bool holds = s->holds >> k & 1, required = p->requires >> k & 1, forbidden = p->forbids >> k & 1;
    const char *by = s->changed_by[k];
    CHECK_THAT(holds || !required, STATUS_INTERNAL, "pass %s requires %s (%s), which %s %s", p->name,
               properties[k].name, properties[k].meaning, by ? "does not hold after" : "no pass sets",
               by ? by : "before it");
    CHECK_THAT(!holds || !forbidden, STATUS_INTERNAL, "pass %s has to come before %s, which sets %s (%s)", p->name,
               by ? by : "what", properties[k].name, properties[k].meaning);
  }
  return NULL;
}

static void leave(const hlo_pass_info *p, pipeline_state *s) {
  s->holds = (s->holds | p->sets) & ~p->clears;
  for (uint32_t k = 0; k < N_PROPERTIES; k++) {
    s->changed_by[k] = (p->sets | p->clears) >> k & 1 ? p->name : s->changed_by[k];
  }
}

/* Checks a group twice, since its first step also runs after its last one. */
static status check_order(const pass_context *c, const hlo_pass *steps, uint32_t n, int nesting, pipeline_state *s) {
  CHECK_THAT(nesting <= MAX_NESTING, STATUS_INTERNAL, "groups of passes nest more than %d deep", MAX_NESTING);
  for (uint32_t k = 0; k < n; k++) {
    const hlo_pass_info *p = steps[k].run ? info_of(&steps[k]) : NULL;
    if (p && !c->any_order) {
      TRY(check_place(p, s));
      leave(p, s);
    }
    for (int round = 0; !steps[k].run && round < 2; round++) {
      TRY(check_order(c, steps[k].group, steps[k].n_group, nesting + 1, s));
    }
  }
  return NULL;
}

/* --- running pipelines --- */

static status is_skipped(const pass_context *c, const hlo_pass *step, bool *out) {
  *out = false;
  for (const char *at = c->skip ? c->skip : ""; *at && !*out;) {
    size_t length = strcspn(at, ",");
    *out = same_name(step->name, at, length);
    at += length + (at[length] == ',');
  }
  CHECK_THAT(!*out || !step->needed, STATUS_INVALID_ARGUMENT, "backend %s needs pass %s: it cannot be skipped",
             c->target->name, step->name);
  return NULL;
}

static status run_steps(hlo_module *m, const hlo_pass *steps, uint32_t n, pass_context *c, bool *changed) {
  for (uint32_t k = 0; k < n; k++) {
    bool again = !steps[k].run, skipped;
    TRY(is_skipped(c, &steps[k], &skipped));
    if (steps[k].run && !skipped) {
      TRY(run_step(m, &steps[k], c, changed));
    }
    uint32_t rounds = steps[k].max_rounds ? steps[k].max_rounds : MAX_ROUNDS;
    for (uint32_t round = 0; again && !skipped && round < rounds; round++) {
      again = false;
      TRY(run_steps(m, steps[k].group, steps[k].n_group, c, &again));
      *changed = *changed || again;
    }
  }
  return NULL;
}

static status verify_first(void *data) {
  pass_call *call = data;
  hlo_module_clean(call->module);
  if (call->context->verify || call->context->check_changed) {
    TRY(status_prefix(hlo_verify(call->module), "before the first pass"));
  }
  return dump(call->module, call->context, "input");
}

static status verify_last(void *data) {
  pass_call *call = data;
  if (call->context->verify && !call->context->check_changed) {
    TRY(status_prefix(pass_fault(hlo_verify(call->module)), "after the last pass"));
  }
  return dump(call->module, call->context, "final");
}

status hlo_run_passes(hlo_module *m, const hlo_pass *steps, uint32_t n, pass_context *c) {
  static const hlo_target plain = {.name = "plain"};
  bool changed = false;
  c->target = c->target ? c->target : &plain;
  c->fold_bytes = c->fold_bytes ? c->fold_bytes : 1 << 20;
  TRY(check_order(c, steps, n, 0, &(pipeline_state){.holds = m->kernels_assigned ? KERNELS_ASSIGNED : 0}));
  TRY(guard_run(verify_first, &(pass_call){NULL, m, c, false}));
  TRY(run_steps(m, steps, n, c, &changed));
  return guard_run(verify_last, &(pass_call){NULL, m, c, false});
}
