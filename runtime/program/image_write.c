/* image_write.c - writes .oxla files; image.c reads them. */
#include "runtime/program/image_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "runtime/kernel_abi.h"
#include "runtime/program/sizes.h"

/* --- the sections of constants and code, as pools of spans --- */

typedef struct pool {
  struct item {
    rt_span bytes;
    uint64_t offset, hash;
  } * items;
  uint32_t n, cap;
  uint64_t size;
} pool;

typedef struct writing {
  arena *a;
  pool constants, code;
  str_map seen; /* maps the section, hash and size of a span, as text, to a copy of its item */
  const rt_image *image;
  uint64_t done; /* the number of bytes that were read or written since the last call of rt_image.pace */
} writing;

enum { PIECE = 1 << 20 };

/* Notes that so many bytes were read or written. */
static void note_done(writing *w, uint64_t bytes) {
  w->done += bytes;
  if (w->image->pace && w->done >= PIECE) {
    w->image->pace(w->image->pace_data, w->done);
    w->done = 0;
  }
}

/* Returns the offset of a span in its section.  The span is appended unless the section contains equal bytes already.
 */
static uint64_t place(writing *w, pool *p, rt_span s) {
  uint64_t hash = hash_bytes(s.data, s.size, 0);
  note_done(w, s.size);
  void **slot =
      str_map_put(&w->seen, arena_printf(w->a, "%c%016" PRIx64 "%" PRIx64, p == &w->code ? 'c' : 'w', hash, s.size));
  const struct item *old = *slot;
  if (old && memcmp(old->bytes.data, s.data, s.size) == 0) {
    return old->offset;
  }
  uint64_t offset = (p->size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
  *ARENA_PUSH(w->a, p->items, p->n, p->cap) = (struct item){s, offset, hash};
  p->size = offset + s.size;
  *slot = arena_memdup(w->a, &p->items[p->n - 1], sizeof *p->items);
  return offset;
}

/* --- programs as bytes --- */

static void put_code(writing *w, rt_writer *out, const rt_program *p) {
  rt_put_i64(out, p->n_code);
  for (uint32_t k = 0; k < p->n_code; k++) {
    rt_put_i64(out, (int64_t)place(w, &w->code, p->code[k]));
    rt_put_i64(out, (int64_t)p->code[k].size);
    rt_span name = rt_program_code_name(p, k);
    rt_put_bytes(out, name.data, name.size);
  }
}

static void put_constants(writing *w, rt_writer *out, const rt_program *p) {
  const rt_program *base =
      w->image->base ? w->image->base->programs[0] : NULL; /* its constants are not written again */
  rt_put_i64(out, p->n_constants);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    rt_span c = p->constants[k], name = rt_program_name(p, k);
    uint32_t old = base ? rt_program_find(base, name, c.size) : 0;
    bool there = base && old < base->n_constants;
    rt_put_i64(out, there ? ~(int64_t)old : (int64_t)place(w, &w->constants, c));
    rt_put_i64(out, (int64_t)c.size);
    rt_put_bytes(out, name.data, name.size);
  }
}

static void put_io(rt_writer *out, uint32_t n, const rt_io *io) {
  rt_put_i64(out, n);
  for (uint32_t k = 0; k < n; k++) {
    rt_put_text(out, io[k].name);
    rt_put_i64(out, io[k].shape.type);
    rt_put_i64s(out, io[k].shape.rank, io[k].shape.dims);
    rt_put_bytes(out, io[k].value, io[k].value ? (size_t)shape_bytes(&io[k].shape) : 0);
    rt_put_i64(out, io[k].value != NULL);
    rt_put_i64(out, io[k].told);
    rt_put_i64(out, io[k].element);
    rt_put_i64(out, io[k].is_size ? (int64_t)io[k].sized : -1);
    rt_put_i64(out, io[k].axis);
    rt_put_i64(out, io[k].carried);
    rt_put_i64(out, io[k].in_place);
    rt_put_i64(out, io[k].has_room);
    rt_put_i64(out, io[k].length);
  }
}

static void put_buffer(rt_writer *out, const rt_buffer *b) {
  rt_put_i64(out, b->space + (b->kept ? RT_SPACE_COUNT : 0));
  rt_put_i64(out, b->type);
  rt_put_i64(out, b->index);
  rt_put_i64(out, b->offset);
  rt_put_i64s(out, b->rank, b->extents);
  rt_put_i64s(out, b->rank, b->strides);
}

static void put_numbers(rt_writer *out, uint32_t n, const uint32_t *numbers) {
  rt_put_i64(out, n);
  for (uint32_t k = 0; k < n; k++) {
    rt_put_i64(out, numbers[k]);
  }
}

static void put_sequence(rt_writer *out, const rt_sequence *s) {
  rt_put_i64(out, s->n);
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    rt_put_text(out, t->kind);
    rt_put_text(out, t->operation);
    put_numbers(out, t->n_nodes, t->nodes);
    rt_put_i64(out, t->contraction);
    rt_put_text(out, t->note);
    rt_put_i64(out, t->operations);
    rt_put_i64(out, t->bytes);
    rt_put_i64(out, t->n_inputs);
    rt_put_i64(out, t->n_buffers);
    for (uint32_t b = 0; b < t->n_buffers; b++) {
      put_buffer(out, &t->buffers[b]);
    }
    rt_put_bytes(out, t->config.data, t->config.size);
    rt_put_i64(out, t->n_bodies);
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      put_sequence(out, &t->bodies[b]);
    }
    rt_put_i64s(out, t->n_sizes, t->sizes);
  }
}

static void put_nodes(rt_writer *out, const rt_program *p) {
  rt_put_i64(out, p->n_nodes);
  for (uint32_t k = 0; k < p->n_nodes; k++) {
    rt_put_text(out, p->nodes[k].text);
    rt_put_text(out, p->nodes[k].operator_name);
  }
}

static void put_sizes(rt_writer *out, const rt_program *p) {
  rt_put_i64(out, p->n_sizes);
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    const rt_size_node *n = &p->sizes[k];
    rt_put_i64(out, n->op);
    rt_put_i64(out, n->a);
    rt_put_i64(out, n->b);
    rt_put_text(out, n->name);
  }
  rt_put_i64(out, p->n_guards);
  for (uint32_t k = 0; k < p->n_guards; k++) {
    const rt_guard *g = &p->guards[k];
    rt_put_i64(out, g->relation);
    rt_put_i64(out, g->a);
    rt_put_i64(out, g->b);
    rt_put_text(out, g->text);
    rt_put_text(out, g->source);
  }
  rt_put_i64(out, p->n_definitions);
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    const rt_definition *d = &p->definitions[k];
    rt_put_text(out, d->symbol);
    rt_put_text(out, d->equals);
    rt_put_text(out, d->source);
  }
  rt_put_i64(out, p->n_slots);
  for (uint32_t k = 0; k < p->n_slots; k++) {
    const rt_slot *s = &p->slots[k];
    rt_put_i64(out, s->bytes);
    rt_put_i64(out, s->first);
    rt_put_i64(out, s->last);
  }
}

/* Writes the size of the arena or, for a program for many sizes, MANY_SIZES and the lists that follow it. */
static void put_arena(rt_writer *out, const rt_program *p) {
  if (rt_program_is_static(p)) {
    rt_put_i64(out, (int64_t)p->arena_bytes);
  } else {
    rt_put_i64(out, MANY_SIZES);
    put_sizes(out, p);
  }
}

static void put_program(writing *w, rt_writer *out, const rt_program *p) {
  rt_put_text(out, p->target);
  rt_put_text(out, p->cpu);
  put_io(out, p->n_params, p->params);
  put_io(out, p->n_results, p->results);
  put_constants(w, out, p);
  put_code(w, out, p);
  put_nodes(out, p);
  put_arena(out, p);
  put_sequence(out, &p->body);
}

/* --- writing --- */

static status write_bytes(FILE *f, const void *data, uint64_t n) {
  CHECK_THAT(n == 0 || fwrite(data, 1, n, f) == n, STATUS_IO, "cannot write: %s", strerror(errno));
  return NULL;
}

static status write_zeros(FILE *f, uint64_t n) {
  static const char zeros[PAGE];
  for (; n; n -= n < PAGE ? n : PAGE) {
    TRY(write_bytes(f, zeros, n < PAGE ? n : PAGE));
  }
  return NULL;
}

static status write_pool(writing *w, FILE *f, const pool *p) {
  uint64_t at = 0;
  for (uint32_t k = 0; k < p->n; k++) {
    const struct item *x = &p->items[k];
    TRY(write_zeros(f, x->offset - at));
    for (uint64_t from = 0, n; from < x->bytes.size; from += n) {
      n = x->bytes.size - from < PIECE ? x->bytes.size - from : PIECE;
      TRY(write_bytes(f, x->bytes.data + from, n));
      note_done(w, n);
    }
    at = x->offset + x->bytes.size;
  }
  return NULL;
}

static uint64_t pool_hash(const pool *p) {
  uint64_t h = 0;
  for (uint32_t k = 0; k < p->n; k++) {
    h = mix_span(h, p->items[k].offset, p->items[k].hash);
  }
  return h;
}

static status write_sections(writing *w, FILE *f, const rt_span *flat) {
  uint64_t offsets[N_SECTIONS], sizes[N_SECTIONS], at = TABLE_END;
  for (int k = 0; k < N_SECTIONS; k++) {
    uint64_t align = k == CONSTANTS ? PAGE : ALIGN;
    sizes[k] = k == CODE ? w->code.size : k == CONSTANTS ? w->constants.size : flat[k].size;
    offsets[k] = at = (at + align - 1) & ~(align - 1);
    at += sizes[k];
  }
  rt_writer table = {.arena = w->a}, header = {.arena = w->a};
  for (int k = 0; k < N_SECTIONS; k++) {
    rt_put_i64(&table, k);
    rt_put_i64(&table, (int64_t)offsets[k]);
    rt_put_i64(&table, (int64_t)sizes[k]);
    const pool *p = k == CODE ? &w->code : &w->constants;
    rt_put_i64(&table,
               (int64_t)(k == CODE || k == CONSTANTS ? pool_hash(p) : hash_bytes(flat[k].data, flat[k].size, 0)));
  }
  rt_put_i64(&header, VERSION);
  rt_put_i64(&header, N_SECTIONS);
  rt_put_i64(&header, (int64_t)at);
  rt_put_i64(&header, (int64_t)hash_bytes(table.bytes, table.n, hash_bytes(header.bytes, header.n, 0)));
  TRY(write_bytes(f, magic, sizeof magic));
  TRY(write_bytes(f, header.bytes, header.n));
  TRY(write_bytes(f, table.bytes, table.n));
  uint64_t written = TABLE_END;
  for (int k = 0; k < N_SECTIONS; k++) {
    TRY(write_zeros(f, offsets[k] - written));
    TRY(k == CODE        ? write_pool(w, f, &w->code)
        : k == CONSTANTS ? write_pool(w, f, &w->constants)
                         : write_bytes(f, flat[k].data, flat[k].size));
    written = offsets[k] + sizes[k];
  }
  return NULL;
}

static status write_image(arena *a, const rt_image *image, FILE *f) {
  writing w = {.a = a, .image = image};
  rt_writer meta = {.arena = a}, programs = {.arena = a};
  str_map_init(&w.seen, a);
  rt_put_text(&meta, image->model);
  rt_put_text(&meta, image->producer);
  rt_put_text(&meta, image->target);
  rt_put_i64(&meta, (int64_t)image->model_hash);
  rt_put_i64(&meta, RT_KERNEL_ABI);
  rt_put_text(&meta, image->base ? image->base->producer : "");
  rt_put_i64(&meta, image->base ? (int64_t)image->base->identity : 0);
  rt_put_strings(&meta, image->strings);
  rt_put_i64(&programs, image->n_programs);
  for (uint32_t k = 0; k < image->n_programs; k++) {
    put_program(&w, &programs, image->programs[k]);
  }
  rt_span flat[N_SECTIONS] = {[META] = rt_written(&meta), [PROGRAMS] = rt_written(&programs), [SOURCE] = image->source};
  return write_sections(&w, f, flat);
}

status rt_image_write_stream(const rt_image *image, FILE *f) {
  arena *a = arena_create(NULL);
  status s = write_image(a, image, f);
  if (fflush(f) != 0 && !s) {
    s = status_error(STATUS_IO, "cannot be written: %s", strerror(errno));
  }
  arena_destroy(a);
  return s;
}

/* Writes the image to the file descriptor fd, and closes the descriptor. */
static status write_to(const rt_image *image, arena *a, int fd) {
  FILE *f = fdopen(fd, "wb");
  if (!f) {
    status failed = status_error(STATUS_IO, "cannot be written: %s", strerror(errno));
    close(fd);
    return failed;
  }
  status s = write_image(a, image, f);
  if (fclose(f) != 0 && !s) {
    s = status_error(STATUS_IO, "cannot be written: %s", strerror(errno));
  }
  return s;
}

/* Writes a file.  A regular file is replaced by the complete file in one step; anything else (a pipe, /dev/full) is
 * written to directly. */
status rt_image_write(const rt_image *image, const char *path) {
  struct stat st;
  bool direct = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
  arena *a = arena_create(NULL);
  char *temporary = arena_printf(a, "%s.XXXXXX", path);
  int fd = direct ? open(path, O_WRONLY | O_CLOEXEC) : mkstemp(temporary);
  status s =
      fd >= 0 ? write_to(image, a, fd) : status_error(STATUS_IO, "cannot be opened for writing: %s", strerror(errno));
  if (!s && !direct && (chmod(temporary, 0644) != 0 || rename(temporary, path) != 0)) {
    s = status_error(STATUS_IO, "cannot be written: %s", strerror(errno));
  }
  if (s && fd >= 0 && !direct) {
    unlink(temporary);
  }
  arena_destroy(a);
  return s ? status_prefix(s, "%s", path) : NULL;
}

status rt_image_write_at(const rt_image *image, int folder, const char *path) {
  static atomic_uint number; /* the number of the next temporary file of this process */
  arena *a = arena_create(NULL);
  char *temporary = arena_printf(a, "%s.%ld.%u", path, (long)getpid(), atomic_fetch_add(&number, 1));
  int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  status s = fd >= 0 ? write_to(image, a, fd) : status_error(STATUS_IO, "cannot be created: %s", strerror(errno));
  if (!s && renameat(folder, temporary, folder, path) != 0) {
    s = status_error(STATUS_IO, "cannot be renamed: %s", strerror(errno));
  }
  if (s && fd >= 0) {
    unlinkat(folder, temporary, 0);
  }
  arena_destroy(a);
  return s;
}
