/* verify.h - the invariants of a module; what every pass may rely on and must keep. */
#ifndef HLO_TEXT_VERIFY_H
#define HLO_TEXT_VERIFY_H

#include "hlo/ir/ir.h"

/* Calls nest no deeper, and a module with all its calls inlined has no more instructions: passes and backends may
 * recurse over calls, and inlining ends. */
enum { HLO_MAX_CALL_DEPTH = 100, HLO_MAX_EXPANDED = 100 * 1000 * 1000 };

/* Checks that
 *  - computations have different names, stand after those that they call (so nothing is recursive), the entry last;
 *  - lists are linked both ways, parameters stand first and are numbered, roots are values of the computation;
 *  - operands come before their users and are of the same computation; use lists and operands agree;
 *  - numbers of operands and results fit the op's row, attributes have values of their kinds;
 *  - every shape is what the shape rule says (called signatures and closedness included).
 * In time linear in the module.  Numbers the instructions anew.  The message names computation and instruction; a
 * broken rule is STATUS_INVALID_MODEL, STATUS_UNSUPPORTED where an equality of expressions cannot be shown. */
STATUS_MUST_USE status hlo_verify(const hlo_module *m);

/* Text may have symbols for sizes; what is compiled has constants only. */
STATUS_MUST_USE status hlo_check_static(const hlo_module *m);

/* What hlo_verify checks of one attribute, its value and kind. */
STATUS_MUST_USE status hlo_verify_attr(const hlo_module *m, hlo_attr_id id, const hlo_attr *v);

#endif
