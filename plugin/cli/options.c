/* options.c - parses options, by the table in options.def. */
#include "plugin/cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"

/* The types of options, as in options.def: how an argument is read. */
typedef enum option_type {
  option_flag,
  option_text,
  option_choice,
  option_count,
  option_integer,
  option_bytes,
  option_number,
  option_pairs
} option_type;

typedef struct option {
  const char *name;
  char letter; /* 0 if there is none */
  const char *argument;
  option_type type;
  size_t offset; /* the offset of the member in cli_args */
  unsigned commands;
  const char *help;
} option;

enum { MODEL_COMMANDS = CLI_RUN | CLI_COMPILE | CLI_TEST | CLI_BENCH | CLI_PROFILE | CLI_VERIFY };

static const option options[] = {
#define AT(member) offsetof(cli_args, member)
#define CLI_OPTION(type, member, value, name, letter, argument, commands, help) \
  {name, letter, argument, option_##type, AT(member), commands, help},
#define USER_OPTION(member, key, scope, type, name, option, letter, argument, help)       \
  {option,                                                                                \
   letter,                                                                                \
   argument,                                                                              \
   option_##type,                                                                         \
   AT(session.member),                                                                    \
   MODEL_COMMANDS | (AT(session.member) == AT(session.compile.threads) ? CLI_RUNNER : 0), \
   help},
#include "plugin/cli/options.def"
#undef AT
};
enum { N_OPTIONS = sizeof options / sizeof *options };

static const cli_args defaults = {
#define CLI_OPTION(type, member, value, ...) .member = value,
#include "plugin/cli/options.def"
};

/* --- messages --- */

/* The largest length of the words whose edit distance is computed. */
enum { WORD_MAX = 32 };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Returns the edit distance (insertions, deletions, changes) of two words; WORD_MAX if a word is longer than that. */
static uint32_t edits(const char *a, const char *b) {
  uint32_t row[WORD_MAX + 1], n = (uint32_t)strlen(b);
  if (n > WORD_MAX || strlen(a) > WORD_MAX) {
    return WORD_MAX;
  }
  for (uint32_t j = 0; j <= n; j++) {
    row[j] = j;
  }
  for (uint32_t i = 1; a[i - 1]; i++) {
    uint32_t corner = row[0];
    row[0] = i;
    for (uint32_t j = 1; j <= n; j++) {
      uint32_t change = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = least(change, least(row[j], row[j - 1]) + 1);
    }
  }
  return row[n];
}

const char *cli_nearest(const char *word, const char *const *words, uint32_t n) {
  const char *best = NULL;
  uint32_t fewest = 3; /* with more edits it is probably another word */
  for (uint32_t k = 0; k < n; k++) {
    size_t length = strlen(word);
    uint32_t far = length >= 3 && strncmp(word, words[k], length) == 0 ? 1 : edits(word, words[k]);
    if (far < fewest && far < strlen(words[k])) {
      fewest = far;
      best = words[k];
    }
  }
  return best;
}

static int usage(const cli_command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int usage(const cli_command *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: ", c->called);
  vfprintf(stderr, format, args);
  fprintf(stderr, " (see %s --help)\n", c->called);
  va_end(args);
  return CLI_USAGE;
}

static int unknown_option(const cli_command *c, const char *text, size_t length) {
  const char *names[N_OPTIONS];
  char word[WORD_MAX + 1] = "";
  uint32_t n = 0;
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    if (options[k].commands & c->bit) {
      names[n++] = options[k].name;
    }
  }
  const char *near = NULL;
  if (length > 2 && length - 2 <= WORD_MAX) {
    memcpy(word, text + 2, length - 2);
    near = cli_nearest(word, names, n);
  }
  return near ? usage(c, "unknown option '%.*s'; did you mean --%s?", (int)length, text, near)
              : usage(c, "unknown option '%.*s'", (int)length, text);
}

/* --- values --- */

static bool read_count(const char *text, bool suffix, int64_t *out) {
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (errno || end == text || *out < 0 || *text < '0' || *text > '9') {
    return false;
  }
  static const char units[] = "KMG";
  const char *unit = suffix && *end ? strchr(units, *end) : NULL;
  if (unit) {
    int shift = 10 * (int)(unit - units + 1);
    if (*out > INT64_MAX >> shift) {
      return false;
    }
    *out <<= shift;
    end++;
  }
  return *end == '\0';
}

static bool read_number(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(*out) && *out >= 0;
}

static bool read_small(const char *value, uint32_t *out) {
  int64_t wide;
  bool good = read_count(value, false, &wide) && wide <= INT32_MAX;
  *out = good ? (uint32_t)wide : 0;
  return good;
}

static bool add_pair(const char *value, arena *a, cli_list *list) {
  const char *equals = strchr(value, '=');
  *ARENA_PUSH(a, list->items, list->n, list->cap) = value;
  return equals && equals != value;
}

static int set(const cli_command *c, const option *o, const char *value, arena *a, cli_args *out) {
  void *member = (char *)out + o->offset;
  bool good = true;
  switch (o->type) {
    case option_flag: *(bool *)member = true; break;
    case option_choice:
      good = is_choice(o->argument, value);
      *(const char **)member = value;
      break;
    case option_text: *(const char **)member = value; break;
    case option_count: good = read_small(value, member); break;
    case option_integer:
    case option_bytes: good = read_count(value, o->type == option_bytes, member); break;
    case option_number: good = read_number(value, member); break;
    case option_pairs: good = add_pair(value, a, member); break;
  }
  return good ? CLI_OK : usage(c, "--%s takes %s, not '%s'", o->name, o->argument, value);
}

/* --- parsing --- */

/* Finds the option in an argument: --name, --name=value, -n or -nvalue.  *value is NULL if the value is not in this
 * argument. */
static const option *find(const cli_command *c, const char *text, size_t *length, const char **value) {
  bool is_long = text[1] == '-';
  *length = is_long ? strcspn(text, "=") : 2;
  *value = text[*length] ? text + *length + is_long : NULL;
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    const option *o = &options[k];
    bool same =
        is_long ? strlen(o->name) == *length - 2 && memcmp(o->name, text + 2, *length - 2) == 0 : o->letter == text[1];
    if (same && (o->commands & c->bit)) {
      return o;
    }
  }
  return NULL;
}

static int check_files(const cli_command *c, const cli_args *args) {
  if (args->files.n > c->max_files) {
    return usage(c, "there is one file too many: '%s'", args->files.items[c->max_files]);
  }
  if (args->files.n < c->min_files && !args->list) {
    return usage(c, "%s is missing", c->operands);
  }
  return CLI_OK;
}

int cli_parse(const cli_command *c, int argc, char **argv, arena *a, cli_args *out) {
  bool only_files = false;
  *out = defaults;
  for (int k = 0; k < argc; k++) {
    const char *text = argv[k], *value;
    size_t length;
    if (only_files || text[0] != '-' || text[1] == '\0') {
      *ARENA_PUSH(a, out->files.items, out->files.n, out->files.cap) = text;
      continue;
    }
    if (strcmp(text, "--") == 0) {
      only_files = true;
      continue;
    }
    const option *o = find(c, text, &length, &value);
    if (!o) {
      return unknown_option(c, text, length);
    }
    if (o->type == option_flag && value) {
      return usage(c, "--%s takes no argument", o->name);
    }
    if (o->type != option_flag && !value && k + 1 == argc) {
      return usage(c, "--%s needs %s", o->name, o->argument);
    }
    int code = set(c, o, o->type == option_flag || value ? value : argv[++k], a, out);
    if (code) {
      return code;
    }
  }
  return out->help ? CLI_OK : check_files(c, out);
}

/* --- help --- */

enum { COLUMN = 31 };

static void print_option(FILE *f, const option *o) {
  char left[80];
  snprintf(left, sizeof left, "  %c%c%s--%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
           o->letter ? ", " : "  ", o->name, o->argument ? (o->type == option_choice ? "=" : " ") : "",
           o->argument ? o->argument : "");
  if (strlen(left) < COLUMN) {
    fprintf(f, "%-*s %s\n", COLUMN, left, o->help);
  } else {
    fprintf(f, "%s\n%-*s %s\n", left, COLUMN, "", o->help);
  }
}

void cli_print_help(FILE *f, const cli_command *c) {
  fprintf(f, "usage: %s [OPTION]... %s\n\n%s\n\n", c->called, c->operands, c->summary);
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    if (options[k].commands & c->bit) {
      print_option(f, &options[k]);
    }
  }
  if (c->more) {
    fprintf(f, "\n%s", c->more);
  }
}
