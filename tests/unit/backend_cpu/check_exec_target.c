/* check_exec_target.c - the processors whose programs the cpu target accepts; tests/e2e/test-cpus tests whole
 * programs. */
#include <check.h>
#include <string.h>

#include "backend_cpu/runtime/target.h"
#include "tests/suite.h"

#if defined(__x86_64__)
#define HERE "x86_64-pc-linux-gnu"
#define THERE "aarch64-unknown-linux-gnu"
#else
#define HERE "aarch64-unknown-linux-gnu"
#define THERE "x86_64-pc-linux-gnu"
#endif

static const struct {
  const char *cpu, *error; /* NULL if the program is accepted */
} rows[] = {
    {"", NULL},
    {HERE " any  4", NULL},
    {HERE " any +telepathy 4", "'+telepathy', which this onnx-xla does not know"},
    {HERE " any +avx9,+telepathy 4", "'+avx9'"},
    {HERE " any + 4", "'+'"},
    {HERE " any ,, 4", "''"},
    {HERE " any -avx 4", "'-avx'"},
    {HERE " any avx 4", "'avx'"},
    {HERE " any", "no processor"},
    {HERE, "no processor"},
    {THERE " any  4", "but this machine is"},
    {"riscv64-unknown-linux-gnu generic-rv64 +m,+a,+f,+d,+c 1", "but this machine is"},
};

START_TEST(processors) {
  status s = cpu_target.check_cpu(NULL, rows[_i].cpu);
  if (!rows[_i].error) {
    ck_assert_msg(!s, "%s: %s", rows[_i].cpu, status_message(s));
    return;
  }
  ck_assert_msg(s != NULL, "%s is taken", rows[_i].cpu);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
  ck_assert_msg(strstr(status_message(s), rows[_i].error) != NULL, "%s: %s", rows[_i].cpu, status_message(s));
  status_free(s);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("exec_target");
  tcase_add_loop_test(c, processors, 0, sizeof rows / sizeof *rows);
  return run_suite("exec_target", c);
}
