/* hlo_case.h - parses a computation from HLO text, for tests that search for something in it. */
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

/* Returns `text` with the first `from` in it, which must be there, replaced by `to`. */
static inline const char *with(arena *a, const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "no '%s' in the text", from);
  return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* One change of a text, and whether what is looked for is still found. */
typedef struct text_change {
  const char *from, *to;
  bool found;
} text_change;

/* Makes each change by itself and asserts that `find`, which gets the entry, returns what is expected. */
static inline void check_changes(arena *a, const char *text, const text_change *changes, size_t n,
                                 bool (*find)(hlo_computation *c)) {
  ck_assert_msg(find(parse_entry(a, text)), "the text itself is not found");
  for (size_t k = 0; k < n; k++) {
    bool found = find(parse_entry(a, with(a, text, changes[k].from, changes[k].to)));
    ck_assert_msg(found == changes[k].found, "%s: '%s' in the place of '%s'", found ? "found" : "not found",
                  changes[k].to, changes[k].from);
  }
}
#define CHECK_CHANGES(a, text, changes, find) check_changes(a, text, changes, sizeof(changes) / sizeof *(changes), find)

#endif
