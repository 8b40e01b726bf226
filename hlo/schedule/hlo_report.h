/* hlo_report.h - statistics of a module for people, before and after fusion. */
#ifndef HLO_REPORT_H
#define HLO_REPORT_H

#include "hlo/ir/ir.h"

/* Counts what runs at top level: the entry, and bodies of while and branches of conditional once each.  Parameters,
 * constants and reshapes, which are views, are not counted as operations.  A convolution is clustered if the bias,
 * normalisation, activation and residual that follow it run inside of its own thunk. */
typedef struct hlo_report {
  uint32_t instructions; /* all instructions at top level */
  uint32_t operations;   /* those of them that compute something */
  uint32_t fused;        /* instructions inside of fusions */
  uint32_t clusters;     /* the number of fusions of each kind: */
  uint32_t loop_fusions, input_fusions, output_fusions;
  uint32_t clustered_convolutions, convolutions; /* the number of clustered convolutions, and of all */
  uint32_t clustered_dots, dots;
  uint32_t lone_elementwise; /* elementwise operations outside of fusions */
  uint32_t lone_movement;    /* data movement outside of fusions, without reshapes */
  int64_t bytes_moved;       /* bytes of operands and results of all operations, for static shapes only */
} hlo_report;

/* The module must have passed the verifier.  Temporary lists are on the module's arena. */
hlo_report hlo_report_of(const hlo_module *m);

#endif
