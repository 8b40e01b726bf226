/* check_patterns.c - RegexFullMatch as a client sees it: RE2's syntax, what RE2 refuses, and patterns and strings that
 * are meant to do harm.  The expected results are those of RE2's FullMatch. */
#include <stdio.h>
#include <string.h>

#include "api_client.h"

static message message_of(const char *pattern) {
  message g = {.n = 0}, node = {.n = 0}, attribute = {.n = 0};
  put_text(&attribute, 1, "pattern");
  put_text(&attribute, 4, pattern);
  put_int(&attribute, 20, 3);
  put_text(&node, 1, "x");
  put_text(&node, 2, "y");
  put_text(&node, 3, "match");
  put_text(&node, 4, "RegexFullMatch");
  put_message(&node, 5, &attribute);
  put_message(&g, GRAPH_NODE, &node);
  add_value(&g, GRAPH_INPUT, "x", OXLA_STRING, DIMS(-1));
  add_value(&g, GRAPH_OUTPUT, "y", OXLA_BOOL, DIMS(-1));
  return finish_model(&g, 9, 20);
}

static oxla_model *model_of(const char *pattern, oxla_options o) {
  message m = message_of(pattern);
  o.backend = "ref";
  o.threads = 1;
  return load_with(&m, o);
}

static bool is_built(void) {
  message m = message_of("a");
  oxla_model *model = NULL;
  oxla_error *error = oxla_load_memory(m.bytes, m.n, NULL, &model);
  bool built = !error || !strstr(oxla_error_message(error), "built without PCRE2");
  oxla_error_free(error);
  oxla_model_destroy(model);
  return built;
}

static oxla_error *match(oxla_run *run, const char *text, size_t n, bool *out) {
  uint64_t number;
  oxla_tensor y;
  succeed(oxla_string_number(run, text, n, &number));
  succeed(oxla_set_input(run, "x", OXLA_STRING, 1, (int64_t[]){1}, &number));
  oxla_error *error = oxla_execute(run);
  if (!error) {
    succeed(oxla_get_output(run, "y", &y));
    ck_assert_uint_eq(y.bytes, 1);
    *out = *(const uint8_t *)y.data;
  }
  return error;
}

static const struct {
  const char *pattern, *matches[4], *others[4];
} cases[] = {
    {"", {""}, {"a", "\n"}},
    {"abc", {"abc"}, {"ab", "abcd", "xabc"}},
    {".", {"a", "\xe7\x8c\xab", "\xf0\x9f\x90\x88"}, {"\n", "", "ab", "\xff"}},
    {"(?s).", {"\n", "a"}, {"\xc3", "\xed\xa0\x80"}},
    {"a|ab|abc", {"a", "ab", "abc"}, {"b", "abcd"}},
    {"(a|ab)(c|bcd)", {"abcd", "ac", "abc"}, {"abcdd"}},
    {"a*?", {"", "aaa"}, {"b"}},
    {"(|a)+", {"", "aa"}, {"b"}},
    {"(a*)*", {"", "aaaa"}, {"b"}},
    {"a{2}", {"aa"}, {"a", "aaa"}},
    {"a{2,}", {"aa", "aaaa"}, {"a"}},
    {"a{,2}", {"a{,2}"}, {"a", "aa"}},
    {"a{2", {"a{2"}, {"aa"}},
    {"x{0,2}y", {"y", "xxy"}, {"xxxy"}},
    {"[a-c]", {"a", "c"}, {"d", "-", ""}},
    {"[]a]", {"]", "a"}, {"[]a]"}},
    {"[^]a]", {"b", "\n"}, {"]", "a"}},
    {"[a-]", {"a", "-"}, {"b"}},
    {"[a\\-z]", {"a", "-", "z"}, {"b"}},
    {"\\d\\D", {"1a", "1\n"}, {"11", "\xd9\xa1\x61"}},
    {"\\s", {" ", "\t", "\f"}, {"\v", "\xc2\xa0"}},
    {"\\w\\W", {"_-", "a\xc3\xa9"}, {"\xc3\xa9-"}},
    {"\\v", {"\v"}, {"\n", "\r"}},
    {"[\\s-z]", {"-", " ", "z"}, {"a", "."}},
    {"^*a$+?\\b{2}", {"a"}, {"ab"}},
    {"[[:alpha:]_]", {"a", "_"}, {"1", "\xc3\xa9", ":"}},
    {"[[:^alpha:]]", {"1", "\xc3\xa9"}, {"a"}},
    {"[[:space:]]", {"\v", " "}, {"a"}},
    {"\\pN", {"1", "\xd9\xa1"}, {"a"}},
    {"\\p{Greek}", {"\xce\xb1"}, {"a", "\xc2\xb5"}},
    {"\\P{^Greek}", {"\xce\xb1"}, {"a"}},
    {"[^\\p{Lu}]", {"a"}, {"A", "\xc3\x89"}},
    {"^a$", {"a"}, {"a\n", "\na"}},
    {"(?m)a$\\n^b", {"a\nb"}, {"ab"}},
    {"(?m)a\\n^", {"a\n"}, {"a"}},
    {"(?m)a$\\n", {"a\n"}, {"a"}},
    {"\\Aa\\z", {"a"}, {"a\n"}},
    {"\\ba\\b.*", {"a", "a b"}, {"ab"}},
    {"a\\Bb", {"ab"}, {"a"}},
    {"(?i)\xc3\xa9t", {"\xc3\x89T"}, {"et"}},
    {"(?i)k", {"K", "\xe2\x84\xaa"}, {"l"}},
    {"(?i)\\w", {"\xe2\x84\xaa", "\xc5\xbf"}, {"\xc3\xa9"}},
    {"(?i)\\W", {"\xc3\xa9"}, {"\xe2\x84\xaa", "k"}},
    {"(?i)[[:upper:]]", {"a"}, {"1"}},
    {"(a(?i)b|c)d", {"aBd", "Cd"}, {"ABd", "aBD"}},
    {"(?i:a)b", {"Ab"}, {"aB"}},
    {"(?i)(?-i:a)b", {"aB"}, {"AB"}},
    {"(?P<name>a)", {"a"}, {"b"}},
    {"\\Qa.*\\E+", {"a.**", "a.*"}, {"a.", "aaa"}},
    {"\\x41\\x{1F408}\\102\\12", {"A\xf0\x9f\x90\x88\x42\n"}, {"A"}},
    {"\\a\\t\\n\\f\\r", {"\a\t\n\f\r"}, {""}},
    {"\\.\\-\\_\\/", {".-_/"}, {"a"}},
    {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|hotmail|gmail)\\.com(\\W|$)",
     {"account@gmail.com", " a@yahoo.com "},
     {"not email"}},
};

START_TEST(patterns_are_re2s) {
  oxla_model *model = model_of(cases[_i].pattern, (oxla_options){.size = 0});
  oxla_run *run = new_run(model);
  for (int k = 0; k < 4; k++) {
    for (int want = 0; want < 2; want++) {
      const char *text = want ? cases[_i].matches[k] : cases[_i].others[k];
      bool got = !want;
      if (text) {
        succeed(match(run, text, strlen(text), &got));
        ck_assert_msg(got == want, "%s and '%s': %d", cases[_i].pattern, text, got);
      }
    }
  }
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

static const struct {
  const char *pattern, *message;
} refused[] = {{"(a)\\1", "no number of a character at byte 3"},
               {"(?=a)", "a kind of group that RE2 does not have"},
               {"(?!a)", "a kind of group that RE2 does not have"},
               {"(?<=a)b", "no name of a group"},
               {"(?<!a)b", "no name of a group"},
               {"(?>a)", "a kind of group that RE2 does not have"},
               {"(?|a)", "a kind of group that RE2 does not have"},
               {"(?#a)", "a kind of group that RE2 does not have"},
               {"(?R)", "a kind of group that RE2 does not have"},
               {"(?P=a)", "a kind of group that RE2 does not have"},
               {"(?P>a)", "a kind of group that RE2 does not have"},
               {"(*ACCEPT)", "a repetition of nothing at byte 1"},
               {"(*LIMIT_MATCH=1)", "a repetition of nothing at byte 1"},
               {"a*+", "a repetition of a repetition"},
               {"a**", "a repetition of a repetition"},
               {"a{2}{3}", "a repetition of a repetition"},
               {"a{1000}{1000}", "a repetition of a repetition"},
               {"((a{100}){100}){100}", "too large"},
               {"a{1001}", "numbers of repetitions that RE2 refuses"},
               {"a{3,2}", "numbers of repetitions that RE2 refuses"},
               {"a{99999999999999999999}", "numbers of repetitions that RE2 refuses"},
               {"*", "a repetition of nothing"},
               {"(", "a group that is not closed"},
               {")", "closes no group"},
               {"[", "a bracket that is not closed"},
               {"[a", "a bracket that is not closed"},
               {"[b-a]", "range out of order"},
               {"[a-\\d]", "a range that ends in a class"},
               {"[[:foo:]]", "an unknown class"},
               {"\\p{foo}", "unknown property"},
               {"\\p{L", "a class without an end"},
               {"\\p{Nowhere}", "unknown property"},
               {"\\", "a backslash at the end"},
               {"\\R", "the escape \\R, which RE2 does not have"},
               {"\\K", "the escape \\K, which RE2 does not have"},
               {"\\x{110000}", "no number of a character"},
               {"\\x{", "no number of a character"},
               {"\\C", "\\C at byte 0"},
               {"(?i)\\p{L}", "\\p under the flag i"},
               {"(?i)[\\W]", "\\W in brackets"},
               {"[\\S]", "\\S in brackets"},
               {"[\\D[:punct:]]", "a negated class and a named one"},
               {"\\p{C}", "\\pC, which has other characters"},
               {"(?i)[[:^upper:]]", "a negated class under the flag i"},
               {"\xff", "UTF-8 error"},
               {"a\xc0\x80", "UTF-8 error"},
               {"\xed\xa0\x80", "UTF-8 error"}};

START_TEST(what_re2_refuses) {
  oxla_model *model = model_of(refused[_i].pattern, (oxla_options){.size = 0});
  oxla_run *run = new_run(model);
  bool out;
  oxla_error *error = match(run, "a", 1, &out);
  ck_assert_msg(strstr(oxla_error_message(error), "RegexFullMatch: pattern \""), "%s", oxla_error_message(error));
  refuse(error, oxla_error_code(error), refused[_i].message);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Makes a pattern of `n` parts. */
static void repeat(char *out, const char *part, int n) {
  *out = 0;
  for (int k = 0; k < n; k++) {
    strcat(out, part);
  }
}

static bool matches(const char *pattern, const char *text, size_t n) {
  oxla_model *model = model_of(pattern, (oxla_options){.size = 0});
  oxla_run *run = new_run(model);
  bool out = false;
  succeed(match(run, text, n, &out));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  return out;
}

/* Expects the result, or that the match is refused, since it needs too many steps. */
static void matches_or_stops(const char *pattern, const char *text, size_t n, bool want) {
  oxla_model *model = model_of(pattern, (oxla_options){.size = 0});
  oxla_run *run = new_run(model);
  bool out = want;
  oxla_error *error = match(run, text, n, &out);
  if (error) {
    refuse(error, OXLA_RESOURCE, "needs more than 2000000 steps to be matched");
  }
  ck_assert_msg(out == want, "%s", pattern);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}

/* Without a limit of steps some of these would take longer than the world is old. */
START_TEST(no_pattern_takes_long) {
  enum { LONG = 1 << 20 };
  static char many[LONG], pattern[8000];
  memset(many, 'a', sizeof many);
  double start = seconds();
  matches_or_stops("(a*)*b", many, 100000, false);
  matches_or_stops("(a|a)*b", many, 100000, false);
  matches_or_stops("(a|aa)+$b", many, 100000, false);
  matches_or_stops("(((a+)+)+)+b", many, 100000, false);
  matches_or_stops("(a|b|c)*", many, LONG, true);
  ck_assert(matches("(?s).*", many, LONG));
  ck_assert(matches("[a-c]*", many, LONG));
  matches_or_stops("(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b", many, 100000, false);
  ck_assert(matches("(a{0,30}){0,30}", many, 900));
  matches_or_stops("(a{0,30}){0,30}", many, 901, false);
  ck_assert(matches("", "", 0));
  repeat(pattern, "a?", 500);
  repeat(pattern + 1000, "a", 500);
  matches_or_stops(pattern, many, 500, true);
  repeat(pattern, "(", 150);
  strcat(pattern, "a");
  repeat(pattern + 151, ")*", 1);
  repeat(pattern + 153, ")", 149);
  matches_or_stops(pattern, many, 1000, true);
  ck_assert_msg(seconds() - start < 60, "%g s", seconds() - start);
}
END_TEST

START_TEST(large_patterns_are_refused) {
  static char pattern[8000];
  bool out;
  repeat(pattern, "(", 2000);
  oxla_model *model = model_of(pattern, (oxla_options){.size = 0});
  oxla_run *run = new_run(model);
  refuse(match(run, "a", 1, &out), OXLA_UNSUPPORTED, "more than 200 groups inside each other");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  repeat(pattern, "((\\pL|\\pN){900}){9}", 300);
  model = model_of(pattern, (oxla_options){.size = 0});
  run = new_run(model);
  refuse(match(run, "a", 1, &out), OXLA_INVALID_MODEL, "pattern");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(strings_have_any_bytes) {
  ck_assert(matches("a\\x00b", "a\0b", 3));
  ck_assert(!matches("a", "a\0b", 3));
  ck_assert(matches("(?s).*", "\0\0", 2));
  ck_assert(!matches("(?s).*", "a\xff", 2));
  ck_assert(!matches("(?s).*", "\xe7\x8c", 2));
}
END_TEST

int main(void) {
  if (!is_built()) {
    puts("built without PCRE2");
    return 77;
  }
  TCase *c = tcase_create("patterns");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, patterns_are_re2s, 0, sizeof cases / sizeof *cases);
  tcase_add_loop_test(c, what_re2_refuses, 0, sizeof refused / sizeof *refused);
  tcase_add_test(c, no_pattern_takes_long);
  tcase_add_test(c, large_patterns_are_refused);
  tcase_add_test(c, strings_have_any_bytes);
  return run_suite("patterns", c);
}
