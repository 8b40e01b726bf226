/* nms.c - the thunk kind cpu.nms: non-maximum suppression, whose lines (batches times classes) are divided into
 * parts. */
#include "backend_cpu/runtime/kinds.h"
#include "base/nms.h"
#include "runtime/host/thread_pool.h"

typedef struct nms_state {
  nms problem;          /* before a run only its sizes are set, which happens when the thunk is bound */
  int64_t lines, parts; /* before the thunk is bound, `parts` is the largest number of parts */
} nms_state;

static uint64_t counts_bytes(int64_t lines) { return ((uint64_t)lines * CPU_NMS_LINE_BYTES + 63) & ~(uint64_t)63; }

typedef struct nms_run {
  const nms_state *s;
  nms problem;
  int64_t *rows, *counts;
  uint8_t *scratch;
  const mem_budget *budget;
} nms_run;

static void run_parts(void *data, int64_t begin, int64_t end) {
  const nms_run *r = data;
  const nms_state *s = r->s;
  for (int64_t part = begin; part < end; part++) {
    uint8_t *scratch = r->scratch + (uint64_t)part * nms_scratch(s->problem.boxes, s->problem.limit);
    for (int64_t line = part * s->lines / s->parts; line < (part + 1) * s->lines / s->parts; line++) {
      r->counts[line] = budget_expired(r->budget) ? 0 : nms_line(&r->problem, line, scratch, r->rows, r->budget);
    }
  }
}

status cpu_nms_run(const rt_thunk *t, rt_run *r) {
  const nms_state *s = t->state;
  const rt_buffer *results = t->buffers + t->n_inputs;
  nms_run run = {.s = s,
                 .problem = s->problem,
                 .rows = rt_address(r, &results[0]),
                 .counts = rt_address(r, &results[2]),
                 .budget = r->budget};
  run.scratch = (uint8_t *)run.counts + counts_bytes(s->lines);
  run.problem.corners = rt_address(r, &t->buffers[0]);
  run.problem.scores = rt_address(r, &t->buffers[1]);
  run.problem.most = *(const int64_t *)rt_address(r, &t->buffers[2]);
  run.problem.overlap = *(const float *)rt_address(r, &t->buffers[3]);
  run.problem.floor = t->n_inputs > 4 ? rt_address(r, &t->buffers[4]) : NULL;
  if (s->lines > 0) {
    TRY(rt_parallel_run(r, s->parts, 1, run_parts, &run));
  }
  *(int64_t *)rt_address(r, &results[1]) = nms_join(&run.problem, run.counts, run.rows);
  return NULL;
}

static bool has_extents(const rt_buffer *b, dtype type, uint8_t rank, const int64_t *extents) {
  bool ok = rt_buffer_is_dense(b) && b->type == type && b->rank == rank;
  for (int k = 0; ok && k < rank; k++) {
    ok = b->extents[k] == extents[k];
  }
  return ok;
}

/* Returns true if the buffers have the right shapes and types, and sets the sizes.  lines times limit does not
 * overflow, since limit is an extent of the result divided by lines. */
static bool buffers_fit(const rt_thunk *t, nms_state *s) {
  static const dtype scalars[] = {DTYPE_S64, DTYPE_F32, DTYPE_F32};
  nms *p = &s->problem;
  const rt_buffer *scores = &t->buffers[1], *results = t->buffers + t->n_inputs;
  if (t->n_inputs < 4 || t->n_inputs > 5 || t->n_buffers != t->n_inputs + 3 || scores->rank != 3 ||
      results[0].rank != 2) {
    return false;
  }
  p->batches = scores->extents[0];
  p->classes = scores->extents[1];
  p->boxes = scores->extents[2];
  bool ok = has_extents(scores, DTYPE_F32, 3, scores->extents) && p->boxes <= UINT32_MAX &&
            has_extents(&t->buffers[0], DTYPE_F32, 3, (int64_t[]){p->batches, p->boxes, 4});
  for (uint32_t k = 2; k < t->n_inputs; k++) {
    ok = ok && has_extents(&t->buffers[k], scalars[k - 2], 0, NULL);
  }
  if (!ok || __builtin_mul_overflow(p->batches, p->classes, &s->lines)) {
    return false;
  }
  p->limit = s->lines ? results[0].extents[0] / s->lines : 0;
  return p->limit <= p->boxes && has_extents(&results[0], DTYPE_S64, 2, (int64_t[]){s->lines * p->limit, 3}) &&
         has_extents(&results[1], DTYPE_S64, 0, NULL);
}

status cpu_nms_load(rt_thunk *t, rt_loader *l) {
  rt_reader r = rt_reader_make(t->config);
  nms_state *s = ARENA_NEW(l->arena, nms_state);
  s->parts = rt_get_in(&r, 1, INT32_MAX);
  TRY(rt_reader_end(&r, t->kind));
  t->state = s;
  return NULL;
}

/* Returns the number of parts, 1 if there is too little to do for several threads. */
static int64_t parts_of(const nms_state *s, int64_t most) {
  enum { SMALL = 1 << 13 };
  return s->lines == 0 || s->problem.boxes < SMALL / s->lines ? 1 : cpu_parts(s->lines, most);
}

status cpu_nms_bind(rt_thunk *t, arena *a) {
  nms_state *s = arena_memdup(a, t->state, sizeof *s);
  CHECK_THAT(buffers_fit(t, s), STATUS_INVALID_FILE, "damaged");
  s->parts = parts_of(s, s->parts);
  const rt_buffer *scratch = &t->buffers[t->n_buffers - 1];
  uint64_t wanted, each = nms_scratch(s->problem.boxes, s->problem.limit);
  CHECK_THAT(!__builtin_mul_overflow(each, (uint64_t)s->parts, &wanted) &&
                 !__builtin_add_overflow(wanted, counts_bytes(s->lines), &wanted) &&
                 (uint64_t)rt_buffer_bytes(scratch) >= wanted && scratch->offset % 64 == 0,
             STATUS_INVALID_FILE, "damaged");
  t->state = s;
  return NULL;
}
