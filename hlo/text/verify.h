/* verify.h - the invariants of a module, on which every pass may rely and which it must keep. */
#ifndef HLO_TEXT_VERIFY_H
#define HLO_TEXT_VERIFY_H

#include "hlo/ir/ir.h"

/* Calls nest at most HLO_MAX_CALL_DEPTH deep, and a module with all its calls inlined has at most HLO_MAX_EXPANDED
 * instructions.  So passes and backends may recurse over calls, and inlining ends. */
enum { HLO_MAX_CALL_DEPTH = 100, HLO_MAX_EXPANDED = 100 * 1000 * 1000 };

/* Checks that
 *  - computations have different names and stand after those that they call (so nothing is recursive); the entry is
 *    the last one;
 *  - lists are linked in both directions, parameters come first and are numbered, roots are values of the computation;
 *  - operands come before their users and belong to the same computation, and use lists agree with operands;
 *  - the numbers of operands and results fit the row of the operation, and attributes have values of their kinds;
 *  - every shape is what the shape rule infers, including the signatures of called computations;
 *  - a carried root has the shape of its parameter, and no other root is carried in that parameter.
 * It takes time linear in the size of the module and numbers the instructions anew.  The message names computation and
 * instruction.  A broken rule is STATUS_INVALID_MODEL; if the equality of two expressions cannot be decided, it is
 * STATUS_UNSUPPORTED. */
STATUS_MUST_USE status hlo_verify(const hlo_module *m);

/* Returns an error if a shape has a symbolic dimension.  It is for modules that are compiled for given sizes,
 * and for backends that take no symbolic dimensions. */
STATUS_MUST_USE status hlo_check_static(const hlo_module *m);

/* Checks the value and the kind of one attribute, as hlo_verify does. */
STATUS_MUST_USE status hlo_verify_attr(const hlo_module *m, hlo_attr_id id, const hlo_attr *v);

#endif
