/* divide.c - see divide.h. */
#include "lower/kernels/divide.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "hlo/analysis/queries.h"

/* --- costs --- */

static bool sums_open_number(const hlo_instr *reduce) {
  const shape *x = hlo_shape(reduce->operands[0]);
  for (uint32_t k = 0; k < hlo_n_ints(reduce, HLO_ATTR_DIMENSIONS); k++) {
    if (!dim_is_const(x->dims[hlo_ints(reduce, HLO_ATTR_DIMENSIONS)[k]])) {
      return true;
    }
  }
  return false;
}

/* Estimates the nanoseconds that compiling an operation of a kernel takes.  A reduction has loops of its own, and more
 * of them if the number of its terms is open; each operand of a concatenation has a branch. */
static double operation_cost(const hlo_instr *i) {
  const double operation = 1.5e5, math = 1e6, transpose = 5e6, loops = 1.5e6, open_loops = 7e6, branch = 1e6;
  switch (i->op) {
    case HLO_TRANSPOSE: return transpose;
    case HLO_REDUCE: return sums_open_number(i) ? open_loops : loops;
    case HLO_CONCAT: return branch * i->n_operands;
    default: return hlo_info(i)->kind == HLO_ELEMENTWISE && !hlo_is_cheap(i) ? math : operation;
  }
}

double lower_loops_cost(const hlo_instr *i) {
  double cost = 1e6;
  if (i->op != HLO_FUSION) {
    return cost + operation_cost(i);
  }
  for (const hlo_instr *j = hlo_callee(i, 0)->first; j; j = j->next) {
    cost += operation_cost(j);
  }
  return cost;
}

static uint64_t mix_instr(uint64_t hash, const hlo_instr *i) {
  hash = hash_mix(hash_mix(hash, i->op), i->n_operands);
  return i->n_results ? hash_mix(hash_mix(hash, i->shapes[0].type), i->shapes[0].rank) : hash;
}

const char *lower_likeness(arena *a, const hlo_instr *i, const char *writer, uint32_t phase) {
  uint64_t hash = mix_instr(hash_mix(hash_text(writer ? writer : ""), phase), i);
  if (i->op == HLO_FUSION) {
    for (const hlo_instr *j = hlo_callee(i, 0)->first; j; j = j->next) {
      hash = mix_instr(hash, j);
    }
  }
  return arena_printf(a, "%016llx", (unsigned long long)hash);
}

/* --- batches --- */

typedef struct batch {
  double cost;
  const char *sharing; /* lower_part.sharing of the last kernel with shared functions that the batch got; NULL if it has
                          none */
  double work;         /* the cost of the last kernels with this `sharing`, without the shared functions */
} batch;

static bool shares(const lower_part *x) { return x->shared > 0; }

static int more_first(double x, double y) { return (x < y) - (x > y); }

/* Compares two kernels by the order in which lower_divide divides them.  Kernels with shared functions come first,
 * those with the same functions one after the other and the most expensive functions first.  Among kernels with the
 * same functions, and among those without any, the most expensive kernel comes first. */
static int in_order(const void *a, const void *b) {
  const lower_part *x = *(lower_part *const *)a, *y = *(lower_part *const *)b;
  int shared = more_first(x->shared, y->shared), costs = more_first(x->cost, y->cost);
  int kinds = shared || !shares(x) ? shared : strcmp(x->sharing, y->sharing);
  return kinds ? kinds : costs ? costs : (x > y) - (x < y);
}

/* Returns true if the batch has the functions that kernel x shares with others, or if x shares none. */
static bool has_shared(const batch *b, const lower_part *x) {
  return !shares(x) || (b->sharing && strcmp(b->sharing, x->sharing) == 0);
}

static double cost_with(const batch *b, const lower_part *x) {
  return b->cost + x->cost + (has_shared(b, x) ? 0 : x->shared);
}

/* Returns the batch to which kernel x goes.  `last` is the batch of the kernel before it.  x goes to `last`, too, if
 * `last` has x's shared functions and either costs less than `most`, or has kernels with these functions that cost less
 * than the functions themselves, which another batch would need as well.  Otherwise x goes to the batch that is the
 * cheapest with it. */
static batch *choose(const lower_part *x, uint32_t n, batch *batches, batch *last, double most) {
  batch *least = batches;
  if (last && shares(x) && has_shared(last, x) && (last->cost < most || last->work < x->shared)) {
    return last;
  }
  for (uint32_t b = 1; b < n; b++) {
    least = cost_with(&batches[b], x) < cost_with(least, x) ? &batches[b] : least;
  }
  return least;
}

static void add(batch *b, const lower_part *x) {
  b->cost = cost_with(b, x);
  if (shares(x)) {
    b->work = x->cost + (has_shared(b, x) ? b->work : 0);
    b->sharing = x->sharing;
  }
}

void lower_divide(arena *a, uint32_t n, lower_part *parts, uint32_t n_batches, uint32_t threads, double *costs) {
  lower_part **order = ARENA_NEW_N(a, lower_part *, n + 1);
  batch *batches = arena_calloc(a, n_batches, sizeof *batches), *last = NULL;
  double all = 0;
  for (uint32_t k = 0; k < n; k++) {
    order[k] = &parts[k];
    all += parts[k].cost;
  }
  qsort(order, n, sizeof(lower_part *), in_order);
  for (uint32_t k = 0; k < n; k++) {
    last = choose(order[k], n_batches, batches, last, all / threads);
    add(last, order[k]);
    order[k]->batch = (uint32_t)(last - batches);
  }
  for (uint32_t b = 0; b < n_batches; b++) {
    costs[b] = batches[b].cost;
  }
}
