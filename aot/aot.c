/* aot.c - the steps from a program and its kernels to an object and a header; see aot.h. */
#include "aot/aot.h"

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
  return (aot_ports){.word = word, .n = n, .n_named = n_named, .io = io, .names = aot_identifiers(a, n_named, texts)};
}

/* Returns the name of the dimension of an input, or of the element that a parameter tells. */
static const char *dim_text(const aot_host *h, const rt_size_node *n) {
  const rt_io *io = &h->program->params[n->a];
  const aot_options *o = h->options;
  if (io->told) {
    return arena_printf(h->arena, "%s_%u", h->program->params[io->told - 1].name, io->element);
  }
  const char *name = o->dim_names && o->dim_names[n->a] ? o->dim_names[n->a][n->b] : NULL;
  return name ? name : arena_printf(h->arena, "%s_%d", io->name, (int)n->b);
}

/* Returns what the dimension is, for the header. */
static const char *dim_place(const aot_host *h, const rt_size_node *n) {
  const rt_io *io = &h->program->params[n->a];
  uint32_t port = io->told ? io->told - 1 : n->a;
  return arena_printf(h->arena, "%s %u of input %u \"%s\"", io->told ? "element" : "dimension",
                      io->told ? io->element : (unsigned)n->b, port,
                      aot_printable(h->arena, h->program->params[port].name));
}

/* Names the open dimensions, which are the arguments of bind. */
static void name_dims(aot_host *h) {
  const rt_program *p = h->program;
  const char **texts = ARENA_NEW_N(h->arena, const char *, p->n_sizes);
  h->dim_descriptions = ARENA_NEW_N(h->arena, const char *, p->n_sizes);
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    if (p->sizes[k].op == DIM_SYMBOL) {
      h->dim_descriptions[h->n_dims] = dim_place(h, &p->sizes[k]);
      texts[h->n_dims++] = dim_text(h, &p->sizes[k]);
    }
  }
  h->dims = aot_identifiers(h->arena, h->n_dims, texts);
}

static void place_constants(aot_host *h) {
  const rt_program *p = h->program;
  h->constants = ARENA_NEW_N(h->arena, uint64_t, p->n_constants);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    h->constants[k] = h->weights_bytes;
    h->weights_bytes += (p->constants[k].size + RT_KERNEL_ALIGN - 1) & ~(uint64_t)(RT_KERNEL_ALIGN - 1);
  }
}

static aot_host *host_of(arena *a, emit_module *module, const rt_program *p, const aot_options *o) {
  aot_host *h = ARENA_NEW(a, aot_host);
  *h = (aot_host){.ir = emit_module_ir_of(module), .arena = a, .program = p, .options = o};
  h->inputs = ports_of(a, "input", p->n_params, rt_program_inputs(p), p->params);
  h->outputs = ports_of(a, "output", p->n_results, rt_program_outputs(p), p->results);
  h->upper = aot_capitals(a, o->prefix);
  name_dims(h);
  place_constants(h);
  return h;
}

/* --- the module --- */

/* Kernels are called from the object only. */
static void hide_kernels(const emit_ir *w) {
  for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMIsDeclaration(f)) {
      LLVMSetLinkage(f, LLVMInternalLinkage);
    }
  }
}

/* No run of an object is cancelled, so the function by which kernels ask for that says no. */
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

/* Returns the names that other objects see. */
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

status aot_write(arena *a, emit_module *module, const rt_program *p, const aot_options *o, aot_files *out) {
  enum { MOST_EMBEDDED = 1u << 31 }; /* what code of the small model reaches */
  aot_host *h = host_of(a, module, p, o);
  CHECK_THAT(o->separate_weights || h->weights_bytes < MOST_EMBEDDED, STATUS_UNSUPPORTED,
             "%llu bytes of weights are too many for an object; --weights=FILE writes them to a file",
             (unsigned long long)h->weights_bytes);
  hide_kernels(h->ir);
  define_expired(h->ir);
  aot_lay_out_context(h);
  aot_write_weights(h);
  aot_write_bind(h);
  TRY(aot_write_run(h));
  aot_write_entries(h);
  out->header = aot_header(h);
  aot_write_example(h, out->example);
  out->weights = o->separate_weights ? h->weights_data : (rt_span){NULL, 0};
  uint32_t n_names;
  const char **names = global_names(a, h->ir, &n_names);
  size_t size;
  TRY(emit_module_object(module, &out->object.data, &size));
  out->object.size = size;
  if (o->archive) {
    out->object = aot_archive(a, arena_printf(a, "%.12s.o", o->prefix), out->object, n_names, names);
  }
  return NULL;
}
