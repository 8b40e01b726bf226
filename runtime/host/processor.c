/* processor.c - see processor.h. */
#include "runtime/host/processor.h"

#include <string.h>

#include "base/machine/machine.h"

/* Checks one feature that the code needs, "+name".  Fails if this processor lacks it or if onnx-xla does not know
 * it. */
static status check_feature(const char *text, size_t n) {
  machine_feature f;
  CHECK_THAT(*text == '+' && machine_find_feature(text + 1, n - 1, &f), STATUS_INVALID_FILE,
             "its code needs '%.*s', which this onnx-xla does not know", (int)n, text);
  CHECK_THAT(f.here, STATUS_INVALID_FILE, "its code needs %s, which this processor lacks", f.name);
  return NULL;
}

status rt_processor_check(const char *cpu) {
  const char *architecture = machine_architecture();
  if (*cpu == '\0') { /* a program without kernels runs on any machine */
    return NULL;
  }
  CHECK_THAT(strncmp(cpu, architecture, strlen(architecture)) == 0, STATUS_INVALID_FILE,
             "compiled for %.*s, but this machine is %s", (int)strcspn(cpu, " "), cpu, architecture);
  const char *name = strchr(cpu, ' '), *features = name ? strchr(name + 1, ' ') : NULL;
  CHECK_THAT(features, STATUS_INVALID_FILE, "compiled for '%s', which is no processor", cpu);
  size_t n;
  for (const char *at = features + 1; *at && *at != ' '; at += n + (at[n] == ',')) {
    n = strcspn(at, ", ");
    TRY(check_feature(at, n));
  }
  return NULL;
}

bool rt_processor_has_functions(const char *cpu) {
  static const char word[] = " functions";
  size_t n = strlen(cpu), length = sizeof word - 1;
  return n > length && strcmp(cpu + n - length, word) == 0;
}
