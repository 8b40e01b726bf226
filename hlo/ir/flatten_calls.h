/* flatten_calls.h - gives each body of control flow a single caller (FlattenCallGraph in XLA).
 *
 * Buffers belong to one run of a body, and decisions about an instruction (its algorithm, its place in memory) are kept
 * in the instruction.  So a computation that several loops or branches call is copied before anything is decided. */
#ifndef HLO_IR_FLATTEN_CALLS_H
#define HLO_IR_FLATTEN_CALLS_H

#include "hlo/ir/ir.h"

/* Copies each computation that instructions of kind control call more than once, so that each call has its own.  The
 * bodies of fusions stay shared.  Running this function a second time changes nothing. */
void hlo_flatten_calls(hlo_module *m);

#endif
