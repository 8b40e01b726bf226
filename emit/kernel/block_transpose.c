/* block_transpose.c - transposes and the elementwise operations around them, for blocks of threads.
 *
 * If the innermost dimension of the result is not that of the transposed array, and the lanes of a warp take
 * neighbouring elements of one of the two arrays, they access elements of the other one that are far apart, each in a
 * line of memory of its own.  So a block brings a tile of the transposed values, which may be computed, to shared
 * memory: there neighbouring lanes take what is next to each other in the operand.  After a barrier they take what is
 * next to each other in the result, and apply the operations that follow.
 *
 * In one of these two accesses of shared memory, neighbouring lanes access neighbouring places.  In the other one they
 * access places that are a line of the tile apart.  A gap after every 128 bytes, or after every line if that is longer,
 * moves these places to different banks.  The gap has one word, or one place if a place is larger than a word. */
#include "emit/kernel/block.h"
#include "emit/kernel/transpose_tiles.h"

enum {
  THREADS = 256,
  LINE = 128, /* bytes that a GPU brings from memory at once, and the width of all banks of shared memory together */
  WORD = 4,   /* bytes of a bank */
  LEAST = 8,  /* the fewest rows or columns; fewer would leave most of a tile unused */
  LEAST_SIDE = 32, /* the least side of a tile whose dimensions are long enough */
  MOST_SIDE = 128,
  LEAST_ELEMENTS = 2 * THREADS, /* the fewest elements of a tile; a smaller one is not worth a block */
  GOOD_ELEMENTS = 4 * THREADS,  /* so that each thread has several loads under way */
  AT_ONCE = 8,                  /* the most elements whose loads a thread begins before it uses any of them */
  MOST_BYTES = 48 * 1024        /* the most shared memory that a tile takes; every GPU has this much */
};

typedef struct tile {
  emit_transposes t;
  int64_t rows, columns;                        /* the sides of the tile, powers of two */
  LLVMValueRef memory[EMIT_MOST_TRANSPOSES][2]; /* for each transpose the places of its tile, and those of the imaginary
                                                   parts, or NULL if it is not complex */
} tile;

/* --- choosing --- */

static dtype type_of(const emit_transposes *t, int k) { return (dtype)t->of[k]->shapes[0].type; }

/* Returns the bytes of a place of transpose k in shared memory.  A place has an element, or one part of a complex
 * number. */
static int64_t place_bytes(const emit_transposes *t, int k) {
  dtype type = type_of(t, k);
  return (int64_t)dtype_bytes(type) / (dtype_is_complex(type) ? 2 : 1);
}

/* The shorter side of the tile is a line of shared memory. */
static int64_t line_of(const tile *t) { return t->rows < t->columns ? t->rows : t->columns; }

/* The first returns how many places lie between two gaps, the second how many places a gap has. */
static int64_t run_of(const tile *t, int64_t bytes) {
  int64_t line = line_of(t), most = bytes < LINE ? LINE / bytes : 1;
  return line > most ? line : most;
}
static int64_t gap_of(int64_t bytes) { return bytes < WORD ? WORD / bytes : 1; }

static int64_t places_of(const tile *t, int64_t bytes) {
  int64_t n = t->rows * t->columns;
  return n + n / run_of(t, bytes) * gap_of(bytes);
}

static int64_t shared_bytes(const tile *t) {
  int64_t sum = 0;
  for (int k = 0; k < t->t.n; k++) {
    int64_t bytes = place_bytes(&t->t, k);
    sum += (int64_t)dtype_bytes(type_of(&t->t, k)) * places_of(t, bytes);
  }
  return sum;
}

static void halve_longer(tile *t) {
  int64_t *side = t->rows > t->columns ? &t->rows : &t->columns;
  *side /= 2;
}

/* Sets the sides of the tile: each has as many elements of the smallest type as a line of memory, but no more than the
 * extents need.  If one side is short, the other one may be longer. */
static void set_sides(tile *t, double rows, double columns) {
  int64_t least = MOST_SIDE;
  for (int k = 0; k < t->t.n; k++) {
    int64_t bytes = (int64_t)dtype_bytes(type_of(&t->t, k));
    least = bytes < least ? bytes : least;
  }
  int64_t side = LINE / least > LEAST_SIDE ? LINE / least : LEAST_SIDE;
  const double extents[2] = {rows, columns};
  int64_t sides[2] = {side, side};
  for (int k = 0; k < 2; k++) {
    while (sides[k] > LEAST && (double)(sides[k] / 2) >= extents[k]) {
      sides[k] /= 2;
    }
  }
  for (int k = 0; k < 2; k++) {
    while (sides[0] * sides[1] < GOOD_ELEMENTS && sides[k] < MOST_SIDE && (double)sides[k] < extents[k]) {
      sides[k] *= 2;
    }
  }
  t->rows = sides[0];
  t->columns = sides[1];
  while (shared_bytes(t) > MOST_BYTES) {
    halve_longer(t);
  }
}

static bool choose(emit_writer *w, tile *t) {
  *t = (tile){.rows = 0};
  if (w->e.w->target->execution != EMIT_BLOCKS || !emit_find_transposes(w, &t->t)) {
    return false;
  }
  const dim_table *table = w->e.x.sizes->table;
  double rows = emit_likely_size(table, t->t.dims[t->t.column]);
  double columns = emit_likely_size(table, t->t.dims[t->t.rank - 1]);
  set_sides(t, rows, columns);
  return rows >= LEAST && columns >= LEAST && t->rows * t->columns >= LEAST_ELEMENTS;
}

bool emit_is_block_transpose(emit_writer *w) {
  tile t;
  return choose(w, &t);
}

/* --- the elements of a thread --- */

/* How the threads share the elements of the tile: those of neighbouring threads are next to each other along one
 * dimension, and a thread has several along the other one. */
typedef struct share {
  const tile *t;
  bool along_rows;         /* whether neighbouring threads have neighbouring rows */
  LLVMValueRef fast, slow; /* the position of the thread's first element along the one dimension and along the other */
  int64_t step;            /* the distance to the thread's next element, along the other dimension */
  int64_t n;               /* how many elements each thread has */
  LLVMValueRef from;       /* the number of the thread's element that is element 0 in the functions below */
} share;

static share share_of(const tile *t, bool along_rows) {
  const emit_ir *ir = t->t.w->e.w;
  int64_t side = along_rows ? t->rows : t->columns;
  LLVMValueRef thread = emit_thread_number(t->t.w), by = emit_i64(ir, side);
  return (share){.t = t,
                 .from = emit_i64(ir, 0),
                 .along_rows = along_rows,
                 .fast = LLVMBuildURem(ir->builder, thread, by, ""),
                 .slow = LLVMBuildUDiv(ir->builder, thread, by, ""),
                 .step = THREADS / side,
                 .n = t->rows * t->columns / THREADS};
}

/* Returns x + n * step. */
static LLVMValueRef advanced(const emit_ir *ir, LLVMValueRef x, LLVMValueRef n, int64_t step) {
  return LLVMBuildNSWAdd(ir->builder, x, LLVMBuildNSWMul(ir->builder, n, emit_i64(ir, step), ""), "");
}

/* Constants are added last in both of the following functions, so that they become a part of the instructions that
 * access memory, and neighbouring elements share the rest of their addresses. */

/* Returns the address in shared memory, whose places have `bytes` bytes, of the thread's element j. */
static LLVMValueRef place_of(const share *s, LLVMValueRef memory, LLVMTypeRef type, int64_t bytes, int64_t j) {
  const tile *t = s->t;
  const emit_ir *ir = t->t.w->e.w;
  LLVMBuilderRef b = ir->builder;
  int64_t length = line_of(t), run = run_of(t, bytes), gap = gap_of(bytes);
  bool along_line = s->along_rows == (t->rows < t->columns);
  LLVMValueRef line = along_line ? s->slow : s->fast, in_line = along_line ? s->fast : s->slow;
  LLVMValueRef gaps = LLVMBuildUDiv(b, line, emit_i64(ir, run / length), "");
  LLVMValueRef first = advanced(ir, advanced(ir, in_line, line, length), gaps, gap);
  int64_t step = along_line ? THREADS + THREADS / run * gap : s->step;
  LLVMValueRef at = LLVMBuildNSWAdd(b, advanced(ir, first, s->from, step), emit_i64(ir, j * step), "");
  return LLVMBuildInBoundsGEP2(b, type, memory, &at, 1, "");
}

/* Returns the index of the thread's element j; `first` is that of the tile's first element.  Sets *inside to an i1 that
 * is true if there is such an element, or to NULL if there surely is.  If `inside` is NULL, positions beyond the end of
 * a dimension are replaced by the last one. */
static const emit_index *index_of(const share *s, const emit_index *first, int64_t j, LLVMValueRef *inside) {
  const emit_transposes *f = &s->t->t;
  emit_indexer *x = &f->w->e.x;
  LLVMValueRef slow = advanced(x->w, s->slow, s->from, s->step);
  const LLVMValueRef own[2] = {s->along_rows ? s->fast : slow, s->along_rows ? slow : s->fast};
  const int64_t more[2] = {s->along_rows ? 0 : j * s->step, s->along_rows ? j * s->step : 0};
  const int64_t sides[2] = {s->t->rows, s->t->columns};
  const int of[2] = {f->column, f->rank - 1};
  emit_pos p[2];
  LLVMValueRef all = NULL;
  for (int k = 0; k < 2; k++) {
    dim extent = f->dims[of[k]];
    p[k] = emit_pos_add(x, emit_index_dim(x, first, of[k]), emit_pos_at(own[k], 1));
    p[k] = emit_pos_add_const(x, p[k], more[k]);
    if (!emit_divides(x, sides[k], extent)) {
      LLVMValueRef is = emit_icmp(x->w, LLVMIntSLT, p[k].base, emit_size(x, extent));
      all = all ? LLVMBuildAnd(x->w->builder, all, is, "") : is;
      p[k] = inside ? p[k] : emit_pos_clamp(x, p[k], extent);
    }
    p[k] = emit_pos_below(p[k], extent);
  }
  if (inside) {
    *inside = all;
  }
  return emit_transposed_index(f, first, p[0], p[1]);
}

/* --- the kernel --- */

/* A function that writes code for n of the thread's elements. */
typedef void some_fn(const share *s, const emit_index *first, int64_t n);

static void for_all(const share *s, const emit_index *first, some_fn *write) {
  emit_writer *w = s->t->t.w;
  const emit_ir *ir = w->e.w;
  share some = *s;
  int64_t n = s->n < AT_ONCE ? s->n : AT_ONCE;
  emit_loop l;
  uint32_t mark = emit_table_mark(w->e.x.table);
  emit_loop_begin(ir, &l, s->from, emit_i64(ir, s->n), n, true, 0, NULL);
  some.from = n < s->n ? l.iv : s->from;
  write(&some, first, n);
  emit_loop_end(ir, &l, NULL);
  emit_table_release(w->e.x.table, mark);
}

/* Brings transposed values to shared memory.  A place beyond the end of a dimension gets the value of the dimension's
 * last element. */
static void bring(const share *s, const emit_index *first, int64_t n) {
  const emit_transposes *f = &s->t->t;
  const emit_ir *ir = f->w->e.w;
  emit_pair v[AT_ONCE];
  for (int k = 0; k < f->n; k++) {
    dtype type = type_of(f, k);
    for (int64_t j = 0; j < n; j++) {
      v[j] = emit_transposed_value(f, k, index_of(s, first, j, NULL));
    }
    for (int64_t j = 0; j < n; j++) {
      LLVMValueRef parts[2] = {emit_to_memory(ir, type, v[j].v), v[j].im};
      for (int part = 0; part < 2 && parts[part]; part++) {
        LLVMTypeRef place = emit_memory_type(ir, type);
        LLVMBuildStore(ir->builder, parts[part], place_of(s, s->t->memory[k][part], place, place_bytes(f, k), j));
      }
    }
  }
}

/* Declares the transposed values of element j to be those in shared memory. */
static void take(const share *s, const emit_index *at, int64_t j) {
  const emit_transposes *f = &s->t->t;
  const emit_ir *ir = f->w->e.w;
  for (int k = 0; k < f->n; k++) {
    dtype type = type_of(f, k);
    LLVMTypeRef place = emit_memory_type(ir, type);
    LLVMValueRef parts[2] = {NULL, NULL};
    for (int part = 0; part < 2 && s->t->memory[k][part]; part++) {
      LLVMValueRef from = place_of(s, s->t->memory[k][part], place, place_bytes(f, k), j);
      parts[part] = LLVMBuildLoad2(ir->builder, place, from, "");
    }
    emit_set_transposed(f, k, at, (emit_pair){emit_from_memory(ir, type, parts[0]), parts[1]});
  }
}

/* Stores results, and computes the operations that follow the transposes.  A result may share the buffer of an operand
 * of these operations (emit_can_alias): the operand's element is then read only by the thread that overwrites it. */
static void store(const share *s, const emit_index *first, int64_t n) {
  emit_writer *w = s->t->t.w;
  for (int64_t j = 0; j < n; j++) {
    LLVMValueRef inside;
    const emit_index *at = index_of(s, first, j, &inside);
    LLVMBasicBlockRef after = inside ? emit_if_begin(w->e.w, inside) : NULL;
    uint32_t mark = emit_table_mark(w->e.x.table);
    take(s, at, j);
    emit_store_roots(w, at);
    emit_table_release(w->e.x.table, mark);
    if (after) {
      emit_if_end(w->e.w, after);
    }
  }
}

/* Returns the index of the first element of the tile that `at`, an index of the array of tiles, selects. */
static const emit_index *first_of(const tile *t, const emit_index *at) {
  const emit_transposes *f = &t->t;
  emit_indexer *x = &f->w->e.x;
  emit_index *first = emit_index_new(x, f->rank, f->dims);
  for (int d = 0; d < f->rank; d++) {
    int64_t side = d == f->column ? t->rows : d == f->rank - 1 ? t->columns : 1;
    emit_axis_at(first, d, emit_pos_scale(x, emit_index_dim(x, at, d), side));
  }
  return first;
}

static void body(emit_writer *w, const void *data, const emit_index *at) {
  const tile *t = data;
  const emit_index *first = first_of(t, at);
  share by_rows = share_of(t, true), by_columns = share_of(t, false);
  for_all(&by_rows, first, bring);
  emit_barrier(w);
  emit_uniformity outside = w->uniform;
  w->uniform = EMIT_DIVERGENT;
  for_all(&by_columns, first, store);
  w->uniform = outside;
}

void emit_write_block_transpose(emit_writer *w) {
  tile *t = ARENA_NEW(w->e.w->arena, tile);
  (void)choose(w, t);
  emit_block_team(w, THREADS, THREADS);
  for (int k = 0; k < t->t.n; k++) {
    int64_t bytes = place_bytes(&t->t, k);
    LLVMTypeRef type = emit_memory_type(w->e.w, type_of(&t->t, k));
    for (int part = 0; part <= dtype_is_complex(type_of(&t->t, k)); part++) {
      t->memory[k][part] = emit_shared_memory(w, type, places_of(t, bytes), (uint32_t)bytes);
    }
  }
  emit_nest(w, t->t.rank, emit_transposed_tiles(&t->t, t->rows, t->columns), 1, false, body, t);
}
