/* contraction.c - see contraction.h. */
#include "backend_gpu/algorithms/contraction.h"

#include <stdio.h>
#include <string.h>

#include "emit/blocks/sum_parts.h"
#include "hlo/analysis/queries.h"

/* Returns the config's number of parts. */
static int64_t parts_of(const gpu_config *c) {
  return c->write == emit_mma_product_kernel ? c->mma.parts : c->write ? c->tile.parts : 1;
}

dim gpu_contraction_scratch(const gpu_config *c, const hlo_instr *i) {
  return parts_of(c) > 1 ? emit_parts_scratch(i, parts_of(c)) : 0;
}

dim gpu_contraction_counters(const gpu_config *c, const hlo_instr *i) {
  bool mma = c->write == emit_mma_product_kernel;
  return parts_of(c) <= 1 ? 0 : mma ? emit_count_mma_tiles(i, &c->mma) : emit_count_tiles_of(i, &c->tile);
}

/* Sets the number of parts, and adds it to the name of a config with whole sums. */
static void divide(gpu_config *c, int64_t parts) {
  size_t n = strlen(c->name);
  if (c->write == emit_mma_product_kernel) {
    c->mma.parts = parts;
  } else {
    c->tile.parts = parts;
  }
  snprintf(c->name + n, sizeof c->name - n, "/%d", (int)parts);
}

/* Adds the config c with sums in `parts` parts if `parts` is above 1, and then c itself, with whole sums. */
static void add_parts(gpu_config_list *l, gpu_config c, int64_t parts) {
  gpu_config divided = c;
  if (parts > 1) {
    divide(&divided, parts);
    gpu_add_config(l, divided);
  }
  gpu_add_config(l, c);
}

static gpu_config tile_config(int64_t rows, int64_t columns) {
  gpu_config c = {.write = emit_tiled_product_kernel, .bytes = sizeof c.tile, .tile = emit_tile_of(rows, columns)};
  snprintf(c.name, sizeof c.name, "tiles:%dx%d", (int)rows, (int)columns);
  return c;
}

static gpu_config mma_config(emit_mma_tile t, dtype rounded) {
  gpu_config c = {.write = emit_mma_product_kernel, .bytes = sizeof c.mma, .mma = t};
  const char *type = t.split                 ? "-tf32x3"
                     : rounded == DTYPE_F32  ? "-tf32"
                     : rounded == DTYPE_BF16 ? "-bf16"
                     : rounded               ? "-f16"
                                             : "";
  c.mma.rounded = rounded;
  c.mma.parts = 1;
  snprintf(c.name, sizeof c.name, "mma%s:%dx%d-%dx%d", type, (int)t.warp_rows, (int)t.warp_columns, (int)t.down,
           (int)t.across);
  return c;
}

/* Returns true if tensor cores may compute the contraction.  Sets *rounded to the type to which its factors may be
 * rounded for that, or to DTYPE_INVALID if they need not be rounded. */
static bool takes_mma(const gpu_config_options *o, const hlo_instr *i, dtype *rounded) {
  const hlo_instr *c = emit_contraction_of(i);
  *rounded = hlo_type(c->operands[0]) == DTYPE_F32 ? o->numerics.reduced_precision : DTYPE_INVALID;
  bool may_round = !o->numerics.exact || dtype_is_int((dtype)c->shapes[0].type);
  return may_round && emit_takes_mma(o->target, i, *rounded);
}

/* Returns true if sums may be computed in parts (split-k).  The order of additions does not matter for integers, and
 * for floats it need not be that of plain loops unless numerics are exact. */
static bool takes_parts(const gpu_config_options *o, const hlo_instr *i) {
  return !o->numerics.exact || dtype_is_int((dtype)emit_contraction_of(i)->shapes[0].type);
}

uint32_t gpu_list_contraction_configs(const gpu_config_options *o, const hlo_instr *i, gpu_config *out) {
  enum { FEW_PARTS = 2 };
  gpu_config_list l = {.items = out};
  emit_tile tile;
  emit_mma_tile mma;
  if (!emit_contraction_of(i)) {
    return 0;
  }
  dtype rounded;
  bool uses_mma = takes_mma(o, i, &rounded), takes_tiles = emit_takes_tiles(i), divides = takes_parts(o, i);
  if (uses_mma && emit_choose_mma_tile(i, divides, &mma)) {
    add_parts(&l, mma_config(mma, rounded), mma.parts);
  }
  if (takes_tiles && emit_choose_tile(i, divides, &tile)) {
    add_parts(&l, tile_config(tile.rows, tile.columns), tile.parts);
  }
  gpu_add_config(&l, (gpu_config){.name = "loops"});
  if (uses_mma && divides) {
    add_parts(&l, mma_config(emit_mma_tiles[EMIT_MMA_TILES - 1], rounded), FEW_PARTS);
  }
  if (takes_tiles && divides) {
    add_parts(&l, tile_config(1, 1), FEW_PARTS);
  }
  for (uint32_t k = 0; uses_mma && k < EMIT_MMA_TILES; k++) {
    gpu_add_config(&l, mma_config(emit_mma_tiles[k], rounded));
  }
  for (int64_t rows = EMIT_TILE_MOST; takes_tiles && rows > 0; rows /= 2) {
    for (int64_t columns = EMIT_TILE_MOST; columns > 0; columns /= 2) {
      gpu_add_config(&l, tile_config(rows, columns));
    }
  }
  return l.n;
}

/* Lists the configs that are used only where they are named. */
static uint32_t list_named(const gpu_config_options *o, const hlo_instr *i, gpu_config *out) {
  gpu_config_list l = {.items = out};
  for (uint32_t k = 0; !o->numerics.exact && emit_takes_mma(o->target, i, DTYPE_F32) && k < EMIT_MMA_TILES; k++) {
    emit_mma_tile t = emit_mma_tiles[k];
    t.split = true;
    gpu_add_config(&l, mma_config(t, DTYPE_F32));
  }
  return l.n;
}

/* Finds a config with whole sums by its name, also one that is used only where it is named. */
static bool find_whole(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out) {
  gpu_config configs[GPU_MOST_CONFIGS + EMIT_MMA_TILES];
  uint32_t n = gpu_list_contraction_configs(o, i, configs);
  n += n ? list_named(o, i, configs + n) : 0;
  for (uint32_t k = 0; k < n; k++) {
    if (strcmp(configs[k].name, name) == 0) {
      *out = configs[k];
      return true;
    }
  }
  return false;
}

bool gpu_find_contraction_config(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out) {
  gpu_config undivided;
  char whole[sizeof out->name];
  const char *slash = strchr(name, '/');
  if (!slash || !emit_contraction_of(i) || !takes_parts(o, i)) {
    return find_whole(o, i, name, out);
  }
  snprintf(whole, sizeof whole, "%.*s", (int)(slash - name), name);
  bool found = find_whole(o, i, whole, &undivided) && undivided.write;
  for (int64_t parts = 2; found && parts <= EMIT_MOST_PARTS; parts *= 2) {
    *out = undivided;
    divide(out, parts);
    if (strcmp(out->name, name) == 0) {
      return true;
    }
  }
  return false;
}
