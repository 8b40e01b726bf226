/* check_kernels.c - the kernels of a program for a GPU: equal ones are compiled once, to PTX, and every thunk that
 * calls one gets its name and grid, whichever kind the target's thunks have. */
#include <check.h>
#include <string.h>

#include "hlo/text/text.h"
#include "lower/kernels/thunks.h"
#include "runtime/block_abi.h"
#include "tests/suite.h"

static const char kind[] = "test.kernel";

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

/* --- a target each of whose instructions is a kernel --- */

static status emit(lower_context *c, const hlo_instr *i) {
  lower_kernels *kernels = lower_data(c);
  bool done;
  TRY(lower_without_kernel(c, i, "test", &done));
  if (done) {
    return NULL;
  }
  lower_bring_base(c, i);
  rt_thunk *t = lower_kernel_thunk(c, kernels, i);
  ck_assert_str_eq(t->kind, kind);
  return lower_add_kernel(c, kernels, t, i, NULL, NULL);
}

typedef struct compiled {
  const char *text;
  lower_kernels *kernels;
  rt_program *program;
} compiled;

static status compile(void *data) {
  compiled *x = data;
  emit_target *target = ARENA_NEW(a, emit_target);
  hlo_module *m;
  size_table sizes;
  lower_object_code code;
  rt_report report = {0};
  TRY(emit_target_nvptx(a, "sm_80", target));
  TRY(hlo_parse(a, x->text, strlen(x->text), NULL, &m));
  x->kernels = lower_kernels_create(a, target, kind, NULL);
  lower_backend backend = {.target = "test", .emit = emit, .is_view = lower_is_view, .threads = 1, .data = x->kernels};
  TRY(lower_program(m, &backend, a, &sizes, &x->program, &report));
  TRY(lower_kernels_compile(x->kernels, lower_jobs_create(a), 1, 1, &code));
  return lower_kernels_attach_program(&sizes, x->kernels, &code);
}

static compiled compile_text(const char *text) {
  compiled x = {.text = text};
  ASSERT_OK(guard_run(compile, &x));
  return x;
}

/* Returns the name of the kernel that the thunk calls, which must be in the code.  `grid` is its number of threads: of
 * twelve f32 elements, each of three threads computes four where they are neighbours in all arrays. */
static const char *kernel_of(const rt_program *p, const rt_thunk *t, int64_t grid) {
  rt_reader r = rt_reader_make(t->config);
  int64_t object = rt_get_i64(&r);
  const char *name = rt_get_text(&r);
  int64_t abi = rt_get_i64(&r), threads = rt_get_i64(&r), step_threads = rt_get_i64(&r), shared_bytes = rt_get_i64(&r);
  ck_assert(!r.bad && r.at == r.end && abi == RT_BLOCK_ABI && threads >= 0 && step_threads >= 1 && shared_bytes >= 0);
  ck_assert_str_eq(t->kind, kind);
  ck_assert(object >= 0 && object < p->n_code);
  ck_assert(strstr(p->code[object].data, arena_printf(a, ".visible .entry %s(", name)));
  ck_assert(t->n_sizes == 1 && t->sizes[0] == grid);
  return name;
}

/* --- tests --- */

START_TEST(equal_kernels) {
  compiled x = compile_text(
      "onnx-xla hlo 1\n"
      "module \"m\" {\n"
      "  computation yes(%a: f32[12]) {\n"
      "    %r = add(%a, %a) : f32[12]\n"
      "    return %r\n"
      "  }\n"
      "  computation no(%a: f32[12]) {\n"
      "    %r = negate(%a) : f32[12]\n"
      "    return %r\n"
      "  }\n"
      "  entry main(%x: f32[12], %y: f32[12], %p: pred[]) {\n"
      "    %s = add(%x, %y) : f32[12]\n"
      "    %t = add(%s, %y) : f32[12]\n"
      "    %u = conditional(%p, %t) {computations=[yes,no]} : f32[12]\n"
      "    return %u\n"
      "  }\n"
      "}\n");
  const rt_sequence *s = &x.program->body;
  ck_assert(lower_kernels_asked(x.kernels) == 4 && lower_kernels_unique(x.kernels) == 2);
  ck_assert(lower_kernels_found(x.kernels) == 0 && lower_kernels_new_objects(x.kernels) == 1);
  ck_assert_uint_eq(x.program->n_code, 1);
  const rt_span *code = &x.program->code[0];
  ck_assert(memchr(code->data, 0, code->size) == (const char *)code->data + code->size - 1);
  ck_assert(s->n == 3 && s->thunks[2].n_bodies == 2);
  const rt_thunk *yes = &s->thunks[2].bodies[0].thunks[0], *no = &s->thunks[2].bodies[1].thunks[0];
  const char *sum = kernel_of(x.program, &s->thunks[0], 3);
  ck_assert_str_eq(kernel_of(x.program, &s->thunks[1], 3), sum);
  ck_assert_str_eq(kernel_of(x.program, yes, 3), sum); /* the kernel does not depend on whether both operands
                                                          are one value */
  ck_assert_str_ne(kernel_of(x.program, no, 3), sum);
}
END_TEST

/* A transpose that only moves dimensions of one element needs no thunk; other transposes are a kernel. */
START_TEST(views) {
  compiled x = compile_text(
      "onnx-xla hlo 1\n"
      "module \"m\" {\n"
      "  entry main(%x: f32[3,1,4]) {\n"
      "    %a = negate(%x) : f32[3,1,4]\n"
      "    %b = transpose(%a) {permutation=[1,0,2]} : f32[1,3,4]\n"
      "    %c = reshape(%b) : f32[3,4]\n"
      "    %d = broadcast(%c) {dimensions=[0,2]} : f32[3,1,4]\n"
      "    %e = transpose(%d) {permutation=[2,1,0]} : f32[4,1,3]\n"
      "    return %e\n"
      "  }\n"
      "}\n");
  const rt_sequence *s = &x.program->body;
  ck_assert_uint_eq(s->n, 2);
  ck_assert_ptr_nonnull(strstr(kernel_of(x.program, &s->thunks[0], 3), "negate"));
  ck_assert_ptr_nonnull(strstr(kernel_of(x.program, &s->thunks[1], 12), "transpose"));
  ck_assert(lower_same_buffer(&s->thunks[0].buffers[1], &s->thunks[1].buffers[0]));
}
END_TEST

/* The updated operand is first copied to the result, and the kernel then writes two of its twelve
 * elements. */
START_TEST(update) {
  compiled x = compile_text(
      "onnx-xla hlo 1\n"
      "module \"m\" {\n"
      "  entry main(%x: f32[12], %y: f32[2]) {\n"
      "    %at = constant() {value=s64[1] {5}} : s64[1]\n"
      "    %r = dynamic-update-slice(%x, %y, %at) : f32[12]\n"
      "    return %r\n"
      "  }\n"
      "}\n");
  const rt_sequence *s = &x.program->body;
  ck_assert_uint_eq(s->n, 2);
  ck_assert_str_eq(s->thunks[0].kind, "copy");
  const rt_thunk *t = &s->thunks[1];
  (void)kernel_of(x.program, t, 2);
  ck_assert(lower_same_buffer(&t->buffers[0], &t->buffers[t->n_inputs]));
  ck_assert(lower_same_buffer(&s->thunks[0].buffers[1], &t->buffers[0]));
}
END_TEST

/* Each of the many operands of a concatenation is copied, except the empty one. */
START_TEST(many_operands) {
  enum { N = 70, EMPTY = 7 };
  const char *params = "", *operands = "";
  for (int k = 0; k < N; k++) {
    const char *comma = k ? ", " : "";
    params = arena_printf(a, "%s%s%%x%d: f32[2,%d]", params, comma, k, k == EMPTY ? 0 : 1);
    operands = arena_printf(a, "%s%s%%x%d", operands, comma, k);
  }
  compiled x = compile_text(arena_printf(a,
                                         "onnx-xla hlo 1\n"
                                         "module \"m\" {\n"
                                         "  entry main(%s) {\n"
                                         "    %%r = concatenate(%s) {dimension=1} : f32[2,%d]\n"
                                         "    return %%r\n"
                                         "  }\n"
                                         "}\n",
                                         params, operands, N - 1));
  const rt_sequence *s = &x.program->body;
  ck_assert(s->n == N - 1 && lower_kernels_asked(x.kernels) == 0 && x.program->n_code == 0);
  for (uint32_t k = 0; k < s->n; k++) {
    ck_assert_str_eq(s->thunks[k].kind, "copy");
    ck_assert_int_eq(s->thunks[k].buffers[1].offset, k * sizeof(float));
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("kernels");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, equal_kernels);
  tcase_add_test(t, views);
  tcase_add_test(t, update);
  tcase_add_test(t, many_operands);
  return run_suite("kernels", t);
}
