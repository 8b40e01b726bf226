/* store.c - the files of the compile cache.  They are written under another name and renamed, read by mapping, and
 * removed when the folder is too large. */
#include "plugin/session/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/program/sizes.h"

enum {
  ABANDONED_SECONDS = 3600,
  OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
  READ_FILE = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, /* opening a pipe by mistake does not block */
  MAX_SOURCE = 1 << 28
};

/* --- the folder --- */

/* Reads the secret, or creates it.  If several threads or processes create it at once, all use
 * that of the first. */
static status get_secret(int folder, hash_secret *secret) {
  for (int k = 0; k < 3; k++) {
    int fd = openat(folder, "secret", READ_FILE);
    ssize_t n = fd >= 0 ? read(fd, secret, sizeof *secret) : 0;
    if (fd >= 0) {
      close(fd);
    }
    if (n == sizeof *secret) {
      return NULL;
    }
    char name[64];
    if (fd >= 0) {
      (void)unlinkat(folder, "secret", 0); /* the file is damaged */
    }
    CHECK_THAT(hash_secret_init(secret), STATUS_IO, "the system gives no random numbers");
    fd = file_create_temporary(folder, "secret", 0600, name, sizeof name);
    if (fd >= 0) {
      bool written = write(fd, secret, sizeof *secret) == sizeof *secret;
      close(fd);
      if (written) {
        (void)linkat(folder, name, folder, "secret", 0); /* fails if another thread or process was faster */
      }
      (void)unlinkat(folder, name, 0);
    }
  }
  return status_error(STATUS_IO, "cannot be written");
}

static int open_below(int folder, const char *name) {
  (void)mkdirat(folder, name, 0700);
  return openat(folder, name, OPEN_FOLDER);
}

static status open_folders(const char *path, content_store *c) {
  struct stat st;
  hash_secret secret;
  (void)file_make_folders(path); /* opening the folder fails if there is none */
  c->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK_THAT(c->folder >= 0 && fstat(c->folder, &st) == 0, STATUS_IO, "cannot be opened: %s", strerror(errno));
  CHECK_THAT(
      st.st_uid == geteuid(), STATUS_INVALID_ARGUMENT,
      "belongs to another user, whose code would run here; --cache or ONNX_XLA_CACHE names a folder of your own");
  CHECK_THAT((st.st_mode & 077) == 0, STATUS_INVALID_ARGUMENT,
             "has mode %03o; with 700 nobody else could put code there that runs here", st.st_mode & 0777);
  c->models = open_below(c->folder, "models");
  int fingerprints_folder = open_below(c->folder, "stamps");
  c->contents.folder = fingerprints_folder;
  CHECK_THAT(c->models >= 0 && fingerprints_folder >= 0, STATUS_IO, "cannot be written: %s", strerror(errno));
  TRY(get_secret(c->folder, &secret));
  fingerprints_init(&c->contents, fingerprints_folder, &secret);
  return NULL;
}

status content_store_open(const char *path, uint64_t max_bytes, content_store *out) {
  *out = (content_store){.folder = -1, .models = -1, .contents = {.folder = -1}};
  out->max_bytes = max_bytes ? max_bytes : (uint64_t)CONTENT_STORE_GIGABYTES << 30;
  status s = open_folders(path, out);
  if (s) {
    content_store_close(out);
  }
  return s ? status_prefix(s, "the cache %s", path) : NULL;
}

void content_store_close(content_store *c) {
  if (c->has_grown) {
    content_store_trim(c, c->max_bytes);
  }
  int all[] = {c->folder, c->models, c->contents.folder};
  for (int k = 0; k < 3; k++) {
    if (all[k] >= 0) {
      close(all[k]);
    }
  }
  c->folder = c->models = c->contents.folder = -1;
}

/* --- names --- */

static bool is_key(const char *text, size_t n) {
  return n == CONTENT_KEY_TEXT - 1 && strspn(text, "0123456789abcdef") >= n;
}

typedef struct name {
  char text[2 * CONTENT_KEY_TEXT + 16];
} name;

static const char *const suffixes[] = {".oxla", ".weights", ".kernels", ".code"}; /* by content_kind */

static name file_name(const char *folder, const char *made, content_kind kind) {
  name n;
  snprintf(n.text, sizeof n.text, "%s/%s%s", folder, made, suffixes[kind]);
  return n;
}

static name source_name(const char *model) {
  name n;
  snprintf(n.text, sizeof n.text, "%s/source", model);
  return n;
}

/* --- programs --- */

typedef struct getting {
  content_store *c;
  const char *folder; /* the model's folder */
  arena *a;
  int fd;
  bool verify;
  content_kind kind;
  rt_image *image;
} getting;

static rt_image *get(content_store *c, arena *a, const char *folder, const char *made, content_kind kind);

/* Finds the weights on which a program is based.  `made`, the key of the weights as text, comes from a file that may be
 * damaged, so it is checked that it is a key before it becomes part of a path. */
static rt_image *find_weights(void *data, arena *a, const char *made) {
  const getting *g = data;
  return is_key(made, strlen(made)) ? get(g->c, a, g->folder, made, CONTENT_WEIGHTS) : NULL;
}

static status read_image(void *data) {
  getting *g = data;
  const rt_image_finder bases = {find_weights, g};
  return rt_image_open_fd(g->a, g->fd, "cached program", g->verify, g->kind == CONTENT_PROGRAM ? &bases : NULL,
                          &g->image);
}

/* Maps a file, and marks it as used.  Weights get a later time than their program, so that they are not removed before
 * it. */
static rt_image *get(content_store *c, arena *a, const char *folder, const char *made, content_kind kind) {
  name n = file_name(folder, made, kind);
  struct timespec start;
  int fd = openat(c->models, n.text, READ_FILE);
  if (fd < 0) {
    return NULL;
  }
  clock_gettime(CLOCK_REALTIME, &start);
  bool whole = fingerprint_is_whole(&c->contents, fd);
  getting g = {.c = c, .folder = folder, .a = a, .fd = fd, .verify = c->verify || !whole, .kind = kind};
  status failed = guard_run(read_image, &g);
  bool good = !failed && g.image->n_programs == 1 && strcmp(g.image->producer, made) == 0;
  if (good && !whole) {
    fingerprint_mark_whole(&c->contents, fd);
  } else if (!good && status_get_code(failed) != STATUS_RESOURCE) {
    (void)unlinkat(c->models, n.text, 0);
  }
  if (good) {
    fingerprint_mark_used(&c->contents, fd, &start);
  }
  status_free(failed);
  close(fd);
  return good ? g.image : NULL;
}

static rt_image *get_by_key(content_store *c, arena *a, content_key model, content_key key, content_kind kind) {
  char folder[CONTENT_KEY_TEXT], made[CONTENT_KEY_TEXT];
  content_key_text(model, folder);
  content_key_text(key, made);
  return get(c, a, folder, made, kind);
}

rt_image *content_store_get(content_store *c, arena *a, content_key model, content_key program) {
  return get_by_key(c, a, model, program, CONTENT_PROGRAM);
}

rt_image *content_store_get_weights(content_store *c, arena *a, content_key model, content_key weights) {
  return get_by_key(c, a, model, weights, CONTENT_WEIGHTS);
}

rt_image *content_store_get_entry(content_store *c, arena *a, const content_store_entry *e) {
  return get(c, a, e->model, e->name, e->kind);
}

void content_store_remove(content_store *c, content_key model, content_key program) {
  char folder[CONTENT_KEY_TEXT], made[CONTENT_KEY_TEXT];
  content_key_text(model, folder);
  content_key_text(program, made);
  (void)unlinkat(c->models, file_name(folder, made, CONTENT_PROGRAM).text, 0);
}

static status put(content_store *c, content_key model, content_key key, content_kind kind, rt_image image) {
  char folder[CONTENT_KEY_TEXT], made[CONTENT_KEY_TEXT];
  content_key_text(model, folder);
  content_key_text(key, made);
  image.producer = made;
  (void)mkdirat(c->models, folder, 0700);
  name n = file_name(folder, made, kind);
  status failed = rt_image_write_at(&image, c->models, n.text);
  if (!failed) {
    int fd = openat(c->models, n.text, READ_FILE);
    if (fd >= 0) {
      fingerprint_mark_whole(&c->contents, fd);
      close(fd);
    }
  }
  return failed;
}

status content_store_put(content_store *c, content_key model, content_key program, rt_image image) {
  status failed = put(c, model, program, CONTENT_PROGRAM, image);
  content_store_trim(c, c->max_bytes);
  return failed;
}

status content_store_put_weights(content_store *c, content_key model, content_key weights, rt_image image) {
  return put(c, model, weights, CONTENT_WEIGHTS, image);
}

status content_store_put_kernels(content_store *c, content_key options, content_key kernels, rt_image image) {
  return put(c, options, kernels, CONTENT_KERNELS, image);
}

/* --- code --- */

typedef struct code_keys {
  content_key compiler, source;
} code_keys;

static code_keys keys_of_code(const content_store *c, const char *compiler, rt_span source) {
  return (code_keys){content_key_of(&c->contents, NULL, compiler, strlen(compiler)),
                     content_key_of(&c->contents, NULL, source.data, source.size)};
}

static rt_span find_code(void *data, arena *a, const char *compiler, rt_span source) {
  content_store *c = data;
  code_keys k = keys_of_code(c, compiler, source);
  const rt_image *image = get_by_key(c, a, k.compiler, k.source, CONTENT_CODE);
  return image && image->programs[0]->n_code == 1 ? image->programs[0]->code[0] : (rt_span){NULL, 0};
}

typedef struct keeping {
  content_store *c;
  code_keys keys;
  rt_span code;
} keeping;

static status put_code(void *data) {
  keeping *k = data;
  rt_span no_name = {NULL, 0};
  rt_program program = {.target = "", .cpu = "", .n_code = 1, .code = &k->code, .code_names = &no_name};
  rt_image image = {.model = "", .target = "", .n_programs = 1, .programs = &(rt_program *){&program}};
  return put(k->c, k->keys.compiler, k->keys.source, CONTENT_CODE, image);
}

static void keep_code(void *data, const char *compiler, rt_span source, rt_span compiled) {
  content_store *c = data;
  status_free(guard_run(put_code, &(keeping){c, keys_of_code(c, compiler, source), compiled}));
  c->has_grown = true;
}

rt_code_cache content_store_code(content_store *c) {
  return (rt_code_cache){.find = find_code, .keep = keep_code, .data = c};
}

/* --- descriptions of models (files named source) --- */

rt_span content_store_get_source(content_store *c, arena *a, const char *model) {
  name n = source_name(model);
  struct stat st;
  rt_span bytes = {NULL, 0};
  int fd = openat(c->models, n.text, READ_FILE);
  if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < MAX_SOURCE) {
    uint8_t *memory = arena_alloc(a, (size_t)st.st_size + 1);
    if (read(fd, memory, (size_t)st.st_size) == st.st_size) {
      bytes = (rt_span){memory, (uint64_t)st.st_size};
    }
  }
  if (fd >= 0) {
    close(fd);
  }
  return bytes;
}

void content_store_put_source(content_store *c, content_key model, rt_span bytes) {
  char folder[CONTENT_KEY_TEXT];
  content_key_text(model, folder);
  name n = source_name(folder), temporary;
  (void)mkdirat(c->models, folder, 0700);
  int fd = file_create_temporary(c->models, n.text, 0600, temporary.text, sizeof temporary.text);
  if (fd < 0) {
    return;
  }
  bool written = write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size;
  if (close(fd) != 0 || !written || renameat(c->models, temporary.text, c->models, n.text) != 0) {
    (void)unlinkat(c->models, temporary.text, 0);
  }
}

/* --- listing and removing --- */

typedef struct listing {
  const content_store *c;
  arena *a;
  content_store_entry *entries;
  uint32_t n, cap;
} listing;

/* Calls see(data, model's folder, its name, file) for all files of all models. */
static void walk(const content_store *c, void (*see)(void *data, int folder, const char *model, const char *file),
                 void *data) {
  int copy = openat(c->models, ".", OPEN_FOLDER);
  DIR *models = copy >= 0 ? fdopendir(copy) : NULL;
  if (!models) {
    if (copy >= 0) {
      close(copy);
    }
    return;
  }
  for (struct dirent *m; (m = readdir(models));) {
    int fd = is_key(m->d_name, strlen(m->d_name)) ? openat(c->models, m->d_name, OPEN_FOLDER) : -1;
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *f; files && (f = readdir(files));) {
      if (f->d_name[0] != '.') {
        see(data, dirfd(files), m->d_name, f->d_name);
      }
    }
    if (files) {
      closedir(files);
    } else if (fd >= 0) {
      close(fd);
    }
  }
  closedir(models);
}

/* Returns true if a file of this name is an entry of the store, and sets *kind. */
static bool is_entry(const char *file, content_kind *kind) {
  size_t n = strcspn(file, ".");
  uint32_t k = 0;
  while (k < sizeof suffixes / sizeof *suffixes && strcmp(file + n, suffixes[k]) != 0) {
    k++;
  }
  *kind = (content_kind)k;
  return is_key(file, n) && k < sizeof suffixes / sizeof *suffixes;
}

static void see_entry(void *data, int folder, const char *model, const char *file) {
  listing *l = data;
  struct stat st;
  content_kind kind;
  if (!is_entry(file, &kind) || fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  content_store_entry *e = ARENA_PUSH(l->a, l->entries, l->n, l->cap);
  memcpy(e->model, model, CONTENT_KEY_TEXT);
  memcpy(e->name, file, CONTENT_KEY_TEXT - 1);
  e->kind = kind;
  e->bytes = (uint64_t)st.st_size;
  e->used = fingerprint_last_used(&l->c->contents, &st);
}

static int by_use(const void *a, const void *b) {
  const content_store_entry *x = a, *y = b;
  return x->used != y->used ? (x->used < y->used) - (x->used > y->used) : strcmp(x->name, y->name);
}

void content_store_list(const content_store *c, arena *a, content_store_entry **out, uint32_t *n) {
  listing l = {.c = c, .a = a};
  walk(c, see_entry, &l);
  if (l.n) {
    qsort(l.entries, l.n, sizeof *l.entries, by_use);
  }
  *out = l.entries;
  *n = l.n;
}

/* Removes files with temporary names that are so old that the process that wrote them must be dead. */
static void see_abandoned(void *data, int folder, const char *model, const char *file) {
  (void)model;
  struct stat st;
  const time_t *now = data;
  content_kind kind;
  bool known = strcmp(file, "source") == 0 || is_entry(file, &kind);
  if (!known && fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && *now - st.st_mtim.tv_sec > ABANDONED_SECONDS) {
    (void)unlinkat(folder, file, 0);
  }
}

/* Removes an entry.  With the last entry of a model, its description and folder are removed, too.  A folder that still
 * has other files stays, since unlinkat refuses to remove it. */
static void drop_entry(const content_store *c, const content_store_entry *e, bool last) {
  name n = file_name(e->model, e->name, e->kind);
  (void)unlinkat(c->models, n.text, 0);
  if (last) {
    snprintf(n.text, sizeof n.text, "%s/source", e->model);
    (void)unlinkat(c->models, n.text, 0);
    (void)unlinkat(c->models, e->model, AT_REMOVEDIR);
  }
}

static bool is_last(const content_store_entry *entries, uint32_t k) {
  for (uint32_t j = 0; j < k; j++) {
    if (strcmp(entries[j].model, entries[k].model) == 0) {
      return false;
    }
  }
  return true;
}

void content_store_drop(const content_store *c, const content_store_entry *entries, uint32_t n, uint32_t k) {
  bool last = true;
  for (uint32_t j = 0; j < n; j++) {
    last &= j == k || strcmp(entries[j].model, entries[k].model) != 0;
  }
  drop_entry(c, &entries[k], last);
}

typedef struct trimming {
  const content_store *c;
  uint64_t bytes;
  arena *a;
} trimming;

static status trim(void *data) {
  trimming *t = data;
  time_t now = time(NULL);
  content_store_entry *entries;
  uint32_t n;
  uint64_t total = 0;
  t->a = arena_create(NULL);
  content_store_list(t->c, t->a, &entries, &n);
  for (uint32_t k = 0; k < n; k++) {
    total += entries[k].bytes;
  }
  for (uint32_t k = n; k-- > 0 && total > t->bytes;) {
    total -= entries[k].bytes;
    drop_entry(t->c, &entries[k], is_last(entries, k));
  }
  walk(t->c, see_abandoned, &now);
  return NULL;
}

/* Returns at once if another process is trimming the folder. */
void content_store_trim(const content_store *c, uint64_t bytes) {
  if (flock(c->models, LOCK_EX | LOCK_NB) == 0) {
    trimming t = {.c = c, .bytes = bytes};
    status_free(guard_run(trim, &t));
    arena_destroy(t.a);
    (void)flock(c->models, LOCK_UN);
  }
}
