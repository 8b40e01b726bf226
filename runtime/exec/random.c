/* random.c - the thunk kinds for the run's seed and for the Mersenne twister. */
#include "runtime/exec/random.h"

#include "base/random.h"

status rt_load_run_seed(rt_thunk *t, rt_loader *l) {
  (void)l;
  CHECK_THAT(t->n_buffers == 1 && t->n_inputs == 0 && t->buffers[0].type == DTYPE_U64 &&
                 rt_buffer_elements(&t->buffers[0]) == 1,
             STATUS_INVALID_FILE, "damaged");
  return NULL;
}

status rt_run_run_seed(const rt_thunk *t, rt_run *r) {
  *(uint64_t *)rt_address(r, &t->buffers[0]) = r->seed;
  return NULL;
}

status rt_bind_mt19937(rt_thunk *t, arena *a) {
  (void)a;
  bool ok = t->n_buffers == 2 && t->n_inputs == 1 && t->buffers[0].type == DTYPE_U64 &&
            rt_buffer_elements(&t->buffers[0]) == 1 &&
            (t->buffers[1].type == DTYPE_U32 || t->buffers[1].type == DTYPE_U64) && rt_buffer_is_dense(&t->buffers[1]);
  CHECK_THAT(ok, STATUS_INVALID_FILE, "damaged");
  return NULL;
}

/* Fills the output with words of the Mersenne twister.  A u64 consists of two words, the low one first: that is their
 * order in memory, since hosts are little-endian. */
status rt_run_mt19937(const rt_thunk *t, rt_run *r) {
  enum { CHUNK = 1 << 16 };
  const rt_buffer *bits = &t->buffers[1];
  uint64_t n = (uint64_t)rt_buffer_bytes(bits) / sizeof(uint32_t);
  uint32_t *out = rt_address(r, bits);
  mt19937 g;
  mt19937_seed(&g, (uint32_t) * (const uint64_t *)rt_address(r, &t->buffers[0]));
  for (uint64_t at = 0; at < n; at += CHUNK) {
    TRY(budget_check(r->budget));
    mt19937_words(&g, n - at < CHUNK ? n - at : CHUNK, out + at);
  }
  return NULL;
}
