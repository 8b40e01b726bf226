/* cache.c - finds and creates the cache folder, and reads the options of tuning and precision. */
#include "plugin/session/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static bool is_set(const char *value) { return value && *value; }

static const char *default_folder(arena *a) {
  const char *ours = getenv("ONNX_XLA_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (ours) {
    return ours;
  }
  if (is_set(cache) && *cache == '/') { /* by the XDG standard, relative paths are ignored */
    return arena_printf(a, "%s/onnx-xla", cache);
  }
  return is_set(home) ? arena_printf(a, "%s/.cache/onnx-xla", home) : "";
}

void session_cache_folder(arena *a, const char *wanted, const char **out, const char **why) {
  const char *path = wanted ? wanted : default_folder(a);
  struct stat s;
  *out = *why = NULL;
  if (!*path) {
    return;
  }
  if (!file_make_folders(path) || stat(path, &s) != 0) {
    *why = arena_printf(a, "%s cannot be created: %s; nothing is cached", path, strerror(errno));
  } else if (!S_ISDIR(s.st_mode)) {
    *why = arena_printf(a, "%s is not a folder; nothing is cached", path);
  } else if (s.st_uid != geteuid() || (s.st_mode & (S_IWGRP | S_IWOTH))) {
    *why = arena_printf(a, "%s can be written to by other users; nothing is cached", path);
  } else {
    *out = path;
  }
}

bool session_cache_open_store(arena *a, const session_options *o, content_store *out, const char **why) {
  const char *folder;
  session_cache_folder(a, o->cache, &folder, why);
  if (!folder) {
    return false;
  }
  status unusable = content_store_open(arena_printf(a, "%s/programs", folder), o->cache_bytes, out);
  out->verify = o->verify;
  *why = unusable ? arena_strdup(a, status_message(unusable)) : NULL;
  status_free(unusable);
  return !*why;
}

static const char *const words[] = {
    [RT_TUNE_OFF] = "off", [RT_TUNE_KNOWN] = "known", [RT_TUNE_FAST] = "fast", [RT_TUNE_FULL] = "full"};

status session_set_tuning(arena *a, const char *tune, const char *cache, rt_compile_options *o, const char **why) {
  const char *given = tune ? tune : o->numerics.deterministic ? words[RT_TUNE_OFF] : getenv("ONNX_XLA_TUNE"), *folder;
  const char *word = is_set(given) ? given : "fast";
  uint32_t k = 0;
  while (k < sizeof words / sizeof *words && strcmp(words[k], word) != 0) {
    k++;
  }
  CHECK_THAT(k < sizeof words / sizeof *words, STATUS_INVALID_ARGUMENT,
             "%s '%s' is not one of off, known, fast and full", tune ? "tuning" : "ONNX_XLA_TUNE", word);
  CHECK_THAT(!o->numerics.deterministic || k == RT_TUNE_OFF, STATUS_INVALID_ARGUMENT,
             "tuning %s chooses by measurement, which is not deterministic", word);
  o->tune = (rt_tune)k;
  *why = NULL;
  if (o->tune != RT_TUNE_OFF) {
    session_cache_folder(a, cache, &folder, why);
    o->tune_log = folder ? arena_printf(a, "%s/tuning.log", folder) : NULL;
  }
  return NULL;
}

status session_set_precision(const char *precision, rt_compile_options *o) {
  static const struct {
    const char *word;
    dtype type;
  } precisions[] = {{"fp32", DTYPE_INVALID}, {"tf32", DTYPE_F32}, {"bf16", DTYPE_BF16}, {"fp16", DTYPE_F16}};
  uint32_t k = 0, n = sizeof precisions / sizeof *precisions;
  while (precision && k < n && strcmp(precisions[k].word, precision) != 0) {
    k++;
  }
  CHECK_THAT(k < n, STATUS_INVALID_ARGUMENT, "precision '%s' is not one of fp32, tf32, bf16 and fp16", precision);
  o->numerics.reduced_precision = precisions[k].type;
  bool is_measured = o->numerics.reduced_precision && o->numerics.reduced_precision != DTYPE_F32;
  CHECK_THAT(!is_measured || o->tune != RT_TUNE_OFF, STATUS_INVALID_ARGUMENT,
             "precision %s is chosen where it is measured to be faster, but %s", precision,
             o->numerics.deterministic ? "that is not deterministic" : "tuning is off");
  CHECK_THAT(!o->numerics.reduced_precision || !o->numerics.exact, STATUS_INVALID_ARGUMENT, "precision %s is not exact",
             precision);
  return NULL;
}
