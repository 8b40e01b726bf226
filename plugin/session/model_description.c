/* model_description.c - the description of a model as bytes. */
#include "plugin/session/model_description.h"

#include <string.h>

#include "runtime/program/strings.h"

static const char magic[] = "onnx-xla source 3";

void model_description_put_shape(rt_writer *w, const shape *s) {
  rt_put_i64(w, s->kind);
  rt_put_i64(w, s->type);
  rt_put_i64s(w, s->rank, s->dims);
}

static void put_values(rt_writer *w, uint32_t n, const model_value *v) {
  rt_put_i64(w, n);
  for (uint32_t k = 0; k < n; k++) {
    rt_put_text(w, v[k].name);
    model_description_put_shape(w, &v[k].shape);
    rt_put_i64(w, v[k].element);
    rt_put_i64(w, v[k].key);
    for (int d = 0; d < v[k].shape.rank; d++) {
      rt_put_i64(w, v[k].dim_names[d] != NULL);
      rt_put_text(w, v[k].dim_names[d]);
    }
  }
}

rt_span model_description_write(arena *a, const compiler_model *x, const fingerprints *f, content_key build) {
  rt_writer w = {.arena = a};
  rt_put_text(&w, magic);
  rt_put_bytes(&w, &build, sizeof build);
  rt_put_text(&w, x->name);
  rt_put_i64(&w, x->n_nodes);
  rt_put_i64(&w, x->n_initializers);
  put_values(&w, x->n_inputs, x->inputs);
  put_values(&w, x->n_defaults, x->defaults);
  put_values(&w, x->n_outputs, x->outputs);
  rt_put_i64(&w, x->n_properties);
  for (uint32_t k = 0; k < x->n_properties; k++) {
    rt_put_text(&w, x->properties[k].key);
    rt_put_text(&w, x->properties[k].value);
  }
  rt_put_i64(&w, x->n_files);
  for (uint32_t k = 0; k < x->n_files; k++) {
    rt_put_text(&w, x->files[k]);
  }
  rt_put_strings(&w, x->strings);
  content_key check = content_key_of(f, NULL, w.bytes, w.n);
  rt_put_bytes(&w, &check, sizeof check);
  return rt_written(&w);
}

/* the number of bytes that rt_put_bytes writes for the checksum: its size and the checksum, which need no padding */
enum { CHECK_BYTES = 8 + sizeof(content_key) };

static uint32_t get_count(rt_reader *r) { return (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 8); }

static model_value *get_values(rt_reader *r, arena *a, uint32_t *n) {
  *n = get_count(r);
  model_value *v = ARENA_NEW_N(a, model_value, *n);
  for (uint32_t k = 0; k < *n && !r->bad; k++) {
    v[k].name = rt_get_text(r);
    v[k].shape.kind = (uint8_t)rt_get_in(r, 0, UINT8_MAX);
    v[k].shape.type = (uint8_t)rt_get_in(r, 0, DTYPE_COUNT - 1);
    uint32_t rank;
    const int64_t *dims = rt_get_i64s(r, a, &rank);
    r->bad |= rank > SHAPE_MAX_RANK;
    v[k].shape.rank = (uint8_t)(r->bad ? 0 : rank);
    v[k].element = (shape_kind)rt_get_in(r, 0, SHAPE_UNRANKED);
    v[k].key = (dtype)rt_get_in(r, 0, DTYPE_COUNT - 1);
    for (int d = 0; d < v[k].shape.rank; d++) {
      v[k].shape.dims[d] = dims[d];
      bool named = rt_get_i64(r) != 0;
      const char *name = rt_get_text(r);
      v[k].dim_names[d] = named ? name : NULL;
    }
  }
  return v;
}

compiler_model *model_description_read(arena *a, rt_span bytes, const fingerprints *f, content_key build) {
  if (bytes.size < CHECK_BYTES) {
    return NULL;
  }
  content_key check = content_key_of(f, NULL, bytes.data, bytes.size - CHECK_BYTES);
  rt_reader r = rt_reader_make(bytes);
  compiler_model *x = ARENA_NEW(a, compiler_model);
  bool ours = strcmp(rt_get_text(&r), magic) == 0;
  rt_span writer = rt_get_bytes(&r);
  ours = ours && writer.size == sizeof check && memcmp(writer.data, &build, sizeof check) == 0;
  x->name = rt_get_text(&r);
  x->n_nodes = (uint32_t)rt_get_i64(&r);
  x->n_initializers = (uint32_t)rt_get_i64(&r);
  x->inputs = get_values(&r, a, &x->n_inputs);
  x->defaults = get_values(&r, a, &x->n_defaults);
  x->outputs = get_values(&r, a, &x->n_outputs);
  x->n_properties = get_count(&r);
  x->properties = ARENA_NEW_N(a, model_property, x->n_properties);
  for (uint32_t k = 0; k < x->n_properties; k++) {
    x->properties[k].key = rt_get_text(&r);
    x->properties[k].value = rt_get_text(&r);
  }
  x->n_files = get_count(&r);
  x->files = ARENA_NEW_N(a, const char *, x->n_files);
  for (uint32_t k = 0; k < x->n_files; k++) {
    x->files[k] = rt_get_text(&r);
  }
  x->strings = rt_get_strings(&r, a);
  rt_span found = rt_get_bytes(&r);
  ours = ours && found.size == sizeof check && memcmp(found.data, &check, sizeof check) == 0;
  status failed = rt_reader_end(&r, "source");
  ours = ours && !failed;
  status_free(failed);
  return ours ? x : NULL;
}

const char *model_description_name(rt_span description) {
  rt_reader r = rt_reader_make(description);
  bool ours = strcmp(rt_get_text(&r), magic) == 0;
  (void)rt_get_bytes(&r);
  const char *name = rt_get_text(&r);
  return ours && !r.bad ? name : "unknown";
}
