/* onnxifi_io.c - onnxSetGraphIO: where a graph's inputs and outputs lie. */
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxifi_graph.h"

void ifi_io_release(ifi_io *io) {
  if (io && --io->references == 0) {
    oxla_run_destroy(io->run);
    pthread_mutex_destroy(&io->lock);
    free(io);
  }
}

/* The graph's side of a list of descriptors: inputs or outputs. */
typedef struct side {
  const oxla_model *model;
  size_t (*count)(const oxla_model *model);
  const char *(*name)(const oxla_model *model, size_t index);
  oxla_error *(*type)(const oxla_model *model, size_t index, oxla_tensor *out);
  uint32_t n;
  const onnxTensorDescriptorV1 *descriptors;
} side;

static onnxStatus check_tags(const side *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    if (s->descriptors[k].tag != ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1) {
      return ONNXIFI_STATUS_UNSUPPORTED_TAG;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* The number of the graph's value of that name, or its count. */
static size_t find(const side *s, const char *name) {
  size_t n = s->count(s->model), k = 0;
  while (k < n && !(name && strcmp(s->name(s->model, k), name) == 0)) {
    k++;
  }
  return k;
}

/* Every name must be known and stand once, and none may be missing. */
static onnxStatus check_names(const side *s) {
  size_t n = s->count(s->model), seen = 0;
  bool *given = calloc(n + 1, sizeof *given);
  onnxStatus result = given ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  for (uint32_t k = 0; !result && k < s->n; k++, seen++) {
    size_t at = find(s, s->descriptors[k].name);
    result = at == n || given[at] ? ONNXIFI_STATUS_INVALID_NAME : ONNXIFI_STATUS_SUCCESS;
    given[at] = true;
  }
  free(given);
  return !result && seen < n ? ONNXIFI_STATUS_UNIDENTIFIED_NAME : result;
}

static onnxStatus check_fields(const side *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    onnxStatus result = ifi_check_descriptor(&s->descriptors[k], false);
    if (result) {
      return result;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* Open dimensions, and 0, which exporters write for "any", fit everything. */
static onnxStatus compare(const onnxTensorDescriptorV1 *d, const oxla_tensor *declared, bool exact) {
  if (declared->type == 0) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  if ((oxla_type)d->dataType != declared->type) {
    return ONNXIFI_STATUS_MISMATCHING_DATATYPE;
  }
  if (declared->rank < 0) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  bool same = d->dimensions == (uint32_t)declared->rank;
  for (uint32_t k = 0; same && k < d->dimensions; k++) {
    same = (!exact && declared->dims[k] <= 0) || declared->dims[k] == (int64_t)d->shape[k];
  }
  return same ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_MISMATCHING_SHAPE;
}

static onnxStatus compare_declared(const side *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    oxla_tensor declared;
    onnxStatus result = ifi_status(s->type(s->model, find(s, s->descriptors[k].name), &declared));
    result = result ? result : compare(&s->descriptors[k], &declared, false);
    if (result) {
      return result;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* --- the run --- */

static onnxStatus set_inputs(oxla_run *run, const side *s, bool with_data) {
  for (uint32_t k = 0; k < s->n; k++) {
    const onnxTensorDescriptorV1 *d = &s->descriptors[k];
    int64_t dims[OXLA_MAX_RANK];
    ifi_get_dims(d, dims);
    const void *data = with_data ? (const void *)(uintptr_t)d->buffer : NULL;
    onnxStatus result = ifi_descriptor_status(
        oxla_set_input(run, d->name, (oxla_type)d->dataType, (int)d->dimensions, dims, data));
    if (result) {
      return result;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* After compiling, outputs' shapes are known. */
static onnxStatus compare_outputs(oxla_run *run, const side *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    oxla_tensor t;
    onnxStatus result = ifi_status(oxla_get_output(run, s->descriptors[k].name, &t));
    result = result ? result : compare(&s->descriptors[k], &t, true);
    if (result) {
      return result;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

static onnxStatus set_outputs(oxla_run *run, const side *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    const onnxTensorDescriptorV1 *d = &s->descriptors[k];
    onnxStatus result =
        ifi_status(oxla_set_output(run, d->name, (void *)(uintptr_t)d->buffer, ifi_descriptor_bytes(d)));
    if (result) {
      return result;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* Compiles for the shapes alone: what inputs hold may be read only when a run's input event is signalled.  Where it
 * decides a size, the run compiles. */
static onnxStatus fill_run(const ifi_graph *g, oxla_run *run, const side *in, const side *out) {
  onnxStatus s = set_inputs(run, in, false);
  if (s) {
    return s;
  }
  oxla_error *error = oxla_compile(run);
  if (oxla_error_subject(error) == OXLA_ABOUT_VALUE) {
    oxla_error_free(error);
  } else {
    s = ifi_descriptor_status(ifi_log(g->backend, "inputs and outputs", error));
    s = s ? s : compare_outputs(run, out);
  }
  s = s ? s : set_inputs(run, in, true);
  return s ? s : set_outputs(run, out);
}

static onnxStatus create_io(const ifi_graph *g, const side *in, const side *out, ifi_io **io) {
  ifi_io *made = calloc(1, sizeof *made);
  if (!made) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  made->references = 1;
  pthread_mutex_init(&made->lock, NULL);
  onnxStatus s = ifi_status(oxla_run_create(g->model, &made->run));
  s = s ? s : fill_run(g, made->run, in, out);
  *io = s ? NULL : made;
  ifi_io_release(s ? made : NULL);
  return s;
}

static onnxStatus make_io(const ifi_graph *g, const side *in, const side *out, ifi_io **io) {
  onnxStatus (*const checks[])(const side *) = {check_tags, check_names, check_fields, compare_declared};
  for (size_t k = 0; k < sizeof checks / sizeof *checks; k++) {
    onnxStatus s = checks[k](in);
    s = s ? s : checks[k](out);
    if (s) {
      return s;
    }
  }
  return create_io(g, in, out, io);
}

onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1 *inputDescriptors,
                          uint32_t outputsCount, const onnxTensorDescriptorV1 *outputDescriptors) {
  ifi_graph *g = ifi_handle_get(graph, IFI_GRAPH);
  if (!g) {
    return ONNXIFI_STATUS_INVALID_GRAPH;
  }
  side in = {g->model, oxla_input_count, oxla_input_name, oxla_input_type, inputsCount, inputDescriptors};
  side out = {g->model, oxla_output_count, oxla_output_name, oxla_output_type, outputsCount, outputDescriptors};
  ifi_io *io = NULL;
  onnxStatus s = !outputDescriptors || (inputsCount && !inputDescriptors) ? ONNXIFI_STATUS_INVALID_POINTER
                                                                           : make_io(g, &in, &out, &io);
  pthread_mutex_lock(&g->lock);
  ifi_io *old = g->io;
  g->io = io; /* after a failure there is none */
  pthread_mutex_unlock(&g->lock);
  ifi_io_release(old);
  ifi_release(&g->object);
  return s;
}
