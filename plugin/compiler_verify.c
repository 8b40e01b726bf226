/* compiler_verify.c - see compiler_verify.h; verify/ does the work. */
#include "plugin/compiler_verify.h"

#include "plugin/compiler_backend.h"
#include "plugin/compiler_text.h"
#include "runtime/pool.h"

typedef struct verify_call {
  const plug_source *s;
  const plug_request *request;
  const plug_verify_options *o;
  arena *a;
  verify_report *out;
} verify_call;

static status import(void *data, arena *a, hlo_module **out) {
  const verify_call *c = data;
  bool complete;
  TRY(plug_import(c->s, c->request, a, out, NULL, &complete));
  CHECK_THAT(complete, STATUS_UNSUPPORTED,
             "sizes depend on what the model computes, so it runs piece by piece: verify needs a model that is one program");
  return NULL;
}

static void destroy_pool(void *pool) { rt_pool_destroy(pool); }

static status verify(void *data) {
  verify_call *c = data;
  verify_options options = {.compile = c->request->options, .all_algorithms = c->o->all_algorithms, .folder = c->o->folder,
                            .seed = c->o->seed, .progress = c->o->progress, .progress_data = c->o->progress_data};
  options.compile.dump = NULL;
  TRY(plug_backend(c->request->backend, &options.backend));
  TRY(rt_pool_create(options.compile.threads, &options.pool));
  arena_cleanup(c->a, destroy_pool, options.pool);
  return verify_module(c->a, import, c, c->o->inputs, &options, c->out);
}

status plug_verify(const plug_source *s, const plug_request *request, const plug_verify_options *o, arena *a, verify_report *out) {
  return guard_run(verify, &(verify_call){s, request, o, a, out});
}
