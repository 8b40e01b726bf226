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

/* The numbers never change: they are part of the C API. */
typedef enum status_code {
  STATUS_OK = 0,
  STATUS_INVALID_ARGUMENT = 1, /* a wrong call, option, input name, type or shape */
  STATUS_INVALID_FILE = 2,     /* bytes that are not of the format that was expected: protobuf, .oxla, .npy, HLO text */
  STATUS_INVALID_MODEL = 3,    /* well-formed, but breaks a rule of the ONNX standard or of HLO */
  STATUS_UNSUPPORTED = 4,      /* valid, but onnx-xla cannot do it (yet) */
  STATUS_RESOURCE = 5,         /* memory, time or a size limit is used up, or the work was cancelled */
  STATUS_IO = 6,               /* the operating system refused, or a file changed while it was in use */
  STATUS_INTERNAL = 7,         /* a library or a pass misbehaved */

  /* What the failure is about, for programs that must know it.  At most one of these is added to a code.  Shifted right
   * by 8 bits, they are part of the C API, too. */
  STATUS_ABOUT_VERSION = 1 << 8,  /* the version of the standard or of an operator set */
  STATUS_ABOUT_OPERATOR = 2 << 8, /* an operator as a whole */
  STATUS_ABOUT_TYPE = 3 << 8,     /* an element type */
  STATUS_ABOUT_SHAPE = 4 << 8,    /* a rank or dimension */
  STATUS_ABOUT_VALUE = 5 << 8,    /* contents of an input that decide sizes, an index out of range, or a divisor of 0 */
  STATUS_ABOUT_BACKEND = 6 << 8,  /* the backend or the compiler library, which cannot be found or cannot do this */
  STATUS_ABOUT_NAME = 7 << 8,     /* the name of an input, output, constant, dimension or node */
  STATUS_CODE_MASK = 0xff
} status_code;

typedef struct status_record *status;

#define STATUS_MUST_USE __attribute__((warn_unused_result))
/* Lets the compiler check the arguments of a printf-like function. */
#define STATUS_PRINTF(nth, first) __attribute__((format(printf, nth, first)))

/* Makes a failure.  `code` is a status_code, to which one of STATUS_ABOUT_... may be added.  Control characters and
 * bytes that are not UTF-8 become '?', so that the message is one line; a long message is cut. */
STATUS_MUST_USE status status_error(unsigned code, const char *format, ...) STATUS_PRINTF(2, 3)
    __attribute__((returns_nonnull));

/* Puts "prefix: " before the message of `s`.  Takes ownership of `s` and returns the new status; NULL stays NULL. */
STATUS_MUST_USE status status_prefix(status s, const char *format, ...) STATUS_PRINTF(2, 3);

/* Puts "; suffix" after the message of `s`, and replaces its code (a status_code, to which one of STATUS_ABOUT_... may
 * be added); the node remains.  Takes ownership of `s` and returns the new status; NULL stays NULL. */
STATUS_MUST_USE status status_suffix(status s, unsigned code, const char *format, ...) STATUS_PRINTF(3, 4);

/* Makes the message of an error begin with "PATH: ".  If the message begins with the path and a colon, it stays as it
 * is.  If it begins with the path and a blank, the blank becomes ": ".  Otherwise "PATH: " is put before it.  Takes
 * ownership of `s` and returns the new status; NULL stays NULL. */
STATUS_MUST_USE status status_name_file(status s, const char *path);

status_code status_get_code(status s);
/* Returns what the failure is about: one of STATUS_ABOUT_..., or 0. */
status_code status_get_subject(status s);
/* Sets what `s` is about, unless it is set already.  Takes ownership of `s` and returns the new status; NULL stays
 * NULL. */
STATUS_MUST_USE status status_about(status s, status_code subject);
/* Sets the node that `s` is about to the first `length` bytes of a label.  If a node is set already, it remains, since
 * that one is the innermost.  Takes ownership of `s` and returns the new status; NULL stays NULL. */
STATUS_MUST_USE status status_about_node(status s, const char *label, size_t length);
/* Like status_about_node with the whole label.  In any case "label: " is put before the message. */
STATUS_MUST_USE status status_at_node(status s, const char *label);
/* Returns the label of the node, such as "fc1: Gemm"; "" if there is none.  It is valid until status_free. */
const char *status_get_node(status s);
/* Returns the first failure of two, and frees the other one.  Takes ownership of both; each may be NULL. */
STATUS_MUST_USE status status_first(status first, status second);
/* Returns a copy; NULL for NULL. */
STATUS_MUST_USE status status_copy(status s);
/* Returns the message, which is valid until status_free; "" for NULL. */
const char *status_message(status s);
/* Returns the name of a code, such as "invalid-model". */
const char *status_code_name(status_code code);
void status_free(status s);
/* Replaces characters in text from untrusted files by '?' so that it is one line of valid UTF-8. */
void status_make_line(char *text);

/* Returns the status of the expression from the surrounding function if it is a failure. */
#define TRY(expression)                \
  do {                                 \
    status try_status_ = (expression); \
    if (try_status_) {                 \
      return try_status_;              \
    }                                  \
  } while (0)

/* Returns a failure, with `code` and a message, from the surrounding function unless `condition` holds. */
#define CHECK_THAT(condition, code, ...)        \
  do {                                          \
    if (!(condition)) {                         \
      return status_error((code), __VA_ARGS__); \
    }                                           \
  } while (0)

#endif
