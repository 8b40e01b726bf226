/* loop_trips.h - finds loops that count: how often they run is known before they start. */
#ifndef HLO_ANALYSIS_LOOP_TRIPS_H
#define HLO_ANALYSIS_LOOP_TRIPS_H

#include "hlo/ir/ir.h"

/* Returns true if the body of a while certainly runs a number of times that depends on constants and sizes
 * only: if the condition is counter < bound, where the body adds 1 to the counter.  Sets *trips to that
 * number, which may be symbolic.  A loop with this number of iterations can run without computing its
 * condition. */
bool hlo_loop_trips(const hlo_instr *loop, dim *trips);

#endif
