/* special.c - see special.h. */
#include "backend_cpu/lower/special.h"

#include "backend_cpu/runtime/kinds.h"
#include "base/nms.h"
#include "lower/kernels/special.h"

/* --- sorts --- */

static status sort_thunk(lower_context *c, const cpu_lower_options *o, const hlo_instr *i) {
  dtype type = (dtype)i->shapes[0].type;
  CHECK_THAT(!dtype_is_complex(type) && dtype_get_info(type)->kind != DTYPE_CLASS_STRING, STATUS_UNSUPPORTED,
             "cannot sort by %s", dtype_name(type));
  rt_thunk *t = lower_thunk(c, "cpu.sort", i);
  emit_sort s = lower_sort_config(i, o->threads);
  rt_writer w = {.arena = lower_arena(c)};
  rt_put_i64(&w, hlo_int(i, HLO_ATTR_DIMENSION));
  rt_put_i64(&w, hlo_int(i, HLO_ATTR_DESCENDING));
  rt_put_i64(&w, s.parts);
  rt_put_i64(&w, s.front);
  rt_put_i64(&w, s.iota);
  t->config = rt_written(&w);
  return NULL;
}

/* --- non-maximum suppression --- */

static status nms_thunk(lower_context *c, const cpu_lower_options *o, const hlo_instr *i) {
  rt_thunk *t = lower_thunk(c, "cpu.nms", i);
  rt_writer w = {.arena = lower_arena(c)};
  rt_put_i64(&w, o->threads);
  t->config = rt_written(&w);
  return NULL;
}

/* --- scratch memory --- */

/* Computes for dims what cpu_parts computes for numbers. */
static dim most_parts(const cpu_lower_options *o, dim_table *t, dim lines) {
  return dim_max(t, 1, dim_min(t, lines, (dim)o->threads));
}

static dim sort_scratch(const cpu_lower_options *o, const hlo_instr *i) {
  dim_table *t = i->parent->module->dims;
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  const shape *s = &i->shapes[0];
  dim lines = dim_mul(t, shape_dim_product(t, s, 0, (int)d), shape_dim_product(t, s, (int)d + 1, s->rank));
  dim each = dim_add_const(t, dim_mul(t, s->dims[d], CPU_SORT_BYTES), CPU_SORT_PART_BYTES);
  return dim_mul(t, each, most_parts(o, t, lines));
}

static dim nms_scratch_bytes(const cpu_lower_options *o, const hlo_instr *i) {
  dim_table *t = i->parent->module->dims;
  const shape *scores = hlo_shape(i->operands[1]);
  dim lines = shape_dim_product(t, scores, 0, 2), boxes = scores->dims[2];
  dim each = dim_add(t, dim_mul(t, boxes, NMS_BOX_BYTES), dim_mul(t, hlo_nms_room(i), NMS_CHOSEN_BYTES));
  dim parts = dim_mul(t, dim_add_const(t, each, NMS_LINE_BYTES), most_parts(o, t, lines));
  return dim_add_const(t, dim_add(t, parts, dim_mul(t, lines, CPU_NMS_LINE_BYTES)), CPU_NMS_BYTES);
}

static dim thunk_scratch(const cpu_lower_options *o, const hlo_instr *i) {
  switch (i->op) {
    case HLO_SORT: return sort_scratch(o, i);
    case HLO_NMS: return nms_scratch_bytes(o, i);
    default: return 0;
  }
}

dim cpu_special_scratch(const cpu_lower_options *o, const hlo_instr *i) {
  return o->own_kernels ? lower_special_scratch(i, o->threads) : thunk_scratch(o, i);
}

static status lower_to_thunk(lower_context *c, const cpu_lower_options *o, const hlo_instr *i) {
  switch (i->op) {
    case HLO_SORT: return sort_thunk(c, o, i);
    case HLO_NMS: return nms_thunk(c, o, i);
    default: (void)lower_thunk(c, "mt19937", i); return NULL;
  }
}

status cpu_lower_special(lower_context *c, const cpu_lower_options *o, lower_kernels *kernels, const hlo_instr *i) {
  return o->own_kernels ? lower_special_kernels(c, kernels, i, o->threads) : lower_to_thunk(c, o, i);
}
