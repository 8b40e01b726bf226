/* fused.c - compiles a partition as a model of onnx-xla, and runs it in ONNX Runtime's memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "plugin/onnxruntime/internal.h"

/* An oxla_run that no thread is using now.  A run is made only if all others are in use, and none is destroyed before
 * the partition. */
typedef struct idle_run {
  struct idle_run *next;
  oxla_run *run;
  uint64_t sizes; /* a hash of the sizes of its inputs in the last run */
} idle_run;

typedef struct fused {
  OrtNodeComputeInfo info; /* must be the first member */
  const ort_provider *p;
  size_t n_inputs, n_outputs;
  char **inputs, **outputs;      /* names, in ONNX Runtime's order */
  size_t *input_at, *output_at;  /* their indices in the model */
  void *bytes;                   /* the bytes of the model, or NULL */
  int file;                      /* the file of a compiled model, or -1 */
  ort_span image;                /* a compiled model in mapped memory, or empty */
  ort_kept kept;                 /* the data of large constants */
  oxla_model *model, *reference; /* `reference` is for the option `verify`; NULL if results are not compared */
  pthread_mutex_t lock;          /* guards idle */
  idle_run *idle;
} fused;

static void free_names(char **names, size_t n) {
  for (size_t k = 0; names && k < n; k++) {
    free(names[k]);
  }
  free(names);
}

void ort_fused_destroy(OrtNodeComputeInfo *info) {
  fused *f = (fused *)info;
  if (!f) {
    return;
  }
  for (idle_run *r = f->idle, *next; r; r = next) {
    next = r->next;
    oxla_run_destroy(r->run);
    free(r);
  }
  oxla_model_destroy(f->model);
  oxla_model_destroy(f->reference);
  ort_kept_free(&f->kept);
  free(f->bytes);
  if (f->file >= 0) {
    close(f->file);
  }
  if (f->image.bytes) {
    munmap((void *)(uintptr_t)f->image.bytes, f->image.n);
  }
  free(f->input_at);
  free(f->output_at);
  free_names(f->inputs, f->n_inputs);
  free_names(f->outputs, f->n_outputs);
  pthread_mutex_destroy(&f->lock);
  free(f);
}

/* --- runs --- */

static OrtStatus *take_run(fused *f, idle_run **out) {
  pthread_mutex_lock(&f->lock);
  *out = f->idle;
  f->idle = *out ? (*out)->next : NULL;
  pthread_mutex_unlock(&f->lock);
  if (*out) {
    return NULL;
  }
  idle_run *r = calloc(1, sizeof *r);
  if (!r) {
    return ort_no_memory(f->p);
  }
  oxla_error *error = oxla_run_create(f->model, &r->run);
  if (error) {
    free(r);
    return ort_from_error(f->p, "a run", error);
  }
  *out = r;
  return NULL;
}

static void return_run(fused *f, idle_run *r) {
  pthread_mutex_lock(&f->lock);
  r->next = f->idle;
  f->idle = r;
  pthread_mutex_unlock(&f->lock);
}

/* Sets the inputs of `run`.  Sets *sizes to a hash of their sizes, unless `sizes` is NULL. */
static OrtStatus *set_inputs(const fused *f, OrtKernelContext *context, oxla_run *run, uint64_t *sizes) {
  uint64_t hash = 0;
  for (size_t k = 0; k < f->n_inputs; k++) {
    const OrtValue *value = NULL;
    ort_array x;
    ORT_TRY(f->p->api->KernelContext_GetInput(context, k, &value));
    if (!value) {
      return ort_fail(f->p, "onnx-xla: input '%s' is not given", f->inputs[k]);
    }
    ORT_TRY(ort_array_read(f->p, value, &x));
    /* An empty array may have the address NULL, which would mean that the input is missing. */
    static char nothing;
    ORT_TRY(ort_from_error(
        f->p, "input",
        oxla_set_input_at(run, f->input_at[k], (oxla_type)x.type, (int)x.rank, x.dims, x.data ? x.data : &nothing)));
    hash = XXH3_64bits_withSeed(x.dims, x.rank * sizeof *x.dims, hash);
  }
  if (sizes) {
    *sizes = hash;
  }
  return NULL;
}

static bool is_open(const oxla_tensor *t) {
  for (int d = 0; d < t->rank; d++) {
    if (t->dims[d] < 0) {
      return true;
    }
  }
  return t->rank < 0;
}

static OrtStatus *make_output(const fused *f, OrtKernelContext *context, size_t k, const oxla_tensor *t, void **data) {
  OrtValue *value;
  ORT_TRY(f->p->api->KernelContext_GetOutput(context, k, t->dims, (size_t)t->rank, &value));
  return f->p->api->GetTensorMutableData(value, data);
}

/* Makes the run write each output of known size into memory that ONNX Runtime provides.  Sets open[k] to true for the
 * other outputs. */
static OrtStatus *place_outputs(const fused *f, OrtKernelContext *context, oxla_run *run, bool *open) {
  for (size_t k = 0; k < f->n_outputs; k++) {
    oxla_tensor t;
    void *data = NULL;
    ORT_TRY(ort_from_error(f->p, "output", oxla_get_output_at(run, f->output_at[k], &t)));
    open[k] = is_open(&t);
    if (!open[k]) {
      ORT_TRY(make_output(f, context, k, &t, &data));
    }
    ORT_TRY(ort_from_error(f->p, "output", oxla_set_output_at(run, f->output_at[k], data, data ? t.bytes : 0)));
  }
  return NULL;
}

static OrtStatus *copy_open_outputs(const fused *f, OrtKernelContext *context, oxla_run *run, const bool *open) {
  for (size_t k = 0; k < f->n_outputs; k++) {
    oxla_tensor t;
    void *data;
    if (open[k]) {
      ORT_TRY(ort_from_error(f->p, "output", oxla_get_output_at(run, f->output_at[k], &t)));
      ORT_TRY(make_output(f, context, k, &t, &data));
      if (t.bytes) {
        memcpy(data, t.data, t.bytes);
      }
    }
  }
  return NULL;
}

static OrtStatus *compute_with(const fused *f, OrtKernelContext *context, idle_run *r, bool *open) {
  oxla_run *run = r->run;
  uint64_t last = r->sizes;
  ORT_TRY(set_inputs(f, context, run, &r->sizes));
  ORT_TRY(ort_from_error(f->p, "compiling", oxla_compile(run)));
  if (r->sizes != last) { /* a program may have been compiled for these sizes; compiling reads mapped weights, which
                             need not stay in memory afterwards */
    ort_kept_drop(&f->kept);
  }
  ORT_TRY(place_outputs(f, context, run, open));
  ORT_TRY(ort_from_error(f->p, "running", oxla_execute(run)));
  return copy_open_outputs(f, context, run, open);
}

/* --- verification --- */

/* Runs the reference model, if there is one, and sets *out to its run.  Must be called before the run whose results are
 * compared with those of the reference, since that run may write outputs over inputs. */
static OrtStatus *run_reference(const fused *f, OrtKernelContext *context, oxla_run **out) {
  if (!f->reference) {
    return NULL;
  }
  ORT_TRY(ort_from_error(f->p, "verify", oxla_run_create(f->reference, out)));
  ORT_TRY(set_inputs(f, context, *out, NULL));
  return ort_from_error(f->p, "verify", oxla_execute(*out));
}

/* Compares the outputs of the two runs.  `reference` is NULL if results are not compared. */
static OrtStatus *verify_outputs(const fused *f, const oxla_run *run, const oxla_run *reference) {
  for (size_t k = 0; reference && k < f->n_outputs; k++) {
    oxla_tensor got, want;
    ORT_TRY(ort_from_error(f->p, "verify", oxla_get_output_at(run, f->output_at[k], &got)));
    ORT_TRY(ort_from_error(f->p, "verify", oxla_get_output_at(reference, f->output_at[k], &want)));
    ORT_TRY(ort_compare(f->p, f->outputs[k], &got, &want));
  }
  return NULL;
}

/* --- what ONNX Runtime calls --- */

static OrtStatus *create_state(OrtNodeComputeInfo *self, OrtNodeComputeContext *context, void **state) {
  (void)context;
  *state = self;
  return NULL;
}

static void release_state(OrtNodeComputeInfo *self, void *state) { (void)self, (void)state; }

static OrtStatus *compute(OrtNodeComputeInfo *self, void *state, OrtKernelContext *context) {
  (void)self;
  fused *f = state;
  idle_run *r;
  bool few[16], *open = f->n_outputs <= sizeof few ? few : malloc(f->n_outputs);
  if (!open) {
    return ort_no_memory(f->p);
  }
  oxla_run *reference = NULL;
  OrtStatus *failed = take_run(f, &r);
  if (!failed) {
    failed = run_reference(f, context, &reference);
    failed = failed ? failed : compute_with(f, context, r, open);
    failed = failed ? failed : verify_outputs(f, r->run, reference);
    return_run(f, r);
  }
  oxla_run_destroy(reference);
  if (open != few) {
    free(open);
  }
  return failed;
}

/* --- compiling --- */

static OrtStatus *copy_names(const ort_provider *p, size_t n, const OrtValueInfo *const *values, char ***out) {
  *out = calloc(n + 1, sizeof **out);
  for (size_t k = 0; *out && k < n; k++) {
    const char *name;
    ORT_TRY(ort_value_name(p, values[k], &name));
    (*out)[k] = strdup(name);
    if (!(*out)[k]) {
      return ort_no_memory(p);
    }
  }
  return *out ? NULL : ort_no_memory(p);
}

/* Passes the library's warnings on to ONNX Runtime's log. */
static void log_warning(void *provider, oxla_log_level level, const char *line) {
  if (level == OXLA_LOG_WARNING) {
    ort_log(provider, ORT_LOGGING_LEVEL_WARNING, "onnx-xla: %s", line);
  }
}

/* Returns the options for loading the model.  `log` is set only if there is a fallback, since a warning then says that
 * the fallback is in use.  Otherwise a log function would only cost time: each run would format a line that log_warning
 * does not show. */
static oxla_options options_of(const fused *f, const ort_weights *w) {
  const ort_options *o = &f->p->options;
  return (oxla_options){.size = sizeof(oxla_options),
                        .backend = *o->backend ? o->backend : NULL,
                        .fallback = *o->fallback ? o->fallback : NULL,
                        .log = *o->fallback ? log_warning : NULL,
                        .log_data = (void *)(uintptr_t)f->p,
                        .cache = *o->cache_dir ? o->cache_dir : NULL,
                        .check_memory = o->check_memory,
#define value_flag(value) value
#define value_count(value) value
#define value_text(value) *value ? value : NULL
#define value_choice(value) *value ? value : NULL
#define PUBLIC_OPTION(member, type, name, argument) .name = value_##type(o->name),
#include "runtime/program/compile_options.def"
                        .constants = w->items,
                        .n_constants = w->n};
}

static OrtStatus *find_names(const ort_provider *p, const oxla_model *m,
                             const char *name_of(const oxla_model *, size_t), size_t n_there, size_t n,
                             char *const *names, size_t **out) {
  *out = calloc(n + 1, sizeof **out);
  for (size_t k = 0; *out && k < n; k++) {
    size_t at = 0;
    while (at < n_there && strcmp(name_of(m, at), names[k]) != 0) {
      at++;
    }
    if (at == n_there) {
      return ort_fail(p, "onnx-xla: the model has no '%s'", names[k]);
    }
    (*out)[k] = at;
  }
  return *out ? NULL : ort_no_memory(p);
}

static OrtStatus *number_names(fused *f) {
  const oxla_model *m = f->model;
  ORT_TRY(find_names(f->p, m, oxla_input_name, oxla_input_count(m), f->n_inputs, f->inputs, &f->input_at));
  return find_names(f->p, m, oxla_output_name, oxla_output_count(m), f->n_outputs, f->outputs, &f->output_at);
}

/* Fails if the device of the backend cannot be used, by allocating a byte of its memory.  Loading a model shows that
 * only if the option `cpu` names no GPU.  A session that writes compiled models may do so for another machine. */
static OrtStatus *check_device(const fused *f) {
  void *memory = NULL;
  if (f->p->options.context_enable) {
    return NULL;
  }
  ORT_TRY(ort_from_error(f->p, "the backend's device", oxla_device_allocate(f->model, 1, &memory)));
  oxla_free_output(f->model, memory);
  return NULL;
}

static OrtStatus *load(fused *f, size_t size, const ort_weights *w) {
  oxla_options options = options_of(f, w);
  ORT_TRY(ort_from_error(f->p, "loading", oxla_load_memory(f->bytes, size, &options, &f->model)));
  ORT_TRY(check_device(f));
  if (f->p->options.verify) {
    options = (oxla_options){.size = sizeof options, /* the other options are about code and how it is made */
                             .backend = "ref",
                             .cache = "",
                             .threads = options.threads,
                             .unchecked = options.unchecked,
                             .constants = options.constants,
                             .n_constants = options.n_constants};
    return ort_from_error(f->p, "loading", oxla_load_memory(f->bytes, size, &options, &f->reference));
  }
  return NULL;
}

static OrtStatus *load_compiled(fused *f, size_t size) {
  char path[32];
  oxla_options options = options_of(f, &(ort_weights){0});
  if (f->image.bytes) {
    ORT_TRY(ort_from_error(f->p, "loading", oxla_load_memory(f->image.bytes, size, &options, &f->model)));
  } else {
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->file);
    ORT_TRY(ort_from_error(f->p, "loading", oxla_load(path, &options, &f->model)));
  }
  return check_device(f);
}

/* Compiles the model if the sizes of all inputs are known, and sets *done to whether it is compiled.  If not, the first
 * run compiles it. */
static OrtStatus *compile_ahead(fused *f, bool *done) {
  oxla_run *run;
  *done = false;
  for (size_t k = 0; k < oxla_input_count(f->model); k++) {
    oxla_tensor t;
    ORT_TRY(ort_from_error(f->p, "loading", oxla_input_type(f->model, k, &t)));
    if (is_open(&t)) {
      return NULL;
    }
  }
  ORT_TRY(ort_from_error(f->p, "a run", oxla_run_create(f->model, &run)));
  oxla_error *error = oxla_compile(run);
  oxla_run_destroy(run);
  if (oxla_error_subject(error) == OXLA_ABOUT_VALUE) { /* a size depends on the values of an input */
    oxla_error_free(error);
    return NULL;
  }
  ort_kept_drop(&f->kept);
  ORT_TRY(ort_from_error(f->p, "compiling", error));
  *done = true;
  return NULL;
}

static OrtStatus *build(fused *f, const ort_graph *g, const ort_node *node, size_t *size) {
  pb_writer model = {0};
  ort_weights weights = {0};
  ort_partition_values b = {.p = f->p};
  OrtStatus *failed = ort_partition_values_find(&b, g, NULL);
  ort_model_parts parts = {.n_inputs = node->n_in,
                           .inputs = node->in,
                           .n_outputs = node->n_out,
                           .outputs = node->out,
                           .n_constants = b.constants.n,
                           .constants = b.constants.items,
                           .large_constants_are_inputs = !f->p->options.context_enable,
                           .weights = &weights};
  failed = failed ? failed : ort_model_write(f->p, g, &parts, &model);
  ort_partition_values_free(&b);
  f->bytes = model.bytes;
  *size = model.n;
  failed = failed ? failed : ort_weights_keep(f->p, g, &weights, &f->kept);
  failed = failed ? failed : load(f, model.n, &weights);
  ort_weights_free(&weights);
  return failed;
}

/* Writes what a later session loads: the compiled program if there is one, otherwise the model. */
static OrtStatus *write_context(fused *f, const ort_graph *g, const OrtNode *node, size_t size, bool compiled,
                                OrtNode **out) {
  if (!compiled) {
    return ort_context_write(f->p, g, node, f->bytes, size, out);
  }
  void *bytes = NULL;
  OrtStatus *failed = ort_from_error(f->p, "saving", oxla_save_memory(f->model, &bytes, &size));
  failed = failed ? failed : ort_context_write(f->p, g, node, bytes, size, out);
  oxla_free(bytes);
  return failed;
}

static OrtStatus *compile(fused *f, const OrtGraph *graph, const OrtNode *fused_node, ort_graph *g, ort_node *node,
                          OrtNode **context_node) {
  bool compiled;
  size_t size = 0;
  ORT_TRY(ort_graph_read(f->p, graph, g));
  ORT_TRY(ort_node_read(f->p, fused_node, node));
  f->n_inputs = node->n_in;
  f->n_outputs = node->n_out;
  ORT_TRY(copy_names(f->p, node->n_in, node->in, &f->inputs));
  ORT_TRY(copy_names(f->p, node->n_out, node->out, &f->outputs));
  if (g->n_nodes == 1 && ort_is_context(f->p, &g->nodes[0])) {
    ORT_TRY(ort_context_open(f->p, g, &g->nodes[0], &f->file, &f->image, &size));
    ORT_TRY(load_compiled(f, size));
    return number_names(f);
  }
  ORT_TRY(build(f, g, node, &size));
  ORT_TRY(number_names(f));
  ORT_TRY(compile_ahead(f, &compiled));
  return f->p->options.context_enable && context_node ? write_context(f, g, fused_node, size, compiled, context_node)
                                                      : NULL;
}

OrtStatus *ort_compile(ort_provider *p, const OrtGraph *graph, const OrtNode *fused_node, OrtNodeComputeInfo **out,
                       OrtNode **context_node) {
  ort_graph g = {0};
  ort_node node = {0};
  fused *f = calloc(1, sizeof *f);
  if (!f) {
    return ort_no_memory(p);
  }
  *f = (fused){.info = {.ort_version_supported = ORT_API_VERSION,
                        .CreateState = create_state,
                        .Compute = compute,
                        .ReleaseState = release_state},
               .p = p,
               .file = -1};
  pthread_mutex_init(&f->lock, NULL);
  OrtStatus *failed = compile(f, graph, fused_node, &g, &node, context_node);
  ort_graph_free(&g);
  ort_node_free(&node);
  if (failed) {
    ort_fused_destroy(&f->info);
    return failed;
  }
  *out = &f->info;
  return NULL;
}
