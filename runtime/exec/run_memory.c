/* run_memory.c - see run_memory.h. */
#include "runtime/exec/run_memory.h"

#include <stdlib.h>

status rt_run_memory_clear_counters(rt_run_memory *m) {
  void *zeros = calloc(1, m->counter_bytes);
  CHECK_THAT(zeros, STATUS_RESOURCE, "out of memory");
  status failed = rt_memory_copy(m->device, m->stream, RT_UPLOAD, m->counters, zeros, m->counter_bytes);
  failed = rt_memory_await(m->device, m->stream, NULL, failed);
  free(zeros);
  m->counted = failed != NULL;
  return failed;
}

static status create_counters(rt_run_memory *m, size_t bytes) {
  TRY(rt_memory_take(m->device, NULL, bytes, "counters of a run", NULL, &m->counters));
  m->counter_bytes = bytes;
  return rt_run_memory_clear_counters(m);
}

static status create_for_device(rt_run_memory *m, const rt_program *p, size_t counter_bytes) {
  m->in = calloc((size_t)p->n_params + p->n_results + 1, sizeof *m->in);
  CHECK_THAT(m->in, STATUS_RESOURCE, "out of memory");
  m->n_in = p->n_params;
  m->n_out = p->n_results;
  m->out = m->in + m->n_in;
  TRY(m->device->create_stream(m->device, &m->stream));
  TRY(counter_bytes ? create_counters(m, counter_bytes) : NULL);
  return m->device->record_begin ? rt_recordings_create(m->device, &m->recordings) : NULL;
}

status rt_run_memory_create(const rt_device *d, mem_budget *budget, const rt_program *p, size_t bytes,
                            size_t counter_bytes, rt_run_memory **out) {
  rt_run_memory *m = calloc(1, sizeof *m);
  CHECK_THAT(m, STATUS_RESOURCE, "out of memory");
  m->device = d;
  m->budget = budget;
  status failed = rt_memory_take(d, budget, bytes, "a run", NULL, &m->arena);
  m->bytes = failed ? 0 : bytes;
  failed = failed || !d ? failed : create_for_device(m, p, counter_bytes);
  if (failed) {
    rt_run_memory_destroy(m);
    return failed;
  }
  *out = m;
  return NULL;
}

void rt_run_memory_destroy(rt_run_memory *m) {
  if (!m) {
    return;
  }
  rt_recordings_destroy(m->recordings);
  if (m->stream) {
    m->device->destroy_stream(m->stream);
  }
  for (uint32_t k = 0; k < m->n_in + m->n_out; k++) {
    rt_memory_give(m->device, NULL, m->in[k].memory, m->in[k].bytes);
  }
  free(m->in);
  rt_memory_give(m->device, NULL, m->counters, m->counter_bytes);
  rt_memory_give(m->device, m->budget, m->arena, m->bytes);
  free(m);
}

uint64_t rt_run_memory_bytes(const rt_run_memory *m) {
  uint64_t bytes = m->bytes + m->counter_bytes;
  for (uint32_t k = 0; k < m->n_in + m->n_out; k++) {
    bytes += m->in[k].bytes;
  }
  return bytes;
}
