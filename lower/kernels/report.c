/* report.c - see report.h. */
#include "lower/kernels/report.h"

void lower_report_module(const hlo_module *m, const hlo_report *before, rt_report *r) {
  hlo_report after = hlo_report_of(m);
  r->hlo_before = before->instructions;
  r->hlo_after = after.instructions;
  r->bytes_moved_before = (uint64_t)before->bytes_moved;
  r->bytes_moved_after = (uint64_t)after.bytes_moved;
  r->fusions = after.fusions;
  r->convolutions = after.convolutions + after.fused_convolutions;
  r->fused_convolutions = after.fused_convolutions;
  r->dots = after.dots + after.fused_dots;
  r->fused_dots = after.fused_dots;
  r->lone_elementwise = after.lone_elementwise;
}

static uint32_t count_thunks(const rt_sequence *s) {
  uint32_t n = s->n;
  for (uint32_t k = 0; k < s->n; k++) {
    for (uint32_t b = 0; b < s->thunks[k].n_bodies; b++) {
      n += count_thunks(&s->thunks[k].bodies[b]);
    }
  }
  return n;
}

status lower_report_texts(lower_kernels *kernels, rt_report *r) {
  TRY(lower_kernels_text(kernels, false, &r->llvm));
  return lower_kernels_text(kernels, true, &r->assembly);
}

void lower_report_program(const rt_program *p, const lower_kernels *kernels, rt_report *r) {
  r->thunks = count_thunks(&p->body);
  r->kernels = lower_kernels_asked(kernels);
  r->kernels_unique = lower_kernels_unique(kernels);
  r->kernels_found = lower_kernels_found(kernels);
  r->new_code = lower_kernels_new_objects(kernels);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    r->constant_bytes += p->constants[k].size;
  }
  for (uint32_t k = 0; k < p->n_code; k++) {
    r->code_bytes += p->code[k].size;
  }
}
