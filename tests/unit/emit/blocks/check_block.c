/* check_block.c - a kernel whose threads work together: its results on emulated threads in all orders, its PTX, and
 * that the emulator shows the faults of such kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"
#include "runtime/host/code_loader.h"
#include "tests/ptx/ptx.h"
#include "tests/unit/emit/kernel_case.h"

enum { ROWS = 5, WARPS = 3, LENGTH = WARPS * EMIT_WARP };

/* The faults from EARLY_WRITE on are races that may do no harm. */
typedef enum fault {
  NONE,
  NO_BARRIER,
  WRONG_MASK,
  DIVERGED,
  ENDED,
  EARLY_WRITE, /* the sums of warps are overwritten without a barrier after they were read */
  SAME_WARP,   /* a lane writes what another one of its warp reads */
  SAME_RESULT, /* all threads of a block store the same result */
  N_FAULTS,
  N_WRONG = EARLY_WRITE
} fault;

/* --- the kernel: a block sums a row of integers of one type --- */

static LLVMValueRef element_of(const emit_writer *w, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(w->e.w->builder, type, base, &at, 1, "");
}

static LLVMValueRef sum_of_warp(emit_writer *w, LLVMValueRef x, fault f) {
  for (unsigned k = EMIT_WARP / 2; k > 0; k /= 2) {
    LLVMValueRef other = emit_lane_xor(w, x, f == WRONG_MASK && k == 4 ? 8 : k);
    x = LLVMBuildAdd(w->e.w->builder, x, other, "");
  }
  return x;
}

/* Stores the sums of the warps in shared memory, and adds them in every thread. */
static LLVMValueRef sum_of_block(emit_writer *w, LLVMValueRef x, fault f) {
  const emit_ir *ir = w->e.w;
  LLVMTypeRef type = LLVMTypeOf(x);
  (void)emit_shared_memory(w, ir->i8, 1, 1);
  LLVMValueRef sums = emit_shared_memory(w, type, WARPS, 8), lane = emit_lane_number(w);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, lane, emit_i64(ir, 0)));
  LLVMBuildStore(ir->builder, x, element_of(w, type, sums, emit_warp_number(w)));
  if (f == DIVERGED) {
    emit_barrier(w);
  }
  emit_if_end(ir, after);
  if (f != NO_BARRIER) {
    emit_barrier(w);
  }
  LLVMValueRef sum = LLVMConstNull(type);
  for (int k = 0; k < WARPS; k++) {
    sum = LLVMBuildAdd(ir->builder, sum,
                       LLVMBuildLoad2(ir->builder, type, element_of(w, type, sums, emit_i64(ir, k)), ""), "");
  }
  if (f == EARLY_WRITE) {
    after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, emit_thread_number(w), emit_i64(ir, 40)));
    LLVMBuildStore(ir->builder, sum, element_of(w, type, sums, emit_i64(ir, 2)));
    emit_if_end(ir, after);
  }
  return sum;
}

/* Each lane stores its x in shared memory and reads that of the lane beside it.  Returns 0, computed from what was read
 * so that reading is not optimised away.  If `waits` is false, the lanes race. */
static LLVMValueRef pass_on(emit_writer *w, LLVMValueRef x, bool waits) {
  const emit_ir *ir = w->e.w;
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef places = emit_shared_memory(w, type, LENGTH, 8), thread = emit_thread_number(w);
  LLVMValueRef next = LLVMBuildXor(ir->builder, thread, emit_i64(ir, 1), "");
  LLVMBuildStore(ir->builder, x, element_of(w, type, places, thread));
  x = waits ? emit_lane_xor(w, x, 1) : x;
  LLVMValueRef read = LLVMBuildLoad2(ir->builder, type, element_of(w, type, places, next), "");
  return LLVMBuildAnd(ir->builder, LLVMBuildXor(ir->builder, read, x, ""), LLVMConstNull(type), "");
}

/* The block's last thread stores the result: 1000 times the sum of the block, plus 10 times the number of the lane that
 * is 3 before, plus the number of the lane that is 30 behind, or its own number if there is none. */
static void store_sum(emit_writer *w, LLVMTypeRef type, LLVMValueRef x, fault f) {
  const emit_ir *ir = w->e.w;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef lane = LLVMBuildIntCast2(b, emit_lane_number(w), type, false, "");
  LLVMValueRef near = LLVMBuildMul(b, emit_lane_up(w, lane, 3), emit_i_of(type, 10), "");
  near = LLVMBuildAdd(b, near, emit_lane_down(w, lane, 30), "");
  LLVMValueRef sum = sum_of_block(w, sum_of_warp(w, x, f), f);
  sum = LLVMBuildAdd(b, LLVMBuildMul(b, sum, emit_i_of(type, 1000), ""), near, "");
  sum = LLVMBuildAdd(b, sum, pass_on(w, sum, f != SAME_WARP), "");
  LLVMValueRef last = emit_i64(ir, LENGTH - 1);
  LLVMValueRef is_last = emit_icmp(ir, LLVMIntEQ, f == SAME_RESULT ? last : emit_thread_number(w), last);
  LLVMBasicBlockRef after = emit_if_begin(ir, is_last);
  LLVMBuildStore(b, sum, element_of(w, type, w->results[0], w->begin));
  emit_if_end(ir, after);
}

static status write_kernel(emit_module *m, const hlo_instr *i, fault f, emit_kernel_info *info) {
  emit_writer w;
  TRY(emit_writer_begin(&w, m, "sums", i, NULL, 0, info));
  const emit_ir *ir = w.e.w;
  LLVMBuilderRef b = ir->builder;
  LLVMTypeRef type = hlo_type(i->operands[0]) == DTYPE_S32 ? ir->i32 : ir->i64;
  emit_block_team(&w, LENGTH, LENGTH);
  LLVMValueRef runs = emit_icmp(ir, LLVMIntSLT, w.begin, w.end);
  if (f == ENDED) {
    runs = LLVMBuildAnd(b, runs, emit_icmp(ir, LLVMIntNE, emit_thread_number(&w), emit_i64(ir, 40)), "");
  }
  LLVMBasicBlockRef after = emit_if_begin(ir, runs);
  LLVMValueRef row = LLVMBuildNSWMul(b, w.begin, emit_i64(ir, LENGTH), "");
  LLVMValueRef at = LLVMBuildNSWAdd(b, row, emit_thread_number(&w), "");
  store_sum(&w, type, LLVMBuildLoad2(b, type, element_of(&w, type, w.e.inputs[0].base, at), ""), f);
  emit_if_end(ir, after);
  info->grid = ROWS;
  emit_writer_end(&w);
  return emit_writer_check(&w);
}

/* --- running it --- */

static const hlo_instr *reduction(const char *type) {
  kernel_cases c = {0};
  const char *text = TEXT(
      "%s[%d](%%x: %s[%d,%d]) {\n%%y = reduce(%%x) {dimensions=[1], reducer=add} : %s[%d]\nreturn "
      "%%y\n}",
      type, ROWS, type, ROWS, LENGTH, type, ROWS);
  return hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
}

static rt_block_fn *compile(const char *type, fault f, bool checked, emit_kernel_info *info) {
  emit_target t;
  emit_module *m;
  rt_code *code;
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = checked;
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(write_kernel(m, reduction(type), f, info));
  ASSERT_OK(kernel_load(kernel_arena, m, kernel_resolve, &code));
  return (rt_block_fn *)(intptr_t)rt_code_find(code, "sums");
}

/* The arrays of a run.  One block more than there are rows is launched, which must store nothing. */
typedef struct sums {
  int64_t x[ROWS * LENGTH], y[ROWS + 1], want[ROWS];
  bool wide; /* whether elements are s64 and not s32 */
} sums;

static void begin(sums *s, bool wide) {
  *s = (sums){.wide = wide};
  for (int k = 0; k < ROWS * LENGTH; k++) {
    int64_t v = (int64_t)(next_random() >> 40) % 1000;
    s->x[wide ? k : k / 2] = wide ? v << 20 : k % 2 ? v << 32 | (s->x[k / 2] & 0xffffffff) : v;
    s->want[k / LENGTH] += wide ? v << 20 : v;
  }
}

/* Returns the number of wrong results. */
static int count_wrong(const sums *s) {
  int wrong = 0;
  for (int k = 0; k < ROWS; k++) {
    int64_t got = s->wide ? s->y[k] : ((const int32_t *)s->y)[k], near = 28 * 10 + 31;
    wrong += got != s->want[k] * 1000 + near;
  }
  ck_assert_int_eq(s->y[ROWS], 0);
  return wrong;
}

/* Sets *wrong to the number of wrong results in this order. */
static status run(rt_block_fn *fn, const emit_kernel_info *info, bool wide, gpu_order order, int *wrong) {
  sums s;
  begin(&s, wide);
  const void *buffers[] = {s.x, s.y};
  gpu_blocks b = {fn, "sums", buffers, NULL, ROWS, info->threads, info->shared_bytes, order};
  TRY(gpu_run_blocks(&b, 0, ROWS + 1));
  *wrong = count_wrong(&s);
  return NULL;
}

START_TEST(sums_are_right) {
  for (int k = 0; k < 4; k++) {
    emit_kernel_info info;
    bool wide = k & 1;
    rt_block_fn *fn = compile(wide ? "s64" : "s32", NONE, k & 2, &info);
    ck_assert_uint_eq(info.threads, LENGTH);
    ck_assert_uint_eq(info.step_threads, LENGTH);
    ck_assert_uint_eq(info.shared_bytes, wide ? 8 + (WARPS + LENGTH) * 8 : 8 + 16 + LENGTH * 4);
    for (gpu_order order = 0; order < GPU_ORDERS; order++) {
      int wrong;
      ASSERT_OK(run(fn, &info, wide, order, &wrong));
      ck_assert_int_eq(wrong, 0);
    }
  }
}
END_TEST

/* At least one of the orders shows each fault. */
START_TEST(faults_are_found) {
  emit_kernel_info info;
  rt_block_fn *fn = compile("s32", (fault)_i, false, &info);
  int found = 0;
  for (gpu_order order = 0; order < GPU_ORDERS; order++) {
    int wrong = 0;
    status s = run(fn, &info, false, order, &wrong);
    if (_i == DIVERGED || _i == ENDED) {
      ck_assert_ptr_nonnull(s);
      ck_assert_msg(strstr(status_message(s), "divergent barrier in kernel sums, block 0"), "%s", status_message(s));
    }
    found += s || wrong;
    status_free(s);
  }
  ck_assert_int_gt(found, 0);
}
END_TEST

/* The race check finds the races in every order, also where the results are right. */
START_TEST(races_are_found) {
  static const struct {
    fault fault;
    const char *says;
  } rows[] = {{NO_BARRIER, "of shared memory, and thread"},
              {EARLY_WRITE, "thread 40 writes byte 16 of shared memory, and thread"},
              {SAME_WARP, "reads it"},
              {SAME_RESULT, "of a buffer, and thread"}};
  emit_kernel_info info;
  rt_block_fn *fn = compile("s32", rows[_i].fault, true, &info);
  for (gpu_order order = 0; order < GPU_ORDERS; order++) {
    int wrong;
    status s = run(fn, &info, false, order, &wrong);
    ck_assert_int_eq(status_get_code(s), STATUS_INTERNAL);
    ck_assert_msg(strstr(status_message(s), "data race in kernel sums, block 0") != NULL, "%s", status_message(s));
    ck_assert_msg(strstr(status_message(s), rows[_i].says) != NULL, "%s", status_message(s));
    status_free(s);
  }
}
END_TEST

/* --- PTX --- */

/* Assembles the text if there is an assembler. */
static void assemble(const char *text, const char *cpu) {
  static const char ptxas[] = "/usr/local/cuda/bin/ptxas";
  char path[] = "/tmp/check_block.XXXXXX";
  int file = access(ptxas, X_OK) == 0 ? mkstemp(path) : -1;
  if (file >= 0) {
    ck_assert_int_eq(write(file, text, strlen(text)), (int)strlen(text));
    close(file);
    ck_assert_int_eq(system(TEXT("%s -arch=%s -o /dev/null %s", ptxas, cpu, path)), 0);
    unlink(path);
  }
}

static const char *text_of(const char *cpu, const char *type, emit_kernel_info *info) {
  emit_target t;
  emit_module *m;
  const char *text;
  size_t size;
  ASSERT_OK(emit_target_nvptx(kernel_arena, cpu, &t));
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(write_kernel(m, reduction(type), NONE, info));
  ASSERT_OK(emit_module_assembly(m, &text, &size));
  return text;
}

START_TEST(ptx) {
  static const char *const cpus[] = {"sm_75", "sm_90"};
  for (int k = 0; k < 2; k++) {
    emit_kernel_info info;
    const char *text = text_of(cpus[k], "s64", &info);
    static const char *const parts[] = {".extern .shared .align 128 .b8 onnx_xla_shared[]",
                                        "bar.sync",
                                        "shfl.sync.bfly",
                                        "shfl.sync.up",
                                        "shfl.sync.down",
                                        "st.shared"};
    for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
      ck_assert_msg(strstr(text, parts[j]) != NULL, "no %s in\n%s", parts[j], text);
    }
    assemble(text, cpus[k]);
  }
}
END_TEST

/* Numbers of 64 bits are exchanged as two halves. */
START_TEST(ptx_computes) {
  emit_kernel_info info;
  ptx_module *m;
  sums s;
  begin(&s, _i);
  void *buffers[] = {s.x, s.y};
  int64_t no_arguments = 0, steps = ROWS;
  void *parameters[] = {buffers, &no_arguments, &steps};
  ASSERT_OK(ptx_parse(kernel_arena, text_of("sm_75", s.wide ? "s64" : "s32", &info), &m));
  ASSERT_OK(ptx_run(
      ptx_find_entry(m, "sums"),
      &(ptx_launch){
          .blocks = ROWS + 1, .threads = info.threads, .shared_bytes = info.shared_bytes, .parameters = parameters}));
  ck_assert_int_eq(count_wrong(&s), 0);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_add_test(t, sums_are_right);
  tcase_add_loop_test(t, faults_are_found, NO_BARRIER, N_WRONG);
  tcase_add_loop_test(t, races_are_found, 0, 4);
  tcase_add_test(t, ptx);
  tcase_add_loop_test(t, ptx_computes, 0, 2);
  return run_suite("emit-block", t);
}
