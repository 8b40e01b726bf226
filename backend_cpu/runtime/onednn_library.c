/* onednn_library.c - opens oneDNN's shared library when it is first needed: loading it takes milliseconds and
 * megabytes, and many programs never call it. */
#include "backend_cpu/runtime/onednn.h"

#ifdef HAVE_ONEDNN

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/dynamic_library.h"
#include "base/headroom.h"
#include "base/machine/machine.h"

onednn_library onednn;

static char library_name[64];

static status find_functions(void *library) {
#define ONEDNN_FUNCTION(name) {"dnnl_" #name, offsetof(onednn_library, name)},
  static const dynamic_function functions[] = {
#include "backend_cpu/runtime/onednn_functions.def"
  };
  const char *missing = dynamic_library_find(library, sizeof functions / sizeof *functions, functions, &onednn);
  CHECK_THAT(!missing, STATUS_UNSUPPORTED, "oneDNN has no function %s", missing);
  /* A library that was built without OpenMP has no threads of its own that would have to be limited. */
  *(void **)&onednn.omp_get_max_threads = dlsym(library, "omp_get_max_threads");
  *(void **)&onednn.omp_set_num_threads = dlsym(library, "omp_set_num_threads");
  return NULL;
}

#define TEXT(number) #number
#define TEXT_OF(number) TEXT(number)

const char *cpu_library_of_build(void) {
  return "oneDNN " TEXT_OF(DNNL_VERSION_MAJOR) "." TEXT_OF(DNNL_VERSION_MINOR) "." TEXT_OF(DNNL_VERSION_PATCH);
}

static status open_library(void) {
  void *library = dlopen("libdnnl.so." TEXT_OF(DNNL_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
  CHECK_THAT(library, STATUS_UNSUPPORTED, "oneDNN cannot be opened: %s", dlerror());
  TRY(find_functions(library));
  CHECK_THAT(onednn.engine_create(&onednn.engine, dnnl_cpu, 0) == dnnl_success, STATUS_UNSUPPORTED,
             "oneDNN finds no processor that it can use");
  const dnnl_version_t *v = onednn.version();
  snprintf(library_name, sizeof library_name, "oneDNN %d.%d.%d (cpu isa %d)", v->major, v->minor, v->patch,
           (int)onednn.get_effective_cpu_isa());
  return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool opened, cannot_open; /* set under the lock, and then final */
static char failure[256];                /* why it cannot be opened */

bool cpu_library_may_open(void) { return !atomic_load(&cannot_open); }

static status open_first(void) {
  TRY(headroom_check(HEADROOM_OPEN_LIBRARY));
  status failed = open_library();
  snprintf(failure, sizeof failure, "%s", failed ? status_message(failed) : "");
  atomic_store(failed ? &cannot_open : &opened, true);
  return failed;
}

status cpu_library_open(void) {
  if (atomic_load(&opened)) {
    return NULL;
  }
  pthread_mutex_lock(&lock);
  status failed = opened ? NULL : cannot_open ? status_error(STATUS_UNSUPPORTED, "%s", failure) : open_first();
  pthread_mutex_unlock(&lock);
  return failed;
}

static bool is_open(void) {
  status failed = cpu_library_open();
  status_free(failed);
  return !failed;
}

const char *cpu_library_name(void) { return is_open() ? library_name : NULL; }

bool cpu_library_is_blas(void) { return false; }

/* Without VNNI instructions oneDNN adds pairs of products in 16 bits, which saturate.  The library is not opened where
 * the processor has none; where it has them, oneDNN may have been told by its environment not to use them. */
bool cpu_library_has_bytes(void) {
  bool here = machine_has_feature("avx512vnni") || machine_has_feature("avxvnni");
  unsigned isa = here && is_open() ? (unsigned)onednn.get_effective_cpu_isa() : 0;
  return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
         (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni;
}

#endif
