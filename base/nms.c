/* nms.c - non-maximum suppression.  Candidates are in a heap, the best one on top.  The coordinates of chosen boxes are
 * in separate arrays, so that a candidate is compared with several of them by vector instructions. */
#include "base/nms.h"

#include <string.h>

enum {
  BLOCK = 16,           /* the number of chosen boxes with which a candidate is compared at once */
  LOOK = 1 << 20,       /* the number of comparisons after which the budget is checked again */
  AROUND_CANDIDATE = 64 /* what a candidate costs besides its comparisons, as a number of comparisons */
};

/* The boxes that are chosen in one line (one batch and class, see nms.h), with a separate array for each coordinate and
 * for the areas.  The last block is filled up with boxes of area 0, which suppress nothing. */
typedef struct chosen {
  int64_t n;
  float *low[2], *high[2], *area;
} chosen;

static uint64_t whole_blocks(int64_t n) { return ((uint64_t)n + BLOCK - 1) / BLOCK * BLOCK; }

_Static_assert(NMS_BOX_BYTES == sizeof(uint64_t) && NMS_CHOSEN_BYTES == 5 * sizeof(float) &&
                   NMS_LINE_BYTES >= (BLOCK - 1) * (NMS_BOX_BYTES + NMS_CHOSEN_BYTES) + 63,
               "the scratch memory is larger than nms.h says");

uint64_t nms_scratch(int64_t boxes, int64_t limit) {
  uint64_t bytes = whole_blocks(boxes) * NMS_BOX_BYTES + whole_blocks(limit) * NMS_CHOSEN_BYTES;
  return (bytes + 63) & ~(uint64_t)63;
}

/* --- candidates: a heap of keys; the largest key is the best candidate --- */

/* Returns the key of a candidate.  A better candidate has a larger key: the high bits have the score, and the low bits
 * the inverted index of the box.  A NaN has the lowest score. */
static uint64_t key_of(float score, int64_t box) {
  uint32_t bits, order = 0;
  score += 0.0f; /* turns -0 into 0 */
  memcpy(&bits, &score, sizeof bits);
  if (score == score) {
    order = bits >> 31 ? ~bits : bits | 0x80000000u;
  }
  return (uint64_t)order << 32 | ~(uint32_t)box;
}

static int64_t box_of(uint64_t key) { return (int64_t) ~(uint32_t)key; }

/* Puts `key` at the free position k of the heap, or below it, so that the heap is in order again. */
static void sift(uint64_t *heap, int64_t n, int64_t k, uint64_t key) {
  for (int64_t child = 2 * k + 1; child < n; child = 2 * k + 1) {
    child += child + 1 < n && heap[child + 1] > heap[child];
    if (heap[child] <= key) {
      break;
    }
    heap[k] = heap[child];
    k = child;
  }
  heap[k] = key;
}

static int64_t gather_candidates(const nms *p, const float *scores, uint64_t *heap) {
  int64_t n = 0;
  for (int64_t k = 0; k < p->boxes; k++) {
    if (!p->floor || scores[k] > *p->floor) {
      heap[n++] = key_of(scores[k], k);
    }
  }
  for (int64_t k = n / 2; k-- > 0;) {
    sift(heap, n, k, heap[k]);
  }
  return n;
}

/* --- boxes --- */

static float area_of(const float *c) { return (c[2] - c[0]) * (c[3] - c[1]); }
static float least(float x, float y) { return x < y ? x : y; }
static float largest(float x, float y) { return x > y ? x : y; }

/* Returns true if a chosen box suppresses this box.  The quotient (intersection over union) is computed as in ONNX
 * Runtime, so that both agree near the threshold.  A box with a NaN has an area of NaN, so its comparisons are false.
 */
static bool hidden(const chosen *c, const float *box, float overlap) {
  float area = area_of(box);
  for (int64_t first = 0; first < c->n; first += BLOCK) {
    const float *low0 = c->low[0] + first, *low1 = c->low[1] + first, *high0 = c->high[0] + first,
                *high1 = c->high[1] + first, *areas = c->area + first;
    int hits = 0;
    for (int k = 0; k < BLOCK; k++) { /* the loop has no branches, so that it is vectorised */
      float a = least(high0[k], box[2]) - largest(low0[k], box[0]);
      float b = least(high1[k], box[3]) - largest(low1[k], box[1]);
      float both = a * b;
      hits |= (a > 0) & (both > 0) & (both / (areas[k] + area - both) > overlap);
    }
    if (hits) {
      return true;
    }
  }
  return false;
}

static void choose(chosen *c, const float *box) {
  if (c->n % BLOCK == 0) {
    for (int k = 0; k < 2; k++) {
      memset(c->low[k] + c->n, 0, BLOCK * sizeof(float));
      memset(c->high[k] + c->n, 0, BLOCK * sizeof(float));
    }
    memset(c->area + c->n, 0, BLOCK * sizeof(float));
  }
  for (int k = 0; k < 2; k++) {
    c->low[k][c->n] = box[k];
    c->high[k][c->n] = box[2 + k];
  }
  c->area[c->n++] = area_of(box);
}

/* --- lines --- */

static chosen chosen_make(int64_t limit, float *memory) {
  chosen c = {0};
  uint64_t step = whole_blocks(limit);
  for (int k = 0; k < 2; k++, memory += 2 * step) {
    c.low[k] = memory;
    c.high[k] = memory + step;
  }
  c.area = memory;
  return c;
}

int64_t nms_line(const nms *p, int64_t line, void *scratch, int64_t *rows, const mem_budget *budget) {
  uint64_t *heap = scratch;
  const float *corners = p->corners + line / p->classes * p->boxes * 4;
  chosen c = chosen_make(p->limit, (float *)(heap + whole_blocks(p->boxes)));
  int64_t most = p->most < p->limit ? p->most : p->limit, work = 0;
  int64_t n = most > 0 ? gather_candidates(p, p->scores + line * p->boxes, heap) : 0;
  rows += line * p->limit * 3;
  while (n > 0 && c.n < most) {
    int64_t box = box_of(heap[0]);
    sift(heap, n - 1, 0, heap[n - 1]);
    n--;
    if (!hidden(&c, corners + 4 * box, p->overlap)) {
      memcpy(rows + 3 * c.n, (int64_t[]){line / p->classes, line % p->classes, box}, 3 * sizeof *rows);
      choose(&c, corners + 4 * box);
    }
    work += c.n + AROUND_CANDIDATE;
    if (work >= LOOK) {
      work = 0;
      if (budget_expired(budget)) {
        break;
      }
    }
  }
  return c.n;
}

int64_t nms_join(const nms *p, const int64_t *counts, int64_t *rows) {
  int64_t total = 0, lines = p->batches * p->classes;
  for (int64_t line = 0; line < lines; line++) {
    memmove(rows + 3 * total, rows + 3 * line * p->limit, (size_t)(3 * counts[line]) * sizeof *rows);
    total += counts[line];
  }
  memset(rows + 3 * total, 0, (size_t)(3 * (lines * p->limit - total)) * sizeof *rows);
  return total;
}
