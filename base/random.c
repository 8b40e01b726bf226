/* random.c - Philox and the Mersenne twister. */
#include "base/random.h"

/* --- Philox4x32-10 --- */

void philox_block(uint64_t key, uint64_t low, uint64_t high, uint32_t out[PHILOX_WORDS]) {
  uint32_t x[PHILOX_WORDS] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
  uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    uint64_t p = (uint64_t)philox_multipliers[0] * x[0], q = (uint64_t)philox_multipliers[1] * x[2];
    x[0] = (uint32_t)(q >> 32) ^ x[1] ^ k[0];
    x[2] = (uint32_t)(p >> 32) ^ x[3] ^ k[1];
    x[1] = (uint32_t)q;
    x[3] = (uint32_t)p;
    k[0] += philox_weyl[0];
    k[1] += philox_weyl[1];
  }
  for (int j = 0; j < PHILOX_WORDS; j++) {
    out[j] = x[j];
  }
}

void philox_words(uint64_t key, uint64_t low, uint64_t high, uint64_t first, uint64_t n, uint32_t *out) {
  uint32_t block[PHILOX_WORDS];
  for (uint64_t k = first; k < first + n; k++) {
    if (k == first || k % PHILOX_WORDS == 0) {
      philox_block(key, low + k / PHILOX_WORDS, high, block);
    }
    *out++ = block[k % PHILOX_WORDS];
  }
}

/* --- MT19937 --- */

void mt19937_seed(mt19937 *g, uint32_t seed) {
  g->words[0] = seed;
  for (uint32_t k = 1; k < MT19937_STATE; k++) {
    uint32_t before = g->words[k - 1];
    g->words[k] = 1812433253u * (before ^ before >> 30) + k;
  }
  g->at = MT19937_STATE;
}

static void renew(mt19937 *g) {
  enum { FAR = 397 };
  uint32_t *w = g->words;
  for (int k = 0; k < MT19937_STATE; k++) {
    uint32_t next = w[(k + 1) % MT19937_STATE], y = (w[k] & 0x80000000u) | (next & 0x7fffffffu);
    w[k] = w[(k + FAR) % MT19937_STATE] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
  }
  g->at = 0;
}

void mt19937_words(mt19937 *g, uint64_t n, uint32_t *out) {
  for (uint64_t k = 0; k < n; k++) {
    if (g->at == MT19937_STATE) {
      renew(g);
    }
    uint32_t y = g->words[g->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    out[k] = y ^ y >> 18;
  }
}
