/* weight_pool.c - arrays with names and reference counts, which the programs of a session share. */
#include "runtime/program/weight_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { ALIGN = 64 };

/* The arena to which registered arrays belong, and how many of them are in the pool. */
typedef struct owner {
  arena *mapped; /* NULL if the caller of rt_weight_pool_register owns the data */
  uint32_t arrays;
} owner;

typedef struct array {
  struct array *next;
  void *data;
  owner *owner; /* NULL if the pool allocated the data */
  uint64_t bytes, hash;
  uint32_t references;
  size_t name_size;
  uint8_t name[];
} array;

struct rt_weight_pool {
  mem_budget *budget;
  hash_secret secret;
  array *arrays;
};

status rt_weight_pool_create(mem_budget *budget, const hash_secret *secret, rt_weight_pool **out) {
  *out = calloc(1, sizeof **out);
  CHECK_THAT(*out, STATUS_RESOURCE, "out of memory");
  (*out)->budget = budget;
  if (secret) {
    (*out)->secret = *secret;
  } else {
    (void)hash_secret_init(&(*out)->secret);
  }
  return NULL;
}

static void destroy_array(rt_weight_pool *s, array *x) {
  if (!x->owner) {
    budget_free(s->budget, x->data, x->bytes, ALIGN);
  } else if (--x->owner->arrays == 0) {
    arena_destroy(x->owner->mapped);
    free(x->owner);
  }
  free(x);
}

void rt_weight_pool_destroy(rt_weight_pool *s) {
  while (s && s->arrays) {
    array *next = s->arrays->next;
    destroy_array(s, s->arrays);
    s->arrays = next;
  }
  free(s);
}

hash128 rt_weight_pool_identity(const rt_weight_pool *s, const void *data, size_t bytes) {
  return hash_keyed(&s->secret, data, bytes);
}

void rt_weight_pool_put_name(rt_writer *w, const rt_sharing *s, const void *data, uint64_t bytes) {
  rt_put_i64(w, (int64_t)bytes);
  if (!s->is_persistent || !s->is_persistent(s->owner, data, w)) {
    hash128 identity = rt_weight_pool_identity(s->weight_pool, data, bytes);
    rt_put_bytes(w, &identity, sizeof identity);
  }
}

static uint64_t hash_of(rt_span name, uint64_t bytes) { return hash_bytes(name.data, name.size, bytes); }

/* Adds an array without its data.  Returns NULL if there is no memory. */
static array *add_array(rt_weight_pool *s, rt_span name, uint64_t bytes) {
  array *x = malloc(sizeof *x + name.size);
  if (x) {
    *x = (array){.next = s->arrays, .bytes = bytes, .hash = hash_of(name, bytes), .name_size = name.size};
    memcpy(x->name, name.data, name.size);
    s->arrays = x;
  }
  return x;
}

static array *find_named(const rt_weight_pool *s, rt_span name, uint64_t bytes) {
  uint64_t hash = hash_of(name, bytes);
  array *x = s->arrays;
  while (x && !(x->hash == hash && x->bytes == bytes && x->name_size == name.size &&
                memcmp(x->name, name.data, name.size) == 0)) {
    x = x->next;
  }
  return x;
}

const void *rt_weight_pool_find(const rt_weight_pool *s, rt_span name, uint64_t bytes) {
  const array *x = find_named(s, name, bytes);
  return x ? x->data : NULL;
}

void *rt_weight_pool_get(rt_weight_pool *s, rt_span name, uint64_t bytes, bool *fresh) {
  array *x = find_named(s, name, bytes);
  *fresh = !x;
  if (x) {
    return x->data;
  }
  void *data = budget_alloc(s->budget, bytes, ALIGN);
  x = data ? add_array(s, name, bytes) : NULL;
  if (!x) {
    budget_free(s->budget, data, bytes, ALIGN);
    return NULL;
  }
  return x->data = data;
}

rt_span rt_weight_pool_search(const rt_weight_pool *s, rt_weight_pool_match *matches, void *data) {
  for (const array *x = s->arrays; x; x = x->next) {
    if (matches(data, (rt_span){x->name, x->name_size})) {
      return (rt_span){x->data, x->bytes};
    }
  }
  return (rt_span){NULL, 0};
}

static void register_array(rt_weight_pool *s, owner *from, rt_span bytes, rt_span name) {
  array *x = name.size && !find_named(s, name, bytes.size) ? add_array(s, name, bytes.size) : NULL;
  if (x) {
    x->data = (void *)(uintptr_t)bytes.data;
    x->owner = from;
    from->arrays++;
  }
}

bool rt_weight_pool_register(rt_weight_pool *s, const rt_program *p, arena *mapped) {
  owner *from = calloc(1, sizeof *from);
  for (uint32_t k = 0; from && k < p->n_constants; k++) {
    register_array(s, from, p->constants[k], rt_program_name(p, k));
  }
  for (uint32_t k = 0; from && k < p->n_code; k++) {
    register_array(s, from, p->code[k], rt_program_code_name(p, k));
  }
  if (from && from->arrays) {
    from->mapped = mapped;
    return true;
  }
  free(from);
  return false;
}

static array *find(const rt_weight_pool *s, const void *data) {
  array *x = s->arrays;
  while (x && x->data != data) {
    x = x->next;
  }
  return x;
}

rt_span rt_weight_pool_name(const rt_weight_pool *s, const void *data) {
  const array *x = find(s, data);
  return x ? (rt_span){x->name, x->name_size} : (rt_span){NULL, 0};
}

static void count_all(rt_weight_pool *s, uint32_t n, const rt_span *spans, uint32_t by) {
  for (uint32_t k = 0; k < n; k++) {
    array *x = find(s, spans[k].data);
    if (x) {
      x->references += by;
    }
  }
}

static void count(rt_weight_pool *s, const rt_program *p, uint32_t by) {
  count_all(s, p->n_constants, p->constants, by);
  count_all(s, p->n_code, p->code, by);
}

void rt_weight_pool_retain(rt_weight_pool *s, const rt_program *p) { count(s, p, 1); }

void rt_weight_pool_release(rt_weight_pool *s, const rt_program *p) { count(s, p, UINT32_MAX); }

/* Frees the arrays that no program retains: all of them, or only those that rt_weight_pool_get has made. */
static void free_arrays(rt_weight_pool *s, bool registered) {
  for (array **at = &s->arrays; *at;) {
    array *x = *at;
    if (x->references || (x->owner && !registered)) {
      at = &x->next;
    } else {
      *at = x->next;
      destroy_array(s, x);
    }
  }
}

void rt_weight_pool_collect(rt_weight_pool *s) { free_arrays(s, true); }

void rt_weight_pool_abandon(rt_weight_pool *s) { free_arrays(s, false); }

static uint64_t share_of(const rt_weight_pool *s, uint32_t n, const rt_span *spans) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < n; k++) {
    const array *x = find(s, spans[k].data);
    bytes += x && !x->owner && x->references ? x->bytes / x->references : 0;
  }
  return bytes;
}

uint64_t rt_weight_pool_share(const rt_weight_pool *s, const rt_program *p) {
  return share_of(s, p->n_constants, p->constants) + share_of(s, p->n_code, p->code);
}

/* --- keeping a program --- */

static rt_span keep_bytes(arena *a, rt_span s) {
  void *copy = arena_alloc_aligned(a, s.size, ALIGN);
  return (rt_span){s.size ? memcpy(copy, s.data, s.size) : copy, s.size};
}

static rt_io *keep_io(arena *a, uint32_t n, const rt_io *from) {
  rt_io *io = arena_memdup(a, from, n * sizeof *io);
  for (uint32_t k = 0; k < n; k++) {
    io[k].name = arena_strdup(a, io[k].name);
    io[k].value = io[k].value ? keep_bytes(a, (rt_span){io[k].value, (uint64_t)shape_bytes(&io[k].shape)}).data : NULL;
  }
  return io;
}

/* keep_sequence must copy what each pointer of a thunk points to. */
_Static_assert(sizeof(void *) != 8 || sizeof(rt_thunk) == 136, "rt_thunk has changed: does it have a new pointer?");

static rt_sequence keep_sequence(arena *a, const rt_sequence *from) {
  rt_sequence s = {from->n, from->n, arena_memdup(a, from->thunks, from->n * sizeof *from->thunks)};
  for (uint32_t k = 0; k < s.n; k++) {
    rt_thunk *t = &s.thunks[k];
    t->kind = arena_strdup(a, t->kind);
    t->operation = arena_strdup(a, t->operation);
    t->nodes = arena_memdup(a, t->nodes, t->n_nodes * sizeof *t->nodes);
    t->note = t->note ? arena_strdup(a, t->note) : NULL;
    t->config = keep_bytes(a, t->config);
    t->buffers = arena_memdup(a, t->buffers, t->n_buffers * sizeof *t->buffers);
    for (uint32_t b = 0; b < t->n_buffers; b++) {
      rt_buffer *x = &t->buffers[b];
      x->extents = arena_memdup(a, x->extents, x->rank * sizeof *x->extents);
      x->strides = arena_memdup(a, x->strides, x->rank * sizeof *x->strides);
    }
    rt_sequence *bodies = ARENA_NEW_N(a, rt_sequence, t->n_bodies);
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      bodies[b] = keep_sequence(a, &t->bodies[b]);
    }
    t->bodies = bodies;
    t->sizes = arena_memdup(a, t->sizes, t->n_sizes * sizeof *t->sizes);
  }
  return s;
}

static void keep_sizes(arena *a, const rt_program *p, rt_program *kept) {
  kept->sizes = arena_memdup(a, p->sizes, p->n_sizes * sizeof *p->sizes);
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    kept->sizes[k].name = p->sizes[k].name ? arena_strdup(a, p->sizes[k].name) : NULL;
  }
  kept->guards = arena_memdup(a, p->guards, p->n_guards * sizeof *p->guards);
  for (uint32_t k = 0; k < p->n_guards; k++) {
    kept->guards[k].text = arena_strdup(a, p->guards[k].text);
    kept->guards[k].source = arena_strdup(a, p->guards[k].source);
  }
  kept->definitions = arena_memdup(a, p->definitions, p->n_definitions * sizeof *p->definitions);
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    const rt_definition *d = &p->definitions[k];
    kept->definitions[k] =
        (rt_definition){arena_strdup(a, d->symbol), arena_strdup(a, d->equals), arena_strdup(a, d->source)};
  }
  kept->slots = arena_memdup(a, p->slots, p->n_slots * sizeof *p->slots);
}

static rt_span keep_span(arena *a, rt_span c, rt_span name, const rt_sharing *s) {
  const void *there = name.size ? rt_weight_pool_find(s->weight_pool, name, c.size) : NULL;
  if (there) {
    return (rt_span){there, c.size};
  }
  return find(s->weight_pool, c.data) || (s->is_persistent && s->is_persistent(s->owner, c.data, NULL))
             ? c
             : keep_bytes(a, c);
}

rt_program *rt_program_keep(arena *a, const rt_program *p, const rt_sharing *s) {
  rt_program *kept = arena_memdup(a, p, sizeof *p);
  kept->target = arena_strdup(a, p->target);
  kept->cpu = arena_strdup(a, p->cpu);
  kept->params = keep_io(a, p->n_params, p->params);
  kept->results = keep_io(a, p->n_results, p->results);
  kept->constants = ARENA_NEW_N(a, rt_span, p->n_constants);
  kept->names = ARENA_NEW_N(a, rt_span, p->n_constants);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    kept->constants[k] = keep_span(a, p->constants[k], rt_program_name(p, k), s);
    kept->names[k] = keep_bytes(a, rt_program_name(p, k));
  }
  kept->code = ARENA_NEW_N(a, rt_span, p->n_code);
  kept->code_names = ARENA_NEW_N(a, rt_span, p->n_code);
  for (uint32_t k = 0; k < p->n_code; k++) {
    kept->code[k] = keep_span(a, p->code[k], rt_program_code_name(p, k), s);
    kept->code_names[k] = keep_bytes(a, rt_program_code_name(p, k));
  }
  kept->nodes = ARENA_NEW_N(a, rt_node, p->n_nodes);
  for (uint32_t k = 0; k < p->n_nodes; k++) {
    const rt_node *node = &p->nodes[k];
    kept->nodes[k] = (rt_node){arena_strdup(a, node->text), arena_strdup(a, node->operator_name)};
  }
  keep_sizes(a, p, kept);
  kept->body = keep_sequence(a, &p->body);
  return kept;
}
