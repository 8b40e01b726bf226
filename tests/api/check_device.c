/* check_device.c - inputs and outputs in the memory of a model's device, and as DLPack's tensors: on the emulator, on
 * CUDA by a driver that works on the host (module_fake_cuda.c), whose memory the host cannot touch either, and on the
 * host itself. */
#include "../fake_driver.h"
#include "api_client.h"
#include "dlpack.h"

enum { ROWS = 5, ELEMENTS = 4 * ROWS, BYTES = ELEMENTS * 4 };

static const struct {
  const char *backend, *cpu;
  oxla_device device;
} devices[] = {{"gpu:host", NULL, {OXLA_DEVICE_OTHER, 0}},
               {"gpu:1", "host", {OXLA_DEVICE_CUDA, 1}},
               {"cpu", NULL, {OXLA_DEVICE_HOST, 0}}};
enum { N_DEVICES = sizeof devices / sizeof *devices };

static void setup(void) {
  use_fake_driver();
  setenv("FAKE_CUDA_DEVICES", "2", 1);
}

static oxla_model *load_on(const message *m, int device) {
  return load_with(m, (oxla_options){.backend = devices[device].backend, .cpu = devices[device].cpu});
}

static void *new_memory(oxla_model *m, const void *contents) {
  void *memory = NULL;
  succeed(oxla_device_allocate(m, BYTES, &memory));
  succeed(oxla_device_copy(m, OXLA_TO_DEVICE, memory, contents, BYTES));
  return memory;
}

/* Fails unless these bytes of the device are the numbers. */
static void check_memory(oxla_model *m, const void *memory, const float *want) {
  float got[ELEMENTS] = {0};
  succeed(oxla_device_copy(m, OXLA_FROM_DEVICE, got, memory, BYTES));
  for (int k = 0; k < ELEMENTS; k++) {
    ck_assert_msg(got[k] == want[k], "element %d is %g, not %g", k, (double)got[k], (double)want[k]);
  }
}

START_TEST(the_device_is_told) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  oxla_device d;
  succeed(oxla_model_device(m, &d));
  ck_assert_int_eq(d.type, devices[_i].device.type);
  ck_assert_int_eq(d.id, devices[_i].device.id);
  refuse(oxla_device_copy(m, (oxla_copy)4, &d, &d, 1), OXLA_INVALID_ARGUMENT, "direction");
  oxla_model_destroy(m);
}
END_TEST

START_TEST(arrays_stay_on_the_device) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  numbers v = make_numbers(ROWS, 1), next = make_numbers(ROWS, 40);
  void *x = new_memory(m, v.x), *y = new_memory(m, v.x);
  oxla_run *run = new_run(m);
  succeed(oxla_set_device_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){ROWS, 4}, x));
  succeed(oxla_set_device_output_at(run, 0, y, BYTES));
  succeed(oxla_execute(run));
  oxla_tensor t;
  succeed(oxla_get_output_at(run, 0, &t));
  ck_assert_ptr_eq(t.data, y);
  check_memory(m, y, v.want);
  succeed(oxla_device_copy(m, OXLA_TO_DEVICE, x, next.x, BYTES)); /* new contents at the same address */
  succeed(oxla_keep_inputs(run));
  succeed(oxla_execute(run));
  check_memory(m, y, next.want);
  succeed(oxla_set_device_output_at(run, 0, NULL, 0)); /* the output is again in memory of the run */
  succeed(oxla_execute(run));
  succeed(oxla_get_output_at(run, 0, &t));
  ck_assert_ptr_ne(t.data, y);
  check_memory(m, t.data, next.want);
  set_affine(run, &v, ROWS); /* the input is again in host memory */
  succeed(oxla_set_output_at(run, 0, NULL, 0));
  succeed(oxla_execute(run));
  check_result(run, &v, ROWS);
  oxla_run_destroy(run);
  oxla_free_output(m, x);
  oxla_free_output(m, y);
  oxla_model_destroy(m);
  free_numbers(&v);
  free_numbers(&next);
}
END_TEST

/* Inputs and outputs that are not aligned as kernels need give right results, too. */
START_TEST(any_alignment_is_right) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  numbers v = make_numbers(ROWS, 3);
  char *x, *y;
  succeed(oxla_device_allocate(m, BYTES + 4, (void **)&x));
  succeed(oxla_device_allocate(m, BYTES + 8, (void **)&y));
  succeed(oxla_device_copy(m, OXLA_TO_DEVICE, x + 4, v.x, BYTES));
  oxla_run *run = new_run(m);
  succeed(oxla_set_device_input_at(run, 0, OXLA_FLOAT, 2, (int64_t[]){ROWS, 4}, x + 4));
  succeed(oxla_set_device_output(run, oxla_output_name(m, 0), y + 8, BYTES));
  succeed(oxla_execute(run));
  check_memory(m, y + 8, v.want);
  oxla_run_destroy(run);
  oxla_model_destroy(m); /* frees x and y */
  free_numbers(&v);
}
END_TEST

START_TEST(overlaps_and_wrong_sizes_are_refused) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  numbers v = make_numbers(ROWS, 3);
  char *x = new_memory(m, v.x);
  oxla_run *run = new_run(m);
  refuse(oxla_set_device_input(run, "z", OXLA_FLOAT, 2, (int64_t[]){ROWS, 4}, x), OXLA_INVALID_ARGUMENT, "'z'");
  refuse(oxla_set_device_input(run, "x", OXLA_DOUBLE, 2, (int64_t[]){ROWS, 4}, x), OXLA_INVALID_ARGUMENT, "f64");
  succeed(oxla_set_device_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){ROWS, 4}, x));
  succeed(oxla_set_device_output_at(run, 0, x + 4, BYTES));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "");
  succeed(oxla_set_device_output_at(run, 0, x + BYTES, BYTES - 4));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "but the given memory has");
  oxla_run_destroy(run);
  oxla_model_destroy(m);
  free_numbers(&v);
}
END_TEST

/* How many elements the result of NonZero has is known only after it has run.  Arrays in a device's memory are not cut
 * to such a size. */
START_TEST(computed_sizes_are_for_the_host) {
  message g = {.n = 0};
  add_node(&g, "NonZero", "x", NULL, "y");
  add_value(&g, GRAPH_INPUT, "x", OXLA_FLOAT, DIMS(ELEMENTS));
  add_value(&g, GRAPH_OUTPUT, "y", OXLA_INT64, DIMS(1, -1));
  message bytes = finish_model(&g, 8, 13);
  oxla_model *m = load_on(&bytes, _i);
  float values[ELEMENTS] = {0, 1, 0, 0, 5};
  void *x = new_memory(m, values);
  oxla_run *run = new_run(m);
  succeed(oxla_set_device_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){ELEMENTS}, x));
  succeed(oxla_execute(run)); /* the input may be in the device's memory */
  oxla_tensor y;
  succeed(oxla_get_output(run, "y", &y));
  ck_assert(y.dims[1] == 2 && ((int64_t *)y.data)[0] == 1 && ((int64_t *)y.data)[1] == 4);
  succeed(oxla_set_device_output(run, "y", NULL, 0));
  refuse(oxla_execute(run), OXLA_UNSUPPORTED, "in host memory only");
  oxla_run_destroy(run);
  oxla_model_destroy(m);
}
END_TEST

/* --- DLPack --- */

static int deleted;
static void count_deleted(DLManagedTensor *t) {
  (void)t;
  deleted++;
}

static DLManagedTensor tensor_of(void *data, oxla_device d, int64_t *shape, int64_t *strides) {
  return (DLManagedTensor){.dl_tensor = {.data = data,
                                         .device = {(int32_t)d.type, d.id},
                                         .ndim = 2,
                                         .dtype = {kDLFloat, 32, 1},
                                         .shape = shape,
                                         .strides = strides},
                           .deleter = count_deleted};
}

START_TEST(tensors_go_from_run_to_run) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  numbers v = make_numbers(ROWS, 2), twice = make_numbers(ROWS, 2);
  affine(ROWS, v.want, W, B, twice.want);
  int64_t shape[] = {ROWS, 4}, strides[] = {4, 1};
  void *x = new_memory(m, v.x);
  DLManagedTensor in = tensor_of((char *)x - 12, devices[_i].device, shape, strides), *out;
  in.dl_tensor.byte_offset = 12;
  oxla_run *run = new_run(m), *second = new_run(m);
  deleted = 0;
  succeed(oxla_set_input_dlpack(run, "x", &in));
  succeed(oxla_set_device_output_at(run, 0, NULL, 0));
  succeed(oxla_execute(run));
  succeed(oxla_take_output_dlpack(run, oxla_output_name(m, 0), &out));
  ck_assert_int_eq(out->dl_tensor.device.device_type, (int)devices[_i].device.type);
  ck_assert_int_eq(out->dl_tensor.device.device_id, devices[_i].device.id);
  ck_assert(out->dl_tensor.ndim == 2 && out->dl_tensor.shape[0] == ROWS && out->dl_tensor.strides[0] == 4);
  ck_assert(out->dl_tensor.dtype.code == kDLFloat && out->dl_tensor.dtype.bits == 32);
  check_memory(m, out->dl_tensor.data, v.want);
  ck_assert_int_eq(deleted, 0);
  oxla_run_destroy(run);
  ck_assert_int_eq(deleted, 1);
  succeed(oxla_set_input_dlpack(second, "x", out)); /* the run now owns the tensor */
  succeed(oxla_execute(second));
  check_result(second, &(numbers){v.want, twice.want}, ROWS);
  set_affine(second, &v, ROWS); /* frees the tensor */
  succeed(oxla_execute(second));
  succeed(oxla_take_output_dlpack(second, oxla_output_name(m, 0), &out));
  oxla_run_destroy(second);
  oxla_model_destroy(m);
  ck_assert_int_eq(out->dl_tensor.device.device_type, kDLCPU);
  for (int k = 0; k < ELEMENTS; k++) {
    ck_assert(((float *)out->dl_tensor.data)[k] == v.want[k]); /* the tensor is valid without the model */
  }
  out->deleter(out);
  free_numbers(&v);
  free_numbers(&twice);
}
END_TEST

/* A tensor is where the execution left it, wherever the next execution shall write the output. */
START_TEST(tensors_are_where_they_were_written) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  numbers v = make_numbers(ROWS, 2);
  DLManagedTensor *out;
  oxla_run *run = new_run(m);
  set_affine(run, &v, ROWS);
  succeed(oxla_set_device_output_at(run, 0, NULL, 0));
  succeed(oxla_execute(run));
  succeed(oxla_set_output(run, oxla_output_name(m, 0), NULL, 0)); /* the next output is for the host */
  succeed(oxla_take_output_dlpack(run, oxla_output_name(m, 0), &out));
  ck_assert_int_eq(out->dl_tensor.device.device_type, (int)devices[_i].device.type);
  ck_assert_int_eq(out->dl_tensor.device.device_id, devices[_i].device.id);
  check_memory(m, out->dl_tensor.data, v.want);
  out->deleter(out);
  oxla_run_destroy(run);
  oxla_model_destroy(m);
  free_numbers(&v);
}
END_TEST

START_TEST(other_tensors_are_refused) {
  message bytes = affine_model(W, B);
  oxla_model *m = load_on(&bytes, _i);
  numbers v = make_numbers(ROWS, 2);
  int64_t shape[] = {ROWS, 4}, columns[] = {1, ROWS};
  oxla_run *run = new_run(m);
  deleted = 0;
  DLManagedTensor t = tensor_of(v.x, (oxla_device){OXLA_DEVICE_HOST, 0}, shape, columns), *out;
  refuse(oxla_set_input_dlpack(run, "x", &t), OXLA_UNSUPPORTED, "not contiguous");
  t = tensor_of(v.x, (oxla_device){OXLA_DEVICE_CUDA, 7}, shape, NULL);
  refuse(oxla_set_input_dlpack(run, "x", &t), OXLA_INVALID_ARGUMENT, "on device 2:7");
  t = tensor_of(v.x, (oxla_device){OXLA_DEVICE_HOST, 0}, shape, NULL);
  t.dl_tensor.dtype.lanes = 2;
  refuse(oxla_set_input_dlpack(run, "x", &t), OXLA_UNSUPPORTED, "2 lanes");
  t.dl_tensor.dtype = (DLDataType){kDLInt, 32, 1};
  refuse(oxla_set_input_dlpack(run, "x", &t), OXLA_INVALID_ARGUMENT, "s32");
  refuse(oxla_take_output_dlpack(run, oxla_output_name(m, 0), &out), OXLA_INVALID_ARGUMENT, "has not been compiled");
  ck_assert_int_eq(deleted, 0); /* the tensors still belong to the caller */
  t = tensor_of(v.x, (oxla_device){OXLA_DEVICE_HOST, 0}, shape, NULL);
  succeed(oxla_set_input_dlpack(run, "x", &t));
  succeed(oxla_execute(run));
  check_result(run, &v, ROWS);
  oxla_run_destroy(run);
  ck_assert_int_eq(deleted, 1);
  oxla_model_destroy(m);
  free_numbers(&v);
}
END_TEST

/* Pages of a device's memory cannot be protected, so a checked run on a device is an error. */
START_TEST(accesses_are_checked_in_host_memory) {
  message bytes = affine_model(W, B);
  oxla_model *m =
      load_with(&bytes, (oxla_options){.backend = devices[_i].backend, .cpu = devices[_i].cpu, .check_memory = 1});
  numbers v = make_numbers(ROWS, 1);
  oxla_run *run = new_run(m);
  set_affine(run, &v, ROWS);
  if (devices[_i].device.type == OXLA_DEVICE_HOST) {
    succeed(oxla_execute(run));
    check_result(run, &v, ROWS);
  } else {
    refuse(oxla_execute(run), OXLA_UNSUPPORTED, "has memory of its own, to which accesses cannot be checked");
  }
  oxla_run_destroy(run);
  oxla_model_destroy(m);
  free_numbers(&v);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("device");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, the_device_is_told, 0, N_DEVICES);
  tcase_add_loop_test(t, arrays_stay_on_the_device, 0, N_DEVICES);
  tcase_add_loop_test(t, any_alignment_is_right, 0, N_DEVICES);
  tcase_add_loop_test(t, overlaps_and_wrong_sizes_are_refused, 0, N_DEVICES);
  tcase_add_loop_test(t, computed_sizes_are_for_the_host, 0, N_DEVICES - 1); /* all but the host */
  tcase_add_loop_test(t, tensors_go_from_run_to_run, 0, N_DEVICES);
  tcase_add_loop_test(t, tensors_are_where_they_were_written, 0, N_DEVICES);
  tcase_add_loop_test(t, other_tensors_are_refused, 0, N_DEVICES);
  tcase_add_loop_test(t, accesses_are_checked_in_host_memory, 0, N_DEVICES);
  return run_suite("device", t);
}
