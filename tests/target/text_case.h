/* text_case.h - HLO text on the reference evaluator and on the cpu target, for all variants of two_targets.h, with
 * random inputs. */
#ifndef TESTS_TARGET_TEXT_CASE_H
#define TESTS_TARGET_TEXT_CASE_H

#include "tests/target/two_targets.h"
#include "tests/unit/emit/kernel_test.h"

/* Attributes of dots and convolutions; lists are given without their brackets. */
#define DOT_OF(lhs_batch, rhs_batch, lhs, rhs) \
  "{lhs_batch=[" lhs_batch "], rhs_batch=[" rhs_batch "], lhs_contract=[" lhs "], rhs_contract=[" rhs "]}"
#define MATMUL DOT_OF("", "", "1", "0")
#define CONV_OF(strides, low, high, lhs_dilation, rhs_dilation, groups, layout)         \
  "{strides=[" strides "], low=[" low "], high=[" high "], lhs_dilation=[" lhs_dilation \
  "], rhs_dilation=[" rhs_dilation "], groups=" groups ", layout=" layout "}"
#define CONV_FIRST(strides, low, high, lhs_dilation, rhs_dilation, groups) \
  CONV_OF(strides, low, high, lhs_dilation, rhs_dilation, groups, "channels-first")
#define CONV_LAST(strides, low, high, lhs_dilation, rhs_dilation, groups) \
  CONV_OF(strides, low, high, lhs_dilation, rhs_dilation, groups, "channels-last")

/* Sets in[k] to random contents for each parameter of the module, the same for each call.  Floats lie in [low, high).
 */
void case_inputs(arena *a, const hlo_module *m, double low, double high, literal *in);
/* Returns what differs, or NULL if the elements are equal within the tolerance, which is relative to the largest
 * magnitude of `want`, or bit for bit (0). */
const char *case_difference(arena *a, const literal *want, const literal *got, double tolerance);

/* Fails the test unless both targets give the same results: within the tolerance, which is relative to the largest
 * magnitude of a result, or bit for bit (0).  Inputs of floating types lie in [low, high). */
void check_text(const char *text, double tolerance, double low, double high);
/* Does the same for a module with these parameters, these lines of instructions, and `root` as the list of what is
 * returned. */
void check_body(const char *params, const char *body, const char *root, double tolerance, double low, double high);

#endif
