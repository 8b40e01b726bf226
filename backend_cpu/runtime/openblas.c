/* openblas.c - the library calls of contraction.h on OpenBLAS, for builds without oneDNN: products of plain matrices.
 * The parts of a product are divided among the run's threads.  OpenBLAS itself is set to one thread, for the whole
 * process. */
#include "backend_cpu/runtime/contraction.h"
#include "base/arith.h"
#include "runtime/host/thread_pool.h"

#if defined HAVE_OPENBLAS && !defined HAVE_ONEDNN

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

static char library_name[64];

static void start_library(void) {
  char version[32]; /* openblas_get_config() returns "OpenBLAS 0.3.21 NO_LAPACKE ..." */
  bool known = sscanf(openblas_get_config(), "OpenBLAS %31s", version) == 1;
  snprintf(library_name, sizeof library_name, "OpenBLAS %s", known ? version : "of some version");
  openblas_set_num_threads(1);
}

/* OpenBLAS's header has no version. */
const char *cpu_library_of_build(void) { return "OpenBLAS"; }

bool cpu_library_may_open(void) { return true; }

status cpu_library_open(void) { return NULL; }

const char *cpu_library_name(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_library);
  return library_name;
}

bool cpu_library_is_blas(void) { return true; }

bool cpu_library_has_bytes(void) { return false; }

bool cpu_library_is_fast(const cpu_contraction *c) { return c->g.op == CPU_MATMUL && c->n_post_ops == 0; }

/* --- matrices as BLAS has them --- */

/* How a matrix lies in memory: row by row, or column by column, which is passed as transposed. */
typedef struct matrix {
  CBLAS_TRANSPOSE transpose;
  blasint leading; /* the leading dimension: elements from one row, or column, to the next */
} matrix;

/* Describes a matrix of rows x columns elements with the strides `row` and `column`; the stride of a dimension of one
 * element does not matter.  Returns false if neither rows nor columns are contiguous. */
static bool matrix_of(int64_t rows, int64_t columns, int64_t row, int64_t column, matrix *out) {
  bool by_row = (columns == 1 || column == 1) && (rows == 1 || row >= columns);
  bool by_column = (rows == 1 || row == 1) && (columns == 1 || column >= rows);
  int64_t leading = by_row ? max_i64(row, columns) : max_i64(column, rows);
  *out = (matrix){by_row ? CblasNoTrans : CblasTrans, (blasint)leading};
  return (by_row || by_column) && leading <= INT_MAX;
}

/* --- calls --- */

struct cpu_call {
  cpu_geometry g;
  int axis;       /* the dimension of the result that is divided into parts */
  int64_t places; /* the extent of that dimension */
  matrix lhs, rhs;
};

status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out, cpu_call_info *info) {
  const cpu_geometry *g = &c->g;
  int64_t dims[CPU_MAX_RANK];
  cpu_call *call = ARENA_NEW(a, cpu_call);
  *out = call;
  CHECK_THAT(g->op == CPU_MATMUL && !g->has_bias && c->n_post_ops == 0 && !g->packed && !format, STATUS_UNSUPPORTED,
             "%s only multiplies plain matrices: compile the model again", cpu_library_name());
  CHECK_THAT(g->m <= INT_MAX && g->k <= INT_MAX && g->n <= INT_MAX &&
                 matrix_of(g->m, g->k, g->lhs_m, g->lhs_k, &call->lhs) &&
                 matrix_of(g->k, g->n, g->rhs_k, g->rhs_n, &call->rhs),
             STATUS_UNSUPPORTED, "no matrices of %s", cpu_library_name());
  call->g = *g;
  call->axis = cpu_contraction_axis(c);
  cpu_contraction_dims(c, dims);
  call->places = dims[call->axis];
  CHECK_THAT(call->places >= g->parts, STATUS_INVALID_FILE, "a contraction in too many parts");
  /* for products with a vector, sgemm is much slower than the kernels of emit/ */
  bool vector = g->m == 1 || g->k == 1 || g->n == 1;
  *info = (cpu_call_info){.implementation = "sgemm", .fast = !vector, .format = {"", 0}};
  return NULL;
}

status cpu_call_pack(const cpu_call *c, const void *plain, void *packed) {
  (void)c, (void)plain, (void)packed;
  return status_error(STATUS_UNSUPPORTED, "%s has no packed weights", cpu_library_name());
}

/* --- running a call --- */

typedef struct call_run {
  const cpu_call *call;
  const float *lhs, *rhs;
  float *result;
} call_run;

static void run_part(const call_run *r, int64_t number) {
  const cpu_call *c = r->call;
  const cpu_geometry *g = &c->g;
  int64_t begin = c->places * number / g->parts, end = c->places * (number + 1) / g->parts;
  int64_t from[3] = {0}, to[3] = {g->batch, g->m, g->n};
  from[c->axis] = begin;
  to[c->axis] = end;
  for (int64_t b = from[0]; b < to[0]; b++) {
    cblas_sgemm(CblasRowMajor, c->lhs.transpose, c->rhs.transpose, (blasint)(to[1] - from[1]),
                (blasint)(to[2] - from[2]), (blasint)g->k, 1, r->lhs + b * g->lhs_batch_stride + from[1] * g->lhs_m,
                c->lhs.leading, r->rhs + b * g->rhs_batch_stride + from[2] * g->rhs_n, c->rhs.leading, 0,
                r->result + (b * g->m + from[1]) * g->n + from[2], (blasint)g->n);
  }
}

static void run_parts(void *data, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; k++) {
    run_part(data, k);
  }
}

status cpu_call_run(const cpu_call *c, const rt_run *run, void *const *buffers, void *scratch) {
  (void)scratch;
  call_run r = {.call = c, .lhs = buffers[0], .rhs = buffers[1], .result = buffers[2]};
  return rt_parallel_run(run, c->g.parts, 1, run_parts, &r);
}

#endif
