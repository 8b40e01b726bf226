/* log.c - writes the lines of a session's log. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/locale.h"
#include "plugin/session/internal.h"
#include "plugin/session/options.h"

enum { LINE_MAX_BYTES = 1000 };

bool session_logs(const session *s, session_log_level level) {
  return s->options.log && (!s->options.log_level || level <= s->options.log_level);
}

void session_log(const session *s, session_log_level level, const char *format, ...) {
  if (!session_logs(s, level)) {
    return;
  }
  char line[LINE_MAX_BYTES];
  va_list args;
  va_start(args, format);
  c_vsnprintf(line, sizeof line, format, args);
  va_end(args);
  status_make_line(line);
  s->options.log(s->options.log_data, level, line);
}

void session_log_opened(const session *s) {
  const compiler_model *m = s->source;
  if (s->warning) {
    session_log(s, SESSION_LOG_WARNING, "%s", s->warning);
  }
  session_log(s, SESSION_LOG_INFO,
              "opened \"%.200s\" for the %s backend in %.3f seconds: %u inputs, %u outputs, %u programs", m->name,
              s->target->name, s->load_seconds, m->n_inputs, m->n_outputs, s->compiled.n + s->n_generals);
  const char *options = session_options_text(s->arena, &s->options);
  if (*options) {
    session_log(s, SESSION_LOG_INFO, "options: %.500s", options);
  }
}

/* Writes the inputs' names and shapes, such as "x f32[1,4], n s64[]". */
static void list_inputs(const session *s, const session_inputs *inputs, FILE *out) {
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shape given = session_input_shape(s, inputs, k);
    fprintf(out, "%s%s %s", k ? ", " : "", s->source->inputs[k].name, SHAPE_STR(NULL, &given));
  }
}

void session_log_compiled(const session *s, const session_inputs *inputs, const session_program *c) {
  char shapes[LINE_MAX_BYTES / 2] = "";
  FILE *out = fmemopen(shapes, sizeof shapes, "w");
  if (out) {
    list_inputs(s, inputs, out);
    fclose(out);
  }
  if (c->report.warning) {
    session_log(s, SESSION_LOG_WARNING, "%s", c->report.warning);
  }
  const char *how = c->from_cache ? "found in the cache" : c->program ? "compiled" : "runs segment by segment";
  bool counts = c->program && !c->from_cache && !c->general;
  char kernels[64] = "";
  if (counts) {
    snprintf(kernels, sizeof kernels, ", %" PRIu32 " kernels written, %" PRIu32 " found",
             c->report.kernels_unique - c->report.kernels_found, c->report.kernels_found);
  }
  session_log(s, SESSION_LOG_INFO, "%s for %s: %.3f seconds%s", how, shapes,
              c->from_cache ? c->load_seconds : c->compile_seconds + c->load_seconds, kernels);
  if (s->n_carried) {
    session_log(s, SESSION_LOG_INFO, "%u of %u carried outputs are written in place, others are computed as a whole",
                session_carried_in_place(s, c->program), s->n_carried);
  }
}
