/* check_emit_machines.c - compiles kernels for processors other than this one, for which LLVM must be able to
 * select all instructions. check_blocks.c does that for GPUs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/kernel/special.h"
#include "tests/unit/emit/kernel_case.h"

/* --- what a program keeps as code: PTX of a GPU, an object of other machines --- */

static status code_for(const emit_target *t, const char **bytes, size_t *size) {
  const void *code = NULL;
  emit_module *m = NULL;
  emit_kernel_info info;
  kernel_cases c = {0};
  kernel_binary(&c, 0, "add", "f32", "f32", "");
  TRY(emit_module_create(kernel_arena, t, "test", &m));
  TRY(emit_kernel(m, "first", kernel_parse(&c.items[0]), NULL, &info));
  TRY(emit_kernel(m, "second", kernel_parse(&c.items[0]), NULL, &info));
  TRY(emit_module_code(m, &code, size));
  *bytes = code;
  return NULL;
}

static status code_of_programs(void *data) {
  emit_target gpu, cpu;
  const char *text, *object;
  size_t size;
  (void)data;
  TRY(emit_target_nvptx(kernel_arena, "sm_80", &gpu));
  TRY(code_for(&gpu, &text, &size));
  ck_assert(memchr(text, 0, size) == text + size - 1);
  ck_assert(strstr(text, ".visible .entry first(") && strstr(text, ".visible .entry second("));
  TRY(emit_target_init(kernel_arena, "x86_64-linux-gnu", "x86-64", 0, &cpu));
  TRY(code_for(&cpu, &object, &size));
  ck_assert(size > 64 && memcmp(object, "\177ELF", 4) == 0);
  return NULL;
}

START_TEST(code) {
  status s = guard_run(code_of_programs, NULL);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* --- other processors: whether LLVM can select it all --- */

static const char *const triples[][2] = {{"aarch64-unknown-linux-gnu", "generic"},
                                         {"riscv64-unknown-linux-gnu", "generic-rv64"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v2"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v3"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v4"}};

/* Returns the only instruction of a text, without a fusion around it. */
static const hlo_instr *alone(const char *text) {
  kernel_cases c = {0};
  return hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
}

static status add_sorts(emit_module *m, const char *const *types, int n) {
  static const int64_t front[] = {INT64_MAX, 3};
  for (int k = 0; k < 2 * n; k++) {
    const char *t = types[k / 2];
    const hlo_instr *i = alone(
        TEXT("%s[4,99](%%x: %s[4,99]) {\n%%y = sort(%%x) {dimension=%d, descending=true} : %s[4,99]\nreturn %%y\n}", t,
             t, k % 2, t));
    emit_sort config = {.parts = 2, .front = front[k % 2], .iota = -1};
    emit_kernel_info info;
    TRY(emit_sort_kernel(m, TEXT("sort_%s_%d", t, k), i, NULL, &config, 0, &info));
  }
  return NULL;
}

/* Adds the kernels that emit_kernel does not write. */
static status add_special(emit_module *m) {
  emit_kernel_info info;
  TRY(add_sorts(m, kernel_floats, KERNEL_FLOATS));
  TRY(add_sorts(m, kernel_ints, KERNEL_INTS));
  const hlo_instr *i = alone(
      "s64[18,3](%b: f32[2,50,4], %s: f32[2,3,50], %m: s64[], %o: f32[]) {\n"
      "%y, %n = non-max-suppression(%b, %s, %m, %o, %o) {limit=3} : s64[18,3], s64[]\nreturn %y\n}");
  for (uint32_t phase = 0; phase < EMIT_NMS_PHASES; phase++) {
    TRY(emit_nms_kernel(m, TEXT("nms_%u", phase), i, NULL, &(emit_nms){.parts = 2}, phase, &info));
  }
  i = alone("u64[700](%s: u64[1]) {\n%y = rng-bit-generator(%s) {algorithm=mt19937} : u64[700]\nreturn %y\n}");
  return emit_twister_kernel(m, "twister", i, NULL, NULL, 0, &info);
}

static status objects_of_all(void *data) {
  kernel_cases *c = data;
  for (size_t j = 0; j < sizeof triples / sizeof *triples; j++) {
    emit_target t;
    emit_module *m = NULL;
    const void *object;
    size_t size;
    TRY(emit_target_init(kernel_arena, triples[j][0], triples[j][1], 0, &t));
    TRY(emit_module_create(kernel_arena, &t, "test", &m));
    for (uint32_t k = 0; k < c->n; k++) {
      TRY(emit_kernel(m, TEXT("kernel_%u", k), kernel_parse(&c->items[k]), NULL, &c->items[k].info));
    }
    TRY(add_special(m));
    TRY(status_prefix(emit_module_object(m, &object, &size), "%s", triples[j][0]));
    ck_assert(size > 64 && memcmp(object, "\177ELF", 4) == 0);
    const char *folder = getenv("ONNX_XLA_OBJECTS_DIR");
    FILE *f = folder ? fopen(TEXT("%s/%zu.o", folder, j), "w") : NULL;
    if (f) {
      fwrite(object, 1, size, f);
      fclose(f);
    }
  }
  return NULL;
}

START_TEST(other_machines) {
  kernel_cases c = {0};
  kernel_add_all(&c);
  status s = guard_run(objects_of_all, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* --- small stacks --- */

/* Returns the bytes of an alloca: of the first element type in its text, such as "[256 x i32]" or "i32, i64 256". */
static int64_t alloca_bytes(const char *text) {
  static const struct {
    const char *name;
    int64_t bytes;
  } types[] = {{"i8", 1}, {"i16", 2}, {"half", 2}, {"i32", 4}, {"float", 4}, {"i64", 8}, {"double", 8}};
  char type[16];
  long long n = 1;
  if (sscanf(text, "alloca [%lld x %15[a-z0-9]", &n, type) != 2) {
    n = 1;
    ck_assert_msg(sscanf(text, "alloca %15[a-z0-9], i64 %lld", type, &n) >= 1, "%.80s", text);
  }
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    if (strcmp(types[k].name, type) == 0) {
      return n * types[k].bytes;
    }
  }
  ck_abort_msg("%.80s", text);
  return 0;
}

/* The arrays that a kernel has on the stack fit in what the target has, which is a kilobyte for microcontrollers. */
static status stack_of_all(void *data) {
  kernel_cases *c = data;
  emit_target t;
  emit_module *m = NULL;
  const char *text;
  size_t size;
  int64_t sum = 0;
  TRY(emit_target_init(kernel_arena, "thumbv7em-none-eabi", "cortex-m4", 0, &t));
  ck_assert_int_eq(t.stack, 1024);
  TRY(emit_module_create(kernel_arena, &t, "test", &m));
  for (uint32_t k = 0; k < c->n; k++) {
    TRY(emit_kernel(m, TEXT("kernel_%u", k), kernel_parse(&c->items[k]), NULL, &c->items[k].info));
  }
  TRY(add_special(m));
  TRY(emit_module_ir(m, &text, &size));
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    const char *end = strchr(line, '\n'), *found = strstr(line, "alloca ");
    bool here = found && (!end || found < end);
    sum = strncmp(line, "define", 6) == 0 ? 0 : sum + (here ? alloca_bytes(found) : 0);
    ck_assert_msg(sum <= t.stack, "%" PRId64 " bytes: %.80s", sum, line);
  }
  return NULL;
}

START_TEST(small_stacks) {
  kernel_cases c = {0};
  kernel_add_all(&c);
  status s = guard_run(stack_of_all, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* Which targets may call functions for which others: the vectors are as wide, no feature is missing. */
static const struct {
  const char *triple, *cpu, *functions_triple, *functions_cpu;
  bool includes;
} pairs[] = {
    {"x86_64-linux-gnu", "x86-64-v4", "x86_64-linux-gnu", "x86-64-v4", true},
    {"x86_64-linux-gnu", "znver5", "x86_64-linux-gnu", "x86-64-v4", true},
    {"x86_64-linux-gnu", "znver2", "x86_64-linux-gnu", "x86-64-v3", true},
    {"x86_64-linux-gnu", "x86-64-v3", "x86_64-linux-gnu", "znver2", false},
    {"x86_64-linux-gnu", "x86-64-v3", "x86_64-linux-gnu", "x86-64-v4", false},
    {"x86_64-linux-gnu", "x86-64-v4", "x86_64-linux-gnu", "x86-64-v3", false},
    {"x86_64-linux-gnu", "x86-64", "x86_64-linux-gnu", "x86-64", true},
    {"aarch64-linux-gnu", "generic", "x86_64-linux-gnu", "x86-64", false},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

START_TEST(includes) {
  emit_target t, of_functions;
  ASSERT_OK(emit_target_init(kernel_arena, pairs[_i].triple, pairs[_i].cpu, 0, &t));
  ASSERT_OK(emit_target_init(kernel_arena, pairs[_i].functions_triple, pairs[_i].functions_cpu, 0, &of_functions));
  const char *text = emit_target_text(kernel_arena, &of_functions);
  ck_assert_int_eq(emit_target_includes(&t, text), pairs[_i].includes);
  emit_target_make_small(&t);
  ck_assert(!emit_target_includes(&t, text));
}
END_TEST

/* --- changes of features --- */

typedef struct change {
  const char *triple, *cpu, *list, *features; /* `features`: what remains, or with '!' a part of the message */
} change;

static const change changes[] = {
    {"x86_64-linux-gnu", "x86-64-v2", "", "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"},
    {"x86_64-linux-gnu", "x86-64-v2", "+sse3", "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"},
    /* with what it needs */
    {"x86_64-linux-gnu", "x86-64-v2", "+fma", "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+fma,+avx"},
    {"x86_64-linux-gnu", "x86-64", "+avx", "+avx,+sse4.2,+sse4.1,+ssse3,+sse3"},
    /* with what needs it */
    {"x86_64-linux-gnu", "x86-64-v3", "-avx", "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+bmi,+bmi2,+lzcnt,+movbe"},
    {"x86_64-linux-gnu", "x86-64-v4", "-avx512f",
     "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"},
    /* from left to right; a name that begins like another one */
    {"x86_64-linux-gnu", "x86-64-v2", "+avx2,-avx", "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"},
    {"x86_64-linux-gnu", "x86-64-v3", "-bmi",
     "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi2,+f16c,+fma,+lzcnt,+movbe"},
    {"aarch64-linux-gnu", "generic", "+dotprod", "+dotprod"},
    {"aarch64-linux-gnu", "cortex-a76", "-dotprod", ""},
    {"riscv64-linux-gnu", "generic", "+zvfhmin", "+zvfhmin,+v"},
    {"riscv64-linux-gnu", "spacemit-x60", "-v", "+zfhmin"},
    {"wasm32-unknown-unknown", "generic", "+simd128", "+simd128"},
    {"aarch64-linux-gnu", "generic", "+avx", "!unknown feature 'avx' of aarch64; known are +dotprod"},
    {"thumbv6m-none-eabi", "generic", "+dsp", "!known are none"},
    {"x86_64-linux-gnu", "x86-64", "avx", "!feature 'avx' must begin with + or -"},
};
enum { N_CHANGES = sizeof changes / sizeof *changes };

START_TEST(features) {
  const change *c = &changes[_i];
  emit_target t, whole;
  status s = emit_target_init(kernel_arena, c->triple, c->cpu, 0, &t);
  ck_assert(!s);
  s = emit_target_change_features(kernel_arena, c->list, 0, &t);
  if (*c->features == '!') {
    ck_assert(s && strstr(status_message(s), c->features + 1));
    status_free(s);
    return;
  }
  ck_assert_msg(!s, "%s", status_message(s));
  ck_assert_str_eq(t.features, c->features);
  /* The abilities follow: those of a CPU that has these features. */
  if (strcmp(c->list, "-avx512f") == 0) {
    ck_assert(!emit_target_init(kernel_arena, c->triple, "x86-64-v3", 0, &whole));
    ck_assert(t.lanes == whole.lanes && t.registers == whole.registers && t.scalef == whole.scalef);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-machines");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, code);
  tcase_add_test(t, other_machines);
  tcase_add_test(t, small_stacks);
  tcase_add_loop_test(t, includes, 0, N_PAIRS);
  tcase_add_loop_test(t, features, 0, N_CHANGES);
  return run_suite("emit-machines", t);
}
