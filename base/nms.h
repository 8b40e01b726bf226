/* nms.h - non-maximum suppression: of boxes with scores, keeps the best ones among those that overlap.
 *
 * A problem consists of lines, one for each batch and class, which are independent of each other.  Targets on the host
 * use the function here, since each step depends on the one before.  A decomposition into loops over arrays would
 * compare every candidate with as many boxes as might be chosen; this function stops at the first box that suppresses
 * the candidate. */
#ifndef BASE_NMS_H
#define BASE_NMS_H

#include "base/arena.h"

typedef struct nms {
  int64_t batches, classes, boxes; /* boxes is less than 2^32 */
  int64_t limit; /* the number of boxes for which the result has room in each line (each pair of a batch and a class) */
  int64_t most;  /* the number of boxes that may be chosen in each line; may be larger than `limit` */
  const float *corners; /* [batches, boxes, 4]: the lower ends on both axes, then the upper ends on both */
  const float *scores;  /* [batches, classes, boxes] */
  float overlap;        /* a box is suppressed if its intersection over union with a chosen one is larger than this */
  const float *floor;   /* only boxes with larger scores than *floor are candidates; if it is NULL, all boxes are */
} nms;

/* Returns the number of bytes of scratch memory for one line.  It is a multiple of 64 and at most NMS_BOX_BYTES * boxes
 * + NMS_CHOSEN_BYTES * limit + NMS_LINE_BYTES.  The address of the memory must be a multiple of 64, too. */
uint64_t nms_scratch(int64_t boxes, int64_t limit);
enum { NMS_BOX_BYTES = 8, NMS_CHOSEN_BYTES = 20, NMS_LINE_BYTES = 512 };

/* Chooses boxes of a line (one batch and class) in the order of their scores; equal scores are ordered by the index of
 * the box, and NaN comes last.  `rows` is [batches * classes, limit, 3] and is shared by all lines.  rows[line]
 * receives batch, class and index of each chosen box.  Returns how many boxes were chosen.  If the budget expires, the
 * function may stop early, with fewer boxes. */
int64_t nms_line(const nms *p, int64_t line, void *scratch, int64_t *rows, const mem_budget *budget);
/* Makes `rows`, which nms_line has filled for each line, a list without gaps: moves the rows of chosen boxes to the
 * front, in order, and fills the rest with zeros.  counts[line] is what nms_line returned.  Returns the number of rows
 * in the list. */
int64_t nms_join(const nms *p, const int64_t *counts, int64_t *rows);

#endif
