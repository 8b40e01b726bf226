/* attention.c - see attention.h. */
#include "backend_cpu/algorithms/attention.h"

#include "emit/contraction/attention.h"
#include "emit/contraction/flash_attention.h"

bool cpu_takes_attention(const hlo_attention *a, const emit_target *t) {
  emit_attention c;
  emit_flash_attention any_size;
  return emit_attention_of(a, t, &c) || emit_flash_attention_of(a, t, &any_size);
}

static cpu_kernel_plan plan_of(arena *a, const hlo_attention *attention, const emit_target *t) {
  emit_attention c;
  if (!emit_attention_of(attention, t, &c)) {
    return (cpu_kernel_plan){.n_phases = 1, .write = emit_flash_attention_write};
  }
  return (cpu_kernel_plan){.n_phases = emit_attention_phases(&c),
                           .write = emit_attention_write,
                           .config = arena_memdup(a, &c, sizeof c),
                           .config_bytes = sizeof c,
                           .scratch_bytes = emit_attention_scratch(&c)};
}

bool cpu_attention_plan(arena *a, const hlo_instr *i, const emit_target *t, cpu_plan **out) {
  hlo_attention attention;
  if (!hlo_attention_of_fusion(i, &attention) || !cpu_takes_attention(&attention, t)) {
    return false;
  }
  cpu_plan *plan = ARENA_NEW(a, cpu_plan);
  plan->kernel = ARENA_NEW(a, cpu_kernel_plan);
  *plan->kernel = plan_of(a, &attention, t);
  plan->scratch_bytes = plan->kernel->scratch_bytes;
  *out = plan;
  return true;
}
