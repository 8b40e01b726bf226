/* random.c - random bits, and the seed from which they are made. */
#include "base/random.h"

#include "backend_ref/ref.h"

/* The evaluator uses the seed 0.  In programs the runtime writes the seed of the run (runtime/exec/random.c). */
status ref_run_seed(ref_call *c) {
  *(uint64_t *)ref_result(c, 0) = 0;
  return NULL;
}

/* Combines two words to a u64; the first word is the low one. */
static void combine(const uint32_t *words, uint64_t n, uint64_t *out) {
  for (uint64_t k = 0; k < n; k++) {
    out[k] = (uint64_t)words[2 * k + 1] << 32 | words[2 * k];
  }
}

status ref_rng(ref_call *c) {
  enum { CHUNK = 4096 };
  const uint64_t *state = c->in[0].data;
  bool philox = hlo_int(c->i, HLO_ATTR_ALGORITHM) == HLO_PHILOX, wide = c->out[0].shape.type == DTYPE_U64;
  uint64_t n = (uint64_t)shape_elements(&c->out[0].shape), per = wide ? 2 : 1;
  void *data = ref_result(c, 0);
  uint32_t words[2 * CHUNK];
  mt19937 g;
  mt19937_seed(&g, (uint32_t)state[0]);
  for (uint64_t at = 0; at < n; at += CHUNK) {
    uint64_t m = n - at < CHUNK ? n - at : CHUNK;
    uint32_t *to = wide ? words : (uint32_t *)data + at;
    TRY(ref_check_budget(c));
    if (philox) {
      philox_words(state[0], state[1], state[2], at * per, m * per, to);
    } else {
      mt19937_words(&g, m * per, to);
    }
    if (wide) {
      combine(words, m, (uint64_t *)data + at);
    }
  }
  return NULL;
}
