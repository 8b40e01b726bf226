/* file.c - copies or maps regular files, and writes files by renaming. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static status io_error(const char *path, const char *what) {
  return status_error(STATUS_IO, "%s %s: %s", path, what, strerror(errno));
}

typedef struct mapping {
  struct mapping *next;
  void *start;
  size_t size;
  const char *path; /* the absolute path when the file was opened; "" if it is not known */
  struct stat was;
} mapping;

static void unmap(void *data) {
  mapping *m = data;
  if (m->size) {
    munmap(m->start, m->size);
  }
}

/* Returns true if size and time of modification are equal.  The time of the last status change is not compared, since
 * replacing the file by renaming changes it, too. */
static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Returns the path of an open file.  Mappings keep the path instead of the descriptor, since a model may have its
 * weights in thousands of files. */
static const char *path_of(arena *a, int fd) {
  char link[32], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path);
  return n > 0 && n < (ssize_t)sizeof path ? arena_strndup(a, path, (size_t)n) : "";
}

status file_check(arena *a) {
  for (const mapping *m = atomic_load(arena_files(a)); m; m = m->next) {
    struct stat now;
    bool there = stat(m->path, &now) == 0 && now.st_dev == m->was.st_dev && now.st_ino == m->was.st_ino;
    CHECK_THAT(!there || is_same(&now, &m->was), STATUS_IO,
               "%s was written to while it is in use; files in use are replaced by renaming", m->path);
  }
  return NULL;
}

bool file_is_mapped(arena *a, const void *data) {
  const mapping *m = atomic_load(arena_files(a));
  while (m && ((uintptr_t)data < (uintptr_t)m->start || (uintptr_t)data - (uintptr_t)m->start >= m->size)) {
    m = m->next;
  }
  return m != NULL;
}

static status copy_file(arena *a, int fd, const char *name, const struct stat *was, const uint8_t **bytes) {
  enum { ALIGN = 64 };
  struct stat now;
  size_t size = (size_t)was->st_size, n = 0;
  uint8_t *copy = arena_alloc_aligned(a, size, ALIGN);
  while (n < size) {
    ssize_t more = pread(fd, copy + n, size - n, (off_t)n);
    if (more < 0 && errno != EINTR) {
      return io_error(name, "cannot be read");
    }
    if (more == 0) {
      break;
    }
    n += more > 0 ? (size_t)more : 0;
  }
  CHECK_THAT(n == size && fstat(fd, &now) == 0 && is_same(&now, was), STATUS_IO, "%s changes while it is read", name);
  *bytes = copy;
  return NULL;
}

static status check_regular(const struct stat *st, const char *name) {
  CHECK_THAT(!S_ISDIR(st->st_mode), STATUS_INVALID_ARGUMENT, "%s is a folder, not a file", name);
  CHECK_THAT(!S_ISFIFO(st->st_mode), STATUS_INVALID_ARGUMENT, "%s is a pipe, not a regular file", name);
  CHECK_THAT(S_ISREG(st->st_mode), STATUS_INVALID_ARGUMENT, "%s is not a regular file", name);
  return NULL;
}

static status examine(int fd, const char *name, struct stat *st) {
  if (fstat(fd, st)) {
    return io_error(name, "cannot be examined");
  }
  return check_regular(st, name);
}

status file_map_fd(arena *a, int fd, const char *name, const uint8_t **bytes, size_t *size) {
  struct stat st;
  TRY(examine(fd, name, &st));
  *bytes = (const uint8_t *)"";
  *size = (size_t)st.st_size;
  if (!*size) {
    return NULL;
  }
  if (*size <= FILE_MAX_COPIED) {
    return copy_file(a, fd, name, &st, bytes);
  }
  mapping *m = ARENA_NEW(a, mapping);
  m->path = path_of(a, fd);
  arena_cleanup(a, unmap, m);
  void *start = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (start == MAP_FAILED) {
    return io_error(name, "cannot be mapped");
  }
  m->start = start;
  m->size = *size;
  m->was = st;
  m->next = atomic_load(arena_files(a));
  atomic_store(arena_files(a), m);
  *bytes = start;
  return NULL;
}

/* The arguments of file_map_fd, for guard_run.  file_map calls file_map_fd through guard_run, which returns even if
 * memory runs out, so that file_map can close the descriptor. */
typedef struct map_call {
  arena *a;
  int fd;
  const char *path;
  const uint8_t **bytes;
  size_t *size;
} map_call;

static status call_map(void *data) {
  map_call *c = data;
  return file_map_fd(c->a, c->fd, c->path, c->bytes, c->size);
}

status file_open(const char *path, int *fd, struct stat *st) {
  /* O_NONBLOCK, since opening a pipe would otherwise wait for a writer. */
  *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (*fd < 0) {
    return io_error(path, "cannot be opened");
  }
  status failed = examine(*fd, path, st);
  if (failed) {
    close(*fd);
    *fd = -1;
  }
  return failed;
}

status file_map(arena *a, const char *path, const uint8_t **bytes, size_t *size) {
  int fd;
  struct stat st;
  TRY(file_open(path, &fd, &st));
  status s = guard_run(call_map, &(map_call){a, fd, path, bytes, size});
  close(fd);
  return s;
}

/* --- writing --- */

static status write_all(int fd, const char *path, const void *bytes, size_t size) {
  const char *at = bytes;
  while (size) {
    ssize_t n = write(fd, at, size < SSIZE_MAX ? size : SSIZE_MAX);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return io_error(path, "cannot be written");
    }
    at += n;
    size -= (size_t)n;
  }
  return NULL;
}

static status write_as_it_is(const char *path, const void *bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    return io_error(path, "cannot be opened for writing");
  }
  status s = write_all(fd, path, bytes, size);
  if (close(fd) && !s) {
    s = io_error(path, "cannot be written");
  }
  return s;
}

bool file_make_folders(const char *path) {
  char *copy = strdup(path);
  if (!copy) {
    return false;
  }
  for (char *slash = copy; *slash && (slash = strchr(slash + 1, '/'));) {
    *slash = '\0';
    (void)mkdir(copy, 0700);
    *slash = '/';
  }
  free(copy);
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

int file_create_temporary(int folder, const char *path, mode_t mode, char *name, size_t room) {
  for (int i = 0; i < 100; i++) {
    int n = snprintf(name, room, "%s.%ld-%d.tmp", path, (long)getpid(), i);
    if (n < 0 || (size_t)n >= room) {
      errno = ENAMETOOLONG;
      return -1;
    }
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) {
      return fd;
    }
  }
  return -1;
}

status file_write(const char *path, const void *bytes, size_t size) {
  struct stat st;
  if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
    CHECK_THAT(!S_ISDIR(st.st_mode), STATUS_INVALID_ARGUMENT, "%s is a folder, not a file", path);
    return write_as_it_is(path, bytes, size);
  }
  char name[PATH_MAX];
  int fd = file_create_temporary(AT_FDCWD, path, 0666, name, sizeof name);
  if (fd < 0) {
    return io_error(path, "cannot be created");
  }
  status s = write_all(fd, path, bytes, size);
  if (close(fd) && !s) {
    s = io_error(path, "cannot be written");
  }
  if (!s && rename(name, path)) {
    s = io_error(path, "cannot be created");
  }
  if (s) {
    unlink(name);
  }
  return s;
}
