/* winograd.c - the kernels of winograd.h: which range of the grid runs which transforms and products, and the layout
 * of the memory between them. */
#include "emit/contraction/winograd_internal.h"
#include "emit/llvm/function.h"

static dim v_elements(const winograd *g) { return dim_mul(table(g), emit_winograd_products(g->p), g->p->v_plane); }

static dim m_elements(const winograd *g) { return dim_mul(table(g), emit_winograd_products(g->p), g->p->m_plane); }

/* Writes the loop over slabs (emit_winograd.slab outputs each).  A slab is multiplied and then transformed back while
 * it is in the cache. */
static void write_slabs(const winograd *g, LLVMValueRef first, LLVMValueRef n, LLVMValueRef v, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  int64_t panels = emit_winograd_panels(p), step = p->slab / emit_winograd_panel(p);
  emit_loop l;
  emit_loop_begin(g->ir, &l, number(g, 0), number(g, panels), step, true, 0, NULL);
  LLVMValueRef to = lesser(g, plus(g, l.iv, step), number(g, panels));
  winograd_multiply(g, n, l.iv, to, v, m);
  LLVMValueRef end = lesser(g, scaled(g, to, emit_winograd_panel(p)), number(g, p->outputs));
  winograd_finish(g, first, n, scaled(g, l.iv, emit_winograd_panel(p)), end, m);
  emit_loop_end(g->ir, &l, NULL);
}

/* Writes the code that computes the tiles [first, first + n).  V is at address v, and M follows V in memory. */
static void write_block(const winograd *g, LLVMValueRef first, LLVMValueRef n, LLVMValueRef v) {
  winograd_transform(g, first, n, v);
  write_slabs(g, first, n, v, address(g, v, size(g, v_elements(g))));
}

/* Writes the code for a part whose number of tiles is not a constant: a loop over blocks of about equal size. */
static void write_blocks_of_size(const winograd *g, LLVMValueRef begin, LLVMValueRef end, LLVMValueRef v) {
  LLVMBuilderRef b = g->ir->builder;
  LLVMValueRef tiles = LLVMBuildNSWSub(b, end, begin, "");
  LLVMValueRef blocks = quotient(g, plus(g, tiles, g->p->block - 1), g->p->block);
  emit_loop l;
  emit_loop_begin(g->ir, &l, number(g, 0), blocks, 1, false, 0, NULL);
  LLVMValueRef from = LLVMBuildUDiv(b, LLVMBuildNSWMul(b, l.iv, tiles, ""), blocks, "");
  LLVMValueRef to = LLVMBuildUDiv(b, LLVMBuildNSWMul(b, plus(g, l.iv, 1), tiles, ""), blocks, "");
  from = emit_opaque(g->ir, from);
  write_block(g, add(g, begin, from), LLVMBuildNSWSub(b, emit_opaque(g->ir, to), from, ""), v);
  emit_loop_end(g->ir, &l, NULL);
}

/* Writes the fused kernel.  A step of the grid is a part of the tiles, which is computed block by block. */
static void write_fused(const winograd *g, LLVMValueRef scratch) {
  const emit_winograd *p = g->p;
  dim tiles = emit_winograd_all_tiles(table(g), p), n_parts = emit_winograd_count_parts(table(g), p);
  emit_loop parts, blocks;
  emit_loop_begin(g->ir, &parts, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef begin = quotient(g, scaled(g, parts.iv, tiles), n_parts);
  LLVMValueRef end = quotient(g, scaled(g, plus(g, parts.iv, 1), tiles), n_parts);
  LLVMValueRef v = address(g, scratch, scaled(g, parts.iv, dim_add(table(g), v_elements(g), m_elements(g))));
  if (dim_is_const(tiles)) {
    emit_loop_begin(g->ir, &blocks, begin, end, p->block, false, 0, NULL);
    LLVMValueRef n = lesser(g, LLVMBuildNSWSub(g->ir->builder, end, blocks.iv, ""), number(g, p->block));
    write_block(g, blocks.iv, n, v);
    emit_loop_end(g->ir, &blocks, NULL);
  } else {
    write_blocks_of_size(g, begin, end, v);
  }
  emit_loop_end(g->ir, &parts, NULL);
  g->w->info->grid = n_parts;
}

/* Writes the products of a phased kernel.  A step of the grid is one panel of weights of one product. */
static void write_products(const winograd *g, LLVMValueRef v, LLVMValueRef m) {
  const emit_winograd *p = g->p;
  emit_loop l;
  emit_loop_begin(g->ir, &l, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef product = quotient(g, l.iv, emit_winograd_panels(p));
  LLVMValueRef panel = remainder_of(g, l.iv, emit_winograd_panels(p));
  LLVMValueRef row = add(g, scaled(g, product, p->m_plane), scaled(g, panel, emit_winograd_panel(p)));
  winograd_multiply_panel(g, size(g, emit_winograd_all_tiles(table(g), p)),
                          address(g, v, scaled(g, product, p->v_plane)),
                          address(g, g->u, scaled(g, l.iv, panel_size(p))), address(g, m, row));
  emit_loop_end(g->ir, &l, NULL);
  g->w->info->grid = emit_winograd_products(p) * emit_winograd_panels(p);
}

/* Writes the products with the on-the-fly transform.  Every panel of weights is multiplied with every share of the
 * tiles (emit_winograd.share).  A step of the grid is one worker, which computes an equal number of these products. */
static void write_on_the_fly(const winograd *g, LLVMValueRef v, LLVMValueRef m, LLVMValueRef on_the_fly) {
  const emit_winograd *p = g->p;
  const dim shares = emit_winograd_shares(table(g), p), pieces = dim_mul(table(g), emit_winograd_panels(p), shares);
  emit_loop workers, l;
  emit_loop_begin(g->ir, &workers, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef from = quotient(g, scaled(g, workers.iv, pieces), p->workers);
  LLVMValueRef to = quotient(g, scaled(g, plus(g, workers.iv, 1), pieces), p->workers);
  LLVMValueRef u = address(g, on_the_fly, scaled(g, workers.iv, emit_winograd_on_the_fly_elements(p)));
  emit_loop_begin(g->ir, &l, from, to, 1, false, 0, NULL);
  LLVMValueRef panel = quotient(g, l.iv, shares), tile = scaled(g, remainder_of(g, l.iv, shares), p->share);
  LLVMValueRef left = LLVMBuildNSWSub(g->ir->builder, size(g, emit_winograd_all_tiles(table(g), p)), tile, "");
  LLVMValueRef column = add(g, scaled(g, tile, p->m_row), scaled(g, panel, emit_winograd_panel(p)));
  winograd_multiply_on_the_fly(g, lesser(g, left, number(g, p->share)), address(g, v, scaled(g, tile, p->v_row)),
                               address(g, g->u, scaled(g, panel, panel_size(p) * p->r[0] * p->r[1])), u,
                               address(g, m, column));
  emit_loop_end(g->ir, &l, NULL);
  emit_loop_end(g->ir, &workers, NULL);
  g->w->info->grid = p->workers;
}

static void write_phase(const winograd *g, uint32_t phase, LLVMValueRef scratch) {
  const emit_winograd *p = g->p;
  LLVMValueRef m = address(g, scratch, size(g, v_elements(g)));
  if (phase == 1) {
    if (p->on_the_fly) {
      write_on_the_fly(g, scratch, m, address(g, m, size(g, m_elements(g))));
    } else {
      write_products(g, scratch, m);
    }
    return;
  }
  LLVMValueRef n = LLVMBuildNSWSub(g->ir->builder, g->w->end, g->w->begin, "");
  int64_t row = phase ? p->m_row : p->v_row;
  LLVMValueRef rows = address(g, phase ? m : scratch, scaled(g, g->w->begin, row));
  if (phase == 0) {
    winograd_transform(g, g->w->begin, n, rows);
  } else {
    winograd_finish(g, g->w->begin, n, number(g, 0), number(g, p->outputs), rows);
  }
  g->w->info->grid = emit_winograd_all_tiles(table(g), p);
}

/* Returns the cost of a phase in nanoseconds, from the number of elements that it transforms and the number of its
 * multiplications. */
static double cost_of(dim_table *t, const emit_winograd *p, uint32_t phase) {
  double tiles = emit_likely_size(t, emit_winograd_all_tiles(t, p)) * (double)emit_winograd_products(p);
  double c = (double)p->channels, k = (double)p->outputs;
  double costs[] = {0.1 * tiles * c, 0.02 * tiles * c * k, 0.1 * tiles * k};
  return p->phased ? costs[phase] : costs[0] + costs[1] + costs[2];
}

static hlo_value find_convolution(const hlo_instr *i) {
  if (i->op == HLO_CONVOLUTION) {
    return hlo_result((hlo_instr *)i, 0);
  }
  hlo_instr *k = hlo_callee(i, 0)->first;
  while (k->op != HLO_CONVOLUTION) {
    k = k->next;
  }
  return hlo_result(k, 0);
}

/* Returns which operand of i the convolution reads as v: i is the convolution itself or the fusion around it. */
static uint32_t operand_of(const hlo_instr *i, hlo_value v) {
  if (i->op == HLO_CONVOLUTION) {
    return 0;
  }
  while (v.def->op == HLO_RESHAPE) {
    v = v.def->operands[0];
  }
  return (uint32_t)hlo_int(v.def, HLO_ATTR_INDEX);
}

/* Returns the number of lanes of vectors over n elements, at most `lanes`.  The last vector may overlap the one before
 * it, unless `exact` demands that vectors divide n. */
static int lanes_for(int64_t n, int64_t lanes, bool exact) {
  while (lanes > n || (exact && n % lanes)) {
    lanes /= 2;
  }
  return (int)lanes;
}

/* Allocates n vectors on the stack. */
static LLVMValueRef make_room(const winograd *g, int64_t n) {
  LLVMTypeRef type = LLVMArrayType2(g->ir->f32, (uint64_t)(n * g->p->lanes));
  LLVMValueRef room = LLVMBuildAlloca(g->ir->builder, type, "");
  LLVMSetAlignment(room, 64);
  return room;
}

status emit_winograd_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                            const emit_winograd *chosen, uint32_t phase, emit_kernel_info *info) {
  emit_writer w;
  emit_winograd p = *chosen;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  emit_divide_plainly(w.e.w); /* it divides only for each tile */
  winograd g = {.w = &w, .p = &p, .ir = w.e.w, .convolution = find_convolution(i)};
  emit_winograd_set_sizes(g.convolution.def, &p);
  bool shared = false;
  for (uint32_t k = 0; k < w.n_results; k++) {
    shared = shared || w.shared[k]; /* nothing may be computed twice if a result overwrites an operand */
  }
  g.lanes[0] = lanes_for(p.channels, p.lanes, false);
  g.lanes[1] = lanes_for(p.outputs, p.lanes, shared);
  g.x = w.e.inputs[operand_of(i, g.convolution.def->operands[0])].base;
  g.u = emit_writer_buffer(&w, (uint32_t)p.weights);
  g.line = make_room(&g, p.m[0] * p.m[1]);
  LLVMValueRef scratch = emit_writer_buffer(&w, i->n_operands + i->n_results);
  if (p.phased) {
    write_phase(&g, phase, scratch);
  } else {
    write_fused(&g, scratch);
  }
  w.cost = cost_of(w.e.x.sizes->table, &p, phase);
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
