/* nms.h - non-maximum suppression: of boxes with scores, the best of those that overlap.
 *
 * It is one function for all targets, since what it does next depends on each step: a decomposition into loops over
 * arrays would compare every candidate with as many boxes as might be chosen, where this one stops at the first that
 * hides it.  A problem has a line a batch and class; lines are independent of each other. */
#ifndef BASE_NMS_H
#define BASE_NMS_H

#include "base/arena.h"

typedef struct nms {
  int64_t batches, classes, boxes; /* boxes: below 2^32 */
  int64_t limit;                   /* what a line has room for */
  int64_t most;                    /* what it may choose at most */
  const float *corners;            /* [batches, boxes, 4]: low ends on both axes, high ends on both */
  const float *scores;             /* [batches, classes, boxes] */
  float overlap;                   /* of a chosen box, as a part of both boxes' union: more hides a box */
  const float *floor;              /* candidates have larger scores; NULL: all are candidates */
} nms;

/* Bytes that a line needs meanwhile, aligned to 64; a multiple of that. */
uint64_t nms_scratch(int64_t boxes, int64_t limit);
/* Chooses boxes of a line by score, of equal scores in order of their numbers; NaN comes last.  rows, for all lines
 * [batches * classes, limit, 3], get batch, class and number of each from the line's place on.  Gives how many; it may
 * stop early when the budget is used up. */
int64_t nms_line(const nms *p, int64_t line, void *scratch, int64_t *rows, const mem_budget *budget);
/* Moves the lines' rows together, in order, with zeros behind them; counts: of each line.  Gives their number. */
int64_t nms_join(const nms *p, const int64_t *counts, int64_t *rows);

#endif
