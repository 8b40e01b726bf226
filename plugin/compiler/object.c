/* object.c - compiles a model to an object file and a header. */
#include <inttypes.h>

#include "aot/aot.h"
#include "backend_cpu/compile/target.h"
#include "backend_ref/eval.h"
#include "base/hash.h"
#include "frontend/model/model_internal.h"
#include "hlo/ir/ir.h"
#include "plugin/compiler/internal.h"
#include "plugin/compiler/text.h"

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

/* Says from which model and by which compiler the object was made. */
static const char *about_model(const compiler_model *s, arena *a) {
  const onnx_model *m = compiler_onnx_model(s);
  uint64_t hash = m ? hash_bytes(m->source.bytes, m->source.size, 0) : 0;
  return arena_printf(a, "hash: %016" PRIx64 "\nmade by: onnx-xla " PACKAGE_VERSION " (%s)\n", hash,
                      compiler_versions());
}

static const compiler_text *example_of(arena *a, const aot_files *files) {
  compiler_text *texts = ARENA_NEW_N(a, compiler_text, AOT_EXAMPLE_FILES);
  for (uint32_t k = 0; k < AOT_EXAMPLE_FILES; k++) {
    texts[k] = (compiler_text){files->example[k].name, files->example[k].text};
  }
  return texts;
}

static status write_object(void *data) {
  object_call *c = data;
  hlo_module *m;
  emit_module *module;
  rt_program *program;
  compiler_validity validity;
  aot_files files;
  TRY(compiler_import_whole(c->s, c->request, c->a, &m, &validity));
  CHECK_THAT(m, STATUS_UNSUPPORTED, "sizes depend on what the model computes, so that it cannot become an object");
  rt_compile_options options = c->request->options;
  options.eval = ref_fold;
  options.own_kernels = true;
  TRY(cpu_compile_into_module((struct hlo_module *)m, &options, c->a, &module, &program, c->report));
  compiler_set_validity(program, c->s->n_inputs, &validity);
  aot_options how = {.prefix = c->options->prefix,
                     .model = c->s->name ? c->s->name : "",
                     .about = about_model(c->s, c->a),
                     .dim_names = names_of_dims(c->s, c->a),
                     .file = c->options->file,
                     .header = c->options->header,
                     .archive = c->options->archive,
                     .separate_weights = c->options->separate_weights};
  TRY(aot_write(c->a, module, program, &how, &files));
  emit_module_destroy(module);
  *c->out = (compiler_object){.object = files.object,
                              .header = files.header,
                              .weights = files.weights,
                              .n_example = AOT_EXAMPLE_FILES,
                              .example = example_of(c->a, &files),
                              .program = program};
  return NULL;
}

status compiler_write_object(const compiler_model *s, const compile_request *request, const compiler_object_options *o,
                             arena *a, compiler_object *out, rt_report *report) {
  return guard_run(write_object, &(object_call){s, request, o, a, out, report});
}
