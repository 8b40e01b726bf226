/* check_candidates.c - every config that the cpu target has for a contraction computes what the reference evaluator
 * computes, with the same bits in each run and for any number of threads. */
#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/lower/lower.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "base/hash.h"
#include "hlo/text/text.h"
#include "lower/kernels/thunks.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"
#include "tests/suite.h"
#include "tests/target/candidate_rows.h"
#include "tests/target/text_case.h"

/* The largest error, relative to the largest result.  Inputs and weights are random numbers from -1 to 1.  A sum of k
 * products, each rounded once, differs by about sqrt(k) times 2^-24 of its size from the reference, which adds in
 * another order; k is at most 2304.  Winograd's transforms cost some more bits. */
static const double tolerance = 0x1p-17;

static float rounded(float x, dtype reduced_precision) {
  uint8_t element[8];
  if (!reduced_precision) {
    return x;
  }
  dtype_store_f64(reduced_precision, element, x, false, DTYPE_ROUND_NEAREST);
  return (float)dtype_load_f64(reduced_precision, element);
}

/* Returns random bytes for a type of integers, otherwise random f32 in [-1, 1), which are rounded to reduced_precision
 * unless that is DTYPE_INVALID. */
static literal random_literal(arena *a, shape s, uint64_t seed, dtype reduced_precision) {
  void *data;
  literal l = literal_new(a, s, &data);
  if (dtype_is_int((dtype)s.type)) {
    for (int64_t k = 0; k < shape_bytes(&s); k++) {
      ((uint8_t *)data)[k] = (uint8_t)(hash_mix(seed, (uint64_t)k) >> 56);
    }
    return l;
  }
  for (int64_t k = 0; k < shape_elements(&s); k++) {
    ((float *)data)[k] = rounded((float)((double)(hash_mix(seed, (uint64_t)k) >> 11) * 0x1p-52 - 1), reduced_precision);
  }
  return l;
}

typedef struct weights {
  arena *arena;
  dtype reduced_precision;
} weights;

/* A function for hlo_parse_options.blob: makes the weights. */
static status random_blob(void *data, uint64_t number, const shape *s, const void **bytes) {
  const weights *w = data;
  const dtype_info *type = dtype_get_info((dtype)s->type);
  if (!dtype_is_int((dtype)s->type)) {
    *bytes = random_literal(w->arena, *s, number + 100, w->reduced_precision).data;
    return NULL;
  }
  int8_t *small = arena_alloc(w->arena, (size_t)shape_elements(s));
  for (int64_t k = 0; k < shape_elements(s); k++) { /* the highest type->bits of 8 random bits, with their sign */
    int x = (int8_t)(hash_mix(number, (uint64_t)k) >> 56);
    small[k] = (int8_t)(x >> (8 - type->bits));
  }
  *bytes = small;
  return NULL;
}

/* Writes the text to `out` with $y and $d replaced.  $f and $u stand for the shape $y with the element type f32 or
 * u8. */
static void fill_in(const char *text, const row *r, char *out) {
  int last = -1;
  for (const char *c = r->y; *c; c++) {
    last += *c == ',' || *c == '[';
  }
  for (; *text; text++) {
    if (*text == '$') {
      char what = text[1];
      out += what == 'd'   ? sprintf(out, "%d", last)
             : what == 'y' ? sprintf(out, "%s", r->y)
                           : sprintf(out, "%s%s", what == 'f' ? "f32" : "u8", strchr(r->y, '['));
      text++;
    } else {
      *out++ = *text;
    }
  }
  *out = '\0';
}

/* Writes the concatenation %joined of %s and the result along the innermost dimension. */
static void add_concatenation(const row *r, char *out) {
  int before = (int)(strrchr(r->y, ',') + 1 - r->y);
  out += sprintf(out, "%%joined = concatenate(%%s, %s) ", r->epilogue ? "%r" : "%y");
  fill_in("{dimension=$d} : ", r, out);
  sprintf(out + strlen(out), "%.*s%d]\n", before, r->y, 2 * atoi(r->y + before));
}

/* What the epilogue adds as %s. */
typedef enum addend {
  GIVEN,    /* an input of the program, which nothing may be written over */
  COMPUTED, /* a computed array that nothing else reads: the result may take its memory */
  OPERAND,  /* the contraction's operand, which nothing else reads either */
  VIEW,     /* a reshape of that operand */
  N_RESIDUALS
} addend;

/* Writes the instructions that compute %x and %s from the inputs %x0 and %s0. */
static void add_operands(const row *r, addend residual, char *out) {
  if (residual != GIVEN) {
    out += sprintf(out, "%%x = negate(%%x0) : %s\n", r->x);
  }
  if (residual == COMPUTED) {
    sprintf(out, "%%s = negate(%%s0) : %s\n", r->y);
  } else if (residual == VIEW) {
    sprintf(out, "%%s = reshape(%%x) : %s\n", r->y);
  }
}

/* Replaces all %s by %x, but not in longer names that begin with %s. */
static void add_operand_itself(char *text) {
  while ((text = strstr(text, "%s"))) {
    text[1] = isalnum((unsigned char)text[2]) ? 's' : 'x';
    text += 2;
  }
}

/* Returns the module of a row.  If `placed`, what the row computes is only a part of the module's result. */
static hlo_module *parse(arena *a, const row *r, dtype reduced_precision, bool placed, addend residual) {
  char text[4000], epilogue[ROW] = "", concatenation[200] = "", operands[200] = "";
  const char *kernel = residual == GIVEN ? "" : "0";
  const char *channels = strrchr(r->y, ',') + 1, *root = placed ? "%joined" : r->epilogue ? "%r" : "%y";
  fill_in(r->epilogue ? r->epilogue : "", r, epilogue);
  if (placed) {
    add_concatenation(r, concatenation);
  }
  add_operands(r, residual, operands);
  snprintf(text, sizeof text,
           "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%%x%s: %s \"x\", %%b: f32[%.*s] \"b\", %%s%s: %s \"s\") {\n"
           "%s%%w = constant() {value=%s blob(1)} : %s\n%s%%y = %s : %s\n%s%sreturn %s \"r\"\n}\n}\n",
           kernel, r->x, (int)strcspn(channels, "]"), channels, kernel, r->y, operands, r->w, r->w,
           r->prologue ? r->prologue : "", r->op, r->y, epilogue, concatenation, root);
  if (residual == OPERAND) {
    add_operand_itself(text);
  }
  weights w = {a, reduced_precision};
  hlo_parse_options options = {.blob = random_blob, .blob_data = &w};
  hlo_module *m = NULL;
  status s = hlo_parse(a, text, strlen(text), &options, &m);
  ck_assert_msg(!s, "%s: %s\n%s", r->name, status_message(s), text);
  return m;
}

/* Fuses the epilogue as the pipeline does. */
static void fuse(arena *a, hlo_module *m, const emit_target *t) {
  static rt_compile_options options;
  static cpu_asked asked = {.options = &options};
  static const hlo_target target = {.name = "cpu",
                                    .data = &asked,
                                    .takes_epilogue = cpu_takes_epilogue,
                                    .takes_activation = cpu_takes_activation,
                                    .takes_quantized_weights = cpu_takes_quantized_weights,
                                    .takes_in_place_update = cpu_takes_in_place_update,
                                    .channels_last = true};
  static const hlo_pass steps[] = {HLO_STEP(epilogue), HLO_STEP(concat_in_place), HLO_STEP(dce)};
  pass_context c = {.arena = a, .target = &target, .any_order = true, .verify = true};
  asked.target = t;
  status s = hlo_run_passes(m, steps, sizeof steps / sizeof *steps, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}

/* --- one config --- */

/* A CPU and vector width for which code is written. */
typedef struct machine {
  const char *cpu;
  int lanes;
} machine;
static const machine machines[] = {{"native", 0}, {"native", 8}, {"native", 4}, {"native", 1}, {"x86-64", 0}};
enum { N_MACHINES = sizeof machines / sizeof *machines };

typedef struct attempt {
  const row *row;
  const machine *machine;
  uint32_t config, n_configs;
  bool placed; /* the result is a part of a larger one */
  addend residual;
  dtype reduced_precision; /* only configs that round operands to this type are tried; DTYPE_INVALID: only configs that
                              do not round them */
  emit_target target;
  char name[80];
  rt_program *program;
} attempt;

/* Gives the module's contraction the config with the number t->config. */
static status choose(attempt *t, arena *a, hlo_module *m, const cpu_problem_options *options) {
  cpu_config *configs;
  cpu_problem p;
  hlo_instr *i = m->entry->first;
  while (!cpu_problem_of(i, options, &p)) {
    i = i->next;
  }
  t->n_configs = cpu_list_configs(a, &p, &configs);
  CHECK_THAT(t->config < t->n_configs, STATUS_UNSUPPORTED, "no such config");
  CHECK_THAT(!t->reduced_precision || configs[t->config].algorithm == &cpu_reduced_precision_algorithm,
             STATUS_UNSUPPORTED, "not of reduced precision");
  i->config = cpu_config_name(a, &configs[t->config]);
  snprintf(t->name, sizeof t->name, "%s", i->config);
  return NULL;
}

static status compile(attempt *t, arena *a, hlo_module *m) {
  cpu_problem_options problems = {
      .target = &t->target, .threads = 3, .numerics.reduced_precision = t->reduced_precision};
  lower_kernels *kernels = lower_kernels_create(a, &t->target, "cpu.kernel", NULL);
  cpu_plans *plans = cpu_plans_create(a, &problems);
  lower_jobs *jobs = lower_jobs_create(a);
  cpu_lower_options options = {.target = &t->target, .threads = 3, .plans = plans, .jobs = jobs};
  rt_report report = {0};
  size_table sizes;
  lower_object_code code;
  TRY(choose(t, a, m, &problems));
  TRY(cpu_plans_build_given(plans, m));
  TRY(cpu_lower(m, kernels, &options, a, &sizes, &t->program, &report));
  TRY(lower_kernels_compile(kernels, jobs, 1, 1, &code));
  TRY(lower_kernels_attach_program(&sizes, kernels, &code));
  t->program->cpu = code.n ? emit_target_text(a, &t->target) : "";
  return NULL;
}

static literal run(const attempt *t, arena *a, const literal *in, uint32_t threads) {
  rt_executable *e;
  rt_thread_pool *pool;
  void *result;
  literal out = literal_new(a, t->program->results[0].shape, &result);
  const void *params[] = {in[0].data, in[1].data, in[2].data};
  memset(result, 0x5a, (size_t)shape_bytes(&out.shape));
  status s = rt_executable_create(t->program, &cpu_target, NULL, &e);
  ck_assert_msg(!s, "%s, %s: %s", t->row->name, t->name, status_message(s));
  ck_assert_ptr_null(rt_thread_pool_create(threads, &pool));
  for (int k = 0; k < 2 && !s; k++) {
    s = rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = pool}, params, &result);
  }
  ck_assert_msg(!s, "%s, %s: %s", t->row->name, t->name, status_message(s));
  rt_thread_pool_destroy(pool);
  rt_executable_destroy(e);
  return out;
}

static void compare(const attempt *t, const literal *want, const literal *got) {
  double most = 0;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    most = fmax(most, fabs(literal_f64(want, k)));
  }
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    double x = literal_f64(want, k), y = literal_f64(got, k);
    ck_assert_msg(fabs(x - y) <= tolerance * most, "%s, %s: element %lld is %.9g, not %.9g", t->row->name, t->name,
                  (long long)k, y, x);
  }
}

/* Runs the row with config number t->config and compares the results.  Modules are parsed anew each time, since passes
 * and lowering change them. */
static status try_config(void *data) {
  attempt *t = data;
  arena *a = arena_create(NULL);
  hlo_module *m = parse(a, t->row, DTYPE_INVALID, t->placed, t->residual);
  hlo_module *rounded_m = parse(a, t->row, t->reduced_precision, t->placed, t->residual);
  literal in[3], rounded_in[3], want;
  for (uint32_t k = 0; k < 3; k++) { /* the operand, bias, residual */
    shape s = *hlo_shape(hlo_result(m->entry->params[k], 0));
    in[k] = random_literal(a, s, k, DTYPE_INVALID);
    rounded_in[k] = random_literal(a, s, k, k == 0 ? t->reduced_precision : DTYPE_INVALID);
  }
  ck_assert_ptr_null(ref_eval_computation(rounded_m->entry, rounded_in, a, &want));
  ck_assert_ptr_null(emit_target_init(a, NULL, t->machine->cpu, t->machine->lanes, &t->target));
  fuse(a, m, &t->target);
  status s = compile(t, a, m);
  if (!s) {
    literal one = run(t, a, in, 1), three = run(t, a, in, 3);
    compare(t, &want, &one);
    ck_assert_msg(literal_equal(&one, &three), "%s, %s: other bits with three threads", t->row->name, t->name);
  }
  bool impossible = s && (status_get_code(s) & STATUS_CODE_MASK) == STATUS_UNSUPPORTED;
  ck_assert_msg(!s || impossible, "%s, %s: %s", t->row->name, t->name, status_message(s));
  status_free(s);
  arena_destroy(a);
  return NULL;
}

static void try_all(attempt *t) {
  for (t->n_configs = 1; t->config < t->n_configs; t->config++) {
    ck_assert_ptr_null(guard_run(try_config, t));
  }
}

START_TEST(every_plan) {
  attempt t = {.row = &rows[_i], .machine = machines};
  try_all(&t);
  ck_assert_uint_ge(t.n_configs, 1);
}
END_TEST

/* Each config writes its result into a part of a larger array, on some of the machines. */
START_TEST(every_plan_in_place) {
  for (int k = 0; k < N_MACHINES && *rows[_i].y == 'f'; k += 2) {
    attempt t = {.row = &rows[_i], .machine = &machines[k], .n_configs = 1, .placed = true};
    for (; t.config < t.n_configs; t.config++) {
      ck_assert_ptr_null(guard_run(try_config, &t));
    }
  }
}
END_TEST

/* The result may be written over the residual, unless the contraction reads the residual's memory, too. */
START_TEST(every_plan_over_its_residual) {
  const row *r = &rows[_i];
  bool adds = r->epilogue && strstr(r->epilogue, "%s)"), square = adds && strcmp(r->x, r->y) == 0;
  for (addend one = COMPUTED; adds && one < (square ? N_RESIDUALS : OPERAND); one++) {
    attempt t = {.row = r, .machine = machines, .residual = one};
    try_all(&t);
  }
}
END_TEST

/* Contractions of bytes at all widths, with instructions that multiply bytes and without. */
START_TEST(every_machine) {
  for (int k = 1; k < N_MACHINES && *rows[_i].x != 'f'; k++) {
    attempt t = {.row = &rows[_i], .machine = &machines[k]};
    try_all(&t);
  }
}
END_TEST

/* With both operands rounded beforehand, products are exact in f32, and the tolerance is that of f32. */
START_TEST(every_reduced_precision_plan) {
  static const dtype types[] = {DTYPE_BF16, DTYPE_F16};
  for (int k = 0; k < 2 && *rows[_i].x == 'f'; k++) {
    attempt t = {.row = &rows[_i], .machine = machines, .reduced_precision = types[k]};
    try_all(&t);
  }
}
END_TEST

/* Sets *p to the row's contraction as the tuner gets it. */
static void read_problem(arena *a, const row *r, emit_target *target, cpu_problem *p) {
  hlo_module *m = parse(a, r, DTYPE_INVALID, false, GIVEN);
  ck_assert_ptr_null(emit_target_init(a, NULL, "native", 0, target));
  fuse(a, m, target);
  hlo_instr *i = m->entry->first;
  cpu_problem_options options = {.target = target, .threads = 2};
  while (i && !cpu_problem_of(i, &options, p)) {
    i = i->next;
  }
  ck_assert_ptr_nonnull(i);
}

/* No two configs have the same name, each has an estimate, and reduced precision is never the first. */
START_TEST(names_differ) {
  arena *a = arena_create(NULL);
  emit_target target;
  cpu_problem p;
  cpu_config *configs;
  read_problem(a, &rows[_i], &target, &p);
  p.options.numerics.reduced_precision = DTYPE_BF16;
  uint32_t n = cpu_list_configs(a, &p, &configs);
  for (uint32_t k = 0; k < n; k++) {
    ck_assert(isfinite(configs[k].estimate) && configs[k].estimate > 0);
    ck_assert_msg(k > 0 || configs[k].algorithm != &cpu_reduced_precision_algorithm, "a narrow way is the best guess");
    for (uint32_t j = 0; j < k; j++) {
      ck_assert_str_ne(cpu_config_name(a, &configs[k]), cpu_config_name(a, &configs[j]));
    }
  }
  arena_destroy(a);
}
END_TEST

static uint32_t winograd_configs(arena *a, const cpu_problem *p) {
  cpu_config *configs;
  uint32_t n = cpu_list_configs(a, p, &configs), found = 0;
  for (uint32_t k = 0; k < n; k++) {
    found += configs[k].algorithm == &cpu_winograd_algorithm;
  }
  return found;
}

/* A contraction that must be exact is not computed by Winograd's algorithm, which rounds differently from a sum of
 * products; nor is one whose weights are whole numbers, since it may be a sum of integers. */
START_TEST(exact_means_no_winograd) {
  const row *r = rows;
  while (strcmp(r->name, "3x3") != 0) {
    r++;
  }
  arena *a = arena_create(NULL);
  emit_target target;
  cpu_problem p;
  read_problem(a, r, &target, &p);
  ck_assert_uint_gt(winograd_configs(a, &p), 0);
  p.options.numerics.exact = true;
  ck_assert_uint_eq(winograd_configs(a, &p), 0);
  p.options.numerics.exact = false;
  const literal *w = hlo_literal(p.instr->operands[p.weights]);
  for (int64_t k = 0; k < shape_elements(&w->shape); k++) {
    ((float *)w->data)[k] = (float)(k % 7 - 3);
  }
  ck_assert_uint_eq(winograd_configs(a, &p), 0);
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("candidates");
  tcase_set_timeout(c, 60); /* a row compiles some dozens of programs */
  tcase_add_loop_test(c, every_plan, 0, N_ROWS);
  tcase_add_loop_test(c, every_plan_in_place, 0, N_ROWS);
  tcase_add_loop_test(c, every_plan_over_its_residual, 0, N_ROWS);
  tcase_add_loop_test(c, every_machine, 0, N_ROWS);
  tcase_add_loop_test(c, every_reduced_precision_plan, 0, N_ROWS);
  tcase_add_loop_test(c, names_differ, 0, N_ROWS);
  tcase_add_test(c, exact_means_no_winograd);
  return run_suite("candidates", c);
}
