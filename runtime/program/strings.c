/* strings.c - see strings.h. */
#include "runtime/program/strings.h"

void rt_put_strings(rt_writer *w, const string_table *t) {
  uint64_t n = t ? string_table_count(t) : 1;
  rt_put_i64(w, (int64_t)n - 1);
  for (uint64_t k = 1; k < n; k++) { /* string 0 is the empty one of every table */
    size_t size;
    const char *text = string_table_text(t, k, &size);
    rt_put_bytes(w, text, size);
  }
}

string_table *rt_get_strings(rt_reader *r, arena *a) {
  string_table *t = string_table_create(a, NULL);
  int64_t n = rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 8);
  for (int64_t k = 1; k <= n && !r->bad; k++) {
    rt_span s = rt_get_bytes(r);
    r->bad |= string_table_add(t, s.data, s.size) != (uint64_t)k;
  }
  return t;
}
