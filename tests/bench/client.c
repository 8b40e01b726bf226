/* client.c - client ENGINE LIBRARY MODEL THREADS NAME:TYPE:DIMS:FILE...: an engine with a model in a process of its
 * own, which run_bench.py talks to.  It loads the model, runs it once, and prints `ready`; then it answers lines of
 * standard input:
 *
 *   measure SECONDS RUNS WARM-UP   does WARM-UP runs, and then measures at least RUNS runs, for SECONDS or longer:
 *                                  prints "MIN MEDIAN RUNS", in seconds; if SECONDS is not 0, the engine may first
 *                                  finish what it does in the background
 *   burst RUNS                     prints the seconds that RUNS runs take; between them the clock is not read
 *   outputs FOLDER                 runs and writes output K to FOLDER/K.bin: prints "COUNT", and a line "TYPE DIMS" for
 *                                  each output
 *   input NAME:TYPE:DIMS:FILE      replaces an input; the next run may have other shapes
 *   carry OUTPUT=INPUT...          from now on, these outputs (by number) of a run of a list are inputs of the next one
 *   list FILE                      runs once for each line of the file, which has inputs, separated by blanks, that
 *                                  replace those of the same names: prints the seconds of each run from the moment at
 *                                  which its inputs were in memory, separated by blanks
 *   cpu                            prints the seconds of all cores that the process has used
 *   memory                         prints megabytes: now, and at the most
 *
 * TYPE is ONNX's number, DIMS are 1x3x224x224 (empty for a scalar), FILE has only the elements.  The engines'
 * libraries are opened, not linked, so that each process has one of them. */
#define _GNU_SOURCE
#include "client.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const engine *const engines[] = {&engine_ours, &engine_ort, &engine_openvino, &engine_linked};
static const engine *current;
static tensor inputs[MAX_TENSORS];
static int n_inputs;

/* An output that is an input of the next run. */
typedef struct carried {
  int output;
  char *input;
} carried;
static carried carries[MAX_TENSORS];
static int n_carries;
static bool has_run_list; /* whether the last run was one of a list */

void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

void *open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    die("%s", dlerror());
  }
  return library;
}

void *need_symbol(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    die("the library has no %s", name);
  }
  return symbol;
}

/* --- inputs and outputs --- */

static void read_file(tensor *t, const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END)) {
    die("%s cannot be read", path);
  }
  t->bytes = (size_t)ftell(f);
  rewind(f);
  t->data = aligned_alloc(64, (t->bytes + 127) / 64 * 64);
  if (!t->data || fread(t->data, 1, t->bytes, f) != t->bytes) {
    die("%s cannot be read", path);
  }
  fclose(f);
}

/* Reads NAME:TYPE:DIMS:FILE, of which only NAME may contain colons. */
static tensor read_tensor(char *text) {
  tensor t = {0};
  char *parts[3];
  for (int i = 2; i >= 0; i--) {
    char *colon = strrchr(text, ':');
    if (!colon) {
      die("%s is no NAME:TYPE:DIMS:FILE", text);
    }
    *colon = 0;
    parts[i] = colon + 1;
  }
  t.name = strdup(text);
  t.type = atoi(parts[0]);
  for (char *d = parts[1]; *d && t.rank < MAX_DIMS; d += *d == 'x') {
    t.dims[t.rank++] = strtoll(d, &d, 10);
  }
  read_file(&t, parts[2]);
  return t;
}

static void replace_input(char *text) {
  tensor t = read_tensor(text);
  for (int i = 0; i < n_inputs; i++) {
    if (strcmp(inputs[i].name, t.name) == 0) {
      free(inputs[i].data);
      free(inputs[i].name);
      inputs[i] = t;
    }
  }
  current->set_inputs(1, &t);
}

static void write_outputs(const char *folder) {
  tensor out[MAX_TENSORS];
  if (!has_run_list) { /* with carried outputs, another run would be another step */
    current->run();
  }
  int n = current->outputs(out);
  printf("%d\n", n);
  for (int k = 0; k < n; k++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.bin", folder, k);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(out[k].data, 1, out[k].bytes, f) != out[k].bytes || fclose(f)) {
      die("%s cannot be written", path);
    }
    printf("%d ", out[k].type);
    for (int d = 0; d < out[k].rank; d++) {
      printf(d ? "x%lld" : "%lld", (long long)out[k].dims[d]);
    }
    printf("\n");
  }
}

/* --- measuring --- */

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(double least_seconds, long least_runs, long warm_up) {
  enum { MOST = 1 << 20 };
  static double times[MOST];
  if (least_seconds > 0 && current->settle) {
    current->settle();
  }
  for (long i = 0; i < warm_up; i++) {
    current->run();
  }
  long n = 0;
  double start = seconds(CLOCK_MONOTONIC), before = start;
  while (n < MOST && (n < least_runs || before - start < least_seconds)) {
    current->run();
    double now = seconds(CLOCK_MONOTONIC);
    times[n++] = now - before;
    before = now;
  }
  qsort(times, (size_t)n, sizeof times[0], by_value);
  printf("%.9f %.9f %ld\n", times[0], (times[(n - 1) / 2] + times[n / 2]) / 2, n);
}

static void burst(long runs) {
  double start = seconds(CLOCK_MONOTONIC);
  for (long i = 0; i < runs; i++) {
    current->run();
  }
  printf("%.9f\n", seconds(CLOCK_MONOTONIC) - start);
}

/* --- lists --- */

static void read_carries(char *text) {
  n_carries = 0;
  for (char *word = strtok(text, " "); word && n_carries < MAX_TENSORS; word = strtok(NULL, " ")) {
    char *name = strchr(word, '=');
    if (!name) {
      die("%s is no OUTPUT=INPUT", word);
    }
    carries[n_carries++] = (carried){atoi(word), strdup(name + 1)};
  }
}

typedef struct list_step {
  int n;
  tensor *inputs;
} list_step;

static list_step read_step(char *line) {
  list_step s = {0, calloc(MAX_TENSORS, sizeof(tensor))};
  for (char *word = strtok(line, " \n"); word && s.inputs && s.n < MAX_TENSORS; word = strtok(NULL, " \n")) {
    s.inputs[s.n++] = read_tensor(word);
  }
  return s;
}

static double timed_step(const list_step *s, bool follows) {
  double start = seconds(CLOCK_MONOTONIC);
  for (int k = 0; follows && k < n_carries; k++) {
    current->carry(carries[k].output, carries[k].input);
  }
  current->set_inputs(s->n, s->inputs);
  current->run();
  return seconds(CLOCK_MONOTONIC) - start;
}

/* All inputs are read before the first run.  Their memory is not freed: engines borrow it. */
static void run_list(const char *path) {
  enum { MOST = 4096 };
  static list_step steps[MOST];
  static char line[1 << 16];
  int n = 0;
  FILE *f = fopen(path, "r");
  while (f && n < MOST && fgets(line, sizeof line, f)) {
    steps[n++] = read_step(line);
  }
  if (!f) {
    die("%s cannot be read", path);
  }
  fclose(f);
  for (int k = 0; k < n; k++) {
    printf("%s%.9f", k ? " " : "", timed_step(&steps[k], k > 0));
  }
  printf("\n");
  has_run_list = true;
}

/* Returns a number of the process in megabytes.  getrusage is not used, since its peak may be that of the process that
 * started this one. */
static double status_megabytes(const char *key) {
  char line[256];
  long kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, key, strlen(key)) == 0) {
      kilobytes = atol(line + strlen(key));
    }
  }
  if (f) {
    fclose(f);
  }
  return (double)kilobytes / 1024;
}

static void answer(char *line) {
  char *rest = strchr(line, ' ');
  if (rest) {
    *rest++ = 0;
  }
  double least_seconds = 0;
  long least_runs = 1, warm_up = 0;
  if (strcmp(line, "measure") == 0 && rest && sscanf(rest, "%lf %ld %ld", &least_seconds, &least_runs, &warm_up) >= 2) {
    measure(least_seconds, least_runs, warm_up);
  } else if (strcmp(line, "burst") == 0 && rest) {
    burst(atol(rest));
  } else if (strcmp(line, "outputs") == 0 && rest) {
    write_outputs(rest);
  } else if (strcmp(line, "input") == 0 && rest) {
    replace_input(rest);
    has_run_list = false;
    printf("set\n");
  } else if (strcmp(line, "carry") == 0 && rest) {
    read_carries(rest);
    printf("%d\n", n_carries);
  } else if (strcmp(line, "list") == 0 && rest) {
    run_list(rest);
  } else if (strcmp(line, "cpu") == 0) {
    printf("%.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID));
  } else if (strcmp(line, "memory") == 0) {
    printf("%.2f %.2f\n", status_megabytes("VmRSS:"), status_megabytes("VmHWM:"));
  } else {
    die("what is %s?", line);
  }
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc < 5 || argc - 5 > MAX_TENSORS) {
    die("usage: client ENGINE LIBRARY MODEL THREADS NAME:TYPE:DIMS:FILE...");
  }
  for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
    if (engines[i] && strcmp(engines[i]->name, argv[1]) == 0) {
      current = engines[i];
    }
  }
  if (!current) {
    die("there is no engine %s", argv[1]);
  }
  for (int i = 5; i < argc; i++) {
    inputs[n_inputs++] = read_tensor(argv[i]);
  }
  current->load(argv[2], argv[3], atoi(argv[4]), n_inputs, inputs);
  current->run();
  printf("ready\n");
  fflush(stdout);
  static char line[1 << 16];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    answer(line);
  }
  if (current->close) {
    current->close();
  }
  /* What engines do when they are shut down is not measured, and some crash then. */
  fflush(stdout);
  _exit(0);
}
