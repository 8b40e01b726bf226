/* precompiled.c - see precompiled.h. */
#include "emit/contraction/precompiled.h"

#include "emit/contraction/depthwise_internal.h"
#include "emit/contraction/flash_attention_internal.h"
#include "emit/contraction/winograd_internal.h"
#include "emit/kernel/module.h"
#include "emit/product/macro_kernel.h"
#include "emit/product/product_internal.h"

static void add_function(const emit_ir *w, emit_shared f) { emit_shared_function(w, &f); }

/* --- products --- */

/* Adds the micro-kernels that multiply one block by panels: those whose sums have one loop, as in products of matrices,
 * for rows of A that are contiguous and for others, and one whose sums have two loops, as in convolutions. */
static void add_micro_kernels(const emit_ir *w, emit_gemm_tile tile) {
  emit_micro_kernel m = {.tile = tile, .type = DTYPE_F32, .panels = true, .contiguous = true, .n_loops = 1};
  emit_micro_kernel_of(w, &m);
  m.n_loops = 2;
  emit_micro_kernel_of(w, &m);
  m.n_loops = 1;
  m.contiguous = false;
  emit_micro_kernel_of(w, &m);
}

static void add_panels(const emit_ir *w, emit_gemm_tile tile) {
  winograd_panel p = {tile, 1};
  add_function(w, winograd_panel_function(w, &p));
}

/* Calls add_block for each block that fits the registers. */
static void for_each_block(const emit_ir *w, int lanes, void (*add_block)(const emit_ir *w, emit_gemm_tile tile)) {
  for (int vectors = 1; vectors <= EMIT_GEMM_VECTORS; vectors++) {
    for (int rows = 1; rows <= EMIT_GEMM_ROWS && emit_gemm_fits(w->target, DTYPE_F32, lanes, rows, vectors); rows++) {
      add_block(w, (emit_gemm_tile){rows, vectors, lanes});
    }
  }
}

/* Adds the functions for blocks of all sizes.  Vectors of half the target's width are for products whose columns fill
 * only such vectors, as 24 columns do if the target's vectors have 16 lanes. */
static void add_blocks(const emit_ir *w) {
  const int lanes = w->target->lanes;
  for_each_block(w, lanes, add_micro_kernels);
  for_each_block(w, lanes / 2, add_micro_kernels);
  for_each_block(w, lanes, add_panels);
}

static void add_lines(const emit_ir *w) {
  for (int lanes = w->target->lanes; lanes >= 4; lanes /= 2) {
    const emit_line line = {DTYPE_F32, lanes};
    add_function(w, emit_pad_line(w, &line));
  }
}

/* --- Winograd's transforms --- */

/* Adds the transforms for convolutions with r0 by r1 taps. */
static void add_transforms(const emit_ir *w, int64_t r0, int64_t r1) {
  for (int64_t tile = 2; tile < EMIT_WINOGRAD_MOST; tile += 2) {
    emit_winograd p = {.r = {r0, r1}};
    if (emit_winograd_choose_tiles(&p, tile)) {
      const winograd_tile t = winograd_tile_of(&p, w->target->lanes);
      add_function(w, winograd_forward_function(w, &t));
      add_function(w, winograd_backward_function(w, &t));
    }
  }
}

/* --- depthwise convolutions --- */

/* Adds the functions for rows of any length, with tiles of all widths that are chosen. */
static void add_depthwise(const emit_ir *w, depthwise_code code) {
  int64_t most = depthwise_most_positions(w->target, code.taps, code.vectors);
  for (int64_t width = 1; width <= most; width *= 2) {
    const depthwise_rows rows = {code, width};
    add_function(w, depthwise_rows_function(w, &rows));
  }
}

static void add_all_depthwise(const emit_ir *w) {
  enum { MOST_TAPS = 7, MOST_STRIDE = 2, MOST_VECTORS = 4 };
  for (int64_t taps = 3; taps <= MOST_TAPS; taps += 2) {
    for (int64_t stride = 1; stride <= MOST_STRIDE; stride++) {
      for (int vectors = 1; vectors <= MOST_VECTORS; vectors++) {
        add_depthwise(w, (depthwise_code){DTYPE_F32, DTYPE_F32, 1, 1, taps, stride, 1, 1, w->target->lanes, vectors});
      }
    }
  }
}

/* --- attention --- */

/* Adds the product with values in vectors of `lanes`: blocks of one row, and of `rows` rows. */
static void add_flash_values(const emit_ir *w, int rows, int lanes) {
  for (int vectors = 1; vectors <= EMIT_GEMM_VECTORS; vectors++) {
    const emit_gemm_tile row = {1, vectors, lanes}, block = {rows, vectors, lanes};
    add_function(w, emit_flash_values(w, &row));
    if (vectors <= EMIT_FLASH_VECTORS) {
      add_function(w, emit_flash_values(w, &block));
    }
  }
}

/* Adds the functions for heads whose sizes divide into vectors of 4 lanes or more, if the target's vectors are so wide.
 */
static void add_flash_attention(const emit_ir *w) {
  const int all = w->target->lanes, rows = (int)emit_flash_rows(w->target);
  const emit_gemm_tile block = {rows, EMIT_FLASH_VECTORS, all}, keys = {all, 1, all}, key = {1, 1, all};
  add_function(w, emit_flash_scores_of_many(w, &block));
  add_function(w, emit_flash_columns(w, &keys));
  add_function(w, emit_flash_columns(w, &key));
  for (int by_maximum = 0; by_maximum < 2; by_maximum++) {
    const emit_flash_raise raise = {all, by_maximum};
    add_function(w, emit_flash_exponentials(w, &raise));
  }
  for (int lanes = all; lanes >= 4; lanes /= 2) {
    const emit_gemm_tile square = {lanes, 1, all}, dots = {1, 1, lanes};
    add_function(w, emit_flash_squares(w, &square));
    add_function(w, emit_flash_scores_of_few(w, &dots));
    add_flash_values(w, rows, lanes);
  }
}

void emit_write_precompiled(emit_module *m) {
  const emit_ir *w = emit_module_ir_of(m);
  add_function(w, emit_run_table);
  add_function(w, emit_macro_steps);
  add_function(w, depthwise_steps);
  add_function(w, winograd_transform_steps);
  add_function(w, winograd_finish_steps);
  add_function(w, winograd_fused_steps);
  add_lines(w);
  add_blocks(w);
  add_all_depthwise(w);
  add_flash_attention(w);
  for (int64_t r0 = 1; r0 <= EMIT_WINOGRAD_MOST_TAPS; r0++) {
    for (int64_t r1 = 1; r1 <= EMIT_WINOGRAD_MOST_TAPS; r1++) {
      add_transforms(w, r0, r1);
    }
  }
}
