/* run.c - runs a kernel: the threads of a block one after the other, each until it waits for others; see ptx.h. */
#include <string.h>

#include "base/hash.h"
#include "tests/ptx/ptx_internal.h"

typedef enum thread_state { RUNNING, AT_WARP, AT_BARRIER, DONE } thread_state;

/* A function that was called and has not returned. */
typedef struct frame {
  const ptx_function *function;
  uint32_t next; /* the number of the next instruction */
  uint64_t *registers;
  uint8_t *memory;
  struct frame *caller;
} frame;

/* An asynchronous copy that was not waited for: it writes `bytes` bytes from `from`, and zeros behind them up to
 * `size`. */
typedef struct copy {
  uint64_t to, from;
  uint32_t size, bytes;
} copy;

typedef struct thread {
  struct block *block;
  uint32_t number;
  thread_state state;
  const ptx_instr *at; /* the instruction at which it waits */
  bool carry;
  frame *top;
  copy *copies;
  uint32_t n_copies, copies_capacity;
  uint32_t *groups; /* for each group that was committed, how many of `copies` come before the group's end */
  uint32_t n_groups, groups_capacity;
} thread;

typedef struct block {
  const ptx_launch *launch;
  const ptx_function *function;
  arena *arena;
  uint32_t number;
  uint8_t *shared;
  size_t shared_bytes;
  uint64_t begin, end; /* the bounds of the array that was accessed last, so that it need not be searched again */
  thread *threads;
  ptx_warp warp;
} block;

static status fault(const thread *t, const ptx_instr *i, const char *what) {
  return status_error(STATUS_INTERNAL, "%s, thread %u of block %u: line %d of the PTX, %s: %s",
                      t->block->function->name, t->number, t->block->number, i->line, i->text, what);
}

/* --- operands --- */

static uint64_t special(const thread *t, uint64_t which) {
  const block *b = t->block;
  switch ((ptx_special)which) {
    case PTX_TID: return t->number;
    case PTX_NTID: return b->launch->threads;
    case PTX_CTAID: return b->number;
    case PTX_NCTAID: return b->launch->blocks;
    case PTX_LANEID: return t->number % PTX_WARP;
    default: return which == PTX_ONE;
  }
}

static uint64_t value_of(const thread *t, const ptx_operand *o) {
  const frame *f = t->top;
  switch (o->kind) {
    case PTX_REGISTER: return o->negated ? !(f->registers[o->reg] & 1) : f->registers[o->reg];
    case PTX_SPECIAL: return special(t, o->value);
    case PTX_ADDRESS:
      return (o->has_register ? f->registers[o->reg] : 0) + o->value +
             (o->place == PTX_IN_FRAME ? (uint64_t)(uintptr_t)f->memory : 0);
    default: return o->value;
  }
}

static void set(thread *t, const ptx_operand *o, uint64_t value) {
  if (o->kind == PTX_REGISTER) {
    t->top->registers[o->reg] = value;
  }
}

/* Returns item k of a list, or the operand itself. */
static const ptx_operand *item(const ptx_operand *o, uint32_t k) { return o->kind == PTX_LIST ? &o->items[k] : o; }

/* --- memory --- */

/* Finds the array of the module or of the device's memory in which the address is, and notes its bounds in the block.
 * Returns false if there is none. */
static bool find_array(block *b, uint64_t address) {
  const ptx_module *m = b->function->module;
  for (uint32_t k = 0; k < m->n_arrays; k++) {
    if (address >= m->arrays[k].begin && address < m->arrays[k].end) {
      b->begin = m->arrays[k].begin;
      b->end = m->arrays[k].end;
      return true;
    }
  }
  return b->launch->find_array(b->launch->data, address, &b->begin, &b->end);
}

/* Sets *out to the memory of `bytes` bytes at the address.  Fails unless they are aligned and lie in shared memory or,
 * if the launch has find_array, in one array. */
static status reach(thread *t, const ptx_instr *i, ptx_space space, uint64_t address, size_t bytes, uint8_t **out) {
  block *b = t->block;
  if (address % bytes) {
    return fault(t, i, "the address is not aligned");
  }
  if (space == PTX_SHARED) {
    if (address > b->shared_bytes || bytes > b->shared_bytes - address) {
      return fault(t, i, "the address is not in shared memory");
    }
    *out = b->shared + address;
    return NULL;
  }
  bool is_checked = space == PTX_GLOBAL && b->launch->find_array;
  bool is_known = address >= b->begin && address + bytes <= b->end;
  if (is_checked && !is_known && (!find_array(b, address) || address + bytes > b->end)) {
    b->begin = b->end = 0;
    return fault(t, i, "the address is in no array of the device's memory");
  }
  if (address < 4096) {
    return fault(t, i, "the address is not one of memory");
  }
  *out = (uint8_t *)(uintptr_t)address;
  return NULL;
}

static status load(thread *t, const ptx_instr *i) {
  ptx_type type = ptx_type_of(i);
  size_t bytes = (size_t)type.bits / 8;
  uint8_t *from;
  TRY(reach(t, i, i->space, value_of(t, &i->operands[1]), bytes * (size_t)i->vector, &from));
  for (int k = 0; k < i->vector; k++) {
    uint64_t value = 0;
    memcpy(&value, from + (size_t)k * bytes, bytes);
    set(t, item(&i->operands[0], (uint32_t)k),
        type.kind == PTX_SIGNED ? (uint64_t)ptx_to_signed(type.bits, value) : value);
  }
  return NULL;
}

static status store(thread *t, const ptx_instr *i) {
  size_t bytes = (size_t)ptx_type_of(i).bits / 8;
  uint8_t *to;
  TRY(reach(t, i, i->space, value_of(t, &i->operands[0]), bytes * (size_t)i->vector, &to));
  for (int k = 0; k < i->vector; k++) {
    uint64_t value = value_of(t, item(&i->operands[1], (uint32_t)k));
    memcpy(to + (size_t)k * bytes, &value, bytes);
  }
  return NULL;
}

/* Knows only sums of integers of 32 bits.  No two threads run at the same time, so every load and store is atomic. */
static status add_atomically(thread *t, const ptx_instr *i) {
  uint8_t *at;
  uint32_t before;
  if (!ptx_has(i, "add") || ptx_type_of(i).bits != 32 || ptx_type_of(i).kind == PTX_FLOAT) {
    return ptx_unknown(i);
  }
  TRY(reach(t, i, i->space, value_of(t, &i->operands[1]), sizeof before, &at));
  memcpy(&before, at, sizeof before);
  uint32_t after = before + (uint32_t)value_of(t, &i->operands[2]);
  memcpy(at, &after, sizeof after);
  set(t, &i->operands[0], before);
  return NULL;
}

/* --- asynchronous copies --- */

static status arrive(thread *t, const ptx_instr *i, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    const copy *c = &t->copies[k];
    uint8_t *to, *from;
    TRY(reach(t, i, PTX_SHARED, c->to, c->size, &to));
    memset(to, 0, c->size);
    if (c->bytes) {
      TRY(reach(t, i, PTX_GLOBAL, c->from, c->size, &from));
      memcpy(to, from, c->bytes);
    }
  }
  if (n) {
    memmove(t->copies, t->copies + n, (t->n_copies - n) * sizeof *t->copies);
    t->n_copies -= n;
  }
  return NULL;
}

/* Makes the copies of all committed groups except the last `left`. */
static status await_groups(thread *t, const ptx_instr *i, uint64_t left) {
  if (t->n_groups <= left) {
    return NULL;
  }
  uint32_t n = t->n_groups - (uint32_t)left, arrived = t->groups[n - 1];
  TRY(arrive(t, i, arrived));
  memmove(t->groups, t->groups + n, (t->n_groups - n) * sizeof *t->groups);
  t->n_groups -= n;
  for (uint32_t k = 0; k < t->n_groups; k++) {
    t->groups[k] -= arrived;
  }
  return NULL;
}

static status copy_async(thread *t, const ptx_instr *i) {
  arena *a = t->block->arena;
  if (ptx_has(i, "commit_group")) {
    *ARENA_PUSH(a, t->groups, t->n_groups, t->groups_capacity) = t->n_copies;
    return NULL;
  }
  if (ptx_has(i, "wait_group")) {
    return await_groups(t, i, value_of(t, &i->operands[0]));
  }
  if (ptx_has(i, "wait_all")) {
    t->n_groups = 0;
    return arrive(t, i, t->n_copies);
  }
  copy c = {value_of(t, &i->operands[0]), value_of(t, &i->operands[1]), (uint32_t)value_of(t, &i->operands[2]), 0};
  c.bytes = i->n > 3 ? (uint32_t)value_of(t, &i->operands[3]) : c.size;
  if (!ptx_has(i, "async") || (c.size != 4 && c.size != 8 && c.size != 16) || c.bytes > c.size) {
    return fault(t, i, "this copy is unknown");
  }
  *ARENA_PUSH(a, t->copies, t->n_copies, t->copies_capacity) = c;
  return NULL;
}

/* --- control --- */

/* Registers begin with arbitrary contents, which differ from thread to thread. */
static frame *new_frame(arena *a, const ptx_function *f, uint64_t seed) {
  frame *new = ARENA_NEW(a, frame);
  *new = (frame){.function = f, .registers = ARENA_NEW_N(a, uint64_t, f->n_registers + 1)};
  new->memory = arena_alloc_aligned(a, f->frame_bytes + 1, 128);
  memset(new->memory, 0xa5, f->frame_bytes);
  for (uint32_t k = 0; k < f->n_registers; k++) {
    new->registers[k] = hash_mix(seed, k);
  }
  return new;
}

/* The operands are the list of results, if the function returns something; the function; and the list of arguments, if
 * it takes some.  Results and arguments are in the memory of the caller's frame. */
static status call(thread *t, const ptx_instr *i) {
  const ptx_function *f = i->callee;
  const ptx_operand *arguments = &i->operands[i->n - 1];
  bool has_arguments = arguments->kind == PTX_LIST && i->n > 1 && i->operands[i->n - 2].kind == PTX_CODE;
  if ((has_arguments ? arguments->n : 0) != f->n_parameters || !f->n) {
    return fault(t, i, "the arguments are not those of the function");
  }
  frame *new = new_frame(t->block->arena, f, t->number);
  for (uint32_t k = 0; k < f->n_parameters; k++) {
    memcpy(new->memory + f->parameters[k], (const void *)(uintptr_t)value_of(t, &arguments->items[k]),
           f->parameter_bytes[k]);
  }
  new->caller = t->top;
  t->top = new;
  return NULL;
}

static void leave(thread *t) {
  frame *done = t->top, *caller = done->caller;
  t->top = caller;
  if (!caller) {
    t->state = DONE;
    return;
  }
  const ptx_instr *i = &caller->function->code[caller->next - 1];
  if (done->function->returned_bytes) {
    memcpy((void *)(uintptr_t)value_of(t, &i->operands[0].items[0]), done->memory + done->function->returned,
           done->function->returned_bytes);
  }
}

/* Packs the items of a list, divides a number into them, or moves one value. */
static void move(thread *t, const ptx_instr *i) {
  const ptx_operand *to = &i->operands[0], *from = &i->operands[1];
  uint64_t value = value_of(t, from);
  if (from->kind == PTX_LIST) {
    int bits = ptx_type_of(i).bits / (int)from->n;
    value = 0;
    for (uint32_t k = 0; k < from->n; k++) {
      value |= (value_of(t, &from->items[k]) & ((1ull << bits) - 1)) << ((int)k * bits);
    }
  }
  if (to->kind == PTX_LIST) {
    int bits = ptx_type_of(i).bits / (int)to->n;
    for (uint32_t k = 0; k < to->n; k++) {
      set(t, &to->items[k], value >> ((int)k * bits) & ((1ull << bits) - 1));
    }
    return;
  }
  set(t, to, ptx_type_of(i).bits == 1 ? value & 1 : value);
}

static status compute(thread *t, const ptx_instr *i) {
  uint64_t operands[PTX_MOST_OPERANDS] = {0}, result = 0;
  for (int k = 1; k < i->n; k++) {
    operands[k - 1] = value_of(t, &i->operands[k]);
  }
  status failed = ptx_scalar(i, operands, &result);
  set(t, &i->operands[0], result);
  return failed;
}

/* Adds or subtracts integers and sets the carry, which is a borrow for differences, or also uses it. */
static void add_with_carry(thread *t, const ptx_instr *i) {
  bool minus = i->op == PTX_sub || i->op == PTX_subc, takes = i->op == PTX_addc || i->op == PTX_subc;
  int bits = ptx_type_of(i).bits;
  uint64_t mask = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
  uint64_t x = value_of(t, &i->operands[1]) & mask, y = value_of(t, &i->operands[2]) & mask;
  uint64_t in = takes && t->carry;
  unsigned __int128 r = minus ? (unsigned __int128)x - y - in : (unsigned __int128)x + y + in;
  if (ptx_has(i, "cc")) {
    t->carry = (uint64_t)(r >> bits) & 1;
  }
  set(t, &i->operands[0], (uint64_t)r & mask);
}

static void wait_at(thread *t, const ptx_instr *i, thread_state state) {
  t->state = state;
  t->at = i;
}

static status step(thread *t, const ptx_instr *i) {
  switch (i->op) {
    case PTX_ld: return load(t, i);
    case PTX_st: return store(t, i);
    case PTX_atom: return add_atomically(t, i);
    case PTX_membar: return NULL;
    case PTX_mov: move(t, i); return NULL;
    case PTX_cvta: set(t, &i->operands[0], value_of(t, &i->operands[1])); return NULL;
    case PTX_cp: return copy_async(t, i);
    case PTX_bra: t->top->next = (uint32_t)i->operands[0].value; return NULL;
    case PTX_call: return call(t, i);
    case PTX_exit:
    case PTX_ret: leave(t); return NULL;
    case PTX_bar: wait_at(t, i, ptx_has(i, "warp") ? AT_WARP : AT_BARRIER); return NULL;
    case PTX_shfl:
    case PTX_ldmatrix:
    case PTX_mma: wait_at(t, i, AT_WARP); return NULL;
    case PTX_addc:
    case PTX_subc: add_with_carry(t, i); return NULL;
    default:
      if ((i->op == PTX_add || i->op == PTX_sub) && ptx_has(i, "cc")) {
        add_with_carry(t, i);
        return NULL;
      }
      return compute(t, i);
  }
}

static status run_thread(thread *t) {
  while (t->state == RUNNING) {
    frame *f = t->top;
    if (f->next >= f->function->n) {
      leave(t);
      continue;
    }
    const ptx_instr *i = &f->function->code[f->next++];
    if (i->guard < 0 || (f->registers[i->guard] & 1) != i->guard_negated) {
      TRY(step(t, i));
    }
  }
  return NULL;
}

/* --- warps --- */

/* Evaluates the instruction's operands for a lane into w->operands, where each item of a list counts as an operand.
 * Returns their number. */
static int gather(const thread *t, const ptx_instr *i, uint32_t lane, ptx_warp *w) {
  int n = 0;
  for (int k = 1; k < i->n; k++) {
    const ptx_operand *o = &i->operands[k];
    for (uint32_t j = 0; j < (o->kind == PTX_LIST ? o->n : 1) && n < 32; j++) {
      w->operands[n++][lane] = value_of(t, item(o, j));
    }
  }
  return n;
}

/* Runs the instruction at which the first waiting thread of the warp is.  Fails unless all threads of the warp, or
 * those that the operand of a shuffle names, wait at the same instruction. */
static status run_collective(block *b, uint32_t first, uint32_t end) {
  ptx_warp *w = &b->warp;
  const thread *leader = NULL;
  w->present = 0;
  w->shared = b->shared;
  w->shared_bytes = b->shared_bytes;
  for (uint32_t k = first; k < end; k++) {
    leader = !leader && b->threads[k].state == AT_WARP ? &b->threads[k] : leader;
  }
  const ptx_instr *i = leader->at;
  int n = 0;
  for (uint32_t k = first; k < end; k++) {
    thread *t = &b->threads[k];
    if (t->state == AT_WARP && t->at == i) {
      w->present |= 1u << (k - first);
      n = gather(t, i, k - first, w);
    }
  }
  uint32_t named = i->op == PTX_shfl ? (uint32_t)w->operands[n - 1][leader->number % PTX_WARP] : UINT32_MAX;
  uint32_t there = end - first == PTX_WARP ? UINT32_MAX : (1u << (end - first)) - 1;
  if ((named & there) != w->present || (i->op != PTX_shfl && i->op != PTX_bar && there != UINT32_MAX)) {
    return fault(leader, i, "not all threads of the warp are there");
  }
  TRY(ptx_collective(i, w));
  for (uint32_t k = first; k < end; k++) {
    thread *t = &b->threads[k];
    for (uint32_t j = 0; i->op != PTX_bar && j < (i->operands[0].kind == PTX_LIST ? i->operands[0].n : 1); j++) {
      set(t, item(&i->operands[0], j), w->results[j][k - first]);
    }
    t->state = RUNNING;
  }
  return NULL;
}

/* Runs the threads of a warp until each has ended or waits at a barrier of the block. */
static status run_warp(block *b, uint32_t first, uint32_t end) {
  for (;;) {
    bool waits = false;
    for (uint32_t k = end; k-- > first;) { /* backwards: the order of their numbers might hide a race */
      TRY(run_thread(&b->threads[k]));
    }
    for (uint32_t k = first; k < end; k++) {
      waits = waits || b->threads[k].state == AT_WARP;
    }
    if (!waits) {
      return NULL;
    }
    TRY(run_collective(b, first, end));
  }
}

/* --- blocks --- */

static void begin_thread(block *b, uint32_t number) {
  const ptx_function *f = b->function;
  b->threads[number] = (thread){.block = b, .number = number};
  frame *top = b->threads[number].top = new_frame(b->arena, f, ((uint64_t)b->number << 32) + number);
  for (uint32_t k = 0; k < f->n_parameters; k++) {
    memcpy(top->memory + f->parameters[k], b->launch->parameters[k], f->parameter_bytes[k]);
  }
}

/* Lets the threads go on that wait at a barrier.  Sets *done if all have ended. */
static status pass_barrier(block *b, bool *done) {
  const thread *waiting = NULL;
  uint32_t n = 0, ended = 0;
  for (uint32_t k = 0; k < b->launch->threads; k++) {
    thread *t = &b->threads[k];
    if (t->state == DONE) {
      ended++;
    } else if (waiting && t->at != waiting->at) {
      return fault(t, t->at, "other threads of the block wait at another barrier");
    } else {
      waiting = t;
      n++;
    }
  }
  if (n && ended) {
    return fault(waiting, waiting->at, "threads of the block have ended that should wait at the barrier");
  }
  for (uint32_t k = 0; k < b->launch->threads; k++) {
    b->threads[k].state = n ? RUNNING : DONE;
  }
  *done = n == 0;
  return NULL;
}

static status run_block(block *b) {
  uint32_t threads = b->launch->threads;
  for (size_t k = 0; k < b->shared_bytes; k++) {
    b->shared[k] = (uint8_t)hash_mix(k, b->number);
  }
  for (uint32_t k = 0; k < threads; k++) {
    begin_thread(b, k);
  }
  for (bool done = false; !done;) {
    for (uint32_t first = 0; first < threads; first += PTX_WARP) {
      TRY(run_warp(b, first, first + PTX_WARP < threads ? first + PTX_WARP : threads));
    }
    TRY(pass_barrier(b, &done));
  }
  return NULL;
}

status ptx_run(const ptx_function *f, const ptx_launch *launch) {
  size_t shared_bytes = f->module->shared_bytes + launch->shared_bytes;
  status failed = NULL;
  for (uint32_t k = 0; !failed && k < launch->blocks; k++) {
    arena *a = arena_create(NULL);
    block *b = ARENA_NEW(a, block);
    *b = (block){.launch = launch, .function = f, .arena = a, .number = k, .shared_bytes = shared_bytes};
    b->shared = arena_alloc_aligned(a, shared_bytes + 1, 128);
    b->threads = ARENA_NEW_N(a, thread, launch->threads);
    failed = run_block(b);
    arena_destroy(a);
  }
  return failed;
}
