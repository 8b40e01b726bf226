/* code_bundle.c - see code_bundle.h.  A bundle is the mark, the number of codes, and the machine and the bytes of each
 * code. */
#include "runtime/program/code_bundle.h"

enum { MOST_CODES = 64 };

/* "oxlacode" as the first bytes: neither an object file nor PTX begins like that. */
static const int64_t mark = 0x65646f63616c786f;

rt_span rt_code_bundle_write(arena *a, uint32_t n, const rt_bundled_code *codes) {
  rt_writer w = {.arena = a};
  rt_put_i64(&w, mark);
  rt_put_i64(&w, n);
  for (uint32_t k = 0; k < n; k++) {
    rt_put_text(&w, codes[k].cpu);
    rt_put_bytes(&w, codes[k].code.data, codes[k].code.size);
  }
  return rt_written(&w);
}

bool rt_code_is_bundle(rt_span code) {
  rt_reader r = rt_reader_make(code);
  return rt_get_i64(&r) == mark;
}

status rt_code_bundle_read(arena *a, rt_span bundle, uint32_t *n, const rt_bundled_code **out) {
  rt_reader r = rt_reader_make(bundle);
  (void)rt_get_i64(&r);
  *n = (uint32_t)rt_get_in(&r, 1, MOST_CODES);
  rt_bundled_code *codes = ARENA_NEW_N(a, rt_bundled_code, *n);
  for (uint32_t k = 0; k < *n; k++) {
    codes[k].cpu = rt_get_text(&r);
    codes[k].code = rt_get_bytes(&r);
  }
  *out = codes;
  return rt_reader_end(&r, "a bundle of code");
}
