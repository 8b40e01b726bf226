/* prog_locale.c - the library in a program whose locale, that of LC_ALL, writes 0,5 where the locale "C" writes 0.5.
 *
 *   prog_locale FOLDER
 *
 * Profiles, the log of what was measured (in FOLDER), HLO text and messages must be as in the locale "C".  The last
 * line is "N passed, N failed". */
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx-xla.h"
#include "write_model.h"

static int n_passed, n_failed;

static void check(int good, const char *what, const char *text) {
  n_passed += good != 0;
  n_failed += !good;
  if (!good) {
    printf("FAIL %s: %s\n", what, text);
  }
}

static void succeed(oxla_error *error, const char *what) {
  check(!error, what, oxla_error_message(error));
  oxla_error_free(error);
}

/* Returns the first number in the JSON text that is written wrongly, or NULL.  A number follows ": " and must end at a
 * comma before a blank or a new line, or at a bracket. */
static const char *bad_number(const char *json) {
  for (const char *at = json; (at = strstr(at, "\": ")) != NULL;) {
    at += 3;
    const char *end = at + strspn(at, "-+.eE0123456789");
    if (end > at && !(*end == '}' || *end == ']' || (*end == ',' && isspace((unsigned char)end[1])))) {
      return at;
    }
  }
  return NULL;
}

static void check_profile(oxla_run *run, oxla_profile_format format, const char *what) {
  char *text = NULL;
  succeed(oxla_profile(run, 0, 2, format, &text), what);
  const char *bad = text ? bad_number(text) : "nothing";
  check(text && strchr(text, '.') && !bad, what, bad ? bad : "it has no fractions");
  oxla_free(text);
}

/* y = x w, 64 by 64: large enough to be measured. */
static void check_measured(const char *folder) {
  enum { N = 64 };
  static float x[N * N], w[N * N];
  message g = {.n = 0};
  add_node(&g, "MatMul", "x", "w", "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(N, N));
  add_value(&g, GRAPH_INPUT, "w", 1, DIMS(N, N));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(N, N));
  message m = finish_model(&g, 8, 13);
  oxla_options o = {.size = sizeof o, .threads = 2, .tune = "full", .cache = folder};
  oxla_model *model = NULL;
  oxla_run *run = NULL;
  succeed(oxla_load_memory(m.bytes, m.n, &o, &model), "load");
  succeed(oxla_run_create(model, &run), "run");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){N, N}, x), "x");
  succeed(oxla_set_input(run, "w", OXLA_FLOAT, 2, (int64_t[]){N, N}, w), "w");
  succeed(oxla_execute(run), "execute");
  check_profile(run, OXLA_PROFILE_JSON, "profile");
  check_profile(run, OXLA_PROFILE_TRACE, "trace");
  oxla_error *error = oxla_set_max_seconds(run, -1.5);
  check(strstr(oxla_error_message(error), "-1.5 seconds") != NULL, "message", oxla_error_message(error));
  oxla_error_free(error);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}

/* Checks numbers in HLO text, and numbers that are given to LLVM. */
static void check_text(void) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"half\" {\n  entry main(%0: f32[2] \"x\") {\n"
      "    %1 = constant() {value=f32[2] {0.5, 2.25}} : f32[2]\n    %2 = multiply(%0, %1) : f32[2]\n"
      "    %3 = exponential(%2) : f32[2]\n    return %2 \"y\", %3 \"z\"\n  }\n}\n";
  const float x[] = {3, 0}, y[] = {1.5f, 0};
  oxla_model *model = NULL;
  oxla_run *run = NULL;
  oxla_tensor out = {.data = NULL};
  succeed(oxla_load_memory(text, sizeof text - 1, &(oxla_options){.size = sizeof(oxla_options)}, &model), "HLO text");
  succeed(oxla_run_create(model, &run), "run");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){2}, x), "x");
  succeed(oxla_execute(run), "execute");
  succeed(oxla_get_output(run, "y", &out), "y");
  check(out.data && memcmp(out.data, y, sizeof y) == 0, "HLO text", "other numbers");
  succeed(oxla_get_output(run, "z", &out), "z");
  const float *z = out.data;
  check(z && z[0] > 4.4816f && z[0] < 4.4818f && z[1] == 1, "exponential", "another number"); /* e^1.5 = 4.481689 */
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}

int main(int argc, char **argv) {
  const char *name = setlocale(LC_ALL, "");
  if (argc != 2 || !name || strcmp(localeconv()->decimal_point, ",") != 0) {
    fprintf(stderr, "usage: LC_ALL=a locale with a decimal comma prog_locale FOLDER\n");
    return 2;
  }
  check_measured(argv[1]);
  check_text();
  check(strcmp(setlocale(LC_ALL, NULL), name) == 0, "the locale", "another one afterwards");
  char digits[8];
  snprintf(digits, sizeof digits, "%.1f", 0.5);
  check(strcmp(digits, "0,5") == 0, "the thread's locale", digits);
  printf("%d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
