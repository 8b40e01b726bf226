/* check_memory_span.c - compares memory_spans_overlap with a comparison of all pairs of spans. */
#include <check.h>
#include <stdlib.h>

#include "base/memory_span.h"
#include "tests/suite.h"

enum { ROUNDS = 20000, MOST = 8, PLACES = 24 };

static char memory[PLACES + MOST];
static uint64_t state = 1;

static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % n;
}

/* Returns true if the spans have a byte in common and at least one of them is written, by looking at every
 * byte. */
static bool clash(const memory_span *x, const memory_span *y) {
  bool common = false;
  for (const char *p = memory; p < memory + sizeof memory; p++) {
    common |= p >= (const char *)x->data && p < (const char *)x->data + x->bytes && p >= (const char *)y->data &&
              p < (const char *)y->data + y->bytes;
  }
  return common && (x->is_written || y->is_written);
}

/* Returns the number of spans that are read in exactly the memory of this one, which is written. */
static int count_equal(uint32_t n, const memory_span *all, const memory_span *s) {
  int equal = 0;
  for (uint32_t k = 0; k < n; k++) {
    equal += s->is_written && s->bytes && !all[k].is_written && all[k].data == s->data && all[k].bytes == s->bytes;
  }
  return equal;
}

/* Returns true if one of the two is written in exactly the memory of the other, which is read, and no further
 * span is read there. */
static bool allowed(uint32_t n, const memory_span *all, const memory_span *x, const memory_span *y) {
  return x->data == y->data && x->bytes == y->bytes && x->is_written != y->is_written &&
         count_equal(n, all, x->is_written ? x : y) == 1;
}

START_TEST(random_spans) {
  int found = 0, both = 0;
  for (int round = 0; round < ROUNDS; round++) {
    memory_span spans[MOST], all[MOST], pair[2];
    uint32_t n = below(MOST + 1);
    bool want = false;
    for (uint32_t k = 0; k < n; k++) {
      spans[k] = all[k] = (memory_span){memory + below(PLACES), below(MOST), below(2), k, false};
    }
    for (uint32_t k = 0; k < n; k++) {
      for (uint32_t j = 0; j < k; j++) {
        want |= clash(&all[j], &all[k]) && !allowed(n, all, &all[j], &all[k]);
      }
    }
    ck_assert_int_eq(memory_spans_overlap(n, spans, pair), want);
    for (uint32_t k = 0; !want && k < n; k++) {
      bool is_both = count_equal(n, all, &all[spans[k].index]) == 1;
      ck_assert_int_eq(spans[k].is_both, is_both);
      both += is_both;
    }
    if (want) {
      found++;
      ck_assert_uint_ne(pair[0].index, pair[1].index);
      ck_assert(clash(&all[pair[0].index], &all[pair[1].index]));
    }
  }
  ck_assert_int_gt(found, ROUNDS / 4);
  ck_assert_int_gt(both, 0);
  ck_assert_int_lt(found, ROUNDS);
}
END_TEST

/* The sum of address and length must not wrap around. */
START_TEST(end_of_memory) {
  void *last = (void *)(UINTPTR_MAX - 7);
  memory_span pair[2], far[] = {{last, SIZE_MAX, true, 0, false}, {memory, 8, true, 1, false}};
  memory_span near[] = {{last, 8, true, 0, false}, {(void *)UINTPTR_MAX, 1, false, 1, false}};
  ck_assert(!memory_spans_overlap(2, far, pair));
  ck_assert(memory_spans_overlap(2, near, pair));
}
END_TEST

int main(void) {
  TCase *c = tcase_create("memory_span");
  tcase_add_test(c, random_spans);
  tcase_add_test(c, end_of_memory);
  return run_suite("memory_span", c);
}
