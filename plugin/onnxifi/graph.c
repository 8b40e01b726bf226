/* graph.c - initialises graphs from models, and releases them. */
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxifi/graph.h"

static void destroy(ifi_object *o) {
  ifi_graph *g = (ifi_graph *)o;
  ifi_graph_stop(g);
  ifi_io_release(g->io);
  oxla_model_destroy(g->model);
  for (uint32_t k = 0; k < g->n_weights; k++) {
    free((void *)(uintptr_t)g->weights[k].name);
    free((void *)(uintptr_t)g->weights[k].dims);
    free((void *)(uintptr_t)g->weights[k].data);
  }
  free(g->weights);
  free(g->bytes);
  free(g->threads);
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
  ifi_release(g->backend ? &g->backend->object : NULL);
  free(g);
}

static ifi_graph *create(ifi_backend *b) {
  ifi_graph *g = calloc(1, sizeof *g);
  if (g) {
    ifi_object_init(&g->object, IFI_GRAPH, destroy);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    ifi_retain(&b->object);
    g->backend = b;
  }
  return g;
}

/* --- weights --- */

static void *copy_bytes(const void *from, size_t size) {
  void *to = malloc(size ? size : 1);
  return to && size ? memcpy(to, from, size) : to;
}

static onnxStatus copy_weight(const onnxTensorDescriptorV1 *d, oxla_constant *out) {
  int64_t dims[OXLA_MAX_RANK] = {0};
  ifi_get_dims(d, dims);
  out->name = strdup(d->name);
  out->type = (oxla_type)d->dataType;
  out->rank = (int)d->dimensions;
  out->dims = copy_bytes(dims, sizeof dims);
  out->data = copy_bytes((const void *)(uintptr_t)d->buffer, ifi_descriptor_bytes(d));
  return out->name && out->dims && out->data ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
}

static onnxStatus copy_weights(ifi_graph *g, uint32_t n, const onnxTensorDescriptorV1 *weights) {
  g->weights = calloc(n + (size_t)1, sizeof *g->weights);
  if (!g->weights) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  for (uint32_t k = 0; k < n; k++) {
    onnxStatus s = weights[k].name ? ifi_check_descriptor(&weights[k], true) : ONNXIFI_STATUS_INVALID_NAME;
    if (s) {
      return s;
    }
    g->n_weights = k + 1; /* a copy that failed is freed, too */
    s = copy_weight(&weights[k], &g->weights[k]);
    if (s) {
      return s;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* --- models --- */

static oxla_error *load(ifi_graph *g, size_t size) {
  const ifi_backend *b = g->backend;
  oxla_options options = ifi_options_for(b->id);
  options.threads = b->threads;
  options.tune = b->tune;
  options.constants = g->weights;
  options.n_constants = g->n_weights;
  return ifi_log_error(b, "graph", oxla_load_memory(g->bytes, size, &options, &g->model));
}

/* Weights are either in the model or given by descriptors.  If the model contains weights, the descriptors are not
 * read, since ONNX's own driver then passes a list that is not completely filled in. */
static onnxStatus load_with_weights(ifi_graph *g, size_t size, const ifi_list *weights) {
  onnxStatus s = ifi_status(load(g, size));
  if (s || weights->n == 0 || oxla_initializer_count(g->model) > 0) {
    return s;
  }
  oxla_model_destroy(g->model);
  g->model = NULL;
  onnxTensorDescriptorV1 *list;
  s = ifi_read_list(weights, &list);
  s = s ? s : copy_weights(g, weights->n, list);
  for (uint32_t k = 0; !s && ifi_the_abi.set_input_type && k < weights->n; k++) {
    ifi_the_abi.set_input_type(g->bytes, size, list[k].name, list[k].dataType);
  }
  free(list);
  return s ? s : ifi_descriptor_status(load(g, size));
}

static bool is_closed(const oxla_model *m) {
  for (size_t k = 0; k < oxla_input_count(m); k++) {
    oxla_tensor t;
    oxla_error *error = oxla_input_type(m, k, &t);
    oxla_error_free(error);
    for (int d = 0; !error && d < t.rank; d++) {
      if (t.dims[d] < 0) {
        return false;
      }
    }
    if (error) {
      return false;
    }
  }
  return true;
}

static oxla_error *compile_ahead(oxla_model *m) {
  oxla_run *run;
  oxla_error *error = oxla_run_create(m, &run);
  if (!error) {
    error = oxla_compile(run);
    oxla_run_destroy(run);
  }
  return error;
}

/* Allocates a byte of the backend's memory, so that a GPU that cannot be used is found before the first run. */
static oxla_error *try_memory(oxla_model *m) {
  void *memory = NULL;
  oxla_error *error = oxla_device_allocate(m, 1, &memory);
  oxla_free_output(m, memory);
  return error;
}

/* Finds errors as early as possible: checks the model and the device, and compiles the model if all shapes are fixed.
 * If a size depends on the values of an input, compiling waits for them. */
static onnxStatus prepare(ifi_graph *g) {
  if (ifi_has_other_values(g->model)) {
    return ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
  }
  oxla_error *error = oxla_check(g->model);
  error = error ? error : try_memory(g->model);
  if (!error && is_closed(g->model)) {
    error = compile_ahead(g->model);
  }
  if (oxla_error_subject(error) == OXLA_ABOUT_VALUE) {
    oxla_error_free(error);
    error = NULL;
  }
  return ifi_status(ifi_log_error(g->backend, "graph", error));
}

static onnxStatus init_graph(ifi_backend *b, size_t size, const void *model, const ifi_list *weights, onnxGraph *out) {
  ifi_graph *g = create(b);
  if (!g) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  g->bytes = copy_bytes(model, size);
  onnxStatus s = g->bytes ? load_with_weights(g, size, weights) : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  if (!s) {
    s = prepare(g);
  }
  if (!s) {
    *out = ifi_handle_create(&g->object);
    s = *out ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  if (s) {
    ifi_release(&g->object);
  } else {
    ifi_log(b, ONNXIFI_LOG_LEVEL_INFO, "graph: %zu bytes, %zu weights, %zu inputs, %zu outputs", size,
            oxla_initializer_count(g->model), oxla_input_count(g->model), oxla_output_count(g->model));
  }
  return s;
}

onnxStatus ifi_init_graph(onnxBackend backend, onnxStatus properties, size_t size, const void *model,
                          const ifi_list *weights, onnxGraph *graph) {
  if (!graph) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *graph = NULL;
  ifi_backend *b = ifi_handle_get(backend, IFI_BACKEND);
  if (!b) {
    return ONNXIFI_STATUS_INVALID_BACKEND;
  }
  onnxStatus s = !model || (weights->n && !weights->descriptors) ? ONNXIFI_STATUS_INVALID_POINTER
                 : size == 0                                     ? ONNXIFI_STATUS_INVALID_SIZE
                 : properties                                    ? properties
                                                                 : init_graph(b, size, model, weights, graph);
  ifi_release(&b->object);
  return s;
}

onnxStatus onnxReleaseGraph(onnxGraph graph) {
  ifi_graph *g = ifi_handle_take(graph, IFI_GRAPH);
  if (!g) {
    return ONNXIFI_STATUS_INVALID_GRAPH;
  }
  pthread_mutex_lock(&g->lock);
  g->closing = true;
  while (g->n_running) {
    pthread_cond_wait(&g->changed, &g->lock);
  }
  pthread_mutex_unlock(&g->lock);
  ifi_release(&g->object);
  return ONNXIFI_STATUS_SUCCESS;
}
