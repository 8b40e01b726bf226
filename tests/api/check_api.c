/* check_api.c - onnx-xla.h as a C program uses it. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "api_client.h"
#include "little_room.h"

/* If there is no memory to load the compiler half of the library, the error says so, and a later call succeeds when
 * there is enough. */
START_TEST(room_for_the_compiler) {
  message m = affine_model(W, B);
  oxla_model *model;
  int ir, opset;
  if (!room_can_be_taken) {
    return;
  }
  leave_room(32 << 20);
  for (int k = 0; k < 2; k++) {
    refuse_about(oxla_load_memory(m.bytes, m.n, NULL, &model), OXLA_RESOURCE, OXLA_ABOUT_NOTHING, "MiB of memory more");
    refuse_about(oxla_onnx_versions(&ir, &opset), OXLA_RESOURCE, OXLA_ABOUT_NOTHING, "the compiler half");
  }
  leave_all_room();
  model = load(&m, 0);
  oxla_run *run = new_run(model);
  run_affine(run, 3, 1);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(describes) {
  message m = affine_model(W, B);
  put_bytes(&m, 14, "\x0a\x03key\x12\x05value", 12); /* metadata_props */
  oxla_model *model = load(&m, _i);
  oxla_tensor t;
  int ir, opset;
  ck_assert_uint_eq(oxla_input_count(model), 1);
  ck_assert_uint_eq(oxla_output_count(model), 1);
  ck_assert_uint_eq(oxla_initializer_count(model), 2);
  ck_assert_str_eq(oxla_input_name(model, 0), "x");
  ck_assert_str_eq(oxla_output_name(model, 0), "y");
  ck_assert_ptr_null(oxla_input_name(model, 1));
  ck_assert_ptr_null(oxla_output_name(model, 1));
  succeed(oxla_input_type(model, 0, &t));
  ck_assert_int_eq(t.rank, 2);
  ck_assert_int_eq(t.dims[0], -1);
  ck_assert_int_eq(t.dims[1], 4);
  succeed(oxla_output_type(model, 0, &t));
  ck_assert_int_eq(t.type, OXLA_FLOAT);
  ck_assert_int_eq(t.dims[0], -1);
  refuse_about(oxla_input_type(model, 1, &t), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "no input 1");
  refuse_about(oxla_output_type(model, 7, &t), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "no output 7");
  ck_assert_str_eq(oxla_input_dim_name(model, 0, 0), "n");
  ck_assert_ptr_null(oxla_input_dim_name(model, 0, 1));
  ck_assert_ptr_null(oxla_input_dim_name(model, 0, -1));
  ck_assert_ptr_null(oxla_input_dim_name(model, 9, 0));
  ck_assert_str_eq(oxla_metadata(model, "key"), "value");
  ck_assert_ptr_null(oxla_metadata(model, "value"));
  succeed(oxla_check(model));
  succeed(oxla_onnx_versions(&ir, &opset));
  ck_assert_int_ge(ir, 10);
  ck_assert_int_ge(opset, 21);
  ck_assert_ptr_nonnull(strstr(oxla_version(), "onnx-xla"));
  oxla_model_destroy(model);
}
END_TEST

START_TEST(runs_in_several_shapes) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  for (int n = 1; n <= 8; n += 3) {
    run_affine(run, n, 0);
    run_affine(run, n, 5);
  }
  run_affine(run, 1, 1);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Runs in more shapes than the session keeps programs for.  One of the programs is in use all the time. */
START_TEST(in_many_shapes) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, 0);
  oxla_run *used = new_run(model);
  run_affine(used, 8, 0);
  for (int k = 0; k < 300; k++) {
    int n = 9 + k % 100;
    oxla_run *run = new_run(model);
    run_affine(run, n, 1);
    oxla_run_destroy(run);
    run_affine(used, 8, (float)k);
  }
  oxla_run_destroy(used);
  oxla_model_destroy(model);
}
END_TEST

/* What one session compiles for a model that was loaded from memory, later sessions find in the cache. */
START_TEST(keeps_programs) {
  char folder[] = "/tmp/check-api-XXXXXX", command[128];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  message m = affine_model(W, B);
  oxla_options o = {.size = sizeof o, .cache = folder, .specialise = "off"};
  for (int k = 0; k < 3; k++) {
    oxla_model *model;
    succeed(oxla_load_memory(m.bytes, m.n, &o, &model));
    ck_assert_str_eq(oxla_input_dim_name(model, 0, 0), "n");
    ck_assert_uint_eq(oxla_initializer_count(model), 2);
    oxla_run *run = new_run(model);
    run_affine(run, 1 + k, 1);
    run_affine(run, 1, 2);
    succeed(oxla_check(model));
    oxla_run_destroy(run);
    oxla_model_destroy(model);
  }
  snprintf(command, sizeof command, "test $(ls %s/programs/models/*/*.oxla | wc -l) = 1", folder);
  ck_assert_int_eq(system(command), 0);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(callers_outputs) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float x[4] = {1, 2, 3, 4}, want[4], y[5] = {0, 0, 0, 0, 77};
  oxla_tensor t;
  affine(1, x, W, B, want);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1, 4}, x));
  succeed(oxla_set_output(run, "y", y, 4 * sizeof *y));
  succeed(oxla_execute(run));
  ck_assert_mem_eq(y, want, sizeof want);
  ck_assert_float_eq(y[4], 77);
  succeed(oxla_get_output(run, "y", &t));
  ck_assert_ptr_eq(t.data, y);
  /* An output at an address that is aligned for a float only.  The bytes around it are not changed. */
  char bytes[64] = {0};
  float *odd = (float *)(void *)(bytes + 4);
  succeed(oxla_set_output(run, "y", odd, sizeof want));
  succeed(oxla_execute(run));
  ck_assert_mem_eq(odd, want, sizeof want);
  ck_assert_int_eq(bytes[3] | bytes[20], 0);
  succeed(oxla_set_output(run, "y", y, sizeof y));
  refuse_about(oxla_execute(run), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING,
               "output 'y' has 16 bytes, but the given memory has 20");
  succeed(oxla_set_output(run, "y", NULL, 0));
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &t));
  ck_assert_ptr_ne(t.data, y);
  ck_assert_mem_eq(t.data, want, sizeof want);
  refuse_about(oxla_set_output(run, "z", y, 4), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NAME, "no output 'z'");
  refuse_about(oxla_get_output(run, NULL, &t), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NAME, "no output");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Memory for the output that overlaps only a part of the input is refused.  Memory that ends where the input begins, or
 * begins where it ends, is accepted, and so is exactly the memory of the input. */
START_TEST(overlapping_memory) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float memory[12] = {[4] = 1, 2, 3, 4}, want[4];
  affine(1, memory + 4, W, B, want);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1, 4}, memory + 4));
  for (int at = 1; at < 8; at += at == 3 ? 2 : 1) {
    succeed(oxla_set_output(run, "y", memory + at, sizeof want));
    const char *part = at < 4 ? "the memory of output 'y' overlaps that of input 'x'"
                              : "the memory of input 'x' overlaps that of output 'y'";
    refuse_about(oxla_execute(run), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, part);
  }
  for (int k = 0; k < 3; k++) {
    float *at = memory + (int[]){0, 8, 4}[k];
    succeed(oxla_set_output(run, "y", at, sizeof want));
    succeed(oxla_execute(run));
    ck_assert_mem_eq(at, want, sizeof want);
  }
  affine(1, (float[4]){want[0], want[1], want[2], want[3]}, W, B, want);
  succeed(oxla_execute(run)); /* the input is now the output of the run before */
  ck_assert_mem_eq(memory + 4, want, sizeof want);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(wrong_inputs) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float x[8] = {0};
  const int64_t good[] = {2, 4};
  oxla_tensor t;
  oxla_code wrong = OXLA_INVALID_ARGUMENT;
  refuse_about(oxla_get_output(run, "y", &t), wrong, OXLA_ABOUT_NOTHING, "has not been compiled");
  refuse_about(oxla_execute(run), wrong, OXLA_ABOUT_NOTHING, "input 'x' is not set");
  refuse_about(oxla_set_input(run, "w", OXLA_FLOAT, 1, (int64_t[]){4}, x), wrong, OXLA_ABOUT_NAME, "no input 'w'");
  refuse_about(oxla_set_input(run, NULL, OXLA_FLOAT, 2, good, x), wrong, OXLA_ABOUT_NAME, "no input");
  refuse_about(oxla_set_input(run, "x", OXLA_DOUBLE, 2, good, x), wrong, OXLA_ABOUT_TYPE, "f64");
  refuse_about(oxla_set_input(run, "x", (oxla_type)99, 2, good, x), wrong, OXLA_ABOUT_TYPE, "99");
  refuse_about(oxla_set_input(run, "x", OXLA_FLOAT, 3, (int64_t[]){2, 4, 1}, x), wrong, OXLA_ABOUT_SHAPE, "rank 3");
  refuse_about(oxla_set_input(run, "x", OXLA_FLOAT, 99, good, x), wrong, OXLA_ABOUT_SHAPE, "rank 99");
  refuse_about(oxla_set_input(run, "x", OXLA_FLOAT, 2, NULL, x), wrong, OXLA_ABOUT_SHAPE, "rank");
  refuse_about(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){-1, 4}, x), wrong, OXLA_ABOUT_SHAPE, "negative");
  oxla_error *error = oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){4, 2}, x);
  refuse_about(error ? error : oxla_execute(run), wrong, OXLA_ABOUT_SHAPE, "f32[4,2]");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, good, NULL));
  succeed(oxla_compile(run));
  refuse_about(oxla_execute(run), wrong, OXLA_ABOUT_NOTHING, "input 'x' is not set");
  succeed(oxla_get_output(run, "y", &t));
  ck_assert_int_eq(t.dims[0], 2);
  run_affine(run, 2, 0); /* the run can still be used */
  oxla_run_destroy(run);
  oxla_run_destroy(NULL);
  oxla_model_destroy(model);
  oxla_model_destroy(NULL);
}
END_TEST

/* Calls functions with NULL for arguments that must not be NULL. */
START_TEST(nothing_given) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, 0), *no_model = model;
  oxla_run *run = new_run(model), *no_run = run;
  oxla_tensor t;
  int number;
  char *text;
  void *bytes;
  size_t size;
  oxla_event *event;
  oxla_error *const refused[] = {oxla_load("model.onnx", NULL, NULL),
                                 oxla_load_memory(NULL, 0, NULL, &no_model),
                                 oxla_input_type(NULL, 0, &t),
                                 oxla_input_type(model, 0, NULL),
                                 oxla_output_type(NULL, 0, &t),
                                 oxla_save(NULL, "file"),
                                 oxla_save(model, NULL),
                                 oxla_save_memory(NULL, &bytes, &size),
                                 oxla_save_memory(model, NULL, &size),
                                 oxla_check(NULL),
                                 oxla_survey(NULL, 0, NULL, NULL, NULL),
                                 oxla_survey(m.bytes, m.n, NULL, NULL, NULL),
                                 oxla_run_create(NULL, &no_run),
                                 oxla_run_create(model, NULL),
                                 oxla_set_input(NULL, "x", OXLA_FLOAT, DIMS(1), W),
                                 oxla_set_input_at(NULL, 0, OXLA_FLOAT, DIMS(1), W),
                                 oxla_keep_inputs(NULL),
                                 oxla_set_output(NULL, "y", NULL, 0),
                                 oxla_set_output_at(NULL, 0, NULL, 0),
                                 oxla_set_seed(NULL, 0),
                                 oxla_set_max_seconds(NULL, 0),
                                 oxla_compile(NULL),
                                 oxla_compile_ranges(NULL),
                                 oxla_execute(NULL),
                                 oxla_get_output(NULL, "y", &t),
                                 oxla_get_output(run, "y", NULL),
                                 oxla_get_output_at(NULL, 0, &t),
                                 oxla_take_output(NULL, &t),
                                 oxla_take_output(run, NULL),
                                 oxla_start(NULL, NULL, NULL, &event),
                                 oxla_event_wait(NULL, 0, &number),
                                 oxla_profile(NULL, 0, 0, OXLA_PROFILE_JSON, &text),
                                 oxla_profile(run, 0, 0, OXLA_PROFILE_JSON, NULL),
                                 oxla_onnx_versions(NULL, &number)};
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    refuse_about(refused[k], OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "");
  }
  ck_assert_ptr_null(no_model);
  ck_assert_ptr_null(no_run);
  ck_assert_uint_eq(oxla_input_count(NULL) + oxla_output_count(NULL) + oxla_initializer_count(NULL), 0);
  ck_assert_ptr_null(oxla_input_name(NULL, 0));
  ck_assert_ptr_null(oxla_output_name(NULL, 0));
  ck_assert_ptr_null(oxla_input_dim_name(NULL, 0, 0));
  ck_assert_ptr_null(oxla_metadata(NULL, "key"));
  oxla_cancel(NULL, 1);
  oxla_free_output(NULL, &t);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(wrong_models) {
  oxla_model *model = (oxla_model *)&model;
  message m = affine_model(W, B);
  refuse_about(oxla_load("nobody.onnx", NULL, &model), OXLA_IO, OXLA_ABOUT_NOTHING, "nobody.onnx");
  ck_assert_ptr_null(model);
  refuse_about(oxla_load(NULL, NULL, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "neither");
  refuse_about(oxla_load_memory(m.bytes, m.n, NULL, NULL), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "");
  refuse_about(oxla_load_memory(m.bytes, m.n - 3, NULL, &model), OXLA_INVALID_FILE, OXLA_ABOUT_NOTHING, "");
  refuse_about(oxla_load_memory(m.bytes, m.n, &(oxla_options){.size = sizeof(oxla_options), .threads = -1}, &model),
               OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "negative");
  m = unary_model("Relu", 1, DIMS(2), 1000);
  refuse_about(oxla_load_memory(m.bytes, m.n, NULL, &model), OXLA_UNSUPPORTED, OXLA_ABOUT_VERSION, "1000");
  m = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  succeed(oxla_load_memory(m.bytes, m.n, NULL, &model));
  refuse_about(oxla_check(model), OXLA_UNSUPPORTED, OXLA_ABOUT_OPERATOR, "NoSuchOperator");
  oxla_run *run = new_run(model);
  oxla_error *error = oxla_compile(run);
  ck_assert_str_eq(oxla_error_node(error), "NoSuchOperator that makes \"y\"");
  refuse_about(error, OXLA_UNSUPPORTED, OXLA_ABOUT_OPERATOR, "NoSuchOperator");
  ck_assert_str_eq(oxla_error_node(NULL), "");
  ck_assert_str_eq(oxla_error_message(NULL), "");
  ck_assert_int_eq(oxla_error_code(NULL), OXLA_OK);
  oxla_error_free(NULL);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Options of a program that was built with an older header end before the newer fields. */
START_TEST(short_options) {
  message m = affine_model(NULL, NULL);
  oxla_options o = {.size = offsetof(oxla_options, constants), .backend = backends[_i], .n_constants = 1000};
  oxla_model *model;
  succeed(oxla_load_memory(m.bytes, m.n, &o, &model));
  ck_assert_uint_eq(oxla_input_count(model), 3);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(constants) {
  message m = affine_model(NULL, NULL);
  oxla_constant c[] = {{"w", OXLA_FLOAT, 1, (int64_t[]){4}, W}, {"b", OXLA_FLOAT, 1, (int64_t[]){4}, B}};
  oxla_options o = {.size = sizeof o, .backend = backends[_i], .constants = c, .n_constants = 2};
  oxla_model *model;
  succeed(oxla_load_memory(m.bytes, m.n, &o, &model));
  ck_assert_uint_eq(oxla_input_count(model), 1);
  oxla_run *run = new_run(model);
  run_affine(run, 3, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  c[1].name = "nobody";
  refuse_about(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NAME, "nobody");
  c[1].name = "w"; /* given twice */
  refuse_about(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NAME, "'w'");
  c[1].name = "b";
  c[1].data = NULL;
  refuse_about(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "no data");
  c[1].data = B;
  c[1].type = OXLA_INT32;
  refuse_about(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_TYPE, "s32");
  c[1].type = OXLA_FLOAT;
  c[1].dims = (int64_t[]){5};
  refuse_about(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_SHAPE, "f32[5]");
}
END_TEST

/* A constant replaces the initializer of an input since IR version 4; before, initializers are no defaults.  One of the
 * defaults is not replaced, and stays a constant. */
START_TEST(constants_replace_defaults) {
  static const float other[] = {9, 9, 9, 9};
  oxla_constant c = {"w", OXLA_FLOAT, 1, (int64_t[]){4}, W};
  oxla_options o = {.size = sizeof o, .backend = backends[_i], .constants = &c, .n_constants = 1};
  for (int ir = 3; ir <= 4; ir++) {
    message g = affine_message(other, B), m;
    oxla_model *model;
    add_value(&g, GRAPH_INPUT, "w", 1, DIMS(4));
    add_value(&g, GRAPH_INPUT, "b", 1, DIMS(4));
    m = finish_model(&g, ir, 8);
    if (ir == 3) {
      refuse_about(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NAME, "'w'");
      continue;
    }
    succeed(oxla_load_memory(m.bytes, m.n, &o, &model));
    ck_assert_uint_eq(oxla_input_count(model), 1);
    ck_assert_uint_eq(oxla_initializer_count(model), 2);
    oxla_run *run = new_run(model);
    run_affine(run, 3, 0);
    oxla_run_destroy(run);
    oxla_model_destroy(model);
  }
}
END_TEST

/* Executes the run, and copies its output y to `out`, which has room for 100 numbers. */
static void draw(oxla_run *run, float *out) {
  oxla_tensor y;
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_uint_eq(y.bytes, 100 * sizeof *out);
  memcpy(out, y.data, y.bytes);
}

START_TEST(seeds) {
  enum { BYTES = 100 * sizeof(float) };
  message m = unary_model("RandomUniformLike", 1, DIMS(100), 22);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model), *other = new_run(model);
  float x[100] = {0}, y[5][100];
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(100), x));
  succeed(oxla_set_input(other, "x", OXLA_FLOAT, DIMS(100), x));
  draw(run, y[0]); /* without a seed, every execution draws other numbers */
  draw(run, y[1]);
  draw(other, y[2]);
  succeed(oxla_set_seed(run, 7));
  draw(run, y[3]);
  succeed(oxla_set_seed(run, 8));
  draw(run, y[4]);
  for (int k = 0; k < 5; k++) {
    for (int j = 0; j < k; j++) {
      ck_assert_mem_ne(y[j], y[k], BYTES);
    }
  }
  succeed(oxla_set_seed(other, 7));
  draw(other, y[0]);
  draw(other, y[1]);
  ck_assert_mem_eq(y[0], y[3], BYTES);
  ck_assert_mem_eq(y[1], y[3], BYTES);
  oxla_run_destroy(run);
  oxla_run_destroy(other);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(saves_and_loads) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i), *loaded;
  oxla_run *run = new_run(model);
  char path[] = "api-XXXXXX";
  int fd = mkstemp(path);
  ck_assert(fd >= 0);
  close(fd);
  refuse_about(oxla_save(model, path), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING, "nothing has been compiled");
  run_affine(run, 2, 0);
  run_affine(run, 5, 0);
  succeed(oxla_save(model, path));
  refuse_about(oxla_save(model, "no/such/folder/file"), OXLA_IO, OXLA_ABOUT_NOTHING, "no/such/folder");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  memset(m.bytes, 0xff, m.n); /* the compiled file does not need the model */
  succeed(oxla_load(path, NULL, &loaded));
  succeed(oxla_check(loaded));
  ck_assert_str_eq(oxla_input_name(loaded, 0), "x");
  run = new_run(loaded);
  run_affine(run, 5, 0);
  run_affine(run, 2, 0);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){3, 4}, (float[12]){0}));
  succeed(oxla_execute(run)); /* the second compilation was for all sizes */
  run_affine(run, 2, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(loaded);
  unlink(path);
}
END_TEST

/* A program that was compiled ahead of time for a range of sizes serves the sizes in it and no others, in the session
 * and after it was saved and loaded. */
START_TEST(ranges) {
  message m = affine_model(W, B);
  oxla_options o = {
      .size = sizeof o, .backend = backends[_i], .cache = "", .ranges = &(oxla_range){"n", 2, 6}, .n_ranges = 1};
  oxla_model *model, *loaded;
  oxla_tensor y;
  void *bytes;
  size_t size;
  float x[7 * 4] = {0};
  succeed(oxla_load_memory(m.bytes, m.n, &o, &model));
  oxla_run *run = new_run(model);
  succeed(oxla_compile_ranges(run));
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_int_eq(y.dims[0], 6); /* there is no input yet, so this is the largest size of the range */
  run_affine(run, 3, 0);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){7, 4}, x));
  refuse_about(oxla_execute(run), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_SHAPE, "'n', is outside of the range 2 to 6");
  succeed(oxla_save_memory(model, &bytes, &size));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  succeed(oxla_load_memory(bytes, size, NULL, &loaded));
  run = new_run(loaded);
  for (int rows = 2; rows <= 6; rows++) {
    run_affine(run, rows, 0);
  }
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1, 4}, x));
  refuse_about(oxla_execute(run), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_SHAPE, "range of n");
  oxla_run_destroy(run);
  oxla_model_destroy(loaded);
  oxla_free(bytes);
  o.ranges = &(oxla_range){"n", 6, 2};
  refuse(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, "the range of dimension 'n' is 6 to 2");
  o.ranges = NULL;
  refuse(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, "the list is NULL");
}
END_TEST

/* Counts the lines of the log that say that a tuned program has replaced another one. */
static void count_changes(void *data, oxla_log_level level, const char *line) {
  (void)level;
  *(int *)data += strncmp(line, "changed over", 12) == 0;
}

/* A product is tuned after its first execution; the next execution of the same run uses the tuned program. */
START_TEST(tuned_in_the_background) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"m\" { entry main(%x: f32[1024,512] \"x\") {\n"
      "%i = iota() {dimension=0} : f32[262144]\n%s = sine(%i) : f32[262144]\n"
      "%w = reshape(%s) : f32[512,512]\n"
      "%d = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : "
      "f32[1024,512]\nreturn %d \"y\" } }";
  enum { N = 1024 * 512 };
  static float x[N], first[N];
  oxla_model *model;
  oxla_tensor y;
  int changes = 0;
  for (int k = 0; k < N; k++) {
    x[k] = (float)(k % 7) - 3;
  }
  succeed(oxla_load_memory(text, sizeof text - 1,
                           &(oxla_options){.size = sizeof(oxla_options),
                                           .threads = 2,
                                           .tune = "fast",
                                           .cache = "",
                                           .log = count_changes,
                                           .log_data = &changes},
                           &model));
  oxla_run *run = new_run(model);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1024, 512}, x));
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &y));
  memcpy(first, y.data, sizeof first);
  oxla_await_tuned(model);
  ck_assert_int_eq(changes, 1);
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &y));
  for (int k = 0; k < N; k++) { /* the sums are of 512 products of at most 3, in another order */
    ck_assert_float_eq_tol(((const float *)y.data)[k], first[k], 1e-3f);
  }
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  oxla_await_tuned(NULL);
}
END_TEST

/* A profile executes the model, and its text has the times. */
START_TEST(profiles) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float x[4] = {1, 2, 3, 4}, want[4];
  char *text;
  oxla_tensor y;
  refuse_about(oxla_profile(run, 0, 1, OXLA_PROFILE_JSON, &text), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING,
               "'x' is not set");
  ck_assert_ptr_null(text);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1, 4}, x));
  refuse_about(oxla_profile(run, -1, 1, OXLA_PROFILE_JSON, &text), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING,
               "negative");
  refuse_about(oxla_profile(run, 0, 1, (oxla_profile_format)7, &text), OXLA_INVALID_ARGUMENT, OXLA_ABOUT_NOTHING,
               "7 is not a format");
  succeed(oxla_profile(run, 1, 3, OXLA_PROFILE_JSON, &text));
  ck_assert_msg(strstr(text, "\"runs\": 3") && strstr(text, "\"operators\": ["), "%s", text);
  oxla_free(text);
  affine(1, x, W, B, want);
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_mem_eq(y.data, want, sizeof want);
  succeed(oxla_profile(run, 0, 0, OXLA_PROFILE_TRACE, &text));
  ck_assert_msg(strstr(text, "\"traceEvents\": ["), "%s", text);
  oxla_free(text);
  oxla_free(NULL);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  const TTest *const once[] = {room_for_the_compiler, nothing_given,           wrong_models, in_many_shapes,
                               keeps_programs,        tuned_in_the_background, NULL};
  const TTest *const both[] = {describes,    runs_in_several_shapes, callers_outputs, overlapping_memory,
                               wrong_inputs, short_options,          constants,       constants_replace_defaults,
                               seeds,        saves_and_loads,        ranges,          profiles,
                               NULL};
  return run_tests("api", once, both);
}
