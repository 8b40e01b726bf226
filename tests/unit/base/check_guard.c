/* check_guard.c - questions about symbolic sizes: what is proven, what becomes a guard, and what follows from it. */
#include <check.h>
#include <string.h>

#include "base/dim/answer.h"
#include "tests/suite.h"

static arena *memory;
static dim_table *table;

/* The hints of all tests: batch 1, seq 7, past 3, total 10. */
static void setup(void) {
  memory = arena_create(NULL);
  table = dim_table_create(memory);
  dim_set_hint(table, dim_symbol(table, "batch"), 1);
  dim_set_hint(table, dim_symbol(table, "seq"), 7);
  dim_set_hint(table, dim_symbol(table, "past"), 3);
  dim_set_hint(table, dim_symbol(table, "total"), 10);
}

static void teardown(void) { arena_destroy(memory); }

static dim parse(const char *text) {
  dim d = DIM_OVERFLOW;
  status s = dim_parse_signed(table, &text, &d);
  ck_assert_msg(!s, "%s", status_message(s));
  return d;
}

/* Returns all guards as text, separated by commas. */
static const char *guards(void) {
  uint32_t n;
  const dim_guard *list = dim_guards(table, &n);
  const char *text = "";
  for (uint32_t k = 0; k < n; k++) {
    text = arena_printf(memory, "%s%s%s", text, k ? ", " : "", dim_guard_print(memory, table, &list[k]));
  }
  return text;
}

typedef struct question {
  char relation; /* '=', '<' (at most) or '>' (dim_happens_greater) */
  const char *a, *b;
  bool answer;
  const char *guards; /* the guards that asking it adds */
} question;

static const question questions[] = {
    {'=', "seq+1", "1+seq", true, ""},
    {'=', "seq+1", "seq", false, ""},
    {'=', "seq", "past", false, "seq != past"},
    {'=', "total", "past+seq", true, "total == past+seq"},
    {'=', "batch", "1", true, "batch == 1"},
    {'=', "seq", "1", false, "seq != 1"},
    {'=', "seq+past", "-1", false, ""},
    {'=', "unknown", "1", false, ""}, /* `unknown` has no hint */
    {'<', "seq", "seq+past", true, ""},
    {'<', "seq+1", "seq", false, ""},
    {'<', "0", "seq*past", true, ""},
    {'<', "seq", "1024", true, "seq <= 1024"},
    {'<', "seq", "past", false, "past < seq"},
    {'<', "past-5", "-1", true, "past-5 <= -1"},
    {'<', "unknown", "1", false, ""},
    {'>', "seq", "past", true, "past <= seq"},
    {'>', "past", "seq", false, "past <= seq"},
    {'>', "total", "past+seq", false, "total <= past+seq"},
    {'>', "seq+1", "seq", true, ""},
    {'>', "seq", "seq", false, ""},
    {'>', "unknown", "1", true, ""},
};

static bool ask(char relation, dim a, dim b) {
  switch (relation) {
    case '=': return dim_equal(table, a, b);
    case '<': return dim_at_most(table, a, b);
    default: return dim_happens_greater(table, a, b);
  }
}

START_TEST(answers_a_question) {
  const question *q = &questions[_i];
  dim a = parse(q->a), b = parse(q->b);
  bool answer = ask(q->relation, a, b);
  ck_assert_msg(answer == q->answer, "%s %c %s", q->a, q->relation, q->b);
  ck_assert_str_eq(guards(), q->guards);
  (void)ask(q->relation, a, b);
  ck_assert_str_eq(guards(), q->guards);
}
END_TEST

START_TEST(known_questions_add_no_guard) {
  ck_assert(!dim_known_equal(table, parse("total"), parse("past+seq")));
  ck_assert(dim_known_equal(table, parse("2*seq-seq"), parse("seq")));
  ck_assert(!dim_known_at_most(table, parse("seq"), 1024));
  ck_assert(dim_known_at_most(table, 0, parse("seq")));
  ck_assert_str_eq(guards(), "");
}
END_TEST

/* A question whose numbers are too large for the arithmetic returns false, but this is no answer, so
 * dim_unanswered must return its source. */
START_TEST(an_unanswered_question_pins) {
  ck_assert(dim_at_most(table, 0, parse("seq")) && !dim_equal(table, parse("unknown*seq"), 1));
  ck_assert_ptr_null(dim_unanswered(table));
  dim_set_source(table, "cut: Slice");
  ck_assert(!dim_at_most(table, 1, parse("total*9007199254740992-past*9007199254740992")));
  ck_assert_str_eq(dim_unanswered(table), "cut: Slice");
  ck_assert_str_eq(guards(), "past == 3, total == 10");
}
END_TEST

START_TEST(an_overflow_has_no_answer) {
  ck_assert(!dim_equal(table, parse("seq"), DIM_OVERFLOW));
  ck_assert_ptr_nonnull(dim_unanswered(table));
  ck_assert_str_eq(guards(), "");
}
END_TEST

START_TEST(a_pin_names_every_symbol) {
  dim_set_source(table, "conv: Conv");
  ck_assert_int_eq(dim_pin(table, parse("seq*2+past")), 17);
  ck_assert_str_eq(guards(), "seq == 7, past == 3");
  uint32_t n;
  ck_assert_str_eq(dim_guards(table, &n)[0].source, "conv: Conv");
  ck_assert_int_eq(dim_pin(table, 12), 12);
}
END_TEST

/* Without a hint the answer is false though no guard says so, so dim_unhinted must return its source. */
START_TEST(what_has_no_hint_is_noted) {
  dim_set_source(table, "cut: Slice");
  ck_assert(dim_at_most(table, 0, parse("unknown")));
  ck_assert_ptr_null(dim_unhinted(table));
  if (_i == 0) {
    ck_assert(!dim_equal(table, parse("unknown+seq"), 9));
  } else {
    ck_assert_int_eq(dim_pin(table, parse("unknown")), 0);
  }
  ck_assert_str_eq(dim_unhinted(table), "cut: Slice");
  ck_assert_ptr_null(dim_unanswered(table));
  ck_assert_str_eq(guards(), "");
}
END_TEST

static int64_t double_hint(void *data, dim symbol) {
  int64_t hint;
  (void)data;
  return dim_hint(table, symbol, &hint) ? 2 * hint : 0;
}

START_TEST(guards_hold_or_not) {
  static const struct {
    dim_relation relation;
    const char *a, *b;
    bool holds; /* whether it holds at twice the hints */
  } cases[] = {
      {DIM_EQUAL, "total", "past+seq", true},
      {DIM_EQUAL, "batch", "1", false},
      {DIM_NOT_EQUAL, "seq", "14", false},
      {DIM_NOT_EQUAL, "seq", "1", true},
      {DIM_AT_MOST, "seq", "14", true},
      {DIM_AT_MOST, "seq", "13", false},
      {DIM_LESS, "seq", "14", false},
      {DIM_LESS, "seq", "15", true},
      {DIM_EQUAL, "seq/(past-6)", "seq", false}, /* past is 6, so this divides by 0 */
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    dim_guard g = {cases[k].relation, parse(cases[k].a), parse(cases[k].b), ""};
    ck_assert_msg(dim_guard_holds(table, &g, double_hint, NULL) == cases[k].holds, "%s",
                  dim_guard_print(memory, table, &g));
  }
}
END_TEST

START_TEST(equations_are_solved) {
  static const char *const cases[][4] = {
      /* two expressions that are equal, and what this defines: a symbol and its expression, or "" */
      {"total", "past+seq", "total", "past+seq"},
      {"past+seq", "total", "total", "past+seq"},
      {"batch", "1", "batch", "1"},
      {"seq+3", "total", "total", "seq+3"},
      {"past+seq", "total+1", "total", "past+seq-1"},
      {"2*seq", "3*past", "", ""},
      {"seq*seq", "past*past", "", ""},
      {"32*total*batch", "32*batch*past+32*seq*batch", "seq", "total-past"},
      {"6*batch*past", "18*batch", "past", "3"},
      {"seq*batch", "past*batch", "", ""}, /* false at the hints */
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    dim_guard g = {DIM_EQUAL, parse(cases[k][0]), parse(cases[k][1]), ""};
    dim symbol, equals;
    bool solved = dim_guard_solve(table, &g, &symbol, &equals);
    ck_assert_msg(solved == (*cases[k][2] != 0), "%s = %s", cases[k][0], cases[k][1]);
    if (solved) {
      ck_assert_str_eq(dim_print(memory, table, symbol), cases[k][2]);
      ck_assert_str_eq(dim_print(memory, table, equals), cases[k][3]);
    }
  }
}
END_TEST

START_TEST(values_are_bounded) {
  int64_t v;
  ck_assert(dim_evaluate(table, parse("seq*2-20"), double_hint, NULL, &v) && v == 8);
  ck_assert(dim_evaluate(table, parse("ceil((seq+1)/2)+seq%4+max(seq,past)+min(seq,past)"), double_hint, NULL, &v));
  ck_assert_int_eq(v, 8 + 2 + 14 + 6);
  ck_assert(!dim_evaluate(table, parse("seq*9007199254740992"), double_hint, NULL, &v)); /* above DIM_MAX */
  ck_assert(!dim_evaluate(table, DIM_OVERFLOW, double_hint, NULL, &v));
}
END_TEST

/* seq is 2 to 64, past at most 5, and total is 32*m+8. */
static void set_ranges(void) {
  ck_assert(dim_set_range(table, parse("seq"), 2, 64) && dim_set_range(table, parse("past"), 0, 5));
  dim_set_hint(table, dim_symbol(table, "m"), 3);
  ck_assert(dim_set_range(table, parse("32*m+8"), 40, 1000));
}

START_TEST(ranges_answer_questions) {
  static const char ranges[] = "2 <= seq, seq <= 64, past <= 5, 40 <= 32*m+8, 32*m+8 <= 1000"; /* and no other guard */
  set_ranges();
  ck_assert_str_eq(guards(), ranges);
  ck_assert(!dim_equal(table, parse("seq"), 1) && !dim_equal(table, parse("256*seq"), 0));
  ck_assert(!dim_equal(table, parse("seq+3"), parse("past-1")) && !dim_equal(table, parse("m"), 0));
  ck_assert(dim_at_most(table, parse("seq+past"), 69) && !dim_at_most(table, parse("seq"), parse("past/4")));
  ck_assert(dim_at_most(table, parse("m"), 31) && dim_known_at_most(table, 1, parse("m")));
  ck_assert(dim_at_most(table, parse("(seq-2)/3"), 20) && dim_at_most(table, parse("seq%8"), 7));
  ck_assert(dim_set_range(table, 4, 4, 9) && !dim_set_range(table, 3, 4, 9) && !dim_set_range(table, 10, 4, 9));
  ck_assert_str_eq(guards(), ranges);
  ck_assert(dim_at_most(table, parse("seq+past"), 68)); /* this becomes a guard, since it does not hold for
                                                           seq = 64 and past = 5 */
  ck_assert(strstr(guards(), ", past+seq <= 68"));
}
END_TEST

static uint64_t state;

static int64_t draw(int64_t least, int64_t most) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return least + (int64_t)((state >> 33) % (uint64_t)(most - least + 1));
}

static dim draw_dim(int depth) {
  static const char *const symbols[] = {"seq", "past", "m"};
  dim a, b;
  if (depth == 0) {
    return draw(0, 2) ? parse(symbols[draw(0, 2)]) : dim_signed_const(table, draw(-9, 40));
  }
  a = draw_dim(depth - 1);
  b = draw_dim(depth - 1);
  switch (draw(0, 7)) {
    case 0: return dim_signed_add(table, a, b);
    case 1: return dim_signed_sub(table, a, b);
    case 2: return dim_signed_mul(table, a, b);
    case 3: return dim_floordiv(table, a, b);
    case 4: return dim_ceildiv(table, a, b);
    case 5: return dim_mod(table, a, b);
    case 6: return dim_max(table, a, b);
    default: return dim_min(table, a, b);
  }
}

/* Returns the value of seq, past or m from data[0], data[1] or data[2]. */
static int64_t draw_value(void *data, dim symbol) {
  const int64_t *values = data;
  const char *name = dim_name(table, symbol);
  return values[*name == 's' ? 0 : *name == 'p' ? 1 : 2];
}

/* What follows from the ranges about random expressions is true for all values in the ranges. */
START_TEST(known_of_ranges) {
  enum { EXPRESSIONS = 20000, VALUES = 40 };
  int known = 0;
  state = 5;
  set_ranges();
  for (int k = 0; k < EXPRESSIONS; k++) {
    dim a = draw_dim((int)draw(0, 3)), b = draw_dim((int)draw(0, 2));
    bool at_most = dim_known_at_most(table, a, b), less = dim_known_at_most(table, dim_signed_add(table, a, 1), b);
    known += at_most;
    for (int j = 0; j < VALUES && at_most; j++) {
      int64_t x, y, values[] = {draw(2, 64), draw(0, 5), draw(1, 31)};
      bool computed = dim_evaluate(table, a, draw_value, values, &x) && dim_evaluate(table, b, draw_value, values, &y);
      ck_assert_msg(!computed || (x <= y && (!less || x < y)), "%s <= %s at seq %d, past %d, m %d",
                    dim_print(memory, table, a), dim_print(memory, table, b), (int)values[0], (int)values[1],
                    (int)values[2]);
    }
  }
  ck_assert_msg(known > EXPRESSIONS / 10, "%d are known", known);
}
END_TEST

typedef struct broken {
  const char *a, *b; /* the question whether a is equal to b, or with "<" before b, at most b */
  const char *changes;
} broken;

/* A change is a symbol, or * for all symbols, and its value.  Hints: batch 1, seq 7, past 3, total 10. */
static const broken broken_rows[] = {
    {"seq", "12", "seq 12"},
    {"seq", "<5", "seq 5"},
    {"100", "<seq", "seq 100"},
    {"seq", "<9", "seq 10"},
    {"seq", "past", "seq 3, past 7, * 8"},
    {"total", "past+seq", "total 11, seq 8, past 4, * 11"},
    {"3*(seq/3)", "seq", "seq 6"},
    {"seq*total", "16", "* 4"},
    {"0", "<seq-3", "seq 2"},
};

static const char *changes_of(const dim_guard *g) {
  dim_change list[DIM_CHANGES];
  uint32_t n = dim_changes_of_answer(table, g, list);
  const char *text = "";
  for (uint32_t k = 0; k < n; k++) {
    int64_t a, b;
    ck_assert(dim_changed_hint(table, g->a, &list[k], &a) && dim_changed_hint(table, g->b, &list[k], &b));
    ck_assert(!dim_relation_holds(g->relation, a, b));
    text = arena_printf(memory, "%s%s%s %d", text, k ? ", " : "",
                        list[k].symbol ? dim_name(table, list[k].symbol) : "*", (int)list[k].value);
  }
  return text;
}

START_TEST(answers_change) {
  const broken *row = &broken_rows[_i];
  bool at_most = *row->b == '<';
  uint32_t n;
  dim a = parse(row->a), b = parse(row->b + at_most);
  (void)(at_most ? dim_at_most(table, a, b) : dim_equal(table, a, b));
  const dim_guard *g = dim_guards(table, &n);
  ck_assert_uint_eq(n, 1);
  ck_assert_str_eq(changes_of(g), row->changes);
}
END_TEST

START_TEST(a_special_case_adds_no_guard) {
  ck_assert(!dim_happens_equal(table, parse("seq"), parse("past")));
  ck_assert(!dim_happens_equal(table, parse("unknown"), parse("past")));
  ck_assert(dim_happens_equal(table, parse("seq+1"), parse("1+seq")));
  ck_assert_str_eq(guards(), "");
  ck_assert(dim_happens_equal(table, parse("total"), parse("seq+past")));
  ck_assert_str_eq(guards(), "total == past+seq");
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_loop_test(all, answers_a_question, 0, sizeof questions / sizeof *questions);
  tcase_add_loop_test(all, answers_change, 0, sizeof broken_rows / sizeof *broken_rows);
  tcase_add_test(all, a_special_case_adds_no_guard);
  tcase_add_test(all, known_questions_add_no_guard);
  tcase_add_test(all, an_unanswered_question_pins);
  tcase_add_test(all, an_overflow_has_no_answer);
  tcase_add_test(all, a_pin_names_every_symbol);
  tcase_add_loop_test(all, what_has_no_hint_is_noted, 0, 2);
  tcase_add_test(all, guards_hold_or_not);
  tcase_add_test(all, equations_are_solved);
  tcase_add_test(all, values_are_bounded);
  tcase_add_test(all, ranges_answer_questions);
  tcase_add_test(all, known_of_ranges);
  return run_suite("guard", all);
}
