/* library.c - the algorithm "library": one call of oneDNN or OpenBLAS with all that follows, divided into parts; and
 * the algorithm "narrow": the same in reduced precision, where the user allows it. */
#include "backend_cpu/algorithms/algorithm.h"
#include "backend_cpu/algorithms/geometry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double part_nanoseconds = 4000; /* what another thread is worth asking for */
static const double longest_part =
    1e10; /* multiplications, some tenths of a second, between which a run's budget is looked at */
/* About 200 GFLOP/s a thread, a third of that where channels do not meet each other, and 20 GB/s. */
static const double call_nanoseconds = 600, multiplication_nanoseconds = 0.01, lonely_factor = 3,
                    byte_nanoseconds = 0.05;

static void swap(int64_t *list) {
  int64_t first = list[0];
  list[0] = list[1];
  list[1] = first;
}

/* A column of places, as 1-D convolutions often come, is laid down as a row, which lies in memory alike: the library
 * blocks its registers along the last spatial dimension. */
static void lay_down(cpu_contraction *c) {
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

/* A convolution that looks at one place only is a row of places: they can be divided evenly. */
static void flatten(cpu_contraction *c) {
  cpu_geometry *g = &c->g;
  bool plain = g->op == CPU_CONVOLUTION && g->channels_last && g->spatial > 1;
  for (int d = 0; plain && d < g->spatial; d++) {
    plain = g->kernel[d] == 1 && g->strides[d] == 1 && g->low[d] == 0 && g->high[d] == 0;
  }
  for (uint32_t k = 0; plain && k < c->n_post_ops; k++) { /* arrays that stretch along one of them */
    uint32_t places = ((1u << g->spatial) - 1) << 1, dims = c->post_ops[k].dims & places;
    plain = c->post_ops[k].kind <= CPU_POST_OP_LAST_UNARY || dims == 0 || dims == places;
  }
  for (int d = 0; plain && d < g->spatial - 1; d++) {
    g->in[g->spatial - 1] *= g->in[d];
    g->out[g->spatial - 1] *= g->out[d];
    g->in[d] = g->out[d] = 1;
  }
}

/* The number of parts nearest to that wanted that there can be; none takes so long that a run's time limit is missed by
 * much. */
static int64_t whole_parts(const cpu_contraction *c, int64_t wanted) {
  int64_t dims[CPU_MAX_RANK];
  cpu_contraction_dims(c, dims);
  int axis = cpu_contraction_axis(c);
  double needed = cpu_geometry_multiplications(&c->g) / longest_part;
  int64_t parts = needed > (double)wanted ? (int64_t)fmin(needed, CPU_MAX_PARTS) : wanted;
  parts = axis < 0 || parts < 1 ? 1 : parts < dims[axis] ? parts : dims[axis];
  parts = parts < CPU_MAX_PARTS ? parts : CPU_MAX_PARTS;
  while (c->g.op == CPU_MATMUL && axis == 2 && dims[2] % parts) { /* parts of the weights of one format */
    parts--;
  }
  return parts;
}

/* Bytes that are read and written. */
static double bytes_of(const hlo_instr *i) {
  double n = (double)shape_bytes(&i->shapes[0]);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    n += (double)shape_bytes(hlo_shape(i->operands[k]));
  }
  return n;
}

/* On one thread. */
static double work_of(const cpu_problem *p, const cpu_contraction *c) {
  bool lonely = c->g.op == CPU_CONVOLUTION && c->g.in_channels / c->g.groups < 4 && c->g.groups > 1;
  return p->multiplications * multiplication_nanoseconds * (lonely ? lonely_factor : 1) +
         bytes_of(p->instr) * byte_nanoseconds;
}

/* Enough for threads to help each other, each worth its while, and as many for each. */
static int64_t choose_parts(const cpu_problem *p, const cpu_contraction *c) {
  int64_t threads = p->options.threads, most = threads > 2 ? 2 * threads : threads == 2 ? 4 : 1;
  double worth = work_of(p, c) / part_nanoseconds;
  int64_t wanted = worth < (double)most ? (int64_t)worth : most;
  return whole_parts(c, wanted > threads ? wanted - wanted % threads : wanted);
}

/* --- the algorithm --- */

enum { PARTS }; /* v[] of a variant */

static bool read(const cpu_problem *p, cpu_library_plan *library) {
  if (!cpu_library_plan_read(p->instr, library)) {
    return false;
  }
  lay_down(&library->c);
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

/* The parts that choose_parts finds right, and others that may be better. */
static uint32_t list_parts(const cpu_problem *p, const cpu_library_plan *library, uint32_t room, cpu_config *out) {
  uint32_t n = 0;
  double estimate = call_nanoseconds + cpu_shared(work_of(p, &library->c), p->options.threads);
  int64_t best = choose_parts(p, &library->c);
  add_config(best, estimate, false, &n, out);
  for (int64_t parts = 1; parts <= 4 * (int64_t)p->options.threads && n + 1 < room; parts *= 2) {
    int64_t possible = whole_parts(&library->c, parts);
    bool idle = possible < (int64_t)p->options.threads && possible < best;
    add_config(possible, estimate * (idle ? 1.5 : 1.1), idle, &n, out);
  }
  add_config(1, estimate * p->options.threads, best > 1, &n, out); /* at least this can be built */
  return n;
}

/* "p4": any number of parts that there can be.  Its estimate is that of a bad one: the tuner does not take it untimed.
 */
static bool find_parts(const cpu_problem *p, const char *name, cpu_config *out) {
  cpu_library_plan library;
  long long parts;
  uint32_t n = 0;
  if (sscanf(name, "p%lld", &parts) != 1 || parts < 1 || parts > CPU_MAX_PARTS || !read(p, &library) ||
      whole_parts(&library.c, parts) != parts) {
    return false;
  }
  *out = (cpu_config){0};
  add_config(parts, 1.5 * (call_nanoseconds + cpu_shared(work_of(p, &library.c), p->options.threads)),
             parts < p->options.threads, &n, out);
  return strcmp(out->name, name) == 0;
}

static uint32_t list_library(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  cpu_library_plan *library = ARENA_NEW(a, cpu_library_plan);
  return read(p, library) && !is_small(p) ? list_parts(p, library, room, out) : 0;
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
  out->scratch_bytes = library->info.scratch_bytes;
  return NULL;
}

static status build_library(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  return build_call(a, p, v, DTYPE_INVALID, out);
}

const cpu_algorithm cpu_library_algorithm = {"library", list_library, build_library, find_parts};

/* --- with products of narrow numbers --- */

/* Whether they are faster depends on the processor: on some they are twice as fast as f32, on others half.  So they are
 * never taken without having been timed: their guess is behind that for f32. */
static const double reduced_precision_estimate = 1.01;

static uint32_t list_reduced_precision(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  cpu_library_plan *library = ARENA_NEW(a, cpu_library_plan);
  if (!p->options.numerics.reduced_precision || !read(p, library) || !library->c.g.packed ||
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

const cpu_algorithm cpu_reduced_precision_algorithm = {"narrow", list_reduced_precision, build_reduced_precision, NULL};
