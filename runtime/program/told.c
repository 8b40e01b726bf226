/* told.c - see told.h. */
#include "runtime/program/told.h"

#include <string.h>

uint32_t rt_program_inputs(const rt_program *p) {
  uint32_t n = 0;
  while (n < p->n_params && !p->params[n].told) {
    n++;
  }
  return n;
}

bool rt_program_takes_inputs(const rt_program *p, uint32_t n) {
  bool takes = rt_program_inputs(p) == n;
  for (uint32_t k = n; takes && k < p->n_params; k++) {
    takes = p->params[k].told;
  }
  return takes;
}

shape rt_told_shape(const rt_io *io, const literal *input) {
  shape s = io->shape;
  bool known = input->data && io->element < shape_elements(&input->shape);
  int64_t value = known ? literal_i64(input, io->element) : -1;
  s.dims[0] = value <= DIM_MAX && value >= 0 ? value : -1;
  return s;
}

const void *rt_told_content(arena *a, const rt_program *p, uint32_t k) {
  const shape *s = &p->params[k].shape;
  size_t bytes = dtype_bytes((dtype)s->type);
  char *content = NULL;
  for (uint32_t j = 0; j < p->n_params; j++) {
    const rt_io *io = &p->params[j];
    if (io->told == k + 1) {
      content = content ? content : arena_alloc(a, (size_t)shape_bytes(s));
      dtype_store_i64((dtype)s->type, content + io->element * bytes, io->shape.dims[0]);
    }
  }
  return content;
}

bool rt_program_has_contents(const rt_program *p, const void *const *values) {
  for (uint32_t k = 0; k < p->n_params; k++) {
    const rt_io *io = &p->params[k];
    const void *value = values && io->value ? values[k] : NULL;
    size_t bytes = io->value ? (size_t)shape_bytes(&io->shape) : 0; /* an empty value has no contents to compare */
    if (bytes && (!value || memcmp(io->value, value, bytes) != 0)) {
      return false;
    }
  }
  return true;
}

/* Returns true if the shapes are those of a list of integers or truth values, and of a parameter that tells one of its
 * elements. */
static bool is_told(const rt_io *list, const rt_io *io) {
  const shape *s = &list->shape, *t = &io->shape;
  bool counts = dtype_is_int((dtype)s->type) || s->type == DTYPE_PRED;
  return counts && shape_is_static(s) && s->rank <= 1 && t->type == DTYPE_U8 && t->rank == 2 && t->dims[1] == 0 &&
         io->element < shape_elements(s);
}

status rt_told_check(const rt_program *p) {
  uint32_t n_inputs = rt_program_inputs(p);
  for (uint32_t k = 0; k < p->n_params; k++) {
    const rt_io *io = &p->params[k];
    CHECK_THAT(!io->told || (io->told <= n_inputs && is_told(&p->params[io->told - 1], io)), STATUS_INVALID_FILE,
               "input '%s' is damaged", io->name);
  }
  return NULL;
}
