/* kernel_test.c - processors, protected memory and random numbers for tests of kernels; see kernel_test.h. */
#include "tests/unit/emit/kernel_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend_gpu/runtime/emulated_block.h"

const emit_machine emit_machines[] = {{"native", 0, EMIT_RANGES, false}, {"native", 16, EMIT_RANGES, false},
                                      {"native", 8, EMIT_RANGES, false}, {"native", 4, EMIT_RANGES, true},
                                      {"native", 1, EMIT_RANGES, false}, {"x86-64", 0, EMIT_RANGES, false},
                                      {"native", 1, EMIT_BLOCKS, false}};

emit_target emit_machine_target(arena *memory, const emit_machine *m) {
  emit_target t;
  status s = m->execution == EMIT_BLOCKS ? emit_target_blocks_host(memory, &t)
                                         : emit_target_init(memory, NULL, m->cpu, m->lanes, &t);
  if (s) {
    status_free(s);
    s = emit_target_init(memory, NULL, "native", m->lanes, &t);
  }
  ck_assert_msg(!s, "%s", status_message(s));
  t.tells_accesses = t.emulated;
  if (m->has_functions) {
    function_set *none = ARENA_NEW(memory, function_set);
    none->target = emit_target_text(memory, &t);
    t.functions = none;
  }
  return t;
}

const char *emit_machine_name(arena *a, const emit_machine *m) {
  return m->execution == EMIT_BLOCKS
             ? "blocks"
             : arena_printf(a, "%s, %d lanes%s", m->cpu, m->lanes, m->has_functions ? ", functions" : "");
}

/* --- calls --- */

static void call_ranges(rt_kernel_fn *f, const void *const *buffers, const int64_t *args, int64_t grid) {
  for (int64_t from = 0, to; from < grid; from = to) {
    to = from + 1 + (int64_t)(next_random() % (uint64_t)(grid < 4 ? 2 : grid / 2));
    to = to > grid ? grid : to;
    f(buffers, args, from, to);
  }
}

/* Runs the blocks from the last one to the first one, or with a stride; the last block has threads without a step. */
static void call_blocks(rt_block_fn *f, const emit_kernel_info *info, const void *const *buffers, const int64_t *args,
                        int64_t grid) {
  uint64_t random = next_random() >> 20;
  gpu_blocks b = {f, "test", buffers, args, grid, info->threads, info->shared_bytes, random % GPU_ORDERS};
  if (b.threads == 0) {
    b.threads = info->step_threads == 1 ? 1 + (uint32_t)(random >> 8) % 36 : 32 * (1 + (uint32_t)(random >> 8) % 3);
  }
  enum { PRIME = 104729 };
  int64_t n = grid * info->step_threads / b.threads + 1;
  int64_t stride = random >> 16 & 1 && n % PRIME ? PRIME : n - 1; /* has no common divisor with n */
  for (int64_t k = n - 1, left = n; left > 0; k = (k + stride) % n, left--) {
    status s = gpu_run_blocks(&b, k, k + 1);
    ck_assert_msg(!s, "%s", status_message(s));
  }
}

void kernel_call(emit_execution execution, void *kernel, const emit_kernel_info *info, const void *const *buffers,
                 const int64_t *args, int64_t grid) {
  if (execution == EMIT_BLOCKS) {
    call_blocks((rt_block_fn *)(intptr_t)kernel, info, buffers, args, grid);
  } else {
    call_ranges((rt_kernel_fn *)(intptr_t)kernel, buffers, args, grid);
  }
}

/* --- memory --- */

typedef struct extent {
  size_t page, room, pages; /* room: the array's bytes, rounded up to 64; pages: the bytes that can be
                               accessed */
} extent;

static extent extent_of(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + 63) / 64 * 64;
  return (extent){page, room, (room + page - 1) / page * page};
}

void *guarded_memory(size_t size) {
  extent e = extent_of(size);
  char *base = mmap(NULL, e.pages + 2 * e.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert(base != MAP_FAILED && mprotect(base + e.page, e.pages, PROT_READ | PROT_WRITE) == 0);
  memset(base + e.page, 0xa5, e.pages);
  return base + e.page + e.pages - e.room;
}

void guarded_free(void *at, size_t size) {
  extent e = extent_of(size);
  munmap((char *)at + e.room - e.pages - e.page, e.pages + 2 * e.page);
}

/* --- numbers --- */

uint64_t next_random(void) {
  static uint64_t seed = 88172645463325252u;
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* --- what kernels call --- */

static int32_t onnx_xla_expired(const void *watch) { return watch != NULL; }

void *kernel_resolve(const char *name) {
#define EXTERNAL(result, function, parameters) {#function, (void *)(intptr_t)(result(*) parameters)function},
  static const struct {
    const char *name;
    void *f;
  } table[] = {
#include "runtime/kernel_externals.def"
  };
#undef EXTERNAL
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    if (strcmp(table[k].name, name) == 0) {
      return table[k].f;
    }
  }
  return NULL;
}

void *kernel_resolve_nothing(const char *name) {
  (void)name;
  return NULL;
}

status kernel_load(arena *a, emit_module *m, void *(*resolve)(const char *name), rt_code **out) {
  const void *object;
  size_t size;
  TRY(emit_module_object(m, &object, &size));
  return rt_code_load(a, (rt_span){object, size}, resolve, out);
}
