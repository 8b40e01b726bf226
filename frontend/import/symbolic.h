/* symbolic.h - imports a model for any sizes: dimensions that the model leaves open stay symbols.
 *
 * Each symbol has a hint: the size that the dimension has in the run for which the model is imported.  Decisions that
 * depend on sizes are made for the hints and become guards of the module (base/dim/guard.h).  An importer that needs a
 * constant pins the symbols on which it depends: the import is repeated with these symbols replaced by their hints.  An
 * equation among the guards (batch = 1, total = past+seq) is a definition: the model is imported again with it, so that
 * in the end only inequalities and remainders (width % 8 = 0) are left. */
#ifndef FRONTEND_IMPORT_SYMBOLIC_H
#define FRONTEND_IMPORT_SYMBOLIC_H

#include "frontend/import/importer.h"

/* Like onnx_import, with the sizes in the options as hints.  The definitions that were necessary are appended
 * to *definitions, which may already have some.  The guards and their sources are in the module's table of
 * dims. */
STATUS_MUST_USE status onnx_import_symbolic(arena *a, const onnx_model *m, const onnx_import_options *options,
                                            onnx_definitions *definitions, hlo_module **out, bool *complete);
/* Does what onnx_import_symbolic does.  Also sets *dims, after a failure too, to the table of the last attempt, whose
 * guards are what it asked about sizes; NULL if there was no attempt. */
STATUS_MUST_USE status onnx_import_attempts(arena *a, const onnx_model *m, const onnx_import_options *options,
                                            onnx_definitions *definitions, dim_table **dims, hlo_module **out,
                                            bool *complete);

/* Like onnx_import_segment without `signature`, but the open dimensions and elements of the frame's arrays become
 * symbols.  Their hints are the arrays' present sizes, or least_hint where a size is smaller, since a program for a
 * size of 0 or 1 is right for few other sizes. */
STATUS_MUST_USE status onnx_import_open_segment(arena *a, const onnx_frame *f, int64_t least_hint, hlo_eval_fn *eval,
                                                onnx_segment *out);

/* Sets *out to what the symbol is defined as, or to the symbol itself if it has no definition. */
STATUS_MUST_USE status onnx_resolve_dim(dim_table *t, const onnx_definitions *definitions, dim symbol, dim *out);
/* The same.  `value` is the size for which the model is imported.  If the definition is a multiple of one symbol plus a
 * constant, that symbol gets the hint at which the definition equals `value`, unless it has a hint already. */
STATUS_MUST_USE status onnx_open_dim(dim_table *t, const onnx_definitions *definitions, dim symbol, int64_t value,
                                     dim *out);

/* If the row's importer needs constant dimensions and an input of the node has symbolic ones, pins them and returns an
 * error, which ends the import; the import is then repeated. */
STATUS_MUST_USE status onnx_check_symbols(const onnx_node *n, const onnx_op_row *row);

/* Returns false if pins are known not to help: an earlier attempt has shown that the node, or the one that contains it,
 * cannot become part of the segment with constant sizes either. */
bool onnx_may_pin(const onnx_node *n);
/* Pins the symbols in a shape.  Returns false if there are none. */
bool onnx_pin_shape(const onnx_node *n, const shape *s);
/* Pins the symbols in the shapes of the node's inputs.  Returns false if there are none. */
bool onnx_pin_inputs(const onnx_node *n);

/* Pins the symbols of which v is computed; only those of which floats are computed if there are any, since what is left
 * may be arithmetic on sizes then.  Returns false if there are none, or if v is computed from data as well, so that
 * constant sizes would not make v a constant. */
bool onnx_pin_value(const onnx_node *n, hlo_value v);

/* Returns true if the shape has these dimensions.  If that is not proven, the hints decide, and a guard records the
 * answer (base/dim/guard.h). */
bool onnx_has_dims(const onnx_node *n, const shape *s, int rank, const dim *dims);
/* Returns true if two shapes are equal; like onnx_has_dims, it may add guards. */
bool onnx_shapes_equal(const onnx_node *n, const shape *a, const shape *b);

/* Pins the symbols in the shape of input k, which must have constant dimensions, and returns an error if there are any.
 */
STATUS_MUST_USE status onnx_need_constant_dims(const onnx_node *n, uint32_t k, const char *what);

/* Sets *out to d if that is a constant, otherwise pins its symbols and returns an error. */
STATUS_MUST_USE status onnx_const_dim(const onnx_node *n, dim d, const char *what, int64_t *out);

/* Like onnx_const_ints, but elements may be expressions of symbols, and are signed (dim_signed_value).
 * Constants beyond DIM_MAX become DIM_MAX, and those below -DIM_MAX become -DIM_MAX. */
STATUS_MUST_USE status onnx_const_dims(const onnx_node *n, uint32_t k, const char *what, const dim **values,
                                       int64_t *count);
/* Like onnx_ints_attr_or_input, with the elements of onnx_const_dims. */
STATUS_MUST_USE status onnx_dims_attr_or_input(const onnx_node *n, const char *name, uint32_t k, const dim **values,
                                               int64_t *count);

#endif
