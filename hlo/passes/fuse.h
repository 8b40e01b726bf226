/* fuse.h - makes fusions of instructions; shared by the passes epilogue, reduce_fusion and loop_fusion. */
#ifndef HLO_PASSES_FUSE_H
#define HLO_PASSES_FUSE_H

#include "hlo/analysis/queries.h"
#include "hlo/passes/pass.h"

/* Fusions with more members or operands make kernels that compile slowly and run out of registers. */
enum { FUSE_MAX_MEMBERS = 64, FUSE_MAX_OPERANDS = 40 };

/* Makes fusions in one computation.  Ids stay as hlo_fuser_make numbered them, and a new fusion gets the next one. */
typedef struct hlo_fuser {
  hlo_computation *c;
  arena *scratch;
  uint32_t *roots;     /* by id: how many roots the instruction has */
  uint32_t *fusion_of; /* by id: the number of the fusion to which clone[id] belongs */
  hlo_value *clone;    /* by id: the copy inside of that fusion, for instructions with one result */
  uint32_t n_ids, n_fusions;
} hlo_fuser;

hlo_fuser hlo_fuser_make(hlo_computation *c, arena *scratch);
/* Numbers the computation anew.  It must not have more instructions than hlo_fuser_make saw. */
void hlo_fuser_renumber(hlo_fuser *f);

/* Moves each broadcast down to its first user, so that its position says when it is needed.  Returns true if any moved.
 */
bool hlo_sink_free(hlo_computation *c);

/* Puts members, which have single results and are in list order, into a fusion that takes the place of the last one.
 * Operands that cost nothing (hlo_is_free) and short lists of constants are copied into it.  Every user of a member
 * that is not a member itself must come after the last one.  The results of the fusion are those of the members that
 * are used outside, in order. */
hlo_instr *hlo_fuse(hlo_fuser *f, hlo_fusion_kind kind, uint32_t n, hlo_instr *const *members);

/* Groups the instructions of a computation and makes fusions of the groups.  INPUT: groups with a reduction, of
 * operations that the target takes for that kind.  LOOP: groups without one. fuse_cluster.c says how it decides. */
STATUS_MUST_USE status hlo_fuse_clusters(hlo_computation *c, pass_context *context, hlo_fusion_kind kind,
                                         bool *changed);

#endif
