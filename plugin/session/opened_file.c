/* opened_file.c - see opened_file.h. */
#include "plugin/session/opened_file.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/program/image.h"

/* Returns true if the text begins with the first words of HLO text, after any comments. */
static bool is_hlo(const uint8_t *text, size_t size) {
  static const char words[] = "onnx-xla hlo ";
  size_t at = 0;
  while (at < size && (isspace(text[at]) || (size - at > 1 && memcmp(text + at, "//", 2) == 0))) {
    const uint8_t *end = text[at] == '/' ? memchr(text + at, '\n', size - at) : text + at;
    at = end ? (size_t)(end - text) + 1 : size;
  }
  return size - at >= sizeof words - 1 && memcmp(text + at, words, sizeof words - 1) == 0;
}

static opened_kind kind_of(const uint8_t *bytes, size_t size) {
  return rt_image_begins(bytes, size) ? OPENED_IMAGE : is_hlo(bytes, size) ? OPENED_HLO : OPENED_MODEL;
}

static void close_at_end(void *f) { opened_file_close(f); }

static status open_path(opened_file *f) {
  uint8_t start[RT_IMAGE_MAGIC];
  TRY(file_open(f->path, &f->fd, &f->was));
  ssize_t n = pread(f->fd, start, sizeof start, 0);
  f->kind = n > 0 && rt_image_begins(start, (size_t)n) ? OPENED_IMAGE : OPENED_MODEL;
  return NULL;
}

status opened_file_open(arena *a, const char *path, const void *bytes, size_t size, opened_file **out) {
  opened_file *f = *out = ARENA_NEW(a, opened_file);
  f->fd = -1;
  if (!path) {
    f->bytes = bytes;
    f->size = size;
    f->kind = kind_of(bytes, size);
    return NULL;
  }
  f->path = arena_strdup(a, path);
  arena_cleanup(a, close_at_end, f);
  return open_path(f);
}

status opened_file_map(opened_file *f, arena *a) {
  if (!f->bytes) {
    TRY(file_map_fd(a, f->fd, f->path, &f->bytes, &f->size));
    f->kind = kind_of(f->bytes, f->size);
  }
  return NULL;
}

status opened_file_find_key(opened_file *f, const fingerprints *c, rt_thread_pool *pool) {
  if (f->path) {
    return content_key_of_file(c, pool, f->fd, &f->was, &f->key);
  }
  f->key = content_key_of(c, pool, f->bytes, f->size);
  return NULL;
}

bool opened_file_has_changed(const opened_file *f) {
  struct stat now;
  return f->fd >= 0 && (fstat(f->fd, &now) != 0 || !fingerprint_same_file(&now, &f->was));
}

void opened_file_close(opened_file *f) {
  if (f->fd >= 0) {
    close(f->fd);
  }
  f->fd = -1;
}
