/* check_ref.c - operations of the reference evaluator against values worked out by hand. */
#include "tests/suite.h"
#include "tests/unit/backend_ref/eval_case.h"

/* --- elementwise --- */

START_TEST(unary) {
  static const eval_row rows[] = {
      {"abs", "f32[4] {-1.5, 0, -0, -inf}", "", "f32[4] {1.5, 0, 0, inf}"},
      {"abs", "s8[3] {-128, -1, 5}", "", "s8[3] {-128, 1, 5}"}, /* wraps */
      {"abs", "s64[1] {-9223372036854775808}", "", "s64[1] {-9223372036854775808}"},
      {"abs", "u8[2] {200, 0}", "", "u8[2] {200, 0}"},
      {"abs", "c64[2] {(3, 4), (0, -2)}", "", "f32[2] {5, 2}"},
      {"negate", "f32[3] {1, 0, nan}", "", "f32[3] {-1, -0, nan}"},
      {"negate", "u8[2] {1, 0}", "", "u8[2] {255, 0}"},
      {"negate", "s32[2] {-2147483648, 7}", "", "s32[2] {-2147483648, -7}"},
      {"negate", "c128[1] {(1, -2)}", "", "c128[1] {(-1, 2)}"},
      {"not", "pred[2] {true, false}", "", "pred[2] {false, true}"},
      {"not", "s8[2] {0, 5}", "", "s8[2] {-1, -6}"},
      {"not", "u4[2] {0, 5}", "", "u4[2] {15, 10}"},
      {"sign", "f32[5] {-3, -0, 0, 2, nan}", "", "f32[5] {-1, -0, 0, 1, nan}"},
      {"sign", "s16[3] {-300, 0, 9}", "", "s16[3] {-1, 0, 1}"},
      {"sign", "u64[2] {0, 18446744073709551615}", "", "u64[2] {0, 1}"},
      {"ceil", "f32[3] {1.25, -1.25, -0.5}", "", "f32[3] {2, -1, -0}"},
      {"floor", "f64[2] {1.25, -1.25}", "", "f64[2] {1, -2}"},
      {"round-nearest-even", "f32[6] {0.5, 1.5, 2.5, -0.5, -1.5, 2.75}", "", "f32[6] {0, 2, 2, -0, -2, 3}"},
      {"sqrt", "f32[3] {2, 9, -1}", "", "f32[3] {1.41421354, 3, nan}"},
      {"sqrt", "f16[2] {2, 4}", "", "f16[2] {1.414, 2}"},
      {"rsqrt", "f32[3] {4, 0, inf}", "", "f32[3] {0.5, inf, 0}"},
      {"exponential", "f32[3] {1, 0, -inf}", "", "f32[3] {2.71828175, 1, 0}"},
      {"exponential", "f64[1] {1}", "", "f64[1] {2.718281828459045}"},
      {"exponential-minus-one", "f32[1] {1e-8}", "", "f32[1] {1e-8}"},
      {"log", "f32[3] {1, 0, -1}", "", "f32[3] {0, -inf, nan}"},
      {"log-plus-one", "f32[1] {1e-8}", "", "f32[1] {1e-8}"},
      {"sine", "f32[2] {0, 1}", "", "f32[2] {0, 0.841470957}"},
      {"cosine", "f32[2] {0, 1}", "", "f32[2] {1, 0.540302277}"},
      {"tan", "f32[1] {1}", "", "f32[1] {1.55740774}"},
      {"asin", "f32[2] {1, 2}", "", "f32[2] {1.57079637, nan}"},
      {"acos", "f32[1] {1}", "", "f32[1] {0}"},
      {"atan", "f32[1] {1}", "", "f32[1] {0.785398185}"},
      {"sinh", "f32[1] {1}", "", "f32[1] {1.17520118}"},
      {"cosh", "f32[1] {0}", "", "f32[1] {1}"},
      {"tanh", "f32[2] {1, inf}", "", "f32[2] {0.761594176, 1}"},
      {"asinh", "f32[1] {1}", "", "f32[1] {0.881373584}"},
      {"acosh", "f32[1] {2}", "", "f32[1] {1.3169579}"},
      {"atanh", "f32[1] {0.5}", "", "f32[1] {0.549306154}"},
      {"erf", "f32[2] {1, -inf}", "", "f32[2] {0.842700779, -1}"},
      {"logistic", "f32[3] {0, 1, -inf}", "", "f32[3] {0.5, 0.731058598, 0}"},
      {"logistic", "bf16[1] {0}", "", "bf16[1] {0.5}"},
      {"logistic", "f64[4] {-720, -745, -inf, inf}", "", "f64[4] {2.0322308024e-313, 5e-324, 0, 1}"},
      {"is-finite", "f32[4] {1, inf, -inf, nan}", "", "pred[4] {true, false, false, false}"},
      {"is-finite", "f16[2] {65504, inf}", "", "pred[2] {true, false}"},
      {"real", "c64[2] {(1, 2), (3, 4)}", "", "f32[2] {1, 3}"},
      {"imag", "c64[2] {(1, 2), (3, 4)}", "", "f32[2] {2, 4}"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

START_TEST(binary) {
  static const eval_row rows[] = {
      {"add", "s8[2] {127, -128}; s8[2] {1, -1}", "", "s8[2] {-128, 127}"},
      {"add", "s64[1] {9223372036854775807}; s64[1] {1}", "", "s64[1] {-9223372036854775808}"},
      {"add", "f32[0] {}; f32[0] {}", "", "f32[0] {}"},
      {"add", "f16[2] {2048, 65504}; f16[2] {1, 32}", "", "f16[2] {2048, inf}"}, /* ties to even; 65536 overflows */
      {"add", "bf16[1] {256}; bf16[1] {1}", "", "bf16[1] {256}"},                /* 257 needs 9 bits */
      {"add", "c64[1] {(1, 2)}; c64[1] {(3, -5)}", "", "c64[1] {(4, -3)}"},
      {"subtract", "u8[1] {0}; u8[1] {1}", "", "u8[1] {255}"},
      {"multiply", "s32[2] {65536, -3}; s32[2] {65536, 5}", "", "s32[2] {0, -15}"},
      {"multiply", "u4[1] {7}; u4[1] {3}", "", "u4[1] {5}"},                     /* 21 mod 16 */
      {"multiply", "c64[1] {(1, 2)}; c64[1] {(3, 4)}", "", "c64[1] {(-5, 10)}"}, /* 3-8, 4+6 */
      {"divide", "c128[1] {(-5, 10)}; c128[1] {(3, 4)}", "", "c128[1] {(1, 2)}"},
      {"divide", "s32[5] {7, -7, 5, -2147483648, 0}; s32[5] {2, 2, 0, -1, 0}", "",
       "s32[5] {3, -3, -1, -2147483648, -1}"},
      {"divide", "s64[2] {-9223372036854775808, 9}; s64[2] {-1, 0}", "", "s64[2] {-9223372036854775808, -1}"},
      {"divide", "u8[2] {200, 3}; u8[2] {7, 0}", "", "u8[2] {28, 255}"},
      {"divide", "f32[3] {1, -1, 0}; f32[3] {0, 0, 0}", "", "f32[3] {inf, -inf, nan}"},
      {"remainder", "s32[5] {7, -7, 5, -2147483648, 7}; s32[5] {3, 3, 0, -1, -3}", "", "s32[5] {1, -1, 5, 0, 1}"},
      {"remainder", "s64[1] {-9223372036854775808}; s64[1] {-1}", "", "s64[1] {0}"},
      {"remainder", "u16[2] {500, 500}; u16[2] {7, 0}", "", "u16[2] {3, 500}"},
      {"remainder", "f32[3] {5.5, -5.5, 1}; f32[3] {2, 2, 0}", "", "f32[3] {1.5, -1.5, nan}"},
      {"power", "s32[6] {3, 2, 2, 1, -1, -1}; s32[6] {4, 31, -1, -5, -3, -4}", "",
       "s32[6] {81, -2147483648, 0, 1, -1, 1}"},
      {"power", "u8[2] {3, 0}; u8[2] {6, 0}", "", "u8[2] {217, 1}"}, /* 729 mod 256 */
      {"power", "f32[3] {2, 4, 0}; f32[3] {-1, 0.5, 0}", "", "f32[3] {0.5, 2, 1}"},
      {"atan2", "f32[2] {1, 0}; f32[2] {0, -1}", "", "f32[2] {1.57079637, 3.14159274}"},
      {"maximum", "f32[4] {1, nan, 3, -0}; f32[4] {2, 0, nan, 0}", "", "f32[4] {2, nan, nan, 0}"},
      {"maximum", "u64[1] {18446744073709551615}; u64[1] {1}", "", "u64[1] {18446744073709551615}"},
      {"maximum", "s64[1] {-1}; s64[1] {1}", "", "s64[1] {1}"},
      {"minimum", "f64[4] {1, nan, 3, 0}; f64[4] {2, 0, nan, -0}", "", "f64[4] {1, nan, nan, -0}"},
      {"and", "s32[1] {12}; s32[1] {10}", "", "s32[1] {8}"},
      {"or", "s32[1] {12}; s32[1] {10}", "", "s32[1] {14}"},
      {"xor", "u8[1] {12}; u8[1] {10}", "", "u8[1] {6}"},
      {"and", "pred[2] {true, true}; pred[2] {true, false}", "", "pred[2] {true, false}"},
      {"or", "pred[2] {false, false}; pred[2] {true, false}", "", "pred[2] {true, false}"},
      {"xor", "pred[2] {true, true}; pred[2] {true, false}", "", "pred[2] {false, true}"},
      {"shift-left", "s8[3] {1, 3, 1}; s8[3] {7, 1, 8}", "", "s8[3] {-128, 6, 0}"},
      {"shift-left", "u64[2] {1, 1}; u64[2] {63, 64}", "", "u64[2] {9223372036854775808, 0}"},
      {"shift-right", "s8[4] {-128, -128, 64, 64}; s8[4] {3, 8, 3, 9}", "", "s8[4] {-16, -1, 8, 0}"},
      {"shift-right", "s64[2] {-8, -8}; s64[2] {1, -1}", "", "s64[2] {-4, -1}"}, /* a negative shift is a large one */
      {"shift-right", "u8[2] {128, 128}; u8[2] {7, 8}", "", "u8[2] {1, 0}"},
      {"complex", "f32[2] {1, 2}; f32[2] {3, inf}", "", "c64[2] {(1, 3), (2, inf)}"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

START_TEST(comparisons) {
  static const eval_row rows[] = {
      {"compare", "f32[4] {1, nan, nan, -0}; f32[4] {1, nan, 1, 0}", "comparison=eq",
       "pred[4] {true, false, false, true}"},
      {"compare", "f32[2] {1, nan}; f32[2] {1, nan}", "comparison=ne", "pred[2] {false, true}"},
      {"compare", "f32[3] {1, nan, 1}; f32[3] {2, 1, nan}", "comparison=lt", "pred[3] {true, false, false}"},
      {"compare", "s8[2] {-1, 1}; s8[2] {1, -1}", "comparison=le", "pred[2] {true, false}"},
      {"compare", "u8[2] {255, 1}; u8[2] {1, 255}", "comparison=gt", "pred[2] {true, false}"},
      {"compare", "u64[1] {18446744073709551615}; u64[1] {0}", "comparison=ge", "pred[1] {true}"},
      {"compare", "pred[2] {false, true}; pred[2] {true, true}", "comparison=lt", "pred[2] {true, false}"},
      {"compare", "c64[2] {(1, 2), (1, 2)}; c64[2] {(1, 2), (1, 3)}", "comparison=eq", "pred[2] {true, false}"},
      {"compare", "c64[2] {(1, 2), (1, 2)}; c64[2] {(1, 2), (1, 3)}", "comparison=ne", "pred[2] {false, true}"},
      {"compare", "str[2] {4, 5}; str[2] {4, 6}", "comparison=eq", "pred[2] {true, false}"},
      {"compare", "f16[1] {1}; f16[1] {2}", "comparison=lt", "pred[1] {true}"},
      {"select", "pred[2] {true, false}; f32[2] {1, 2}; f32[2] {3, 4}", "", "f32[2] {1, 4}"},
      {"select", "pred[2] {true, false}; str[2] {1, 2}; str[2] {3, 4}", "", "str[2] {1, 4}"},
      {"clamp", "f32[] 0; f32[4] {-1, 0.5, 2, nan}; f32[] 1", "", "f32[4] {0, 0.5, 1, nan}"},
      {"clamp", "s32[2] {0, 5}; s32[2] {-3, 9}; s32[2] {4, 7}", "", "s32[2] {0, 7}"},
      {"clamp", "s32[] 3; s32[1] {2}; s32[] 1", "", "s32[1] {1}"}, /* the upper bound wins */
      {0}};
  eval_check_rows(rows);
}
END_TEST

START_TEST(conversions) {
  static const eval_row rows[] = {
      {"convert", "s32[3] {300, -1, 256}", "saturate=true, rounding=nearest", "u8[3] {44, 255, 0}"},
      {"convert", "f32[6] {1.9, -1.9, 300, -300, nan, inf}", "saturate=true, rounding=nearest",
       "s8[6] {1, -1, 127, -128, 0, 127}"},
      {"convert", "f64[2] {1e30, -5}", "saturate=true, rounding=nearest", "u64[2] {18446744073709551615, 0}"},
      {"convert", "f32[3] {0.5, 0, nan}", "saturate=true, rounding=nearest", "pred[3] {true, false, true}"},
      {"convert", "pred[2] {true, false}", "saturate=true, rounding=nearest", "f32[2] {1, 0}"},
      {"convert", "s32[1] {2049}", "saturate=true, rounding=nearest", "f16[1] {2048}"},
      {"convert", "f32[2] {1000, -1000}", "saturate=true, rounding=nearest", "f8e4m3fn[2] {448, -448}"},
      {"convert", "f32[1] {1000}", "saturate=false, rounding=nearest", "f8e4m3fn[1] {nan}"},
      {"convert", "f32[1] {1e6}", "saturate=false, rounding=nearest", "f8e5m2[1] {inf}"},
      {"convert", "f32[1] {3}", "saturate=true, rounding=up", "f8e8m0fnu[1] {4}"},
      {"convert", "f32[1] {3}", "saturate=true, rounding=down", "f8e8m0fnu[1] {2}"},
      {"convert", "c64[1] {(2.5, 7)}", "saturate=true, rounding=nearest", "f32[1] {2.5}"},
      {"convert", "s32[1] {3}", "saturate=true, rounding=nearest", "c64[1] {(3, 0)}"},
      {"bitcast-convert", "u4[3] {0, 7, 9}", "", "s4[3] {0, 7, -7}"},
      {"bitcast-convert", "s2[3] {1, -1, -2}", "", "u2[3] {1, 3, 2}"},
      {"bitcast-convert", "s4[2] {-1, 6}", "", "f4e2m1fn[2] {-6, 4}"},
      {"bitcast-convert", "f32[2] {1, -0}", "", "u32[2] {1065353216, 2147483648}"}, /* 0x3f800000, 0x80000000 */
      {0}};
  eval_check_rows(rows);
}
END_TEST

/* --- movement --- */

/* Philox: the known answers that come with Random123 (kat_vectors); the Mersenne twister: numpy's RandomState(5489) and
 * RandomState(4294967295). */
START_TEST(random_bits) {
  static const eval_row rows[] = {
      {"rng-bit-generator", "u64[3] {0, 0, 0}", "algorithm=philox",
       "u32[4] {1713891541, 3781805453, 3159862348, 2600524760}"},
      {"rng-bit-generator", "u64[3] {18446744073709551615, 18446744073709551615, 18446744073709551615}",
       "algorithm=philox", "u32[4] {1083123565, 1103641358, 2718681030, 1834242557}"},
      {"rng-bit-generator", "u64[3] {2999170649027065890, 9629550131187509896, 247824715720788526}", "algorithm=philox",
       "u32[2,2] {3513581065, 2499661035, 1342301216, 605187745}"},
      /* the low half of the counter wraps to 0 (Random123's function, written in Python) */
      {"rng-bit-generator", "u64[3] {18446744073709551615, 18446744073709551615, 18446744073709551615}",
       "algorithm=philox",
       "u32[7] {1083123565, 1103641358, 2718681030, 1834242557, 1027334919, 1902740438, 1879657453}"},
      {"rng-bit-generator", "u64[3] {0, 0, 0}", "algorithm=philox", "u64[1] {16242730742183356629}"},
      {"rng-bit-generator", "u64[1] {5489}", "algorithm=mt19937",
       "u32[5] {3499211612, 581869302, 3890346734, 3586334585, 545404204}"},
      {"rng-bit-generator", "u64[1] {5489}", "algorithm=mt19937", "u64[2] {2499109626135559004, 15403189758979078894}"},
      {"rng-bit-generator", "u64[1] {1}", "algorithm=mt19937", "u32[0] {}"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

START_TEST(movement) {
  static const eval_row rows[] = {
      {"copy", "str[2] {7, 8}", "", "str[2] {7, 8}"},
      {"empty", "", "", "f32[2,2] {0, 0, 0, 0}"},
      {"iota", "", "dimension=0", "f32[2,2] {0, 0, 1, 1}"},
      {"iota", "", "dimension=1", "s8[2,3] {0, 1, 2, 0, 1, 2}"},
      {"iota", "", "dimension=0", "u8[0] {}"},
      {"broadcast", "f32[] 7", "dimensions=[]", "f32[2,2] {7, 7, 7, 7}"},
      {"broadcast", "f32[2] {1, 2}", "dimensions=[0]", "f32[2,3] {1, 1, 1, 2, 2, 2}"},
      {"broadcast", "s16[1,2] {1, 2}", "dimensions=[0,1]", "s16[2,2] {1, 2, 1, 2}"}, /* the dimension of size
                                                                                        1 is stretched */
      {"reshape", "s32[2,3] {1, 2, 3, 4, 5, 6}", "", "s32[3,2] {1, 2, 3, 4, 5, 6}"},
      {"transpose", "u8[2,3] {1, 2, 3, 4, 5, 6}", "permutation=[1,0]", "u8[3,2] {1, 4, 2, 5, 3, 6}"},
      {"transpose", "c128[1,2] {(1, 2), (3, 4)}", "permutation=[1,0]", "c128[2,1] {(1, 2), (3, 4)}"},
      /* r[i,j,k] = x[k,i,j]: x is [2,1,3], r is [1,3,2] */
      {"transpose", "s64[2,1,3] {0, 1, 2, 3, 4, 5}", "permutation=[1,2,0]", "s64[1,3,2] {0, 3, 1, 4, 2, 5}"},
      {"reverse", "s32[2,2] {1, 2, 3, 4}", "dimensions=[0]", "s32[2,2] {3, 4, 1, 2}"},
      {"reverse", "s32[2,2] {1, 2, 3, 4}", "dimensions=[0,1]", "s32[2,2] {4, 3, 2, 1}"},
      {"reverse", "s32[0,2] {}", "dimensions=[0]", "s32[0,2] {}"},
      {"slice", "s32[6] {0, 1, 2, 3, 4, 5}", "starts=[1], limits=[6], strides=[2]", "s32[3] {1, 3, 5}"},
      {"slice", "s32[2,2] {1, 2, 3, 4}", "starts=[1,2], limits=[2,2], strides=[1,1]", "s32[1,0] {}"},
      {"slice", "s32[3] {0, 1, 2}", "starts=[2], limits=[3], strides=[72057594037927936]", "s32[1] {2}"},
      {"pad", "s32[2] {1, 2}; s32[] 9", "low=[1], high=[2], interior=[0]", "s32[5] {9, 1, 2, 9, 9}"},
      {"pad", "s32[3] {1, 2, 3}; s32[] 0", "low=[0], high=[0], interior=[1]", "s32[5] {1, 0, 2, 0, 3}"},
      {"pad", "s32[3] {1, 2, 3}; s32[] 0", "low=[-1], high=[-1], interior=[0]", "s32[1] {2}"},
      /* 1 0 2 0 3, of which the first element is cut off, and a 0 at the end */
      {"pad", "s32[3] {1, 2, 3}; s32[] 0", "low=[-1], high=[1], interior=[1]", "s32[5] {0, 2, 0, 3, 0}"},
      {"pad", "s32[0] {}; s32[] 4", "low=[1], high=[1], interior=[3]", "s32[2] {4, 4}"},
      {"pad", "s32[2] {1, 2}; s32[] 0", "low=[-2], high=[1], interior=[0]", "s32[1] {0}"},
      {"concatenate", "s32[1,2] {1, 2}; s32[0,2] {}; s32[2,2] {3, 4, 5, 6}", "dimension=0",
       "s32[3,2] {1, 2, 3, 4, 5, 6}"},
      {"concatenate", "s32[2,1] {1, 2}; s32[2,2] {3, 4, 5, 6}", "dimension=1", "s32[2,3] {1, 3, 4, 2, 5, 6}"},
      {"dynamic-slice", "s32[4] {0, 1, 2, 3}; s64[1] {1}", "sizes=[2]", "s32[2] {1, 2}"},
      {"dynamic-slice", "s32[4] {0, 1, 2, 3}; s64[1] {9223372036854775807}", "sizes=[3]", "s32[3] {1, 2, 3}"},
      {"dynamic-slice", "s32[4] {0, 1, 2, 3}; s64[1] {-5}", "sizes=[3]", "s32[3] {0, 1, 2}"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

#define GATHER(offset, collapsed, operand_batch, indices_batch, map, vector, rest)     \
  "offset_dims=" offset ", collapsed_dims=" collapsed ", operand_batch=" operand_batch \
  ", indices_batch=" indices_batch ", index_map=" map ", index_vector_dim=" vector ", " rest

START_TEST(gather_scatter) {
  static const eval_row rows[] = {
      /* rows 2 and 0; 9 and -1 are clamped to the last and the first */
      {"gather", "s32[3,2] {1, 2, 3, 4, 5, 6}; s64[4] {2, 0, 9, -1}",
       GATHER("[1]", "[0]", "[]", "[]", "[0]", "1", "sizes=[1,2]"), "s32[4,2] {5, 6, 1, 2, 5, 6, 1, 2}"},
      /* a window of 2 starting at 5 is clamped to start at 1 */
      {"gather", "f32[3] {1, 2, 3}; s32[2,1] {0, 5}", GATHER("[1]", "[]", "[]", "[]", "[0]", "1", "sizes=[2]"),
       "f32[2,2] {1, 2, 2, 3}"},
      /* columns: the offset dim comes first in the result */
      {"gather", "s32[2,3] {1, 2, 3, 4, 5, 6}; s64[2] {2, 1}",
       GATHER("[0]", "[1]", "[]", "[]", "[1]", "1", "sizes=[2,1]"), "s32[2,2] {3, 2, 6, 5}"},
      /* the points [1,0] and [0,2]: index vectors run along dim 0 of the indices, so each column is a point */
      {"gather", "s32[2,3] {1, 2, 3, 4, 5, 6}; s64[2,2] {1, 0, 0, 2}",
       GATHER("[]", "[0,1]", "[]", "[]", "[0,1]", "0", "sizes=[1,1]"), "s32[2] {4, 3}"},
      /* batching: row b of the operand with row b of the indices */
      {"gather", "s32[2,3] {1, 2, 3, 4, 5, 6}; s64[2,2] {2, 0, 1, 1}",
       GATHER("[]", "[1]", "[0]", "[0]", "[1]", "2", "sizes=[1,1]"), "s32[2,2] {3, 1, 5, 5}"},
      {"scatter", "s32[4] {0, 0, 0, 0}; s64[3,1] {1, 3, 1}; s32[3] {5, 6, 7}",
       GATHER("[]", "[0]", "[]", "[]", "[0]", "1", "reducer=add"), "s32[4] {0, 12, 0, 6}"},
      /* of two updates of one element, the later one stays; updates out of range are skipped */
      {"scatter", "s32[3] {1, 2, 3}; s64[4,1] {1, -1, 3, 1}; s32[4] {5, 6, 7, 8}",
       GATHER("[]", "[0]", "[]", "[]", "[0]", "1", "reducer=replace"), "s32[3] {1, 8, 3}"},
      {"scatter", "f16[2] {2048, 1}; s64[2,1] {0, 0}; f16[2] {1, 1}",
       GATHER("[]", "[0]", "[]", "[]", "[0]", "1", "reducer=add"), "f16[2] {2048, 1}"}, /* rounded after each */
      {"scatter", "f32[1] {3}; s32[2,1] {0, 0}; f32[2] {nan, 1}",
       GATHER("[]", "[0]", "[]", "[]", "[0]", "1", "reducer=maximum"), "f32[1] {nan}"},
      /* a window of 2 that starts at 2 of 3 does not fit: none of it is written */
      {"scatter", "s32[3] {1, 2, 3}; s64[2,1] {2, 1}; s32[2,2] {7, 8, 9, 9}",
       GATHER("[1]", "[]", "[]", "[]", "[0]", "1", "reducer=replace"), "s32[3] {1, 9, 9}"},
      /* one window after the other where they overlap, although the window dim comes first: updates [w,b];
       * order (0,0) -> x[0]=1, (1,0) -> x[1]=3, (0,1) -> x[1]=2, (1,1) -> x[2]=4 */
      {"scatter", "s32[3] {0, 0, 0}; s64[2,1] {0, 1}; s32[2,2] {1, 2, 3, 4}",
       GATHER("[0]", "[]", "[]", "[]", "[0]", "1", "reducer=replace"), "s32[3] {1, 2, 4}"},
      {"scatter", "str[2] {1, 2}; s64[1,1] {1}; str[1] {9}",
       GATHER("[]", "[0]", "[]", "[]", "[0]", "1", "reducer=replace"), "str[2] {1, 9}"},
      /* batching: in row 0, position 2 times 10; in row 1, position 0 times 10 */
      {"scatter", "s32[2,3] {1, 2, 3, 4, 5, 6}; s64[2,1] {2, 0}; s32[2] {10, 10}",
       GATHER("[]", "[1]", "[0]", "[0]", "[1]", "1", "reducer=multiply"), "s32[2,3] {1, 2, 30, 40, 5, 6}"},
      {"dynamic-update-slice", "s32[4] {0, 1, 2, 3}; s32[2] {8, 9}; s64[1] {1}", "", "s32[4] {0, 8, 9, 3}"},
      {"dynamic-update-slice", "s32[4] {0, 1, 2, 3}; s32[2] {8, 9}; s64[1] {7}", "", "s32[4] {0, 1, 8, 9}"},
      {"dynamic-update-slice", "s32[2,2] {0, 1, 2, 3}; s32[1,1] {8}; s64[2] {-3, 1}", "", "s32[2,2] {0, 8, 2, 3}"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

/* --- reductions, windows, scans, sorting --- */

START_TEST(reductions) {
  static const eval_row rows[] = {
      {"reduce", "s32[2,3] {1, 2, 3, 4, 5, 6}", "dimensions=[1], reducer=add", "s32[2] {6, 15}"},
      {"reduce", "s32[2,3] {1, 2, 3, 4, 5, 6}", "dimensions=[0], reducer=multiply", "s32[3] {4, 10, 18}"},
      {"reduce", "s32[2,2,2] {1, 2, 3, 4, 5, 6, 7, 8}", "dimensions=[0,2], reducer=add",
       "s32[2] {14, 22}"}, /* 1+2+5+6 */
      {"reduce", "s32[2,2,2] {1, 2, 3, 4, 5, 6, 7, 8}", "dimensions=[1], reducer=add", "s32[2,2] {4, 6, 12, 14}"},
      {"reduce", "s8[2] {100, 100}", "dimensions=[0], reducer=add", "s8[] -56"},
      {"reduce", "f32[3] {1, nan, 3}", "dimensions=[0], reducer=maximum", "f32[] nan"},
      {"reduce", "f32[3] {1, -2, 3}", "dimensions=[0], reducer=minimum", "f32[] -2"},
      {"reduce", "f16[4] {2048, 1, 1, 1}", "dimensions=[0], reducer=add", "f16[] 2052"}, /* 2051 is rounded
                                                                                            once, to even */
      {"reduce", "f32[0,2] {}", "dimensions=[0], reducer=add", "f32[2] {0, 0}"},
      {"reduce", "f32[0] {}", "dimensions=[0], reducer=multiply", "f32[] 1"},
      {"reduce", "f32[0] {}", "dimensions=[0], reducer=maximum", "f32[] -inf"},
      {"reduce", "f64[0] {}", "dimensions=[0], reducer=minimum", "f64[] inf"},
      {"reduce", "s32[0] {}", "dimensions=[0], reducer=maximum", "s32[] -2147483648"},
      {"reduce", "s64[0] {}", "dimensions=[0], reducer=minimum", "s64[] 9223372036854775807"},
      {"reduce", "u8[0] {}", "dimensions=[0], reducer=minimum", "u8[] 255"},
      {"reduce", "u8[0] {}", "dimensions=[0], reducer=and", "u8[] 255"},
      {"reduce", "pred[0] {}", "dimensions=[0], reducer=and", "pred[] true"},
      {"reduce", "pred[2,2] {true, true, false, true}", "dimensions=[1], reducer=and", "pred[2] {true, false}"},
      {"reduce", "pred[3] {true, true, true}", "dimensions=[0], reducer=xor", "pred[] true"},
      {"reduce", "s8[3] {1, 2, 8}", "dimensions=[0], reducer=or", "s8[] 11"},
      {"reduce", "c64[2] {(1, 2), (3, 4)}", "dimensions=[0], reducer=add", "c64[] (4, 6)"},
      {"reduce", "c64[2] {(inf, nan), (1, 0)}", "dimensions=[0], reducer=multiply", "c64[] (nan, nan)"}, /* inf-nan */
      {"arg-reduce", "f32[2,3] {1, 3, 3, 2, 2, 1}", "dimension=1, largest=true, last=false", "s64[2] {1, 0}"},
      {"arg-reduce", "f32[2,3] {1, 3, 3, 2, 2, 1}", "dimension=1, largest=true, last=true", "s64[2] {2, 1}"},
      {"arg-reduce", "f32[2,3] {1, 3, 3, 2, 2, 1}", "dimension=0, largest=false, last=false", "s64[3] {0, 1, 1}"},
      {"arg-reduce", "f32[4] {5, nan, 9, nan}", "dimension=0, largest=true, last=false", "s64[] 1"},
      {"arg-reduce", "f32[4] {5, nan, 1, nan}", "dimension=0, largest=false, last=true", "s64[] 1"},
      {"arg-reduce", "u8[3] {1, 200, 3}", "dimension=0, largest=true, last=false", "s64[] 1"},
      {"arg-reduce", "s64[2] {9007199254740993, 9007199254740992}", "dimension=0, largest=false, last=false",
       "s64[] 1"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

#define WINDOW(window, strides, low, high, dilation) \
  "window=" window ", strides=" strides ", low=" low ", high=" high ", rhs_dilation=" dilation

START_TEST(windows) {
  static const eval_row rows[] = {
      {"reduce-window", "s32[4] {1, 2, 3, 4}", WINDOW("[2]", "[1]", "[0]", "[0]", "[1]") ", reducer=add",
       "s32[3] {3, 5, 7}"},
      {"reduce-window", "f32[4] {-1, -2, -3, -4}", WINDOW("[2]", "[2]", "[1]", "[1]", "[1]") ", reducer=maximum",
       "f32[3] {-1, -2, -4}"}, /* padding is -inf */
      {"reduce-window", "s32[5] {1, 2, 3, 4, 5}", WINDOW("[2]", "[1]", "[1]", "[0]", "[3]") ", reducer=add",
       "s32[3] {3, 5, 7}"}, /* taps 3 apart over 0 1 2 3 4 5: 0+3, 1+4, 2+5 */
      {"reduce-window", "s32[2] {1, 2}", WINDOW("[2]", "[1]", "[3]", "[0]", "[1]") ", reducer=multiply",
       "s32[4] {1, 1, 1, 2}"}, /* all padding gives the identity */
      {"reduce-window", "s32[4] {1, 2, 3, 4}", WINDOW("[1]", "[1]", "[-1]", "[-1]", "[1]") ", reducer=add",
       "s32[2] {2, 3}"},
      {"reduce-window", "f32[1,3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9}",
       WINDOW("[1,2,2]", "[1,1,1]", "[0,0,0]", "[0,0,0]", "[1,1,1]") ", reducer=add",
       "f32[1,2,2] {12, 16, 24, 28}"}, /* 1+2+4+5 ... */
      {"reduce-window", "f32[2] {nan, 1}", WINDOW("[1]", "[1]", "[0]", "[0]", "[1]") ", reducer=minimum",
       "f32[2] {nan, 1}"},
      {"reduce-window", "s32[2] {1, 2}", WINDOW("[3]", "[1]", "[0]", "[0]", "[1]") ", reducer=add", "s32[0] {}"},
      {"arg-reduce-window", "f32[4] {1, 5, 5, 2}", WINDOW("[2]", "[1]", "[1]", "[0]", "[1]"), "s64[4] {0, 1, 1, 2}"},
      {"arg-reduce-window", "f32[2,2] {1, 5, 7, 2}", WINDOW("[2,2]", "[1,1]", "[0,0]", "[0,0]", "[1,1]"),
       "s64[1,1] {2}"},
      {"arg-reduce-window", "f32[2] {-inf, 1}", WINDOW("[1]", "[1]", "[1]", "[1]", "[1]"), "s64[4] {-1, 0, 1, -1}"},
      {"cumulative", "s32[4] {1, 2, 3, 4}", "dimension=0, reducer=add, exclusive=false, backward=false",
       "s32[4] {1, 3, 6, 10}"},
      {"cumulative", "s32[4] {1, 2, 3, 4}", "dimension=0, reducer=add, exclusive=true, backward=false",
       "s32[4] {0, 1, 3, 6}"},
      {"cumulative", "s32[4] {1, 2, 3, 4}", "dimension=0, reducer=add, exclusive=false, backward=true",
       "s32[4] {10, 9, 7, 4}"},
      {"cumulative", "s32[4] {1, 2, 3, 4}", "dimension=0, reducer=multiply, exclusive=true, backward=true",
       "s32[4] {24, 12, 4, 1}"},
      {"cumulative", "s32[2,2] {1, 2, 3, 4}", "dimension=0, reducer=add, exclusive=false, backward=false",
       "s32[2,2] {1, 2, 4, 6}"},
      {"cumulative", "f16[3] {2048, 1, 1}", "dimension=0, reducer=add, exclusive=false, backward=false",
       "f16[3] {2048, 2048, 2050}"}, /* 2049 is rounded for the output only */
      {"cumulative", "f32[3] {1, nan, 2}", "dimension=0, reducer=maximum, exclusive=false, backward=false",
       "f32[3] {1, nan, nan}"},
      {"sort", "f32[5] {3, nan, -inf, 1, 3}; s32[5] {0, 1, 2, 3, 4}", "dimension=0, descending=false",
       "f32[5] {-inf, 1, 3, 3, nan}; s32[5] {2, 3, 0, 4, 1}"},
      {"sort", "f32[5] {3, nan, -inf, 1, 3}; s32[5] {0, 1, 2, 3, 4}", "dimension=0, descending=true",
       "f32[5] {nan, 3, 3, 1, -inf}; s32[5] {1, 0, 4, 3, 2}"}, /* equals keep their order */
      {"sort", "f32[3] {0, -0, 0}; s8[3] {0, 1, 2}", "dimension=0, descending=false",
       "f32[3] {0, -0, 0}; s8[3] {0, 1, 2}"},
      {"sort", "u64[3] {18446744073709551615, 0, 1}", "dimension=0, descending=false",
       "u64[3] {0, 1, 18446744073709551615}"},
      {"sort", "s8[3,2] {3, 1, 1, 2, 2, 0}", "dimension=0, descending=false", "s8[3,2] {1, 0, 2, 1, 3, 2}"},
      {"sort", "s32[7] {5, 3, 6, 1, 7, 2, 4}", "dimension=0, descending=false", "s32[7] {1, 2, 3, 4, 5, 6, 7}"},
      {"sort", "s32[0] {}", "dimension=0, descending=false", "s32[0] {}"},
      /* boxes 0 and 1 overlap by just a half; a box with a NaN overlaps nothing */
      {"non-max-suppression",
       "f32[1,4,4] {0, 0, 2, 2, 0, 0, 2, 1, 5, 5, 6, 6, 0, nan, 2, 2}; f32[1,2,4] {0.5, 0.9, 0.9, nan, "
       "0.1, 0.2, -inf, 0.3}; s64[] 3; f32[] 0.5",
       "limit=4", "s64[8,3] {0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 1, 3, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0}; s64[] 6"},
      {"non-max-suppression",
       "f32[1,4,4] {0, 0, 2, 2, 0, 0, 2, 1, 5, 5, 6, 6, 0, nan, 2, 2}; f32[1,2,4] {0.5, 0.9, 0.9, nan, "
       "0.1, 0.2, -inf, 0.3}; s64[] 9; f32[] 0.4; f32[] 0.15",
       "limit=3", "s64[6,3] {0, 0, 1, 0, 0, 2, 0, 1, 3, 0, 1, 1, 0, 0, 0, 0, 0, 0}; s64[] 4"},
      {"non-max-suppression", "f32[2,1,4] {0, 0, 1, 1, 0, 0, 1, 1}; f32[2,1,1] {1, 1}; s64[] -1; f32[] 0", "limit=7",
       "s64[2,3] {0, 0, 0, 0, 0, 0}; s64[] 0"},
      {"non-max-suppression", "f32[1,0,4] {}; f32[1,2,0] {}; s64[] 3; f32[] 0", "limit=3", "s64[0,3] {}; s64[] 0"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

/* --- contractions --- */

#define DOT(xb, yb, xc, yc) "lhs_batch=" xb ", rhs_batch=" yb ", lhs_contract=" xc ", rhs_contract=" yc
#define CONV(strides, low, high, lhs, rhs, groups, layout)                                                      \
  "strides=" strides ", low=" low ", high=" high ", lhs_dilation=" lhs ", rhs_dilation=" rhs ", groups=" groups \
  ", layout=" layout

START_TEST(contractions) {
  static const eval_row rows[] = {
      {"dot", "f32[2,2] {1, 2, 3, 4}; f32[2,3] {1, 2, 3, 4, 5, 6}", DOT("[]", "[]", "[1]", "[0]"),
       "f32[2,3] {9, 12, 15, 19, 26, 33}"}, /* 1*1+2*4 ... */
      {"dot", "f32[2] {1, 2}; f32[2] {3, 4}", DOT("[]", "[]", "[0]", "[0]"), "f32[] 11"},
      {"dot", "s32[2] {1, 2}; s32[2] {3, 4}", DOT("[]", "[]", "[]", "[]"), "s32[2,2] {3, 4, 6, 8}"},
      {"dot", "s8[2] {100, 100}; s8[2] {2, 1}", DOT("[]", "[]", "[0]", "[0]"), "s32[] 300"}, /* bytes give s32 */
      {"dot", "u8[2] {255, 255}; s8[2] {-128, -128}", DOT("[]", "[]", "[0]", "[0]"), "s32[] -65280"},
      {"dot", "s8[2] {-1, 3}; u8[2] {255, 2}", DOT("[]", "[]", "[0]", "[0]"), "s32[] -249"},
      {"dot", "s16[2] {200, 200}; s16[2] {200, 1}", DOT("[]", "[]", "[0]", "[0]"), "s32[] 40200"},
      {"dot", "u16[2] {300, 300}; u16[2] {300, 1}", DOT("[]", "[]", "[0]", "[0]"), "u16[] 24764"}, /* 90300 - 65536 */
      {"dot", "u64[1] {18446744073709551615}; u64[1] {2}", DOT("[]", "[]", "[0]", "[0]"), "u64[] 18446744073709551614"},
      /* x^T y: contracts dim 0 of both */
      {"dot", "s32[2,2] {1, 2, 3, 4}; s32[2,1] {5, 6}", DOT("[]", "[]", "[0]", "[0]"), "s32[2,1] {23, 34}"},
      /* batch is dim 1 of x and dim 0 of y: x[:,0] = (1,3), x[:,1] = (2,4) */
      {"dot", "s32[2,2] {1, 2, 3, 4}; s32[2,2] {5, 6, 7, 8}", DOT("[1]", "[0]", "[0]", "[1]"), "s32[2] {23, 46}"},
      {"dot", "f16[4] {2048, 1, 1, 1}; f16[4] {1, 1, 1, 1}", DOT("[]", "[]", "[0]", "[0]"), "f16[] 2052"},
      {"dot", "f32[2,0] {}; f32[0,1] {}", DOT("[]", "[]", "[1]", "[0]"), "f32[2,1] {0, 0}"},
      {"dot", "c64[2] {(1, 1), (0, 2)}; c64[2] {(1, -1), (3, 0)}", DOT("[]", "[]", "[0]", "[0]"), "c64[] (2, 6)"},
      {"dot", "c64[1] {(inf, nan)}; c64[1] {(1, 0)}", DOT("[]", "[]", "[0]", "[0]"), "c64[] (nan, nan)"},
      /* more columns than a panel: 2 * (0..9) */
      {"dot", "s32[1,1] {2}; s32[1,10] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}", DOT("[]", "[]", "[1]", "[0]"),
       "s32[1,10] {0, 2, 4, 6, 8, 10, 12, 14, 16, 18}"},
      {"convolution", "f32[1,1,4] {1, 2, 3, 4}; f32[1,1,2] {10, 1}",
       CONV("[1]", "[0]", "[0]", "[1]", "[1]", "1", "channels-first"), "f32[1,1,3] {12, 23, 34}"}, /* not flipped */
      {"convolution", "f32[1,1,4] {1, 2, 3, 4}; f32[1,1,2] {10, 1}",
       CONV("[2]", "[1]", "[1]", "[1]", "[1]", "1", "channels-first"), "f32[1,1,3] {1, 23, 40}"},
      {"convolution", "f32[1,1,4] {1, 2, 3, 4}; f32[1,1,2] {10, 1}",
       CONV("[1]", "[-1]", "[-1]", "[1]", "[1]", "1", "channels-first"), "f32[1,1,1] {23}"}, /* crops 1 and 4 */
      {"convolution", "s32[1,1,5] {1, 2, 3, 4, 5}; s32[1,1,2] {10, 1}",
       CONV("[1]", "[0]", "[0]", "[1]", "[3]", "1", "channels-first"), "s32[1,1,2] {14, 25}"},
      /* lhs_dilation 2: the operand becomes 1 0 2 */
      {"convolution", "f64[1,1,2] {1, 2}; f64[1,1,2] {10, 1}",
       CONV("[1]", "[1]", "[1]", "[2]", "[1]", "1", "channels-first"), "f64[1,1,4] {1, 10, 2, 20}"},
      /* two channels in, two out: 1*1+2*2 = 5, 3*1+4*2 = 11; out 2: 1*3+2*4 */
      {"convolution", "f32[1,2,1] {1, 2}; f32[2,2,1] {1, 2, 3, 4}",
       CONV("[1]", "[0]", "[0]", "[1]", "[1]", "1", "channels-first"), "f32[1,2,1] {5, 11}"},
      /* groups: out 0 sees channel 0, out 1 channel 1 */
      {"convolution", "f32[1,2,2] {1, 2, 3, 4}; f32[2,1,1] {10, 100}",
       CONV("[1]", "[0]", "[0]", "[1]", "[1]", "2", "channels-first"), "f32[1,2,2] {10, 20, 300, 400}"},
      /* the same, channels last: x[w][c] */
      {"convolution", "f32[1,2,2] {1, 3, 2, 4}; f32[2,1,1] {10, 100}",
       CONV("[1]", "[0]", "[0]", "[1]", "[1]", "2", "channels-last"), "f32[1,2,2] {10, 300, 20, 400}"},
      /* two images, padded by a row at the top: sums of windows of 2 by 2 */
      {"convolution", "s8[2,1,2,2] {1, 2, 3, 4, 5, 6, 7, 8}; s8[1,1,2,2] {1, 1, 1, 1}",
       CONV("[1,1]", "[1,0]", "[0,0]", "[1,1]", "[1,1]", "1", "channels-first"), "s32[2,1,2,1] {3, 10, 11, 26}"},
      {"convolution", "f32[2,2] {1, 2, 3, 4}; f32[1,2] {1, 10}",
       CONV("[]", "[]", "[]", "[]", "[]", "1", "channels-first"), "f32[2,1] {21, 43}"},
      {"convolution", "f32[1,1,1] {3}; f32[1,1,1] {2}", CONV("[1]", "[2]", "[2]", "[1]", "[1]", "1", "channels-first"),
       "f32[1,1,5] {0, 0, 6, 0, 0}"},
      {"convolution", "c64[1,1,1] {(0, 1)}; c64[1,1,1] {(0, 1)}",
       CONV("[1]", "[0]", "[0]", "[1]", "[1]", "1", "channels-first"), "c64[1,1,1] {(-1, 0)}"},
      {0}};
  eval_check_rows(rows);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("ref");
  tcase_add_checked_fixture(c, eval_setup, eval_teardown);
  tcase_add_test(c, unary);
  tcase_add_test(c, binary);
  tcase_add_test(c, comparisons);
  tcase_add_test(c, conversions);
  tcase_add_test(c, random_bits);
  tcase_add_test(c, movement);
  tcase_add_test(c, gather_scatter);
  tcase_add_test(c, reductions);
  tcase_add_test(c, windows);
  tcase_add_test(c, contractions);
  return run_suite("ref", c);
}
