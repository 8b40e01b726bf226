#include "tests/fuzz/bytes/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend_ref/eval.h"
#include "backend_ref/target.h"
#include "base/tensor/npy.h"
#include "frontend/import/symbolic.h"
#include "frontend/model/model.h"
#include "frontend/model/tensor.h"
#include "frontend/model/value.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "runtime/exec/binding.h"
#include "runtime/program/image.h"
#include "tests/fuzz/bytes/mutate.h"

enum {
  MEGABYTES = 48, /* the memory budget for one input */
  MILLISECONDS = 500,
  RUN_BYTES = 1 << 20 /* the most bytes of the inputs, and of the outputs, of a program that is run */
};

/* --- what all targets share --- */

typedef struct job {
  arena *a;
  mem_budget *budget;
  const uint8_t *bytes;
  size_t size;
} job;

static void fail(const char *what, const char *message) {
  fprintf(stderr, "\nFINDING: %s: %s\n", what, message);
  abort();
}

/* Returns true if there was no error.  Aborts if the error is an internal one, or if its message is not one line of
 * text. */
static bool judge(status s) {
  const char *message = status_message(s);
  if (!s) {
    return true;
  }
  if (status_get_code(s) == STATUS_INTERNAL) {
    fail("an internal error", message);
  }
  for (const unsigned char *c = (const unsigned char *)message; *c; c++) {
    if (*c < 0x20 || *c == 0x7f) {
      fail("not one line", message);
    }
  }
  if (!*message) {
    fail("no message", "");
  }
  status_free(s);
  return false;
}

static uint64_t deadline(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + MILLISECONDS * (uint64_t)1000000;
}

/* Calls fn within the budget, on a copy of the bytes that is exactly as long, so that reading beyond its end is
 * noticed.  Returns true if the bytes were accepted. */
static bool within_budget(const uint8_t *bytes, size_t size, status (*fn)(void *)) {
  mem_budget budget = {.limit = (uint64_t)MEGABYTES << 20, .deadline = deadline()};
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) {
    abort();
  }
  if (size) {
    memcpy(copy, bytes, size);
  }
  job j = {.a = arena_create(&budget), .budget = &budget, .bytes = copy, .size = size};
  bool accepted = judge(guard_run(fn, &j));
  arena_destroy(j.a);
  if (budget.used) {
    fail("memory of the budget is not given back", "");
  }
  free(copy);
  return accepted;
}

/* --- running --- */

/* Returns memory for inputs or outputs, or NULL if that would be too much.  It is filled with small integers of the
 * arrays' types, which are often valid inputs. */
static void **make_buffers(arena *a, uint32_t n, const rt_io *io) {
  void **out = ARENA_NEW_N(a, void *, n + 1);
  int64_t all = 0;
  for (uint32_t k = 0; k < n; k++) {
    int64_t bytes = shape_bytes(&io[k].shape);
    all += bytes;
    if (all > RUN_BYTES) {
      return NULL;
    }
    out[k] = arena_alloc_aligned(a, (size_t)bytes + 64, 64);
    if (io[k].value && bytes) {
      memcpy(out[k], io[k].value, (size_t)bytes);
    }
  }
  return out;
}

/* Binds a program for many sizes to inputs whose open dimensions have this size. */
static status bind_program(job *j, const rt_executable *e, int64_t size, rt_binding **out) {
  const rt_program *p = rt_executable_program(e);
  shape *inputs = ARENA_NEW_N(j->a, shape, p->n_params);
  for (uint32_t k = 0; k < p->n_params; k++) {
    inputs[k] = p->params[k].shape;
    for (int d = 0; d < inputs[k].rank; d++) {
      inputs[k].dims[d] = inputs[k].dims[d] < 0 ? size : inputs[k].dims[d];
    }
  }
  return rt_bind(e, inputs, out);
}

static status run_bound(job *j, const rt_binding *b) {
  const rt_program *p = b->program;
  void **params = make_buffers(j->a, p->n_params, p->params), **results = make_buffers(j->a, p->n_results, p->results);
  return params && results
             ? rt_execute(b, &(rt_run_options){.budget = j->budget, .seed = 1}, (const void *const *)params, results)
             : NULL;
}

static status run_at(job *j, const rt_executable *e, int64_t size) {
  rt_binding *b;
  TRY(bind_program(j, e, size, &b));
  status s = run_bound(j, b);
  rt_binding_destroy(b);
  return s;
}

static status run_program(job *j, const rt_program *p) {
  static const int64_t sizes[] = {3, 0, 1, 17};
  rt_executable *e;
  status s = NULL;
  TRY(rt_executable_create(p, &ref_target, &(rt_load_options){.budget = j->budget}, &e));
  if (rt_executable_binding(e)) {
    s = run_bound(j, rt_executable_binding(e));
  }
  for (size_t k = 0; !rt_executable_binding(e) && k < sizeof sizes / sizeof *sizes; k++) {
    (void)judge(s); /* s is the status for the size before: a program may refuse one size and take another */
    s = run_at(j, e, sizes[k]);
  }
  rt_executable_destroy(e);
  return s;
}

static status compile_and_run(job *j, hlo_module *m) {
  rt_program *p;
  const rt_compile_options options = {.threads = 1, .eval = ref_fold};
  TRY(ref_compiler.compile((struct hlo_module *)m, &options, j->a, &p, NULL));
  return run_program(j, p);
}

/* --- models --- */

static status model(void *data) {
  job *j = data;
  onnx_model *m;
  hlo_module *module;
  onnx_op_usage *used;
  uint32_t n;
  bool complete;
  onnx_import_options options = {.open_dim = 2, .eval = ref_fold};
  TRY(onnx_model_from_memory(j->a, j->bytes, j->size, NULL, NULL, &m));
  TRY(onnx_list_ops(j->a, m, &used, &n));
  TRY(onnx_import(j->a, m, &options, &module, &complete));
  TRY(compile_and_run(j, module));
  onnx_definitions definitions = {0};
  TRY(onnx_import_symbolic(j->a, m, &options, &definitions, &module, &complete));
  return complete ? compile_and_run(j, module) : NULL;
}

/* --- HLO text --- */

static bool takes_fused(void *data, hlo_fusion_kind kind, const hlo_instr *i) {
  (void)data;
  hlo_kind k = hlo_info(i)->kind;
  return k == HLO_ELEMENTWISE || k == HLO_MOVEMENT || (kind == HLO_FUSION_INPUT && i->op == HLO_REDUCE);
}

static bool takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  (void)data, (void)contraction, (void)operand;
  return hlo_info(consumer)->kind == HLO_ELEMENTWISE;
}

static status hlo(void *data) {
  static const hlo_target target = {
      .name = "test", .takes_epilogue = takes_epilogue, .takes_fused = takes_fused, .channels_last = true};
  job *j = data;
  const hlo_parse_options small = {.max_bytes = (int64_t)8 << 20};
  hlo_module *m, *again;
  const char *text, *second;
  size_t size, second_size;
  TRY(hlo_parse(j->a, (const char *)j->bytes, j->size, &small, &m));
  TRY(hlo_print(j->a, m, NULL, &text, &size));
  status s = hlo_parse(j->a, text, size, NULL, &again);
  if (s && status_get_code(s) != STATUS_RESOURCE) {
    fail("what was printed is not read", status_message(s));
  }
  TRY(s);
  TRY(hlo_print(j->a, again, NULL, &second, &second_size));
  if (size != second_size || memcmp(text, second, size) != 0) {
    fail("what was printed and read is printed otherwise", text);
  }
  const hlo_pass *steps;
  uint32_t n;
  pass_context context = {
      .arena = j->a, .eval = ref_fold, .target = &target, .any_order = true, .verify = true, .check_changed = true};
  TRY(hlo_pass_parse_list(
      j->a,
      "inline_composites,fold,simplify,transpose_sinking,cse,dce,batch_norm,layout,epilogue,row_fusion,reduce_fusion,"
      "loop_fusion,dce",
      &steps, &n));
  TRY(hlo_run_passes(again, steps, n, &context));
  return compile_and_run(j, again);
}

/* --- .oxla --- */

static status image(void *data) {
  job *j = data;
  static char path[64];
  static int fd = -1;
  rt_image *opened;
  if (fd < 0) {
    fd = memfd_create("image", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, j->bytes, j->size, 0) != (ssize_t)j->size) {
    abort();
  }
  TRY(rt_image_open(j->a, path, true, &opened));
  for (uint32_t k = 0; k < opened->n_programs; k++) {
    if (strcmp(opened->programs[k]->target, ref_target.name) == 0) {
      TRY(run_program(j, opened->programs[k]));
    }
  }
  return NULL;
}

/* --- arrays --- */

static void same(const literal *x, const literal *y, const char *what) {
  if (!shape_equal(&x->shape, &y->shape) ||
      (shape_bytes(&x->shape) && memcmp(x->data, y->data, (size_t)shape_bytes(&x->shape)) != 0)) {
    fail(what, "is not what was written");
  }
}

static status npy(void *data) {
  job *j = data;
  literal l, again;
  uint8_t *bytes;
  size_t size;
  string_table *strings = string_table_create(j->a, NULL);
  TRY(npy_parse(j->a, "array", j->bytes, j->size, DTYPE_INVALID, strings, &l));
  TRY(npy_format(j->a, &l, strings, &bytes, &size));
  TRY(status_prefix(npy_parse(j->a, "array", bytes, size, (dtype)l.shape.type, strings, &again), "written"));
  same(&l, &again, "an array");
  return NULL;
}

static status tensor(void *data) {
  job *j = data;
  literal l;
  const char *name;
  return onnx_tensor_parse_pb(j->a, "tensor", j->bytes, j->size, string_table_create(j->a, NULL), &name, &l);
}

static void same_value(const literal *x, const literal *y) {
  if (!literal_is_list(x) || !shape_equal(&x->shape, &y->shape)) {
    same(x, y, "a value");
    return;
  }
  if (literal_elements(x)->n != literal_elements(y)->n) {
    fail("a value", "has another number of elements than what was written");
  }
  for (uint32_t k = 0; k < literal_elements(x)->n; k++) {
    same_value(&literal_elements(x)->items[k], &literal_elements(y)->items[k]);
  }
}

/* Reads the bytes as a sequence, an optional or a map, and what can be read once more from the bytes that are written
 * of a copy in one block. */
static status value_of(const job *j, shape_kind kind) {
  shape s = shape_scalar(DTYPE_F32);
  literal l, again;
  const char *name;
  uint8_t *bytes;
  size_t size;
  string_table *strings = string_table_create(j->a, NULL);
  s.kind = (uint8_t)kind;
  TRY(onnx_value_parse_pb(j->a, "value", j->bytes, j->size, &s, strings, &name, &l));
  void *block = arena_alloc_aligned(j->a, literal_packed_bytes(&l) + 1, 64);
  literal_pack(&l, block);
  literal copy = literal_make(l.shape, block);
  TRY(onnx_value_to_pb(j->a, name, kind, &copy, strings, &bytes, &size));
  TRY(status_prefix(onnx_value_parse_pb(j->a, "value", bytes, size, &s, strings, &name, &again), "written"));
  if (l.shape.kind != SHAPE_OPTIONAL) {
    same_value(&l, &again);
  }
  return NULL;
}

static status value(void *data) {
  status failed = value_of(data, SHAPE_SEQUENCE);
  status_free(failed);
  failed = value_of(data, SHAPE_MAP);
  status_free(failed);
  return value_of(data, SHAPE_OPTIONAL);
}

/* --- the table --- */

#define TARGET(fn) \
  static bool run_##fn(const uint8_t *bytes, size_t size) { return within_budget(bytes, size, fn); }
TARGET(model)
TARGET(hlo)
TARGET(image)
TARGET(npy)
TARGET(tensor)
TARGET(value)

static const bytes_target targets[] = {{"model", run_model, mutate_protobuf},   {"hlo", run_hlo, mutate_text},
                                       {"image", run_image, mutate_image},      {"npy", run_npy, NULL},
                                       {"tensor", run_tensor, mutate_protobuf}, {"value", run_value, mutate_protobuf}};

const bytes_target *bytes_target_at(unsigned k) { return k < sizeof targets / sizeof *targets ? &targets[k] : NULL; }

const bytes_target *bytes_target_find(const char *name) {
  for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
    if (strcmp(targets[k].name, name) == 0) {
      return &targets[k];
    }
  }
  return NULL;
}
