/* prog_hostile.c - damages files in thousands of ways and gives them to onnx-xla.  Whatever the bytes are, the library
 * must either refuse them with a message of one line or make a program that runs.  It must never crash, hang, or exceed
 * its memory budget.
 *
 *   prog_hostile [--backend B] [--seeds N] [--step N] [--open N] [--runs N] [--print 1] FILE...
 *
 * A FILE is a small .onnx or .oxla.  --open N is the size of open dimensions of inputs (1).  After N runs (--runs),
 * files that are accepted are only compiled.  --print shows all messages.  Every FILE is cut at each N-th byte (--step,
 * 100; 0: it is not cut) and has bits flipped from N seeds (--seeds, 1000).  Damaged copies are tried in child
 * processes, a group in each; if a child dies, its damage is named, and the next child goes on after it.  The last line
 * is "N passed, N failed". */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "onnx-xla.h"

enum {
  GROUP = 100,  /* how many damaged copies one child tries */
  SECONDS = 10, /* the time budget for each step of each copy */
  ALARM = 60,   /* seconds after which a copy counts as hanging; many, since sanitizers and busy machines are slow */
  MEGABYTE = 1 << 20,
  BUDGET = 512,         /* the library's memory budget in megabytes */
  ADDRESS_SPACE = 6144, /* the megabytes that a child may map in all, for libraries, stacks of threads and the budget */
  INPUT_LIMIT = 64      /* the most megabytes of an input with which a run is tried */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true; /* sanitizers map terabytes, so memory cannot be limited */
#else
static const bool sanitized = false;
#endif

typedef struct file {
  const char *path;
  unsigned char *bytes;
  size_t size;
  bool image; /* whether it is a .oxla file, which is loaded by its path only */
} file;

typedef struct tally {
  long refused, accepted, ran, failed;
} tally;

/* Memory that parent and child share. */
static struct shared {
  long current; /* the number of the damage that is being tried */
  tally tally;
} * shared;

static const char *backend = "ref";
static long open_dim = 1, max_runs = 1000000, print;
static char scratch[] = "hostile.XXXXXX";

static void die(const char *what) {
  perror(what);
  exit(2);
}

static file read_file(const char *path) {
  file f = {.path = path};
  FILE *in = fopen(path, "rb");
  if (!in || fseek(in, 0, SEEK_END) != 0) {
    die(path);
  }
  f.size = (size_t)ftell(in);
  rewind(in);
  f.bytes = malloc(f.size + 1);
  if (!f.bytes || fread(f.bytes, 1, f.size, in) != f.size) {
    die(path);
  }
  fclose(in);
  size_t length = strlen(path);
  f.image = length > 5 && strcmp(path + length - 5, ".oxla") == 0;
  return f;
}

/* --- damage --- */

/* Returns the next random number, by splitmix64, so that the damage is the same on every machine. */
static uint64_t next(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Flips 1 to 8 bits.  Every other seed flips bits only in the first or in the last 4 KiB, where files have their
 * structure. */
static void flip(unsigned char *bytes, size_t size, uint64_t seed) {
  uint64_t state = seed * 2654435761u + 1;
  size_t edge = size < 4096 ? size : 4096;
  uint64_t flips = 1 + next(&state) % 8;
  for (uint64_t k = 0; size && k < flips; k++) {
    uint64_t r = next(&state);
    size_t at = seed % 2 ? next(&state) % size : seed % 4 ? next(&state) % edge : size - 1 - next(&state) % edge;
    bytes[at] ^= (unsigned char)(1u << (r % 8));
  }
}

/* --- trying --- */

/* Returns true if the message is one line of printable text that is not too long. */
static bool is_one_line(const char *message) {
  size_t length = strlen(message);
  bool good = length > 0 && length < 4096;
  for (const unsigned char *c = (const unsigned char *)message; *c; c++) {
    good = good && *c >= 0x20 && *c != 0x7f;
  }
  return good;
}

/* Returns true if there was no error.  Otherwise frees it, and sets *good to false if it is an internal error or its
 * message is not one line. */
static bool fine(oxla_error *error, bool *good) {
  if (!error) {
    return true;
  }
  const char *message = oxla_error_message(error);
  if (print) {
    printf("damage %ld: %s\n", shared->current, message);
  }
  if (!is_one_line(message)) {
    printf("damage %ld: not one line: \"%s\"\n", shared->current, message);
    *good = false;
  }
  if (oxla_error_code(error) == OXLA_INTERNAL) {
    printf("damage %ld: an internal error: %s\n", shared->current, message);
    *good = false;
  }
  oxla_error_free(error);
  return false;
}

static size_t type_size(oxla_type type) {
  switch (type) {
    case OXLA_INT64:
    case OXLA_UINT64:
    case OXLA_DOUBLE:
    case OXLA_STRING:
    case OXLA_COMPLEX64: return 8;
    case OXLA_FLOAT:
    case OXLA_INT32:
    case OXLA_UINT32: return 4;
    case OXLA_FLOAT16:
    case OXLA_BFLOAT16:
    case OXLA_INT16:
    case OXLA_UINT16: return 2;
    case OXLA_COMPLEX128: return 16;
    default: return 1;
  }
}

/* Returns zeros for an input of the declared type, or NULL if the input is too large or cannot be given by such
 * bytes. */
static void *make_input(oxla_tensor *t) {
  if (t->type == OXLA_STRING) {
    return NULL;
  }
  size_t size = type_size(t->type);
  for (int k = 0; k < t->rank; k++) {
    t->dims[k] = t->dims[k] < 0 ? open_dim : t->dims[k];
    if (__builtin_mul_overflow(size, (size_t)t->dims[k], &size) || size > (size_t)INPUT_LIMIT * MEGABYTE) {
      return NULL;
    }
  }
  return calloc(1, size + 64);
}

static bool set_inputs(oxla_model *model, oxla_run *run, void **buffers, bool *good) {
  for (size_t k = 0; k < oxla_input_count(model); k++) {
    oxla_tensor t;
    if (!fine(oxla_input_type(model, k, &t), good)) {
      return false;
    }
    buffers[k] = make_input(&t);
    if (!buffers[k] ||
        !fine(oxla_set_input(run, oxla_input_name(model, k), t.type, t.rank, t.dims, buffers[k]), good)) {
      return false;
    }
  }
  return true;
}

static void run_model(oxla_model *model, bool *good) {
  oxla_run *run;
  size_t n = oxla_input_count(model);
  void **buffers = calloc(n + 1, sizeof *buffers);
  if (!buffers || !fine(oxla_run_create(model, &run), good)) {
    free(buffers);
    return;
  }
  if (set_inputs(model, run, buffers, good)) {
    if (shared->tally.ran >= max_runs) {
      (void)fine(oxla_compile(run), good);
    } else {
      shared->tally.ran += fine(oxla_execute(run), good);
    }
  }
  oxla_run_destroy(run);
  for (size_t k = 0; k < n; k++) {
    free(buffers[k]);
  }
  free(buffers);
}

static void write_scratch(const unsigned char *bytes, size_t size) {
  int fd = open(scratch, O_WRONLY | O_TRUNC);
  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
    die(scratch);
  }
  close(fd);
}

static bool try_bytes(const file *f, const unsigned char *bytes, size_t size) {
  oxla_options options = {.size = sizeof options,
                          .backend = backend,
                          .threads = 1,
                          .max_seconds = SECONDS,
                          .max_memory = (uint64_t)BUDGET * MEGABYTE};
  oxla_model *model;
  oxla_error *error;
  bool good = true;
  if (f->image) {
    write_scratch(bytes, size);
    options.backend = NULL;
    error = oxla_load(scratch, &options, &model);
  } else {
    error = oxla_load_memory(bytes, size, &options, &model);
  }
  if (!fine(error, &good)) {
    shared->tally.refused++;
    return good;
  }
  shared->tally.accepted++;
  run_model(model, &good);
  oxla_model_destroy(model);
  return good;
}

/* Tries damage number k: a cut at k * step if k is below `cuts`, otherwise bits flipped from seed k - cuts.  The
 * damaged copy is in memory of exactly its size, so that reading beyond its end is noticed. */
static bool try_damage(const file *f, long k, long cuts, long step) {
  size_t size = k < cuts ? (size_t)(k * step) : f->size;
  unsigned char *copy = malloc(size ? size : 1);
  if (!copy) {
    die("malloc");
  }
  memcpy(copy, f->bytes, size);
  if (k >= cuts) {
    flip(copy, size, (uint64_t)(k - cuts));
  }
  bool good = try_bytes(f, copy, size);
  free(copy);
  return good;
}

static void limit_child(void) {
  struct rlimit space = {.rlim_cur = (rlim_t)ADDRESS_SPACE * MEGABYTE, .rlim_max = (rlim_t)ADDRESS_SPACE * MEGABYTE};
  struct rlimit core = {0, 0};
  setrlimit(RLIMIT_CORE, &core);
  if (!sanitized && setrlimit(RLIMIT_AS, &space) != 0) {
    die("setrlimit");
  }
}

/* Tries damages [first, end) in a child process, and returns the number of the damage with which to go on. */
static long try_group(const file *f, long first, long end, long cuts, long step) {
  fflush(stdout);
  shared->current = first;
  pid_t child = fork();
  if (child < 0) {
    die("fork");
  }
  if (child == 0) {
    limit_child();
    for (long k = first; k < end; k++) {
      shared->current = k;
      alarm(ALARM);
      shared->tally.failed += !try_damage(f, k, cuts, step);
      fflush(stdout);
    }
    alarm(0);
    exit(0); /* not _exit, since the search for leaks runs at exit */
  }
  int how;
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) {
    return end;
  }
  shared->tally.failed++;
  long at = shared->current;
  printf("%s: %s %ld: %s %d\n", f->path, at < cuts ? "cut at byte" : "flipped by seed",
         at < cuts ? at * step : at - cuts, WIFSIGNALED(how) ? "ended by signal" : "exit status",
         WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
  return at + 1;
}

static void try_file(const char *path, long seeds, long step) {
  file f = read_file(path);
  long cuts = step > 0 ? (long)((f.size + (size_t)step - 1) / (size_t)step) : 0;
  tally before = shared->tally;
  for (long k = 0; k < cuts + seeds;) {
    long end = k + GROUP < cuts + seeds ? k + GROUP : cuts + seeds;
    k = try_group(&f, k, end, cuts, step);
  }
  const tally *now = &shared->tally;
  printf("%s: %ld cuts, %ld seeds: %ld refused, %ld accepted (%ld ran), %ld failed\n", path, cuts, seeds,
         now->refused - before.refused, now->accepted - before.accepted, now->ran - before.ran,
         now->failed - before.failed);
  free(f.bytes);
}

int main(int argc, char **argv) {
  long seeds = 1000, step = 100;
  int k = 1;
  for (; k + 1 < argc && argv[k][0] == '-'; k += 2) {
    if (strcmp(argv[k], "--backend") == 0) {
      backend = argv[k + 1];
    } else if (strcmp(argv[k], "--seeds") == 0) {
      seeds = atol(argv[k + 1]);
    } else if (strcmp(argv[k], "--step") == 0) {
      step = atol(argv[k + 1]);
    } else if (strcmp(argv[k], "--open") == 0) {
      open_dim = atol(argv[k + 1]);
    } else if (strcmp(argv[k], "--runs") == 0) {
      max_runs = atol(argv[k + 1]);
    } else if (strcmp(argv[k], "--print") == 0) {
      print = atol(argv[k + 1]);
    } else {
      break;
    }
  }
  if (k >= argc || argv[k][0] == '-') {
    fprintf(stderr,
            "usage: %s [--backend B] [--seeds N] [--step N] [--open N] [--runs N]"
            " [--print 1] FILE...\n",
            argv[0]);
    return 2;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int fd = mkstemp(scratch);
  if (shared == MAP_FAILED || fd < 0) {
    die(scratch);
  }
  close(fd);
  for (; k < argc; k++) {
    try_file(argv[k], seeds, step);
  }
  unlink(scratch);
  printf("%ld passed, %ld failed\n",
         shared->tally.refused + shared->tally.accepted - shared->tally.failed > 0
             ? shared->tally.refused + shared->tally.accepted - shared->tally.failed
             : 0,
         shared->tally.failed);
  return shared->tally.failed ? 1 : 0;
}
