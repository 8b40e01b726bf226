/* check_dynamic_m.c - kernels for any number of rows: right for every number, without a load or store outside of their
 * arrays, the same bits for one thread and three, and compiled once for a session. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"
#include "runtime/program/weight_pool.h"
#include "tests/unit/emit/kernel_test.h"

enum { MOST = 10, N_COUNTS = 5, RUNS = 2 };

/* In the texts, ROWS stands for the number of rows and TWICE for half of it, for arrays that have a dimension of 2
 * before it. */
typedef struct row {
  const char *name, *params, *body, *root;
  int counts[N_COUNTS];
  double tolerance; /* relative to the largest magnitude */
} row;

#define RELU "%z = constant() {value=f32[] 0} : f32[]\n%zs = broadcast(%z) {dimensions=[]} : f32[ROWS,80]\n"
/* Numbers of rows of products are such that register blocks of 4 to 6 rows never divide them evenly, so that all get
 * the same block. */
static const row rows[] = {
    {"loop",
     "%a: f32[1,ROWS,256], %b: f32[256]",
     "%c = broadcast(%b) {dimensions=[2]} : f32[1,ROWS,256]\n%d = add(%a, %c) : f32[1,ROWS,256]\n%y = exponential(%d) "
     ": f32[1,ROWS,256]",
     "%y",
     {40, 2, 5, 16, 300},
     1e-6},
    {"two dimensions of rows",
     "%a: f32[2,TWICE,1,512], %m: f32[2,TWICE]",
     "%n = broadcast(%m) {dimensions=[0,1]} : f32[2,TWICE,1,512]\n%y = multiply(%a, %n) : f32[2,TWICE,1,512]",
     "%y",
     {40, 4, 6, 16, 300},
     0},
    {"one list of rows for two dimensions",
     "%a: f32[2,TWICE,512], %m: f32[ROWS]",
     "%r = reshape(%m) : f32[2,TWICE]\n%n = broadcast(%r) {dimensions=[0,1]} : f32[2,TWICE,512]\n%y = subtract(%a, %n) "
     ": f32[2,TWICE,512]",
     "%y",
     {40, 4, 6, 16, 300},
     0},
    {"softmax",
     "%a: f32[1,ROWS,256]",
     "%m = reduce(%a) {dimensions=[2], reducer=maximum} : f32[1,ROWS]\n%mb = broadcast(%m) {dimensions=[0,1]} : "
     "f32[1,ROWS,256]\n"
     "%s = subtract(%a, %mb) : f32[1,ROWS,256]\n%e = exponential(%s) : f32[1,ROWS,256]\n"
     "%t = reduce(%e) {dimensions=[2], reducer=add} : f32[1,ROWS]\n%tb = broadcast(%t) {dimensions=[0,1]} : "
     "f32[1,ROWS,256]\n"
     "%y = divide(%e, %tb) : f32[1,ROWS,256]",
     "%y",
     {40, 2, 5, 16, 300},
     1e-5},
    {"gather",
     "%t: f32[50,320], %i: s64[1,ROWS]",
     "%y = gather(%t, %i) {offset_dims=[2], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=2, sizes=[1,320]} : f32[1,ROWS,320]",
     "%y",
     {40, 2, 5, 16, 300},
     0},
    {"product",
     "%a: f32[1,ROWS,64]",
     "%i = iota() {dimension=0} : f32[64,80]\n%s = constant() {value=f32[] 0.01} : f32[]\n"
     "%sb = broadcast(%s) {dimensions=[]} : f32[64,80]\n%w = multiply(%i, %sb) : f32[64,80]\n"
     "%y = dot(%a, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[2], rhs_contract=[0]} : f32[1,ROWS,80]",
     "%y",
     {161, 301, 157, 1001, 163},
     1e-5},
    {"product of a variable",
     "%a: f32[ROWS,64], %w: f32[64,80]",
     "%d = dot(%a, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[ROWS,80]\n" RELU
     "%y = maximum(%d, %zs) : f32[ROWS,80]",
     "%y",
     {161, 301, 157, 1001, 163},
     1e-5},
};

/* --- a session --- */

typedef struct session {
  const row *row;
  arena *a;
  rt_weight_pool *weight_pool;
  const void *known[MOST]; /* the objects of the first program */
  uint32_t n_known;
  int n; /* rows */
} session;

static const char *text_of(const session *s) {
  char all[16], half[16], *out = arena_alloc(s->a, 1 << 14);
  const char *from = arena_printf(s->a, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%s\nreturn %s\n}\n}\n",
                                  s->row->params, s->row->body, s->row->root);
  char *to = out;
  snprintf(all, sizeof all, "%d", s->n);
  snprintf(half, sizeof half, "%d", s->n / 2);
  while (*from) {
    const char *with = strncmp(from, "ROWS", 4) == 0 ? all : strncmp(from, "TWICE", 5) == 0 ? half : NULL;
    if (with) {
      from += with == all ? 4 : 5;
      to = stpcpy(to, with);
    } else {
      *to++ = *from++;
    }
  }
  *to = '\0';
  return out;
}

static literal random_literal(const shape *x) {
  literal l = {.shape = *x};
  uint8_t *data = guarded_memory((size_t)shape_bytes(x));
  for (int64_t k = 0; k < shape_elements(x); k++) {
    void *at = data + (size_t)k * dtype_bytes((dtype)x->type);
    if (dtype_is_float((dtype)x->type)) {
      dtype_store_f64((dtype)x->type, at, (double)(next_random() % 4001) / 1000 - 2, false, DTYPE_ROUND_NEAREST);
    } else {
      dtype_store_i64((dtype)x->type, at, (int64_t)(next_random() % 50));
    }
  }
  l.data = data;
  return l;
}

static literal run(const session *s, const rt_program *p, const literal *in, uint32_t threads) {
  rt_executable *e;
  rt_thread_pool *pool;
  literal out = {.shape = p->results[0].shape};
  size_t bytes = (size_t)shape_bytes(&out.shape);
  void *result = guarded_memory(bytes), *kept = arena_alloc_aligned(s->a, bytes, 64);
  const void *params[MOST];
  for (uint32_t k = 0; k < p->n_params; k++) {
    params[k] = in[k].data;
  }
  ck_assert_ptr_null(rt_executable_create(p, &cpu_target, NULL, &e));
  ck_assert_ptr_null(rt_thread_pool_create(threads, &pool));
  for (int k = 0; k < RUNS; k++) {
    ck_assert_ptr_null(rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = pool}, params, &result));
  }
  rt_thread_pool_destroy(pool);
  rt_executable_destroy(e);
  out.data = memcpy(kept, result, bytes);
  guarded_free(result, bytes);
  return out;
}

static void compare(const session *s, const literal *want, const literal *got) {
  double most = 0;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    most = fmax(most, fabs(literal_f64(want, k)));
  }
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    double x = literal_f64(want, k), y = literal_f64(got, k);
    ck_assert_msg(fabs(x - y) <= s->row->tolerance * most, "%s, %d rows: element %lld is %.9g, not %.9g", s->row->name,
                  s->n, (long long)k, y, x);
  }
}

/* Fails if an object of the program was not in the first program, since then code was compiled anew. */
static void check_code(session *s, const rt_program *p, bool first) {
  for (uint32_t k = 0; k < p->n_code; k++) {
    bool known = false;
    for (uint32_t j = 0; j < s->n_known; j++) {
      known |= s->known[j] == p->code[k].data;
    }
    ck_assert_msg(first || known, "%s, %d rows: compiled anew", s->row->name, s->n);
    ck_assert_uint_lt(s->n_known, MOST);
    s->known[s->n_known] = p->code[k].data;
    s->n_known += first;
  }
}

static status meet(void *data) {
  session *s = data;
  bool first = s->n == s->row->counts[0];
  const char *text = text_of(s);
  hlo_module *m;
  rt_program *p;
  literal in[MOST], want;
  rt_sharing sharing = {.weight_pool = s->weight_pool};
  rt_compile_options options = {.threads = 2, .eval = ref_fold, .sharing = &sharing};
  TRY(hlo_parse(s->a, text, strlen(text), NULL, &m));
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    in[k] = random_literal(hlo_shape(hlo_result(m->entry->params[k], 0)));
  }
  TRY(ref_eval_computation(m->entry, in, s->a, &want));
  TRY(cpu_compiler.compile((struct hlo_module *)m, &options, s->a, &p, NULL));
  literal one = run(s, p, in, 1), three = run(s, p, in, 3);
  compare(s, &want, &one);
  ck_assert_msg(literal_equal(&one, &three), "%s, %d rows: other bits with three threads", s->row->name, s->n);
  check_code(s, p, first);
  for (uint32_t k = 0; k < p->n_params; k++) {
    guarded_free((void *)(uintptr_t)in[k].data, (size_t)shape_bytes(&in[k].shape));
  }
  return NULL;
}

START_TEST(any_number) {
  session s = {.row = &rows[_i], .a = arena_create(NULL)};
  ck_assert_ptr_null(rt_weight_pool_create(NULL, NULL, &s.weight_pool));
  for (int k = 0; k < N_COUNTS; k++) {
    s.n = s.row->counts[k];
    status failed = guard_run(meet, &s);
    ck_assert_msg(!failed, "%s, %d rows: %s", s.row->name, s.n, status_message(failed));
  }
  rt_weight_pool_destroy(s.weight_pool);
  arena_destroy(s.a);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("rows");
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, any_number, 0, sizeof rows / sizeof *rows);
  return run_suite("rows", all);
}
