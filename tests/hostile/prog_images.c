/* prog_images.c - damages image files in many ways and lets a model with ImageDecoder decode them, in two threads at
 * once.  Whatever the bytes are, a run must end with an image or with an error of one line, and what is not damaged
 * must be decoded to the same image in both threads.
 *
 *   prog_images MODEL N FILE...
 *
 * MODEL has the input x of bytes and the output y.  Each FILE is damaged N times by each thread, in a child process: if
 * that dies, its damage is named.  The last line is "N passed, N failed". */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "onnx-xla.h"

enum { THREADS = 2, MOST_BYTES = 1 << 20, MEGABYTE = 1 << 20, BUDGET = 256, ALARM = 300 };

typedef struct file {
  const char *path;
  uint8_t bytes[MOST_BYTES];
  size_t n;
} file;

typedef struct worker {
  oxla_model *model;
  const file *file;
  long damages;
  uint64_t number, image; /* `image` is a hash of what the undamaged file shows */
  const char *failure;
} worker;

/* While threads decode undamaged files, none tries a damaged one, which may take all of the memory for a while. */
static pthread_barrier_t barrier;

static volatile long *current; /* which damage each thread tries, in memory that the child shares with its parent */

/* A number of the sequence of a seed: what is damaged is the same in each run. */
static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Changes some bytes, or cuts the file. */
static size_t damage(const file *f, uint64_t seed, uint8_t *out) {
  size_t n = f->n;
  memcpy(out, f->bytes, n);
  for (uint64_t k = next(&seed) % 6; k-- > 0;) {
    uint64_t r = next(&seed), limit = r & 1 && n > 64 ? 64 : n; /* half of them in the header */
    uint8_t *at = &out[next(&seed) % limit];
    *at = r & 2 ? (uint8_t)next(&seed) : r & 4 ? 0xff : r & 8 ? 0 : (uint8_t)(*at ^ 1u << next(&seed) % 8);
  }
  return next(&seed) % 4 ? n : 1 + next(&seed) % n;
}

static uint64_t hash(const oxla_tensor *t) {
  uint64_t h = (uint64_t)(t->dims[0] << 20 | t->dims[1]);
  for (size_t k = 0; k < t->bytes; k++) {
    h = (h ^ ((const uint8_t *)t->data)[k]) * 0x100000001b3u;
  }
  return h;
}

/* Decodes the bytes and sets *image to a hash of the image, or to 0 if they are refused.  Returns what is wrong, or
 * NULL.
 */
static const char *decode(oxla_run *run, const uint8_t *bytes, size_t n, uint64_t *image) {
  oxla_tensor y;
  *image = 0;
  oxla_error *error = oxla_set_input(run, "x", OXLA_UINT8, 1, (int64_t[]){(int64_t)n}, bytes);
  error = error ? error : oxla_execute(run);
  if (!error) {
    error = oxla_get_output(run, "y", &y);
  }
  if (!error) {
    *image = hash(&y);
    return NULL;
  }
  oxla_code code = oxla_error_code(error);
  bool expected = code == OXLA_INVALID_ARGUMENT || code == OXLA_UNSUPPORTED || code == OXLA_RESOURCE;
  expected &= !strchr(oxla_error_message(error), '\n');
  if (!expected) {
    fprintf(stdout, "%s\n", oxla_error_message(error));
  }
  oxla_error_free(error);
  return expected ? NULL : "an unexpected error";
}

static void try_damages(worker *w, oxla_run *run) {
  uint8_t *bytes = malloc(MOST_BYTES);
  uint64_t image;
  for (long k = 0; bytes && k < w->damages && !w->failure; k++) {
    current[w->number] = k;
    size_t n = damage(w->file, (uint64_t)k * THREADS + w->number, bytes);
    w->failure = decode(run, bytes, n, &image);
  }
  free(bytes);
}

static void *work(void *data) {
  worker *w = data;
  oxla_run *run = NULL;
  uint64_t again;
  oxla_error *error = oxla_run_create(w->model, &run);
  w->failure = error ? "no run" : decode(run, w->file->bytes, w->file->n, &w->image);
  oxla_error_free(error);
  pthread_barrier_wait(&barrier);
  try_damages(w, run);
  pthread_barrier_wait(&barrier);
  if (!w->failure) {
    w->failure = decode(run, w->file->bytes, w->file->n, &again);
    w->failure = w->failure ? w->failure : again != w->image || !again ? "another image than at first" : NULL;
  }
  oxla_run_destroy(run);
  return NULL;
}

/* Runs in a child process; returns its exit status. */
static int try_file(const char *model_path, const file *f, long damages) {
  oxla_options o = {.size = sizeof o,
                    .backend = "ref",
                    .threads = 1,
                    .max_memory = (uint64_t)BUDGET * MEGABYTE,
                    .tune = "off",
                    .cache = ""};
  oxla_model *model;
  worker workers[THREADS];
  pthread_t threads[THREADS];
  int bad = 0;
  oxla_error *error = oxla_load(model_path, &o, &model);
  if (error) {
    printf("%s\n", oxla_error_message(error));
    return 1;
  }
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (uint64_t k = 0; k < THREADS; k++) {
    workers[k] = (worker){.model = model, .file = f, .damages = damages, .number = k};
    pthread_create(&threads[k], NULL, work, &workers[k]);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(threads[k], NULL);
    worker *w = &workers[k];
    const char *failure = w->failure ? w->failure : w->image != workers[0].image ? "other images in two threads" : NULL;
    if (failure) {
      printf("FAIL %s, damage %ld of thread %d: %s\n", f->path, current[k], k, failure);
      bad = 1;
    }
  }
  oxla_model_destroy(model);
  return bad;
}

static bool file_passes(const char *model, const file *f, long damages) {
  int how = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    /* what the libraries of the formats write about damaged files */
    bool quiet = freopen("/dev/null", "w", stderr) != NULL;
    alarm(ALARM);
    int bad = try_file(model, f, damages);
    fflush(stdout);
    _exit(bad || !quiet);
  }
  waitpid(child, &how, 0);
  if (WIFSIGNALED(how)) {
    printf("FAIL %s: signal %d at damage %ld of thread 0 or %ld of thread 1\n", f->path, WTERMSIG(how), current[0],
           current[1]);
  }
  return how == 0;
}

int main(int argc, char **argv) {
  static file f;
  int passed = 0, failed = 0;
  if (argc < 4) {
    fprintf(stderr, "usage: prog_images MODEL N FILE...\n");
    return 2;
  }
  current = mmap(NULL, THREADS * sizeof *current, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int k = 3; k < argc; k++) {
    FILE *in = fopen(argv[k], "rb");
    f.path = argv[k];
    f.n = in ? fread(f.bytes, 1, MOST_BYTES, in) : 0;
    bool good = in && f.n && file_passes(argv[1], &f, atol(argv[2]));
    passed += good;
    failed += !good;
    if (in) {
      fclose(in);
    }
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
