/* row_fusion.c - row-wise fusions: reductions over the same rows, and the elementwise operations before,
 * between and after them, become one kernel that computes a whole row while it is in the cache.  Softmax and
 * normalisations are such computations, however they are expressed.
 *
 * Order: best after simplify, transpose_sinking and epilogue; before reduce_fusion, which handles the remaining
 * reductions.  Keeps: results (sums are in the order of a row-wise kernel); an expensive value is computed once if the
 * kernel can keep it.  Breaks: the assumption that every instruction is outside of a fusion.  A fusion has kind input,
 * and hlo_is_row_wise returns true for its body.
 *
 * A group, whose members are the instructions that will become the fusion, grows from one reduction: first downwards to
 * instructions that read results of members, then upwards to the elementwise operations and reductions that members
 * read.  An instruction that depends on a member and is not a member itself must not feed a member, since it would have
 * to run in the middle of the kernel.  Such instructions are moved after the fusion. */
#include <stdlib.h>

#include "base/dim/guard.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/analysis/row_space.h"

enum { MAX_OUTPUTS = 8, CACHED = 1 << 17, FEW_ROWS = 8 };

/* How an instruction is related to the group: OUTSIDE of it, a MEMBER, or BEHIND it, which means that it depends on a
 * member but is not one. */
typedef enum mark { OUTSIDE, MEMBER, BEHIND } mark;

/* The group that grows, and its computation. */
typedef struct growing {
  hlo_computation *c;
  pass_context *context;
  hlo_fuser f;
  hlo_instr **instrs; /* for each id: the instruction */
  uint8_t *marks;     /* for each id: the instruction's mark */
  hlo_row_space space;
  uint32_t n, n_operands;
  uint32_t first, last;           /* the lowest and the highest id of a member */
  uint32_t lowest;                /* the lowest id of all instructions that were members at some time */
  uint32_t ids[FUSE_MAX_MEMBERS]; /* the ids of the members, in no order */
} growing;

static mark mark_of(const growing *g, const hlo_instr *i) { return (mark)g->marks[i->id]; }

/* --- free instructions between members --- */

/* Follows broadcasts back from v, and returns the value before them. */
static hlo_value through_free(hlo_value v) {
  while (hlo_is_free(v.def) && v.def->n_operands) {
    v = v.def->operands[0];
  }
  return v;
}

/* Returns BEHIND if an operand of i is marked BEHIND, otherwise MEMBER if one is marked MEMBER, otherwise OUTSIDE. */
static mark mark_of_operands(const growing *g, const hlo_instr *i) {
  mark m = OUTSIDE;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    mark one = mark_of(g, through_free(i->operands[k]).def);
    m = one > m ? one : m;
  }
  return m;
}

/* --- which instructions can be members --- */

static bool is_plain_array(const growing *g, const shape *s) {
  return s->kind == SHAPE_ARRAY && s->type != DTYPE_STR && shape_is_exact(g->space.table, s);
}

/* Returns true if x and y have equally many elements for all sizes. */
static bool same_elements(const growing *g, const shape *x, const shape *y) {
  dim_table *t = g->space.table;
  return shape_dim_product(t, x, 0, x->rank) == shape_dim_product(t, y, 0, y->rank);
}

/* Returns true if member i may read operand v.  If v comes from another member, i must read the same element of it or,
 * by a broadcast, the value of its row; a reduction reads the row itself. */
static bool reads_well(const growing *g, const hlo_instr *i, hlo_value v) {
  if (mark_of(g, through_free(v).def) != MEMBER) {
    return true;
  }
  if (hlo_is_free(v.def)) {
    return v.def->op == HLO_BROADCAST && !hlo_is_free(v.def->operands[0].def) &&
           hlo_broadcasts_rows(&g->space, v.def) && hlo_is_full(&g->space, &i->shapes[0]);
  }
  return i->op == HLO_REDUCE || same_elements(g, hlo_shape(v), &i->shapes[0]);
}

static bool can_be_member(const growing *g, const hlo_instr *i) {
  const hlo_target *t = g->context->target;
  const hlo_row_space *s = &g->space;
  if (i->n_results != 1 || !is_plain_array(g, &i->shapes[0]) || hlo_is_free(i) || i->op == HLO_CONSTANT ||
      g->n == FUSE_MAX_MEMBERS || g->n_operands + i->n_operands > FUSE_MAX_OPERANDS) {
    return false;
  }
  bool fits = i->op == HLO_REDUCE
                  ? hlo_reduces_rows(s, i)
                  : hlo_is_position_wise(i) && (hlo_is_full(s, &i->shapes[0]) || hlo_is_kept(s, &i->shapes[0]));
  for (uint32_t k = 0; fits && k < i->n_operands; k++) {
    fits = is_plain_array(g, hlo_shape(i->operands[k])) && reads_well(g, i, i->operands[k]);
  }
  return fits && t->takes_fused(t->data, HLO_FUSION_INPUT, i);
}

static void add(growing *g, const hlo_instr *i) {
  g->marks[i->id] = MEMBER;
  g->first = g->n == 0 || i->id < g->first ? i->id : g->first;
  g->lowest = g->n == 0 || i->id < g->lowest ? i->id : g->lowest;
  g->last = g->n == 0 || i->id > g->last ? i->id : g->last;
  g->ids[g->n++] = i->id;
  g->n_operands += i->n_operands;
}

/* --- growing a fusion --- */

/* Marks the instructions that depend on members but are not members.  Returns false if a member depends on such an
 * instruction. */
static bool mark_behind(growing *g) {
  for (uint32_t id = g->lowest; id < g->c->n_ids; id++) {
    const hlo_instr *i = g->instrs[id];
    if (hlo_is_free(i)) {
      continue;
    }
    mark m = mark_of_operands(g, i);
    if (mark_of(g, i) == MEMBER) {
      if (m == BEHIND) {
        return false;
      }
    } else {
      g->marks[id] = m == OUTSIDE ? OUTSIDE : BEHIND;
    }
  }
  return true;
}

static void grow_down(growing *g) {
  for (uint32_t id = g->first + 1; id < g->c->n_ids; id++) {
    const hlo_instr *i = g->instrs[id];
    mark m = hlo_is_free(i) ? OUTSIDE : mark_of_operands(g, i);
    if (m == MEMBER && can_be_member(g, i)) {
      add(g, i);
    } else if (m != OUTSIDE) {
      g->marks[id] = BEHIND;
    }
  }
}

/* Returns true if i is a root, or if an instruction that is not a member uses it. */
static bool escapes(const growing *g, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    const hlo_instr *u = i->uses[k].user;
    if (hlo_is_free(u) ? escapes(g, u) : mark_of(g, u) != MEMBER) {
      return true;
    }
  }
  return g->f.roots[i->id] > 0;
}

static uint32_t count_outputs(const growing *g) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < g->n; k++) {
    n += escapes(g, g->instrs[g->ids[k]]);
  }
  return n;
}

/* Adds the operand v of the member `reader` to the members, unless another instruction would then have to run
 * in the middle of the kernel, or the kernel would have too many outputs. */
static void take_operand(growing *g, const hlo_instr *reader, hlo_value v) {
  hlo_value x = through_free(v);
  hlo_instr *i = x.def;
  bool spread = hlo_is_free(v.def);
  if (mark_of(g, i) != OUTSIDE || i->op == HLO_PARAMETER || i->op == HLO_CONSTANT || !can_be_member(g, i)) {
    return;
  }
  growing before = *g;
  add(g, i);
  bool fine = reads_well(g, reader, v) && !(spread && i->op != HLO_REDUCE && !hlo_is_kept(&g->space, &i->shapes[0])) &&
              (!escapes(g, i) || (count_outputs(g) <= MAX_OUTPUTS && mark_behind(g)));
  if (!fine) {
    before.lowest = g->lowest;
    g->marks[i->id] = OUTSIDE;
    *g = before;
    (void)mark_behind(g);
  }
}

static void grow_up(growing *g) {
  for (uint32_t k = 0; k < g->n; k++) {
    const hlo_instr *i = g->instrs[g->ids[k]];
    for (uint32_t j = 0; j < i->n_operands; j++) {
      take_operand(g, i, i->operands[j]);
    }
  }
}

/* --- whether a kernel is worth it --- */

/* Returns true if some member combines each element of a row with a value that was computed from the whole row. */
static bool spreads(const growing *g) {
  for (uint32_t k = 0; k < g->n; k++) {
    const hlo_instr *i = g->instrs[g->ids[k]];
    for (uint32_t j = 0; j < i->n_operands; j++) {
      hlo_value v = i->operands[j];
      if (hlo_is_free(v.def) && mark_of(g, through_free(v).def) == MEMBER) {
        return true;
      }
    }
  }
  return false;
}

/* Returns true if there are enough rows for the threads, or if the array that is reduced is small.  Symbolic sizes
 * count as their hints; without hints the result is true.  A kernel is divided by rows only, so a few long rows are
 * better computed in other ways. */
static bool keeps_threads_busy(const hlo_row_space *s) {
  int64_t rows, elements;
  if (!dim_hint(s->table, s->rows, &rows) || !dim_hint(s->table, s->elements, &elements)) {
    return true;
  }
  bool columns = !s->gone[s->rank - 1];
  int64_t parts = columns ? rows / 16 : rows;
  return parts >= FEW_ROWS || elements <= CACHED;
}

/* --- making the fusion --- */

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Moves the instructions that depend on members after the last member, together with broadcasts of such instructions
 * and of members. */
static void move_behind(growing *g) {
  hlo_instr *after = g->instrs[g->last]->next; /* NULL means the end */
  for (uint32_t id = g->first; id < g->last; id++) {
    hlo_instr *i = g->instrs[id];
    bool behind = hlo_is_free(i) ? mark_of(g, through_free(hlo_result(i, 0)).def) != OUTSIDE : mark_of(g, i) == BEHIND;
    if (behind) {
      hlo_move_before(i, after);
    }
  }
}

static void fuse(growing *g) {
  hlo_instr *members[FUSE_MAX_MEMBERS];
  move_behind(g);
  qsort(g->ids, g->n, sizeof *g->ids, by_number);
  for (uint32_t k = 0; k < g->n; k++) {
    members[k] = g->instrs[g->ids[k]];
  }
  hlo_fuse(&g->f, HLO_FUSION_INPUT, g->n, members);
  hlo_pass_note(g->context, "fusions", 1);
  hlo_pass_note(g->context, "instructions in them", g->n);
}

/* Numbers the instructions anew, so that ids equal positions in the computation again, and updates g->instrs. */
static void renumber(growing *g) {
  hlo_fuser_renumber(&g->f);
  for (hlo_instr *i = g->c->first; i; i = i->next) {
    g->instrs[i->id] = i;
  }
}

/* Makes a fusion around the reduction, and removes the reduction.  Returns false if no fusion was made. */
static bool fuse_from(growing *g, hlo_instr *reduce) {
  if (!hlo_row_space_of(reduce, &g->space) || !keeps_threads_busy(&g->space)) {
    return false;
  }
  g->n = g->n_operands = 0;
  for (uint32_t id = 0; id < g->c->n_ids; id++) {
    g->marks[id] = OUTSIDE;
  }
  if (!can_be_member(g, reduce)) {
    return false;
  }
  add(g, reduce);
  grow_down(g);
  if (!spreads(g) || count_outputs(g) > MAX_OUTPUTS) {
    return false;
  }
  grow_up(g);
  if (!mark_behind(g)) {
    return false;
  }
  fuse(g);
  return true;
}

static status fuse_rows(hlo_computation *c, pass_context *context, bool *changed) {
  arena *scratch = context->scratch;
  growing g = {.c = c, .context = context, .f = hlo_fuser_make(c, scratch)};
  uint32_t n = c->n_ids, n_reduces = 0;
  g.instrs = ARENA_NEW_N(scratch, hlo_instr *, 2 * (size_t)n + 1);
  g.marks = ARENA_NEW_N(scratch, uint8_t, 2 * (size_t)n + 1);
  hlo_instr **reduces = ARENA_NEW_N(scratch, hlo_instr *, n + 1);
  HLO_FOR_EACH(i, c) {
    g.instrs[i->id] = i;
    if (i->op == HLO_REDUCE) {
      reduces[n_reduces++] = i;
    }
  }
  for (uint32_t k = 0; k < n_reduces; k++) {
    TRY(budget_check(arena_budget(scratch)));
    if (reduces[k]->parent && fuse_from(&g, reduces[k])) {
      renumber(&g);
      *changed = true;
    }
  }
  return NULL;
}

status pass_row_fusion(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target && c->target->takes_fused; k++) {
    TRY(fuse_rows(walked[k], c, changed));
  }
  return NULL;
}
