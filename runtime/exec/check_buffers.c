/* check_buffers.c - see check_buffers.h. */
#include "runtime/exec/check_buffers.h"

#include <inttypes.h>

/* The bound for buffers of counters.  Their space is made when a program runs, as large as its thunks need, so the
 * bound only has to refuse sizes that no program has. */
#define MOST_COUNTER_BYTES ((uint64_t)1 << 28)

static uint64_t space_bytes(const rt_program *p, const rt_buffer *b) {
  switch (b->space) {
    case RT_ARENA: return b->index == 0 ? p->arena_bytes : 0;
    case RT_CONSTANT: return b->index < p->n_constants ? p->constants[b->index].size : 0;
    case RT_PARAM: return b->index < p->n_params ? (uint64_t)shape_bytes(&p->params[b->index].shape) : 0;
    case RT_RESULT: return b->index < p->n_results ? (uint64_t)shape_bytes(&p->results[b->index].shape) : 0;
    case RT_COUNTERS: return MOST_COUNTER_BYTES;
    default: return 0;
  }
}

bool rt_buffer_reach(const rt_buffer *b, int64_t *bytes) {
  int64_t last = 0, n = 1;
  for (int k = 0; k < b->rank; k++) {
    int64_t reach;
    if (b->extents[k] < 0 || b->strides[k] < 0 || __builtin_mul_overflow(n, b->extents[k], &n)) {
      return false;
    }
    if (b->extents[k] > 0 && (__builtin_mul_overflow(b->extents[k] - 1, b->strides[k], &reach) ||
                              __builtin_add_overflow(last, reach, &last))) {
      return false;
    }
  }
  if (n == 0) {
    *bytes = 0;
    return true;
  }
  return !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, (int64_t)dtype_bytes(b->type), bytes);
}

/* Checks that the buffer is inside its space (rt_space) and aligned to its element type. */
static status check_buffer(const rt_program *p, const rt_buffer *b) {
  int64_t bytes;
  uint64_t space = space_bytes(p, b);
  CHECK_THAT(b->space < RT_SPACE_COUNT && b->type > 0 && b->type < DTYPE_COUNT && b->rank <= SHAPE_MAX_RANK,
             STATUS_INVALID_FILE, "a buffer is damaged");
  CHECK_THAT(rt_buffer_reach(b, &bytes) && b->offset >= 0 && (uint64_t)b->offset <= space &&
                 (uint64_t)bytes <= space - (uint64_t)b->offset,
             STATUS_INVALID_FILE, "a buffer lies outside of its space");
  CHECK_THAT(b->offset % (int64_t)dtype_bytes(b->type) == 0, STATUS_INVALID_FILE, "a buffer is misaligned");
  return NULL;
}

/* Returns true if thunks may write the buffer.  Constants and the caller's inputs are only read. */
static bool is_writable(const rt_buffer *b) {
  return b->space == RT_ARENA || b->space == RT_RESULT || b->space == RT_COUNTERS;
}

static bool overlap(const rt_buffer *x, const rt_buffer *y) {
  return x->space == y->space && x->index == y->index && x->offset < y->offset + rt_buffer_bytes(y) &&
         y->offset < x->offset + rt_buffer_bytes(x);
}

/* Returns true if the output may overlap the input, given the order in which thunks of this kind read and write. */
static bool may_overlap(rt_access access, const rt_buffer *input, const rt_buffer *output) {
  return access == RT_READS_ALL_FIRST || (access == RT_READS_ELEMENT_FIRST && input->offset == output->offset &&
                                          rt_buffer_bytes(input) == rt_buffer_bytes(output));
}

/* Checks that no output of a thunk overlaps another output, or an input that the thunk may still read after it began
 * to write the output. */
static status check_overlaps(const rt_thunk *t) {
  for (uint32_t w = t->n_inputs; w < t->n_buffers; w++) {
    for (uint32_t k = 0; k < w; k++) {
      bool allowed = k < t->n_inputs && may_overlap(t->ops->access, &t->buffers[k], &t->buffers[w]);
      CHECK_THAT(allowed || !overlap(&t->buffers[k], &t->buffers[w]), STATUS_INVALID_FILE,
                 "buffer %" PRIu32 " is written over buffer %" PRIu32 ", which %s still needs", w, k, t->kind);
    }
  }
  return NULL;
}

status rt_check_buffers(const rt_program *p, const rt_thunk *t) {
  for (uint32_t b = 0; b < t->n_buffers; b++) {
    TRY(check_buffer(p, &t->buffers[b]));
    CHECK_THAT(b < t->n_inputs || is_writable(&t->buffers[b]), STATUS_INVALID_FILE,
               "a result is in memory that must not be written");
  }
  return check_overlaps(t);
}
