/* module_fake_cuda.c - a driver of CUDA for machines without one (ONNX_XLA_CUDA_DRIVER): its devices are emulated on
 * the host, streams work late, and objects of this machine's code (runtime/block_abi.h) stand for PTX.
 *
 * It knows the driver's rules.  A call that breaks one gets the driver's error, and the breach is printed on standard
 * error and counted.  fake_cuda.h has what tests ask of it.  These environment variables are read when it starts:
 *
 *   FAKE_CUDA_DEVICES=N       how many devices there are; 2 by default: one of sm_90, all others of sm_86
 *   FAKE_CUDA_CAPABILITY=N    ten times the compute capability of all devices
 *   FAKE_CUDA_FAIL=FUNCTION:N:ERROR,...
 *                             the Nth call of FUNCTION fails with the error of number ERROR.  The function "any"
 *                             counts all calls; "work" counts what streams do: it fails later, and the device is lost
 *   FAKE_CUDA_PTX=1           PTX is interpreted (tests/ptx/ptx.h) and not refused; read at each compilation
 *   FAKE_CUDA_DELAY=N         streams sleep up to N microseconds before each piece of work; 50 by default
 *
 * FAKE_CUDA_VERSION=N, the version of the driver, and FAKE_CUDA_DECLARED=N, the bytes of shared memory that each kernel
 * declares, are read whenever they are asked for; they are 12040 and 0 by default.
 *
 * A kernel's object may define "const int32_t NAME_parameters[2]": how many buffers and arguments the kernel NAME
 * takes. Then its buffers are checked. */
#include <elf.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "runtime/block_abi.h"
#include "runtime/host/code_loader.h"
#include "runtime/host/emulated_device.h"
#include "runtime/host/relocation.h"
#include "tests/unit/backend_gpu/fake_cuda_state.h"

#define CUDA_FUNCTION(name, parameters) CUresult name parameters;
#include "backend_gpu/runtime/cuda_functions.def"

static const size_t total_bytes = (size_t)1 << 30;
enum { MOST_SHARED_BYTES = 227 << 10, DEFAULT_SHARED_BYTES = 48 << 10 };

/* --- the driver and its devices --- */

enum { MOST_DEVICES = 64 };

static struct CUctx_st contexts[MOST_DEVICES];
static rt_device device;
static int n_devices, same_capability; /* the latter 0 if devices differ */

static void start(void) {
  const char *devices = getenv("FAKE_CUDA_DEVICES"), *delay = getenv("FAKE_CUDA_DELAY");
  const char *capability = getenv("FAKE_CUDA_CAPABILITY");
  device = rt_emulated_device();
  rt_emulated_set_delay(delay ? (uint32_t)atoi(delay) : 50);
  n_devices = devices ? atoi(devices) : 2;
  same_capability = capability ? atoi(capability) : 0;
  read_rules(getenv("FAKE_CUDA_FAIL"));
}

CUresult cuInit(unsigned flags) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  BEGIN(false);
  home = getpid();
  return flags ? CUDA_ERROR_INVALID_VALUE : n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
  BEGIN(false);
  const char *told = getenv("FAKE_CUDA_VERSION");
  *version = told ? atoi(told) : 12040;
  return CUDA_SUCCESS;
}

static const char *name_of(CUresult error) {
#define CUDA_CONSTANT(name, value)                         \
  if ((value) == error && strncmp(#name, "CUDA_", 5) == 0) \
    return #name;
#include "backend_gpu/runtime/cuda_functions.def"
  return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  BEGIN(false);
  *text = name_of(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  BEGIN(false);
  *text = name_of(error) ? "as the fake driver was told" : NULL;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
  BEGIN(false);
  *count = n_devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
  BEGIN(false);
  *out = ordinal;
  return ordinal >= 0 && ordinal < n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice d) {
  BEGIN(false);
  snprintf(name, (size_t)bytes, "Fake GPU %d", d);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
  BEGIN(false);
  *bytes = total_bytes;
  return CUDA_SUCCESS;
}

static int capability_of(CUdevice d) { return same_capability ? same_capability : d == 0 ? 90 : 86; }

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice d) {
  BEGIN(false);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability_of(d) / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability_of(d) % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2619000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 5120; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = MOST_SHARED_BYTES; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice d) {
  BEGIN(false);
  contexts[d].device = d;
  *context = &contexts[d];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  BEGIN(false);
  current = context;
  return CUDA_SUCCESS;
}

/* --- memory --- */

static size_t used_bytes(void) {
  size_t bytes = 0;
  pthread_mutex_lock(&lock);
  for (const object *o = objects; o; o = o->next) {
    bytes += o->kind == MEMORY && o->alive ? ((const memory *)o)->bytes : 0;
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
  void *address;
  BEGIN(true);
  NOT_IN_CAPTURE();
  if (bytes == 0) {
    breach(__func__, "no bytes");
    return CUDA_ERROR_INVALID_VALUE;
  }
  status failed = bytes > total_bytes - used_bytes() ? status_error(STATUS_RESOURCE, "full")
                                                     : device.allocate(&device, bytes, &address);
  if (failed) {
    status_free(failed);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory *m = new_object(MEMORY, sizeof *m);
  m->address = address;
  m->bytes = bytes;
  begin_object(&m->object);
  *out = (uintptr_t)address;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  BEGIN(true);
  *free_bytes = total_bytes - used_bytes();
  *total = total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  BEGIN(true);
  NOT_IN_CAPTURE();
  memory *m = new_object(HOST_MEMORY, sizeof *m);
  m->address = flags || bytes == 0 ? NULL : malloc(bytes);
  m->bytes = bytes;
  if (!m->address) {
    free(m);
    return CUDA_ERROR_INVALID_VALUE;
  }
  begin_object(&m->object);
  *out = m->address;
  return CUDA_SUCCESS;
}

/* Returns true if the bytes are in page-locked memory. */
static bool is_locked(const void *at, size_t bytes) {
  bool is = false;
  pthread_mutex_lock(&lock);
  for (const object *o = objects; o && !is; o = o->next) {
    const memory *m = (const memory *)o;
    size_t offset = o->kind == HOST_MEMORY ? (size_t)((const char *)at - (const char *)m->address) : 0;
    is = o->kind == HOST_MEMORY && offset <= m->bytes && bytes <= m->bytes - offset;
  }
  pthread_mutex_unlock(&lock);
  return is;
}

/* Waits for the work of all streams, as the driver does before it unloads code. */
static void await_all_streams(void) {
  pthread_mutex_lock(&lock);
  for (object *o = objects; o; o = o->next) {
    if (o->kind == STREAM && o->alive) {
      status_free(device.await(((CUstream)o)->queue, NULL));
    }
  }
  pthread_mutex_unlock(&lock);
}

/* Memory is freed without a wait, so that work which still uses it is found, although drivers wait.  But if calls fail
 * on demand, the one that fails may be that in which the runtime waits. */
static void await_if_calls_fail(void) {
  if (n_rules > 0) {
    await_all_streams();
  }
}

/* Removes the memory at this address from the list and returns it; NULL if none is there that was not freed. */
static memory *take_memory(object_kind kind, CUdeviceptr address) {
  memory *found = NULL;
  pthread_mutex_lock(&lock);
  for (object **at = &objects; *at && !found; at = found ? at : &(*at)->next) {
    memory *m = (memory *)*at;
    if (m->object.kind == kind && m->object.context == current && (uintptr_t)m->address == address) {
      found = m;
      *at = m->object.next;
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  BEGIN(true);
  NOT_IN_CAPTURE();
  await_if_calls_fail();
  memory *m = take_memory(MEMORY, address);
  if (!m) {
    breach(__func__, "memory that is not of this context");
    return CUDA_ERROR_INVALID_VALUE;
  }
  device.release(&device, m->address, m->bytes);
  free(m);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *address) {
  BEGIN(true);
  NOT_IN_CAPTURE();
  await_if_calls_fail();
  memory *m = take_memory(HOST_MEMORY, (uintptr_t)address);
  if (!m) {
    breach(__func__, "memory that is not of this context");
    return CUDA_ERROR_INVALID_VALUE;
  }
  memset(m->address, 0xff, m->bytes);
  free(m->address);
  free(m);
  return CUDA_SUCCESS;
}

/* --- work of streams --- */

typedef struct work {
  CUstream stream;
  void *to; /* the destination of a copy; NULL if this is not a copy */
  const void *from;
  size_t bytes;
  rt_copy direction;
  CUfunction function;
  int64_t blocks, steps;
  int32_t threads;
  unsigned shared_bytes;
  bool is_checked; /* whether it is known how many buffers the function takes, and `buffers` has that many */
  const void *buffers[RT_BLOCK_PARAMETER_BYTES / 8];
  int64_t args[RT_BLOCK_PARAMETER_BYTES / 8];
} work;

static void do_copy(const work *w) {
  bool from = rt_emulated_owns(w->from, w->bytes), to = rt_emulated_owns(w->to, w->bytes);
  if (from != (w->direction != RT_UPLOAD) || to != (w->direction != RT_DOWNLOAD)) {
    breach("a copy", "memory that is freed, or on the wrong side");
    lose(CUDA_ERROR_ILLEGAL_ADDRESS);
    return;
  }
  memcpy(w->to, w->from, w->bytes);
}

/* A ptx_launch.find_array function: the arrays are what was allocated. */
static bool find_allocation(void *data, uint64_t address, uint64_t *begin, uint64_t *end) {
  bool found = false;
  (void)data;
  pthread_mutex_lock(&lock);
  for (const object *o = objects; o && !found; o = o->next) {
    const memory *m = (const memory *)o;
    *begin = o->kind == MEMORY ? (uintptr_t)m->address : 0;
    *end = o->kind == MEMORY ? *begin + m->bytes : 0;
    found = o->kind == MEMORY && o->alive && address >= *begin && address < *end;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static status interpret(const work *w) {
  void *parameters[] = {(void *)w->buffers, (void *)w->args, (void *)&w->steps};
  return ptx_run(w->function->ptx, &(ptx_launch){.blocks = (uint32_t)w->blocks,
                                                 .threads = (uint32_t)w->threads,
                                                 .shared_bytes = w->shared_bytes,
                                                 .parameters = parameters,
                                                 .find_array = find_allocation});
}

static void do_launch(const work *w) {
  for (int k = 0; w->is_checked && k < w->function->parameters[0]; k++) {
    if (w->buffers[k] && !rt_emulated_owns(w->buffers[k], 1)) {
      breach("a kernel", "buffer %d is not in the device's memory", k);
      lose(CUDA_ERROR_ILLEGAL_ADDRESS);
      return;
    }
  }
  gpu_blocks b = {.fn = w->function->code,
                  .name = "that was launched",
                  .buffers = w->buffers,
                  .args = w->args,
                  .steps = w->steps,
                  .threads = (uint32_t)w->threads,
                  .shared_bytes = w->shared_bytes,
                  .order = GPU_SHUFFLED};
  status failed = w->function->ptx ? interpret(w) : gpu_run_blocks(&b, 0, w->blocks);
  if (failed) {
    breach("a kernel", "%s", status_message(failed));
    lose(CUDA_ERROR_LAUNCH_FAILED);
    status_free(failed);
  }
}

static status do_work(void *data, rt_run *run) {
  const work *w = data;
  (void)run;
  CUresult wanted = wanted_failure("work");
  if (wanted) {
    lose(wanted);
  }
  pthread_rwlock_rdlock(&working);
  if (!sticky && w->to) {
    do_copy(w);
  } else if (!sticky && w->function) {
    do_launch(w);
  }
  pthread_rwlock_unlock(&working);
  w->stream->left--;
  return NULL;
}

static CUresult add_node(CUgraph g, const work *w);

/* Submits work that is on the heap, and takes it over.  If the stream is captured, the work is added to the
 * captured graph. */
static CUresult submit(work *w) {
  if (w->stream->capture) {
    CUresult r = add_node(w->stream->capture, w);
    free(w);
    return r;
  }
  w->stream->left++;
  status failed = rt_emulated_submit(w->stream->queue, NULL, do_work, w);
  status_free(failed);
  return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult submit_copy(CUstream s, rt_copy direction, void *to, const void *from, size_t bytes) {
  bool from_device = rt_emulated_owns(from, bytes), to_device = rt_emulated_owns(to, bytes);
  if (from_device != (direction != RT_UPLOAD) || to_device != (direction != RT_DOWNLOAD)) {
    breach("a copy", "memory of the wrong side");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (direction != RT_ON_DEVICE && !is_locked(direction == RT_UPLOAD ? from : to, bytes)) {
    breach("a copy", "pageable memory, for which the host would wait");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (direction == RT_ON_DEVICE && (const uint8_t *)to < (const uint8_t *)from + bytes &&
      (const uint8_t *)from < (const uint8_t *)to + bytes) {
    breach("a copy", "it overlaps itself");
  }
  work *w = calloc(1, sizeof *w);
  *w = (work){.stream = s, .direction = direction, .to = to, .from = from, .bytes = bytes};
  return submit(w);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  return submit_copy(s, RT_UPLOAD, (void *)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  return submit_copy(s, RT_DOWNLOAD, to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  return submit_copy(s, RT_ON_DEVICE, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
  BEGIN(true);
  if (flags != CU_STREAM_NON_BLOCKING) {
    breach(__func__, "a stream that waits for the stream 0");
  }
  rt_stream *queue;
  status failed = device.create_stream(&device, &queue);
  if (failed) {
    status_free(failed);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUstream s = *out = new_object(STREAM, sizeof *s);
  s->queue = queue;
  begin_object(&s->object);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  if (s->capture) {
    return refuse_in_capture(__func__, s);
  }
  end_object(&s->object);
  device.destroy_stream(s->queue);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  if (s->capture) {
    return refuse_in_capture(__func__, s);
  }
  return sticky ? stop_working(sticky) : s->left ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s) {
  BEGIN(true);
  CHECK_HANDLE(s, STREAM);
  if (s->capture) {
    return refuse_in_capture(__func__, s);
  }
  status_free(device.await(s->queue, NULL));
  return sticky ? stop_working(sticky) : CUDA_SUCCESS;
}

/* --- graphs and events --- */

#include "tests/unit/backend_gpu/fake_cuda_graph.h"

/* --- modules and kernels --- */

#include "tests/unit/backend_gpu/fake_cuda_compile.h"

/* The functions of a module are destroyed with it. */
static void end_functions(CUmodule m) {
  pthread_mutex_lock(&lock);
  for (object *o = objects; o; o = o->next) {
    o->alive = o->alive && !(o->kind == FUNCTION && ((CUfunction)o)->module == m);
  }
  pthread_mutex_unlock(&lock);
}

CUresult cuModuleUnload(CUmodule m) {
  BEGIN(true);
  CHECK_HANDLE(m, MODULE);
  NOT_IN_CAPTURE();
  await_all_streams();
  end_functions(m);
  end_object(&m->object);
  arena_destroy(m->arena);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
  char parameters[200];
  BEGIN(true);
  CHECK_HANDLE(m, MODULE);
  void *code = m->ptx ? NULL : rt_code_find(m->code, name);
  const ptx_function *ptx = m->ptx ? ptx_find_entry(m->ptx, name) : NULL;
  if (!code && !ptx) {
    return CUDA_ERROR_NOT_FOUND;
  }
  snprintf(parameters, sizeof parameters, "%s_parameters", name);
  CUfunction f = *out = new_object(FUNCTION, sizeof *f);
  f->module = m;
  *(void **)&f->code = code;
  f->ptx = ptx;
  f->parameters = ptx ? NULL : rt_code_find(m->code, parameters);
  f->most_shared_bytes = DEFAULT_SHARED_BYTES;
  begin_object(&f->object);
  return CUDA_SUCCESS;
}

static int declared_shared(void) {
  const char *told = getenv("FAKE_CUDA_DECLARED");
  return told ? atoi(told) : 0;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f) {
  BEGIN(true);
  CHECK_HANDLE(f, FUNCTION);
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? RT_BLOCK_MOST_THREADS
           : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? declared_shared()
                                                                : 0;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
  BEGIN(true);
  CHECK_HANDLE(f, FUNCTION);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      value > MOST_SHARED_BYTES - declared_shared()) {
    breach(__func__, "an attribute that cannot be %d", value);
    return CUDA_ERROR_INVALID_VALUE;
  }
  f->most_shared_bytes = (unsigned)value;
  return CUDA_SUCCESS;
}

/* Copies what can be read at `from`, at most RT_BLOCK_PARAMETER_BYTES bytes, since it is not known how many bytes of
 * parameters there are.  A system call makes the copy, so that it does not crash where readable memory ends. */
static void copy_readable(void *to, const void *from) {
  const size_t page = 4096, n = RT_BLOCK_PARAMETER_BYTES, first = page - (uintptr_t)from % page;
  struct iovec here = {to, n};
  struct iovec there[] = {{(void *)from, first < n ? first : n}, {(char *)from + first, first < n ? n - first : 0}};
  if (process_vm_readv(getpid(), &here, 1, there, 2, 0) <= 0) {
    breach("cuLaunchKernel", "parameters that cannot be read");
  }
}

static void copy_parameters(work *w, void **parameters) {
  const int32_t *counts = w->function->parameters;
  if (counts) {
    memcpy(w->buffers, parameters[0], (size_t)counts[0] * sizeof *w->buffers);
    memcpy(w->args, parameters[1], (size_t)(counts[1] ? counts[1] : 1) * sizeof *w->args);
  } else if (w->function->ptx) {
    memcpy(w->buffers, parameters[0], ptx_parameter_bytes(w->function->ptx, 0));
    memcpy(w->args, parameters[1], ptx_parameter_bytes(w->function->ptx, 1));
  } else {
    copy_readable(w->buffers, parameters[0]);
    copy_readable(w->args, parameters[1]);
  }
  w->is_checked = counts != NULL;
  memcpy(&w->steps, parameters[2], sizeof w->steps);
}

CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                        unsigned threads_z, unsigned shared_bytes, CUstream s, void **parameters, void **extra) {
  BEGIN(true);
  CHECK_HANDLE(f, FUNCTION);
  CHECK_HANDLE(s, STREAM);
  bool possible = x >= 1 && x <= INT32_MAX && y == 1 && z == 1 && threads_y == 1 && threads_z == 1 && threads >= 1 &&
                  threads <= RT_BLOCK_MOST_THREADS;
  if (!possible || shared_bytes > f->most_shared_bytes || extra || !parameters[0] || !parameters[1] || !parameters[2]) {
    breach(__func__, "%u blocks of %u threads with %u bytes of shared memory", x, threads, shared_bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  work *w = calloc(1, sizeof *w);
  w->stream = s;
  w->function = f;
  w->blocks = x;
  w->threads = (int32_t)threads;
  w->shared_bytes = shared_bytes;
  copy_parameters(w, parameters);
  return submit(w);
}
