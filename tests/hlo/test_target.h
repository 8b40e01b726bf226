/* test_target.h - a target for tests of passes, which compiles nothing.
 * It takes only a part of what passes offer to a target, so that both answers are tested: composites whose names begin
 * with "kernel", elementwise epilogues, fusions of elementwise operations, movement and reductions, and products of
 * bytes. */
#ifndef TESTS_HLO_TEST_TARGET_H
#define TESTS_HLO_TEST_TARGET_H

#include <string.h>

#include "hlo/passes/pass.h"

static bool takes_composite(void *data, const hlo_instr *composite) {
  return strncmp(hlo_attr_of(composite, HLO_ATTR_NAME)->s, "kernel", 6) == 0;
}

static bool takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  return hlo_info(consumer)->kind == HLO_ELEMENTWISE;
}

static bool takes_activation(void *data, const hlo_instr *contraction, const hlo_instr *x, const hlo_activation *a) {
  return true;
}

static bool takes_fused(void *data, hlo_fusion_kind kind, const hlo_instr *i) {
  hlo_kind k = hlo_info(i)->kind;
  return k == HLO_ELEMENTWISE || k == HLO_MOVEMENT || (kind == HLO_FUSION_INPUT && i->op == HLO_REDUCE);
}

static bool takes_narrow_operands(void *data, const hlo_instr *contraction, dtype lhs) { return true; }

static bool takes_quantized_weights(void *data, const hlo_instr *dot) { return true; }
static bool takes_attention(void *data, const hlo_attention *a) { return true; }

static bool takes_in_place_update(void *data, const hlo_instr *i) {
  bool output = i->op == HLO_FUSION && hlo_int(i, HLO_ATTR_FUSION) == HLO_FUSION_OUTPUT;
  return output || hlo_info(i)->kind == HLO_CONTRACTION;
}

static const hlo_target test_target = {.name = "test",
                                       .takes_composite = takes_composite,
                                       .takes_epilogue = takes_epilogue,
                                       .takes_activation = takes_activation,
                                       .takes_fused = takes_fused,
                                       .takes_narrow_operands = takes_narrow_operands,
                                       .takes_quantized_weights = takes_quantized_weights,
                                       .takes_attention = takes_attention,
                                       .takes_in_place_update = takes_in_place_update,
                                       .channels_last = true,
                                       .merges_dots = true,
                                       .merges_moves = true,
                                       .lookup_tables = true,
                                       .sums_in_f32 = true,
                                       .canonical_dots = true};

#endif
