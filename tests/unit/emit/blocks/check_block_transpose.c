/* check_block_transpose.c - transposes through shared memory: they compute what the reference evaluator does, in all
 * orders of the threads, for all element types and many sizes; the lanes of a warp access neighbouring elements of
 * arrays, and different banks of shared memory. */
#include <string.h>

#include "runtime/block_abi.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/blocks/block_case.h"
#include "tests/unit/emit/sizes_case.h"

static const char *const types[] = {"f32", "f16", "u8", "f64", "c64", "c128", "pred", "s4", "f8e4m3fn", "s64"};
enum { N_TYPES = sizeof types / sizeof *types };

static void check_all(kernel_cases *c) { block_check_all(c, BLOCK_SPECIAL, NULL); }

static kernel_case *add(kernel_cases *c, const char *type, const char *from, const char *permutation, const char *to) {
  return kernel_add(c, 0,
                    TEXT("%s[%s](%%x: %s[%s]) {\n%%y = transpose(%%x) {permutation=[%s]} : %s[%s]\nreturn %%y\n}", type,
                         to, type, from, permutation, type, to));
}

/* --- what is computed --- */

/* Whole tiles, parts of tiles, and arrays that are shorter than a tile along one dimension. */
START_TEST(matrices) {
  static const int sides[] = {8, 20, 32, 33, 64, 97, 130};
  enum { N = sizeof sides / sizeof *sides };
  kernel_cases c = {0};
  for (int k = 0; k < N; k++) {
    for (int j = 0; j < N; j++) {
      if ((k + j + _i) % 2 == 0) {
        add(&c, types[_i], TEXT("%d,%d", sides[k], sides[j]), "1,0", TEXT("%d,%d", sides[j], sides[k]));
      }
    }
  }
  check_all(&c);
}
END_TEST

START_TEST(permutations) {
  kernel_cases c = {0};
  add(&c, types[_i], "3,40,50", "0,2,1", "3,50,40");
  add(&c, types[_i], "40,3,50", "2,1,0", "50,3,40");
  add(&c, types[_i], "2,9,33,5", "0,2,3,1", "2,33,5,9");
  add(&c, types[_i], "2,33,5,12", "0,3,1,2", "2,12,33,5");
  add(&c, types[_i], "36,1,70,2", "2,3,1,0", "70,2,1,36");
  add(&c, types[_i], "5,34,2,35", "3,0,2,1", "35,5,2,34");
  check_all(&c);
}
END_TEST

/* Operations before and behind transposes, further operands, several transposes and results; and results over an
 * operand, also where a tile is not whole. */
static const char *const fusions[] = {
    "f32[N,M](%x: f32[M,N], %r: f32[N,M], %b: f32[M]) {\n%n = negate(%x) : f32[M,N]\n%t = transpose(%n) "
    "{permutation=[1,0]} : f32[N,M]\n%bb = broadcast(%b) {dimensions=[1]} : f32[N,M]\n%s = add(%t, %r) : f32[N,M]\n"
    "%y = multiply(%s, %bb) : f32[N,M]\nreturn %y\n}",
    "f16[N,M](%x: f16[M,N], %r: f16[N,M]) {\n%t = transpose(%x) {permutation=[1,0]} : f16[N,M]\n%y = maximum(%t, %r) : "
    "f16[N,M]\nreturn %y\n}",
    "f32[N*M](%x: u8[M,N], %z: f32[M,N]) {\n%t = transpose(%x) {permutation=[1,0]} : u8[N,M]\n%u = transpose(%z) "
    "{permutation=[1,0]} : f32[N,M]\n%f = convert(%t) {saturate=false, rounding=nearest} : f32[N,M]\n%s = add(%f, %u) "
    ": f32[N,M]\n%y = reshape(%s) : f32[N*M]\nreturn %y\n}",
    "f32[N,M];pred[N,M](%x: f32[M,N], %z: f32[M,N]) {\n%t = transpose(%x) {permutation=[1,0]} : f32[N,M]\n%u = "
    "transpose(%z) {permutation=[1,0]} : f32[N,M]\n%d = subtract(%t, %u) : f32[N,M]\n%p = compare(%t, %u) "
    "{comparison=lt} : pred[N,M]\nreturn %d, %p\n}"};
enum { N_FUSIONS = sizeof fusions / sizeof *fusions };

/* Returns the text with numbers in place of N*M, N and M. */
static const char *instance(const char *text, int n, int m) {
  const char *out = "";
  for (const char *p = text; *p; p++) {
    bool extent = p > text && (p[-1] == '[' || p[-1] == ',') && (*p == 'N' || *p == 'M');
    if (extent && strncmp(p, "N*M", 3) == 0) {
      out = TEXT("%s%d", out, n * m);
      p += 2;
    } else {
      out = extent ? TEXT("%s%d", out, *p == 'N' ? n : m) : TEXT("%s%c", out, *p);
    }
  }
  return out;
}

START_TEST(fused) {
  static const int sizes[][2] = {{64, 32}, {33, 70}, {9, 120}, {128, 128}, {200, 11}};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const char *text = instance(fusions[_i], sizes[k][0], sizes[k][1]);
    kernel_add(&c, 0, text);
    if (_i < 2) {
      kernel_add(&c, 0, text)->alias = 1;
    }
  }
  check_all(&c);
}
END_TEST

START_TEST(any_sizes) {
  static const char *const texts[] = {
      "(%x: f32[n,m]) {\n%t = transpose(%x) {permutation=[1,0]} : f32[m,n]\nreturn %t\n}",
      "(%x: u8[b,n,m]) {\n%t = transpose(%x) {permutation=[0,2,1]} : u8[b,m,n]\nreturn %t\n}",
      "(%x: bf16[n,b,m]) {\n%t = transpose(%x) {permutation=[2,1,0]} : bf16[m,b,n]\nreturn %t\n}",
      "(%x: f32[b,n,12], %z: f32[b,12,n]) {\n%t = transpose(%x) {permutation=[0,2,1]} : f32[b,12,n]\n%y = add(%t, %z) "
      ": f32[b,12,n]\nreturn %y\n}",
      "(%x: c64[32*n,64*m], %z: f32[n,m]) {\n%t = transpose(%x) {permutation=[1,0]} : c64[64*m,32*n]\nreturn %t\n}"};
  sizes_cases c = {0};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    sizes_add_text(&c, texts[k]);
  }
  c.items[c.n - 1].most = 12; /* its array has many elements for each of n and m */
  sizes_check_blocks(&c, 24);
}
END_TEST

/* --- how --- */

/* Which transposes use shared memory, in tiles of how many elements. */
START_TEST(tiles_are_used) {
  static const struct {
    const char *type, *from, *permutation, *to;
    uint32_t bytes; /* of shared memory; 0: each thread has an element */
    int64_t grid;
  } rows[] = {{"f32", "64,96", "1,0", "96,64", 32 * 33 * 4, 6},
              {"f16", "64,96", "1,0", "96,64", 64 * 66 * 2, 2},
              {"u8", "200,130", "1,0", "130,200", 128 * 132, 4},
              {"f64", "33,40", "1,0", "40,33", 32 * 33 * 8, 4},
              {"c128", "33,40", "1,0", "40,33", 2 * 32 * 33 * 8, 4},
              {"f32", "2,8,1000", "0,2,1", "2,1000,8", 1056 * 4, 16},
              {"f32", "1000,8", "1,0", "8,1000", 1056 * 4, 8},
              {"f32", "1000,7", "1,0", "7,1000", 0, 0},
              {"f32", "7,1000", "1,0", "1000,7", 0, 0},
              {"f32", "100,16,16", "0,2,1", "100,16,16", 0, 0},
              {"f32", "3,40,50", "1,0,2", "40,3,50", 0, 0},
              {"f32", "100,16,32", "0,2,1", "100,32,16", 528 * 4, 100}};
  enum { N = sizeof rows / sizeof *rows };
  kernel_cases c = {0};
  emit_target t;
  for (int k = 0; k < N; k++) {
    add(&c, rows[k].type, rows[k].from, rows[k].permutation, rows[k].to);
  }
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  (void)block_write(&c, &t, NULL);
  for (int k = 0; k < N; k++) {
    const emit_kernel_info *info = &c.items[k].info;
    ck_assert_msg(info->shared_bytes == rows[k].bytes, "%u bytes of shared memory for\n%s", info->shared_bytes,
                  c.items[k].text);
    ck_assert_uint_eq(info->step_threads, rows[k].bytes ? 256 : 1);
    if (rows[k].bytes) {
      ck_assert_int_eq(info->grid, rows[k].grid);
    }
  }
}
END_TEST

/* The accesses of a thread of the block to its shared memory. */
enum { THREADS = 256, MOST_ACCESSES = 256, BANKS = 32, WORD = 4 };
typedef struct traced_thread {
  rt_block_thread state;
  uint32_t n;
  struct {
    ptrdiff_t at;
    int64_t bytes;
  } accesses[MOST_ACCESSES];
} traced_thread;
enum { SHARED = 48 * 1024 };

static void trace(rt_block_thread *thread, const void *at, int64_t bytes, int32_t writes) {
  traced_thread *t = (traced_thread *)thread;
  ptrdiff_t offset = (const char *)at - (const char *)thread->shared;
  (void)writes;
  if (offset >= 0 && offset < SHARED) {
    ck_assert_uint_lt(t->n, MOST_ACCESSES);
    t->accesses[t->n].at = offset;
    t->accesses[t->n++].bytes = bytes;
  }
}

static void *frame(rt_block_thread *thread, int64_t bytes) {
  (void)thread;
  return arena_alloc_aligned(kernel_arena, (size_t)bytes, 64);
}

/* Runs the first block of a kernel that transposes `x`, and returns its threads. */
static traced_thread *run_block(rt_block_fn *f, const void *x, size_t bytes) {
  traced_thread *threads = ARENA_NEW_N(kernel_arena, traced_thread, THREADS);
  char *shared = arena_alloc_aligned(kernel_arena, SHARED, RT_BLOCK_SHARED_ALIGN);
  const void *buffers[2] = {x, arena_alloc_aligned(kernel_arena, bytes, 64)};
  for (int32_t k = 0; k < THREADS; k++) {
    threads[k].n = 0;
    threads[k].state =
        (rt_block_thread){.thread = k, .threads = THREADS, .shared = shared, .allocate = frame, .access = trace};
    f(buffers, NULL, 1, &threads[k].state);
  }
  while (threads[0].state.sync) {
    for (int k = 0; k < THREADS; k++) {
      rt_block_resume(&threads[k].state);
    }
  }
  return threads;
}

/* Compiles the kernels of all cases so that they tell what they access. */
static rt_code *load(kernel_cases *c) {
  emit_target t;
  rt_code *code;
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = true;
  ASSERT_OK(kernel_load(kernel_arena, block_write(c, &t, NULL), kernel_resolve, &code));
  return code;
}

static rt_block_fn *kernel_of(const rt_code *code, uint32_t k) {
  return (rt_block_fn *)(intptr_t)rt_code_find(code, TEXT("k%u_0", k));
}

/* Fails the test if lanes whose accesses number k are done at the same time access different words of a bank. */
static void check_banks(const traced_thread *threads, uint32_t k, const char *text) {
  int together = (int)(BANKS * WORD / threads[0].accesses[k].bytes);
  together = together > BANKS ? BANKS : together;
  for (int first = 0; first < THREADS; first += together) {
    ptrdiff_t words[BANKS];
    memset(words, 0xff, sizeof words);
    for (int lane = first; lane < first + together; lane++) {
      ptrdiff_t at = threads[lane].accesses[k].at, past = at + (ptrdiff_t)threads[lane].accesses[k].bytes;
      for (ptrdiff_t word = at / WORD; word * WORD < past; word++) {
        ck_assert_msg(words[word % BANKS] < 0 || words[word % BANKS] == word,
                      "access %u of thread %d to bank %d conflicts in\n%s", k, lane, (int)(word % BANKS), text);
        words[word % BANKS] = word;
      }
    }
  }
}

START_TEST(banks) {
  static const int sides[][2] = {{160, 160}, {8, 300}, {300, 8}, {16, 300}, {300, 16}, {33, 150}, {150, 33}};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
    add(&c, types[_i], TEXT("%d,%d", sides[k][0], sides[k][1]), "1,0", TEXT("%d,%d", sides[k][1], sides[k][0]));
  }
  rt_code *code = load(&c);
  for (uint32_t k = 0; k < c.n; k++) {
    size_t bytes = (size_t)shape_bytes(&c.items[k].fusion->shapes[0]);
    void *x = memset(arena_alloc_aligned(kernel_arena, bytes, 64), 0, bytes);
    const traced_thread *threads = run_block(kernel_of(code, k), x, bytes);
    ck_assert_uint_ge(threads[0].n, 4);
    for (uint32_t j = 0; j < threads[0].n; j++) {
      check_banks(threads, j, c.items[k].text);
    }
  }
}
END_TEST

/* Neighbouring lanes load neighbouring elements, and store neighbouring ones: the elements are their own positions in
 * the operand, and so tell which of them a lane puts into shared memory and takes from there. */
START_TEST(neighbours) {
  enum { ROWS = 64, COLUMNS = 96 };
  kernel_cases c = {0};
  add(&c, "s32", TEXT("%d,%d", ROWS, COLUMNS), "1,0", TEXT("%d,%d", COLUMNS, ROWS));
  int32_t *x = arena_alloc_aligned(kernel_arena, ROWS * COLUMNS * sizeof *x, 64);
  for (int32_t k = 0; k < ROWS * COLUMNS; k++) {
    x[k] = k;
  }
  const traced_thread *threads = run_block(kernel_of(load(&c), 0), x, ROWS * COLUMNS * sizeof *x);
  uint32_t n = threads[0].n;
  for (uint32_t j = 0; j < n; j++) {
    for (int k = 0; k + 1 < THREADS; k += k % RT_BLOCK_WARP == RT_BLOCK_WARP - 2 ? 2 : 1) {
      const char *shared = threads[k].state.shared;
      int32_t own, next;
      memcpy(&own, shared + threads[k].accesses[j].at, sizeof own);
      memcpy(&next, shared + threads[k + 1].accesses[j].at, sizeof next);
      ck_assert_int_eq(next - own, j < n / 2 ? 1 : COLUMNS);
    }
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-transpose");
  tcase_add_checked_fixture(t, sizes_setup_with_kernels, sizes_teardown_with_kernels);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, matrices, 0, N_TYPES);
  tcase_add_loop_test(t, permutations, 0, N_TYPES);
  tcase_add_loop_test(t, fused, 0, N_FUSIONS);
  tcase_add_test(t, any_sizes);
  tcase_add_test(t, tiles_are_used);
  tcase_add_loop_test(t, banks, 0, N_TYPES);
  tcase_add_test(t, neighbours);
  return run_suite("emit-block-transpose", t);
}
