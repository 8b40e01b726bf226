/* block_case.c - kernels on emulated threads; see block_case.h. */
#include "tests/unit/emit/blocks/block_case.h"

#include <math.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "backend_ref/eval.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/ptx_case.h"

/* --- data --- */

static double number(block_numbers how) {
  static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0, 65504};
  uint64_t r = next_random() >> 20;
  switch (how) {
    case BLOCK_ROUGH: return (double)(r % 2000001) / 1e6 - 0.7;
    case BLOCK_TIES: return r % 997 == 0 ? NAN : (double)(r % 4);
    case BLOCK_SPECIAL: return r % 101 < 6 ? special[r % 101] : (double)(r % 65) / 16 - 2;
    default: return (double)(int64_t)(r % 17) - 8;
  }
}

static void random_element(const kernel_case *c, dtype t, block_numbers how, char *at) {
  double v = number(how);
  if (dtype_is_complex(t)) {
    dtype part = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    random_element(c, part, how, at);
    random_element(c, part, how, at + dtype_bytes(part));
  } else if (dtype_is_float(t)) {
    dtype_store_f64(t, at, v, true, DTYPE_ROUND_NEAREST);
  } else if (c->low < c->high) {
    dtype_store_i64(t, at, c->low + (int64_t)(next_random() >> 8) % (c->high - c->low + 1));
  } else {
    dtype_store_i64(t, at, t == DTYPE_PRED ? v > 0 : isfinite(v) ? llround(v) : 3);
  }
}

literal block_literal(const kernel_case *c, const shape *s, block_numbers how) {
  dtype t = (dtype)s->type;
  char *data = arena_alloc_aligned(kernel_arena, (size_t)shape_bytes(s) + 1, 64);
  for (int64_t k = 0; k < shape_elements(s); k++) {
    random_element(c, t, how, data + (size_t)k * dtype_bytes(t));
  }
  return literal_make(*s, data);
}

static bool same(const kernel_case *c, dtype t, const char *x, const char *y) {
  if (dtype_is_complex(t)) {
    dtype part = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    return same(c, part, x, y) && same(c, part, x + dtype_bytes(part), y + dtype_bytes(part));
  }
  if (!dtype_is_float(t)) {
    return memcmp(x, y, dtype_bytes(t)) == 0;
  }
  double a = dtype_load_f64(t, x), b = dtype_load_f64(t, y);
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= c->tolerance * (fabs(b) + 1.0 / 16);
}

static void compare(const kernel_case *c, const literal *want, const char *got) {
  dtype t = (dtype)want->shape.type;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    const char *x = got + (size_t)k * dtype_bytes(t), *y = (const char *)want->data + (size_t)k * dtype_bytes(t);
    if (!same(c, t, x, y)) {
      ck_abort_msg("element %lld of %s is %.9g, not %.9g, of\n%s", (long long)k, SHAPE_STR(NULL, &want->shape),
                   dtype_is_complex(t) ? 0 : dtype_load_f64(t, x), dtype_is_complex(t) ? 0 : dtype_load_f64(t, y),
                   c->text);
    }
  }
}

/* --- kernels --- */

static const hlo_instr *instruction_of(const kernel_case *c, block_way_fn *way) {
  return way ? hlo_callee(c->fusion, 0)->roots[0].def : c->fusion;
}

static block_way way_of(const kernel_case *c, block_way_fn *way) {
  block_way w = {.phases = 1};
  if (way) {
    way(instruction_of(c, way), &w);
  }
  ck_assert_uint_le(w.phases, BLOCK_MOST_PHASES);
  return w;
}

static status write_phase(emit_module *m, uint32_t k, const kernel_case *c, const block_way *w, const hlo_instr *i,
                          uint32_t phase, emit_kernel_info *info) {
  const char *name = TEXT("k%u_%u", k, phase);
  if (!w->write) {
    int32_t *alias = ARENA_NEW_N(kernel_arena, int32_t, i->n_results);
    memset(alias, 0xff, i->n_results * sizeof *alias);
    alias[0] = c->alias;
    return emit_kernel(m, name, i, &(emit_options){.alias = alias}, info);
  }
  return w->write(m, name, i, NULL, w->config, phase, info);
}

/* Writes a module of all kernels, and sets infos[], which has BLOCK_MOST_PHASES elements for each case. */
static emit_module *write_all(kernel_cases *c, const emit_target *t, block_way_fn *way, emit_kernel_info *infos) {
  emit_module *m;
  ASSERT_OK(emit_module_create(kernel_arena, t, "test", &m));
  for (uint32_t k = 0; k < c->n; k++) {
    kernel_case *one = &c->items[k];
    one->fusion = kernel_parse(one);
    block_way w = way_of(one, way);
    for (uint32_t phase = 0; phase < w.phases; phase++) {
      ASSERT_OK(write_phase(m, k, one, &w, instruction_of(one, way), phase, &infos[k * BLOCK_MOST_PHASES + phase]));
    }
    one->info = infos[(size_t)k * BLOCK_MOST_PHASES];
  }
  return m;
}

emit_module *block_write(kernel_cases *c, const emit_target *t, block_way_fn *way) {
  return write_all(c, t, way, ARENA_NEW_N(kernel_arena, emit_kernel_info, (size_t)c->n * BLOCK_MOST_PHASES));
}

/* --- running --- */

typedef struct callable {
  block_way way;
  const emit_kernel_info *infos;
  rt_block_fn *fns[BLOCK_MOST_PHASES];
} callable;

static void run_phase(const kernel_case *c, const callable *f, uint32_t phase, const void **buffers, gpu_order order) {
  const emit_kernel_info *info = &f->infos[phase];
  int64_t grid = emit_static_grid(info);
  uint32_t threads = info->threads ? info->threads : 64;
  gpu_blocks b = {f->fns[phase], c->text, buffers, NULL, grid, threads, info->shared_bytes, order};
  ASSERT_OK(gpu_run_blocks(&b, 0, grid * info->step_threads / threads + 1));
}

/* Runs the kernels of a case and sets out[] to its results, in new memory on the arena. */
static void run(const kernel_case *c, const hlo_instr *i, const callable *f, const literal *args, gpu_order order,
                char **out) {
  enum { MOST_BUFFERS = 12, BELOW = 0xa5 };
  const void *buffers[MOST_BUFFERS];
  uint32_t n = i->n_operands;
  ck_assert(n + i->n_results < MOST_BUFFERS);
  for (uint32_t k = 0; k < n; k++) {
    buffers[k] = args[k].data;
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    size_t bytes = (size_t)shape_bytes(&i->shapes[k]);
    out[k] = arena_alloc_aligned(kernel_arena, bytes + 1, 64);
    memset(out[k], BELOW, bytes);
    buffers[n + k] = out[k];
  }
  if (c->alias >= 0) {
    memcpy(out[0], args[c->alias].data, (size_t)shape_bytes(&i->shapes[0]));
    buffers[c->alias] = out[0];
  }
  char *scratch = arena_alloc_aligned(kernel_arena, (size_t)f->way.scratch_bytes + 1, 64);
  memset(scratch, BELOW, (size_t)f->way.scratch_bytes);
  buffers[n + i->n_results] = scratch;
  for (uint32_t phase = 0; phase < f->way.phases; phase++) {
    run_phase(c, f, phase, buffers, order);
  }
}

enum { MOST_RESULTS = 4 };

static literal *random_args(const kernel_case *c, const hlo_instr *i, block_numbers how) {
  literal *args = ARENA_NEW_N(kernel_arena, literal, i->n_operands);
  ck_assert(i->n_results <= MOST_RESULTS);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    args[k] = block_literal(c, hlo_shape(i->operands[k]), how);
  }
  return args;
}

static void check_case(const kernel_case *c, const hlo_instr *i, const callable *f, block_numbers how) {
  literal *args = random_args(c, i, how), want[MOST_RESULTS];
  ASSERT_OK(ref_eval_computation(hlo_callee(c->fusion, 0), args, kernel_arena, want));
  char *first[MOST_RESULTS], *out[MOST_RESULTS];
  run(c, i, f, args, GPU_FORWARD, first);
  for (gpu_order order = GPU_FORWARD + 1; order < GPU_ORDERS; order++) {
    run(c, i, f, args, order, out);
    for (uint32_t k = 0; k < i->n_results; k++) {
      ck_assert_msg(memcmp(first[k], out[k], (size_t)shape_bytes(&i->shapes[k])) == 0,
                    "order %d gives other bits of\n%s", (int)order, c->text);
    }
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    compare(c, &want[k], first[k]);
  }
}

/* Compiles the kernels of all cases for this machine.  infos[] has BLOCK_MOST_PHASES for each case. */
static rt_code *load_all(kernel_cases *c, const emit_target *t, block_way_fn *way, emit_kernel_info *infos) {
  rt_code *code;
  ASSERT_OK(kernel_load(kernel_arena, write_all(c, t, way, infos), kernel_resolve, &code));
  return code;
}

/* Returns the kernels of case number k. */
static callable callable_of(const kernel_cases *c, uint32_t k, block_way_fn *way, const rt_code *code,
                            const emit_kernel_info *infos) {
  callable f = {way_of(&c->items[k], way), &infos[(size_t)k * BLOCK_MOST_PHASES], {NULL}};
  for (uint32_t phase = 0; phase < f.way.phases; phase++) {
    f.fns[phase] = (rt_block_fn *)(intptr_t)rt_code_find(code, TEXT("k%u_%u", k, phase));
  }
  return f;
}

static emit_kernel_info *new_infos(const kernel_cases *c) {
  return ARENA_NEW_N(kernel_arena, emit_kernel_info, (size_t)c->n * BLOCK_MOST_PHASES);
}

void block_check_all(kernel_cases *c, block_numbers how, block_way_fn *way) {
  emit_target t;
  const char *gpu = ptx_gpus[next_random() % PTX_GPUS];
  emit_kernel_info *infos = new_infos(c);
  ASSERT_OK(emit_target_nvptx(kernel_arena, gpu, &t));
  ASSERT_OK(ptx_check(kernel_arena, write_all(c, &t, way, infos), gpu));
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = true;
  const rt_code *code = load_all(c, &t, way, infos);
  for (uint32_t k = 0; k < c->n; k++) {
    callable f = callable_of(c, k, way, code, infos);
    check_case(&c->items[k], instruction_of(&c->items[k], way), &f, how);
  }
}

void block_check_same(kernel_cases *c, block_numbers how, block_way_fn *way, const emit_target *x,
                      const emit_target *y) {
  emit_kernel_info *infos[2] = {new_infos(c), new_infos(c)};
  const rt_code *codes[2] = {load_all(c, x, way, infos[0]), load_all(c, y, way, infos[1])};
  for (uint32_t k = 0; k < c->n; k++) {
    const kernel_case *one = &c->items[k];
    const hlo_instr *i = instruction_of(one, way);
    literal *args = random_args(one, i, how);
    char *out[2][MOST_RESULTS];
    for (int j = 0; j < 2; j++) {
      callable f = callable_of(c, k, way, codes[j], infos[j]);
      run(one, i, &f, args, GPU_FORWARD, out[j]);
    }
    for (uint32_t r = 0; r < i->n_results; r++) {
      ck_assert_msg(memcmp(out[0][r], out[1][r], (size_t)shape_bytes(&i->shapes[r])) == 0, "other bits of\n%s",
                    one->text);
    }
  }
}
