/* hlo_report.c - counts the instructions of a module; see hlo_report.h. */
#include "hlo/schedule/hlo_report.h"

#include "hlo/analysis/queries.h"

static int64_t bytes_of(const shape *s) { return s->kind == SHAPE_ARRAY && shape_is_static(s) ? shape_bytes(s) : 0; }

static bool is_work(const hlo_instr *i) {
  return i->op != HLO_PARAMETER && i->op != HLO_CONSTANT && i->op != HLO_RESHAPE && i->op != HLO_WHILE &&
         i->op != HLO_CONDITIONAL;
}

static void count_fusion(const hlo_instr *i, hlo_report *r) {
  int64_t kind = hlo_int(i, HLO_ATTR_FUSION);
  r->fusions++;
  r->loop_fusions += kind == HLO_FUSION_LOOP;
  r->input_fusions += kind == HLO_FUSION_INPUT;
  r->output_fusions += kind == HLO_FUSION_OUTPUT;
  for (const hlo_instr *j = hlo_callee(i, 0)->first; j; j = j->next) {
    r->fused += is_work(j);
    r->fused_convolutions += j->op == HLO_CONVOLUTION;
    r->fused_dots += j->op == HLO_DOT;
  }
}

static void count(const hlo_instr *i, hlo_report *r) {
  r->operations++;
  r->convolutions += i->op == HLO_CONVOLUTION;
  r->dots += i->op == HLO_DOT;
  r->lone_elementwise += hlo_info(i)->kind == HLO_ELEMENTWISE;
  r->lone_movement += hlo_info(i)->kind == HLO_MOVEMENT;
  if (i->op == HLO_FUSION) {
    count_fusion(i, r);
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    r->bytes_moved += bytes_of(hlo_shape(i->operands[k]));
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    r->bytes_moved += bytes_of(&i->shapes[k]);
  }
}

hlo_report hlo_report_of(const hlo_module *m) {
  hlo_report r = {0};
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, m->arena, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    for (const hlo_instr *i = walked[k]->first; i; i = i->next) {
      r.instructions++;
      if (is_work(i)) {
        count(i, &r);
      }
    }
  }
  return r;
}
