/* cuda_recording.c - recordings as CUDA graphs: a stream's work is captured, and later launched as one graph. */
#include <stdlib.h>

#include "backend_gpu/runtime/cuda_device.h"

struct rt_recording {
  cuda_device *device;
  CUgraphExec graph;
};

/* In the mode THREAD_LOCAL, other threads may do what cannot be captured, such as allocating memory, while this thread
 * captures. */
status cuda_record_begin(rt_stream *s) {
  cuda_device *d = s->device;
  TRY(cuda_enter(d));
  TRY(cuda_check(d, d->cu->cuStreamBeginCapture_v2(s->handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                 "beginning a recording"));
  s->records = true;
  return NULL;
}

static status make_executable(cuda_device *d, CUgraph graph, rt_recording **out) {
  rt_recording *r = calloc(1, sizeof *r);
  CHECK_THAT(r, STATUS_RESOURCE, "out of memory");
  r->device = d;
  status failed = cuda_check(d, d->cu->cuGraphInstantiateWithFlags(&r->graph, graph, 0), "preparing a recording");
  if (failed) {
    free(r);
    return failed;
  }
  *out = r;
  return NULL;
}

/* The capture is ended even if the device is lost, as the stream could not be waited for otherwise. */
status cuda_record_end(rt_stream *s, rt_recording **out) {
  cuda_device *d = s->device;
  CUgraph graph = NULL;
  s->records = false;
  TRY(cuda_driver_check_process());
  status failed = cuda_enter(d);
  status broken = cuda_check(d, d->cu->cuStreamEndCapture(s->handle, &graph), "ending a recording");
  failed = status_first(failed, broken);
  failed = failed ? failed : make_executable(d, graph, out);
  if (graph) {
    cuda_lose_if(d, cuda_check(d, d->cu->cuGraphDestroy(graph), "destroying a graph"));
  }
  return failed;
}

status cuda_replay(const rt_run *run, rt_recording *r) {
  TRY(cuda_enter(r->device));
  return cuda_check(r->device, r->device->cu->cuGraphLaunch(r->graph, run->stream->handle), "launching a recording");
}

static status release(const rt_recording *r) {
  TRY(cuda_enter(r->device));
  return cuda_check(r->device, r->device->cu->cuGraphExecDestroy(r->graph), "destroying a recording");
}

void cuda_release_recording(rt_recording *r) {
  cuda_lose_if(r->device, release(r));
  free(r);
}
