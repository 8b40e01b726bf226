/* case.h - ONNX test cases: finding them, running one, and the list of those that are known to fail. */
#ifndef PLUGIN_CLI_CASE_H
#define PLUGIN_CLI_CASE_H

#include "base/hash.h"
#include "plugin/cli/cli.h"

typedef struct cli_case {
  const char *path; /* its folder */
  const char *name; /* kind/case: the folder's last two parts, the same on every machine */
  const char *model;
  const char *light_output; /* of a light model: its outputs' path up to the number; NULL: data sets beside
                               the model */
  double rtol, atol;
} cli_case;

typedef struct cli_cases {
  uint32_t n, cap;
  cli_case *items;
} cli_cases;

/* All cases at or below a folder, sorted by path.  Symbolic links are not followed below it. */
STATUS_MUST_USE status cli_find_cases(arena *a, const char *dir, cli_cases *out);

/* What a case took. */
typedef struct cli_case_report {
  bool host_thunks;                     /* some step runs outside of compiled code */
  bool differs;                         /* it fails since elements differ, and for nothing else */
  double compile, passes, codegen, run; /* seconds; passes and codegen are parts of compile */
  uint32_t kernels;
} cli_case_report;

/* Runs the case's data sets through an executable saved to `image` and loaded from it; the failure says what
 * differs. */
STATUS_MUST_USE status cli_run_case(const cli_case *c, const cli_args *args, const char *image, arena *a,
                                    cli_case_report *report);

/* Whether `got` is `want` as ONNX's runner has it: type, shape, |got - want| <= atol + rtol * |want|, NaN
 * equal to NaN.  Of bfloat16 values, rtol is at least two of their steps. */
STATUS_MUST_USE status cli_compare(arena *a, const literal *got, const literal *want, double rtol, double atol);

typedef struct cli_expected {
  const char *name, *reason;
  bool met; /* such a case is there */
} cli_expected;

/* path NULL: an empty list. */
typedef struct cli_expect_list {
  uint32_t n, cap;
  cli_expected *items;
} cli_expect_list;
STATUS_MUST_USE status cli_read_expected(arena *a, const char *path, cli_expect_list *out);
/* The entry for a case, by its path, its name or its folder's name alone; NULL when there is none. */
cli_expected *cli_find_expected(const cli_expect_list *list, const cli_case *c);

#endif
