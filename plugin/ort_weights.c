/* ort_weights.c - large constants for as long as a group lives: ONNX Runtime gives its own back once all is compiled.
 *
 * Most of them lie in the model's file as ONNX Runtime shows them.  Those are used there, mapped: what compiling packs is then in
 * memory once, since the pages that it read can go.  The others are copied. */
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/ort_parts.h"

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_NAME = 8, TENSOR_RAW = 9 }; /* of onnx.proto */
enum { ALIGN = 64 };

/* An initializer of the file. */
typedef struct initializer {
  ort_span name, raw;
} initializer;

static int by_name(const void *a, const void *b) {
  const ort_span *x = &((const initializer *)a)->name, *y = &((const initializer *)b)->name;
  return x->n != y->n ? (x->n < y->n ? -1 : 1) : memcmp(x->bytes, y->bytes, x->n);
}

/* The mapped file; nothing where there is none. */
static ort_span map_model(const ort_provider *p, const ort_graph *g) {
  const char *path = NULL;
  struct stat st;
  ort_span out = {0};
  OrtStatus *failed = p->api->Graph_GetModelPath(g->graph, &path);
  if (failed) {
    p->api->ReleaseStatus(failed);
  }
  int file = !failed && path && *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (file >= 0 && fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    out = bytes == MAP_FAILED ? out : (ort_span){bytes, (size_t)st.st_size};
  }
  if (file >= 0) {
    close(file);
  }
  return out;
}

static initializer read_tensor(ort_span tensor) {
  initializer out = {0};
  ort_span field;
  for (uint32_t number; ort_wire_next(&tensor, &number, &field);) {
    if (number == TENSOR_NAME || number == TENSOR_RAW) {
      *(number == TENSOR_NAME ? &out.name : &out.raw) = field;
    }
  }
  return out;
}

/* Initializers with bytes of their own, by name.  Without memory there are fewer of them. */
static void *list_initializers(ort_span model) {
  void *all = NULL;
  ort_span graph, tensor;
  for (uint32_t number; ort_wire_next(&model, &number, &graph);) {
    while (number == MODEL_GRAPH && ort_wire_next(&graph, &number, &tensor)) {
      initializer *e = number == GRAPH_INITIALIZER ? malloc(sizeof *e) : NULL;
      if (e) {
        *e = read_tensor(tensor);
        initializer **there = (initializer **)tsearch(e, &all, by_name);
        if (!there || *there != e) {
          free(e);
        }
      }
      number = MODEL_GRAPH;
    }
  }
  return all;
}

/* In the file if the same bytes stand there under the same name: ONNX Runtime may have changed it. */
static const void *find_in_file(void *const *all, const oxla_constant *c, size_t bytes) {
  initializer key = {.name = {(const uint8_t *)c->name, strlen(c->name)}};
  initializer **found = (initializer **)tfind(&key, all, by_name);
  return found && (*found)->raw.n == bytes && memcmp((*found)->raw.bytes, c->data, bytes) == 0 ? (*found)->raw.bytes : NULL;
}

static size_t bytes_of(const oxla_constant *c) {
  const oxla_type t = c->type;
  size_t bytes = t == OXLA_DOUBLE || t == OXLA_INT64 || t == OXLA_UINT64 || t == OXLA_COMPLEX64 ? 8
                 : t == OXLA_COMPLEX128                                                        ? 16
                 : t == OXLA_FLOAT || t == OXLA_INT32 || t == OXLA_UINT32                      ? 4
                 : t == OXLA_FLOAT16 || t == OXLA_BFLOAT16 || t == OXLA_INT16 || t == OXLA_UINT16 ? 2
                                                                                                  : 1;
  for (int d = 0; d < c->rank; d++) {
    bytes *= (size_t)c->dims[d];
  }
  return bytes;
}

static OrtStatus *copy(const ort_provider *p, oxla_constant *c, size_t bytes, ort_kept *out) {
  void *data = aligned_alloc(ALIGN, (bytes / ALIGN + 1) * ALIGN);
  if (!data) {
    return ort_no_memory(p);
  }
  out->copies[out->n_copies++] = data;
  c->data = memcpy(data, c->data, bytes);
  return NULL;
}

OrtStatus *ort_weights_keep(const ort_provider *p, const ort_graph *g, ort_weights *w, ort_kept *out) {
  out->copies = calloc(w->n + 1, sizeof *out->copies);
  if (!out->copies) {
    return ort_no_memory(p);
  }
  out->file = w->n ? map_model(p, g) : (ort_span){0};
  void *all = list_initializers(out->file);
  OrtStatus *failed = NULL;
  for (size_t k = 0; k < w->n && !failed; k++) {
    size_t bytes = bytes_of(&w->items[k]);
    const void *there = find_in_file(&all, &w->items[k], bytes);
    if (there) {
      w->items[k].data = there;
    } else {
      failed = copy(p, &w->items[k], bytes, out);
    }
  }
  tdestroy(all, free);
  return failed;
}

void ort_kept_drop(const ort_kept *k) {
  if (k->file.bytes) {
    (void)madvise((void *)(uintptr_t)k->file.bytes, k->file.n, MADV_DONTNEED);
  }
}

void ort_kept_free(ort_kept *k) {
  for (size_t i = 0; i < k->n_copies; i++) {
    free(k->copies[i]);
  }
  free(k->copies);
  if (k->file.bytes) {
    munmap((void *)(uintptr_t)k->file.bytes, k->file.n);
  }
  *k = (ort_kept){0};
}
