/* memory.c - loads and stores of scalars and vectors; see element.h. */
#include "base/arith.h"
#include "emit/element/element.h"

/* Attaches the metadata that says what the access does not alias.  Loads never have the scope of the results, and
 * stores never have that of the inputs, since LLVM's mergefunc, which makes equal functions one, does not compare
 * scopes. */
static void annotate(const emit_element *e, LLVMValueRef access, bool shared, bool store, bool constant) {
  unsigned scope = LLVMGetMDKindIDInContext(e->w->context, "alias.scope", 11);
  unsigned noalias = LLVMGetMDKindIDInContext(e->w->context, "noalias", 7);
  if (!store && (constant || !shared)) {
    LLVMSetMetadata(access, LLVMGetMDKindIDInContext(e->w->context, "invariant.load", 14), e->invariant);
  }
  if (!shared && !constant) {
    LLVMSetMetadata(access, scope, store ? e->scope_results : e->scope_inputs);
    LLVMSetMetadata(access, noalias, store ? e->scope_inputs : e->scope_results);
  } else if (store) { /* the result shares its buffer with an input, whose loads have no alias scope */
    LLVMSetMetadata(access, noalias, e->scope_inputs);
  }
}

typedef struct access {
  emit_element *e;
  LLVMValueRef base;
  LLVMTypeRef type; /* the type of an element */
  unsigned align;
  bool shared, constant;
  const emit_pos *along; /* for masked accesses: the position along the innermost dimension, which has n elements; NULL
                            if the access is not masked */
  int64_t n;
} access;

/* Returns the address of element `at`.  LLVM is told that it is inside of the array (`inbounds`) if `inside` is true; a
 * masked vector may begin before its array. */
static LLVMValueRef address(const access *a, LLVMValueRef at, bool inside) {
  LLVMBuilderRef b = a->e->w->builder;
  return inside ? LLVMBuildInBoundsGEP2(b, a->type, a->base, &at, 1, "")
                : LLVMBuildGEP2(b, a->type, a->base, &at, 1, "");
}

static LLVMValueRef load_of(const access *a, LLVMTypeRef type, LLVMValueRef at) {
  LLVMValueRef v = LLVMBuildLoad2(a->e->w->builder, type, address(a, at, true), "");
  LLVMSetAlignment(v, a->align);
  annotate(a->e, v, a->shared, false, a->constant);
  return v;
}

static LLVMValueRef plus(const access *a, LLVMValueRef at, int64_t n) {
  return n ? LLVMBuildNSWAdd(a->e->w->builder, at, emit_i64(a->e->w, n), "") : at;
}

/* LLVM 19 writes one instruction of PTX to load 16 bytes, whatever their alignment, and a GPU fails if the address is
 * no multiple of 16.  So two vectors of 8 bytes are loaded unless the address is known to be such a multiple. */
static LLVMValueRef load_whole_vector(const access *a, LLVMValueRef at) {
  enum { LANES = 16 };
  const emit_ir *w = a->e->w;
  int lanes = a->e->x.lanes;
  if (w->target->execution != EMIT_BLOCKS || lanes != LANES || a->type != w->i8 || a->align >= LANES) {
    return load_of(a, LLVMVectorType(a->type, (unsigned)lanes), at);
  }
  LLVMTypeRef half = LLVMVectorType(a->type, LANES / 2);
  LLVMValueRef low = load_of(a, half, at), high = load_of(a, half, plus(a, at, LANES / 2));
  return emit_append(w, low, high);
}

/* Loads as many contiguous elements as there are lanes, from position `at` on, which is `skip` elements after the
 * element of lane 0.  A masked access loads only the elements that are in range. */
static LLVMValueRef load_vector(const access *a, LLVMValueRef at, int64_t skip) {
  const emit_ir *w = a->e->w;
  LLVMTypeRef type = LLVMVectorType(a->type, (unsigned)a->e->x.lanes);
  if (!a->along) {
    return load_whole_vector(a, at);
  }
  emit_pos place = emit_pos_add_const(&a->e->x, emit_pos_lanes(a->along->base, 1, 1), skip);
  LLVMValueRef lanes = emit_pos_vector(&a->e->x, place), mask = emit_icmp(w, LLVMIntULT, lanes, emit_i(lanes, a->n));
  LLVMTypeRef types[] = {type, w->ptr};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, LLVMLookupIntrinsicID("llvm.masked.load", 16), types, 2);
  LLVMValueRef args[] = {address(a, at, false), LLVMConstInt(w->i32, a->align, false), mask, LLVMConstNull(type)};
  LLVMValueRef v = LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, args, 4, "");
  annotate(a->e, v, a->shared, false, false);
  return v;
}

/* Returns the alignment of a vector that begins at element `at` of a buffer, up to 16 bytes.  A GPU accesses a vector
 * with one instruction only if it is aligned to its size.  For CPUs this makes no difference, so the result is the
 * alignment of an element in this access. */
static unsigned vector_align(const access *a, emit_pos at) {
  enum { MOST = 16 };
  unsigned align = a->align;
  bool matters = a->e->w->target->execution == EMIT_BLOCKS;
  while (matters && align < MOST && at.multiple % (2 * align / a->align) == 0) {
    align *= 2;
  }
  return align;
}

/* The distances of lanes from an element, and the range of them. */
typedef struct near {
  const emit_spread *at;
  int64_t least, most; /* the smallest and the largest distance */
} near;

static near range_of(const emit_indexer *x, const emit_spread *at) {
  near n = {at, INT64_MAX, INT64_MIN};
  for (int k = 0; k < x->lanes; k++) {
    n.least = min_i64(n.least, at->offsets[k]);
    n.most = max_i64(n.most, at->offsets[k]);
  }
  return n;
}

/* Elements next to each other that are loaded together, since some lanes need them. */
typedef struct chunk {
  int64_t from, start; /* the first one that is needed, and the first one that is loaded */
  int size;
} chunk;

/* Returns the chunk that begins with the smallest distance from `from` on, whose size is 0 if there is none.  It has
 * the elements that are needed of the next x->lanes ones.  All of it is between elements that are needed, so a chunk at
 * the end is moved back. */
static chunk next_chunk(const emit_indexer *x, const near *n, int64_t from) {
  chunk c = {INT64_MAX, 0, 0};
  for (int k = 0; k < x->lanes; k++) {
    c.from = n->at->offsets[k] >= from ? min_i64(c.from, n->at->offsets[k]) : c.from;
  }
  if (c.from == INT64_MAX) {
    return c;
  }
  int64_t last = c.from;
  for (int k = 0; k < x->lanes; k++) {
    last = n->at->offsets[k] > last && n->at->offsets[k] - c.from < x->lanes ? n->at->offsets[k] : last;
  }
  c.size = 1;
  while (c.size <= last - c.from && 2 * c.size <= n->most - n->least + 1) {
    c.size *= 2;
  }
  c.start = min_i64(c.from, n->most + 1 - c.size);
  return c;
}

/* Returns true if the lanes are so near to each other that vectors should be loaded in place of single elements. */
static bool are_near(const emit_indexer *x, const near *n) {
  enum { FEW = 4 }; /* so many vectors are loaded in any case; of more, each has two needed elements on average */
  int chunks = 0;
  for (chunk c = next_chunk(x, n, n->least); c.size && chunks <= x->lanes; c = next_chunk(x, n, c.start + c.size)) {
    chunks++;
  }
  return chunks <= FEW || chunks <= x->lanes / 2;
}

/* Loads vectors of contiguous elements that contain those of all lanes, and shuffles them. */
static LLVMValueRef load_near(const access *a, const near *n) {
  emit_indexer *x = &a->e->x;
  int lanes = x->lanes, mask[EMIT_MOST_LANES];
  LLVMValueRef r = NULL;
  for (chunk c = next_chunk(x, n, n->least); c.size; c = next_chunk(x, n, c.start + c.size)) {
    access part = *a;
    part.align = vector_align(a, emit_pos_at(n->at->first, gcd_i64(n->at->multiple, c.start)));
    x->lanes = c.size;
    LLVMValueRef v = load_vector(&part, plus(a, n->at->first, c.start), c.start);
    x->lanes = lanes;
    v = emit_lanes_of(a->e->w, v, 0, lanes);
    for (int k = 0; k < lanes; k++) {
      bool here = n->at->offsets[k] >= c.from && n->at->offsets[k] < c.start + c.size;
      mask[k] = here ? (r ? lanes : 0) + (int)(n->at->offsets[k] - c.start) : k;
    }
    r = emit_shuffle(a->e->w, r ? r : v, r ? v : NULL, mask, lanes);
  }
  return r;
}

static LLVMValueRef load_lanes(const access *a, emit_pos at) {
  const emit_ir *w = a->e->w;
  LLVMValueRef r = LLVMGetPoison(LLVMVectorType(a->type, (unsigned)a->e->x.lanes));
  for (int k = 0; k < a->e->x.lanes; k++) {
    LLVMValueRef index = at.step == EMIT_SCATTERED ? LLVMBuildSExt(w->builder, emit_lane(w, at.base, k), w->i64, "")
                                                   : plus(a, at.base, k * at.step);
    r = emit_set_lane(w, r, load_of(a, a->type, index), k);
  }
  return r;
}

static LLVMValueRef load_part(const access *a, emit_pos at) {
  int lanes = a->e->x.lanes;
  if (lanes == 1) {
    return load_of(a, a->type, at.base);
  }
  if (at.step == 0) {
    return emit_splat(a->e->w, load_of(a, a->type, at.base), lanes);
  }
  if (at.step == 1) {
    access aligned = *a;
    aligned.align = vector_align(a, at);
    return load_vector(&aligned, at.base, 0);
  }
  const emit_spread *spread = emit_pos_spread(&a->e->x, at);
  if (!spread) {
    return load_lanes(a, at);
  }
  near n = range_of(&a->e->x, spread);
  return are_near(&a->e->x, &n) ? load_near(a, &n) : load_lanes(a, at);
}

static access access_of(emit_element *e, LLVMValueRef base, dtype t, bool shared, bool constant) {
  unsigned bytes = (unsigned)dtype_bytes(t);
  return (access){e,    base, emit_memory_type(e->w, t), dtype_is_complex(t) ? bytes / 2 : bytes, shared, constant,
                  NULL, 0};
}

/* As access_of, for loads.  An operand that shares no buffer with a result may be at any address
 * (emit_target.unaligned). */
static access load_access_of(emit_element *e, LLVMValueRef base, dtype t, bool shared, bool constant) {
  access a = access_of(e, base, t, shared, constant);
  a.align = !shared && !constant && e->w->target->unaligned ? 1 : a.align;
  return a;
}

emit_pair emit_load(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, bool shared, bool constant) {
  access a = load_access_of(e, base, t, shared, constant);
  if (dtype_is_complex(t)) {
    emit_pos re = emit_pos_scale(&e->x, at, 2);
    return (emit_pair){load_part(&a, re), load_part(&a, emit_pos_add_const(&e->x, re, 1))};
  }
  return (emit_pair){emit_from_memory(e->w, t, load_part(&a, at)), NULL};
}

bool emit_masks_loads(const emit_element *e, dtype t) {
  int bits = e->w->target->vector_bits;
  size_t bytes = dtype_bytes(t);
  return !dtype_is_complex(t) && (bits >= 512 || (bits >= 256 && (bytes == 4 || bytes == 8)));
}

emit_pair emit_load_masked(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pos along, int64_t n,
                           bool shared) {
  access a = load_access_of(e, base, t, shared, false);
  a.along = &along;
  a.n = n;
  return (emit_pair){emit_from_memory(e->w, t, load_part(&a, at)), NULL};
}

static void store_part(const access *a, emit_pos at, LLVMValueRef v) {
  const emit_ir *w = a->e->w;
  int lanes = a->e->x.lanes, n = lanes > 1 && at.step != 1 ? lanes : 1;
  for (int k = 0; k < n; k++) {
    LLVMValueRef index = at.base;
    if (n > 1) {
      index = at.step == EMIT_SCATTERED ? LLVMBuildSExt(w->builder, emit_lane(w, at.base, k), w->i64, "")
                                        : plus(a, at.base, k * at.step);
    }
    LLVMValueRef store = LLVMBuildStore(w->builder, n > 1 ? emit_lane(w, v, k) : v, address(a, index, true));
    LLVMSetAlignment(store, n > 1 ? a->align : vector_align(a, at));
    annotate(a->e, store, a->shared, true, false);
  }
}

void emit_store(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pair v, bool shared) {
  access a = access_of(e, base, t, shared, false);
  if (dtype_is_complex(t)) {
    emit_pos re = emit_pos_scale(&e->x, at, 2);
    store_part(&a, re, v.v);
    store_part(&a, emit_pos_add_const(&e->x, re, 1), v.im);
    return;
  }
  store_part(&a, at, emit_to_memory(e->w, t, v.v));
}
