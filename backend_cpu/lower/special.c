/* special.c - see special.h. */
#include "backend_cpu/lower/special.h"

#include <string.h>

#include "backend_cpu/runtime/kinds.h"
#include "base/nms.h"
#include "emit/kernel/special.h"
#include "hlo/analysis/sorted_front.h"
#include "lower/kernels/thunks.h"

/* --- sorts --- */

/* Returns the operand that is the iota of positions along the sorted dimension, which need not be read; -1 if there is
 * none. */
static int64_t iota_of(const hlo_instr *sort) {
  for (uint32_t k = 1; k < sort->n_operands; k++) {
    const hlo_instr *x = sort->operands[k].def;
    if (x->op == HLO_IOTA && x->shapes[0].type == DTYPE_S64 &&
        hlo_int(x, HLO_ATTR_DIMENSION) == hlo_int(sort, HLO_ATTR_DIMENSION)) {
      return k;
    }
  }
  return -1;
}

bool cpu_only_positions(const hlo_instr *i) {
  bool only = !hlo_is_root(hlo_result((hlo_instr *)i, 0));
  for (uint32_t k = 0; k < i->n_uses && only; k++) {
    const hlo_instr *u = i->uses[k].user;
    only = u->op == HLO_SORT && (int64_t)i->uses[k].operand == iota_of(u);
  }
  return only;
}

static emit_sort sort_config(const cpu_lower_options *o, const hlo_instr *i) {
  return (emit_sort){.parts = o->threads, .front = hlo_sorted_front(i), .iota = iota_of(i)};
}

static status sort_thunk(lower_context *c, const cpu_lower_options *o, const hlo_instr *i) {
  dtype type = (dtype)i->shapes[0].type;
  CHECK_THAT(!dtype_is_complex(type) && dtype_get_info(type)->kind != DTYPE_CLASS_STRING, STATUS_UNSUPPORTED,
             "cannot sort by %s", dtype_name(type));
  rt_thunk *t = lower_thunk(c, "cpu.sort", i);
  emit_sort s = sort_config(o, i);
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

/* Returns a dim as cpu_parts does a number. */
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

static emit_nms nms_config(const cpu_lower_options *o) { return (emit_nms){.parts = o->threads}; }

static dim kernel_scratch(const cpu_lower_options *o, const hlo_instr *i) {
  if (i->op == HLO_NMS) {
    emit_nms config = nms_config(o);
    return emit_nms_scratch(i, &config);
  }
  emit_sort config = sort_config(o, i);
  return emit_sort_scratch(i, &config);
}

static dim thunk_scratch(const cpu_lower_options *o, const hlo_instr *i) {
  return i->op == HLO_NMS ? nms_scratch_bytes(o, i) : sort_scratch(o, i);
}

dim cpu_special_scratch(const cpu_lower_options *o, const hlo_instr *i) {
  if (i->op == HLO_RNG) {
    return 0;
  }
  return o->own_kernels ? kernel_scratch(o, i) : thunk_scratch(o, i);
}

/* --- kernels in place of the thunks --- */

/* Adds the thunk of one kernel, whose results share no buffer with an operand. */
static status add_kernel(lower_context *c, lower_kernels *kernels, const hlo_instr *i,
                         const lower_kernel_writer *writer) {
  const char *why = "";
  CHECK_THAT(emit_supports_special(i, &why), STATUS_UNSUPPORTED, "no kernel for %s: %s", hlo_info(i)->name, why);
  rt_thunk *t = lower_kernel_thunk(c, kernels, i);
  int32_t *alias = ARENA_NEW_N(lower_arena(c), int32_t, i->n_results);
  memset(alias, 0xff, i->n_results * sizeof *alias);
  for (uint32_t k = t->n_inputs; k < t->n_buffers; k++) {
    t->buffers[k].kept = writer->phase > 0; /* the earlier kernel wrote into this buffer */
  }
  return lower_kernels_add(kernels, i, alias, writer, NULL, &t->config);
}

static status sort_kernel(lower_context *c, const cpu_lower_options *o, lower_kernels *kernels, const hlo_instr *i) {
  emit_sort config = sort_config(o, i);
  lower_kernel_writer w = {emit_sort_kernel, "sort", &config, sizeof config, 0, -1};
  return add_kernel(c, kernels, i, &w);
}

static status nms_kernels(lower_context *c, const cpu_lower_options *o, lower_kernels *kernels, const hlo_instr *i) {
  emit_nms config = nms_config(o);
  for (uint32_t phase = 0; phase < EMIT_NMS_PHASES; phase++) {
    lower_kernel_writer w = {emit_nms_kernel, "nms", &config, sizeof config, phase, -1};
    TRY(add_kernel(c, kernels, i, &w));
  }
  return NULL;
}

static status lower_to_kernels(lower_context *c, const cpu_lower_options *o, lower_kernels *kernels,
                               const hlo_instr *i) {
  switch (i->op) {
    case HLO_SORT: return sort_kernel(c, o, kernels, i);
    case HLO_NMS: return nms_kernels(c, o, kernels, i);
    default:
      return add_kernel(c, kernels, i,
                        &(lower_kernel_writer){.write = emit_twister_kernel, .name = "twister", .packed = -1});
  }
}

static status lower_to_thunk(lower_context *c, const cpu_lower_options *o, const hlo_instr *i) {
  switch (i->op) {
    case HLO_SORT: return sort_thunk(c, o, i);
    case HLO_NMS: return nms_thunk(c, o, i);
    default: (void)lower_thunk(c, "mt19937", i); return NULL;
  }
}

status cpu_lower_special(lower_context *c, const cpu_lower_options *o, lower_kernels *kernels, const hlo_instr *i) {
  return o->own_kernels ? lower_to_kernels(c, o, kernels, i) : lower_to_thunk(c, o, i);
}
