/* lower.c - lowers the schedule of a module to a program. */
#include "lower/lower.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/locale.h"
#include "hlo/schedule/buffers.h"
#include "hlo/analysis/cost.h"
#include "hlo/analysis/loop_trips.h"
#include "hlo/ir/bind.h"
#include "hlo/ir/flatten_calls.h"
#include "hlo/schedule/schedule.h"
#include "hlo/text/verify.h"
#include "lower/concurrent_groups.h"
#include "lower/provenance.h"
#include "lower/sizes.h"
#include "runtime/exec/bounds.h"
#include "runtime/program/weight_pool.h"

enum { CONSTANT_ALIGN = 64, LARGE = 4096 };

struct lower_context {
  const lower_backend *backend;
  arena *a;
  hlo_module *module;
  hlo_buffers *buffers;
  rt_program *program;
  uint32_t cap_constants, cap_names;
  /* for each constant of the buffer assignment: its index in the program + 1, or 0 as long as no thunk uses it; first
   * for thunks that need it aligned, then for those that do not */
  uint32_t *constant_number[2];
  provenance provenance;
  size_table sizes;
  const rt_size *symbols; /* the symbols of the inputs; NULL until lower_symbols is called */
  uint32_t n_symbols;
  rt_sequence *sequence; /* the sequence to which thunks are appended */
};

void *lower_data(const lower_context *c) { return c->backend->data; }

arena *lower_arena(const lower_context *c) { return c->a; }

/* --- constants and code --- */

static bool is_aligned(const void *data) { return (uintptr_t)data % CONSTANT_ALIGN == 0; }

typedef struct copying {
  const rt_sharing *sharing;
  void *to;
  const void *from;
  uint64_t bytes;
} copying;

static status copy_part(void *data) {
  const copying *x = data;
  memcpy(x->to, x->from, x->bytes);
  if (x->sharing->drop) {
    x->sharing->drop(x->sharing->owner, x->from, x->bytes);
  }
  return NULL;
}

/* Copies an array before the program is first used: by lower_backend.later, in parts that several threads can copy, or
 * now if the backend has no such function. */
static void copy_later(lower_context *c, void *to, const void *from, uint64_t bytes) {
  const lower_backend *b = c->backend;
  const uint64_t part = (uint64_t)8 << 20;
  const double byte_nanoseconds = 0.2;
  for (uint64_t done = 0; done < bytes; done += part) {
    copying x = {b->sharing, (char *)to + done, (const char *)from + done, bytes - done < part ? bytes - done : part};
    if (b->later) {
      b->later(b->data, byte_nanoseconds * (double)x.bytes, copy_part, arena_memdup(c->a, &x, sizeof x));
    } else {
      (void)copy_part(&x);
    }
  }
}

/* Returns the session's copy of the array in the weight pool, which is made if there is none.  An array that is already
 * in the pool, or that is usable where it is and lives as long as the session, is returned itself.  *name is set to the
 * name of the shared array. */
static const void *shared_array(lower_context *c, const void *data, uint64_t bytes, bool usable, rt_span *name) {
  const rt_sharing *sharing = c->backend->sharing;
  rt_writer w = {.arena = c->a};
  bool fresh;
  *name = rt_weight_pool_name(sharing->weight_pool, data);
  if (name->size) {
    return data;
  }
  rt_put_text(&w, "plain");
  rt_weight_pool_put_name(&w, sharing, data, bytes);
  *name = rt_written(&w);
  const void *there = rt_weight_pool_find(sharing->weight_pool, *name, bytes);
  if (!there && usable && sharing->is_persistent && sharing->is_persistent(sharing->owner, data, NULL)) {
    return data;
  }
  void *copy = there ? NULL : rt_weight_pool_get(sharing->weight_pool, *name, bytes, &fresh);
  if (!there && !copy) {
    guard_fail("out of memory");
  }
  if (copy) {
    copy_later(c, copy, data, bytes);
  }
  return there ? there : copy;
}

/* Adds a constant to the program and returns its index.  `any` says whether it may be at any address. */
static uint32_t add_constant(lower_context *c, const void *data, uint64_t bytes, bool any) {
  rt_program *p = c->program;
  rt_span name = {NULL, 0};
  bool usable = any || is_aligned(data);
  if (c->backend->sharing && bytes >= LARGE) {
    data = shared_array(c, data, bytes, usable, &name);
  } else if (!usable) { /* a span of a model file may be unaligned */
    void *copy = arena_alloc_aligned(c->a, bytes, CONSTANT_ALIGN);
    data = bytes ? memcpy(copy, data, bytes) : copy;
  }
  uint32_t k = p->n_constants;
  *ARENA_PUSH(c->a, p->constants, p->n_constants, c->cap_constants) = (rt_span){data, bytes};
  *ARENA_PUSH(c->a, p->names, k, c->cap_names) = name;
  return p->n_constants - 1;
}

uint32_t lower_constant(lower_context *c, const void *data, uint64_t bytes) {
  return add_constant(c, data, bytes, false);
}

static uint32_t used_constant(lower_context *c, uint32_t index, bool any) {
  const literal *l = hlo_constant_at(c->buffers, index);
  any = any && !is_aligned(l->data);
  uint32_t *number = &c->constant_number[any][index];
  if (!*number) {
    *number = add_constant(c, l->data, (uint64_t)shape_bytes(&l->shape), any) + 1;
  }
  return *number - 1;
}

/* --- sizes --- */

rt_size lower_size(lower_context *c, dim d) { return size_table_get(&c->sizes, d); }

const rt_size *lower_sizes(lower_context *c, uint32_t n, const dim *dims) {
  rt_size *sizes = ARENA_NEW_N(c->a, rt_size, n);
  for (uint32_t k = 0; k < n; k++) {
    sizes[k] = lower_size(c, dims[k]);
  }
  return sizes;
}

const rt_size *lower_symbols(lower_context *c, uint32_t *n) {
  if (!c->symbols) {
    c->symbols = size_table_symbols(&c->sizes, &c->n_symbols);
  }
  *n = c->n_symbols;
  return c->symbols;
}

/* --- buffers --- */

static rt_buffer dense_buffer(lower_context *c, rt_space space, uint32_t index, uint64_t offset, const shape *s) {
  dim strides[SHAPE_MAX_RANK];
  shape_dim_strides(c->module->dims, s, strides);
  return (rt_buffer){.space = (uint8_t)space,
                     .type = s->type,
                     .rank = s->rank,
                     .index = index,
                     .offset = (rt_size)offset,
                     .extents = lower_sizes(c, s->rank, s->dims),
                     .strides = lower_sizes(c, s->rank, strides)};
}

rt_buffer lower_constant_buffer(lower_context *c, uint32_t k, const shape *s) {
  return dense_buffer(c, RT_CONSTANT, k, 0, s);
}

rt_buffer lower_counters_buffer(lower_context *c, dim n) {
  shape s = shape_make(DTYPE_S32, 1, &n);
  rt_buffer b = dense_buffer(c, RT_COUNTERS, 0, 0, &s);
  b.kept = true;
  return b;
}

/* Returns a buffer over a slice.  `any` says whether it may be at any address if it is a constant. */
static rt_buffer slice_buffer(lower_context *c, hlo_buffer slice, const shape *s, bool any) {
  static const rt_space spaces[] = {RT_ARENA, RT_CONSTANT, RT_PARAM, RT_RESULT};
  uint32_t index = slice.space == HLO_IN_CONSTANT ? used_constant(c, slice.index, any) : slice.index;
  return dense_buffer(c, spaces[slice.space], index, slice.offset, s);
}

rt_buffer lower_buffer(const lower_context *c, hlo_value v) {
  return slice_buffer((lower_context *)c, hlo_slice_of(c->buffers, v), hlo_shape(v), false);
}

static rt_buffer operand_buffer(lower_context *c, const hlo_instr *i, uint32_t k) {
  hlo_value v = i->operands[k];
  bool any = c->backend->reads_any_address && c->backend->reads_any_address(c->backend->data, i);
  return slice_buffer(c, hlo_slice_of(c->buffers, v), hlo_shape(v), any);
}

/* --- thunks --- */

/* Returns the index of the instruction's origin (rt_origin), plus 1; 0 if the caller wants no origins.  The search
 * begins at the last origin, since the instruction was usually added last; instructions of bodies may follow it. */
static uint32_t origin_of(const lower_context *c, const hlo_instr *i) {
  const rt_origins *o = c->backend->origins;
  uint32_t k = o ? o->n : 0;
  while (k && o->items[k - 1].instr != i) {
    k--;
  }
  return k;
}

static void add_origin(lower_context *c, const hlo_instr *i) {
  rt_origins *o = c->backend->origins;
  rt_buffer *results = ARENA_NEW_N(c->a, rt_buffer, i->n_results);
  for (uint32_t k = 0; k < i->n_results; k++) {
    results[k] = lower_buffer(c, hlo_result((hlo_instr *)i, k));
  }
  *ARENA_PUSH(c->a, o->items, o->n, o->cap) = (rt_origin){i, results};
}

/* Returns the names of the operations in a fusion, each once, such as "dot add maximum"; "" for other instructions.
 * Constants, broadcasts and reshapes are left out, and "..." stands for what follows the first 12 names. */
static const char *operations_of(arena *a, const hlo_instr *i) {
  enum { MOST = 12 };
  bool seen[HLO_OP_COUNT] = {
      [HLO_PARAMETER] = true, [HLO_CONSTANT] = true, [HLO_BROADCAST] = true, [HLO_RESHAPE] = true};
  const char *text = "";
  int n = 0;
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j && n <= MOST; j = j->next) {
    if (!seen[j->op]) {
      seen[j->op] = true;
      text = arena_printf(a, "%s%s%s", text, *text ? " " : "", n++ == MOST ? "..." : hlo_info(j)->name);
    }
  }
  return text;
}

rt_thunk *lower_bare_thunk(lower_context *c, const char *kind, const hlo_instr *i) {
  rt_thunk *t = ARENA_PUSH(c->a, c->sequence->thunks, c->sequence->n, c->sequence->cap);
  t->kind = kind;
  t->origin = origin_of(c, i);
  provenance_tell(&c->provenance, i, t);
  t->note = operations_of(c->a, i);
  /* a copy may move only a part of the array, so no cost is stated for its thunk; a profile derives the cost from the
   * sizes of the thunk's buffers */
  if (strcmp(kind, "copy") != 0) {
    hlo_cost cost = hlo_cost_of(i);
    t->operations = cost.operations;
    t->bytes = cost.bytes;
  }
  return t;
}

void lower_note(lower_context *c, rt_thunk *t, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  c_vsnprintf(text, sizeof text, format, args);
  va_end(args);
  t->note = *t->note ? arena_printf(c->a, "%s; %s", t->note, text) : arena_strdup(c->a, text);
}

void lower_add_buffer(lower_context *c, rt_thunk *t, rt_buffer b) {
  t->buffers = arena_grow(c->a, t->buffers, t->n_buffers * sizeof b, (t->n_buffers + 1) * sizeof b);
  t->buffers[t->n_buffers++] = b;
}

bool lower_scratch(const lower_context *c, const hlo_instr *i, rt_buffer *out) {
  hlo_buffer scratch = hlo_scratch_of(c->buffers, i);
  if (scratch.bytes) {
    shape bytes = shape_make(DTYPE_U8, 1, &scratch.bytes);
    *out = slice_buffer((lower_context *)c, scratch, &bytes, false);
  }
  return scratch.bytes != 0;
}

rt_thunk *lower_thunk_replacing(lower_context *c, const char *kind, const hlo_instr *i, uint32_t other, rt_buffer b) {
  rt_thunk *t = lower_bare_thunk(c, kind, i);
  t->buffers = ARENA_NEW_N(c->a, rt_buffer, i->n_operands + i->n_results + 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    t->buffers[t->n_buffers++] = k == other ? b : operand_buffer(c, i, k);
  }
  t->n_inputs = t->n_buffers;
  for (uint32_t k = 0; k < i->n_results; k++) {
    t->buffers[t->n_buffers++] = lower_buffer(c, hlo_result((hlo_instr *)i, k));
  }
  t->n_buffers += lower_scratch(c, i, &t->buffers[t->n_buffers]);
  return t;
}

rt_thunk *lower_thunk(lower_context *c, const char *kind, const hlo_instr *i) {
  return lower_thunk_replacing(c, kind, i, UINT32_MAX, (rt_buffer){0});
}

static void copy_slice(lower_context *c, const hlo_instr *i, hlo_value from, hlo_buffer to) {
  if (shape_is_empty(hlo_shape(from)) || hlo_same_slice(hlo_slice_of(c->buffers, from), to)) {
    return;
  }
  rt_thunk *t = lower_bare_thunk(c, "copy", i);
  lower_add_buffer(c, t, lower_buffer(c, from));
  t->n_inputs = 1;
  lower_add_buffer(c, t, slice_buffer(c, to, hlo_shape(from), false));
}

/* --- control flow --- */

static status lower_sequence(lower_context *c, const hlo_computation *comp, rt_sequence *out);

/* Lowers a body of control flow, and copies its roots to the buffers of the instruction's results. */
static status lower_body(lower_context *c, const hlo_instr *i, const hlo_computation *body, rt_sequence *out) {
  TRY(lower_sequence(c, body, out));
  rt_sequence *outer = c->sequence;
  c->sequence = out;
  for (uint32_t k = 0; k < i->n_results; k++) {
    copy_slice(c, i, body->roots[k], hlo_slice_of(c->buffers, hlo_result((hlo_instr *)i, k)));
  }
  c->sequence = outer;
  return NULL;
}

static status lower_while(lower_context *c, const hlo_instr *i) {
  const hlo_computation *condition = hlo_callee(i, 0);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    copy_slice(c, i, i->operands[k], hlo_slice_of(c->buffers, hlo_result((hlo_instr *)i, k)));
  }
  rt_sequence *bodies = ARENA_NEW_N(c->a, rt_sequence, 2);
  TRY(lower_sequence(c, condition, &bodies[0]));
  TRY(lower_body(c, i, hlo_callee(i, 1), &bodies[1]));
  rt_thunk *t = lower_bare_thunk(c, "while", i);
  lower_add_buffer(c, t, lower_buffer(c, condition->roots[0]));
  t->n_inputs = 1;
  t->n_bodies = 2;
  t->bodies = bodies;
  dim trips;
  if (hlo_loop_trips(i, &trips)) {
    t->n_sizes = 1;
    t->sizes = lower_sizes(c, 1, &trips);
  }
  return NULL;
}

static status lower_conditional(lower_context *c, const hlo_instr *i) {
  uint32_t n = hlo_n_callees(i);
  rt_sequence *bodies = ARENA_NEW_N(c->a, rt_sequence, n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(lower_body(c, i, hlo_callee(i, k), &bodies[k]));
  }
  rt_thunk *t = lower_bare_thunk(c, "conditional", i);
  lower_add_buffer(c, t, lower_buffer(c, i->operands[0]));
  t->n_inputs = 1;
  t->n_bodies = n;
  t->bodies = bodies;
  return NULL;
}

static bool is_view(const lower_context *c, const hlo_instr *i) {
  return c->backend->is_view && c->backend->is_view(i);
}

static status lower_check(lower_context *c, const hlo_instr *i) {
  rt_thunk *t = lower_thunk(c, "check", i);
  t->config = rt_bounds_config(c->a, hlo_attr_of(i, HLO_ATTR_NAME)->s, hlo_int(i, HLO_ATTR_FROM_END));
  t->n_sizes = hlo_n_ints(i, HLO_ATTR_LIMITS);
  t->sizes = lower_sizes(c, t->n_sizes, hlo_ints(i, HLO_ATTR_LIMITS));
  return NULL;
}

static status lower_instr(lower_context *c, const hlo_instr *i) {
  if (i->op == HLO_PARAMETER || i->op == HLO_CONSTANT || is_view(c, i)) {
    return NULL;
  }
  if (c->backend->origins) {
    add_origin(c, i);
  }
  switch (i->op) {
    case HLO_WHILE: return lower_while(c, i);
    case HLO_CONDITIONAL: return lower_conditional(c, i);
    case HLO_RUN_SEED: (void)lower_thunk(c, "run-seed", i); return NULL;
    case HLO_CHECK: return lower_check(c, i);
    default: break;
  }
  status s = c->backend->emit(c, i);
  return s ? status_prefix(s, "%s", *i->source ? i->source : hlo_info(i)->name) : NULL;
}

/* Lowers a concurrent group to one thunk that has a body for each member.  *i is the first member, and is set to the
 * last. */
static status lower_group(lower_context *c, const hlo_instr **i) {
  const hlo_instr *first = *i;
  rt_sequence *outer = c->sequence, *bodies = NULL;
  uint32_t n = 0, cap = 0;
  do {
    *i = n ? (*i)->next : first;
    c->sequence = ARENA_PUSH(c->a, bodies, n, cap);
    TRY(lower_instr(c, *i));
  } while (hlo_next_concurrent(*i));
  c->sequence = outer;
  rt_thunk *t = lower_bare_thunk(c, "concurrent", first);
  t->operation = arena_printf(c->a, "%u side by side", n);
  t->n_nodes = 0;
  t->contraction = 0;
  t->note = "";
  t->operations = t->bytes = 0;
  t->n_bodies = n;
  t->bodies = bodies;
  return NULL;
}

static status lower_sequence(lower_context *c, const hlo_computation *comp, rt_sequence *out) {
  rt_sequence *outer = c->sequence;
  c->sequence = out;
  for (const hlo_instr *i = comp->first; i; i = i->next) {
    TRY(hlo_next_concurrent(i) ? lower_group(c, &i) : lower_instr(c, i));
  }
  c->sequence = outer;
  return NULL;
}

/* --- preparing the module --- */

/* Returns the value in whose buffer v is.  It is another value than v if v is a view, or the result of a loop that
 * carries the value without changing it. */
static hlo_value underlying(const lower_backend *b, hlo_value v) {
  for (;;) {
    if (v.def->op == HLO_WHILE && hlo_callee(v.def, 1)->roots[v.index].def == hlo_callee(v.def, 1)->params[v.index]) {
      v = v.def->operands[v.index];
    } else if (v.def->op != HLO_PARAMETER && b->is_view && b->is_view(v.def)) {
      v = v.def->operands[0];
    } else {
      return v;
    }
  }
}

/* Inserts a copy of each carried value that becomes the next value of another one, as in (x, y) = (y, x).  Otherwise
 * one of the copies at the end of the body (lower_body) could read a buffer that another of them has already
 * overwritten. */
static void copy_crossed_roots(const lower_backend *b, hlo_computation *body) {
  for (uint32_t k = 0; k < body->n_roots; k++) {
    if (underlying(b, body->roots[k]).def->op == HLO_PARAMETER && body->roots[k].def != body->params[k]) {
      hlo_instr *copy = hlo_instr_create(body, NULL, HLO_COPY, 1, &body->roots[k], 1);
      copy->shapes[0] = *hlo_shape(body->roots[k]);
      body->roots[k] = hlo_result(copy, 0);
    }
  }
}

static void prepare_loops(const lower_backend *b, hlo_computation *c) {
  for (hlo_instr *i = c->first; i; i = i->next) {
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      prepare_loops(b, hlo_callee(i, k));
    }
    if (i->op == HLO_WHILE) {
      copy_crossed_roots(b, hlo_callee(i, 1));
    }
  }
}

static rt_io *signature(lower_context *c, uint32_t n, const hlo_value *values, const char **names, const char *prefix) {
  rt_io *io = ARENA_NEW_N(c->a, rt_io, n);
  for (uint32_t k = 0; k < n; k++) {
    io[k].name = names && names[k] ? arena_strdup(c->a, names[k]) : arena_printf(c->a, "%s%u", prefix, k);
    io[k].shape = *hlo_shape(values[k]);
    for (int d = 0; d < io[k].shape.rank; d++) {
      io[k].shape.dims[d] = lower_size(c, io[k].shape.dims[d]);
    }
  }
  return io;
}

/* Adds the guards and slots of a program for many sizes. */
static void add_guards_and_slots(lower_context *c, rt_program *p) {
  const hlo_slot *slots = hlo_slots(c->buffers, &p->n_slots);
  p->slots = ARENA_NEW_N(c->a, rt_slot, p->n_slots);
  for (uint32_t k = 0; k < p->n_slots; k++) {
    p->slots[k] = (rt_slot){lower_size(c, slots[k].bytes), slots[k].first, slots[k].last};
  }
  size_table_add_guards(&c->sizes);
}

static void set_carried(lower_context *c, uint32_t k, rt_io *io) {
  const hlo_carried *carried = &c->module->carried[k];
  if (carried->parameter >= 0) {
    hlo_buffer memory = hlo_slice_of(c->buffers, hlo_result(c->module->entry->params[carried->parameter], 0));
    io->carried = (uint32_t)carried->parameter + 1;
    io->in_place = memory.space == HLO_IN_RESULT && memory.index == k;
    io->has_room = carried->axis >= 0;
    io->axis = io->has_room ? (uint8_t)carried->axis : 0;
    io->length = io->has_room ? lower_size(c, carried->length) : 0;
  }
}

static rt_program *new_program(lower_context *c, const hlo_module *m) {
  const hlo_computation *entry = m->entry;
  rt_program *p = ARENA_NEW(c->a, rt_program);
  c->sizes = size_table_make(c->a, m, p);
  hlo_value *params = ARENA_NEW_N(c->a, hlo_value, entry->n_params);
  for (uint32_t k = 0; k < entry->n_params; k++) {
    params[k] = hlo_result(entry->params[k], 0);
  }
  p->target = c->backend->target;
  p->cpu = "";
  p->n_params = entry->n_params;
  p->params = signature(c, p->n_params, params, m->param_names, "input_");
  p->n_results = entry->n_roots;
  p->results = signature(c, p->n_results, entry->roots, m->result_names, "output_");
  for (uint32_t k = 0; m->size_of && k < p->n_results; k++) {
    p->results[k].is_size = m->size_of[k].axis >= 0;
    p->results[k].sized = m->size_of[k].result;
    p->results[k].axis = (uint8_t)(p->results[k].is_size ? m->size_of[k].axis : 0);
  }
  for (uint32_t k = 0; m->carried && k < p->n_results; k++) {
    set_carried(c, k, &p->results[k]);
  }
  p->arena_bytes = hlo_arena_bytes(c->buffers);
  if (!hlo_is_static(m)) {
    add_guards_and_slots(c, p);
  }
  return p;
}

status lower_program(hlo_module *m, const lower_backend *backend, arena *a, size_table *sizes, rt_program **out,
                     rt_report *report) {
  TRY(backend->takes_symbols ? NULL : hlo_check_static(m));
  hlo_flatten_calls(m);
  prepare_loops(backend, m->entry);
  hlo_module_clean(m);
  TRY(hlo_schedule(m));
  lower_concurrent_groups(m, backend);
  hlo_buffer_rules *rules = ARENA_NEW(a, hlo_buffer_rules);
  *rules = (hlo_buffer_rules){.may_share = backend->out_of_place ? NULL : backend->may_share,
                              .access = backend->access,
                              .is_view = backend->is_view,
                              .scratch = backend->scratch,
                              .data = backend->data};
  lower_context c = {.backend = backend, .a = a, .module = m};
  TRY(hlo_assign_buffers(a, m, rules, &c.buffers));
  TRY(hlo_check_overlaps(a, m, rules, c.buffers));
  for (int k = 0; k < 2; k++) {
    c.constant_number[k] = ARENA_NEW_N(a, uint32_t, hlo_n_constants(c.buffers));
  }
  c.program = new_program(&c, m);
  c.provenance = provenance_make(a, c.program);
  TRY(lower_sequence(&c, m->entry, &c.program->body));
  c.sequence = &c.program->body;
  for (uint32_t k = 0; k < m->entry->n_roots; k++) {
    hlo_value root = m->entry->roots[k];
    copy_slice(&c, root.def, root,
               (hlo_buffer){.space = HLO_IN_RESULT, .index = k, .bytes = shape_dim_bytes(m->dims, hlo_shape(root))});
  }
  if (backend->keep_text) {
    report->buffers = hlo_buffers_report(a, m, c.buffers);
    TRY(hlo_check_buffers(a, m, rules, c.buffers));
  }
  TRY(size_table_finish(&c.sizes));
  report->arena_bytes = hlo_arena_bytes(c.buffers);
  report->arena_lower_bound = hlo_arena_lower_bound(c.buffers);
  *out = c.program;
  if (sizes) {
    *sizes = c.sizes;
  }
  return NULL;
}
