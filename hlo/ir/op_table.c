/* op_table.c - tables of operations and attributes, made from ops.def and attrs.def. */
#include <string.h>

#include "hlo/ir/ir.h"
#include "hlo/ir/shape_rules.h"

/* The names that ops.def uses for numbers and flags. */
enum { ANY = HLO_ANY, COMM = HLO_COMM, DECL = HLO_DECL, EXACT = HLO_EXACT, EFFECT = HLO_EFFECT, RUN = HLO_RUN };

/* Each list ends with HLO_ATTR_COUNT, because C has no empty arrays. */
#define A(id) HLO_ATTR_##id,
#define HLO(id, text, min, max, results, rule, kind, flags, ...) \
  static const hlo_attr_id attrs_##id[] = {__VA_ARGS__ HLO_ATTR_COUNT};
#include "hlo/ir/ops.def"
#undef HLO
#undef A

static const hlo_op_info ops[HLO_OP_COUNT] = {
#define HLO(id, text, min, max, results, rule, kind, flags, ...)                                                      \
  [HLO_##id] = {                                                                                                      \
      text,      min, max, results, hlo_shape_##rule, HLO_##kind, flags, sizeof attrs_##id / sizeof(hlo_attr_id) - 1, \
      attrs_##id},
#include "hlo/ir/ops.def"
#undef HLO
};

static const hlo_attr_info attr_infos[HLO_ATTR_COUNT] = {
#define ATTR(id, text, kind) [HLO_ATTR_##id] = {#text, HLO_KIND_##kind},
#include "hlo/ir/attrs.def"
#undef ATTR
};

const hlo_op_info *hlo_op_get_info(hlo_op op) { return &ops[op]; }

const hlo_attr_info *hlo_attr_get_info(hlo_attr_id id) { return &attr_infos[id]; }

hlo_op hlo_op_from_name(const char *name, size_t length) {
  for (int op = 0; op < HLO_OP_COUNT; op++) {
    if (strlen(ops[op].name) == length && memcmp(ops[op].name, name, length) == 0) {
      return (hlo_op)op;
    }
  }
  return HLO_OP_COUNT;
}

static const char *const reducers[] = {"add", "multiply", "maximum", "minimum", "and", "or", "xor", "replace"};
static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
static const char *const roundings[] = {"nearest", "up", "down"};
static const char *const layouts[] = {"channels-first", "channels-last"};
static const char *const algorithms[] = {"philox", "mt19937"};
static const char *const fusions[] = {"loop", "input", "output", "attention"};

#define TEXTS(list) \
  { (list), sizeof(list) / sizeof *(list) }
static const struct {
  const char *const *texts;
  int64_t n;
} enums[] = {
    [HLO_KIND_REDUCER] = TEXTS(reducers),     [HLO_KIND_COMPARISON] = TEXTS(comparisons),
    [HLO_KIND_ROUNDING] = TEXTS(roundings),   [HLO_KIND_LAYOUT] = TEXTS(layouts),
    [HLO_KIND_ALGORITHM] = TEXTS(algorithms), [HLO_KIND_FUSION] = TEXTS(fusions),
};

const char *hlo_enum_name(hlo_attr_kind kind, int64_t v) {
  if ((size_t)kind >= sizeof enums / sizeof *enums || v < 0 || v >= enums[kind].n) {
    return NULL;
  }
  return enums[kind].texts[v];
}

hlo_op hlo_reducer_op(hlo_reducer r) {
  static const hlo_op combining[] = {
      [HLO_REDUCE_ADD] = HLO_ADD, [HLO_REDUCE_MUL] = HLO_MUL, [HLO_REDUCE_MAX] = HLO_MAX, [HLO_REDUCE_MIN] = HLO_MIN,
      [HLO_REDUCE_AND] = HLO_AND, [HLO_REDUCE_OR] = HLO_OR,   [HLO_REDUCE_XOR] = HLO_XOR};
  return combining[r];
}
