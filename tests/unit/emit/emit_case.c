/* emit_case.c - runs a contraction's kernel and compares it with the reference evaluator; see emit_case.h. */
#include "tests/unit/emit/emit_case.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "runtime/host/code_loader.h"
#include "runtime/kernel_abi.h"

hlo_instr *emit_case_parse(arena *memory, const emit_case *c) {
  const char *op = strstr(c->attributes, "strides") ? "convolution" : "dot";
  const char *body = arena_printf(memory, "%%3 = %s(%%0, %%1) {%s} : %s\n", op, c->attributes, c->y), *text;
  if (c->epilogue) {
    text = arena_printf(
        memory,
        "onnx-xla hlo 1\nmodule \"t\" {\ncomputation f(%%0: %s, %%1: %s, %%2: %s) {\n%s%sreturn %%9\n}\n"
        "entry main(%%0: %s \"x\", %%1: %s \"w\", %%2: %s \"m\") {\n%%3 = fusion(%%0, %%1, %%2) {kind=output, "
        "computations=[f]} : %s\nreturn %%3 \"y\"\n}\n}\n",
        c->x, c->w, c->more, body, c->epilogue, c->x, c->w, c->more, c->y);
  } else {
    text = arena_printf(
        memory,
        "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%%0: %s \"x\", %%1: %s \"w\") {\n%sreturn %%3 \"y\"\n}\n}\n", c->x,
        c->w, body);
  }
  hlo_module *m = NULL;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s\nin\n%s", s ? status_message(s) : "", text);
  return m->entry->roots[0].def;
}

/* --- data --- */

/* Fills an array with numbers from -1 to 1, or with random bytes if its type is an integer. */
static void fill(const shape *s, char *at) {
  if (dtype_is_int((dtype)s->type)) {
    for (int64_t k = 0; k < shape_bytes(s); k++) {
      at[k] = (char)next_random();
    }
    return;
  }
  for (int64_t k = 0; k < shape_elements(s); k++) {
    double v = (double)(int64_t)(next_random() % 2001) / 1000 - 1;
    dtype_store_f64((dtype)s->type, at + (size_t)k * dtype_bytes((dtype)s->type), v, true, DTYPE_ROUND_NEAREST);
  }
}

/* --- a kernel --- */

static void run_phase(arena *memory, const emit_target *t, const hlo_instr *i, const emit_way *way, uint32_t phase,
                      const void *const *buffers) {
  emit_module *m;
  emit_kernel_info info;
  rt_code *code;
  status s = emit_module_create(memory, t, "case", &m);
  s = s ? s : way->write(m, "case", i, NULL, way->config, phase, &info);
  s = s ? s : kernel_load(memory, m, kernel_resolve, &code);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  rt_kernel_fn *f = (rt_kernel_fn *)(intptr_t)rt_code_find(code, "case");
  for (int64_t from = 0, to; from < info.grid; from = to) {
    to = from + 1 + (int64_t)(next_random() % (uint64_t)info.grid);
    to = to > info.grid ? info.grid : to;
    f(buffers, NULL, from, to);
  }
  emit_module_destroy(m);
}

static void compare(const emit_case *c, const char *how, const literal *want, const char *got) {
  dtype t = (dtype)want->shape.type;
  double most = 0;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    most = fmax(most, fabs(literal_f64(want, k)));
  }
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    double x = dtype_load_f64(t, got + (size_t)k * dtype_bytes(t)), y = literal_f64(want, k);
    ck_assert_msg(fabs(x - y) <= c->tolerance * most, "%s: element %lld is %.9g, not %.9g\n%s x %s {%s}\n%s", how,
                  (long long)k, x, y, c->x, c->w, c->attributes, c->epilogue ? c->epilogue : "");
  }
}

/* An array in guarded memory. */
typedef struct buffer {
  void *at;
  size_t bytes;
} buffer;

static buffer new_buffer(size_t bytes) { return (buffer){guarded_memory(bytes), bytes}; }

void emit_case_check(arena *memory, const emit_case *c, const hlo_instr *i, const emit_target *t, const emit_way *way) {
  literal args[3], want;
  buffer b[5];
  const void *buffers[6] = {NULL}; /* the entry behind the last buffer is the budget: NULL */
  uint32_t n = i->n_operands;
  for (uint32_t k = 0; k < n; k++) {
    const shape *s = hlo_shape(i->operands[k]);
    b[k] = new_buffer((size_t)shape_bytes(s));
    fill(s, b[k].at);
    args[k] = literal_make(*s, arena_memdup(memory, b[k].at, b[k].bytes));
  }
  status failed = ref_eval_computation(i->parent, args, memory, &want);
  ck_assert_msg(!failed, "%s", failed ? status_message(failed) : "");
  if (way->packed_bytes) {
    guarded_free(b[1].at, b[1].bytes);
    b[1] = new_buffer((size_t)way->packed_bytes);
    way->pack(way->config, args[1].data, b[1].at);
  }
  b[n] = new_buffer((size_t)shape_bytes(&i->shapes[0]));
  b[n + 1] = new_buffer((size_t)way->scratch_bytes + 1);
  for (uint32_t k = 0; k < n + 2; k++) {
    buffers[k] = k <= n || way->scratch_bytes ? b[k].at : NULL;
  }
  for (uint32_t phase = 0; phase < way->phases; phase++) {
    run_phase(memory, t, i, way, phase, buffers);
  }
  compare(c, way->name, &want, b[n].at);
  for (uint32_t k = 0; k < n + 2; k++) {
    guarded_free(b[k].at, b[k].bytes);
  }
}
