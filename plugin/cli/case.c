/* case.c - runs one ONNX test case. */
#include "plugin/cli/case.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

/* --- comparing --- */

typedef struct difference {
  int64_t n, first;
  double largest;
} difference;

/* Writes element k to `out` as one number, or as two if it is complex, and returns how many numbers were written. */
static int parts_of(const literal *l, int64_t k, double *out) {
  dtype type = (dtype)l->shape.type;
  if (!dtype_is_complex(type)) {
    out[0] = type == DTYPE_STR ? (double)literal_i64(l, k) : literal_f64(l, k);
    return 1;
  }
  dtype part = type == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
  const uint8_t *at = (const uint8_t *)l->data + (size_t)k * dtype_bytes(type);
  out[0] = dtype_load_f64(part, at);
  out[1] = dtype_load_f64(part, at + dtype_bytes(part));
  return 2;
}

static bool is_close(double got, double want, double rtol, double atol) {
  return got == want || (isnan(got) && isnan(want)) ||
         (isfinite(got) && isfinite(want) && fabs(got - want) <= atol + rtol * fabs(want));
}

static const double BF16_RTOL = 1.0 / 64;

static difference find_differences(const literal *got, const literal *want, double rtol, double atol) {
  difference d = {0};
  rtol = got->shape.type == DTYPE_BF16 ? fmax(rtol, BF16_RTOL) : rtol;
  size_t width = dtype_bytes((dtype)got->shape.type);
  int64_t n = shape_elements(&got->shape);
  for (int64_t k = 0; k < n; k++) {
    double g[2], w[2];
    if (memcmp((const uint8_t *)got->data + (size_t)k * width, (const uint8_t *)want->data + (size_t)k * width,
               width) == 0) {
      continue;
    }
    bool close = got->shape.type != DTYPE_STR; /* numbers of strings are equal or not */
    int parts = parts_of(got, k, g);
    (void)parts_of(want, k, w);
    for (int p = 0; p < parts; p++) {
      close &= is_close(g[p], w[p], rtol, atol);
      d.largest = fmax(d.largest, fabs(g[p] - w[p]));
    }
    if (!close && d.n++ == 0) {
      d.first = k;
    }
  }
  return d;
}

static const char *index_text(arena *a, const shape *s, int64_t k) {
  const char *text = "";
  int64_t strides[SHAPE_MAX_RANK];
  shape_strides(s, strides);
  for (int d = 0; d < s->rank; d++) {
    text = arena_printf(a, "%s%s%" PRId64, text, d ? "," : "", k / strides[d] % s->dims[d]);
  }
  return text;
}

static status compare_elements(arena *a, const literal_list *got, const literal_list *want, double rtol, double atol) {
  CHECK_THAT(got->n == want->n, STATUS_INVALID_MODEL, "has %" PRIu32 " elements, expected are %" PRIu32, got->n,
             want->n);
  for (uint32_t k = 0; k < got->n; k++) {
    TRY(status_prefix(cli_compare(a, &got->items[k], &want->items[k], rtol, atol), "element %" PRIu32, k));
  }
  return NULL;
}

status cli_compare(arena *a, const literal *got, const literal *want, double rtol, double atol) {
  CHECK_THAT(shape_equal(&got->shape, &want->shape), STATUS_INVALID_MODEL, "is %s, expected is %s",
             SHAPE_STR(NULL, &got->shape), SHAPE_STR(NULL, &want->shape));
  if (got->shape.kind != SHAPE_ARRAY) {
    return literal_is_list(got) ? compare_elements(a, literal_elements(got), literal_elements(want), rtol, atol) : NULL;
  }
  difference d = find_differences(got, want, rtol, atol);
  if (d.n == 0) {
    return NULL;
  }
  double g[2], w[2];
  (void)parts_of(got, d.first, g);
  (void)parts_of(want, d.first, w);
  return status_error(STATUS_INVALID_MODEL,
                      "%" PRId64 " of %" PRId64 " elements differ, by up to %.3g; first [%s]: %.9g, expected %.9g", d.n,
                      shape_elements(&got->shape), d.largest, index_text(a, &got->shape, d.first), g[0], w[0]);
}

/* --- data sets --- */

typedef struct data_set {
  literal *inputs;
  const char *outputs_prefix;
  uint32_t n_outputs;
  literal *outputs;
} data_set;

static bool exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

/* Makes the inputs that ONNX's test runner uses for light models (cli_case.light_output), which have no files of
 * inputs: element i of n is i/n. */
static status make_light_inputs(arena *a, const compiler_model *source, literal *inputs) {
  for (uint32_t k = 0; k < source->n_inputs; k++) {
    shape s = source->inputs[k].shape;
    for (int d = 0; d < s.rank; d++) {
      s.dims[d] = s.dims[d] < 0 ? 1 : s.dims[d];
    }
    CHECK_THAT(s.type == DTYPE_F32, STATUS_UNSUPPORTED, "input '%s' of a light model is not f32",
               source->inputs[k].name);
    TRY(shape_check(&s, source->inputs[k].name));
    void *data;
    inputs[k] = literal_new(a, s, &data);
    int64_t n = shape_elements(&s);
    for (int64_t i = 0; i < n; i++) {
      ((float *)data)[i] = (float)((double)i / (double)n);
    }
  }
  return NULL;
}

static status read_inputs(arena *a, const char *folder, const compiler_model *source, string_table *strings,
                          literal *inputs) {
  for (uint32_t k = 0; k < source->n_inputs; k++) {
    const char *path = arena_printf(a, "%s/input_%" PRIu32 ".pb", folder, k);
    CHECK_THAT(exists(path), STATUS_INVALID_FILE,
               "the model has %" PRIu32 " inputs, but there is no input_%" PRIu32 ".pb", source->n_inputs, k);
    TRY(status_prefix(cli_read_value(a, path, &source->inputs[k], strings, &inputs[k]), "input %" PRIu32, k));
  }
  return NULL;
}

/* Reads the expected outputs from the files prefix0.pb, prefix1.pb, ... */
static status read_outputs(arena *a, const compiler_model *source, string_table *strings, data_set *set) {
  set->outputs = ARENA_NEW_N(a, literal, source->n_outputs);
  for (;; set->n_outputs++) {
    const char *path = arena_printf(a, "%s%" PRIu32 ".pb", set->outputs_prefix, set->n_outputs);
    if (!exists(path)) {
      break;
    }
    CHECK_THAT(set->n_outputs < source->n_outputs, STATUS_INVALID_FILE,
               "there are more expected outputs than the model has outputs");
    const model_value *v = &source->outputs[set->n_outputs];
    TRY(status_prefix(cli_read_value(a, path, v, strings, &set->outputs[set->n_outputs]), "output %" PRIu32,
                      set->n_outputs));
  }
  CHECK_THAT(set->n_outputs > 0, STATUS_INVALID_FILE, "there are no expected outputs: there is no file %s0.pb",
             set->outputs_prefix);
  return NULL;
}

typedef struct data_sets {
  uint32_t n, cap;
  data_set *items;
  string_table *strings; /* those of the model, and then those of the sets */
} data_sets;

/* Reads the inputs of all data sets.  The expected outputs are read later, so that an error in the model is reported
 * before an error in the files of outputs. */
static status read_sets(const cli_case *c, const session *s, arena *a, data_sets *out) {
  const compiler_model *source = session_source(s);
  for (;; out->n++) {
    const char *folder = arena_printf(a, "%s/test_data_set_%" PRIu32, c->path, out->n);
    if (c->light_output ? out->n == 1 : !exists(folder)) {
      CHECK_THAT(out->n, STATUS_INVALID_FILE, "there is no %s", folder);
      return NULL;
    }
    if (out->n == out->cap) {
      out->items = arena_push_grow(a, out->items, &out->cap, sizeof *out->items);
    }
    data_set *set = &out->items[out->n];
    set->inputs = ARENA_NEW_N(a, literal, source->n_inputs);
    set->outputs_prefix = c->light_output ? c->light_output : arena_printf(a, "%s/output_", folder);
    TRY(c->light_output ? make_light_inputs(a, source, set->inputs)
                        : read_inputs(a, folder, source, session_strings(s), set->inputs));
  }
}

/* --- the case --- */

static bool uses_host(const rt_sequence *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    if (strncmp(s->thunks[k].kind, "host", 4) == 0) {
      return true;
    }
    for (uint32_t b = 0; b < s->thunks[k].n_bodies; b++) {
      if (uses_host(&s->thunks[k].bodies[b])) {
        return true;
      }
    }
  }
  return false;
}

static void add_times(const session_program *c, cli_case_report *report) {
  report->compile += c->compile_seconds;
  report->passes += c->report.seconds_passes;
  report->codegen += c->report.seconds_codegen;
  report->kernels += c->report.kernels_unique;
}

/* Compiles the case in a session of its own, which is closed again, and saves the program to `image`. */
static status save(const cli_case *c, const session_options *options, const char *image, arena *a, data_sets *sets,
                   cli_case_report *report) {
  session *s;
  TRY(session_open(c->model, NULL, 0, options, &s));
  status failed = read_sets(c, s, a, sets);
  for (uint32_t k = 0; !failed && k < sets->n; k++) {
    const session_program *program;
    failed = cli_compile_for(s, sets->items[k].inputs, a, &program);
    if (!failed) {
      add_times(program, report);
    }
    failed = failed ? failed : read_outputs(a, session_source(s), session_strings(s), &sets->items[k]);
  }
  if (!failed) {
    sets->strings = string_table_create(a, NULL);
    string_table_add_all(sets->strings, session_strings(s));
    failed = session_save(s, image);
  }
  session_close(s);
  return failed;
}

static literal reversed(arena *a, const literal *l) {
  if (l->shape.kind != SHAPE_ARRAY) {
    return *l;
  }
  size_t width = dtype_bytes((dtype)l->shape.type);
  int64_t n = shape_elements(&l->shape);
  void *data;
  literal out = literal_new(a, l->shape, &data);
  for (int64_t k = 0; k < n; k++) {
    memcpy((uint8_t *)data + (size_t)k * width, (const uint8_t *)l->data + (size_t)(n - 1 - k) * width, width);
  }
  return out;
}

/* Runs the program n times with other inputs, to see that nothing that a run leaves behind, such as
 * recordings on a device, changes the results of later runs.  Such a run may fail, since the model may not
 * take these inputs. */
static void rehearse(session *s, const session_program *program, const data_set *set, uint32_t n, arena *a) {
  uint32_t n_inputs = session_source(s)->n_inputs;
  literal *others = ARENA_NEW_N(a, literal, n_inputs);
  for (uint32_t k = 0; k < n_inputs; k++) {
    others[k] = reversed(a, &set->inputs[k]);
  }
  for (uint32_t k = 0; k < n; k++) {
    status_free(cli_execute(s, program, 0, others, session_strings(s), cli_make_outputs(s, a), a));
  }
}

static status compare_run(const cli_case *c, session *s, const session_program *program, const data_set *set, arena *a,
                          cli_case_report *report) {
  const compiler_model *source = session_source(s);
  session_output *outputs = cli_make_outputs(s, a);
  double start = clock_seconds();
  TRY(cli_execute(s, program, 0, set->inputs, session_strings(s), outputs, a));
  report->run += clock_seconds() - start;
  for (uint32_t k = 0; k < set->n_outputs; k++) {
    literal got = literal_make(outputs[k].shape, outputs[k].data);
    status failed = cli_compare(a, &got, &set->outputs[k], c->rtol, c->atol);
    report->differs = failed && shape_equal(&got.shape, &set->outputs[k].shape);
    TRY(status_prefix(failed, "output %" PRIu32 " '%s'", k, source->outputs[k].name));
  }
  return NULL;
}

static status compare_set(const cli_case *c, session *s, const data_set *set, uint32_t rehearsals, arena *a,
                          cli_case_report *report) {
  const session_program *program;
  TRY(cli_compile_for(s, set->inputs, a, &program));
  report->host_thunks |= program->program && uses_host(&program->program->body);
  TRY(compare_run(c, s, program, set, a, report));
  rehearse(s, program, set, rehearsals, a);
  return rehearsals ? status_prefix(compare_run(c, s, program, set, a, report), "again") : NULL;
}

/* Runs the model with one data set, on an arena of its own, since outputs must be freed before their session is closed.
 */
static status run_set(const cli_case *c, session *s, const data_set *set, uint32_t rehearsals,
                      cli_case_report *report) {
  arena *a = arena_create(NULL);
  status failed = compare_set(c, s, set, rehearsals, a, report);
  arena_destroy(a);
  return failed;
}

static status run_sets(const cli_case *c, const session_options *options, uint32_t rehearsals, const char *image,
                       const data_sets *sets, cli_case_report *report) {
  session *s;
  status failed = NULL;
  TRY(session_open(image, NULL, 0, options, &s));
  string_table_add_all(session_strings(s), sets->strings);
  for (uint32_t k = 0; !failed && k < sets->n; k++) {
    failed = run_set(c, s, &sets->items[k], rehearsals, report);
  }
  session_close(s);
  return failed;
}

/* With --check-memory the case runs twice: with the checks, which run each thunk in memory of its own, and without
 * them, so that values share memory as in an ordinary run. */
status cli_run_case(const cli_case *c, const cli_args *args, const char *image, arena *a, cli_case_report *report) {
  session_options options;
  data_sets sets = {0};
  TRY(cli_session_options(args, a, &options));
  options.tune = options.tune ? options.tune : "off"; /* so that results do not depend on timing */
  options.compile.threads = options.compile.threads ? options.compile.threads : 1;
  TRY(save(c, &options, image, a, &sets, report));
  TRY(options.check_memory ? run_sets(c, &options, 0, image, &sets, report) : NULL);
  options.check_memory = false;
  return run_sets(c, &options, args->rehearse, image, &sets, report);
}
