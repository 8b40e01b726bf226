/* assume.h - sizes for dimensions to which nothing gives one, as when an object file is compiled. */
#ifndef FRONTEND_IMPORT_ASSUME_H
#define FRONTEND_IMPORT_ASSUME_H

#include "frontend/import/import.h"

/* Finds sizes at which the model can be imported, for dimensions to which the options give none.  Sets shapes[k] to the
 * shape of input k of the graph at these sizes, with rank 0 and no type if the input has an initializer.
 *
 * Many models are valid for few of all sizes: two inputs have equal dimensions, a weight has 10 rows, a length must be
 * a multiple of 12.  So if an import fails, another one is tried at the nearest sizes at which an answer about sizes is
 * different, the last answer first.  If no sizes are found, returns the error of the first import.
 *
 * If options->open_dim is 1, so that these are sizes to run the model at, and `alone` is not set, the first dimension
 * of each input is 1 where that is possible: one picture of 768 rows, not 768.
 *
 * With options->alone, sizes are preferred at which fewer of them are pinned: a sound that is shorter than the window
 * by which it is extended at both ends is a case for its size only. */
STATUS_MUST_USE status onnx_assume_sizes(arena *a, const onnx_model *m, const onnx_import_options *options,
                                         shape *shapes);

/* A program for these sizes may have an upper bound: a sound of fewer samples than a window is padded, so a program for
 * 64 samples serves only such sounds.  Does what onnx_assume_sizes does, and then looks for larger sizes at which the
 * model can be imported and fewer dimensions are bounded.  If there are none, *found is false. */
STATUS_MUST_USE status onnx_assume_beyond(arena *a, const onnx_model *m, const onnx_import_options *options,
                                          shape *shapes, bool *found);

#endif
