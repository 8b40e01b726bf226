/* movement.c - operations that move elements: each emitter computes the operand's index from the result's index.  Iota
 * and sizes, which have no operands, are here as well. */
#include "emit/element/element.h"
#include "hlo/analysis/queries.h"

static const shape *operand(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

emit_index *emit_operand_index(emit_element *e, const hlo_instr *i, uint32_t k) {
  return emit_index_new(&e->x, operand(i, k)->rank, operand(i, k)->dims);
}

/* Selects the element by comparing its position with that of each element of the list; LLVM folds the comparisons if
 * the position is a constant. */
emit_pair emit_sizes_list(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_pos p = emit_index_linear(&e->x, at);
  bool scalar = e->x.lanes == 1 || p.step == 0;
  LLVMValueRef place = scalar ? p.base : emit_pos_vector(&e->x, p), v = NULL;
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_ELEMENTS); k++) {
    LLVMValueRef n = emit_size(&e->x, hlo_ints(i, HLO_ATTR_ELEMENTS)[k]);
    n = scalar ? n : emit_splat(e->w, n, e->x.lanes);
    v = v ? emit_select(e->w, emit_icmp(e->w, LLVMIntEQ, place, emit_i(place, k)), n, v) : n;
  }
  emit_pair r =
      emit_convert(e->w, DTYPE_S64, (dtype)i->shapes[0].type, (emit_pair){v, NULL}, false, DTYPE_ROUND_NEAREST);
  return scalar ? emit_splat_pair(e, r) : r;
}

emit_pair emit_copy(emit_element *e, const hlo_instr *i, const emit_index *at) {
  return emit_value(e, i->operands[0], at);
}

emit_pair emit_reshape(emit_element *e, const hlo_instr *i, const emit_index *at) {
  const shape *x = operand(i, 0);
  return emit_value(e, i->operands[0], emit_index_reshape(&e->x, at, x->rank, x->dims));
}

emit_pair emit_iota(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_pos p = emit_index_dim(&e->x, at, (int)hlo_int(i, HLO_ATTR_DIMENSION));
  bool scalar = e->x.lanes == 1 || p.step == 0;
  LLVMValueRef n = scalar ? p.base : emit_pos_vector(&e->x, p);
  dtype from = emit_bits(n) == 32 ? DTYPE_S32 : DTYPE_S64;
  emit_pair r = emit_convert(e->w, from, (dtype)i->shapes[0].type, (emit_pair){n, NULL}, false, DTYPE_ROUND_NEAREST);
  return scalar ? emit_splat_pair(e, r) : r;
}

emit_pair emit_broadcast(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_index *x = emit_operand_index(e, i, 0);
  for (int k = 0; k < x->rank; k++) {
    if (x->dims[k] == 1) {
      emit_axis_at(x, k, emit_pos_const(&e->x, 0));
    } else {
      emit_axis_from(x, k, at, (int)hlo_ints(i, HLO_ATTR_DIMENSIONS)[k]);
    }
  }
  return emit_value(e, i->operands[0], x);
}

emit_pair emit_transpose(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_index *x = emit_operand_index(e, i, 0);
  for (int k = 0; k < x->rank; k++) {
    emit_axis_from(x, (int)hlo_ints(i, HLO_ATTR_PERMUTATION)[k], at, k);
  }
  return emit_value(e, i->operands[0], x);
}

emit_pair emit_reverse(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_index *x = emit_operand_index(e, i, 0);
  for (int k = 0; k < x->rank; k++) {
    emit_axis_from(x, k, at, k);
  }
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    int d = (int)hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, at, d), -1);
    emit_axis_at(x, d, emit_pos_add_const(&e->x, emit_pos_add_size(&e->x, p, x->dims[d]), -1));
  }
  return emit_value(e, i->operands[0], x);
}

emit_pair emit_slice(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_index *x = emit_operand_index(e, i, 0);
  for (int k = 0; k < x->rank; k++) {
    dim start = hlo_ints(i, HLO_ATTR_STARTS)[k];
    int64_t stride = hlo_ints(i, HLO_ATTR_STRIDES)[k];
    if (x->dims[k] == at->dims[k]) {
      emit_axis_from(x, k, at, k);
    } else {
      emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, at, k), stride);
      emit_axis_at(x, k, emit_pos_add_size(&e->x, p, start));
    }
  }
  return emit_value(e, i->operands[0], x);
}

/* The position p is clamped first, so that no lane divides a negative number. */
emit_pos emit_without_gaps(emit_element *e, emit_pos p, dim n, int64_t gap, LLVMValueRef *mask) {
  dim_table *t = e->x.sizes->table;
  dim extent = dim_is_const(n) ? (n - 1) * gap + 1 : dim_add_const(t, dim_mul(t, n, gap), 1 - gap);
  emit_pos safe = emit_pos_clamp(&e->x, p, extent);
  emit_pos rest = emit_pos_mod(&e->x, safe, gap);
  LLVMValueRef r = emit_pos_vector(&e->x, rest), q = emit_pos_vector(&e->x, p), s = emit_pos_vector(&e->x, safe);
  if (p.step == 0) {
    r = rest.base;
    q = p.base;
    s = safe.base;
  }
  LLVMValueRef on =
      LLVMBuildAnd(e->w->builder, emit_icmp(e->w, LLVMIntEQ, r, emit_i(r, 0)), emit_icmp(e->w, LLVMIntEQ, q, s), "");
  on = emit_lanes(on) || e->x.lanes == 1 ? on : emit_splat(e->w, on, e->x.lanes);
  *mask = *mask ? LLVMBuildAnd(e->w->builder, *mask, on, "") : on;
  return emit_pos_div(&e->x, safe, gap);
}

emit_pair emit_pad(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_index *x = emit_operand_index(e, i, 0);
  uint32_t checked = 0;
  LLVMValueRef mask = NULL;
  emit_pair padding = emit_value(e, i->operands[1], emit_index_new(&e->x, 0, NULL));
  for (int k = 0; k < x->rank; k++) {
    if (x->dims[k] == 0) {
      return padding;
    }
    int64_t low = hlo_ints(i, HLO_ATTR_LOW)[k], gap = hlo_ints(i, HLO_ATTR_INTERIOR)[k] + 1;
    if (low == 0 && gap == 1 && x->dims[k] == at->dims[k]) {
      emit_axis_from(x, k, at, k);
      continue;
    }
    emit_pos p = emit_pos_add_const(&e->x, emit_index_dim(&e->x, at, k), -low);
    if (gap > 1) {
      emit_axis_at(x, k, emit_without_gaps(e, p, x->dims[k], gap, &mask));
      /* if the extent is an argument, it may be 0, and then even a clamped position is outside of the array */
      checked |= dim_is_const(x->dims[k]) ? 0 : (uint32_t)1 << k;
    } else {
      emit_axis_at(x, k, p);
      checked |= (uint32_t)1 << k;
    }
  }
  return emit_guarded(e, i->operands[0], x, checked, mask, padding);
}

/* --- dynamic slices --- */

emit_pair emit_dynamic_slice(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_index *x = emit_operand_index(e, i, 0);
  for (int k = 0; k < x->rank; k++) {
    if (x->dims[k] == at->dims[k]) {
      emit_axis_from(x, k, at, k);
      continue;
    }
    emit_index *s = emit_operand_index(e, i, 1);
    emit_axis_at(s, 0, emit_pos_const(&e->x, k));
    dim room = emit_dims_difference(&e->x, x->dims[k], at->dims[k]);
    emit_pos start = emit_start(e, i->operands[1], s, room);
    emit_axis_at(x, k, emit_pos_add(&e->x, emit_index_dim(&e->x, at, k), start));
  }
  return emit_value(e, i->operands[0], x);
}

emit_pair emit_dynamic_update_slice(emit_element *e, const hlo_instr *i, const emit_index *at) {
  emit_pair old = emit_value(e, i->operands[0], at);
  emit_index *u = emit_operand_index(e, i, 1);
  uint32_t checked = 0;
  for (int k = 0; k < u->rank; k++) {
    if (at->dims[k] == u->dims[k]) {
      emit_axis_from(u, k, at, k);
      continue;
    }
    emit_index *s = emit_operand_index(e, i, 2);
    emit_axis_at(s, 0, emit_pos_const(&e->x, k));
    dim room = emit_dims_difference(&e->x, at->dims[k], u->dims[k]);
    emit_pos start = emit_pos_scale(&e->x, emit_start(e, i->operands[2], s, room), -1);
    emit_axis_at(u, k, emit_pos_add(&e->x, emit_index_dim(&e->x, at, k), start));
    checked |= (uint32_t)1 << k;
  }
  return emit_guarded(e, i->operands[1], u, checked, NULL, old);
}

/* --- gather and scatter --- */

emit_window_dims emit_window_dims_of(const hlo_instr *i, const shape *outer) {
  emit_window_dims w = {0};
  int n = 0;
  for (int k = 0; k < outer->rank; k++) {
    if (!hlo_has_int(i, HLO_ATTR_OFFSET_DIMS, k)) {
      w.batch[w.n_batch++] = k;
    }
  }
  for (int d = 0; d < operand(i, 0)->rank; d++) {
    w.offset_of[d] = hlo_is_window_dim(i, d) ? (int)hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[n++] : -1;
  }
  return w;
}

/* Returns the index of component `component` of the index vector for element `at` of the outer array
 * (emit_window_dims). */
static emit_index *vector_index(emit_element *e, const hlo_instr *i, const emit_window_dims *d, const emit_index *at,
                                int component) {
  emit_index *x = emit_operand_index(e, i, 1);
  int vector_dim = (int)hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM), b = 0;
  for (int k = 0; k < x->rank; k++) {
    if (k == vector_dim) {
      emit_axis_at(x, k, emit_pos_const(&e->x, component));
    } else {
      emit_axis_from(x, k, at, d->batch[b++]);
    }
  }
  return x;
}

void emit_window_starts(emit_element *e, const hlo_instr *i, const emit_window_dims *d, const emit_index *at,
                        const dim *sizes, bool clamp, emit_pos *starts) {
  int vector_dim = (int)hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM);
  for (int k = 0; k < operand(i, 0)->rank; k++) {
    starts[k] = emit_pos_const(&e->x, 0);
    int number = hlo_find_int(i, HLO_ATTR_INDEX_MAP, k), batch = hlo_find_int(i, HLO_ATTR_OPERAND_BATCH, k);
    if (number >= 0) {
      emit_index *x = vector_index(e, i, d, at, number);
      if (clamp) {
        dim room = emit_dims_difference(&e->x, operand(i, 0)->dims[k], sizes[k]);
        starts[k] = emit_start(e, i->operands[1], x, room);
      } else {
        LLVMValueRef n = emit_value(e, i->operands[1], x).v;
        bool is_signed = dtype_is_signed(hlo_type(i->operands[1]));
        starts[k] = emit_pos_at(LLVMBuildIntCast2(e->w->builder, n, e->w->i64, is_signed, ""), 1);
      }
    } else if (batch >= 0) {
      int64_t dim_of_indices = hlo_ints(i, HLO_ATTR_INDICES_BATCH)[batch];
      int b = (int)dim_of_indices - (dim_of_indices > vector_dim);
      starts[k] = emit_index_dim(&e->x, at, d->batch[b]);
    }
  }
}

/* --- lookup tables of 256 bytes --- */

static LLVMValueRef table_part(const emit_element *e, LLVMValueRef base, int64_t from) {
  LLVMValueRef at = emit_i64(e->w, from), p = LLVMBuildInBoundsGEP2(e->w->builder, e->w->i8, base, &at, 1, "");
  LLVMValueRef v = LLVMBuildLoad2(e->w->builder, emit_vector_type(e->w->i8, 64), p, "");
  LLVMSetAlignment(v, 1);
  return v;
}

/* Looks up 64 bytes in the 128 bytes of a lookup table that begin at `from`.  Each of the 64 bytes is an index, of
 * which only the lower seven bits count. */
static LLVMValueRef pick(const emit_element *e, LLVMValueRef base, int64_t from, LLVMValueRef bytes) {
  static const char name[] = "llvm.x86.avx512.vpermi2var.qi.512";
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->w->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
  LLVMValueRef args[] = {table_part(e, base, from), bytes, table_part(e, base, from + 64)};
  return LLVMBuildCall2(e->w->builder, LLVMGlobalGetValueType(f), f, args, 3, "");
}

/* Returns the address of the gather's lookup table if the table is an input of the kernel that shares no buffer with a
 * result, and the indices (converted bytes) are not an input.  Otherwise returns NULL. */
static LLVMValueRef table_base(const emit_element *e, const hlo_instr *i) {
  LLVMValueRef base = NULL;
  for (uint32_t k = 0; k < e->n_inputs; k++) {
    const emit_input *in = &e->inputs[k];
    if (hlo_value_equal(in->value, i->operands[1])) {
      return NULL;
    }
    base = hlo_value_equal(in->value, i->operands[0]) && !in->shared ? in->base : base;
  }
  return base;
}

/* Looks up as many bytes as there are lanes, at most 64, in a table of 256 bytes (hlo_is_lookup). */
static LLVMValueRef look_up(emit_element *e, const hlo_instr *i, LLVMValueRef base, const emit_index *at) {
  enum { MOST = 64 };
  int lanes = e->x.lanes, wide[MOST], narrow[MOST];
  LLVMValueRef bytes = emit_value(e, i->operands[1].def->operands[0], at).v;
  for (int k = 0; k < MOST; k++) {
    wide[k] = k % lanes;
    narrow[k] = k;
  }
  bytes = lanes == MOST ? bytes : emit_shuffle(e->w, bytes, NULL, wide, MOST);
  LLVMValueRef low = pick(e, base, 0, bytes), high = pick(e, base, 128, bytes);
  LLVMValueRef v = emit_select(e->w, emit_icmp(e->w, LLVMIntSLT, bytes, LLVMConstNull(LLVMTypeOf(bytes))), high, low);
  return lanes == MOST ? v : emit_shuffle(e->w, v, NULL, narrow, lanes);
}

emit_pair emit_gather(emit_element *e, const hlo_instr *i, const emit_index *at) {
  bool picks = e->w->target->permutes && e->x.lanes > 1 && e->x.lanes <= 64 && hlo_is_lookup(i);
  LLVMValueRef table = picks ? table_base(e, i) : NULL;
  if (table) {
    return (emit_pair){look_up(e, i, table, at), NULL};
  }
  emit_window_dims d = emit_window_dims_of(i, &i->shapes[0]);
  emit_pos starts[SHAPE_MAX_RANK];
  emit_window_starts(e, i, &d, at, hlo_ints(i, HLO_ATTR_SIZES), true, starts);
  emit_index *x = emit_operand_index(e, i, 0);
  for (int k = 0; k < x->rank; k++) {
    int outer = d.offset_of[k];
    bool whole = outer >= 0 && x->dims[k] == at->dims[outer];
    if (whole) { /* the window is as large as the operand, so that the start is 0 */
      emit_axis_from(x, k, at, outer);
    } else {
      emit_axis_at(x, k, outer < 0 ? starts[k] : emit_pos_add(&e->x, starts[k], emit_index_dim(&e->x, at, outer)));
    }
  }
  return emit_value(e, i->operands[0], x);
}
