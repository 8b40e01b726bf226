/* fingerprint.c - computes keys of files, and stores fingerprints by which files are recognised. */
#include "plugin/session/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

enum {
  CHUNK = 1 << 20, /* the bytes of a chunk, which is hashed by itself so that threads can share the work */
  MAX_CHUNKS = 1 << 16,
  SAMPLES = 64,
  SAMPLE_BYTES = 256,
  SETTLED_SECONDS = 2, /* the times of a file's last change must be older than this, the coarsest resolution of any file
                          system */
  FINGERPRINT_SLOTS = 4096
};

/* --- hashing --- */

static content_key hash_chunk(const fingerprints *c, const void *bytes, size_t size) {
  return hash_keyed(&c->secret, bytes, size);
}

content_key content_key_join(const fingerprints *c, content_key a, content_key b) {
  return hash_chunk(c, (const content_key[]){a, b}, 2 * sizeof a);
}

typedef struct hashing {
  const fingerprints *c;
  const uint8_t *bytes;
  size_t size, step;
  content_key *keys;
} hashing;

static void hash_range(void *data, int64_t begin, int64_t end) {
  const hashing *h = data;
  for (int64_t k = begin; k < end; k++) {
    size_t at = (size_t)k * h->step, left = h->size - at;
    h->keys[k] = hash_chunk(h->c, h->bytes + at, left < h->step ? left : h->step);
  }
}

content_key content_key_of(const fingerprints *c, rt_thread_pool *pool, const void *bytes, size_t size) {
  content_key few[16] = {0}, *keys = few;
  size_t step = CHUNK;
  while (size / step >= MAX_CHUNKS) {
    step *= 2;
  }
  size_t n = (size + step - 1) / step;
  arena *a = n > 16 ? arena_create(NULL) : NULL;
  keys = a ? ARENA_NEW_N(a, content_key, n) : few;
  hashing h = {.c = c, .bytes = bytes, .size = size, .step = step, .keys = keys};
  rt_parallel_for(pool, (int64_t)n, 1, hash_range, &h);
  content_key key = hash_chunk(c, keys, n * sizeof *keys);
  arena_destroy(a);
  return content_key_join(c, key, (content_key){{size, n}});
}

void content_key_text(content_key k, char out[CONTENT_KEY_TEXT]) {
  snprintf(out, CONTENT_KEY_TEXT, "%016" PRIx64 "%016" PRIx64, k.words[0], k.words[1]);
}

static int64_t nanoseconds(const struct timespec *t) { return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec; }

/* --- fingerprints --- */

typedef struct fingerprint {
  uint64_t boot, device, inode, size;
  int64_t modified[2], changed[2];
  content_key samples, content;
  content_key check; /* the hash of all members before it */
} fingerprint;

/* Returns a number that differs after each start of the system; 0 if it is not known. */
static uint64_t read_boot(void) {
  char text[64];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
  if (fd >= 0) {
    close(fd);
  }
  return n > 0 ? hash_bytes(text, (size_t)n, 0) : 0;
}

void fingerprints_init(fingerprints *c, int folder, const hash_secret *secret) {
  c->folder = folder;
  c->secret = *secret;
  c->boot = read_boot();
}

static fingerprint fingerprint_of(const fingerprints *c, const struct stat *st) {
  return (fingerprint){.boot = c->boot,
                       .device = st->st_dev,
                       .inode = st->st_ino,
                       .size = (uint64_t)st->st_size,
                       .modified = {st->st_mtim.tv_sec, st->st_mtim.tv_nsec},
                       .changed = {st->st_ctim.tv_sec, st->st_ctim.tv_nsec}};
}

static void slot_name(uint64_t device, uint64_t inode, char out[16]) {
  snprintf(out, 16, "%x", (unsigned)(hash_mix(device, inode) % FINGERPRINT_SLOTS));
}

/* Finds a fingerprint that is valid for the file in its present state.  Returns false if there is none. */
static bool find_fingerprint(const fingerprints *c, const fingerprint *now, fingerprint *out) {
  char name[16];
  slot_name(now->device, now->inode, name);
  int fd = c->boot ? openat(c->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
  if (fd < 0) {
    return false;
  }
  bool whole = read(fd, out, sizeof *out) == sizeof *out;
  close(fd);
  content_key check = hash_chunk(c, out, offsetof(fingerprint, check));
  return whole && hash128_equal(check, out->check) && memcmp(out, now, offsetof(fingerprint, samples)) == 0;
}

static void put_fingerprint(const fingerprints *c, fingerprint *s) {
  char name[16], temporary[64];
  slot_name(s->device, s->inode, name);
  s->check = hash_chunk(c, s, offsetof(fingerprint, check));
  int fd = c->boot ? file_create_temporary(c->folder, name, 0600, temporary, sizeof temporary) : -1;
  if (fd < 0) {
    return;
  }
  bool written = write(fd, s, sizeof *s) == sizeof *s;
  if ((close(fd) != 0 || !written || renameat(c->folder, temporary, c->folder, name) != 0)) {
    unlinkat(c->folder, temporary, 0);
  }
}

/* --- files --- */

/* Hashes samples spread over the file, including its two ends.  Returns false if it cannot be read. */
static bool sample(const fingerprints *c, int fd, uint64_t size, content_key *out) {
  uint8_t bytes[SAMPLES * SAMPLE_BYTES] = {0};
  uint64_t last = size > SAMPLE_BYTES ? size - SAMPLE_BYTES : 0;
  for (uint64_t k = 0; k < SAMPLES; k++) {
    uint64_t at = last / (SAMPLES - 1) * k;
    if (pread(fd, bytes + k * SAMPLE_BYTES, SAMPLE_BYTES, (off_t)(k == SAMPLES - 1 ? last : at)) < 0) {
      return false;
    }
  }
  *out = hash_chunk(c, bytes, sizeof bytes);
  return true;
}

bool fingerprint_same_file(const struct stat *a, const struct stat *b) {
  fingerprints none = {0};
  fingerprint x = fingerprint_of(&none, a), y = fingerprint_of(&none, b);
  return memcmp(&x, &y, sizeof x) == 0;
}

static bool is_settled(const struct stat *st, const struct timespec *now) {
  int64_t latest = st->st_ctim.tv_sec > st->st_mtim.tv_sec ? st->st_ctim.tv_sec : st->st_mtim.tv_sec;
  return now->tv_sec - latest > SETTLED_SECONDS;
}

typedef struct reading {
  const fingerprints *c;
  rt_thread_pool *pool;
  arena *a;
  int fd;
  content_key key;
} reading;

static status read_whole(void *data) {
  reading *r = data;
  const uint8_t *bytes;
  size_t size;
  r->a = arena_create(NULL);
  TRY(file_map_fd(r->a, r->fd, "the file", &bytes, &size));
  r->key = content_key_of(r->c, r->pool, bytes, size);
  return NULL;
}

status content_key_of_file(const fingerprints *c, rt_thread_pool *pool, int fd, struct stat *st, content_key *out) {
  struct stat after;
  struct timespec now;
  fingerprint known;
  content_key samples;
  clock_gettime(CLOCK_REALTIME, &now);
  CHECK_THAT(fstat(fd, st) == 0 && S_ISREG(st->st_mode), STATUS_IO, "it is not a regular file");
  fingerprint fresh = fingerprint_of(c, st);
  CHECK_THAT(sample(c, fd, fresh.size, &samples), STATUS_IO, "it cannot be read: %s", strerror(errno));
  if (find_fingerprint(c, &fresh, &known) && hash128_equal(known.samples, samples)) {
    *out = known.content;
    return NULL;
  }
  reading r = {.c = c, .pool = pool, .fd = fd};
  status failed = guard_run(read_whole, &r);
  arena_destroy(r.a);
  TRY(failed);
  CHECK_THAT(fstat(fd, &after) == 0 && fingerprint_same_file(st, &after), STATUS_IO, "it changes while it is read");
  if (is_settled(st, &now)) {
    fresh.samples = samples;
    fresh.content = r.key;
    put_fingerprint(c, &fresh);
  }
  *out = r.key;
  return NULL;
}

void fingerprint_mark_whole(const fingerprints *c, int fd) {
  struct stat st;
  if (fstat(fd, &st) == 0) {
    fingerprint s = fingerprint_of(c, &st);
    put_fingerprint(c, &s);
  }
}

bool fingerprint_is_whole(const fingerprints *c, int fd) {
  struct stat st;
  fingerprint now, known;
  return fstat(fd, &st) == 0 && (now = fingerprint_of(c, &st), find_fingerprint(c, &now, &known));
}

void fingerprint_mark_used(const fingerprints *c, int fd, const struct timespec *when) {
  struct stat st;
  char name[16];
  if (fstat(fd, &st) == 0) {
    slot_name(st.st_dev, st.st_ino, name);
    (void)utimensat(c->folder, name, (struct timespec[]){*when, *when}, AT_SYMLINK_NOFOLLOW);
  }
}

int64_t fingerprint_last_used(const fingerprints *c, const struct stat *st) {
  struct stat slot;
  char name[16];
  int64_t written = nanoseconds(&st->st_mtim);
  slot_name(st->st_dev, st->st_ino, name);
  int64_t used = fstatat(c->folder, name, &slot, AT_SYMLINK_NOFOLLOW) == 0 ? nanoseconds(&slot.st_mtim) : 0;
  return used > written ? used : written;
}
