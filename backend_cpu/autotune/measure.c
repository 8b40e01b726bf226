#include "backend_cpu/autotune/measure.h"

#include <string.h>

#include "backend_cpu/lower/lower.h"
#include "backend_cpu/runtime/target.h"
#include "base/clock.h"
#include "base/hash.h"
#include "runtime/exec/executable.h"

enum { ALIGN = 64, SMALL_WEIGHTS = 64 << 10, MAX_COPIES = 64, LEAST_COPIES = 3, PATTERN = 4093 };
/* Rounds go on until a way has run for so long, or lost. */
static const double fast_nanoseconds = 8e6, thorough_nanoseconds = 60e6;
static const double round_nanoseconds = 1e6;

/* --- programs of one contraction --- */

/* Equal bytes in several places, one after the other of which runs read. */
typedef struct copies {
  uint64_t size;
  uint32_t n;
  const void *places[MAX_COPIES];
} copies;

/* Those of one race, whose ways often pack weights alike. */
typedef struct copies_list {
  arena *arena;
  uint32_t n, cap;
  copies **items;
} copies_list;

/* Weights of a program that are read so. */
typedef struct moving {
  uint32_t constant;
  const copies *copies;
} moving;

typedef struct trial {
  const cpu_measuring *m;
  const cpu_problem *p;
  const cpu_config *config;
  copies_list *copies;
  arena *arena;
  rt_program *program;
  rt_executable *executable;
  uint32_t n_moving;
  moving moving[2];
  const void **params;
  void **results;
  uint32_t turn;
  double best, spent; /* best < 0: out of the race */
} trial;

/* Copies bring a residual into the result's buffer; in the whole program it mostly lies there already. */
static void drop_copies(rt_sequence *s) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < s->n; k++) {
    if (strcmp(s->thunks[k].kind, "copy") != 0) {
      s->thunks[n++] = s->thunks[k];
    }
  }
  s->n = n;
}

static const copies *copies_of(copies_list *l, const rt_span *bytes, uint64_t span) {
  for (uint32_t k = 0; k < l->n; k++) {
    if (l->items[k]->size == bytes->size && memcmp(l->items[k]->places[0], bytes->data, bytes->size) == 0) {
      return l->items[k];
    }
  }
  copies *x = ARENA_NEW(l->arena, copies);
  uint64_t n = span / bytes->size + 1;
  n = n < LEAST_COPIES ? LEAST_COPIES : n < MAX_COPIES ? n : MAX_COPIES;
  x->size = bytes->size;
  for (; x->n < n; x->n++) {
    x->places[x->n] = memcpy(arena_alloc_aligned(l->arena, bytes->size, ALIGN), bytes->data, bytes->size);
  }
  return *ARENA_PUSH(l->arena, l->items, l->n, l->cap) = x;
}

/* What is larger than all caches is read from memory anyway. */
static void spread_weights(trial *t) {
  rt_program *p = t->program;
  uint64_t span = t->m->weights_span;
  for (uint32_t k = 0; k < p->n_constants && t->n_moving < 2 && span; k++) {
    if (p->constants[k].size >= SMALL_WEIGHTS && p->constants[k].size <= span) {
      t->moving[t->n_moving++] = (moving){k, copies_of(t->copies, &p->constants[k], span)};
    }
  }
}

/* Numbers from 1/2 to 2 of both signs, small integers: none of them is special to any kernel. */
static void fill(const shape *s, uint8_t *data) {
  dtype type = (dtype)s->type;
  size_t size = dtype_bytes(type);
  int64_t n = shape_elements(s);
  for (int64_t k = 0; k < n && k < PATTERN; k++) {
    uint64_t bits = hash_mix(0x7475, (uint64_t)k);
    if (dtype_is_float(type)) {
      double v = 0.5 + 1.5 * (double)(bits >> 11) * 0x1p-53;
      dtype_store_f64(type, data + (size_t)k * size, bits & 1 ? v : -v, true, DTYPE_ROUND_NEAREST);
    } else if (dtype_get_info(type)->kind == DTYPE_CLASS_BOOL || dtype_is_int(type)) {
      dtype_store_i64(type, data + (size_t)k * size, (int64_t)(bits & 1));
    }
  }
  for (int64_t k = PATTERN; k < n; k++) {
    memcpy(data + (size_t)k * size, data + (size_t)(k - PATTERN) * size, size);
  }
}

static void make_buffers(trial *t) {
  const rt_program *p = t->program;
  t->params = ARENA_NEW_N(t->arena, const void *, p->n_params + 1);
  t->results = ARENA_NEW_N(t->arena, void *, p->n_results + 1);
  for (uint32_t k = 0; k < p->n_params; k++) {
    uint8_t *data = arena_alloc_aligned(t->arena, (size_t)shape_bytes(&p->params[k].shape) + 1, ALIGN);
    fill(&p->params[k].shape, data);
    t->params[k] = data;
  }
  for (uint32_t k = 0; k < p->n_results; k++) {
    t->results[k] = arena_alloc_aligned(t->arena, (size_t)shape_bytes(&p->results[k].shape) + 1, ALIGN);
  }
}

static status build(void *data) {
  trial *t = data;
  arena *a = t->arena;
  const cpu_problem_options *options = &t->p->options;
  const emit_target *target = options->target;
  cpu_kernels *kernels = cpu_kernels_create(a, target, NULL);
  cpu_plans *plans = cpu_plans_create(a, options);
  hlo_instr *alone = cpu_outline(a, t->p->instr, CPU_OUTLINE_PROGRAM, -1);
  cpu_code code;
  rt_report report = {0};
  cpu_jobs *jobs = cpu_jobs_create(a);
  cpu_lower_options lower = {.target = target, .threads = options->threads, .plans = plans, .jobs = jobs};
  alone->config = cpu_config_name(a, t->config);
  TRY(cpu_plans_build_given(plans, alone->parent->module));
  TRY(cpu_lower(alone->parent->module, kernels, &lower, a, &t->program, &report));
  TRY(cpu_kernels_compile(kernels, jobs, 1, 1, &code));
  TRY(cpu_attach_code(t->program, kernels, &code));
  t->program->cpu = code.n ? emit_target_text(a, target) : "";
  drop_copies(&t->program->body);
  spread_weights(t);
  make_buffers(t);
  return rt_executable_create(t->program, &cpu_target, t->m->budget, &t->executable);
}

/* --- timing --- */

/* Runs it so often; the least time counts. */
static status run_trial(trial *t, uint32_t runs) {
  const rt_run_options options = {.pool = t->m->pool, .budget = t->m->budget};
  for (uint32_t k = 0; k < runs; k++) {
    for (uint32_t c = 0; c < t->n_moving; c++) {
      const moving *x = &t->moving[c];
      t->program->constants[x->constant].data = x->copies->places[t->turn % x->copies->n];
    }
    t->turn++;
    double start = (double)clock_nanoseconds();
    TRY(rt_execute(t->executable, &options, t->params, t->results));
    double took = (double)clock_nanoseconds() - start;
    t->best = t->best < 0 || took < t->best ? took : t->best;
    t->spent += took;
  }
  return NULL;
}

static void end_trial(trial *t) {
  rt_executable_destroy(t->executable);
  arena_destroy(t->arena);
  t->executable = NULL;
  t->arena = NULL;
}

/* Until it is seen what it takes: threads that slept while it was built come to the first runs late, or not at all. */
static status warm_up(trial *t) {
  enum { FEWEST = 2, MOST = 100 };
  const double waking_nanoseconds = 4e5;
  TRY(run_trial(t, 1));
  t->best = -1;
  t->spent = 0;
  for (int k = 0; k < FEWEST || (k < MOST && t->p->options.threads > 1 && t->spent < waking_nanoseconds); k++) {
    TRY(run_trial(t, 1));
  }
  return NULL;
}

/* Builds it and runs it for the first time, which does not count.  False: it is out. */
static status begin_trial(trial *t, bool *in) {
  t->arena = arena_create(t->m->budget);
  t->best = -1;
  status s = guard_run(build, t);
  s = s ? s : warm_up(t);
  *in = !s;
  if (s) {
    t->best = -1;
    end_trial(t);
    status_free(s);
  }
  return budget_check(t->m->budget); /* other failures are the way's own */
}

typedef struct race {
  const cpu_measuring *m;
  copies_list copies;
  uint32_t n;
  trial *trials;
  bool *in;
} race;

static double best_of(const race *r) {
  double best = -1;
  for (uint32_t k = 0; k < r->n; k++) {
    double t = r->trials[k].best;
    best = t >= 0 && (best < 0 || t < best) ? t : best;
  }
  return best;
}

/* Those far behind go. */
static void drop_losers(race *r, double factor) {
  double best = best_of(r);
  for (uint32_t k = 0; k < r->n; k++) {
    if (r->in[k] && r->trials[k].best > best * factor) {
      r->in[k] = false;
      end_trial(&r->trials[k]);
    }
  }
}

/* Each in turn, so that what disturbs the machine disturbs all alike. */
static status run_rounds(race *r) {
  double enough = r->m->thorough ? thorough_nanoseconds : fast_nanoseconds;
  bool more = true;
  for (uint32_t round = 0; more && (round < 3 || best_of(r) < enough / 3); round++) {
    more = false;
    for (uint32_t k = 0; k < r->n; k++) {
      trial *t = &r->trials[k];
      if (r->in[k] && t->spent < enough) {
        double runs = round_nanoseconds / (t->best + 1);
        TRY(run_trial(t, runs < 1 ? 1 : runs > 200 ? 200 : (uint32_t)runs));
        more = true;
      }
    }
    drop_losers(r, r->m->thorough ? 1.5 : 1.25);
  }
  return NULL;
}

status cpu_measure(const cpu_measuring *m, const cpu_problem *p, uint32_t n, const cpu_config *configs,
                   double *nanoseconds) {
  trial trials[CPU_MAX_CONFIGS] = {0};
  bool in[CPU_MAX_CONFIGS] = {0};
  race r = {m, {.arena = arena_create(m->budget)}, n < CPU_MAX_CONFIGS ? n : CPU_MAX_CONFIGS, trials, in};
  status s = NULL;
  for (uint32_t k = 0; k < r.n && !s; k++) {
    trials[k] = (trial){.m = m, .p = p, .config = &configs[k], .copies = &r.copies};
    s = begin_trial(&trials[k], &in[k]);
    drop_losers(&r, m->thorough ? 4 : 2);
  }
  s = s ? s : run_rounds(&r);
  for (uint32_t k = 0; k < n; k++) {
    nanoseconds[k] = k < r.n ? trials[k].best : -1;
    if (k < r.n && in[k]) {
      end_trial(&trials[k]);
    }
  }
  arena_destroy(r.copies.arena);
  return s;
}
