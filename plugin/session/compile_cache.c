/* compile_cache.c - computes the keys of programs, and finds and stores programs. */
#include "plugin/session/compile_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "plugin/session/cache.h"
#include "plugin/session/options.h"
#include "plugin/session/model_description.h"

struct compile_cache {
  content_store store;
  content_key model;       /* the key of the model's own bytes and of the constants in the options; it names the model's
                              folder in the cache */
  content_key content;     /* the key of `model` and of the files of external data */
  content_key build;       /* the key of the builds (put_builds) and of the processor */
  content_key options_key; /* the key of `build` and of the options that session_put_options writes */
  content_key dims;        /* the key of the sizes and of the carried outputs that the options give */
  bool described;          /* whether the session has found or written the description in the model's folder */
  content_key last;        /* the key of the program that was looked for last */
  arena *mapped;           /* the arena on which a stored program is mapped while it is examined; otherwise NULL */
  pthread_mutex_t lock;    /* guards the members below */
  struct storing *queue;
  /* writing: a thread is working on the queue; has_thread: a thread was started and not joined */
  bool writing, has_thread;
  bool closing;
  char failure[200];    /* why a program could not be stored; "" if no failure has occurred */
  pthread_cond_t close; /* signalled when the session is being closed */
  pthread_t thread;
  pid_t process; /* the process that started the thread */
};

enum { LOW_PRIORITY = 10 };

/* --- the key of the build --- */

static void put_file(rt_writer *w, const char *path) {
  struct stat st;
  if (path && stat(path, &st) == 0) {
    rt_put_i64(w, (int64_t)st.st_dev);
    rt_put_i64(w, (int64_t)st.st_ino);
    rt_put_i64(w, st.st_size);
    rt_put_i64(w, st.st_mtim.tv_sec);
    rt_put_i64(w, st.st_mtim.tv_nsec);
    rt_put_i64(w, st.st_ctim.tv_sec);
    rt_put_i64(w, st.st_ctim.tv_nsec);
  }
}

/* Writes what identifies the builds of this library and of the compiler library.  The status of the files is included,
 * since another build of the same version may replace them.  A program that calls other libraries checks their versions
 * when it is loaded, so that they need not be opened for programs that do not call them. */
static void put_builds(rt_writer *w, const rt_target *target) {
  Dl_info self;
  char path[PATH_MAX];
  rt_put_text(w, PACKAGE_VERSION);
  rt_put_text(w, target->name);
  put_file(w, dladdr((void *)(uintptr_t)session_version, &self) ? self.dli_fname : NULL);
  put_file(w, session_compiler_path(path) ? path : NULL);
}

static void put_carried(rt_writer *w, const session_options *o) {
  rt_put_i64(w, o->n_carried);
  for (uint32_t k = 0; o->carried && k < o->n_carried; k++) {
    rt_put_text(w, o->carried[k].output);
    rt_put_text(w, o->carried[k].input);
    rt_put_i64(w, o->carried[k].axis);
  }
}

static content_key key_of_written(const session *s, const rt_writer *w) {
  return content_key_of(&s->cache->store.contents, NULL, w->bytes, w->n);
}

static void find_options_key(session *s) {
  compile_cache *c = s->cache;
  rt_writer build = {.arena = s->arena}, options = build, dims = build;
  put_builds(&build, s->target);
  machine_identity processor = machine_processor_identity();
  rt_put_bytes(&build, &processor, sizeof processor);
  session_put_options(&options, &s->options);
  session_put_dims(&dims, &s->options);
  put_carried(&dims, &s->options);
  c->build = key_of_written(s, &build);
  c->options_key = content_key_join(&c->store.contents, c->build, key_of_written(s, &options));
  c->dims = key_of_written(s, &dims);
}

/* --- the key of the model --- */

static content_key constants_key(const session *s) {
  const fingerprints *c = &s->cache->store.contents;
  content_key key = {{s->options.n_constants, 0}};
  for (uint32_t k = 0; k < s->options.n_constants; k++) {
    const compiler_constant *x = &s->options.constants[k];
    rt_writer w = {.arena = s->arena};
    rt_put_text(&w, x->name);
    model_description_put_shape(&w, &x->value.shape);
    key = content_key_join(c, key, key_of_written(s, &w));
    key = content_key_join(c, key, content_key_of(c, s->pool, x->value.data, (size_t)shape_bytes(&x->value.shape)));
  }
  return key;
}

static status key_of_path(const session *s, const char *path, content_key *out) {
  int fd;
  struct stat st;
  TRY(file_open(path, &fd, &st));
  status failed = content_key_of_file(&s->cache->store.contents, s->pool, fd, &st, out);
  close(fd);
  return failed;
}

/* Computes c->content from c->model and the keys of the external data files, which are found relative to the model's
 * path. */
static status join_files(session *s) {
  compile_cache *c = s->cache;
  const char *path = s->file->path;
  const char *slash = path ? strrchr(path, '/') : NULL;
  c->content = c->model;
  for (uint32_t k = 0; k < s->source->n_files; k++) {
    content_key key;
    const char *file =
        arena_printf(s->arena, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path ? path : "", s->source->files[k]);
    TRY(key_of_path(s, file, &key));
    c->content = content_key_join(&c->store.contents, c->content, key);
  }
  return NULL;
}

static bool can_be_cached(const session *s) {
  const session_options *o = &s->options;
  return o->keep_programs && !o->compile.keep_text && s->target->keeps_programs;
}

static status identify(session *s) {
  compile_cache *c = s->cache;
  TRY(opened_file_find_key(s->file, &c->store.contents, s->pool));
  c->model = content_key_join(&c->store.contents, s->file->key, constants_key(s));
  char model[CONTENT_KEY_TEXT];
  content_key_text(c->model, model);
  s->source = model_description_read(s->arena, content_store_get_source(&c->store, s->arena, model), &c->store.contents,
                                     c->build);
  c->described = s->source;
  return s->source ? join_files(s) : NULL;
}

void compile_cache_open(session *s) {
  const char *why;
  if (!can_be_cached(s)) {
    return;
  }
  compile_cache *c = ARENA_NEW(s->arena, compile_cache);
  bool usable = session_cache_open_store(s->arena, &s->options, &c->store, &why);
  s->warning = s->warning ? s->warning : why;
  if (!usable) {
    return;
  }
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->close, NULL);
  c->process = getpid();
  s->cache = c;
  find_options_key(s);
  status failed = identify(s);
  if (failed) {
    status_free(failed);
    compile_cache_close(s);
    s->source = NULL;
  }
}

const hash_secret *compile_cache_secret(const session *s) { return s->cache ? &s->cache->store.contents.secret : NULL; }

void compile_cache_check_model(session *s) {
  if (s->cache && opened_file_has_changed(s->file)) {
    compile_cache_close(s);
  }
  status failed = s->cache ? join_files(s) : NULL;
  if (failed) {
    status_free(failed);
    compile_cache_close(s);
  }
}

/* --- programs --- */

/* Returns the key of the file of weights, which all programs of the model with these options share, whatever their
 * shapes. */
static content_key weights_key(const session *s) {
  return content_key_join(&s->cache->store.contents, s->cache->content, s->cache->options_key);
}

static content_key program_key(const session *s, const session_inputs *inputs, rt_tune tune, arena *a) {
  const fingerprints *c = &s->cache->store.contents;
  rt_writer w = {.arena = a};
  rt_put_i64(&w, tune);
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shape wanted = session_input_shape(s, inputs, k);
    model_description_put_shape(&w, &wanted);
  }
  return content_key_join(c, content_key_join(c, weights_key(s), s->cache->dims), key_of_written(s, &w));
}

static content_key general_key(const session *s, uint32_t number, arena *a) {
  const fingerprints *c = &s->cache->store.contents;
  rt_writer w = {.arena = a};
  rt_put_text(&w, "all sizes");
  rt_put_i64(&w, number);
  return content_key_join(c, content_key_join(c, weights_key(s), s->cache->dims), key_of_written(s, &w));
}

/* Computes the key of a program that depends on the contents of inputs.  `first` is the first program that was compiled
 * for some shapes, and is stored under a key without contents.  Other programs for these shapes depend on the contents
 * of the same inputs as `first` (those with rt_io.value).  The contents of these inputs in `values` are added to *key.
 * Returns false if `first` depends on no contents, or if `values` lacks the contents of one of the inputs. */
static bool key_with_values(const session *s, const rt_program *first, const void *const *values, content_key *key) {
  bool any = false;
  for (uint32_t k = 0; k < first->n_params; k++) {
    if (first->params[k].value) {
      if (!values || !values[k]) {
        return false;
      }
      size_t size = (size_t)shape_bytes(&first->params[k].shape);
      *key = content_key_join(&s->cache->store.contents, *key,
                              content_key_of(&s->cache->store.contents, NULL, values[k], size));
      any = true;
    }
  }
  return any;
}

static const rt_image *get(const session *s, arena *a, content_key key) {
  return content_store_get(&s->cache->store, a, s->cache->model, key);
}

/* Copies the program, which is in a mapped file, to `a`.  Weights are not copied: the copy uses the arrays of the
 * weight pool.  Weights that the pool does not have yet are registered where they are in the file, which then stays
 * mapped. */
static const rt_program *take(session *s, const rt_program *p, arena *a) {
  compile_cache *c = s->cache;
  if (rt_weight_pool_register(s->weight_pool, p, c->mapped)) {
    c->mapped = NULL;
  }
  return rt_program_keep(a, p, &(rt_sharing){.weight_pool = s->weight_pool});
}

static void describe(session *s, arena *a) {
  compile_cache *c = s->cache;
  if (!c->described) {
    content_store_put_source(&c->store, c->model, model_description_write(a, s->source, &c->store.contents, c->build));
    c->described = true;
  }
}

/* Begins a search: makes and returns the arena cache->mapped, on which files are mapped. */
static arena *begin_search(session *s) {
  arena_destroy(s->cache->mapped); /* not NULL if an earlier search ran out of memory */
  return s->cache->mapped = arena_create(&s->budget);
}

static void end_search(session *s) {
  arena_destroy(s->cache->mapped);
  s->cache->mapped = NULL;
}

const rt_program *compile_cache_find_general(session *s, uint32_t number, arena *a) {
  if (!s->cache) {
    return NULL;
  }
  content_key key = s->cache->last = general_key(s, number, a);
  const rt_image *image = get(s, begin_search(s), key);
  const rt_program *p = image ? take(s, image->programs[0], a) : NULL;
  end_search(s);
  if (p) {
    describe(s, a);
  }
  return p;
}

static const rt_program *find_tuned(session *s, const session_inputs *inputs, rt_tune tune, arena *a) {
  compile_cache *c = s->cache;
  content_key key = program_key(s, inputs, tune, a);
  const rt_image *image = get(s, begin_search(s), key);
  if (image && !session_program_serves(s, image->programs[0], inputs)) {
    image = key_with_values(s, image->programs[0], inputs->values, &key) ? get(s, c->mapped, key) : NULL;
  }
  c->last = key;
  bool good = image && session_program_serves(s, image->programs[0], inputs);
  const rt_program *p = good ? take(s, image->programs[0], a) : NULL;
  end_search(s);
  return p;
}

void compile_cache_forget(session *s) { content_store_remove(&s->cache->store, s->cache->model, s->cache->last); }

/* If `tune` is RT_TUNE_KNOWN, looks first for a program that another process tuned by measuring. */
const rt_program *compile_cache_find(session *s, const session_inputs *inputs, rt_tune tune, arena *a, rt_tune *tuned) {
  if (!s->cache) {
    return NULL;
  }
  *tuned = RT_TUNE_FAST;
  const rt_program *p = tune == RT_TUNE_KNOWN ? find_tuned(s, inputs, RT_TUNE_FAST, a) : NULL;
  if (!p) {
    *tuned = tune;
    p = find_tuned(s, inputs, tune, a);
  }
  if (p) {
    describe(s, a);
  }
  return p;
}

/* --- kernels of all models --- */

/* Kernels that a compilation made are also stored without their program, in a folder that all models with the same
 * options share.  So a model with layers of the same sizes as those of an earlier model finds most of its kernels. */
enum { MOST_KERNEL_FILES = 64 };

typedef struct sharing {
  session *s;
  arena *scratch;
  rt_weight_pool *pool;
  const rt_program *program;
  uint32_t n;
} sharing;

static status map_kernels(void *data) {
  const sharing *l = data;
  session *s = l->s;
  char shared[CONTENT_KEY_TEXT];
  content_store_entry *entries;
  uint32_t n, mapped = 0;
  content_key_text(s->cache->options_key, shared);
  content_store_list(&s->cache->store, l->scratch, &entries, &n);
  for (uint32_t k = 0; k < n && mapped < MOST_KERNEL_FILES; k++) {
    if (strcmp(entries[k].model, shared) == 0 && entries[k].kind == CONTENT_KERNELS) {
      const rt_image *image = content_store_get_entry(&s->cache->store, begin_search(s), &entries[k]);
      if (image && rt_weight_pool_register(l->pool, image->programs[0], s->cache->mapped)) {
        s->cache->mapped = NULL;
      }
      end_search(s);
      mapped++;
    }
  }
  return NULL;
}

void compile_cache_map_kernels(session *s, rt_weight_pool *pool) {
  if (s->cache) {
    sharing l = {.s = s, .scratch = arena_create(NULL), .pool = pool};
    status_free(guard_run(map_kernels, &l)); /* without them the kernels are compiled */
    arena_destroy(l.scratch);
  }
}

static status put_kernels(void *data) {
  const sharing *k = data;
  const rt_program *p = k->program;
  rt_writer names = {.arena = k->scratch};
  rt_program code = {.target = p->target, .cpu = "", .n_code = k->n, .code = p->code, .code_names = p->code_names};
  rt_image image = {.model = "", .target = p->target, .n_programs = 1, .programs = &(rt_program *){&code}};
  for (uint32_t i = 0; i < k->n; i++) {
    rt_put_bytes(&names, p->code_names[i].data, p->code_names[i].size);
  }
  content_key key = key_of_written(k->s, &names);
  return content_store_put_kernels(&k->s->cache->store, k->s->cache->options_key, key, image);
}

/* Records the first failure, such as a full disk, and frees the status. */
static void note_failure(compile_cache *c, status failed) {
  if (failed) {
    pthread_mutex_lock(&c->lock);
    if (!*c->failure) {
      snprintf(c->failure, sizeof c->failure, "%s", status_message(failed));
    }
    pthread_mutex_unlock(&c->lock);
  }
  status_free(failed);
}

/* A forked child writes no programs. */
static bool can_put(const session *s) { return s->cache && s->cache->process == getpid(); }

void compile_cache_put_kernels(session *s, const rt_program *p, uint32_t n) {
  if (can_put(s) && n) {
    sharing k = {.s = s, .scratch = arena_create(NULL), .program = p, .n = n};
    note_failure(s->cache, guard_run(put_kernels, &k));
    arena_destroy(k.scratch);
  }
}

/* --- storing programs, on a thread, since writing hundreds of megabytes takes longer than a run --- */

typedef struct storing {
  struct storing *next;
  session *s;
  session_program *compiled;
  content_key key;
  arena *scratch;
} storing;

/* A function for rt_image.pace: waits while the model runs, since writing takes a core and memory bandwidth from the
 * run.  So that a model that runs all the time gets its file, too, the wait ends after 20 ms for each megabyte, of
 * which writing takes about one.  It also ends when the session is closed. */
static void let_runs_go_first(void *data, uint64_t bytes) {
  enum { PAUSE = 5000000 /* nanoseconds */ };
  const uint64_t bytes_a_pause = 1 << 18;
  session *s = data;
  compile_cache *c = s->cache;
  pthread_mutex_lock(&c->lock);
  for (uint64_t k = 0; k < bytes / bytes_a_pause && atomic_load(&s->busy) && !c->closing; k++) {
    struct timespec until = clock_after(CLOCK_REALTIME, PAUSE);
    (void)pthread_cond_timedwait(&c->close, &c->lock, &until);
  }
  pthread_mutex_unlock(&c->lock);
}

/* Stores, in a file of their own, the weights that all programs of the model with these options share: those constants
 * of p, the first program, that have names (rt_program.names). */
static void put_weights(session *s, arena *a, const rt_program *p, content_key key) {
  rt_program weights = {.target = p->target,
                        .cpu = "",
                        .constants = ARENA_NEW_N(a, rt_span, p->n_constants),
                        .names = ARENA_NEW_N(a, rt_span, p->n_constants)};
  for (uint32_t k = 0; k < p->n_constants; k++) {
    if (rt_program_name(p, k).size) {
      weights.constants[weights.n_constants] = p->constants[k];
      weights.names[weights.n_constants++] = p->names[k];
    }
  }
  if (weights.n_constants) {
    rt_image image = {.model = s->source->name,
                      .target = p->target,
                      .n_programs = 1,
                      .programs = &(rt_program *){&weights},
                      .pace = let_runs_go_first,
                      .pace_data = s};
    note_failure(s->cache, content_store_put_weights(&s->cache->store, s->cache->model, key, image));
  }
}

/* Returns true if at least half of the bytes of the program's constants are in `weights`, too. */
static bool has_most(const rt_program *weights, const rt_program *p) {
  uint64_t all = 0, there = 0;
  for (uint32_t k = 0; k < p->n_constants; k++) {
    uint64_t size = p->constants[k].size;
    all += size;
    there += rt_program_find(weights, rt_program_name(p, k), size) < weights->n_constants ? size : 0;
  }
  return there && there >= all / 2;
}

static const rt_image *weights_for(session *s, arena *a, const rt_program *p) {
  compile_cache *c = s->cache;
  content_key key = weights_key(s);
  const rt_image *weights = content_store_get_weights(&c->store, a, c->model, key);
  if (!weights) {
    put_weights(s, a, p, key);
    weights = content_store_get_weights(&c->store, a, c->model, key);
  }
  return weights && has_most(weights->programs[0], p) ? weights : NULL;
}

static status write_program(void *data) {
  storing *x = data;
  compile_cache *c = x->s->cache;
  const rt_program *p = x->compiled->program;
  x->scratch = arena_create(NULL);
  const void **values = ARENA_NEW_N(x->scratch, const void *, p->n_params);
  for (uint32_t k = 0; k < p->n_params; k++) {
    values[k] = p->params[k].value;
  }
  const rt_image *first = get(x->s, x->scratch, x->key);
  if (first) {
    (void)key_with_values(x->s, first->programs[0], values, &x->key);
  }
  rt_image image = {.model = x->s->source->name,
                    .target = p->target,
                    .n_programs = 1,
                    .programs = &(rt_program *){(rt_program *)(uintptr_t)p},
                    .base = weights_for(x->s, x->scratch, p),
                    .pace = let_runs_go_first,
                    .pace_data = x->s};
  compile_cache_put_kernels(x->s, p, x->compiled->report.new_code);
  return content_store_put(&c->store, c->model, x->key, image);
}

static void write_one(storing *x) {
  note_failure(x->s->cache, guard_run(write_program, x));
  arena_destroy(x->scratch);
  session_release(x->s, x->compiled);
  free(x);
}

/* The thread that writes programs.  It has a low priority, so that runs are not slowed down. */
static void *write_all(void *data) {
  compile_cache *c = data;
  (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOW_PRIORITY);
  pthread_mutex_lock(&c->lock);
  while (c->queue) {
    storing *x = c->queue;
    c->queue = x->next;
    pthread_mutex_unlock(&c->lock);
    write_one(x);
    pthread_mutex_lock(&c->lock);
  }
  c->writing = false;
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

/* Adds to the queue, and starts the writing thread if none is running.  A former thread that has marked itself as ended
 * (writing is false) is joined first, which does not block.  If no thread can be started, the caller writes the program
 * itself. */
static void enqueue(compile_cache *c, storing *x) {
  storing **last = &c->queue;
  pthread_mutex_lock(&c->lock);
  while (*last) {
    last = &(*last)->next;
  }
  *last = x;
  if (!c->writing) {
    if (c->has_thread) {
      pthread_join(c->thread, NULL);
    }
    c->has_thread = c->writing = pthread_create(&c->thread, NULL, write_all, c) == 0;
  }
  bool left = !c->writing;
  pthread_mutex_unlock(&c->lock);
  if (left) {
    c->queue = NULL;
    write_one(x);
  }
}

/* Waits until all queued programs are written.  A forked child does not wait, since the writing thread is not in it. */
static void await_writing(compile_cache *c) {
  if (c->has_thread && c->process == getpid()) {
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_signal(&c->close);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    c->has_thread = false;
  }
}

static void put(session *s, content_key key, arena *a, session_program *compiled) {
  storing *x = calloc(1, sizeof *x);
  if (!x) {
    return;
  }
  *x = (storing){.s = s, .compiled = compiled, .key = key};
  s->cache->described = false; /* another process may have cleared the folder */
  describe(s, a);
  compiled->users++;
  enqueue(s->cache, x);
}

void compile_cache_put(session *s, const session_inputs *inputs, rt_tune tune, session_program *compiled) {
  if (can_put(s)) {
    arena *a = arena_create(NULL);
    put(s, program_key(s, inputs, tune, a), a, compiled);
    arena_destroy(a);
  }
}

void compile_cache_put_general(session *s, uint32_t number, session_program *compiled) {
  if (can_put(s)) {
    arena *a = arena_create(NULL);
    put(s, general_key(s, number, a), a, compiled);
    arena_destroy(a);
  }
}

void compile_cache_close(session *s) {
  if (s->cache) {
    await_writing(s->cache);
    if (*s->cache->failure) {
      session_log(s, SESSION_LOG_WARNING, "the compiled program is not kept for the next start: %s", s->cache->failure);
    }
    content_store_close(&s->cache->store);
    arena_destroy(s->cache->mapped);
    pthread_mutex_destroy(&s->cache->lock);
    pthread_cond_destroy(&s->cache->close);
    s->cache = NULL;
  }
}
