/* compiler.c - the table of the functions of the compiler library (compiler.h).  The library exports only the function
 * that returns this table. A model file becomes a program in open.c, import.c (which calls the frontend) and compile.c
 * (which calls the backend: passes, lowering, code generation). */
#include "plugin/compiler/internal.h"

#include "frontend/model/value.h"
#include "frontend/operators/op_types.h"
#include "plugin/compiler/backend.h"
#include "plugin/compiler/segments.h"
#include "plugin/compiler/support.h"
#include "plugin/compiler/verify.h"

/* --- values in files --- */

typedef struct pb_call {
  arena *a;
  string_table *strings;
  const char *path, **name;
  shape declared;
  literal *l;
  uint8_t **bytes;
  size_t *size;
} pb_call;

static status read_pb(void *data) {
  pb_call *c = data;
  return onnx_value_read_pb(c->a, c->path, &c->declared, c->strings, c->name, c->l);
}

static status compiler_read_pb(arena *a, const char *path, const shape *declared, string_table *strings,
                               const char **name, literal *out) {
  return guard_run(read_pb,
                   &(pb_call){.a = a, .strings = strings, .path = path, .declared = *declared, .name = name, .l = out});
}

static status write_pb(void *data) {
  pb_call *c = data;
  return onnx_value_to_pb(c->a, *c->name, (shape_kind)c->declared.kind, c->l, c->strings, c->bytes, c->size);
}

static status compiler_value_to_pb(arena *a, const char *name, const shape *declared, const literal *l,
                                   string_table *strings, uint8_t **bytes, size_t *size) {
  return guard_run(write_pb, &(pb_call){.a = a,
                                        .strings = strings,
                                        .name = &name,
                                        .declared = *declared,
                                        .l = (literal *)l,
                                        .bytes = bytes,
                                        .size = size});
}

const compiler_api *onnx_xla_compiler_get(uint32_t abi) {
  static compiler_api compiler = {
      .abi = COMPILER_ABI,
      .adopt_guard = guard_adopt,
      .ir_version = ONNX_IR_VERSION_MAX,
      .opset_version = ONNX_OPSET_MAX,
      .open = compiler_open,
      .open_hlo = compiler_open_hlo,
      .compile = compiler_compile,
      .assume_sizes = compiler_assume_sizes,
      .write_object = compiler_write_object,
      .segments_create = compiler_segments_create,
      .segments_destroy = segmented_model_destroy,
      .segments_run = segmented_model_run,
      .bytes = compiler_model_bytes,
      .model_hash = compiler_model_hash,
      .check = compiler_check,
      .print = compiler_print,
      .explain = compiler_explain,
      .verify = compiler_verify,
      .list_ops = compiler_list_ops,
      .check_support = compiler_check_support,
      .opt = compiler_opt,
      .pass_list = compiler_pass_list,
      .op_page = onnx_op_page,
      .backend = compiler_backend,
      .read_pb = compiler_read_pb,
      .value_to_pb = compiler_value_to_pb,
  };
  if (!compiler.versions) {
    compiler.versions = compiler_versions();
  }
  return abi == COMPILER_ABI ? &compiler : NULL;
}
