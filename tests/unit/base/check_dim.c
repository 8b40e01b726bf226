/* check_dim.c - dimension expressions: canonical form, text, substitution; random expressions against plain arithmetic.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/dim/dim.h"
#include "tests/suite.h"

static arena *memory;
static dim_table *table;

static void setup(void) {
  memory = arena_create(NULL);
  table = dim_table_create(memory);
}

static void teardown(void) { arena_destroy(memory); }

static dim parse(const char *text) {
  dim d = DIM_OVERFLOW;
  const char *at = text;
  status s = dim_parse(table, &at, &d);
  ck_assert_msg(!s, "%s: %s", text, status_message(s));
  ck_assert_msg(!*at, "%s: stops at '%s'", text, at);
  return d;
}

static const char *print(dim d) { return dim_print(memory, table, d); }

/* {an expression, its canonical form} */
static const char *const canonical[][2] = {
    {"12", "12"},
    {"seq", "seq"},
    {"seq+1-1", "seq"},
    {"2*n+n", "3*n"},
    {"n-n", "0"},
    {"1+seq", "seq+1"},
    {"b+a", "a+b"},
    {"b*a", "a*b"},
    {"a+b*c", "b*c+a"},
    {"b-a", "b-a"},
    {"-a+b", "b-a"},
    {"5-n", "5-n"},
    {"-1+n", "n-1"},
    {"-n", "-n"},
    {"(a+1)*(a-1)", "a*a-1"},
    {"(a+b)*2", "2*a+2*b"},
    {"max(n-5,-3)", "max(n-5,-3)"},
    {"max(n,-3)", "n"},
    {"max(2-5,0)", "0"},
    {"min(n-5,3-7)+4", "min(n-5,-4)+4"},
    {"max(min(a-b,-2),c-9)", "max(c-9,min(a-b,-2))"},
    {"0*n", "0"},
    {"7/2", "3"},
    {"7%4", "3"},
    {"ceil(7/2)", "4"},
    {"n/1", "n"},
    {"n/n", "1"},
    {"n*m/n", "m"},
    {"(2*n*m)/(4*n)", "m/2"},
    {"(s*d+d)/(s+1)", "d"},
    {"(a*a-1)/(a-1)", "a+1"},
    {"(2*h+3)/2", "h+1"},
    {"(h+2)/2", "h/2+1"},
    {"(h-1)/2+1", "(h+1)/2"},
    {"ceil(h/2)", "(h+1)/2"},
    {"ceil((2*h)/2)", "h"},
    {"ceil((2*n)/(4*n))", "1"},
    {"(2*n)/4", "n/2"},
    {"(2*n+1)/4", "n/2"},
    {"n/2/3", "n/6"},
    {"((h+1)/2+1)/2", "(h+3)/4"},
    {"(n/2+m)/3", "(2*m+n)/6"},
    {"3*(n/2)", "3*(n/2)"},
    {"n/2*3", "3*(n/2)"},
    {"3*n/2", "n+n/2"},
    {"ceil(a/(2*a*b))", "ceil(1/b)"},
    {"a/(2*a*b)", "0"},
    {"(2*n*m+1)/(2*n)", "m"},
    {"n/m", "n/m"},
    {"4/n", "4/n"},
    {"(n*m)/(k*m)", "n/k"},
    {"ceil(n/m)", "ceil(n/m)"},
    {"ceil((n+1)/(2*m))", "ceil((n+1)/(2*m))"},
    {"n/(m+k)", "n/(k+m)"},
    {"(n/m)/k", "(n/m)/k"},
    {"n/(m/k)", "n/(m/k)"},
    {"(n%m)*2", "2*(n%m)"},
    {"(4*n+7)%4", "3"},
    {"(16*n*m+4*m)/(16*n*m)", "1"},
    {"(5*n+7)%4", "(n+3)%4"},
    {"(n*m)%m", "0"},
    {"(-n)%4", "(3*n)%4"},
    {"(4-n%4)%4", "(3*n)%4"},
    {"(n%8+1)%4", "(n+1)%4"},
    {"(n%3)%4", "(n%3)%4"},
    {"n-n%4", "4*(n/4)"},
    {"n%4-n", "-4*(n/4)"},
    {"n+(-n)%4", "4*((n+3)/4)"},
    {"(n+(4-n%4)%4)/2*2", "4*((n+3)/4)"},
    {"m+2*n+2*((4-n%4)%4)", "m+8*((n+3)/4)"},
    {"n+m+(1-n-m)%4", "4*((m+n+2)/4)+1"},
    {"(n+m+1)-(n+m+2)%5+3", "5*((m+n+2)/5)+2"},
    {"(2*n+1+(n+2)%3)/3-2", "(2*n)/3-1"},
    {"n+(2*n)%4", "n+(2*n)%4"},
    {"n*(n+1)-(n*n+n)%2", "2*((n*n+n)/2)"},
    {"72057594037927935*((-n)%4)+n", "n+72057594037927935*((3*n)%4)"},
    {"max(n,n)", "n"},
    {"max(n,n+1)", "n+1"},
    {"min(n,n+1)", "n"},
    {"max(n,0)", "n"},
    {"max(n-4,0)", "max(n-4,0)"},
    {"max(0,n-4)", "max(n-4,0)"},
    {"max(b,max(c,a))", "max(max(a,b),c)"},
    {"min(3,min(n,5))", "min(n,3)"},
    {"max(n/2,0)", "n/2"},
    {"max * max(max,ceil)", "max*max(ceil,max)"},
    {"<=100:n", "<=100:n"},
    {"2*<=100:n", "2*<=100:n"},
    {" seq", NULL},
    {"seq + 1", "seq+1"},
    {"( a + b ) * 2", "2*a+2*b"},
    {"onnx.dim_0", "onnx.dim_0"},
    {"72057594037927936", "72057594037927936"},
};

START_TEST(canonical_text) {
  const char *text = canonical[_i][0], *expected = canonical[_i][1];
  if (!expected) {
    dim d;
    const char *at = text;
    status s = dim_parse(table, &at, &d);
    ck_assert_ptr_nonnull(s);
    status_free(s);
    return;
  }
  dim d = parse(text);
  ck_assert_str_eq(print(d), expected);
  ck_assert_int_eq(parse(expected), d);
}
END_TEST

static const char *const bad[] = {
    "",
    "+",
    "1+",
    "(a",
    "a)+",
    "max(a",
    "max(a)",
    "ceil(a)",
    "1-2",
    "n/0",
    "n%0",
    "1/0",
    "<=:n",
    "<=5",
    "<=5:",
    "<=5:7",
    "72057594037927937",
    "99999999999999999999999999",
    "72057594037927936*2",
    "-1",
    "a b c+",
    "-",
    "<5:n",
    "72057594037927936*n+72057594037927936*n",
};

/* A model's names that look alike when other characters are replaced by '_' are different symbols, whose own names find
 * them, even if a definition named one of them first. */
START_TEST(named) {
  dim early = dim_symbol(table, "early");
  dim a = dim_named(table, "past + 1"), b = dim_named(table, "past - 1"), c = dim_named(table, "past___1");
  ck_assert(a != b && b != c && a != c);
  ck_assert(a == dim_named(table, "past + 1") && b == dim_named(table, "past - 1"));
  ck_assert_str_eq(print(a), "past___1");
  ck_assert_str_eq(print(b), "past___1.1");
  ck_assert(b == dim_symbol(table, "past___1.1"));
  ck_assert(early == dim_named(table, "early") && early != dim_named(table, "early "));
  /* an option gives the name that was shown for the first of two dimensions */
  dim option = dim_symbol(table, "a_b");
  ck_assert(dim_named(table, "a-b") == option && dim_named(table, "a_b") != option);
  dim d = dim_nameless(table, "x", 0), e = dim_named(table, "0 x"), f = dim_named(table, "_x_0");
  ck_assert(d != e && d != f && e != f);
  ck_assert(dim_symbol(table, "_y_1") == dim_nameless(table, "y", 1));
}
END_TEST

/* Symbols of the compiler are none of the model's dimensions, whichever comes first, and are the same in each call. */
START_TEST(own_symbols) {
  dim model = dim_named(table, "h.m"), own = dim_own(table, "h.m"), text = dim_symbol(table, "n.m");
  ck_assert(own != model && own == dim_own(table, "h.m"));
  ck_assert_str_eq(print(own), "h.m.1");
  ck_assert(dim_own(table, "w.m") != dim_named(table, "w.m"));
  ck_assert(dim_own(table, "_x_0") != dim_nameless(table, "x", 0));
  ck_assert(dim_own(table, "x") != dim_nameless(table, "own x", 0) &&
            dim_own(table, "0 x") != dim_nameless(table, "x", 0));
  /* a text may name a symbol before it is asked for, but not if the text is a module */
  ck_assert(parse("k.m") == dim_own(table, "k.m"));
  dim_take_symbols(table);
  ck_assert(dim_own(table, "n.m") != text);
}
END_TEST

/* Names that begin alike, or that look alike when other characters are replaced by '_', are different
 * symbols. */
START_TEST(nameless) {
  dim a = dim_nameless(table, "a_name_that_is_rather_long/1", 0),
      b = dim_nameless(table, "a_name_that_is_rather_long/2", 0);
  dim c = dim_nameless(table, "x:0", 1), d = dim_nameless(table, "x_0", 1), e = dim_symbol(table, "_x_0_1");
  ck_assert(a != b && c != d && c != dim_nameless(table, "x:0", 0));
  ck_assert(a == dim_nameless(table, "a_name_that_is_rather_long/1", 0) && d == dim_nameless(table, "x_0", 1));
  ck_assert_str_eq(print(a), "_a_name_that_is_r_0");
  ck_assert_str_eq(print(c), "_x_0_1");
  ck_assert(c == e); /* the name that is shown for a symbol finds the symbol */
  ck_assert(parse(print(b)) == b);
}
END_TEST

START_TEST(refused) {
  dim d;
  const char *at = bad[_i];
  status s = dim_parse(table, &at, &d);
  if (!s) { /* a prefix may be a dim: then the rest must be left over */
    ck_assert_msg(*at, "'%s' parses", bad[_i]);
    return;
  }
  ck_assert_ptr_eq(at, bad[_i]);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
  status_free(s);
}
END_TEST

/* Nested, long and wide texts end in a status, not in a stack overflow or a long wait. */
START_TEST(hostile_text) {
  static const char *const pieces[][2] = {{"(", ")"}, {"max(1,", ")"}, {"ceil(n/(", "))"}, {"n/(", ")"}};
  enum { TIMES = 100000 };
  for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
    size_t n = strlen(pieces[k][0]);
    char *text = arena_alloc(memory, TIMES * n + 2);
    for (int i = 0; i < TIMES; i++) {
      memcpy(text + (size_t)i * n, pieces[k][0], n);
    }
    text[TIMES * n] = 'n';
    const char *at = text;
    dim d;
    status s = dim_parse(table, &at, &d);
    ck_assert_ptr_nonnull(s);
    status_free(s);
  }
}
END_TEST

START_TEST(too_complex) {
  dim sum = 0, product = 1, nested = dim_symbol(table, "n");
  for (int i = 0; i < 1000; i++) {
    dim x = dim_symbol(table, arena_printf(memory, "s%d", i));
    sum = dim_add(table, sum, x);
    product = dim_mul(table, product, x);
    nested = dim_floordiv(table, nested, x);
    /* An expression that is accepted can be read back from its text. */
    dim all[] = {sum, product, nested};
    for (int k = 0; k < 3; k++) {
      if (all[k] != DIM_OVERFLOW) {
        ck_assert_int_eq(parse(print(all[k])), all[k]);
      }
    }
  }
  ck_assert_int_eq(sum, DIM_OVERFLOW);
  ck_assert_int_eq(product, DIM_OVERFLOW);
  ck_assert_int_eq(nested, DIM_OVERFLOW);
  dim square = parse("a+b+c+d+e+f+g+h+i+j");
  ck_assert_int_eq(dim_mul(table, square, dim_mul(table, square, square)), DIM_OVERFLOW);
}
END_TEST

START_TEST(overflow) {
  dim n = dim_symbol(table, "n");
  ck_assert_int_eq(dim_add(table, DIM_MAX, 1), DIM_OVERFLOW);
  ck_assert_int_eq(dim_mul(table, DIM_MAX, DIM_MAX), DIM_OVERFLOW);
  ck_assert_int_eq(dim_sub(table, 1, 2), DIM_OVERFLOW);
  ck_assert_int_eq(dim_add_const(table, 1, -2), DIM_OVERFLOW);
  ck_assert_int_eq(dim_add_const(table, n, INT64_MIN), DIM_OVERFLOW);
  ck_assert_int_eq(dim_add_const(table, n, INT64_MAX), DIM_OVERFLOW);
  ck_assert_int_eq(dim_floordiv(table, n, 0), DIM_OVERFLOW);
  ck_assert_int_eq(dim_mod(table, 3, 0), DIM_OVERFLOW);
  ck_assert_int_eq(dim_ceildiv(table, n, dim_sub(table, n, n)), DIM_OVERFLOW);
  ck_assert_int_eq(dim_bounded(table, -1, "n"), DIM_OVERFLOW);
  ck_assert_str_eq(print(DIM_OVERFLOW), "?");
  dim (*const binary[])(dim_table *, dim, dim) = {dim_add,     dim_sub, dim_mul, dim_floordiv,
                                                  dim_ceildiv, dim_mod, dim_max, dim_min};
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
    dim others[] = {0, 1, n, DIM_OVERFLOW, INT64_MAX};
    for (int k = 0; k < 4; k++) {
      ck_assert_int_eq(binary[i](table, DIM_OVERFLOW, others[k]), DIM_OVERFLOW);
      ck_assert_int_eq(binary[i](table, others[k], DIM_OVERFLOW), DIM_OVERFLOW);
    }
  }
}
END_TEST

START_TEST(structure) {
  dim n = dim_symbol(table, "n"), bounded = dim_bounded(table, 100, "n"), less = parse("2*n-1");
  ck_assert_int_eq(dim_get_kind(table, 5), DIM_CONST);
  ck_assert_int_eq(dim_get_kind(table, n), DIM_SYMBOL);
  ck_assert_str_eq(dim_name(table, n), "n");
  ck_assert_str_eq(dim_name(table, bounded), "n");
  ck_assert_ptr_null(dim_name(table, less));
  ck_assert_ptr_null(dim_name(table, 5));
  ck_assert_int_eq(dim_rhs(table, bounded), n);
  ck_assert_int_eq(dim_layout(table, bounded), 100);
  ck_assert_int_eq(dim_layout(table, n), n);
  ck_assert_int_eq(dim_layout(table, 7), 7);
  ck_assert_int_eq(dim_get_kind(table, less), DIM_ADD);
  ck_assert_int_eq(dim_get_kind(table, dim_lhs(table, less)), DIM_MUL);
  ck_assert_int_eq(dim_lhs(table, dim_lhs(table, less)), 2);
  ck_assert_int_eq(dim_get_kind(table, dim_rhs(table, less)), DIM_NEG);
  ck_assert_int_eq(dim_lhs(table, dim_rhs(table, less)), 1);
  ck_assert_int_eq(dim_lhs(table, 5), 0);
}
END_TEST

START_TEST(names) {
  ck_assert_str_eq(print(dim_symbol(table, "batch size")), "batch_size");
  ck_assert_str_eq(print(dim_symbol(table, "1")), "_1");
  ck_assert_str_eq(print(dim_symbol(table, "")), "_");
  ck_assert_str_eq(print(dim_symbol(table, "\xc3\xa9\n")), "___");
  ck_assert_int_eq(dim_symbol(table, "batch size"), dim_symbol(table, "batch_size"));
  ck_assert_int_ne(dim_symbol(table, "1"), dim_symbol(table, "2"));
  ck_assert_int_eq(dim_symbol_n(table, "seq]", 3), dim_symbol(table, "seq"));
}
END_TEST

/* Two tables that met the names in different orders print an expression alike. */
START_TEST(order_of_creation) {
  for (size_t i = 0; i < sizeof canonical / sizeof *canonical; i++) {
    if (!canonical[i][1]) {
      continue;
    }
    dim_table *other = dim_table_create(memory);
    const char *backwards[] = {"s", "seq", "n", "m", "max", "k", "h", "d", "ceil", "c", "b", "a"};
    for (size_t k = 0; k < sizeof backwards / sizeof *backwards; k++) {
      dim_symbol(other, backwards[k]);
    }
    const char *at = canonical[i][0];
    dim d;
    ck_assert_ptr_null(dim_parse(other, &at, &d));
    ck_assert_str_eq(dim_print(memory, other, d), canonical[i][1]);
  }
}
END_TEST

typedef struct binding {
  dim symbol, value;
} binding;

static dim bound_value(void *data, dim symbol) {
  for (const binding *b = data; b->symbol; b++) {
    if (b->symbol == symbol) {
      return b->value;
    }
  }
  return symbol;
}

START_TEST(substitution) {
  dim n = dim_symbol(table, "n"), m = dim_symbol(table, "m");
  binding to_numbers[] = {{n, 2}, {m, 5}, {0, 0}}, to_m[] = {{n, m}, {0, 0}}, n_only[] = {{n, 0}, {0, 0}};
  static const struct {
    const char *text;
    dim value;
  } cases[] = {
      {"n+m", 7},
      {"n-m+4", 1},
      {"n-m", DIM_OVERFLOW},
      {"max(n-m,0)", 0},
      {"min(n-m,0)+4", 1},
      {"ceil(m/n)", 3},
      {"(m-1)/n", 2},
      {"m%n", 1},
      {"n*m*m-1", 49},
      {"(n-m)/2+2", 0},
      {"5-n", 3},
      {"<=100:n", 2},
      {"12", 12},
      {"n/(m-5)", DIM_OVERFLOW},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dim d = dim_substitute(table, parse(cases[i].text), bound_value, to_numbers);
    ck_assert_msg(d == cases[i].value, "%s is %lld", cases[i].text, (long long)d);
  }
  ck_assert_int_eq(dim_substitute(table, parse("n-m"), bound_value, to_m), 0);
  ck_assert_str_eq(print(dim_substitute(table, parse("<=9:n"), bound_value, to_m)), "<=9:m");
  ck_assert_str_eq(print(dim_substitute(table, parse("n+m*n+m"), bound_value, n_only)), "m");
  ck_assert_int_eq(dim_substitute(table, DIM_OVERFLOW, bound_value, to_m), DIM_OVERFLOW);
}
END_TEST

/* --- random expressions: built by the table, and computed beside it for a few values of the symbols --- */

enum { POINTS = 4, SYMBOLS = 3 };
static const int64_t points[POINTS][SYMBOLS] = {{1, 2, 3}, {7, 4, 5}, {16, 9, 1}, {3, 30, 12}};

typedef struct sample {
  dim d;
  int64_t at[POINTS];
} sample;

static int64_t floor_of(int64_t a, int64_t b) { return (a - ((a % b) + b) % b) / b; }

static sample combine(int op, const sample *a, const sample *b) {
  static dim (*const functions[])(dim_table *, dim, dim) = {dim_add,     dim_sub, dim_mul, dim_floordiv,
                                                            dim_ceildiv, dim_mod, dim_max, dim_min};
  sample out = {.d = functions[op](table, a->d, b->d)};
  for (int i = 0; i < POINTS; i++) {
    int64_t x = a->at[i], y = b->at[i];
    int64_t values[] = {x + y, x - y, x * y, 0, 0, 0, x > y ? x : y, x < y ? x : y};
    if (op >= 3 && op <= 5) {
      if (y <= 0) {
        out.d = DIM_OVERFLOW; /* a division by 0 or a negative number: arithmetic may assume that it does not
                                 occur */
        return out;
      }
      values[3] = floor_of(x, y);
      values[4] = -floor_of(-x, y);
      values[5] = x - y * values[3];
    }
    out.at[i] = values[op];
    if (out.at[i] > 1000000 || out.at[i] < 0) {
      out.d = DIM_OVERFLOW;
      return out;
    }
  }
  return out;
}

static dim point_value(void *data, dim symbol) {
  const int64_t *point = data;
  return point[dim_name(table, symbol)[0] - 'a'];
}

START_TEST(random_expressions) {
  unsigned seed = 12345 + (unsigned)_i;
  sample pool[64];
  int refused_values = 0, values = 0;
  for (int round = 0; round < 200; round++) {
    int n = 0;
    for (; n < SYMBOLS; n++) {
      pool[n].d = dim_symbol(table, (char[]){(char)('a' + n), 0});
      for (int i = 0; i < POINTS; i++) {
        pool[n].at[i] = points[i][n];
      }
    }
    for (int c = 1; c < 5; c++, n++) {
      pool[n] = (sample){c, {c, c, c, c}};
    }
    for (int tries = 0; tries < 300 && n < 64; tries++) {
      const sample *a = &pool[rand_r(&seed) % (unsigned)n], *b = &pool[rand_r(&seed) % (unsigned)n];
      sample x = combine((int)(rand_r(&seed) % 8u), a, b);
      if (x.d == DIM_OVERFLOW) {
        continue;
      }
      const char *text = print(x.d);
      for (int i = 0; i < POINTS; i++) {
        dim value = dim_substitute(table, x.d, point_value, (void *)points[i]);
        /* An operand of a division may be negative although the whole expression is not; substitution may
         * refuse that. */
        values++;
        refused_values += value == DIM_OVERFLOW;
        ck_assert_msg(value == x.at[i] || value == DIM_OVERFLOW, "%s at %d: %lld, not %lld", text, i, (long long)value,
                      (long long)x.at[i]);
      }
      const char *at = text;
      dim again = 0;
      status s = dim_parse(table, &at, &again);
      ck_assert_msg(!s, "%s", status_message(s));
      ck_assert_msg(again == x.d, "%s reads back as %s", text, print(again));
      pool[n++] = x;
    }
  }
  ck_assert_int_lt(refused_values, values / 50);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_set_timeout(all, 120);
  tcase_add_loop_test(all, canonical_text, 0, sizeof canonical / sizeof *canonical);
  tcase_add_test(all, named);
  tcase_add_test(all, own_symbols);
  tcase_add_test(all, nameless);
  tcase_add_loop_test(all, refused, 0, sizeof bad / sizeof *bad);
  tcase_add_test(all, hostile_text);
  tcase_add_test(all, too_complex);
  tcase_add_test(all, overflow);
  tcase_add_test(all, structure);
  tcase_add_test(all, names);
  tcase_add_test(all, order_of_creation);
  tcase_add_test(all, substitution);
  tcase_add_loop_test(all, random_expressions, 0, 4);
  return run_suite("dim", all);
}
