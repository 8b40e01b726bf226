/* check_ptx.c - the interpreter of PTX computes what the PTX ISA says, and tells what a kernel must not do. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/ptx/ptx.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

#define HEAD                                                                            \
  ".version 7.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 s[];\n" \
  ".visible .entry k(.param .align 8 .b8 k_param_0[16], .param .u32 k_param_1)\n{\n"    \
  ".reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<9>;\n"        \
  ".reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n"                                               \
  "ld.param.u64 %rd1, [k_param_0];\nld.param.u64 %rd2, [k_param_0+8];\n"                \
  "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 8;\nadd.s64 %rd4, %rd2, %rd3;\n"

enum { MOST = 64 };
static uint64_t in[MOST], out[MOST];

/* ptx_launch.find_array: a kernel may access only the arrays `in` and `out`. */
static bool find_array(void *data, uint64_t address, uint64_t *begin, uint64_t *end) {
  (void)data;
  uint64_t first = (uint64_t)(uintptr_t)in, second = (uint64_t)(uintptr_t)out;
  *begin = address >= second && address < second + sizeof out ? second : first;
  *end = *begin + sizeof in;
  return address >= *begin && address < *end;
}

/* Runs a kernel whose first parameter is the addresses of `in` and `out`, and whose second one is 7.  Register %rd4 is
 * the address of the thread's element of `out`. */
static status run(const char *body, uint32_t threads) {
  ptx_module *m;
  TRY(ptx_parse(a, arena_printf(a, "%s%s\nret;\n}\n", HEAD, body), &m));
  const ptx_function *f = ptx_find_entry(m, "k");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(ptx_parameter_bytes(f, 0), 16);
  ck_assert_uint_eq(ptx_parameter_bytes(f, 1), 4);
  void *addresses[] = {in, out};
  uint32_t seven = 7;
  void *parameters[] = {addresses, &seven};
  memset(out, 0, sizeof out);
  return ptx_run(
      f, &(ptx_launch){
             .blocks = 1, .threads = threads, .shared_bytes = 256, .parameters = parameters, .find_array = find_array});
}

static uint64_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

/* --- instructions --- */

START_TEST(scalars) {
  static const struct {
    const char *body;
    uint64_t want;
  } rows[] = {
      {"mul.hi.u32 %r2, -1, -1;\ncvt.u64.u32 %rd5, %r2;", 0xfffffffe},
      {"mul.hi.s32 %r2, -1, 5;\ncvt.u64.u32 %rd5, %r2;", 0xffffffff},
      {"mul.wide.s32 %rd5, -3, 5;", (uint64_t)-15},
      {"shr.s32 %r2, -8, 1;\ncvt.s64.s32 %rd5, %r2;", (uint64_t)-4},
      {"shl.b32 %r2, 1, 40;\ncvt.u64.u32 %rd5, %r2;", 0}, /* amounts beyond the width count as the width */
      {"shf.r.wrap.b32 %r2, 0x89abcdef, 0x01234567, 36;\ncvt.u64.u32 %rd5, %r2;", 0x789abcde},
      {"shf.l.clamp.b32 %r2, 0x89abcdef, 0x01234567, 4;\ncvt.u64.u32 %rd5, %r2;", 0x12345678},
      {"shf.l.clamp.b32 %r2, 0x89abcdef, 0x01234567, 40;\ncvt.u64.u32 %rd5, %r2;", 0x89abcdef},
      {"bfe.s32 %r2, 240, 4, 4;\ncvt.s64.s32 %rd5, %r2;", (uint64_t)-1},
      {"bfe.u32 %r2, 240, 4, 4;\ncvt.u64.u32 %rd5, %r2;", 15},
      {"bfi.b32 %r2, 5, -1, 8, 8;\ncvt.u64.u32 %rd5, %r2;", 0xffff05ff},
      {"prmt.b32 %r2, 0x33221180, 0x77665544, 0x8704;\ncvt.u64.u32 %rd5, %r2;", 0xff778044},
      {"div.s32 %r2, -7, 2;\ncvt.s64.s32 %rd5, %r2;", (uint64_t)-3},
      {"rem.s32 %r2, -7, 2;\ncvt.s64.s32 %rd5, %r2;", (uint64_t)-1},
      {"clz.b32 %r2, 1;\ncvt.u64.u32 %rd5, %r2;", 31},
      {"cvt.s8.s32 %r2, 200;\ncvt.s64.s32 %rd5, %r2;", (uint64_t)-56},
      {"mov.b32 %r2, {%rs1, %rs1};\nmov.b32 {%rs2, %rs3}, 0x00050004;\ncvt.u64.u16 %rd5, %rs3;", 5},
      /* 2^24 + 1 lies between two f32; conversions to integers saturate, and NaN becomes 0 */
      {"cvt.rn.f32.s32 %f1, 16777217;\nmov.b32 %r2, %f1;\ncvt.u64.u32 %rd5, %r2;", 0x4b800000},
      {"cvt.rzi.s32.f32 %r2, 0f7F800000;\ncvt.s64.s32 %rd5, %r2;", INT32_MAX},
      {"cvt.rzi.s32.f32 %r2, 0f7FC00000;\ncvt.s64.s32 %rd5, %r2;", 0},
      {"cvt.rzi.u32.f32 %r2, 0fBF800000;\ncvt.u64.u32 %rd5, %r2;", 0},
      {"cvt.rni.f32.f32 %f1, 0f40200000;\ncvt.rzi.s32.f32 %r2, %f1;\ncvt.s64.s32 %rd5, %r2;", 2}, /* 2.5 */
      {"cvt.rmi.f32.f32 %f1, 0fC0200000;\ncvt.rzi.s32.f32 %r2, %f1;\ncvt.s64.s32 %rd5, %r2;", (uint64_t)-3},
      {"cvt.rn.f16.f32 %rs1, 0f477FF000;\ncvt.u64.u16 %rd5, %rs1;", 0x7c00},  /* 65520 is halfway to 2^16 */
      {"cvt.rn.bf16.f32 %rs1, 0f3F808000;\ncvt.u64.u16 %rd5, %rs1;", 0x3f80}, /* a tie goes to the even one */
      /* 2^24 + 2^16 + 1 is above the middle of two bf16, but not if it is rounded to f32 first */
      {"cvt.rn.bf16.s32 %rs1, 16842753;\ncvt.u64.u16 %rd5, %rs1;", 0x4b81},
      {"cvt.rn.bf16.s32 %rs1, -16842753;\ncvt.u64.u16 %rd5, %rs1;", 0xcb81},
      {"cvt.rn.bf16.s32 %rs1, 16973823;\ncvt.u64.u16 %rd5, %rs1;", 0x4b81}, /* 2^24 + 2^17 + 2^16 - 1: below a middle */
      {"cvt.rna.tf32.f32 %r2, 0f3F801000;\ncvt.u64.u32 %rd5, %r2;", 0x3f802000}, /* a tie goes away from 0 */
      {"min.f32 %f1, 0f80000000, 0f00000000;\nmov.b32 %r2, %f1;\ncvt.u64.u32 %rd5, %r2;", 0x80000000},
      {"min.f32 %f1, 0f7FC00000, 0f40000000;\nmov.b32 %r2, %f1;\ncvt.u64.u32 %rd5, %r2;", 0x40000000},
      {"min.NaN.f32 %f1, 0f7FC00000, 0f40000000;\nmov.b32 %r2, %f1;\ncvt.u64.u32 %rd5, %r2;", 0x7fffffff},
      {"setp.ltu.f32 %p1, 0f7FC00000, 0f40000000;\nselp.b64 %rd5, 1, 2, %p1;", 1},
      {"setp.lt.f32 %p1, 0f7FC00000, 0f40000000;\nselp.b64 %rd5, 1, 2, %p1;", 2},
      {"setp.lo.u32 %p1, 1, -1;\nselp.b64 %rd5, 1, 2, %p1;", 1},
      {"setp.lt.s32 %p1, 1, -1;\nselp.b64 %rd5, 1, 2, %p1;", 2},
      {"add.cc.u32 %r2, -1, 1;\naddc.u32 %r3, 7, 0;\ncvt.u64.u32 %rd5, %r3;", 8},
      {"sub.cc.u64 %rd5, 0, 1;\nsubc.cc.u64 %rd5, 7, 0;\nsubc.u64 %rd5, %rd5, 0;", 6},
      {"ld.param.u32 %r2, [k_param_1];\ncvt.u64.u32 %rd5, %r2;", 7},
      /* (1 + 2^-12)^2 - 1 is 2^-11 + 2^-24; a product that is rounded to f32 before the subtraction loses 2^-24 */
      {"fma.rn.f32 %f1, 0f3F800800, 0f3F800800, 0fBF800000;\nmov.b32 %r2, %f1;\ncvt.u64.u32 %rd5, %r2;", 0x3a000400},
      {"mul.rn.f32 %f1, 0f3F800800, 0f3F800800;\nsub.rn.f32 %f1, %f1, 0f3F800000;\nmov.b32 %r2, %f1;\n"
       "cvt.u64.u32 %rd5, %r2;",
       0x3a000000},
      {"mov.u64 %rd5, 1;\nmov.pred %p1, -1;\n@!%p1 bra $L;\nmov.u64 %rd5, 3;\n$L:", 3},
  };
  ASSERT_OK(run(arena_printf(a, "%s\nst.global.u64 [%%rd4], %%rd5;", rows[_i].body), 1));
  ck_assert_msg(out[0] == rows[_i].want, "%s: %llx, not %llx", rows[_i].body, (unsigned long long)out[0],
                (unsigned long long)rows[_i].want);
}
END_TEST
enum { SCALARS = 42 };

/* --- threads --- */

START_TEST(shuffles) {
  static const struct {
    const char *name;
    uint64_t want[4]; /* of the lanes 0, 1, 30, 31 */
  } rows[] = {{"bfly.b32 %r2, %r1, 1, 31, -1", {1, 0, 31, 30}},
              {"up.b32 %r2, %r1, 1, 0, -1", {0, 0, 29, 30}},
              {"down.b32 %r2, %r1, 1, 31, -1", {1, 2, 31, 31}},
              {"idx.b32 %r2, %r1, 5, 31, -1", {5, 5, 5, 5}}};
  ASSERT_OK(run(
      arena_printf(a, "shfl.sync.%s;\ncvt.u64.u32 %%rd5, %%r2;\nst.global.u64 [%%rd4], %%rd5;", rows[_i].name), 32));
  static const int lanes[] = {0, 1, 30, 31};
  for (int k = 0; k < 4; k++) {
    ck_assert_uint_eq(out[lanes[k]], rows[_i].want[k]);
  }
}
END_TEST

/* Each thread writes to shared memory and reads what its neighbour wrote. */
static const char exchange[] =
    "mul.wide.u32 %%rd5, %%r1, 4;\nmov.u64 %%rd6, s;\nadd.s64 %%rd6, %%rd6, %%rd5;\n"
    "st.shared.u32 [%%rd6], %%r1;\n%s\nxor.b64 %%rd7, %%rd5, 4;\nmov.u64 %%rd6, s;\n"
    "add.s64 %%rd6, %%rd6, %%rd7;\nld.shared.u32 %%r2, [%%rd6];\ncvt.u64.u32 %%rd5, %%r2;\n"
    "st.global.u64 [%%rd4], %%rd5;";

START_TEST(barrier) {
  ASSERT_OK(run(arena_printf(a, exchange, "bar.sync 0;"), 64));
  for (uint64_t k = 0; k < 64; k++) {
    ck_assert_uint_eq(out[k], k ^ 1);
  }
}
END_TEST

START_TEST(no_barrier) {
  ASSERT_OK(run(arena_printf(a, exchange, ""), 64));
  uint64_t wrong = 0;
  for (uint64_t k = 0; k < 64; k++) {
    wrong += out[k] != (k ^ 1);
  }
  ck_assert_uint_gt(wrong, 0);
}
END_TEST

/* The bytes of an asynchronous copy are written when its group is waited for. */
START_TEST(async) {
  for (int k = 0; k < MOST; k++) {
    in[k] = 1000 + (uint64_t)k;
  }
  const char *body =
      "mov.u64 %%rd6, s;\nadd.s64 %%rd6, %%rd6, %%rd3;\nadd.s64 %%rd7, %%rd1, %%rd3;\n"
      "cp.async.ca.shared.global [%%rd6], [%%rd7], 8;\ncp.async.commit_group;\n"
      "cp.async.ca.shared.global [%%rd6], [%%rd7], 8, 4;\ncp.async.commit_group;\n"
      "cp.async.wait_group %d;\nld.shared.u64 %%rd5, [%%rd6];\nst.global.u64 [%%rd4], %%rd5;";
  ASSERT_OK(run(arena_printf(a, body, 1), 4));
  ck_assert_uint_eq(out[3], 1003);
  in[3] = 0x500000006;
  ASSERT_OK(run(arena_printf(a, body, 0), 4)); /* the second copy has only four bytes, the others become 0 */
  ck_assert_uint_eq(out[3], 6);
  ASSERT_OK(run(arena_printf(a, body, 2), 4));
  ck_assert_uint_ne(out[3], 6);
  ck_assert_uint_ne(out[3], in[3]);
}
END_TEST

/* --- products of matrices --- */

/* A[r][k] = r + 16 * k, B[k][n] = 1 if k == n + 1: so D[r][n] is A[r][n + 1].  The matrices are f16.  Each thread
 * computes its elements from their rows and columns, which the ISA tells. */
START_TEST(mma) {
  static const char text[] =
      "shr.u32 %r2, %r1, 2;\nand.b32 %r3, %r1, 3;\n" /* the group, and the thread in it */
      /* a0, a1: row = group, column = 2 * thread (+ 1) */
      "shl.b32 %r4, %r3, 5;\nadd.u32 %r4, %r4, %r2;\nadd.u32 %r5, %r4, 16;\n"
      "cvt.rn.f16.u32 %rs1, %r4;\ncvt.rn.f16.u32 %rs2, %r5;\nmov.b32 %r10, {%rs1, %rs2};\n"
      "add.u32 %r6, %r4, 8;\nadd.u32 %r7, %r5, 8;\n" /* a2, a3: the row is 8 more */
      "cvt.rn.f16.u32 %rs1, %r6;\ncvt.rn.f16.u32 %rs2, %r7;\nmov.b32 %r11, {%rs1, %rs2};\n"
      "add.u32 %r6, %r4, 128;\nadd.u32 %r7, %r5, 128;\n" /* a4, a5: the column is 8 more */
      "cvt.rn.f16.u32 %rs1, %r6;\ncvt.rn.f16.u32 %rs2, %r7;\nmov.b32 %r12, {%rs1, %rs2};\n"
      "add.u32 %r6, %r4, 136;\nadd.u32 %r7, %r5, 136;\n"
      "cvt.rn.f16.u32 %rs1, %r6;\ncvt.rn.f16.u32 %rs2, %r7;\nmov.b32 %r13, {%rs1, %rs2};\n"
      /* b0, b1: row = 2 * thread (+ 1), column = group; b2, b3: the row is 8 more */
      "add.u32 %r8, %r2, 1;\nshl.b32 %r9, %r3, 1;\nadd.u32 %r20, %r9, 1;\n"
      "setp.eq.s32 %p1, %r9, %r8;\nsetp.eq.s32 %p2, %r20, %r8;\nselp.b16 %rs1, 0x3C00, 0, %p1;\n"
      "selp.b16 %rs2, 0x3C00, 0, %p2;\nmov.b32 %r14, {%rs1, %rs2};\nadd.u32 %r9, %r9, 8;\nadd.u32 %r20, %r9, 1;\n"
      "setp.eq.s32 %p1, %r9, %r8;\nsetp.eq.s32 %p2, %r20, %r8;\nselp.b16 %rs1, 0x3C00, 0, %p1;\n"
      "selp.b16 %rs2, 0x3C00, 0, %p2;\nmov.b32 %r15, {%rs1, %rs2};\n"
      "mov.f32 %f1, 0f3F000000;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r11, %r12, %r13}, "
      "{%r14, %r15}, {%f1, %f1, %f1, %f1};\n"
      "mov.b32 %r2, %f2;\nmov.b32 %r3, %f5;\nmov.b64 %rd5, {%r2, %r3};\nst.global.u64 [%rd4], %rd5;";
  ASSERT_OK(run(text, 32));
  for (uint32_t lane = 0; lane < 32; lane++) { /* c0: row = group, column = 2 * thread; c3: 8 and 1 more */
    float r = (float)(lane / 4), n = (float)(lane % 4 * 2);
    ck_assert_uint_eq(out[lane] & UINT32_MAX, bits_of(r + 16 * (n + 1) + 0.5f));
    ck_assert_uint_eq(out[lane] >> 32, bits_of(r + 8 + 16 * (n + 2) + 0.5f));
  }
}
END_TEST

/* --- what a kernel must not do --- */

START_TEST(faults) {
  static const struct {
    const char *body, *message;
    uint32_t threads;
  } rows[] = {
      {"ld.global.u64 %rd5, [%rd2+65536];", "in no array", 1},
      {"st.global.u64 [%rd2+504], %rd1;\nst.global.u64 [%rd2+508], %rd1;", "not aligned", 1},
      {"mov.u64 %rd5, s;\nst.shared.u32 [%rd5+256], %r1;", "not in shared memory", 1},
      {"setp.eq.s32 %p1, %r1, 3;\n@%p1 bra $L;\nbar.sync 0;\n$L:", "have ended", 32},
      {"setp.eq.s32 %p1, %r1, 3;\n@%p1 bra $L;\nbar.sync 0;\nret;\n$L:\nbar.sync 0;", "another barrier", 32},
      {"setp.eq.s32 %p1, %r1, 3;\n@%p1 bra $L;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\n$L:", "not all threads", 32},
      {"sin.approx.f32 %f1, 0f00000000;", "unknown", 1},
      {"add.f32 %f1, 0f00000000, 0f00000000;", "does not know add.f32", 1}, /* without .rn it may be contracted */
      {"add.s32 %r2, %r100, 1;", "'%r100' is unknown", 1},
      {"bra $L;", "'$L' is unknown", 1},
  };
  status s = run(rows[_i].body, rows[_i].threads);
  ck_assert_ptr_nonnull(s);
  ck_assert_msg(strstr(status_message(s), rows[_i].message), "%s", status_message(s));
  status_free(s);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("ptx");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, scalars, 0, SCALARS);
  tcase_add_loop_test(t, shuffles, 0, 4);
  tcase_add_test(t, barrier);
  tcase_add_test(t, no_barrier);
  tcase_add_test(t, async);
  tcase_add_test(t, mma);
  tcase_add_loop_test(t, faults, 0, 10);
  return run_suite("ptx", t);
}
