/* open_model.h - models whose inputs have open dimensions, and their import with and without symbols.  A test that
 * includes it has an arena `memory`. */
#ifndef TESTS_UNIT_FRONTEND_OPEN_MODEL_H
#define TESTS_UNIT_FRONTEND_OPEN_MODEL_H

#include "frontend/import/assume.h"
#include "tests/unit/frontend/node_case.h"

static arena *memory;

/* Imports a model for inputs of these shapes; their types and ranks are those of the graph's inputs.  With definitions,
 * symbols take the place of sizes; `alone` is as in onnx_import_options. */
static inline status import_model(Onnx__ModelProto *m, const onnx_input_shape *at, size_t n,
                                  onnx_definitions *definitions, bool alone, hlo_module **out, bool *complete) {
  onnx_import_options options = {.inputs = at, .n_inputs = n, .alone = alone, .unchecked = true, .eval = ref_fold};
  size_t size;
  uint8_t *bytes = pack(memory, m, &size);
  onnx_model *model;
  TRY(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &model));
  return definitions ? onnx_import_symbolic(memory, model, &options, definitions, out, complete)
                     : onnx_import(memory, model, &options, out, complete);
}

static inline void add_input(Onnx__ModelProto *m, const char *name, const char *text) {
  literal l = case_literal(memory, &text);
  PB_ADD(memory, m->graph->input, m->graph->n_input, case_input(memory, name, &l, true));
}

static inline void add_constant(Onnx__ModelProto *m, const char *name, const char *text) {
  literal l = case_literal(memory, &text);
  PB_ADD(memory, m->graph->initializer, m->graph->n_initializer, case_tensor(memory, name, &l));
}

#endif
