/* pb.c - files of values in ONNX's format (.pb), which the compiler library reads and writes, since it has protobuf. */
#include "plugin/cli/cli.h"

status cli_read_pb(arena *a, const char *path, const shape *declared, string_table *strings, literal *out) {
  const compiler_api *compiler;
  const char *name;
  TRY(session_open_compiler(&compiler));
  return compiler->read_pb(a, path, declared, strings, &name, out);
}

status cli_format_pb(arena *a, const model_value *v, const literal *l, string_table *strings, uint8_t **bytes,
                     size_t *size) {
  const compiler_api *compiler;
  TRY(session_open_compiler(&compiler));
  return compiler->value_to_pb(a, v->name, &v->shape, l, strings, bytes, size);
}
