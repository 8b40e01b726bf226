/* check_product.c - dots and convolutions as products in blocks (emit/product.h) against the reference evaluator: forms of
 * operands, remainders, epilogues, vector widths and processors, weights packed and plain.  Arrays end right before memory that
 * must not be touched; the grid is walked in parts of random size. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend_ref/eval.h"
#include "emit/product.h"
#include "hlo/text.h"
#include "runtime/code_loader.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* --- cases --- */

typedef struct product_case {
  const char *x, *w, *attributes, *y; /* shapes; a dot unless there are strides */
  const char *epilogue;               /* instructions from %3 to %9; may read %2, of shape `more`.  NULL: none, and no fusion */
  const char *more;
  double tolerance; /* relative to the largest result */
} product_case;

#define DOT "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]"
#define TURNED "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]"
#define BATCHED "lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]"
#define BIAS(y, d) "%4 = broadcast(%2) {dimensions=[" #d "]} : " y "\n%9 = add(%3, %4) : " y "\n"
#define PLACES "lhs_dilation=[1,1], layout=channels-last"

static const product_case cases[] = {
    {"f32[1,1]", "f32[1,1]", DOT, "f32[1,1]", NULL, NULL, 1e-6},
    {"f32[13,20]", "f32[20,32]", DOT, "f32[13,32]", NULL, NULL, 1e-6},
    {"f32[29,37]", "f32[37,67]", DOT, "f32[29,67]", NULL, NULL, 1e-6},
    {"f32[29,37]", "f32[67,37]", TURNED, "f32[29,67]", NULL, NULL, 1e-6},
    {"f32[29,33]", "f32[64,33]", TURNED, "f32[29,64]", NULL, NULL, 1e-6},
    {"f32[37,29]", "f32[37,67]", "lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0]", "f32[29,67]", NULL, NULL, 1e-6},
    {"f32[37,29]", "f32[67,37]", "lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[1]", "f32[29,67]", NULL, NULL, 1e-6},
    {"f32[1,300]", "f32[300,130]", DOT, "f32[1,130]", NULL, NULL, 2e-6},
    {"f32[40,21]", "f32[21,1]", DOT, "f32[40,1]", NULL, NULL, 1e-6},
    {"f32[3,200]", "f32[200,259]", DOT, "f32[3,259]", BIAS("f32[3,259]", 1), "f32[259]", 2e-6},
    {"f32[17,24]", "f32[24,50]", DOT, "f32[17,50]", BIAS("f32[17,50]", 0), "f32[17]", 1e-6},
    {"f32[17,24]", "f32[24,50]", DOT, "f32[17,50]", "%9 = add(%3, %2) : f32[17,50]\n", "f32[17,50]", 1e-6},
    {"f32[17,24]", "f32[24,53]", DOT, "f32[17,53]",
     "%4 = tanh(%3) : f32[17,53]\n%5 = broadcast(%2) {dimensions=[1]} : f32[17,53]\n%6 = multiply(%4, %5) : f32[17,53]\n"
     "%7 = logistic(%6) : f32[17,53]\n%9 = add(%7, %3) : f32[17,53]\n",
     "f32[53]", 1e-5},
    {"f32[17,24]", "f32[24,48]", DOT, "f32[17,48]", "%4 = reshape(%3) : f32[816]\n%5 = reshape(%4) : f32[17,48]\n%9 = abs(%5) : f32[17,48]\n",
     "f32[1]", 1e-6},
    {"f32[5,18,12]", "f32[5,12,34]", BATCHED, "f32[5,18,34]", NULL, NULL, 1e-6},
    {"f32[5,18,12]", "f32[5,34,12]", "lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]", "f32[5,18,34]",
     BIAS("f32[5,18,34]", 2), "f32[34]", 1e-6},
    {"f32[2,9,3,16]", "f32[2,11,3,16]", "lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]",
     "f32[2,3,9,11]", NULL, NULL, 1e-6},
    {"f32[2,3,9,11]", "f32[2,11,3,16]", "lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]",
     "f32[2,3,9,16]", NULL, NULL, 1e-6},
    {"f32[6,3,9,5]", "f32[3,5,40]", "lhs_batch=[], rhs_batch=[], lhs_contract=[1,3], rhs_contract=[0,1]", "f32[6,9,40]", NULL,
     NULL, 1e-6},
    {"f32[4,7,3]", "f32[3,18]", "lhs_batch=[], rhs_batch=[], lhs_contract=[2], rhs_contract=[0]", "f32[4,7,18]",
     BIAS("f32[4,7,18]", 2), "f32[18]", 1e-6},
    {"f64[9,14]", "f64[14,21]", DOT, "f64[9,21]", BIAS("f64[9,21]", 1), "f64[21]", 1e-14},
    {"f16[9,14]", "f16[14,21]", DOT, "f16[9,21]", BIAS("f16[9,21]", 1), "f16[21]", 2e-3},
    {"bf16[19,30]", "bf16[40,30]", TURNED, "bf16[19,40]", NULL, NULL, 1e-2},
    {"bf16[1,64]", "bf16[64,48]", DOT, "bf16[1,48]", NULL, NULL, 1e-2},
    /* convolutions */
    {"f32[2,7,6,19]", "f32[33,19,1,1]", "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[2,7,6,33]", BIAS("f32[2,7,6,33]", 3), "f32[33]", 1e-6},
    {"f32[1,9,8,16]", "f32[24,16,1,1]", "strides=[2,2], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[1,5,4,24]", NULL, NULL, 1e-6},
    {"f32[1,20,21,3]", "f32[16,3,3,3]", "strides=[2,2], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[1,10,11,16]", BIAS("f32[1,10,11,16]", 3), "f32[16]", 1e-6},
    {"f32[2,7,7,10]", "f32[20,10,3,3]", "strides=[1,1], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=1, " PLACES,
     "f32[2,7,7,20]", NULL, NULL, 1e-6},
    {"f32[1,12,13,8]", "f32[40,8,3,2]", "strides=[1,2], low=[2,0], high=[1,1], rhs_dilation=[2,3], groups=1, " PLACES,
     "f32[1,11,6,40]", NULL, NULL, 1e-6},
    {"f32[1,10,9,12]", "f32[32,3,3,3]", "strides=[1,1], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=4, " PLACES,
     "f32[1,10,9,32]", BIAS("f32[1,10,9,32]", 3), "f32[32]", 1e-6},
    {"f32[1,6,5,4]", "f32[12,1,2,2]", "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=4, " PLACES,
     "f32[1,5,4,12]", NULL, NULL, 1e-6},
    {"f32[2,50,9]", "f32[17,9,5]", "strides=[3], low=[2], high=[0], rhs_dilation=[1], groups=1, lhs_dilation=[1], layout=channels-last",
     "f32[2,16,17]", NULL, NULL, 1e-6},
    {"f32[1,5,6,7,4]", "f32[18,4,2,3,3]",
     "strides=[1,2,1], low=[1,1,0], high=[0,1,1], rhs_dilation=[1,1,2], groups=1, lhs_dilation=[1,1,1], layout=channels-last",
     "f32[1,5,3,4,18]", NULL, NULL, 1e-6},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static hlo_instr *parse(const product_case *c) {
  const char *op = strstr(c->attributes, "strides") ? "convolution" : "dot";
  const char *body = arena_printf(memory, "%%3 = %s(%%0, %%1) {%s} : %s\n", op, c->attributes, c->y), *text;
  if (c->epilogue) {
    text = arena_printf(memory,
                        "onnx-xla hlo 1\nmodule \"t\" {\ncomputation f(%%0: %s, %%1: %s, %%2: %s) {\n%s%sreturn %%9\n}\n"
                        "entry main(%%0: %s \"x\", %%1: %s \"w\", %%2: %s \"m\") {\n%%3 = fusion(%%0, %%1, %%2) {kind=output, "
                        "computations=[f]} : %s\nreturn %%3 \"y\"\n}\n}\n",
                        c->x, c->w, c->more, body, c->epilogue, c->x, c->w, c->more, c->y);
  } else {
    text = arena_printf(memory, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%%0: %s \"x\", %%1: %s \"w\") {\n%sreturn %%3 \"y\"\n}\n}\n",
                        c->x, c->w, body);
  }
  hlo_module *m = NULL;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s\nin\n%s", s ? status_message(s) : "", text);
  return m->entry->roots[0].def;
}

/* --- data --- */

static uint64_t seed = 88172645463325252u;
static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* size bytes that end before a page that cannot be read, aligned to 64 bytes as buffers are. */
typedef struct guarded {
  char *at, *base;
  size_t mapped;
} guarded;

static guarded guarded_memory(size_t size) {
  size_t page = 4096, room = (size + 63) / 64 * 64, pages = (room + page - 1) / page * page;
  guarded g = {.mapped = pages + page};
  g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert(g.base != MAP_FAILED);
  mprotect(g.base + pages, page, PROT_NONE);
  memset(g.base, 0xa5, pages);
  g.at = g.base + pages - room;
  return g;
}

static void fill(const shape *s, char *at) {
  for (int64_t k = 0; k < shape_elements(s); k++) {
    double v = (double)(int64_t)(next_random() % 2001) / 1000 - 1;
    dtype_store_f64((dtype)s->type, at + (size_t)k * dtype_bytes((dtype)s->type), v, true, DTYPE_ROUND_NEAREST);
  }
}

/* --- one product --- */

typedef struct machine {
  const char *cpu;
  int lanes;
} machine;
static const machine machines[] = {{"native", 0}, {"native", 16}, {"native", 8}, {"native", 4}, {"native", 1}, {"x86-64", 0}};
enum { N_MACHINES = sizeof machines / sizeof *machines };

static int expired(const void *budget) { return budget != NULL; }

static void *resolve(const char *name) {
  return strcmp(name, "onnx_xla_expired") == 0  ? (void *)(intptr_t)expired
         : strcmp(name, "memcpy") == 0          ? (void *)(intptr_t)memcpy
         : strcmp(name, "memset") == 0          ? (void *)(intptr_t)memset
                                                : NULL;
}

static emit_target target_of(const machine *m) {
  emit_target t;
  status s = emit_target_init(memory, NULL, m->cpu, m->lanes, &t);
  if (s) { /* a processor of another architecture */
    status_free(s);
    s = emit_target_init(memory, NULL, "native", m->lanes, &t);
  }
  ck_assert(!s);
  return t;
}

static void run_phase(const emit_target *t, const hlo_instr *i, const emit_product *p, uint32_t phase, const void *const *buffers) {
  emit_module *m;
  emit_kernel_info info;
  rt_span object;
  rt_code *code;
  status s = emit_module_create(memory, t, "product", &m);
  s = s ? s : emit_product_write(m, "product", i, NULL, p, phase, &info);
  s = s ? s : emit_module_object(m, &object.data, &object.size);
  s = s ? s : rt_code_load(memory, object, resolve, &code);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  emit_kernel_fn *f = (emit_kernel_fn *)(intptr_t)rt_code_find(code, "product");
  for (int64_t from = 0, to; from < info.grid; from = to) {
    to = from + 1 + (int64_t)(next_random() % (uint64_t)info.grid);
    to = to > info.grid ? info.grid : to;
    f(buffers, NULL, from, to);
  }
  emit_module_destroy(m);
}

static void compare(const product_case *c, const char *how, const literal *want, const char *got) {
  dtype t = (dtype)want->shape.type;
  double most = 0;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    most = fmax(most, fabs(literal_f64(want, k)));
  }
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    double x = dtype_load_f64(t, got + (size_t)k * dtype_bytes(t)), y = literal_f64(want, k);
    ck_assert_msg(fabs(x - y) <= c->tolerance * most, "%s: element %lld is %.9g, not %.9g\n%s x %s {%s}\n%s", how, (long long)k, x,
                  y, c->x, c->w, c->attributes, c->epilogue ? c->epilogue : "");
  }
}

static void check_case(const product_case *c, const machine *m, emit_product_wish wish) {
  hlo_instr *i = parse(c);
  emit_target t = target_of(m);
  emit_product p;
  ck_assert_msg(emit_product_of(i, &p), "no product: %s x %s {%s}", c->x, c->w, c->attributes);
  emit_product_choose(&p, &t, &wish);
  literal args[3], want;
  guarded g[5];
  const void *buffers[6] = {NULL}; /* behind the last: no budget */
  uint32_t n = i->n_operands;
  for (uint32_t k = 0; k < n; k++) {
    const shape *s = hlo_shape(i->operands[k]);
    g[k] = guarded_memory((size_t)shape_bytes(s));
    fill(s, g[k].at);
    args[k] = literal_make(*s, arena_memdup(memory, g[k].at, (size_t)shape_bytes(s)));
    buffers[k] = g[k].at;
  }
  status failed = ref_eval_computation(i->parent, args, memory, &want);
  ck_assert_msg(!failed, "%s", failed ? status_message(failed) : "");
  if (wish.constant_weights) {
    munmap(g[1].base, g[1].mapped);
    g[1] = guarded_memory((size_t)emit_product_packed(&p) * dtype_bytes((dtype)p.type));
    emit_product_pack(&p, args[1].data, g[1].at);
    buffers[1] = g[1].at;
  }
  g[n] = guarded_memory((size_t)shape_bytes(&i->shapes[0]));
  g[n + 1] = guarded_memory((size_t)emit_product_scratch(&p) + 1);
  buffers[n] = g[n].at;
  buffers[n + 1] = emit_product_scratch(&p) ? g[n + 1].at : NULL;
  for (uint32_t phase = 0; phase < emit_product_phases(&p); phase++) {
    run_phase(&t, i, &p, phase, buffers);
  }
  char how[100];
  snprintf(how, sizeof how, "%s, %d lanes, %dx%d%s", m->cpu, t.lanes, (int)p.tile_rows, (int)p.tile_vectors,
           wish.constant_weights ? ", packed" : "");
  compare(c, how, &want, g[n].at);
  for (uint32_t k = 0; k < n + 2; k++) {
    munmap(g[k].base, g[k].mapped);
  }
}

static void reset(void) {
  arena_destroy(memory);
  memory = arena_create(NULL);
}

START_TEST(all_forms) {
  for (size_t k = 0; k < N_CASES; k++) {
    for (int packed = 0; packed < 2; packed++) {
      check_case(&cases[k], &machines[_i], (emit_product_wish){.threads = 2, .cache_bytes = 1 << 20, .constant_weights = packed});
      reset();
    }
  }
}
END_TEST

/* Blocks of all sizes, and a grid of many steps. */
START_TEST(all_blocks) {
  static const product_case c = {"f32[29,11]", "f32[11,83]", DOT, "f32[29,83]", BIAS("f32[29,83]", 1), "f32[83]", 1e-6};
  for (int rows = 1; rows <= 14; rows++) {
    emit_product_wish wish = {.rows = rows, .vectors = rows < 5 ? 4 : rows < 8 ? 3 : 2, .threads = (uint32_t)rows % 3 + 1,
                              .cache_bytes = rows * 400, .constant_weights = rows % 2};
    check_case(&c, &machines[_i], wish);
    reset();
  }
}
END_TEST

/* What is not evenly apart, or not in its place, is refused. */
START_TEST(refused) {
  static const product_case rows[] = {
      {"f32[4,6]", "f32[3,6,5]", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]", "f32[4,3,5]", NULL, NULL, 0},
      {"f32[4,6]", "f32[6,4]", DOT, "f32[4,4]", "%4 = transpose(%3) {permutation=[1,0]} : f32[4,4]\n%9 = abs(%4) : f32[4,4]\n",
       "f32[1]", 0},
      {"s32[4,6]", "s32[6,4]", DOT, "s32[4,4]", NULL, NULL, 0},
      {"f32[1,4,6,6]", "f32[8,4,3,3]",
       "strides=[1,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], groups=1, lhs_dilation=[1,1], layout=channels-first",
       "f32[1,8,4,4]", NULL, NULL, 0},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    emit_product p;
    ck_assert_msg(!emit_product_of(parse(&rows[k]), &p), "row %zu", k);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("product");
  TCase *c = tcase_create("product");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, all_forms, 0, N_MACHINES);
  tcase_add_loop_test(c, all_blocks, 0, N_MACHINES);
  tcase_add_test(c, refused);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed > 0;
}
