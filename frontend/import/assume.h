/* assume.h - sizes for dimensions to which nothing gives one, as when an object file is compiled. */
#ifndef FRONTEND_IMPORT_ASSUME_H
#define FRONTEND_IMPORT_ASSUME_H

#include "frontend/import/import.h"

/* Finds sizes at which the model can be imported, for dimensions to which the options give none.  Sets shapes[k] to the
 * shape of input k of the graph at these sizes, with rank 0 and no type if the input has an initializer.
 *
 * Many models are valid for few of all sizes: two inputs have equal dimensions, a weight has 10 rows, a length must be
 * a multiple of 12.  So if an import fails, another one is tried at the nearest sizes at which an answer about sizes is
 * different, the last answer first.  If no sizes are found, returns the error of the first import. */
STATUS_MUST_USE status onnx_assume_sizes(arena *a, const onnx_model *m, const onnx_import_options *options,
                                         shape *shapes);

#endif
