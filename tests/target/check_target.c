/* check_target.c - combinations of operations, as networks have them and passes fuse them, on both targets.  Single
 * operations are in check_operations.c, quantised networks in check_quantised.c. */
#include <stdio.h>
#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "tests/target/text_case.h"

/* --- small copies of parts of real networks --- */

START_TEST(fusions) {
  check_body("%0: f32[1,32,14,14] \"x\", %1: f32[48] \"b\"",
             "%2 = iota() {dimension=0} : f32[48,32,3,3]\n%3 = cosine(%2) : f32[48,32,3,3]\n"
             "%4 = convolution(%0, %3) " CONV_FIRST("1,1", "1,1", "1,1", "1,1", "1,1", "1") " : f32[1,48,14,14]\n"
             "%5 = broadcast(%1) {dimensions=[1]} : f32[1,48,14,14]\n%6 = add(%4, %5) : f32[1,48,14,14]\n"
             "%7 = constant() {value=f32[] 0} : f32[]\n%8 = broadcast(%7) {dimensions=[]} : f32[1,48,14,14]\n"
             "%9 = maximum(%6, %8) : f32[1,48,14,14]\n"
             "%10 = iota() {dimension=1} : f32[48,48,1,1]\n%11 = sine(%10) : f32[48,48,1,1]\n"
             "%12 = convolution(%9, %11) " CONV_FIRST("1,1", "0,0", "0,0", "1,1", "1,1", "1") " : f32[1,48,14,14]\n"
             "%13 = add(%12, %9) : f32[1,48,14,14]\n%14 = maximum(%13, %8) : f32[1,48,14,14]\n"
             "%15 = reduce-window(%14) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,1,1], high=[0,0,1,1], "
             "rhs_dilation=[1,1,1,1], reducer=maximum} : f32[1,48,7,7]\n"
             "%16 = logistic(%15) : f32[1,48,7,7]\n%17 = multiply(%15, %16) : f32[1,48,7,7]\n"
             "%18 = reduce(%17) {dimensions=[2,3], reducer=add} : f32[1,48]\n"
             "%19 = iota() {dimension=0} : f32[48,500]\n%20 = cosine(%19) : f32[48,500]\n"
             "%21 = dot(%18, %20) " MATMUL " : f32[1,500]\n"
             "%22 = iota() {dimension=0} : f32[500]\n%23 = broadcast(%22) {dimensions=[1]} : f32[1,500]\n"
             "%24 = add(%21, %23) : f32[1,500]", "%24 \"y\", %14 \"z\"", 1e-5, -1, 1);
}
END_TEST

/* Contractions that are large enough to be divided among threads, by rows, by batches and by columns, with operations
 * after them. */
START_TEST(parts) {
  static const char *const forms[][4] = {
      {"f32[1,29,31,32]", "f32[48,32,3,3]", CONV_LAST("2,2", "1,1", "1,1", "1,1", "1,1", "1"), "f32[1,15,16,48]"},
      {"f32[1,29,31,64]", "f32[48,64,1,1]", CONV_LAST("1,1", "0,0", "0,0", "1,1", "1,1", "1"), "f32[1,29,31,48]"},
      {"f32[3,15,16,32]", "f32[48,32,3,3]", CONV_LAST("1,1", "0,2", "3,0", "1,1", "2,1", "1"), "f32[3,14,16,48]"},
      {"f32[1,300,1,64]", "f32[48,64,5,1]", CONV_LAST("1,1", "1,0", "2,0", "1,1", "1,1", "1"), "f32[1,299,1,48]"},
      {"f32[2,300,1,64]", "f32[48,64,5,1]", CONV_LAST("2,1", "0,0", "0,0", "1,1", "3,1", "1"), "f32[2,144,1,48]"},
      {"f32[1,40,41,96]", "f32[96,1,5,5]", CONV_LAST("1,1", "2,2", "2,2", "1,1", "1,1", "96"), "f32[1,40,41,96]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    char params[300], body[1500];
    const char *y = forms[k][3], *c = strrchr(y, ',') + 1;
    snprintf(params, sizeof params,
             "%%0: %s \"x\", %%1: %s \"w\", %%2: f32[%s \"b\", %%3: %s \"r\", %%4: f32[%s \"s\", %%5: %s \"t\"",
             forms[k][0], forms[k][1], c, y, c, y);
    snprintf(body, sizeof body,
             "%%6 = convolution(%%0, %%1) %s : %s\n%%7 = broadcast(%%2) {dimensions=[3]} : %s\n"
             "%%8 = add(%%6, %%7) : %s\n"
             "%%9 = add(%%8, %%3) : %s\n%%10 = broadcast(%%4) {dimensions=[3]} : %s\n%%11 = multiply(%%9, %%10) : %s\n"
             "%%12 = maximum(%%11, %%5) : %s\n%%13 = logistic(%%12) : %s\n%%14 = multiply(%%12, %%13) : %s",
             forms[k][2], y, y, y, y, y, y, y, y, y);
    check_body(params, body, "%14 \"y\"", 5e-6, -1, 1);
  }
  static const char *const products[][4] = {
      {"f32[130,200]", "f32[200,300]", MATMUL, "f32[130,300]"},
      {"f32[5,70,90]", "f32[5,90,110]", DOT_OF("0", "0", "2", "1"), "f32[5,70,110]"},
      {"f32[1,1500]", "f32[1500,2000]", MATMUL, "f32[1,2000]"},
      {"f32[1,1500]", "f32[2000,1500]", DOT_OF("", "", "1", "1"), "f32[1,2000]"}};
  for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
    char params[300], body[900];
    const char *y = products[k][3], *n = strrchr(y, ',') + 1;
    snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"w\", %%2: f32[%s \"b\", %%3: %s \"r\"", products[k][0],
             products[k][1], n, y);
    snprintf(body, sizeof body,
             "%%4 = dot(%%0, %%1) %s : %s\n%%5 = broadcast(%%2) {dimensions=[%d]} : %s\n%%6 = add(%%4, %%5) : %s\n"
             "%%7 = multiply(%%6, %%3) : %s\n%%8 = tanh(%%7) : %s",
             products[k][2], y, k == 1 ? 2 : 1, y, y, y, y);
    check_body(params, body, "%8 \"y\"", 5e-6, -0.3, 0.3);
  }
  check_body("%0: f32[1,1500] \"x\"",
             "%1 = iota() {dimension=0} : f32[1500,2000]\n%2 = iota() {dimension=1} : f32[1500,2000]\n"
             "%3 = add(%1, %2) : f32[1500,2000]\n%4 = cosine(%3) : f32[1500,2000]\n"
             "%5 = dot(%0, %4) " MATMUL " : f32[1,2000]",
             "%5 \"y\"", 5e-5, -1, 1);
}
END_TEST

/* Checks a softmax and a normalisation that is written as many operations, for an array of shape x along the dimensions
 * `gone`.  `kept` are its other dimensions, and k is their shape. */
static void check_rows(const char *type, const char *x, const char *k, const char *gone, const char *kept,
                       double tolerance) {
  char params[200], body[3000];
  snprintf(params, sizeof params, "%%0: %s[%s] \"x\", %%1: %s[%s] \"y\"", type, x, type, x);
  snprintf(body, sizeof body,
           "%%2 = reduce(%%0) {dimensions=[%1$s], reducer=maximum} : %2$s[%4$s]\n"
           "%%3 = broadcast(%%2) {dimensions=[%5$s]} : %2$s[%3$s]\n%%4 = subtract(%%0, %%3) : %2$s[%3$s]\n"
           "%%5 = exponential(%%4) : %2$s[%3$s]\n%%6 = reduce(%%5) {dimensions=[%1$s], reducer=add} : %2$s[%4$s]\n"
           "%%7 = broadcast(%%6) {dimensions=[%5$s]} : %2$s[%3$s]\n%%8 = divide(%%5, %%7) : %2$s[%3$s]\n"
           "%%9 = add(%%0, %%1) : %2$s[%3$s]\n%%10 = reduce(%%9) {dimensions=[%1$s], reducer=add} : %2$s[%4$s]\n"
           "%%11 = multiply(%%10, %%10) : %2$s[%4$s]\n%%12 = broadcast(%%10) {dimensions=[%5$s]} : %2$s[%3$s]\n"
           "%%13 = subtract(%%9, %%12) : %2$s[%3$s]\n%%14 = multiply(%%13, %%13) : %2$s[%3$s]\n"
           "%%15 = reduce(%%14) {dimensions=[%1$s], reducer=add} : %2$s[%4$s]\n%%16 = sqrt(%%15) : %2$s[%4$s]\n"
           "%%17 = broadcast(%%16) {dimensions=[%5$s]} : %2$s[%3$s]\n%%18 = divide(%%13, %%17) : %2$s[%3$s]\n"
           "%%19 = tanh(%%18) : %2$s[%3$s]\n",
           gone, type, x, k, kept);
  check_body(params, body, "%8 \"softmax\", %5 \"e\", %9 \"sum\", %11 \"square\", %19 \"normal\"", tolerance, -2, 2);
}

/* Rows that are whole vectors, that end in the middle of a vector, or that are shorter than one; neighbouring rows
 * whose elements alternate in memory; rows that are too long for the stack; types that are computed in f32 or by the C
 * library. */
START_TEST(rows) {
  check_rows("f32", "3,4,64", "3,4", "2", "0,1", 1e-5);
  check_rows("f32", "3,37", "3", "1", "0", 1e-5);
  check_rows("f32", "9,5", "9", "1", "0", 1e-5);
  check_rows("f32", "2,21,35", "2,35", "1", "0,2", 1e-5);
  check_rows("f32", "3,5,4,6", "3,4", "1,3", "0,2", 1e-5);
  check_rows("f32", "9,5003", "9", "1", "0", 1e-4);
  check_rows("f32", "7", "", "0", "", 1e-5);
  check_rows("f64", "3,37", "3", "1", "0", 1e-12);
  check_rows("f16", "3,37", "3", "1", "0", 2e-2);
  check_rows("bf16", "2,5,19", "2,19", "1", "0,2", 1e-1);
}
END_TEST

/* Transposes, which a kernel does square by square: squares that divide both sides of the array, that overlap, or that
 * are larger than the array; two transposed arrays, types of all widths, and elementwise operations before and after
 * the transpose. */
START_TEST(turned) {
  static const char *const types[] = {"f32", "f64", "f16", "s8", "s64", "pred", NULL};
  for (int k = 0; types[k]; k++) {
    char params[100], body[1000];
    snprintf(params, sizeof params, "%%0: %1$s[3,32,48] \"x\", %%1: %1$s[2,37,19] \"y\", %%2: %1$s[1,5,7,2] \"z\"",
             types[k]);
    snprintf(body, sizeof body,
             "%%3 = transpose(%%0) {permutation=[2,0,1]} : %1$s[48,3,32]\n"
             "%%4 = transpose(%%0) {permutation=[0,2,1]} : %1$s[3,48,32]\n"
             "%%5 = transpose(%%1) {permutation=[0,2,1]} : %1$s[2,19,37]\n"
             "%%6 = transpose(%%1) {permutation=[2,1,0]} : %1$s[19,37,2]\n"
             "%%7 = transpose(%%2) {permutation=[3,0,1,2]} : %1$s[2,1,5,7]\n",
             types[k]);
    check_body(params, body, "%3 \"a\", %4 \"b\", %5 \"c\", %6 \"d\", %7 \"e\"", 0, -9, 9);
  }
  check_body("%0: f32[2,37,19] \"x\", %1: f32[2,37,19] \"y\", %2: f32[19] \"b\", %3: f32[2,19,37] \"z\"",
             "%4 = multiply(%0, %1) : f32[2,37,19]\n%5 = transpose(%4) {permutation=[0,2,1]} : f32[2,19,37]\n"
             "%6 = transpose(%1) {permutation=[0,2,1]} : f32[2,19,37]\n"
             "%7 = broadcast(%2) {dimensions=[1]} : f32[2,19,37]\n"
             "%8 = add(%5, %7) : f32[2,19,37]\n%9 = maximum(%8, %6) : f32[2,19,37]\n%10 = negate(%3) : f32[2,19,37]\n"
             "%11 = subtract(%10, %9) : f32[2,19,37]\n%12 = reshape(%11) : f32[38,37]\n%13 = abs(%12) : f32[38,37]",
             "%13 \"r\", %8 \"s\"", 0, -2, 2);
  check_body("%0: f32[2,9,8,21] \"x\", %1: s64[2,5,7,2] \"i\", %2: f32[2,5,7] \"w\"", /* the transpose of rows that are
                                                                                         gathered */
             "%3 = gather(%0, %1) {offset_dims=[3], collapsed_dims=[1,2], operand_batch=[0], indices_batch=[0], "
             "index_map=[1,2], "
             "index_vector_dim=3, sizes=[1,1,1,21]} : f32[2,5,7,21]\n"
             "%4 = broadcast(%2) {dimensions=[0,1,2]} : f32[2,5,7,21]\n%5 = multiply(%3, %4) : f32[2,5,7,21]\n"
             "%6 = transpose(%5) {permutation=[0,3,1,2]} : f32[2,21,5,7]",
             "%6 \"r\"", 0, -2, 11);
}
END_TEST

/* Results with two to four columns that are interleaved: with numbers of rows that are whole vectors or not, with
 * padding and concatenation among the operands, and repeated elements. */
START_TEST(interleaved) {
  static const char *const types[] = {"f32", "f64", "bf16", "u8", "s64", "pred", NULL};
  for (int k = 0; types[k]; k++) {
    char params[100], body[600];
    snprintf(params, sizeof params, "%%0: %1$s[2,3,9,37] \"x\", %%1: %1$s[5,2,64] \"y\"", types[k]);
    snprintf(body, sizeof body,
             "%%2 = transpose(%%0) {permutation=[0,2,3,1]} : %1$s[2,9,37,3]\n"
             "%%3 = transpose(%%1) {permutation=[0,2,1]} : %1$s[5,64,2]\n"
             "%%4 = reshape(%%3) : %1$s[5,128]\n",
             types[k]);
    check_body(params, body, "%2 \"a\", %4 \"b\"", 0, -9, 9);
  }
  check_body("%0: f32[1,3,10,21] \"x\", %1: u8[] \"p\"",
             "%2 = round-nearest-even(%0) : f32[1,3,10,21]\n"
             "%3 = convert(%2) {saturate=true, rounding=nearest} : u8[1,3,10,21]\n"
             "%4 = pad(%3, %1) {low=[0,0,1,1], high=[0,0,1,2], interior=[0,0,0,0]} : u8[1,3,12,24]\n"
             "%5 = transpose(%4) {permutation=[0,2,3,1]} : u8[1,12,24,3]",
             "%5 \"r\"", 0, 0, 99);
  check_body("%0: f32[7,116] \"x\", %1: f32[7,58] \"y\"",
             "%2 = slice(%0) {starts=[0,58], limits=[7,116], strides=[1,1]} : f32[7,58]\n"
             "%3 = concatenate(%2, %1) {dimension=1} : f32[7,116]\n%4 = negate(%3) : f32[7,116]\n"
             "%5 = reshape(%4) : f32[7,2,58]\n"
             "%6 = transpose(%5) {permutation=[0,2,1]} : f32[7,58,2]\n"
             "%7 = reshape(%6) : f32[7,116]",
             "%7 \"r\"", 0, -2, 2);
  check_body("%0: f32[2,5,19] \"x\", %1: u8[3,40] \"y\"",
             "%2 = abs(%0) : f32[2,5,19]\n%3 = broadcast(%2) {dimensions=[0,1,3]} : f32[2,5,3,19]\n"
             "%4 = reshape(%3) : f32[2,15,19]\n"
             "%5 = broadcast(%4) {dimensions=[0,1,2]} : f32[2,15,19,2]\n%6 = reshape(%5) : f32[2,15,38]\n"
             "%7 = broadcast(%1) {dimensions=[0,1]} : u8[3,40,4]\n"
             "%8 = reshape(%7) : u8[3,160]",
             "%6 \"r\", %8 \"s\"", 0, 0, 9);
}
END_TEST

/* Concatenations of parts of all widths, some of one element, of parts that are concatenations themselves, and in the
 * memory of an operand; gathers by constant lists that ascend, descend and repeat, along both
 * dimensions; concatenations of single columns. */
START_TEST(pieces) {
  static const char *const types[] = {"f32", "f64", "bf16", "u8", "s64", "pred", "c64", NULL};
  for (int k = 0; types[k]; k++) {
    char params[200], body[1400];
    snprintf(params, sizeof params,
             "%%0: %1$s[5,33] \"x\", %%1: %1$s[5,1] \"y\", %%2: %1$s[5,7] \"z\", %%3: %1$s[] \"p\", %%4: %1$s[7,30] "
             "\"u\", %%5: %1$s[4,9,1] \"v\"",
             types[k]);
    snprintf(body, sizeof body,
             "%%6 = concatenate(%%0, %%1, %%2, %%1, %%0) {dimension=1} : %1$s[5,75]\n"
             "%%7 = pad(%%2, %%3) {low=[0,3], high=[1,2], interior=[0,0]} : %1$s[6,12]\n"
             "%%8 = pad(%%0, %%3) {low=[1,1], high=[0,0], interior=[0,0]} : %1$s[6,34]\n"
             "%%9 = concatenate(%%7, %%8) {dimension=1} : %1$s[6,46]\n"
             "%%10 = constant() {value=s64[36] {3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, "
             "18, 19, 20, 21, "
             "22, 23, 24, 25, 26, 27, 28, 29, 29, 29, 40}} : s64[36]\n"
             "%%11 = constant() {value=s32[11] {2, 1, 0, 1, 2, 3, 4, 5, 6, 5, 4}} : s32[11]\n"
             "%%12 = gather(%%4, %%11) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], "
             "index_map=[0], "
             "index_vector_dim=1, sizes=[1,30]} : %1$s[11,30]\n"
             "%%13 = gather(%%12, %%10) {offset_dims=[0], collapsed_dims=[1], operand_batch=[], indices_batch=[], "
             "index_map=[1], "
             "index_vector_dim=1, sizes=[11,1]} : %1$s[11,36]\n"
             "%%14 = reverse(%%5) {dimensions=[1]} : %1$s[4,9,1]\n"
             "%%15 = concatenate(%%5, %%14, %%5) {dimension=2} : %1$s[4,9,3]\n",
             types[k]);
    check_body(params, body, "%6 \"a\", %9 \"b\", %13 \"c\", %15 \"d\"", 0, 0, 9);
  }
  check_body(
      "%0: f32[2] \"x\", %1: f32[3,32,2] \"y\"", /* a row with an operand that is shorter than a vector and repeated
                                                    within it */
      "%2 = broadcast(%0) {dimensions=[2]} : f32[3,32,2]\n%3 = add(%1, %2) : f32[3,32,2]\n%4 = reshape(%3) : "
      "f32[3,64]\n"
      "%5 = reduce(%4) {dimensions=[1], reducer=maximum} : f32[3]\n%6 = broadcast(%5) {dimensions=[0]} : f32[3,64]\n"
      "%7 = subtract(%4, %6) : f32[3,64]\n%8 = exponential(%7) : f32[3,64]\n"
      "%9 = reduce(%8) {dimensions=[1], reducer=add} : f32[3]\n%10 = broadcast(%9) {dimensions=[0]} : f32[3,64]\n"
      "%11 = divide(%8, %10) : f32[3,64]",
      "%11 \"r\"", 1e-6, -2, 2);
  check_body("%0: f32[6,33] \"x\", %1: f32[6,14] \"y\", %2: f32[6,47] \"z\"",
             "%3 = exponential(%2) : f32[6,47]\n%4 = concatenate(%1, %0) {dimension=1} : f32[6,47]\n"
             "%5 = transpose(%3) {permutation=[1,0]} : f32[47,6]\n%6 = reverse(%4) {dimensions=[0]} : f32[6,47]\n"
             "%7 = subtract(%6, %3) : f32[6,47]\n%8 = reshape(%7) : f32[3,2,47]",
             "%8 \"r\", %5 \"s\"", 1e-6, -2, 2);
}
END_TEST

/* Operations through which the pass layout moves transposes.  Each branch ends in a result. */
START_TEST(layouts) {
  static const char conv[] = CONV_FIRST("1,1", "1,1", "1,1", "1,1", "1,1", "1");
  char body[3000];
  snprintf(body, sizeof body,
           "%%3 = convolution(%%0, %%1) %s : f32[2,6,7,8]\n"
           "%%4 = transpose(%%3) {permutation=[0,2,3,1]} : f32[2,7,8,6]\n"
           "%%5 = transpose(%%3) {permutation=[0,1,3,2]} : f32[2,6,8,7]\n"
           "%%6 = reduce(%%3) {dimensions=[2], reducer=add} : f32[2,6,8]\n"
           "%%7 = reduce(%%3) {dimensions=[1], reducer=maximum} : f32[2,7,8]\n"
           "%%8 = arg-reduce(%%3) {dimension=1, largest=true, last=false} : s64[2,7,8]\n"
           "%%9 = slice(%%3) {starts=[0,1,2,0], limits=[2,5,7,8], strides=[1,2,1,3]} : f32[2,2,5,3]\n"
           "%%10 = reverse(%%3) {dimensions=[1,3]} : f32[2,6,7,8]\n"
           "%%11 = concatenate(%%3, %%2) {dimension=2} : f32[2,6,14,8]\n"
           "%%12 = reshape(%%3) : f32[2,2,3,7,8]\n%%13 = transpose(%%12) {permutation=[0,2,1,3,4]} : f32[2,3,2,7,8]\n"
           "%%14 = reshape(%%13) : f32[2,6,56]\n"
           "%%15 = iota() {dimension=2} : f32[2,6,7,8]\n%%16 = add(%%3, %%15) : f32[2,6,7,8]\n"
           "%%17 = iota() {dimension=0} : f32[6,8]\n%%18 = broadcast(%%17) {dimensions=[1,3]} : f32[2,6,7,8]\n"
           "%%19 = multiply(%%16, %%18) : f32[2,6,7,8]\n%%20 = reshape(%%3) : f32[2,336]\n"
           "%%21 = convert(%%3) {saturate=true, rounding=nearest} : s32[2,6,7,8]\n"
           "%%22 = clamp(%%2, %%3, %%2) : f32[2,6,7,8]\n"
           "%%23 = constant() {value=f32[] 2} : f32[]\n"
           "%%24 = pad(%%3, %%23) {low=[0,1,0,2], high=[0,0,3,-1], interior=[0,0,1,0]} : f32[2,7,16,9]",
           conv);
  check_body("%0: f32[2,5,7,8] \"x\", %1: f32[6,5,3,3] \"w\", %2: f32[2,6,7,8] \"y\"", body,
             "%4 \"a\", %5 \"b\", %6 \"c\", %7 \"d\", %8 \"e\", %9 \"f\", %10 \"g\", %11 \"h\", %14 \"i\", %19 \"j\", "
             "%20 \"k\", %22 \"l\", %24 \"m\"",
             2e-6, -1, 1);
}
END_TEST

/* Operands that are still read after an operation that could overwrite them, and operands that are read twice. */
START_TEST(sharing) {
  check_body("%0: f32[1,9,9,64] \"x\", %1: f32[64,64,1,1] \"w\"",
             "%2 = tanh(%0) : f32[1,9,9,64]\n"
             "%3 = convolution(%2, %1) " CONV_LAST("1,1", "0,0", "0,0", "1,1", "1,1", "1") " : f32[1,9,9,64]\n"
             "%4 = add(%3, %2) : f32[1,9,9,64]\n"
             "%5 = convolution(%4, %1) " CONV_LAST("1,1", "0,0", "0,0", "1,1", "1,1", "1") " : f32[1,9,9,64]\n"
             "%6 = tanh(%4) : f32[1,9,9,64]\n%7 = add(%5, %6) : f32[1,9,9,64]\n"
             "%8 = reverse(%7) {dimensions=[1]} : f32[1,9,9,64]\n%9 = add(%7, %8) : f32[1,9,9,64]\n"
             "%10 = logistic(%9) : f32[1,9,9,64]\n%11 = multiply(%9, %10) : f32[1,9,9,64]",
             "%11 \"y\"", 2e-5, -0.2, 0.2);
}
END_TEST

/* Several post-ops of one kind with different numbers, next to each other and apart: a library might use the numbers of
 * one post-op for all.  The tolerance is for sums of 144 products, some of which cancel, in another order. */
START_TEST(repeated_steps) {
  static const char convolution[] =
      "%2 = convolution(%0, %1) " CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "1") " : f32[1,9,9,16]\n"
      "%3 = constant() {value=f32[] 1.375} : f32[]\n%4 = broadcast(%3) {dimensions=[]} : f32[1,9,9,16]\n"
      "%5 = constant() {value=f32[] 0.625} : f32[]\n%6 = broadcast(%5) {dimensions=[]} : f32[1,9,9,16]\n"
      "%7 = multiply(%2, %4) : f32[1,9,9,16]\n%8 = add(%7, %6) : f32[1,9,9,16]\n";
  static const char *const ends[][2] = {
      {"", "%8 \"y\""},
      {"%9 = tanh(%8) : f32[1,9,9,16]\n%10 = multiply(%9, %6) : f32[1,9,9,16]\n%11 = subtract(%10, %4) : f32[1,9,9,16]",
       "%11 \"y\""},
      {"%9 = clamp(%5, %8, %3) : f32[1,9,9,16]\n%10 = multiply(%9, %9) : f32[1,9,9,16]\n"
       "%11 = add(%9, %4) : f32[1,9,9,16]\n%12 = minimum(%11, %6) : f32[1,9,9,16]",
       "%12 \"y\", %10 \"z\""},
      {"%9 = maximum(%8, %6) : f32[1,9,9,16]\n%10 = logistic(%9) : f32[1,9,9,16]\n"
       "%11 = maximum(%10, %6) : f32[1,9,9,16]\n"
       "%12 = minimum(%11, %4) : f32[1,9,9,16]\n%13 = divide(%12, %4) : f32[1,9,9,16]",
       "%13 \"y\""}};
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
    char body[2000];
    snprintf(body, sizeof body, "%s%s", convolution, ends[k][0]);
    check_body("%0: f32[1,9,9,16] \"x\", %1: f32[16,16,3,3] \"w\"", body, ends[k][1], 1e-5, -1, 1);
  }
}
END_TEST

/* Operands of the epilogue that are broadcast along any of the convolution's dimensions, for one image and for
 * several. */
START_TEST(stretched_steps) {
  static const int dims[] = {9, 9, 9, 16};
  for (int set = 0; set < 32; set++) {
    int batch = set < 16 ? 1 : 3, mask = set % 16;
    char array[40] = "", to[20] = "", params[200], body[900];
    for (int d = 0; d < 4; d++) {
      if (mask >> d & 1) {
        sprintf(array + strlen(array), "%s%d", *array ? "," : "", d ? dims[d] : batch);
        sprintf(to + strlen(to), "%s%d", *to ? "," : "", d);
      }
    }
    snprintf(params, sizeof params, "%%0: f32[%d,9,9,16] \"x\", %%1: f32[%s] \"a\"", batch, array);
    snprintf(body, sizeof body,
             "%%2 = iota() {dimension=1} : f32[16,16,3,3]\n%%3 = cosine(%%2) : f32[16,16,3,3]\n"
             "%%4 = convolution(%%0, %%3) " CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "1") " : f32[%d,9,9,16]\n"
             "%%5 = broadcast(%%1) {dimensions=[%s]} : f32[%d,9,9,16]\n%%6 = multiply(%%4, %%5) : f32[%d,9,9,16]",
             batch, to, batch, batch);
    check_body(params, body, "%6 \"y\"", 1e-5, -1, 1);
  }
}
END_TEST

/* --- dots whose operands are not matrices in memory --- */

START_TEST(heads) {
  check_body("%0: f32[4,20,3,3,32] \"qkv\", %1: f32[96,64] \"w\"",
             "%2 = slice(%0) {starts=[0,0,0,0,0], limits=[4,20,1,3,32], strides=[1,1,1,1,1]} : f32[4,20,1,3,32]\n"
             "%3 = slice(%0) {starts=[0,0,1,0,0], limits=[4,20,2,3,32], strides=[1,1,1,1,1]} : f32[4,20,1,3,32]\n"
             "%4 = slice(%0) {starts=[0,0,2,0,0], limits=[4,20,3,3,32], strides=[1,1,1,1,1]} : f32[4,20,1,3,32]\n"
             "%5 = reshape(%2) : f32[4,20,3,32]\n%6 = reshape(%3) : f32[4,20,3,32]\n%7 = reshape(%4) : f32[4,20,3,32]\n"
             "%8 = dot(%5, %6) " DOT_OF("0,2", "0,2", "3", "3") " : f32[4,3,20,20]\n"
             "%9 = logistic(%8) : f32[4,3,20,20]\n"
             "%10 = dot(%9, %7) " DOT_OF("0,1", "0,2", "3", "1") " : f32[4,3,20,32]\n"
             "%11 = transpose(%10) {permutation=[0,2,1,3]} : f32[4,20,3,32]\n%12 = reshape(%11) : f32[4,20,96]\n"
             "%13 = dot(%12, %1) " DOT_OF("", "", "2", "0") " : f32[4,20,64]",
             "%13 \"y\"", 1e-5, -1, 1);
}
END_TEST

/* --- activations that are spelled out behind products --- */

/* Activations that compute %y from %4.  %h is 0.5, %o 1, %r sqrt 2, %s sqrt(2/pi), %c 0.044715, and %a 1.702. */
static const char *const activations[] = {
    "%5 = divide(%4, %r) : f32[24,200]\n%6 = erf(%5) : f32[24,200]\n%7 = add(%6, %o) : f32[24,200]\n"
    "%8 = multiply(%4, %7) : f32[24,200]\n%y = multiply(%8, %h) : f32[24,200]\n",
    "%5 = multiply(%4, %h) : f32[24,200]\n%6 = multiply(%4, %4) : f32[24,200]\n%7 = multiply(%6, %4) : f32[24,200]\n"
    "%8 = multiply(%7, %c) : f32[24,200]\n%9 = add(%4, %8) : f32[24,200]\n%10 = multiply(%9, %s) : f32[24,200]\n"
    "%11 = tanh(%10) : f32[24,200]\n%12 = add(%11, %o) : f32[24,200]\n%y = multiply(%5, %12) : f32[24,200]\n",
    "%5 = multiply(%4, %a) : f32[24,200]\n%6 = logistic(%5) : f32[24,200]\n%y = multiply(%4, %6) : f32[24,200]\n",
    "%5 = divide(%4, %r) : f32[24,200]\n%6 = erf(%5) : f32[24,200]\n%7 = multiply(%4, %h) : f32[24,200]\n"
    "%8 = multiply(%7, %6) : f32[24,200]\n%y = add(%8, %7) : f32[24,200]\n",
};

/* Sums of 64 products of numbers from [-1, 1] have the mean 0 and a standard deviation of 2.7, so that all parts of the
 * functions are used.  The tolerance of 1e-5 of the largest result, about 10, is far above the errors of the sums and
 * of the library's erf and tanh (1e-6). */
START_TEST(spelled_out) {
  static const char *const numbers[][2] = {{"h", "0.5"},       {"o", "1"},        {"r", "1.4142135"},
                                           {"s", "0.7978846"}, {"c", "0.044715"}, {"a", "1.702"}};
  char body[4000];
  int n = 0;
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    n += snprintf(body + n, sizeof body - (size_t)n,
                  "%%n%s = constant() {value=f32[] %s} : f32[]\n"
                  "%%%s = broadcast(%%n%s) {dimensions=[]} : f32[24,200]\n",
                  numbers[k][0], numbers[k][1], numbers[k][0], numbers[k][0]);
  }
  snprintf(body + n, sizeof body - (size_t)n,
           "%%2 = dot(%%0, %%1) " MATMUL
           " : f32[24,200]\n"
           "%%3 = broadcast(%%b) {dimensions=[1]} : f32[24,200]\n%%4 = add(%%2, %%3) : f32[24,200]\n%s",
           activations[_i]);
  check_body("%0: f32[24,64] \"x\", %1: f32[64,200] \"w\", %b: f32[200] \"b\"", body, "%y \"y\"", 1e-5, -1, 1);
}
END_TEST

/* An epilogue in a branch, with the branch's own parameters. */
START_TEST(fusions_in_branches) {
  check_text("onnx-xla hlo 1\nmodule \"t\" {\n"
             "computation one(%0: f32[1,9,9,16], %1: f32[16,16,3,3], %2: f32[]) {\n"
             "%3 = convolution(%0, %1) " CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "1") " : f32[1,9,9,16]\n"
             "%4 = broadcast(%2) {dimensions=[]} : f32[1,9,9,16]\n%5 = add(%3, %4) : f32[1,9,9,16]\nreturn %5\n}\n"
             "computation other(%0: f32[1,9,9,16], %1: f32[16,16,3,3], %2: f32[]) {\nreturn %0\n}\n"
             "entry main(%0: pred[] \"p\", %1: f32[1,9,9,16] \"x\", %2: f32[16,16,3,3] \"w\", %3: f32[] \"b\") {\n"
             "%4 = conditional(%0, %1, %2, %3) {computations=[one, other]} : f32[1,9,9,16]\n"
             "%5 = not(%0) : pred[]\n"
             "%6 = conditional(%5, %1, %2, %3) {computations=[one, other]} : f32[1,9,9,16]\n"
             "return %4 \"y\", %6 \"z\"\n}\n}\n",
             2e-6, -1, 1);
}
END_TEST

static void expect_measured(const rt_sequence *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    ck_assert_msg(!t->note || !strstr(t->note, "estimated"), "%s: %s", t->operation, t->note);
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      expect_measured(&t->bodies[b]);
    }
  }
}

/* A product in a branch that two conditionals call is timed once, and both use the config that was chosen. */
START_TEST(shared_branches_are_tuned) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"t\" {\ncomputation one(%0: f32[64,96], %1: f32[96,80]) {\n"
      "%2 = dot(%0, %1) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[64,80]\nreturn %2\n}\n"
      "computation other(%0: f32[64,96], %1: f32[96,80]) {\n%2 = constant() {value=f32[] 2} : f32[]\n"
      "%3 = broadcast(%2) {dimensions=[]} : f32[64,80]\nreturn %3\n}\n"
      "entry main(%0: pred[], %1: f32[64,96], %2: f32[96,80]) {\n"
      "%3 = conditional(%0, %1, %2) {computations=[one, other]} : f32[64,80]\n%4 = not(%0) : pred[]\n"
      "%5 = conditional(%4, %1, %2) {computations=[one, other]} : f32[64,80]\nreturn %3, %5\n}\n}\n";
  arena *a = arena_create(NULL);
  hlo_module *m;
  rt_program *p;
  rt_report report = {0};
  rt_compile_options options = {.threads = 1, .tune = RT_TUNE_FULL};
  ck_assert_ptr_null(hlo_parse(a, text, sizeof text - 1, NULL, &m));
  status s = cpu_compiler.compile((struct hlo_module *)m, &options, a, &p, &report);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  ck_assert_uint_ge(report.n_timed, 1);
  expect_measured(&p->body);
  arena_destroy(a);
}
END_TEST

/* The elements that are divided by the sum are in another order than those that are added, so the sum must be complete
 * before any result is written. */
START_TEST(divided_by_the_sum_of_all) {
  check_body(
      "%0: f32[16,16,16] \"x\"",
      "%1 = exponential(%0) : f32[16,16,16]\n%2 = transpose(%1) {permutation=[0,2,1]} : f32[16,16,16]\n"
      "%3 = reduce(%1) {dimensions=[0,1,2], reducer=add} : f32[]\n%4 = broadcast(%3) {dimensions=[]} : f32[16,16,16]\n"
      "%5 = divide(%2, %4) : f32[16,16,16]",
      "%5 \"y\"", 1e-5, -1, 1);
}
END_TEST

/* Two values take long to compute, one from the other, and the row is too long for the stack.  The memory of one result
 * could hold either value, but must hold only one of them. */
START_TEST(two_kept_values) {
  check_body(
      "%0: f32[5376] \"x\", %1: f32[] \"by\"",
      "%2 = broadcast(%1) {dimensions=[]} : f32[5376]\n%3 = divide(%0, %2) : f32[5376]\n%4 = exponential(%3) : "
      "f32[5376]\n"
      "%5 = reduce(%4) {dimensions=[0], reducer=maximum} : f32[]\n%6 = broadcast(%5) {dimensions=[]} : f32[5376]\n"
      "%7 = divide(%4, %6) : f32[5376]\n%8 = exponential(%7) : f32[5376]",
      "%3 \"quotient\", %8 \"y\"", 1e-5, 1, 2);
}
END_TEST

/* x[1:, ::2] += y for x of n rows and columns, as exporters write it: the operations are %2 to %10. */
static const char *indexed_update(arena *a, int n) {
  int lower = n - 1, even = n / 2;
  return arena_printf(
      a,
      "%%2 = iota() {dimension=0} : s64[%1$d]\n"
      "%%3 = slice(%%2) {starts=[1], limits=[%1$d], strides=[1]} : s64[%2$d]\n"
      "%%4 = slice(%%2) {starts=[0], limits=[%1$d], strides=[2]} : s64[%3$d]\n"
      "%%5 = broadcast(%%3) {dimensions=[0]} : s64[%2$d,%3$d,1]\n"
      "%%6 = broadcast(%%4) {dimensions=[1]} : s64[%2$d,%3$d,1]\n"
      "%%7 = concatenate(%%5, %%6) {dimension=2} : s64[%2$d,%3$d,2]\n"
      "check(%%7) {name=\"indices\", limits=[%1$d,%1$d], from_end=true} : ()\n"
      "%%8 = slice(%%0) {starts=[1,0], limits=[%1$d,%1$d], strides=[1,2]} : f32[%2$d,%3$d]\n"
      "%%9 = add(%%8, %%1) : f32[%2$d,%3$d]\n"
      "%%10 = scatter(%%0, %%7, %%9) {offset_dims=[], collapsed_dims=[0,1], operand_batch=[], indices_batch=[], "
      "index_map=[0,1], index_vector_dim=2, reducer=replace} : f32[%1$d,%1$d]",
      n, lower, even);
}

static status compile_indexed_update(void *data) {
  enum { N = 2000 };
  static const rt_compile_options options = {.threads = 1, .eval = ref_fold};
  arena *a = arena_create(data);
  hlo_module *m;
  rt_program *p;
  const char *text = arena_printf(
      a, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%%0: f32[%d,%d], %%1: f32[%d,%d]) {\n%s\nreturn %%10\n}\n}\n", N,
      N, N - 1, N / 2, indexed_update(a, N));
  TRY(hlo_parse(a, text, strlen(text), NULL, &m));
  TRY(cpu_compiler.compile((struct hlo_module *)m, &options, a, &p, NULL));
  arena_destroy(a);
  return NULL;
}

/* The indices of two million elements would be an array of 32 MB.  No such array may be made, not even while
 * compiling. */
START_TEST(updated_by_index) {
  mem_budget budget = {.limit = 8 << 20};
  arena *a = arena_create(NULL);
  check_body("%0: f32[40,40] \"x\", %1: f32[39,20] \"y\"", indexed_update(a, 40), "%10 \"z\"", 0, -1, 1);
  status s = guard_run(compile_indexed_update, &budget);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("target");
  tcase_set_timeout(t, 60); /* the machine may be busy */
  tcase_add_test(t, fusions);
  tcase_add_test(t, heads);
  tcase_add_loop_test(t, spelled_out, 0, sizeof activations / sizeof *activations);
  tcase_add_test(t, parts);
  tcase_add_test(t, rows);
  tcase_add_test(t, turned);
  tcase_add_test(t, interleaved);
  tcase_add_test(t, pieces);
  tcase_add_test(t, layouts);
  tcase_add_test(t, sharing);
  tcase_add_test(t, repeated_steps);
  tcase_add_test(t, stretched_steps);
  tcase_add_test(t, fusions_in_branches);
  tcase_add_test(t, shared_branches_are_tuned);
  tcase_add_test(t, divided_by_the_sum_of_all);
  tcase_add_test(t, two_kept_values);
  tcase_add_test(t, updated_by_index);
  return run_suite("target", t);
}
