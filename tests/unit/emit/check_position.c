/* check_position.c - compares positions, whose bases are constants here so that LLVM computes them, with the same
 * arithmetic on each lane, for random chains of operations. */
#include <check.h>
#include <stdlib.h>

#include "emit/llvm/position.h"
#include "tests/suite.h"
#include "tests/unit/emit/kernel_test.h"

enum { MOST_LANES = 16, CHAINS = 6000, LONGEST = 6 };

static arena *memory;
static emit_target target;
static emit_ir ir;

static void setup(void) {
  memory = arena_create(NULL);
  target = emit_machine_target(memory, &emit_machines[0]);
  LLVMContextRef context = LLVMContextCreate();
  emit_ir_init(&ir, memory, &target, context, LLVMModuleCreateWithNameInContext("positions", context));
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, false);
  ir.function = LLVMAddFunction(ir.module, "f", type);
  LLVMPositionBuilderAtEnd(ir.builder, LLVMAppendBasicBlockInContext(context, ir.function, "entry"));
}

static void teardown(void) {
  emit_ir_finish(&ir);
  LLVMDisposeModule(ir.module);
  LLVMContextDispose(ir.context);
  arena_destroy(memory);
}

/* A position, and what each of its lanes must be. */
typedef struct sample {
  emit_pos p;
  int64_t lanes[MOST_LANES];
} sample;

static int64_t below(int64_t n) { return (int64_t)(next_random() % (uint64_t)n); }

static sample affine(const emit_indexer *x) {
  int64_t multiple = (int64_t)1 << below(6), base = multiple * below(50), step = below(4);
  sample s = {.p = emit_pos_lanes(emit_i64(&ir, base), x->lanes > 1 ? step : 0, multiple)};
  for (int k = 0; k < x->lanes; k++) {
    s.lanes[k] = base + k * s.p.step;
  }
  if (below(2)) {
    s.p.least = base;
    s.p.past = s.lanes[x->lanes - 1] + 1;
  }
  return s;
}

static bool has_distances(emit_pos p) { return p.step == EMIT_SCATTERED && p.spread; }

/* Changes *s by one operation.  No lane becomes negative. */
static void change(const emit_indexer *x, sample *s) {
  enum { DIV, MOD, SCALE, ADD_CONST, ADD, CLAMP, KINDS };
  static const int64_t divisors[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64};
  int64_t c = divisors[below(sizeof divisors / sizeof *divisors)], kind = below(KINDS);
  sample other = affine(x);
  if (kind == CLAMP && !has_distances(s->p)) {
    return; /* LLVM does not compute such clamps while they are written */
  }
  switch (kind) {
    case DIV: s->p = emit_pos_div(x, s->p, c); break;
    case MOD: s->p = emit_pos_mod(x, s->p, c); break;
    case SCALE: s->p = emit_pos_scale(x, s->p, c); break;
    case ADD_CONST: s->p = emit_pos_add_const(x, s->p, c); break;
    case ADD: s->p = emit_pos_add(x, s->p, other.p); break;
    default: s->p = emit_pos_clamp(x, s->p, c); break;
  }
  for (int k = 0; k < x->lanes; k++) {
    int64_t *n = &s->lanes[k];
    switch (kind) {
      case DIV: *n /= c; break;
      case MOD: *n %= c; break;
      case SCALE: *n *= c; break;
      case ADD_CONST: *n += c; break;
      case ADD: *n += other.lanes[k]; break;
      default: *n = *n < c ? *n : c - 1; break;
    }
  }
}

static int64_t lane_of(const emit_indexer *x, emit_pos p, int k) {
  LLVMValueRef v = emit_pos_vector(x, p);
  return LLVMConstIntGetSExtValue(x->lanes > 1 ? LLVMGetAggregateElement(v, (unsigned)k) : v);
}

static void check(const emit_indexer *x, const sample *s) {
  for (int k = 0; k < x->lanes; k++) {
    ck_assert_int_eq(lane_of(x, s->p, k), s->lanes[k]);
    ck_assert(s->p.least >= s->p.past || (s->p.least <= s->lanes[k] && s->lanes[k] < s->p.past));
    if (has_distances(s->p)) {
      ck_assert_int_eq(LLVMConstIntGetSExtValue(s->p.spread->first) + s->p.spread->offsets[k], s->lanes[k]);
    }
  }
  LLVMValueRef first = has_distances(s->p) ? s->p.spread->first : s->p.base;
  int64_t multiple = has_distances(s->p) ? s->p.spread->multiple : s->p.multiple;
  if (has_distances(s->p) || s->p.step != EMIT_SCATTERED) {
    int64_t n = LLVMConstIntGetSExtValue(first);
    ck_assert(multiple ? n % multiple == 0 : n == 0);
  }
}

START_TEST(chains) {
  static const int widths[] = {1, 4, 8, 16};
  int with_distances = 0;
  for (int n = 0; n < CHAINS; n++) {
    dim_table *dims = dim_table_create(memory);
    emit_sizes sizes = {.table = dims};
    emit_indexer x = {&ir, emit_table_create(memory), widths[below(4)], below(2), &sizes};
    sample s = affine(&x);
    for (int64_t k = below(LONGEST) + 1; k > 0; k--) {
      change(&x, &s);
      check(&x, &s);
      with_distances += has_distances(s.p);
    }
  }
  ck_assert_int_gt(with_distances, CHAINS / 20);
}
END_TEST

START_TEST(pairs) { /* 0 0 1 1 2 2 3 3 and 0 1 0 1 0 1 0 1, though the base is not a constant */
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(ir.context), &ir.i64, 1, false);
  ir.function = LLVMAddFunction(ir.module, "g", type);
  LLVMPositionBuilderAtEnd(ir.builder, LLVMAppendBasicBlockInContext(ir.context, ir.function, "entry"));
  emit_sizes sizes = {.table = dim_table_create(memory)};
  emit_indexer x = {&ir, emit_table_create(memory), 8, true, &sizes};
  emit_pos p = emit_pos_lanes(LLVMGetParam(ir.function, 0), 1, 8);
  emit_pos half = emit_pos_div(&x, p, 2), rest = emit_pos_mod(&x, p, 2), row = emit_pos_mod(&x, half, 12);
  ck_assert(has_distances(half) && has_distances(rest) && has_distances(row));
  ck_assert(LLVMIsAConstantInt(rest.spread->first) && !LLVMIsAConstantInt(half.spread->first));
  for (int k = 0; k < 8; k++) {
    ck_assert_int_eq(half.spread->offsets[k], k / 2);
    ck_assert_int_eq(rest.spread->offsets[k], k % 2);
    ck_assert_int_eq(row.spread->offsets[k], k / 2);
  }
  emit_pos both = emit_pos_add(&x, emit_pos_scale(&x, half, 2), rest); /* p again */
  ck_assert_int_eq(both.step, 1);
  ck_assert_int_eq(both.multiple, 8);
  emit_pos three = emit_pos_mod(&x, p, 3);
  ck_assert(three.step == EMIT_SCATTERED && !three.spread);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("position");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 100);
  tcase_add_test(t, chains);
  tcase_add_test(t, pairs);
  return run_suite("position", t);
}
