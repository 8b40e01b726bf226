/* attention.c - see attention.h. */
#include "backend_gpu/algorithms/attention.h"

#include <stdio.h>
#include <stdlib.h>
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
  if (t.mma) {
    snprintf(c.name, sizeof c.name, "attention:mma-%d%s", (int)t.keys * EMIT_ATTENTION_MMA_LANES, splits);
  } else {
    snprintf(c.name, sizeof c.name, "attention:%dx%d-%d%s", (int)t.rows, (int)t.keys, (int)t.parts, splits);
  }
  return c;
}

static void add(gpu_config_list *l, const hlo_attention *a, emit_block_attention t) {
  if (emit_block_attention_fits(a, &t)) {
    gpu_add_config(l, config_of(t));
  }
}

/* Adds the config t, then t with the keys of a row not divided, and then, if `divides`, t with the keys of a row
 * divided among FEW_SPLITS blocks. */
static void add_splits(gpu_config_list *l, const hlo_attention *a, bool divides, emit_block_attention t) {
  enum { FEW_SPLITS = 2 };
  add(l, a, t);
  t.splits = 1;
  add(l, a, t);
  t.splits = divides ? FEW_SPLITS : 1;
  add(l, a, t);
}

uint32_t gpu_list_attention_configs(const gpu_config_options *o, const hlo_attention *a, gpu_config *out) {
  /* the best configs for many rows, for some, and for one */
  static const emit_block_attention some[] = {{4, 2, 1, 1, 0}, {1, 4, 1, 1, 0}, {1, 1, 16, 1, 0}};
  enum { SOME = sizeof some / sizeof *some };
  bool divides = !o->numerics.exact;
  gpu_config_list l = {.items = out};
  emit_block_attention t;
  if (divides && emit_choose_mma_attention(o->target, a, divides, &t)) {
    add_splits(&l, a, divides, t);
  }
  if (emit_choose_block_attention(a, divides, &t)) {
    add_splits(&l, a, divides, t);
  }
  for (size_t k = 0; k < SOME; k++) {
    add(&l, a, some[k]);
  }
  return l.n;
}

/* Returns true if n is a power of two of at least `least` and at most `most`. */
static bool is_power(int64_t n, int64_t least, int64_t most) { return n >= least && n <= most && (n & (n - 1)) == 0; }

static bool is_possible(const emit_block_attention *t) {
  bool splits = is_power(t->splits, 1, EMIT_MOST_PARTS);
  if (t->mma) {
    return splits && is_power(t->keys, EMIT_ATTENTION_MMA_KEYS / 2, EMIT_ATTENTION_MMA_KEYS);
  }
  return splits && is_power(t->rows, 1, 4) && is_power(t->keys, 1, 4) && is_power(t->parts, 1, EMIT_ATTENTION_GROUPS) &&
         (t->rows == 1 || t->parts == 1);
}

/* Reads a config's name.  Names that config_of would spell otherwise are read, too, such as "attention:04x2-1": the
 * caller must compare them. */
static bool read_name(const char *name, emit_block_attention *out) {
  const char *slash = strchr(name, '/');
  int rows, keys, parts, splits = slash ? atoi(slash + 1) : 1;
  if (sscanf(name, "attention:mma-%d", &keys) == 1) {
    *out = (emit_block_attention){EMIT_ATTENTION_MMA_ROWS, keys / EMIT_ATTENTION_MMA_LANES, 1, splits, true};
    return true;
  }
  bool found = sscanf(name, "attention:%dx%d-%d", &rows, &keys, &parts) == 3;
  *out = found ? (emit_block_attention){rows, keys, parts, splits, false} : (emit_block_attention){0};
  return found;
}

bool gpu_find_attention_config(const gpu_config_options *o, const hlo_attention *a, const char *name, gpu_config *out) {
  emit_block_attention t;
  if (!read_name(name, &t) || !is_possible(&t) || (t.mma && !emit_takes_mma_attention(o->target, a)) ||
      (o->numerics.exact && (t.mma || t.splits > 1)) || !emit_block_attention_fits(a, &t)) {
    return false;
  }
  *out = config_of(t);
  return strcmp(out->name, name) == 0;
}
