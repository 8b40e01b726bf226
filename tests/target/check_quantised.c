/* check_quantised.c - quantised networks on both targets: products of bytes, lookup tables, small weights. */
#include <stdio.h>
#include <string.h>

#include "tests/target/text_case.h"

/* Quantisation of numbers halfway between two integers, of numbers far out of range, infinities and NaN, by a constant
 * scale, by a scale for each row and by a computed scale, with constant and computed zero points. */
START_TEST(quantised) {
  static const struct {
    const char *type, *low, *high, *zero;
  } types[] = {{"u8", "0", "255", "7"},
               {"s8", "-128", "127", "-3"},
               {"u16", "0", "65535", "30001"},
               {"s16", "-32768", "32767", "0"}};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    char params[200], body[2400];
    snprintf(params, sizeof params, "%%0: f32[3,67] \"x\", %%1: f32[3,67] \"y\", %%2: %s[] \"z\", %%3: f32[] \"s\"",
             types[k].type);
    snprintf(body, sizeof body,
             "%%4 = round-nearest-even(%%0) : f32[3,67]\n%%5 = round-nearest-even(%%1) : f32[3,67]\n%%6 = divide(%%4, "
             "%%5) : f32[3,67]\n"
             "%%7 = constant() {value=f32[] 0.125} : f32[]\n%%8 = broadcast(%%7) {dimensions=[]} : f32[3,67]\n"
             "%%9 = constant() {value=f32[] 0.003} : f32[]\n%%10 = broadcast(%%9) {dimensions=[]} : f32[3,67]\n"
             "%%11 = constant() {value=f32[3] {0.25, 3e-5, 0.7}} : f32[3]\n%%12 = broadcast(%%11) {dimensions=[0]} : "
             "f32[3,67]\n"
             "%%13 = broadcast(%%3) {dimensions=[]} : f32[3,67]\n%%14 = constant() {value=f32[] %1$s} : f32[]\n"
             "%%15 = constant() {value=f32[] %2$s} : f32[]\n%%16 = constant() {value=f32[] %3$s} : f32[]\n"
             "%%17 = broadcast(%%16) {dimensions=[]} : f32[3,67]\n%%18 = convert(%%2) {saturate=true, "
             "rounding=nearest} : f32[]\n"
             "%%19 = broadcast(%%18) {dimensions=[]} : f32[3,67]\n",
             types[k].low, types[k].high, types[k].zero);
    int last = 19, results[4];
    const int divisors[] = {8, 10, 12, 13}, zeros[] = {17, 17, 19, 0};
    for (int j = 0; j < 4; j++) {
      size_t n = strlen(body);
      n += (size_t)snprintf(body + n, sizeof body - n, "%%%d = divide(%%6, %%%d) : f32[3,67]\n", last + 1, divisors[j]);
      n += (size_t)snprintf(body + n, sizeof body - n, "%%%d = round-nearest-even(%%%d) : f32[3,67]\n", last + 2,
                            last + 1);
      last += 2;
      if (zeros[j]) {
        n += (size_t)snprintf(body + n, sizeof body - n, "%%%d = add(%%%d, %%%d) : f32[3,67]\n", last + 1, last,
                              zeros[j]);
        last++;
      }
      n += (size_t)snprintf(body + n, sizeof body - n, "%%%d = clamp(%%14, %%%d, %%15) : f32[3,67]\n", last + 1, last);
      snprintf(body + n, sizeof body - n, "%%%d = convert(%%%d) {saturate=true, rounding=nearest} : %s[3,67]\n",
               last + 2, last + 1, types[k].type);
      last += 2;
      results[j] = last;
    }
    char outputs[100];
    snprintf(outputs, sizeof outputs, "%%%d \"a\", %%%d \"b\", %%%d \"c\", %%%d \"d\"", results[0], results[1],
             results[2], results[3]);
    check_body(params, body, outputs, 0, -9, 9);
  }
}
END_TEST

/* Quantisation of the same numbers by a scale that the same kernel computes from each row, or from all rows, as
 * DynamicQuantizeLinear does: the largest number, which is positive, and the least one, which is negative. */
START_TEST(quantised_by_rows) {
  static const char *const types[] = {"u8", "s8", "u16", "s16"};
  for (size_t k = 0; k < 4 * sizeof types / sizeof *types; k++) {
    const char *t = types[k / 4], *reducer = k % 2 ? "minimum" : "maximum";
    bool all = k / 2 % 2;
    const char *scale = all ? "f32[]" : "f32[3]";
    char params[200], body[1200];
    snprintf(params, sizeof params, "%%0: f32[3,67] \"x\", %%1: f32[3,67] \"y\", %%2: %s[] \"z\"", t);
    snprintf(body, sizeof body,
             "%%3 = round-nearest-even(%%0) : f32[3,67]\n%%4 = round-nearest-even(%%1) : f32[3,67]\n"
             "%%5 = divide(%%3, %%4) : f32[3,67]\n"
             "%%6 = reduce(%%1) {dimensions=[%s], reducer=%s} : %s\n%%7 = constant() {value=f32[] 0.01} : f32[]\n"
             "%%8 = broadcast(%%7) {dimensions=[]} : %s\n%%9 = multiply(%%6, %%8) : %s\n"
             "%%10 = broadcast(%%9) {dimensions=[%s]} : f32[3,67]\n%%11 = divide(%%5, %%10) : f32[3,67]\n"
             "%%12 = round-nearest-even(%%11) : f32[3,67]\n%%13 = broadcast(%%2) {dimensions=[]} : %s[3,67]\n"
             "%%14 = convert(%%13) {saturate=true, rounding=nearest} : f32[3,67]\n"
             "%%15 = add(%%12, %%14) : f32[3,67]\n"
             "%%16 = convert(%%15) {saturate=true, rounding=nearest} : %s[3,67]\n",
             all ? "0,1" : "1", reducer, scale, scale, scale, all ? "" : "0", t, t);
    check_body(params, body, "%16 \"a\"", 0, -9, 9);
  }
}
END_TEST

/* Sums of products of bytes, and the operations that quantise them to bytes again: the library's rounding is exact. The
 * weights %%w and the array %%f are constants after folding. */
START_TEST(bytes) {
  static const char *const kinds[][3] = {
      /* the types of x and y, and the last instructions */
      {"u8", "u8",
       "%20 = round-nearest-even(%19) : f32[1,9,9,40]\n%21 = add(%20, %13) : f32[1,9,9,40]\n"
       "%22 = clamp(%4, %21, %5) : f32[1,9,9,40]\n"
       "%23 = convert(%22) {saturate=true, rounding=nearest} : u8[1,9,9,40]"},
      {"s8", "u8",
       "%20 = maximum(%19, %13) : f32[1,9,9,40]\n%21 = round-nearest-even(%20) : f32[1,9,9,40]\n"
       "%22 = clamp(%4, %21, %5) : f32[1,9,9,40]\n"
       "%23 = convert(%22) {saturate=true, rounding=nearest} : u8[1,9,9,40]"},
      {"s8", "f32", "%23 = add(%19, %13) : f32[1,9,9,40]"}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    char params[100], body[4000];
    snprintf(params, sizeof params, "%%0: %s[1,9,9,24] \"x\"", kinds[k][0]);
    snprintf(body, sizeof body,
             "%%4 = constant() {value=f32[] 0} : f32[]\n%%5 = constant() {value=f32[] 255} : f32[]\n"
             "%%6 = iota() {dimension=0} : s32[8640]\n%%7 = multiply(%%6, %%6) : s32[8640]\n"
             "%%8 = convert(%%7) {saturate=false, rounding=nearest} : s8[8640]\n%%9 = reshape(%%8) : s8[40,24,3,3]\n"
             "%%10 = iota() {dimension=0} : s32[40]\n"
             "%%11 = convert(%%10) {saturate=false, rounding=nearest} : f32[40]\n"
             "%%12 = constant() {value=f32[] 3} : f32[]\n%%13 = broadcast(%%12) {dimensions=[]} : f32[1,9,9,40]\n"
             "%%14 = convolution(%%0, %%9) " CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "1") " : s32[1,9,9,40]\n"
             "%%15 = broadcast(%%10) {dimensions=[3]} : s32[1,9,9,40]\n"
             "%%16 = add(%%14, %%15) : s32[1,9,9,40]\n"
             "%%17 = convert(%%16) {saturate=true, rounding=nearest} : f32[1,9,9,40]\n"
             "%%2 = constant() {value=f32[] 0x1p-14} : f32[]\n%%3 = broadcast(%%2) {dimensions=[]} : f32[40]\n"
             "%%24 = multiply(%%11, %%3) : f32[40]\n%%18 = broadcast(%%24) {dimensions=[3]} : f32[1,9,9,40]\n"
             "%%19 = multiply(%%17, %%18) : f32[1,9,9,40]\n%s",
             kinds[k][2]);
    check_body(params, body, "%23 \"y\"", 0, -1, 1);
  }
  check_body("%0: u8[33,70] \"x\"",
             "%1 = iota() {dimension=0} : s32[4480]\n%2 = multiply(%1, %1) : s32[4480]\n"
             "%3 = convert(%2) {saturate=false, rounding=nearest} : s8[4480]\n%4 = reshape(%3) : s8[70,64]\n"
             "%5 = dot(%0, %4) " MATMUL " : s32[33,64]",
             "%5 \"y\"", 0, -1, 1);
}
END_TEST

/* Activations of bytes by lookup tables: whole vectors and the elements after them, padding at the end, and two
 * results. */
START_TEST(looked_up) {
  static const char *const types[] = {"u8", "s8"};
  for (int k = 0; k < 2; k++) {
    char params[100], body[2000];
    snprintf(params, sizeof params, "%%0: %s[5,37,29] \"x\", %%1: u8[] \"p\"", types[k]);
    snprintf(body, sizeof body,
             "%%2 = constant() {value=f32[] 0.03125} : f32[]\n%%3 = broadcast(%%2) {dimensions=[]} : f32[5,37,29]\n"
             "%%4 = convert(%%0) {saturate=true, rounding=nearest} : f32[5,37,29]\n"
             "%%5 = multiply(%%4, %%3) : f32[5,37,29]\n"
             "%%6 = logistic(%%5) : f32[5,37,29]\n%%7 = multiply(%%6, %%5) : f32[5,37,29]\n"
             "%%8 = divide(%%7, %%3) : f32[5,37,29]\n"
             "%%9 = round-nearest-even(%%8) : f32[5,37,29]\n"
             "%%10 = convert(%%9) {saturate=true, rounding=nearest} : u8[5,37,29]\n"
             "%%11 = pad(%%10, %%1) {low=[0,1,1], high=[0,2,1], interior=[0,0,0]} : u8[5,40,31]\n"
             "%%12 = convert(%%9) {saturate=true, rounding=nearest} : s8[5,37,29]");
    check_body(params, body, "%11 \"y\", %12 \"z\"", 0, k ? -128 : 0, k ? 127 : 255);
  }
  check_body(
      "%0: pred[256] \"t\", %1: s8[256] \"u\", %2: u8[3,50] \"x\"",
      "%3 = convert(%2) {saturate=true, rounding=nearest} : s32[3,50]\n"
      "%4 = gather(%0, %3) {offset_dims=[], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
      "index_vector_dim=2, sizes=[1]} : pred[3,50]\n"
      "%5 = gather(%1, %3) {offset_dims=[], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
      "index_vector_dim=2, sizes=[1]} : s8[3,50]\n",
      "%4 \"y\", %5 \"z\"", 0, 0, 127);
}
END_TEST

/* Weight-only quantisation: scales for blocks or columns, with and without a zero point and a transpose, and operations
 * after the dot.  Not each weight but the sum of each block is scaled, so the roundings differ, in sums of at most 1600
 * products. */
START_TEST(small_weights) {
  static const struct {
    const char *type, *x, *y, *q, *matrix, *scales, *along, *contract;
    bool zero, turned;
  } kinds[] = {
      {"u4", "1,512", "1,512", "16,32,512", "512,512", "16,512", "0,2", "0", true, false},
      {"s4", "5,512", "5,528", "16,32,528", "512,528", "16,528", "0,2", "0", false, false},
      {"s4", "16,576", "16,512", "512,9,64", "512,576", "512,9", "0,1", "1", true, false},
      {"u2", "2,512", "2,512", "512,4,128", "512,512", "512,4", "0,1", "0", true, true},
      {"s8", "3,1600", "3,176", "1600,176", "1600,176", "176", "1", "0", false, false},
      {"u8", "7,513", "7,512", "512,513", "512,513", "512", "0", "1", true, false},
      {"s4", "1,513", "1,512", "513,512", "513,512", "512", "1", "0", false, false},
  };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const char *q = kinds[k].q, *along = kinds[k].along, *scales = kinds[k].scales, *y = kinds[k].y;
    char params[100], body[4000], zero[900], turn[200];
    snprintf(params, sizeof params, "%%0: f32[%s] \"x\"", kinds[k].x);
    snprintf(zero, sizeof zero,
             "%%20 = iota() {dimension=0} : s32[%s]\n%%21 = broadcast(%%20) {dimensions=[%s]} : s32[%s]\n"
             "%%22 = convert(%%13) {saturate=true, rounding=nearest} : s32[%s]\n"
             "%%23 = subtract(%%22, %%21) : s32[%s]\n",
             scales, along, q, q, q);
    snprintf(turn, sizeof turn, "%%29 = transpose(%%28) {permutation=[1,0]} : f32[%s]\n", kinds[k].matrix);
    snprintf(body, sizeof body,
             "%%9 = iota() {dimension=0} : s32[%s]\n%%10 = iota() {dimension=1} : s32[%s]\n"
             "%%11 = multiply(%%9, %%9) : s32[%s]\n%%12 = add(%%11, %%10) : s32[%s]\n"
             "%%13 = convert(%%12) {saturate=false, rounding=nearest} : %s[%s]\n%s"
             "%%24 = convert(%%%d) {saturate=true, rounding=nearest} : f32[%s]\n"
             "%%25 = iota() {dimension=0} : f32[%s]\n%%26 = cosine(%%25) : f32[%s]\n"
             "%%7 = broadcast(%%26) {dimensions=[%s]} : f32[%s]\n"
             "%%27 = multiply(%%24, %%7) : f32[%s]\n%%28 = reshape(%%27) : f32[%s]\n%s"
             "%%30 = dot(%%0, %%%d) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[%s]} : f32[%s]\n"
             "%%31 = constant() {value=f32[] 3} : f32[]\n%%32 = broadcast(%%31) {dimensions=[]} : f32[%s]\n"
             "%%33 = maximum(%%30, %%32) : f32[%s]",
             q, q, q, q, kinds[k].type, q, kinds[k].zero ? zero : "", kinds[k].zero ? 23 : 13, q, scales, scales, along,
             q, q, kinds[k].matrix, kinds[k].turned ? turn : "", kinds[k].turned ? 29 : 28, kinds[k].contract, y, y, y);
    check_body(params, body, "%33 \"y\"", 2e-5, -1, 1);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("quantised");
  tcase_set_timeout(t, 60); /* the machine may be busy */
  tcase_add_test(t, small_weights);
  tcase_add_test(t, looked_up);
  tcase_add_test(t, bytes);
  tcase_add_test(t, quantised);
  tcase_add_test(t, quantised_by_rows);
  return run_suite("quantised", t);
}
