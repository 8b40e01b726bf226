/* einsum.c - Einsum: an equation of labelled dimensions, which becomes transposes, dots and sums.
 *
 * Labels are numbered: first the letters in ASCII order, then the dimensions that "..." stands for, counted from the
 * last one.  A term is a value with the labels of its dimensions.  Operands are contracted one after the other from the
 * left, and a label is summed as soon as neither a later operand nor the output has it. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

enum { N_LETTERS = 52, N_LABELS = N_LETTERS + SHAPE_MAX_RANK };

/* A term of the equation, or an intermediate result. */
typedef struct term {
  hlo_value value;
  int n;
  int labels[SHAPE_MAX_RANK];
} term;

typedef struct equation {
  const char *text;
  uint32_t n_terms;
  term *terms, out;
  dim extent[N_LABELS]; /* the extent of each label; DIM_OVERFLOW if it is not known yet */
  int ellipsis_rank;    /* the largest number of dimensions that "..." stands for in a term */
} equation;

static int letter_label(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1; }

static bool has_label(const term *t, int label) {
  for (int k = 0; k < t->n; k++) {
    if (t->labels[k] == label) {
      return true;
    }
  }
  return false;
}

/* --- parsing --- */

/* Parses one term, from *at to the next ',', '-' or the end.  `rank` is that of its operand, or -1 for the output.
 * `ellipsis` is the number of dimensions that "..." stands for; -1 means that it follows from the rank. */
static status parse_term(const equation *e, const char **at, int rank, int ellipsis, term *t) {
  const char *p = *at;
  int letters = 0;
  bool dots = false;
  for (; *p && *p != ',' && *p != '-'; p++) {
    if (*p == '.') {
      CHECK_THAT(strncmp(p, "...", 3) == 0 && !dots, STATUS_INVALID_MODEL, "equation '%.60s': misplaced '.'", e->text);
      dots = true;
      p += 2;
    } else if (*p != ' ') {
      CHECK_THAT(letter_label(*p) >= 0, STATUS_INVALID_MODEL, "equation '%.60s': '%c' is not a letter", e->text, *p);
      CHECK_THAT(letters < SHAPE_MAX_RANK, STATUS_INVALID_MODEL, "equation '%.60s': a term has more than %d subscripts",
                 e->text, SHAPE_MAX_RANK);
      letters++;
    }
  }
  int n_dots = !dots ? 0 : ellipsis >= 0 ? ellipsis : rank - letters;
  CHECK_THAT(n_dots >= 0 && letters + n_dots <= SHAPE_MAX_RANK && (rank < 0 || letters + n_dots == rank),
             STATUS_INVALID_MODEL, "equation '%.60s': a term has %d subscripts%s but its operand has rank %d", e->text,
             letters, dots ? " and an ellipsis" : "", rank);
  t->n = 0;
  for (p = *at; *p && *p != ',' && *p != '-'; p++) {
    if (*p == '.') {
      for (int k = 0; k < n_dots; k++) {
        t->labels[t->n++] = N_LETTERS + n_dots - 1 - k;
      }
      p += 2;
    } else if (*p != ' ') {
      t->labels[t->n++] = letter_label(*p);
    }
  }
  *at = p;
  return NULL;
}

/* Records the extents of the term's labels; a dimension of extent 1 broadcasts to the label's other extent. */
static status note_extents(const onnx_node *n, equation *e, const term *t) {
  dim_table *dims = onnx_dims(n);
  const shape *s = hlo_shape(t->value);
  for (int k = 0; k < t->n; k++) {
    dim *extent = &e->extent[t->labels[k]], d = s->dims[k];
    bool first = *extent == DIM_OVERFLOW || *extent == 1, same = first || d == 1 || dim_equal(dims, *extent, d);
    CHECK_THAT(same || dim_equal(dims, *extent, 1) || dim_equal(dims, d, 1), STATUS_INVALID_MODEL,
               "equation '%.60s': one subscript has extents %s and %s", e->text, dim_print(n->arena, dims, *extent),
               dim_print(n->arena, dims, d));
    *extent = first ? d : *extent;
    if (t->labels[k] >= N_LETTERS && t->labels[k] - N_LETTERS + 1 > e->ellipsis_rank) {
      e->ellipsis_rank = t->labels[k] - N_LETTERS + 1;
    }
  }
  return NULL;
}

/* Makes the output term of an equation without "->": the ellipsis, then all letters that occur once, in ASCII order. */
static status implicit_output(equation *e) {
  term *out = &e->out;
  for (int k = e->ellipsis_rank; k-- > 0;) {
    out->labels[out->n++] = N_LETTERS + k;
  }
  for (int label = 0; label < N_LETTERS; label++) {
    int count = 0;
    for (uint32_t k = 0; k < e->n_terms; k++) {
      for (int i = 0; i < e->terms[k].n; i++) {
        count += e->terms[k].labels[i] == label;
      }
    }
    if (count == 1) {
      CHECK_THAT(out->n < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "equation '%.60s': the result's rank is above %d",
                 e->text, SHAPE_MAX_RANK);
      out->labels[out->n++] = label;
    }
  }
  return NULL;
}

static status explicit_output(equation *e, const char *at) {
  TRY(parse_term(e, &at, -1, e->ellipsis_rank, &e->out));
  CHECK_THAT(!*at, STATUS_INVALID_MODEL, "equation '%.60s': something follows the output term", e->text);
  for (int k = 0; k < e->out.n; k++) {
    CHECK_THAT(e->extent[e->out.labels[k]] != DIM_OVERFLOW, STATUS_INVALID_MODEL,
               "equation '%.60s': subscript %d of the output is in no input", e->text, k);
    for (int i = 0; i < k; i++) {
      CHECK_THAT(e->out.labels[i] != e->out.labels[k], STATUS_INVALID_MODEL,
                 "equation '%.60s': a subscript of the output is given twice", e->text);
    }
  }
  return NULL;
}

static status parse_equation(const onnx_node *n, equation *e) {
  const char *at;
  TRY(onnx_attr_required(n->proto, "equation"));
  TRY(onnx_attr_string(n->arena, n->proto, "equation", "", &e->text));
  for (int k = 0; k < N_LABELS; k++) {
    e->extent[k] = DIM_OVERFLOW;
  }
  e->n_terms = n->n_in;
  e->terms = ARENA_NEW_N(n->arena, term, n->n_in);
  at = e->text;
  for (uint32_t k = 0; k < n->n_in; k++) {
    CHECK_THAT(onnx_has_in(n, k), STATUS_INVALID_MODEL, "input %u is missing", k);
    TRY(onnx_need_rank(n, k, "an input", 0, SHAPE_MAX_RANK));
    e->terms[k].value = n->in[k];
    TRY(parse_term(e, &at, hlo_rank(n->in[k]), -1, &e->terms[k]));
    TRY(note_extents(n, e, &e->terms[k]));
    bool last = k + 1 == n->n_in;
    CHECK_THAT(last ? *at != ',' : *at == ',', STATUS_INVALID_MODEL, "equation '%.60s' has %s terms than inputs (%u)",
               e->text, last ? "more" : "fewer", n->n_in);
    at += *at == ',';
  }
  if (!*at) {
    return implicit_output(e);
  }
  CHECK_THAT(strncmp(at, "->", 2) == 0, STATUS_INVALID_MODEL, "equation '%.60s': '-' must begin '->'", e->text);
  return explicit_output(e, at + 2);
}

/* --- building --- */

static void drop_dim(hlo_builder *b, term *t, int k, bool reshape) {
  if (reshape) {
    shape s = *hlo_shape(t->value);
    memmove(s.dims + k, s.dims + k + 1, (size_t)(s.rank - k - 1) * sizeof *s.dims);
    t->value = hlo_reshape(b, t->value, s.rank - 1, s.dims);
  }
  memmove(t->labels + k, t->labels + k + 1, (size_t)(t->n - k - 1) * sizeof *t->labels);
  t->n--;
}

/* Replaces dimensions i and j, which have equal extents, by their diagonal: they are moved to the end and
 * merged, and every (extent + 1)-th element is taken.  The extent must be a constant, since strides must
 * be. */
static void take_diagonal(hlo_builder *b, term *t, int i, int j) {
  int64_t order[SHAPE_MAX_RANK];
  int labels[SHAPE_MAX_RANK], n = 0;
  for (int k = 0; k < t->n; k++) {
    if (k != i && k != j) {
      labels[n] = t->labels[k];
      order[n++] = k;
    }
  }
  labels[n] = t->labels[i];
  order[n] = i;
  order[n + 1] = j;
  hlo_value x = hlo_transpose(b, t->value, order);
  shape s = *hlo_shape(x);
  dim extent = s.dims[n];
  if (!dim_is_const(extent)) {
    (void)dim_pin(b->computation->module->dims, extent);
    hlo_fail(b, status_error(STATUS_UNSUPPORTED, "the extent of a diagonal must be a constant"));
    return;
  }
  s.dims[n] = dim_mul(b->computation->module->dims, extent, extent);
  x = hlo_reshape(b, x, n + 1, s.dims);
  dim starts[SHAPE_MAX_RANK] = {0};
  int64_t strides[SHAPE_MAX_RANK];
  for (int k = 0; k < n; k++) {
    strides[k] = 1;
  }
  strides[n] = extent + 1;
  t->value = hlo_slice(b, x, starts, s.dims, strides);
  t->n = n + 1;
  memcpy(t->labels, labels, sizeof labels);
}

/* Changes a term such that its labels are distinct (a repeated label becomes the diagonal) and no dimension has to be
 * broadcast. */
static void simplify_term(hlo_builder *b, const equation *e, term *t) {
  for (int k = t->n; k-- > 0;) {
    if (hlo_shape(t->value)->dims[k] == 1 && e->extent[t->labels[k]] != 1) {
      drop_dim(b, t, k, true);
    }
  }
  for (int j = 1; j < t->n; j++) {
    for (int i = 0; i < j; i++) {
      if (t->labels[i] == t->labels[j]) {
        take_diagonal(b, t, i, j);
        j = 0; /* the dimensions have moved, so start again */
        break;
      }
    }
  }
}

/* Returns true if the output or a term from `next` on needs the label. */
static bool needed(const equation *e, uint32_t next, int label) {
  for (uint32_t k = next; k < e->n_terms; k++) {
    if (has_label(&e->terms[k], label)) {
      return true;
    }
  }
  return has_label(&e->out, label);
}

/* Sums over those dimensions of t whose labels are not needed: no term from `next` on has them, nor has the output, nor
 * has `other` (unless it is NULL). */
static void sum_unneeded(hlo_builder *b, const equation *e, uint32_t next, const term *other, term *t) {
  int64_t dims[SHAPE_MAX_RANK] = {0};
  uint32_t n = 0;
  for (int k = 0; k < t->n; k++) {
    if (!needed(e, next, t->labels[k]) && !(other && has_label(other, t->labels[k]))) {
      dims[n++] = k;
    }
  }
  t->value = hlo_reduce(b, t->value, HLO_REDUCE_ADD, n, dims);
  for (uint32_t k = n; k-- > 0;) {
    drop_dim(b, t, (int)dims[k], false);
  }
}

/* Multiplies the terms x and y.  A label of both terms becomes a batch dimension if it is needed later; otherwise it is
 * contracted. */
static term contract(hlo_builder *b, const equation *e, uint32_t next, const term *x, const term *y) {
  int64_t xb[SHAPE_MAX_RANK], yb[SHAPE_MAX_RANK], xc[SHAPE_MAX_RANK], yc[SHAPE_MAX_RANK];
  hlo_dot_dims d = {.lhs_batch = xb, .rhs_batch = yb, .lhs_contract = xc, .rhs_contract = yc};
  term r = {.n = 0};
  for (int i = 0; i < x->n; i++) {
    for (int j = 0; j < y->n; j++) {
      if (x->labels[i] == y->labels[j]) {
        bool batch = needed(e, next, x->labels[i]);
        (batch ? xb : xc)[batch ? d.n_batch : d.n_contract] = i;
        (batch ? yb : yc)[batch ? d.n_batch : d.n_contract] = j;
        *(batch ? &d.n_batch : &d.n_contract) += 1;
        if (batch) {
          r.labels[r.n++] = x->labels[i];
        }
      }
    }
  }
  int free_dims = x->n + y->n - 2 * (int)(d.n_batch + d.n_contract);
  if (r.n + free_dims > SHAPE_MAX_RANK) {
    hlo_fail(
        b, status_error(STATUS_UNSUPPORTED, "equation '%.60s': a product's rank is above %d", e->text, SHAPE_MAX_RANK));
    return r;
  }
  for (int side = 0; side < 2; side++) {
    const term *t = side ? y : x, *other = side ? x : y;
    for (int k = 0; k < t->n; k++) {
      if (!has_label(other, t->labels[k])) {
        r.labels[r.n++] = t->labels[k];
      }
    }
  }
  r.value = hlo_convert(b, hlo_dot(b, x->value, y->value, &d), hlo_type(x->value)); /* a dot of bytes returns s32 */
  return r;
}

/* Transposes t, which has the labels of the output, to the output's order. */
static hlo_value arrange(hlo_builder *b, const equation *e, const term *t) {
  int64_t order[SHAPE_MAX_RANK];
  for (int k = 0; k < e->out.n; k++) {
    for (int i = 0; i < t->n; i++) {
      if (t->labels[i] == e->out.labels[k]) {
        order[k] = i;
      }
    }
  }
  return t->n ? hlo_transpose(b, t->value, order) : t->value;
}

status onnx_import_einsum(onnx_node *n) {
  hlo_builder *b = n->b;
  equation e = {0};
  TRY(parse_equation(n, &e));
  for (uint32_t k = 0; k < e.n_terms; k++) {
    simplify_term(b, &e, &e.terms[k]);
  }
  term x = e.terms[0];
  sum_unneeded(b, &e, 1, NULL, &x);
  for (uint32_t k = 1; k < e.n_terms && !b->error; k++) {
    sum_unneeded(b, &e, k + 1, &x, &e.terms[k]);
    x = contract(b, &e, k + 1, &x, &e.terms[k]);
  }
  n->out[0] = b->error ? (hlo_value){0} : arrange(b, &e, &x);
  return NULL;
}
