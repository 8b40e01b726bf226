/* check_block_copies.c - tests of copies to shared memory that are under way while threads go on (cp.async), with a
 * kernel of three stages: its results on the emulator, whichever order the threads run in; its PTX; and that the
 * emulator finds faults of synchronisation that are put into the kernel, which a GPU may not show. */
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "emit/llvm/arithmetic.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/ptx_case.h"

enum { ROWS = 3, THREADS = 3 * EMIT_WARP, STEPS = 7, FEWER = 30, STAGES = 3, MOST_WORDS = 4 };

typedef enum fault {
  NONE,
  WAITS_TOO_LITTLE, /* threads go on while one group too many is under way */
  NO_BARRIER,       /* a thread reads what another thread has copied, without a barrier in between */
  STAGE_TOO_FEW,    /* a copy goes to where threads still read */
  NO_COMMIT,        /* the copies are in no group that is waited for in time */
  NO_LAST_WAIT,     /* threads end while copies are under way */
  MISPLACED,        /* a copy is not to a multiple of its size */
  MISREAD,          /* a copy is not from a multiple of its size, where a GPU would stop */
  N_FAULTS
} fault;

/* --- the kernel: each thread sums what another one has copied --- */

typedef struct kernel {
  emit_writer w;
  int64_t words; /* of a copy */
  fault fault;
  LLVMValueRef thread, shared, row; /* `row` is the number of the row's first element */
} kernel;

static int64_t step_words(const kernel *k) { return k->words * THREADS; }
static int64_t row_words(const kernel *k) { return STEPS * step_words(k) - FEWER; }

static LLVMValueRef element_of(const kernel *k, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(k->w.e.w->builder, k->w.e.w->i32, base, &at, 1, "");
}

/* Returns where in shared memory the words of `thread` are that belong to this step. */
static LLVMValueRef place_of(const kernel *k, LLVMValueRef thread, int64_t step) {
  int64_t stages = k->fault == STAGE_TOO_FEW ? STAGES - 1 : STAGES;
  LLVMValueRef at = emit_times(k->w.e.w, thread, k->words);
  return emit_add(k->w.e.w, at, emit_i64(k->w.e.w, step % stages * step_words(k)));
}

/* Begins the copy of a step, in a group of its own.  Words behind the end of the row become zeros and are not read. */
static void begin_step(kernel *k, int64_t step) {
  const emit_ir *ir = k->w.e.w;
  if (step < STEPS) {
    LLVMValueRef first = emit_add(ir, emit_times(ir, k->thread, k->words), emit_i64(ir, step * step_words(k)));
    LLVMValueRef left = LLVMBuildSub(ir->builder, emit_i64(ir, row_words(k)), first, "");
    left = emit_intrinsic2(ir, "llvm.smax", emit_lesser(ir, left, emit_i64(ir, k->words)), emit_i64(ir, 0));
    LLVMValueRef live = LLVMBuildTrunc(ir->builder, emit_times(ir, left, 4), ir->i32, "");
    LLVMValueRef to = place_of(k, k->thread, step);
    to = k->fault == MISPLACED && step == 2 ? emit_add(ir, to, emit_i64(ir, 1)) : to;
    first = k->fault == MISREAD && step == 2 ? emit_add(ir, first, emit_i64(ir, 1)) : first;
    emit_copy_begin(&k->w, element_of(k, k->shared, to),
                    element_of(k, k->w.e.inputs[0].base, emit_add(ir, k->row, first)), (unsigned)k->words * 4, live);
  }
  if (k->fault != NO_COMMIT || step != 3) {
    emit_copy_commit(&k->w);
  }
}

static LLVMValueRef sum_of_step(kernel *k, int64_t step, LLVMValueRef sum) {
  enum { FAR = 40 };
  const emit_ir *ir = k->w.e.w;
  LLVMValueRef other = emit_modulo(ir, emit_add(ir, k->thread, emit_i64(ir, FAR)), THREADS);
  LLVMValueRef first = place_of(k, other, step);
  for (int64_t j = 0; j < k->words; j++) {
    LLVMValueRef at = element_of(k, k->shared, emit_add(ir, first, emit_i64(ir, j)));
    sum = LLVMBuildAdd(ir->builder, sum, LLVMBuildLoad2(ir->builder, ir->i32, at, ""), "");
  }
  return sum;
}

static LLVMValueRef sum_up(kernel *k) {
  LLVMValueRef sum = LLVMConstNull(k->w.e.w->i32);
  for (int64_t step = 0; step < STAGES - 1; step++) {
    begin_step(k, step);
  }
  for (int64_t step = 0; step < STEPS; step++) {
    emit_copy_wait(&k->w, k->fault == WAITS_TOO_LITTLE ? STAGES - 1 : STAGES - 2);
    if (k->fault != NO_BARRIER) {
      emit_barrier(&k->w);
    }
    if (k->fault != NO_LAST_WAIT || step < STEPS - 1) {
      begin_step(k, step + STAGES - 1);
    } else { /* a copy for nothing, to where nobody reads any more */
      begin_step(k, 1);
    }
    sum = sum_of_step(k, step, sum);
  }
  return sum;
}

static status write_kernel(emit_module *m, const hlo_instr *i, int64_t words, fault f, emit_kernel_info *info) {
  kernel k = {.words = words, .fault = f};
  TRY(emit_writer_begin(&k.w, m, "sums", i, NULL, 0, info));
  const emit_ir *ir = k.w.e.w;
  emit_block_team(&k.w, THREADS, THREADS);
  k.thread = emit_thread_number(&k.w);
  k.shared = emit_shared_memory(&k.w, ir->i32, STAGES * step_words(&k), 16);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, k.w.begin, k.w.end));
  k.row = emit_times(ir, k.w.begin, STEPS * step_words(&k));
  LLVMValueRef sum = sum_up(&k);
  LLVMBuildStore(ir->builder, sum,
                 element_of(&k, k.w.results[0], emit_add(ir, emit_times(ir, k.w.begin, THREADS), k.thread)));
  emit_if_end(ir, after);
  info->grid = ROWS;
  emit_writer_end(&k.w);
  return emit_writer_check(&k.w);
}

/* --- running it --- */

/* Returns an instruction whose operand and result have the shapes of the kernel's; what it computes does not matter. */
static const hlo_instr *instruction(int64_t words) {
  kernel_cases c = {0};
  const char *text = TEXT(
      "s32[%d,%d](%%x: s32[%d,%d]) {\n%%y = slice(%%x) {starts=[0,0], limits=[%d,%d], strides=[1,1]} : "
      "s32[%d,%d]\nreturn %%y\n}",
      ROWS, THREADS, ROWS, (int)(STEPS * words * THREADS), ROWS, THREADS, ROWS, THREADS);
  return hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
}

static rt_block_fn *compile(int64_t words, fault f, bool checked, emit_kernel_info *info) {
  emit_target t;
  emit_module *m;
  rt_code *code;
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = checked;
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(write_kernel(m, instruction(words), words, f, info));
  ASSERT_OK(kernel_load(kernel_arena, m, kernel_resolve, &code));
  return (rt_block_fn *)(intptr_t)rt_code_find(code, "sums");
}

/* Sets *wrong to the number of wrong results in this order. */
static status run(rt_block_fn *fn, const emit_kernel_info *info, int64_t words, gpu_order order, int *wrong) {
  static int32_t x[ROWS * STEPS * THREADS * MOST_WORDS], y[ROWS * THREADS], want[ROWS * THREADS];
  int64_t length = STEPS * THREADS * words;
  memset(want, 0, sizeof want);
  for (int64_t k = 0; k < ROWS * length; k++) {
    int64_t row = k / length, at = k % length, thread = at / words % THREADS;
    x[k] = (int32_t)(next_random() >> 40);
    want[row * THREADS + (thread + THREADS - 40) % THREADS] += at < length - FEWER ? x[k] : 0;
  }
  const void *buffers[] = {x, y};
  gpu_blocks b = {fn, "sums", buffers, NULL, ROWS, info->threads, info->shared_bytes, order};
  TRY(gpu_run_blocks(&b, 0, ROWS));
  *wrong = 0;
  for (int k = 0; k < ROWS * THREADS; k++) {
    *wrong += y[k] != want[k];
  }
  return NULL;
}

START_TEST(sums_are_right) {
  for (int checked = 0; checked < 2; checked++) {
    emit_kernel_info info;
    int64_t words = (int64_t)1 << _i;
    rt_block_fn *fn = compile(words, NONE, checked, &info);
    for (gpu_order order = 0; order < GPU_ORDERS; order++) {
      int wrong;
      ASSERT_OK(run(fn, &info, words, order, &wrong));
      ck_assert_int_eq(wrong, 0);
    }
  }
}
END_TEST

/* In each order the results are wrong or the run fails.  Only faults by which threads see each other's copies too early
 * or too late show in some orders only. */
START_TEST(faults_are_found) {
  emit_kernel_info info;
  rt_block_fn *fn = compile(4, (fault)_i, false, &info);
  int found = 0;
  for (gpu_order order = 0; order < GPU_ORDERS; order++) {
    int wrong = 0;
    status s = run(fn, &info, 4, order, &wrong);
    found += s || wrong;
    status_free(s);
  }
  bool always = _i != NO_BARRIER && _i != STAGE_TOO_FEW;
  ck_assert_int_ge(found, always ? GPU_ORDERS : 1);
}
END_TEST

/* If the kernel tells the emulator its accesses, each fault is found in each order, with a message that says what is
 * wrong. */
START_TEST(faults_are_told) {
  static const char *const says[N_FAULTS] = {
      [WAITS_TOO_LITTLE] = "accesses memory to which a copy is under way of thread",
      [NO_BARRIER] = "sums, block 0: ",
      [STAGE_TOO_FEW] = "data race in kernel sums, block 0",
      [NO_COMMIT] = "accesses memory to which a copy is under way of thread",
      [NO_LAST_WAIT] = "block 0: thread 0 ends and has not waited for its copies",
      [MISPLACED] = "copies from or to where it may not; the copy is that of thread",
      [MISREAD] = "copies from or to where it may not; the copy is that of thread",
  };
  emit_kernel_info info;
  rt_block_fn *fn = compile(4, (fault)_i, true, &info);
  for (gpu_order order = 0; order < GPU_ORDERS; order++) {
    int wrong;
    status s = run(fn, &info, 4, order, &wrong);
    ck_assert_int_eq(status_get_code(s), STATUS_INTERNAL);
    ck_assert_msg(strstr(status_message(s), says[_i]) != NULL, "%s", status_message(s));
    status_free(s);
  }
}
END_TEST

/* --- PTX --- */

static emit_module *gpu_module(const char *gpu, int64_t words) {
  emit_target t;
  emit_module *m;
  emit_kernel_info info;
  ASSERT_OK(emit_target_nvptx(kernel_arena, gpu, &t));
  ck_assert(emit_has_copies(&t));
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(write_kernel(m, instruction(words), words, NONE, &info));
  return m;
}

START_TEST(ptx) {
  static const char *const names[] = {"cp.async.ca.shared.global [", "cp.async.ca.shared.global [",
                                      "cp.async.cg.shared.global ["};
  for (int k = 1; k < PTX_GPUS; k++) {
    const char *text;
    size_t size;
    int64_t words = (int64_t)1 << k % 3;
    ASSERT_OK(emit_module_assembly(gpu_module(ptx_gpus[k], words), &text, &size));
    const char *const parts[] = {names[k % 3], TEXT("], %d, %%r", (int)words * 4), "cp.async.commit_group;",
                                 "cp.async.wait_group 1;"};
    for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
      ck_assert_msg(strstr(text, parts[j]) != NULL, "no %s in\n%s", parts[j], text);
    }
    ASSERT_OK(ptx_check(kernel_arena, gpu_module(ptx_gpus[k], words), ptx_gpus[k]));
  }
}
END_TEST

START_TEST(old_gpus_have_none) {
  emit_target t;
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_75", &t));
  ck_assert(!emit_has_copies(&t));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-copies");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_add_loop_test(t, sums_are_right, 0, 3);
  tcase_add_loop_test(t, faults_are_found, NONE + 1, N_FAULTS);
  tcase_add_loop_test(t, faults_are_told, NONE + 1, N_FAULTS);
  tcase_add_test(t, ptx);
  tcase_add_test(t, old_gpus_have_none);
  return run_suite("emit-block-copies", t);
}
