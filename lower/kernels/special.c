/* special.c - see special.h. */
#include "lower/kernels/special.h"

#include <string.h>

#include "emit/blocks/block_nms.h"
#include "emit/blocks/block_sort.h"
#include "hlo/analysis/sorted_front.h"
#include "lower/kernels/thunks.h"

/* Returns the number of the operand that is the iota of positions along the sorted dimension, which need not be read;
 * -1 if there is none. */
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

bool lower_only_positions(const hlo_instr *i) {
  bool only = !hlo_is_root(hlo_result((hlo_instr *)i, 0));
  for (uint32_t k = 0; k < i->n_uses && only; k++) {
    const hlo_instr *u = i->uses[k].user;
    only = u->op == HLO_SORT && (int64_t)i->uses[k].operand == iota_of(u);
  }
  return only;
}

emit_sort lower_sort_config(const hlo_instr *sort, int64_t parts) {
  return (emit_sort){.parts = parts, .front = hlo_sorted_front(sort), .iota = iota_of(sort)};
}

static dim sort_scratch(const hlo_instr *i, int64_t parts) {
  emit_sort config = lower_sort_config(i, parts);
  return parts == LOWER_BLOCKS ? emit_block_sort_scratch(i, &config) : emit_sort_scratch(i, &config);
}

static dim nms_scratch(const hlo_instr *i, int64_t parts) {
  emit_nms config = {.parts = parts};
  return parts == LOWER_BLOCKS ? emit_block_nms_scratch(i) : emit_nms_scratch(i, &config);
}

dim lower_special_scratch(const hlo_instr *i, int64_t parts) {
  switch (i->op) {
    case HLO_SORT: return sort_scratch(i, parts);
    case HLO_NMS: return nms_scratch(i, parts);
    default: return emit_twister_scratch();
  }
}

/* Adds the thunk of one kernel, whose results share no buffer with an operand. */
static status add_kernel(lower_context *c, lower_kernels *kernels, const hlo_instr *i,
                         const lower_kernel_writer *writer) {
  const char *why = "";
  CHECK_THAT(emit_supports_special(i, &why), STATUS_UNSUPPORTED, "no kernel for %s: %s", hlo_info(i)->name, why);
  rt_thunk *t = lower_kernel_thunk(c, kernels, i);
  int32_t *alias = ARENA_NEW_N(lower_arena(c), int32_t, i->n_results);
  memset(alias, 0xff, i->n_results * sizeof *alias);
  for (uint32_t k = t->n_inputs; k < t->n_buffers; k++) {
    t->buffers[k].kept = writer->phase > 0; /* the kernel of the phase before has written into this buffer */
  }
  return lower_kernels_add(kernels, i, alias, writer, NULL, &t->config);
}

static status sort_kernels(lower_context *c, lower_kernels *kernels, const hlo_instr *i, int64_t parts) {
  emit_sort config = lower_sort_config(i, parts);
  bool blocks = parts == LOWER_BLOCKS;
  uint32_t phases = blocks ? emit_block_sort_phases(i, &config) : 1;
  for (uint32_t phase = 0; phase < phases; phase++) {
    lower_kernel_writer w = {.write = blocks ? emit_block_sort_kernel : emit_sort_kernel,
                             .name = "sort",
                             .config = &config,
                             .config_bytes = sizeof config,
                             .phase = phase,
                             .packed = -1};
    TRY(add_kernel(c, kernels, i, &w));
  }
  return NULL;
}

static status nms_kernels(lower_context *c, lower_kernels *kernels, const hlo_instr *i, int64_t parts) {
  emit_nms config = {.parts = parts};
  emit_write_fn *write = parts == LOWER_BLOCKS ? emit_block_nms_kernel : emit_nms_kernel;
  for (uint32_t phase = 0; phase < EMIT_NMS_PHASES; phase++) {
    lower_kernel_writer w = {
        .write = write, .name = "nms", .config = &config, .config_bytes = sizeof config, .phase = phase, .packed = -1};
    TRY(add_kernel(c, kernels, i, &w));
  }
  return NULL;
}

status lower_special_kernels(lower_context *c, lower_kernels *kernels, const hlo_instr *i, int64_t parts) {
  switch (i->op) {
    case HLO_SORT: return sort_kernels(c, kernels, i, parts);
    case HLO_NMS: return nms_kernels(c, kernels, i, parts);
    default:
      return add_kernel(c, kernels, i,
                        &(lower_kernel_writer){.write = emit_twister_kernel, .name = "twister", .packed = -1});
  }
}
