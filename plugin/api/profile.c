/* profile.c - implements onnx-xla.h: profiles of runs. */
#include <stdlib.h>

#include "plugin/api/internal.h"
#include "plugin/session/internal.h"
#include "plugin/session/profile.h"

static status write_text(const run_profile *p, oxla_profile_format format, char **text) {
  size_t size = 0;
  FILE *f = open_memstream(text, &size);
  CHECK_THAT(f, STATUS_RESOURCE, "out of memory for a profile");
  format == OXLA_PROFILE_JSON ? run_profile_write_json(p, f) : run_profile_write_trace(p, f);
  bool failed = ferror(f);
  failed = fclose(f) != 0 || failed;
  if (failed) {
    free(*text);
    *text = NULL;
  }
  CHECK_THAT(!failed, STATUS_RESOURCE, "out of memory for a profile");
  return NULL;
}

typedef struct profiling {
  oxla_run *run;
  run_profile_options options;
  oxla_profile_format format;
  arena *arena;
  char *text;
} profiling;

void oxla_await_tuned(oxla_model *model) {
  if (model) {
    session_await_tuned(model->session);
  }
}

static status profile_guarded(void *data) {
  profiling *x = data;
  session_inputs inputs;
  run_profile p;
  oxla_run *run = x->run;
  x->arena = arena_create(&run->model->session->budget);
  TRY(api_prepare(run, &inputs));
  oxla_await_tuned(run->model);
  TRY(api_prepare(run, &inputs)); /* if tuning has replaced the program, this takes the tuned one */
  TRY(session_profile(run->model->session, run->compiled, run->has_seed ? &run->seed : NULL, &inputs, run->outputs,
                      &x->options, x->arena, &p));
  run->executed = true;
  return write_text(&p, x->format, &x->text);
}

static status profile(oxla_run *run, int warm_up, int runs, oxla_profile_format format, char **text) {
  CHECK_THAT(text, STATUS_INVALID_ARGUMENT, "argument text is NULL");
  *text = NULL;
  CHECK_THAT(warm_up >= 0 && runs >= 0, STATUS_INVALID_ARGUMENT, "the number of runs is negative");
  CHECK_THAT(format == OXLA_PROFILE_JSON || format == OXLA_PROFILE_TRACE, STATUS_INVALID_ARGUMENT,
             "%d is not a format of profiles", (int)format);
  TRY(api_begin(run));
  profiling x = {.run = run, .options = {(uint32_t)warm_up, (uint32_t)runs, 0}, .format = format};
  status failed = guard_run(profile_guarded, &x);
  arena_destroy(x.arena);
  *text = x.text;
  return failed;
}

oxla_error *oxla_profile(oxla_run *run, int warm_up, int runs, oxla_profile_format format, char **text) {
  return api_error(profile(run, warm_up, runs, format, text));
}
