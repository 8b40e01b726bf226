/* check_depthwise.c - compares kernels of depthwise convolutions (emit/contraction/depthwise.h) with the reference
 * evaluator: strides, dilation, padding on each side, numbers of channels and positions that the tile does not divide,
 * numbers of dimensions, types (bytes must be exact), epilogues, vector widths and processors. */
#include <check.h>
#include <stdlib.h>

#include "emit/contraction/depthwise.h"
#include "tests/unit/emit/emit_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* --- cases --- */

#define PLAIN \
  "strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], layout=channels-last, groups="
#define SAME \
  "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], layout=channels-last, groups="
#define HALF \
  "strides=[2,2], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], layout=channels-last, groups="
#define BIAS EMIT_CASE_BIAS

/* The tolerances: for f32, that of sums of at most 25 products in another order than the reference's, 1e-6, and 4e-6
 * for up to 153; for f16 and bf16, one rounding of the result. */
static const emit_case cases[] = {
    {"f32[1,6,6,16]", "f32[16,1,3,3]", PLAIN "16", "f32[1,4,4,16]", NULL, NULL, 1e-6},
    {"f32[2,9,31,48]", "f32[48,1,3,3]", SAME "48", "f32[2,9,31,48]", BIAS("f32[2,9,31,48]", 3), "f32[48]", 1e-6},
    {"f32[1,13,40,24]", "f32[24,1,3,3]", HALF "24", "f32[1,7,20,24]", NULL, NULL, 1e-6},
    {"f32[1,7,7,67]", "f32[67,1,3,3]", SAME "67", "f32[1,7,7,67]", "%9 = add(%3, %2) : f32[1,7,7,67]\n",
     "f32[1,7,7,67]", 1e-6},
    {"f32[1,7,30,67]", "f32[67,1,3,3]", SAME "67", "f32[1,7,30,67]",
     "%4 = broadcast(%2) {dimensions=[3]} : f32[1,7,30,67]\n%5 = add(%3, %4) : f32[1,7,30,67]\n"
     "%9 = add(%5, %0) : f32[1,7,30,67]\n",
     "f32[67]", 1e-6},
    {"f32[1,12,50,3]", "f32[3,1,5,5]",
     "strides=[1,1], low=[2,2], high=[2,2], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "layout=channels-last, groups=3",
     "f32[1,12,50,3]", NULL, NULL, 1e-6},
    {"f32[1,5,60,20]", "f32[20,1,3,51]",
     "strides=[1,1], low=[1,25], high=[1,25], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "layout=channels-last, groups=20",
     "f32[1,5,60,20]", NULL, NULL, 4e-6},
    {"f32[2,70,1,9]", "f32[9,1,64,1]",
     "strides=[2,1], low=[31,0], high=[32,0], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "layout=channels-last, groups=9",
     "f32[2,35,1,9]", NULL, NULL, 4e-6},
    {"f32[1,5,6,20]", "f32[20,1,1,1]", PLAIN "20", "f32[1,5,6,20]", BIAS("f32[1,5,6,20]", 3), "f32[20]", 1e-6},
    {"f32[1,14,61,33]", "f32[33,1,2,3]",
     "strides=[3,2], low=[0,3], high=[4,0], lhs_dilation=[1,1], rhs_dilation=[2,3], "
     "layout=channels-last, groups=33",
     "f32[1,6,29,33]", NULL, NULL, 1e-6},
    {"f32[1,3,3,17]", "f32[17,1,3,3]",
     "strides=[1,1], low=[4,4], high=[4,4], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "layout=channels-last, groups=17",
     "f32[1,9,9,17]", NULL, NULL, 1e-6},
    {"f32[1,12,12,18]", "f32[18,1,3,3]",
     "strides=[1,1], low=[-1,-2], high=[-3,0], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "layout=channels-last, groups=18",
     "f32[1,6,8,18]", NULL, NULL, 1e-6},
    {"f32[2,70,9]", "f32[9,1,5]",
     "strides=[3], low=[2], high=[0], lhs_dilation=[1], rhs_dilation=[1], layout=channels-last, groups=9",
     "f32[2,23,9]", NULL, NULL, 1e-6},
    {"f32[1,45,1,20]", "f32[20,1,3,1]",
     "strides=[1,1], low=[1,0], high=[1,0], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "layout=channels-last, groups=20",
     "f32[1,45,1,20]", BIAS("f32[1,45,1,20]", 3), "f32[20]", 1e-6},
    {"f32[1,6,1,9,12]", "f32[12,1,3,1,3]",
     "strides=[1,1,1], low=[1,0,1], high=[1,0,1], lhs_dilation=[1,1,1], "
     "rhs_dilation=[1,1,1], layout=channels-last, groups=12",
     "f32[1,6,1,9,12]", NULL, NULL, 1e-6},
    {"f32[1,8,19,21]", "f32[21,1,3,3]", SAME "21", "f32[1,8,19,21]",
     "%4 = broadcast(%2) {dimensions=[3]} : f32[1,8,19,21]\n%5 = add(%3, %4) : f32[1,8,19,21]\n"
     "%6 = logistic(%5) : f32[1,8,19,21]\n%9 = multiply(%5, %6) : f32[1,8,19,21]\n",
     "f32[21]", 1e-5},
    {"f64[1,6,9,10]", "f64[10,1,3,3]", SAME "10", "f64[1,6,9,10]", NULL, NULL, 1e-14},
    {"f16[1,6,9,10]", "f16[10,1,3,3]", SAME "10", "f16[1,6,9,10]", NULL, NULL, 2e-3},
    {"bf16[1,6,9,40]", "bf16[40,1,3,3]", HALF "40", "bf16[1,3,5,40]", NULL, NULL, 1e-2},
    {"f32[1,9,20,48]", "f32[48,4,3,3]", SAME "12", "f32[1,9,20,48]", BIAS("f32[1,9,20,48]", 3), "f32[48]", 2e-6},
    {"f32[2,6,7,20]", "f32[20,2,3,3]", HALF "10", "f32[2,3,4,20]", NULL, NULL, 2e-6},
    {"f32[1,9,20,24]", "f32[48,1,3,3]", SAME "24", "f32[1,9,20,48]", BIAS("f32[1,9,20,48]", 3), "f32[48]", 1e-6},
    {"f32[2,6,7,5]", "f32[20,1,3,3]", HALF "5", "f32[2,3,4,20]", NULL, NULL, 1e-6},
    {"f32[1,5,30,3]", "f32[24,1,3,3]", SAME "3", "f32[1,5,30,24]", NULL, NULL, 1e-6},
    {"u8[1,9,8,13]", "s8[26,1,3,3]", SAME "13", "s32[1,9,8,26]", NULL, NULL, 0},
    {"s8[1,7,9,24]", "s8[24,4,3,3]", SAME "6", "s32[1,7,9,24]", NULL, NULL, 0},
    {"u8[1,9,20,40]", "s8[40,1,3,3]", SAME "40", "s32[1,9,20,40]", NULL, NULL, 0},
    {"s8[2,9,8,21]", "s8[21,1,3,3]", HALF "21", "s32[2,5,4,21]",
     "%4 = convert(%3) {saturate=true, rounding=nearest} : f32[2,5,4,21]\n%5 = broadcast(%2) {dimensions=[3]} : "
     "f32[2,5,4,21]\n"
     "%6 = multiply(%4, %5) : f32[2,5,4,21]\n%9 = convert(%6) {saturate=true, rounding=nearest} : s32[2,5,4,21]\n",
     "f32[21]", 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void pack(const void *config, const void *weights, void *packed) {
  emit_depthwise_pack(config, weights, packed);
}

static void check_case(const emit_case *c, const emit_machine *m, int64_t vectors) {
  hlo_instr *i = emit_case_parse(memory, c);
  emit_target t = emit_machine_target(memory, m);
  emit_depthwise d;
  ck_assert_msg(emit_depthwise_of(i, &d), "not depthwise: %s x %s {%s}", c->x, c->w, c->attributes);
  if (!emit_depthwise_choose(i->parent->module->dims, &d, &t, vectors, (uint32_t)vectors)) {
    ck_assert_msg(vectors > 1 || d.lanes % d.group || d.lanes % d.multiplier,
                  "no tile for one vector: %s x %s {%s}, %s, %d lanes", c->x, c->w, c->attributes, m->cpu, t.lanes);
    return;
  }
  d.weights = 1;
  emit_way way = {.write = emit_depthwise_write,
                  .config = &d,
                  .phases = 1,
                  .packed_bytes = emit_depthwise_packed_bytes(&d),
                  .pack = pack};
  way.name = arena_printf(memory, "%s, %d lanes, %dx%d", m->cpu, t.lanes, (int)d.width, (int)d.vectors);
  emit_case_check(memory, c, i, &t, &way);
}

START_TEST(all_forms) {
  for (size_t k = 0; k < N_CASES; k++) {
    for (int64_t vectors = 1; vectors <= 4; vectors++) {
      check_case(&cases[k], &emit_machines[_i], vectors);
    }
    arena_destroy(memory);
    memory = arena_create(NULL);
  }
}
END_TEST

/* Compiles the kernels for processors that cannot be run here: LLVM must be able to select all
 * instructions. */
static status objects_of_all(void *data) {
  static const char *const machines[][2] = {{"aarch64-unknown-linux-gnu", "generic"},
                                            {"riscv64-unknown-linux-gnu", "generic-rv64"}};
  (void)data;
  for (size_t j = 0; j < sizeof machines / sizeof *machines; j++) {
    emit_target t;
    emit_module *m;
    emit_kernel_info info;
    const void *object;
    size_t size;
    TRY(emit_target_init(memory, machines[j][0], machines[j][1], 0, &t));
    TRY(emit_module_create(memory, &t, "depthwise", &m));
    for (size_t k = 0; k < N_CASES; k++) {
      hlo_instr *i = emit_case_parse(memory, &cases[k]);
      emit_depthwise *d = ARENA_NEW(memory, emit_depthwise);
      ck_assert(emit_depthwise_of(i, d));
      if (!emit_depthwise_choose(i->parent->module->dims, d, &t, 1, 2)) {
        ck_assert(d->lanes % d->group || d->lanes % d->multiplier);
        continue;
      }
      d->weights = 1;
      TRY(emit_depthwise_write(m, arena_printf(memory, "k%zu", k), i, NULL, d, 0, &info));
    }
    TRY(status_prefix(emit_module_object(m, &object, &size), "%s", machines[j][0]));
  }
  return NULL;
}

START_TEST(other_machines) {
  status s = guard_run(objects_of_all, NULL);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
}
END_TEST

/* A convolution without groups, groups with more output than input channels, a single channel, channels first, three
 * dimensions, gaps between the operand's elements, and s32 are refused. */
START_TEST(refused) {
  static const emit_case rows[] = {
      {"f32[1,6,6,16]", "f32[16,16,3,3]", PLAIN "1", "f32[1,4,4,16]", NULL, NULL, 0},
      {"f32[1,6,6,16]", "f32[32,2,3,3]", PLAIN "8", "f32[1,4,4,32]", NULL, NULL, 0},
      {"f32[1,6,6,1]", "f32[1,1,3,3]", PLAIN "1", "f32[1,4,4,1]", NULL, NULL, 0},
      {"f32[1,4,6,6]", "f32[4,1,3,3]",
       "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=4, lhs_dilation=[1,1], layout=channels-first",
       "f32[1,4,4,4]", NULL, NULL, 0},
      {"f32[1,6,6,6,4]", "f32[4,1,3,3,3]",
       "strides=[1,1,1], low=[0,0,0], high=[0,0,0], lhs_dilation=[1,1,1], "
       "rhs_dilation=[1,1,1], layout=channels-last, groups=4",
       "f32[1,4,4,4,4]", NULL, NULL, 0},
      {"f32[1,6,6,4]", "f32[4,1,3,3]",
       "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=4, lhs_dilation=[2,1], layout=channels-last",
       "f32[1,9,4,4]", NULL, NULL, 0},
      {"f32[1,6,70,4]", "f32[4,1,3,65]", PLAIN "4", "f32[1,4,6,4]", NULL, NULL, 0},
      {"s32[1,6,6,4]", "s32[4,1,3,3]", PLAIN "4", "s32[1,4,4,4]", NULL, NULL, 0},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    emit_depthwise d;
    ck_assert_msg(!emit_depthwise_of(emit_case_parse(memory, &rows[k]), &d), "row %zu", k);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("depthwise");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, all_forms, 0, EMIT_MACHINES);
  tcase_add_test(c, other_machines);
  tcase_add_test(c, refused);
  return run_suite("depthwise", c);
}
