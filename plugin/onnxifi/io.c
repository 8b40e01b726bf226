/* io.c - sets the memory of a graph's inputs and outputs, and runs the graph with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_span.h"
#include "plugin/onnxifi/graph.h"

void ifi_io_release(ifi_io *io) {
  if (io && --io->references == 0) {
    oxla_run_destroy(io->run);
    for (uint32_t k = 0; k < io->n_fills; k++) {
      free(io->fills[k].to);
    }
    free(io->fills);
    free(io->cuts);
    pthread_mutex_destroy(&io->lock);
    free(io);
  }
}

/* The client's descriptors of all inputs, or of all outputs, and the functions that describe these in the model. */
typedef struct side {
  const oxla_model *model;
  size_t (*count)(const oxla_model *model);
  const char *(*name)(const oxla_model *model, size_t index);
  oxla_error *(*type)(const oxla_model *model, size_t index, oxla_tensor *out);
  bool is_input;
  uint32_t n;
  onnxTensorDescriptorV1 *descriptors;
} side;

/* --- checks --- */

/* Returns the index of the model's input or output of that name, or their number if there is none. */
static size_t find(const side *s, const char *name) {
  size_t n = s->count(s->model), k = 0;
  while (k < n && !(name && strcmp(s->name(s->model, k), name) == 0)) {
    k++;
  }
  return k;
}

/* Checks that every name is known and used once, and that none is missing. */
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

/* Returns true if the descriptor is of an input whose first dimension is smaller than declared; see ifi_fill. */
static bool wants_rows(const side *s, const onnxTensorDescriptorV1 *d, const oxla_tensor *declared) {
  return s->is_input && ifi_the_abi.fills_batches && declared->rank > 0 && d->dimensions == (uint32_t)declared->rank &&
         declared->dims[0] > 0 && d->shape[0] < (uint64_t)declared->dims[0];
}

/* Compares a descriptor with the model's declaration.  A declared dimension that is symbolic, or 0 (some exporters
 * write 0 for an unknown size), matches any size. */
static onnxStatus compare_with_declared(const side *s, const onnxTensorDescriptorV1 *d, const oxla_tensor *declared) {
  if (declared->type == 0) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  if ((oxla_type)d->dataType != declared->type) {
    return ONNXIFI_STATUS_MISMATCHING_DATATYPE;
  }
  bool same = declared->rank < 0 || d->dimensions == (uint32_t)declared->rank;
  for (int k = wants_rows(s, d, declared); same && k < declared->rank; k++) {
    same = declared->dims[k] <= 0 || declared->dims[k] == (int64_t)d->shape[k];
  }
  return same ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_MISMATCHING_SHAPE;
}

static onnxStatus check_declared(const side *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    oxla_tensor declared;
    onnxStatus result = ifi_status(s->type(s->model, find(s, s->descriptors[k].name), &declared));
    result = result ? result : compare_with_declared(s, &s->descriptors[k], &declared);
    if (result) {
      return result;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

static void add_spans(const side *s, bool is_written, memory_span *spans) {
  for (uint32_t k = 0; k < s->n; k++) {
    const onnxTensorDescriptorV1 *d = &s->descriptors[k];
    spans[k] = (memory_span){.data = (const void *)(uintptr_t)d->buffer,
                             .bytes = ifi_descriptor_bytes(d),
                             .is_written = is_written,
                             .index = k};
  }
}

static const char *span_name(const side *in, const side *out, const memory_span *s) {
  return (s->is_written ? out : in)->descriptors[s->index].name;
}

/* Checks that the memory of no output overlaps an input or another output, unless it is exactly the memory of one
 * input.  This is the last time that a client of ONNXIFI 1.0 can be told: its events carry no status. */
static onnxStatus check_memory(const ifi_graph *g, const side *in, const side *out) {
  memory_span pair[2], *spans = calloc((size_t)in->n + out->n + 1, sizeof *spans);
  if (!spans) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  add_spans(in, false, spans);
  add_spans(out, true, spans + in->n);
  bool overlap = memory_spans_overlap(in->n + out->n, spans, pair);
  free(spans);
  if (overlap) {
    ifi_log(g->backend, ONNXIFI_LOG_LEVEL_ERROR, MEMORY_SPANS_OVERLAP, memory_span_side(&pair[0]),
            span_name(in, out, &pair[0]), memory_span_side(&pair[1]), span_name(in, out, &pair[1]));
  }
  return overlap ? ONNXIFI_STATUS_INVALID_MEMORY_LOCATION : ONNXIFI_STATUS_SUCCESS;
}

static onnxStatus check(const ifi_graph *g, const side *in, const side *out) {
  onnxStatus (*const checks[])(const side *) = {check_names, check_fields, check_declared};
  onnxStatus s = ONNXIFI_STATUS_SUCCESS;
  for (size_t k = 0; !s && k < sizeof checks / sizeof *checks; k++) {
    s = checks[k](in);
    s = s ? s : checks[k](out);
  }
  return s ? s : check_memory(g, in, out);
}

/* --- inputs --- */

/* For an input that has fewer rows than the model declares, makes an ifi_fill and sets *to to its array, to which the
 * client's data is copied before each run. */
static onnxStatus add_fill(ifi_io *io, const onnxTensorDescriptorV1 *d, int64_t rows, const void **to) {
  onnxTensorDescriptorV1 whole = *d;
  uint64_t shape[OXLA_MAX_RANK];
  memcpy(shape, d->shape, d->dimensions * sizeof *shape);
  shape[0] = (uint64_t)rows;
  whole.shape = shape;
  /* The check refuses a null address.  The array is allocated only after the check, so any other address is given. */
  whole.buffer = (onnxPointer)(uintptr_t)shape;
  onnxStatus s = ifi_check_descriptor(&whole, false);
  if (s) {
    return s;
  }
  ifi_fill *fill = &io->fills[io->n_fills];
  *fill = (ifi_fill){.from = (const void *)(uintptr_t)d->buffer,
                     .to = calloc(1, ifi_descriptor_bytes(&whole) + 1),
                     .bytes = ifi_descriptor_bytes(d)};
  *to = fill->to;
  io->n_fills += fill->to != NULL;
  return fill->to ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
}

static onnxStatus set_input(ifi_io *io, const side *s, const onnxTensorDescriptorV1 *d, bool with_data) {
  int64_t dims[OXLA_MAX_RANK];
  const void *data = with_data ? (const void *)(uintptr_t)d->buffer : NULL;
  oxla_tensor declared;
  ifi_get_dims(d, dims);
  onnxStatus result = ifi_status(s->type(s->model, find(s, d->name), &declared));
  if (!result && wants_rows(s, d, &declared)) {
    dims[0] = declared.dims[0];
    result = with_data ? add_fill(io, d, dims[0], &data) : result;
  }
  return result ? result
                : ifi_descriptor_status(
                      oxla_set_input(io->run, d->name, (oxla_type)d->dataType, (int)d->dimensions, dims, data));
}

static onnxStatus set_inputs(ifi_io *io, const side *s, bool with_data) {
  onnxStatus result = ONNXIFI_STATUS_SUCCESS;
  for (uint32_t k = 0; !result && k < s->n; k++) {
    result = set_input(io, s, &s->descriptors[k], with_data);
  }
  return result;
}

/* --- outputs --- */

static void add_cut(ifi_io *io, const side *s, const onnxTensorDescriptorV1 *d) {
  ifi_cut *cut = &io->cuts[io->n_cuts++];
  *cut = (ifi_cut){.name = s->name(s->model, find(s, d->name)),
                   .buffer = d->buffer,
                   .type = (oxla_type)d->dataType,
                   .rank = (int)d->dimensions};
  ifi_get_dims(d, cut->dims);
}

/* Sets where an output is written. `t` has its shape after compiling; for a dimension that only a run determines, the
 * descriptor has the upper bound. */
static onnxStatus set_output(ifi_io *io, const side *s, const onnxTensorDescriptorV1 *d, const oxla_tensor *t) {
  if (t->type && (oxla_type)d->dataType != t->type) {
    return ONNXIFI_STATUS_MISMATCHING_DATATYPE;
  }
  bool fits = t->rank < 0 || d->dimensions == (uint32_t)t->rank, open = t->rank < 0;
  for (int k = 0; fits && k < t->rank; k++) {
    open |= t->dims[k] < 0;
    fits = t->dims[k] < 0 || t->dims[k] == (int64_t)d->shape[k];
  }
  if (!fits) {
    return ONNXIFI_STATUS_MISMATCHING_SHAPE;
  }
  if (open) {
    add_cut(io, s, d);
    return ONNXIFI_STATUS_SUCCESS;
  }
  return ifi_status(oxla_set_output(io->run, d->name, (void *)(uintptr_t)d->buffer, ifi_descriptor_bytes(d)));
}

static onnxStatus set_outputs(ifi_io *io, const side *s, bool compiled) {
  onnxStatus result = ONNXIFI_STATUS_SUCCESS;
  for (uint32_t k = 0; !result && k < s->n; k++) {
    oxla_tensor t = {.rank = -1};
    result = compiled ? ifi_status(oxla_get_output(io->run, s->descriptors[k].name, &t)) : result;
    result = result ? result : set_output(io, s, &s->descriptors[k], &t);
  }
  return result;
}

/* --- making an ifi_io --- */

/* Sets inputs and outputs, and compiles for the shapes alone, since the inputs' contents may not be read before a run's
 * input event is signalled.  If a size depends on the contents, the model is compiled during the run. */
static onnxStatus fill_run(const ifi_graph *g, ifi_io *io, const side *in, const side *out) {
  onnxStatus s = set_inputs(io, in, false);
  if (s) {
    return s;
  }
  oxla_error *error = oxla_compile(io->run);
  bool later = oxla_error_subject(error) == OXLA_ABOUT_VALUE;
  if (later) {
    ifi_log(g->backend, ONNXIFI_LOG_LEVEL_WARNING, "inputs and outputs: a run compiles, once it knows its inputs: %s",
            oxla_error_message(error));
    oxla_error_free(error);
  } else {
    s = ifi_descriptor_status(ifi_log_error(g->backend, "inputs and outputs", error));
  }
  s = s ? s : set_outputs(io, out, !later);
  return s ? s : set_inputs(io, in, true);
}

static onnxStatus create(const ifi_graph *g, const side *in, const side *out, ifi_io **io) {
  ifi_io *made = calloc(1, sizeof *made);
  if (!made) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  made->references = 1;
  pthread_mutex_init(&made->lock, NULL);
  made->fills = calloc(in->n + (size_t)1, sizeof *made->fills);
  made->cuts = calloc(out->n + (size_t)1, sizeof *made->cuts);
  onnxStatus s = made->fills && made->cuts ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  s = s ? s : ifi_status(oxla_run_create(g->model, &made->run));
  s = s ? s : fill_run(g, made, in, out);
  *io = s ? NULL : made;
  ifi_io_release(s ? made : NULL);
  return s;
}

onnxStatus ifi_io_create(const ifi_graph *g, const ifi_list *inputs, const ifi_list *outputs, ifi_io **out) {
  *out = NULL;
  if (!outputs->descriptors || (inputs->n && !inputs->descriptors)) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  side in = {g->model, oxla_input_count, oxla_input_name, oxla_input_type, true, inputs->n, NULL};
  side made = {g->model, oxla_output_count, oxla_output_name, oxla_output_type, false, outputs->n, NULL};
  onnxStatus s = ifi_read_list(inputs, &in.descriptors);
  s = s ? s : ifi_read_list(outputs, &made.descriptors);
  s = s ? s : check(g, &in, &made);
  if (s) {
    ifi_log(g->backend, ONNXIFI_LOG_LEVEL_ERROR, "inputs and outputs: the descriptors are refused, status 0x%04x",
            (unsigned)s);
  } else {
    s = create(g, &in, &made, out);
  }
  free(in.descriptors);
  free(made.descriptors);
  return s;
}

onnxStatus ifi_set_graph_io(onnxGraph graph, const ifi_list *inputs, const ifi_list *outputs) {
  ifi_graph *g = ifi_handle_get(graph, IFI_GRAPH);
  if (!g) {
    return ONNXIFI_STATUS_INVALID_GRAPH;
  }
  ifi_io *io;
  onnxStatus s = ifi_io_create(g, inputs, outputs, &io);
  pthread_mutex_lock(&g->lock);
  ifi_io *old = g->io;
  g->io = io; /* NULL after a failure */
  pthread_mutex_unlock(&g->lock);
  ifi_io_release(old);
  ifi_release(&g->object);
  return s;
}

/* --- runs --- */

/* Compares an output with its descriptor, and writes to `message` how they differ. */
static onnxStatus compare_with_descriptor(const ifi_cut *c, const oxla_tensor *t, char *message) {
  if (t->type != c->type) {
    snprintf(message, IFI_MESSAGE, "output '%s': the element type is %d; the descriptor has %d", c->name, (int)t->type,
             (int)c->type);
    return ONNXIFI_STATUS_MISMATCHING_DATATYPE;
  }
  if (t->rank != c->rank) {
    snprintf(message, IFI_MESSAGE, "output '%s': the rank is %d; the descriptor has %d", c->name, t->rank, c->rank);
    return ONNXIFI_STATUS_MISMATCHING_SHAPE;
  }
  for (int k = 0; k < t->rank; k++) {
    if (t->dims[k] > c->dims[k]) {
      snprintf(message, IFI_MESSAGE, "output '%s': dimension %d is %lld; %lld is the most that the descriptor allows",
               c->name, k, (long long)t->dims[k], (long long)c->dims[k]);
      return ONNXIFI_STATUS_MISMATCHING_SHAPE;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* Copies an output whose size was not known before the run to the beginning of the client's memory, without gaps
 * between its rows. */
static onnxStatus cut(const ifi_cut *c, const oxla_run *run, char *message) {
  oxla_tensor t;
  oxla_error *error = oxla_get_output(run, c->name, &t);
  snprintf(message, IFI_MESSAGE, "%s", error ? oxla_error_message(error) : "");
  onnxStatus s = ifi_status(error);
  s = s ? s : compare_with_descriptor(c, &t, message);
  if (!s && t.bytes) {
    memcpy((void *)(uintptr_t)c->buffer, t.data, t.bytes);
  }
  return s;
}

onnxStatus ifi_io_execute(const ifi_graph *g, ifi_io *io, char *message) {
  pthread_mutex_lock(&io->lock);
  for (uint32_t k = 0; k < io->n_fills; k++) {
    if (io->fills[k].bytes) {
      memcpy(io->fills[k].to, io->fills[k].from, io->fills[k].bytes);
    }
  }
  oxla_error *error = oxla_execute(io->run);
  snprintf(message, IFI_MESSAGE, "%s", error ? oxla_error_message(error) : "");
  onnxStatus s = ifi_descriptor_status(error);
  for (uint32_t k = 0; !s && k < io->n_cuts; k++) {
    s = cut(&io->cuts[k], io->run, message);
  }
  pthread_mutex_unlock(&io->lock);
  if (s) {
    ifi_log(g->backend, ONNXIFI_LOG_LEVEL_ERROR, "run: %s", message);
  }
  return s;
}
