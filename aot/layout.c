/* layout.c - the words of the context, and the function that binds it to the sizes of the inputs, as
 * runtime/exec/binding.c binds a loaded program. */
#include "aot/host.h"

#include "runtime/kernel_abi.h"

/* --- the context --- */

static void take_words(aot_host *h, uint32_t n, uint32_t *first) {
  *first = h->n_words;
  h->n_words += n;
}

/* Returns true if port k has memory of its own in the arena that keeps its contents from run to run (if `kept` is true)
 * or does not keep them (if `kept` is false). */
static bool has_own_memory(const aot_ports *ports, uint32_t k, bool kept) {
  return (ports->storage[k] == AOT_KEPT) == kept && ports->storage[k] != AOT_SHARED;
}

/* Gives the ports that has_own_memory selects their places in the arena. */
static void place_ports(aot_host *h, aot_ports *ports, bool kept) {
  for (uint32_t k = 0; k < ports->n; k++) {
    if (has_own_memory(ports, k, kept)) {
      ports->at[k] = h->arena_bytes;
      h->arena_bytes += aot_pad((uint64_t)shape_bytes(&ports->io[k].shape));
    }
  }
}

static void share_ports(const aot_host *h, aot_ports *ports) {
  for (uint32_t k = 0; k < ports->n; k++) {
    ports->at[k] = ports->storage[k] == AOT_SHARED ? h->inputs.at[ports->kept_in[k]] : ports->at[k];
  }
}

/* Lays out the arena: the ports that are kept, then the arena of the program, then the other inputs and outputs. */
static void lay_out_arena(aot_host *h) {
  h->inputs.at = ARENA_NEW_N(h->arena, uint64_t, h->inputs.n);
  h->outputs.at = ARENA_NEW_N(h->arena, uint64_t, h->outputs.n);
  place_ports(h, &h->inputs, true);
  h->kept_bytes = h->arena_bytes;
  h->arena_bytes += aot_pad(h->program->arena_bytes);
  place_ports(h, &h->inputs, false);
  place_ports(h, &h->outputs, false);
  share_ports(h, &h->inputs);
  share_ports(h, &h->outputs);
  h->arena_bytes = h->arena_bytes ? h->arena_bytes : RT_KERNEL_ALIGN; /* 0 would mean that the sizes are refused */
}

static void take_port_words(aot_host *h, aot_ports *ports) {
  take_words(h, ports->n, &ports->given);
  take_words(h, ports->n, &ports->used);
  take_words(h, aot_is_static(h) ? 0 : ports->n, &ports->offsets);
}

/* Returns the symbolic sizes of the inputs that are kept from run to run. */
static const rt_size *kept_sizes(const aot_host *h, uint32_t *n) {
  rt_size *sizes = ARENA_NEW_N(h->arena, rt_size, (size_t)h->inputs.n * SHAPE_MAX_RANK);
  *n = 0;
  for (uint32_t k = 0; k < h->inputs.n; k++) {
    const shape *s = &h->inputs.io[k].shape;
    for (int d = 0; d < s->rank && h->inputs.storage[k] == AOT_KEPT; d++) {
      if (s->dims[d] < 0) {
        sizes[(*n)++] = s->dims[d];
      }
    }
  }
  return sizes;
}

void aot_lay_out_context(aot_host *h) {
  uint32_t n_kept;
  (void)kept_sizes(h, &n_kept);
  h->n_words = WORD_FIRST_LIST;
  take_port_words(h, &h->inputs);
  take_port_words(h, &h->outputs);
  take_words(h, h->program->n_sizes, &h->sizes);
  take_words(h, h->program->n_slots, &h->slots);
  take_words(h, h->program->n_slots, &h->slot_bytes);
  take_words(h, n_kept, &h->kept_sizes);
  if (aot_is_static(h)) {
    lay_out_arena(h);
  }
}

/* --- sizes --- */

/* Returns an i1 that is true if x is not in [-DIM_MAX, DIM_MAX], the range of sizes (dim_operate). */
static LLVMValueRef is_outside(const aot_host *h, LLVMValueRef x) {
  LLVMValueRef shifted = aot_binary(h, LLVMAdd, x, aot_i64(h, DIM_MAX));
  return aot_compare(h, LLVMIntUGT, shifted, aot_i64(h, 2 * DIM_MAX));
}

/* Returns an i1 that is true if the product of two sizes is too large.  The product of two f64 decides, since an
 * overflow of 64 bits cannot be seen in the 64-bit product itself. */
static LLVMValueRef is_large_product(const aot_host *h, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef w = h->ir->builder;
  LLVMValueRef x = LLVMBuildSIToFP(w, a, h->ir->f64, ""), y = LLVMBuildSIToFP(w, b, h->ir->f64, "");
  LLVMValueRef product = LLVMBuildFMul(w, x, y, ""), most = LLVMConstReal(h->ir->f64, (double)DIM_MAX);
  LLVMValueRef above = LLVMBuildFCmp(w, LLVMRealOGT, product, most, "");
  return LLVMBuildOr(w, above, LLVMBuildFCmp(w, LLVMRealOLT, product, LLVMBuildFNeg(w, most, ""), ""), "");
}

static LLVMValueRef select_value(const aot_host *h, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(h->ir->builder, c, a, b, "");
}

static LLVMValueRef floor_quotient(const aot_host *h, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef rest = aot_binary(h, LLVMSRem, a, b), below = aot_compare(h, LLVMIntSLT, rest, aot_i64(h, 0));
  LLVMValueRef less = LLVMBuildZExt(h->ir->builder, below, h->ir->i64, "");
  return aot_binary(h, LLVMSub, aot_binary(h, LLVMSDiv, a, b), less);
}

/* Returns the result of the operation on the sizes a and b, as dim_operate computes it.  Sets *bad to an i1 that is
 * true if there is no result: a divisor is not positive, or a product is too large. */
static LLVMValueRef operate(const aot_host *h, dim_kind op, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *bad) {
  LLVMValueRef zero = aot_i64(h, 0), no_divisor = aot_compare(h, LLVMIntSLE, b, zero);
  LLVMValueRef divisor = select_value(h, no_divisor, aot_i64(h, 1), b);
  bool divides = op == DIM_FLOORDIV || op == DIM_CEILDIV || op == DIM_MOD;
  *bad = divides ? no_divisor : op == DIM_MUL ? is_large_product(h, a, b) : LLVMConstInt(h->ir->i1, 0, 0);
  switch (op) {
    case DIM_ADD: return aot_binary(h, LLVMAdd, a, b);
    case DIM_MUL: return aot_binary(h, LLVMMul, a, b);
    case DIM_FLOORDIV: return floor_quotient(h, a, divisor);
    case DIM_CEILDIV: return aot_binary(h, LLVMSub, zero, floor_quotient(h, aot_binary(h, LLVMSub, zero, a), divisor));
    case DIM_MOD: return aot_binary(h, LLVMSub, a, aot_binary(h, LLVMMul, divisor, floor_quotient(h, a, divisor)));
    case DIM_MAX_OF: return select_value(h, aot_compare(h, LLVMIntSGT, a, b), a, b);
    case DIM_MIN_OF: return select_value(h, aot_compare(h, LLVMIntSLT, a, b), a, b);
    default: return aot_binary(h, LLVMSub, zero, a);
  }
}

static void return_if_bad(const aot_host *h, LLVMValueRef bad) {
  aot_return_if(h, bad, aot_error_value(h, AOT_WRONG_SIZES));
}

/* Computes all sizes into the context.  The symbolic dimensions are parameters 1, 2, ... of the function. */
static void write_sizes(const aot_host *h) {
  uint32_t next = 1;
  for (uint32_t k = 0; k < h->program->n_sizes; k++) {
    const rt_size_node *n = &h->program->sizes[k];
    LLVMValueRef bad = LLVMConstInt(h->ir->i1, 0, 0), x;
    if (n->op == DIM_SYMBOL) {
      x = aot_param(h, next++);
      bad = aot_compare(h, LLVMIntSLT, x, aot_i64(h, 0));
    } else {
      x = operate(h, (dim_kind)n->op, aot_size(h, n->a), aot_size(h, n->b), &bad);
    }
    return_if_bad(h, LLVMBuildOr(h->ir->builder, bad, is_outside(h, x), ""));
    aot_set(h, h->sizes + k, x);
  }
}

/* --- guards --- */

static LLVMIntPredicate opposite_of(dim_relation r) {
  switch (r) {
    case DIM_EQUAL: return LLVMIntNE;
    case DIM_NOT_EQUAL: return LLVMIntEQ;
    case DIM_AT_MOST: return LLVMIntSGT;
    default: return LLVMIntSGE;
  }
}

static void write_guards(aot_host *h) {
  for (uint32_t k = 0; k < h->program->n_guards; k++) {
    const rt_guard *g = &h->program->guards[k];
    LLVMIntPredicate fails = opposite_of((dim_relation)g->relation);
    LLVMValueRef bad = aot_compare(h, fails, aot_size(h, g->a), aot_size(h, g->b));
    const char *text =
        arena_printf(h->arena, "%s%sthe object is for sizes with %s", g->source, *g->source ? ": " : "", g->text);
    aot_return_if(h, bad, aot_site_error(h, text));
  }
}

/* Checks that no dimension that is computed from symbols is negative. */
static void write_dim_checks(const aot_host *h, const aot_ports *ports) {
  for (uint32_t k = 0; k < ports->n; k++) {
    for (int d = 0; d < ports->io[k].shape.rank; d++) {
      rt_size s = ports->io[k].shape.dims[d];
      if (s < 0 && h->program->sizes[-(s + 1)].op != DIM_SYMBOL) {
        return_if_bad(h, aot_compare(h, LLVMIntSLT, aot_size(h, s), aot_i64(h, 0)));
      }
    }
  }
}

/* A symbol stands for a dimension of an input, and the caller gives its size.  If the shape of that input has an
 * expression of the symbol there, such as 32*(h/32), checks that the expression has the size that the caller gives. */
static void write_symbol_checks(const aot_host *h) {
  for (uint32_t k = 0; k < h->program->n_sizes; k++) {
    const rt_size_node *n = &h->program->sizes[k];
    rt_size s = n->op == DIM_SYMBOL ? h->program->params[n->a].shape.dims[n->b] : -(rt_size)k - 1;
    if (s != -(rt_size)k - 1) {
      return_if_bad(h, aot_compare(h, LLVMIntNE, aot_size(h, s), aot_get(h, h->sizes + k)));
    }
  }
}

/* --- the arena --- */

/* The lists that the function place_slots reads and writes, with a word for each of the n slots.  The slots' offsets
 * and sizes are in the context.  The first and last steps of their lives are constants. */
typedef struct placing {
  const aot_host *h;
  LLVMValueRef offsets, bytes, first, last, n;
} placing;

static LLVMValueRef read_at(const placing *p, LLVMValueRef list, LLVMValueRef k) {
  return aot_load(p->h, p->h->ir->i64, aot_element(p->h, list, k));
}

static LLVMValueRef both(const placing *p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildAnd(p->h->ir->builder, a, b, "");
}

/* Returns the number of the largest slot that has no place yet. */
static LLVMValueRef write_largest(const placing *p) {
  const aot_host *h = p->h;
  LLVMValueRef start[] = {aot_i64(h, 0), aot_i64(h, -1)};
  emit_loop l;
  emit_loop_begin(h->ir, &l, aot_i64(h, 0), p->n, 1, true, 2, start);
  LLVMValueRef bytes = read_at(p, p->bytes, l.iv);
  LLVMValueRef is_free = aot_compare(h, LLVMIntSLT, read_at(p, p->offsets, l.iv), aot_i64(h, 0));
  LLVMValueRef better = both(p, is_free, aot_compare(h, LLVMIntSGT, bytes, l.carried[1]));
  emit_loop_end(
      h->ir, &l,
      (LLVMValueRef[]){select_value(h, better, l.iv, l.carried[0]), select_value(h, better, bytes, l.carried[1])});
  return l.carried[0];
}

/* Returns an i1 that is true if slots j and k are live at the same time and j has a place. */
static LLVMValueRef meets(const placing *p, LLVMValueRef j, LLVMValueRef k) {
  const aot_host *h = p->h;
  LLVMValueRef placed = aot_compare(h, LLVMIntSGE, read_at(p, p->offsets, j), aot_i64(h, 0));
  LLVMValueRef begins = aot_compare(h, LLVMIntSLE, read_at(p, p->first, j), read_at(p, p->last, k));
  LLVMValueRef ends = aot_compare(h, LLVMIntSLE, read_at(p, p->first, k), read_at(p, p->last, j));
  return both(p, placed, both(p, begins, ends));
}

/* Writes a loop over all slots that moves `at`, where slot k should begin, to after each slot that slot k would
 * overlap.  Returns the new place. */
static LLVMValueRef write_pass(const placing *p, LLVMValueRef k, LLVMValueRef at) {
  const aot_host *h = p->h;
  emit_loop l;
  emit_loop_begin(h->ir, &l, aot_i64(h, 0), p->n, 1, true, 1, &at);
  LLVMValueRef begin = read_at(p, p->offsets, l.iv), now = l.carried[0];
  LLVMValueRef end = aot_binary(h, LLVMAdd, begin, read_at(p, p->bytes, l.iv));
  LLVMValueRef below = aot_compare(h, LLVMIntSLT, now, end);
  LLVMValueRef own_end = aot_binary(h, LLVMAdd, now, read_at(p, p->bytes, k));
  LLVMValueRef overlaps = both(p, below, aot_compare(h, LLVMIntSLT, begin, own_end));
  LLVMValueRef next = select_value(h, both(p, meets(p, l.iv, k), overlaps), end, now);
  emit_loop_end(h->ir, &l, &next);
  return l.carried[0];
}

/* Returns the lowest place at which slot k overlaps no other: passes are repeated until nothing moves. */
static LLVMValueRef write_lowest(const placing *p, LLVMValueRef k) {
  const aot_host *h = p->h;
  LLVMBasicBlockRef before = emit_here(h->ir), pass = emit_block(h->ir, "pass"), done = emit_block(h->ir, "placed");
  LLVMBuildBr(h->ir->builder, pass);
  LLVMPositionBuilderAtEnd(h->ir->builder, pass);
  LLVMValueRef at = LLVMBuildPhi(h->ir->builder, h->ir->i64, "at"), zero = aot_i64(h, 0);
  LLVMValueRef next = write_pass(p, k, at);
  LLVMBasicBlockRef here = emit_here(h->ir);
  LLVMBuildCondBr(h->ir->builder, aot_compare(h, LLVMIntEQ, next, at), done, pass);
  LLVMAddIncoming(at, (LLVMValueRef[]){zero, next}, (LLVMBasicBlockRef[]){before, here}, 2);
  LLVMPositionBuilderAtEnd(h->ir->builder, done);
  return next;
}

/* Writes a function that places all slots, the largest first, each at the lowest offset that is free during its life
 * (base/placement.h), and returns the bytes of the arena. */
static LLVMValueRef write_place_slots(aot_host *h) {
  const rt_program *r = h->program;
  int64_t *first = ARENA_NEW_N(h->arena, int64_t, r->n_slots), *last = ARENA_NEW_N(h->arena, int64_t, r->n_slots);
  for (uint32_t k = 0; k < r->n_slots; k++) {
    first[k] = r->slots[k].first;
    last[k] = r->slots[k].last;
  }
  LLVMValueRef f = aot_function(h, AOT_INTERNAL, "place_slots", h->ir->i64, 1, &h->ir->ptr), zero = aot_i64(h, 0);
  placing p = {h,
               aot_word(h, h->slots),
               aot_word(h, h->slot_bytes),
               aot_numbers(h, r->n_slots, first),
               aot_numbers(h, r->n_slots, last),
               aot_i64(h, r->n_slots)};
  emit_loop l;
  emit_loop_begin(h->ir, &l, zero, p.n, 1, true, 1, &zero);
  LLVMValueRef k = write_largest(&p), at = write_lowest(&p, k);
  aot_store(h, at, aot_element(h, p.offsets, k));
  LLVMValueRef end = aot_binary(h, LLVMAdd, at, read_at(&p, p.bytes, k));
  LLVMValueRef most = select_value(h, aot_compare(h, LLVMIntSGT, end, l.carried[0]), end, l.carried[0]);
  emit_loop_end(h->ir, &l, &most);
  LLVMBuildRet(h->ir->builder, l.carried[0]);
  return f;
}

/* Returns a table of the sizes of the slots as the program has them (rt_size). */
static LLVMValueRef slot_sizes(const aot_host *h) {
  int64_t *sizes = ARENA_NEW_N(h->arena, int64_t, h->program->n_slots);
  for (uint32_t k = 0; k < h->program->n_slots; k++) {
    sizes[k] = h->program->slots[k].bytes;
  }
  return aot_numbers(h, h->program->n_slots, sizes);
}

/* Returns the value of `size`, an rt_size that was read from a table: a number, or ~k for size k of the program. */
static LLVMValueRef size_value(const aot_host *h, LLVMValueRef size) {
  LLVMValueRef zero = aot_i64(h, 0), is_number = aot_compare(h, LLVMIntSGE, size, zero);
  LLVMValueRef k = select_value(h, is_number, zero, LLVMBuildNot(h->ir->builder, size, ""));
  return select_value(h, is_number, size, aot_load(h, h->ir->i64, aot_element(h, aot_word(h, h->sizes), k)));
}

/* Writes a loop over the slots, since there may be thousands of them.  The loop sets the bytes of each slot, and its
 * offset to -1, which means that the slot has no place yet.  The code returns an error if the bytes of a slot are
 * negative or the sum of all is out of the range of sizes. */
static void write_slot_bytes(const aot_host *h) {
  LLVMValueRef table = slot_sizes(h), zero = aot_i64(h, 0), start[] = {zero, LLVMConstInt(h->ir->i1, 0, 0)};
  emit_loop l;
  emit_loop_begin(h->ir, &l, zero, aot_i64(h, h->program->n_slots), 1, false, 2, start);
  LLVMValueRef bytes = size_value(h, aot_load(h, h->ir->i64, aot_element(h, table, l.iv)));
  LLVMValueRef room = aot_padded(h, bytes), sum = aot_binary(h, LLVMAdd, l.carried[0], room);
  LLVMValueRef wrong = LLVMBuildOr(h->ir->builder, aot_compare(h, LLVMIntSLT, bytes, zero), is_outside(h, sum), "");
  aot_store(h, room, aot_element(h, aot_word(h, h->slot_bytes), l.iv));
  aot_store(h, aot_i64(h, -1), aot_element(h, aot_word(h, h->slots), l.iv));
  emit_loop_end(h->ir, &l, (LLVMValueRef[]){sum, LLVMBuildOr(h->ir->builder, wrong, l.carried[1], "")});
  return_if_bad(h, l.carried[1]);
}

/* Returns the bytes of the port's array, after a check that they are not too many. */
static LLVMValueRef checked_io_bytes(const aot_host *h, const rt_io *io) {
  LLVMValueRef bytes = aot_i64(h, (int64_t)dtype_bytes((dtype)io->shape.type));
  for (int k = 0; k < io->shape.rank; k++) {
    LLVMValueRef size = aot_size(h, io->shape.dims[k]);
    return_if_bad(h, is_large_product(h, bytes, size));
    bytes = aot_binary(h, LLVMMul, bytes, size);
  }
  return bytes;
}

/* Gives the ports that has_own_memory selects their places in the arena, from `at` on.  Returns where the last one
 * ends. */
static LLVMValueRef write_port_offsets(const aot_host *h, const aot_ports *ports, bool kept, LLVMValueRef at) {
  for (uint32_t k = 0; k < ports->n; k++) {
    if (has_own_memory(ports, k, kept)) {
      aot_set(h, ports->offsets + k, at);
      at = aot_binary(h, LLVMAdd, at, aot_padded(h, checked_io_bytes(h, &ports->io[k])));
      return_if_bad(h, is_outside(h, at));
    }
  }
  return at;
}

static void write_shared_offsets(const aot_host *h, const aot_ports *ports) {
  for (uint32_t k = 0; k < ports->n; k++) {
    if (ports->storage[k] == AOT_SHARED) {
      aot_set(h, ports->offsets + k, aot_get(h, h->inputs.offsets + ports->kept_in[k]));
    }
  }
}

/* Lays out the arena as lay_out_arena does, and returns its bytes.  `place` is the function that write_place_slots
 * wrote; NULL if there are no slots. */
static LLVMValueRef write_arena(const aot_host *h, LLVMValueRef place) {
  LLVMValueRef context = h->context, end = write_port_offsets(h, &h->inputs, true, aot_i64(h, 0));
  aot_set(h, WORD_KEPT_BYTES, end);
  if (place) {
    end = aot_binary(h, LLVMAdd, end, aot_call(h, place, 1, &context));
  }
  end = write_port_offsets(h, &h->inputs, false, end);
  end = write_port_offsets(h, &h->outputs, false, end);
  write_shared_offsets(h, &h->inputs);
  write_shared_offsets(h, &h->outputs);
  LLVMValueRef none = aot_compare(h, LLVMIntEQ, end, aot_i64(h, 0));
  return select_value(h, none, aot_i64(h, RT_KERNEL_ALIGN), end);
}

/* Writes i32 lay_out(context, dims...), which checks the dimensions and stores in the context what follows from them:
 * all sizes, the places of slots and ports, and the bytes of the arena.  It returns an aot_error. */
static LLVMValueRef write_lay_out(aot_host *h, uint32_t n, const LLVMTypeRef *types) {
  LLVMValueRef place = h->program->n_slots ? write_place_slots(h) : NULL;
  LLVMValueRef f = aot_function(h, AOT_INTERNAL, "lay_out", h->ir->i32, n, types);
  write_sizes(h);
  write_symbol_checks(h);
  write_guards(h); /* before the other checks of dimensions, since the texts of guards say more */
  write_dim_checks(h, &h->inputs);
  write_dim_checks(h, &h->outputs);
  write_slot_bytes(h);
  aot_set(h, WORD_ARENA_BYTES, write_arena(h, place));
  aot_return(h, AOT_OK);
  return f;
}

/* --- the functions --- */

/* Writes uint64_t arena_bytes(dims...), which returns the bytes of the arena for these sizes, or 0 if the program does
 * not serve them. */
static void write_arena_bytes(aot_host *h, LLVMValueRef lay_out, uint32_t n) {
  LLVMTypeRef *types = ARENA_NEW_N(h->arena, LLVMTypeRef, n + 1);
  LLVMValueRef *args = ARENA_NEW_N(h->arena, LLVMValueRef, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    types[k] = h->ir->i64;
  }
  (void)aot_function(h, AOT_VERSIONED, "arena_bytes", h->ir->i64, n, types);
  if (!lay_out) {
    LLVMBuildRet(h->ir->builder, aot_i64(h, (int64_t)h->arena_bytes));
    return;
  }
  h->context = args[0] = LLVMBuildArrayAlloca(h->ir->builder, h->ir->i64, aot_i64(h, h->n_words), "");
  for (uint32_t k = 0; k < n; k++) {
    args[k + 1] = aot_param(h, k);
  }
  LLVMValueRef failed = aot_call(h, lay_out, n + 1, args);
  LLVMValueRef bad = aot_compare(h, LLVMIntNE, failed, aot_error_value(h, AOT_OK));
  LLVMBuildRet(h->ir->builder, select_value(h, bad, aot_i64(h, 0), aot_get(h, WORD_ARENA_BYTES)));
}

/* Writes code that stores in the context the sizes of the ports that are kept.  Returns an i1 that is true if these
 * ports lie in other memory, or have other sizes, than after the last bind that succeeded. */
static LLVMValueRef is_kept_elsewhere(const aot_host *h, LLVMValueRef memory) {
  LLVMValueRef other = aot_compare(h, LLVMIntNE, memory, aot_get_ptr(h, WORD_ARENA));
  uint32_t n;
  const rt_size *sizes = kept_sizes(h, &n);
  for (uint32_t k = 0; k < n; k++) {
    LLVMValueRef size = aot_size(h, sizes[k]);
    LLVMValueRef differs = aot_compare(h, LLVMIntNE, size, aot_get(h, h->kept_sizes + k));
    other = LLVMBuildOr(h->ir->builder, other, differs, "");
    aot_set(h, h->kept_sizes + k, size);
  }
  return other;
}

/* Sets the arena, and where the memory for intermediate values begins in it.  If the ports that are kept lie elsewhere
 * than before, or have other sizes, they are set to zeros. */
static void write_arena_words(const aot_host *h, LLVMValueRef memory) {
  LLVMValueRef other = h->options->n_carried ? is_kept_elsewhere(h, memory) : NULL;
  if (aot_is_static(h)) {
    aot_set(h, WORD_KEPT_BYTES, aot_i64(h, (int64_t)h->kept_bytes));
  }
  LLVMValueRef bytes = aot_get(h, WORD_KEPT_BYTES);
  aot_set(h, WORD_ARENA, memory);
  aot_set(h, WORD_SCRATCH, aot_offset(h, memory, bytes));
  if (other) {
    LLVMBasicBlockRef clear = emit_if_begin(h->ir, other);
    LLVMBuildMemSet(h->ir->builder, memory, LLVMConstInt(h->ir->i8, 0, 0), bytes, RT_KERNEL_ALIGN);
    emit_if_end(h->ir, clear);
  }
}

/* Writes int bind(context, arena, dims...).  If it fails, the ports that are kept stay as they are for the next bind.
 */
static void write_bind(aot_host *h, LLVMValueRef lay_out, uint32_t n) {
  LLVMTypeRef *types = ARENA_NEW_N(h->arena, LLVMTypeRef, n + 2);
  LLVMValueRef *args = ARENA_NEW_N(h->arena, LLVMValueRef, n + 1);
  for (uint32_t k = 0; k < n + 2; k++) {
    types[k] = k < 2 ? h->ir->ptr : h->ir->i64;
  }
  (void)aot_function(h, AOT_VERSIONED, "bind", h->ir->i32, n + 2, types);
  LLVMValueRef state = aot_get(h, WORD_STATE), ready = aot_i64(h, AOT_INITIALISED);
  aot_return_if(h, aot_compare(h, LLVMIntULT, state, ready), aot_error_value(h, AOT_NOT_READY));
  aot_set(h, WORD_STATE, ready);
  aot_return_if(h, aot_is_unusable(h, aot_param(h, 1), RT_KERNEL_ALIGN), aot_error_value(h, AOT_WRONG_MEMORY));
  args[0] = h->context;
  for (uint32_t k = 0; k < n; k++) {
    args[k + 1] = aot_param(h, k + 2);
  }
  for (uint32_t k = h->outputs.n_named; k < h->outputs.n; k++) {
    aot_set(h, h->outputs.used + k, aot_i64(h, 0)); /* no run has computed this size yet */
  }
  if (lay_out) {
    LLVMValueRef failed = aot_call(h, lay_out, n + 1, args);
    aot_return_if(h, aot_compare(h, LLVMIntNE, failed, aot_error_value(h, AOT_OK)), failed);
  }
  write_arena_words(h, aot_param(h, 1));
  aot_set(h, WORD_STATE, aot_i64(h, AOT_BOUND));
  aot_return(h, AOT_OK);
}

void aot_write_bind(aot_host *h) {
  LLVMTypeRef *types = ARENA_NEW_N(h->arena, LLVMTypeRef, h->n_dims + 1);
  for (uint32_t k = 0; k <= h->n_dims; k++) {
    types[k] = k ? h->ir->i64 : h->ir->ptr;
  }
  LLVMValueRef lay_out = aot_is_static(h) ? NULL : write_lay_out(h, h->n_dims + 1, types);
  write_arena_bytes(h, lay_out, h->n_dims);
  write_bind(h, lay_out, h->n_dims);
}
