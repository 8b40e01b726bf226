/* check_changed_files.c - files that are damaged, or written to while they are in use, on both backends. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "api_client.h"

/* Constants are usually read only when they are used.  With the option `verify`, loading compares them with their
 * checksums. */
START_TEST(verifies_constants) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i), *loaded;
  oxla_run *run = new_run(model);
  void *bytes;
  size_t size;
  run_affine(run, 1, 1);
  succeed(oxla_save_memory(model, &bytes, &size));
  oxla_options o = {.size = sizeof o, .verify = 1};
  succeed(oxla_load_memory(bytes, size, &o, &loaded));
  oxla_model_destroy(loaded);
  uint8_t *weights = memmem(bytes, size, W, sizeof W);
  ck_assert_ptr_nonnull(weights);
  char path[] = "/tmp/check-verify-XXXXXX";
  int fd = mkstemp(path);
  for (size_t k = 0; k < sizeof W; k += 5) {
    weights[k] ^= 0x40;
    refuse(oxla_load_memory(bytes, size, &o, &loaded), OXLA_INVALID_FILE, "the constants section is damaged");
    ck_assert_int_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
    refuse(oxla_load(path, &o, &loaded), OXLA_INVALID_FILE, "the constants section is damaged");
    weights[k] ^= 0x40;
  }
  close(fd);
  unlink(path);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  oxla_free(bytes);
}
END_TEST

/* --- files that are written to while they are in use --- */

enum { TICK = 20000 /* microseconds: longer than a tick of the clock that dates files */ };

/* Writes into the file that exists, as cp does, so that it is the same file afterwards. */
static void overwrite(const char *path, const void *bytes, size_t size) {
  usleep(TICK);
  FILE *out = fopen(path, "w");
  ck_assert_ptr_nonnull(out);
  ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
  fclose(out);
}

static oxla_model *load_file(const char *path, int backend) {
  oxla_model *model;
  succeed(oxla_load(path, &(oxla_options){.size = sizeof(oxla_options), .backend = backends[backend]}, &model));
  return model;
}

/* A small file is read once: when the file changes, the model stays as it was, also in new shapes. */
START_TEST(small_files_are_copied) {
  message m = affine_model(W, B), other = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  char path[] = "/tmp/check-small-XXXXXX";
  close(mkstemp(path));
  overwrite(path, m.bytes, m.n);
  oxla_model *model = load_file(path, _i);
  oxla_run *run = new_run(model);
  void *bytes;
  size_t size;
  run_affine(run, 1, 1);
  overwrite(path, other.bytes, other.n);
  run_affine(run, 1, 1);
  run_affine(run, 2, 1);
  overwrite(path, "", 0);
  run_affine(run, 3, 1);
  succeed(oxla_save_memory(model, &bytes, &size));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  overwrite(path, bytes, size);
  model = load_file(path, _i);
  run = new_run(model);
  run_affine(run, 3, 1);
  overwrite(path, "", 0);
  run_affine(run, 2, 1);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  oxla_free(bytes);
  unlink(path);
}
END_TEST

/* y = x + w, where w is so large that its file is mapped and not copied. */
enum { LARGE = 400000 };

static void run_large(oxla_run *run, oxla_code code, const char *part) {
  static float x[LARGE], y[LARGE];
  for (int k = 0; k < LARGE; k++) {
    x[k] = (float)(k % 1000);
    y[k] = 0;
  }
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(LARGE), x));
  succeed(oxla_set_output(run, "y", y, sizeof y));
  oxla_error *error = oxla_execute(run);
  if (code) {
    refuse(error, code, part);
    return;
  }
  succeed(error);
  for (int k = 0; k < LARGE; k++) {
    ck_assert_float_eq(y[k], (float)(k % 1000 + k % 777));
  }
}

static void save_large(const char *path, int backend) {
  static float w[LARGE];
  for (int k = 0; k < LARGE; k++) {
    w[k] = (float)(k % 777);
  }
  message g = {.n = 0};
  add_node(&g, "Add", "x", "w", "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(LARGE));
  add_value(&g, GRAPH_INPUT, "w", 1, DIMS(LARGE));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(LARGE));
  message m = finish_model(&g, 8, 13);
  const oxla_constant c = {"w", OXLA_FLOAT, 1, (int64_t[]){LARGE}, w};
  oxla_model *model = load_with(&m, (oxla_options){.backend = backends[backend], .constants = &c, .n_constants = 1});
  oxla_run *run = new_run(model);
  run_large(run, OXLA_OK, "");
  succeed(oxla_save(model, path));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}

/* A large file is mapped: if it is written to, the next execution fails, and if another file takes its place, nothing
 * changes. */
START_TEST(large_files_are_watched) {
  char path[] = "/tmp/check-large-XXXXXX", other[] = "/tmp/check-other-XXXXXX";
  close(mkstemp(path));
  close(mkstemp(other));
  save_large(path, _i);
  oxla_model *model = load_file(path, _i);
  oxla_run *run = new_run(model);
  run_large(run, OXLA_OK, "");
  overwrite(other, "nothing of worth", 16);
  ck_assert_int_eq(rename(other, path), 0);
  run_large(run, OXLA_OK, "");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  for (int shorter = 0; shorter < 2; shorter++) {
    save_large(path, _i);
    model = load_file(path, _i);
    run = new_run(model);
    run_large(run, OXLA_OK, "");
    usleep(TICK);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(shorter ? ftruncate(fd, 5000) : (int)pwrite(fd, "1234", 4, 1 << 20), shorter ? 0 : 4);
    close(fd);
    run_large(run, OXLA_IO, "was written to while it is in use");
    oxla_run_destroy(run);
    oxla_model_destroy(model);
  }
  unlink(path);
}
END_TEST

int main(void) {
  const TTest *const once[] = {NULL};
  const TTest *const both[] = {verifies_constants, small_files_are_copied, large_files_are_watched, NULL};
  return run_tests("changed-files", once, both);
}
