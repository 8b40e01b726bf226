/* general_program.c - see general_program.h. */
#include "tests/hlo/general_program.h"

#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/ir/bind.h"
#include "runtime/exec/binding.h"
#include "runtime/program/image.h"

static status through_file(arena *a, const rt_target *target, rt_program **program, const char *file) {
  rt_image image = {.model = "m", .producer = "test", .target = target->name, .n_programs = 1, .programs = program},
           *read;
  TRY(rt_image_write(&image, file));
  TRY(rt_image_open(a, file, true, &read));
  *program = read->programs[0];
  return NULL;
}

status general_program_make(arena *a, const rt_compiler *compiler, const rt_target *target, const hlo_module *m,
                            const function_set *functions, const char *cpu, const char *file, general_program *out) {
  rt_program *p;
  rt_report report = {0};
  rt_compile_options options = {.threads = 2, .eval = ref_fold, .keep_text = true, .functions = functions, .cpu = cpu};
  TRY(compiler->compile(hlo_module_clone(a, m), &options, a, &p, &report));
  TRY(file ? through_file(a, target, &p, file) : NULL);
  out->program = p;
  return rt_executable_create(p, target, NULL, &out->executable);
}

void general_program_destroy(general_program *p) { rt_executable_destroy(p->executable); }

typedef struct named_sizes {
  const dim_table *dims;
  const char *names;
  const int64_t *sizes;
} named_sizes;

static int64_t size_of(void *data, dim symbol) {
  const named_sizes *n = data;
  const char *found = strchr(n->names, *dim_name(n->dims, symbol));
  return found ? n->sizes[found - n->names] : 0;
}

status general_program_bind(arena *a, const hlo_module *m, const char *names, const int64_t *sizes,
                            hlo_module **bound) {
  named_sizes n = {m->dims, names, sizes};
  shape *shapes = ARENA_NEW_N(a, shape, m->entry->n_params);
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    shapes[k] = m->entry->params[k]->shapes[0];
    for (int d = 0; d < shapes[k].rank; d++) {
      bool fits = dim_evaluate(m->dims, shapes[k].dims[d], size_of, &n, &shapes[k].dims[d]);
      CHECK_THAT(fits, STATUS_INVALID_ARGUMENT, "a dimension of input %u cannot be computed", k);
    }
  }
  return hlo_bind(a, m, shapes, bound);
}

static status run_round(const rt_binding *b, const hlo_computation *c, same_floats how, uint32_t round, bool check,
                        arena *a) {
  literal *inputs = ARENA_NEW_N(a, literal, c->n_params);
  literal *want = ARENA_NEW_N(a, literal, c->n_roots), *got = ARENA_NEW_N(a, literal, c->n_roots);
  const void **params = ARENA_NEW_N(a, const void *, c->n_params);
  void **results = ARENA_NEW_N(a, void *, c->n_roots);
  uint64_t state = round + 1;
  for (uint32_t k = 0; k < c->n_params; k++) {
    inputs[k] = same_values_input(&c->params[k]->shapes[0], round, &state, a);
    params[k] = inputs[k].data;
  }
  TRY(ref_eval_computation(c, inputs, a, want));
  for (uint32_t k = 0; k < c->n_roots; k++) {
    CHECK_THAT(shape_equal(&b->program->results[k].shape, &want[k].shape), STATUS_INTERNAL, "result %u is %s, not %s",
               k, SHAPE_STR(NULL, &b->program->results[k].shape), SHAPE_STR(NULL, &want[k].shape));
    got[k] = literal_new(a, want[k].shape, &results[k]);
  }
  TRY(rt_execute(b, &(rt_run_options){.check_memory = check}, params, results));
  for (uint32_t k = 0; k < c->n_roots; k++) {
    TRY(same_values_result(&want[k], &got[k], how, round, k));
  }
  return NULL;
}

status general_program_compare(const general_program *p, const hlo_module *bound, same_floats how, uint32_t rounds) {
  const hlo_computation *c = bound->entry;
  arena *a = arena_create(NULL);
  shape *shapes = ARENA_NEW_N(a, shape, c->n_params);
  for (uint32_t k = 0; k < c->n_params; k++) {
    shapes[k] = c->params[k]->shapes[0];
  }
  rt_binding *b = NULL;
  status s = rt_bind(p->executable, shapes, &b);
  for (uint32_t round = 0; round < rounds && !s; round++) {
    s = run_round(b, c, how, round, round + 1 == rounds && rounds > 1, a);
  }
  rt_binding_destroy(b);
  arena_destroy(a);
  return s;
}
