/* kernels.c - collects the kernels of a program, compiles them in a few LLVM modules, and finds those that other
 * programs of the session have compiled. */
#include "lower/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "emit/kernel/compile.h"
#include "hlo/text/text.h"
#include "lower/kernels/divide.h"
#include "lower/kernels/dynamic_m.h"
#include "lower/kernels/outline.h"
#include "runtime/block_abi.h"
#include "runtime/program/code_bundle.h"

_Static_assert((int)EMIT_PARAMETER_BYTES == RT_BLOCK_PARAMETER_BYTES &&
                   (int)EMIT_MOST_THREADS == RT_BLOCK_MOST_THREADS && (int)EMIT_WARP == RT_BLOCK_WARP &&
                   (int)EMIT_MOST_SHARED == RT_BLOCK_MOST_SHARED && (int)EMIT_SHARED_ALIGN == RT_BLOCK_SHARED_ALIGN,
               "kernels for blocks are written within the limits of their ABI");

/* About how many kernels an LLVM module has.  A module by itself costs some 2 ms, but few large ones would not keep all
 * threads busy to the end. */
enum { BATCH = 32 };

typedef struct kernel {
  uint64_t hash; /* a hash of the instruction's text and of the aliases */
  /* a hash of everything on which the kernel's code depends; a kernel of another program with the same identity is
   * reused */
  hash128 identity;
  const char *text;
  /* a copy of the instruction, alone in a module of its own, so that one thread may number and read it while other
   * threads do the same with other kernels */
  const hlo_instr *instr;
  const int32_t *alias;
  int64_t rows;               /* emit_options.rows */
  lower_kernel_writer writer; /* writes the kernel; if writer.write is NULL, emit_kernel does */
  const char *symbol;
  double cost;     /* the estimated nanoseconds to compile the kernel */
  bool found;      /* whether another program has compiled this kernel */
  uint32_t object; /* the number of the code object that contains the kernel; objects that are compiled now have the
                      lowest numbers */
  dim_table *dims; /* the table of the dims in `info`; lower_kernels.dims once the kernel is compiled */
  emit_kernel_info info; /* until the kernel is compiled, its sizes are on the arena of its module */
} kernel;

struct lower_kernels {
  arena *arena;
  const emit_target *target;
  uint32_t n_more; /* further targets, for which kernels are compiled, too */
  const emit_target *more;
  const char *kind; /* the kind of the thunks that call kernels */
  rt_weight_pool *weight_pool;
  dim_table *dims; /* the table of the kernels' grids and sizes, whose symbols are those of lower_outline_symbol */
  uint32_t n, cap, asked, n_found, n_new_objects;
  kernel *kernels;
};

lower_kernels *lower_kernels_create(arena *a, const emit_target *target, const char *kind,
                                    rt_weight_pool *weight_pool) {
  lower_kernels *k = ARENA_NEW(a, lower_kernels);
  k->arena = a;
  k->target = target;
  k->kind = kind;
  k->weight_pool = weight_pool;
  k->dims = dim_table_create(a);
  return k;
}

void lower_kernels_add_targets(lower_kernels *k, uint32_t n, const emit_target *targets) {
  k->n_more = n;
  k->more = targets;
}

const char *lower_kernels_kind(const lower_kernels *k) { return k->kind; }

uint32_t lower_kernels_unique(const lower_kernels *k) { return k->n; }

uint32_t lower_kernels_found(const lower_kernels *k) { return k->n_found; }

uint32_t lower_kernels_new_objects(const lower_kernels *k) { return k->n_new_objects; }

uint32_t lower_kernels_asked(const lower_kernels *k) { return k->asked; }

/* --- collecting the kernels of a program --- */

static bool same_writer(const lower_kernel_writer *a, const lower_kernel_writer *b) {
  return a->write == b->write && a->phase == b->phase && a->packed == b->packed && a->config_bytes == b->config_bytes &&
         (a->config_bytes == 0 || memcmp(a->config, b->config, a->config_bytes) == 0);
}

static hash128 identity_of(const lower_kernels *k, const kernel *x) {
  rt_writer w = {.arena = k->arena};
  rt_put_text(&w, x->text);
  rt_put_bytes(&w, x->alias, x->instr->n_results * sizeof *x->alias);
  rt_put_bytes(&w, x->writer.config, x->writer.config_bytes);
  rt_put_text(&w, x->writer.name);
  rt_put_i64(&w, x->writer.phase);
  rt_put_i64(&w, x->writer.packed);
  rt_put_i64(&w, x->rows);
  rt_put_text(&w, k->target->functions ? k->target->functions->target : NULL);
  return rt_weight_pool_identity(k->weight_pool, w.bytes, w.n);
}

/* Estimates the nanoseconds that compiling the kernel takes. */
static double cost_of(const hlo_instr *i, const lower_kernel_writer *writer) {
  const double unknown = 1e7;
  return !writer->write ? lower_loops_cost(i) : writer->nanoseconds > 0 ? writer->nanoseconds : unknown;
}

static rt_span mark_of(const lower_kernels *k, uint32_t number, const lower_kernel_call *call,
                       const lower_outline_symbols *symbols) {
  rt_writer w = {.arena = k->arena};
  rt_put_i64(&w, number);
  rt_put_i64(&w, call->rows);
  rt_put_i64(&w, call->placeholder_m);
  rt_put_i64(&w, call->known);
  rt_put_i64(&w, emit_static_grid(&call->info));
  rt_put_f64(&w, call->info.item_cost);
  rt_put_i64s(&w, call->n_args, call->args);
  rt_put_i64s(&w, symbols->n, symbols->sizes);
  return rt_written(&w);
}

static status add(lower_kernels *k, const hlo_instr *i, const int32_t *alias, const lower_kernel_writer *writer,
                  const lower_kernel_call *call, lower_outline_symbols *symbols, uint32_t *number) {
  const hlo_print_options options = {.no_sources = true};
  const char *text;
  size_t size;
  k->asked++;
  lower_kernel_writer how = writer ? *writer : (lower_kernel_writer){.packed = -1};
  hlo_instr *alone = lower_outline(k->arena, i, LOWER_OUTLINE_KERNEL, how.packed, symbols);
  if (call->rows) {
    lower_set_m(k->arena, alone, call->rows, call->placeholder_m);
  }
  TRY(hlo_print(k->arena, alone->parent->module, &options, &text, &size));
  uint64_t hash = hash_bytes(alias, i->n_results * sizeof *alias, hash_bytes(text, size, 0));
  for (*number = 0; *number < k->n; ++*number) {
    const kernel *old = &k->kernels[*number];
    if (old->hash == hash && strcmp(old->text, text) == 0 && same_writer(&old->writer, &how) &&
        old->rows == call->placeholder_m && memcmp(old->alias, alias, i->n_results * sizeof *alias) == 0) {
      return NULL;
    }
  }
  how.config = arena_memdup(k->arena, how.config, how.config_bytes);
  kernel *new = ARENA_PUSH(k->arena, k->kernels, k->n, k->cap);
  *new = (kernel){.hash = hash,
                  .text = text,
                  .instr = alone,
                  .alias = arena_memdup(k->arena, alias, i->n_results * sizeof *alias),
                  .rows = call->placeholder_m,
                  .writer = how,
                  .cost = cost_of(i, &how),
                  .symbol = arena_printf(k->arena, "k%u_%s", *number, hlo_info(i)->name)};
  for (char *c = (char *)new->symbol; *c; c++) {
    *c = *c == '-' ? '_' : *c;
  }
  if (k->weight_pool) {
    new->identity = identity_of(k, new);
  }
  return NULL;
}

status lower_kernels_add(lower_kernels *k, const hlo_instr *i, const int32_t *alias, const lower_kernel_writer *writer,
                         const lower_kernel_call *call, rt_span *mark) {
  static const lower_kernel_call closed;
  lower_outline_symbols symbols = {0};
  uint32_t number;
  call = call ? call : &closed;
  TRY(add(k, i, alias, writer, call, &symbols, &number));
  *mark = mark_of(k, number, call, &symbols);
  return NULL;
}

/* --- kernels that other programs have compiled --- */

static const char object_magic[] = "kernels";

/* For a target that runs blocks of threads, writes the version of the kernel's ABI and what a launch needs to know.
 * Writes nothing for other targets. */
static void put_block(rt_writer *w, const lower_kernels *all, const emit_kernel_info *info) {
  if (all->target->execution == EMIT_BLOCKS) {
    rt_put_i64(w, RT_BLOCK_ABI);
    rt_put_i64(w, info->threads);
    rt_put_i64(w, info->step_threads);
    rt_put_i64(w, info->shared_bytes);
  }
}

static void get_block(rt_reader *r, const lower_kernels *all, emit_kernel_info *info) {
  if (all->target->execution == EMIT_BLOCKS) {
    (void)rt_get_in(r, RT_BLOCK_ABI, RT_BLOCK_ABI); /* code for another version counts as damaged */
    info->threads = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
    info->step_threads = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
    info->shared_bytes = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
  }
}

/* Writes the info as one span of bytes, so that a search for another kernel can skip it. */
static void put_info(rt_writer *out, const lower_kernels *all, const emit_kernel_info *info) {
  rt_writer w = {.arena = all->arena};
  rt_put_f64(&w, info->item_cost);
  rt_put_text(&w, dim_print(all->arena, all->dims, info->grid));
  rt_put_i64(&w, info->n_sizes);
  for (uint32_t k = 0; k < info->n_sizes; k++) {
    rt_put_text(&w, dim_print(all->arena, all->dims, info->sizes[k]));
  }
  put_block(&w, all, info);
  rt_put_bytes(out, w.bytes, w.n);
}

static dim get_dim(rt_reader *r, const lower_kernels *all) {
  const char *text = rt_get_text(r);
  dim d = 0;
  status s = dim_parse_signed(all->dims, &text, &d);
  r->bad |= s != NULL;
  status_free(s);
  return d;
}

/* Sets *out to the info that put_info has written as `bytes`.  Returns false if the bytes are damaged. */
static bool get_info(rt_span bytes, const lower_kernels *all, emit_kernel_info *out) {
  enum { MOST_SIZES = 1 << 16 };
  rt_reader r = rt_reader_make(bytes);
  emit_kernel_info info = {.item_cost = rt_get_f64(&r)};
  info.grid = get_dim(&r, all);
  info.n_sizes = (uint32_t)rt_get_in(&r, 0, MOST_SIZES);
  dim *sizes = ARENA_NEW_N(all->arena, dim, info.n_sizes);
  for (uint32_t k = 0; k < info.n_sizes; k++) {
    sizes[k] = get_dim(&r, all);
  }
  info.sizes = sizes;
  get_block(&r, all, &info);
  *out = info;
  return !r.bad;
}

/* Returns the name of object number `object`.  It lists the kernels in the object: for each, its identity, its symbol
 * and its info. */
static rt_span name_object(const lower_kernels *all, uint32_t object) {
  rt_writer w = {.arena = all->arena};
  rt_put_text(&w, object_magic);
  for (uint32_t k = 0; k < all->n; k++) {
    const kernel *x = &all->kernels[k];
    if (!x->found && x->object == object) {
      rt_put_i64(&w, (int64_t)x->identity.words[0]);
      rt_put_i64(&w, (int64_t)x->identity.words[1]);
      rt_put_text(&w, x->symbol);
      put_info(&w, all, &x->info);
    }
  }
  return rt_written(&w);
}

typedef struct wanted {
  const lower_kernels *all;
  kernel *kernel;
} wanted;

/* Returns true if the object called `name` contains the kernel to which `data`, a struct wanted, points.  Then copies
 * the kernel's symbol and info from the name (name_object). */
static bool find_in_object(void *data, rt_span name) {
  const wanted *want = data;
  kernel *x = want->kernel;
  rt_reader r = rt_reader_make(name);
  if (strcmp(rt_get_text(&r), object_magic) != 0) {
    return false;
  }
  while (r.at < r.end && !r.bad) {
    hash128 identity;
    identity.words[0] = (uint64_t)rt_get_i64(&r);
    identity.words[1] = (uint64_t)rt_get_i64(&r);
    const char *symbol = rt_get_text(&r);
    rt_span info = rt_get_bytes(&r);
    if (!r.bad && hash128_equal(identity, x->identity) && get_info(info, want->all, &x->info)) {
      x->symbol = symbol;
      return true;
    }
  }
  return false;
}

/* Looks for each kernel in the object code that programs have left in the weight pool (leave_object).  Sets `found`
 * and, if the kernel is found, also `symbol`, `info` and `object`: the index in *out of the object that contains it.
 * *out gets each of these objects once. */
static void find_kernels(lower_kernels *all, lower_object_code *out) {
  *out = (lower_object_code){.objects = ARENA_NEW_N(all->arena, rt_span, all->n),
                             .names = ARENA_NEW_N(all->arena, rt_span, all->n)};
  for (uint32_t k = 0; k < all->n && all->weight_pool; k++) {
    kernel *x = &all->kernels[k];
    rt_span object = rt_weight_pool_search(all->weight_pool, find_in_object, &(wanted){all, x});
    x->found = object.data;
    all->n_found += x->found;
    for (x->object = 0; x->found && x->object < out->n && out->objects[x->object].data != object.data;) {
      x->object++;
    }
    if (x->found && x->object == out->n) {
      out->names[out->n] = rt_weight_pool_name(all->weight_pool, object.data);
      out->objects[out->n++] = object;
    }
  }
}

/* Adds the compiled object with this number to *out and, if there is a weight pool, to the pool, where other programs
 * find its kernels. */
static status leave_object(lower_kernels *all, uint32_t number, rt_span compiled, lower_object_code *out) {
  rt_span name = name_object(all, number);
  bool fresh = true;
  void *copy = all->weight_pool ? rt_weight_pool_get(all->weight_pool, name, compiled.size, &fresh)
                                : arena_alloc_aligned(all->arena, compiled.size, 64);
  CHECK_THAT(copy, STATUS_RESOURCE, "no %llu bytes of memory for code", (unsigned long long)compiled.size);
  if (fresh) {
    memcpy(copy, compiled.data, compiled.size);
  }
  out->objects[number] = (rt_span){copy, compiled.size};
  out->names[number] = all->weight_pool ? name : (rt_span){NULL, 0};
  return NULL;
}

/* --- compiling the kernels --- */

typedef struct batch {
  lower_kernels *all;
  uint32_t number;
  double cost;
  arena *arena;
  rt_span object;
} batch;

static const uint32_t all_kernels = UINT32_MAX; /* in place of the number of a batch, this means all kernels */

static status write_kernels(lower_kernels *all, uint32_t number, arena *a, emit_module *m) {
  for (uint32_t k = 0; k < all->n; k++) {
    kernel *x = &all->kernels[k];
    if (number != all_kernels && (x->found || x->object != number)) {
      continue;
    }
    emit_options options = {.alias = x->alias, .rows = x->rows};
    TRY(budget_check(arena_budget(a)));
    const lower_kernel_writer *w = &x->writer;
    const hlo_instr *i = emit_takes_sizes(x->instr) ? lower_outline_copy(a, x->instr) : x->instr;
    status s = w->write ? w->write(m, x->symbol, i, &options, w->config, w->phase, &x->info)
                        : emit_kernel(m, x->symbol, i, &options, &x->info);
    x->dims = i->parent->module->dims;
    if (s) {
      return status_prefix(s, "no kernel for %s", hlo_info(x->instr)->name);
    }
  }
  return NULL;
}

static status build_module(lower_kernels *all, const emit_target *target, uint32_t number, arena *a,
                           emit_module **out) {
  TRY(emit_module_create(a, target, "kernels", out));
  return write_kernels(all, number, a, *out);
}

static status compile_batch_for(const batch *b, const emit_target *target, rt_span *out) {
  emit_module *m;
  const void *bytes;
  size_t size;
  TRY(build_module(b->all, target, b->number, b->arena, &m));
  TRY(budget_check(arena_budget(b->arena)));
  TRY(emit_module_code(m, &bytes, &size));
  *out = (rt_span){bytes, size};
  emit_module_destroy(m);
  return NULL;
}

/* Compiles the batch for each target, and bundles the codes if there are several. */
static status compile_batch(void *data) {
  batch *b = data;
  const lower_kernels *all = b->all;
  uint32_t n = 1 + all->n_more;
  rt_bundled_code *codes = ARENA_NEW_N(b->arena, rt_bundled_code, n);
  for (uint32_t k = 0; k < n; k++) {
    const emit_target *t = k ? &all->more[k - 1] : all->target;
    codes[k].cpu = emit_target_text(b->arena, t);
    TRY(compile_batch_for(b, t, &codes[k].code));
  }
  b->object = n > 1 ? rt_code_bundle_write(b->arena, n, codes) : codes[0].code;
  return NULL;
}

static void destroy_batches(uint32_t n, batch *batches) {
  for (uint32_t k = 0; k < n; k++) {
    arena_destroy(batches[k].arena);
  }
}

typedef struct all_batches {
  lower_kernels *k;
  lower_jobs *jobs;
  uint32_t threads, shares, n; /* shares: see lower_shares_of */
  batch *batches;
  lower_object_code *out;
} all_batches;

/* Returns what lower_divide has to know of a kernel.  A target with precompiled functions compiles fast: the functions
 * that kernels of a writer share need not be compiled, and most of the code of kernels that differ only in constants is
 * compiled once (emit/llvm/split_similar.h). */
static lower_part part_of(const lower_kernels *all, const kernel *x) {
  const double own = 0.2;
  if (!all->target->functions) {
    return (lower_part){.cost = x->cost, .shared = x->writer.shared_nanoseconds, .sharing = x->writer.name};
  }
  return (lower_part){.cost = own * x->cost,
                      .shared = (1 - own) * x->cost,
                      .sharing = lower_likeness(all->arena, x->instr, x->writer.name, x->writer.phase)};
}

/* Divides the kernels that are compiled now among the batches. */
static void divide(all_batches *x) {
  lower_kernels *all = x->k;
  uint32_t n = all->n - all->n_found, at = 0;
  lower_part *parts = ARENA_NEW_N(all->arena, lower_part, n);
  double *costs = ARENA_NEW_N(all->arena, double, x->n);
  for (uint32_t k = 0; k < all->n; k++) {
    const kernel *y = &all->kernels[k];
    if (!y->found) {
      parts[at++] = part_of(all, y);
    }
  }
  lower_divide(all->arena, n, parts, x->n, x->shares, costs);
  at = 0;
  for (uint32_t k = 0; k < all->n; k++) {
    if (!all->kernels[k].found) {
      all->kernels[k].object = parts[at++].batch;
    }
  }
  for (uint32_t b = 0; b < x->n; b++) {
    x->batches[b].cost = costs[b];
  }
}

/* Copies the dims of a compiled kernel's info out of the module from which it was written. */
static void keep_info(const lower_kernels *all, kernel *x) {
  dim *sizes = ARENA_NEW_N(all->arena, dim, x->info.n_sizes);
  for (uint32_t k = 0; k < x->info.n_sizes; k++) {
    sizes[k] = lower_outline_copy_dim(all->dims, x->dims, x->info.sizes[k]);
  }
  x->info.sizes = sizes;
  x->info.grid = lower_outline_copy_dim(all->dims, x->dims, x->info.grid);
  x->dims = all->dims;
}

/* Compiles all batches.  If memory runs out, an allocation in here jumps out of this function (guard_run); the caller
 * then frees the batches. */
static status compile_all(void *data) {
  all_batches *x = data;
  if (x->n) {
    divide(x);
  }
  for (uint32_t b = 0; b < x->n; b++) {
    batch *y = &x->batches[b];
    *y = (batch){.all = x->k, .number = b, .cost = y->cost, .arena = arena_create(arena_budget(x->k->arena))};
    lower_jobs_add(x->jobs, y->cost, compile_batch, y);
  }
  TRY(lower_jobs_run(x->jobs, x->threads));
  for (uint32_t k = 0; k < x->k->n; k++) {
    if (!x->k->kernels[k].found) {
      keep_info(x->k, &x->k->kernels[k]);
    }
  }
  for (uint32_t b = 0; b < x->n; b++) {
    TRY(leave_object(x->k, b, x->batches[b].object, x->out));
  }
  return NULL;
}

uint32_t lower_shares_of(const rt_compile_options *o) {
  enum { ANY_THREADS = 8 };
  return o->numerics.deterministic ? ANY_THREADS : o->threads;
}

static uint32_t batch_count(const lower_kernels *k, uint32_t shares) {
  uint32_t kernels = k->n - k->n_found, n = (kernels + BATCH - 1) / BATCH;
  n = (n + shares - 1) / shares * shares;
  return n < kernels ? n : kernels;
}

status lower_kernels_compile(lower_kernels *k, lower_jobs *jobs, uint32_t shares, uint32_t threads,
                             lower_object_code *out) {
  lower_object_code found;
  find_kernels(k, &found);
  all_batches x = {.k = k, .jobs = jobs, .threads = threads, .shares = shares, .n = batch_count(k, shares), .out = out};
  x.batches = ARENA_NEW_N(k->arena, batch, x.n);
  k->n_new_objects = x.n;
  out->n = x.n + found.n;
  out->objects = ARENA_NEW_N(k->arena, rt_span, out->n);
  out->names = ARENA_NEW_N(k->arena, rt_span, out->n);
  memcpy(out->objects + x.n, found.objects, found.n * sizeof *found.objects);
  memcpy(out->names + x.n, found.names, found.n * sizeof *found.names);
  for (uint32_t j = 0; j < k->n; j++) {
    k->kernels[j].object += k->kernels[j].found ? x.n : 0;
  }
  status s = guard_run(compile_all, &x);
  destroy_batches(x.n, x.batches);
  return s;
}

status lower_kernels_write(lower_kernels *k, lower_jobs *jobs, uint32_t threads, const char *prefix,
                           emit_module *module) {
  emit_target before = *emit_module_target(module);
  for (uint32_t j = 0; j < k->n; j++) {
    k->kernels[j].symbol = arena_printf(k->arena, "%s%s", prefix, k->kernels[j].symbol);
  }
  emit_module_set_target(module, k->target);
  TRY(write_kernels(k, all_kernels, k->arena, module));
  emit_module_set_target(module, &before);
  for (uint32_t j = 0; j < k->n; j++) {
    keep_info(k, &k->kernels[j]);
  }
  return lower_jobs_run(jobs, threads);
}

status lower_kernels_text(lower_kernels *k, bool assembly, const char **text) {
  emit_module *m;
  size_t size;
  TRY(build_module(k, k->target, all_kernels, k->arena, &m));
  TRY(assembly ? emit_module_assembly(m, text, &size) : emit_module_ir(m, text, &size));
  emit_module_destroy(m);
  return NULL;
}

/* Computes how the kernel is called for the rows of `call`. */
static status call_info(const kernel *x, const lower_kernel_call *call, emit_kernel_info *out) {
  *out = call->known ? call->info : x->info;
  if (call->known || !call->rows) {
    return NULL;
  }
  int64_t grid = emit_static_grid(&x->info), each = grid / call->placeholder_m;
  CHECK_THAT(grid % call->placeholder_m == 0 && !__builtin_mul_overflow(each, call->rows, &out->grid), STATUS_INTERNAL,
             "the grid of %s does not go by rows", hlo_info(x->instr)->name);
  return NULL;
}

typedef struct call_sizes {
  const lower_kernels *all;
  size_table *table;
  lower_outline_symbols symbols;
} call_sizes;

/* A function for dim_translate: if d is a symbol of an outlined instruction, sets *out to the size of the program for
 * which it stands, and returns true. */
static bool actual_size(void *data, dim d, dim *out) {
  const call_sizes *c = data;
  uint32_t k = 0;
  if (dim_get_kind(c->all->dims, d) != DIM_SYMBOL) {
    return false;
  }
  while (k < c->symbols.n && lower_outline_symbol(c->all->dims, k) != d) {
    k++;
  }
  *out = k < c->symbols.n ? c->symbols.sizes[k] : DIM_OVERFLOW;
  return true;
}

static rt_size size_of(call_sizes *c, dim d) {
  return size_table_get(c->table, dim_translate(c->table->module->dims, c->all->dims, d, actual_size, c));
}

/* Sets the sizes of a thunk: the grid, then the arguments. */
static void set_sizes(call_sizes *c, const emit_kernel_info *info, const lower_kernel_call *call, rt_thunk *t) {
  rt_size *sizes = ARENA_NEW_N(c->all->arena, rt_size, 1 + info->n_sizes + call->n_args);
  t->sizes = sizes;
  sizes[t->n_sizes++] = size_of(c, info->grid);
  for (uint32_t k = 0; k < info->n_sizes; k++) {
    sizes[t->n_sizes++] = size_of(c, info->sizes[k]);
  }
  for (uint32_t k = 0; k < call->n_args; k++) {
    sizes[t->n_sizes++] = call->args[k];
  }
}

status lower_kernels_attach(const lower_kernels *k, size_table *sizes, rt_thunk *t) {
  rt_reader r = rt_reader_make(t->config);
  const kernel *x = &k->kernels[rt_get_i64(&r)];
  lower_kernel_call call = {.rows = rt_get_i64(&r)};
  call.placeholder_m = rt_get_i64(&r);
  call.known = rt_get_i64(&r);
  call.info.grid = rt_get_i64(&r);
  call.info.item_cost = rt_get_f64(&r);
  call.args = rt_get_i64s(&r, k->arena, &call.n_args);
  call_sizes c = {k, sizes, {0}};
  c.symbols.sizes = (dim *)rt_get_i64s(&r, k->arena, &c.symbols.n);
  emit_kernel_info info;
  TRY(call_info(x, &call, &info));
  set_sizes(&c, &info, &call, t);
  rt_writer w = {.arena = k->arena};
  rt_put_i64(&w, x->object);
  rt_put_text(&w, x->symbol);
  if (k->target->execution == EMIT_RANGES) {
    double grain = info.item_cost > 0 ? LOWER_RANGE_NANOSECONDS / info.item_cost : 1e9;
    rt_put_i64(&w, grain < 1 ? 1 : grain > 1e15 ? (int64_t)1e15 : (int64_t)grain);
  }
  put_block(&w, k, &x->info);
  t->config = rt_written(&w);
  return NULL;
}
