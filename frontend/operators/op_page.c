/* op_page.c - writes the main part of doc/operators.md: the list of all operator versions of the standard, and of
 * ONNX Runtime's operators that are supported, with their types. */
#include <inttypes.h>
#include <string.h>

#include "frontend/operators/op_types.h"

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
    "This page is written by `onnx-xla check --list`.  %" PRIu32 " of %" PRIu32
    " operator versions are supported, on every backend.\n"
    "The versions of ai.onnx without types are experimental operators that ONNX has withdrawn.  In other domains, the\n"
    "operators without types are those whose importers check the types themselves.  ONNX Runtime defines the operators "
    "of\n"
    "com.microsoft, of which this page lists those that are supported, and version 1 of LayerNormalization and\n"
    "SimplifiedLayerNormalization.\n"
    "The types seq (sequences of tensors or maps), opt (optionals) and map stand for any element types; sparse "
    "tensors\n"
    "(sparse) are not supported.\n"
    "A model is refused if it gives an operator a type that the operator's version does not allow.\n"
    "A Loop without the input cond ignores the condition that its body returns, as ONNX says; ONNX Runtime honours "
    "it.\n"
    "\n"
    "- any: pred, str, ints, floats, complex\n"
    "- ints: s8, s16, s32, s64, u8, u16, u32, u64\n"
    "- floats: f16, f32, f64; complex: c64, c128\n"
    "- f8: f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz; f6: f6e2m3fn, f6e3m2fn\n"
    "- T...: any number of inputs, all of one type; T*: any number of inputs, each of which may have its own type\n";

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
