/* prog_fuzz_bytes.c - see README.  With -DBYTES_LIBFUZZER, libFuzzer's main function drives it; otherwise the main
 * function below does, which reads files and damages them, always in the same way. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/bytes/mutate.h"
#include "tests/fuzz/bytes/targets.h"

static const bytes_target *chosen(void) {
  static const bytes_target *t;
  const char *name = getenv("BYTES_TARGET");
  t = t ? t : bytes_target_find(name ? name : "");
  if (!t) {
    fprintf(stderr, "BYTES_TARGET must be one of:");
    for (unsigned k = 0; bytes_target_at(k); k++) {
      fprintf(stderr, " %s", bytes_target_at(k)->name);
    }
    fprintf(stderr, "\n");
    exit(2);
  }
  return t;
}

#ifdef BYTES_LIBFUZZER

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  chosen()->run(bytes, size);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  const bytes_target *t = chosen();
  return t->mutate && seed % 3 ? t->mutate(bytes, size, most, seed) : LLVMFuzzerMutate(bytes, size, most);
}

#else

enum { MOST = 1 << 16, SECONDS = 60 /* an input that takes longer counts as hanging */ };

/* The input that is being tried, for the message of a crash. */
static struct {
  char file[512];
  uint64_t seed;
} now;

static void crashed(int number) {
  char text[700];
  int n = snprintf(text, sizeof text, "\nFAIL: signal %d with %s, seed %llu\n", number, now.file,
                   (unsigned long long)now.seed);
  (void)!write(2, text, (size_t)n);
  signal(number, SIG_DFL);
  raise(number);
}

typedef struct playing {
  long runs, done, accepted, accepted_whole; /* numbers of inputs: to be tried for each file, tried so far, accepted,
                                                and accepted without damage */
  uint64_t seed;
  double until; /* 0: no limit */
} playing;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void try_one(playing *p, const uint8_t *bytes, size_t size) {
  alarm(SECONDS);
  bool accepted = chosen()->run(bytes, size);
  alarm(0);
  p->done++;
  p->accepted += accepted;
  p->accepted_whole += accepted && now.seed == 0;
}

/* Tries the file as it is (seed 0), and then once with the damage of each seed. */
static void play_file(playing *p, const char *path) {
  static uint8_t bytes[MOST], damaged[MOST];
  FILE *f = fopen(path, "rb");
  if (!f) {
    perror(path);
    exit(2);
  }
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  snprintf(now.file, sizeof now.file, "%s", path);
  now.seed = 0;
  try_one(p, bytes, size);
  for (long k = 0; k < p->runs && (p->until == 0 || seconds() < p->until); k++) {
    const bytes_target *t = chosen();
    now.seed = p->seed + (uint64_t)k;
    memcpy(damaged, bytes, size);
    size_t n = t->mutate && now.seed % 4 ? t->mutate(damaged, size, MOST, now.seed)
                                         : mutate_bytes(damaged, size, MOST, now.seed);
    try_one(p, damaged, n);
  }
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void play(playing *p, const char *path) {
  struct dirent **names;
  int n = scandir(path, &names, NULL, by_name);
  if (n < 0) {
    play_file(p, path);
    return;
  }
  double left = p->until ? p->until - seconds() : 0, start = seconds();
  for (int k = 0; k < n; k++) {
    char name[512];
    snprintf(name, sizeof name, "%s/%s", path, names[k]->d_name);
    if (names[k]->d_name[0] != '.') {
      p->until = left > 0 ? start + left * (k + 1) / n : p->until; /* each file gets its share of the time */
      play_file(p, name);
    }
    free(names[k]);
  }
  free(names);
}

int main(int argc, char **argv) {
  playing p = {.runs = 2000, .seed = 1};
  int k = 1;
  for (; k + 1 < argc && argv[k][0] == '-'; k += 2) {
    if (strcmp(argv[k], "--runs") == 0) {
      p.runs = atol(argv[k + 1]);
    } else if (strcmp(argv[k], "--seed") == 0) {
      p.seed = strtoull(argv[k + 1], NULL, 10);
    } else if (strcmp(argv[k], "--seconds") == 0) {
      p.until = seconds() + atof(argv[k + 1]);
    } else {
      break;
    }
  }
  if (k >= argc || argv[k][0] == '-') {
    fprintf(stderr, "usage: BYTES_TARGET=NAME %s [--runs N] [--seed N] [--seconds T] FILE-OR-FOLDER...\n", argv[0]);
    return 2;
  }
  const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
  for (size_t s = 0; s < sizeof signals / sizeof *signals; s++) {
    signal(signals[s], crashed);
  }
  for (; k < argc; k++) {
    play(&p, argv[k]);
  }
  printf("%s: %ld inputs, %ld accepted\n", chosen()->name, p.done, p.accepted);
  if (p.runs > 0 && p.accepted_whole == 0) {
    printf("FAIL: not one undamaged file is accepted, so that what is damaged tests the first check alone\n");
    return 1;
  }
  return 0;
}

#endif
