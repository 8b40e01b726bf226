/* lookup_tables.c - a chain of elementwise operations from one array of bytes to bytes becomes a lookup table:
 * dequantise, an activation and quantise become gather(table, q).
 *
 * Requires: a target that sets lookup_tables; runs after layout, since transposes do not sink through a gather.
 * Keeps: results, which the context's evaluator computes.  Breaks: nothing; leaves dead instructions for dce.  Without
 * an evaluator it does nothing. */
#include <string.h>

#include "hlo/analysis/queries.h"
#include "hlo/passes/rewrite.h"

enum { BYTES = 256, MOST_MEMBERS = 48, MOST_OPERANDS = 3, MOST_VISITS = 400, DEEPEST = 40, LEAST_ELEMENTS = 4096 };

/* A chain that is being read: the instructions between the bytes and the result, operands first. */
typedef struct chain {
  hlo_builder *b;
  const shape *shape; /* the shape of the result and of the bytes */
  hlo_value bytes;
  uint32_t visits, n;
  hlo_value members[MOST_MEMBERS], known[MOST_MEMBERS]; /* known[k] is the value of members[k] for all 256 bytes */
  double work;
} chain;

static bool is_byte(hlo_value v) { return hlo_type(v) == DTYPE_U8 || hlo_type(v) == DTYPE_S8; }

static bool is_lookup(hlo_value v) { return v.def->op == HLO_GATHER && hlo_is_lookup(v.def); }

static bool is_step(const chain *c, hlo_value v) {
  return shape_same_dims(hlo_shape(v), c->shape) && v.def->n_results == 1 &&
         (hlo_info(v.def)->kind == HLO_ELEMENTWISE || is_lookup(v));
}

/* --- the bytes at which the chain begins --- */

typedef enum leaves { NO_LEAF, ONE_LEAF, MORE_LEAVES } leaves;

/* If v is computed from only one array besides constants, and that is an array of bytes, sets *bytes to it and returns
 * ONE_LEAF.  An array of bytes that is itself computed from several arrays counts as one array.  Returns NO_LEAF if v
 * is computed from constants only, otherwise MORE_LEAVES. */
static leaves find_bytes(chain *c, hlo_value v, int depth, hlo_value *bytes) {
  literal number;
  leaves found = MORE_LEAVES;
  if (hlo_splat_of(v, &number)) {
    return NO_LEAF;
  }
  if (depth < DEEPEST && ++c->visits < MOST_VISITS && is_step(c, v)) {
    found = NO_LEAF;
    for (uint32_t k = is_lookup(v); k < v.def->n_operands && found != MORE_LEAVES; k++) {
      hlo_value other = {0};
      leaves one = find_bytes(c, v.def->operands[k], depth + 1, &other);
      bool same = one != ONE_LEAF || found == NO_LEAF || hlo_value_equal(other, *bytes);
      *bytes = one == ONE_LEAF ? other : *bytes;
      found = !same || one == MORE_LEAVES ? MORE_LEAVES : one == ONE_LEAF ? ONE_LEAF : found;
    }
  }
  if (found == MORE_LEAVES && is_byte(v) && shape_same_dims(hlo_shape(v), c->shape)) {
    *bytes = v;
    return ONE_LEAF;
  }
  return found;
}

/* --- the members of the chain --- */

static int64_t member(const chain *c, hlo_value v) {
  for (uint32_t k = 0; k < c->n; k++) {
    if (hlo_value_equal(c->members[k], v)) {
      return k;
    }
  }
  return -1;
}

static bool collect(chain *c, hlo_value v) {
  const double dear = 6; /* the cost of an expensive operation in relation to a cheap one */
  literal number;
  if (hlo_value_equal(v, c->bytes) || hlo_splat_of(v, &number) || member(c, v) >= 0) {
    return true;
  }
  for (uint32_t k = is_lookup(v); k < v.def->n_operands; k++) {
    if (!collect(c, v.def->operands[k])) {
      return false;
    }
  }
  if (c->n == MOST_MEMBERS) {
    return false;
  }
  c->work += hlo_is_cheap(v.def) ? 1 : dear;
  c->members[c->n++] = v;
  return true;
}

/* --- the table --- */

static hlo_value all_bytes(const chain *c) {
  const int64_t n = BYTES;
  void *data;
  literal l = literal_new(hlo_arena(c->b), shape_make(hlo_type(c->bytes), 1, &n), &data);
  for (int k = 0; k < BYTES; k++) {
    ((uint8_t *)data)[k] = (uint8_t)k;
  }
  return hlo_constant(c->b, l);
}

/* Returns an array of 256 elements that all are `number`.  It is made as a constant, since the reference evaluator does
 * not fold a broadcast of more than 256 bytes. */
static hlo_value filled(const chain *c, const literal *number) {
  const int64_t n = BYTES;
  size_t bytes = dtype_bytes((dtype)number->shape.type);
  void *data;
  literal l = literal_new(hlo_arena(c->b), shape_make((dtype)number->shape.type, 1, &n), &data);
  for (size_t k = 0; k < BYTES; k++) {
    memcpy((char *)data + k * bytes, number->data, bytes);
  }
  return hlo_constant(c->b, l);
}

static hlo_value operand_of(const chain *c, hlo_value v, hlo_value bytes) {
  literal number;
  int64_t at = member(c, v);
  if (at >= 0) {
    return c->known[at];
  }
  if (hlo_value_equal(v, c->bytes)) {
    return bytes;
  }
  return hlo_splat_of(v, &number) && hlo_rank(v) ? filled(c, &number) : v;
}

/* Returns the chain's result for each of the 256 bytes as a constant, or no value if the evaluator cannot compute it.
 */
static hlo_value table_of(chain *c) {
  const int64_t n = BYTES;
  hlo_value bytes = all_bytes(c), operands[MOST_OPERANDS];
  for (uint32_t k = 0; k < c->n; k++) {
    const hlo_instr *i = c->members[k].def;
    if (i->n_operands > MOST_OPERANDS) {
      return (hlo_value){0};
    }
    for (uint32_t j = 0; j < i->n_operands; j++) {
      operands[j] = is_lookup(c->members[k]) && j == 0 ? i->operands[0] : operand_of(c, i->operands[j], bytes);
    }
    shape declared = shape_make((dtype)i->shapes[0].type, 1, &n);
    if (i->op == HLO_GATHER) {
      c->known[k] = hlo_take(c->b, operands[0], operands[1], 0);
      continue;
    }
    hlo_instr *made = hlo_build(c->b, i->op, i->n_operands, operands, 1, &declared, i->attrs);
    c->known[k] = made ? hlo_result(made, 0) : (hlo_value){0};
  }
  hlo_value table = c->known[c->n - 1];
  return table.def && hlo_literal(table) ? table : (hlo_value){0};
}

/* --- the rewrite rule --- */

static hlo_value looked_up(hlo_builder *b, hlo_instr *i) {
  const double least = 10;
  hlo_value v = hlo_result(i, 0);
  chain c = {.b = b, .shape = &i->shapes[0]};
  if (!is_byte(v) || !dtype_is_float(hlo_type(i->operands[0])) || !shape_is_static(c.shape) ||
      shape_elements(c.shape) < LEAST_ELEMENTS || find_bytes(&c, v, 0, &c.bytes) != ONE_LEAF ||
      hlo_value_equal(c.bytes, v) || !collect(&c, v) || c.work < least) {
    return (hlo_value){0};
  }
  hlo_value table = table_of(&c);
  if (!table.def) {
    return table;
  }
  hlo_value bytes = hlo_type(c.bytes) == DTYPE_U8 ? c.bytes : hlo_bitcast(b, c.bytes, DTYPE_U8);
  return hlo_take(b, table, hlo_convert(b, bytes, DTYPE_S32), 0);
}

static bool activation_of_bytes(hlo_builder *b, hlo_instr *i) {
  return hlo_becomes_noted(b, i, looked_up(b, i), "tables");
}

status pass_lookup_tables(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_CONVERT, activation_of_bytes}, {HLO_OP_COUNT, NULL}};
  return c->eval && c->target && c->target->lookup_tables ? hlo_sweep_module(m, c, rules, changed) : NULL;
}
