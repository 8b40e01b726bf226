/* api_parts.h - what the files of the C API share. */
#ifndef PLUGIN_API_PARTS_H
#define PLUGIN_API_PARTS_H

#include "plugin/onnx-xla.h"
#include "plugin/session.h"

struct oxla_model {
  plug_session *session;
};

struct oxla_run {
  oxla_model *model;
  shape *shapes;             /* of the inputs that are set */
  const shape **set;         /* by input: its shape, or NULL */
  const void **data;
  plug_output *outputs;
  bool executed; /* outputs are of the inputs as they are */
  bool has_seed;
  uint64_t seed;
  const plug_compiled *compiled; /* for the inputs as they are; NULL: to be found */
  _Atomic int cancelled;
};

/* Checks that every input is there and makes the program for them, so that the session can run it. */
STATUS_MUST_USE status api_prepare(oxla_run *run, plug_inputs *inputs);

#endif
