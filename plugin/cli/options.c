#include "plugin/cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* How an option's argument is read, and into what. */
typedef enum kind {
  FLAG,   /* bool; no argument */
  TEXT,   /* const char * */
  PAIRS,  /* cli_list of NAME=VALUE; may be repeated */
  COUNT,  /* int64_t, not negative */
  BYTES,  /* int64_t, with K, M, G behind it */
  NUMBER, /* double, not negative */
  CHOICE  /* const char *, one of `argument`, which is written a|b|c */
} kind;

typedef struct option {
  const char *name;
  char letter; /* 0: none */
  const char *argument;
  kind kind;
  size_t offset;
  unsigned commands;
  const char *help;
} option;

#define AT(field) offsetof(cli_args, field)
enum { MODEL_COMMANDS = CLI_RUN | CLI_COMPILE | CLI_TEST | CLI_BENCH | CLI_PROFILE | CLI_VERIFY };

static const option options[] = {
    {"input", 'i', "NAME=FILE", PAIRS, AT(inputs), CLI_RUN | CLI_BENCH | CLI_PROFILE | CLI_COMPILE | CLI_VERIFY,
     "an input from a .npy or ONNX .pb file (others: seeded random ones)"},
    {"output-dir", 'O', "DIR", TEXT, AT(output_dir), CLI_RUN | CLI_VERIFY,
     "writes every output to DIR/output_K.pb (run), or what shows a difference to DIR (verify; .)"},
    {"all-algorithms", 0, NULL, FLAG, AT(all_algorithms), CLI_VERIFY, "checks every way to compute each contraction"},
    {"set-of-sizes", 0, "NAME=N,...", PAIRS, AT(sets), CLI_VERIFY,
     "verifies the model with these sizes; may be repeated"},
    {"format", 0, "pb|npy", CHOICE, AT(format), CLI_RUN, "of the files in the output folder (pb)"},
    {"output", 'o', "FILE", TEXT, AT(output), CLI_COMPILE | CLI_OPT, "where the result goes; - is standard output"},
    {"emit", 0, "oxla|hlo|buffers|llvm|asm|ptx", CHOICE, AT(emit), CLI_COMPILE,
     "what to write: the executable (default), or a text"},
    {"after", 0, "PASS", TEXT, AT(after), CLI_COMPILE,
     "with --emit=hlo: the module as that pass leaves it; final: as it is lowered"},
    {"no-constants", 0, NULL, FLAG, AT(no_constants), CLI_COMPILE,
     "with --emit=hlo: large constants as '...', for reading; such a text cannot be compiled"},
    {"explain", 0, "NODE", TEXT, AT(explain), CLI_COMPILE,
     "writes what became of a node, by its name or an output's: folded, fused, computed how, kept where"},
    {"passes", 'p', "NAME,...", TEXT, AT(passes), CLI_OPT, "the passes to run, in this order"},
    {"list", 0, NULL, FLAG, AT(list), CLI_OPT | CLI_CHECK,
     "lists the passes and their contracts (opt), or all operators and their types (check)"},
    {"rtol", 0, "R", NUMBER, AT(rtol), CLI_TEST, "relative tolerance (the case's own, or 1e-3)"},
    {"atol", 0, "A", NUMBER, AT(atol), CLI_TEST, "absolute tolerance (the case's own, or 1e-7)"},
    {"expect-fail", 0, "FILE", TEXT, AT(expect_fail), CLI_TEST,
     "cases that are known to fail: lines 'case reason', # begins a comment"},
    {"strict-list", 0, NULL, FLAG, AT(strict_list), CLI_TEST, "a listed case that is not there is a failure"},
    {"write-expect-fail", 0, "FILE", TEXT, AT(write_expect_fail), CLI_TEST,
     "writes such a list of what fails now, with the reasons; no wrong numbers but those of the old list"},
    {"timeout", 0, "SECONDS", NUMBER, AT(timeout), CLI_TEST, "that a case may take (60)"},
    {"jobs", 'j', "N", COUNT, AT(jobs), CLI_TEST, "cases at a time (all cores)"},
    {"slowest", 0, "N", COUNT, AT(slowest), CLI_TEST, "shows what took longest to compile, and times in all"},
    {"runs", 'n', "N", COUNT, AT(runs), CLI_BENCH | CLI_PROFILE, "measured runs at least (10)"},
    {"seconds", 0, "T", NUMBER, AT(seconds), CLI_BENCH | CLI_PROFILE, "measured at least (1)"},
    {"warm-up", 0, "N", COUNT, AT(warm_up), CLI_BENCH | CLI_PROFILE, "runs before measuring, beside the first (3)"},
    {"top", 0, "N", COUNT, AT(top), CLI_PROFILE, "rows of each table (20; 0: all)"},
    {"trace", 0, "FILE.json", TEXT, AT(trace), CLI_PROFILE, "writes the fastest run for Chrome's tracing page"},
    {"json", 0, NULL, FLAG, AT(json), CLI_BENCH | CLI_PROFILE, "prints the numbers as one JSON object"},
    {"backend", 'b', "cpu|ref|FILE.so", TEXT, AT(backend), MODEL_COMMANDS | CLI_CHECK, "what runs the model (cpu)"},
    {"cpu", 0, "NAME", TEXT, AT(cpu), MODEL_COMMANDS,
     "processor to compile for: native (default), x86-64, x86-64-v3, ..."},
    {"lanes", 0, "N", COUNT, AT(lanes), MODEL_COMMANDS, "f32 lanes of a vector: 1, 4, 8, 16 (the processor's widest)"},
    {"threads", 't', "N", COUNT, AT(threads), MODEL_COMMANDS, "that a run uses (all cores; test: 1)"},
    {"skip-pass", 0, "NAME,...", TEXT, AT(skip_passes), MODEL_COMMANDS,
     "passes that the compiler leaves out (onnx-xla opt --list names them)"},
    {"tune", 0, "off|fast|full", CHOICE, AT(tune), MODEL_COMMANDS,
     "time the ways to compute a contraction: never, a few seconds at most (default; test: off), or all"},
    {"precision", 0, "fp32|bf16|fp16", CHOICE, AT(precision), MODEL_COMMANDS,
     "what f32 operands of contractions may be rounded to where that is measured to be faster (fp32)"},
    {"cache", 0, "DIR", TEXT, AT(cache), MODEL_COMMANDS | CLI_CACHE,
     "what was measured and compiled is kept there ($ONNX_XLA_CACHE, or the user's cache)"},
    {"no-cache", 0, NULL, FLAG, AT(no_cache), MODEL_COMMANDS, "keeps nothing and finds nothing there"},
    {"cache-size", 0, "BYTES", BYTES, AT(cache_size), CLI_RUN | CLI_BENCH, "of compiled programs that are kept (8G)"},
    {"parallel", 0, "N", COUNT, AT(parallel), CLI_BENCH, "runs at a time, which share the threads (1)"},
    {"warm", 0, NULL, FLAG, AT(warm), CLI_BENCH, "takes the program from the cache if it is there, as run does"},
    {"clear", 0, NULL, FLAG, AT(clear), CLI_CACHE, "removes all of it"},
    {"remove", 0, "NAME", TEXT, AT(remove), CLI_CACHE, "removes one file, by the name that --verbose shows"},
    {"verify", 0, NULL, FLAG, AT(verify), CLI_INFO, "reads all constants and compares them with their sums"},
    {"exact", 0, NULL, FLAG, AT(exact), MODEL_COMMANDS, "nothing that rounds differently from a plain sum of products"},
    {"deterministic", 0, NULL, FLAG, AT(deterministic), MODEL_COMMANDS,
     "the same bits for any number of threads and each compilation: nothing is timed"},
    {"unchecked", 0, NULL, FLAG, AT(unchecked), MODEL_COMMANDS,
     "indices out of range and integers divided by 0 give some number, instead of an error"},
    {"check-memory", 0, NULL, FLAG, AT(check_memory), CLI_RUN | CLI_TEST | CLI_BENCH,
     "names each step that touches memory which is not its own, and results that nothing wrote; takes long"},
    {"dim", 'd', "NAME=N", PAIRS, AT(dims), MODEL_COMMANDS | CLI_CHECK, "size of a symbolic dimension (1)"},
    {"shape", 0, "NAME=AxBxC", PAIRS, AT(shapes), CLI_RUN | CLI_COMPILE | CLI_BENCH | CLI_PROFILE | CLI_VERIFY,
     "shape of an input that is not given, where it has nameless open dimensions"},
    {"seed", 0, "N", COUNT, AT(seed), CLI_RUN | CLI_BENCH | CLI_PROFILE | CLI_VERIFY,
     "of random inputs (0) and random operators (each run its own)"},
    {"max-memory", 0, "BYTES", BYTES, AT(max_memory), MODEL_COMMANDS | CLI_CHECK,
     "for loading, compiling and running; K, M and G are understood (no limit)"},
    {"max-time", 0, "SECONDS", NUMBER, AT(max_seconds), MODEL_COMMANDS | CLI_CHECK,
     "for loading, for compiling, for making random inputs and for each run (no limit)"},
    {"quiet", 'q', NULL, FLAG, AT(quiet), CLI_ALL, "prints errors and results only"},
    {"verbose", 'v', NULL, FLAG, AT(verbose), CLI_RUN | CLI_TEST | CLI_COMPILE | CLI_CACHE, "prints more"},
    {"help", 'h', NULL, FLAG, AT(help), CLI_ALL, "this page"},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

static const cli_args defaults = {.rtol = -1,
                                  .atol = -1,
                                  .timeout = 60,
                                  .runs = 10,
                                  .parallel = 1,
                                  .seconds = 1,
                                  .warm_up = 3,
                                  .top = 20,
                                  .seed = -1};

/* --- messages --- */

/* Two rows of the table of edits: names are short. */
enum { WORD_MAX = 32 };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Insertions, deletions and changes between two words; WORD_MAX for long ones. */
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
  uint32_t fewest = 3; /* more is no typing mistake */
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
  fprintf(stderr, "onnx-xla %s: ", c->name);
  vfprintf(stderr, format, args);
  fprintf(stderr, " (see onnx-xla %s --help)\n", c->name);
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

/* Whether text is one of the words in a|b|c. */
static bool is_choice(const char *text, const char *words) {
  size_t n = strlen(text);
  for (const char *at = words; n && at; at = strchr(at, '|')) {
    at += *at == '|';
    if (strncmp(at, text, n) == 0 && (at[n] == '|' || at[n] == '\0')) {
      return true;
    }
  }
  return false;
}

static int set(const cli_command *c, const option *o, const char *value, arena *a, cli_args *out) {
  void *field = (char *)out + o->offset;
  bool good = true;
  switch (o->kind) {
    case FLAG: *(bool *)field = true; break;
    case TEXT: *(const char **)field = value; break;
    case PAIRS: {
      cli_list *list = field;
      const char *equals = strchr(value, '=');
      good = equals && equals != value && equals[1];
      *ARENA_PUSH(a, list->items, list->n, list->cap) = value;
      break;
    }
    case COUNT:
    case BYTES: good = read_count(value, o->kind == BYTES, field); break;
    case NUMBER: good = read_number(value, field); break;
    case CHOICE:
      *(const char **)field = value;
      good = is_choice(value, o->argument);
      break;
  }
  return good ? CLI_OK : usage(c, "--%s takes %s, not '%s'", o->name, o->argument, value);
}

/* --- parsing --- */

/* The option that argv[k] begins with: --name, --name=value, -n, -nvalue; *value NULL where it would be the
 * next word. */
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
    return usage(c, "'%s' is one file too many", args->files.items[c->max_files]);
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
    if (o->kind == FLAG && value) {
      return usage(c, "--%s takes no argument", o->name);
    }
    if (o->kind != FLAG && !value && k + 1 == argc) {
      return usage(c, "--%s wants %s", o->name, o->argument);
    }
    int code = set(c, o, o->kind == FLAG || value ? value : argv[++k], a, out);
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
           o->letter ? ", " : "  ", o->name, o->argument ? (o->kind == CHOICE ? "=" : " ") : "",
           o->argument ? o->argument : "");
  if (strlen(left) < COLUMN) {
    fprintf(f, "%-*s %s\n", COLUMN, left, o->help);
  } else {
    fprintf(f, "%s\n%-*s %s\n", left, COLUMN, "", o->help);
  }
}

void cli_print_help(FILE *f, const cli_command *c) {
  fprintf(f, "usage: onnx-xla %s [OPTION]... %s\n\n%s\n\n", c->name, c->operands, c->summary);
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    if (options[k].commands & c->bit) {
      print_option(f, &options[k]);
    }
  }
  if (c->more) {
    fprintf(f, "\n%s", c->more);
  }
}
