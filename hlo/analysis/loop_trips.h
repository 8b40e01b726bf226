/* loop_trips.h - finds loops that count: how often they run is known before they start. */
#ifndef HLO_ANALYSIS_LOOP_TRIPS_H
#define HLO_ANALYSIS_LOOP_TRIPS_H

#include "hlo/ir/ir.h"

/* Returns true if it is known before the run how often the body of `loop`, a while, runs, and sets *trips to that
 * number, which may be symbolic.  For this the condition must be counter < bound and have no effects, the body must add
 * 1 to the counter, and both the bound and the first value of the counter must be constants or sizes.  Such a loop can
 * run without computing its condition. */
bool hlo_loop_trips(const hlo_instr *loop, dim *trips);

#endif
