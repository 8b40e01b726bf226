/* cache.c - the command onnx-xla cache. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "plugin/cli/cli.h"
#include "plugin/session/cache.h"
#include "plugin/session/model_description.h"

static void close_store(void *data) { content_store_close(data); }

/* Prints one line for the model of entry `first`, with the sum of its entries. */
static void print_model(content_store *store, const content_store_entry *entries, uint32_t n, uint32_t first,
                        arena *a) {
  const content_store_entry *e = &entries[first];
  uint64_t bytes = 0;
  uint32_t programs = 0;
  char date[32] = "";
  struct tm day;
  time_t used = (time_t)(e->used / 1000000000);
  for (uint32_t k = first; k < n; k++) {
    bool same = strcmp(entries[k].model, e->model) == 0;
    programs += same && entries[k].kind == CONTENT_PROGRAM;
    bytes += same ? entries[k].bytes : 0;
  }
  if (localtime_r(&used, &day)) {
    strftime(date, sizeof date, "%Y-%m-%d %H:%M", &day);
  }
  const char *name = e->kind == CONTENT_KERNELS ? "kernels that models share"
                     : e->kind == CONTENT_CODE  ? "code that a device's driver compiled"
                                                : model_description_name(content_store_get_source(store, a, e->model));
  printf("%9.1f MB  %3" PRIu32 " program%s  %s  %s\n", (double)bytes / 1e6, programs, programs == 1 ? " " : "s", date,
         name);
}

static const char *const kinds[] = {"", " (weights)", " (kernels)", " (code)"}; /* by content_kind */

/* Prints the files of a model. */
static void print_files(const content_store_entry *entries, uint32_t n, const char *model) {
  for (uint32_t k = 0; k < n; k++) {
    if (strcmp(entries[k].model, model) == 0) {
      printf("%9.1f MB    %s%s\n", (double)entries[k].bytes / 1e6, entries[k].name, kinds[entries[k].kind]);
    }
  }
}

static void print_all(content_store *store, bool files, arena *a) {
  content_store_entry *entries;
  uint32_t n, programs = 0;
  uint64_t total = 0;
  content_store_list(store, a, &entries, &n);
  for (uint32_t k = 0; k < n; k++) {
    bool seen = false;
    for (uint32_t j = 0; j < k && !seen; j++) {
      seen = strcmp(entries[j].model, entries[k].model) == 0;
    }
    if (!seen) {
      print_model(store, entries, n, k, a);
      if (files) {
        print_files(entries, n, entries[k].model);
      }
    }
    total += entries[k].bytes;
    programs += entries[k].kind == CONTENT_PROGRAM;
  }
  printf("%9.1f MB in %" PRIu32 " program%s\n", (double)total / 1e6, programs, programs == 1 ? "" : "s");
}

/* Removes the file with this name, as --verbose lists it.  If the weights of a model are removed, its
 * programs are useless and are compiled again. */
static status remove_one(content_store *store, const char *name, arena *a) {
  content_store_entry *entries;
  uint32_t n, k = 0;
  content_store_list(store, a, &entries, &n);
  while (k < n && strcmp(entries[k].name, name) != 0) {
    k++;
  }
  CHECK_THAT(k < n, STATUS_INVALID_ARGUMENT, "--remove %s: there is no such file; onnx-xla cache --verbose lists them",
             name);
  content_store_drop(store, entries, n, k);
  return NULL;
}

status cli_cache(const cli_args *args, arena *a, int *code) {
  (void)code;
  const char *folder, *why;
  content_store *store = ARENA_NEW(a, content_store);
  session_cache_folder(a, args->cache, &folder, &why);
  CHECK_THAT(folder, STATUS_IO, "%s", why ? why : "there is no cache folder");
  TRY(content_store_open(arena_printf(a, "%s/programs", folder), 0, store));
  arena_cleanup(a, close_store, store);
  if (args->clear) {
    content_store_trim(store, 0);
  }
  if (args->remove) {
    TRY(remove_one(store, args->remove, a));
  }
  if (!args->quiet) {
    printf("%s\n", folder);
    print_all(store, args->verbose, a);
  }
  return NULL;
}
