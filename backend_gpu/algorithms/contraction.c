/* contraction.c - see contraction.h. */
#include "backend_gpu/algorithms/contraction.h"

#include <stdio.h>
#include <string.h>

#include "hlo/analysis/queries.h"

/* The configs that were found. */
typedef struct list {
  gpu_config *items;
  uint32_t n;
} list;

/* Adds a config unless one of its name is there. */
static void add(list *l, gpu_config c) {
  for (uint32_t k = 0; k < l->n; k++) {
    if (strcmp(l->items[k].name, c.name) == 0) {
      return;
    }
  }
  if (l->n < GPU_MOST_CONFIGS) {
    l->items[l->n++] = c;
  }
}

static void add_tile(list *l, int64_t rows, int64_t columns) {
  gpu_config c = {.write = emit_tiled_product_kernel, .bytes = sizeof c.tile, .tile = emit_tile_of(rows, columns)};
  snprintf(c.name, sizeof c.name, "tiles:%dx%d", (int)rows, (int)columns);
  add(l, c);
}

static void add_mma(list *l, emit_mma_tile t, dtype rounded) {
  gpu_config c = {.write = emit_mma_product_kernel, .bytes = sizeof c.mma, .mma = t};
  const char *type = rounded == DTYPE_F32 ? "-tf32" : rounded == DTYPE_BF16 ? "-bf16" : rounded ? "-f16" : "";
  c.mma.rounded = rounded;
  snprintf(c.name, sizeof c.name, "mma%s:%dx%d-%dx%d", type, (int)t.warp_rows, (int)t.warp_columns, (int)t.down,
           (int)t.across);
  add(l, c);
}

/* Returns true if tensor cores may compute the contraction.  Sets *rounded to the type to which its factors may be
 * rounded for that; DTYPE_INVALID: they need not be. */
static bool takes_mma(const gpu_config_options *o, const hlo_instr *i, dtype *rounded) {
  const hlo_instr *c = emit_contraction_of(i);
  *rounded = hlo_type(c->operands[0]) == DTYPE_F32 ? o->numerics.reduced_precision : DTYPE_INVALID;
  bool may_round = !o->numerics.exact || dtype_is_int((dtype)c->shapes[0].type);
  return may_round && emit_takes_mma(o->target, i, *rounded);
}

uint32_t gpu_list_configs(const gpu_config_options *o, const hlo_instr *i, gpu_config *out) {
  list l = {.items = out};
  emit_tile tile;
  emit_mma_tile mma;
  if (!emit_contraction_of(i)) {
    return 0;
  }
  dtype rounded;
  bool uses_mma = takes_mma(o, i, &rounded), takes_tiles = emit_takes_tiles(i);
  if (uses_mma && emit_choose_mma_tile(i, &mma)) {
    add_mma(&l, mma, rounded);
  }
  if (takes_tiles && emit_choose_tile(i, &tile)) {
    add_tile(&l, tile.rows, tile.columns);
  }
  add(&l, (gpu_config){.name = "loops"});
  for (uint32_t k = 0; uses_mma && k < EMIT_MMA_TILES; k++) {
    add_mma(&l, emit_mma_tiles[k], rounded);
  }
  for (int64_t rows = EMIT_TILE_MOST; takes_tiles && rows > 0; rows /= 2) {
    for (int64_t columns = EMIT_TILE_MOST; columns > 0; columns /= 2) {
      add_tile(&l, rows, columns);
    }
  }
  return l.n;
}

bool gpu_find_config(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out) {
  gpu_config configs[GPU_MOST_CONFIGS];
  uint32_t n = gpu_list_configs(o, i, configs);
  for (uint32_t k = 0; k < n; k++) {
    if (strcmp(configs[k].name, name) == 0) {
      *out = configs[k];
      return true;
    }
  }
  return false;
}
