/* arrays.c - the arrays and sequences of a run of a segmented model (interpreter.h). */
#include <string.h>

#include "plugin/compiler/interpreter.h"

enum { ALIGN = 64 };

/* Makes an array or a sequence, with one reference.  Sets *memory to memory of `bytes` bytes, in which the caller puts
 * its data or, for a sequence, its list of elements. */
static status new_array(interpreter_run *run, const shape *s, size_t bytes, host_array **out, void **memory) {
  bytes = bytes ? bytes : 1; /* an empty array has an address, too */
  host_array *a = budget_alloc(run->budget, sizeof *a, ALIGN);
  *memory = a ? budget_alloc(run->budget, bytes, ALIGN) : NULL;
  if (!*memory) {
    budget_free(run->budget, a, sizeof *a, ALIGN);
    return status_error(STATUS_RESOURCE, "out of memory: no %zu bytes for an array", bytes);
  }
  *a = (host_array){.base = {.value = {*s, NULL}}, .references = 1, .bytes = bytes, .run = run, .next = run->arrays};
  if (a->next) {
    a->next->previous = a;
  }
  *out = run->arrays = a;
  return NULL;
}

status host_array_new(interpreter_run *run, const shape *s, host_array **out) {
  void *data;
  TRY(new_array(run, s, (size_t)shape_bytes(s), out, &data));
  (*out)->base.value.data = data;
  return NULL;
}

status host_packed_new(interpreter_run *run, const shape *s, size_t bytes, host_array **out, void **memory) {
  TRY(new_array(run, s, bytes, out, memory));
  (*out)->base.value.data = *memory;
  return NULL;
}

status host_array_copy(interpreter_run *run, const literal *l, host_array **out) {
  TRY(host_array_new(run, &l->shape, out));
  if (shape_elements(&l->shape)) {
    memcpy(host_array_data(*out), l->data, (size_t)shape_bytes(&l->shape));
  }
  return NULL;
}

status host_list_new(interpreter_run *run, shape_kind kind, dtype type, uint32_t n, host_array *const *elements,
                     host_array **out) {
  shape s = shape_scalar(type);
  s.kind = (uint8_t)kind;
  void *list;
  TRY(new_array(run, &s, n * sizeof(onnx_array *), out, &list));
  (*out)->base.n = n;
  (*out)->base.elements = list;
  for (uint32_t k = 0; k < n; k++) {
    (*out)->base.elements[k] = &elements[k]->base;
  }
  return NULL;
}

/* The recursion is at most two levels deep: in a sequence of maps. */
status host_array_from(interpreter_run *run, const literal *l, host_array **out) {
  if (l->shape.kind == SHAPE_ARRAY) {
    return host_array_copy(run, l, out);
  }
  uint32_t n = literal_is_list(l) ? literal_elements(l)->n : 0;
  host_array **elements = ARENA_NEW_N(run->scratch, host_array *, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    TRY(host_array_from(run, &literal_elements(l)->items[k], &elements[k]));
  }
  return host_list_new(run, (shape_kind)l->shape.kind, (dtype)l->shape.type, n, elements, out);
}

/* Returns the array, sequence or map as a literal, whose lists are on the run's arena. */
static literal literal_of(const host_array *a) {
  arena *scratch = a->run->scratch;
  literal l = a->base.value;
  if (a->base.elements) {
    literal *items = ARENA_NEW_N(scratch, literal, a->base.n);
    literal_list *list = ARENA_NEW(scratch, literal_list);
    for (uint32_t k = 0; k < a->base.n; k++) {
      items[k] = literal_of(host_list_element(a, k));
    }
    *list = (literal_list){a->base.n, items};
    l.data = literal_is_list(&l) ? list : NULL;
  }
  return l;
}

status host_array_pack(const host_array *a, compiler_array *out) {
  literal l = literal_of(a);
  size_t bytes = literal_packed_bytes(&l);
  bytes = bytes ? bytes : 1; /* what is empty has an address, too */
  *out = (compiler_array){l.shape, budget_alloc(a->run->budget, bytes, ALIGN), bytes};
  CHECK_THAT(out->data, STATUS_RESOURCE, "out of memory: no %zu bytes for an output", bytes);
  literal_pack(&l, out->data);
  return NULL;
}

host_array *host_array_retain(host_array *a) {
  a->references++;
  return a;
}

compiler_array host_array_let_go(host_array *a) {
  void *memory = a->base.elements ? (void *)a->base.elements : host_array_data(a);
  compiler_array data = {a->base.value.shape, memory, a->bytes};
  *(a->previous ? &a->previous->next : &a->run->arrays) = a->next;
  if (a->next) {
    a->next->previous = a->previous;
  }
  budget_free(a->run->budget, a, sizeof *a, ALIGN);
  return data;
}

void host_memory_free(mem_budget *budget, compiler_array a) { budget_free(budget, a.data, a.bytes, ALIGN); }

void host_array_release(host_array *a) {
  if (a && --a->references == 0) {
    for (uint32_t k = 0; k < a->base.n; k++) {
      host_array_release(host_list_element(a, k));
    }
    mem_budget *budget = a->run->budget;
    host_memory_free(budget, host_array_let_go(a));
  }
}

void host_arrays_free(interpreter_run *run) {
  while (run->arrays) {
    host_memory_free(run->budget, host_array_let_go(run->arrays));
  }
}
