/* block_attention_mma.c - the two products of block_attention.h's kernel by tensor cores.
 *
 * Shared memory has two arrays of words, which have two factors each: q[rows][pitch] and k[keys][pitch].  When all
 * warps have their rows of q in registers, v[keys][pitch] takes the place of q. */
#include <assert.h>

#include "emit/blocks/block_attention_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/element/view.h"
#include "emit/kernel/block.h"

/* A chunk is what a thread brings to shared memory at once: 16 bytes of a row, a key, or of the values of a key. */
enum { PAIR = 2, CHUNK_WORDS = 4, CHUNK = CHUNK_WORDS * PAIR, SIDE = 16, SIDE_WORDS = SIDE / PAIR };
enum { MOST_CHUNKS = 8, SUMS = 4 /* SUMS: the sums of a lane in an mma */ };

/* The pad lets the eight chunks that a load or store of a warp accesses at a time lie in different banks. */
static int64_t pitch_of(int64_t factors) { return factors / PAIR + CHUNK_WORDS; }

static int64_t columns_of(const emit_attention_block *k) { return k->t.strips * k->t.strip; }

static LLVMValueRef word_at(const emit_attention_block *k, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->ir->i32, base, &at, 1, "");
}

void emit_attention_mma_begin(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  int64_t heads = pitch_of(k->t.padded), rows = k->t.rows * heads, values = k->t.keys * pitch_of(columns_of(k));
  k->lane = emit_modulo(ir, k->thread, k->t.lanes);
  LLVMValueRef in_warp = emit_over(ir, emit_lane_number(&k->w), k->t.lanes);
  k->row_group = emit_add(ir, emit_times(ir, emit_warp_number(&k->w), SIDE), in_warp);
  k->own_key = emit_times(ir, k->lane, PAIR);
  k->q = emit_shared_memory(&k->w, ir->i32, rows > values ? rows : values, 16);
  k->staged = emit_shared_memory(&k->w, ir->i32, k->t.keys * heads, 16);
}

/* --- factors --- */

/* An array [lines][inner] that is brought to shared memory: rows of q, keys of k, or keys of v. */
typedef struct array {
  const hlo_instr *dot;
  uint32_t operand;
  bool lines_are_sums; /* whether a sum runs over the lines: only for v, whose lines are keys */
  LLVMValueRef memory, first;
  dim lines;             /* the number of lines */
  int64_t of_tile;       /* the number of the tile's lines, which begin with line number `first` */
  int64_t inner, padded; /* the factors of a line, without and with those that only fill it up */
} array;

static bool is_in_chunks(dim extent) { return dim_is_const(extent) && extent % CHUNK == 0; }

/* Returns true if chunks can be loaded as vectors: their factors are next to each other, and all or none exist. */
static bool has_vectors(const array *a) {
  hlo_value v = a->dot->operands[a->operand];
  bool sums_first = emit_attention_has_sums_innermost(a->dot, a->operand);
  if (a->inner % CHUNK != 0) {
    return false;
  }
  if (!a->lines_are_sums) {
    const hlo_attr *c = hlo_attr_of(a->dot, a->operand ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT);
    return sums_first && is_in_chunks(hlo_shape(v)->dims[c->ints[c->n - 1]]);
  }
  int last = hlo_rank(v) - 1;
  bool is_column = !sums_first && !hlo_has_int(a->dot, HLO_ATTR_RHS_BATCH, last);
  return is_column && emit_is_innermost(v, last) && is_in_chunks(hlo_shape(v)->dims[last]);
}

/* Returns the bits of factors, which are given in the type of the sums.  Nothing is rounded: those of bf16 are the
 * upper half of the bits of f32. */
static LLVMValueRef bits_of(const emit_attention_block *k, LLVMValueRef v) {
  enum { HALF = 16 };
  if (k->t.factors != DTYPE_BF16) {
    return emit_narrow(k->ir, k->t.factors, v);
  }
  LLVMValueRef bits = emit_bits_of(k->ir, v);
  bits = LLVMBuildLShr(k->ir->builder, bits, emit_i(bits, HALF), "");
  return LLVMBuildTrunc(k->ir->builder, bits, emit_type_like(bits, k->ir->i16), "");
}

/* Returns the bits of n neighbouring factors of a line, from factor number `at` on. */
static LLVMValueRef factors_of(emit_attention_block *k, const array *a, LLVMValueRef line, LLVMValueRef at, int n) {
  emit_indexer *x = &k->w.e.x;
  emit_pos along = n > 1 ? emit_pos_along(emit_pos_at(at, n), n) : emit_pos_at(at, 1), own = emit_pos_at(line, 1);
  x->lanes = n;
  LLVMValueRef v =
      emit_attention_operand(k, a->dot, a->operand, a->lines_are_sums ? along : own, a->lines_are_sums ? own : along);
  x->lanes = 1;
  return bits_of(k, v);
}

static LLVMValueRef or_zero(const emit_attention_block *k, LLVMValueRef inside, LLVMValueRef v) {
  return emit_select(k->ir, inside, v, LLVMConstNull(LLVMTypeOf(v)));
}

/* Returns the words of the chunk that begins with factor `at` of a line.  Factors that do not exist are 0, so that they
 * add nothing to a sum. */
static LLVMValueRef load_chunk(emit_attention_block *k, const array *a, LLVMValueRef line, LLVMValueRef at) {
  const emit_ir *ir = k->ir;
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  LLVMValueRef safe_line = emit_attention_within(k, line, a->lines), all = NULL;
  if (has_vectors(a)) {
    LLVMValueRef v = factors_of(k, a, safe_line, emit_lesser(ir, at, emit_i64(ir, a->inner - CHUNK)), CHUNK);
    all = or_zero(k, emit_icmp(ir, LLVMIntSLT, at, emit_i64(ir, a->inner)), v);
  }
  for (int j = 0; j < CHUNK && !has_vectors(a); j++) {
    LLVMValueRef own = emit_add(ir, at, emit_i64(ir, j)), last = emit_i64(ir, a->inner - 1);
    LLVMValueRef v = factors_of(k, a, safe_line, emit_lesser(ir, own, last), 1);
    v = or_zero(k, emit_icmp(ir, LLVMIntSLE, own, last), v);
    all = emit_set_lane(ir, all ? all : LLVMGetPoison(LLVMVectorType(LLVMTypeOf(v), CHUNK)), v, j);
  }
  emit_table_release(k->w.e.x.table, mark);
  LLVMValueRef words = LLVMBuildBitCast(ir->builder, all, LLVMVectorType(ir->i32, CHUNK_WORDS), "");
  return or_zero(k, emit_icmp(ir, LLVMIntSLT, line, emit_size(&k->w.e.x, a->lines)), words);
}

/* A chunk: the number of its line, the number of its first factor in the line, and the address to which it is
 * brought. */
typedef struct place {
  LLVMValueRef line, at, to;
} place;

/* Returns the place of chunk number `flat` of the tile.  Chunks with neighbouring numbers are neighbours in the
 * operand. */
static place place_of(const emit_attention_block *k, const array *a, LLVMValueRef flat) {
  const emit_ir *ir = k->ir;
  int64_t of_line = a->padded / CHUNK;
  bool lines_first = emit_attention_has_sums_innermost(a->dot, a->operand) == a->lines_are_sums;
  int64_t inner = lines_first ? a->of_tile : of_line;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  LLVMValueRef line = lines_first ? fast : slow, which = lines_first ? slow : fast;
  LLVMValueRef word = emit_add(ir, emit_times(ir, line, pitch_of(a->padded)), emit_times(ir, which, CHUNK_WORDS));
  return (place){emit_add(ir, a->first, line), emit_times(ir, which, CHUNK), word_at(k, a->memory, word)};
}

static void store_chunk(const emit_attention_block *k, LLVMValueRef words, LLVMValueRef to) {
  LLVMSetAlignment(LLVMBuildStore(k->ir->builder, words, to), CHUNK * PAIR);
}

/* The chunks of an array that a thread loads as vectors. */
typedef struct chunks {
  int n;
  LLVMValueRef words[MOST_CHUNKS], to[MOST_CHUNKS];
} chunks;

/* Begins to bring an array: its vectors are on their way until end_chunks. */
static chunks begin_chunks(emit_attention_block *k, const array *a) {
  int64_t all = a->of_tile * a->padded / CHUNK;
  chunks c = {.n = has_vectors(a) ? (int)(all / k->t.threads) : 0};
  assert(all / k->t.threads <= MOST_CHUNKS && all % k->t.threads == 0);
  for (int j = 0; j < c.n; j++) {
    place p = place_of(k, a, emit_add(k->ir, k->thread, emit_i64(k->ir, j * k->t.threads)));
    c.words[j] = load_chunk(k, a, p.line, p.at);
    c.to[j] = p.to;
  }
  return c;
}

/* Stores the chunks that begin_chunks has loaded.  If the array cannot be loaded as vectors (has_vectors), begin_chunks
 * has loaded nothing; then a loop here loads and stores each chunk, since all factors and addresses at once would take
 * many registers. */
static void end_chunks(emit_attention_block *k, const array *a, const chunks *c) {
  const emit_ir *ir = k->ir;
  for (int j = 0; j < c->n; j++) {
    store_chunk(k, c->words[j], c->to[j]);
  }
  if (!has_vectors(a)) {
    emit_loop l;
    emit_loop_begin(ir, &l, k->thread, emit_i64(ir, a->of_tile * a->padded / CHUNK), k->t.threads, true, 0, NULL);
    uint32_t mark = emit_table_mark(k->w.e.x.table);
    place p = place_of(k, a, l.iv);
    store_chunk(k, load_chunk(k, a, p.line, p.at), p.to);
    emit_table_release(k->w.e.x.table, mark);
    emit_loop_end(ir, &l, NULL);
  }
}

void emit_attention_mma_load_rows(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  int64_t pitch = pitch_of(k->t.padded);
  const array q = {k->a.qk, 0, false, k->q, k->first_row, k->a.rows, k->t.rows, k->t.sums, k->t.padded};
  chunks c = begin_chunks(k, &q);
  end_chunks(k, &q, &c);
  emit_barrier(&k->w);
  LLVMValueRef of_warp = emit_times(ir, emit_warp_number(&k->w), SIDE * pitch);
  for (int64_t s = 0; s < k->t.padded / SIDE; s++) {
    LLVMValueRef at = emit_add(ir, of_warp, emit_i64(ir, s * SIDE_WORDS));
    emit_load_fragment(&k->w, word_at(k, k->q, at), pitch, k->q_words + s * CHUNK_WORDS);
  }
}

/* --- products --- */

/* Multiplies 16 rows by 16 columns, whose words are as emit_load_fragment loads them. */
static void multiply(emit_attention_block *k, const LLVMValueRef *rows, const LLVMValueRef *columns,
                     LLVMValueRef sums[2][SUMS]) {
  for (int half = 0; half < 2; half++) {
    LLVMValueRef own[] = {columns[half], columns[half + 2]};
    emit_mma(&k->w, k->t.factors, k->t.factors, rows, own, sums[half]);
  }
}

/* Sets the thread's scores [row][key].  It has two rows and, of each 8 keys, two neighbouring ones. */
static void multiply_scores(emit_attention_block *k, LLVMValueRef *scores) {
  const emit_ir *ir = k->ir;
  int64_t pitch = pitch_of(k->t.padded), keys = k->t.c.keys;
  for (int64_t side = 0; side < k->t.keys / SIDE; side++) {
    LLVMValueRef zero = LLVMConstNull(k->element), words[CHUNK_WORDS];
    LLVMValueRef sums[2][SUMS] = {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
    for (int64_t s = 0; s < k->t.padded / SIDE; s++) {
      LLVMValueRef at = emit_i64(ir, side * SIDE * pitch + s * SIDE_WORDS);
      emit_load_fragment(&k->w, word_at(k, k->staged, at), pitch, words);
      multiply(k, k->q_words + s * CHUNK_WORDS, words, sums);
    }
    for (int j = 0; j < 2 * SUMS; j++) { /* [half][row][neighbour] */
      scores[j / 2 % 2 * keys + side * SUMS + j / SUMS * 2 + j % 2] = sums[j / SUMS][j % SUMS];
    }
  }
}

/* Returns a word of two neighbouring weights. */
static LLVMValueRef pair_of(const emit_attention_block *k, const LLVMValueRef *weights) {
  LLVMValueRef both = LLVMGetPoison(LLVMVectorType(k->element, PAIR));
  both = emit_set_lane(k->ir, emit_set_lane(k->ir, both, weights[0], 0), weights[1], 1);
  return LLVMBuildBitCast(k->ir->builder, emit_narrow(k->ir, k->t.factors, both), k->ir->i32, "");
}

/* Adds the products of the weights, whose words are given, and 16 columns of v. */
static void multiply_columns(emit_attention_block *k, const LLVMValueRef *weights, int64_t column,
                             LLVMValueRef *values) {
  const emit_ir *ir = k->ir;
  int64_t pitch = pitch_of(columns_of(k)), strips = k->t.strips, strip = column / k->t.strip;
  LLVMValueRef sums[2][SUMS], words[CHUNK_WORDS];
  for (int j = 0; j < 2 * SUMS; j++) {
    sums[j / SUMS][j % SUMS] = emit_lane(ir, values[j / 2 % 2 * strips + strip + j / SUMS], j % 2);
  }
  for (int64_t side = 0; side < k->t.keys / SIDE; side++) {
    LLVMValueRef at = emit_i64(ir, side * SIDE * pitch + column / PAIR);
    emit_load_fragment_across(&k->w, word_at(k, k->q, at), pitch, words);
    multiply(k, weights + side * SUMS, words, sums);
  }
  for (int j = 0; j < 2 * SUMS; j++) {
    LLVMValueRef *v = &values[j / 2 % 2 * strips + strip + j / SUMS];
    *v = emit_set_lane(ir, *v, sums[j / SUMS][j % SUMS], j % 2);
  }
}

/* The weights of 16 keys are the words of a fragment of rows: the first 8 keys of both rows, then the others. */
static void multiply_values(emit_attention_block *k, const LLVMValueRef *weights, LLVMValueRef *values) {
  LLVMValueRef words[EMIT_ATTENTION_SCORES / PAIR];
  for (int64_t j = 0; j < k->t.c.keys; j++) {
    words[j] = pair_of(k, weights + j % 2 * k->t.c.keys + j / 2 * PAIR);
  }
  for (int64_t column = 0; column < columns_of(k); column += SIDE) {
    multiply_columns(k, words, column, values);
  }
}

/* The values of v are on their way while scores are computed.  When all threads have reached the first barrier, they
 * have also read the values of the tile before (or the rows of q), which the values of this tile then overwrite.  When
 * they have reached the second one, they have read the keys, which those of the next tile overwrite. */
void emit_attention_mma_add_keys(emit_attention_block *k, emit_attention_rows *rows) {
  const array keys = {k->a.qk, 1, false, k->staged, k->first_key, k->a.keys, k->t.keys, k->t.sums, k->t.padded};
  const array values = {k->a.pv, 1, true, k->q, k->first_key, k->a.keys, k->t.keys, k->t.width, columns_of(k)};
  LLVMValueRef scores[EMIT_ATTENTION_SCORES];
  chunks c = begin_chunks(k, &keys);
  end_chunks(k, &keys, &c);
  emit_barrier(&k->w);
  c = begin_chunks(k, &values);
  multiply_scores(k, scores);
  emit_attention_softmax(k, scores, rows);
  end_chunks(k, &values, &c);
  emit_barrier(&k->w);
  multiply_values(k, scores, rows->values);
}
