/* eval_case.h - operations and modules with their expected results, for the reference evaluator. */
#ifndef TESTS_UNIT_BACKEND_REF_EVAL_CASE_H
#define TESTS_UNIT_BACKEND_REF_EVAL_CASE_H

#include "hlo/text/text.h"

/* One operation: its operands and expected results are literals as HLO text has them, separated by ';'. */
typedef struct eval_row {
  const char *op, *operands, *attrs, *expected;
} eval_row;

extern arena *eval_memory; /* of the test that runs */

/* A fixture around each test: make eval_memory and free it. */
void eval_setup(void);
void eval_teardown(void);

/* Evaluates each row, up to one whose op is NULL, and fails the test unless the results have the expected bits.  Any
 * NaN is as good as another. */
void eval_check_rows(const eval_row *rows);

/* Evaluates a module, the first half of whose results must equal the second half. */
void eval_check_text(const char *text);

/* Parses a module or fails the test. */
hlo_module *eval_parse(const char *text);

/* Returns the message and frees s. */
const char *eval_fail_text(status s);

#endif
