/* aot.c - the steps from a program and its kernels to an object and a header; see aot.h. */
#include "aot/aot.h"

#include <inttypes.h>
#include <string.h>

#include "aot/archive.h"
#include "aot/host.h"
#include "emit/kernel/module.h"
#include "emit/llvm/metadata.h"
#include "runtime/kernel_abi.h"
#include "runtime/program/told.h"

/* --- the description of the program --- */

static aot_ports ports_of(arena *a, const char *word, uint32_t n, uint32_t n_named, const rt_io *io) {
  const char **texts = ARENA_NEW_N(a, const char *, n_named);
  for (uint32_t k = 0; k < n_named; k++) {
    texts[k] = io[k].name;
  }
  return (aot_ports){.word = word,
                     .n = n,
                     .n_named = n_named,
                     .io = io,
                     .names = aot_identifiers(a, n_named, texts),
                     .storage = ARENA_NEW_N(a, aot_storage, n),
                     .kept_in = ARENA_NEW_N(a, uint32_t, n)};
}

/* Returns a name for the symbol n: for a dimension of an input, the dimension's name; for an element of an input
 * (rt_io.told), a name such as "shape_2"; AOT_ROOM for the extent to which carried arrays may grow. */
static const char *dim_text(const aot_host *h, const rt_size_node *n) {
  const rt_io *io = &h->program->params[n->a];
  const aot_options *o = h->options;
  if (io->told) {
    return arena_printf(h->arena, "%s_%u", h->program->params[io->told - 1].name, io->element);
  }
  if (n->a >= o->n_inputs) {
    return AOT_ROOM;
  }
  const char *name = o->dim_names && o->dim_names[n->a] ? o->dim_names[n->a][n->b] : NULL;
  return name ? name : arena_printf(h->arena, "%s_%d", io->name, (int)n->b);
}

/* Returns a description of the symbol n for the header, such as: dimension 0 of input 1 "x". */
static const char *dim_place(const aot_host *h, const rt_size_node *n) {
  const rt_io *io = &h->program->params[n->a];
  uint32_t port = io->told ? io->told - 1 : n->a;
  if (port >= h->options->n_inputs) {
    return "the rows for which arrays that are carried have room";
  }
  return arena_printf(h->arena, "%s %u of input %u \"%s\"", io->told ? "element" : "dimension",
                      io->told ? io->element : (unsigned)n->b, port,
                      aot_printable(h->arena, h->program->params[port].name));
}

/* Returns the size of the symbol n for which the example runs the model, or AOT_LIKELY if nothing is known of it. */
static int64_t likely_dim(const aot_host *h, const rt_size_node *n) {
  const rt_io *io = &h->program->params[n->a];
  uint32_t port = io->told ? io->told - 1 : n->a;
  const literal *l = h->options->likely && port < h->options->n_inputs ? &h->options->likely[port] : NULL;
  if (l && io->told) {
    return l->data ? literal_i64(l, io->element) : AOT_LIKELY;
  }
  return l && n->b < (uint32_t)l->shape.rank && l->shape.dims[n->b] >= 0 ? l->shape.dims[n->b] : AOT_LIKELY;
}

/* Names the symbolic dimensions, which are the arguments of bind. */
static void name_dims(aot_host *h) {
  const rt_program *p = h->program;
  const char **texts = ARENA_NEW_N(h->arena, const char *, p->n_sizes);
  h->dim_descriptions = ARENA_NEW_N(h->arena, const char *, p->n_sizes);
  h->likely_dims = ARENA_NEW_N(h->arena, int64_t, p->n_sizes);
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    if (p->sizes[k].op == DIM_SYMBOL) {
      h->likely_dims[h->n_dims] = likely_dim(h, &p->sizes[k]);
      h->dim_descriptions[h->n_dims] = dim_place(h, &p->sizes[k]);
      texts[h->n_dims++] = dim_text(h, &p->sizes[k]);
    }
  }
  h->dims = aot_identifiers(h->arena, h->n_dims, texts);
}

/* Returns the offset of the constant in the weights.  If the weights already have an equal constant, of this version or
 * of another one, its offset is returned; otherwise the constant is added to them. */
static uint64_t place_constant(aot_object *x, rt_span bytes) {
  for (uint32_t k = 0; k < x->n_constants; k++) {
    rt_span c = x->constants[k].bytes;
    if (c.size == bytes.size && (c.data == bytes.data || memcmp(c.data, bytes.data, bytes.size) == 0)) {
      return x->constants[k].at;
    }
  }
  uint64_t at = x->weights_bytes;
  *ARENA_PUSH(x->arena, x->constants, x->n_constants, x->cap_constants) = (aot_constant){bytes, at};
  x->weights_bytes += aot_pad(bytes.size);
  return at;
}

static status describe(aot_host *h, aot_object *x, uint32_t number, const aot_version *v) {
  const rt_program *p = v->program;
  *h = (aot_host){.object = x,
                  .ir = x->ir,
                  .arena = x->arena,
                  .program = p,
                  .target = &v->target,
                  .options = x->options,
                  .version = number};
  h->inputs = ports_of(x->arena, "input", p->n_params, x->options->n_inputs, p->params);
  h->outputs = ports_of(x->arena, "output", p->n_results, rt_program_outputs(p), p->results);
  name_dims(h);
  h->constants = ARENA_NEW_N(x->arena, uint64_t, p->n_constants);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    h->constants[k] = place_constant(x, p->constants[k]);
  }
  TRY(aot_choose_storage(h));
  aot_lay_out_context(h);
  x->n_words = h->n_words > x->n_words ? h->n_words : x->n_words;
  x->arena_bytes = h->arena_bytes > x->arena_bytes ? h->arena_bytes : x->arena_bytes;
  return NULL;
}

/* Returns true if the versions have equally many inputs and outputs, and the same arguments of bind in the same order.
 */
static bool look_alike(const aot_host *x, const aot_host *y) {
  bool same = x->n_dims == y->n_dims && x->inputs.n == y->inputs.n && x->outputs.n == y->outputs.n &&
              x->outputs.n_named == y->outputs.n_named && aot_is_static(x) == aot_is_static(y);
  for (uint32_t k = 0; same && k < x->n_dims; k++) {
    same = strcmp(x->dim_descriptions[k], y->dim_descriptions[k]) == 0;
  }
  return same;
}

/* Fails if two versions differ in what the caller sees. */
static status check_versions(uint32_t n, const aot_host *hosts) {
  for (uint32_t k = 1; k < n; k++) {
    CHECK_THAT(look_alike(&hosts[0], &hosts[k]), STATUS_UNSUPPORTED,
               "the model is not for the same sizes on all of these CPUs");
  }
  return NULL;
}

/* --- the module --- */

/* Makes the kernels internal functions, since only the object itself calls them. */
static void hide_kernels(const emit_ir *w) {
  for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMIsDeclaration(f)) {
      LLVMSetLinkage(f, LLVMInternalLinkage);
    }
  }
}

/* Defines onnx_xla_expired, which kernels call to find out whether the run was cancelled.  It returns 0, since no run
 * of an object is cancelled. */
static void define_expired(emit_ir *w) {
  LLVMValueRef f = LLVMGetNamedFunction(w->module, "onnx_xla_expired");
  if (!f) {
    return;
  }
  w->function = f;
  LLVMSetLinkage(f, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(w->builder, emit_block(w, "entry"));
  LLVMBuildRet(w->builder, LLVMConstInt(w->i32, 0, 0));
}

/* Returns the names of the symbols that other object files see, and sets *n to their number. */
static const char **global_names(arena *a, const emit_ir *w, uint32_t *n) {
  const char **names = NULL;
  uint32_t cap = 0;
  *n = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMIsDeclaration(f) && LLVMGetLinkage(f) == LLVMExternalLinkage) {
      *ARENA_PUSH(a, names, *n, cap) = arena_strdup(a, LLVMGetValueName(f));
    }
  }
  for (LLVMValueRef g = LLVMGetFirstGlobal(w->module); g; g = LLVMGetNextGlobal(g)) {
    if (LLVMGetLinkage(g) == LLVMExternalLinkage) {
      *ARENA_PUSH(a, names, *n, cap) = arena_strdup(a, LLVMGetValueName(g));
    }
  }
  return names;
}

/* Makes the object file, or a static library that contains it. */
static status compile(arena *a, const aot_object *x, emit_module *module, aot_files *out) {
  uint32_t n_names;
  const char **names = global_names(a, x->ir, &n_names);
  size_t size;
  TRY(budget_check(arena_budget(a)));
  TRY(emit_module_object(module, &out->object.data, &size));
  out->object.size = size;
  TRY(aot_fill_weights(x, &out->object));
  if (x->options->archive) {
    out->object = aot_archive(a, arena_printf(a, "%.12s.o", x->options->prefix), out->object, n_names, names);
  }
  return NULL;
}

/* Writes the functions of one version. */
static status write_version(aot_host *h) {
  aot_write_bind(h);
  TRY(aot_write_run(h));
  aot_write_ports(h);
  if (h->options->n_carried) {
    aot_write_reset(h);
  }
  return NULL;
}

static status write_object(aot_object *x, aot_host *hosts) {
  hide_kernels(x->ir);
  define_expired(x->ir);
  aot_write_weights(x);
  for (uint32_t k = 0; k < x->n_versions; k++) {
    TRY(write_version(&hosts[k]));
  }
  aot_write_dispatch(hosts);
  aot_write_tables(&hosts[0]);
  aot_write_entries(hosts);
  return NULL;
}

status aot_write(arena *a, emit_module *module, uint32_t n, const aot_version *versions, const aot_options *o,
                 aot_files *out) {
  const uint64_t most_embedded = (uint64_t)1 << 31; /* the most that LLVM's small code model can address */
  aot_object x = {.ir = emit_module_ir_of(module),
                  .arena = a,
                  .options = o,
                  .n_versions = n,
                  .upper = aot_capitals(a, o->prefix),
                  .weights_bytes = o->separate_weights ? RT_KERNEL_ALIGN : 0};
  aot_host *hosts = ARENA_NEW_N(a, aot_host, n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(describe(&hosts[k], &x, k, &versions[k]));
  }
  TRY(check_versions(n, hosts));
  TRY(aot_check_room(&hosts[0]));
  CHECK_THAT(o->separate_weights || x.weights_bytes < most_embedded, STATUS_UNSUPPORTED,
             "%" PRIu64 " bytes of weights are too many for an object; --weights=FILE writes them to a file",
             x.weights_bytes);
  TRY(write_object(&x, hosts));
  out->header = aot_header(&hosts[0]);
  aot_write_example(&hosts[0], out->example);
  out->weights = o->separate_weights ? x.weights_data : (rt_span){NULL, 0};
  return compile(a, &x, module, out);
}
