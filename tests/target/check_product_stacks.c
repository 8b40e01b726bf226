/* check_product_stacks.c - how much of the stack matrix products take on microcontrollers. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "emit/llvm/target.h"
#include "tests/suite.h"
#include "tests/target/machine_modules.h"
#include "tests/target/text_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Returns the bytes that a line of Thumb assembly takes from the stack: by saving registers, or for local variables. */
static int64_t taken_by(const char *line, size_t length) {
  char text[200];
  long long bytes;
  snprintf(text, sizeof text, "%.*s", (int)length, line);
  int64_t registers = 1;
  for (const char *c = text; *c; c++) {
    registers += *c == ',';
  }
  if (strncmp(text, "\tpush", 5) == 0) {
    return 4 * registers;
  }
  if (strncmp(text, "\tvpush", 6) == 0) {
    return (strstr(text, "{s") ? 4 : 8) * registers;
  }
  bool subtracts = sscanf(text, "\tsub%*[.w]\tsp, sp, #%lld", &bytes) == 1 ||
                   sscanf(text, "\tsubw\tsp, sp, #%lld", &bytes) == 1 || sscanf(text, "\tsub\tsp, #%lld", &bytes) == 1;
  return subtracts ? bytes : 0;
}

/* Returns the bytes that the tables of shared kernels ask for (emit/product/shared_kernel.c): each has the address of a
 * function, the number of entries of a record of 8 bytes each, and the bytes of other memory, which is aligned to 64.
 */
static int64_t asked_by_tables(const char *assembly) {
  int64_t most = 0;
  for (const char *at = assembly; (at = strstr(at, "\nrecord")); at++) {
    long long entries = 0, room = 0;
    const char *first = strchr(at + 1, '\n');
    if (sscanf(first, " .long %*s .long 0 .long %lld .long 0 .long %lld", &entries, &room) == 2) {
      most = 8 * entries + room + 128 > most ? 8 * entries + room + 128 : most;
    }
  }
  return most;
}

/* Returns a bound of the stack that the kernel in the assembly takes: the sum of what all its functions take. */
static int64_t stack_of(const char *assembly) {
  int64_t sum = asked_by_tables(assembly);
  for (const char *line = assembly; *line; line += strcspn(line, "\n"), line += *line == '\n') {
    sum += taken_by(line, strcspn(line, "\n"));
  }
  return sum;
}

static const char *const products[] = {
    /* a kernel that has a record on the stack, which no target without the room must build */
    "entry main(%x: f32[n,256], %w: f32[256,96]) {\n%y = dot(%x, %w) " MATMUL
    " : f32[n,96] config=\"gemm:4x1\"\nreturn %y\n}\n",
    "entry main(%x: f32[64,256], %w: f32[256,96]) {\n%y = dot(%x, %w) " MATMUL " : f32[64,96]\nreturn %y\n}\n",
    "entry main(%x: f32[n,256], %w: f32[256,96]) {\n%y = dot(%x, %w) " MATMUL " : f32[n,96]\nreturn %y\n}\n",
    "entry main(%x: f32[n,256], %w: f32[256,m]) {\n%y = dot(%x, %w) " MATMUL
    " : f32[n,m]\n%z = tanh(%y) : f32[n,m]\nreturn %z\n}\n",
    "entry main(%x: f32[b,n,64], %w: f32[b,64,n]) {\n%y = dot(%x, %w) " DOT_OF("0", "0", "2",
                                                                               "1") " : f32[b,n,n]\nreturn %y\n}\n",
    "entry main(%x: f32[n,h,h,16], %w: f32[24,16,3,3]) {\n%y = convolution(%x, %w) " CONV_LAST(
        "1,1", "1,1", "1,1", "1,1", "1,1", "1") " : f32[n,h,h,24]\nreturn %y\n}\n",
    "entry main(%x: u8[n,256], %w: s8[256,96]) {\n%y = dot(%x, %w) " MATMUL " : s32[n,96]\nreturn %y\n}\n",
};
enum { N_PRODUCTS = sizeof products / sizeof *products };

typedef struct product_trial {
  const char *text;
  machine on;
  const char *assembly;
} product_trial;

static status assemble(void *data) {
  product_trial *t = data;
  return machine_assembly(memory, t->text, &t->on, &t->assembly);
}

/* No product takes more of the stack than the target has for rows and tiles, besides the registers that it saves. */
START_TEST(stacks_of_products) {
  enum { SAVED = 128 };
  static const machine machines[] = {{"thumbv7em-none-eabihf", "cortex-m4"},
                                     {"thumbv7em-none-eabihf", "cortex-m7"},
                                     {"thumbv8.1m.main-none-eabihf", "cortex-m55-nomve"}};
  for (size_t k = 0; k < sizeof machines / sizeof *machines; k++) {
    emit_target target;
    ASSERT_OK(emit_target_init(memory, machines[k].triple, machines[k].cpu, 0, &target));
    const char *text = arena_printf(memory, "onnx-xla hlo 1\nmodule \"t\" {\n%s}\n", products[_i]);
    product_trial t = {text, machines[k], NULL};
    status s = guard_run(assemble, &t);
    if (s && strstr(status_message(s), "no config 'gemm:4x1'")) {
      continue;
    }
    ck_assert_msg(!s && t.assembly, "%s", status_message(s));
    int64_t bytes = stack_of(t.assembly);
    ck_assert_msg(bytes > 0 && bytes <= target.stack + SAVED, "%s: %lld bytes", machines[k].cpu, (long long)bytes);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("product-stacks");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, stacks_of_products, 0, N_PRODUCTS);
  return run_suite("product-stacks", t);
}
