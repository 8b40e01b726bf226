/* check_kernel.c - which configs of launches the thunk kind gpu.kernel accepts; configs come from files, which may be
 * damaged. */
#include <check.h>
#include <string.h>

#include "backend_gpu/runtime/kinds.h"
#include "runtime/block_abi.h"
#include "tests/suite.h"

typedef struct config {
  int64_t abi, threads, step_threads, shared;
} config;

/* The function `find` of a device whose code has the kernel "k" and no other. */
static gpu_function *find(const gpu_device *d, arena *a, rt_code *code, const char *symbol) {
  static char function; /* any address; nothing is launched */
  (void)d, (void)a, (void)code;
  return strcmp(symbol, "k") == 0 ? (gpu_function *)&function : NULL;
}

static status load(arena *a, const char *symbol, const config *c, uint32_t n_buffers) {
  static const gpu_device device = {.find = find};
  rt_writer w = {.arena = a};
  rt_put_i64(&w, 0);
  rt_put_text(&w, symbol);
  rt_put_i64(&w, c->abi);
  rt_put_i64(&w, c->threads);
  rt_put_i64(&w, c->step_threads);
  rt_put_i64(&w, c->shared);
  static rt_code *code[1];
  rt_program program = {.n_code = 1};
  rt_loader l = {.arena = a, .program = &program, .device = &device.device, .code = code};
  rt_thunk t = {.kind = "gpu.kernel",
                .config = rt_written(&w),
                .n_buffers = n_buffers,
                .sizes = (const rt_size[]){1},
                .n_sizes = 1};
  return gpu_kernel_load(&t, &l);
}

/* Fails unless the config is refused with this text, or loaded if `text` is NULL. */
static void expect(const char *text, const char *symbol, config c, uint32_t n_buffers) {
  arena *a = arena_create(NULL);
  status s = load(a, symbol, &c, n_buffers);
  ck_assert_msg(!s == !text, "%s: %s", text ? text : "loads", s ? status_message(s) : "no error");
  if (s) {
    ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
    ck_assert_msg(strstr(status_message(s), text) != NULL, "'%s' is not in '%s'", text, status_message(s));
  }
  status_free(s);
  arena_destroy(a);
}

START_TEST(another_abi_is_refused) {
  expect(NULL, "k", (config){RT_BLOCK_ABI, 0, 1, 0}, 2);
  expect("compile the model again", "k", (config){RT_BLOCK_ABI + 1, 0, 1, 0}, 2);
  expect("compile the model again", "k", (config){RT_BLOCK_ABI - 1, 0, 1, 0}, 2);
  expect("compile the model again", "k", (config){RT_BLOCK_ABI + 1, -1, -1, -1}, 2); /* whatever the other
                                                                                        fields are */
}
END_TEST

START_TEST(what_cannot_be_launched_is_refused) {
  expect(NULL, "k", (config){RT_BLOCK_ABI, 1024, 1024, 227 * 1024}, 512);
  expect(NULL, "k", (config){RT_BLOCK_ABI, 512, 32, 0}, 2);
  expect("", "k", (config){RT_BLOCK_ABI, 1056, 1, 0}, 2);
  expect("", "k", (config){RT_BLOCK_ABI, 0, 1, 227 * 1024 + 1}, 2);
  expect("", "k", (config){RT_BLOCK_ABI, -32, 1, 0}, 2);
  expect("1000 threads, 1000 for each step", "k", (config){RT_BLOCK_ABI, 1000, 1000, 0}, 2);
  expect("0 threads, 64 for each step", "k", (config){RT_BLOCK_ABI, 0, 64, 0}, 2);
  expect("513 buffers", "k", (config){RT_BLOCK_ABI, 0, 1, 0}, 513);
  expect("there is no kernel 'other'", "other", (config){RT_BLOCK_ABI, 0, 1, 0}, 2);
}
END_TEST

/* Offsets and sizes are known when a program is bound; those of a damaged file may be anything. */
static void expect_bound(const char *text, rt_size offset, rt_size steps) {
  rt_thunk t = {.buffers = &(rt_buffer){.offset = offset}, .n_buffers = 1, .sizes = &steps, .n_sizes = 1};
  status s = gpu_kernel_bind(&t, NULL);
  ck_assert_msg(!s == !text, "%s: %s", text ? text : "is bound", s ? status_message(s) : "no error");
  ck_assert(!s || (status_get_code(s) == STATUS_INVALID_FILE && strstr(status_message(s), text)));
  status_free(s);
}

START_TEST(what_cannot_be_bound_is_refused) {
  const rt_size most = INT64_MAX / RT_BLOCK_MOST_THREADS;
  expect_bound(NULL, 128, 0);
  expect_bound(NULL, 0, most);
  expect_bound("a buffer is misaligned", 16, 1);
  expect_bound("a buffer is misaligned", 96, 1);
  expect_bound("negative or too large", 64, -1);
  expect_bound("negative or too large", 64, most + 1);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("kernel");
  tcase_add_test(t, another_abi_is_refused);
  tcase_add_test(t, what_cannot_be_launched_is_refused);
  tcase_add_test(t, what_cannot_be_bound_is_refused);
  return run_suite("kernel", t);
}
