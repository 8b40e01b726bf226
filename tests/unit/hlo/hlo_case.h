/* hlo_case.h - a computation from HLO text, for tests that look for something in it. */
#ifndef TESTS_UNIT_HLO_HLO_CASE_H
#define TESTS_UNIT_HLO_HLO_CASE_H

#include <check.h>
#include <string.h>

#include "hlo/text/text.h"
#include "tests/suite.h"

/* Returns the entry of a module whose text is "entry main" followed by `text`, such as "(%x: f32[4]) { return %x }". */
static inline hlo_computation *parse_entry(arena *a, const char *text) {
  const char *all = arena_printf(a, "onnx-xla hlo 1\nmodule \"m\" {\nentry main%s\n}\n", text);
  hlo_module *m = NULL;
  ck_assert_ptr_nonnull(all);
  ASSERT_OK(hlo_parse(a, all, strlen(all), NULL, &m));
  return m->entry;
}

#endif
