/* winograd.c - the kernels of winograd.h: their records and epilogues, kernels that only multiply, and the layout of
 * the memory between them. */
#include "emit/contraction/winograd_internal.h"

static dim v_elements(const winograd *g) { return dim_mul(table(g), emit_winograd_products(g->p), g->p->v_plane); }

static dim m_elements(const winograd *g) { return dim_mul(table(g), emit_winograd_products(g->p), g->p->m_plane); }

/* --- the epilogue --- */

/* Writes the epilogue for one vector of outputs, from number `output` on, at a position of the result. */
static void finish_vector(const winograd *g, LLVMValueRef image, LLVMValueRef row, LLVMValueRef column,
                          LLVMValueRef output, LLVMValueRef value) {
  emit_element *e = &g->w->e;
  const shape *s = hlo_shape(g->convolution);
  uint32_t mark = emit_table_mark(e->x.table);
  int before = e->x.lanes;
  e->x.lanes = g->lanes[1];
  emit_index *index = emit_index_new(&e->x, s->rank, s->dims);
  emit_axis_at(index, 0, emit_pos_at(image, 1));
  if (g->p->spatial == 2) {
    emit_axis_at(index, 1, emit_pos_at(row, 1));
  }
  emit_axis_at(index, s->rank - 2, emit_pos_at(column, 1));
  emit_axis_at(index, s->rank - 1, emit_pos_lanes(output, g->lanes[1] > 1, 1));
  emit_element_set(e, g->convolution, index, (emit_pair){value, NULL});
  emit_store_roots(g->w, index);
  e->x.lanes = before;
  emit_table_release(e->x.table, mark);
}

static LLVMValueRef write_epilogue(const winograd *g) {
  LLVMValueRef p[WINOGRAD_EPILOGUE_PARAMETERS];
  emit_outer_function outer;
  emit_loop rows, columns;
  emit_writer_enter(g->w, "epilogue", WINOGRAD_EPILOGUE_TYPES, &outer);
  LLVMGetParams(g->ir->function, p);
  emit_loop_begin(g->ir, &rows, number(g, 0), p[WINOGRAD_EPILOGUE_ROWS], 1, true, 0, NULL);
  LLVMValueRef line = address(g, p[WINOGRAD_EPILOGUE_LINE], scaled(g, rows.iv, g->p->m[1] * g->lanes[1]));
  emit_loop_begin(g->ir, &columns, number(g, 0), p[WINOGRAD_EPILOGUE_COLUMNS], 1, true, 0, NULL);
  LLVMValueRef value = load(g, address(g, line, scaled(g, columns.iv, g->lanes[1])), g->lanes[1]);
  finish_vector(g, p[WINOGRAD_EPILOGUE_IMAGE], add(g, p[WINOGRAD_EPILOGUE_ROW], rows.iv),
                add(g, p[WINOGRAD_EPILOGUE_COLUMN], columns.iv), p[WINOGRAD_EPILOGUE_OUTPUT], value);
  emit_loop_end(g->ir, &columns, NULL);
  emit_loop_end(g->ir, &rows, NULL);
  return emit_writer_leave(g->w, &outer);
}

/* --- the record of the shared functions --- */

static void put_sizes(const winograd *g, emit_shared_kernel *record) {
  const emit_winograd *p = g->p;
  for (int d = 0; d < 2; d++) {
    emit_put_size(record, WINOGRAD_TILES + d, p->tiles[d]);
    emit_put_size(record, WINOGRAD_IN + d, p->in[d]);
    emit_put_size(record, WINOGRAD_OUT + d, p->out[d]);
    emit_put_number(record, WINOGRAD_LOW + d, p->low[d]);
    emit_put_number(record, WINOGRAD_M + d, p->m[d]);
    emit_put_number(record, WINOGRAD_SIZE + d, emit_winograd_size(p, d));
  }
  emit_put_number(record, WINOGRAD_CHANNELS, p->channels);
  emit_put_number(record, WINOGRAD_OUTPUTS, p->outputs);
  emit_put_number(record, WINOGRAD_FORWARD_LANES, g->lanes[0]);
  emit_put_number(record, WINOGRAD_BACKWARD_LANES, g->lanes[1]);
  emit_put_number(record, WINOGRAD_V_ROW, p->v_row);
  emit_put_number(record, WINOGRAD_M_ROW, p->m_row);
  emit_put_size(record, WINOGRAD_V_PLANE, p->v_plane);
  emit_put_size(record, WINOGRAD_M_PLANE, p->m_plane);
  emit_put_number(record, WINOGRAD_PRODUCTS, emit_winograd_products(p));
  emit_put_number(record, WINOGRAD_PANELS, emit_winograd_panels(p));
  emit_put_number(record, WINOGRAD_PANEL_COLUMNS, emit_winograd_panel(p));
  emit_put_number(record, WINOGRAD_SLAB, p->slab / emit_winograd_panel(p));
  emit_put_number(record, WINOGRAD_BLOCK, p->block);
  emit_put_number(record, WINOGRAD_PERIOD, winograd_period(p));
}

/* The steps of the algorithm that a kernel does, as bits.  They decide which entries its record must have. */
enum { TRANSFORM = 1, MULTIPLY = 2, FINISH = 4 };

static void put_grid(const winograd *g, emit_shared_kernel *record) {
  if (g->p->phased) {
    emit_put_size(record, WINOGRAD_M_START, v_elements(g));
  } else {
    emit_put_size(record, WINOGRAD_ALL_TILES, emit_winograd_all_tiles(table(g), g->p));
    emit_put_size(record, WINOGRAD_PARTS, emit_winograd_count_parts(table(g), g->p));
    emit_put_size(record, WINOGRAD_PART_ELEMENTS, dim_add(table(g), v_elements(g), m_elements(g)));
  }
}

static void put_function(const winograd *g, emit_shared_kernel *record, int entry, emit_shared f) {
  emit_put(record, entry, emit_shared_function(g->ir, &f));
}

/* Writes a kernel that does the steps in `work`.  Its code is the shared function `steps`. */
static void write_shared(const winograd *g, int work, const emit_shared *steps) {
  const winograd_tile forward = winograd_tile_of(g->p, g->lanes[0]), backward = winograd_tile_of(g->p, g->lanes[1]);
  const winograd_panel panel = winograd_panel_of(g->p);
  emit_shared_kernel record;
  emit_shared_kernel_begin(&record, g->w, WINOGRAD_ENTRIES);
  put_sizes(g, &record);
  put_grid(g, &record);
  emit_put_buffer(&record, WINOGRAD_X, g->x_buffer);
  emit_put_buffer(&record, WINOGRAD_U, (uint32_t)g->p->weights);
  emit_put_buffer(&record, WINOGRAD_SCRATCH, g->scratch_buffer);
  if (work & TRANSFORM) {
    put_function(g, &record, WINOGRAD_FORWARD, winograd_forward_function(g->ir, &forward));
  }
  if (work & MULTIPLY) {
    put_function(g, &record, WINOGRAD_PANEL, winograd_panel_function(g->ir, &panel));
  }
  if (work & FINISH) {
    put_function(g, &record, WINOGRAD_BACKWARD, winograd_backward_function(g->ir, &backward));
    emit_put(&record, WINOGRAD_EPILOGUE, write_epilogue(g));
  }
  emit_shared_kernel_write(&record, steps, g->p->m[0] * g->p->m[1] * g->p->lanes * (int64_t)sizeof(float));
}

/* --- schedules --- */

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
 * tiles (emit_winograd.share).  A step of the grid is one worker; all workers compute about equally many of these
 * products. */
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

static void write_multiplication(winograd *g) {
  emit_divide_plainly(g->ir); /* it divides only a few times for each panel */
  g->u = emit_writer_buffer(g->w, (uint32_t)g->p->weights);
  LLVMValueRef v = emit_writer_buffer(g->w, g->scratch_buffer), m = address(g, v, size(g, v_elements(g)));
  if (g->p->on_the_fly) {
    write_on_the_fly(g, v, m, address(g, m, size(g, m_elements(g))));
  } else {
    write_products(g, v, m);
  }
}

/* Writes a phase: the transform, the multiplication, or the transform back with the epilogue.  The steps of the grid of
 * the first and the last one are tiles. */
static void write_phase(winograd *g, uint32_t phase) {
  if (phase == 1) {
    write_multiplication(g);
    return;
  }
  write_shared(g, phase ? FINISH : TRANSFORM, phase ? &winograd_finish_steps : &winograd_transform_steps);
  g->w->info->grid = emit_winograd_all_tiles(table(g), g->p);
}

/* Writes the fused kernel.  A step of the grid is a part of the tiles. */
static void write_fused(const winograd *g) {
  write_shared(g, TRANSFORM | MULTIPLY | FINISH, &winograd_fused_steps);
  g->w->info->grid = emit_winograd_count_parts(table(g), g->p);
}

/* Returns the cost in nanoseconds of a phase or, unless p->phased, of the one fused kernel: from the number of elements
 * that are transformed and the number of multiplications. */
static double cost_of(dim_table *t, const emit_winograd *p, uint32_t phase) {
  double tiles = emit_likely_size(t, emit_winograd_all_tiles(t, p)) * (double)emit_winograd_products(p);
  double c = (double)p->channels, k = (double)p->outputs;
  double costs[] = {0.1 * tiles * c, 0.02 * tiles * c * k, 0.1 * tiles * k};
  return p->phased ? costs[phase] : costs[0] + costs[1] + costs[2];
}

/* Returns the number of lanes of vectors over n elements, at most `lanes`.  The last vector may overlap the one before
 * it, unless `exact` demands that vectors divide n. */
static int lanes_for(int64_t n, int64_t lanes, bool exact) {
  while (lanes > n || (exact && n % lanes)) {
    lanes /= 2;
  }
  return (int)lanes;
}

status emit_winograd_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                            const emit_winograd *chosen, uint32_t phase, emit_kernel_info *info) {
  emit_writer w;
  emit_winograd p = *chosen;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  winograd g = {.w = &w, .p = &p, .ir = w.e.w, .convolution = hlo_result((hlo_instr *)emit_contraction_of(i), 0)};
  emit_winograd_set_sizes(g.convolution.def, &p);
  bool shared = false;
  for (uint32_t k = 0; k < w.n_results; k++) {
    shared = shared || w.shared[k]; /* nothing may be computed twice if a result overwrites an operand */
  }
  g.lanes[0] = lanes_for(p.channels, p.lanes, false);
  g.lanes[1] = lanes_for(p.outputs, p.lanes, shared);
  g.x_buffer = emit_writer_operand_number(&w, g.convolution.def->operands[0]);
  g.scratch_buffer = i->n_operands + i->n_results;
  if (p.phased) {
    write_phase(&g, phase);
  } else {
    write_fused(&g);
  }
  w.cost = cost_of(w.e.x.sizes->table, &p, phase);
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
