/* external_data.c - opens and maps files of external data safely. */
#include "frontend/model/external_data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include "base/file.h"
#include "base/hash.h"

enum { LOCATION_MAX = 4000, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW };

struct onnx_folder {
  arena *arena;
  int fd; /* -1 until the folder is open */
  bool avoid_openat2;
  str_map files; /* from a location, as the model spells it, to a `file` */
};

typedef struct file {
  const uint8_t *bytes;
  size_t size;
} file;

/* --- the folder --- */

static void close_folder(void *data) {
  onnx_folder *f = data;
  if (f->fd >= 0) {
    close(f->fd);
  }
}

status onnx_folder_open(arena *a, const char *path, onnx_folder **out) {
  onnx_folder *f = ARENA_NEW(a, onnx_folder);
  f->arena = a;
  f->fd = -1;
  str_map_init(&f->files, a);
  arena_cleanup(a, close_folder, f);
  f->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  CHECK_THAT(f->fd >= 0, STATUS_IO, "the folder %s cannot be opened: %s", path, strerror(errno));
  *out = f;
  return NULL;
}

void onnx_folder_avoid_openat2(onnx_folder *folder) { folder->avoid_openat2 = true; }

const char *onnx_folder_find(const onnx_folder *folder, const void *data, int64_t *offset) {
  uint32_t at = 0;
  const char *name;
  void *value;
  while (str_map_next(&folder->files, &at, &name, &value)) {
    const file *f = value;
    if ((const uint8_t *)data >= f->bytes && (const uint8_t *)data < f->bytes + f->size) {
      *offset = (const uint8_t *)data - f->bytes;
      return name;
    }
  }
  return NULL;
}

/* --- the location --- */

/* Returns an error unless the location is a relative path whose components are neither empty nor "." nor "..".  A "./"
 * at the beginning is allowed, since exporters write it. */
static status check_location(const char *location) {
  CHECK_THAT(*location, STATUS_INVALID_MODEL, "external data has no location");
  CHECK_THAT(strlen(location) <= LOCATION_MAX, STATUS_INVALID_MODEL, "the location of external data has %zu characters",
             strlen(location));
  CHECK_THAT(!strchr(location, '\\'), STATUS_INVALID_MODEL, "external data \"%.200s\": a backslash in the location",
             location);
  CHECK_THAT(*location != '/', STATUS_INVALID_MODEL, "external data \"%.200s\": the location is not relative",
             location);
  const char *at = strncmp(location, "./", 2) == 0 ? location + 2 : location;
  for (;;) {
    size_t n = strcspn(at, "/");
    bool dots = (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.');
    CHECK_THAT(n && !dots, STATUS_INVALID_MODEL,
               "external data \"%.200s\": the location may only have plain names between single slashes", location);
    if (!at[n]) {
      return NULL;
    }
    at += n + 1;
  }
}

/* --- opening --- */

/* Opens a file below the folder with openat2.  Returns -1 with errno ENOSYS if the kernel does not have that call. */
static int open_beneath(int folder, const char *location) {
#if defined SYS_openat2 && defined RESOLVE_BENEATH
  struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  long fd;
  int tries = 0;
  do {
    fd = syscall(SYS_openat2, folder, location, &how, sizeof how);
  } while (fd < 0 && (errno == EAGAIN || errno == EINTR) && ++tries < 100);
  return (int)fd;
#else
  (void)folder;
  (void)location;
  errno = ENOSYS;
  return -1;
#endif
}

/* Opens a file below the folder without openat2: opens each component of the path relative to the one before and
 * refuses symbolic links. */
static int open_by_walking(int folder, const char *location) {
  char name[LOCATION_MAX + 1];
  int at = folder;
  for (const char *rest = location;;) {
    size_t n = strcspn(rest, "/");
    memcpy(name, rest, n);
    name[n] = '\0';
    bool last = !rest[n];
    int fd = openat(at, name, last ? OPEN_FLAGS : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int failed = errno;
    if (at != folder) {
      close(at);
    }
    errno = failed;
    if (fd < 0 || last) {
      return fd;
    }
    at = fd;
    rest += n + 1;
  }
}

static int open_location(const onnx_folder *folder, const char *location) {
  int fd = -1;
  if (!folder->avoid_openat2) {
    fd = open_beneath(folder->fd, location);
    /* Sandboxes (seccomp) return EPERM for system calls that they do not know. */
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL)) {
      return fd;
    }
  }
  return open_by_walking(folder->fd, location);
}

typedef struct map_call {
  onnx_folder *folder;
  const char *location;
  int fd;
  file *out;
} map_call;

static status map_file(void *data) {
  map_call *c = data;
  struct stat st;
  CHECK_THAT(!fstat(c->fd, &st), STATUS_IO, "external data \"%.200s\" cannot be examined: %s", c->location,
             strerror(errno));
  CHECK_THAT(S_ISREG(st.st_mode), STATUS_INVALID_MODEL, "external data \"%.200s\" is not a regular file", c->location);
  CHECK_THAT(st.st_nlink == 1, STATUS_INVALID_MODEL,
             "external data \"%.200s\" has %ju hard links: it may be another file than it seems", c->location,
             (uintmax_t)st.st_nlink);
  file *f = ARENA_NEW(c->folder->arena, file);
  TRY(file_map_fd(c->folder->arena, c->fd, c->location, &f->bytes, &f->size));
  *str_map_put(&c->folder->files, c->location) = f;
  *c->out = *f;
  return NULL;
}

static status open_file(onnx_folder *folder, const char *location, file *out) {
  const file *known = str_map_get(&folder->files, location);
  if (known) {
    *out = *known;
    return NULL;
  }
  int fd = open_location(folder, location);
  if (fd < 0 && (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)) {
    return status_error(STATUS_INVALID_MODEL,
                        "external data \"%.200s\" lies behind a symbolic link or outside the folder", location);
  }
  CHECK_THAT(fd >= 0, STATUS_IO, "external data \"%.200s\" cannot be opened: %s", location, strerror(errno));
  status s = guard_run(map_file, &(map_call){folder, location, fd, out});
  close(fd);
  return s;
}

/* --- the entries --- */

typedef struct entry {
  const char *location, *offset, *length;
} entry;

static status take_entry(const char **slot, const Onnx__StringStringEntryProto *pair) {
  CHECK_THAT(!*slot, STATUS_INVALID_MODEL, "external data gives \"%s\" twice", pair->key);
  *slot = pair->value;
  return NULL;
}

/* Reads location, offset and length.  The key `checksum` and keys that the standard does not define are ignored. */
static status read_entries(const Onnx__TensorProto *t, entry *out) {
  *out = (entry){0};
  for (size_t i = 0; i < t->n_external_data; i++) {
    const Onnx__StringStringEntryProto *pair = t->external_data[i];
    if (!strcmp(pair->key, "location")) {
      TRY(take_entry(&out->location, pair));
    } else if (!strcmp(pair->key, "offset")) {
      TRY(take_entry(&out->offset, pair));
    } else if (!strcmp(pair->key, "length")) {
      TRY(take_entry(&out->length, pair));
    }
  }
  return check_location(out->location ? out->location : "");
}

/* Parses a number below 2^63 that consists of decimal digits only. */
static status read_number(const char *key, const char *text, uint64_t *out) {
  uint64_t value = 0;
  bool good = *text != '\0';
  for (const char *c = text; good && *c; c++) {
    good = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, (uint64_t)10, &value) &&
           !__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value);
  }
  CHECK_THAT(good && value <= INT64_MAX, STATUS_INVALID_MODEL, "external data has the %s \"%.40s\"", key, text);
  *out = value;
  return NULL;
}

status onnx_external_data(onnx_folder *folder, const Onnx__TensorProto *t, uint64_t size, const uint8_t **data) {
  CHECK_THAT(folder, STATUS_INVALID_MODEL, "has external data, but a model in memory has no folder to find it in");
  entry e;
  uint64_t offset = 0, length = size, end;
  file f;
  TRY(read_entries(t, &e));
  if (e.offset) {
    TRY(read_number("offset", e.offset, &offset));
  }
  if (e.length) {
    TRY(read_number("length", e.length, &length));
  }
  CHECK_THAT(length == size, STATUS_INVALID_MODEL,
             "external data \"%.200s\" has length %" PRIu64 ", but type and dims ask for %" PRIu64 " bytes", e.location,
             length, size);
  TRY(open_file(folder, e.location, &f));
  bool overflow = __builtin_add_overflow(offset, length, &end);
  CHECK_THAT(!overflow && end <= f.size, STATUS_INVALID_FILE,
             "external data \"%.200s\" has %zu bytes, too few for %" PRIu64 " from %" PRIu64 " on", e.location, f.size,
             length, offset);
  *data = f.bytes + offset;
  return NULL;
}
