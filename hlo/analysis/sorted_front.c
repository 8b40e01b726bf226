/* sorted_front.c - how much of a sort's result is used; see sorted_front.h. */
#include "hlo/analysis/sorted_front.h"

/* Returns the least n for which it is known that only the first n elements of v along dimension d are read, or -1 if
 * none is known.  `depth` is how many computations may be looked at: that of v and, inside of it, the bodies of
 * fusions. */
static int64_t front_read(hlo_value v, int64_t d, int depth) {
  int64_t most = hlo_is_root(v) || depth == 0 ? -1 : 0;
  for (uint32_t k = 0; k < v.def->n_uses && most >= 0; k++) {
    const hlo_instr *u = v.def->uses[k].user;
    if (!hlo_value_equal(u->operands[v.def->uses[k].operand], v)) {
      continue; /* this user reads another result of the same instruction */
    }
    int64_t one = -1;
    if (u->op == HLO_SLICE && hlo_ints(u, HLO_ATTR_STRIDES)[d] == 1) {
      one = hlo_ints(u, HLO_ATTR_LIMITS)[d];
    } else if (u->op == HLO_FUSION) {
      one = front_read(hlo_result(hlo_callee(u, 0)->params[v.def->uses[k].operand], 0), d, depth - 1);
    }
    most = one < 0 || one > most ? one : most;
  }
  return most;
}

int64_t hlo_sorted_front(const hlo_instr *sort) {
  int64_t most = 0;
  for (uint32_t r = 0; r < sort->n_results; r++) {
    int64_t one = front_read(hlo_result((hlo_instr *)sort, r), hlo_int(sort, HLO_ATTR_DIMENSION), 2);
    if (one < 0) {
      return INT64_MAX;
    }
    most = one > most ? one : most;
  }
  return most;
}
