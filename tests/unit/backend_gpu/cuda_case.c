/* cuda_case.c - see cuda_case.h. */
#include "tests/unit/backend_gpu/cuda_case.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/fake_driver.h"
#include "tests/suite.h"

/* --- the driver and its code, made once for all tests --- */

static const char kernels[] =
    "#include \"runtime/block_abi.h\"\n"
    "#define KERNEL(name) void name(const void *const *b, const int64_t *args, int64_t steps, const rt_block_thread "
    "*t)\n"
    "#define ADD { int64_t i = t->block * t->threads + t->thread; \\\n"
    "  if (i < steps) ((int *)b[2])[i] = ((const int *)b[0])[i] + ((const int *)b[1])[i] * (int)args[0]; }\n"
    "const int32_t add_parameters[2] = {3, 1}, linger_parameters[2] = {1, 0};\n"
    "KERNEL(add) ADD\n"
    "KERNEL(add_unchecked) ADD\n"
    "KERNEL(linger) { for (volatile int k = 0; k < 30000000; k++) { } }\n";

static arena *forever;
rt_span cuda_case_code;
const char *cuda_case_driver;

void cuda_case_compile(const char *options) {
  const char *cc = getenv("CC"), *sources = getenv("top_srcdir");
  char command[3000];
  snprintf(command, sizeof command, "%s -I%s %s", cc && *cc ? cc : "cc", sources ? sources : ".", options);
  ck_assert_int_eq(system(command), 0);
}

static void build_kernels(void) {
  char folder[] = "/tmp/check_cudaXXXXXX", path[100], options[300];
  const uint8_t *bytes;
  size_t size;
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/x.c", folder);
  ASSERT_OK(file_write(path, kernels, sizeof kernels - 1));
  snprintf(options, sizeof options, "-O1 -fPIC -fno-builtin -c -o %s/x.o %s/x.c", folder, folder);
  cuda_case_compile(options);
  unlink(path);
  snprintf(path, sizeof path, "%s/x.o", folder);
  forever = arena_create(NULL);
  ASSERT_OK(file_map(forever, path, &bytes, &size));
  cuda_case_code = (rt_span){bytes, size};
  unlink(path);
  rmdir(folder);
}

void cuda_case_setup(void) {
  cuda_case_driver = use_fake_driver();
  build_kernels();
}

void cuda_case_teardown(void) { arena_destroy(forever); }

/* Calls a function of the fake driver, which is opened already. */
uint64_t cuda_case_ask(const char *name) {
  uint64_t (*question)(void);
  void *library = dlopen(cuda_case_driver, RTLD_NOW | RTLD_NOLOAD);
  ck_assert_ptr_nonnull(library);
  *(void **)&question = dlsym(library, name);
  uint64_t answer = question();
  dlclose(library);
  return answer;
}

void cuda_case_check_end(void) {
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_live"), 0);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 0);
}

void cuda_case_check_failure(status s, status_code expected, const char *text) {
  ck_assert_ptr_nonnull(s);
  ck_assert_msg(strstr(status_message(s), text) != NULL, "'%s', not '%s'", status_message(s), text);
  ck_assert_msg(status_get_code(s) == expected, "%d: %s", status_get_code(s), status_message(s));
  status_free(s);
}

const gpu_device *cuda_case_device(uint32_t ordinal) {
  const gpu_device *g;
  ASSERT_OK(gpu_cuda_device(ordinal, &g));
  return g;
}

/* --- a cache of one piece of code --- */

static rt_span find_code(void *data, arena *a, const char *compiler, rt_span source) {
  cuda_case_cache *c = data;
  bool same = strcmp(c->compiler, compiler) == 0 && c->source.size == source.size &&
              memcmp(c->source.data, source.data, source.size) == 0;
  c->found += same;
  return same ? (rt_span){arena_memdup(a, c->code.data, c->code.size), c->code.size} : (rt_span){NULL, 0};
}

static rt_span copy_of(rt_span bytes) {
  uint8_t *copy = malloc(bytes.size);
  memcpy(copy, bytes.data, bytes.size);
  return (rt_span){copy, bytes.size};
}

static void forget_code(cuda_case_cache *c) {
  free((void *)c->source.data);
  free((void *)c->code.data);
}

static void keep_code(void *data, const char *compiler, rt_span source, rt_span compiled) {
  cuda_case_cache *c = data;
  forget_code(c);
  snprintf(c->compiler, sizeof c->compiler, "%s", compiler);
  c->source = copy_of(source);
  c->code = copy_of(compiled);
  c->kept++;
}

cuda_case_cache *cuda_case_cache_new(void) {
  cuda_case_cache *c = calloc(1, sizeof *c);
  c->cache = (rt_code_cache){.find = find_code, .keep = keep_code, .data = c};
  return c;
}

void cuda_case_cache_free(cuda_case_cache *c) {
  forget_code(c);
  free(c);
}

/* --- a program --- */

enum { N = CUDA_CASE_N, SHIFT = 10 };

cuda_program *cuda_program_new(const gpu_device *g) {
  cuda_program *p = calloc(1, sizeof *p);
  p->gpu = g;
  p->device = &g->device;
  p->arena = arena_create(NULL);
  p->code_cache = cuda_case_cache_new();
  for (int k = 0; k < N; k++) {
    p->x[k] = k;
    p->y[k] = 3 * k + 1;
  }
  return p;
}

status cuda_program_load(cuda_program *p) {
  rt_code *loaded;
  TRY(p->gpu->check_cpu(p->gpu, "nvptx64-nvidia-cuda sm_80 +ptx70 1 blocks"));
  for (int k = 0; k < 2; k++) {
    TRY(p->gpu->load(p->gpu, p->arena, cuda_case_code, &p->code_cache->cache, &loaded));
  }
  p->add = p->gpu->find(p->gpu, p->arena, loaded, "add");
  ck_assert_ptr_nonnull(p->add);
  for (int k = 0; k < 3; k++) {
    TRY(p->device->allocate(p->device, CUDA_CASE_BYTES, &p->memory[k]));
    ck_assert_uint_eq((uintptr_t)p->memory[k] % 256, 0);
  }
  return p->device->create_stream(p->device, &p->stream);
}

status cuda_program_launch(const cuda_program *p, int64_t factor) {
  gpu_launch l = {.blocks = (N + 127) / 128,
                  .threads = 128,
                  .n_buffers = 3,
                  .n_args = 1,
                  .buffers = (const void *const *)p->memory,
                  .args = &factor,
                  .steps = N};
  return p->gpu->launch(p->stream, p->add, &l);
}

/* x + 2 y, whose elements are then moved by SHIFT places. */
status cuda_program_run(cuda_program *p, const mem_budget *budget) {
  int *sums = p->memory[2];
  TRY(p->device->copy(p->stream, RT_UPLOAD, p->memory[0], p->x, CUDA_CASE_BYTES));
  TRY(p->device->copy(p->stream, RT_UPLOAD, p->memory[1], p->y, CUDA_CASE_BYTES));
  TRY(cuda_program_launch(p, 2));
  TRY(p->device->copy(p->stream, RT_ON_DEVICE, sums, sums + SHIFT, CUDA_CASE_BYTES - SHIFT * sizeof(int)));
  TRY(p->device->copy(p->stream, RT_ON_DEVICE, p->memory[0], sums, CUDA_CASE_BYTES));
  TRY(p->device->copy(p->stream, RT_DOWNLOAD, p->sums, p->memory[0], CUDA_CASE_BYTES));
  TRY(p->device->copy(p->stream, RT_DOWNLOAD, p->last, sums + N - 1, sizeof(int)));
  TRY(p->device->copy(p->stream, RT_DOWNLOAD, NULL, NULL, 0));
  return p->device->await(p->stream, budget);
}

static status record(const cuda_program *p, rt_recording **out) {
  const int *sums = p->memory[2];
  TRY(p->device->record_begin(p->stream));
  status failed = cuda_program_launch(p, 2);
  failed = failed ? failed : p->device->copy(p->stream, RT_ON_DEVICE, p->memory[0], sums + SHIFT, CUDA_CASE_BYTES / 2);
  status broken = p->device->record_end(p->stream, out);
  if (failed && !broken) {
    p->device->release_recording(*out);
  }
  return status_first(failed, broken);
}

static status replay(cuda_program *p, rt_recording *recording) {
  for (int round = 0; round < 2; round++) {
    int x[N], halves[N / 2];
    for (int k = 0; k < N; k++) {
      x[k] = 5 * k + round;
    }
    TRY(p->device->copy(p->stream, RT_UPLOAD, p->memory[1], p->y, CUDA_CASE_BYTES));
    TRY(p->device->copy(p->stream, RT_UPLOAD, p->memory[0], x, CUDA_CASE_BYTES));
    status failed = p->device->replay(&(rt_run){.stream = p->stream}, recording);
    failed = failed ? failed : p->device->copy(p->stream, RT_DOWNLOAD, halves, p->memory[0], sizeof halves);
    status late = p->device->await(p->stream, NULL);
    TRY(status_first(failed, late));
    for (int k = 0; k < N / 2; k++) {
      ck_assert_int_eq(halves[k], 5 * (k + SHIFT) + round + 2 * (3 * (k + SHIFT) + 1));
    }
  }
  return NULL;
}

status cuda_program_replay(cuda_program *p) {
  rt_recording *recording;
  TRY(record(p, &recording));
  status failed = replay(p, recording);
  if (failed) {
    status_free(p->device->await(p->stream, NULL));
  }
  p->device->release_recording(recording);
  return failed;
}

static status time_launch(const cuda_program *p, const rt_event *from, rt_event *to) {
  double seconds;
  TRY(cuda_program_launch(p, 1));
  TRY(p->device->record_event(to, p->stream));
  TRY(p->device->await(p->stream, NULL));
  TRY(p->device->elapsed(from, to, &seconds));
  ck_assert(seconds >= 0);
  return NULL;
}

static status time_with(const cuda_program *p, rt_event *from) {
  rt_event *to;
  TRY(p->device->record_event(from, p->stream));
  TRY(p->device->create_event(p->device, &to));
  status failed = time_launch(p, from, to);
  if (failed) {
    status_free(p->device->await(p->stream, NULL));
  }
  p->device->destroy_event(to);
  return failed;
}

static status use_events(const cuda_program *p) {
  rt_event *from;
  TRY(p->device->create_event(p->device, &from));
  status failed = time_with(p, from);
  p->device->destroy_event(from);
  return failed;
}

void cuda_program_linger(cuda_program *p, int copies) {
  rt_code *loaded;
  ASSERT_OK(p->gpu->load(p->gpu, p->arena, cuda_case_code, NULL, &loaded));
  const gpu_function *f = p->gpu->find(p->gpu, p->arena, loaded, "linger");
  gpu_launch l = {.blocks = 1, .threads = 1, .n_buffers = 1, .buffers = (const void *const *)p->memory, .steps = 1};
  ASSERT_OK(p->device->copy(p->stream, RT_UPLOAD, p->memory[0], p->x, CUDA_CASE_BYTES));
  ASSERT_OK(p->gpu->launch(p->stream, f, &l));
  for (int k = 0; k < copies; k++) {
    ASSERT_OK(p->device->copy(p->stream, RT_DOWNLOAD, p->sums, p->memory[0], CUDA_CASE_BYTES));
    ASSERT_OK(p->gpu->launch(p->stream, f, &l));
  }
}

void cuda_program_check_results(const cuda_program *p) {
  for (int k = 0; k < N; k++) {
    int from = k + SHIFT < N ? k + SHIFT : k;
    ck_assert_int_eq(p->sums[k], from + 2 * (3 * from + 1));
  }
  ck_assert_int_eq(p->last[0], p->sums[N - 1]);
}

void cuda_program_free(cuda_program *p) {
  if (p->stream) {
    p->device->destroy_stream(p->stream);
  }
  for (int k = 0; k < 3; k++) {
    if (p->memory[k]) {
      p->device->release(p->device, p->memory[k], CUDA_CASE_BYTES);
    }
  }
  arena_destroy(p->arena);
  cuda_case_cache_free(p->code_cache);
  free(p);
}

/* Loads a program, runs it twice, then by a recording, times a launch, and frees it, whatever fails, as the runtime
 * does. */
status cuda_program_do(const gpu_device *g) {
  mem_budget budget = {.limit = 0};
  cuda_program *p = cuda_program_new(g);
  status failed = cuda_program_load(p);
  for (int k = 0; k < 2 && !failed; k++) {
    failed = cuda_program_run(p, k ? &budget : NULL);
    if (failed) {
      status_free(p->device->await(p->stream, NULL));
    } else {
      cuda_program_check_results(p);
    }
  }
  failed = failed ? failed : cuda_program_replay(p);
  failed = failed ? failed : use_events(p);
  cuda_program_free(p);
  return failed;
}

cuda_program *cuda_program_loaded(void) {
  cuda_program *p = cuda_program_new(cuda_case_device(0));
  ASSERT_OK(cuda_program_load(p));
  return p;
}
