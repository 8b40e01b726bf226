/* trial.c - see trial.h. */
#include "backend_cpu/autotune/trial.h"

#include <string.h>

#include "backend_cpu/lower/lower.h"
#include "backend_cpu/runtime/target.h"
#include "base/hash.h"
#include "lower/kernels/outline.h"
#include "lower/kernels/thunks.h"
#include "runtime/exec/executable.h"

enum { ALIGN = 64, LEAST_MOVED = 64 << 10, MAX_COPIES = 64, LEAST_COPIES = 3, PATTERN = 4093 };

/* Several copies of one constant. */
typedef struct copied {
  uint64_t size;
  uint32_t n;
  const void *places[MAX_COPIES];
} copied;

struct cpu_copies {
  arena *arena;
  uint32_t n, cap;
  copied **items;
};

/* A constant of the trial's program, of which each run reads another copy. */
typedef struct moving {
  uint32_t constant;
  const copied *copied;
} moving;

struct autotune_trial {
  arena *arena;
  const cpu_problem *problem;
  const char *config;
  rt_thread_pool *pool;
  cpu_copies *copies;
  uint64_t weights_span;
  mem_budget *budget;
  rt_program *program;
  rt_executable *executable;
  uint32_t n_moving;
  moving moving[2];
  const void **params;
  void **results;
  uint32_t turn;
};

cpu_copies *cpu_copies_create(arena *a) {
  cpu_copies *c = ARENA_NEW(a, cpu_copies);
  c->arena = a;
  return c;
}

/* --- building a trial --- */

/* Removes "copy" thunks from the program.  They copy a residual into the result's buffer, where it usually is already
 * when the whole program runs, so they must not be timed. */
static void drop_copies(rt_sequence *s) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < s->n; k++) {
    if (strcmp(s->thunks[k].kind, "copy") != 0) {
      s->thunks[n++] = s->thunks[k];
    }
  }
  s->n = n;
}

static const copied *copies_of(cpu_copies *l, const rt_span *bytes, uint64_t span) {
  for (uint32_t k = 0; k < l->n; k++) {
    if (l->items[k]->size == bytes->size && memcmp(l->items[k]->places[0], bytes->data, bytes->size) == 0) {
      return l->items[k];
    }
  }
  copied *x = ARENA_NEW(l->arena, copied);
  uint64_t n = span / bytes->size + 1;
  n = n < LEAST_COPIES ? LEAST_COPIES : n < MAX_COPIES ? n : MAX_COPIES;
  x->size = bytes->size;
  for (; x->n < n; x->n++) {
    x->places[x->n] = memcpy(arena_alloc_aligned(l->arena, bytes->size, ALIGN), bytes->data, bytes->size);
  }
  return *ARENA_PUSH(l->arena, l->items, l->n, l->cap) = x;
}

/* Makes copies of the program's large constants, so that each run can read other copies than the run before.  A
 * constant of more than weights_span bytes does not fit in a cache in any case, so it is not copied. */
static void spread_weights(autotune_trial *t) {
  rt_program *p = t->program;
  uint64_t span = t->weights_span;
  for (uint32_t k = 0; k < p->n_constants && t->n_moving < 2 && span; k++) {
    if (p->constants[k].size >= LEAST_MOVED && p->constants[k].size <= span) {
      t->moving[t->n_moving++] = (moving){k, copies_of(t->copies, &p->constants[k], span)};
    }
  }
}

/* Fills an array with floats whose magnitudes are from 1/2 to 2, or with the integers 0 and 1.  No kernel treats any of
 * these specially. */
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

static void make_buffers(autotune_trial *t) {
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
  autotune_trial *t = data;
  arena *a = t->arena;
  const cpu_problem_options *options = &t->problem->options;
  const emit_target *target = options->target;
  lower_kernels *kernels = lower_kernels_create(a, target, "cpu.kernel", NULL);
  cpu_plans *plans = cpu_plans_create(a, options);
  lower_outline_symbols none = {0}; /* only problems whose sizes are constants are timed */
  size_table sizes;
  hlo_instr *alone = lower_outline(a, t->problem->instr, LOWER_OUTLINE_PROGRAM, -1, &none);
  lower_object_code code;
  rt_report report = {0};
  lower_jobs *jobs = lower_jobs_create(a);
  cpu_lower_options lower = {.target = target, .threads = options->threads, .plans = plans, .jobs = jobs};
  alone->config = t->config;
  TRY(cpu_plans_build_given(plans, alone->parent->module));
  TRY(cpu_lower(alone->parent->module, kernels, &lower, a, &sizes, &t->program, &report));
  TRY(lower_kernels_compile(kernels, jobs, 1, 1, &code));
  TRY(lower_kernels_attach_program(&sizes, kernels, &code));
  t->program->cpu = code.n ? emit_target_text(a, target) : "";
  drop_copies(&t->program->body);
  spread_weights(t);
  make_buffers(t);
  return rt_executable_create(t->program, &cpu_target, &(rt_load_options){.budget = t->budget}, &t->executable);
}

status cpu_trial_create(const cpu_problem *p, const char *config, rt_thread_pool *pool, cpu_copies *copies,
                        uint64_t weights_span, mem_budget *budget, autotune_trial **out) {
  arena *a = arena_create(budget);
  autotune_trial *t = ARENA_NEW(a, autotune_trial);
  *t = (autotune_trial){.arena = a,
                        .problem = p,
                        .config = config,
                        .pool = pool,
                        .copies = copies,
                        .weights_span = weights_span,
                        .budget = budget};
  status failed = guard_run(build, t);
  if (failed) {
    cpu_trial_destroy(t);
    return failed;
  }
  *out = t;
  return NULL;
}

status cpu_trial_run(autotune_trial *t) {
  const rt_run_options options = {.pool = t->pool, .budget = t->budget};
  for (uint32_t c = 0; c < t->n_moving; c++) {
    const moving *x = &t->moving[c];
    t->program->constants[x->constant].data = x->copied->places[t->turn % x->copied->n];
  }
  t->turn++;
  return rt_execute(rt_executable_binding(t->executable), &options, t->params, t->results);
}

void cpu_trial_destroy(autotune_trial *t) {
  rt_executable_destroy(t->executable);
  arena_destroy(t->arena);
}
