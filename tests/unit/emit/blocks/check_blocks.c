/* check_blocks.c - kernels for blocks of threads: how they are called, how many parameters they may have, the PTX of
 * every emitter for every GPU, and the kernels that have writers of their own.
 *
 * All other kernels are tested by check_emit*.c: those run them on emulated blocks as well as on CPUs, with constants
 * and with sizes as arguments. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "emit/blocks/block_nms.h"
#include "emit/blocks/block_sort.h"
#include "emit/kernel/special.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/ptx_case.h"
#include "tests/unit/emit/sizes_case.h"

/* --- targets --- */

START_TEST(targets) {
  emit_target gpu, host, cpu;
  for (int k = 0; k < PTX_GPUS; k++) {
    ASSERT_OK(emit_target_nvptx(kernel_arena, ptx_gpus[k], &gpu));
    ck_assert_str_eq(gpu.cpu, ptx_gpus[k]);
  }
  static const char *const others[] = {"", "sm_70", "sm_8", "sm_80a", "sm_100", "native"};
  for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
    status s = emit_target_nvptx(kernel_arena, others[k], &gpu);
    ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_message(s), "sm_75, sm_80"));
    status_free(s);
  }
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_80", &gpu));
  ck_assert_str_eq(emit_target_text(kernel_arena, &gpu), "nvptx64-nvidia-cuda sm_80 +ptx70 1 blocks");
  ASSERT_OK(emit_target_init(kernel_arena, NULL, "native", 1, &cpu));
  status s = emit_target_blocks_host(kernel_arena, &host);
  if (s) { /* a processor without fused multiply-adds */
    ck_assert_int_eq(status_get_code(s), STATUS_UNSUPPORTED);
    status_free(s);
    return;
  }
  ck_assert_str_eq(emit_target_text(kernel_arena, &host), TEXT("%s blocks", emit_target_text(kernel_arena, &cpu)));
  ck_assert(!host.libm && host.fma && host.lanes == 1 && host.stack == gpu.stack);
}
END_TEST

/* --- how a kernel is called --- */

static emit_module *gpu_module(const char *gpu) {
  emit_target t;
  emit_module *m = NULL;
  ASSERT_OK(emit_target_nvptx(kernel_arena, gpu, &t));
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  return m;
}

static const char *assembly(emit_module *m) {
  const char *text = NULL;
  size_t size;
  ASSERT_OK(emit_module_assembly(m, &text, &size));
  return text;
}

static const hlo_instr *only_instruction(const char *text) {
  sizes_cases c = {0};
  return sizes_add_text(&c, text)->entry->roots[0].def;
}

START_TEST(parameters) {
  emit_module *m = gpu_module("sm_80");
  emit_kernel_info info[2];
  ASSERT_OK(emit_kernel(m, "f",
                        only_instruction("(%x: f32[40], %y: f32[40]) {\n%z = add(%x, %y) : f32[40]\nreturn %z\n}"),
                        NULL, &info[0]));
  ck_assert_int_eq(info[0].grid, 10); /* four elements are a step */
  ck_assert_uint_eq(info[0].n_args, 0);
  ASSERT_OK(emit_kernel(m, "g",
                        only_instruction("(%x: f32[n,m]) {\n%z = transpose(%x) {permutation=[1,0]} : f32[m,n]\nreturn "
                                         "%z\n}"),
                        NULL, &info[1]));
  ck_assert_uint_gt(info[1].n_args, 0);
  ck_assert_uint_eq(info[1].n_args, info[1].n_sizes);
  const char *text = assembly(m);
  const char *lines[] = {
      "\t.param .align 8 .b8 f_param_0[24],\n\t.param .align 8 .b8 f_param_1[8],\n\t.param .u64 "
      "f_param_2\n",
      TEXT("\t.param .align 8 .b8 g_param_0[16],\n\t.param .align 8 .b8 g_param_1[%u],\n\t.param "
           ".u64 g_param_2\n",
           8 * info[1].n_args)};
  for (int k = 0; k < 2; k++) {
    ck_assert_msg(strstr(text, lines[k]) != NULL, "no\n%sin\n%s", lines[k], text);
  }
}
END_TEST

/* Returns the concatenation of this many arrays. */
static const hlo_instr *concatenation(int arrays) {
  const char *params = "", *operands = "";
  for (int k = 0; k < arrays; k++) {
    params = TEXT("%s%s%%x%d: f32[1]", params, k ? ", " : "", k);
    operands = TEXT("%s%s%%x%d", operands, k ? ", " : "", k);
  }
  return only_instruction(
      TEXT("(%s) {\n%%y = concatenate(%s) {dimension=0} : f32[%d]\nreturn %%y\n}", params, operands, arrays));
}

START_TEST(too_many_parameters) {
  enum { MOST = RT_BLOCK_PARAMETER_BYTES / 8 - 3 }; /* 3: the result, an argument and the number of steps */
  emit_module *m = gpu_module("sm_80");
  emit_kernel_info info;
  status s = emit_kernel(m, "f", concatenation(MOST + 1), NULL, &info);
  ck_assert_int_eq(status_get_code(s), STATUS_UNSUPPORTED);
  ck_assert_msg(strstr(status_message(s), "bytes of parameters") != NULL, "%s", status_message(s));
  status_free(s);
  ASSERT_OK(emit_kernel(m, "g", concatenation(MOST), NULL, &info));
  ASSERT_OK(ptx_check(kernel_arena, m, "sm_80"));
}
END_TEST

START_TEST(thread_layout) {
  ck_assert_uint_eq(offsetof(rt_block_thread, block), 0);
  ck_assert_uint_eq(offsetof(rt_block_thread, thread), 8);
  ck_assert_uint_eq(offsetof(rt_block_thread, threads), 12);
}
END_TEST

/* --- positions of 32 bits --- */

START_TEST(narrow_positions) {
  static const struct {
    const char *text;
    bool wide; /* whether positions do not fit in 32 bits; then the division by 30 has instructions of 64 bits */
  } cases[] = {
      {"(%x: f32[7,5,6]) {\n%y = transpose(%x) {permutation=[2,1,0]} : f32[6,5,7]\nreturn %y\n}", false},
      {"(%x: f16[7,5,6], %p: f16[]) {\n"
       "%y = pad(%x, %p) {low=[1,1,2], high=[0,1,1], interior=[0,0,2]} : f16[8,7,19]\nreturn %y\n}",
       false},
      {"(%x: f32[9,30], %y: f32[30,70]) {\n%z = dot(%x, %y) {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
       "rhs_batch=[]} : f32[9,70]\nreturn %z\n}",
       false},
      {"(%x: f32[100000,5,5000]) {\n%y = transpose(%x) {permutation=[1,0,2]} : f32[5,100000,5000]\nreturn %y\n}", true},
  };
  emit_module *m = gpu_module("sm_80");
  emit_kernel_info info;
  ASSERT_OK(emit_kernel(m, "f", only_instruction(cases[_i].text), NULL, &info));
  const char *text = assembly(m);
  bool wide = strstr(text, "mul.hi.u64") || strstr(text, "mul.hi.s64") || strstr(text, "div.u64");
  ck_assert_msg(wide == cases[_i].wide, "%s", text);
}
END_TEST

/* --- vectors of 16 bytes --- */

START_TEST(vectors) {
  static const struct {
    const char *text, *load, *store;
    int64_t grid; /* 0: depends on a size */
  } rows[] = {
      {"(%x: f32[40], %y: f32[40]) {\n%z = add(%x, %y) : f32[40]\nreturn %z\n}", "ld.global.nc.v4.f32",
       "st.global.v4.f32", 10},
      {"(%x: f32[37], %y: f32[37]) {\n%z = add(%x, %y) : f32[37]\nreturn %z\n}", "ld.global.nc.v4.f32",
       "st.global.v4.f32", 10},
      {"(%x: f64[6,8], %y: f64[6,8]) {\n%z = add(%x, %y) : f64[6,8]\nreturn %z\n}", "ld.global.nc.v2.f64",
       "st.global.v2.f64", 24},
      {"(%x: f16[64]) {\n%z = negate(%x) : f16[64]\nreturn %z\n}", "ld.global.nc.v4", "st.global.v4", 8},
      {"(%x: f32[n,m], %y: f32[n,m]) {\n%z = multiply(%x, %y) : f32[n,m]\nreturn %z\n}", "ld.global.nc.v4.f32",
       "st.global.v4.f32", 0},
      {"(%x: f32[n,3,8]) {\n%z = transpose(%x) {permutation=[1,0,2]} : f32[3,n,8]\nreturn %z\n}", "ld.global.nc.v4.f32",
       "st.global.v4.f32", 0},
      {"(%x: f32[8,12]) {\n%z = slice(%x) {starts=[2,4], limits=[7,12], strides=[1,1]} : f32[5,8]\nreturn %z\n}",
       "ld.global.nc.v4.f32", "st.global.v4.f32", 10},
  };
  emit_module *m = gpu_module("sm_80");
  emit_kernel_info info;
  ASSERT_OK(emit_kernel(m, "f", only_instruction(rows[_i].text), NULL, &info));
  if (rows[_i].grid) {
    ck_assert_int_eq(info.grid, rows[_i].grid);
  }
  const char *text = assembly(m);
  ck_assert_msg(strstr(text, rows[_i].load) && strstr(text, rows[_i].store), "%s", text);
}
END_TEST

/* --- PTX of all emitters --- */

/* make check writes PTX for the oldest and the newest GPU, make check-full for all of them. */
START_TEST(ptx_of_all) {
  if (_i > 0 && _i < PTX_GPUS - 1 && !getenv("ONNX_XLA_FULL")) {
    return;
  }
  kernel_cases c = {0};
  kernel_add_all(&c);
  kernel_check_ptx(&c, ptx_gpus[_i]);
}
END_TEST

/* --- kernels with writers of their own, which all machines compute as the reference does --- */

/* With a front, a sort defines only the first FRONT elements of each line; all lines are at least that long. */
enum { FRONT = 5 };
static void set_sort_way(const sizes_case *k, arena *a, const emit_target *t, int64_t front, sizes_way *way) {
  emit_sort *config = ARENA_NEW(a, emit_sort);
  *config = (emit_sort){.parts = 3, .front = front, .iota = -1};
  *way = t->execution == EMIT_BLOCKS ? (sizes_way){.write = emit_block_sort_kernel,
                                                   .config = config,
                                                   .phases = emit_block_sort_phases(k->i, config),
                                                   .scratch_bytes = emit_block_sort_scratch(k->i, config)}
                                     : (sizes_way){.write = emit_sort_kernel,
                                                   .config = config,
                                                   .phases = 1,
                                                   .scratch_bytes = emit_sort_scratch(k->i, config)};
}

static void sort_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  set_sort_way(k, a, t, INT64_MAX, way);
}

static void front_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  set_sort_way(k, a, t, FRONT, way);
}

static void nms_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  emit_nms *config = ARENA_NEW(a, emit_nms);
  config->parts = 3;
  bool blocks = t->execution == EMIT_BLOCKS;
  *way = (sizes_way){.write = blocks ? emit_block_nms_kernel : emit_nms_kernel,
                     .config = config,
                     .phases = EMIT_NMS_PHASES,
                     .scratch_bytes = blocks ? emit_block_nms_scratch(k->i) : emit_nms_scratch(k->i, config)};
}

static void twister_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  (void)k, (void)a, (void)t;
  *way = (sizes_way){.write = emit_twister_kernel, .phases = 1, .scratch_bytes = emit_twister_scratch()};
}

START_TEST(special_kernels) {
  static const struct {
    void (*prepare)(const sizes_case *, arena *, const emit_target *, sizes_way *);
    const char *text;
  } rows[] = {
      {sort_way, "(%x: f32[n,m]) {\n%y = sort(%x) {dimension=1, descending=false} : f32[n,m]\nreturn %y\n}"},
      {sort_way, "(%x: s64[n,m]) {\n%y = sort(%x) {dimension=0, descending=true} : s64[n,m]\nreturn %y\n}"},
      {sort_way,
       "(%x: f16[3,50,2], %y: u8[3,50,2]) {\n%a, %b = sort(%x, %y) {dimension=1, descending=true} : "
       "f16[3,50,2], u8[3,50,2]\nreturn %a, %b\n}"},
      {sort_way, "(%x: s8[2,3000]) {\n%y = sort(%x) {dimension=1, descending=false} : s8[2,3000]\nreturn %y\n}"},
      {front_way, "(%x: f32[n,5]) {\n%y = sort(%x) {dimension=1, descending=false} : f32[n,5]\nreturn %y\n}"},
      {nms_way,
       "(%b: f32[2,m,4], %s: f32[2,n,m], %k: s64[], %o: f32[]) {\n%y, %t = non-max-suppression(%b, %s, %k, "
       "%o) {limit=9} : s64[2*n*min(m,9),3], s64[]\nreturn %y, %t\n}"},
      {nms_way,
       "(%b: f32[2,50,4], %s: f32[2,3,50], %k: s64[], %o: f32[], %f: f32[]) {\n%y, %t = "
       "non-max-suppression(%b, %s, %k, %o, %f) {limit=20} : s64[120,3], s64[]\nreturn %y, %t\n}"},
      {twister_way, "(%s: u64[1]) {\n%y = rng-bit-generator(%s) {algorithm=mt19937} : u64[700]\nreturn %y\n}"},
  };
  sizes_cases c = {0};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    sizes_add_text(&c, rows[k].text)->prepare = rows[k].prepare;
  }
  sizes_check_all(&c, 16, EMIT_MACHINES_AND_BLOCKS);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("blocks");
  tcase_add_checked_fixture(t, sizes_setup_with_kernels, sizes_teardown_with_kernels);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, targets);
  tcase_add_test(t, parameters);
  tcase_add_test(t, too_many_parameters);
  tcase_add_test(t, thread_layout);
  tcase_add_loop_test(t, narrow_positions, 0, 4);
  tcase_add_loop_test(t, vectors, 0, 7);
  tcase_add_loop_test(t, ptx_of_all, 0, PTX_GPUS);
  tcase_add_test(t, special_kernels);
  return run_suite("blocks", t);
}
