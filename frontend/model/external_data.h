/* external_data.h - tensor data in files beside the model.
 *
 * A model may name any file; only regular files below its own folder are opened, never through a symbolic
 * link and never ones with a second (hard) link, and the kernel is asked to see to it (openat2), so that
 * nobody can swap a folder between the check and the opening. */
#ifndef FRONTEND_MODEL_EXTERNAL_DATA_H
#define FRONTEND_MODEL_EXTERNAL_DATA_H

#include "frontend/onnx.pb-c.h"
#include "frontend/model/source.h"

typedef struct onnx_folder onnx_folder;

/* Opens the folder itself; it is closed, and the files that were mapped are unmapped, when the arena ends. */
STATUS_MUST_USE status onnx_folder_open(arena *a, const char *path, onnx_folder **out);

/* The `size` bytes that t->external_data (with EXTERNAL as t->data_location) stands for: a span of a mapped
 * file, as long-lived as the folder.  Every file is mapped once.  folder may be NULL: refused. Errors:
 * INVALID_MODEL (keys, location, numbers, size), INVALID_FILE (the file is too short), IO. */
STATUS_MUST_USE status onnx_external_data(onnx_folder *folder, const Onnx__TensorProto *t, uint64_t size,
                                          const uint8_t **data);

/* The location of the mapped file that the address lies in, and where in it; NULL: in none. */
const char *onnx_folder_find(const onnx_folder *folder, const void *data, int64_t *offset);

/* For tests: walk component by component, as on kernels without openat2. */
void onnx_folder_avoid_openat2(onnx_folder *folder);

#endif
