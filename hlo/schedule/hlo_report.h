/* hlo_report.h - statistics of a module for people to read, before and after fusion. */
#ifndef HLO_REPORT_H
#define HLO_REPORT_H

#include "hlo/ir/ir.h"

/* Counts of the instructions of the entry, and of the conditions and bodies of while and the branches of conditional,
 * each once.  Parameters, constants, control flow and reshapes, which are views, do not count as operations.  A
 * convolution or dot is fused if it is inside of a fusion. */
typedef struct hlo_report {
  uint32_t instructions; /* all instructions outside of fusions */
  uint32_t operations;   /* the instructions outside of fusions that compute something */
  uint32_t fused;        /* operations inside of fusions */
  uint32_t fusions;      /* the number of all fusions; the next members count those of three kinds */
  uint32_t loop_fusions, input_fusions, output_fusions;
  uint32_t fused_convolutions, convolutions; /* the number of fused convolutions, and of others */
  uint32_t fused_dots, dots;
  uint32_t lone_elementwise; /* elementwise operations outside of fusions */
  uint32_t lone_movement;    /* data movement outside of fusions, without reshapes */
  int64_t bytes_moved;       /* bytes of the operands and results of all operations outside of fusions, for static
                                shapes only */
} hlo_report;

/* The module must have passed the verifier.  Temporary lists are on the module's arena. */
hlo_report hlo_report_of(const hlo_module *m);

#endif
