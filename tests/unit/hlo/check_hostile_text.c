/* check_hostile_text.c - damaged HLO text.  With a random seed, a file of tests/hlo is changed in a few places,
 * parsed, verified, transformed by all passes, printed, parsed again and run.  Whatever the text is, each step must
 * succeed or fail with a message of one line. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend_ref/eval.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/suite.h"

enum { FILES_MAX = 512, GROUPS = 20, SEEDS = 1000, SECONDS = 10, MEGABYTES = 512, ARGUMENT_MAX = 1 << 20 };

/* --- files to start from --- */

typedef struct text {
  char *bytes;
  size_t size;
} text;

static text files[FILES_MAX];
static size_t n_files;

static void read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f && n_files < FILES_MAX, "%s", path);
  fseek(f, 0, SEEK_END);
  text t = {.size = (size_t)ftell(f)};
  rewind(f);
  t.bytes = malloc(t.size + 1);
  ck_assert_uint_eq(fread(t.bytes, 1, t.size, f), t.size);
  fclose(f);
  files[n_files++] = t;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* Reads the .hlo files of tests/hlo/<folder>, in an order that does not depend on the file system. */
static void read_folders(void) {
  const char *top = getenv("top_srcdir");
  char path[4096], file[8192];
  snprintf(path, sizeof path, "%s/tests/hlo", top ? top : ".");
  struct dirent **folders, **names;
  int n = scandir(path, &folders, NULL, by_name);
  for (int k = 0; k < n; k++) {
    char folder[4608];
    snprintf(folder, sizeof folder, "%s/%s", path, folders[k]->d_name);
    int m = folders[k]->d_name[0] == '.' ? 0 : scandir(folder, &names, NULL, by_name);
    for (int i = 0; i < m; i++) {
      const char *dot = strrchr(names[i]->d_name, '.');
      if (dot && strcmp(dot, ".hlo") == 0) {
        snprintf(file, sizeof file, "%s/%s", folder, names[i]->d_name);
        read_file(file);
      }
      free(names[i]);
    }
    if (m > 0) {
      free(names);
    }
    free(folders[k]);
  }
  if (n > 0) {
    free(folders);
  }
  ck_assert_msg(n_files > 0, "there is no tests/hlo/*/*.hlo in %s", path);
}

/* --- damage --- */

static uint64_t state;

/* Returns a number below `limit`, by splitmix64. */
static size_t pick(size_t limit) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return limit ? (size_t)(z % limit) : 0;
}

/* Words that are put in the place of others, where they are often valid with another meaning. */
static const char *const words[] = {
    "0",
    "1",
    "-1",
    "2",
    "7",
    "63",
    "64",
    "127",
    "255",
    "65536",
    "4294967296",
    "1099511627776",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e400",
    "nan",
    "-inf",
    "true",
    "pred",
    "s32",
    "s64",
    "f32",
    "f16",
    "u4",
    "c64",
    "str",
    "f32[]",
    "f32[4]",
    "f32[0]",
    "f32[1099511627776]",
    "f32[<=100:n,8]",
    "seq<f32[]>",
    "()",
    "[]",
    "{}",
    "{",
    "}",
    "(",
    ")",
    "%x",
    "%f",
    "%i",
    "%0",
    "%1",
    "relu",
    "main",
    "body",
    "cond",
    "...",
    "blob(0)",
    "\"",
    "//",
    "add",
    "dot",
    "convolution",
    "reduce",
    "while",
    "gather",
    "scatter",
    "sort",
    "fusion",
    "return",
    "computation",
};

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '%';
}

/* Replaces n bytes at `at` by n_with others. */
static void splice(text *t, size_t at, size_t n, const char *with, size_t n_with) {
  char *made = malloc(t->size - n + n_with + 1);
  memcpy(made, t->bytes, at);
  memcpy(made + at, with, n_with);
  memcpy(made + at + n_with, t->bytes + at + n, t->size - at - n);
  free(t->bytes);
  t->bytes = made;
  t->size = t->size - n + n_with;
}

/* Moves *at to the first word at or after it, and sets *n to the word's length. */
static void find_word(const text *t, size_t *at, size_t *n) {
  while (*at < t->size && !is_word(t->bytes[*at])) {
    ++*at;
  }
  *n = 0;
  while (*at + *n < t->size && is_word(t->bytes[*at + *n])) {
    ++*n;
  }
}

/* Returns the class of a word by its first character: the name of a value, a number, or something else. */
static int class_of(char c) { return c == '%' ? 1 : (c >= '0' && c <= '9') || c == '-' ? 2 : 3; }

/* Finds a word of the same class after *at, if there is one soon. */
static void find_alike(const text *t, char like, size_t *at, size_t *n) {
  for (int k = 0; k < 20; k++) {
    find_word(t, at, n);
    if (*n && class_of(t->bytes[*at]) == class_of(like)) {
      return;
    }
    *at += *n;
  }
}

static void change(text *t) {
  size_t at = pick(t->size), n, from = pick(t->size), n_from;
  char *other;
  switch (pick(12)) {
    case 0: /* flips a bit */
      if (t->size) {
        t->bytes[at] = (char)(t->bytes[at] ^ (1 << pick(8)));
      }
      break;
    case 1: /* removes some bytes */
      n = pick(40);
      splice(t, at, n < t->size - at ? n : t->size - at, "", 0);
      break;
    case 2: /* repeats a line elsewhere */
      n_from = 1 + strcspn(t->bytes + from, "\n");
      n_from = n_from < t->size - from ? n_from : t->size - from;
      other = memcpy(malloc(n_from + 1), t->bytes + from, n_from);
      splice(t, at, 0, other, n_from);
      free(other);
      break;
    case 3: /* replaces a word by another word of the file */
    case 4:
    case 5:
    case 6:
    case 7:
      find_word(t, &at, &n);
      find_alike(t, n ? t->bytes[at] : 'a', &from, &n_from);
      other = memcpy(malloc(n_from + 1), t->bytes + from, n_from);
      splice(t, at, n, other, n_from);
      free(other);
      break;
    default: /* replaces a word by one of `words` */
      find_word(t, &at, &n);
      other = (char *)words[pick(sizeof words / sizeof *words)];
      splice(t, at, n, other, strlen(other));
  }
}

static text damaged(uint64_t seed) {
  state = seed;
  const text *from = &files[pick(n_files)];
  text t = {.size = from->size};
  t.bytes = malloc(t.size + 1);
  memcpy(t.bytes, from->bytes, t.size);
  t.bytes[t.size] = 0;
  for (size_t k = 1 << pick(3); k > 0; k -= k > 1 ? 2 : 1) {
    change(&t);
    t.bytes[t.size] = 0;
  }
  /* The memory has exactly this size, so that a sanitizer notices reads beyond its end. */
  return (text){realloc(t.bytes, t.size ? t.size : 1), t.size};
}

/* --- what is done with it --- */

typedef struct job {
  arena *arena;
  text text;
  int steps; /* the number of steps that the text has passed */
} job;

static status run_entry(arena *a, const hlo_module *m) {
  const hlo_computation *c = m->entry;
  literal *args = ARENA_NEW_N(a, literal, c->n_params + 1);
  for (uint32_t k = 0; k < c->n_params; k++) {
    const shape *s = &c->params[k]->shapes[0];
    if (s->kind != SHAPE_ARRAY || !shape_is_static(s) || shape_bytes(s) > ARGUMENT_MAX) {
      return NULL;
    }
    args[k] = (literal){.shape = *s, .data = arena_calloc(a, 1, (size_t)shape_bytes(s) + 1)};
  }
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (!ref_supports(i)) {
      return NULL;
    }
  }
  return ref_eval_computation(c, args, a, ARENA_NEW_N(a, literal, c->n_roots + 1));
}

static status work(void *data) {
  job *j = data;
  hlo_module *m, *again;
  const char *printed;
  size_t size;
  TRY(hlo_parse(j->arena, j->text.bytes, j->text.size, NULL, &m));
  j->steps = 1;
  uint32_t n;
  const hlo_pass_info *passes = hlo_pass_list(&n);
  hlo_pass *steps = ARENA_NEW_N(j->arena, hlo_pass, n);
  for (uint32_t k = 0; k < n; k++) {
    steps[k] = (hlo_pass){.name = passes[k].name, .run = passes[k].run};
  }
  pass_context context = {
      .arena = j->arena, .eval = ref_fold, .any_order = true, .verify = true, .check_changed = true};
  TRY(hlo_run_passes(m, steps, n, &context));
  TRY(hlo_print(j->arena, m, NULL, &printed, &size));
  status s = hlo_parse(j->arena, printed, size, NULL, &again);
  CHECK_THAT(!s, STATUS_INTERNAL, "what was printed is not read: %s", status_message(s));
  j->steps = 2;
  TRY(run_entry(j->arena, again));
  j->steps = 3;
  return NULL;
}

static uint64_t deadline(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return ((uint64_t)t.tv_sec + SECONDS) * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the number of steps that the damaged text passed. */
static int try_seed(uint64_t seed) {
  mem_budget budget = {.limit = (uint64_t)MEGABYTES << 20, .deadline = deadline()};
  job j = {.arena = arena_create(&budget), .text = damaged(seed)};
  status s = guard_run(work, &j);
  const char *message = status_message(s);
  ck_assert_msg(status_get_code(s) != STATUS_INTERNAL, "seed %llu: %s", (unsigned long long)seed, message);
  ck_assert_msg(!s || (*message && !strchr(message, '\n')), "seed %llu: not one line: %s", (unsigned long long)seed,
                message);
  status_free(s);
  arena_destroy(j.arena);
  free(j.text.bytes);
  return j.steps;
}

START_TEST(damage) {
  const char *one = getenv("HOSTILE_SEED"); /* the only seed to try, such as one that failed */
  int reached[4] = {0};
  uint64_t first = (uint64_t)_i * SEEDS;
  read_folders();
  if (one) {
    uint64_t seed = strtoull(one, NULL, 10);
    text t = damaged(seed);
    fwrite(t.bytes, 1, t.size, stdout);
    fflush(stdout);
    free(t.bytes);
    try_seed(seed);
    return;
  }
  for (uint64_t k = 0; k < SEEDS; k++) {
    fprintf(stderr, "%s%llu", k ? " " : "seeds ", (unsigned long long)(first + k));
    reached[try_seed(first + k)]++;
  }
  fprintf(stderr, "\nrefused %d, a pass failed %d, did not run %d, ran %d\n", reached[0], reached[1], reached[2],
          reached[3]);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("text");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, damage, 0, getenv("HOSTILE_SEED") ? 1 : GROUPS);
  return run_suite("hostile_text", c);
}
