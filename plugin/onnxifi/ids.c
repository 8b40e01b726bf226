/* ids.c - backend IDs: those of the library, and one for each GPU. */
#include <pthread.h>
#include <stdio.h>

#include "plugin/onnxifi/internal.h"

/* MOST_GPUS is more than a machine has, and MOST_LISTED is more than either library lists (ifi_abi.ids). */
enum { MOST_GPUS = 64, MOST_LISTED = 8 };

/* An ID is the address of an entry of this table, which is valid for the life of the process; releasing it does
 * nothing.  The table is made when it is first needed, so that it stays the same when a GPU is lost later. */
static ifi_id table[MOST_LISTED + MOST_GPUS];
static size_t n_ids;

static struct gpu_entry {
  ifi_gpu gpu;
  char backend[16], name[32];
} gpus[MOST_GPUS];

/* Adds a GPU after the library's own entries (ifi_abi.ids), whose places are thus the same on every machine.  A GPU
 * that cannot be described, or for which no code can be compiled, runs no graph and gets no ID. */
static void add_gpu(int number, struct gpu_entry *e) {
  oxla_error *error = oxla_describe_gpu(number, &e->gpu.described);
  if (!error && *e->gpu.described.architecture) {
    e->gpu.number = number;
    snprintf(e->backend, sizeof e->backend, "gpu:%d", number);
    snprintf(e->name, sizeof e->name, "onnx-xla %s", e->backend);
    table[n_ids++] = (ifi_id){e->backend, e->name, false, &e->gpu};
  }
  oxla_error_free(error);
}

static void make_table(void) {
  int n = 0;
  for (size_t k = 0; k < ifi_the_abi.n_ids; k++) {
    table[n_ids++] = ifi_the_abi.ids[k];
  }
  oxla_error_free(oxla_gpu_count(&n)); /* most machines have none */
  for (int k = 0; k < n && k < MOST_GPUS; k++) {
    add_gpu(k, &gpus[k]);
  }
}

static size_t count(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_table);
  return n_ids;
}

const ifi_id *ifi_id_of(onnxBackendID id) {
  for (size_t k = 0; k < count(); k++) {
    if (id == (onnxBackendID)&table[k]) {
      return &table[k];
    }
  }
  return NULL;
}

oxla_options ifi_options_for(const ifi_id *id) {
  return (oxla_options){
      .size = sizeof(oxla_options), .backend = id->backend, .cpu = id->gpu ? id->gpu->described.architecture : NULL};
}

onnxStatus onnxGetBackendIDs(onnxBackendID *backendIDs, size_t *numBackends) {
  if (!numBackends) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  size_t room = backendIDs ? *numBackends : 0;
  *numBackends = count();
  if (room < count()) {
    return ONNXIFI_STATUS_FALLBACK;
  }
  for (size_t k = 0; k < count(); k++) {
    backendIDs[k] = (onnxBackendID)&table[k];
  }
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus onnxReleaseBackendID(onnxBackendID backendID) {
  return ifi_id_of(backendID) ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_ID;
}
