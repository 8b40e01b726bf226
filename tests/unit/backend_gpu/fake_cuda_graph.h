/* fake_cuda_graph.h - captures, graphs and events of the fake driver.  Only module_fake_cuda.c includes it,
 * after its part on the work of streams. */
#ifndef TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_GRAPH_H
#define TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_GRAPH_H

struct CUgraph_st {
  object object;
  unsigned n;
  work nodes[1000];
};

struct CUgraphExec_st {
  object object;
  CUgraph graph; /* its own copy */
};

static CUresult add_node(CUgraph g, const work *w) {
  if (g->n == sizeof g->nodes / sizeof *g->nodes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  g->nodes[g->n++] = *w;
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  if (s->capture || capturing || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    breach(__func__, "it captures already, or other threads are forbidden what they may do");
    return CUDA_ERROR_INVALID_VALUE;
  }
  s->capture = new_object(GRAPH, sizeof *s->capture);
  s->is_invalid = false;
  capturing = s;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
  /* the capture ends even if this call fails */
  CUgraph graph = capturing == s ? s->capture : NULL;
  if (graph) {
    s->capture = NULL;
    capturing = NULL;
  }
  *out = NULL;
  CUresult at_once = begin(__func__, true);
  if (at_once == CUDA_SUCCESS && !graph) {
    breach(__func__, "this thread does not capture the stream");
    at_once = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  if (at_once == CUDA_SUCCESS && s->is_invalid) {
    at_once = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (at_once != CUDA_SUCCESS) {
    free(graph);
    return at_once;
  }
  begin_object(&graph->object);
  *out = graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
  BEGIN(true);
  CHECK_HANDLE(graph, GRAPH);
  if (flags) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraphExec e = *out = new_object(GRAPH_EXEC, sizeof *e);
  e->graph = new_object(GRAPH, sizeof *e->graph);
  e->graph->n = graph->n; /* without the members of the object, which other threads may change */
  memcpy(e->graph->nodes, graph->nodes, sizeof graph->nodes);
  begin_object(&e->object);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  BEGIN(true);
  CHECK_HANDLE(graph, GRAPH);
  end_object(&graph->object);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
  BEGIN(true);
  CHECK_HANDLE(e, GRAPH_EXEC);
  end_object(&e->object);
  return CUDA_SUCCESS;
}

/* Every launch of the graph does the work that was captured, with the addresses that were captured. */
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(e, GRAPH_EXEC);
  CHECK_HANDLE(s, STREAM);
  if (s->capture) {
    return refuse_in_capture(__func__, s);
  }
  graph_launches++;
  for (unsigned k = 0; k < e->graph->n; k++) {
    work *w = malloc(sizeof *w);
    *w = e->graph->nodes[k];
    w->stream = s;
    if (w->function) {
      CHECK_HANDLE(w->function, FUNCTION);
    }
    CUresult r = submit(w);
    if (r != CUDA_SUCCESS) {
      return r;
    }
  }
  return CUDA_SUCCESS;
}

/* --- events --- */

CUresult cuEventCreate(CUevent *out, unsigned flags) {
  BEGIN(true);
  rt_event *event;
  status failed = flags & ~(unsigned)CU_EVENT_DISABLE_TIMING ? status_error(STATUS_INTERNAL, "flags")
                                                             : device.create_event(&device, &event);
  if (failed) {
    status_free(failed);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUevent e = *out = new_object(EVENT, sizeof *e);
  e->event = event;
  begin_object(&e->object);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e) {
  BEGIN(true);
  CHECK_HANDLE(e, EVENT);
  await_all_streams();
  end_object(&e->object);
  device.destroy_event(e->event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(e, EVENT);
  CHECK_HANDLE(s, STREAM);
  if (s->capture) {
    return refuse_in_capture(__func__, s);
  }
  status failed = device.record_event(e->event, s->queue);
  status_free(failed);
  work *nothing = calloc(1, sizeof *nothing); /* empty work after the event, so that a query of the stream
                                                 finds that the event is still to come */
  nothing->stream = s;
  return failed ? CUDA_ERROR_OUT_OF_MEMORY : submit(nothing);
}

/* Waits for the event only, not for later work of its stream. */
CUresult cuEventSynchronize(CUevent e) {
  double seconds;
  BEGIN(true);
  NOT_IN_CAPTURE();
  CHECK_HANDLE(e, EVENT);
  for (status waits; !sticky && (waits = device.elapsed(e->event, e->event, &seconds)) != NULL;) {
    status_free(waits);
    usleep(20);
  }
  return sticky ? stop_working(sticky) : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
  double seconds;
  BEGIN(true);
  CHECK_HANDLE(from, EVENT);
  CHECK_HANDLE(to, EVENT);
  status failed = device.elapsed(from->event, to->event, &seconds);
  if (failed) {
    status_free(failed);
    return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = (float)(1e3 * seconds);
  return CUDA_SUCCESS;
}

#endif
