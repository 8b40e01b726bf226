/* backend.c - finds backends by their names or paths. */
#include "plugin/compiler/backend.h"

#include <dlfcn.h>
#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_gpu/compile/target.h"
#include "backend_ref/target.h"

/* Opens the shared object of a third party's backend, which is never closed. */
static status open_backend(const char *path, const rt_backend **out) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK_THAT(library, STATUS_INVALID_ARGUMENT, "backend %s: %s", path, dlerror());
  rt_backend_entry *entry;
  *(void **)&entry = dlsym(library, "onnx_xla_backend");
  CHECK_THAT(entry, STATUS_INVALID_ARGUMENT, "backend %s exports no onnx_xla_backend", path);
  *out = entry(RT_ABI);
  CHECK_THAT(*out && (*out)->abi == RT_ABI && (*out)->target && (*out)->adopt_guard, STATUS_INVALID_ARGUMENT,
             "backend %s does not serve version %d of the interface", path, RT_ABI);
  (*out)->adopt_guard(guard_here());
  return NULL;
}

status compiler_backend(const char *name, const rt_backend **out) {
  static const rt_backend own[] = {{RT_ABI, guard_adopt, &cpu_target, &cpu_compiler},
                                   {RT_ABI, guard_adopt, &ref_target, &ref_compiler}};
  for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
    if (strcmp(name, own[k].target->name) == 0) {
      *out = &own[k];
      return NULL;
    }
  }
  TRY(gpu_find_backend(name, out));
  if (*out) {
    return NULL;
  }
  CHECK_THAT(strchr(name, '/'), STATUS_INVALID_ARGUMENT,
             "backend '%s' is unknown; there are cpu, gpu, gpu:N, gpu:host, ref, and paths of shared objects", name);
  return open_backend(name, out);
}
