/* module_toy_backend.c - a backend as a third party would write one: a target and a compiler in a shared object of its
 * own, loaded by path.  It computes in f32 what is elementwise, broadcasts and transposes, all with one kind of thunk:
 * a loop over the result that reads each operand with strides of its own.  A model that it does not support is an
 * error, and never gives wrong numbers. */
#include <inttypes.h>
#include <math.h>

#include "lower/lower.h"

enum { MAX_OPERANDS = 2 };

/* --- the thunk: config is an operation, then for each operand its strides by the result's dimensions --- */

typedef enum toy_op { TOY_ADD, TOY_SUB, TOY_MUL, TOY_MAX, TOY_MIN, TOY_NEG, TOY_SQRT, TOY_COPY, TOY_OP_COUNT } toy_op;

typedef struct toy_loop {
  toy_op op;
  const int64_t *strides[MAX_OPERANDS];
} toy_loop;

static float apply(toy_op op, float a, float b) {
  switch (op) {
    case TOY_ADD: return a + b;
    case TOY_SUB: return a - b;
    case TOY_MUL: return a * b;
    case TOY_MAX: /* NaN wins, as HLO says */ return isnan(a) || a > b ? a : b;
    case TOY_MIN: return isnan(a) || a < b ? a : b;
    case TOY_NEG: return -a;
    case TOY_SQRT: return sqrtf(a);
    default: return a;
  }
}

/* Fails if the strides lead out of the operand: the config may come from a damaged file. */
static status check_strides(const rt_thunk *t, uint32_t operand, const int64_t *strides, uint32_t n) {
  const rt_buffer *from = &t->buffers[operand], *to = &t->buffers[t->n_inputs];
  int64_t last = 0;
  CHECK_THAT(n == to->rank, STATUS_INVALID_FILE, "%u strides for rank %d", n, to->rank);
  for (uint32_t k = 0; k < n; k++) {
    int64_t step;
    bool bad = strides[k] < 0 || __builtin_mul_overflow(strides[k], to->extents[k] ? to->extents[k] - 1 : 0, &step) ||
               __builtin_add_overflow(last, step, &last);
    CHECK_THAT(!bad, STATUS_INVALID_FILE, "stride %" PRId64, strides[k]);
  }
  bool empty = rt_buffer_elements(to) == 0;
  CHECK_THAT(empty || last < rt_buffer_elements(from), STATUS_INVALID_FILE, "operand %u is too small", operand);
  return NULL;
}

static status load(rt_thunk *t, rt_loader *l) {
  rt_reader r = rt_reader_make(t->config);
  toy_loop *loop = ARENA_NEW(l->arena, toy_loop);
  loop->op = (toy_op)rt_get_in(&r, 0, TOY_OP_COUNT - 1);
  uint32_t wanted = loop->op < TOY_NEG ? 2 : 1;
  CHECK_THAT(t->n_inputs == wanted && t->n_buffers == wanted + 1, STATUS_INVALID_FILE, "%u buffers", t->n_buffers);
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(t->buffers[k].type == DTYPE_F32 && rt_buffer_is_dense(&t->buffers[k]), STATUS_INVALID_FILE,
               "buffer %u is no dense f32 array", k);
  }
  for (uint32_t k = 0; k < wanted; k++) {
    uint32_t n;
    loop->strides[k] = rt_get_i64s(&r, l->arena, &n);
    TRY(check_strides(t, k, loop->strides[k], n));
  }
  t->state = loop;
  return rt_reader_end(&r, t->kind);
}

static status run(const rt_thunk *t, rt_run *r) {
  const toy_loop *loop = t->state;
  const rt_buffer *to = &t->buffers[t->n_inputs];
  const float *in[MAX_OPERANDS] = {rt_address(r, &t->buffers[0])};
  in[1] = t->n_inputs > 1 ? rt_address(r, &t->buffers[1]) : in[0];
  float *out = rt_address(r, to);
  int64_t n = rt_buffer_elements(to);
  for (int64_t i = 0; i < n; i++) {
    int64_t at[MAX_OPERANDS] = {0}, rest = i;
    for (int d = to->rank - 1; d >= 0; d--) {
      for (uint32_t k = 0; k < t->n_inputs; k++) {
        at[k] += rest % to->extents[d] * loop->strides[k][d];
      }
      rest /= to->extents[d];
    }
    out[i] = apply(loop->op, in[0][at[0]], in[1][at[1]]);
  }
  return NULL;
}

/* --- compiling --- */

static int toy_op_of(hlo_op op) {
  switch (op) {
    case HLO_ADD: return TOY_ADD;
    case HLO_SUB: return TOY_SUB;
    case HLO_MUL: return TOY_MUL;
    case HLO_MAX: return TOY_MAX;
    case HLO_MIN: return TOY_MIN;
    case HLO_NEG: return TOY_NEG;
    case HLO_SQRT: return TOY_SQRT;
    case HLO_COPY:
    case HLO_BROADCAST:
    case HLO_TRANSPOSE: return TOY_COPY;
    default: return -1;
  }
}

/* Sets out[d] to the operand's stride along dimension d of the result. */
static void find_strides(const hlo_instr *i, uint32_t operand, int64_t *out) {
  const shape *from = hlo_shape(i->operands[operand]);
  int64_t dense[SHAPE_MAX_RANK];
  shape_strides(from, dense);
  for (int d = 0; d < from->rank; d++) {
    int64_t to = d;
    if (i->op == HLO_BROADCAST) {
      to = hlo_ints(i, HLO_ATTR_DIMENSIONS)[d];
    }
    if (i->op == HLO_TRANSPOSE) { /* result dimension d is operand dimension permutation[d] */
      out[d] = dense[hlo_ints(i, HLO_ATTR_PERMUTATION)[d]];
    } else {
      out[to] = from->dims[d] == 1 ? 0 : dense[d];
    }
  }
}

static status emit(lower_context *c, const hlo_instr *i) {
  int op = toy_op_of(i->op);
  CHECK_THAT(op >= 0, STATUS_UNSUPPORTED | STATUS_ABOUT_OPERATOR, "the toy backend cannot do %s", hlo_info(i)->name);
  CHECK_THAT(i->shapes[0].type == DTYPE_F32, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "the toy backend computes in f32, not %s", SHAPE_STR(NULL, &i->shapes[0]));
  rt_writer w = {.arena = lower_arena(c)};
  rt_put_i64(&w, op);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    int64_t strides[SHAPE_MAX_RANK] = {0};
    find_strides(i, k, strides);
    rt_put_i64s(&w, i->shapes[0].rank, strides);
  }
  lower_thunk(c, "toy.loop", i)->config = rt_written(&w);
  return NULL;
}

static bool is_view(const hlo_instr *i) { return i->op == HLO_RESHAPE; }

static status compile(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                      rt_report *report) {
  const lower_backend backend = {.target = "toy", .emit = emit, .is_view = is_view, .origins = options->origins};
  return lower_program(m, &backend, a, NULL, out, report);
}

/* --- the backend --- */

static const rt_thunk_kind kinds[] = {{.name = "toy.loop", .load = load, .run = run}};
static const rt_target target = {.abi = RT_ABI, .name = "toy", .kinds = kinds, .n_kinds = 1};
static const rt_compiler compiler = {.abi = RT_ABI, .name = "toy", .compile = compile};
static const rt_backend backend_of_ours = {
    .abi = RT_ABI, .adopt_guard = guard_adopt, .target = &target, .compiler = &compiler};

rt_backend_entry onnx_xla_backend;

const rt_backend *onnx_xla_backend(uint32_t abi) { return abi == RT_ABI ? &backend_of_ours : NULL; }
