/* check_product.c - compares dots and convolutions in register blocks (emit/product/product.h) with the reference
 * evaluator: layouts of operands, sizes that blocks do not divide, epilogues, vector widths and processors, weights
 * packed at compile time and by the kernel. */
#include <check.h>
#include <stdlib.h>

#include "emit/product/product.h"
#include "tests/unit/emit/emit_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* --- cases --- */

#define DOT "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]"
#define TURNED "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]"
#define BATCHED "lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]"
#define BIAS EMIT_CASE_BIAS
#define PLACES "lhs_dilation=[1,1], layout=channels-last"

static const emit_case cases[] = {
    {"f32[1,1]", "f32[1,1]", DOT, "f32[1,1]", NULL, NULL, 1e-6},
    {"f32[13,20]", "f32[20,32]", DOT, "f32[13,32]", NULL, NULL, 1e-6},
    {"f32[29,37]", "f32[37,67]", DOT, "f32[29,67]", NULL, NULL, 1e-6},
    {"f32[29,37]", "f32[67,37]", TURNED, "f32[29,67]", NULL, NULL, 1e-6},
    {"f32[29,33]", "f32[64,33]", TURNED, "f32[29,64]", NULL, NULL, 1e-6},
    {"f32[37,29]", "f32[37,67]", "lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0]", "f32[29,67]", NULL,
     NULL, 1e-6},
    {"f32[37,29]", "f32[67,37]", "lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[1]", "f32[29,67]", NULL,
     NULL, 1e-6},
    {"f32[1,300]", "f32[300,130]", DOT, "f32[1,130]", NULL, NULL, 2e-6},
    /* a row whose weights are prefetched, since they are larger than a quarter of the cache */
    {"f32[1,1100]", "f32[1100,259]", DOT, "f32[1,259]", BIAS("f32[1,259]", 1), "f32[259]", 4e-6},
    {"f32[40,21]", "f32[21,1]", DOT, "f32[40,1]", NULL, NULL, 1e-6},
    {"f32[3,200]", "f32[200,259]", DOT, "f32[3,259]", BIAS("f32[3,259]", 1), "f32[259]", 2e-6},
    {"f32[17,24]", "f32[24,50]", DOT, "f32[17,50]", BIAS("f32[17,50]", 0), "f32[17]", 1e-6},
    {"f32[17,24]", "f32[24,50]", DOT, "f32[17,50]", "%9 = add(%3, %2) : f32[17,50]\n", "f32[17,50]", 1e-6},
    {"f32[17,24]", "f32[24,53]", DOT, "f32[17,53]",
     "%4 = tanh(%3) : f32[17,53]\n%5 = broadcast(%2) {dimensions=[1]} : f32[17,53]\n%6 = multiply(%4, %5) : "
     "f32[17,53]\n"
     "%7 = logistic(%6) : f32[17,53]\n%9 = add(%7, %3) : f32[17,53]\n",
     "f32[53]", 1e-5},
    {"f32[17,24]", "f32[24,48]", DOT, "f32[17,48]",
     "%4 = reshape(%3) : f32[816]\n%5 = reshape(%4) : f32[17,48]\n%9 = abs(%5) : f32[17,48]\n", "f32[1]", 1e-6},
    {"f32[5,18,12]", "f32[5,12,34]", BATCHED, "f32[5,18,34]", NULL, NULL, 1e-6},
    {"f32[5,18,12]", "f32[5,34,12]", "lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]", "f32[5,18,34]",
     BIAS("f32[5,18,34]", 2), "f32[34]", 1e-6},
    {"f32[2,9,3,16]", "f32[2,11,3,16]", "lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]",
     "f32[2,3,9,11]", NULL, NULL, 1e-6},
    {"f32[2,3,9,11]", "f32[2,11,3,16]", "lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]",
     "f32[2,3,9,16]", NULL, NULL, 1e-6},
    {"f32[6,3,9,5]", "f32[3,5,40]", "lhs_batch=[], rhs_batch=[], lhs_contract=[1,3], rhs_contract=[0,1]", "f32[6,9,40]",
     NULL, NULL, 1e-6},
    {"f32[4,7,3]", "f32[3,18]", "lhs_batch=[], rhs_batch=[], lhs_contract=[2], rhs_contract=[0]", "f32[4,7,18]",
     BIAS("f32[4,7,18]", 2), "f32[18]", 1e-6},
    {"f64[9,14]", "f64[14,21]", DOT, "f64[9,21]", BIAS("f64[9,21]", 1), "f64[21]", 1e-14},
    {"f16[9,14]", "f16[14,21]", DOT, "f16[9,21]", BIAS("f16[9,21]", 1), "f16[21]", 2e-3},
    {"bf16[19,30]", "bf16[40,30]", TURNED, "bf16[19,40]", NULL, NULL, 1e-2},
    {"bf16[1,64]", "bf16[64,48]", DOT, "bf16[1,48]", NULL, NULL, 1e-2},
    /* convolutions */
    {"f32[2,7,6,19]", "f32[33,19,1,1]", "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[2,7,6,33]", BIAS("f32[2,7,6,33]", 3), "f32[33]", 1e-6},
    {"f32[1,9,8,16]", "f32[24,16,1,1]", "strides=[2,2], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[1,5,4,24]", NULL, NULL, 1e-6},
    {"f32[1,20,21,3]", "f32[16,3,3,3]", "strides=[2,2], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[1,10,11,16]", BIAS("f32[1,10,11,16]", 3), "f32[16]", 1e-6},
    {"f32[2,7,7,10]", "f32[20,10,3,3]", "strides=[1,1], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[2,7,7,20]", NULL, NULL, 1e-6},
    {"f32[1,12,13,8]", "f32[40,8,3,2]", "strides=[1,2], low=[2,0], high=[1,1], rhs_dilation=[2,3], groups=1, " PLACES,
     "f32[1,11,6,40]", NULL, NULL, 1e-6},
    {"f32[1,10,9,12]", "f32[32,3,3,3]", "strides=[1,1], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=4, " PLACES,
     "f32[1,10,9,32]", BIAS("f32[1,10,9,32]", 3), "f32[32]", 1e-6},
    {"f32[1,6,5,4]", "f32[12,1,2,2]", "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=4, " PLACES,
     "f32[1,5,4,12]", NULL, NULL, 1e-6},
    {"f32[2,50,9]", "f32[17,9,5]",
     "strides=[3], low=[2], high=[0], rhs_dilation=[1], groups=1, lhs_dilation=[1], layout=channels-last",
     "f32[2,16,17]", NULL, NULL, 1e-6},
    /* negative padding at the end crops, so that the result has fewer elements than there is padding at the
     * beginning */
    {"f32[1,3,1,16]", "f32[24,16,1,1]", "strides=[1,1], low=[0,2], high=[0,-2], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[1,3,1,24]", NULL, NULL, 1e-6},
    {"f32[1,5,6,7,4]", "f32[18,4,2,3,3]",
     "strides=[1,2,1], low=[1,1,0], high=[0,1,1], rhs_dilation=[1,1,2], groups=1, lhs_dilation=[1,1,1], "
     "layout=channels-last",
     "f32[1,5,3,4,18]", NULL, NULL, 1e-6},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* --- one product --- */

static void pack(const void *config, const void *weights, void *packed) { emit_product_pack(config, weights, packed); }

static void check_case(const emit_case *c, const emit_machine *m, emit_product_options options) {
  hlo_instr *i = emit_case_parse(memory, c);
  emit_target t = emit_machine_target(memory, m);
  emit_product p;
  ck_assert_msg(emit_product_of(i, &p), "no product: %s x %s {%s}", c->x, c->w, c->attributes);
  emit_product_choose(i->parent->module->dims, &p, &t, &options);
  emit_way way = {.write = emit_product_write,
                  .config = &p,
                  .phases = emit_product_phases(&p),
                  .scratch_bytes = (uint64_t)emit_product_scratch(i->parent->module->dims, &p),
                  .pack = pack};
  way.name = arena_printf(memory, "%s, %d lanes, %dx%d%s%s", m->cpu, t.lanes, (int)p.tile_rows, (int)p.tile_vectors,
                          options.constant_weights ? ", packed" : "", options.ladder ? ", ladder" : "");
  way.packed_bytes =
      options.constant_weights ? (uint64_t)emit_product_packed(NULL, &p) * dtype_bytes((dtype)p.type) : 0;
  emit_case_check(memory, c, i, &t, &way);
}

static void reset(void) {
  arena_destroy(memory);
  memory = arena_create(NULL);
}

START_TEST(all_forms) {
  for (size_t k = 0; k < N_CASES; k++) {
    for (int form = 0; form < 4; form++) {
      emit_product_options options = {
          .threads = 2, .cache_bytes = 1 << 20, .constant_weights = form & 1, .from_memory = true, .ladder = form >> 1};
      check_case(&cases[k], &emit_machines[_i], options);
      reset();
    }
  }
}
END_TEST

/* Blocks of all sizes, and a grid of many steps. */
START_TEST(all_blocks) {
  static const emit_case c = {"f32[29,11]", "f32[11,83]", DOT, "f32[29,83]", BIAS("f32[29,83]", 1), "f32[83]", 1e-6};
  for (int rows = 1; rows <= 14; rows++) {
    emit_product_options options = {.rows = rows,
                                    .vectors = rows < 5   ? 4
                                               : rows < 8 ? 3
                                                          : 2,
                                    .threads = (uint32_t)rows % 3 + 1,
                                    .constant_weights = rows % 2};
    for (int ladder = 0; ladder < 2; ladder++) {
      options.ladder = ladder;
      options.cache_bytes = ladder ? 1 << 20 : rows * 400; /* a ladder is for products that fit the cache */
      check_case(&c, &emit_machines[_i], options);
      reset();
    }
  }
}
END_TEST

/* Vectors narrower than the target's. */
START_TEST(narrow_vectors) {
  static const emit_case c = {"f32[29,11]", "f32[11,40]", DOT, "f32[29,40]", BIAS("f32[29,40]", 1), "f32[40]", 1e-6};
  for (int lanes = 1; lanes <= emit_machine_target(memory, &emit_machines[_i]).lanes; lanes *= 2) {
    check_case(&c, &emit_machines[_i],
               (emit_product_options){.lanes = lanes, .threads = 2, .cache_bytes = 1 << 20, .constant_weights = true});
  }
}
END_TEST

/* An operand with two dimensions of columns, an epilogue that transposes, s32, and channels first are
 * refused. */
START_TEST(refused) {
  static const emit_case rows[] = {
      {"f32[4,6]", "f32[3,6,5]", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]", "f32[4,3,5]", NULL,
       NULL, 0},
      {"f32[4,6]", "f32[6,4]", DOT, "f32[4,4]",
       "%4 = transpose(%3) {permutation=[1,0]} : f32[4,4]\n%9 = abs(%4) : f32[4,4]\n", "f32[1]", 0},
      {"s32[4,6]", "s32[6,4]", DOT, "s32[4,4]", NULL, NULL, 0},
      {"f32[1,4,6,6]", "f32[8,4,3,3]",
       "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=1, lhs_dilation=[1,1], layout=channels-first",
       "f32[1,8,4,4]", NULL, NULL, 0},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    emit_product p;
    ck_assert_msg(!emit_product_of(emit_case_parse(memory, &rows[k]), &p), "row %zu", k);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("product");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, all_forms, 0, EMIT_MACHINES);
  tcase_add_loop_test(c, all_blocks, 0, EMIT_MACHINES);
  tcase_add_loop_test(c, narrow_vectors, 0, EMIT_MACHINES);
  tcase_add_test(c, refused);
  return run_suite("product", c);
}
