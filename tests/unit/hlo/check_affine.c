/* check_affine.c - tests which arrays of integers are recognised as affine, and how gathers and scatters at such
 * indices are rewritten: random expressions and random accesses are compared with the reference evaluator. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/analysis/affine.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/suite.h"

enum { SEEDS = 4000, MAX_DIMS = 3 };

static arena *memory;
static hlo_module *module;
static uint64_t state;

static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % n;
}

static int64_t between(int64_t low, int64_t high) { return low + below((uint32_t)(high - low + 1)); }

static hlo_builder begin(uint64_t seed) {
  state = seed * 2654435761u + 12345;
  memory = arena_create(NULL);
  module = hlo_module_create(memory, "random");
  module->entry = hlo_computation_create(module, "main");
  return hlo_builder_make(module->entry);
}

static const char *text_of(const hlo_module *m) {
  const char *text = "";
  status_free(hlo_print(memory, m, NULL, &text, NULL));
  return text;
}

static void stop_if(status s) { ck_assert_msg(!s, "%s\n%s", s ? status_message(s) : "", text_of(module)); }

/* --- integers --- */

static hlo_value number(hlo_builder *b, const shape *s, int64_t n) {
  hlo_value v = hlo_scalar_int(b, (dtype)s->type, n);
  return s->rank ? hlo_broadcast(b, v, *s, NULL) : v;
}

/* Makes a constant whose elements are evenly spaced, except for some of them. */
static hlo_value random_constant(hlo_builder *b, const shape *s) {
  void *data;
  literal l = literal_new(memory, *s, &data);
  int64_t start = between(-5, 5), step = between(-2, 2), n = shape_elements(s);
  for (int64_t k = 0; k < n; k++) {
    int64_t v = start + step * k + (below(20) == 0);
    dtype_convert(DTYPE_S64, &v, (dtype)s->type, (char *)data + k * (int64_t)dtype_bytes((dtype)s->type), 1, false,
                  DTYPE_ROUND_NEAREST);
  }
  return hlo_constant(b, l);
}

static hlo_value random_integers(hlo_builder *b, shape s, int depth);

/* Makes a broadcast of an array with fewer dimensions, or with some dimensions of one element. */
static hlo_value random_broadcast(hlo_builder *b, shape s, int depth) {
  shape x = {.kind = SHAPE_ARRAY, .type = s.type};
  int64_t to[SHAPE_MAX_RANK];
  for (int d = 0; d < s.rank; d++) {
    if (below(3)) {
      to[x.rank] = d;
      x.dims[x.rank++] = below(4) ? s.dims[d] : 1;
    }
  }
  return hlo_broadcast(b, random_integers(b, x, depth), s, to);
}

static hlo_value random_reshape(hlo_builder *b, shape s, int depth) {
  shape x = {.kind = SHAPE_ARRAY, .type = s.type};
  for (int d = 0; d < s.rank; d++) {
    if (below(3) == 0 && x.rank < MAX_DIMS + 1) {
      x.dims[x.rank++] = 1;
    }
    if (s.dims[d] != 1) {
      x.dims[x.rank++] = s.dims[d];
    }
  }
  return hlo_reshape(b, random_integers(b, x, depth), s.rank, s.dims);
}

static hlo_value random_transpose(hlo_builder *b, shape s, int depth) {
  int64_t p[SHAPE_MAX_RANK];
  shape x = s;
  for (int d = 0; d < s.rank; d++) {
    int at = (int)below((uint32_t)d + 1);
    p[d] = p[at];
    p[at] = d;
  }
  for (int d = 0; d < s.rank; d++) {
    x.dims[p[d]] = s.dims[d];
  }
  return hlo_transpose(b, random_integers(b, x, depth), p);
}

static hlo_value random_reverse(hlo_builder *b, shape s, int depth) {
  int64_t d = below(s.rank);
  return hlo_reverse(b, random_integers(b, s, depth), 1, &d);
}

static hlo_value random_slice(hlo_builder *b, shape s, int depth) {
  dim starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK];
  int64_t strides[SHAPE_MAX_RANK];
  shape x = s;
  for (int d = 0; d < s.rank; d++) {
    starts[d] = below(3);
    strides[d] = 1 + below(2);
    limits[d] = starts[d] + (s.dims[d] - 1) * strides[d] + 1;
    x.dims[d] = limits[d] + below(2);
  }
  return hlo_slice(b, random_integers(b, x, depth), starts, limits, strides);
}

static hlo_value random_concat(hlo_builder *b, shape s, int depth) {
  int64_t d = below(s.rank);
  shape x = s, y = s;
  x.dims[d] = 1 + below((uint32_t)s.dims[d]);
  y.dims[d] = s.dims[d] - x.dims[d];
  hlo_value parts[] = {random_integers(b, x, depth), y.dims[d] ? random_integers(b, y, depth) : (hlo_value){0}};
  return hlo_concatenate(b, y.dims[d] ? 2 : 1, parts, d);
}

static hlo_value random_select(hlo_builder *b, shape s, int depth) {
  hlo_value x = random_integers(b, s, depth);
  hlo_value y = below(2) ? number(b, &s, between(-4, 4)) : random_integers(b, s, depth);
  hlo_value p = hlo_compare(b, (hlo_comparison)below(6), x, y);
  hlo_value first = below(2) ? x : hlo_binary(b, HLO_ADD, x, number(b, &s, 5));
  return hlo_select(b, p, first, random_integers(b, s, depth));
}

static hlo_value random_convert(hlo_builder *b, shape s, int depth) {
  static const dtype types[] = {DTYPE_S64, DTYPE_S32, DTYPE_S8, DTYPE_U8};
  return hlo_convert_as(b, random_integers(b, shape_with_type(s, types[below(4)]), depth), (dtype)s.type, false,
                        DTYPE_ROUND_NEAREST);
}

static hlo_value random_arithmetic(hlo_builder *b, shape s, int depth) {
  static const hlo_op ops[] = {HLO_ADD, HLO_SUB, HLO_MUL};
  static const int64_t factors[] = {-3, -1, 0, 1, 2, 40, INT64_MAX};
  hlo_value x = random_integers(b, s, depth);
  hlo_op op = ops[below(3)];
  hlo_value y = op == HLO_MUL && below(8) ? number(b, &s, factors[below(7)]) : random_integers(b, s, depth);
  return below(2) ? hlo_binary(b, op, x, y) : hlo_binary(b, op, y, x);
}

static hlo_value random_integers(hlo_builder *b, shape s, int depth) {
  if (depth == 0 || s.rank == 0) {
    return s.rank && below(3) ? hlo_iota(b, s, below(s.rank))
           : below(2)         ? random_constant(b, &s)
                              : number(b, &s, between(-4, 4));
  }
  static hlo_value (*const makers[])(hlo_builder *, shape, int) = {random_broadcast, random_reshape, random_transpose,
                                                                   random_reverse,   random_slice,   random_concat,
                                                                   random_select,    random_convert, random_arithmetic};
  return makers[below(9)](b, s, depth - 1);
}

static hlo_region random_region(const shape *s) {
  hlo_region r = hlo_whole_region(s);
  for (int d = 0; d < s->rank; d++) {
    if (below(2)) {
      r.stride[d] = below(2) ? 1 : -1;
      r.count[d] = 1 + below((uint32_t)s->dims[d]);
      r.first[d] = between(0, s->dims[d] - r.count[d]) + (r.stride[d] < 0 ? r.count[d] - 1 : 0);
    }
  }
  return r;
}

/* Fails unless the affine form gives each element of the region, and its smallest and largest element. */
static void compare_form(const hlo_affine *a, const hlo_region *r, const literal *l) {
  int64_t strides[SHAPE_MAX_RANK], n = 1, low = INT64_MAX, high = INT64_MIN;
  shape_strides(&l->shape, strides);
  for (int d = 0; d < l->shape.rank; d++) {
    n *= r->count[d];
    ck_assert(r->count[d] > 1 || a->step[d] == 0);
  }
  for (int64_t k = 0; k < n; k++) {
    int64_t at = 0, expected = a->start, rest = k;
    for (int d = l->shape.rank; d-- > 0; rest /= r->count[d]) {
      int64_t i = rest % r->count[d];
      at += (r->first[d] + r->stride[d] * i) * strides[d];
      expected += a->step[d] * i;
    }
    int64_t v = literal_i64(l, at);
    ck_assert_msg(v == expected, "element %lld is %lld and not %lld in\n%s", (long long)at, (long long)v,
                  (long long)expected, text_of(module));
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  ck_assert_msg(low == a->low && high == a->high, "the bounds are others in\n%s", text_of(module));
}

START_TEST(random_forms) {
  int found = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    hlo_builder b = begin(seed);
    shape s = {.kind = SHAPE_ARRAY, .type = below(2) ? DTYPE_S64 : DTYPE_S32};
    for (int rank = (int)below(MAX_DIMS + 1); s.rank < rank;) {
      s.dims[s.rank++] = 1 + below(5);
    }
    hlo_value v = random_integers(&b, s, (int)below(6));
    stop_if(hlo_builder_take_error(&b));
    hlo_set_roots(module->entry, 1, &v);
    stop_if(hlo_verify(module));
    literal l;
    hlo_affine form;
    stop_if(ref_eval_computation(module->entry, NULL, memory, &l));
    hlo_region r = random_region(&s);
    if (hlo_affine_of(v, &r, &form)) {
      found++;
      compare_form(&form, &r, &l);
    }
    arena_destroy(memory);
  }
  ck_assert_int_gt(found, SEEDS / 3); /* otherwise the test says little */
}
END_TEST

/* The search ends early in an expression with 2^200 paths to its operands. */
START_TEST(shared_operands) {
  hlo_builder b = begin(1);
  hlo_value v = hlo_iota(&b, shape_make(DTYPE_S64, 1, (dim[]){8}), 0);
  for (int k = 0; k < 200; k++) {
    v = hlo_binary(&b, k % 2 ? HLO_SUB : HLO_ADD, v, v);
  }
  stop_if(hlo_builder_take_error(&b));
  hlo_region r = hlo_whole_region(hlo_shape(v));
  hlo_affine form;
  ck_assert(!hlo_affine_of(v, &r, &form));
  arena_destroy(memory);
}
END_TEST

/* --- gather and scatter --- */

/* Makes index vectors of m numbers for an array.  Each number grows by a constant along one dimension of the
 * batch, or is constant. */
static hlo_value random_indices(hlo_builder *b, const shape *x, const hlo_gather_dims *g, int batch_rank,
                                const dim *batch) {
  hlo_value parts[MAX_DIMS];
  shape s = shape_make(DTYPE_S64, batch_rank, batch);
  bool taken[SHAPE_MAX_RANK] = {false};
  dim dims[SHAPE_MAX_RANK];
  for (int d = 0; d <= batch_rank; d++) {
    dims[d] = d == g->index_vector_dim ? 1 : batch[d - (d > g->index_vector_dim)];
  }
  for (uint32_t c = 0; c < g->n_map; c++) {
    int64_t d = batch_rank ? below((uint32_t)batch_rank) : 0, step = below(2) ? 1 : between(-2, 2);
    int64_t room = x->dims[g->map[c]] - 1;
    bool steps = batch_rank && (!taken[d] || below(8) == 0);
    int64_t span = steps ? step * (batch[d] - 1) : 0;
    int64_t start = below(10) ? between(0, room) : between(-2, room + 2);
    if (below(4)) { /* mostly within the array */
      start = start + span > room ? room - span : start + span < 0 ? -span : start;
    }
    parts[c] = number(b, &s, start);
    if (steps) {
      taken[d] = true;
      hlo_value i = hlo_binary(b, HLO_MUL, hlo_iota(b, s, d), number(b, &s, step));
      parts[c] = hlo_binary(b, HLO_ADD, parts[c], i);
    }
    parts[c] = hlo_reshape(b, parts[c], batch_rank + 1, dims);
  }
  return hlo_concatenate(b, g->n_map, parts, g->index_vector_dim);
}

typedef struct random_access {
  hlo_gather_dims d;
  int64_t offset[SHAPE_MAX_RANK], collapsed[SHAPE_MAX_RANK], map[SHAPE_MAX_RANK];
  dim sizes[SHAPE_MAX_RANK];
  shape moved;
  hlo_value indices;
} random_access;

static void make_access(hlo_builder *b, const shape *x, random_access *a) {
  int m = 1 + (int)below(x->rank), batch_rank = (int)below(MAX_DIMS + 1), rank = 0;
  bool mapped[SHAPE_MAX_RANK] = {false}, windows_first = below(2);
  dim batch[SHAPE_MAX_RANK];
  *a = (random_access){.moved = {.kind = SHAPE_ARRAY, .type = x->type}};
  for (int c = 0; c < m; c++) {
    do {
      a->map[c] = below(x->rank);
    } while (mapped[a->map[c]]);
    mapped[a->map[c]] = true;
  }
  for (int d = 0; d < x->rank; d++) {
    a->sizes[d] = mapped[d] && below(4) ? 1 : between(1, x->dims[d]);
    if (a->sizes[d] == 1 && below(3)) {
      a->collapsed[a->d.n_collapsed++] = d;
    } else {
      a->offset[a->d.n_offset++] = rank++;
      a->moved.dims[a->moved.rank++] = a->sizes[d];
    }
  }
  for (int k = 0; k < batch_rank; k++) {
    batch[k] = 1 + below(3);
  }
  if (!windows_first) {
    memmove(a->moved.dims + batch_rank, a->moved.dims, (size_t)rank * sizeof *batch);
  }
  memcpy(a->moved.dims + (windows_first ? rank : 0), batch, (size_t)batch_rank * sizeof *batch);
  for (uint32_t k = 0; k < a->d.n_offset && !windows_first; k++) {
    a->offset[k] += batch_rank;
  }
  a->moved.rank = (uint8_t)(rank + batch_rank);
  a->d.n_map = (uint32_t)m;
  a->d.map = a->map;
  a->d.offset = a->offset;
  a->d.collapsed = a->collapsed;
  a->d.index_vector_dim = below((uint32_t)batch_rank + 1);
  a->indices = random_indices(b, x, &a->d, batch_rank, batch);
}

static literal random_argument(const shape *s) {
  void *data;
  literal l = literal_new(memory, *s, &data);
  for (int64_t k = 0; k < shape_elements(s); k++) {
    dtype_store_f64((dtype)s->type, (char *)data + k * (int64_t)dtype_bytes((dtype)s->type), (double)below(99) - 49,
                    true, DTYPE_ROUND_NEAREST);
  }
  return l;
}

static bool has_access(const hlo_computation *c) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (i->op == HLO_GATHER || i->op == HLO_SCATTER) {
      return true;
    }
  }
  return false;
}

/* Compares a random gather or scatter before and after the pass.  Returns true if the pass replaced it. */
static bool try_access(uint64_t seed) {
  static const hlo_pass steps[] = {HLO_STEP(gather_to_slice), HLO_STEP(dce)};
  hlo_builder b = begin(seed);
  shape x = {.kind = SHAPE_ARRAY, .type = below(3) ? DTYPE_F32 : DTYPE_S32};
  for (int rank = 1 + (int)below(MAX_DIMS); x.rank < rank;) {
    x.dims[x.rank++] = 1 + below(6);
  }
  hlo_value array = hlo_result(hlo_parameter(module->entry, x), 0), result;
  random_access a;
  make_access(&b, &x, &a);
  hlo_value updates = hlo_result(hlo_parameter(module->entry, a.moved), 0);
  result = below(2) ? hlo_gather(&b, array, a.indices, &a.d, a.sizes)
                    : hlo_scatter(&b, array, a.indices, updates, &a.d,
                                  below(2) ? HLO_REDUCE_REPLACE : (hlo_reducer)below(4));
  stop_if(hlo_builder_take_error(&b));
  hlo_set_roots(module->entry, 1, &result);
  stop_if(hlo_verify(module));
  literal args[] = {random_argument(&x), random_argument(&a.moved)}, before, after;
  hlo_module *original = hlo_module_clone(memory, module);
  stop_if(ref_eval_computation(module->entry, args, memory, &before));
  pass_context c = {.arena = memory, .verify = true, .check_changed = true};
  stop_if(hlo_run_passes(module, steps, 2, &c));
  stop_if(ref_eval_computation(module->entry, args, memory, &after));
  ck_assert_msg(literal_equal(&before, &after), "seed %llu:\n%s\n%s", (unsigned long long)seed, text_of(original),
                text_of(module));
  bool replaced = !has_access(module->entry);
  arena_destroy(memory);
  return replaced;
}

START_TEST(random_accesses) {
  int replaced = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    replaced += try_access(seed);
  }
  ck_assert_int_gt(replaced, SEEDS / 3);
  ck_assert_int_lt(replaced, SEEDS);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("affine");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, random_forms);
  tcase_add_test(c, shared_operands);
  tcase_add_test(c, random_accesses);
  return run_suite("affine", c);
}
