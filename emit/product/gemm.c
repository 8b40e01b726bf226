/* gemm.c - the size and the code of register blocks; see gemm.h. */
#include "emit/product/gemm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "emit/llvm/number.h"

bool emit_gemm_takes(dtype type) {
  return type == DTYPE_F32 || type == DTYPE_F64 || type == DTYPE_F16 || type == DTYPE_BF16;
}

int emit_gemm_lanes(const emit_target *t, dtype type) {
  bool wide = dtype_bytes(emit_compute_type(type)) == 8;
  return wide && t->lanes > 1 ? t->lanes / 2 : t->lanes;
}

/* --- the size of a register block --- */

/* Returns how many vectors of sums the registers can hold.  A vector that is wider than the target's takes several
 * registers. */
static int registers_of(const emit_target *t, dtype type, int lanes) {
  int bits = lanes * 8 * (int)dtype_bytes(emit_compute_type(type));
  int each = t->vector_bits && bits > t->vector_bits ? bits / t->vector_bits : 1;
  return t->registers / each;
}

int64_t emit_gemm_needed_registers(int64_t rows, int64_t vectors) {
  return rows * vectors + (rows > 1 ? vectors : 1) + 1;
}

bool emit_gemm_fits(const emit_target *t, dtype type, int lanes, int64_t rows, int64_t vectors) {
  return emit_gemm_needed_registers(rows, vectors) <= registers_of(t, type, lanes) && rows <= EMIT_GEMM_ROWS &&
         rows * vectors <= EMIT_GEMM_SUMS;
}

emit_gemm_parts emit_gemm_cut(int64_t n, int most) {
  int64_t parts = ceil_div(n, most);
  int large = (int)ceil_div(n, parts);
  int64_t n_small = parts * large - n;
  return (emit_gemm_parts){parts - n_small, n_small, large};
}

/* Estimates how many cycles a product of m rows and `columns` column vectors takes for each k.  A cycle does two
 * multiplications or two loads; of these two kinds, the one that takes more cycles in all counts in full, and the other
 * one in part.  Each k takes at least the latency of a multiplication, and at least the time in which its part of B
 * comes from the second-level cache, 48 bytes a cycle: blocks of one or two rows read B so often that they wait for it.
 * If the vectors of a block are more than `held`, B comes from the next cache, 24 bytes a cycle.
 */
static double cost(int rows, int vectors, int64_t m, int64_t columns, int vector_bytes, int64_t held) {
  const double latency = EMIT_GEMM_LATENCY / 2.0, cache_bytes = vectors > held ? 24 : 48;
  double row_blocks = (double)ceil_div(m, rows), column_blocks = (double)ceil_div(columns, vectors);
  double sums = (double)m / row_blocks * (double)columns / column_blocks / 2;
  double loads = ((double)m / row_blocks + (double)columns / column_blocks) / 2;
  double moves = (double)columns / column_blocks * vector_bytes / cache_bytes;
  double work = sums > loads ? sums + loads / 8 : loads + sums / 8;
  work = fmax(work, moves + work / 64); /* of blocks that wait equally long, the one with the least work is chosen */
  const double uneven = 0.03;           /* blocks of two sizes need more code, and one of the sizes is not the best */
  work *= 1 + uneven * ((m % rows != 0) + (columns % vectors != 0));
  return row_blocks * column_blocks * (work > latency ? work : latency);
}

emit_gemm_tile emit_gemm_fit(const emit_target *t, dtype type, int64_t m, int64_t n, int64_t held) {
  int lanes = emit_gemm_lanes(t, type);
  int64_t columns = ceil_div(n, lanes);
  emit_gemm_tile best = {1, 1, lanes};
  int bytes = lanes * (int)dtype_bytes(type);
  double least = cost(1, 1, m, columns, bytes, held);
  for (int vectors = 1; vectors <= EMIT_GEMM_VECTORS && vectors <= columns; vectors++) {
    for (int rows = 1; rows <= EMIT_GEMM_ROWS && rows <= m; rows++) {
      double c = cost(rows, vectors, m, columns, bytes, held);
      if (c < least && emit_gemm_fits(t, type, lanes, rows, vectors)) {
        best = (emit_gemm_tile){rows, vectors, lanes};
        least = c;
      }
    }
  }
  return best;
}

/* --- the code of a register block --- */

static LLVMTypeRef sum_type(const emit_ir *w, const emit_gemm *g) {
  return emit_vector_type(emit_register_type(w, emit_compute_type(g->type)), g->tile.lanes);
}

void emit_gemm_zero(const emit_ir *w, const emit_gemm *g, LLVMValueRef *sums) {
  for (int k = 0; k < g->tile.rows * g->tile.vectors; k++) {
    sums[k] = LLVMConstNull(sum_type(w, g));
  }
}

static LLVMValueRef load_at(const emit_ir *w, const emit_gemm *g, LLVMValueRef base, int64_t at, int lanes) {
  LLVMTypeRef element = emit_memory_type(w, g->type);
  LLVMValueRef offset = emit_i64(w, at), p = LLVMBuildInBoundsGEP2(w->builder, element, base, &offset, 1, "");
  LLVMValueRef v = LLVMBuildLoad2(w->builder, emit_vector_type(element, lanes), p, "");
  LLVMSetAlignment(v, (unsigned)dtype_bytes(g->type));
  return emit_widen(w, g->type, emit_from_memory(w, g->type, v));
}

/* The values of llvm.prefetch's argument `locality`, which mean the cache to which data are brought. */
enum { SECOND_CACHE = 2, FIRST_CACHE = 3 };

static void prefetch(const emit_ir *w, LLVMValueRef p, int locality) {
  static const char name[] = "llvm.prefetch";
  LLVMTypeRef types[] = {w->ptr};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, LLVMLookupIntrinsicID(name, sizeof name - 1), types, 1);
  LLVMValueRef args[] = {p, LLVMConstInt(w->i32, 0, false), LLVMConstInt(w->i32, (unsigned)locality, false),
                         LLVMConstInt(w->i32, 1, false)};
  LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, args, 4, "");
}

/* Prefetches the cache line that is g->ahead + `at` elements after `base` into the second-level cache.  Prefetching
 * into the first-level cache at this rate would make Winograd's products slower. */
static void prefetch_ahead(const emit_ir *w, const emit_gemm *g, LLVMValueRef base, int64_t at) {
  LLVMTypeRef element = emit_memory_type(w, g->type);
  LLVMValueRef far = LLVMBuildGEP2(w->builder, element, base, (LLVMValueRef[]){g->ahead}, 1, "");
  prefetch(w, LLVMBuildGEP2(w->builder, element, far, (LLVMValueRef[]){emit_i64(w, at)}, 1, ""), SECOND_CACHE);
}

/* --- prefetching the next operand (emit_fetch) --- */

/* The offset from g->fetch.from of the next line to prefetch is a fixed-point number with PLACE_BITS fraction bits (it
 * counts 1/256 bytes), so that it advances evenly. */
enum { PLACE_BITS = 8, LINE = 64 };

/* Returns by how much the offset of the line to prefetch, in 1/256 bytes, advances in each of the `steps` iterations of
 * the loop (an i64, at least 1). */
static LLVMValueRef fetch_step(const emit_ir *w, const emit_gemm *g, LLVMValueRef steps) {
  return LLVMBuildUDiv(w->builder, LLVMBuildShl(w->builder, g->fetch.bytes, emit_i64(w, PLACE_BITS), ""), steps, "");
}

static void fetch_lines(const emit_ir *w, const emit_gemm *g, LLVMValueRef place) {
  LLVMValueRef at = LLVMBuildLShr(w->builder, place, emit_i64(w, PLACE_BITS), "");
  LLVMValueRef from = LLVMBuildGEP2(w->builder, w->i8, g->fetch.from, &at, 1, "");
  for (int k = 0; k < g->fetch.lines; k++) {
    LLVMValueRef offset = emit_i64(w, (int64_t)k * LINE);
    prefetch(w, LLVMBuildGEP2(w->builder, w->i8, from, &offset, 1, ""), FIRST_CACHE);
  }
}

/* --- small integers --- */

static LLVMValueRef call_intrinsic(const emit_ir *w, const char *name, unsigned n, LLVMValueRef *args) {
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
  return LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, args, n, "");
}

/* Converts the low halves of bytes by looking them up in a vector of 16 numbers (AVX-512's vpermps, which ignores the
 * other bits of an index). */
static LLVMValueRef look_up(const emit_ir *w, const emit_gemm *g, LLVMValueRef bytes) {
  enum { N = 16 };
  LLVMValueRef numbers[N];
  for (int k = 0; k < N; k++) {
    numbers[k] = LLVMConstReal(w->f32, k - g->small.offset);
  }
  return call_intrinsic(w, "llvm.x86.avx512.permvar.sf.512", 2, (LLVMValueRef[]){LLVMConstVector(numbers, N), bytes});
}

/* Converts integers of 8 bits to f32, or of 4 bits if `half`, less the offset: their bits are put into the lowest bits
 * of a large number, which is then subtracted. */
static LLVMValueRef convert_small(const emit_ir *w, const emit_gemm *g, LLVMValueRef x, bool half) {
  const double large = 0x1p23;
  int lanes = g->tile.lanes;
  if (half) {
    x = LLVMBuildAnd(w->builder, x, emit_splat(w, LLVMConstInt(w->i32, 15, false), lanes), "");
  }
  LLVMValueRef bits = LLVMConstBitCast(LLVMConstReal(w->f32, large), w->i32);
  x = LLVMBuildOr(w->builder, x, emit_splat(w, bits, lanes), "");
  x = LLVMBuildBitCast(w->builder, x, emit_vector_type(w->f32, lanes), "");
  return LLVMBuildFSub(w->builder, x, emit_splat(w, LLVMConstReal(w->f32, large + g->small.offset), lanes), "");
}

/* Loads column vector v of row k + ahead of B, which is small integers, and converts it to f32.  b points to row k; k
 * is even, so that with 4 bits a byte begins there. */
static LLVMValueRef load_small(const emit_ir *w, const emit_gemm *g, LLVMValueRef b, int v, int64_t ahead) {
  enum { TABLE = 16, BITS = 512 };
  int lanes = g->tile.lanes, a_byte = 8 / g->small.bits;
  bool half = a_byte == 2, high = half && ahead % 2, looks = half && lanes == TABLE && w->target->vector_bits == BITS;
  LLVMTypeRef bytes = emit_vector_type(w->i8, lanes), wide = emit_vector_type(w->i32, lanes);
  LLVMValueRef offset = emit_i64(w, v * g->b_vector + ahead / a_byte * lanes);
  LLVMValueRef x = LLVMBuildLoad2(w->builder, bytes, LLVMBuildInBoundsGEP2(w->builder, w->i8, b, &offset, 1, ""), "");
  LLVMSetAlignment(x, 1);
  x = LLVMBuildZExt(w->builder, x, wide, "");
  x = high ? LLVMBuildLShr(w->builder, x, emit_splat(w, LLVMConstInt(w->i32, 4, false), lanes), "") : x;
  x = looks ? look_up(w, g, x) : convert_small(w, g, x, half && !high);
  return g->small.zero ? LLVMBuildFSub(w->builder, x, g->small.zero[v], "") : x;
}

/* --- dot groups --- */

bool emit_gemm_has_dots(const emit_target *t, dtype dot, int lanes) {
  enum { FEWEST = 4, BITS = 32 }; /* the fewest lanes of a vector; the bits of a group */
  return (dot == DTYPE_S16 ? t->dots_s16 : t->dots) && lanes >= FEWEST && lanes * BITS <= t->vector_bits;
}

int emit_gemm_registers(const emit_target *t, dtype dot, bool small) {
  enum { CONVERTING = 4 }; /* two constants, and the bytes of two vectors of which one half is still to be converted */
  return t->registers - (dot == DTYPE_S16 && !t->dots) - (small ? CONVERTING : 0);
}

int emit_gemm_dot_offset(const emit_target *t, dtype dot) {
  enum { HALF = 128 };
  return dot == DTYPE_S16 || dot == (t->signed_dots ? DTYPE_S8 : DTYPE_U8) ? 0 : dot == DTYPE_S8 ? -HALF : HALF;
}

/* Writes aarch64's sdot. */
static LLVMValueRef add_sdot(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef sum) {
  static const char name[] = "llvm.aarch64.neon.sdot";
  LLVMTypeRef bytes = emit_vector_type(w->i8, 4 * (int)emit_lanes(x)), types[] = {LLVMTypeOf(sum), bytes};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, LLVMLookupIntrinsicID(name, sizeof name - 1), types, 2);
  LLVMValueRef args[] = {sum, LLVMBuildBitCast(w->builder, x, bytes, ""), LLVMBuildBitCast(w->builder, y, bytes, "")};
  return LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, args, 3, "");
}

/* Returns the index in a list of instructions for 4, 8 and 16 lanes. */
static int width_of(LLVMValueRef x) { return emit_lanes(x) == 16 ? 2 : emit_lanes(x) == 8; }

/* Adds to each lane of `sum` four products of bytes: x is u8, or s8 with signed_dots; y is s8. */
static LLVMValueRef add_dot4(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef sum) {
  if (w->target->signed_dots) {
    return add_sdot(w, x, y, sum);
  }
  static const char *const names[] = {"llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256",
                                      "llvm.x86.avx512.vpdpbusd.512"};
  return call_intrinsic(w, names[width_of(x)], 3, (LLVMValueRef[]){sum, x, y});
}

/* Adds to each lane of `sum` two products of s16. */
static LLVMValueRef add_dot2(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef sum) {
  static const char *const accumulate[] = {"llvm.x86.avx512.vpdpwssd.128", "llvm.x86.avx512.vpdpwssd.256",
                                           "llvm.x86.avx512.vpdpwssd.512"};
  static const char *const multiply[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                         "llvm.x86.avx512.pmaddw.d.512"};
  if (w->target->dots) {
    return call_intrinsic(w, accumulate[width_of(x)], 3, (LLVMValueRef[]){sum, x, y});
  }
  LLVMTypeRef pairs = emit_vector_type(LLVMInt16TypeInContext(w->context), 2 * (int)emit_lanes(x));
  LLVMValueRef args[] = {LLVMBuildBitCast(w->builder, x, pairs, ""), LLVMBuildBitCast(w->builder, y, pairs, "")};
  return LLVMBuildAdd(w->builder, call_intrinsic(w, multiply[width_of(x)], 2, args), sum, "");
}

/* Returns sum + x y, where x and y are elements of A and of B. */
static LLVMValueRef add_product(const emit_ir *w, const emit_gemm *g, LLVMValueRef x, LLVMValueRef y,
                                LLVMValueRef sum) {
  return g->dot == DTYPE_S16 ? add_dot2(w, x, y, sum) : g->dot ? add_dot4(w, x, y, sum) : emit_fma(w, x, y, sum);
}

/* Returns the address that is n times `distance` elements after p.  If the distance is NULL, returns p. */
static LLVMValueRef apart(const emit_ir *w, const emit_gemm *g, LLVMValueRef p, int64_t n, LLVMValueRef distance) {
  if (!distance || n == 0) {
    return p;
  }
  LLVMValueRef offset = n == 1 ? distance : LLVMBuildNSWMul(w->builder, distance, emit_i64(w, n), "");
  return LLVMBuildInBoundsGEP2(w->builder, emit_memory_type(w, g->type), p, &offset, 1, "");
}

/* If the distance between rows of A, or between vectors of B, is not a constant, a block keeps a pointer to every third
 * of them.  It reaches the two after it by adding the distance once or twice, which an address operand of x86-64 can
 * do. */
enum { POINTER_ROWS = 3, MOST_POINTERS = (EMIT_GEMM_ROWS + POINTER_ROWS - 1) / POINTER_ROWS };

/* The state of a block's loops: pointers into A and B; the offset in the memory that is prefetched (NULL means that
 * nothing is), and by how much it advances in each iteration. */
typedef struct position {
  int n_a, n_b;
  LLVMValueRef a[MOST_POINTERS], b[MOST_POINTERS];
  LLVMValueRef place, step;
} position;

/* Sets pointers[] to those for n rows (or vectors) that begin at p.  Returns how many there are. */
static int set_pointers(const emit_ir *w, const emit_gemm *g, LLVMValueRef p, int n, LLVMValueRef distance,
                        LLVMValueRef *pointers) {
  int count = distance ? (n + POINTER_ROWS - 1) / POINTER_ROWS : 1;
  for (int k = 0; k < count; k++) {
    pointers[k] = emit_opaque(w, apart(w, g, p, (int64_t)k * POINTER_ROWS, distance));
  }
  return count;
}

/* Returns the address of row (or vector) number n. */
static LLVMValueRef row_at(const emit_ir *w, const emit_gemm *g, const LLVMValueRef *pointers, int n,
                           LLVMValueRef distance) {
  return distance ? apart(w, g, pointers[n / POINTER_ROWS], n % POINTER_ROWS, distance) : pointers[0];
}

/* Adds the products of column k + ahead of A and row k + ahead of B, where p points to column k and row k. */
static void step(const emit_ir *w, const emit_gemm *g, const position *p, int64_t ahead, LLVMValueRef *sums) {
  const emit_gemm_tile *t = &g->tile;
  LLVMValueRef columns[EMIT_GEMM_SUMS];
  int64_t below = g->b_k_size ? 0 : ahead * g->b_k;
  for (int v = 0; v < t->vectors; v++) {
    LLVMValueRef from = apart(w, g, row_at(w, g, p->b, v, g->b_vector_size), ahead, g->b_k_size);
    int64_t vector = g->b_vector_size ? 0 : v * g->b_vector;
    columns[v] = g->small.bits ? load_small(w, g, p->b[0], v, ahead) : load_at(w, g, from, vector + below, t->lanes);
  }
  for (int v = 0; g->ahead && v < g->n_ahead; v++) {
    prefetch_ahead(w, g, p->b[0], v * g->b_vector + ahead * g->b_k);
  }
  int64_t here = g->a_k_size ? 0 : ahead * g->a_k;
  for (int r = 0; r < t->rows; r++) {
    int64_t row = g->a_row_size ? 0 : g->a_at ? g->a_at[r] : r * g->a_row;
    LLVMValueRef from = apart(w, g, row_at(w, g, p->a, r, g->a_row_size), ahead, g->a_k_size);
    LLVMValueRef x = emit_splat(w, load_at(w, g, from, row + here, 1), t->lanes);
    x = g->dot_flips ? LLVMBuildXor(w->builder, x, emit_i(x, 0x80808080), "") : x;
    for (int v = 0; v < t->vectors; v++) {
      LLVMValueRef *sum = &sums[r * t->vectors + v];
      *sum = add_product(w, g, x, columns[v], *sum);
    }
  }
}

static LLVMValueRef advance(const emit_ir *w, const emit_gemm *g, LLVMValueRef p, int64_t elements) {
  LLVMValueRef n = emit_i64(w, elements);
  return LLVMBuildInBoundsGEP2(w->builder, emit_memory_type(w, g->type), p, &n, 1, "");
}

static LLVMValueRef advance_b(const emit_ir *w, const emit_gemm *g, LLVMValueRef p, int64_t steps) {
  if (!g->small.bits) {
    return g->b_k_size ? apart(w, g, p, steps, g->b_k_size) : advance(w, g, p, steps * g->b_k);
  }
  LLVMValueRef n = emit_i64(w, steps * g->small.bits * g->tile.lanes / 8);
  return LLVMBuildInBoundsGEP2(w->builder, w->i8, p, &n, 1, "");
}

static LLVMValueRef advance_a(const emit_ir *w, const emit_gemm *g, LLVMValueRef p, int64_t steps) {
  return g->a_k_size ? apart(w, g, p, steps, g->a_k_size) : advance(w, g, p, steps * g->a_k);
}

/* The first copies the pointers of *p, and its place if there is one, to `values`, and returns how many they are.  The
 * second copies them back. */
static int put_position(const position *p, LLVMValueRef *values) {
  memcpy(values, p->a, (size_t)p->n_a * sizeof *values);
  memcpy(values + p->n_a, p->b, (size_t)p->n_b * sizeof *values);
  values[p->n_a + p->n_b] = p->place;
  return p->n_a + p->n_b + (p->place != NULL);
}

static void get_position(position *p, const LLVMValueRef *values) {
  memcpy(p->a, values, (size_t)p->n_a * sizeof *values);
  memcpy(p->b, values + p->n_a, (size_t)p->n_b * sizeof *values);
  p->place = p->place ? values[p->n_a + p->n_b] : NULL;
}

/* Writes the loop over k in [from, to), of which an iteration handles `unroll`; to - from is a multiple of `unroll`.
 * `runs` promises that there is at least one iteration. */
static void run(const emit_ir *w, const emit_gemm *g, LLVMValueRef from, LLVMValueRef to, int unroll, bool runs,
                position *p, LLVMValueRef *sums) {
  int n = g->tile.rows * g->tile.vectors;
  LLVMValueRef carried[EMIT_GEMM_SUMS + 2 * MOST_POINTERS + 1];
  memcpy(carried, sums, (size_t)n * sizeof *sums);
  int n_carried = n + put_position(p, carried + n);
  emit_loop l;
  emit_loop_begin(w, &l, from, to, unroll, runs, n_carried, carried);
  memcpy(carried, l.carried, (size_t)n * sizeof *sums);
  get_position(p, l.carried + n);
  for (int j = 0; j < unroll; j++) {
    step(w, g, p, j, carried);
  }
  for (int k = 0; k < p->n_a; k++) {
    p->a[k] = advance_a(w, g, p->a[k], unroll);
  }
  for (int k = 0; k < p->n_b; k++) {
    p->b[k] = advance_b(w, g, p->b[k], unroll);
  }
  if (p->place) {
    fetch_lines(w, g, p->place);
    p->place = LLVMBuildAdd(w->builder, p->place, p->step, "");
  }
  put_position(p, carried + n);
  emit_loop_end(w, &l, carried);
  memcpy(sums, l.carried, (size_t)n * sizeof *sums);
  get_position(p, l.carried + n);
}

enum { MOST_UNROLL = 8, SMALL_UNROLL = 4 };

/* Returns how many k an iteration of the loop handles: at most `most`, about 16 multiplications, and whole bytes of
 * small integers.  With more k in an iteration, no block was faster, large blocks were slower (one of Winograd's
 * products with 13 sums by an eighth), and compiling took longer. */
static int choose_unroll(const emit_gemm *g, int most) {
  int n = g->tile.rows * g->tile.vectors, unroll = g->small.bits ? 2 : 1;
  while (unroll < most && unroll * 2 * n <= 16) {
    unroll *= 2;
  }
  return unroll;
}

void emit_gemm_block(const emit_ir *w, const emit_gemm *g, LLVMValueRef *sums) {
  assert(g->tile.rows * g->tile.vectors <= EMIT_GEMM_SUMS && (!g->a_at || g->tile.rows <= EMIT_GEMM_ROWS));
  assert(!g->small.bits || (g->type == DTYPE_F32 && LLVMIsAConstantInt(g->k)));
  position p = {0};
  p.n_a = set_pointers(w, g, g->a, g->tile.rows, g->a_row_size, p.a);
  p.n_b = set_pointers(w, g, g->b, g->tile.vectors, g->b_vector_size, p.b);
  LLVMValueRef zero = emit_i64(w, 0);
  int unroll = g->unroll ? g->unroll : choose_unroll(g, w->target->small ? SMALL_UNROLL : MOST_UNROLL);
  if (!LLVMIsAConstantInt(g->k)) {
    LLVMValueRef rest = LLVMBuildURem(w->builder, g->k, emit_i64(w, unroll), "");
    LLVMValueRef whole = LLVMBuildNSWSub(w->builder, g->k, rest, "");
    run(w, g, zero, whole, unroll, false, &p, sums);
    if (unroll > 1) {
      run(w, g, whole, g->k, 1, false, &p, sums);
    }
    return;
  }
  int64_t k = LLVMConstIntGetSExtValue(g->k), whole = k / unroll * unroll;
  if (whole > unroll) {
    p.place = g->fetch.from ? zero : NULL;
    p.step = g->fetch.from ? fetch_step(w, g, emit_i64(w, whole / unroll)) : NULL;
    run(w, g, zero, emit_i64(w, whole), unroll, true, &p, sums);
    p.place = NULL;
  } else {
    whole = 0;
  }
  for (int64_t j = 0; j < k - whole; j++) { /* the remaining k, which are fewer than those of two iterations */
    step(w, g, &p, j, sums);
  }
}

emit_fetch emit_fetch_part(const emit_ir *w, const emit_fetch *f, LLVMValueRef number, LLVMValueRef n) {
  LLVMValueRef bytes = LLVMBuildUDiv(w->builder, f->bytes, n, ""),
               offset = LLVMBuildNSWMul(w->builder, number, bytes, "");
  return (emit_fetch){LLVMBuildGEP2(w->builder, w->i8, f->from, &offset, 1, ""), bytes, f->lines};
}

/* Sets *number to d if d is a constant, otherwise *size. */
static void set_distance(LLVMValueRef d, int64_t *number, LLVMValueRef *size) {
  bool known = LLVMIsAConstantInt(d);
  *number = known ? LLVMConstIntGetSExtValue(d) : 0;
  *size = known ? NULL : d;
}

void emit_gemm_nest(const emit_ir *w, const emit_gemm *g, int n, const emit_gemm_loop *loops, LLVMValueRef *sums) {
  emit_gemm inner = *g;
  if (n == 1) {
    set_distance(loops->a, &inner.a_k, &inner.a_k_size);
    set_distance(loops->b, &inner.b_k, &inner.b_k_size);
    inner.k = loops->n;
    emit_gemm_block(w, &inner, sums);
    return;
  }
  int n_sums = g->tile.rows * g->tile.vectors;
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), loops->n, 1, LLVMIsAConstantInt(loops->n), n_sums, sums);
  inner.a = apart(w, g, g->a, 1, LLVMBuildNSWMul(w->builder, l.iv, loops->a, ""));
  inner.b = apart(w, g, g->b, 1, LLVMBuildNSWMul(w->builder, l.iv, loops->b, ""));
  if (g->fetch.from) {
    inner.fetch = emit_fetch_part(w, &g->fetch, l.iv, loops->n);
  }
  memcpy(sums, l.carried, (size_t)n_sums * sizeof *sums);
  emit_gemm_nest(w, &inner, n - 1, loops + 1, sums);
  emit_loop_end(w, &l, sums);
  memcpy(sums, l.carried, (size_t)n_sums * sizeof *sums);
}

void emit_gemm_store(const emit_ir *w, const emit_gemm *g, const LLVMValueRef *sums, LLVMValueRef tile) {
  const emit_gemm_tile *t = &g->tile;
  for (int r = 0; r < t->rows; r++) {
    for (int v = 0; v < t->vectors; v++) {
      LLVMValueRef at = emit_i64(w, r * EMIT_GEMM_TILE_VECTORS + v);
      LLVMValueRef to = LLVMBuildInBoundsGEP2(w->builder, sum_type(w, g), tile, &at, 1, "");
      LLVMValueRef store = LLVMBuildStore(w->builder, sums[r * t->vectors + v], to);
      LLVMSetAlignment(store, (unsigned)dtype_bytes(emit_compute_type(g->type)));
    }
  }
}

int emit_gemm_lines(const emit_gemm_tile *t, dtype type, int blocks) {
  int unroll = choose_unroll(&(emit_gemm){.tile = *t}, MOST_UNROLL),
      bytes = t->vectors * t->lanes * unroll * (int)dtype_bytes(type);
  return (bytes / LINE + blocks - 1) / blocks;
}
