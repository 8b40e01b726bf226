/* check_contraction.c - the descriptions of library calls in programs: what is written is read again, and a damaged
 * description whose arrays have more elements than can be addressed is refused before a size is computed from it. */
#include <check.h>
#include <stddef.h>
#include <string.h>

#include "backend_cpu/runtime/contraction.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

static status read_again(const cpu_contraction *c, cpu_contraction *out) {
  rt_writer w = {.arena = a};
  cpu_contraction_write(&w, c);
  rt_reader r = rt_reader_make(rt_written(&w));
  TRY(cpu_contraction_read(&r, a, "the call", out));
  return rt_reader_end(&r, "the call");
}

#define COMMON(kind)                                                                                                \
  .op = (kind), .parts = 1, .lhs_type = DTYPE_F32, .weights_type = DTYPE_F32, .result_type = DTYPE_F32, .batch = 2, \
  .reduced_precision = DTYPE_INVALID

static const cpu_geometry product = {COMMON(CPU_MATMUL), .m = 3,     .k = 4,     .n = 5,    .lhs_batch_stride = 12,
                                     .lhs_m = 4,         .lhs_k = 1, .rhs_k = 5, .rhs_n = 1};
static const cpu_geometry convolution = {
    COMMON(CPU_CONVOLUTION), .spatial = 2,      .channels_last = 1, .in_channels = 4,
    .out_channels = 6,       .groups = 2,       .in = {9, 9},       .out = {9, 9},
    .kernel = {3, 3},        .strides = {1, 1}, .low = {1, 1},      .high = {1, 1},
    .dilation = {1, 1}};

START_TEST(read_as_written) {
  const cpu_contraction c = {_i ? product : convolution, 1, {{CPU_POST_OP_CLIP, 0, -1, 6}}};
  cpu_contraction again;
  ASSERT_OK(read_again(&c, &again));
  ck_assert_mem_eq(&again.g, &c.g, sizeof c.g);
  ck_assert_uint_eq(again.n_post_ops, 1);
  ck_assert(again.post_ops[0].kind == CPU_POST_OP_CLIP && again.post_ops[0].beta == 6);
}
END_TEST

#define FIELD(name) offsetof(cpu_geometry, name)
static const int64_t large = (int64_t)1 << 31; /* the largest extent; large x large f32 are 2^64 bytes */

/* Members of a geometry, each of which is possible by itself, and their values. */
static const struct {
  const cpu_geometry *of;
  struct {
    size_t field;
    int64_t value;
  } set[3];
  int n;
} damages[] = {
    {&product, {{FIELD(m), large}, {FIELD(n), large}}, 2},                                 /* the result */
    {&product, {{FIELD(batch), large}, {FIELD(m), large}, {FIELD(n), large}}, 3},          /* 2^93 elements */
    {&product, {{FIELD(lhs_m), INT64_MAX}}, 1},                                            /* lhs */
    {&product, {{FIELD(lhs_m), INT64_MAX / 2}, {FIELD(lhs_k), INT64_MAX / 3}}, 2},         /* each product fits */
    {&product, {{FIELD(lhs_batch_stride), INT64_MAX}}, 1},                                 /* lhs */
    {&product, {{FIELD(k), large}, {FIELD(rhs_k), large}}, 2},                             /* weights */
    {&product, {{FIELD(rhs_n), INT64_MAX / 4}}, 1},                                        /* weights */
    {&product, {{FIELD(rhs_batch_stride), INT64_MAX}}, 1},                                 /* weights */
    {&convolution, {{FIELD(in), large}, {FIELD(in) + sizeof(int64_t), large}}, 2},         /* lhs */
    {&convolution, {{FIELD(batch), large}, {FIELD(in), large}}, 2},                        /* lhs */
    {&convolution, {{FIELD(out), large}, {FIELD(out) + sizeof(int64_t), large}}, 2},       /* the result */
    {&convolution, {{FIELD(kernel), large}, {FIELD(kernel) + sizeof(int64_t), large}}, 2}, /* weights */
    {&convolution, {{FIELD(in_channels), large}, {FIELD(out_channels), large}}, 2},        /* weights */
};

START_TEST(damaged) {
  cpu_contraction c = {.g = *damages[_i].of}, again;
  for (int k = 0; k < damages[_i].n; k++) {
    memcpy((char *)&c.g + damages[_i].set[k].field, &damages[_i].set[k].value, sizeof(int64_t));
  }
  status s = read_again(&c, &again);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
  ck_assert_str_eq(status_message(s), "the call: its description is damaged");
  status_free(s);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("contraction");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, read_as_written, 0, 2);
  tcase_add_loop_test(c, damaged, 0, sizeof damages / sizeof *damages);
  return run_suite("contraction", c);
}
