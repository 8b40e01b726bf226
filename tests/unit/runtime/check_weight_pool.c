/* check_weight_pool.c - arrays that the programs of a session share, and programs that are kept when the
 * memory of their compilation is freed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/program/weight_pool.h"
#include "tests/suite.h"

static rt_weight_pool *weight_pool;
static mem_budget budget;
static arena *memory;

static void setup(void) {
  budget = (mem_budget){0};
  ck_assert_ptr_null(rt_weight_pool_create(&budget, NULL, &weight_pool));
  memory = arena_create(NULL);
}

static void teardown(void) {
  rt_weight_pool_destroy(weight_pool);
  arena_destroy(memory);
  ck_assert_uint_eq(budget.used, 0);
}

static rt_span name(const char *text) { return (rt_span){text, strlen(text)}; }

START_TEST(one_array_a_name) {
  bool fresh;
  char *a = rt_weight_pool_get(weight_pool, name("a"), 100, &fresh);
  ck_assert(fresh && (uintptr_t)a % 64 == 0);
  memset(a, 7, 100);
  ck_assert_ptr_eq(rt_weight_pool_get(weight_pool, name("a"), 100, &fresh), a);
  ck_assert(!fresh && a[99] == 7);
  ck_assert_ptr_ne(rt_weight_pool_get(weight_pool, name("b"), 100, &fresh), a);
  ck_assert(fresh);
  ck_assert_ptr_ne(rt_weight_pool_get(weight_pool, name("a"), 101, &fresh), a);
  ck_assert(fresh && rt_weight_pool_name(weight_pool, a).size == 1 && !rt_weight_pool_name(weight_pool, a + 1).size);
  ck_assert_ptr_eq(rt_weight_pool_find(weight_pool, name("b"), 100),
                   rt_weight_pool_get(weight_pool, name("b"), 100, &fresh));
  ck_assert_ptr_null(rt_weight_pool_find(weight_pool, name("c"), 100));
}
END_TEST

static bool has(const void *data) { return rt_weight_pool_name(weight_pool, data).size > 0; }

START_TEST(arrays_of_a_failed_compilation_are_not_found) {
  bool fresh;
  static const char mapped[64];
  void *kept = rt_weight_pool_get(weight_pool, name("kept"), 100, &fresh);
  rt_program first = {.n_constants = 1, .constants = &(rt_span){kept, 100}};
  rt_program file = {.n_constants = 1, .constants = &(rt_span){mapped, 64}, .names = (rt_span[]){name("mapped")}};
  rt_weight_pool_retain(weight_pool, &first);
  ck_assert(rt_weight_pool_register(weight_pool, &file, NULL));
  (void)rt_weight_pool_get(weight_pool, name("not filled"), 100, &fresh);
  rt_weight_pool_abandon(weight_pool);
  ck_assert(has(kept) && has(mapped) && !rt_weight_pool_find(weight_pool, name("not filled"), 100));
  (void)rt_weight_pool_get(weight_pool, name("not filled"), 100, &fresh);
  ck_assert(fresh);
}
END_TEST

START_TEST(unreferenced_arrays_are_collected) {
  bool fresh;
  void *a = rt_weight_pool_get(weight_pool, name("a"), 100, &fresh),
       *b = rt_weight_pool_get(weight_pool, name("b"), 5000, &fresh);
  rt_program one = {.n_constants = 2, .constants = (rt_span[]){{a, 100}, {"elsewhere", 9}}}, two = one;
  rt_weight_pool_retain(weight_pool, &one);
  rt_weight_pool_retain(weight_pool, &two);
  rt_weight_pool_collect(weight_pool);
  ck_assert(has(a) && !has(b));
  ck_assert_uint_eq(rt_weight_pool_share(weight_pool, &one), 50); /* the other half is the other program's */
  rt_weight_pool_release(weight_pool, &one);
  rt_weight_pool_collect(weight_pool);
  ck_assert(has(a));
  ck_assert_uint_eq(rt_weight_pool_share(weight_pool, &two), 100);
  rt_weight_pool_release(weight_pool, &two);
  rt_weight_pool_collect(weight_pool);
  ck_assert(!has(a));
}
END_TEST

START_TEST(budgets_count_them) {
  bool fresh;
  budget.limit = 1000;
  ck_assert_ptr_nonnull(rt_weight_pool_get(weight_pool, name("a"), 600, &fresh));
  ck_assert_ptr_null(rt_weight_pool_get(weight_pool, name("b"), 600, &fresh));
  rt_weight_pool_collect(weight_pool);
  ck_assert_ptr_nonnull(rt_weight_pool_get(weight_pool, name("b"), 600, &fresh));
}
END_TEST

static const char file[] = "what lies in the model's file";

static bool is_persistent(const void *owner, const void *data, rt_writer *place) {
  bool there = (const char *)data >= (const char *)owner && (const char *)data < (const char *)owner + sizeof file;
  if (there && place) {
    rt_put_text(place, "file");
    rt_put_i64(place, (const char *)data - (const char *)owner);
  }
  return there;
}

START_TEST(names) {
  rt_sharing s = {.weight_pool = weight_pool, .is_persistent = is_persistent, .owner = file};
  char twin[] = "what", other[] = "that";
  const struct {
    const void *x, *y;
    bool same;
  } rows[] = {{file, file, true}, {file, file + 1, false}, {file, twin, false},
              {twin, twin, true}, {twin, "what", true},    {twin, other, false}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    rt_writer a = {.arena = memory}, b = {.arena = memory};
    rt_weight_pool_put_name(&a, &s, rows[k].x, 4);
    rt_weight_pool_put_name(&b, &s, rows[k].y, 4);
    ck_assert_msg((a.n == b.n && memcmp(a.bytes, b.bytes, a.n) == 0) == rows[k].same, "row %zu", k);
  }
}
END_TEST

static rt_span name_under(const hash_secret *secret, const void *bytes, size_t size) {
  rt_weight_pool *one;
  rt_writer w = {.arena = memory};
  ck_assert_ptr_null(rt_weight_pool_create(NULL, secret, &one));
  rt_weight_pool_put_name(&w, &(rt_sharing){.weight_pool = one}, bytes, size);
  rt_weight_pool_destroy(one);
  return rt_written(&w);
}

static bool same_name(rt_span a, rt_span b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

/* Weights that were chosen to collide in a hash without a secret have different names (check_hash.c has more
 * of these).  A name stays the same as long as the secret does. */
START_TEST(names_nobody_can_choose) {
  uint8_t x[64] = {0}, y[64] = {1};
  static const uint8_t former[8] = {0x93, 0xfd, 0x59, 0x66, 0xb8, 0xfe, 0xe8, 0xd6};
  memcpy(x + 16, former, sizeof former);
  memcpy(y + 16, former, sizeof former);
  hash_secret s, other;
  ck_assert(hash_secret_init(&s) && hash_secret_init(&other));
  ck_assert(!same_name(name_under(&s, x, sizeof x), name_under(&s, y, sizeof y)));
  ck_assert(same_name(name_under(&s, x, sizeof x), name_under(&s, x, sizeof x)));
  ck_assert(!same_name(name_under(&s, x, sizeof x), name_under(&other, x, sizeof x)));
  ck_assert(!same_name(name_under(NULL, x, sizeof x), name_under(NULL, x, sizeof x)));
}
END_TEST

/* All that was on the arena of the compilation is overwritten before the copy is looked at. */
START_TEST(kept_programs_stand_alone) {
  bool fresh;
  rt_sharing s = {.weight_pool = weight_pool, .is_persistent = is_persistent, .owner = file};
  void *weights = rt_weight_pool_get(weight_pool, name("w"), 64, &fresh);
  char *label = strdup("label"), *note = strdup("note"), *config = strdup("config"), *own = strdup("own"),
       *code = strdup("code");
  int64_t *extents = calloc(1, sizeof *extents), *value = calloc(1, sizeof *value);
  *extents = 5;
  *value = 42;
  rt_buffer buffer = {.space = RT_CONSTANT, .type = DTYPE_U8, .rank = 1, .extents = extents, .strides = extents};
  uint32_t *numbers = calloc(1, sizeof *numbers);
  rt_node node = {label, note};
  rt_thunk inner = {.kind = "copy",
                    .operation = label,
                    .nodes = numbers,
                    .n_nodes = 1,
                    .note = note,
                    .config = {config, 7},
                    .n_buffers = 1,
                    .buffers = &buffer};
  rt_sequence body = {1, 1, &inner};
  rt_thunk outer = {.kind = "while", .operation = label, .note = note, .n_bodies = 1, .bodies = &body};
  rt_io in = {.name = label, .shape = shape_scalar(DTYPE_S64), .value = value};
  rt_program p = {.target = "cpu",
                  .cpu = note,
                  .n_params = 1,
                  .params = &in,
                  .n_constants = 3,
                  .n_code = 1,
                  .constants = (rt_span[]){{weights, 64}, {file, 4}, {own, 4}},
                  .code = (rt_span[]){{code, 5}},
                  .n_nodes = 1,
                  .nodes = &node,
                  .arena_bytes = 100,
                  .body = {1, 1, &outer}};
  rt_program *kept = rt_program_keep(memory, &p, &s);
  char *all[] = {label, note, config, own, code};
  for (size_t k = 0; k < 5; k++) {
    memset(all[k], '?', strlen(all[k]));
    free(all[k]);
  }
  *extents = *value = -1;
  *numbers = 7;
  node = (rt_node){NULL, NULL};
  free(numbers);
  free(extents);
  free(value);
  const rt_thunk *t = &kept->body.thunks[0].bodies[0].thunks[0];
  ck_assert_str_eq(kept->cpu, "note");
  ck_assert_str_eq(kept->params[0].name, "label");
  ck_assert_int_eq(*(const int64_t *)kept->params[0].value, 42);
  ck_assert_ptr_eq(kept->constants[0].data, weights);
  ck_assert_ptr_eq(kept->constants[1].data, file);
  ck_assert_mem_eq(kept->constants[2].data, "own", 4);
  ck_assert_mem_eq(kept->code[0].data, "code", 5);
  ck_assert_str_eq(t->operation, "label");
  ck_assert_uint_eq(t->n_nodes, 1);
  ck_assert_uint_eq(t->nodes[0], 0);
  ck_assert_str_eq(kept->nodes[0].text, "label");
  ck_assert_str_eq(kept->nodes[0].operator_name, "note");
  ck_assert_str_eq(t->note, "note");
  ck_assert_mem_eq(t->config.data, "config", 7);
  ck_assert_int_eq(t->buffers[0].extents[0], 5);
  ck_assert_int_eq(t->buffers[0].strides[0], 5);
}
END_TEST

static void note_end(void *data) { ++*(int *)data; }

/* Two programs in mapped files: an array whose name the pool has is taken from the pool, and a file is
 * unmapped when none of its arrays is in use. */
START_TEST(mapped_programs_register_their_arrays) {
  static const char one[] = "weights of one", two[] = "weights of two";
  int ended[2] = {0, 0};
  arena *files[] = {arena_create(NULL), arena_create(NULL)};
  rt_sharing s = {.weight_pool = weight_pool};
  rt_program *kept[2];
  for (int k = 0; k < 2; k++) {
    rt_program p = {.target = "cpu",
                    .cpu = "",
                    .n_constants = 3,
                    .constants = (rt_span[]){{k ? two : one, 8}, {k ? two : one, 4}, {"own", 4}},
                    .names = (rt_span[]){name("both"), name(k ? "second" : "first"), {NULL, 0}}};
    arena_cleanup(files[k], note_end, &ended[k]);
    ck_assert(rt_weight_pool_register(weight_pool, &p, files[k]));
    kept[k] = rt_program_keep(memory, &p, &s);
    rt_weight_pool_retain(weight_pool, kept[k]);
    ck_assert(!rt_weight_pool_register(weight_pool, &p, files[k])); /* the pool has all arrays now */
    ck_assert_ptr_eq(kept[k]->constants[0].data, one);
    ck_assert_ptr_eq(kept[k]->constants[1].data, k ? two : one);
    ck_assert_str_eq(kept[k]->constants[2].data, "own");
    ck_assert_uint_eq(rt_program_find(kept[k], name("both"), 8), 0);
    ck_assert_uint_eq(rt_program_find(kept[k], name("both"), 9), 3);
    ck_assert_uint_eq(rt_program_find(kept[k], (rt_span){NULL, 0}, 4), 3);
  }
  rt_weight_pool_release(weight_pool, kept[0]);
  rt_weight_pool_collect(weight_pool);
  ck_assert(ended[0] == 0 && ended[1] == 0); /* the second program uses an array in the first one's file */
  rt_weight_pool_release(weight_pool, kept[1]);
  rt_weight_pool_collect(weight_pool);
  ck_assert(ended[0] == 1 && ended[1] == 1);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("shared");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, one_array_a_name);
  tcase_add_test(t, arrays_of_a_failed_compilation_are_not_found);
  tcase_add_test(t, unreferenced_arrays_are_collected);
  tcase_add_test(t, budgets_count_them);
  tcase_add_test(t, names);
  tcase_add_test(t, names_nobody_can_choose);
  tcase_add_test(t, kept_programs_stand_alone);
  tcase_add_test(t, mapped_programs_register_their_arrays);
  return run_suite("shared", t);
}
