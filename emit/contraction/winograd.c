/* winograd.c - the kernels of winograd.h: which range of the grid runs which transforms and products, and the layout
 * of the memory between them. */
#include "emit/contraction/winograd_internal.h"
#include "emit/kernel/execution.h"

static dim v_elements(const winograd *g) { return dim_mul(table(g), emit_winograd_products(g->p), g->p->v_plane); }

static dim m_elements(const winograd *g) { return dim_mul(table(g), emit_winograd_products(g->p), g->p->m_plane); }

/* Allocates n vectors on the stack. */
static LLVMValueRef make_room(const winograd *g, int64_t n) {
  LLVMTypeRef type = LLVMArrayType2(g->ir->f32, (uint64_t)(n * g->p->lanes));
  LLVMValueRef room = LLVMBuildAlloca(g->ir->builder, type, "");
  LLVMSetAlignment(room, 64);
  return room;
}

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

static void put_sizes(const winograd *g, LLVMValueRef *entries) {
  const emit_winograd *p = g->p;
  for (int d = 0; d < 2; d++) {
    entries[WINOGRAD_TILES + d] = size(g, p->tiles[d]);
    entries[WINOGRAD_IN + d] = size(g, p->in[d]);
    entries[WINOGRAD_OUT + d] = size(g, p->out[d]);
    entries[WINOGRAD_LOW + d] = number(g, p->low[d]);
    entries[WINOGRAD_M + d] = number(g, p->m[d]);
    entries[WINOGRAD_SIZE + d] = number(g, emit_winograd_size(p, d));
  }
  entries[WINOGRAD_CHANNELS] = number(g, p->channels);
  entries[WINOGRAD_OUTPUTS] = number(g, p->outputs);
  entries[WINOGRAD_FORWARD_LANES] = number(g, g->lanes[0]);
  entries[WINOGRAD_BACKWARD_LANES] = number(g, g->lanes[1]);
  entries[WINOGRAD_V_ROW] = number(g, p->v_row);
  entries[WINOGRAD_M_ROW] = number(g, p->m_row);
  entries[WINOGRAD_V_PLANE] = size(g, p->v_plane);
  entries[WINOGRAD_M_PLANE] = size(g, p->m_plane);
  entries[WINOGRAD_PRODUCTS] = number(g, emit_winograd_products(p));
  entries[WINOGRAD_PANELS] = number(g, emit_winograd_panels(p));
  entries[WINOGRAD_PANEL_COLUMNS] = number(g, emit_winograd_panel(p));
  entries[WINOGRAD_SLAB] = number(g, p->slab / emit_winograd_panel(p));
  entries[WINOGRAD_BLOCK] = number(g, p->block);
  entries[WINOGRAD_PERIOD] = number(g, winograd_period(p));
}

/* The steps of a kernel, which decide what its record must have (bits). */
enum { TRANSFORM = 1, MULTIPLY = 2, FINISH = 4 };

static LLVMValueRef write_record(const winograd *g, int steps) {
  const winograd_tile forward = winograd_tile_of(g->p, g->lanes[0]), backward = winograd_tile_of(g->p, g->lanes[1]);
  const winograd_panel panel = winograd_panel_of(g->p);
  LLVMValueRef entries[WINOGRAD_ENTRIES] = {NULL};
  put_sizes(g, entries);
  entries[WINOGRAD_BUFFERS] = LLVMGetParam(g->ir->function, EMIT_BUFFERS);
  entries[WINOGRAD_ARGS] = LLVMGetParam(g->ir->function, EMIT_ARGS);
  entries[WINOGRAD_X] = g->x;
  entries[WINOGRAD_U] = g->u;
  if (steps & TRANSFORM) {
    const emit_shared f = winograd_forward_function(g->ir, &forward);
    entries[WINOGRAD_FORWARD] = emit_shared_function(g->ir, &f);
  }
  if (steps & MULTIPLY) {
    const emit_shared f = winograd_panel_function(g->ir, &panel);
    entries[WINOGRAD_PANEL] = emit_shared_function(g->ir, &f);
  }
  if (steps & FINISH) {
    const emit_shared f = winograd_backward_function(g->ir, &backward);
    entries[WINOGRAD_BACKWARD] = emit_shared_function(g->ir, &f);
    entries[WINOGRAD_EPILOGUE] = write_epilogue(g);
    entries[WINOGRAD_LINE] = make_room(g, g->p->m[0] * g->p->m[1]);
  }
  return emit_record(g->ir, WINOGRAD_ENTRIES, entries);
}

/* --- schedules --- */

/* Writes the fused kernel.  A step of the grid is a part of the tiles. */
static void write_fused(const winograd *g, LLVMValueRef scratch) {
  const emit_winograd *p = g->p;
  dim tiles = emit_winograd_all_tiles(table(g), p), n_parts = emit_winograd_count_parts(table(g), p);
  emit_loop parts;
  emit_compile_quickly(g->ir);
  LLVMValueRef record = write_record(g, TRANSFORM | MULTIPLY | FINISH);
  emit_loop_begin(g->ir, &parts, g->w->begin, g->w->end, 1, false, 0, NULL);
  LLVMValueRef begin = quotient(g, scaled(g, parts.iv, tiles), n_parts);
  LLVMValueRef end = quotient(g, scaled(g, plus(g, parts.iv, 1), tiles), n_parts);
  LLVMValueRef v = address(g, scratch, scaled(g, parts.iv, dim_add(table(g), v_elements(g), m_elements(g))));
  emit_call_shared(g->ir, &winograd_fused, (LLVMValueRef[]){record, begin, end, v});
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
  emit_compile_quickly(g->ir);
  LLVMValueRef first = g->w->begin, n = LLVMBuildNSWSub(g->ir->builder, g->w->end, first, "");
  if (phase == 0) {
    LLVMValueRef v = address(g, scratch, scaled(g, first, p->v_row));
    emit_call_shared(g->ir, &winograd_transform, (LLVMValueRef[]){write_record(g, TRANSFORM), first, n, v});
  } else {
    LLVMValueRef from = number(g, 0), to = number(g, p->outputs);
    m = address(g, m, scaled(g, first, p->m_row));
    emit_call_shared(g->ir, &winograd_finish, (LLVMValueRef[]){write_record(g, FINISH), first, n, from, to, m});
  }
  g->w->info->grid = emit_winograd_all_tiles(table(g), p);
}

/* Returns the cost in nanoseconds of a phase or, unless p->phased, of the one fused kernel: from the number of elements
 * that are transformed and the number of multiplications. */
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

status emit_winograd_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                            const emit_winograd *chosen, uint32_t phase, emit_kernel_info *info) {
  emit_writer w;
  emit_winograd p = *chosen;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  emit_divide_plainly(w.e.w); /* the kernel divides only a few times for each tile */
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
