/* dim_nodes.c - implements dim_nodes.h, and the functions of dim.h that make and query single nodes. */
#include "base/dim/dim_nodes.h"

#include <string.h>

/* --- nodes --- */

dim_table *dim_table_create(arena *a) {
  dim_table *t = ARENA_NEW(a, dim_table);
  t->arena = a;
  t->source = "";
  t->n_slots = 64;
  t->slots = ARENA_NEW_N(a, uint32_t, t->n_slots);
  str_map_init(&t->symbols, a);
  str_map_init(&t->named, a);
  str_map_init(&t->nameless, a);
  str_map_init(&t->numbers, a);
  return t;
}

static dim push_node(dim_table *t, dim_node n) {
  if (t->n == UINT32_MAX / 4) {
    guard_fail("too many dimension expressions");
  }
  *ARENA_PUSH(t->arena, t->nodes, t->n, t->cap) = n;
  return -(dim)t->n;
}

/* Returns the slot of this expression; if it is not in the table, the free slot for it. */
static uint32_t *find_slot(const dim_table *t, dim_kind kind, dim lhs, dim rhs) {
  uint64_t hash = hash_mix(hash_mix((uint64_t)kind, (uint64_t)lhs), (uint64_t)rhs);
  for (uint32_t at = (uint32_t)(hash >> 32) & (t->n_slots - 1);; at = (at + 1) & (t->n_slots - 1)) {
    const dim_node *n = t->slots[at] ? &t->nodes[t->slots[at] - 1] : NULL;
    if (!n || (n->kind == kind && n->lhs == lhs && n->rhs == rhs)) {
      return &t->slots[at];
    }
  }
}

static void grow_slots(dim_table *t) {
  t->n_slots *= 2;
  t->slots = ARENA_NEW_N(t->arena, uint32_t, t->n_slots);
  for (uint32_t i = 0; i < t->n; i++) {
    const dim_node *n = &t->nodes[i];
    if (n->kind != DIM_SYMBOL) {
      *find_slot(t, n->kind, n->lhs, n->rhs) = i + 1;
    }
  }
}

static uint32_t size_of(const dim_table *t, dim d) { return d >= 0 ? 1 : dim_at(t, d)->size; }

dim dim_intern(dim_table *t, dim_kind kind, dim lhs, dim rhs) {
  if (lhs == DIM_OVERFLOW || rhs == DIM_OVERFLOW) {
    return DIM_OVERFLOW;
  }
  uint32_t size = 1 + size_of(t, lhs) + size_of(t, rhs);
  if (size > DIM_MOST_NODES) {
    return DIM_OVERFLOW;
  }
  if (t->n >= t->n_slots / 2) {
    grow_slots(t);
  }
  uint32_t *slot = find_slot(t, kind, lhs, rhs);
  if (*slot) {
    return -(dim)*slot;
  }
  dim d = push_node(t, (dim_node){.kind = kind,
                                  .size = size,
                                  .lhs = lhs,
                                  .rhs = rhs,
                                  .exact = kind != DIM_BOUNDED && dim_is_exact(t, lhs) && dim_is_exact(t, rhs)});
  *slot = t->n;
  return d;
}

static bool is_number_char(char c) { return c >= '0' && c <= '9'; }

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_number_char(c) || c == '_' || c == '.';
}

static char *clean_name(arena *a, const char *name, size_t length) {
  bool bad_start = !length || is_number_char(*name);
  char *clean = arena_alloc(a, length + bad_start + 1);
  clean[0] = '_';
  for (size_t i = 0; i < length; i++) {
    clean[i + bad_start] = is_name_char(name[i]) ? name[i] : '_';
  }
  return clean;
}

char *dim_clean_name(arena *a, const char *name) { return clean_name(a, name, strlen(name)); }

bool dim_is_listed(const char *name, const char *const *names, uint32_t n) {
  bool found = false;
  for (uint32_t k = 0; k < n && !found; k++) {
    found = strcmp(name, names[k]) == 0;
  }
  return found;
}

const char *dim_find_name(arena *a, const char *given, const char *const *names, uint32_t n) {
  if (dim_is_listed(given, names, n)) {
    return given;
  }
  const char *clean = dim_clean_name(a, given), *numbered = arena_printf(a, "%s.", clean);
  for (uint32_t k = 0; k < n; k++) {
    if (strncmp(names[k], numbered, strlen(numbered)) == 0) {
      return NULL;
    }
  }
  return dim_is_listed(clean, names, n) ? clean : NULL;
}

/* Returns, as a pointer, 1 plus the index in t->nodes of the symbol of that name, which must consist of allowed
 * characters.  The symbol is added if it is new. */
static void *intern_symbol(dim_table *t, const char *clean) {
  void **slot = str_map_put(&t->symbols, clean);
  if (!*slot) {
    push_node(t, (dim_node){.kind = DIM_SYMBOL, .size = 1, .name = clean, .exact = true});
    *slot = (void *)(uintptr_t)t->n;
  }
  return *slot;
}

dim dim_symbol_n(dim_table *t, const char *name, size_t length) {
  const void *known = str_map_get_n(&t->symbols, name, length);
  known = known ? known : intern_symbol(t, clean_name(t->arena, name, length));
  return -(dim)(uintptr_t)known;
}

dim dim_symbol(dim_table *t, const char *name) { return dim_symbol_n(t, name, strlen(name)); }

static dim_node *symbol_node(dim_table *t, const void *symbol) { return &t->nodes[(uintptr_t)symbol - 1]; }

/* Returns the symbol that `map` has for the key.  If it has none, adds one that no key of the two maps has yet.  It is
 * called `name`, or `name` and a number if that symbol is taken.  A symbol that only dim_symbol has returned is not
 * taken: a definition may name a dimension before the array that has it is imported. */
static dim take_symbol(dim_table *t, str_map *map, const char *key, const char *name) {
  void *symbol = str_map_get(map, key);
  if (!symbol) {
    const char *clean = dim_clean_name(t->arena, name), *numbered = clean;
    uintptr_t *last = (uintptr_t *)str_map_put(&t->numbers, clean);
    while (symbol = intern_symbol(t, numbered), symbol_node(t, symbol)->taken) {
      numbered = arena_printf(t->arena, "%s.%llu", clean, (unsigned long long)++*last);
    }
    symbol_node(t, symbol)->taken = true;
    *str_map_put(map, arena_strdup(t->arena, key)) = symbol;
  }
  return -(dim)(uintptr_t)symbol;
}

dim dim_named(dim_table *t, const char *name) { return take_symbol(t, &t->named, name, name); }

dim dim_nameless(dim_table *t, const char *array, int k) {
  const char *key = arena_printf(t->arena, "%d %s", k, array);
  return take_symbol(t, &t->nameless, key, arena_printf(t->arena, "_%.16s_%d", array, k));
}

dim dim_own(dim_table *t, const char *name) {
  const char *key = arena_printf(t->arena, "own %s", name); /* keys of dim_nameless begin with a number */
  return take_symbol(t, &t->nameless, key, name);
}

void dim_take_symbols(dim_table *t) {
  for (uint32_t k = 0; k < t->n; k++) {
    t->nodes[k].taken = true;
  }
}

dim dim_bounded(dim_table *t, dim bound, const char *size_name) {
  if (bound < 0 || bound > DIM_MAX) {
    return DIM_OVERFLOW;
  }
  return dim_intern(t, DIM_BOUNDED, bound, dim_symbol(t, size_name));
}

dim_kind dim_get_kind(const dim_table *t, dim d) { return dim_is_const(d) ? DIM_CONST : dim_at(t, d)->kind; }

bool dim_is_exact(const dim_table *t, dim d) { return dim_is_const(d) || (d != DIM_OVERFLOW && dim_at(t, d)->exact); }

dim dim_lhs(const dim_table *t, dim d) { return dim_is_const(d) ? 0 : dim_at(t, d)->lhs; }

dim dim_rhs(const dim_table *t, dim d) { return dim_is_const(d) ? 0 : dim_at(t, d)->rhs; }

const char *dim_name(const dim_table *t, dim d) {
  switch (dim_get_kind(t, d)) {
    case DIM_SYMBOL: return dim_at(t, d)->name;
    case DIM_BOUNDED: return dim_at(t, dim_at(t, d)->rhs)->name;
    default: return NULL;
  }
}

dim dim_layout(const dim_table *t, dim d) {
  return d < 0 && d != DIM_OVERFLOW && dim_at(t, d)->kind == DIM_BOUNDED ? dim_at(t, d)->lhs : d;
}

/* Compares kinds, then operands.  It recurses only into the first operands that differ. */
int dim_compare(const dim_table *t, dim a, dim b) {
  if (a == b) {
    return 0;
  }
  if (a >= 0 || b >= 0) {
    return a >= 0 && b >= 0 ? (a < b ? -1 : 1) : a >= 0 ? 1 : -1; /* constants come last */
  }
  const dim_node *x = dim_at(t, a), *y = dim_at(t, b);
  if (x->kind != y->kind) {
    return x->kind < y->kind ? -1 : 1;
  }
  if (x->kind == DIM_SYMBOL) {
    return strcmp(x->name, y->name);
  }
  int order = dim_compare(t, x->lhs, y->lhs);
  return order ? order : dim_compare(t, x->rhs, y->rhs);
}

/* --- monomials: interned products of atoms; the empty product is the constant 1 --- */

void dim_monomial_open(const dim_table *t, dim d, dim_monomial *m) {
  m->degree = 0;
  if (d == 1) {
    return;
  }
  int n = 1;
  for (dim at = d; dim_at(t, at)->kind == DIM_MUL; at = dim_at(t, at)->lhs) {
    n++;
  }
  m->degree = n;
  for (; n > 1; d = dim_at(t, d)->lhs) {
    m->atoms[--n] = dim_at(t, d)->rhs;
  }
  m->atoms[0] = d;
}

dim dim_monomial_close(dim_table *t, const dim_monomial *m) {
  dim d = m->degree ? m->atoms[0] : 1;
  for (int i = 1; i < m->degree; i++) {
    d = dim_intern(t, DIM_MUL, d, m->atoms[i]);
  }
  return d;
}

int dim_monomial_compare(const dim_table *t, dim a, dim b) {
  if (a == b) {
    return 0;
  }
  dim_monomial x, y;
  dim_monomial_open(t, a, &x);
  dim_monomial_open(t, b, &y);
  if (x.degree != y.degree) {
    return x.degree > y.degree ? -1 : 1;
  }
  int i = 0;
  while (x.atoms[i] == y.atoms[i]) {
    i++;
  }
  return dim_compare(t, x.atoms[i], y.atoms[i]);
}

dim dim_monomial_multiply(dim_table *t, dim a, dim b) {
  dim_monomial x, y, product = {0};
  dim_monomial_open(t, a, &x);
  dim_monomial_open(t, b, &y);
  if (x.degree + y.degree > DIM_DEGREE_MAX) {
    return DIM_OVERFLOW;
  }
  product.degree = x.degree + y.degree;
  for (int i = 0, j = 0, k = 0; k < product.degree; k++) {
    bool from_x = j == y.degree || (i < x.degree && dim_compare(t, x.atoms[i], y.atoms[j]) <= 0);
    product.atoms[k] = from_x ? x.atoms[i++] : y.atoms[j++];
  }
  return dim_monomial_close(t, &product);
}

void dim_monomial_split(dim_table *t, dim a, dim b, dim *common, dim *rest) {
  dim_monomial x, y, both = {0}, left = {0};
  dim_monomial_open(t, a, &x);
  dim_monomial_open(t, b, &y);
  for (int i = 0, j = 0; i < x.degree; i++) {
    while (j < y.degree && dim_compare(t, y.atoms[j], x.atoms[i]) < 0) {
      j++;
    }
    if (j < y.degree && y.atoms[j] == x.atoms[i]) {
      both.atoms[both.degree++] = x.atoms[i];
      j++;
    } else {
      left.atoms[left.degree++] = x.atoms[i];
    }
  }
  *common = dim_monomial_close(t, &both);
  *rest = dim_monomial_close(t, &left);
}
