/* session_case.h - a session on a small model in a file, for tests of sessions. */
#ifndef TESTS_UNIT_PLUGIN_SESSION_CASE_H
#define TESTS_UNIT_PLUGIN_SESSION_CASE_H

#include "plugin/session/session.h"
#include "tests/unit/frontend/build_model.h"

extern char session_case_path[]; /* the path of the model, or of the file that a test saves */

/* A fixture around each test: make the file, and remove it. */
void session_case_setup(void);
void session_case_teardown(void);

/* Fails the test unless the expression fails with this code and a message that contains the words. */
#define ASSERT_FAILS(expression, code, words)                                                                    \
  do {                                                                                                           \
    status bad_ = (expression);                                                                                  \
    ck_assert_msg(bad_, "%s succeeds", #expression);                                                             \
    ck_assert_msg(status_get_code(bad_) == (code) && strstr(status_message(bad_), words), "%s: %s", #expression, \
                  status_message(bad_));                                                                         \
    status_free(bad_);                                                                                           \
  } while (0)

session *session_case_open_with(const char *file, session_options options);
/* Opens a session with one thread. */
session *session_case_open(const char *file, const char *backend);

/* Returns the program for one f32 input of this shape. */
const session_program *session_case_compile(session *s, int64_t rows, int64_t columns);

/* Runs Relu of n elements and checks the result. */
void session_case_run_relu(session *s, const session_program *c, int64_t n);

/* Declares a tensor of an ONNX element type, with dimensions such as "n,4". */
void session_case_set_type(arena *a, Onnx__ValueInfoProto *v, int type, const char *dims);

/* Writes the model to session_case_path and frees `a`. */
void session_case_write(arena *a, const Onnx__ModelProto *m);

/* Writes the model y = Relu(x), f32[n,m]. */
void session_case_write_relu(void);

#endif
