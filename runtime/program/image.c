/* image.c - reads .oxla files; image_write.c writes them.  A file consists of
 *
 *   header    magic, version, number of sections, file size, hash of header and table
 *   table     a row for each section: kind, offset, size, hash
 *   sections  META (model, producer, target, hash of the model, kernel ABI, producer and identity of the base, strings
 *             of the model), PROGRAMS, SOURCE (a model, or nothing), CODE (objects, aligned to 64 bytes), CONSTANTS
 * (page-aligned, last)
 *
 * All numbers are little-endian and have 64 bits.  Programs refer to constants and code by (offset, size) in their
 * sections.  A constant that is not in this file but in its base (rt_image.base) has the offset ~k instead, where k is
 * its index in the program of the base.  A program for many sizes has the number MANY_SIZES in place of the size of its
 * arena, followed by the nodes of its sizes, its guards, definitions and slots. */
#include "runtime/program/image_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "runtime/kernel_abi.h"
#include "runtime/program/sizes.h"

typedef struct reading {
  arena *a;
  const char *path;
  rt_span sections[N_SECTIONS];
  const rt_program *base; /* the program of the base (rt_image.base); NULL if there is no base */
  uint32_t n_nodes;       /* the number of nodes of the program that is being read */
} reading;

static rt_span get_span(rt_reader *r, const reading *x, int section, int64_t at, int64_t bytes) {
  uint64_t offset = (uint64_t)at, size = (uint64_t)bytes;
  if (r->bad || offset % ALIGN || offset > x->sections[section].size || size > x->sections[section].size - offset) {
    r->bad = true;
    return (rt_span){NULL, 0};
  }
  return (rt_span){(const uint8_t *)x->sections[section].data + offset, size};
}

static rt_span get_of_base(rt_reader *r, const reading *x, int64_t number, int64_t size) {
  if (r->bad || !x->base || number >= x->base->n_constants || x->base->constants[number].size != (uint64_t)size) {
    r->bad = true;
    return (rt_span){NULL, 0};
  }
  return x->base->constants[number];
}

static void get_constants(rt_reader *r, reading *x, rt_program *p) {
  p->n_constants = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 24);
  p->constants = ARENA_NEW_N(x->a, rt_span, p->n_constants);
  p->names = ARENA_NEW_N(x->a, rt_span, p->n_constants);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    int64_t at = rt_get_i64(r), size = rt_get_i64(r);
    p->constants[k] = at < 0 ? get_of_base(r, x, ~at, size) : get_span(r, x, CONSTANTS, at, size);
    p->names[k] = rt_get_bytes(r);
  }
}

static void get_code(rt_reader *r, reading *x, rt_program *p) {
  p->n_code = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 24);
  p->code = ARENA_NEW_N(x->a, rt_span, p->n_code);
  p->code_names = ARENA_NEW_N(x->a, rt_span, p->n_code);
  for (uint32_t k = 0; k < p->n_code; k++) {
    int64_t at = rt_get_i64(r), size = rt_get_i64(r);
    p->code[k] = get_span(r, x, CODE, at, size);
    p->code_names[k] = rt_get_bytes(r);
  }
}

static void get_dims(rt_reader *r, arena *a, uint8_t *rank, const int64_t **dims) {
  uint32_t n;
  *dims = rt_get_i64s(r, a, &n);
  if (n > SHAPE_MAX_RANK) {
    r->bad = true;
    n = 0;
  }
  *rank = (uint8_t)n;
}

static rt_io *get_io(rt_reader *r, reading *x, uint32_t *n) {
  *n = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 24);
  rt_io *io = ARENA_NEW_N(x->a, rt_io, *n);
  for (uint32_t k = 0; k < *n; k++) {
    const int64_t *dims;
    uint8_t rank;
    io[k].name = rt_get_text(r);
    dtype type = (dtype)rt_get_in(r, 1, DTYPE_COUNT - 1);
    get_dims(r, x->a, &rank, &dims);
    io[k].shape = shape_make(type, rank, dims);
    status s = shape_check(&io[k].shape, "shape");
    r->bad |= s != NULL;
    status_free(s);
    rt_span value = rt_get_bytes(r);
    bool has_value = rt_get_in(r, 0, 1);
    if (has_value && !r->bad) {
      r->bad = !shape_is_static(&io[k].shape) || value.size != (uint64_t)shape_bytes(&io[k].shape);
      io[k].value = arena_memdup(x->a, value.data, r->bad ? 0 : value.size);
    }
    io[k].told = (uint32_t)rt_get_in(r, 0, (int64_t)k);
    io[k].element = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
    int64_t sized = rt_get_in(r, -1, (int64_t)k - 1);
    io[k].axis = (uint8_t)rt_get_in(r, 0, SHAPE_MAX_RANK - 1);
    io[k].is_size = sized >= 0;
    io[k].sized = sized >= 0 ? (uint32_t)sized : 0;
    r->bad |= io[k].is_size && (io[k].shape.type != DTYPE_S64 || io[k].shape.rank != 0 || io[sized].is_size ||
                                io[k].axis >= io[sized].shape.rank);
    r->bad |= !io[k].is_size && k > 0 && io[k - 1].is_size;
    io[k].carried = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
    io[k].in_place = rt_get_in(r, 0, 1);
    io[k].has_room = rt_get_in(r, 0, 1);
    io[k].length = rt_get_i64(r);
  }
  return io;
}

static void get_buffer(rt_reader *r, reading *x, rt_buffer *b) {
  uint8_t rank;
  int64_t space = rt_get_in(r, 0, 2 * RT_SPACE_COUNT - 1);
  b->space = (uint8_t)(space % RT_SPACE_COUNT);
  b->kept = space >= RT_SPACE_COUNT;
  b->type = (uint8_t)rt_get_in(r, 1, DTYPE_COUNT - 1);
  b->index = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
  b->offset = rt_get_i64(r);
  get_dims(r, x->a, &b->rank, &b->extents);
  get_dims(r, x->a, &rank, &b->strides);
  r->bad |= rank != b->rank;
}

static void get_sequence(rt_reader *r, reading *x, int depth, rt_sequence *s);

/* Reads a list of indices of the program's nodes. */
static const uint32_t *get_numbers(rt_reader *r, reading *x, uint32_t *n) {
  *n = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 8);
  uint32_t *numbers = ARENA_NEW_N(x->a, uint32_t, *n);
  for (uint32_t k = 0; k < *n; k++) {
    numbers[k] = (uint32_t)rt_get_in(r, 0, (int64_t)x->n_nodes - 1);
  }
  return numbers;
}

static void get_thunk(rt_reader *r, reading *x, int depth, rt_thunk *t) {
  t->kind = rt_get_text(r);
  t->operation = rt_get_text(r);
  t->nodes = get_numbers(r, x, &t->n_nodes);
  t->contraction = (uint32_t)rt_get_in(r, 0, t->n_nodes);
  t->note = rt_get_text(r);
  t->operations = rt_get_in(r, 0, INT64_MAX);
  t->bytes = rt_get_in(r, 0, INT64_MAX);
  t->n_inputs = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
  t->n_buffers = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 48);
  t->buffers = ARENA_NEW_N(x->a, rt_buffer, t->n_buffers);
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    get_buffer(r, x, &t->buffers[k]);
  }
  t->config = rt_get_bytes(r);
  t->n_bodies = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 8);
  t->bodies = ARENA_NEW_N(x->a, rt_sequence, t->n_bodies);
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    get_sequence(r, x, depth + 1, &t->bodies[k]);
  }
  t->sizes = rt_get_i64s(r, x->a, &t->n_sizes);
}

static void get_sequence(rt_reader *r, reading *x, int depth, rt_sequence *s) {
  r->bad |= depth > DEPTH_MAX;
  s->n = s->cap = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 40);
  s->thunks = ARENA_NEW_N(x->a, rt_thunk, s->n);
  for (uint32_t k = 0; k < s->n && !r->bad; k++) {
    get_thunk(r, x, depth, &s->thunks[k]);
  }
}

static void get_nodes(rt_reader *r, reading *x, rt_program *p) {
  x->n_nodes = p->n_nodes = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 16);
  p->nodes = ARENA_NEW_N(x->a, rt_node, p->n_nodes);
  for (uint32_t k = 0; k < p->n_nodes; k++) {
    p->nodes[k].text = rt_get_text(r);
    p->nodes[k].operator_name = rt_get_text(r);
  }
}

static void get_size_nodes(rt_reader *r, reading *x, rt_program *p) {
  p->n_sizes = (uint32_t)rt_get_in(r, 1, r->bad ? 1 : (r->end - r->at) / 32);
  p->sizes = ARENA_NEW_N(x->a, rt_size_node, p->n_sizes);
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    p->sizes[k].op = (uint8_t)rt_get_in(r, DIM_SYMBOL, DIM_NEG);
    p->sizes[k].a = rt_get_i64(r);
    p->sizes[k].b = rt_get_i64(r);
    p->sizes[k].name = rt_get_text(r);
  }
}

static void get_guards(rt_reader *r, reading *x, rt_program *p) {
  p->n_guards = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 40);
  p->guards = ARENA_NEW_N(x->a, rt_guard, p->n_guards);
  for (uint32_t k = 0; k < p->n_guards; k++) {
    p->guards[k].relation = (uint8_t)rt_get_in(r, 0, DIM_RELATION_COUNT - 1);
    p->guards[k].a = rt_get_i64(r);
    p->guards[k].b = rt_get_i64(r);
    p->guards[k].text = rt_get_text(r);
    p->guards[k].source = rt_get_text(r);
  }
}

static void get_definitions(rt_reader *r, reading *x, rt_program *p) {
  p->n_definitions = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 24);
  p->definitions = ARENA_NEW_N(x->a, rt_definition, p->n_definitions);
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    p->definitions[k].symbol = rt_get_text(r);
    p->definitions[k].equals = rt_get_text(r);
    p->definitions[k].source = rt_get_text(r);
  }
}

static void get_slots(rt_reader *r, reading *x, rt_program *p) {
  p->n_slots = (uint32_t)rt_get_in(r, 0, r->bad ? 0 : (r->end - r->at) / 24);
  p->slots = ARENA_NEW_N(x->a, rt_slot, p->n_slots);
  for (uint32_t k = 0; k < p->n_slots; k++) {
    p->slots[k].bytes = rt_get_i64(r);
    p->slots[k].first = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
    p->slots[k].last = (uint32_t)rt_get_in(r, 0, UINT32_MAX);
  }
}

/* Reads the size of the arena or, in a program for many sizes, the lists that follow the number MANY_SIZES. */
static void get_arena(rt_reader *r, reading *x, rt_program *p) {
  int64_t bytes = rt_get_in(r, MANY_SIZES, (int64_t)1 << 46);
  if (bytes != MANY_SIZES) {
    p->arena_bytes = (uint64_t)bytes;
    return;
  }
  get_size_nodes(r, x, p);
  get_guards(r, x, p);
  get_definitions(r, x, p);
  get_slots(r, x, p);
}

static rt_program *get_program(rt_reader *r, reading *x) {
  rt_program *p = ARENA_NEW(x->a, rt_program);
  p->target = rt_get_text(r);
  p->cpu = rt_get_text(r);
  p->params = get_io(r, x, &p->n_params);
  p->results = get_io(r, x, &p->n_results);
  get_constants(r, x, p);
  get_code(r, x, p);
  get_nodes(r, x, p);
  get_arena(r, x, p);
  if (!r->bad) {
    status s = rt_sizes_check(p);
    r->bad = s != NULL;
    status_free(s);
  }
  get_sequence(r, x, 0, &p->body);
  return p;
}

static status get_programs(reading *x, rt_image *image) {
  rt_reader r = rt_reader_make(x->sections[PROGRAMS]);
  image->n_programs = (uint32_t)rt_get_in(&r, 0, (int64_t)(x->sections[PROGRAMS].size / 8));
  image->programs = ARENA_NEW_N(x->a, rt_program *, image->n_programs);
  for (uint32_t k = 0; k < image->n_programs && !r.bad; k++) {
    image->programs[k] = get_program(&r, x);
  }
  return rt_reader_end(&r, "programs");
}

static status get_base(reading *x, const rt_image_finder *bases, const char *name, uint64_t identity, rt_image *image) {
  CHECK_THAT(bases, STATUS_INVALID_FILE, "it is not a complete compiled model: its constants are in another file");
  const rt_image *base = bases->find(bases->data, x->a, name);
  CHECK_THAT(base && base->n_programs == 1 && !base->base && base->identity == identity, STATUS_INVALID_FILE,
             "the file with its constants is gone");
  image->base = base;
  x->base = base->programs[0];
  return NULL;
}

static status get_meta(reading *x, const rt_image_finder *bases, rt_image *image) {
  rt_reader r = rt_reader_make(x->sections[META]);
  image->model = rt_get_text(&r);
  image->producer = rt_get_text(&r);
  image->target = rt_get_text(&r);
  image->model_hash = (uint64_t)rt_get_i64(&r);
  int64_t kernel_abi = rt_get_i64(&r);
  const char *base = rt_get_text(&r);
  uint64_t identity = (uint64_t)rt_get_i64(&r);
  image->strings = rt_get_strings(&r, x->a);
  TRY(rt_reader_end(&r, "meta"));
  CHECK_THAT(kernel_abi == RT_KERNEL_ABI, STATUS_INVALID_FILE,
             "its kernels use version %" PRId64 " of the kernel ABI; this onnx-xla uses %d: compile the model again",
             kernel_abi, RT_KERNEL_ABI);
  return *base ? get_base(x, bases, base, identity, image) : NULL;
}

/* A span of the constants or code section.  The hash of such a section is computed from the hashes of its spans.  Only
 * the programs tell where the spans are, so the check collects the spans of all programs. */
typedef struct border {
  uint64_t offset, size;
} border;

static int by_offset(const void *a, const void *b) {
  const border *x = a, *y = b; /* an empty span comes before a span with the same offset */
  return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                : (x->size > y->size) - (x->size < y->size);
}

static status check_pool(reading *x, const rt_image *image, int section, uint64_t expected) {
  border *list = NULL;
  uint32_t n = 0, cap = 0;
  const uint8_t *base = x->sections[section].data;
  for (uint32_t k = 0; k < image->n_programs; k++) {
    const rt_program *p = image->programs[k];
    const rt_span *spans = section == CODE ? p->code : p->constants;
    uint32_t count = section == CODE ? p->n_code : p->n_constants;
    for (uint32_t j = 0; j < count; j++) {
      uint64_t offset = (uint64_t)((uintptr_t)spans[j].data - (uintptr_t)base);
      if (offset <= x->sections[section].size) { /* otherwise the constant is in the base */
        *ARENA_PUSH(x->a, list, n, cap) = (border){offset, spans[j].size};
      }
    }
  }
  if (n) {
    qsort(list, n, sizeof *list, by_offset);
  }
  uint64_t h = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (k == 0 || list[k].offset != list[k - 1].offset || list[k].size != list[k - 1].size) {
      h = mix_span(h, list[k].offset, hash_bytes(base + list[k].offset, list[k].size, 0));
    }
  }
  CHECK_THAT(h == expected, STATUS_INVALID_FILE, "the %s section is damaged", section_names[section]);
  return NULL;
}

static status get_sections(reading *x, const uint8_t *bytes, size_t file_size, uint64_t *hashes, uint64_t *identity) {
  rt_reader header = rt_reader_make((rt_span){bytes + sizeof magic, HEADER_BYTES - sizeof magic});
  rt_reader table = rt_reader_make((rt_span){bytes + HEADER_BYTES, N_SECTIONS * ROW_BYTES});
  CHECK_THAT(memcmp(bytes, magic, sizeof magic) == 0, STATUS_INVALID_FILE, "not a .oxla file");
  int64_t version = rt_get_i64(&header), n = rt_get_i64(&header), size = rt_get_i64(&header);
  uint64_t hash = *identity = (uint64_t)rt_get_i64(&header);
  CHECK_THAT(version == VERSION, STATUS_INVALID_FILE,
             "written in version %" PRId64 " of the format; this onnx-xla reads %d: compile the model again", version,
             VERSION);
  CHECK_THAT(n == N_SECTIONS && size == (int64_t)file_size, STATUS_INVALID_FILE, "truncated or damaged");
  uint64_t seed = hash_bytes(bytes + sizeof magic, HEADER_BYTES - sizeof magic - 8, 0);
  CHECK_THAT(hash == hash_bytes(bytes + HEADER_BYTES, N_SECTIONS * ROW_BYTES, seed), STATUS_INVALID_FILE,
             "the header is damaged");
  for (int k = 0; k < N_SECTIONS; k++) {
    uint64_t kind = (uint64_t)rt_get_i64(&table), offset = (uint64_t)rt_get_i64(&table),
             bytes_of = (uint64_t)rt_get_i64(&table);
    hashes[k] = (uint64_t)rt_get_i64(&table);
    CHECK_THAT(kind == (uint64_t)k && offset % ALIGN == 0 && offset <= file_size && bytes_of <= file_size - offset,
               STATUS_INVALID_FILE, "the table of sections is damaged");
    x->sections[k] = (rt_span){bytes + offset, bytes_of};
  }
  return NULL;
}

static status open_bytes(arena *a, const char *path, const uint8_t *bytes, size_t size, bool verify_constants,
                         const rt_image_finder *bases, rt_image **out) {
  reading x = {.a = a, .path = path};
  uint64_t hashes[N_SECTIONS], identity;
  CHECK_THAT(size >= TABLE_END, STATUS_INVALID_FILE, "not a whole .oxla file");
  TRY(get_sections(&x, bytes, size, hashes, &identity));
  for (int k = META; k < CONSTANTS; k++) {
    CHECK_THAT(k == CODE || hash_bytes(x.sections[k].data, x.sections[k].size, 0) == hashes[k], STATUS_INVALID_FILE,
               "the %s section is damaged", section_names[k]);
  }
  rt_image *image = ARENA_NEW(a, rt_image);
  image->source = x.sections[SOURCE];
  image->identity = identity;
  TRY(get_meta(&x, bases, image));
  TRY(get_programs(&x, image));
  TRY(check_pool(&x, image, CODE, hashes[CODE]));
  if (verify_constants) {
    TRY(check_pool(&x, image, CONSTANTS, hashes[CONSTANTS]));
  }
  *out = image;
  return NULL;
}

status rt_image_open(arena *a, const char *path, bool verify_constants, rt_image **out) {
  const uint8_t *bytes;
  size_t size;
  TRY(file_map(a, path, &bytes, &size));
  return open_bytes(a, path, bytes, size, verify_constants, NULL, out);
}

status rt_image_open_fd(arena *a, int fd, const char *name, bool verify_constants, const rt_image_finder *bases,
                        rt_image **out) {
  const uint8_t *bytes;
  size_t size;
  TRY(file_map_fd(a, fd, name, &bytes, &size));
  return open_bytes(a, name, bytes, size, verify_constants, bases, out);
}

status rt_image_open_bytes(arena *a, const void *bytes, size_t size, const char *name, bool verify_constants,
                           rt_image **out) {
  if ((uintptr_t)bytes % ALIGN) {
    void *copy = arena_alloc_aligned(a, size, ALIGN);
    bytes = memcpy(copy, bytes, size);
  }
  return open_bytes(a, name, bytes, size, verify_constants, NULL, out);
}

bool rt_image_begins(const void *bytes, size_t size) {
  return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}
