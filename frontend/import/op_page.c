/* op_page.c - what is supported, of all that the standard has: doc/operators.md. */
#include <inttypes.h>
#include <string.h>

#include "frontend/import/op_types.h"

typedef struct page {
  arena *a;
  char *text;
  size_t n, cap;
} page;

static void put(page *p, const char *text) {
  size_t n = strlen(text);
  if (p->n + n >= p->cap) {
    size_t cap = 2 * (p->n + n) + 4096;
    char *larger = arena_alloc(p->a, cap);
    memcpy(larger, p->text, p->n);
    p->text = larger;
    p->cap = cap;
  }
  memcpy(p->text + p->n, text, n + 1);
  p->n += n;
}

static const char head[] =
    "# Operators\n"
    "\n"
    "Written by `onnx-xla check --list`: %" PRIu32 " of %" PRIu32
    " operator versions are supported, on every backend; those\n"
    "without types are experiments that the standard has no longer.\n"
    "Of the types, str is not supported, nor are opt, map and sparse, which are no arrays; seq is a sequence of "
    "tensors of any\n"
    "type, which may stand between nodes, while a model's own inputs and outputs are tensors.  A model that gives an "
    "operator\n"
    "a type that its version does not take is refused.\n"
    "\n"
    "- any: pred, str, ints, floats, complex\n"
    "- ints: s8, s16, s32, s64, u8, u16, u32, u64\n"
    "- floats: f16, f32, f64; complex: c64, c128\n"
    "- f8: f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz; f6: f6e2m3fn, f6e3m2fn\n"
    "- T...: any number of inputs of one type; T*: each of its own\n";

static const char columns[] =
    "| operator | version | supported | inputs | outputs | types |\n"
    "| --- | --: | --- | --- | --- | --- |\n";

const char *onnx_op_page(arena *a) {
  uint32_t n, supported = 0;
  const onnx_op_row *ops = onnx_op_rows(&n);
  page p = {.a = a, .text = ""};
  for (uint32_t k = 0; k < n; k++) {
    supported += onnx_op_is_supported(&ops[k]);
  }
  put(&p, arena_printf(a, head, supported, n));
  for (uint32_t k = 0; k < n; k++) {
    const onnx_op_types *t = onnx_op_types_of(&ops[k]);
    if (k == 0 || strcmp(ops[k].domain, ops[k - 1].domain) != 0) {
      put(&p, arena_printf(a, "\n## %s\n\n%s", *ops[k].domain ? ops[k].domain : "ai.onnx", columns));
    }
    put(&p, arena_printf(a, "| %s | %d | %s | %s | %s | %s |\n", ops[k].name, ops[k].since,
                         onnx_op_is_supported(&ops[k]) ? "yes" : "no", t ? t->inputs : "", t ? t->outputs : "",
                         t ? t->types : ""));
  }
  return p.text;
}
