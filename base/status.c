/* status.c - makes and reads statuses.  Each is a single allocation, and its message is one line of valid UTF-8. */
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"

struct status_record {
  unsigned code;  /* a status_code, perhaps plus one of STATUS_ABOUT_... */
  bool is_static; /* must not be freed, not even by a copy of this code in another of the process's shared libraries */
  const char *message;
  const char *node;
};

/* The status that is returned if there is no memory for a message. */
static struct status_record out_of_memory = {STATUS_RESOURCE, true, "out of memory", ""};

/* Returns the number of bytes of the printable UTF-8 character at p; 0 if there is none.  Overlong forms, surrogates
 * and control characters are not accepted. */
static int character_length(const unsigned char *p) {
  if (p[0] < 0x80) {
    return p[0] >= 0x20 && p[0] != 0x7f;
  }
  int length = p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
  for (int i = 1; i < length; i++) {
    if ((p[i] & 0xc0) != 0x80) {
      return 0;
    }
  }
  bool bad = (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
             (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90);
  return bad ? 0 : length;
}

void status_make_line(char *text) {
  while (*text) {
    int length = character_length((const unsigned char *)text);
    if (!length) {
      *text = '?';
      length = 1;
    }
    text += length;
  }
}

/* Makes a record whose message is `prefix` followed by `message`; the label of the node has n_node bytes. */
static status new_record(unsigned code, const char *prefix, const char *message, const char *node, size_t n_node) {
  size_t n_prefix = strlen(prefix), n_message = strlen(message);
  struct status_record *s = malloc(sizeof *s + n_prefix + n_message + 1 + n_node + 1);
  if (!s) {
    return &out_of_memory;
  }
  char *text = (char *)(s + 1), *label = text + n_prefix + n_message + 1;
  memcpy(text, prefix, n_prefix);
  memcpy(text + n_prefix, message, n_message + 1);
  memcpy(label, node, n_node);
  label[n_node] = 0;
  status_make_line(text);
  status_make_line(label);
  *s = (struct status_record){.code = code, .message = text, .node = label};
  return s;
}

/* Replaces `s` by a record with this prefix and node. */
static status remake(status s, const char *prefix, const char *node, size_t n_node) {
  status made = new_record(s->code, prefix, s->message, node, n_node);
  status_free(s);
  return made;
}

/* Longer messages are cut, since a name in a hostile file may have megabytes. */
enum { MESSAGE_MAX = 2000 };

status status_error(unsigned code, const char *format, ...) {
  char text[MESSAGE_MAX] = "";
  va_list args;
  va_start(args, format);
  c_vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return new_record(code, "", text, "", 0);
}

status status_prefix(status s, const char *format, ...) {
  if (!s) {
    return NULL;
  }
  char text[MESSAGE_MAX];
  va_list args;
  va_start(args, format);
  int n = c_vsnprintf(text, sizeof text - 2, format, args);
  va_end(args);
  size_t end = n < 0 ? 0 : (size_t)n < sizeof text - 3 ? (size_t)n : sizeof text - 3;
  memcpy(text + end, ": ", 3);
  return remake(s, text, s->node, strlen(s->node));
}

status status_suffix(status s, unsigned code, const char *format, ...) {
  if (!s) {
    return NULL;
  }
  char text[MESSAGE_MAX] = "";
  va_list args;
  va_start(args, format);
  c_vsnprintf(text, sizeof text, format, args);
  va_end(args);
  status made = status_error(code, "%s; %s", s->message, text);
  made = status_about_node(made, s->node, strlen(s->node));
  status_free(s);
  return made;
}

status_code status_get_code(status s) { return s ? (status_code)(s->code & STATUS_CODE_MASK) : STATUS_OK; }

status_code status_get_subject(status s) {
  return s ? (status_code)(s->code & ~(unsigned)STATUS_CODE_MASK) : STATUS_OK;
}

status status_about(status s, status_code subject) {
  if (s && !s->is_static && !status_get_subject(s)) {
    s->code |= subject;
  }
  return s;
}

status status_about_node(status s, const char *label, size_t length) {
  return s && !*s->node ? remake(s, "", label, length) : s;
}

status status_at_node(status s, const char *label) {
  return status_prefix(status_about_node(s, label, strlen(label)), "%s", label);
}

const char *status_get_node(status s) { return s ? s->node : ""; }

status status_first(status first, status second) {
  status_free(first ? second : NULL);
  return first ? first : second;
}

status status_copy(status s) { return s ? new_record(s->code, "", s->message, s->node, strlen(s->node)) : NULL; }

const char *status_message(status s) { return s ? s->message : ""; }

const char *status_code_name(status_code code) {
  static const char *const names[] = {"ok",          "invalid-argument", "invalid-file", "invalid-model",
                                      "unsupported", "resource",         "io",           "internal"};
  return (unsigned)code < sizeof names / sizeof *names ? names[code] : "unknown";
}

void status_free(status s) {
  if (s && !s->is_static) {
    free(s);
  }
}

status status_name_file(status s, const char *path) {
  const char *message = status_message(s);
  size_t n = strlen(path);
  if (!s || strncmp(message, path, n) != 0 || (message[n] != ':' && message[n] != ' ')) {
    return status_prefix(s, "%s", path);
  }
  if (message[n] == ':') {
    return s;
  }
  status named =
      status_error((unsigned)status_get_code(s) | (unsigned)status_get_subject(s), "%s: %s", path, message + n + 1);
  named = status_about_node(named, status_get_node(s), strlen(status_get_node(s)));
  status_free(s);
  return named;
}
