/* bind.h - replaces the symbolic dimensions of a module by the sizes that given inputs have. */
#ifndef HLO_IR_BIND_H
#define HLO_IR_BIND_H

#include "hlo/ir/ir.h"

/* Returns a copy of the module, on `a`, in which every dimension is a constant. inputs[k] is the shape of the array
 * that is given for parameter k of the entry.  A symbol gets its value from the given size of a parameter's dimension
 * that is the symbol, or a positive multiple of it plus a constant.  A dimension that is another expression must have
 * the given size as its value.  If the shapes do not fit or a guard does not hold (base/dim/guard.h), the error is
 * INVALID_ARGUMENT with STATUS_ABOUT_SHAPE.  If a symbol gets no value, it is INVALID_ARGUMENT alone.  The copy shares
 * the elements of constants with the module. */
STATUS_MUST_USE status hlo_bind(arena *a, const hlo_module *m, const shape *inputs, hlo_module **out);

/* Replaces each symbol of the module by the size that `value` returns for it, so that every dimension is a
 * constant.  Guards are not checked.  If a size cannot be computed, the error is INVALID_ARGUMENT with
 * STATUS_ABOUT_SHAPE. */
STATUS_MUST_USE status hlo_bind_sizes(hlo_module *m, dim_value_fn *value, void *data);

/* Replaces each dimension of the module, in shapes, in attributes and in the lengths of carried roots, by what `map`
 * returns for it. */
void hlo_map_dims(hlo_module *m, dim (*map)(void *data, dim d), void *data);

/* Return true if no shape and no attribute of the module, or of the instruction, contains a symbol.  An instruction
 * `sizes` counts as containing one. */
bool hlo_is_static(const hlo_module *m);
bool hlo_instr_is_static(const hlo_instr *i);

#endif
