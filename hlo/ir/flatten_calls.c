/* flatten_calls.c - copies computations that have several callers; see flatten_calls.h. */
#include "hlo/ir/flatten_calls.h"

static void flatten(hlo_module *m, hlo_computation *c, str_map *seen) {
  for (hlo_instr *i = c->first; i; i = i->next) {
    if (!hlo_is_control(i)) {
      continue;
    }
    hlo_attr *callees = hlo_attr_of(i, HLO_ATTR_COMPUTATIONS);
    callees->comps = arena_memdup(m->arena, callees->comps, callees->n_comps * sizeof *callees->comps);
    for (uint32_t k = 0; k < callees->n_comps; k++) {
      void **mark = str_map_put(seen, callees->comps[k]->name);
      if (*mark) {
        callees->comps[k] = hlo_computation_clone(m, callees->comps[k]);
        mark = str_map_put(seen, callees->comps[k]->name);
      }
      *mark = callees->comps[k];
      flatten(m, callees->comps[k], seen);
    }
  }
}

void hlo_flatten_calls(hlo_module *m) {
  str_map seen;
  str_map_init(&seen, m->arena);
  flatten(m, m->entry, &seen);
}
