/* check_emit_sizes_rows.c - compares kernels of row-wise fusions (hlo/analysis/row_space.h) of any number of rows and
 * of any length with the reference evaluator. */
#include "hlo/analysis/row_space.h"
#include "hlo/ir/builder.h"
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 24 };

#define REDUCE_ROWS(y, x, how, type) #y " = reduce(" #x ") {dimensions=[1], reducer=" #how "} : " type "[n]\n"
#define SPREAD_ROWS(y, x, type) #y " = broadcast(" #x ") {dimensions=[0]} : " type "[n,m]\n"

/* Sums, differences and products of the test's numbers are exact, so results must be equal. */
static const char *const row_texts[] = {
    /* rows, columns, and rows of several dimensions; rows of a constant length, and a constant number of rows */
    "(%x: f32[n,m]) {\n" REDUCE_ROWS(% a, % x, maximum, "f32")
        SPREAD_ROWS(% b, % a, "f32") "%c = subtract(%x, %b) : f32[n,m]\n" REDUCE_ROWS(% s, % c, add, "f32")
            SPREAD_ROWS(% t, % s, "f32") "%u = add(%c, %t) : f32[n,m]\nreturn %u\n}",
    "(%x: f32[b,n,m]) {\n%a = reduce(%x) {dimensions=[1], reducer=maximum} : f32[b,m]\n%b = broadcast(%a) "
    "{dimensions=[0,2]} : f32[b,n,m]\n%c = subtract(%x, %b) : f32[b,n,m]\nreturn %c\n}",
    "(%x: f32[b,n,3,m]) {\n%a = reduce(%x) {dimensions=[1,3], reducer=add} : f32[b,3]\n%b = broadcast(%a) "
    "{dimensions=[0,2]} : f32[b,n,3,m]\n%c = subtract(%x, %b) : f32[b,n,3,m]\nreturn %c\n}",
    "(%x: f32[b,n,20]) {\n%a = reduce(%x) {dimensions=[2], reducer=add} : f32[b,n]\n%b = broadcast(%a) "
    "{dimensions=[0,1]} : f32[b,n,20]\n%c = add(%x, %b) : f32[b,n,20]\nreturn %c\n}",
    "(%x: f32[5,n]) {\n%a = reduce(%x) {dimensions=[1], reducer=add} : f32[5]\n%b = broadcast(%a) "
    "{dimensions=[0]} : f32[5,n]\n%c = add(%x, %b) : f32[5,n]\nreturn %c\n}",
    "(%x: f32[n,24]) {\n%a = reduce(%x) {dimensions=[0], reducer=add} : f32[24]\n%b = broadcast(%a) "
    "{dimensions=[1]} : f32[n,24]\n%c = add(%x, %b) : f32[n,24]\nreturn %c\n}",
    /* results that are full arrays and results with one value for each row; a mask of another shape; a
     * reshape in the middle */
    "(%x: f32[n,m], %v: f32[m]) {\n%w = broadcast(%v) {dimensions=[1]} : f32[n,m]\n%y = add(%x, %w) : "
    "f32[n,m]\n" REDUCE_ROWS(% a, % y, maximum, "f32") SPREAD_ROWS(
        % b, % a, "f32") "%c = subtract(%y, %b) : f32[n,m]\n" REDUCE_ROWS(% s, % c, add, "f32") "return %c, %a, %s\n}",
    "(%x: f32[b,n,m], %v: pred[b,m]) {\n%w = broadcast(%v) {dimensions=[0,2]} : pred[b,n,m]\n%z = negate(%x) : "
    "f32[b,n,m]\n%y = select(%w, %x, %z) : f32[b,n,m]\n%a = reduce(%y) {dimensions=[2], reducer=maximum} : "
    "f32[b,n]\n%f = reshape(%a) : f32[b*n]\n%g = broadcast(%f) {dimensions=[0]} : f32[b*n,m]\n%h = reshape(%y) : "
    "f32[b*n,m]\n%i = subtract(%h, %g) : f32[b*n,m]\nreturn %i\n}",
    "(%x: f64[n,m]) {\n" REDUCE_ROWS(% a, % x, add, "f64")
        SPREAD_ROWS(% b, % a, "f64") "%c = subtract(%x, %b) : f64[n,m]\nreturn %c, %a\n}",
    "(%x: s32[n,m]) {\n" REDUCE_ROWS(% a, % x, add, "s32")
        SPREAD_ROWS(% b, % a, "s32") "%c = subtract(%x, %b) : s32[n,m]\nreturn %c\n}",
    "(%x: bf16[n,m]) {\n" REDUCE_ROWS(% a, % x, maximum, "bf16")
        SPREAD_ROWS(% b, % a, "bf16") "%c = subtract(%x, %b) : bf16[n,m]\nreturn %c\n}",
};

START_TEST(rows) { SIZES_CHECK_TEXTS(row_texts, 0, ROUNDS); }
END_TEST

#define SOFTMAX(type)                                                                                              \
  REDUCE_ROWS(% a, % x, maximum, type)                                                                             \
  SPREAD_ROWS(% b, % a, type)                                                                                      \
  "%c = subtract(%x, %b) : " type "[n,m]\n%d = exponential(%c) : " type "[n,m]\n" REDUCE_ROWS(% s, % d, add, type) \
      SPREAD_ROWS(% t, % s, type) "%y = divide(%d, %t) : " type "[n,m]\n"

/* %x is %w, but `number` where %w is 3, which one element of 97 is. */
#define REPLACED(number)                                                                                        \
  "(%w: f32[n,m]) {\n%l = constant() {value=f32[] 3} : f32[]\n%lb = broadcast(%l) {dimensions=[]} : f32[n,m]\n" \
  "%k = constant() {value=f32[] " number                                                                        \
  "} : f32[]\n%kb = broadcast(%k) {dimensions=[]} : f32[n,m]\n"                                                 \
  "%is = compare(%w, %lb) {comparison=eq} : pred[n,m]\n%x = select(%is, %kb, %w) : f32[n,m]\n"

static const char *const softmax_texts[] = {
    /* rows with a NaN or an infinite element, whose results are NaN, and rows with elements that count nothing */
    REPLACED("nan") SOFTMAX("f32") "return %y\n}",
    REPLACED("inf") SOFTMAX("f32") "return %y\n}",
    REPLACED("-inf") SOFTMAX("f32") "return %y\n}",
    /* the same where NaN must be seen in the maximum itself */
    REPLACED("nan") SOFTMAX("f32") "return %a, %y\n}",
    /* the logarithm of the softmax */
    REPLACED("nan") SOFTMAX("f32") "%u = log(%s) : f32[n]\n" SPREAD_ROWS(% v, % u, "f32")
        "%z = subtract(%c, %v) : f32[n,m]\nreturn %z\n}",
    "(%x: f32[n,m]) {\n" SOFTMAX("f32") "return %y\n}",
    "(%x: f64[n,m]) {\n" SOFTMAX("f64") "return %y\n}",
    /* the result has another type than the values of a row, so its memory cannot hold these values between two loops
     * over the row */
    "(%x: f32[n,m]) {\n" SOFTMAX("f32") "%z = convert(%y) {saturate=true, rounding=nearest} : f64[n,m]\nreturn "
    "%z\n}",
    /* three results: exponentials, which two loops over the row need; quotients, which need the sum of the whole row;
     * and that sum, one value for each row */
    "(%x: f32[n,m]) {\n" SOFTMAX("f32") "return %d, %y, %s\n}",
    /* columns */
    "(%x: f32[b,n,m]) {\n%a = reduce(%x) {dimensions=[1], reducer=maximum} : f32[b,m]\n%b = broadcast(%a) "
    "{dimensions=[0,2]} : f32[b,n,m]\n%c = subtract(%x, %b) : f32[b,n,m]\n%d = exponential(%c) : f32[b,n,m]\n%s = "
    "reduce(%d) {dimensions=[1], reducer=add} : f32[b,m]\n%t = broadcast(%s) {dimensions=[0,2]} : f32[b,n,m]\n%y = "
    "divide(%d, %t) : f32[b,n,m]\nreturn %y\n}",
    /* rows of a constant length, which are stored on the stack */
    "(%x: f32[n,40]) {\n%a = reduce(%x) {dimensions=[1], reducer=maximum} : f32[n]\n%b = broadcast(%a) "
    "{dimensions=[0]} : f32[n,40]\n%c = subtract(%x, %b) : f32[n,40]\n%d = exponential(%c) : f32[n,40]\n%s = "
    "reduce(%d) {dimensions=[1], reducer=add} : f32[n]\n%t = broadcast(%s) {dimensions=[0]} : f32[n,40]\n%y = "
    "divide(%d, %t) : f32[n,40]\nreturn %y\n}",
    /* a normalisation by the root of the mean square */
    "(%x: f32[n,m], %v: f32[m], %k: f32[]) {\n%q = multiply(%x, %x) : f32[n,m]\n" REDUCE_ROWS(%s, %q, add, "f32")
    "%l = broadcast(%k) {dimensions=[]} : f32[n]\n%e = divide(%s, %l) : f32[n]\n%g = abs(%e) : f32[n]\n%o = "
    "constant() {value=f32[] 1} : f32[]\n%p = broadcast(%o) {dimensions=[]} : f32[n]\n%h = add(%g, %p) : f32[n]\n%r "
    "= rsqrt(%h) : f32[n]\n" SPREAD_ROWS(%b, %r, "f32") "%y = multiply(%x, %b) : f32[n,m]\n%w = broadcast(%v) "
    "{dimensions=[1]} : f32[n,m]\n%z = multiply(%y, %w) : f32[n,m]\nreturn %z\n}",
};

/* The reference adds numbers in f64 and in their order, and its functions are the C library's; a kernel's sums of up to
 * 1,000 positive f32 are in another order, and its functions have errors of at most 2 ULP (emit/math/math.h). */
START_TEST(softmax) { SIZES_CHECK_TEXTS(softmax_texts, 0x1p-19, ROUNDS); }
END_TEST

/* --- random fusions --- */

enum { MOST_VALUES = 24, MOST_RESULTS = 3 };

/* Values that are full arrays, and values with one element for each row. */
typedef struct random_rows {
  hlo_builder b;
  shape full, kept;
  uint32_t n_gone, n;
  int64_t gone[2], stay[2]; /* the dimensions that are reduced, and the others */
  hlo_value values[MOST_VALUES];
} random_rows;

static int below(int n) { return (int)((next_random() >> 20) % (uint64_t)n); }

static bool is_full(const random_rows *r, hlo_value v) { return hlo_rank(v) == r->full.rank; }

/* Returns a value that is a full array if and only if x is one; it may be x. */
static hlo_value like(const random_rows *r, hlo_value x) {
  hlo_value found = x;
  for (uint32_t k = 0; k < r->n; k++) {
    found = is_full(r, r->values[k]) == is_full(r, x) && below(2) ? r->values[k] : found;
  }
  return found;
}

/* Maxima, differences and square roots are exact, in whatever order elements are visited.  The root takes so long that
 * a kernel stores it for later loops over the row. */
static hlo_value random_value(random_rows *r) {
  hlo_value x = r->values[below(2) ? (int)r->n - 1 : below((int)r->n)];
  switch (below(6)) {
    case 0: return hlo_unary(&r->b, HLO_NEG, x);
    case 1: return hlo_binary(&r->b, HLO_SUB, x, like(r, x));
    case 2: return hlo_unary(&r->b, HLO_SQRT, hlo_unary(&r->b, HLO_ABS, x));
    case 3: return hlo_binary(&r->b, HLO_MIN, x, like(r, x));
    default:
      return is_full(r, x) ? hlo_reduce(&r->b, x, HLO_REDUCE_MAX, r->n_gone, r->gone)
                           : hlo_broadcast(&r->b, x, r->full, r->stay);
  }
}

/* Chooses which of the dimensions are reduced, at least one of them. */
static void choose_dims(random_rows *r) {
  int rank = 2 + below(2), which = 1 + below((1 << rank) - 2), n = 0;
  dim_table *t = r->b.computation->module->dims;
  const dim all[] = {dim_symbol(t, "n"), below(4) ? dim_symbol(t, "m") : 20, dim_symbol(t, "b")};
  r->full = shape_make(DTYPE_F32, rank, all);
  r->kept = shape_make(DTYPE_F32, 0, NULL);
  for (int k = 0; k < rank; k++) {
    if (which >> k & 1) {
      r->gone[r->n_gone++] = k;
    } else {
      r->stay[n++] = k;
      r->kept.dims[r->kept.rank++] = all[k];
    }
  }
}

static const hlo_computation *random_entry(void) {
  hlo_module *m = hlo_module_create(sizes_arena, "random");
  m->entry = hlo_computation_create(m, "main");
  random_rows r = {.b = hlo_builder_make(m->entry), .n = 2};
  choose_dims(&r);
  r.values[0] = hlo_result(hlo_parameter(m->entry, r.full), 0);
  r.values[1] = hlo_result(hlo_parameter(m->entry, below(2) ? r.full : r.kept), 0);
  for (int steps = 5 + below(12); steps > 0; steps--) {
    hlo_value next = random_value(&r);
    r.values[r.n++] = next;
    ASSERT_OK(hlo_builder_take_error(&r.b));
  }
  hlo_value roots[MOST_RESULTS];
  uint32_t n_roots = 1 + (uint32_t)below(MOST_RESULTS);
  for (uint32_t k = 0; k < n_roots; k++) {
    roots[k] = r.values[r.n - 1 - k];
  }
  hlo_set_roots(m->entry, n_roots, roots);
  return m->entry;
}

START_TEST(random_fusions) {
  enum { FUSIONS = 80, MACHINES = 2 };
  sizes_cases c = {0};
  while (c.n < FUSIONS) {
    const hlo_computation *entry = random_entry();
    hlo_row_space space;
    if (hlo_is_row_wise(entry, &space)) {
      sizes_add(&c, entry)->most = 5000;
    }
  }
  sizes_check_all(&c, ROUNDS / 2, MACHINES);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-sizes-rows");
  tcase_add_checked_fixture(t, sizes_setup, sizes_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, rows);
  tcase_add_test(t, softmax);
  tcase_add_test(t, random_fusions);
  return run_suite("emit-sizes-rows", t);
}
