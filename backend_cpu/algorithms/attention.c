/* attention.c - see attention.h. */
#include "backend_cpu/algorithms/attention.h"

#include "emit/contraction/attention.h"

bool cpu_attention_plan(arena *a, const hlo_instr *i, const emit_target *t, cpu_plan **out) {
  emit_attention c;
  if (!emit_attention_of_fusion(i, t, &c)) {
    return false;
  }
  cpu_plan *plan = ARENA_NEW(a, cpu_plan);
  plan->kernel = ARENA_NEW(a, cpu_kernel_plan);
  *plan->kernel = (cpu_kernel_plan){.n_phases = emit_attention_phases(&c),
                                    .write = emit_attention_write,
                                    .config = arena_memdup(a, &c, sizeof c),
                                    .config_bytes = sizeof c,
                                    .scratch_bytes = emit_attention_scratch(&c)};
  plan->scratch_bytes = plan->kernel->scratch_bytes;
  *out = plan;
  return true;
}
