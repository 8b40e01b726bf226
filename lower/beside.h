/* beside.h - independent instructions that run at the same time, each on one thread, where that is faster than one after the
 * other with all threads: small kernels, and loops whose steps are small. */
#ifndef LOWER_BESIDE_H
#define LOWER_BESIDE_H

#include "lower/lower.h"

/* Sets hlo_instr.beside in all computations that run, and moves what runs together to one place of its list.  Scheduled
 * lists in, scheduled lists out. */
void lower_beside(hlo_module *m, const lower_backend *b);

#endif
