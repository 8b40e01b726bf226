/* case.h - ONNX test cases: finding them, running one, and the list of those that are expected to fail. */
#ifndef PLUGIN_CLI_CASE_H
#define PLUGIN_CLI_CASE_H

#include "base/hash.h"
#include "plugin/cli/cli.h"

typedef struct cli_case {
  const char *path; /* the case's folder */
  const char *name; /* "kind/case": the last two parts of the folder, which are the same on every machine */
  const char *model;
  /* For a light model (one of ONNX's test models with generated weights and inputs), the paths of the expected outputs
   * without number and extension.  NULL for other models, which have folders of inputs and outputs beside them. */
  const char *light_output;
  double rtol, atol;
} cli_case;

typedef struct cli_cases {
  uint32_t n, cap;
  cli_case *items;
} cli_cases;

/* Finds all cases in a folder and below it, sorted by path.  Symbolic links below the folder are not followed. */
STATUS_MUST_USE status cli_find_cases(arena *a, const char *dir, cli_cases *out);

/* Facts about a run of a case. */
typedef struct cli_case_report {
  bool host_thunks;                     /* whether some thunk runs outside of compiled code */
  bool differs;                         /* whether it fails only because elements differ */
  double compile, passes, codegen, run; /* seconds; passes and codegen are parts of compile */
  uint32_t kernels;
} cli_case_report;

/* Compiles the case's model, saves it as the .oxla file `image`, loads that file and runs the case's data sets with it.
 * Fails if an output differs from the expected one; the message says where. */
STATUS_MUST_USE status cli_run_case(const cli_case *c, const cli_args *args, const char *image, arena *a,
                                    cli_case_report *report);

/* Compares two arrays as ONNX's runner does: types and shapes must be equal, and |got - want| <= atol + rtol * |want|;
 * NaN is equal to NaN.  For bfloat16, rtol is at least two units in the last place.  Fails if they differ. */
STATUS_MUST_USE status cli_compare(arena *a, const literal *got, const literal *want, double rtol, double atol);

typedef struct cli_expected {
  const char *name, *reason;
  bool met; /* whether a case matched this entry */
} cli_expected;

/* A list of expected failures. cli_read_expected makes it empty if `path` is NULL. */
typedef struct cli_expect_list {
  uint32_t n, cap;
  cli_expected *items;
} cli_expect_list;
STATUS_MUST_USE status cli_read_expected(arena *a, const char *path, cli_expect_list *out);
/* Returns the entry that has the case's path, its name or the name of its folder; NULL if there is none. */
cli_expected *cli_find_expected(const cli_expect_list *list, const cli_case *c);

#endif
