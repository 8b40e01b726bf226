/* attention.c - see attention.h. */
#include "backend_gpu/algorithms/attention.h"

#include <stdio.h>
#include <string.h>

#include "emit/blocks/sum_parts.h"

bool gpu_is_attention_config(const gpu_config *c) { return c->write == emit_block_attention_kernel; }

dim gpu_attention_scratch(const gpu_config *c, const hlo_instr *i) {
  hlo_attention a;
  return hlo_attention_of_fusion(i, &a) ? emit_block_attention_scratch(&a, &c->attention) : 0;
}

dim gpu_attention_counters(const gpu_config *c, const hlo_instr *i) {
  hlo_attention a;
  return hlo_attention_of_fusion(i, &a) ? emit_block_attention_counters(&a, &c->attention) : 0;
}

static gpu_config config_of(emit_block_attention t) {
  gpu_config c = {.write = emit_block_attention_kernel, .bytes = sizeof c.attention, .attention = t};
  char splits[8] = "";
  if (t.splits > 1) {
    snprintf(splits, sizeof splits, "/%d", (int)t.splits);
  }
  snprintf(c.name, sizeof c.name, "attention:%dx%d-%d%s", (int)t.rows, (int)t.keys, (int)t.parts, splits);
  return c;
}

static void add(gpu_config_list *l, const hlo_attention *a, emit_block_attention t) {
  if (emit_block_attention_fits(a, &t)) {
    gpu_add_config(l, config_of(t));
  }
}

uint32_t gpu_list_attention_configs(const gpu_config_options *o, const hlo_attention *a, gpu_config *out) {
  /* the best for many rows, for some, and for one */
  static const emit_block_attention some[] = {{4, 2, 1, 1}, {1, 4, 1, 1}, {1, 1, 16, 1}};
  enum { SOME = sizeof some / sizeof *some, FEW_SPLITS = 2 };
  bool divides = !o->numerics.exact;
  gpu_config_list l = {.items = out};
  emit_block_attention t;
  if (emit_choose_block_attention(a, divides, &t)) {
    add(&l, a, t);
    t.splits = 1;
    add(&l, a, t);
    t.splits = divides ? FEW_SPLITS : 1;
    add(&l, a, t);
  }
  for (size_t k = 0; k < SOME; k++) {
    add(&l, a, some[k]);
  }
  return l.n;
}

/* Returns true if n is a power of two of at most `most`. */
static bool is_power(int64_t n, int64_t most) { return n > 0 && n <= most && (n & (n - 1)) == 0; }

static bool is_possible(const emit_block_attention *t) {
  enum { MOST = 4 };
  return is_power(t->rows, MOST) && is_power(t->keys, MOST) && is_power(t->parts, EMIT_ATTENTION_GROUPS) &&
         is_power(t->splits, EMIT_MOST_PARTS) && (t->rows == 1 || t->parts == 1);
}

bool gpu_find_attention_config(const gpu_config_options *o, const hlo_attention *a, const char *name, gpu_config *out) {
  int rows, keys, parts, splits = 1;
  if (sscanf(name, "attention:%dx%d-%d/%d", &rows, &keys, &parts, &splits) < 3) {
    return false;
  }
  emit_block_attention t = {rows, keys, parts, splits};
  if (!is_possible(&t) || (t.splits > 1 && o->numerics.exact) || !emit_block_attention_fits(a, &t)) {
    return false;
  }
  *out = config_of(t);
  return strcmp(out->name, name) == 0;
}
