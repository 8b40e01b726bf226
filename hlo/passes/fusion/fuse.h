/* fuse.h - makes fusions of instructions; shared by the passes that fuse. */
#ifndef HLO_PASSES_FUSE_H
#define HLO_PASSES_FUSE_H

#include "hlo/analysis/queries.h"
#include "hlo/passes/pass.h"

/* The largest numbers of members and of operands of a fusion.  With more, kernels would compile slowly and run out of
 * registers. */
enum { FUSE_MAX_MEMBERS = 64, FUSE_MAX_OPERANDS = 40 };

/* Makes fusions in one computation.  Instructions keep the ids that hlo_fuser_make gave them, and each new fusion gets
 * the next id. */
typedef struct hlo_fuser {
  hlo_computation *c;
  arena *scratch;
  uint32_t *roots;     /* for each instruction id: how many of the computation's roots are results of the instruction */
  uint32_t *fusion_of; /* for each instruction id: the number of the last fusion with a copy of it */
  hlo_value *clone;    /* for each instruction id: its copy in that fusion, if it has one result */
  uint32_t n_ids, n_fusions;
} hlo_fuser;

hlo_fuser hlo_fuser_make(hlo_computation *c, arena *scratch);
/* Numbers the computation anew.  It must not have more instructions than hlo_fuser_make saw. */
void hlo_fuser_renumber(hlo_fuser *f);

/* Moves each broadcast down to its first user, so that its position says when it is needed.  A broadcast with a free
 * user (hlo_is_free) stays.  Returns true if any moved. */
bool hlo_sink_free(hlo_computation *c);

/* Replaces the members, which have one result each and are in list order, by a fusion at the position of the last one.
 * Operands that cost nothing (hlo_is_free) and short lists of constant indices of gathers are copied into it.  Every
 * user of a member that is not a member itself must come after the last member.  The results of the fusion are those of
 * the members that are used outside of it, in order. */
hlo_instr *hlo_fuse(hlo_fuser *f, hlo_fusion_kind kind, uint32_t n, hlo_instr *const *members);

/* Groups the instructions of a computation and makes a fusion of each group.  Kind INPUT is for groups with a
 * reduction, LOOP for groups without one.  Only operations that the target takes in a fusion of that kind (takes_fused)
 * become members.  fuse_cluster.c says how groups are chosen. */
STATUS_MUST_USE status hlo_fuse_groups(hlo_computation *c, pass_context *context, hlo_fusion_kind kind, bool *changed);

#endif
