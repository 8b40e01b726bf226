/* object.c - compiles the model of a session to an object file. */
#include "plugin/session/internal.h"
#include "runtime/host/stack.h"

typedef struct object_call {
  session *s;
  const compiler_api *compiler;
  const compile_request *request;
  const compiler_object_options *options;
  arena *a;
  compiler_object *out;
  rt_report *report;
} object_call;

static status write_guarded(void *data) {
  const object_call *c = data;
  TRY(session_need_model(c->s));
  return c->compiler->write_object(c->s->source, c->request, c->options, c->a, c->out, c->report);
}

status session_write_object(session *s, const session_inputs *inputs, const compiler_object_options *o, arena *a,
                            compiler_object *out, rt_report *report) {
  const compiler_api *compiler;
  compile_request request = session_request(s, inputs);
  request.all_sizes = s->options.keep_open || request.n_ranges;
  TRY(session_open_compiler(&compiler));
  TRY(session_take_turn(s));
  s->compiling.deadline = deadline_after(s->options.max_seconds);
  object_call c = {s, compiler, &request, o, a, out, report};
  status failed = run_with_stack(SESSION_COMPILE_STACK, write_guarded, &c);
  s->compiling.deadline = 0;
  session_end_turn(s);
  return failed;
}
