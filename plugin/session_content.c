#include "plugin/session_content.h"

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
  CHUNK = 1 << 20,  /* bytes hashed by themselves, so that threads can share the work */
  MAX_CHUNKS = 1 << 16,
  SAMPLES = 64, SAMPLE_BYTES = 256,
  SETTLED_SECONDS = 2, /* the coarsest clock that file systems keep times by */
  STAMP_SLOTS = 4096
};

/* --- hashing --- */

static plug_key hash_chunk(const plug_contents *c, const void *bytes, size_t size) {
  return hash_keyed(&c->secret, bytes, size);
}

plug_key plug_key_join(const plug_contents *c, plug_key a, plug_key b) {
  return hash_chunk(c, (const plug_key[]){a, b}, 2 * sizeof a);
}

typedef struct hashing {
  const plug_contents *c;
  const uint8_t *bytes;
  size_t size, step;
  plug_key *keys;
} hashing;

static void hash_range(void *data, int64_t begin, int64_t end) {
  const hashing *h = data;
  for (int64_t k = begin; k < end; k++) {
    size_t at = (size_t)k * h->step, left = h->size - at;
    h->keys[k] = hash_chunk(h->c, h->bytes + at, left < h->step ? left : h->step);
  }
}

plug_key plug_key_of(const plug_contents *c, rt_thread_pool *pool, const void *bytes, size_t size) {
  plug_key few[16] = {0}, *keys = few;
  size_t step = CHUNK;
  while (size / step >= MAX_CHUNKS) {
    step *= 2;
  }
  size_t n = (size + step - 1) / step;
  arena *a = n > 16 ? arena_create(NULL) : NULL;
  keys = a ? ARENA_NEW_N(a, plug_key, n) : few;
  hashing h = {.c = c, .bytes = bytes, .size = size, .step = step, .keys = keys};
  rt_parallel_for(pool, (int64_t)n, 1, hash_range, &h);
  plug_key key = hash_chunk(c, keys, n * sizeof *keys);
  arena_destroy(a);
  return plug_key_join(c, key, (plug_key){{size, n}});
}

void plug_key_text(plug_key k, char out[PLUG_KEY_TEXT]) {
  snprintf(out, PLUG_KEY_TEXT, "%016" PRIx64 "%016" PRIx64, k.words[0], k.words[1]);
}

static int64_t nanoseconds(const struct timespec *t) { return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec; }

/* --- stamps --- */

typedef struct stamp {
  uint64_t boot, device, inode, size;
  int64_t modified[2], changed[2];
  plug_key samples, content;
  plug_key check; /* of all that stands before it */
} stamp;

/* Another one after each start of the system. */
static uint64_t read_boot(void) {
  char text[64];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
  if (fd >= 0) {
    close(fd);
  }
  return n > 0 ? hash_bytes(text, (size_t)n, 0) : 0;
}

void plug_contents_init(plug_contents *c, int folder, const hash_secret *secret) {
  c->folder = folder;
  c->secret = *secret;
  c->boot = read_boot();
}

static stamp stamp_of(const plug_contents *c, const struct stat *st) {
  return (stamp){.boot = c->boot, .device = st->st_dev, .inode = st->st_ino, .size = (uint64_t)st->st_size,
                 .modified = {st->st_mtim.tv_sec, st->st_mtim.tv_nsec},
                 .changed = {st->st_ctim.tv_sec, st->st_ctim.tv_nsec}};
}

static void slot_name(uint64_t device, uint64_t inode, char out[16]) {
  snprintf(out, 16, "%x", (unsigned)(hash_mix(device, inode) % STAMP_SLOTS));
}

/* The stamp for this file as it is, if there is one. */
static bool find_stamp(const plug_contents *c, const stamp *now, stamp *out) {
  char name[16];
  slot_name(now->device, now->inode, name);
  int fd = c->boot ? openat(c->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
  if (fd < 0) {
    return false;
  }
  bool whole = read(fd, out, sizeof *out) == sizeof *out;
  close(fd);
  plug_key check = hash_chunk(c, out, offsetof(stamp, check));
  return whole && hash128_equal(check, out->check) && memcmp(out, now, offsetof(stamp, samples)) == 0;
}

static void put_stamp(const plug_contents *c, stamp *s) {
  char name[16], temporary[64];
  slot_name(s->device, s->inode, name);
  snprintf(temporary, sizeof temporary, "%s.%ld", name, (long)getpid());
  s->check = hash_chunk(c, s, offsetof(stamp, check));
  int fd = c->boot ? openat(c->folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (fd < 0) {
    return;
  }
  bool written = write(fd, s, sizeof *s) == sizeof *s;
  if ((close(fd) != 0 || !written || renameat(c->folder, temporary, c->folder, name) != 0)) {
    unlinkat(c->folder, temporary, 0);
  }
}

/* --- files --- */

/* Pieces spread over the file, its ends among them. */
static bool sample(const plug_contents *c, int fd, uint64_t size, plug_key *out) {
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

bool plug_same_file(const struct stat *a, const struct stat *b) {
  plug_contents none = {0};
  stamp x = stamp_of(&none, a), y = stamp_of(&none, b);
  return memcmp(&x, &y, sizeof x) == 0;
}

static bool is_settled(const struct stat *st, const struct timespec *now) {
  int64_t latest = st->st_ctim.tv_sec > st->st_mtim.tv_sec ? st->st_ctim.tv_sec : st->st_mtim.tv_sec;
  return now->tv_sec - latest > SETTLED_SECONDS;
}

typedef struct reading {
  const plug_contents *c;
  rt_thread_pool *pool;
  arena *a;
  int fd;
  plug_key key;
} reading;

static status read_whole(void *data) {
  reading *r = data;
  const uint8_t *bytes;
  size_t size;
  r->a = arena_create(NULL);
  TRY(file_map_fd(r->a, r->fd, "the file", &bytes, &size));
  r->key = plug_key_of(r->c, r->pool, bytes, size);
  return NULL;
}

status plug_key_of_file(const plug_contents *c, rt_thread_pool *pool, int fd, struct stat *st, plug_key *out) {
  struct stat after;
  struct timespec now;
  stamp known;
  plug_key samples;
  clock_gettime(CLOCK_REALTIME, &now);
  CHECK_THAT(fstat(fd, st) == 0 && S_ISREG(st->st_mode), STATUS_IO, "no regular file");
  stamp fresh = stamp_of(c, st);
  CHECK_THAT(sample(c, fd, fresh.size, &samples), STATUS_IO, "cannot be read: %s", strerror(errno));
  if (find_stamp(c, &fresh, &known) && hash128_equal(known.samples, samples)) {
    *out = known.content;
    return NULL;
  }
  reading r = {.c = c, .pool = pool, .fd = fd};
  status failed = guard_run(read_whole, &r);
  arena_destroy(r.a);
  TRY(failed);
  CHECK_THAT(fstat(fd, &after) == 0 && plug_same_file(st, &after), STATUS_IO, "changes while it is read");
  if (is_settled(st, &now)) {
    fresh.samples = samples;
    fresh.content = r.key;
    put_stamp(c, &fresh);
  }
  *out = r.key;
  return NULL;
}

void plug_mark_whole(const plug_contents *c, int fd) {
  struct stat st;
  if (fstat(fd, &st) == 0) {
    stamp s = stamp_of(c, &st);
    put_stamp(c, &s);
  }
}

bool plug_is_whole(const plug_contents *c, int fd) {
  struct stat st;
  stamp now, known;
  return fstat(fd, &st) == 0 && (now = stamp_of(c, &st), find_stamp(c, &now, &known));
}

void plug_mark_used(const plug_contents *c, int fd, const struct timespec *when) {
  struct stat st;
  char name[16];
  if (fstat(fd, &st) == 0) {
    slot_name(st.st_dev, st.st_ino, name);
    (void)utimensat(c->folder, name, (struct timespec[]){*when, *when}, AT_SYMLINK_NOFOLLOW);
  }
}

int64_t plug_last_used(const plug_contents *c, const struct stat *st) {
  struct stat slot;
  char name[16];
  int64_t written = nanoseconds(&st->st_mtim);
  slot_name(st->st_dev, st->st_ino, name);
  int64_t used = fstatat(c->folder, name, &slot, AT_SYMLINK_NOFOLLOW) == 0 ? nanoseconds(&slot.st_mtim) : 0;
  return used > written ? used : written;
}
