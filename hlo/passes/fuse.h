/* fuse.h - how clusters of instructions become fusions; shared by the passes epilogue, reduce_fusion and
 * loop_fusion. */
#ifndef HLO_PASSES_FUSE_H
#define HLO_PASSES_FUSE_H

#include "hlo/analysis/queries.h"
#include "hlo/passes/pass.h"

/* More members or operands make kernels that compile slowly and run out of registers. */
enum { FUSE_MAX_MEMBERS = 64, FUSE_MAX_OPERANDS = 40 };

/* Makes fusions in one computation.  Ids stay as hlo_fuser_make numbered them; a new fusion gets the next
 * one. */
typedef struct hlo_fuser {
  hlo_computation *c;
  arena *scratch;
  uint32_t *roots;     /* by id: how many roots an instruction has */
  uint32_t *fusion_of; /* by id: the number of the fusion that clone[id] belongs to */
  hlo_value *clone;    /* by id: the copy inside of that fusion (of instructions with one result) */
  uint32_t n_ids, n_fusions;
} hlo_fuser;

hlo_fuser hlo_fuser_make(hlo_computation *c, arena *scratch);
/* Numbers the computation anew, which has no more instructions than hlo_fuser_make saw. */
void hlo_fuser_renumber(hlo_fuser *f);

/* Moves each broadcast down to its first user, so that positions say when something is really wanted.  True
 * if any moved. */
bool hlo_sink_free(hlo_computation *c);

/* Puts members (single results, in list order) into a fusion, which takes the place of the last one; free
 * operands are copied into it, and short constant lists of what is taken.  Every user of a member that is no member
 * must stand behind the last one. Results are the members' that are used outside, in order. */
hlo_instr *hlo_fuse(hlo_fuser *f, hlo_fusion_kind kind, uint32_t n, hlo_instr *const *members);

/* Clusters a computation and makes its fusions.  INPUT: those with a reduction, of what the target takes for
 * that kind; LOOP: those without.  How it decides stands in fuse_cluster.c. */
STATUS_MUST_USE status hlo_fuse_clusters(hlo_computation *c, pass_context *context, hlo_fusion_kind kind,
                                         bool *changed);

#endif
