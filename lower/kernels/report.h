/* report.h - the parts of a compilation's report (rt_report) that are the same for all backends that use
 * lower/kernels/. */
#ifndef LOWER_KERNELS_REPORT_H
#define LOWER_KERNELS_REPORT_H

#include "hlo/schedule/hlo_report.h"
#include "lower/kernels/kernels.h"

/* Reports the module as the passes left it; `before` describes it before the passes. */
void lower_report_module(const hlo_module *m, const hlo_report *before, rt_report *r);
/* Reports the LLVM IR and the assembly of all kernels. */
STATUS_MUST_USE status lower_report_texts(lower_kernels *kernels, rt_report *r);
/* Reports the finished program. */
void lower_report_program(const rt_program *p, const lower_kernels *kernels, rt_report *r);

#endif
