/* product_pack.c - the panels of column vectors into which B is packed: their sizes, and packing at compile time. */
#include <string.h>

#include "emit/product/gemm.h"
#include "emit/product/product_internal.h"

/* --- the sizes of panels --- */

dim emit_product_panels_of(dim_table *t, const emit_product *p) { return emit_dim_ceil_over(t, p->columns, p->lanes); }

emit_product_columns emit_product_columns_of(dim_table *t, const emit_product *p, int64_t vectors) {
  dim panels = emit_product_panels_of(t, p);
  if (dim_is_const(panels)) {
    emit_gemm_parts cut = emit_gemm_cut(panels, (int)vectors);
    return (emit_product_columns){cut.n_large ? cut.large : 0, cut.n_small ? cut.large - 1 : 0, cut.n_large,
                                  cut.n_large + cut.n_small};
  }
  dim n_large = dim_floordiv(t, panels, vectors);
  return (emit_product_columns){vectors, vectors > 1, n_large, dim_add(t, n_large, dim_mod(t, panels, vectors))};
}

dim emit_product_packed(dim_table *t, const emit_product *p) {
  dim panels = dim_mul(t, emit_product_outside(t, p), emit_product_panels_of(t, p));
  return dim_mul(t, panels, emit_product_panel(t, p));
}

int64_t emit_product_head(const emit_product *p) { return p->dot_offset ? p->lanes : 0; }

dim emit_product_panel(dim_table *t, const emit_product *p) {
  dim rows = dim_mul(t, p->lanes, emit_product_sums(t, p));
  return emit_product_head(p) ? dim_add_const(t, rows, emit_product_head(p)) : rows;
}

static int quantized_bits(dtype t) { return dtype_get_info(t)->bits > 4 ? 8 : 4; }

int emit_product_quantized_bits(const emit_product *p) { return quantized_bits((dtype)p->quantized_type); }

bool emit_product_reads_quantized(const hlo_quantized_weights *w) {
  return w->sums == w->block || w->block % 2 == 0 || quantized_bits(hlo_type(w->q)) == 8;
}

int emit_product_quantized_offset(const emit_product *p) {
  return dtype_is_signed((dtype)p->quantized_type) ? 1 << (emit_product_quantized_bits(p) - 1) : 0;
}

uint64_t emit_product_packed_bytes(const emit_product *p) {
  int64_t n = emit_product_packed(NULL, p), sums = emit_product_sums(NULL, p), panels = n / p->lanes / sums;
  if (!p->quantized_type) {
    return (uint64_t)n * dtype_bytes((dtype)p->type);
  }
  return (uint64_t)(panels * p->lanes * ceil_div(sums * emit_product_quantized_bits(p), 8));
}

/* --- packing --- */

/* Packs one panel, of which `columns` columns exist.  Its rows are in the order in which the products of a sum are
 * added. */
static void pack_panel(const emit_product *p, size_t bytes, const char *from, int64_t columns, char *to) {
  int64_t sums = emit_product_sums(NULL, p);
  emit_level inner = p->n_sums ? p->sums[p->n_sums - 1] : (emit_level){1, 0, 0};
  size_t line = (size_t)p->lanes * bytes, there = (size_t)columns * bytes;
  for (int64_t s = 0; s < sums; s += inner.n) {
    const char *run = from + (size_t)emit_product_sum_offset(p, s) * bytes;
    for (int64_t k = 0; k < inner.n; k++, to += line) {
      const char *row = run + (size_t)(k * inner.b) * bytes;
      if (p->b_column == 1) {
        memcpy(to, row, there);
      } else if (bytes == 4) {
        for (int64_t c = 0; c < columns; c++) {
          memcpy(to + c * 4, row + c * p->b_column * 4, 4);
        }
      } else {
        for (int64_t c = 0; c < columns; c++) {
          memcpy(to + (size_t)c * bytes, row + (size_t)(c * p->b_column) * bytes, bytes);
        }
      }
      memset(to + there, 0, line - there);
    }
  }
}

/* Packs one panel of quantised weights, of which `columns` columns exist.  Each weight is one byte in `from`.  `to`
 * must be filled with zeros. */
static void pack_quantized(const emit_product *p, const uint8_t *from, int64_t columns, uint8_t *to) {
  bool halves = emit_product_quantized_bits(p) == 4;
  int offset = emit_product_quantized_offset(p);
  int64_t sums = emit_product_sums(NULL, p);
  for (int64_t s = 0; s < sums; s++) {
    const uint8_t *row = from + emit_product_sum_offset(p, s);
    uint8_t *line = to + (halves ? s / 2 : s) * p->lanes;
    for (int64_t c = 0; c < columns; c++) {
      uint8_t x = (uint8_t)(row[c * p->b_column] + offset);
      line[c] = (uint8_t)(line[c] | (halves && s % 2 ? x << 4 : x));
    }
  }
}

static void pack_quantized_panels(const emit_product *p, const uint8_t *weights, uint8_t *packed) {
  uint64_t panel = emit_product_packed_bytes(p) / (uint64_t)ceil_div(p->columns, p->lanes);
  memset(packed, 0, emit_product_packed_bytes(p));
  for (int64_t c = 0; c < p->columns; c += p->lanes, packed += panel) {
    pack_quantized(p, weights + c * p->b_column, min_i64(p->columns - c, p->lanes), packed);
  }
}

int64_t emit_product_dot_group(const emit_product *p) { return EMIT_DOT_BYTES / (int64_t)dtype_bytes((dtype)p->dot); }

/* Packs dot group number s of `columns` columns.  `bytes` is the size of an integer. */
static inline void pack_groups(const emit_product *p, size_t bytes, const char *row, int64_t columns, char *to) {
  const int64_t group = EMIT_DOT_BYTES / (int64_t)bytes;
  for (int64_t c = 0; c < columns; c++) {
    for (int64_t j = 0; j < group; j++) {
      memcpy(to + c * EMIT_DOT_BYTES + j * (int64_t)bytes, row + (c * p->b_column + j * p->dot_step) * (int64_t)bytes,
             bytes);
    }
  }
}

/* Adds the bytes of a dot group to the initial values of the columns' sums. */
static void add_starts(const emit_product *p, const char *groups, int64_t columns, int32_t *starts) {
  for (int64_t c = 0; c < columns; c++) {
    for (int64_t j = 0; j < EMIT_DOT_BYTES; j++) {
      starts[c] += (int32_t)p->dot_offset * ((const int8_t *)groups)[c * EMIT_DOT_BYTES + j];
    }
  }
}

/* Packs one panel of dot groups, of which `columns` columns exist.  `to` must be filled with zeros. */
static void pack_dots(const emit_product *p, const char *from, int64_t columns, char *to) {
  const int64_t sums = emit_product_sums(NULL, p);
  const bool is_bytes = dtype_bytes((dtype)p->dot) == 1; /* in both calls a size that compilers know */
  int32_t *starts = emit_product_head(p) ? (int32_t *)to : NULL;
  to += emit_product_head(p) * EMIT_DOT_BYTES;
  for (int64_t s = 0; s < sums; s++, to += p->lanes * EMIT_DOT_BYTES) {
    const int64_t row = emit_product_sum_offset(p, s);
    if (is_bytes) {
      pack_groups(p, 1, from + row, columns, to);
    } else {
      pack_groups(p, 2, from + row * 2, columns, to);
    }
    if (starts) {
      add_starts(p, to, columns, starts);
    }
  }
}

void emit_product_pack(const emit_product *p, const void *weights, void *packed) {
  if (p->quantized_type) {
    pack_quantized_panels(p, weights, packed);
    return;
  }
  size_t bytes = dtype_bytes((dtype)p->type), panel = (size_t)emit_product_panel(NULL, p) * bytes,
         b_bytes = p->dot ? dtype_bytes((dtype)p->dot) : bytes;
  char *to = packed;
  int64_t batches = 1;
  for (int64_t k = 0; k < p->n_batch; k++) {
    batches *= p->batch[k].n;
  }
  for (int64_t b = 0; b < batches; b++) {
    int64_t start = 0;
    for (int64_t k = p->n_batch, rest = b; k-- > 0; rest /= p->batch[k].n) {
      start += rest % p->batch[k].n * p->batch[k].b;
    }
    for (int64_t group = 0; group < p->group.n; group++) {
      for (int64_t c = 0; c < p->columns; c += p->lanes, to += panel) {
        int64_t columns = p->columns - c < p->lanes ? p->columns - c : p->lanes;
        int64_t offset = start + group * p->group.b + c * p->b_column;
        const char *from = (const char *)weights + (size_t)offset * b_bytes;
        if (p->dot) {
          memset(to, 0, panel);
          pack_dots(p, from, columns, to);
        } else {
          pack_panel(p, bytes, from, columns, to);
        }
      }
    }
  }
}
