/* sizes_case.c - runs kernels that take sizes as arguments; see sizes_case.h. */
#include "tests/unit/emit/sizes_case.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "backend_ref/eval.h"
#include "emit/kernel/special.h"
#include "hlo/analysis/overlap.h"
#include "hlo/ir/bind.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/ptx_case.h"

arena *sizes_arena;

void sizes_setup(void) { sizes_arena = arena_create(NULL); }
void sizes_teardown(void) { arena_destroy(sizes_arena); }

/* --- kernels to try --- */

static hlo_value sizes_operand(hlo_builder *b, const char *elements, shape s) {
  int64_t *dims = ARENA_NEW_N(sizes_arena, int64_t, SHAPE_MAX_RANK);
  uint32_t n = 0;
  for (const char *p = elements; *p; p += *p == ';') {
    status bad = dim_parse_signed(b->computation->module->dims, &p, &dims[n++]);
    ck_assert_msg(!bad, "%s", bad ? status_message(bad) : "");
  }
  hlo_attr attr = {.n = n, .ints = dims};
  return hlo_result(hlo_build(b, HLO_SIZES, 0, NULL, 1, &s, &attr), 0);
}

void sizes_setup_with_kernels(void) {
  kernel_setup();
  sizes_setup();
}
void sizes_teardown_with_kernels(void) {
  kernel_teardown();
  sizes_teardown();
}

/* Makes the instruction for which the kernel is written, in a computation that is never evaluated: a fusion with the
 * entry's body if `fused` is set, otherwise a copy of the entry's only instruction. */
static const hlo_instr *outside(const sizes_case *k, bool fused) {
  hlo_module *m = k->entry->module;
  hlo_builder b = hlo_builder_make(hlo_computation_create(m, "caller"));
  uint32_t n = k->entry->n_params;
  hlo_value *operands = ARENA_NEW_N(sizes_arena, hlo_value, n + 1);
  for (uint32_t j = 0; j < n; j++) {
    shape s = k->entry->params[j]->shapes[0];
    bool last = k->elements && j + 1 == n;
    operands[j] = last ? sizes_operand(&b, k->elements, s) : hlo_result(hlo_parameter(b.computation, s), 0);
  }
  hlo_instr *i;
  if (fused) {
    hlo_computation **callee = ARENA_NEW_N(sizes_arena, hlo_computation *, 1);
    *callee = hlo_computation_clone(m, k->entry);
    i = hlo_instr_create(b.computation, NULL, HLO_FUSION, n, operands, k->entry->n_roots);
    hlo_attr_of(i, HLO_ATTR_FUSION)->i = k->kind;
    *hlo_attr_of(i, HLO_ATTR_COMPUTATIONS) = (hlo_attr){.n_comps = 1, .comps = callee};
    ASSERT_OK(hlo_infer(i));
  } else {
    i = hlo_instr_clone(b.computation, NULL, k->entry->roots[0].def, operands);
  }
  ASSERT_OK(hlo_builder_take_error(&b));
  return i;
}

/* Returns the instruction that the entry consists of, or NULL. */
static const hlo_instr *single(const hlo_computation *c) {
  const hlo_instr *root = c->roots[0].def;
  bool one = c->n_roots == root->n_results && root->n_operands == c->n_params && root->op != HLO_PARAMETER;
  for (uint32_t k = 0; one && k < c->n_roots; k++) {
    one = c->roots[k].def == root && c->roots[k].index == k;
  }
  for (uint32_t k = 0; one && k < c->n_params; k++) {
    one = root->operands[k].def == c->params[k];
  }
  for (const hlo_instr *i = c->first; one && i; i = i->next) {
    one = i == root || i->op == HLO_PARAMETER;
  }
  return one ? root : NULL;
}

static sizes_case *add(sizes_cases *c, const sizes_case *k) {
  sizes_case *new = ARENA_PUSH(sizes_arena, c->items, c->n, c->cap);
  *new = *k;
  return new;
}

sizes_case *sizes_add(sizes_cases *c, const hlo_computation *entry) {
  return add(c, &(sizes_case){.entry = entry, .most = 20000, .shares = -1});
}

sizes_case *sizes_add_text(sizes_cases *c, const char *text) {
  const char *all = arena_printf(sizes_arena, "onnx-xla hlo 1\nmodule \"m\" {\nentry main%s\n}\n", text);
  hlo_module *m = NULL;
  status s = hlo_parse(sizes_arena, all, strlen(all), NULL, &m);
  ck_assert_msg(!s, "%s\nin\n%s", s ? status_message(s) : "", all);
  return sizes_add(c, m->entry);
}

/* --- sizes --- */

enum { MAX_SYMBOLS = 8 };

typedef struct choice {
  const dim_table *dims;
  int n;
  dim symbols[MAX_SYMBOLS];
  int64_t values[MAX_SYMBOLS];
} choice;

static int64_t value_of(void *data, dim symbol) {
  const choice *c = data;
  for (int k = 0; k < c->n; k++) {
    if (c->symbols[k] == symbol) {
      return c->values[k];
    }
  }
  ck_abort_msg("a symbol without a size");
  return 0;
}

static int64_t evaluate(const choice *c, dim d) {
  int64_t n;
  ck_assert(dim_evaluate(c->dims, d, value_of, (void *)c, &n));
  return n;
}

/* Makes the largest sizes smaller until their product is at most `most`. */
static void limit_product(choice *c, int64_t most) {
  for (;;) {
    int64_t product = 1;
    int largest = 0;
    for (int k = 0; k < c->n; k++) {
      product *= c->values[k] ? c->values[k] : 1;
      largest = c->values[k] > c->values[largest] ? k : largest;
    }
    if (product <= most) {
      return;
    }
    c->values[largest] = (c->values[largest] + 1) / 2;
  }
}

/* Chooses a size for each symbol: in the first two rounds they are all 0 and all 1. */
static choice choose(const sizes_case *k, int round) {
  static const int64_t some[] = {0,  1,  1,  2,  3,  4,  5,  6,  7,  8,  9,   12,
                                 15, 16, 17, 20, 31, 32, 33, 40, 63, 65, 100, 1000};
  enum { SOME = sizeof some / sizeof *some };
  choice c = {.dims = k->entry->module->dims};
  for (uint32_t p = 0; p < k->entry->n_params; p++) {
    const shape *s = &k->entry->params[p]->shapes[0];
    for (int d = 0; d < s->rank; d++) {
      bool seen = dim_get_kind(c.dims, s->dims[d]) != DIM_SYMBOL;
      for (int j = 0; j < c.n; j++) {
        seen |= c.symbols[j] == s->dims[d];
      }
      if (!seen) {
        ck_assert_int_lt(c.n, MAX_SYMBOLS);
        c.values[c.n] = round < 2 ? round : some[next_random() % SOME];
        c.symbols[c.n++] = s->dims[d];
      }
    }
  }
  limit_product(&c, k->most);
  return c;
}

static const char *choice_text(arena *a, const choice *c) {
  const char *text = "";
  for (int k = 0; k < c->n; k++) {
    text = arena_printf(a, "%s %s=%lld", text, dim_print(a, c->dims, c->symbols[k]), (long long)c->values[k]);
  }
  return text;
}

/* --- data --- */

/* Floats are multiples of 1/16 of at most 3, so that sums of many elements, and of some hundred products, are exact in
 * f32 in every order. */
static void fill(dtype t, unsigned char *data, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    uint64_t r = next_random() >> 16;
    unsigned char *at = data + (size_t)k * dtype_bytes(t);
    if (dtype_is_complex(t)) {
      fill(t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64, at, 2);
    } else if (dtype_is_float(t)) {
      dtype_store_f64(t, at, (double)((int64_t)(r % 97) - 48) / 16, true, DTYPE_ROUND_NEAREST);
    } else {
      dtype_store_i64(t, at, t == DTYPE_PRED ? (int64_t)(r & 1) : (int64_t)(r % 41) - 20);
    }
  }
}

/* Fails unless all bytes beside the array are as guarded_memory left them. */
static void check_surroundings(const unsigned char *at, size_t size, const char *where) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + 63) / 64 * 64, pages = (room + page - 1) / page * page;
  for (const unsigned char *p = at + room - pages; p < at + room; p++) {
    if (*p != 0xa5 && !(p >= at && p < at + size)) { /* Check writes a message for each assertion, also if it holds */
      ck_abort_msg("%s: a byte beside the result was written", where);
    }
  }
}

static bool same_element(dtype t, const char *x, const char *y) {
  if (dtype_is_complex(t)) {
    dtype part = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    return same_element(part, x, y) && same_element(part, x + dtype_bytes(part), y + dtype_bytes(part));
  }
  if (memcmp(x, y, dtype_bytes(t)) == 0 || !dtype_is_float(t)) {
    return memcmp(x, y, dtype_bytes(t)) == 0;
  }
  double a = dtype_load_f64(t, x), b = dtype_load_f64(t, y);
  return a == b || (isnan(a) && isnan(b));
}

/* Returns the largest number, or 0 if there is none that is finite. */
static double largest(const literal *l) {
  double most = 0;
  for (int64_t k = 0; !dtype_is_complex((dtype)l->shape.type) && k < shape_elements(&l->shape); k++) {
    double x = fabs(literal_f64(l, k));
    most = isfinite(x) && x > most ? x : most;
  }
  return most;
}

static bool near(dtype t, const char *x, const char *y, double most) {
  return !dtype_is_complex(t) && fabs(dtype_load_f64(t, x) - dtype_load_f64(t, y)) <= most;
}

static void compare(const char *where, const literal *want, const char *got, double tolerance) {
  dtype t = (dtype)want->shape.type;
  double most = tolerance * largest(want);
  for (int64_t j = 0; j < shape_elements(&want->shape); j++) {
    const char *x = got + (size_t)j * dtype_bytes(t), *y = (const char *)want->data + (size_t)j * dtype_bytes(t);
    if (!same_element(t, x, y) && !near(t, x, y, most)) {
      bool pair = dtype_is_complex(t);
      ck_abort_msg("%s: element %lld of %s is %.9g, not %.9g", where, (long long)j, SHAPE_STR(NULL, &want->shape),
                   pair ? 0 : dtype_load_f64(t, x), pair ? 0 : dtype_load_f64(t, y));
    }
  }
}

/* --- running --- */

/* Fails unless equal expressions are one argument, and constants are no arguments. */
static void check_arguments(const emit_kernel_info *info) {
  for (uint32_t j = 0; j < info->n_sizes; j++) {
    ck_assert(!dim_is_const(info->sizes[j]));
    for (uint32_t k = 0; k < j; k++) {
      ck_assert(info->sizes[j] != info->sizes[k]);
    }
  }
}

static literal operand_literal(const sizes_case *k, const choice *c, arena *a, uint32_t p, unsigned char *data) {
  shape s = k->entry->params[p]->shapes[0];
  for (int d = 0; d < s.rank; d++) {
    s.dims[d] = evaluate(c, s.dims[d]);
  }
  const hlo_instr *x = k->i->operands[p].def;
  if (!data) {
    return literal_make(s, NULL);
  }
  fill((dtype)s.type, data, shape_elements(&s));
  for (int64_t j = 0; k->infinite && p == k->infinite && j < shape_elements(&s); j++) {
    dtype_store_f64((dtype)s.type, data + (size_t)j * dtype_bytes((dtype)s.type), INFINITY, true, DTYPE_ROUND_NEAREST);
  }
  for (uint32_t j = 0; x->op == HLO_SIZES && j < hlo_n_ints(x, HLO_ATTR_ELEMENTS); j++) {
    dtype_store_i64((dtype)s.type, data + j * dtype_bytes((dtype)s.type),
                    evaluate(c, hlo_ints(x, HLO_ATTR_ELEMENTS)[j]));
  }
  return literal_make(s, arena_memdup(a, data, (size_t)shape_bytes(&s)));
}

static bool bind(const sizes_case *k, const choice *c, arena *a, hlo_module **bound) {
  shape *inputs = ARENA_NEW_N(a, shape, k->entry->n_params);
  for (uint32_t p = 0; p < k->entry->n_params; p++) {
    inputs[p] = operand_literal(k, c, a, p, NULL).shape;
  }
  status s = hlo_bind(a, k->entry->module, inputs, bound);
  s = s ? s : hlo_verify(*bound);
  if (s) {
    status_free(s);
  }
  return !s;
}

/* Runs all kernels of the case.  behind[] is the rest of the table of buffers after operands and results. */
static void run_kernels(const sizes_case *k, const choice *c, arena *a, emit_execution execution, void *const *f,
                        void **buffers, void **behind) {
  size_t scratch = (size_t)evaluate(c, k->way.scratch_bytes);
  size_t counters = (size_t)evaluate(c, k->way.counters) * sizeof(int32_t);
  behind[0] = k->way.scratch_bytes ? guarded_memory(scratch) : NULL;
  if (counters) {
    behind[1] = guarded_memory(counters);
    memset(behind[1], 0, counters);
  }
  for (uint32_t phase = 0; phase < k->way.phases; phase++) {
    const emit_kernel_info *info = &k->info[phase];
    int64_t *sizes = ARENA_NEW_N(a, int64_t, info->n_sizes + 1);
    for (uint32_t j = 0; j < info->n_sizes; j++) {
      sizes[j] = evaluate(c, info->sizes[j]);
    }
    kernel_call(execution, f[phase], info, (const void *const *)buffers, sizes, evaluate(c, info->grid));
  }
  if (counters) {
    const unsigned char *left = behind[1];
    for (size_t j = 0; j < counters; j++) {
      ck_assert_msg(left[j] == 0, "a counter is not 0 again");
    }
    check_surroundings(behind[1], counters, "counters");
    guarded_free(behind[1], counters);
  }
  if (behind[0]) {
    check_surroundings(behind[0], scratch, "scratch memory");
    guarded_free(behind[0], scratch);
  }
}

static status run_case(sizes_case *k, const char *machine, emit_execution execution, void *const *f, int round) {
  arena *a = arena_create(NULL);
  choice c = choose(k, round);
  hlo_module *bound;
  if (!bind(k, &c, a, &bound)) {
    arena_destroy(a);
    return NULL;
  }
  const char *text;
  size_t size;
  TRY(hlo_print(a, k->entry->module, NULL, &text, &size));
  const char *where = arena_printf(a, "%s, %s%s%s, of\n%s", machine, k->i->op == HLO_FUSION ? "fused" : "alone",
                                   k->shares >= 0 ? ", in place," : "", choice_text(a, &c), text);
  uint32_t n = k->i->n_operands, n_results = k->i->n_results;
  void **buffers = ARENA_NEW_N(a, void *, n + n_results + 3); /* the last entries are scratch memory, counters
                                                                 and the budget, which is NULL */
  literal *args = ARENA_NEW_N(a, literal, n), *want = ARENA_NEW_N(a, literal, n_results);
  for (uint32_t p = 0; p < n; p++) {
    shape s = operand_literal(k, &c, a, p, NULL).shape;
    buffers[p] = guarded_memory((size_t)shape_bytes(&s));
    args[p] = operand_literal(k, &c, a, p, buffers[p]);
  }
  TRY(ref_eval_computation(bound->entry, args, a, want));
  for (uint32_t j = 0; j < n_results; j++) {
    bool shares = j == 0 && k->shares >= 0;
    buffers[n + j] = shares ? buffers[k->shares] : guarded_memory((size_t)shape_bytes(&want[j].shape));
  }
  void *plain = n > 1 ? buffers[1] : NULL;
  if (k->way.packed_bytes) {
    buffers[1] = guarded_memory((size_t)k->way.packed_bytes);
    k->way.pack(k->way.packing, plain, buffers[1]);
  }
  run_kernels(k, &c, a, execution, f, buffers, buffers + n + n_results);
  if (k->way.packed_bytes) {
    guarded_free(buffers[1], (size_t)k->way.packed_bytes);
    buffers[1] = plain;
  }
  for (uint32_t j = 0; j < n_results; j++) {
    compare(where, &want[j], buffers[n + j], k->tolerance);
    check_surroundings(buffers[n + j], (size_t)shape_bytes(&want[j].shape), where);
  }
  for (uint32_t j = 0; j < n + n_results; j++) {
    if (k->shares >= 0 && j == n) {
      continue;
    }
    guarded_free(buffers[j], (size_t)shape_bytes(j < n ? &args[j].shape : &want[j - n].shape));
  }
  k->runs++;
  arena_destroy(a);
  return NULL;
}

static status write_plain(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                          const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)config, (void)phase;
  return emit_kernel(m, name, i, options, info);
}

static const char *kernel_name(arena *a, uint32_t number, uint32_t phase) {
  return arena_printf(a, "kernel_%u_%u", number, phase);
}

static status write_case(arena *a, emit_module *m, const emit_target *t, uint32_t number, sizes_case *k) {
  int32_t *alias = ARENA_NEW_N(a, int32_t, k->i->n_results);
  memset(alias, 0xff, k->i->n_results * sizeof *alias);
  alias[0] = k->shares;
  k->way = (sizes_way){.write = k->write ? k->write : write_plain, .phases = 1};
  if (k->prepare) {
    k->prepare(k, a, t, &k->way);
  }
  ck_assert_int_le(k->way.phases, SIZES_PHASES);
  for (uint32_t phase = 0; phase < k->way.phases; phase++) {
    const emit_options options = {.alias = alias};
    TRY(k->way.write(m, kernel_name(a, number, phase), k->i, &options, k->way.config, phase, &k->info[phase]));
    check_arguments(&k->info[phase]);
  }
  return NULL;
}

/* Writes a module of all kernels. */
static status write_all(arena *a, sizes_cases *c, const emit_target *t, emit_module **m) {
  TRY(emit_module_create(a, t, "test", m));
  for (uint32_t k = 0; k < c->n; k++) {
    TRY(write_case(a, *m, t, k, &c->items[k]));
  }
  return NULL;
}

static status compile_and_run(sizes_cases *c, const emit_machine *machine, int rounds) {
  arena *a = arena_create(NULL);
  emit_target t = emit_machine_target(a, machine);
  emit_module *m = NULL;
  rt_code *code;
  TRY(write_all(a, c, &t, &m));
  TRY(kernel_load(a, m, kernel_resolve, &code));
  const char *name = emit_machine_name(a, machine);
  for (uint32_t k = 0; k < c->n; k++) {
    void *f[SIZES_PHASES] = {NULL};
    for (uint32_t phase = 0; phase < c->items[k].way.phases; phase++) {
      f[phase] = rt_code_find(code, kernel_name(a, k, phase));
      ck_assert_ptr_nonnull(f[phase]);
    }
    for (int round = 0; f[0] && round < rounds; round++) {
      TRY(run_case(&c->items[k], name, t.execution, f, round));
    }
    c->items[k].runs += f[0] ? 0 : 2;
  }
  arena_destroy(a);
  return NULL;
}

static status compile_for_gpu(sizes_cases *c, const char *gpu) {
  arena *a = arena_create(NULL);
  emit_target t;
  emit_module *m = NULL;
  TRY(emit_target_nvptx(a, gpu, &t));
  TRY(write_all(a, c, &t, &m));
  TRY(ptx_check(a, m, gpu));
  arena_destroy(a);
  return NULL;
}

typedef struct job {
  sizes_cases *cases;
  const emit_machine *machine;
  int rounds;
} job;

static status run_job(void *data) {
  const job *j = data;
  TRY(compile_and_run(j->cases, j->machine, j->rounds));
  return j->machine->execution == EMIT_BLOCKS ? compile_for_gpu(j->cases, ptx_gpus[next_random() % PTX_GPUS]) : NULL;
}

/* Adds each entry of c to `all` in all its forms: as a fusion, in place if that is allowed, and as an instruction. */
static void expand(const sizes_cases *c, sizes_cases *all) {
  arena *a = arena_create(NULL);
  for (uint32_t k = 0; k < c->n; k++) {
    const hlo_instr *alone = single(c->items[k].entry);
    bool special = alone && emit_is_special(alone);
    for (int fused = alone ? 0 : 1; fused < (special ? 1 : 2); fused++) {
      sizes_case one = c->items[k];
      one.i = outside(&one, fused);
      const char *why = "";
      ck_assert_msg(special ? emit_supports_special(one.i, &why) : emit_supports(one.i, &why), "%s", why);
      add(all, &one);
      if (special) {
        continue;
      }
      for (uint32_t j = 0; j < one.i->n_operands && one.shares < 0; j++) {
        one.shares = emit_can_alias(one.i, j, 0) ? (int32_t)j : -1;
        ck_assert_msg(one.shares < 0 || hlo_may_overlap(a, one.i, j, 0, HLO_READS_ROW_FIRST),
                      "buffers_check.c would refuse operand %u to be overwritten", j);
      }
      if (one.shares >= 0) {
        add(all, &one);
      }
    }
  }
  arena_destroy(a);
}

/* Checks the cases on machines [from, to) of emit_machines. */
static void check_on(sizes_cases *c, int rounds, size_t from, size_t to) {
  sizes_cases all = {0};
  expand(c, &all);
  for (size_t k = from; k < to; k++) {
    ASSERT_OK(guard_run(run_job, &(job){&all, &emit_machines[k], rounds}));
  }
  for (uint32_t k = 0; k < all.n; k++) {
    ck_assert_msg(all.items[k].runs >= (to - from) * 2, "case %u was run only %u times", k, all.items[k].runs);
  }
}

void sizes_check_all(sizes_cases *c, int rounds, size_t machines) { check_on(c, rounds, 0, machines); }
void sizes_check_blocks(sizes_cases *c, int rounds) {
  check_on(c, rounds, EMIT_MACHINES_AND_BLOCKS - 1, EMIT_MACHINES_AND_BLOCKS);
}

void sizes_check_texts(const char *const *texts, size_t n, double tolerance, int rounds) {
  sizes_cases c = {0};
  for (size_t k = 0; k < n; k++) {
    sizes_add_text(&c, texts[k])->tolerance = tolerance;
  }
  sizes_check_all(&c, rounds, EMIT_MACHINES_AND_BLOCKS);
}
