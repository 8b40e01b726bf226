/* check_code_cache.c - code that the driver of a device has compiled is kept in the cache folder: the next session
 * compiles nothing, another version of the driver compiles again, and damaged files do no harm.  The driver works on
 * the host and counts what it compiles (tests/unit/backend_gpu/module_fake_cuda.c). */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "../fake_driver.h"
#include "api_client.h"

static const char *driver;
static char folder[] = "/tmp/check-code-XXXXXX";

static void setup(void) {
  driver = use_fake_driver();
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static uint64_t compilations(void) {
  uint64_t (*ask)(void);
  void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
  ck_assert_ptr_nonnull(library);
  *(void **)&ask = dlsym(library, "fake_cuda_compilations");
  return ask(); /* the library stays open, so that it goes on counting */
}

/* Runs the model in the bytes in a session of its own, and returns how many compilations the driver did for that. */
static uint64_t run_session(const void *bytes, size_t size, const char *backend, const char *cache,
                            uint64_t cache_bytes) {
  uint64_t before = compilations();
  oxla_options o = {.size = sizeof o,
                    .backend = backend,
                    .cpu = "host",
                    .cache = cache,
                    .cache_bytes = cache_bytes,
                    .tune = "off",
                    .specialise = "off"};
  oxla_model *model;
  succeed(oxla_load_memory(bytes, size, &o, &model));
  oxla_run *run = new_run(model);
  run_affine(run, 3, 1);
  run_affine(run, 3, 2);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  return compilations() - before;
}

START_TEST(the_next_session_compiles_nothing) {
  message m = affine_model(W, B);
  uint64_t all = run_session(m.bytes, m.n, "gpu", folder, 0);
  ck_assert_uint_ge(all, 1);
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", folder, 0), 0);
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu:1", folder, 0), all); /* another GPU */
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu:1", folder, 0), 0);
  setenv("FAKE_CUDA_VERSION", "12050", 1);
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", folder, 0), all);
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", folder, 0), 0);
  setenv("FAKE_CUDA_VERSION", "12040", 1);
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", folder, 0), 0);
  ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", "", 0), all);
}
END_TEST

static void compile_file(void **bytes, size_t *size) {
  message m = affine_model(W, B);
  oxla_model *model = load_with(&m, (oxla_options){.backend = "gpu", .cpu = "host", .cache = ""});
  oxla_run *run = new_run(model);
  run_affine(run, 3, 1);
  succeed(oxla_save_memory(model, bytes, size));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}

/* The folder gets no program of a compiled file that is loaded, but it gets the code that the driver compiles from
 * it. */
START_TEST(compiled_files_too) {
  void *bytes;
  size_t size;
  compile_file(&bytes, &size);
  uint64_t all = run_session(bytes, size, NULL, folder, 0);
  ck_assert_uint_ge(all, 1);
  ck_assert_uint_eq(run_session(bytes, size, NULL, folder, 0), 0);
  oxla_free(bytes);
}
END_TEST

/* If the folder's limit is too small for the code, the code is deleted when the session is over. */
START_TEST(code_counts_as_part_of_the_folder) {
  void *bytes;
  size_t size;
  compile_file(&bytes, &size);
  for (int k = 0; k < 2; k++) {
    ck_assert_uint_ge(run_session(bytes, size, NULL, folder, 1), 1);
  }
  oxla_free(bytes);
}
END_TEST

/* Changes a byte after the header of the cubin, or cuts the file off there. */
static void damage(const char *path, bool cut) {
  static const char magic[] = "\177ELF";
  static char bytes[1 << 20];
  FILE *f = fopen(path, "r+");
  ck_assert_ptr_nonnull(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  const char *cubin = memmem(bytes, n, magic, sizeof magic - 1);
  ck_assert_ptr_nonnull(cubin);
  long at = cubin - bytes + 70;
  ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
  ck_assert_int_ne(fputc(cubin[70] ^ 1, f), EOF);
  fclose(f);
  ck_assert_int_eq(cut ? truncate(path, at) : 0, 0);
}

START_TEST(damaged_files_do_no_harm) {
  char pattern[200];
  message m = affine_model(W, B);
  uint64_t all = run_session(m.bytes, m.n, "gpu", folder, 0);
  snprintf(pattern, sizeof pattern, "%s/programs/models/*/*.code", folder);
  for (int k = 0; k < 2; k++) {
    glob_t files;
    ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
    ck_assert_uint_eq(files.gl_pathc, all);
    for (size_t i = 0; i < files.gl_pathc; i++) {
      damage(files.gl_pathv[i], k);
    }
    globfree(&files);
    ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", folder, 0), all);
    ck_assert_uint_eq(run_session(m.bytes, m.n, "gpu", folder, 0), 0);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("code cache");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, the_next_session_compiles_nothing);
  tcase_add_test(t, compiled_files_too);
  tcase_add_test(t, damaged_files_do_no_harm);
  tcase_add_test(t, code_counts_as_part_of_the_folder);
  return run_suite("code cache", t);
}
