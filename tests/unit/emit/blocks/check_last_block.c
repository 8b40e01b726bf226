/* check_last_block.c - a kernel in which the last of several blocks adds what all of them have stored
 * (emit_is_last_block): its results on emulated threads, with blocks in any order and at the same time, and the order
 * of what its PTX does. */
#include <pthread.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "emit/llvm/arithmetic.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/ptx_case.h"

/* Two sums, each of which is divided among BLOCKS blocks. */
enum { SUMS = 2, BLOCKS = 5, THREADS = 2 * EMIT_WARP, LENGTH = BLOCKS * THREADS };

/* --- the kernel --- */

static LLVMValueRef element_of(const emit_writer *w, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(w->e.w->builder, w->e.w->i32, base, &at, 1, "");
}

static LLVMValueRef load(const emit_writer *w, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildLoad2(w->e.w->builder, w->e.w->i32, element_of(w, base, at), "");
}

/* Each thread copies an element to scratch memory.  Thread 0 of the last block adds them up. */
static void write_body(emit_writer *w) {
  const emit_ir *ir = w->e.w;
  LLVMValueRef scratch = emit_writer_buffer(w, 2), counters = emit_writer_buffer(w, 3);
  LLVMValueRef sum = emit_over(ir, w->begin, BLOCKS), first = emit_times(ir, sum, LENGTH);
  LLVMValueRef at = emit_add(ir, emit_times(ir, w->begin, THREADS), emit_thread_number(w));
  LLVMBuildStore(ir->builder, load(w, w->e.inputs[0].base, at), element_of(w, scratch, at));
  LLVMValueRef last = emit_is_last_block(w, element_of(w, counters, sum), emit_i64(ir, BLOCKS));
  LLVMValueRef is_first = emit_icmp(ir, LLVMIntEQ, emit_thread_number(w), emit_i64(ir, 0));
  LLVMBasicBlockRef after = emit_if_begin(ir, LLVMBuildAnd(ir->builder, last, is_first, ""));
  LLVMValueRef total = LLVMConstNull(ir->i32);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_i64(ir, LENGTH), 1, true, 1, &total);
  total = LLVMBuildAdd(ir->builder, l.carried[0], load(w, scratch, emit_add(ir, first, l.iv)), "");
  emit_loop_end(ir, &l, &total);
  LLVMBuildStore(ir->builder, l.carried[0], element_of(w, w->results[0], sum));
  emit_if_end(ir, after);
}

static status write_kernel(emit_module *m, emit_kernel_info *info) {
  kernel_cases c = {0};
  const char *text =
      TEXT("s32[%d](%%x: s32[%d,%d]) {\n%%y = reduce(%%x) {dimensions=[1], reducer=add} : s32[%d]\nreturn %%y\n}", SUMS,
           SUMS, LENGTH, SUMS);
  const hlo_instr *i = hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
  emit_writer w;
  TRY(emit_writer_begin(&w, m, "sums", i, NULL, 2, info));
  emit_block_team(&w, THREADS, THREADS);
  LLVMBasicBlockRef after = emit_if_begin(w.e.w, emit_icmp(w.e.w, LLVMIntSLT, w.begin, w.end));
  write_body(&w);
  emit_if_end(w.e.w, after);
  info->grid = SUMS * BLOCKS;
  emit_writer_end(&w);
  return emit_writer_check(&w);
}

/* --- running it --- */

static rt_block_fn *compile(bool checked, emit_kernel_info *info) {
  emit_target t;
  emit_module *m;
  rt_code *code;
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = checked;
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(write_kernel(m, info));
  ASSERT_OK(kernel_load(kernel_arena, m, kernel_resolve, &code));
  return (rt_block_fn *)(intptr_t)rt_code_find(code, "sums");
}

typedef struct launch {
  int32_t x[SUMS * LENGTH], y[SUMS], scratch[SUMS * LENGTH], counters[SUMS];
} launch;

static void begin_launch(launch *l) {
  memset(l->y, 0xff, sizeof l->y);
  memset(l->scratch, 0xff, sizeof l->scratch);
  for (int k = 0; k < SUMS * LENGTH; k++) {
    l->x[k] = (int32_t)(next_random() >> 40) % 1000;
  }
}

static void check_launch(const launch *l) {
  for (int s = 0; s < SUMS; s++) {
    int32_t want = 0;
    for (int k = 0; k < LENGTH; k++) {
      want += l->x[s * LENGTH + k];
    }
    ck_assert_int_eq(l->y[s], want);
    ck_assert_int_eq(l->counters[s], 0);
  }
}

/* The result is stored when the last block of each sum has run, not before, in whatever order they run. */
START_TEST(any_order) {
  emit_kernel_info info;
  launch l = {0};
  rt_block_fn *fn = compile(_i, &info);
  const void *buffers[] = {l.x, l.y, l.scratch, l.counters};
  for (int round = 0; round < 20; round++) {
    int done[SUMS] = {0}, n = SUMS * BLOCKS;
    begin_launch(&l);
    gpu_blocks b = {fn, "sums", buffers, NULL, n, info.threads, info.shared_bytes, round % GPU_ORDERS};
    for (int k = 0, step = round % 2 ? 3 : 7, at = round % n; k < n; k++, at = (at + step) % n) {
      int s = at / BLOCKS;
      ck_assert_int_eq(l.y[s], -1);
      ASSERT_OK(gpu_run_blocks(&b, at, at + 1));
      done[s]++;
      ck_assert_int_eq(l.counters[s], done[s] % BLOCKS);
    }
    check_launch(&l);
  }
}
END_TEST

static void *run_odd_blocks(void *data) {
  for (int64_t k = 1; k < SUMS * BLOCKS; k += 2) {
    ASSERT_OK(gpu_run_blocks(data, k, k + 1));
  }
  return NULL;
}

START_TEST(at_the_same_time) {
  emit_kernel_info info;
  launch l = {0};
  rt_block_fn *fn = compile(false, &info);
  const void *buffers[] = {l.x, l.y, l.scratch, l.counters};
  for (int round = 0; round < 300; round++) {
    pthread_t other;
    begin_launch(&l);
    gpu_blocks b = {fn, "sums", buffers, NULL, SUMS * BLOCKS, info.threads, info.shared_bytes, GPU_FORWARD};
    ck_assert_int_eq(pthread_create(&other, NULL, run_odd_blocks, &b), 0);
    for (int64_t k = 0; k < SUMS * BLOCKS; k += 2) {
      ASSERT_OK(gpu_run_blocks(&b, k, k + 1));
    }
    pthread_join(other, NULL);
    check_launch(&l);
  }
}
END_TEST

/* --- PTX --- */

static emit_module *module_for(const char *gpu) {
  emit_target t;
  emit_module *m;
  emit_kernel_info info;
  ASSERT_OK(emit_target_nvptx(kernel_arena, gpu, &t));
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(write_kernel(m, &info));
  return m;
}

/* The emulator runs what a thread does in order, so it cannot show that a fence or barrier is missing. */
START_TEST(ptx_order) {
  static const char *const parts[] = {"st.global", "membar.gl", "bar.sync", "atom.global.add",
                                      "bar.sync",  "membar.gl", "ld.global"};
  const char *text;
  size_t size;
  ASSERT_OK(ptx_check(kernel_arena, module_for(ptx_gpus[_i]), ptx_gpus[_i]));
  ASSERT_OK(emit_module_assembly(module_for(ptx_gpus[_i]), &text, &size));
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    const char *next = strstr(text, parts[k]);
    ck_assert_msg(next, "no %s in the rest of the code: %s", parts[k], text);
    text = next + 1;
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("last-block");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_add_loop_test(t, any_order, 0, 2);
  tcase_add_test(t, at_the_same_time);
  tcase_add_loop_test(t, ptx_order, 0, PTX_GPUS);
  return run_suite("emit-last-block", t);
}
