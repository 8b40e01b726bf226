/* object.c - compiles a model to an object file and a header. */
#include <inttypes.h>
#include <string.h>

#include "aot/aot.h"
#include "backend_cpu/compile/target.h"
#include "backend_ref/eval.h"
#include "frontend/model/model_internal.h"
#include "hlo/ir/ir.h"
#include "plugin/compiler/internal.h"

enum { MOST_VERSIONS = 8 };

typedef struct object_call {
  const compiler_model *s;
  const compile_request *request;
  const compiler_object_options *options;
  arena *a;
  compiler_object *out;
  rt_report *report;
} object_call;

/* Returns the names of the dimensions of all inputs. */
static const char *const *const *names_of_dims(const compiler_model *s, arena *a) {
  const char *const **names = ARENA_NEW_N(a, const char *const *, s->n_inputs);
  for (uint32_t k = 0; k < s->n_inputs; k++) {
    names[k] = s->inputs[k].dim_names;
  }
  return names;
}

/* Returns the shapes and contents of all inputs that the request gives or assumes. */
static const literal *likely_inputs(const object_call *c) {
  const compile_request *r = c->request;
  literal *likely = ARENA_NEW_N(c->a, literal, c->s->n_inputs);
  for (uint32_t k = 0; k < c->s->n_inputs; k++) {
    const shape *s = r->inputs && r->inputs[k] ? r->inputs[k] : r->assumed ? &r->assumed[k] : NULL;
    if (s) {
      likely[k] = literal_make(*s, r->values ? r->values[k] : NULL);
    }
  }
  return likely;
}

/* Returns text that says from which model and by which compiler the object was made. */
static const char *about_model(const compiler_model *s, arena *a) {
  return arena_printf(a, "hash: %016" PRIx64 "\nmade by: onnx-xla " PACKAGE_VERSION " (%s)\n", compiler_model_hash(s),
                      compiler_versions());
}

static const aot_carry *carries_of(const compile_request *r, arena *a) {
  aot_carry *carried = ARENA_NEW_N(a, aot_carry, r->n_carried);
  for (uint32_t k = 0; k < r->n_carried; k++) {
    carried[k] = (aot_carry){r->carried[k].output, r->carried[k].input, r->carried[k].axis};
  }
  return carried;
}

static const compiler_text *example_of(arena *a, const aot_files *files) {
  compiler_text *texts = ARENA_NEW_N(a, compiler_text, AOT_EXAMPLE_FILES);
  for (uint32_t k = 0; k < AOT_EXAMPLE_FILES; k++) {
    texts[k] = (compiler_text){files->example[k].name, files->example[k].text};
  }
  return texts;
}

/* Compiles the model for one CPU into the LLVM module, which is created by the call for the first CPU. */
static status add_version(const object_call *c, const char *cpu, uint32_t number, emit_module **module,
                          aot_version *out) {
  hlo_module *m;
  compiler_validity validity;
  rt_program *program;
  rt_compile_options options = c->request->options;
  options.eval = ref_fold;
  options.own_kernels = true;
  options.keep_text = c->options->most_arena != 0; /* for the table of buffers */
  options.cpu = cpu;
  TRY(cpu_target_of(c->a, &options, &out->target));
  emit_target least = emit_target_baseline(&out->target);
  TRY(*module ? NULL : emit_module_create(c->a, &least, "model", module));
  TRY(compiler_import_whole(c->s, c->request, c->a, &m, &validity));
  CHECK_THAT(m, STATUS_UNSUPPORTED,
             "sizes depend on what the model computes, so that a .oxla file can have it, but no object: %s",
             validity.deferred);
  TRY(cpu_compile_into_module((struct hlo_module *)m, &options, c->a, arena_printf(c->a, "v%" PRIu32 "_", number),
                              *module, &program, c->report));
  compiler_set_validity(program, c->s->n_inputs, &validity);
  out->program = program;
  return NULL;
}

/* Compiles the model for each CPU of the option, such as "x86-64-v2,x86-64-v3". */
static status add_versions(const object_call *c, emit_module **module, uint32_t *n, aot_version *versions) {
  const char *at = c->request->options.cpu;
  do {
    size_t length = at ? strcspn(at, ",") : 0;
    CHECK_THAT(*n < MOST_VERSIONS, STATUS_INVALID_ARGUMENT, "more than %d CPUs in one object", MOST_VERSIONS);
    TRY(add_version(c, at ? arena_strndup(c->a, at, length) : NULL, *n, module, &versions[*n]));
    at = at && at[length] ? at + length + 1 : NULL;
    ++*n;
  } while (at);
  return NULL;
}

static status write_object(void *data) {
  object_call *c = data;
  emit_module *module = NULL;
  aot_version versions[MOST_VERSIONS];
  aot_files files;
  uint32_t n = 0;
  TRY(add_versions(c, &module, &n, versions));
  aot_options how = {.prefix = c->options->prefix,
                     .model = c->s->name ? c->s->name : "",
                     .about = about_model(c->s, c->a),
                     .n_inputs = c->s->n_inputs,
                     .n_carried = c->request->n_carried,
                     .carried = carries_of(c->request, c->a),
                     .dim_names = names_of_dims(c->s, c->a),
                     .likely = likely_inputs(c),
                     .file = c->options->file,
                     .header = c->options->header,
                     .most_arena = c->options->most_arena,
                     .buffers = c->report->buffers,
                     .archive = c->options->archive,
                     .separate_weights = c->options->separate_weights};
  TRY(aot_write(c->a, module, n, versions, &how, &files));
  emit_module_destroy(module);
  *c->out = (compiler_object){.object = files.object,
                              .header = files.header,
                              .weights = files.weights,
                              .n_example = AOT_EXAMPLE_FILES,
                              .example = example_of(c->a, &files),
                              .program = versions[n - 1].program};
  return NULL;
}

status compiler_write_object(const compiler_model *s, const compile_request *request, const compiler_object_options *o,
                             arena *a, compiler_object *out, rt_report *report) {
  return guard_run(write_object, &(object_call){s, request, o, a, out, report});
}
