/* team.h - lets a team of threads compute each step of the grid: the threads of a warp or of a block share the
 * reductions of the step (emit_team, emit/element/reduction_loop.h). */
#ifndef EMIT_KERNEL_TEAM_H
#define EMIT_KERNEL_TEAM_H

#include "emit/kernel/writer.h"

/* For a kernel whose steps each reduce n elements: makes a warp or a block compute each step if n is large enough for
 * that, sets w->e.team and w->stores, and returns true.  Which team is chosen depends on n only.  Otherwise, and for
 * ranges, returns false, and one thread computes each step. */
bool emit_row_team(emit_writer *w, dim n);
/* Clears w->e.team and w->stores.  Must be called after the steps are written. */
void emit_team_end(emit_writer *w);

#endif
