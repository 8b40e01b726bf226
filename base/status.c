#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status_record {
  status_code code;
  const char *message;
};

/* Handed out when not even the message can be allocated; never freed. */
static struct status_record out_of_memory = {STATUS_RESOURCE, "out of memory"};

/* Names inside messages come from untrusted files: keep the message on one line. */
static void make_one_line(char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < 0x20 || *text == 0x7f) {
      *text = '?';
    }
  }
}

static status new_record(status_code code, const char *prefix, const char *message) {
  size_t n_prefix = strlen(prefix), n_message = strlen(message);
  struct status_record *s = malloc(sizeof *s + n_prefix + n_message + 1);
  if (!s) {
    return &out_of_memory;
  }
  char *text = (char *)(s + 1);
  memcpy(text, prefix, n_prefix);
  memcpy(text + n_prefix, message, n_message + 1);
  make_one_line(text);
  s->code = code;
  s->message = text;
  return s;
}

/* Longer messages are cut: a name in a hostile file may be megabytes long. */
enum { MESSAGE_MAX = 2000 };

status status_error(status_code code, const char *format, ...) {
  char text[MESSAGE_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return new_record(code, "", text);
}

status status_prefix(status s, const char *format, ...) {
  if (!s) {
    return NULL;
  }
  char text[MESSAGE_MAX];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text - 2, format, args);
  va_end(args);
  size_t end = n < 0 ? 0 : (size_t)n < sizeof text - 3 ? (size_t)n : sizeof text - 3;
  memcpy(text + end, ": ", 3);
  status prefixed = new_record(s->code, text, s->message);
  status_free(s);
  return prefixed;
}

status_code status_get_code(status s) { return s ? s->code : STATUS_OK; }

const char *status_message(status s) { return s ? s->message : ""; }

const char *status_code_name(status_code code) {
  static const char *const names[] = {"ok",          "invalid-argument", "invalid-file", "invalid-model",
                                      "unsupported", "resource",         "io",           "internal"};
  return (unsigned)code < sizeof names / sizeof *names ? names[code] : "unknown";
}

void status_free(status s) {
  if (s && s != &out_of_memory) {
    free(s);
  }
}
