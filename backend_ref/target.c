/* target.c - the reference target.  The buffers of a thunk of kind "ref.op" are the operands, then the results.  Its
 * config is the text of an HLO module whose entry computes one instruction.  The sizes of a thunk are the symbols of
 * the program, which the module's dimensions may contain. */
#include "backend_ref/target.h"

#include <string.h>

#include "backend_ref/eval.h"
#include "backend_ref/ref.h"
#include "hlo/ir/bind.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "lower/lower.h"

/* --- running a thunk --- */

/* Computes the shape of a buffer.  Extents come from a file: they must be constant, and the array not too large. */
static status buffer_shape(const rt_buffer *b, shape *out) {
  *out = shape_make((dtype)b->type, b->rank, b->extents);
  CHECK_THAT(shape_is_static(out), STATUS_INVALID_FILE, "a buffer has no constant size");
  return shape_check(out, "a buffer");
}

static status check_shape(const rt_buffer *b, const shape *want) {
  shape s;
  TRY(buffer_shape(b, &s));
  CHECK_THAT(shape_equal(&s, want), STATUS_INVALID_FILE, "a buffer is %s but the computation has %s",
             SHAPE_STR(NULL, &s), SHAPE_STR(NULL, want));
  return NULL;
}

/* The state of a thunk.  Once it is bound, all dimensions of the module are numbers. */
typedef struct ref_op {
  hlo_module *module;
  const char **symbols; /* the name of each of the thunk's sizes */
} ref_op;

typedef struct load_call {
  rt_thunk *thunk;
  rt_loader *loader;
} load_call;

/* Sets *name to the name of a size that is a symbol of the program. */
static status name_of(const rt_program *p, rt_size s, const char **name) {
  const rt_size_node *n = s < 0 ? &p->sizes[-(s + 1)] : NULL;
  CHECK_THAT(n && n->name && *n->name, STATUS_INVALID_FILE, "a size is no symbol");
  *name = n->name;
  return NULL;
}

static status load_guarded(void *data) {
  const load_call *call = data;
  rt_thunk *t = call->thunk;
  rt_loader *l = call->loader;
  ref_op *op = t->state = ARENA_NEW(l->arena, ref_op);
  TRY(hlo_parse(l->arena, t->config.data, t->config.size, NULL, &op->module));
  const hlo_computation *c = op->module->entry;
  CHECK_THAT(c->n_params == t->n_inputs && c->n_roots == t->n_buffers - t->n_inputs, STATUS_INVALID_FILE,
             "%u buffers for %u parameters and %u results", t->n_buffers, c->n_params, c->n_roots);
  op->symbols = ARENA_NEW_N(l->arena, const char *, t->n_sizes);
  for (uint32_t k = 0; k < t->n_sizes; k++) {
    TRY(name_of(l->program, t->sizes[k], &op->symbols[k]));
  }
  return NULL;
}

/* Runs inside a guard_run of its own, so that the caller gets a status if memory runs out, to whose message it adds the
 * thunk's label. */
static status load_op(rt_thunk *t, rt_loader *l) { return guard_run(load_guarded, &(load_call){t, l}); }

typedef struct bind_call {
  rt_thunk *thunk;
  arena *arena;
  const hlo_module *module;
} bind_call;

/* Returns the size that the thunk has for a symbol of its module.  If the file is damaged and the thunk has no size for
 * a symbol, the result is 0.  That does no harm, since the shapes are then compared with those of the buffers. */
static int64_t value_of(void *data, dim symbol) {
  const bind_call *call = data;
  const ref_op *op = call->thunk->state;
  for (uint32_t k = 0; k < call->thunk->n_sizes; k++) {
    if (strcmp(op->symbols[k], dim_name(call->module->dims, symbol)) == 0) {
      return call->thunk->sizes[k];
    }
  }
  return 0;
}

/* Fails if the instruction is not defined for its sizes, such as a slice that reaches beyond the end of the array. */
static status check_bound(const hlo_module *m) {
  status wrong = hlo_verify(m);
  if (wrong) {
    status s =
        status_error(STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "not for these inputs: %s", status_message(wrong));
    status_free(wrong);
    return s;
  }
  return NULL;
}

/* Replaces the symbols of the thunk's module by their values, in a module that is parsed once more: other threads may
 * use the first one, and only one thread at a time may change a module. */
static status bind_symbols(bind_call *call) {
  rt_thunk *t = call->thunk;
  ref_op bound = *(const ref_op *)t->state;
  TRY(hlo_parse(call->arena, t->config.data, t->config.size, NULL, &bound.module));
  call->module = bound.module;
  TRY(hlo_bind_sizes(bound.module, value_of, call));
  TRY(check_bound(bound.module));
  t->state = arena_memdup(call->arena, &bound, sizeof bound);
  return NULL;
}

static status bind_guarded(void *data) {
  bind_call *call = data;
  rt_thunk *t = call->thunk;
  TRY(t->n_sizes ? bind_symbols(call) : NULL);
  const hlo_computation *c = ((const ref_op *)t->state)->module->entry;
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    uint32_t root = k - t->n_inputs;
    TRY(check_shape(&t->buffers[k], k < t->n_inputs ? &c->params[k]->shapes[0] : hlo_shape(c->roots[root])));
  }
  return NULL;
}

static status bind_op(rt_thunk *t, arena *a) { return guard_run(bind_guarded, &(bind_call){.thunk = t, .arena = a}); }

static void move_buffer(const rt_buffer *b, const int64_t *to, const int64_t *from, void *dst, const void *src) {
  ref_box box = {.rank = b->rank};
  memcpy(box.extents, b->extents, b->rank * sizeof *b->extents);
  memcpy(box.to, to, b->rank * sizeof *to);
  memcpy(box.from, from, b->rank * sizeof *from);
  ref_move(dtype_bytes((dtype)b->type), &box, dst, src);
}

/* Returns the buffer as an array.  A buffer that is not dense is copied. */
static literal read_buffer(const rt_buffer *b, rt_run *r, arena *a) {
  shape s = shape_make((dtype)b->type, b->rank, b->extents);
  if (rt_buffer_is_dense(b)) {
    return literal_make(s, rt_address(r, b));
  }
  int64_t strides[SHAPE_MAX_RANK];
  void *data;
  literal l = literal_new(a, s, &data);
  shape_strides(&s, strides);
  move_buffer(b, strides, b->strides, data, rt_address(r, b));
  return l;
}

static void write_buffer(const rt_buffer *b, rt_run *r, const literal *l) {
  int64_t strides[SHAPE_MAX_RANK];
  shape_strides(&l->shape, strides);
  move_buffer(b, b->strides, strides, rt_address(r, b), l->data);
}

typedef struct job {
  const rt_thunk *thunk;
  rt_run *run;
  arena *memory;
} job;

static status evaluate(void *data) {
  job *j = data;
  const rt_thunk *t = j->thunk;
  const hlo_computation *c = ((const ref_op *)t->state)->module->entry;
  j->memory = arena_create(j->run->budget);
  literal *args = ARENA_NEW_N(j->memory, literal, c->n_params), *roots = ARENA_NEW_N(j->memory, literal, c->n_roots);
  for (uint32_t k = 0; k < c->n_params; k++) {
    args[k] = read_buffer(&t->buffers[k], j->run, j->memory);
  }
  TRY(ref_eval_computation(c, args, j->memory, roots));
  for (uint32_t k = 0; k < c->n_roots; k++) {
    write_buffer(&t->buffers[t->n_inputs + k], j->run, &roots[k]);
  }
  return NULL;
}

static status run_op(const rt_thunk *t, rt_run *r) {
  job j = {.thunk = t, .run = r};
  status s = guard_run(evaluate, &j);
  arena_destroy(j.memory);
  return s;
}

/* --- compiling --- */

/* Writes the text of a module with only this instruction and what it calls. */
static status text_of(const hlo_instr *i, arena *a, rt_span *out) {
  hlo_module *m = hlo_module_create(a, "ref");
  m->dims = i->parent->module->dims;
  m->entry = hlo_computation_create(m, "op");
  hlo_value *operands = ARENA_NEW_N(a, hlo_value, i->n_operands);
  hlo_value *results = ARENA_NEW_N(a, hlo_value, i->n_results);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = hlo_result(hlo_parameter(m->entry, *hlo_shape(i->operands[k])), 0);
  }
  hlo_instr *copy = hlo_instr_clone(m->entry, NULL, i, operands);
  for (uint32_t k = 0; k < i->n_results; k++) {
    results[k] = hlo_result(copy, k);
  }
  hlo_set_roots(m->entry, i->n_results, results);
  hlo_module_clean(m);
  const char *text;
  size_t size;
  TRY(hlo_print(a, m, NULL, &text, &size));
  *out = (rt_span){text, size};
  return NULL;
}

static status emit_op(lower_context *c, const hlo_instr *i) {
  CHECK_THAT(ref_supports(i), STATUS_UNSUPPORTED, "the reference evaluator cannot do %s", hlo_info(i)->name);
  rt_thunk *t = lower_thunk(c, "ref.op", i);
  t->sizes = lower_symbols(c, &t->n_sizes);
  return text_of(i, lower_arena(c), &t->config);
}

static bool is_view(const hlo_instr *i) { return i->op == HLO_RESHAPE || hlo_is_bitcast_view(i); }

/* A thunk computes in memory of its own before it writes, so the result of an instruction with one result may share the
 * buffer of any operand. */
static bool may_share(void *data, const hlo_instr *i, uint32_t operand, uint32_t result) {
  (void)data;
  (void)operand;
  (void)result;
  return i->n_results == 1;
}

/* Every instruction is assumed to take much longer than starting a thread. */
static lower_time time_of(void *data, const hlo_instr *i) {
  (void)data, (void)i;
  return (lower_time){1e5, 1e5};
}

static hlo_access access_of(void *data, const hlo_instr *i) {
  (void)data, (void)i;
  return HLO_READS_ALL_FIRST;
}

static uint32_t count(const hlo_module *m) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      n++;
    }
  }
  return n;
}

static status compile(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                      rt_report *report) {
  lower_backend backend = {.target = "ref",
                           .takes_symbols = true,
                           .emit = emit_op,
                           .may_share = may_share,
                           .access = access_of,
                           .is_view = is_view,
                           .time = time_of,
                           .threads = options ? options->threads : 1,
                           .keep_text = options && options->keep_text,
                           .origins = options ? options->origins : NULL,
                           .out_of_place = options && options->out_of_place};
  hlo_module_clean(m);
  if (options && options->dump) {
    for (uint32_t k = 0; k < m->n_computations; k++) {
      hlo_number(m->computations[k]);
    }
    TRY(options->dump(options->dump_data, "final", m));
  }
  rt_report unused = {0};
  report = report ? report : &unused;
  report->hlo_before = report->hlo_after = count(m);
  return lower_program(m, &backend, a, NULL, out, report);
}

/* --- the backend --- */

static const rt_thunk_kind kinds[] = {
    {.name = "ref.op", .load = load_op, .run = run_op, .access = RT_READS_ALL_FIRST, .bind = bind_op}};

const rt_target ref_target = {.abi = RT_ABI, .name = "ref", .kinds = kinds, .n_kinds = sizeof kinds / sizeof *kinds};
const rt_compiler ref_compiler = {.abi = RT_ABI, .name = "ref", .compile = compile};
const rt_backend ref_backend = {.abi = RT_ABI, .target = &ref_target, .compiler = &ref_compiler};
