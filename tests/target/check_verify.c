/* check_verify.c - verify finds faults that were put into a backend on purpose, and names the instruction and the kind
 * of cause.  It finds nothing where nothing is wrong: in control flow, in groups that run at the same time, in sorts of
 * which only the first elements are read.  This is tested on the CPU, and on a device whose memory the host cannot
 * access. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_gpu/compile/target.h"
#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/memory.h"
#include "tests/suite.h"
#include "verify/verify.h"

/* --- a backend with a fault: the sound backend, except for the fault `planted` --- */

static const rt_backend cpu = {.abi = RT_ABI, .target = &cpu_target, .compiler = &cpu_compiler};
static const rt_backend *sound;

enum { ON_CPU, ON_EMULATED_GPU, N_BACKENDS };

static void choose_backend(int number) {
  sound = &cpu;
  if (number == ON_EMULATED_GPU) {
    status s = gpu_find_backend("gpu:host", &sound);
    ck_assert_msg(!s && sound, "%s", s ? status_message(s) : "there is no emulator");
  }
}

typedef enum fault { NO_FAULT, IN_KERNEL, IN_ALGORITHM, IN_PLACE, IN_PASS } fault;

static fault planted;
static bool may_be_in_place, is_second_algorithm, tells_origins = true;
static uint32_t unsupported; /* the number of the algorithm that cannot be built; 0: none */

static bool lies_over_input(const rt_thunk *t) {
  for (uint32_t k = 0; k < t->n_inputs; k++) {
    const rt_buffer *in = &t->buffers[k], *out = &t->buffers[t->n_inputs];
    if (in->space == out->space && in->index == out->index && in->offset == out->offset) {
      return true;
    }
  }
  return false;
}

static bool is_bad(const rt_thunk *t, const rt_run *r) {
  const rt_program *p = r->program;
  return t->n_nodes && strncmp(p->nodes[t->nodes[0]].text, "bad", 3) == 0;
}

/* Returns true if this thunk must compute something wrong. */
static bool is_faulty(const rt_thunk *t, const rt_run *r) {
  switch (planted) {
    case IN_KERNEL: return is_bad(t, r);
    case IN_ALGORITHM: return is_bad(t, r) && !is_second_algorithm;
    case IN_PLACE: return is_bad(t, r) && may_be_in_place && lies_over_input(t);
    default: return false;
  }
}

static const rt_thunk_kind *kind_of(const char *name) {
  for (uint32_t k = 0; k < sound->target->n_kinds; k++) {
    if (strcmp(sound->target->kinds[k].name, name) == 0) {
      return &sound->target->kinds[k];
    }
  }
  return NULL;
}

static status run_faulty(const rt_thunk *t, rt_run *r) {
  float number;
  TRY(kind_of(t->kind)->run(t, r));
  if (is_faulty(t, r)) {
    void *result = rt_address(r, &t->buffers[t->n_inputs]);
    TRY(rt_memory_read(r, &number, result, sizeof number));
    number += 1;
    TRY(rt_memory_copy(r->device, r->stream, RT_UPLOAD, result, &number, sizeof number));
    return rt_memory_await(r->device, r->stream, r->budget, NULL);
  }
  return NULL;
}

/* Does what a wrong pass could do: makes the addition of node "bad" a subtraction. */
static status change_module(hlo_module *m, const rt_compile_options *o) {
  if (o->dump) {
    TRY(o->dump(o->dump_data, "000-before.hlo", (const struct hlo_module *)m));
  }
  HLO_FOR_EACH(i, m->entry) {
    if (i->op == HLO_ADD && strcmp(i->source, "bad") == 0) {
      i->op = HLO_SUB;
    }
  }
  return o->dump ? o->dump(o->dump_data, "001-subtracting.hlo", (const struct hlo_module *)m) : NULL;
}

static status compile_faulty(struct hlo_module *m, const rt_compile_options *o, arena *a, rt_program **out,
                             rt_report *report) {
  may_be_in_place = !o->out_of_place;
  is_second_algorithm = o->algorithm == 2;
  rt_compile_options options = *o;
  options.origins = tells_origins ? o->origins : NULL;
  TRY(planted == IN_PASS ? change_module((hlo_module *)m, o) : NULL);
  TRY(sound->compiler->compile(m, &options, a, out, report));
  CHECK_THAT(!unsupported || o->algorithm != unsupported, STATUS_UNSUPPORTED, "it cannot be built");
  (*out)->target = "faulty";
  return NULL;
}

enum { MOST_KINDS = 16 };
static rt_thunk_kind kinds[MOST_KINDS];
static rt_target faulty_target;
static const rt_compiler faulty_compiler = {.abi = RT_ABI, .name = "faulty", .compile = compile_faulty};
static const rt_backend faulty = {.abi = RT_ABI, .target = &faulty_target, .compiler = &faulty_compiler};

static void make_faulty(fault f) {
  planted = f;
  faulty_target = *sound->target;
  faulty_target.name = "faulty";
  faulty_target.kinds = kinds;
  ck_assert_uint_le(sound->target->n_kinds, MOST_KINDS);
  for (uint32_t k = 0; k < sound->target->n_kinds; k++) {
    kinds[k] = sound->target->kinds[k];
    kinds[k].run = run_faulty;
  }
}

/* --- verifying --- */

typedef struct trial {
  const char *text, *folder;
  bool all_algorithms;
  arena *a;
  verify_report report;
} trial;

static status import(void *data, arena *a, hlo_module **out) {
  const char *text = ((trial *)data)->text;
  return hlo_parse(a, text, strlen(text), NULL, out);
}

static literal random_literal(arena *a, const shape *s, uint32_t seed) {
  void *data;
  literal l = literal_new(a, *s, &data);
  dtype t = (dtype)s->type;
  for (int64_t k = 0; k < shape_elements(s); k++) {
    seed = seed * 1664525u + 1013904223u;
    dtype_store_f64(t, (char *)data + (size_t)k * dtype_bytes(t), (double)(seed >> 8) * 0x1p-23 - 1, true,
                    DTYPE_ROUND_NEAREST);
  }
  return l;
}

static status verify(void *data) {
  trial *t = data;
  hlo_module *m;
  TRY(import(t, t->a, &m));
  literal *inputs = ARENA_NEW_N(t->a, literal, m->entry->n_params + 1);
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    inputs[k] = random_literal(t->a, hlo_shape(hlo_result(m->entry->params[k], 0)), k);
  }
  verify_options o = {
      .backend = &faulty, .compile = {.threads = 1}, .folder = t->folder, .all_algorithms = t->all_algorithms};
  return verify_module(t->a, import, t, inputs, &o, &t->report);
}

static trial run_trial(const char *text, fault f, const char *folder) {
  trial t = {.text = text, .folder = folder, .a = arena_create(NULL)};
  make_faulty(f);
  status s = guard_run(verify, &t);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  return t;
}

#define MODULE(body) "onnx-xla hlo 1\nmodule \"m\" {\n" body "}\n"
#define ONES_3_3                                                                             \
  "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, " \
  "layout=channels-last"

/* --- where nothing is wrong --- */

static const char *const right[] = {
    MODULE("entry main(%x: f32[8,32]) {\n%e = exponential(%x) : f32[8,32]\n%s = reduce(%e) {dimensions=[1], "
           "reducer=add} : f32[8]\n"
           "%b = broadcast(%s) {dimensions=[0]} : f32[8,32]\n%y = divide(%e, %b) : f32[8,32]\nreturn %y\n}\n"),
    /* a loop, whose condition reads what its body computes */
    MODULE("computation low(%i: s32[], %v: f32[4]) {\n%n = constant() {value=s32[] 5} : s32[]\n"
           "%p = compare(%i, %n) {comparison=lt} : pred[]\nreturn %p\n}\n"
           "computation step(%i: s32[], %v: f32[4]) {\n%one = constant() {value=s32[] 1} : s32[]\n%j = "
           "add(%i, %one) : s32[]\n"
           "%w = tanh(%v) : f32[4]\n%u = reverse(%w) {dimensions=[0]} : f32[4]\nreturn %j, %u\n}\n"
           "entry main(%x: f32[4]) {\n%z = constant() {value=s32[] 0} : s32[]\n"
           "%w, %v = while(%z, %x) {computations=[low, step]} : s32[], f32[4]\n%y = negate(%v) : "
           "f32[4]\nreturn %y, %w\n}\n"),
    MODULE("computation yes(%v: f32[4]) {\n%w = exponential(%v) : f32[4]\nreturn %w\n}\n"
           "computation no(%v: f32[4]) {\n%w = negate(%v) : f32[4]\nreturn %w\n}\n"
           "entry main(%x: f32[4], %p: pred[]) {\n%y = conditional(%p, %x) {computations=[yes, no]} : "
           "f32[4]\nreturn %y\n}\n"),
    /* only the first elements of the sorted lines are defined */
    MODULE("entry main(%x: f32[3,100]) {\n%s = sort(%x) {dimension=1, descending=true} : f32[3,100]\n"
           "%f = slice(%s) {starts=[0,0], limits=[3,4], strides=[1,1]} : f32[3,4]\nreturn %f\n}\n"),
    MODULE("entry main(%x: f32[16,64], %w: f32[64,64], %v: f32[64,64]) {\n"
           "%a = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[16,64]\n"
           "%b = dot(%x, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[16,64]\n"
           "%c = concatenate(%a, %b) {dimension=1} : f32[16,128]\n%t = tanh(%c) : f32[16,128]\nreturn %t\n}\n"),
    /* a logistic function whose denormal numbers the reference rounds before it multiplies them */
    MODULE("entry main(%x: f32[300], %y: f32[300]) {\n%k = constant() {value=f32[] 9} : f32[]\n"
           "%c = constant() {value=f32[] -95} : f32[]\n%l = constant() {value=f32[] 1e33} : f32[]\n"
           "%ks = broadcast(%k) {dimensions=[]} : f32[300]\n%cs = broadcast(%c) {dimensions=[]} : f32[300]\n"
           "%ls = broadcast(%l) {dimensions=[]} : f32[300]\n%a = multiply(%y, %ks) : f32[300]\n"
           "%b = add(%a, %cs) : f32[300]\n%h = multiply(%x, %ls) : f32[300]\n%g = logistic(%b) : f32[300]\n"
           "%r = multiply(%h, %g) : f32[300]\nreturn %r\n}\n"),
};
enum { N_RIGHT = sizeof right / sizeof *right };

START_TEST(nothing_is_found_where_nothing_is_wrong) {
  choose_backend(_i / N_RIGHT);
  trial t = run_trial(right[_i % N_RIGHT], NO_FAULT, NULL);
  ck_assert_msg(t.report.n_different == 0, "%s: %s", t.report.findings[0].instruction, t.report.findings[0].difference);
  ck_assert_uint_gt(t.report.n_instructions, 0);
  arena_destroy(t.a);
}
END_TEST

/* --- faults --- */

static const char chain[] = MODULE(
    "entry main(%x: f32[6,40]) {\n%a = reduce(%x) {dimensions=[0], reducer=add} : f32[40] @\"good\"\n"
    "%b = sort(%a) {dimension=0, descending=false} : f32[40] @\"sorted\"\n%c = tanh(%b) : f32[40] @\"bad\"\n"
    "%d = sort(%c) {dimension=0, descending=true} : f32[40] @\"later\"\n%e = exponential(%d) : f32[40] "
    "@\"last\"\nreturn %e\n}\n");
static const char convolution[] = MODULE(
    "entry main(%x: f32[1,14,14,32], %w: f32[32,32,3,3]) {\n%a = tanh(%x) : f32[1,14,14,32] @\"good\"\n"
    "%y = convolution(%a, %w) {" ONES_3_3 "} : f32[1,14,14,32] @\"bad\"\nreturn %y\n}\n");
static const char addition[] = MODULE(
    "entry main(%x: f32[6,40], %y: f32[6,40]) {\n%a = tanh(%x) : f32[6,40] @\"good\"\n"
    "%b = add(%a, %y) : f32[6,40] @\"bad\"\n%c = exponential(%b) : f32[6,40] @\"later\"\nreturn %c\n}\n");

typedef struct row {
  int backend;
  fault planted;
  const char *text;
  verify_cause cause;
} row;

static const row rows[] = {
    {ON_CPU, IN_KERNEL, chain, VERIFY_KERNEL},
    {ON_CPU, IN_PLACE, chain, VERIFY_BUFFER},
    {ON_CPU, IN_ALGORITHM, convolution, VERIFY_ALGORITHM},
    {ON_CPU, IN_PASS, addition, VERIFY_PASS},
    {ON_EMULATED_GPU, IN_KERNEL, chain, VERIFY_KERNEL},
    {ON_EMULATED_GPU, IN_PLACE, chain, VERIFY_BUFFER},
    {ON_EMULATED_GPU, IN_PASS, addition, VERIFY_PASS},
};
enum { N_FAULTS = sizeof rows / sizeof *rows };

/* The module that verify has written for a finding shows the same fault when it is itself verified with the inputs in
 * its file. */
static void check_module(const row *r, const verify_finding *f) {
  static char text[20000];
  FILE *file = fopen(f->module.file, "r");
  ck_assert_msg(file, "%s cannot be read", f->module.file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  trial again = run_trial(text, r->planted, NULL);
  ck_assert_uint_eq(again.report.n_different, 1);
  ck_assert_int_eq(again.report.findings[0].cause, r->cause);
  arena_destroy(again.a);
}

static void remove_files(const char *folder, const verify_finding *f) {
  for (uint32_t k = 0; k < f->module.n_inputs; k++) {
    ck_assert_int_eq(unlink(f->module.inputs[k]), 0);
  }
  ck_assert_int_eq(unlink(f->module.file), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(a_fault_is_named) {
  const row *r = &rows[_i];
  char folder[] = "verify-XXXXXX";
  choose_backend(r->backend);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  trial t = run_trial(r->text, r->planted, folder);
  /* Instructions after the faulty one are right for the operands that they get. */
  ck_assert_uint_eq(t.report.n_different, 1);
  const verify_finding *f = &t.report.findings[0];
  ck_assert_msg(strncmp(f->node, "bad", 3) == 0, "node '%s', %s", f->node, f->instruction);
  ck_assert_msg(f->cause == r->cause, "%s", f->why);
  ck_assert_ptr_nonnull(f->module.file);
  ck_assert_str_eq(f->sources[f->n_sources - 1], "bad");
  check_module(r, f);
  remove_files(folder, f);
  arena_destroy(t.a);
}
END_TEST

static verify_report try_all(fault f, uint32_t without) {
  trial t = {.text = convolution, .all_algorithms = true, .a = arena_create(NULL)};
  make_faulty(f);
  unsupported = without;
  ck_assert_ptr_null(guard_run(verify, &t));
  unsupported = 0;
  arena_destroy(t.a);
  return t.report;
}

/* A wrong algorithm is found even though the program uses another one.  Each is found once, also the one that is wrong
 * in the program. */
START_TEST(all_algorithms_are_tried) {
  verify_report r = try_all(IN_ALGORITHM, 0);
  ck_assert_uint_gt(r.n_algorithms, 1);
  ck_assert_uint_ge(r.n_different, r.n_algorithms - 1);
  ck_assert_uint_eq(try_all(IN_KERNEL, 0).n_different, r.n_algorithms);
}
END_TEST

/* Algorithms that the backend cannot build are passed over.  An algorithm may have several numbers, since it takes the
 * place of others that the backend cannot build. */
START_TEST(some_algorithms_cannot_be_built) {
  uint32_t all = try_all(NO_FAULT, 0).n_algorithms, without = 0;
  for (uint32_t k = 1; k <= 2 * all; k++) {
    verify_report r = try_all(NO_FAULT, k);
    ck_assert(r.n_algorithms == all || r.n_algorithms == all - 1);
    ck_assert_uint_eq(r.n_different, 0);
    without += r.n_algorithms < all;
  }
  ck_assert_uint_gt(without, 0);
}
END_TEST

/* Verifying a backend whose instructions cannot be compared fails, and does not report that nothing is wrong. */
START_TEST(a_backend_must_tell_what_its_thunks_compute) {
  trial t = {.text = chain, .a = arena_create(NULL)};
  make_faulty(NO_FAULT);
  tells_origins = false;
  status s = guard_run(verify, &t);
  ck_assert_int_eq(status_get_code(s), STATUS_UNSUPPORTED);
  ck_assert_str_eq(status_message(s), "backend faulty does not tell which instruction a thunk computes");
  status_free(s);
  arena_destroy(t.a);
}
END_TEST

/* A finding names the nodes of the faulty computation (Add and Tanh), but not the nodes from which a constant in it
 * comes. */
START_TEST(sources_are_those_of_what_is_computed) {
  static const char text[] = MODULE(
      "entry main(%x: f32[6,40]) {\n%h = constant() {value=f32[] 0.5} : f32[] @\"far: Constant\"\n"
      "%r = broadcast(%h) {dimensions=[]} : f32[6,40] @\"far: Mul\"\n%a = add(%x, %r) : f32[6,40] @\"bad: "
      "Add\"\n"
      "%b = tanh(%a) : f32[6,40] @\"near: Tanh\"\nreturn %b\n}\n");
  trial t = run_trial(text, IN_KERNEL, NULL);
  ck_assert_uint_eq(t.report.n_findings, 1);
  const verify_finding *f = &t.report.findings[0];
  ck_assert_uint_eq(f->n_sources, 2);
  ck_assert_str_eq(f->sources[0], "bad: Add");
  ck_assert_str_eq(f->sources[1], "near: Tanh");
  arena_destroy(t.a);
}
END_TEST

static void choose_cpu(void) { choose_backend(ON_CPU); }

int main(void) {
  TCase *c = tcase_create("verify");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, choose_cpu, NULL);
  tcase_add_loop_test(c, nothing_is_found_where_nothing_is_wrong, 0, N_BACKENDS * N_RIGHT);
  tcase_add_loop_test(c, a_fault_is_named, 0, N_FAULTS);
  tcase_add_test(c, all_algorithms_are_tried);
  tcase_add_test(c, some_algorithms_cannot_be_built);
  tcase_add_test(c, sources_are_those_of_what_is_computed);
  tcase_add_test(c, a_backend_must_tell_what_its_thunks_compute);
  return run_suite("verify", c);
}
