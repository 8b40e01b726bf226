#include "backend_cpu/compile_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "emit/compile.h"
#include "hlo/text.h"

enum {
  SMALL_CONSTANT = 64,
  BATCH = 6               /* kernels a module at most: it costs some 2 ms by itself */
};

typedef struct kernel {
  uint64_t hash; /* of the text and the aliases */
  const char *text;
  const hlo_instr *instr; /* in a module of its own: threads may number and read it */
  const int32_t *alias;
  cpu_writer writer; /* write NULL: emit_kernel */
  const char *symbol;
  double cost;    /* of compiling: nanoseconds, a guess */
  uint32_t batch; /* in which it is compiled */
  emit_kernel_info info;
} kernel;

struct cpu_kernels {
  arena *arena;
  const emit_target *target;
  uint32_t n, cap, asked;
  kernel *kernels;
};

cpu_kernels *cpu_kernels_create(arena *a, const emit_target *target) {
  cpu_kernels *k = ARENA_NEW(a, cpu_kernels);
  k->arena = a;
  k->target = target;
  return k;
}

uint32_t cpu_kernels_unique(const cpu_kernels *k) { return k->n; }

uint32_t cpu_kernels_asked(const cpu_kernels *k) { return k->asked; }

/* --- collecting --- */

/* Single numbers and short lists (places, sizes) make better code; weights make kernels differ that could be one. */
static bool is_baked_in(hlo_value v) {
  const literal *l = hlo_literal(v);
  return l && (shape_bytes(&l->shape) <= SMALL_CONSTANT || literal_is_splat(l));
}

hlo_instr *cpu_isolate(arena *a, const hlo_instr *i, cpu_isolation how, int32_t packed) {
  hlo_module *m = hlo_module_create(a, "kernel");
  hlo_computation *c = hlo_computation_create(m, "kernel");
  hlo_value *operands = ARENA_NEW_N(a, hlo_value, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    bool stays = how == CPU_ISOLATE_PROGRAM ? hlo_literal(i->operands[k]) != NULL : is_baked_in(i->operands[k]);
    if ((int32_t)k == packed || !stays) {
      operands[k] = hlo_result(hlo_parameter(c, *hlo_shape(i->operands[k])), 0);
    }
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!operands[k].def) {
      operands[k] = hlo_result(hlo_instr_clone(c, NULL, i->operands[k].def, NULL), 0);
    }
  }
  hlo_instr *copy = hlo_instr_clone(c, NULL, i, operands);
  hlo_value *roots = ARENA_NEW_N(a, hlo_value, i->n_results);
  for (uint32_t k = 0; k < i->n_results; k++) {
    roots[k] = hlo_result(copy, k);
  }
  hlo_set_roots(c, i->n_results, roots);
  m->entry = c;
  for (uint32_t k = 0; k < m->n_computations; k++) { /* names make no difference */
    m->computations[k]->name = arena_printf(a, "c%u", k);
    for (hlo_instr *j = m->computations[k]->first; j; j = j->next) {
      j->source = "";
    }
  }
  return copy;
}

static bool same_writer(const cpu_writer *a, const cpu_writer *b) {
  return a->write == b->write && a->phase == b->phase && a->packed == b->packed && a->config_bytes == b->config_bytes &&
         (a->config_bytes == 0 || memcmp(a->config, b->config, a->config_bytes) == 0);
}

/* Blocks of sums in registers are unrolled; of other kernels each operation counts. */
static double cost_of(const hlo_instr *i, const cpu_writer *writer) {
  const double block = 1e7, operation = 2.5e5, least = 1e6;
  uint32_t n = 0;
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j; j = j->next) {
    n++;
  }
  return (writer->write ? block : least) + operation * n;
}

status cpu_kernels_add(cpu_kernels *k, const hlo_instr *i, const int32_t *alias, const cpu_writer *writer,
                       uint32_t *number) {
  const hlo_print_options options = {.no_sources = true};
  const char *text;
  size_t size;
  k->asked++;
  cpu_writer how = writer ? *writer : (cpu_writer){.packed = -1};
  hlo_instr *alone = cpu_isolate(k->arena, i, CPU_ISOLATE_KERNEL, how.packed);
  TRY(hlo_print(k->arena, alone->parent->module, &options, &text, &size));
  uint64_t hash = hash_bytes(alias, i->n_results * sizeof *alias, hash_bytes(text, size, 0));
  for (*number = 0; *number < k->n; ++*number) {
    const kernel *old = &k->kernels[*number];
    if (old->hash == hash && strcmp(old->text, text) == 0 && same_writer(&old->writer, &how) &&
        memcmp(old->alias, alias, i->n_results * sizeof *alias) == 0) {
      return NULL;
    }
  }
  how.config = arena_memdup(k->arena, how.config, how.config_bytes);
  kernel *new = ARENA_PUSH(k->arena, k->kernels, k->n, k->cap);
  *new = (kernel){.hash = hash, .text = text, .instr = alone,
                  .alias = arena_memdup(k->arena, alias, i->n_results * sizeof *alias),
                  .writer = how, .cost = cost_of(i, &how), .symbol = arena_printf(k->arena, "k%u_%s", *number, hlo_info(i)->name)};
  for (char *c = (char *)new->symbol; *c; c++) {
    *c = *c == '-' ? '_' : *c;
  }
  return NULL;
}

/* --- compiling --- */

typedef struct batch {
  cpu_kernels *all;
  uint32_t number;
  double cost;
  arena *arena;
  rt_span object;
} batch;

static const uint32_t all_kernels = UINT32_MAX; /* in the place of the number of a batch */

static status build_module(cpu_kernels *all, uint32_t number, arena *a, emit_module **out) {
  TRY(emit_module_create(a, all->target, "kernels", out));
  for (uint32_t k = 0; k < all->n; k++) {
    kernel *x = &all->kernels[k];
    if (number != all_kernels && x->batch != number) {
      continue;
    }
    emit_options options = {.alias = x->alias};
    TRY(budget_check(arena_budget(a)));
    const cpu_writer *w = &x->writer;
    status s = w->write ? w->write(*out, x->symbol, x->instr, &options, w->config, w->phase, &x->info)
                        : emit_kernel(*out, x->symbol, x->instr, &options, &x->info);
    if (s) {
      return status_prefix(s, "no kernel for %s", hlo_info(x->instr)->name);
    }
  }
  return NULL;
}

static status compile_batch(void *data) {
  batch *b = data;
  emit_module *m;
  const void *bytes;
  size_t size;
  TRY(build_module(b->all, b->number, b->arena, &m));
  TRY(budget_check(arena_budget(b->arena)));
  TRY(emit_module_object(m, &bytes, &size));
  b->object = (rt_span){bytes, size};
  emit_module_destroy(m);
  return NULL;
}

static void destroy_batches(uint32_t n, batch *batches) {
  for (uint32_t k = 0; k < n; k++) {
    arena_destroy(batches[k].arena);
  }
}

typedef struct all_batches {
  cpu_kernels *k;
  cpu_jobs *jobs;
  uint32_t threads, n;
  batch *batches;
  rt_span *objects;
} all_batches;

static int dearest_first(const void *a, const void *b) {
  const kernel *x = *(const kernel *const *)a, *y = *(const kernel *const *)b;
  return x->cost != y->cost ? (x->cost < y->cost) - (x->cost > y->cost) : (x > y) - (x < y);
}

/* Each kernel, the dearest first, goes where there is least. */
static void divide(all_batches *x) {
  kernel **order = ARENA_NEW_N(x->k->arena, kernel *, x->k->n);
  for (uint32_t k = 0; k < x->k->n; k++) {
    order[k] = &x->k->kernels[k];
  }
  qsort(order, x->k->n, sizeof *order, dearest_first);
  for (uint32_t k = 0; k < x->k->n; k++) {
    uint32_t least = 0;
    for (uint32_t b = 1; b < x->n; b++) {
      least = x->batches[b].cost < x->batches[least].cost ? b : least;
    }
    order[k]->batch = least;
    x->batches[least].cost += order[k]->cost;
  }
}

/* Allocates, and so may be left by a jump; what it must give back then is in `data`. */
static status compile_all(void *data) {
  all_batches *x = data;
  if (x->n) {
    divide(x);
  }
  for (uint32_t b = 0; b < x->n; b++) {
    batch *y = &x->batches[b];
    *y = (batch){.all = x->k, .number = b, .cost = y->cost, .arena = arena_create(arena_budget(x->k->arena))};
    cpu_jobs_add(x->jobs, y->cost, compile_batch, y);
  }
  TRY(cpu_jobs_run(x->jobs, x->threads));
  for (uint32_t b = 0; b < x->n; b++) {
    const rt_span *o = &x->batches[b].object;
    x->objects[b] = (rt_span){arena_memdup(x->k->arena, o->data, o->size), o->size};
  }
  return NULL;
}

static uint32_t batch_count(const cpu_kernels *k, uint32_t shares) {
  uint32_t n = (k->n + BATCH - 1) / BATCH;
  n = (n + shares - 1) / shares * shares;
  return n < k->n ? n : k->n;
}

status cpu_kernels_compile(cpu_kernels *k, cpu_jobs *jobs, uint32_t shares, uint32_t threads, uint32_t *n,
                           rt_span **objects) {
  all_batches x = {.k = k, .jobs = jobs, .threads = threads, .n = batch_count(k, shares)};
  x.batches = ARENA_NEW_N(k->arena, batch, x.n);
  x.objects = ARENA_NEW_N(k->arena, rt_span, x.n);
  status s = guard_run(compile_all, &x);
  destroy_batches(x.n, x.batches);
  *n = x.n;
  *objects = x.objects;
  return s;
}

status cpu_kernels_text(cpu_kernels *k, bool assembly, const char **text) {
  emit_module *m;
  size_t size;
  TRY(build_module(k, all_kernels, k->arena, &m));
  TRY(assembly ? emit_module_assembly(m, text, &size) : emit_module_ir(m, text, &size));
  emit_module_destroy(m);
  return NULL;
}

rt_span cpu_kernels_config(const cpu_kernels *k, uint32_t number) {
  const kernel *x = &k->kernels[number];
  rt_writer w = {.arena = k->arena};
  double grain = x->info.item_cost > 0 ? CPU_RANGE_NANOSECONDS / x->info.item_cost : 1e9;
  rt_put_i64(&w, x->batch);
  rt_put_text(&w, x->symbol);
  rt_put_i64(&w, x->info.grid);
  rt_put_i64(&w, grain < 1 ? 1 : grain > 1e15 ? (int64_t)1e15 : (int64_t)grain);
  return rt_written(&w);
}
