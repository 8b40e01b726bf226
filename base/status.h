/* status.h - the result of every function that can fail because of its input.
 *
 * A status is NULL if all went well.  Otherwise it owns a code and a message of one line that names the node, the value
 * and the rule that was broken.  A status must not be ignored: pass it on (TRY), print it, or free it with status_free.
 * Bugs in this program are caught by assert and are never a status. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Stable numbers: they are part of the C API and are printed by the command line. */
typedef enum status_code {
  STATUS_OK = 0,
  STATUS_INVALID_ARGUMENT = 1, /* a wrong call, option, input name, type or shape */
  STATUS_INVALID_FILE = 2,     /* bytes that are not what they claim: protobuf, .oxla, .npy, HLO text */
  STATUS_INVALID_MODEL = 3,    /* well-formed, but breaks a rule of the ONNX standard or of HLO */
  STATUS_UNSUPPORTED = 4,      /* valid, but onnx-xla cannot do it (yet) */
  STATUS_RESOURCE = 5,         /* memory, time or a size limit is used up */
  STATUS_IO = 6,               /* the operating system refused */
  STATUS_INTERNAL = 7,         /* a library or a pass misbehaved */

  /* What the failure is about, for programs that must tell: added to a code, at most one.  Also part of the C API. */
  STATUS_ABOUT_VERSION = 1 << 8,  /* of the standard or an operator set */
  STATUS_ABOUT_OPERATOR = 2 << 8, /* as a whole */
  STATUS_ABOUT_TYPE = 3 << 8,     /* an element type */
  STATUS_ABOUT_SHAPE = 4 << 8,    /* a rank or dimension */
  STATUS_ABOUT_VALUE = 5 << 8,    /* the contents of an input, on which a size depends */
  STATUS_ABOUT_BACKEND = 6 << 8,  /* it, or the compiler half, is not there */
  STATUS_ABOUT_NAME = 7 << 8,     /* of an input, output or constant */
  STATUS_CODE_MASK = 0xff
} status_code;

typedef struct status_record *status;

#define STATUS_MUST_USE __attribute__((warn_unused_result))
/* Lets the compiler check the arguments of a printf-like function. */
#define STATUS_PRINTF(nth, first) __attribute__((format(printf, nth, first)))

/* A new failure.  Control characters and what is no UTF-8 become '?', so that the message stays one line. */
STATUS_MUST_USE status status_error(unsigned code, const char *format, ...) STATUS_PRINTF(2, 3)
    __attribute__((returns_nonnull));

/* Puts "prefix: " before the message of `s` (takes `s`, gives it back; NULL stays NULL). */
STATUS_MUST_USE status status_prefix(status s, const char *format, ...) STATUS_PRINTF(2, 3);

status_code status_get_code(status s);
/* STATUS_ABOUT_something, or 0. */
status_code status_get_subject(status s);
/* Sets the subject of `s` if it has none. Takes `s` and returns it; NULL stays NULL. */
STATUS_MUST_USE status status_about(status s, status_code subject);
/* Names the node that `s` is about, the first `length` bytes of a label, unless one is named already: the innermost
 * counts (takes `s`, gives it back; NULL stays NULL). */
STATUS_MUST_USE status status_about_node(status s, const char *label, size_t length);
/* That, and "label: " before the message. */
STATUS_MUST_USE status status_at_node(status s, const char *label);
/* Its label, "fc1: Gemm"; "" when there is none.  Valid until status_free. */
const char *status_get_node(status s);
/* Another one that says the same; NULL of NULL. */
STATUS_MUST_USE status status_copy(status s);
/* "" for NULL; valid until status_free. */
const char *status_message(status s);
/* "invalid-model" and so on. */
const char *status_code_name(status_code code);
void status_free(status s);
/* Makes text that may hold names from untrusted files one line of valid UTF-8: what does not fit becomes '?'. */
void status_make_line(char *text);

/* Passes a failure on to the caller. */
#define TRY(expression)                \
  do {                                 \
    status try_status_ = (expression); \
    if (try_status_) {                 \
      return try_status_;              \
    }                                  \
  } while (0)

/* Fails with `code` and a message unless `condition` holds. */
#define CHECK_THAT(condition, code, ...)        \
  do {                                          \
    if (!(condition)) {                         \
      return status_error((code), __VA_ARGS__); \
    }                                           \
  } while (0)

#endif
