/* lower.c - the thunks of each instruction; see lower.h. */
#include "backend_gpu/lower/lower.h"

#include "emit/blocks/block_attention.h"
#include "emit/blocks/tiled_product.h"
#include "emit/kernel/kernel.h"
#include "emit/kernel/special.h"
#include "lower/kernels/special.h"
#include "lower/kernels/thunks.h"
#include "lower/lower.h"

/* Sorts and non-maximum suppressions divide their lines among at most this many threads, each with scratch memory of
 * its own. */
enum { MOST_PARTS = 1024 };

typedef struct lowering {
  lower_kernels *kernels;
  const gpu_lower_options *options;
} lowering;

/* --- the rules for buffers --- */

static hlo_access access_of(void *data, const hlo_instr *i) {
  (void)data;
  bool any_order = emit_is_special(i) || i->op == HLO_COPY || lower_is_concat_of_many(i);
  return any_order ? HLO_READS_WHILE_WRITING : HLO_READS_ROW_FIRST;
}

static bool may_share(void *data, const hlo_instr *i, uint32_t operand, uint32_t result) {
  return access_of(data, i) != HLO_READS_WHILE_WRITING && emit_can_alias(i, operand, result);
}

static dim scratch(void *data, const hlo_instr *i) {
  (void)data;
  return emit_is_special(i) ? lower_special_scratch(i, MOST_PARTS) : 0;
}

/* --- instructions --- */

/* How a kernel is written that emit_kernel does not write: its config. */
typedef union kernel_config {
  emit_tile tile;
  emit_block_attention attention;
} kernel_config;

/* Chooses how the kernel of `i` is written; returns false if emit_kernel writes it. */
static bool choose_writer(const hlo_instr *i, kernel_config *c, lower_kernel_writer *out) {
  hlo_attention a;
  if (hlo_attention_of_fusion(i, &a) && emit_choose_block_attention(&a, &c->attention)) {
    *out = (lower_kernel_writer){emit_block_attention_kernel, "attention", &c->attention, sizeof c->attention, 0, -1};
    return true;
  }
  *out = (lower_kernel_writer){emit_tiled_product_kernel, "tiles", &c->tile, sizeof c->tile, 0, -1};
  return emit_takes_tiles(i) && emit_choose_tile(i, &c->tile);
}

static status emit_kernel_thunk(lower_context *c, lower_kernels *kernels, const hlo_instr *i) {
  const char *why = "";
  CHECK_THAT(emit_supports(i, &why), STATUS_UNSUPPORTED, "no kernel for %s: %s", hlo_info(i)->name, why);
  kernel_config config;
  lower_kernel_writer writer;
  bool special = choose_writer(i, &config, &writer);
  lower_bring_base(c, i);
  rt_thunk *t = lower_kernel_thunk(c, kernels, i);
  return lower_add_kernel(c, kernels, t, i, special ? &writer : NULL, NULL);
}

static status emit(lower_context *c, const hlo_instr *i) {
  lowering *l = lower_data(c);
  bool done;
  TRY(lower_without_kernel(c, i, l->options->target, &done));
  if (done) {
    return NULL;
  }
  return emit_is_special(i) ? lower_special_kernels(c, l->kernels, i, MOST_PARTS) : emit_kernel_thunk(c, l->kernels, i);
}

static void later(void *data, double nanoseconds, status (*run)(void *data), void *run_data) {
  lower_jobs_add(((lowering *)data)->options->jobs, nanoseconds, run, run_data);
}

status gpu_lower(hlo_module *m, lower_kernels *kernels, const gpu_lower_options *options, arena *a, size_table *sizes,
                 rt_program **out, rt_report *report) {
  lowering *l = ARENA_NEW(a, lowering); /* on the arena, since jobs use it after this function has returned */
  *l = (lowering){.kernels = kernels, .options = options};
  lower_backend backend = {.target = options->target,
                           .takes_symbols = true,
                           .emit = emit,
                           .may_share = may_share,
                           .access = access_of,
                           .is_view = lower_is_view,
                           .scratch = scratch,
                           .later = later,
                           .out_of_place = options->out_of_place,
                           .origins = options->origins,
                           .keep_text = options->keep_text,
                           .sharing = options->sharing,
                           .data = l};
  return lower_program(m, &backend, a, sizes, out, report);
}
