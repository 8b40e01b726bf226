/* log.c - reads the lines of the tuning log into a hash table, and appends lines to the file; see log.h. */
#include "autotune/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

enum { MAX_LINE = 8192, MAX_TEXT = 2048, FIELDS = 7, KEY_DIGITS = 16 };
static const int64_t max_size = (int64_t)64 << 20;
static const char version[] = "2",
                  /* `version` begins each line that is written.  Lines of the previous version begin with `former`;
                   * they are ignored and do not count as damaged. */
    former[] = "1\t";
static const char *const hows[] = {
    [AUTOTUNE_LOG_ESTIMATE] = "guess", [AUTOTUNE_LOG_FAST] = "fast", [AUTOTUNE_LOG_FULL] = "full"};

typedef struct slot {
  autotune_log_entry entry;
  struct slot *next;
} slot;

enum { BUCKETS = 1024 };

struct autotune_log {
  arena *arena;
  int fd;    /* -1 if nothing is written to a file */
  bool torn; /* whether the file does not end with a newline, since a process was killed while it wrote */
  slot *buckets[BUCKETS];
};

static uint32_t bucket_of(uint64_t key) { return (uint32_t)(key ^ key >> 32) % BUCKETS; }

static slot *find(const autotune_log *l, uint64_t key) {
  slot *s = l->buckets[bucket_of(key)];
  while (s && s->entry.key != key) {
    s = s->next;
  }
  return s;
}

const autotune_log_entry *autotune_log_find(const autotune_log *l, uint64_t key) {
  const slot *s = find(l, key);
  return s ? &s->entry : NULL;
}

static void keep(autotune_log *l, const autotune_log_entry *e) {
  slot *s = find(l, e->key);
  if (!s) {
    s = ARENA_NEW(l->arena, slot);
    s->next = l->buckets[bucket_of(e->key)];
    l->buckets[bucket_of(e->key)] = s;
  } else if (s->entry.how >= e->how) {
    return;
  }
  s->entry = *e;
}

/* --- the lines of the log --- */

static uint32_t check_of(const char *line, size_t n) { return (uint32_t)hash_bytes(line, n, 0x6c6f67); }

/* Splits a line at its tabs, which are overwritten by zeros.  Returns false unless there are exactly FIELDS fields
 * without other control characters. */
static bool split(char *line, char **fields) {
  uint32_t n = 0;
  fields[n++] = line;
  for (char *at = line; *at; at++) {
    if ((unsigned char)*at < ' ' && *at != '\t') {
      return false;
    }
    if (*at == '\t') {
      if (n == FIELDS) {
        return false;
      }
      *at = '\0';
      fields[n++] = at + 1;
    }
  }
  return n == FIELDS;
}

static bool read_hex(const char *text, size_t digits, uint64_t *out) {
  char *end;
  if (strlen(text) != digits || strspn(text, "0123456789abcdef") != digits) {
    return false;
  }
  *out = strtoull(text, &end, 16);
  return true;
}

/* Reads a line, which ends with a 0 instead of a newline; its tabs are overwritten.  Returns false if it is damaged. */
static bool read_line(char *line, autotune_log_entry *out) {
  char *fields[FIELDS], *tab = strrchr(line, '\t');
  uint64_t check;
  uint32_t expected = tab ? check_of(line, (size_t)(tab - line)) : 0;
  if (!tab || !split(line, fields) || strcmp(fields[0], version) != 0 || !read_hex(fields[1], KEY_DIGITS, &out->key) ||
      !read_hex(fields[6], 8, &check) || check != expected) {
    return false;
  }
  int how = -1;
  for (int k = 0; k <= AUTOTUNE_LOG_FULL; k++) {
    how = strcmp(fields[2], hows[k]) == 0 ? k : how;
  }
  out->how = (autotune_log_how)how;
  out->winner = fields[3];
  out->times = fields[4];
  out->what = fields[5];
  return how >= 0;
}

/* Adds the entries of all lines of a log file's text to l, and returns how many lines are damaged. */
static uint32_t read_lines(autotune_log *l, const char *bytes, size_t size) {
  uint32_t damaged = 0;
  for (const char *at = bytes, *end = bytes + size; at < end;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t n = (size_t)((stop ? stop : end) - at);
    autotune_log_entry e;
    bool good = stop && n <= MAX_LINE && !memchr(at, '\0', n);
    char *line = good && n ? arena_strndup(l->arena, at, n) : NULL;
    bool old = line && strncmp(line, former, sizeof former - 1) == 0;
    if (line && !old && read_line(line, &e)) {
      keep(l, &e);
    } else {
      damaged += n > 0 && !old;
    }
    at += n + 1;
  }
  return damaged;
}

/* --- reading the log file --- */

static void close_log(void *data) {
  autotune_log *l = data;
  if (l->fd >= 0) {
    close(l->fd);
  }
}

/* Returns the reason why the log file cannot be used, or NULL if it can. */
static const char *refuse(int fd, struct stat *s) {
  if (fstat(fd, s) != 0 || !S_ISREG(s->st_mode)) {
    return "it is no regular file";
  }
  if (s->st_uid != geteuid() || (s->st_mode & (S_IWGRP | S_IWOTH))) {
    return "other users can write to it";
  }
  return s->st_size > max_size ? "it is too large" : NULL;
}

/* Reads the log file.  It is not mapped, since other processes append to it and somebody may truncate it.  Returns the
 * number of bytes. */
static size_t read_all(int fd, char *bytes, size_t size) {
  size_t n = 0;
  ssize_t got;
  while (n < size && (got = pread(fd, bytes + n, size - n, (off_t)n)) > 0) {
    n += (size_t)got;
  }
  return n;
}

autotune_log *autotune_log_open(arena *a, const char *path, const char **warning) {
  autotune_log *l = ARENA_NEW(a, autotune_log);
  struct stat s;
  l->arena = a;
  l->fd = -1;
  *warning = NULL;
  arena_cleanup(a, close_log, l);
  if (!path) {
    return l;
  }
  l->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  const char *why = l->fd >= 0 ? refuse(l->fd, &s) : "it cannot be opened";
  if (why) {
    *warning = arena_printf(a, "%s: %s: what is measured is not kept", path, why);
    close_log(l);
    l->fd = -1;
    return l;
  }
  char *bytes = arena_alloc(a, (size_t)s.st_size + 1);
  size_t size = read_all(l->fd, bytes, (size_t)s.st_size);
  uint32_t damaged = read_lines(l, bytes, size);
  l->torn = size && bytes[size - 1] != '\n';
  if (damaged) {
    *warning = arena_printf(a, "%s: %" PRIu32 " damaged line%s left out", path, damaged, damaged == 1 ? "" : "s");
  }
  return l;
}

/* --- adding entries --- */

static const char *tidy(arena *a, const char *text) {
  char *copy = arena_strndup(a, text, MAX_TEXT);
  for (char *c = copy; *c; c++) {
    *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
  }
  return copy;
}

void autotune_log_add(autotune_log *l, const autotune_log_entry *e) {
  autotune_log_entry tidied = {e->key, e->how, tidy(l->arena, e->winner), tidy(l->arena, e->times),
                               tidy(l->arena, e->what)};
  keep(l, &tidied);
  if (l->fd < 0) {
    return;
  }
  const char *body = arena_printf(l->arena, "%s\t%016" PRIx64 "\t%s\t%s\t%s\t%s", version, e->key, hows[e->how],
                                  tidied.winner, tidied.times, tidied.what);
  const char *line =
      arena_printf(l->arena, "%s%s\t%08" PRIx32 "\n", l->torn ? "\n" : "", body, check_of(body, strlen(body)));
  size_t n = strlen(line);
  ssize_t written = write(l->fd, line, n); /* a single write, so that lines of several processes do not mix */
  l->torn = written < 0 ? l->torn : (size_t)written < n;
}
