/* warp.c - what the threads of a warp do together: shuffles, and products of matrices.  How the elements of the
 * matrices are distributed over the threads is said in the PTX ISA, "Warp-level matrix instructions". */
#include <string.h>

#include "tests/ptx/ptx_internal.h"

/* --- shuffles --- */

/* Operands: the value, b (how far, or which lane), c (a segment's mask and a limit), the lanes that take part. */
static status shuffle(const ptx_instr *i, ptx_warp *w) {
  for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
    uint32_t b = w->operands[1][lane] & 31, c = (uint32_t)w->operands[2][lane], limit = c & 31, mask = c >> 8 & 31;
    uint32_t first = lane & mask, last = first | (limit & ~mask), from;
    bool inside;
    if (ptx_has(i, "up")) {
      from = lane - b;
      inside = (int32_t)from >= (int32_t)last;
    } else if (ptx_has(i, "down")) {
      from = lane + b;
      inside = from <= last;
    } else if (ptx_has(i, "bfly")) {
      from = lane ^ b;
      inside = from <= last;
    } else if (ptx_has(i, "idx")) {
      from = first | (b & ~mask);
      inside = from <= last;
    } else {
      return ptx_unknown(i);
    }
    from = inside ? from : lane;
    if ((w->present >> lane & 1) && from < PTX_WARP && !(w->present >> from & 1)) {
      return status_error(STATUS_INTERNAL, "line %d of the PTX: lane %u reads from lane %u, which is not there",
                          i->line, lane, from);
    }
    w->results[0][lane] = w->operands[0][from];
  }
  return NULL;
}

/* --- loading matrices --- */

/* Operand 0 has an address in each lane: lanes 8 * m to 8 * m + 7 have those of the eight rows of matrix m.  A row has
 * 8 elements of 16 bits. */
static status load_matrices(const ptx_instr *i, ptx_warp *w) {
  int n = ptx_has(i, "x4") ? 4 : ptx_has(i, "x2") ? 2 : 1;
  bool transposed = ptx_has(i, "trans");
  for (int m = 0; m < n; m++) {
    uint16_t rows[8][8];
    for (int r = 0; r < 8; r++) {
      uint64_t at = w->operands[0][8 * m + r];
      if (at % 16 || at + 16 > w->shared_bytes) {
        return status_error(STATUS_INTERNAL, "line %d of the PTX: a row at %llu of %zu bytes of shared memory", i->line,
                            (unsigned long long)at, w->shared_bytes);
      }
      memcpy(rows[r], w->shared + at, 16);
    }
    for (int lane = 0; lane < PTX_WARP; lane++) {
      int r = lane / 4, c = 2 * (lane % 4);
      uint32_t low = transposed ? rows[c][r] : rows[r][c], high = transposed ? rows[c + 1][r] : rows[r][c + 1];
      w->results[m][lane] = low | high << 16;
    }
  }
  return NULL;
}

/* --- products --- */

typedef struct shape {
  const char *name;
  int m, n, k;
} shape;

/* Sets *row and *col to the position in the matrix A, m by k, of the element that is number `e` of the lane's elements
 * of A.  `per` is the number of elements in a register. */
static void place_of_a(const shape *s, int per, int lane, int e, int *row, int *col) {
  int group = lane / 4, in_group = lane % 4, reg = e / per;
  bool has_lower = s->m == 16; /* registers with odd numbers hold rows that are 8 further down */
  *row = group + (has_lower && reg % 2 ? 8 : 0);
  *col = in_group * per + e % per + (has_lower ? reg / 2 : reg) * 4 * per;
}

/* Does for the matrix B, k by n, what place_of_a does for A. */
static void place_of_b(int per, int lane, int e, int *row, int *col) {
  *row = lane % 4 * per + e % per + e / per * 4 * per;
  *col = lane / 4;
}

/* Does the same for the matrices C and D, m by n. */
static void place_of_c(int lane, int e, int *row, int *col) {
  *row = lane / 4 + (e / 2) * 8;
  *col = lane % 4 * 2 + e % 2;
}

/* Returns the value of the lane's element number e, where the registers of its matrix are operand `first` and those
 * that follow. */
static double float_element(const ptx_warp *w, ptx_type t, int first, int lane, int e) {
  if (t.bits == 64) {
    return ptx_to_double(t, w->operands[first + e][lane]);
  }
  int per = 32 / t.bits;
  uint64_t bits = w->operands[first + e / per][lane] >> (e % per * t.bits);
  ptx_type read = t.kind == PTX_TF32 ? (ptx_type){PTX_FLOAT, 32} : t;
  bits = t.kind == PTX_TF32 ? bits & 0xffffe000u : bits; /* the multiplication ignores the lower bits of a tf32 */
  return ptx_to_double(read, t.bits == 16 ? bits & 0xffff : bits);
}

static int64_t int_element(const ptx_warp *w, ptx_type t, int first, int lane, int e) {
  uint64_t bits = w->operands[first + e / 4][lane] >> (e % 4 * 8) & 0xff;
  return t.kind == PTX_SIGNED ? ptx_to_signed(8, bits) : (int64_t)bits;
}

/* D = A * B + C.  The types in the name are those of D, A, B and C; the sums are rounded once. */
static status multiply(const ptx_instr *i, ptx_warp *w) {
  static const shape shapes[] = {{"m16n8k16", 16, 8, 16}, {"m16n8k8", 16, 8, 8}, {"m16n8k4", 16, 8, 4},
                                 {"m16n8k32", 16, 8, 32}, {"m8n8k4", 8, 8, 4},   {"m8n8k16", 8, 8, 16}};
  const shape *s = NULL;
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    s = ptx_has(i, shapes[k].name) ? &shapes[k] : s;
  }
  /* The five modifiers are "row", "col", "sync", "aligned" and the shape. */
  if (!s || i->n_types != 4 || !ptx_has(i, "row") || !ptx_has(i, "col") || i->n_modifiers != 5) {
    return ptx_unknown(i);
  }
  ptx_type a = i->types[1], b = i->types[2], c = i->types[3];
  bool ints = c.kind == PTX_SIGNED;
  int per = a.bits == 64 ? 1 : 32 / a.bits, of_a = s->m * s->k / PTX_WARP, of_b = s->k * s->n / PTX_WARP,
      of_c = s->m * s->n / PTX_WARP;
  int first_b = of_a / per, first_c = first_b + of_b / per;
  if ((c.bits != 32 && c.bits != 64) || (ints && a.bits != 8)) {
    return ptx_unknown(i);
  }
  static _Thread_local double fa[16][32], fb[32][8];
  static _Thread_local int64_t ia[16][32], ib[32][8];
  for (int lane = 0; lane < PTX_WARP; lane++) {
    int r, k;
    for (int e = 0; e < of_a; e++) {
      place_of_a(s, per, lane, e, &r, &k);
      fa[r][k] = ints ? 0 : float_element(w, a, 0, lane, e);
      ia[r][k] = ints ? int_element(w, a, 0, lane, e) : 0;
    }
    for (int e = 0; e < of_b; e++) {
      place_of_b(per, lane, e, &k, &r);
      fb[k][r] = ints ? 0 : float_element(w, b, first_b, lane, e);
      ib[k][r] = ints ? int_element(w, b, first_b, lane, e) : 0;
    }
  }
  for (int lane = 0; lane < PTX_WARP; lane++) {
    for (int e = 0; e < of_c; e++) {
      int r, n;
      place_of_c(lane, e, &r, &n);
      uint64_t bits = w->operands[first_c + e][lane];
      double sum = ints ? 0 : ptx_to_double(c, bits);
      int64_t total = (int32_t)bits;
      for (int k = 0; k < s->k; k++) {
        sum += fa[r][k] * fb[k][n];
        total += ia[r][k] * ib[k][n];
      }
      if (c.bits == 64) {
        memcpy(&w->results[e][lane], &sum, sizeof sum);
      } else {
        w->results[e][lane] = ints ? (uint32_t)total : ptx_of_float((float)sum);
      }
    }
  }
  return NULL;
}

status ptx_collective(const ptx_instr *i, ptx_warp *w) {
  switch (i->op) {
    case PTX_shfl: return shuffle(i, w);
    case PTX_ldmatrix: return load_matrices(i, w);
    case PTX_mma: return multiply(i, w);
    default: return NULL; /* bar.warp.sync */
  }
}
