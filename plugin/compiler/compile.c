/* compile.c - compiles a compiler_model to a program: compile_module imports the model and calls the backend.  This
 * file also decides which memory of the model the program may borrow. */
#include "plugin/compiler/internal.h"

#ifdef __GLIBC__
#include <link.h>
#include <malloc.h>
#endif
#include <sys/mman.h>

#include "backend_ref/eval.h"
#include "base/file.h"
#include "base/hash.h"
#include "frontend/model/external_data.h"
#include "hlo/ir/bind.h"
#include "hlo/passes/carry.h"
#include "hlo/passes/pass.h"
#include "hlo/text/verify.h"
#include "plugin/compiler/backend.h"
#include "plugin/compiler/segments.h"
#include "runtime/program/size_text.h"
#include "runtime/program/weight_pool.h"

typedef struct compile_call {
  const compiler_model *s;
  const compile_request *request;
  arena *a;
  rt_program **out;
  rt_report *report;
  arena *scratch;
} compile_call;

/* Fails if the option skip_passes names a pass that does not exist.  This is checked here because not every backend
 * runs passes. */
static status check_skipped(arena *a, const char *names) {
  const hlo_pass *steps;
  uint32_t n;
  return names ? hlo_pass_parse_list(a, names, &steps, &n) : NULL;
}

static bool holds(const void *bytes, uint64_t size, const void *data) {
  return (const uint8_t *)data >= (const uint8_t *)bytes && (const uint8_t *)data < (const uint8_t *)bytes + size;
}

static void put_place(rt_writer *w, const char *where, int64_t offset) {
  if (w) {
    rt_put_text(w, where);
    rt_put_i64(w, offset);
  }
}

/* Returns true if the data is in the model's file or in a file of external data.  Writes the name of that file and the
 * offset of the data in it to `place`, which may be NULL. */
static bool file_lasts(const opened_model *l, const void *data, rt_writer *place) {
  const onnx_model *m = l->onnx;
  if (m && holds(m->source.bytes, m->source.size, data)) {
    put_place(place, "model", (const uint8_t *)data - (const uint8_t *)m->source.bytes);
    return true;
  }
  int64_t offset;
  const char *file = m && m->source.folder ? onnx_folder_find(m->source.folder, data, &offset) : NULL;
  if (file) {
    put_place(place, "file", offset);
    put_place(place, file, 0);
  }
  return file != NULL;
}

/* An rt_sharing.is_persistent function.  The model's files, and the constants with which it was opened
 * (compiler_constant), live as long as the session; data that the import makes does not. */
static bool model_lasts(const void *owner, const void *data, rt_writer *place) {
  const opened_model *l = owner;
  bool is_persistent = file_lasts(l, data, place);
  for (uint32_t k = 0; k < l->n_constants && !is_persistent; k++) {
    const literal *x = &l->constants[k].value;
    is_persistent = holds(x->data, (uint64_t)shape_bytes(&x->shape), data);
    if (is_persistent) {
      put_place(place, "constant", (const uint8_t *)data - (const uint8_t *)x->data);
      put_place(place, l->constants[k].name, k);
    }
  }
  return is_persistent;
}

/* Tells the system that the pages of a mapped file need not stay in memory.  Pages that the data only covers in part
 * are left alone, since other data on them may be in use. */
static void drop_whole_pages(const void *data, uint64_t bytes) {
  enum { PAGE = 4096 };
  uintptr_t start = ((uintptr_t)data + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
            end = ((uintptr_t)data + bytes) & ~(uintptr_t)(PAGE - 1);
  if (end > start) {
    (void)madvise((void *)start, end - start, MADV_DONTNEED);
  }
}

/* An rt_sharing.drop function. */
static void drop_pages(const void *owner, const void *data, uint64_t bytes) {
  if (owner && file_is_mapped(((const opened_model *)owner)->arena, data)) {
    drop_whole_pages(data, bytes);
  }
}

rt_sharing compiler_sharing(const compiler_model *s, rt_weight_pool *pool) {
  return (rt_sharing){.weight_pool = pool, .is_persistent = model_lasts, .drop = drop_pages, .owner = s->model};
}

/* Copies to the arena what the report points to. */
static void keep_report(arena *a, rt_report *r) {
  r->tuned = arena_memdup(a, r->tuned, r->n_tuned * sizeof *r->tuned);
  for (uint32_t k = 0; k < r->n_tuned; k++) {
    rt_tuned *t = &r->tuned[k];
    *t = (rt_tuned){arena_strdup(a, t->what), arena_strdup(a, t->winner), arena_strdup(a, t->times),
                    arena_strdup(a, t->how)};
  }
  r->warning = r->warning ? arena_strdup(a, r->warning) : NULL;
}

static status compile_module(void *data);

/* Compiles on an arena of its own and copies the program to c->a, so that the memory that compiling used can be freed.
 */
static status compile_and_keep(void *data) {
  compile_call *c = data;
  rt_sharing sharing = compiler_sharing(c->s, c->request->options.sharing->weight_pool);
  compile_request request = *c->request;
  request.options.sharing = &sharing;
  compile_call inner = *c;
  inner.request = &request;
  inner.a = c->scratch = arena_create(arena_budget(c->a));
  TRY(compile_module(&inner));
  if (*c->out) {
    *c->out = rt_program_keep(c->a, *c->out, &sharing);
    keep_report(c->a, c->report);
  }
  return NULL;
}

/* Carries the outputs that the caller names.  If none are named, outputs that are an input with some elements updated
 * are carried, since the caller may pass one memory for both. */
static status carry_outputs(arena *a, const compile_request *r, hlo_module *m) {
  if (r->n_carried == 0) {
    hlo_carry_updates(m);
    return NULL;
  }
  hlo_carry *pairs = ARENA_NEW_N(a, hlo_carry, r->n_carried);
  uint32_t n;
  for (uint32_t k = 0; k < r->n_carried; k++) {
    pairs[k] = (hlo_carry){r->carried[k].output, r->carried[k].input, r->carried[k].axis};
  }
  return hlo_carry_roots(m, r->n_carried, pairs, &n);
}

void compiler_set_validity(rt_program *p, uint32_t n_inputs, const compiler_validity *v) {
  uint32_t next = n_inputs;
  for (uint32_t k = 0; k < n_inputs; k++) {
    p->params[k].value = v->values[k];
    for (uint32_t element = 0; element < v->told[k]; element++) {
      p->params[next].told = k + 1;
      p->params[next++].element = element;
    }
  }
  p->definitions = v->definitions;
  p->n_definitions = v->n_definitions;
}

status compiler_import_whole(const compiler_model *s, const compile_request *r, arena *a, hlo_module **out,
                             compiler_validity *validity) {
  bool complete;
  hlo_module *m;
  TRY(compiler_import(s, r, a, &m, validity, &complete));
  if (r->imported) {
    r->imported(r->imported_data);
  }
  *out = complete ? m : NULL;
  if (!complete) {
    return NULL;
  }
  TRY(r->all_sizes ? NULL : hlo_check_static(m));
  return carry_outputs(a, r, m);
}

/* Fails if the import has pinned every size and the request does not allow that. */
static status check_open(const compile_call *c, const hlo_module *m, const compiler_validity *v) {
  rt_program pinned = {.definitions = v->definitions, .n_definitions = v->n_definitions};
  CHECK_THAT(!c->request->not_static || !hlo_is_static(m), STATUS_UNSUPPORTED, "%s", size_why_static(c->a, &pinned));
  return NULL;
}

static status compile_module(void *data) {
  compile_call *c = data;
  const rt_backend *backend;
  hlo_module *m;
  TRY(compiler_backend(c->request->backend, &backend));
  TRY(check_skipped(c->a, c->request->options.skip_passes));
  CHECK_THAT(backend->compiler, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "backend %s runs programs but compiles none",
             c->request->backend);
  compiler_validity validity;
  TRY(compiler_import_whole(c->s, c->request, c->a, &m, &validity));
  *c->out = NULL;
  if (!m) {
    return NULL;
  }
  TRY(check_open(c, m, &validity));
  rt_compile_options options = c->request->options;
  options.eval = ref_fold;
  TRY(compiler_precompute(m, backend, &options, c->a));
  TRY(backend->compiler->compile((struct hlo_module *)m, &options, c->a, c->out, c->report));
  compiler_set_validity(*c->out, c->s->n_inputs, &validity);
  return NULL;
}

status compiler_segments_create(const compiler_model *s, const compile_request *request, mem_budget *budget,
                                segmented_model **out) {
  const opened_model *l = s->model;
  return segmented_model_create(s, l->onnx, request, budget, out);
}

/* Fails if the model has external data or was opened with constants (compiler_constant), since its bytes do not contain
 * these. */
status compiler_model_bytes(const compiler_model *s, rt_span *out) {
  const onnx_model *m = ((const opened_model *)s->model)->onnx;
  CHECK_THAT(m && ((const opened_model *)s->model)->n_constants == 0, STATUS_UNSUPPORTED,
             "the model is not a file of its own");
  CHECK_THAT(s->n_files == 0, STATUS_UNSUPPORTED, "the model has data in other files");
  *out = (rt_span){m->source.bytes, m->source.size};
  return NULL;
}

uint64_t compiler_model_hash(const compiler_model *s) {
  const onnx_model *m = ((const opened_model *)s->model)->onnx;
  return m ? hash_bytes(m->source.bytes, m->source.size, 0) : 0;
}

/* A callback of dl_iterate_phdr: if the object has this function, tells the system that the pages of its read-only
 * segments need not stay in memory.  They are as in the file, since no relocation writes to such a segment. */
static int drop_code(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size;
  (void)unused;
  bool own = false;
  for (int k = 0; k < object->dlpi_phnum; k++) {
    const ElfW(Phdr) *s = &object->dlpi_phdr[k];
    own |= s->p_type == PT_LOAD && (uintptr_t)drop_code - object->dlpi_addr - s->p_vaddr < s->p_memsz;
  }
  for (int k = 0; own && k < object->dlpi_phnum; k++) {
    const ElfW(Phdr) *s = &object->dlpi_phdr[k];
    if (s->p_type == PT_LOAD && !(s->p_flags & PF_W)) {
      drop_whole_pages((const uint8_t *)object->dlpi_addr + s->p_vaddr, s->p_memsz);
    }
  }
  return own;
}

/* A few megabytes stay, and all of it if the program is small: its runs then need less than the compilation did, and
 * the next one would get each page by a fault (1.7 ms of 16 for silero-vad's second program). */
void compiler_give_memory_back(const compiler_model *s, uint64_t constant_bytes) {
  enum { SMALL = 4 << 20 };
  const opened_model *l = s->model;
  if (constant_bytes < SMALL) {
    return;
  }
  if (l->onnx) {
    drop_pages(l, l->onnx->source.bytes, l->onnx->source.size);
  }
  (void)dl_iterate_phdr(drop_code, NULL);
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
  enum { KEPT = 8 << 20 };
  if (mallinfo2().fordblks > KEPT) {
    (void)malloc_trim(0);
  }
#endif
}

status compiler_compile(const compiler_model *s, const compile_request *request, arena *a, rt_program **out,
                        rt_report *report) {
  compile_request own = *request;
  compile_call c = {.s = s, .request = &own, .a = a, .out = out, .report = report};
  if (own.options.keep_text) { /* the report's texts must be on c.a, so nothing may be compiled on another arena */
    own.options.sharing = NULL;
  }
  status failed = guard_run(own.options.sharing ? compile_and_keep : compile_module, &c);
  if (failed && own.options.sharing) {
    rt_weight_pool_abandon(own.options.sharing->weight_pool);
  }
  arena_destroy(c.scratch);
  if (c.scratch) {
    compiler_give_memory_back(s, report->constant_bytes);
  }
  return failed;
}
