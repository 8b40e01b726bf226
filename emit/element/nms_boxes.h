/* nms_boxes.h - the candidates and boxes of a non-maximum suppression: their order, and which box suppresses another
 * one. The arithmetic is that of base/nms.c. */
#ifndef EMIT_ELEMENT_NMS_BOXES_H
#define EMIT_ELEMENT_NMS_BOXES_H

#include "emit/element/element.h"

/* The operands of a non-maximum suppression, by number: the corners of the boxes, the scores, the largest number of
 * boxes to choose for each class, the overlap (intersection over union) above which a chosen box suppresses another
 * box, and, if there is a fifth operand, the score that a candidate must exceed. */
enum { EMIT_NMS_CORNERS, EMIT_NMS_SCORES, EMIT_NMS_MOST, EMIT_NMS_OVERLAP, EMIT_NMS_FLOOR };

/* Returns the element of an operand of the suppression `i` at a position along each of its dimensions. */
LLVMValueRef emit_nms_operand(emit_element *e, const hlo_instr *i, uint32_t operand, const LLVMValueRef *positions);

/* Returns the key of a candidate: an i64 that is compared as an unsigned number and is greater than 0.  The better of
 * two candidates has the larger key: the score is in the high bits, the inverted number of the box in the low bits. NaN
 * is the lowest score, and -0 equals 0. */
LLVMValueRef emit_nms_key(const emit_ir *ir, LLVMValueRef score, LLVMValueRef number);
/* Returns the number of the box whose key this is. */
LLVMValueRef emit_nms_box_of_key(const emit_ir *ir, LLVMValueRef key);

/* A box: its four coordinates, the lower ends on both axes and then the upper ends, and its area. */
enum { EMIT_NMS_AREA = 4, EMIT_NMS_PARTS };
typedef struct emit_nms_box {
  LLVMValueRef v[EMIT_NMS_PARTS];
} emit_nms_box;
emit_nms_box emit_nms_load_box(emit_element *e, const hlo_instr *i, LLVMValueRef batch, LLVMValueRef number);

/* Returns an i1 that is true if the chosen box y suppresses the box x or, if y is a vector of boxes, if one of them
 * suppresses x. */
LLVMValueRef emit_nms_suppresses(const emit_ir *ir, const emit_nms_box *x, const emit_nms_box *y, LLVMValueRef overlap);

#endif
