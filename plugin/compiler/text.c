/* text.c - prints modules as imported and after passes, applies passes to HLO text, lists the passes, and tells the
 * version of LLVM. */
#include <llvm-c/Core.h>
#include <stdio.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "plugin/compiler/internal.h"

/* --- HLO --- */

typedef struct print_call {
  const compiler_model *s;
  const compile_request *request;
  const char *after;
  bool no_constants;
  arena *a;
  const char **text;
  const char *passes; /* the names after which the module can be shown: passes that changed it, "input" and "final" */
} print_call;

static status print_hlo(print_call *c, const hlo_module *m) {
  const hlo_print_options options = {.literals = c->no_constants ? HLO_LITERAL_ELIDE : HLO_LITERAL_FULL};
  return hlo_print(c->a, m, &options, c->text, NULL);
}

/* An rt_compile_options.dump function that keeps the text of the module after the pass c->after.  `dump` is
 * "000-input.hlo" before the passes, "007-fold.hlo" after the pass fold, "042-final.hlo" or "final" after all of them,
 * or the name of another phase of the compiler. */
static status keep_text(void *data, const char *dump, const struct hlo_module *m) {
  print_call *c = data;
  if (!strchr(dump, '-') && strcmp(dump, "final") != 0) { /* the dump of another phase, not of a pass */
    return NULL;
  }
  const char *name = strchr(dump, '-') ? strchr(dump, '-') + 1 : dump;
  size_t n = strcspn(name, ".");
  const char *pass = arena_strndup(c->a, name, n);
  if (strcmp(pass, c->after) == 0) {
    return print_hlo(c, (const hlo_module *)m);
  }
  if (!strstr(c->passes, arena_printf(c->a, " %s,", pass))) {
    c->passes = arena_printf(c->a, "%s %s,", c->passes, pass);
  }
  return NULL;
}

static status print_after(print_call *c) {
  const compiler_api *compiler = onnx_xla_compiler_get(COMPILER_ABI);
  compile_request request = *c->request;
  request.options.dump = keep_text;
  request.options.dump_data = c;
  rt_program *program;
  rt_report report = {0};
  TRY(compiler->compile(c->s, &request, c->a, &program, &report));
  CHECK_THAT(*c->text || *c->passes, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "backend %s does not show its passes, so the module after pass '%s' is not known", request.backend,
             c->after);
  CHECK_THAT(*c->text, STATUS_INVALID_ARGUMENT,
             "backend %s runs no pass '%s', or it changed nothing; the module can be shown after:%.*s", request.backend,
             c->after, (int)strlen(c->passes) - 1, c->passes);
  return NULL;
}

static status print_module(void *data) {
  print_call *c = data;
  *c->text = NULL;
  if (c->after) {
    return print_after(c);
  }
  hlo_module *m;
  bool complete;
  TRY(compiler_import(c->s, c->request, c->a, &m, NULL, &complete));
  return print_hlo(c, m);
}

status compiler_print(const compiler_model *s, const compile_request *request, const char *after, bool no_constants,
                      arena *a, const char **text) {
  return guard_run(print_module, &(print_call){s, request, after, no_constants, a, text, ""});
}

/* --- passes by name --- */

typedef struct opt_call {
  arena *a;
  const char *text;
  size_t size;
  const char *passes, **out;
} opt_call;

static status run_named(void *data) {
  opt_call *c = data;
  hlo_module *m;
  const hlo_pass *steps;
  uint32_t n;
  pass_context context = {.arena = c->a, .eval = ref_fold, .any_order = true, .verify = true, .check_changed = true};
  TRY(hlo_pass_parse_list(c->a, c->passes, &steps, &n));
  TRY(hlo_parse(c->a, c->text, c->size, NULL, &m));
  TRY(hlo_run_passes(m, steps, n, &context));
  return hlo_print(c->a, m, NULL, c->out, NULL);
}

status compiler_opt(arena *a, const char *name, const char *text, size_t size, const char *passes, const char **out) {
  status s = guard_run(run_named, &(opt_call){a, text, size, passes, out});
  return s ? status_prefix(s, "%s", name) : NULL;
}

const char *compiler_pass_list(arena *a) {
  uint32_t n;
  const hlo_pass_info *passes = hlo_pass_list(&n);
  const char *text = "";
  for (uint32_t k = 0; k < n; k++) {
    text = arena_printf(a, "%s%-22s %s\n", text, passes[k].name, passes[k].contract);
  }
  return text;
}

/* --- versions --- */

const char *compiler_versions(void) {
  static char text[64];
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(text, sizeof text, "LLVM %u.%u.%u", major, minor, patch);
  return text;
}
