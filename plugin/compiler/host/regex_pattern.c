/* regex_pattern.c - see regex_pattern.h.  RE2's syntax is described on the page Syntax of its wiki. */
#include "plugin/compiler/host/regex_pattern.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INVALID STATUS_INVALID_MODEL
#define UNSUPPORTED STATUS_UNSUPPORTED

/* The blanks of \s; in PCRE2 the vertical tab is one, too.  Below it the letters that k and s become under the flag i:
 * RE2 adds them to classes such as \w, PCRE2 to letters and ranges only. */
#define BLANKS "\\t\\n\\f\\r "
#define FOLDED "\\x{17f}\\x{212a}"

typedef struct translation {
  const char *start, *at;
  text_builder out;
  bool fold[REGEX_MOST_NESTED + 1]; /* the flag i in each of the groups around `at` */
  int depth;
  bool repeatable, repeated; /* whether there is an item before `at`, and whether it is a repetition */
  /* how many classes the bracket has: negated ones such as \D, ones with names such as [:punct:] and \pL, and all */
  int n_negated, n_named, n_classes;
} translation;

#define BYTE(t) ((size_t)((t)->at - (t)->start))

static void put(translation *t, const char *text) { text_builder_put(&t->out, text); }

/* Writes n bytes of the pattern as they are, and moves behind them. */
static void copy(translation *t, size_t n) {
  for (; n; n--) {
    put(t, (char[]){*t->at++, 0});
  }
}

static bool folds(const translation *t) { return t->fold[t->depth]; }

/* --- escapes --- */

/* Writes \xFF, \x{FFFF} or an octal number such as \07 or \123. */
static status number(translation *t) {
  bool octal = t->at[1] != 'x', braces = t->at[2] == '{';
  const char *digits = t->at + (octal ? 1 : braces ? 3 : 2);
  size_t n = strspn(digits, octal ? "01234567" : "0123456789abcdefABCDEF");
  n = octal && n > 3 ? 3 : !octal && !braces && n > 2 ? 2 : n;
  bool good = octal ? n >= 2 || *digits == '0' : braces ? n >= 1 && n <= 8 && digits[n] == '}' : n == 2;
  long value = good ? strtol(arena_strndup(t->out.arena, digits, n), NULL, octal ? 8 : 16) : -1;
  CHECK_THAT(value >= 0 && value <= 0x10ffff, INVALID, "no number of a character at byte %zu", BYTE(t));
  put(t, arena_printf(t->out.arena, "\\x{%lx}", value));
  t->at = digits + n + (!octal && braces);
  return NULL;
}

/* Writes \pL, \p{Greek}, or one of them with P. */
static status property(translation *t) {
  size_t n = t->at[2] == '{' ? strcspn(t->at, "}") + 1 : 3;
  CHECK_THAT(strlen(t->at) >= n, INVALID, "a class without an end at byte %zu", BYTE(t));
  CHECK_THAT(!folds(t), UNSUPPORTED, "\\%c under the flag i at byte %zu", t->at[1], BYTE(t));
  bool others =
      strncmp(t->at + 2, "C", 1) == 0 || strncmp(t->at + 2, "{C}", 3) == 0 || strncmp(t->at + 2, "{^C}", 4) == 0;
  CHECK_THAT(!others, UNSUPPORTED, "\\pC, which has other characters in PCRE2, at byte %zu", BYTE(t));
  t->n_named++;
  t->n_classes++;
  copy(t, n);
  return NULL;
}

/* Writes \d, \s, \w or the negation of one. */
static status perl_class(translation *t, bool in_brackets) {
  char c = t->at[1];
  bool blanks = tolower(c) == 's', words = tolower(c) == 'w' && folds(t);
  const char *set = blanks ? BLANKS : "\\w" FOLDED;
  CHECK_THAT(!in_brackets || islower(c) || !(blanks || words), UNSUPPORTED, "\\%c in brackets at byte %zu", c, BYTE(t));
  t->n_negated += isupper(c) != 0;
  t->n_classes += isupper(c) != 0;
  if (!blanks && !words) {
    copy(t, 2);
    return NULL;
  }
  put(t, in_brackets ? "" : islower(c) ? "[" : "[^");
  put(t, set);
  put(t, in_brackets ? "" : "]");
  t->at += 2;
  if (in_brackets && *t->at == '-') { /* behind a class it is a character, and begins no range */
    put(t, "\\");
    copy(t, 1);
  }
  return NULL;
}

/* Writes the text between \Q and \E, or the end of the pattern. */
static void quoted(translation *t) {
  for (t->at += 2; *t->at && strncmp(t->at, "\\E", 2) != 0;) {
    put(t, ispunct((unsigned char)*t->at) ? "\\" : "");
    copy(t, 1);
    t->repeatable = true;
  }
  t->at += *t->at ? 2 : 0;
}

/* Writes an assertion as a group, since PCRE2 repeats no other assertions. */
static void assertion(translation *t, size_t n) {
  put(t, "(?:");
  copy(t, n);
  put(t, ")");
}

static status escape(translation *t, bool in_brackets) {
  unsigned char c = (unsigned char)t->at[1];
  CHECK_THAT(c, INVALID, "a backslash at the end, at byte %zu", BYTE(t));
  if (strchr("dDsSwW", c)) {
    return perl_class(t, in_brackets);
  }
  if (c == 'p' || c == 'P') {
    return property(t);
  }
  if (c == 'x' || (c >= '0' && c <= '7')) {
    return number(t);
  }
  if (c == 'v') {
    put(t, "\\x0b");
    t->at += 2;
    return NULL;
  }
  CHECK_THAT(c != 'C', UNSUPPORTED, "\\C at byte %zu", BYTE(t));
  if (!in_brackets && strchr("AzbB", c)) {
    assertion(t, 2);
    return NULL;
  }
  bool is_known = ispunct(c) || strchr("aftnr", c);
  CHECK_THAT(is_known, INVALID, "the escape \\%c, which RE2 does not have, at byte %zu", isprint(c) ? c : '?', BYTE(t));
  copy(t, 2);
  return NULL;
}

/* --- brackets --- */

/* Writes a class such as [:alpha:] or [:^alpha:]. */
static status named_class(translation *t) {
  static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph",
                                      "lower", "print", "punct", "space", "upper", "word",  "xdigit"};
  const char *end = strstr(t->at, ":]");
  const char *name = t->at + 2 + (t->at[2] == '^');
  CHECK_THAT(end, INVALID, "a class without an end at byte %zu", BYTE(t));
  bool known = false, letters = false;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    bool same = strlen(names[k]) == (size_t)(end - name) && memcmp(name, names[k], strlen(names[k])) == 0;
    known |= same;
    letters |= same && strchr("ailguw", names[k][0]) && strcmp(names[k], "xdigit") != 0;
    letters |= same && strcmp(names[k], "print") == 0;
  }
  CHECK_THAT(known, INVALID, "an unknown class at byte %zu", BYTE(t));
  CHECK_THAT(!folds(t) || t->at[2] != '^', UNSUPPORTED, "a negated class under the flag i at byte %zu", BYTE(t));
  t->n_named++;
  t->n_negated += t->at[2] == '^';
  t->n_classes++;
  copy(t, (size_t)(end + 2 - t->at));
  put(t, folds(t) && letters ? FOLDED : "");
  return NULL;
}

static status bracket_item(translation *t) {
  if (*t->at == '\\') {
    return escape(t, true);
  }
  if (strncmp(t->at, "[:", 2) == 0) {
    return named_class(t);
  }
  put(t, *t->at == '[' ? "\\" : "");
  copy(t, 1);
  return NULL;
}

/* Returns true if a range goes on with a class: RE2 refuses [a-\d], for which PCRE2 takes the hyphen as itself. */
static bool ends_in_class(const char *at) {
  return at[0] == '-' && at[1] == '\\' && at[2] && strchr("dDsSwWpP", at[2]);
}

static status brackets(translation *t) {
  const char *start = t->at;
  t->n_negated = t->n_named = t->n_classes = 0;
  copy(t, t->at[1] == '^' ? 2 : 1);
  if (*t->at == ']') {
    put(t, "\\");
    copy(t, 1);
  }
  while (*t->at != ']') {
    CHECK_THAT(*t->at, INVALID, "a bracket that is not closed at byte %zu", (size_t)(start - t->start));
    CHECK_THAT(!ends_in_class(t->at), INVALID, "a range that ends in a class at byte %zu", BYTE(t));
    TRY(bracket_item(t));
  }
  /* of such a bracket PCRE2 10.42 takes or leaves wrong characters above 255 */
  CHECK_THAT(!t->n_negated || !t->n_named || t->n_classes == 1, UNSUPPORTED,
             "a bracket with a negated class and a named one at byte %zu", (size_t)(start - t->start));
  copy(t, 1);
  return NULL;
}

/* --- groups --- */

static status enter(translation *t) {
  CHECK_THAT(t->depth < REGEX_MOST_NESTED, UNSUPPORTED, "more than %d groups inside each other at byte %zu",
             REGEX_MOST_NESTED, BYTE(t));
  t->fold[t->depth + 1] = folds(t);
  t->depth++;
  t->repeatable = t->repeated = false;
  return NULL;
}

/* Reads the flags of (?i-s) or (?i-s:...), which change either the rest of the group around it or the new group. */
static status flags(translation *t) {
  size_t n = 2 + strspn(t->at + 2, "imsU-");
  const char *minus = memchr(t->at, '-', n), *fold = memchr(t->at, 'i', n), *end = t->at + n;
  bool good = n > 2 && (*end == ':' || *end == ')') && end[-1] != '-' &&
              !(minus && memchr(minus + 1, '-', (size_t)(end - minus - 1)));
  CHECK_THAT(good, INVALID, "a kind of group that RE2 does not have at byte %zu", BYTE(t));
  TRY(*end == ':' ? enter(t) : NULL);
  if (fold) {
    t->fold[t->depth] = !minus || fold < minus;
  }
  copy(t, n + 1);
  return NULL;
}

/* Writes (?P<name>...) and (?<name>...) as groups without a name. */
static status named_group(translation *t, size_t before) {
  size_t n = 0;
  while (isalnum((unsigned char)t->at[before + n]) || t->at[before + n] == '_') {
    n++;
  }
  CHECK_THAT(n && t->at[before + n] == '>', INVALID, "no name of a group at byte %zu", BYTE(t));
  TRY(enter(t));
  put(t, "(?:");
  t->at += before + n + 1;
  return NULL;
}

static status group(translation *t) {
  if (t->at[1] != '?') {
    TRY(enter(t));
    put(t, "(?:");
    t->at++;
    return NULL;
  }
  if (strncmp(t->at, "(?P<", 4) == 0 || strncmp(t->at, "(?<", 3) == 0) {
    return named_group(t, t->at[2] == 'P' ? 4 : 3);
  }
  if (t->at[2] == ':') {
    TRY(enter(t));
    copy(t, 3);
    return NULL;
  }
  return flags(t);
}

static status close_group(translation *t) {
  CHECK_THAT(t->depth, INVALID, "a parenthesis that closes no group at byte %zu", BYTE(t));
  t->depth--;
  copy(t, 1);
  t->repeatable = true;
  t->repeated = false;
  return NULL;
}

/* --- repetitions --- */

/* Returns how many bytes a repetition such as {2}, {2,} or {2,3} has; 0 if the brace is a character. */
static size_t counted(const char *at) {
  size_t n = strspn(at + 1, "0123456789") + 1;
  if (n == 1) {
    return 0;
  }
  n += at[n] == ',' ? 1 + strspn(at + n + 1, "0123456789") : 0;
  return at[n] == '}' ? n + 1 : 0;
}

static status check_counts(const translation *t) {
  char *end;
  long long least = strtoll(t->at + 1, &end, 10),
            most = *end == ',' && end[1] != '}' ? strtoll(end + 1, NULL, 10) : least;
  CHECK_THAT(least <= REGEX_MOST_REPETITIONS && most <= REGEX_MOST_REPETITIONS && least <= most, INVALID,
             "numbers of repetitions that RE2 refuses at byte %zu", BYTE(t));
  return NULL;
}

static status repetition(translation *t, size_t n) {
  CHECK_THAT(t->repeatable, INVALID, "a repetition of nothing at byte %zu", BYTE(t));
  CHECK_THAT(!t->repeated, INVALID, "a repetition of a repetition at byte %zu", BYTE(t));
  TRY(*t->at == '{' ? check_counts(t) : NULL);
  copy(t, n);
  if (*t->at == '?') {
    copy(t, 1);
  }
  t->repeated = true;
  return NULL;
}

/* --- the pattern --- */

static status item(translation *t) {
  switch (*t->at) {
    case '(': return group(t);
    case ')': return close_group(t);
    case '*':
    case '+':
    case '?': return repetition(t, 1);
    case '{':
      if (counted(t->at)) {
        return repetition(t, counted(t->at));
      }
      break;
    case '|':
      copy(t, 1);
      t->repeatable = t->repeated = false;
      return NULL;
    default: break;
  }
  t->repeatable = true;
  t->repeated = false;
  switch (*t->at) {
    case '[': return brackets(t);
    case '^':
    case '$': assertion(t, 1); return NULL;
    case '\\':
      if (t->at[1] == 'Q') {
        quoted(t);
        return NULL;
      }
      return escape(t, false);
    default:
      put(t, *t->at == '{' || *t->at == '}' || *t->at == ']' ? "\\" : "");
      copy(t, 1);
      return NULL;
  }
}

status regex_translate(arena *a, const char *re2, const char **pcre2) {
  translation t = {.start = re2, .at = re2, .out = {.arena = a}};
  while (*t.at) {
    TRY(item(&t));
  }
  CHECK_THAT(t.depth == 0, INVALID, "a group that is not closed at byte %zu", BYTE(&t));
  *pcre2 = text_builder_end(&t.out);
  return NULL;
}
