#include "frontend/sizes.h"

#include <string.h>

/* --- open dimensions --- */

void onnx_open_dim_set(onnx_importer *im, hlo_value v, int axis, hlo_value size) {
  if (v.def && size.def) {
    *ARENA_PUSH(im->arena, im->open, im->n_open, im->cap_open) = (onnx_open_dim){v, axis, size, im->node};
  }
}

static const onnx_open_dim *find_open(const onnx_importer *im, hlo_value v, int axis) {
  for (uint32_t k = im->n_open; k-- > 0;) {
    if (hlo_value_equal(im->open[k].value, v) && (axis < 0 || im->open[k].axis == axis)) {
      return &im->open[k];
    }
  }
  return NULL;
}

hlo_value onnx_open_dim_get(const onnx_importer *im, hlo_value v, int axis) {
  const onnx_open_dim *d = find_open(im, v, axis);
  return d ? d->size : (hlo_value){0};
}

bool onnx_has_open_dims(const onnx_importer *im, hlo_value v) { return find_open(im, v, -1); }

bool onnx_want_sizes(onnx_importer *im, hlo_value v) {
  const onnx_open_dim *d = find_open(im, v, -1);
  if (d) { /* what this very node made never leaves the piece while the node is in one */
    *(d->node == im->node ? &im->wants.apart : &im->wants.waits) = true;
  }
  return d;
}

/* --- operators --- */

status onnx_sizes_before(onnx_node *n) {
  onnx_importer *im = n->scope->importer;
  for (uint32_t k = 0; im->n_open && k < n->n_in; k++) {
    CHECK_THAT(!n->in[k].def || !onnx_want_sizes(im, n->in[k]), STATUS_UNSUPPORTED,
               "the size of input %u depends on data", k);
  }
  return NULL;
}

status onnx_sizes_after(onnx_node *n) {
  (void)n;
  return NULL;
}

/* --- results --- */

void onnx_set_roots(onnx_importer *im, uint32_t n, const hlo_value *values) {
  hlo_value *roots = ARENA_NEW_N(im->arena, hlo_value, n + im->n_open);
  hlo_size_of *size_of = ARENA_NEW_N(im->arena, hlo_size_of, n + im->n_open);
  uint32_t n_roots = n;
  memcpy(roots, values, n * sizeof *roots);
  for (uint32_t k = 0; k < n; k++) {
    size_of[k].axis = -1;
    for (int axis = 0; axis < hlo_rank(values[k]); axis++) {
      hlo_value size = onnx_open_dim_get(im, values[k], axis);
      if (size.def) {
        size_of[n_roots] = (hlo_size_of){.result = k, .axis = axis};
        roots[n_roots++] = size;
      }
    }
  }
  hlo_set_roots(im->module->entry, n_roots, roots);
  im->module->result_names = arena_grow(im->arena, im->module->result_names, n * sizeof(char *), n_roots * sizeof(char *));
  im->module->size_of = n_roots > n ? size_of : NULL;
}
