/* compiler_arrays.c - the arrays and sequences of a run that goes piece by piece (compiler_apart.h). */
#include <string.h>

#include "plugin/compiler_apart.h"

enum { ALIGN = 64 };

/* With `bytes` of memory, which hold its data or, of a sequence, its elements. */
static status new_array(pieces_run *run, const shape *s, size_t bytes, pieces_array **out, void **memory) {
  bytes = bytes ? bytes : 1; /* an empty array has an address, too */
  pieces_array *a = budget_alloc(run->budget, sizeof *a, ALIGN);
  *memory = a ? budget_alloc(run->budget, bytes, ALIGN) : NULL;
  if (!*memory) {
    budget_free(run->budget, a, sizeof *a, ALIGN);
    return status_error(STATUS_RESOURCE, "out of memory: no %zu bytes for an array", bytes);
  }
  *a = (pieces_array){.base = {.value = {*s, NULL}}, .references = 1, .bytes = bytes, .run = run, .next = run->arrays};
  if (a->next) {
    a->next->previous = a;
  }
  *out = run->arrays = a;
  return NULL;
}

status pieces_array_new(pieces_run *run, const shape *s, pieces_array **out) {
  void *data;
  TRY(new_array(run, s, (size_t)shape_bytes(s), out, &data));
  (*out)->base.value.data = data;
  return NULL;
}

status pieces_array_copy(pieces_run *run, const literal *l, pieces_array **out) {
  TRY(pieces_array_new(run, &l->shape, out));
  if (shape_elements(&l->shape)) {
    memcpy(pieces_array_data(*out), l->data, (size_t)shape_bytes(&l->shape));
  }
  return NULL;
}

status pieces_sequence_new(pieces_run *run, dtype type, uint32_t n, pieces_array *const *elements, pieces_array **out) {
  shape s = shape_scalar(type);
  s.kind = SHAPE_SEQUENCE;
  void *list;
  TRY(new_array(run, &s, n * sizeof(onnx_array *), out, &list));
  (*out)->base.n = n;
  (*out)->base.elements = list;
  for (uint32_t k = 0; k < n; k++) {
    (*out)->base.elements[k] = &elements[k]->base;
  }
  return NULL;
}

pieces_array *pieces_array_retain(pieces_array *a) {
  a->references++;
  return a;
}

plug_array pieces_array_let_go(pieces_array *a) {
  void *memory = a->base.elements ? (void *)a->base.elements : pieces_array_data(a);
  plug_array data = {a->base.value.shape, memory, a->bytes};
  *(a->previous ? &a->previous->next : &a->run->arrays) = a->next;
  if (a->next) {
    a->next->previous = a->previous;
  }
  budget_free(a->run->budget, a, sizeof *a, ALIGN);
  return data;
}

void pieces_memory_free(mem_budget *budget, plug_array a) { budget_free(budget, a.data, a.bytes, ALIGN); }

/* Elements are no sequences. */
void pieces_array_release(pieces_array *a) {
  if (a && --a->references == 0) {
    for (uint32_t k = 0; k < a->base.n; k++) {
      pieces_array_release(pieces_element(a, k));
    }
    mem_budget *budget = a->run->budget;
    pieces_memory_free(budget, pieces_array_let_go(a));
  }
}

void pieces_arrays_free(pieces_run *run) {
  while (run->arrays) {
    pieces_memory_free(run->budget, pieces_array_let_go(run->arrays));
  }
}
