/* mma_product_factors.c - how a block's factors get to shared memory, and from there to fragments; see
 * mma_product_internal.h. */
#include <assert.h>

#include "emit/blocks/mma_product_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"

enum { CHUNK = EMIT_MMA_CHUNK, CHUNKS = EMIT_MMA_CHUNKS, PITCH = EMIT_MMA_PITCH, SIDE = EMIT_MMA_SIDE };
enum { WORD_BYTES = sizeof(int32_t), CHUNK_BYTES = CHUNK * WORD_BYTES };
_Static_assert((int)CHUNK_BYTES == (int)EMIT_TILE_COPY, "a chunk is copied at once");

LLVMValueRef emit_mma_word(const emit_mma_kernel *k, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->ir->i32, k->memory, &at, 1, "");
}

static int factors_of_chunk(const emit_mma_side *s) { return (int)(CHUNK_BYTES / dtype_bytes(s->type)); }

/* Returns how many chunks of a side each thread brings. */
static int chunks_of(const emit_mma_kernel *k, const emit_mma_side *s) {
  int64_t n = s->extent * CHUNKS / k->threads;
  assert(n > 0 && n <= EMIT_MMA_MOST_CHUNKS && s->extent * CHUNKS % k->threads == 0);
  return (int)n;
}

/* --- sides --- */

/* Returns true if chunks of the side can be copied: their factors are not computed, not rounded, and next to each
 * other; if they belong to neighbouring rows or columns, they must have 2 bytes.  Sets *across to whether the factors
 * of a chunk belong to neighbouring rows or columns, at one position in the sum; otherwise they belong to one row or
 * column. */
static bool has_copies(const emit_mma_kernel *k, const emit_mma_side *s, bool *across) {
  bool rounds = s->type == DTYPE_F32 && !k->tile.split;
  return !rounds && emit_has_tile_copies(&k->w.e, &k->g, s->operand, s->type, across) &&
         (!*across || dtype_bytes(s->type) == 2);
}

/* Returns how the side's factors are brought.  Vectors must divide the operand's innermost dimension.  Vectors along
 * rows or columns must divide the number of rows or columns as well, since the innermost dimension may be one of the
 * batch. */
static emit_mma_transport choose_transport(const emit_mma_kernel *k, const emit_mma_side *s) {
  const hlo_instr *c = k->g.c;
  hlo_value v = c->operands[s->operand];
  dim inner = hlo_shape(v)->dims[hlo_rank(v) - 1], sums = k->g.sums.total;
  bool copy_across;
  if (has_copies(k, s, &copy_across)) {
    return copy_across ? EMIT_MMA_COPY_ACROSS : EMIT_MMA_COPY_ALONG;
  }
  if (!emit_is_input(&k->w.e, v)) {
    return EMIT_MMA_SINGLE;
  }
  if (s->sums_first) {
    dim run = c->op == HLO_DOT ? inner : sums; /* all weights of an output channel of a convolution are contiguous */
    return dim_is_const(run) && dim_is_const(sums) && run % factors_of_chunk(s) == 0 ? EMIT_MMA_ALONG_SUMS
                                                                                     : EMIT_MMA_SINGLE;
  }
  int n = chunks_of(k, s);
  bool across = c->op == HLO_DOT && n > 1 && (n & (n - 1)) == 0 && s->dims->n > 0;
  bool whole = dim_is_const(inner) && dim_is_const(s->dims->total) && inner % n == 0 && s->dims->total % n == 0;
  return across && whole ? EMIT_MMA_ACROSS : EMIT_MMA_SINGLE;
}

/* Returns the type of an operand's factors. */
static dtype factor_type(const emit_mma_kernel *k, uint32_t operand) {
  return k->tile.rounded ? (dtype)k->tile.rounded : hlo_type(k->g.c->operands[operand]);
}

emit_mma_side emit_mma_make_side(const emit_mma_kernel *k, uint32_t operand, const emit_tile_group *dims,
                                 int64_t extent, LLVMValueRef tile, int64_t offset) {
  emit_mma_side s = {.operand = operand,
                     .dims = dims,
                     .type = factor_type(k, operand),
                     .extent = extent,
                     .offset = offset,
                     .first = emit_times(k->ir, tile, extent),
                     .sums_first = emit_has_sums_innermost(k->g.c, operand)};
  s.transport = choose_transport(k, &s);
  return s;
}

bool emit_mma_copies(const emit_mma_side *s) {
  return s->transport == EMIT_MMA_COPY_ALONG || s->transport == EMIT_MMA_COPY_ACROSS;
}

/* Returns the distance in words between the lines of a side in a stage.  A line has the factors of one row or column;
 * for EMIT_MMA_COPY_ACROSS, it has those of all rows or columns at one position in the sum. */
static int64_t pitch_of(const emit_mma_side *s) {
  return s->transport == EMIT_MMA_COPY_ACROSS ? s->extent / 2 + EMIT_MMA_PAD : PITCH;
}

int64_t emit_mma_side_words(const emit_mma_kernel *k, const emit_mma_side *s) {
  return pitch_of(s) * (s->transport == EMIT_MMA_COPY_ACROSS ? k->sums : s->extent);
}

/* --- places --- */

/* Where one of a thread's chunks is: neighbouring threads have neighbouring chunks of one row or column, or chunks of
 * neighbouring rows or columns, whichever are contiguous in the operand. */
typedef struct chunk_place {
  LLVMValueRef line;  /* the row or column of the tile; for EMIT_MMA_COPY_ACROSS the position in the sum, from the
                         stage's first */
  LLVMValueRef which; /* the number of the chunk in that line */
} chunk_place;

/* Returns how many chunks, of neighbouring rows or columns, are loaded together. */
static int chunks_at_once(const emit_mma_kernel *k, const emit_mma_side *s) {
  return s->transport == EMIT_MMA_ACROSS ? chunks_of(k, s) : 1;
}

static chunk_place place_of(const emit_mma_kernel *k, const emit_mma_side *s, int number) {
  const emit_ir *ir = k->ir;
  int wide = chunks_at_once(k, s);
  LLVMValueRef flat = emit_add(ir, k->thread, emit_i64(ir, number / wide * k->threads));
  bool across = s->transport == EMIT_MMA_COPY_ACROSS, which_first = across || s->sums_first;
  int64_t inner = across ? s->extent / factors_of_chunk(s) : s->sums_first ? CHUNKS : s->extent / wide;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  LLVMValueRef line = emit_times(ir, which_first ? slow : fast, wide);
  return (chunk_place){emit_add(ir, line, emit_i64(ir, number % wide)), which_first ? fast : slow};
}

void emit_mma_place_chunks(const emit_mma_kernel *k, emit_mma_brought *b) {
  const emit_mma_side *sides[] = {&k->rows, &k->columns};
  for (int s = 0; s < 2; s++) {
    for (int j = 0; j < chunks_of(k, sides[s]); j++) {
      chunk_place p = place_of(k, sides[s], j);
      LLVMValueRef word = emit_add(k->ir, emit_times(k->ir, p.which, CHUNK), emit_i64(k->ir, sides[s]->offset));
      b->of[s][j].at = emit_add(k->ir, emit_times(k->ir, p.line, pitch_of(sides[s])), word);
    }
  }
}

/* --- chunks that are copied --- */

/* Begins to copy the thread's chunk number `number` to word number `to` of shared memory (emit_tile_copy_begin). */
static void begin_copy(emit_mma_kernel *k, const emit_mma_side *s, int number, LLVMValueRef first_sum,
                       LLVMValueRef to) {
  const emit_ir *ir = k->ir;
  chunk_place p = place_of(k, s, number);
  bool across = s->transport == EMIT_MMA_COPY_ACROSS;
  LLVMValueRef of_chunk = emit_times(ir, p.which, factors_of_chunk(s));
  LLVMValueRef position = emit_add(ir, s->first, across ? of_chunk : p.line);
  LLVMValueRef sum = emit_add(ir, first_sum, across ? p.line : of_chunk);
  emit_tile_copy_begin(&k->w, &k->g, s->operand, across, k->step.batch, position, sum, emit_mma_word(k, to));
}

/* --- chunks that are loaded --- */

/* Returns the bits of factors, which are given in the type of the sums. */
static LLVMValueRef bits_of(const emit_mma_kernel *k, dtype t, LLVMValueRef v) {
  if (dtype_is_int(t)) {
    return LLVMBuildTrunc(k->ir->builder, v, emit_type_like(v, k->ir->i8), "");
  }
  bool rounds = t == DTYPE_F32 && !k->tile.split;
  return t == DTYPE_F32 || t == DTYPE_F64 ? emit_bits_of(k->ir, rounds ? emit_tf32(k->ir, v) : v)
                                          : emit_narrow(k->ir, t, v);
}

/* Puts factor number j of a chunk, given by its bits, into the chunk's word or words. */
static void put_factor(const emit_mma_kernel *k, const emit_mma_side *s, emit_mma_chunk *c, int j, LLVMValueRef bits) {
  const emit_ir *ir = k->ir;
  int bytes = (int)dtype_bytes(s->type), shift = j * bytes % WORD_BYTES * 8;
  LLVMValueRef *word = &c->words[j * bytes / WORD_BYTES];
  if (bytes > WORD_BYTES) {
    word[0] = LLVMBuildTrunc(ir->builder, bits, ir->i32, "");
    word[1] = LLVMBuildTrunc(ir->builder, LLVMBuildLShr(ir->builder, bits, emit_i64(ir, 32), ""), ir->i32, "");
    return;
  }
  LLVMValueRef part = LLVMBuildZExt(ir->builder, bits, ir->i32, "");
  part = LLVMBuildShl(ir->builder, part, LLVMConstInt(ir->i32, (unsigned)shift, false), "");
  *word = shift ? LLVMBuildOr(ir->builder, *word, part, "") : part;
}

/* Returns `bits` if the position `sum` is one of the contracted space, otherwise 0: the last stage may reach beyond its
 * end. */
static LLVMValueRef zero_beyond(const emit_mma_kernel *k, LLVMValueRef sum, LLVMValueRef bits) {
  if (dim_is_const(k->g.sums.total) && k->g.sums.total % k->sums == 0) {
    return bits;
  }
  LLVMValueRef inside = emit_icmp(k->ir, LLVMIntSLT, sum, emit_size(&k->w.e.x, k->g.sums.total));
  return emit_select(k->ir, inside, bits, LLVMConstNull(LLVMTypeOf(bits)));
}

/* Loads the factors of a chunk, which are neighbours in a row or column, one by one. */
static void load_single(emit_mma_kernel *k, const emit_mma_side *s, LLVMValueRef position, LLVMValueRef sum,
                        emit_mma_chunk *out) {
  for (int j = 0; j < factors_of_chunk(s); j++) {
    LLVMValueRef own = emit_add(k->ir, sum, emit_i64(k->ir, j));
    LLVMValueRef safe = emit_within(&k->w.e.x, own, k->g.sums.total, k->sums);
    LLVMValueRef v =
        emit_tile_factor(&k->w.e, &k->g, s->operand, k->step.batch, emit_pos_at(position, 1), emit_pos_at(safe, 1));
    put_factor(k, s, out, j, zero_beyond(k, own, bits_of(k, s->type, v)));
  }
}

/* Loads all factors of a chunk as a vector.  Either all of them or none are beyond the end of the sum. */
static void load_along_sums(emit_mma_kernel *k, const emit_mma_side *s, LLVMValueRef position, LLVMValueRef sum,
                            emit_mma_chunk *out) {
  emit_indexer *x = &k->w.e.x;
  int n = factors_of_chunk(s);
  LLVMValueRef safe = emit_lesser(k->ir, sum, emit_i64(k->ir, k->g.sums.total - n));
  x->lanes = n;
  LLVMValueRef v = emit_tile_factor(&k->w.e, &k->g, s->operand, k->step.batch, emit_pos_at(position, 1),
                                    emit_pos_along(emit_pos_at(safe, n), n));
  x->lanes = 1;
  LLVMValueRef words = LLVMBuildBitCast(k->ir->builder, bits_of(k, s->type, v), LLVMVectorType(k->ir->i32, CHUNK), "");
  for (int j = 0; j < CHUNK; j++) {
    out->words[j] = zero_beyond(k, sum, emit_lane(k->ir, words, j));
  }
}

/* Loads the factors of n neighbouring rows or columns, from `position` on, as vectors along them. */
static void load_across(emit_mma_kernel *k, const emit_mma_side *s, int n, LLVMValueRef position, LLVMValueRef sum,
                        emit_mma_chunk *out) {
  emit_indexer *x = &k->w.e.x;
  LLVMValueRef safe_position = emit_lesser(k->ir, position, emit_i64(k->ir, s->dims->total - n));
  for (int j = 0; j < factors_of_chunk(s); j++) {
    LLVMValueRef own = emit_add(k->ir, sum, emit_i64(k->ir, j)), safe = emit_within(x, own, k->g.sums.total, k->sums);
    x->lanes = n;
    LLVMValueRef v = emit_tile_factor(&k->w.e, &k->g, s->operand, k->step.batch,
                                      emit_pos_along(emit_pos_at(safe_position, n), n), emit_pos_at(safe, 1));
    x->lanes = 1;
    LLVMValueRef bits = bits_of(k, s->type, v);
    for (int c = 0; c < n; c++) {
      put_factor(k, s, &out[c], j, zero_beyond(k, own, emit_lane(k->ir, bits, c)));
    }
  }
}

/* Loads the thread's chunks of a side, for positions in the sum from first_sum on.  Rows or columns beyond the end are
 * replaced by the last one, so that nothing outside of an array is read; their sums are not stored.  Factors beyond the
 * end of the sum are zeros. */
static void load_side(emit_mma_kernel *k, const emit_mma_side *s, LLVMValueRef first_sum, emit_mma_chunk *out) {
  const emit_ir *ir = k->ir;
  int n = chunks_of(k, s), wide = chunks_at_once(k, s);
  for (int j = 0; j < n; j += wide) {
    chunk_place p = place_of(k, s, j);
    LLVMValueRef sum = emit_add(ir, first_sum, emit_times(ir, p.which, factors_of_chunk(s)));
    LLVMValueRef own = emit_add(ir, s->first, p.line);
    LLVMValueRef position = emit_within(&k->w.e.x, own, s->dims->total, s->extent);
    if (s->transport == EMIT_MMA_ACROSS) {
      load_across(k, s, n, own, sum, out);
    } else if (s->transport == EMIT_MMA_ALONG_SUMS) {
      load_along_sums(k, s, position, sum, &out[j]);
    } else {
      load_single(k, s, position, sum, &out[j]);
    }
  }
}

/* --- stages --- */

/* Makes the chunk's words zeros if the control flow comes from `before` and not from `loaded`. */
static void join_words(const emit_ir *ir, emit_mma_chunk *c, LLVMBasicBlockRef before, LLVMBasicBlockRef loaded) {
  for (int j = 0; j < CHUNK; j++) {
    LLVMValueRef *v = &c->words[j];
    LLVMValueRef phi = LLVMBuildPhi(ir->builder, LLVMTypeOf(*v), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){*v, LLVMConstNull(LLVMTypeOf(*v))}, (LLVMBasicBlockRef[]){loaded, before}, 2);
    *v = phi;
  }
}

void emit_mma_begin_stage(emit_mma_kernel *k, LLVMValueRef first_sum, LLVMValueRef stage, emit_mma_brought *b) {
  const emit_ir *ir = k->ir;
  const emit_mma_side *sides[] = {&k->rows, &k->columns};
  LLVMValueRef more = emit_icmp(ir, LLVMIntSLT, first_sum, k->own.past);
  LLVMBasicBlockRef before = emit_here(ir), after = emit_if_begin(ir, more);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  for (int s = 0; s < 2; s++) {
    bool copies = emit_mma_copies(sides[s]);
    for (int j = 0; copies && j < chunks_of(k, sides[s]); j++) {
      begin_copy(k, sides[s], j, first_sum, emit_add(ir, stage, b->of[s][j].at));
    }
  }
  for (int s = 0; s < 2; s++) {
    if (!emit_mma_copies(sides[s])) {
      load_side(k, sides[s], first_sum, b->of[s]);
    }
  }
  emit_table_release(k->w.e.x.table, mark);
  LLVMBasicBlockRef loaded = emit_here(ir);
  emit_if_end(ir, after);
  for (int s = 0; s < 2; s++) {
    bool copies = emit_mma_copies(sides[s]);
    for (int j = 0; !copies && j < chunks_of(k, sides[s]); j++) {
      join_words(ir, &b->of[s][j], before, loaded);
    }
  }
  if (emit_mma_copies(&k->rows) || emit_mma_copies(&k->columns)) {
    emit_copy_commit(&k->w);
  }
}

void emit_mma_end_stage(const emit_mma_kernel *k, LLVMValueRef stage, const emit_mma_brought *b) {
  const emit_mma_side *sides[] = {&k->rows, &k->columns};
  for (int s = 0; s < 2; s++) {
    bool copies = emit_mma_copies(sides[s]);
    for (int j = 0; !copies && j < chunks_of(k, sides[s]); j++) {
      LLVMValueRef all = LLVMGetPoison(LLVMVectorType(k->ir->i32, CHUNK));
      for (int c = 0; c < CHUNK; c++) {
        all = emit_set_lane(k->ir, all, b->of[s][j].words[c], c);
      }
      LLVMValueRef to = emit_mma_word(k, emit_add(k->ir, stage, b->of[s][j].at));
      LLVMSetAlignment(LLVMBuildStore(k->ir->builder, all, to), CHUNK_BYTES);
    }
  }
}

void emit_mma_await_stage(emit_mma_kernel *k, int64_t stages) {
  if (emit_mma_copies(&k->rows) || emit_mma_copies(&k->columns)) {
    emit_copy_wait(&k->w, (unsigned)stages);
  }
}

/* --- fragments --- */

/* Loads the f64 factors that the lane has of 16 rows or columns: with g = lane / 4 and t = lane % 4, factor t of row or
 * column g, and factor t of row or column g + 8. */
static void load_f64(emit_mma_kernel *k, LLVMValueRef base, LLVMValueRef *out) {
  enum { FACTORS = 4, WORDS = sizeof(double) / WORD_BYTES };
  const emit_ir *ir = k->ir;
  LLVMValueRef lane = emit_lane_number(&k->w), own = emit_times(ir, emit_over(ir, lane, FACTORS), PITCH);
  own = emit_add(ir, own, emit_times(ir, emit_modulo(ir, lane, FACTORS), WORDS));
  for (int64_t half = 0; half < 2; half++) {
    LLVMValueRef at = emit_add(ir, own, emit_i64(ir, half * SIDE / 2 * PITCH));
    out[half] = LLVMBuildLoad2(ir->builder, ir->f64, LLVMBuildInBoundsGEP2(ir->builder, ir->i32, base, &at, 1, ""), "");
  }
}

void emit_mma_load_fragment(emit_mma_kernel *k, const emit_mma_side *s, int64_t j, LLVMValueRef stage, int64_t word,
                            LLVMValueRef *out) {
  const emit_ir *ir = k->ir;
  int64_t pitch = pitch_of(s);
  bool across = s->transport == EMIT_MMA_COPY_ACROSS; /* a word then has factors of two rows or columns */
  LLVMValueRef warp =
      across ? LLVMBuildUDiv(ir->builder, s->of_warp, emit_i64(ir, 2), "") : emit_times(ir, s->of_warp, pitch);
  int64_t at = s->offset + (across ? word * 2 * pitch + j * SIDE / 2 : j * SIDE * pitch + word);
  LLVMValueRef base = emit_mma_word(k, emit_add(ir, emit_add(ir, stage, warp), emit_i64(ir, at)));
  if (across) {
    emit_load_fragment_across(&k->w, base, pitch, out);
  } else if (s->type == DTYPE_F64) {
    load_f64(k, base, out);
  } else {
    emit_load_fragment(&k->w, base, pitch, out);
  }
}
