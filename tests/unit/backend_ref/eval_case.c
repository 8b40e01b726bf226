/* eval_case.c - evaluates a row or a module and compares the results with the expected ones. */
#include "tests/unit/backend_ref/eval_case.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"

arena *eval_memory;

const char *eval_fail_text(status s) {
  const char *text = arena_strdup(eval_memory, status_message(s));
  status_free(s);
  return text;
}

/* Returns the shape with which the text of a literal begins, as text. */
static const char *shape_part(const char *l) { return arena_strndup(eval_memory, l, strcspn(l, "]") + 1); }

/* Splits the text at each ';', and drops blanks before the parts.  Returns the number of parts. */
static uint32_t split(const char *text, const char **parts) {
  uint32_t n = 0;
  while (*(text += strspn(text, " "))) {
    size_t length = strcspn(text, ";");
    parts[n++] = arena_strndup(eval_memory, text, length);
    text += length + (text[length] == ';');
  }
  return n;
}

/* Returns the text of a module that returns the operation's results, and after them the expected ones. */
static const char *module_of(const eval_row *r) {
  const char *operands[8], *expected[8], *body = "", *args = "", *results = "", *shapes = "", *wanted = "";
  uint32_t n = split(r->operands, operands), m = split(r->expected, expected);
  for (uint32_t k = 0; k < n; k++) {
    body = arena_printf(eval_memory, "%s%%x%u = constant() {value=%s} : %s\n", body, k, operands[k],
                        shape_part(operands[k]));
    args = arena_printf(eval_memory, "%s%s%%x%u", args, k ? ", " : "", k);
  }
  for (uint32_t k = 0; k < m; k++) {
    const char *comma = k ? ", " : "";
    wanted = arena_printf(eval_memory, "%s%%w%u = constant() {value=%s} : %s\n", wanted, k, expected[k],
                          shape_part(expected[k]));
    results = arena_printf(eval_memory, "%s%s%%r%u", results, comma, k);
    shapes = arena_printf(eval_memory, "%s%s%s", shapes, comma, shape_part(expected[k]));
  }
  const char *roots = results;
  for (uint32_t k = 0; k < m; k++) {
    roots = arena_printf(eval_memory, "%s, %%w%u", roots, k);
  }
  return arena_printf(
      eval_memory, "onnx-xla hlo 1\nmodule \"test\" {\nentry main() {\n%s%s%s = %s(%s)%s : %s\nreturn %s\n}\n}\n", body,
      wanted, results, r->op, args, r->attrs[0] ? arena_printf(eval_memory, " {%s}", r->attrs) : "", shapes, roots);
}

hlo_module *eval_parse(const char *text) {
  hlo_module *m = NULL;
  status s = hlo_parse(eval_memory, text, strlen(text), NULL, &m);
  if (s) {
    ck_abort_msg("%s\n%s", text, eval_fail_text(s));
  }
  return m;
}

/* Returns a literal as text, for messages. */
static const char *show(const literal *l) {
  const char *text = arena_printf(eval_memory, "%s {", SHAPE_STR(NULL, &l->shape));
  for (int64_t k = 0; k < shape_elements(&l->shape) && l->shape.type != DTYPE_STR; k++) {
    text = dtype_is_complex((dtype)l->shape.type) ? arena_printf(eval_memory, "%s %.9g..", text, literal_f64(l, k))
                                                  : arena_printf(eval_memory, "%s %.9g", text, literal_f64(l, k));
  }
  return arena_printf(eval_memory, "%s }", text);
}

/* Returns true if the shapes are equal and each two numbers, of which complex elements have two, have equal bits or are
 * both NaN. */
static bool same(const literal *x, const literal *y) {
  if (!shape_equal(&x->shape, &y->shape)) {
    return false;
  }
  dtype t = (dtype)x->shape.type, part = t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t;
  size_t size = dtype_bytes(part), n = (size_t)shape_elements(&x->shape) * (dtype_bytes(t) / size);
  for (size_t k = 0; k < n; k++) {
    const char *ex = (const char *)x->data + k * size, *ey = (const char *)y->data + k * size;
    bool are_nan = dtype_is_float(part) && isnan(dtype_load_f64(part, ex)) && isnan(dtype_load_f64(part, ey));
    if (memcmp(ex, ey, size) != 0 && !are_nan) {
      return false;
    }
  }
  return true;
}

/* Evaluates the entry; its first half of roots must equal the second. */
static status run_module(void *data) {
  const char *text = data;
  hlo_module *m = eval_parse(text);
  uint32_t n = m->entry->n_roots;
  literal *roots = ARENA_NEW_N(eval_memory, literal, n);
  TRY(ref_eval_computation(m->entry, NULL, eval_memory, roots));
  for (uint32_t k = 0; k < n / 2; k++) {
    CHECK_THAT(same(&roots[k], &roots[k + n / 2]), STATUS_INTERNAL, "result %u is %s, expected %s", k, show(&roots[k]),
               show(&roots[k + n / 2]));
  }
  return NULL;
}

void eval_check_text(const char *text) {
  status s = guard_run(run_module, (void *)text);
  if (s) {
    ck_abort_msg("%s\n%s", text, eval_fail_text(s));
  }
}

static status run_rows(void *data) {
  for (const eval_row *r = data; r->op; r++) {
    eval_check_text(module_of(r));
  }
  return NULL;
}

void eval_check_rows(const eval_row *rows) { ck_assert_ptr_null(guard_run(run_rows, (void *)rows)); }

void eval_setup(void) { eval_memory = arena_create(NULL); }
void eval_teardown(void) { arena_destroy(eval_memory); }
