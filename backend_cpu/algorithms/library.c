/* library.c - the algorithm "library": one call of oneDNN or OpenBLAS with its epilogue, divided into parts for the
 * threads; and the algorithm "reduced-precision": the same call in reduced precision, if the user allowed it. */
#include "backend_cpu/algorithms/algorithm.h"
#include "backend_cpu/algorithms/geometry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double part_nanoseconds = 4000; /* the least work for which another thread is used */
static const double longest_part = 1e10; /* the most multiplications in a part, which take some tenths of a second: a
                                            run checks its time limit only between parts */
/* Estimates for one thread: the time of a call besides its work, and the time of a byte that is read or written
 * (20 GB/s). */
static const double call_nanoseconds = 600, byte_nanoseconds = 0.05;

static void swap(int64_t *list) {
  int64_t first = list[0];
  list[0] = list[1];
  list[1] = first;
}

/* Swaps the two spatial dimensions if the second has one element, as in many 1-D convolutions.  The layout in memory
 * stays the same, and the library is faster because it blocks its registers along the last spatial dimension. */
static void swap_spatial(cpu_contraction *c) {
  cpu_geometry *g = &c->g;
  if (g->op != CPU_CONVOLUTION || g->spatial != 2 || g->in[1] != 1 || g->out[1] != 1 || g->kernel[1] != 1 ||
      g->low[1] != 0 || g->high[1] != 0) {
    return;
  }
  int64_t *const lists[] = {g->in, g->out, g->kernel, g->strides, g->low, g->high, g->dilation};
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
    swap(lists[k]);
  }
  uint32_t first = g->channels_last ? 1 : 2; /* the dimension of the result that is spatial dimension 0 */
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    uint32_t dims = c->post_ops[k].dims, both = 3u << first;
    c->post_ops[k].dims = (dims & ~both) | (dims >> 1 & 1u << first) | (dims << 1 & 2u << first);
  }
}

/* Merges the spatial dimensions of a 1x1 convolution of stride 1 into one, which can be divided evenly among
 * threads. */
static void flatten(cpu_contraction *c) {
  cpu_geometry *g = &c->g;
  bool plain = g->op == CPU_CONVOLUTION && g->channels_last && g->spatial > 1;
  for (int d = 0; plain && d < g->spatial; d++) {
    plain = g->kernel[d] == 1 && g->strides[d] == 1 && g->low[d] == 0 && g->high[d] == 0;
  }
  /* A post-op's array must have all merged dimensions, or none. */
  for (uint32_t k = 0; plain && k < c->n_post_ops; k++) {
    uint32_t places = ((1u << g->spatial) - 1) << 1, dims = c->post_ops[k].dims & places;
    plain = c->post_ops[k].kind <= CPU_POST_OP_LAST_UNARY || dims == 0 || dims == places;
  }
  for (int d = 0; plain && d < g->spatial - 1; d++) {
    g->in[g->spatial - 1] *= g->in[d];
    g->out[g->spatial - 1] *= g->out[d];
    g->in[d] = g->out[d] = 1;
  }
}

/* Returns the largest possible number of parts that is at most `wanted`.  If a part would then have more than
 * longest_part multiplications, returns about as many parts as bring it down to that number, if the shape allows
 * them. */
static int64_t whole_parts(const cpu_contraction *c, int64_t wanted) {
  int64_t dims[CPU_MAX_RANK];
  cpu_contraction_dims(c, dims);
  int axis = cpu_contraction_axis(c);
  double needed = cpu_geometry_multiplications(&c->g) / longest_part;
  int64_t parts = needed > (double)wanted ? (int64_t)fmin(needed, CPU_MAX_PARTS) : wanted;
  parts = axis < 0 || parts < 1 ? 1 : parts < dims[axis] ? parts : dims[axis];
  parts = parts < CPU_MAX_PARTS ? parts : CPU_MAX_PARTS;
  bool packed_columns = c->g.op == CPU_MATMUL && axis == 2 && c->g.packed;
  while (packed_columns && dims[2] % parts) { /* all parts of packed weights must have one format */
    parts--;
  }
  return parts;
}

/* Returns the number of bytes that i reads and writes. */
static double bytes_of(const hlo_instr *i) {
  double n = (double)shape_bytes(&i->shapes[0]);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    n += (double)shape_bytes(hlo_shape(i->operands[k]));
  }
  return n;
}

/* Returns how many times as long a multiply-add of the convolution takes as in one with many channels.  oneDNN's
 * kernels for one group compute whole vectors of output channels.  Those for groups need groups of whole vectors, or of
 * one channel and taps that are not many; it multiplies matrices for each other group of each image. */
static double effort_of(const cpu_geometry *g, int lanes) {
  enum { MOST_TAPS = 7 }; /* in a dimension; an estimate: oneDNN 2.7 and 3.11 have several rules */
  const double one_channel = 3, matrices = 80;
  if (g->op != CPU_CONVOLUTION) {
    return 1;
  }
  int64_t in = g->in_channels / g->groups, out = g->out_channels / g->groups;
  if (g->groups == 1) {
    return (double)((out + lanes - 1) / lanes * lanes) / (double)out;
  }
  bool few_taps = true;
  for (int d = 0; d < g->spatial; d++) {
    few_taps = few_taps && g->kernel[d] <= MOST_TAPS;
  }
  return in == 1 && out == 1 && few_taps       ? one_channel
         : in % lanes == 0 && out % lanes == 0 ? 1
                                               : fmax(matrices / (double)in, 4);
}

/* Returns the estimated nanoseconds that the call takes on one thread. */
static double work_of(const cpu_problem *p, const cpu_contraction *c) {
  const emit_target *t = p->options.target;
  /* The lanes of the library's vectors, which may be wider than those of our own kernels. */
  int widest = t->vector_bits ? t->vector_bits / 32 : 1;
  double each = cpu_multiply_add_nanoseconds(t, widest) * effort_of(&c->g, widest);
  return p->multiplications * each + bytes_of(p->instr) * byte_nanoseconds;
}

/* Returns the number of parts into which the call should be divided: up to two for each thread, so that a thread that
 * is done can take over parts of others, but only as many as are worth starting threads for.  If there are more parts
 * than threads, their number is a multiple of the number of threads where the shape allows it. */
static int64_t wanted_parts(const cpu_problem *p, const cpu_contraction *c) {
  int64_t threads = p->options.threads, most = threads > 2 ? 2 * threads : threads == 2 ? 4 : 1;
  double worth = work_of(p, c) / part_nanoseconds;
  int64_t wanted = worth < (double)most ? (int64_t)worth : most;
  return wanted > threads ? wanted - wanted % threads : wanted;
}

/* --- the algorithm --- */

enum { PARTS }; /* index of cpu_config.v */

static bool read(const cpu_problem *p, cpu_library_plan *library) {
  if (p->options.own_kernels || !cpu_library_plan_read(p->instr, library)) {
    return false;
  }
  swap_spatial(&library->c);
  flatten(&library->c);
  return true;
}

static void add_config(int64_t parts, double estimate, bool idle, uint32_t *n, cpu_config *out) {
  for (uint32_t k = 0; k < *n; k++) {
    if (out[k].v[PARTS] == parts) {
      return;
    }
  }
  cpu_config *v = &out[(*n)++];
  v->v[PARTS] = parts;
  v->estimate = estimate;
  v->idle = idle;
  snprintf(v->name, sizeof v->name, "p%lld", (long long)parts);
}

static bool is_small(const cpu_problem *p) {
  return p->multiplications < CPU_SMALL_CONTRACTION && emit_supports(p->instr, NULL);
}

/* Lists configs that divide the call into parts: first into as many as wanted_parts prefers or the shape allows, then
 * into other numbers that may be faster. */
static uint32_t list_parts(const cpu_problem *p, const cpu_library_plan *library, uint32_t room, cpu_config *out) {
  uint32_t n = 0;
  int64_t wanted = wanted_parts(p, &library->c), best = whole_parts(&library->c, wanted);
  /* The number of threads that get a part. */
  int64_t threads = best < wanted && best < p->options.threads ? best : p->options.threads;
  double estimate = call_nanoseconds + cpu_time_on_threads(work_of(p, &library->c), (uint32_t)threads);
  add_config(best, estimate, false, &n, out);
  for (int64_t parts = 1; parts <= 4 * (int64_t)p->options.threads && n + 1 < room; parts *= 2) {
    int64_t possible = whole_parts(&library->c, parts);
    bool idle = possible < (int64_t)p->options.threads && possible < best;
    add_config(possible, estimate * (idle ? 1.5 : 1.1), idle, &n, out);
  }
  add_config(1, estimate * (double)threads, best > 1, &n, out); /* one part can always be built */
  return n;
}

/* Finds a config such as "p4" with any possible number of parts.  Its estimate is made high, so that the autotuner does
 * not choose it without timing it. */
static bool find_parts(const cpu_problem *p, const char *name, cpu_config *out) {
  cpu_library_plan library = {0};
  long long parts;
  uint32_t n = 0;
  if (sscanf(name, "p%lld", &parts) != 1 || parts < 1 || parts > CPU_MAX_PARTS || !read(p, &library) ||
      whole_parts(&library.c, parts) != parts) {
    return false;
  }
  *out = (cpu_config){0};
  add_config(parts, 1.5 * (call_nanoseconds + cpu_time_on_threads(work_of(p, &library.c), p->options.threads)),
             parts < p->options.threads, &n, out);
  return strcmp(out->name, name) == 0;
}

static uint32_t list_library(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  cpu_library_plan *library = ARENA_NEW(a, cpu_library_plan);
  return !is_small(p) && read(p, library) ? list_parts(p, library, room, out) : 0;
}

static status build_call(arena *a, const cpu_problem *p, const cpu_config *v, dtype reduced_precision, cpu_plan *out) {
  cpu_library_plan *library = ARENA_NEW(a, cpu_library_plan);
  CHECK_THAT(read(p, library), STATUS_UNSUPPORTED, "no library takes it");
  library->c.g.parts = v->v[PARTS];
  library->c.g.reduced_precision = reduced_precision;
  TRY(cpu_call_create(a, &library->c, NULL, &library->call, &library->info));
  CHECK_THAT(library->info.fast || (!reduced_precision && !emit_supports(p->instr, NULL)), STATUS_UNSUPPORTED,
             "the library has plain loops only");
  out->library = library;
  out->scratch_bytes = (dim)library->info.scratch_bytes;
  return NULL;
}

static status build_library(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  return build_call(a, p, v, DTYPE_INVALID, out);
}

const cpu_algorithm cpu_library_algorithm = {.name = "library",
                                             .library_nanoseconds = 1e6,
                                             .list_configs = list_library,
                                             .build = build_library,
                                             .find_config = find_parts};

/* --- reduced precision --- */

/* Reduced precision is twice as fast as f32 on some processors and half as fast on others.  The estimate is therefore
 * worse than that of f32, so that it is only taken if it was timed. */
static const double reduced_precision_estimate = 1.01;

static uint32_t list_reduced_precision(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  cpu_library_plan *library = ARENA_NEW(a, cpu_library_plan);
  dtype type = p->options.numerics.reduced_precision;
  if ((type != DTYPE_BF16 && type != DTYPE_F16) || !read(p, library) || !library->c.g.packed ||
      cpu_sums_bytes(&library->c.g) || is_small(p)) {
    return 0;
  }
  uint32_t n = list_parts(p, library, room, out);
  for (uint32_t k = 0; k < n; k++) {
    out[k].estimate *= reduced_precision_estimate;
  }
  return n;
}

static status build_reduced_precision(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  return build_call(a, p, v, p->options.numerics.reduced_precision, out);
}

const cpu_algorithm cpu_reduced_precision_algorithm = {.name = "reduced-precision",
                                                       .library_nanoseconds = 1e6,
                                                       .list_configs = list_reduced_precision,
                                                       .build = build_reduced_precision};
