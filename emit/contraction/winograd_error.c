/* winograd_error.c - the error that a plan of winograd.h has with a layer's weights: a sample of the results, computed
 * with the kernel's arithmetic and in f64. */
#include <math.h>
#include <string.h>

#include "emit/contraction/winograd_internal.h"

enum { OUTPUTS = 8, TILES = 2, NUMBERS = EMIT_WINOGRAD_MOST * EMIT_WINOGRAD_MOST };

/* --- the kernel's transforms --- */

static float fused(double x, float y, float z) { return (float)(x * (double)y + (double)z); }

/* Computes B' x along one dimension in place, with the arithmetic of the kernel; elements are `step` apart. */
static void forward(int64_t size, float *x, int64_t step) {
  double points[EMIT_WINOGRAD_PAIRS], c[EMIT_WINOGRAD_PAIRS + 1];
  float out[EMIT_WINOGRAD_MOST];
  int pairs = emit_winograd_points(size, points), degree = emit_winograd_polynomial(size, -1, c);
  if (size == 1) {
    return;
  }
  for (int end = 0; end < 2; end++) {
    float sum = x[(2 * degree + end) * step];
    for (int j = degree - 1; j >= 0; j--) {
      sum = fused(c[j], x[(2 * j + end) * step], sum);
    }
    out[end ? size - 1 : 0] = sum;
  }
  for (int k = 0; k < pairs; k++) {
    degree = emit_winograd_polynomial(size, k, c);
    float even = x[(2 * degree + 2) * step], odd = x[(2 * degree + 1) * step];
    for (int j = degree - 1; j >= 0; j--) {
      even = fused(c[j], x[(2 * j + 2) * step], even);
      odd = fused(c[j], x[(2 * j + 1) * step], odd);
    }
    out[1 + 2 * k] = fused(points[k], odd, even);
    out[2 + 2 * k] = fused(-points[k], odd, even);
  }
  for (int64_t k = 0; k < size; k++) {
    x[k * step] = out[k];
  }
}

/* Computes G x along one dimension in place, from r numbers to `size` numbers that are `step` elements apart, in f32 as
 * the kernel does it on the fly. */
static void spread(int64_t size, int64_t r, float *x, int64_t step) {
  double g[EMIT_WINOGRAD_MOST][EMIT_WINOGRAD_MOST];
  float out[EMIT_WINOGRAD_MOST];
  if (r == 1) {
    return;
  }
  emit_winograd_weight_matrix(size, r, g);
  out[0] = (float)g[0][0] * x[0];
  out[size - 1] = x[(r - 1) * step];
  for (int64_t k = 1; k + 1 < size; k += 2) {
    float even = (float)g[k][0] * x[0];
    for (int64_t j = 2; j < r; j += 2) {
      even = fused((float)g[k][j], x[j * step], even);
    }
    out[k] = out[k + 1] = even;
    for (int64_t j = 1; j < r; j += 2) {
      out[k] = fused((float)g[k][j], x[j * step], out[k]);
      out[k + 1] = fused(-(float)g[k][j], x[j * step], out[k + 1]);
    }
  }
  for (int64_t k = 0; k < size; k++) {
    x[k * step] = out[k];
  }
}

/* Transforms the weights w of one output and channel to u, as the kernels do on the fly.  The numbers in u are OUTPUTS
 * elements apart. */
static void transform_on_the_fly(const emit_winograd *p, const float *w, float *u) {
  int64_t a[] = {emit_winograd_size(p, 0), emit_winograd_size(p, 1)};
  float numbers[NUMBERS];
  for (int64_t i = 0; i < p->r[0]; i++) {
    memcpy(numbers + i * a[1], w + i * p->r[1], (size_t)p->r[1] * sizeof *numbers);
  }
  for (int64_t j = 0; j < p->r[1]; j++) {
    spread(a[0], p->r[0], numbers + j, a[1]);
  }
  for (int64_t i = 0; i < a[0]; i++) {
    spread(a[1], p->r[1], numbers + i * a[1], 1);
  }
  for (int64_t n = 0; n < a[0] * a[1]; n++) {
    u[n * OUTPUTS] = numbers[n];
  }
}

/* Computes A' x along one dimension in place, from `size` numbers to m numbers that are `step` elements apart. */
static void backward(int64_t size, int64_t m, float *x, int64_t step) {
  double points[EMIT_WINOGRAD_PAIRS];
  float out[EMIT_WINOGRAD_MOST];
  int pairs = emit_winograd_points(size, points);
  if (size == 1) {
    return;
  }
  for (int64_t i = 0; i < m; i++) {
    float sum = i == 0 ? x[0] : i == m - 1 ? x[(size - 1) * step] : 0;
    for (int k = 0; k < pairs; k++) {
      float plus = x[(1 + 2 * k) * step], minus = x[(2 + 2 * k) * step];
      sum = fused(pow(points[k], (double)i), i % 2 ? plus - minus : plus + minus, sum);
    }
    out[i] = sum;
  }
  for (int64_t i = 0; i < m; i++) {
    x[i * step] = out[i];
  }
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 40;
}

/* --- the sample --- */

/* A sample of OUTPUTS outputs.  Arrays that differ between outputs have the elements of all outputs side by side; those
 * of the last outputs are 0 if the convolution has fewer than OUTPUTS. */
typedef struct sample {
  const emit_winograd *p;
  int64_t a[2], products, taps;
  float *x, *v; /* [channels][products]: a tile of the input, and its transform */
  float *w, *u; /* [channels][taps][OUTPUTS] and [channels][products][OUTPUTS]: the weights, and their transforms */
  double largest, error;
} sample;

static void take_weights(arena *scratch, sample *s, const void *w) {
  const emit_winograd *p = s->p;
  int64_t n = p->outputs < OUTPUTS ? p->outputs : OUTPUTS, step = p->channels * s->taps;
  float *all = ARENA_NEW_N(scratch, float, (size_t)(n * step));
  emit_winograd_weights t;
  emit_winograd_weights_init(&t, p);
  for (int64_t k = 0; k < n; k++) {
    memcpy(all + k * step, (const char *)w + (size_t)(k * p->outputs / n * step) * sizeof *all,
           (size_t)step * sizeof *all);
  }
  for (int64_t c = 0; c < p->channels; c++) {
    const float *from = all + c * s->taps;
    float *u = s->u + c * s->products * OUTPUTS;
    for (int64_t k = 0; k < n; k++) {
      for (int64_t j = 0; j < s->taps; j++) {
        s->w[(c * s->taps + j) * OUTPUTS + k] = from[k * step + j];
      }
      if (p->on_the_fly) {
        transform_on_the_fly(p, from + k * step, u + k);
      }
    }
    if (!p->on_the_fly) {
      emit_winograd_transform_weights(&t, n, from, step, OUTPUTS, u);
    }
  }
}

/* Fills the tile with random numbers, and transforms it. */
static void take_tile(sample *s, uint64_t *state) {
  for (int64_t k = 0; k < s->p->channels * s->products; k++) {
    s->x[k] = s->v[k] = (float)next_random(state) * 0x1p-23f - 1;
  }
  for (int64_t c = 0; c < s->p->channels; c++) {
    float *v = s->v + c * s->products;
    for (int64_t k = 0; k < s->a[1]; k++) {
      forward(s->a[0], v + k, s->a[1]);
    }
    for (int64_t k = 0; k < s->a[0]; k++) {
      forward(s->a[1], v + k * s->a[1], 1);
    }
  }
}

/* Sets y[place][OUTPUTS] to the results as the kernel computes them. */
static void compute(const sample *s, float (*y)[OUTPUTS]) {
  const emit_winograd *p = s->p;
  float sums[NUMBERS][OUTPUTS] = {{0}}, one[NUMBERS];
  for (int64_t c = 0; c < p->channels; c++) {
    for (int64_t n = 0; n < s->products; n++) {
      const float *u = s->u + (c * s->products + n) * OUTPUTS;
      double v = (double)s->v[c * s->products + n];
      for (int k = 0; k < OUTPUTS; k++) {
        sums[n][k] = fused(v, u[k], sums[n][k]);
      }
    }
  }
  for (int k = 0; k < OUTPUTS; k++) {
    for (int64_t n = 0; n < s->products; n++) {
      one[n] = sums[n][k];
    }
    for (int64_t j = 0; j < s->a[1]; j++) {
      backward(s->a[0], p->m[0], one + j, s->a[1]);
    }
    for (int64_t i = 0; i < p->m[0]; i++) {
      backward(s->a[1], p->m[1], one + i * s->a[1], 1);
      for (int64_t j = 0; j < p->m[1]; j++) {
        y[i * p->m[1] + j][k] = one[i * s->a[1] + j];
      }
    }
  }
}

/* Adds to direct[place][OUTPUTS] the products with tap (i, j) of channel c. */
static void add_tap(const sample *s, int64_t c, int64_t i, int64_t j, double (*direct)[OUTPUTS]) {
  const float *w = s->w + (c * s->taps + i * s->p->r[1] + j) * OUTPUTS;
  for (int64_t row = 0; row < s->p->m[0]; row++) {
    const float *x = s->x + c * s->products + (row + i) * s->a[1] + j;
    for (int64_t column = 0; column < s->p->m[1]; column++) {
      double *sum = direct[row * s->p->m[1] + column];
      for (int k = 0; k < OUTPUTS; k++) {
        sum[k] += (double)x[column] * (double)w[k];
      }
    }
  }
}

/* Raises s->largest to the largest magnitude among the results, and s->error to the largest difference from sums in
 * f64, if these are larger. */
static void compare(sample *s) {
  float y[NUMBERS][OUTPUTS];
  double direct[NUMBERS][OUTPUTS] = {{0}};
  compute(s, y);
  for (int64_t c = 0; c < s->p->channels; c++) {
    for (int64_t t = 0; t < s->taps; t++) {
      add_tap(s, c, t / s->p->r[1], t % s->p->r[1], direct);
    }
  }
  for (int64_t n = 0; n < s->p->m[0] * s->p->m[1]; n++) {
    for (int k = 0; k < OUTPUTS; k++) {
      s->largest = fmax(s->largest, fabs(direct[n][k]));
      s->error = fmax(s->error, fabs((double)y[n][k] - direct[n][k]));
    }
  }
}

double emit_winograd_error(arena *scratch, const emit_winograd *p, const void *w) {
  int64_t rows = emit_winograd_size(p, 0), columns = emit_winograd_size(p, 1);
  sample s = {.p = p, .a = {rows, columns}, .products = rows * columns, .taps = p->r[0] * p->r[1]};
  size_t n = (size_t)(p->channels * s.products);
  s.x = ARENA_NEW_N(scratch, float, n);
  s.v = ARENA_NEW_N(scratch, float, n);
  s.u = arena_calloc(scratch, n * OUTPUTS, sizeof *s.u);
  s.w = arena_calloc(scratch, (size_t)(p->channels * s.taps * OUTPUTS), sizeof *s.w);
  take_weights(scratch, &s, w);
  uint64_t state = 1;
  for (int tile = 0; tile < TILES; tile++) {
    take_tile(&s, &state);
    compare(&s);
  }
  return s.largest > 0 ? s.error / s.largest : s.error;
}
