/* kernel_test.c - processors, protected memory and random numbers for tests of kernels; see kernel_test.h. */
#include "tests/unit/emit/kernel_test.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const emit_machine emit_machines[] = {{"native", 0}, {"native", 16}, {"native", 8},
                                      {"native", 4}, {"native", 1},  {"x86-64", 0}};

emit_target emit_machine_target(arena *memory, const emit_machine *m) {
  emit_target t;
  status s = emit_target_init(memory, NULL, m->cpu, m->lanes, &t);
  if (s) {
    status_free(s);
    s = emit_target_init(memory, NULL, "native", m->lanes, &t);
  }
  ck_assert_msg(!s, "%s", status_message(s));
  return t;
}

/* --- memory --- */

typedef struct extent {
  size_t page, room, pages; /* room: of the bytes, rounded up; pages: what can be read */
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
