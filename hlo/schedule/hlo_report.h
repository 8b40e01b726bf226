/* hlo_report.h - what a module costs, in numbers: for people, before and after fusion. */
#ifndef HLO_REPORT_H
#define HLO_REPORT_H

#include "hlo/ir/ir.h"

/* Of what runs at top level: the entry, and bodies of while and branches of conditional, once each.
 * Parameters, constants and reshapes, which are views, do not count as operations.  Clustered means: the
 * bias, normalisation, activation and residual that follow a contraction run inside of its own thunk. */
typedef struct hlo_report {
  uint32_t instructions; /* all at top level */
  uint32_t operations;   /* those of them that compute */
  uint32_t fused;        /* instructions inside of fusions */
  uint32_t clusters;     /* fusions, by kind: */
  uint32_t loop_fusions, input_fusions, output_fusions;
  uint32_t clustered_convolutions, convolutions; /* convolutions: those that are not clustered */
  uint32_t clustered_dots, dots;
  uint32_t lone_elementwise; /* elementwise operations that no cluster took */
  uint32_t lone_movement;    /* data movement likewise; reshapes not */
  int64_t bytes_moved;       /* operands and results of each operation; static shapes only */
} hlo_report;

/* The module must have passed the verifier.  Uses the module's arena for a moment's lists. */
hlo_report hlo_report_of(const hlo_module *m);

#endif
