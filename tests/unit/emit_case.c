/* emit_case.c - see emit_case.h. */
#include "tests/unit/emit_case.h"

#include <check.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "backend_ref/eval.h"
#include "hlo/text.h"
#include "runtime/code_loader.h"

hlo_instr *emit_case_parse(arena *memory, const emit_case *c) {
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

/* --- processors --- */

const emit_machine emit_machines[] = {{"native", 0}, {"native", 16}, {"native", 8}, {"native", 4}, {"native", 1}, {"x86-64", 0}};

emit_target emit_machine_target(arena *memory, const emit_machine *m) {
  emit_target t;
  status s = emit_target_init(memory, NULL, m->cpu, m->lanes, &t);
  if (s) { /* a processor of another architecture */
    status_free(s);
    s = emit_target_init(memory, NULL, "native", m->lanes, &t);
  }
  ck_assert(!s);
  return t;
}

/* --- a kernel --- */

static int expired(const void *budget) { return budget != NULL; }

static void *resolve(const char *name) {
  return strcmp(name, "onnx_xla_expired") == 0  ? (void *)(intptr_t)expired
         : strcmp(name, "memcpy") == 0          ? (void *)(intptr_t)memcpy
         : strcmp(name, "memset") == 0          ? (void *)(intptr_t)memset
                                                : NULL;
}

static void run_phase(arena *memory, const emit_target *t, const hlo_instr *i, const emit_way *way, uint32_t phase,
                      const void *const *buffers) {
  emit_module *m;
  emit_kernel_info info;
  rt_span object;
  rt_code *code;
  status s = emit_module_create(memory, t, "case", &m);
  s = s ? s : way->write(m, "case", i, NULL, way->config, phase, &info);
  s = s ? s : emit_module_object(m, &object.data, &object.size);
  s = s ? s : rt_code_load(memory, object, resolve, &code);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  emit_kernel_fn *f = (emit_kernel_fn *)(intptr_t)rt_code_find(code, "case");
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
    ck_assert_msg(fabs(x - y) <= c->tolerance * most, "%s: element %lld is %.9g, not %.9g\n%s x %s {%s}\n%s", how, (long long)k, x,
                  y, c->x, c->w, c->attributes, c->epilogue ? c->epilogue : "");
  }
}

void emit_case_check(arena *memory, const emit_case *c, const hlo_instr *i, const emit_target *t, const emit_way *way) {
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
  if (way->packed_bytes) {
    munmap(g[1].base, g[1].mapped);
    g[1] = guarded_memory((size_t)way->packed_bytes);
    way->pack(way->config, args[1].data, g[1].at);
    buffers[1] = g[1].at;
  }
  g[n] = guarded_memory((size_t)shape_bytes(&i->shapes[0]));
  g[n + 1] = guarded_memory((size_t)way->scratch_bytes + 1);
  buffers[n] = g[n].at;
  buffers[n + 1] = way->scratch_bytes ? g[n + 1].at : NULL;
  for (uint32_t phase = 0; phase < way->phases; phase++) {
    run_phase(memory, t, i, way, phase, buffers);
  }
  compare(c, way->name, &want, g[n].at);
  for (uint32_t k = 0; k < n + 2; k++) {
    munmap(g[k].base, g[k].mapped);
  }
}
