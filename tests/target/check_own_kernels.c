/* check_own_kernels.c - sorts, non-maximum suppression and the Mersenne twister as kernels (own_kernels), on all
 * element types, with equal keys, -0 and NaN: they give the same bytes as the reference evaluator.  check_sizes.c has
 * them with sizes that are symbols, check_operations.c for processors with other vectors. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "tests/target/two_targets.h"
#include "tests/unit/emit/kernel_test.h"

static const variant own[] = {
    {.name = "3 threads", .cpu = "native", .threads = 3, .own_kernels = true},
    {.name = "1 lane", .cpu = "x86-64", .lanes = 1, .threads = 1, .own_kernels = true},
};

static uint64_t state;

static uint64_t random_bits(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 29;
}

/* --- inputs --- */

/* Writes a special value (a quarter of the elements), one of a few values, so that many are equal (half of them), or
 * any bits (a quarter). */
static void fill_float(dtype t, void *at) {
  static const double special[] = {0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, -(double)NAN, 1e-42};
  uint64_t r = random_bits();
  if (r % 4 == 0) {
    dtype_store_f64(t, at, special[r / 4 % (sizeof special / sizeof *special)], false, DTYPE_ROUND_NEAREST);
  } else if (r % 4 < 3) {
    dtype_store_f64(t, at, (double)(int64_t)(r / 4 % 64) - 32, false, DTYPE_ROUND_NEAREST);
  } else if (t == DTYPE_F32 || dtype_bytes(t) <= 2) {
    dtype_store_f64(t, at, ldexp((double)(int64_t)(r % 2048) - 1024, (int)(r >> 12) % 8), false, DTYPE_ROUND_NEAREST);
  } else {
    dtype_store_f64(t, at, ldexp((double)(int64_t)r - 0x1p34, (int)(r % 90) - 60), false, DTYPE_ROUND_NEAREST);
  }
}

static void fill(dtype t, void *at) {
  uint64_t r = random_bits();
  if (dtype_is_float(t)) {
    fill_float(t, at);
  } else if (t == DTYPE_PRED) {
    *(uint8_t *)at = r % 2;
  } else {
    int bits = dtype_get_info(t)->bits;
    uint64_t any = r % 2 ? r % 7 : (r << 32 ^ random_bits()) & (bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1);
    int64_t v = dtype_is_signed(t) ? (int64_t)(any << (64 - bits)) >> (64 - bits) : (int64_t)any;
    dtype_store_i64(t, at, v);
  }
}

static literal input(arena *a, const shape *s) {
  void *data;
  literal l = literal_new(a, *s, &data);
  dtype t = (dtype)s->type, part = t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t;
  size_t bytes = (size_t)shape_bytes(s);
  for (size_t at = 0; at < bytes; at += dtype_bytes(part)) {
    fill(part, (char *)data + at);
  }
  return l;
}

/* --- one module --- */

typedef struct trial {
  const char *text;
  const variant *v;
} trial;

static status try_it(void *data) {
  const trial *t = data;
  arena *a = arena_create(NULL);
  hlo_module *m;
  status s = hlo_parse(a, t->text, strlen(t->text), NULL, &m);
  uint32_t n = s ? 0 : m->entry->n_params, results = s ? 0 : m->entry->n_roots;
  literal *in = ARENA_NEW_N(a, literal, n + 1), *want = ARENA_NEW_N(a, literal, results + 1),
          *got = ARENA_NEW_N(a, literal, results + 1);
  for (uint32_t k = 0; k < n; k++) {
    in[k] = input(a, hlo_shape(hlo_result(m->entry->params[k], 0)));
  }
  s = s ? s : ref_eval_computation(m->entry, in, a, want);
  s = s ? s : run_on_cpu(a, m, t->v, in, got);
  for (uint32_t k = 0; k < results && !s; k++) {
    bool same = memcmp(want[k].data, got[k].data, (size_t)shape_bytes(&want[k].shape)) == 0;
    s = same ? NULL : status_error(STATUS_INTERNAL, "result %u has other bytes", k);
  }
  arena_destroy(a);
  return s;
}

static void check_own(const char *params, const char *body, const char *root) {
  char text[3000];
  int n = snprintf(text, sizeof text, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%s\nreturn %s\n}\n}\n", params,
                   body, root);
  ck_assert_int_lt(n, (int)sizeof text);
  for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
    state = 1;
    status s = guard_run(try_it, &(trial){text, &own[k]});
    ck_assert_msg(!s, "%s: %s\n%s", own[k].name, status_message(s), text);
  }
}

/* --- sorts --- */

/* Checks sorts along the middle dimension in both directions: of the keys alone, and of the keys with another array and
 * the positions. */
static void check_sort(const char *key, const char *other, const char *dims) {
  char params[300], body[1500];
  snprintf(params, sizeof params, "%%0: %s[%s] \"x\", %%1: %s[%s] \"y\"", key, dims, other, dims);
  snprintf(body, sizeof body,
           "%%2 = iota() {dimension=1} : s64[%s]\n%%3 = sort(%%0) {dimension=1, descending=true} : %s[%s]\n"
           "%%4, %%5, %%6 = sort(%%0, %%1, %%2) {dimension=1, descending=false} : %s[%s], %s[%s], s64[%s]\n"
           "%%7, %%8, %%9 = sort(%%0, %%0, %%1) {dimension=1, descending=true} : %s[%s], %s[%s], %s[%s]",
           dims, key, dims, key, dims, other, dims, dims, key, dims, key, dims, other, dims);
  check_own(params, body, "%3 \"a\", %4 \"b\", %5 \"c\", %6 \"d\", %7 \"e\", %8 \"f\", %9 \"g\"");
}

START_TEST(sorts_of_all_types) {
  static const char *const dims[] = {"3,90,2", "5,33,1"};
  for (int t = DTYPE_INVALID + 1; t < DTYPE_COUNT; t++) {
    if (!dtype_is_complex((dtype)t) && t != DTYPE_STR) {
      for (size_t k = 0; k < sizeof dims / sizeof *dims; k++) {
        check_sort(dtype_name((dtype)t), k ? "c128" : "c64", dims[k]);
        check_sort(k ? "f32" : "s64", dtype_name((dtype)t), dims[k]);
      }
    }
  }
}
END_TEST

START_TEST(sorts_of_all_lengths) {
  static const char *const dims[] = {"2,0,3",   "0,5,3",  "2,1,3",    "1,2,1",    "2,31,1",
                                     "2,32,1",  "1,33,3", "1,256,1",  "7,257,1",  "300,3,2",
                                     "1,513,1", "3,1000", "2,5000,2", "1,100000", "3,100000,1"};
  for (size_t k = 0; k < sizeof dims / sizeof *dims; k++) {
    check_sort("f32", "u8", dims[k]);
    check_sort("s64", "f16", dims[k]);
  }
}
END_TEST

/* Sorts of which only the first `wanted` elements of long lines are read, for types with narrow and with wide items. */
START_TEST(first_few) {
  static const char *const types[] = {"f32", "f64", "u8"};
  static const int wanted[] = {0, 1, 7, 256, 257, 600, 4999, 5000};
  for (size_t k = 0; k < sizeof wanted / sizeof *wanted * 3; k++) {
    const char *type = types[k % 3];
    int n = wanted[k / 3];
    char params[100], body[800];
    snprintf(params, sizeof params, "%%0: %s[5000,3] \"x\"", type);
    snprintf(body, sizeof body,
             "%%1 = iota() {dimension=0} : s64[5000,3]\n"
             "%%2, %%3 = sort(%%0, %%1) {dimension=0, descending=%s} : %s[5000,3], s64[5000,3]\n"
             "%%4 = slice(%%2) {starts=[0,0], limits=[%d,3], strides=[1,1]} : %s[%d,3]\n"
             "%%5 = slice(%%3) {starts=[0,0], limits=[%d,3], strides=[1,1]} : s64[%d,3]",
             k % 2 ? "true" : "false", type, n, type, n, n, n);
    check_own(params, body, "%4 \"a\", %5 \"b\"");
  }
}
END_TEST

/* The first few of 20000 nearly sorted keys, in ascending and in descending order.  The kernel reads the items one
 * after the other and keeps the best ones so far: in one order nearly every item that it reads takes the place of a
 * kept one, in the other order nearly none does. */
START_TEST(sorted_keys) {
  check_own("%0: s32[] \"x\"",
            "%1 = iota() {dimension=0} : s32[20000]\n%2 = broadcast(%0) {dimensions=[]} : s32[20000]\n"
            "%3 = xor(%1, %2) : s32[20000]\n%4 = iota() {dimension=0} : s64[20000]\n"
            "%5, %6 = sort(%3, %4) {dimension=0, descending=false} : s32[20000], s64[20000]\n"
            "%7, %8 = sort(%3, %4) {dimension=0, descending=true} : s32[20000], s64[20000]\n"
            "%9 = slice(%6) {starts=[0], limits=[300], strides=[1]} : s64[300]\n"
            "%10 = slice(%8) {starts=[0], limits=[300], strides=[1]} : s64[300]",
            "%9 \"a\", %10 \"b\"");
}
END_TEST

/* Short constants become part of the code. */
START_TEST(constants) {
  check_own("%0: s64[6] \"x\"",
            "%1 = constant() {value=f32[6] {2, -0, nan, 0, -1, 2}} : f32[6]\n"
            "%2, %3 = sort(%1, %0) {dimension=0, descending=true} : f32[6], s64[6]\n"
            "%4 = constant() {value=u8[6] {7, 7, 0, 255, 7, 7}} : u8[6]\n"
            "%5, %6 = sort(%4, %1) {dimension=0, descending=true} : u8[6], f32[6]",
            "%2 \"a\", %3 \"b\", %5 \"c\", %6 \"d\"");
}
END_TEST

/* --- non-maximum suppression --- */

START_TEST(suppression) {
  check_own("%0: f32[2,700,4] \"corners\", %1: f32[2,3,700] \"scores\", %2: s64[] \"any\"",
            "%3 = constant() {value=f32[] 0.2} : f32[]\n%4 = constant() {value=s64[] 150} : s64[]\n"
            "%5, %6 = non-max-suppression(%0, %1, %4, %3) {limit=200} : s64[1200,3], s64[]\n"
            "%7, %8 = non-max-suppression(%0, %1, %4, %3, %3) {limit=100} : s64[600,3], s64[]\n"
            "%9, %10 = non-max-suppression(%0, %1, %2, %3, %3) {limit=4} : s64[24,3], s64[]\n"
            "%11 = negate(%4) : s64[]\n"
            "%12, %13 = non-max-suppression(%0, %1, %11, %3) {limit=4} : s64[24,3], s64[]\n"
            "%14, %15 = non-max-suppression(%0, %1, %4, %3) {limit=0} : s64[0,3], s64[]",
            "%5 \"a\", %6 \"b\", %7 \"c\", %8 \"d\", %9 \"e\", %10 \"f\", %12 \"g\", %13 \"h\", %15 \"i\"");
}
END_TEST

/* 0 and -0 are the best scores, and equal. */
START_TEST(suppression_by_zeros) {
  check_own("%0: f32[1,700,4] \"corners\", %1: f32[1,2,700] \"scores\"",
            "%2 = constant() {value=f32[] 0} : f32[]\n%3 = broadcast(%2) {dimensions=[]} : f32[1,2,700]\n"
            "%4 = compare(%1, %3) {comparison=gt} : pred[1,2,700]\n%5 = negate(%1) : f32[1,2,700]\n"
            "%6 = select(%4, %5, %1) : f32[1,2,700]\n%7 = constant() {value=s64[] 150} : s64[]\n"
            "%8 = constant() {value=f32[] 0.2} : f32[]\n"
            "%9, %10 = non-max-suppression(%0, %6, %7, %8) {limit=200} : s64[400,3], s64[]",
            "%9 \"a\", %10 \"b\"");
}
END_TEST

START_TEST(suppression_of_few_boxes) {
  static const int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 0}, {0, 2, 5}, {2, 0, 5}, {1, 2, 2}, {1, 9, 17}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    int64_t batches = sizes[k][0], classes = sizes[k][1], boxes = sizes[k][2], limit = boxes < 16 ? boxes : 16;
    char params[300], body[600];
    snprintf(params, sizeof params,
             "%%0: f32[%" PRId64 ",%" PRId64 ",4] \"corners\", %%1: f32[%" PRId64 ",%" PRId64 ",%" PRId64
             "] \"scores\"",
             batches, boxes, batches, classes, boxes);
    snprintf(body, sizeof body,
             "%%2 = constant() {value=f32[] 0.5} : f32[]\n%%3 = constant() {value=s64[] 20} : s64[]\n"
             "%%4, %%5 = non-max-suppression(%%0, %%1, %%3, %%2, %%2) {limit=16} : s64[%" PRId64 ",3], s64[]",
             batches * classes * limit);
    check_own(params, body, "%4 \"a\", %5 \"b\"");
  }
}
END_TEST

/* --- random numbers --- */

START_TEST(twister) {
  static const int n[] = {1, 2, 311, 312, 313, 623, 624, 625, 100000};
  for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
    char body[400];
    snprintf(body, sizeof body,
             "%%1 = rng-bit-generator(%%0) {algorithm=mt19937} : u32[%d]\n"
             "%%2 = rng-bit-generator(%%0) {algorithm=mt19937} : u64[1,%d]",
             n[k], n[k]);
    check_own("%0: u64[1] \"s\"", body, "%1 \"a\", %2 \"b\"");
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("own-kernels");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, sorts_of_all_types);
  tcase_add_test(t, sorts_of_all_lengths);
  tcase_add_test(t, first_few);
  tcase_add_test(t, sorted_keys);
  tcase_add_test(t, constants);
  tcase_add_test(t, suppression);
  tcase_add_test(t, suppression_by_zeros);
  tcase_add_test(t, suppression_of_few_boxes);
  tcase_add_test(t, twister);
  return run_suite("own-kernels", t);
}
