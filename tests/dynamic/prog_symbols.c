/* prog_symbols.c - imports a model with symbols at one set of sizes, binds the module to other sizes, and compares what
 * it computes with the model imported for those sizes.
 *
 *   prog_symbols [-n] [-p] [-c] [-q PASSES] [-d SIZE] MODEL [DIM=HINT[,SIZE]...]...
 *
 * DIM is the name of an open dimension of the inputs.  The first binding takes the first SIZE of each DIM, the second
 * one the second, and so on.  The module is also compiled to one program, which is bound to the same sizes and must
 * compute what the bound module does: for the reference target the same bits; for the cpu target (-c), which adds in
 * another order, the same up to rounding.
 *   -n  modules and the program are only bound, and modules are verified: nothing is computed
 *   -p  the module is printed
 *   -c  the program is for the cpu target
 *   -q  these passes, separated by commas, run on the module with symbols; sums may then be in another order
 *   -d  the size of dimensions without a name (5)
 *
 * It prints the definitions and guards with their sources, and a line for each binding.  The exit status is 1 if
 * something differs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "backend_ref/target.h"
#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/bind.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/hlo/general_program.h"
#include "tests/hlo/same_values.h"
#include "tests/hlo/test_target.h"

enum { MAX_DIMS = 64, MAX_SIZES = 64, DEFAULT_SIZE = 5 };

typedef struct dimension {
  char *name;
  uint32_t n;
  int64_t sizes[MAX_SIZES]; /* the first one is the hint */
} dimension;

typedef struct call {
  arena *a;
  const char *path, *passes;
  bool only_bind, print, cpu;
  dimension dims[MAX_DIMS];
  uint32_t n_dims, n_sets;
  int64_t nameless;
  uint32_t failures, refused;
} call;

/* The options of an import at set number `set` of the sizes. */
static onnx_import_options options_of(const call *c, uint32_t set) {
  onnx_dim_binding *dims = ARENA_NEW_N(c->a, onnx_dim_binding, c->n_dims);
  for (uint32_t k = 0; k < c->n_dims; k++) {
    const dimension *d = &c->dims[k];
    dims[k] = (onnx_dim_binding){d->name, d->sizes[set < d->n ? set : d->n - 1]};
  }
  return (onnx_import_options){
      .dims = dims, .n_dims = c->n_dims, .open_dim = c->nameless, .unchecked = true, .eval = ref_fold};
}

static void fail(call *c, const char *what, status s) {
  printf("FAIL: %s: %s\n", what, status_message(s));
  status_free(s);
  c->failures++;
}

static void run_set(call *c, const onnx_model *m, const hlo_module *general, const general_program *program,
                    uint32_t set) {
  onnx_import_options o = options_of(c, set);
  hlo_module *exact, *bound;
  bool complete;
  status s = onnx_import(c->a, m, &o, &exact, &complete);
  if (s || !complete) {
    printf("set %u: refused when imported for these sizes: %s\n", set, s ? status_message(s) : "segments");
    status_free(s);
    return;
  }
  shape *shapes = ARENA_NEW_N(c->a, shape, exact->entry->n_params);
  for (uint32_t k = 0; k < exact->entry->n_params; k++) {
    shapes[k] = exact->entry->params[k]->shapes[0];
  }
  s = hlo_bind(c->a, general, shapes, &bound);
  if (s) {
    printf("set %u: not for these sizes: %s\n", set, status_message(s));
    status_free(s);
    c->refused++;
    return;
  }
  s = hlo_verify(bound);
  if (s) {
    fail(c, "verification", s);
    return;
  }
  s = c->only_bind ? NULL : same_values(exact, bound, c->passes ? SAME_ROUNDED : SAME_BITS, c->a);
  bool evaluated = !s || (status_get_code(s) != STATUS_UNSUPPORTED && status_get_code(s) != STATUS_RESOURCE);
  if (s && evaluated) {
    fail(c, "values", s);
    return;
  }
  status of_program =
      general_program_compare(program, bound, c->cpu ? SAME_ROUNDED : SAME_BITS, c->only_bind || s ? 0 : 1);
  if (of_program) {
    fail(c, "the program for all sizes", of_program);
  }
  printf("set %u: %s\n", set, !s ? "the same" : status_message(s));
  status_free(s);
}

static status run_passes(call *c, hlo_module *m) {
  const hlo_pass *steps;
  uint32_t n;
  pass_context context = {.arena = c->a, .eval = ref_fold, .target = &test_target, .any_order = true, .verify = true};
  TRY(hlo_pass_parse_list(c->a, c->passes, &steps, &n));
  return hlo_run_passes(m, steps, n, &context);
}

static void report(const call *c, const hlo_module *m, const onnx_definitions *d) {
  uint32_t n;
  for (uint32_t k = 0; k < d->n; k++) {
    printf("definition %s = %s: %s\n", d->items[k].symbol, d->items[k].equals, d->items[k].source);
  }
  const dim_guard *guards = dim_guards(m->dims, &n);
  for (uint32_t k = 0; k < n; k++) {
    printf("guard %s: %s\n", dim_guard_print(c->a, m->dims, &guards[k]), guards[k].source);
  }
}

static status run(void *data) {
  call *c = data;
  onnx_model *m;
  hlo_module *general;
  onnx_definitions definitions = {0};
  bool complete;
  TRY(onnx_model_open(c->a, c->path, NULL, &m));
  onnx_import_options o = options_of(c, 0);
  TRY(onnx_import_symbolic(c->a, m, &o, &definitions, &general, &complete));
  CHECK_THAT(complete, STATUS_UNSUPPORTED, "the model runs segment by segment");
  if (c->passes) {
    TRY(run_passes(c, general));
  }
  report(c, general, &definitions);
  if (c->print) {
    const char *text;
    size_t size;
    TRY(hlo_print(c->a, general, &(hlo_print_options){.literals = HLO_LITERAL_ELIDE}, &text, &size));
    fwrite(text, 1, size, stdout);
  }
  TRY(hlo_verify(general));
  general_program program = {0};
  const rt_target *target = c->cpu ? &cpu_target : &ref_target;
  const function_set *functions = target->functions ? target->functions() : NULL;
  TRY(general_program_make(c->a, c->cpu ? &cpu_compiler : &ref_compiler, target, general, functions, NULL, NULL,
                           &program));
  for (uint32_t set = 0; set < c->n_sets; set++) {
    run_set(c, m, general, &program, set);
  }
  general_program_destroy(&program);
  return NULL;
}

static void read_dimension(call *c, char *text) {
  char *equals = strchr(text, '=');
  if (!equals || c->n_dims == MAX_DIMS) {
    fprintf(stderr, "DIM=HINT[,SIZE]... expected: %s\n", text);
    exit(2);
  }
  dimension *d = &c->dims[c->n_dims++];
  *equals = '\0';
  d->name = text;
  for (char *at = equals; at && d->n < MAX_SIZES; at = strchr(at + 1, ',')) {
    d->sizes[d->n++] = strtoll(at + 1, NULL, 10);
  }
  c->n_sets = d->n > c->n_sets ? d->n : c->n_sets;
}

int main(int argc, char **argv) {
  call c = {.a = arena_create(NULL), .n_sets = 1, .nameless = DEFAULT_SIZE};
  for (int k = 1; k < argc; k++) {
    if (strcmp(argv[k], "-n") == 0) {
      c.only_bind = true;
    } else if (strcmp(argv[k], "-p") == 0) {
      c.print = true;
    } else if (strcmp(argv[k], "-c") == 0) {
      c.cpu = true;
    } else if (strcmp(argv[k], "-q") == 0 && k + 1 < argc) {
      c.passes = argv[++k];
    } else if (strcmp(argv[k], "-d") == 0 && k + 1 < argc) {
      c.nameless = strtoll(argv[++k], NULL, 10);
    } else if (!c.path && !strchr(argv[k], '=')) {
      c.path = argv[k];
    } else {
      read_dimension(&c, argv[k]);
    }
  }
  status s = c.path ? guard_run(run, &c) : status_error(STATUS_INVALID_ARGUMENT, "no model is given");
  if (s) {
    fail(&c, "import", s);
  }
  printf("%u differ, %u refused by guards\n", c.failures, c.refused);
  arena_destroy(c.a);
  return c.failures > 0;
}
