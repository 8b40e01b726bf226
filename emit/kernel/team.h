/* team.h - lets a team of threads compute each step of the grid: the threads of a warp or of a block share the
 * reductions of the step (emit_team, emit/element/reduction_loop.h). */
#ifndef EMIT_KERNEL_TEAM_H
#define EMIT_KERNEL_TEAM_H

#include "emit/kernel/writer.h"

/* For a kernel whose steps each reduce n elements: makes a warp or a block compute a step if that is worth it, and sets
 * w->e.team and w->stores.  The team depends on n only.  Otherwise, and for ranges, returns false, and a thread
 * computes a step. */
bool emit_row_team(emit_writer *w, dim n);
/* Ends the team that emit_row_team has set.  To be called when the steps are written. */
void emit_team_end(emit_writer *w);

#endif
