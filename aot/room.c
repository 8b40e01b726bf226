/* room.c - refuses an object whose arena is larger than the user allows, and says what takes the room. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aot/host.h"

enum { LISTED = 3 };

typedef struct large_value {
  uint64_t bytes;
  const char *what; /* the nodes that compute it, and whether it is scratch memory */
} large_value;

/* Reads a line of the table of buffers (rt_report.buffers).  Returns false if it is not about a value with bytes of its
 * own in the arena. */
static bool read_value(arena *a, const char *line, large_value *out) {
  const char *place = strstr(line, ": arena "), *comma = place ? strchr(place, ',') : NULL, *node = strchr(line, '@');
  if (!comma || strstr(line, ", in place over %") || strstr(line, ", a view of %")) {
    return false;
  }
  bool scratch = memmem(line, (size_t)(place - line), ", scratch", strlen(", scratch"));
  out->bytes = strtoull(comma + 1, NULL, 10);
  out->what = arena_printf(a, "%s%s", scratch ? "scratch memory of " : "", node ? node + 1 : "\"a constant or input\"");
  return true;
}

/* Puts the value into the list of the LISTED largest ones, which are sorted, the largest first. */
static void insert(large_value *largest, large_value v) {
  for (int k = 0; k < LISTED; k++) {
    if (v.bytes > largest[k].bytes) {
      large_value next = largest[k];
      largest[k] = v;
      v = next;
    }
  }
}

/* Returns the largest values in the arena as a list. */
static const char *largest_values(arena *a, const char *table) {
  large_value largest[LISTED] = {{0}}, v;
  const char *text = "";
  for (const char *at = table ? table : ""; *at;) {
    size_t n = strcspn(at, "\n");
    if (read_value(a, arena_strndup(a, at, n), &v)) {
      insert(largest, v);
    }
    at += n + (at[n] == '\n');
  }
  for (int k = 0; k < LISTED && largest[k].bytes; k++) {
    text = arena_printf(a, "%s%s %" PRIu64 " bytes for %s", text, k ? "," : "", largest[k].bytes, largest[k].what);
  }
  return text;
}

status aot_check_room(const aot_host *h) {
  uint64_t most = h->options->most_arena, bytes = h->object->arena_bytes;
  CHECK_THAT(
      !most || aot_is_static(h), STATUS_RESOURCE,
      "the size of the arena depends on open dimensions, so that it cannot be limited; --dim sets those that have "
      "a name");
  CHECK_THAT(!most || bytes <= most, STATUS_RESOURCE,
             "the arena with inputs and outputs has %" PRIu64 " bytes, and %" PRIu64
             " are allowed; the largest values in it are%s",
             bytes, most, largest_values(h->arena, h->options->buffers));
  return NULL;
}
