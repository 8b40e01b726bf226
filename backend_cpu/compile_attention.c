#include "backend_cpu/compile_attention.h"

#include "emit/attention.h"

bool cpu_attention_way(arena *a, const hlo_instr *i, const emit_target *t, cpu_way **out) {
  emit_attention c;
  if (!emit_attention_of_fusion(i, t, &c)) {
    return false;
  }
  cpu_way *way = ARENA_NEW(a, cpu_way);
  way->own = ARENA_NEW(a, cpu_own);
  *way->own = (cpu_own){.n_phases = emit_attention_phases(&c), .write = emit_attention_write,
                        .config = arena_memdup(a, &c, sizeof c), .config_bytes = sizeof c,
                        .scratch_bytes = emit_attention_scratch(&c)};
  way->scratch_bytes = way->own->scratch_bytes;
  *out = way;
  return true;
}
