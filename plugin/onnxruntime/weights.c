/* weights.c - keeps large constants as long as a partition lives, since ONNX Runtime frees its own copies after
 * compiling.
 *
 * Most constants are in the model's file or in files of external data, whose names ONNX Runtime tells.  They are read
 * from these files, which are mapped.  A compiled program often has a packed copy of a constant and no longer needs the
 * original.  The system can then drop the original's pages from memory, since they are mapped from a file.  Other
 * constants are copied. */
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/onnxruntime/internal.h"

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_NAME = 8, TENSOR_RAW = 9 }; /* field numbers of onnx.proto */
enum { ALIGN = 64 };

/* An initializer in the model's file. */
typedef struct initializer {
  ort_span name, raw;
} initializer;

static int by_name(const void *a, const void *b) {
  const ort_span *x = &((const initializer *)a)->name, *y = &((const initializer *)b)->name;
  return x->n != y->n ? (x->n < y->n ? -1 : 1) : memcmp(x->bytes, y->bytes, x->n);
}

/* --- files --- */

static ort_span map_file(const char *path) {
  struct stat st;
  ort_span out = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0 && fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    out = bytes == MAP_FAILED ? out : (ort_span){bytes, (size_t)st.st_size};
  }
  if (file >= 0) {
    close(file);
  }
  return out;
}

/* Returns the contents of a file, which is mapped once; empty if that fails. */
static ort_span file_at(ort_kept *k, const char *path) {
  for (size_t i = 0; i < k->n_files; i++) {
    if (strcmp(k->files[i].path, path) == 0) {
      return k->files[i].span;
    }
  }
  ort_mapped *more = realloc(k->files, (k->n_files + 1) * sizeof *more);
  char *name = more ? strdup(path) : NULL;
  k->files = more ? more : k->files;
  if (!name) {
    return (ort_span){0};
  }
  k->files[k->n_files] = (ort_mapped){name, map_file(path)};
  return k->files[k->n_files++].span;
}

/* --- the model's own initializers --- */

static initializer read_tensor(pb_cursor tensor) {
  initializer out = {0};
  for (pb_field f; pb_next(&tensor, &f);) {
    if (f.wire_type == PB_LEN && (f.number == TENSOR_NAME || f.number == TENSOR_RAW)) {
      *(f.number == TENSOR_NAME ? &out.name : &out.raw) = (ort_span){f.value, (size_t)f.size};
    }
  }
  return out;
}

/* Returns a tree of the model's initializers, by name.  The span `raw` of an initializer without raw data is empty.  If
 * there is no memory, some are missing. */
static void *list_initializers(ort_span file) {
  void *all = NULL;
  pb_cursor model = {file.bytes, file.bytes + file.n};
  for (pb_field graph; pb_next(&model, &graph);) {
    pb_cursor fields = pb_value(&graph);
    for (pb_field tensor; graph.number == MODEL_GRAPH && pb_next(&fields, &tensor);) {
      initializer *e = tensor.number == GRAPH_INITIALIZER ? malloc(sizeof *e) : NULL;
      if (e) {
        *e = read_tensor(pb_value(&tensor));
        initializer **there = (initializer **)tsearch(e, &all, by_name);
        if (!there || *there != e) {
          free(e);
        }
      }
    }
  }
  return all;
}

/* Returns where the bytes of a constant are in the model's file; NULL if the file has other bytes for it: ONNX Runtime
 * may have changed the constant. */
static const void *in_model(void *const *all, const oxla_constant *c, size_t bytes) {
  initializer key = {.name = {(const uint8_t *)c->name, strlen(c->name)}};
  initializer **found = (initializer **)tfind(&key, all, by_name);
  return found && (*found)->raw.n == bytes && memcmp((*found)->raw.bytes, c->data, bytes) == 0 ? (*found)->raw.bytes
                                                                                               : NULL;
}

/* --- external data --- */

static const void *in_file(ort_kept *k, const char *model, const char *name, int64_t offset, const void *data,
                           size_t bytes) {
  char path[4096];
  const char *slash = *name == '/' ? NULL : strrchr(model, '/');
  int n = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - model) + 1 : 0, model, name);
  ort_span file = n > 0 && (size_t)n < sizeof path ? file_at(k, path) : (ort_span){0};
  bool inside = offset >= 0 && (uint64_t)offset <= file.n && bytes <= file.n - (size_t)offset;
  return file.n && inside && memcmp(file.bytes + offset, data, bytes) == 0 ? file.bytes + offset : NULL;
}

static const void *in_external(const ort_provider *p, ort_kept *k, const char *model, const OrtValueInfo *info,
                               const void *data, size_t bytes) {
  OrtExternalInitializerInfo *where = NULL;
  OrtStatus *failed = p->api->ValueInfo_GetExternalInitializerInfo(info, &where);
  if (failed || !where) {
    p->api->ReleaseStatus(failed);
    return NULL;
  }
  const void *there = in_file(k, model, p->api->ExternalInitializerInfo_GetFilePath(where),
                              p->api->ExternalInitializerInfo_GetFileOffset(where), data, bytes);
  p->api->ReleaseExternalInitializerInfo(where);
  return there;
}

/* --- keeping --- */

static size_t bytes_of(const oxla_constant *c) {
  const oxla_type t = c->type;
  size_t bytes = t == OXLA_DOUBLE || t == OXLA_INT64 || t == OXLA_UINT64 || t == OXLA_COMPLEX64   ? 8
                 : t == OXLA_COMPLEX128                                                           ? 16
                 : t == OXLA_FLOAT || t == OXLA_INT32 || t == OXLA_UINT32                         ? 4
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
  const char *path = NULL;
  ORT_TRY(p->api->Graph_GetModelPath(g->graph, &path));
  bool has_path = w->n && path && *path;
  out->copies = calloc(w->n + 1, sizeof *out->copies);
  if (!out->copies) {
    return ort_no_memory(p);
  }
  void *all = has_path ? list_initializers(file_at(out, path)) : NULL;
  OrtStatus *failed = NULL;
  for (size_t k = 0; k < w->n && !failed; k++) {
    oxla_constant *c = &w->items[k];
    size_t bytes = bytes_of(c);
    const void *there = in_model(&all, c, bytes);
    there = there || !has_path ? there : in_external(p, out, path, w->infos[k], c->data, bytes);
    c->data = there ? there : c->data;
    failed = there ? NULL : copy(p, c, bytes, out);
  }
  tdestroy(all, free);
  return failed;
}

void ort_kept_drop(const ort_kept *k) {
  for (size_t i = 0; i < k->n_files; i++) {
    if (k->files[i].span.n) {
      (void)madvise((void *)(uintptr_t)k->files[i].span.bytes, k->files[i].span.n, MADV_DONTNEED);
    }
  }
}

void ort_kept_free(ort_kept *k) {
  for (size_t i = 0; i < k->n_copies; i++) {
    free(k->copies[i]);
  }
  for (size_t i = 0; i < k->n_files; i++) {
    if (k->files[i].span.n) {
      munmap((void *)(uintptr_t)k->files[i].span.bytes, k->files[i].span.n);
    }
    free(k->files[i].path);
  }
  free(k->copies);
  free(k->files);
  *k = (ort_kept){0};
}
