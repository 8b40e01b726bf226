/* mma_product_internal.h - the state of mma_product.h's kernel while its code is written, and how factors get to shared
 * memory.
 *
 * Shared memory has a few stages.  A stage has room for the factors of the tile's rows and columns at a few
 * positions in the sum (emit_mma_kernel.sums).  A chunk is what a thread brings there at once: 16 bytes of factors,
 * either of one row or column, or of neighbouring rows or columns at one position in the sum. */
#ifndef EMIT_BLOCKS_MMA_PRODUCT_INTERNAL_H
#define EMIT_BLOCKS_MMA_PRODUCT_INTERNAL_H

#include "emit/blocks/mma_product.h"
#include "emit/blocks/sum_parts.h"

/* The pad lets the eight chunks that a load or store of a warp accesses at a time lie in different banks. */
enum { EMIT_MMA_CHUNK = 4, EMIT_MMA_STAGE_WORDS = 16, EMIT_MMA_PAD = 4 };
enum {
  EMIT_MMA_PITCH = EMIT_MMA_STAGE_WORDS + EMIT_MMA_PAD,
  EMIT_MMA_CHUNKS = EMIT_MMA_STAGE_WORDS / EMIT_MMA_CHUNK, /* the chunks of a row or column in a stage */
  EMIT_MMA_SIDE = 16,                                      /* a fragment's rows or columns */
  EMIT_MMA_MOST_SIDE = 128,                                /* the most rows or columns of a block's tile */
  EMIT_MMA_LEAST_THREADS = 64,
  /* The most chunks of a side that a thread brings. */
  EMIT_MMA_MOST_CHUNKS = EMIT_MMA_MOST_SIDE * EMIT_MMA_CHUNKS / EMIT_MMA_LEAST_THREADS
};

/* How a thread brings factors to shared memory. */
typedef enum emit_mma_transport {
  EMIT_MMA_SINGLE,     /* it loads the factors of a chunk one by one */
  EMIT_MMA_ALONG_SUMS, /* it loads the factors of a chunk as a vector */
  EMIT_MMA_ACROSS,     /* it loads factors of neighbouring rows or columns as vectors, which fill several chunks */
  EMIT_MMA_COPY_ALONG, /* it has chunks copied as they are (emit_copy_begin) */
  EMIT_MMA_COPY_ACROSS /* the same, for chunks of neighbouring rows or columns, at one position in the sum */
} emit_mma_transport;

/* One side of the tile: the rows, or the columns. */
typedef struct emit_mma_side {
  uint32_t operand;
  const emit_tile_group *dims;
  dtype type;           /* the type of the factors in shared memory */
  int64_t extent;       /* the number of rows or columns of a block's tile */
  int64_t offset;       /* where the side's factors begin in a stage, in words */
  LLVMValueRef first;   /* the first row or column of the block's tile */
  LLVMValueRef of_warp; /* the warp's first row or column, counted in the block's tile */
  bool sums_first;      /* whether neighbouring threads load neighbouring chunks of one row or column */
  emit_mma_transport transport;
} emit_mma_side;

typedef struct emit_mma_kernel {
  emit_writer w;
  const emit_ir *ir;
  emit_tile_geometry g;
  emit_mma_tile tile;
  /* The number of threads in the block, of positions in the sum for which a stage has factors, and of stages. */
  int64_t threads, sums, stages;
  LLVMTypeRef sum; /* the type of the sums */
  LLVMValueRef thread, memory;
  emit_tile_step step;
  emit_sum_part own; /* the positions in the sum that the block adds up */
  emit_mma_side rows, columns;
} emit_mma_kernel;

/* Returns the address of a word of the block's shared memory. */
LLVMValueRef emit_mma_word(const emit_mma_kernel *k, LLVMValueRef at);

/* Returns the side of tile number `tile`, whose factors begin `offset` words after the beginning of a stage. */
emit_mma_side emit_mma_make_side(const emit_mma_kernel *k, uint32_t operand, const emit_tile_group *dims,
                                 int64_t extent, LLVMValueRef tile, int64_t offset);
/* Returns how many words of a stage the side has. */
int64_t emit_mma_side_words(const emit_mma_kernel *k, const emit_mma_side *s);
/* Returns true if the side's factors are copied. */
bool emit_mma_copies(const emit_mma_side *s);

/* A chunk that a thread brings from a buffer to shared memory. */
typedef struct emit_mma_chunk {
  LLVMValueRef at;                    /* the number of its first word, counted from the beginning of a stage */
  LLVMValueRef words[EMIT_MMA_CHUNK]; /* its words between load and store; not set if the chunk is copied */
} emit_mma_chunk;
/* All chunks that a thread brings for one stage: of[0] are those of the tile's rows, of[1] those of its columns. */
typedef struct emit_mma_brought {
  emit_mma_chunk of[2][EMIT_MMA_MOST_CHUNKS];
} emit_mma_brought;

/* Sets where in a stage the thread's chunks belong. */
void emit_mma_place_chunks(const emit_mma_kernel *k, emit_mma_brought *b);
/* Begins to bring the factors for positions in the sum from first_sum on to the stage whose first word has number
 * `stage`.  Copies are begun and made one group; the other chunks are loaded into b.  If first_sum is not a position
 * that the block adds up (k->own), nothing is brought: the group is empty, and the other chunks in b become zeros. */
void emit_mma_begin_stage(emit_mma_kernel *k, LLVMValueRef first_sum, LLVMValueRef stage, emit_mma_brought *b);
/* Stores the chunks that were loaded. */
void emit_mma_end_stage(const emit_mma_kernel *k, LLVMValueRef stage, const emit_mma_brought *b);
/* Waits until the thread's copies have arrived, except those for the last `stages` stages. */
void emit_mma_await_stage(emit_mma_kernel *k, int64_t stages);

/* Sets out[] to fragment number j of the warp's rows or columns, for the words of the stage from number `word` on: four
 * words for emit_mma, or for f64 two numbers for emit_mma_f64. */
void emit_mma_load_fragment(emit_mma_kernel *k, const emit_mma_side *s, int64_t j, LLVMValueRef stage, int64_t word,
                            LLVMValueRef *out);

#endif
