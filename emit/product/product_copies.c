/* product_copies.c - the kernels of product.h that only copy: A with zeros around it, and B as panels. */
#include "emit/llvm/arithmetic.h"
#include "emit/product/product_internal.h"

typedef struct copy_kernel {
  emit_writer *w;
  const emit_product *p;
  dtype type;
  LLVMValueRef a, b;         /* the operands, of which one is NULL if the kernel does not read it */
  LLVMValueRef copy, packed; /* the addresses of the copies of A and B */
} copy_kernel;

static LLVMValueRef at(const copy_kernel *k, LLVMValueRef base, LLVMValueRef offset) {
  const emit_ir *w = k->w->e.w;
  return LLVMBuildInBoundsGEP2(w->builder, emit_memory_type(w, k->type), base, &offset, 1, "");
}

/* --- the copy of A with zeros around it --- */

enum { LINE_TO, LINE_FROM, LINE_LOW, LINE_LENGTH, LINE_HIGH, LINE_PARAMETERS };

static LLVMValueRef element_at(const emit_ir *w, const emit_line *t, LLVMValueRef base, LLVMValueRef offset) {
  return LLVMBuildInBoundsGEP2(w->builder, emit_memory_type(w, t->type), base, &offset, 1, "");
}

/* Copies the elements [begin, end) from `from` to `to`, `lanes` at a time, or writes zeros if `from` is NULL. */
static void copy_steps(const emit_ir *w, const emit_line *t, LLVMValueRef to, LLVMValueRef from, LLVMValueRef begin,
                       LLVMValueRef end, int lanes) {
  LLVMTypeRef type = emit_vector_type(emit_memory_type(w, t->type), lanes);
  unsigned alignment = (unsigned)dtype_bytes(t->type);
  emit_loop l;
  emit_loop_begin(w, &l, begin, end, lanes, false, 0, NULL);
  LLVMValueRef v = from ? LLVMBuildLoad2(w->builder, type, element_at(w, t, from, l.iv), "") : LLVMConstNull(type);
  if (from) {
    LLVMSetAlignment(v, alignment);
  }
  LLVMSetAlignment(LLVMBuildStore(w->builder, v, element_at(w, t, to, l.iv)), alignment);
  emit_loop_end(w, &l, NULL);
}

/* Copies n elements from `from` to `to`, or writes zeros if `from` is NULL: whole vectors, then single elements. */
static void copy_run(const emit_ir *w, const emit_line *t, LLVMValueRef to, LLVMValueRef from, LLVMValueRef n) {
  LLVMValueRef whole = LLVMBuildNSWSub(w->builder, n, emit_modulo(w, n, t->lanes), "");
  copy_steps(w, t, to, from, emit_i64(w, 0), whole, t->lanes);
  copy_steps(w, t, to, from, whole, n, 1);
}

static void write_line(emit_ir *w, const void *data) {
  const emit_line *t = data;
  LLVMValueRef p[LINE_PARAMETERS];
  LLVMGetParams(w->function, p);
  LLVMValueRef to = element_at(w, t, p[LINE_TO], p[LINE_LOW]);
  copy_run(w, t, p[LINE_TO], NULL, p[LINE_LOW]);
  copy_run(w, t, to, p[LINE_FROM], p[LINE_LENGTH]);
  copy_run(w, t, element_at(w, t, to, p[LINE_LENGTH]), NULL, p[LINE_HIGH]);
  LLVMBuildRetVoid(w->builder);
}

emit_shared emit_pad_line(const emit_ir *w, const emit_line *line) {
  const char *name = arena_printf(w->arena, "pad_line_%dx%s", line->lanes, dtype_name(line->type));
  return (emit_shared){name, "ppiii", write_line, line};
}

/* Writes one row of the copy, along the innermost spatial dimension: zeros, then the corresponding row of A (zeros if
 * there is none), then zeros. */
static void pad_line(const copy_kernel *k, LLVMValueRef line) {
  const emit_ir *w = k->w->e.w;
  const emit_indexer *x = &k->w->e.x;
  const emit_product *p = k->p;
  int64_t last = p->spatial - 1, c = p->channels;
  dim_table *t = x->sizes->table;
  LLVMValueRef width = emit_size(x, p->padded[last]), low = emit_lesser(w, emit_i64(w, p->low[last]), width);
  LLVMValueRef behind = LLVMBuildSub(w->builder, width, low, ""),
               there = emit_lesser(w, behind, emit_size(x, p->in[last])), zero = emit_i64(w, 0);
  LLVMValueRef high = LLVMBuildSub(w->builder, behind, there, ""), from = zero;
  LLVMValueRef rest = line, inside = LLVMConstInt(w->i1, 1, false);
  dim stride = dim_mul(t, p->in[last], c);
  for (int64_t d = last; d-- > 0;) {
    LLVMValueRef place = LLVMBuildSub(w->builder, emit_modulo_size(x, rest, p->padded[d]), emit_i64(w, p->low[d]), "");
    rest = emit_over_size(x, rest, p->padded[d]);
    inside = LLVMBuildAnd(w->builder, inside, emit_icmp(w, LLVMIntULT, place, emit_size(x, p->in[d])), "");
    from = LLVMBuildAdd(w->builder, from, LLVMBuildMul(w->builder, place, emit_size(x, stride), ""), "");
    stride = dim_mul(t, stride, p->in[d]);
  }
  from = LLVMBuildAdd(w->builder, from, LLVMBuildMul(w->builder, rest, emit_size(x, stride), ""), "");
  LLVMValueRef to = emit_times_size(x, line, dim_mul(t, p->padded[last], c));
  LLVMValueRef arguments[LINE_PARAMETERS] = {at(k, k->copy, to), at(k, k->a, emit_select(w, inside, from, zero)),
                                             emit_times(w, emit_select(w, inside, low, width), c),
                                             emit_times(w, emit_select(w, inside, there, zero), c),
                                             emit_times(w, emit_select(w, inside, high, zero), c)};
  const emit_line what = {k->type, (int)p->lanes};
  const emit_shared function = emit_pad_line(w, &what);
  emit_call_shared(w, &function, arguments);
}

void emit_product_padding(emit_writer *writer, const emit_product *p, LLVMValueRef a, LLVMValueRef copy) {
  const copy_kernel kernel = {.w = writer, .p = p, .type = (dtype)p->type, .a = a, .copy = copy}, *k = &kernel;
  const emit_ir *w = writer->e.w;
  dim_table *t = writer->e.x.sizes->table;
  dim lines = p->images;
  for (int64_t d = 0; d < p->spatial - 1; d++) {
    lines = dim_mul(t, lines, p->padded[d]);
  }
  emit_loop l;
  emit_compile_quickly(w);
  emit_loop_begin(w, &l, writer->begin, writer->end, 1, false, 0, NULL);
  pad_line(k, l.iv);
  emit_loop_end(w, &l, NULL);
  writer->info->grid = lines;
  writer->cost = emit_likely_size(t, p->padded_elements) * 0.1;
}

/* --- panels of B --- */

static LLVMValueRef load_vector(const copy_kernel *k, LLVMValueRef base, LLVMValueRef offset, int lanes) {
  const emit_ir *w = k->w->e.w;
  LLVMValueRef v =
      LLVMBuildLoad2(w->builder, emit_vector_type(emit_memory_type(w, k->type), lanes), at(k, base, offset), "");
  LLVMSetAlignment(v, (unsigned)dtype_bytes(k->type));
  return v;
}

/* Transposes the matrix of n vectors of n lanes.  Each round exchanges elements between pairs of rows. */
static void transpose(const copy_kernel *k, LLVMValueRef *rows, int n) {
  const emit_ir *w = k->w->e.w;
  for (int half = 1; half < n; half *= 2) {
    int low[256], high[256];
    for (int j = 0; j < n; j++) {
      bool upper = j & half;
      low[j] = upper ? n + j - half : j;
      high[j] = upper ? n + j : j + half;
    }
    for (int j = 0; j < n; j++) {
      if (!(j & half)) {
        LLVMValueRef x = rows[j], y = rows[j + half];
        rows[j] = emit_shuffle(w, x, y, low, n);
        rows[j + half] = emit_shuffle(w, x, y, high, n);
      }
    }
  }
}

/* Returns true if the last panel is known to be full. */
static bool has_whole_panels(const emit_product *p) { return dim_is_const(p->columns) && p->columns % p->lanes == 0; }

/* Returns the offset in B of a column of the panel.  For columns of the panel that B does not have, this is the offset
 * of the last column of B. */
static LLVMValueRef column_offset(const copy_kernel *k, LLVMValueRef panel, int lane) {
  const emit_ir *w = k->w->e.w;
  LLVMValueRef column = emit_add(w, emit_times(w, panel, k->p->lanes), emit_i64(w, lane));
  if (!has_whole_panels(k->p)) {
    LLVMValueRef last = LLVMBuildNSWSub(w->builder, emit_size(&k->w->e.x, k->p->columns), emit_i64(w, 1), "");
    column = emit_lesser(w, column, last);
  }
  return emit_times_size(&k->w->e.x, column, k->p->b_column);
}

/* Packs `size` rows of the panel, beginning with the row of B that is s elements after `from`. `size` is 1 or the
 * number of lanes.  In the second case B is read column by column, as vectors along the sum, which are transposed. */
static void pack_rows(const copy_kernel *k, LLVMValueRef from, LLVMValueRef to, LLVMValueRef panel, LLVMValueRef s,
                      int size) {
  const emit_ir *w = k->w->e.w;
  int lanes = (int)k->p->lanes;
  LLVMValueRef rows[256];
  if (size > 1) {
    for (int j = 0; j < lanes; j++) {
      rows[j] = load_vector(k, from, emit_add(w, column_offset(k, panel, j), s), lanes);
    }
    transpose(k, rows, lanes);
  } else if (k->p->b_column == 1 && has_whole_panels(k->p)) {
    rows[0] = load_vector(k, from, emit_add(w, column_offset(k, panel, 0), s), lanes);
  } else {
    rows[0] = LLVMGetPoison(emit_vector_type(emit_memory_type(w, k->type), lanes));
    for (int j = 0; j < lanes; j++) {
      LLVMValueRef v = load_vector(k, from, emit_add(w, column_offset(k, panel, j), s), 1);
      rows[0] = lanes > 1 ? emit_set_lane(w, rows[0], v, j) : v;
    }
  }
  for (int j = 0; j < size; j++) {
    LLVMSetAlignment(LLVMBuildStore(w->builder, rows[j], at(k, to, emit_i64(w, j * lanes))),
                     (unsigned)dtype_bytes(k->type));
  }
}

/* Writes the loops of emit_product.sums from number `level` inwards.  They run over rows of B and pack each row's part
 * in panel number `panel`.  For the first of these rows, `from` is the address of its element in column 0 of B, and
 * `to` is the address to which it is packed. */
static void pack_level(const copy_kernel *k, int64_t level, LLVMValueRef from, LLVMValueRef to, LLVMValueRef panel) {
  const emit_ir *w = k->w->e.w;
  const emit_product *p = k->p;
  emit_loop l;
  if (level == p->n_sums) {
    pack_rows(k, from, to, panel, emit_i64(w, 0), 1);
    return;
  }
  const emit_level *s = &p->sums[level];
  const emit_indexer *x = &k->w->e.x;
  if (level + 1 < p->n_sums) {
    dim inner = p->lanes;
    for (int64_t j = level + 1; j < p->n_sums; j++) {
      inner = dim_mul(x->sizes->table, inner, p->sums[j].n);
    }
    emit_loop_begin(w, &l, emit_i64(w, 0), emit_size(x, s->n), 1, dim_is_const(s->n), 0, NULL);
    LLVMValueRef below = at(k, from, emit_times_size(x, l.iv, s->b));
    pack_level(k, level + 1, below, at(k, to, emit_times_size(x, l.iv, inner)), panel);
    emit_loop_end(w, &l, NULL);
    return;
  }
  bool turns = s->b == 1 && p->b_column != 1 && p->lanes > 1;
  LLVMValueRef n = emit_size(x, s->n), turned = emit_i64(w, 0);
  if (turns && !(dim_is_const(s->n) && s->n < p->lanes)) {
    turned = LLVMBuildNSWSub(w->builder, n, emit_modulo(w, n, p->lanes), "");
    emit_loop_begin(w, &l, emit_i64(w, 0), turned, p->lanes, dim_is_const(s->n), 0, NULL);
    pack_rows(k, from, at(k, to, emit_times(w, l.iv, p->lanes)), panel, l.iv, (int)p->lanes);
    emit_loop_end(w, &l, NULL);
  }
  if (!dim_is_const(s->n) || !turns || s->n % p->lanes) {
    emit_loop_begin(w, &l, turned, n, 1, dim_is_const(s->n), 0, NULL);
    pack_rows(k, from, at(k, to, emit_times(w, l.iv, p->lanes)), panel, emit_times_size(x, l.iv, s->b), 1);
    emit_loop_end(w, &l, NULL);
  }
}

void emit_product_panels(emit_writer *writer, const emit_product *p, LLVMValueRef b, LLVMValueRef packed) {
  const copy_kernel kernel = {.w = writer, .p = p, .type = (dtype)p->type, .b = b, .packed = packed}, *k = &kernel;
  const emit_ir *w = writer->e.w;
  const emit_indexer *x = &writer->e.x;
  dim_table *t = x->sizes->table;
  dim panels = emit_product_panels_of(t, p), panel = emit_product_panel(t, p);
  emit_loop l;
  emit_loop_begin(w, &l, writer->begin, writer->end, 1, false, 0, NULL);
  LLVMValueRef outside = emit_over_size(x, l.iv, panels), batch = emit_over(w, outside, p->group.n);
  LLVMValueRef from = at(k, k->b,
                         emit_add(w, emit_level_offset(x, p->n_batch, p->batch, true, batch),
                                  emit_times(w, emit_modulo(w, outside, p->group.n), p->group.b)));
  pack_level(k, 0, from, at(k, k->packed, emit_times_size(x, l.iv, panel)), emit_modulo_size(x, l.iv, panels));
  emit_loop_end(w, &l, NULL);
  writer->info->grid = dim_mul(t, emit_product_outside(t, p), panels);
  writer->cost = emit_likely_size(t, emit_product_packed(t, p)) * 0.2;
}

/* --- phases and scratch memory --- */

static bool pads(const emit_product *p) { return p->padded_elements != 0; }

uint32_t emit_product_phases(const emit_product *p) { return 1 + pads(p) + (p->packing == EMIT_B_SCRATCH); }

dim emit_product_copied(dim_table *t, const emit_product *p) {
  int64_t line = 64 / (int64_t)dtype_bytes((dtype)p->type);
  return dim_mul(t, emit_dim_ceil_over(t, p->padded_elements, line), line);
}

dim emit_product_scratch(dim_table *t, const emit_product *p) {
  int64_t bytes = (int64_t)dtype_bytes((dtype)p->type);
  dim copied = dim_mul(t, emit_product_copied(t, p), bytes);
  if (p->packing != EMIT_B_SCRATCH) {
    return copied;
  }
  dim packed = dim_mul(t, emit_product_packed(t, p), bytes);
  return copied ? dim_add(t, copied, packed) : packed;
}
