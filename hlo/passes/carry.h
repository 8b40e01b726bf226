/* carry.h - state that a model gets as a parameter and returns with more rows, such as the keys and values of past
 * tokens, is kept in one array with room to grow, so that a run writes only the new rows.
 *
 *     entry main(%past: f32[1,8,past,64], %x: f32[1,8,1,64]) { %y = concatenate(%past, %x) {dimension=2}; return %y }
 *
 * becomes
 *
 *     entry main(%past: f32[1,8,past,64], %x: f32[1,8,1,64], %room: f32[1,8,capacity,64]) {
 *       %all = dynamic-update-slice(%room, %x, [0,0,past,0]); return %all carried in 2:2 to past+1 }
 *
 * and what used %y takes a slice of %all.  `carried in 2:2 to past+1` says that the root is the next value of parameter
 * 2, and that its first past+1 rows, along dimension 2, are defined.  Nothing reads %past; it only tells how many rows
 * there are. */
#ifndef HLO_PASSES_CARRY_H
#define HLO_PASSES_CARRY_H

#include "hlo/ir/ir.h"

/* A root that becomes a parameter of the next run, and the dimension `axis` along which it grows; `axis` is -1 if it
 * does not grow. */
typedef struct hlo_carry {
  uint32_t root, parameter;
  int axis;
} hlo_carry;

/* Makes the module carry the roots of pairs that fit.  No root and no parameter may be in two pairs.  A root that grows
 * must be a concatenation that begins with the parameter, nothing else may use the parameter, and the module must have
 * symbolic dimensions.  The capacity is one new symbol for all of them; a guard says that it is large enough.  A root
 * that does not grow must be the parameter after one or more updates (dynamic-update-slice, scatter), and stays as it
 * is.  Other pairs remain as they are, so that the caller must copy the root.  *n_carried becomes the number of those
 * that fit. */
STATUS_MUST_USE status hlo_carry_roots(hlo_module *m, uint32_t n, const hlo_carry *pairs, uint32_t *n_carried);

/* Marks each root that is a parameter of the same shape after one or more updates (dynamic-update-slice, scatter) as
 * carried in that parameter.  If several roots update the same parameter, only the first is marked.  If any root of the
 * module is carried already, nothing is done.  Whoever runs the module may then pass the same memory for the root and
 * for the parameter.  If root and parameter have different memory, the parameter is first copied to the memory of the
 * root, which costs no more than an update that is not in place. */
void hlo_carry_updates(hlo_module *m);

#endif
