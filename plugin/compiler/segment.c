/* segment.c - a body (a subgraph or function, interpreter_site) has several segments, compiled for different states and
 * inputs; this finds the one that fits a run, and binds its program to the sizes of that run. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/compiler/segments_internal.h"

/* The most segments that are kept for a body (interpreter_site), and the most bindings that are kept for a
 * segment.  Beyond that, the one that was not used for the longest time is freed. */
enum { SEGMENTS_PER_SITE = 64, BINDINGS_PER_SEGMENT = 8 };

/* --- freeing --- */

static void destroy_bound(segment_binding *b) {
  if (b) {
    rt_binding_destroy(b->binding);
    free(b);
  }
}

void segment_clear(segment *x) {
  while (x->bindings) {
    segment_binding *b = x->bindings;
    x->bindings = b->next;
    destroy_bound(b);
  }
  rt_executable_destroy(x->executable);
  if (x->pool) {
    rt_weight_pool_release(x->pool, x->program);
    rt_weight_pool_collect(x->pool);
  }
  arena_destroy(x->compiling);
  arena_destroy(x->arena);
  *x = (segment){0};
}

void segment_destroy(segment *x) {
  if (x) {
    segment_clear(x);
    free(x);
  }
}

static void drop_oldest(interpreter_site *site) {
  segment **oldest = NULL;
  uint32_t n = 0;
  for (segment **at = &site->segments; *at; at = &(*at)->next, n++) {
    if ((*at)->runs == 0 && (!oldest || (*at)->last_used < (*oldest)->last_used)) {
      oldest = at;
    }
  }
  if (n > SEGMENTS_PER_SITE && oldest) {
    segment *x = *oldest;
    *oldest = x->next;
    segment_destroy(x);
  }
}

static void drop_oldest_bound(segment *x) {
  segment_binding **oldest = NULL;
  uint32_t n = 0;
  for (segment_binding **at = &x->bindings; *at; at = &(*at)->next, n++) {
    if ((*at)->runs == 0 && (!oldest || (*at)->last_used < (*oldest)->last_used)) {
      oldest = at;
    }
  }
  if (n > BINDINGS_PER_SEGMENT && oldest) {
    segment_binding *b = *oldest;
    *oldest = b->next;
    destroy_bound(b);
  }
}

/* --- does a segment fit? --- */

/* Returns true if the array `l` has the contents for which the segment was compiled.  If the segment is for all sizes,
 * the elements in the mask u->elements may differ, since parameters tell them to the program. */
static bool has_contents(const segment *x, const used_array *u, const literal *l) {
  if (!u->elements || !x->general) {
    return literal_equal(l, &u->value);
  }
  bool equal = true;
  for (int64_t k = 0; k < shape_elements(&l->shape); k++) {
    equal &= u->elements >> k & 1 || literal_i64(l, k) == literal_i64(&u->value, k);
  }
  return equal;
}

static bool fits_array(const segment *x, const used_array *u, const onnx_array *array) {
  const literal *want = &u->value;
  if (array->n != u->n) {
    return false;
  }
  if (!want->data && x->general && want->shape.kind == SHAPE_ARRAY) { /* rt_bind checks its shape */
    return array->value.shape.kind == SHAPE_ARRAY;
  }
  return shape_equal(&array->value.shape, &want->shape) && (!want->data || has_contents(x, u, &array->value));
}

onnx_array *segment_array(const onnx_frame *f, arena *scratch, const char *name) {
  onnx_array *array;
  literal *initializer;
  status_free(onnx_frame_find(f, scratch, name, &array, &initializer));
  return array;
}

static bool fits(const segment *x, const onnx_frame *f, arena *scratch) {
  bool fine = memcmp(x->before, f->states, f->n_nodes) == 0;
  for (uint32_t k = 0; fine && k < x->n_uses; k++) {
    const onnx_array *array = segment_array(f, scratch, x->uses[k].name);
    fine = array && fits_array(x, &x->uses[k], array);
  }
  return fine;
}

/* --- binding --- */

static bool same_shapes(uint32_t n, const shape *a, const shape *b) {
  bool same = true;
  for (uint32_t k = 0; same && k < n; k++) {
    same = shape_equal(&a[k], &b[k]);
  }
  return same;
}

static status add_bound(segment *x, const shape *shapes, segment_binding **out) {
  uint32_t n = x->program->n_params;
  segment_binding *b = calloc(1, sizeof *b + n * sizeof *shapes);
  CHECK_THAT(b, STATUS_RESOURCE, "out of memory");
  status failed = rt_bind(x->executable, shapes, &b->binding);
  if (failed) {
    free(b);
    return failed;
  }
  b->shapes = (shape *)(b + 1);
  memcpy(b->shapes, shapes, n * sizeof *shapes);
  b->next = x->bindings;
  *out = x->bindings = b;
  return NULL;
}

shape segment_param_shape(const segment *x, uint32_t k, const onnx_frame *f, arena *scratch) {
  const used_array *u = &x->uses[k];
  const onnx_array *array = segment_array(f, scratch, u->name);
  return u->elements ? onnx_told_shape(literal_i64(&array->value, __builtin_ctzll(u->elements))) : array->value.shape;
}

status segment_bind(segmented_model *p, segment *x, const onnx_frame *f, arena *scratch, segment_binding **out) {
  uint32_t n = x->program->n_params;
  shape *shapes = ARENA_NEW_N(scratch, shape, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    shapes[k] = segment_param_shape(x, k, f, scratch);
  }
  for (*out = x->bindings; *out && !same_shapes(n, (*out)->shapes, shapes);) {
    *out = (*out)->next;
  }
  status failed = *out ? NULL : add_bound(x, shapes, out);
  if (failed && status_get_subject(failed) == STATUS_ABOUT_SHAPE) {
    status_free(failed);
    failed = NULL;
  }
  if (*out) {
    (*out)->last_used = ++p->clock;
  }
  return failed;
}

/* --- finding --- */

typedef struct search {
  interpreter_run *run;
  interpreter_site *site;
  onnx_frame *frame;
  segment_use out;
} search;

/* Sets r->out to a segment that fits, if there is one. */
static status find(search *r) {
  segmented_model *p = r->run->segments;
  arena *scratch = r->frame->arena; /* each iteration of a loop has a frame of its own, so memory does not
                                       grow with the iterations */
  for (segment *x = r->site->segments; x && !r->out.segment; x = x->next) {
    if (!fits(x, r->frame, scratch)) {
      continue;
    }
    if (x->general) {
      TRY(segment_bind(p, x, r->frame, scratch, &r->out.bound));
    }
    r->out.segment = !x->general || r->out.bound ? x : NULL;
  }
  return NULL;
}

static status make(search *r) {
  segment *x = calloc(1, sizeof *x);
  CHECK_THAT(x, STATUS_RESOURCE, "out of memory");
  status failed = segment_compile(r->run, r->site, r->frame, x, &r->out.bound);
  if (failed) {
    segment_destroy(x);
    return failed;
  }
  x->next = r->site->segments;
  r->out.segment = r->site->segments = x;
  return NULL;
}

static status find_or_make(void *data) {
  search *r = data;
  TRY(find(r));
  TRY(r->out.segment ? NULL : make(r));
  segment *x = r->out.segment;
  x->last_used = ++r->run->segments->clock;
  x->runs++; /* a segment that is running is not freed */
  drop_oldest(r->site);
  r->out.binding = x->program ? rt_executable_binding(x->executable) : NULL;
  if (r->out.bound) {
    r->out.bound->runs++;
    r->out.binding = r->out.bound->binding;
    drop_oldest_bound(x);
  }
  return NULL;
}

status segment_get(interpreter_run *run, interpreter_site *site, onnx_frame *f, segment_use *out) {
  search r = {.run = run, .site = site, .frame = f};
  TRY(segmented_model_locked(run->segments, find_or_make, &r));
  *out = r.out;
  return NULL;
}

void segment_release(segmented_model *p, const segment_use *u) {
  pthread_mutex_lock(&p->lock);
  u->segment->runs--;
  if (u->bound) {
    u->bound->runs--;
  }
  pthread_mutex_unlock(&p->lock);
}
