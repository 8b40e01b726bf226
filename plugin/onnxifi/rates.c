/* rates.c - measures how fast the machine is when that is asked for the first time, which takes some tenths of a
 * second. */
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxifi/internal.h"

/* The module y = -x for one number.  It is profiled only because every profile contains the speed of the machine. */
static const char NEGATE[] =
    "onnx-xla hlo 1\n"
    "module \"rates\" {\n"
    "  entry main(%x: f32[1] \"x\") {\n"
    "    %y = negate(%x) : f32[1]\n"
    "    return %y \"y\"\n"
    "  }\n"
    "}\n";

/* Returns the number that follows `name` in the part of the text that begins with "roofline", or 0 if there is none.
 * The number has a decimal point in any locale. */
static double number_of(const char *text, const char *name) {
  const char *at = strstr(text, "\"roofline\"");
  at = at ? strstr(at, name) : NULL;
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  double number = at && plain ? strtod_l(at + strlen(name), NULL, plain) : 0;
  if (plain) {
    freelocale(plain);
  }
  return number;
}

static oxla_error *profile(oxla_model *model, char **text) {
  static const int64_t dims[] = {1};
  static const float x;
  oxla_run *run;
  oxla_error *error = oxla_run_create(model, &run);
  if (error) {
    return error;
  }
  error = oxla_set_input(run, "x", OXLA_FLOAT, 1, dims, &x);
  error = error ? error : oxla_profile(run, 0, 1, OXLA_PROFILE_JSON, text);
  oxla_run_destroy(run);
  return error;
}

static onnxStatus measure(ifi_rates *out) {
  oxla_options options = {.size = sizeof options, .tune = "off"};
  oxla_model *model = NULL;
  char *text = NULL;
  oxla_error *error = oxla_load_memory(NEGATE, sizeof NEGATE - 1, &options, &model);
  error = error ? error : profile(model, &text);
  if (text) { /* a multiply-add counts as two operations */
    out->macs = (uint64_t)(number_of(text, "\"gflops\":") * 1e9 / 2);
    out->bytes = (uint64_t)(number_of(text, "\"gbytes\":") * 1e9);
  }
  oxla_free(text);
  oxla_model_destroy(model);
  return ifi_status(error);
}

onnxStatus ifi_measure_rates(ifi_rates *out) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static bool done;
  static ifi_rates measured;
  pthread_mutex_lock(&lock);
  onnxStatus s = done ? ONNXIFI_STATUS_SUCCESS : measure(&measured);
  done = s == ONNXIFI_STATUS_SUCCESS; /* after a failure, most likely for lack of memory, the next call tries again */
  *out = measured;
  pthread_mutex_unlock(&lock);
  return s;
}
