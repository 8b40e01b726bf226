/* random.h - two generators of random 32-bit words, which give the same words on every machine and in every version.
 *
 * philox  Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011): a keyed
 *           function of a 128-bit counter, so that each word can be computed without the others
 * mt19937  Matsumoto and Nishimura's Mersenne twister of 1998 with the seeding of 2002, as in numpy's RandomState:
 *           each word is computed from the words before it */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* The constants of Philox, which the code emitted by emit/ uses, too. */
enum { PHILOX_ROUNDS = 10, PHILOX_WORDS = 4 };
static const uint32_t philox_multipliers[2] = {0xD2511F53, 0xCD9E8D57};
static const uint32_t philox_weyl[2] = {0x9E3779B9, 0xBB67AE85}; /* added to the key's words after each round */

/* Computes the block of four words for a counter, which is given as its low and high 64 bits. */
void philox_block(uint64_t key, uint64_t low, uint64_t high, uint32_t out[PHILOX_WORDS]);
/* Computes words [first, first + n) of the stream that begins with the block of counter (low, high).  From block to
 * block `low` is incremented and wraps around; `high` stays the same. */
void philox_words(uint64_t key, uint64_t low, uint64_t high, uint64_t first, uint64_t n, uint32_t *out);

enum { MT19937_STATE = 624 };
typedef struct mt19937 {
  uint32_t words[MT19937_STATE];
  int at;
} mt19937;

void mt19937_seed(mt19937 *g, uint32_t seed);
/* Generates the next n words. */
void mt19937_words(mt19937 *g, uint64_t n, uint32_t *out);

#endif
