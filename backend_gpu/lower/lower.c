/* lower.c - the thunks of each instruction; see lower.h. */
#include "backend_gpu/lower/lower.h"

#include "emit/kernel/kernel.h"
#include "emit/kernel/special.h"
#include "lower/kernels/special.h"
#include "lower/kernels/thunks.h"
#include "lower/lower.h"

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
  const lowering *l = data;
  gpu_config c;
  if (emit_is_special(i)) {
    return lower_special_scratch(i, LOWER_BLOCKS);
  }
  return *i->config && gpu_find_config(&l->options->configs, i, i->config, &c) ? gpu_config_scratch(&c, i) : 0;
}

/* --- instructions --- */

/* Finds the config of `i`, if it has one, and sets *c to it.  Sets *out to what writes the kernel; out->write is NULL
 * if emit_kernel does.  Sets *counters to the number of counters that the kernel needs. */
static status choose_writer(const lowering *l, const hlo_instr *i, gpu_config *c, lower_kernel_writer *out,
                            dim *counters) {
  *counters = 0;
  *out = (lower_kernel_writer){.packed = -1};
  if (*i->config) {
    CHECK_THAT(gpu_find_config(&l->options->configs, i, i->config, c), STATUS_INVALID_ARGUMENT,
               "%s: there is no config '%s'", hlo_info(i)->name, i->config);
    *out = (lower_kernel_writer){
        .write = c->write, .name = i->config, .config = &c->tile, .config_bytes = c->bytes, .packed = -1};
    *counters = gpu_config_counters(c, i);
  }
  return NULL;
}

static status emit_kernel_thunk(lower_context *c, const lowering *l, const hlo_instr *i) {
  const char *why = "";
  CHECK_THAT(emit_supports(i, &why), STATUS_UNSUPPORTED, "no kernel for %s: %s", hlo_info(i)->name, why);
  gpu_config config;
  lower_kernel_writer writer;
  dim counters;
  TRY(choose_writer(l, i, &config, &writer, &counters));
  lower_bring_base(c, i);
  rt_thunk *t = lower_kernel_thunk(c, l->kernels, i);
  if (counters) {
    lower_add_buffer(c, t, lower_counters_buffer(c, counters));
  }
  return lower_add_kernel(c, l->kernels, t, i, writer.write ? &writer : NULL, NULL);
}

static status emit(lower_context *c, const hlo_instr *i) {
  lowering *l = lower_data(c);
  bool done;
  TRY(lower_without_kernel(c, i, l->options->target, &done));
  if (done) {
    return NULL;
  }
  return emit_is_special(i) ? lower_special_kernels(c, l->kernels, i, LOWER_BLOCKS) : emit_kernel_thunk(c, l, i);
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
