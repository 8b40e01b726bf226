/* candidate_rows.h - the contractions of check_candidates.c, and what follows them. */
#ifndef TESTS_TARGET_CANDIDATE_ROWS_H
#define TESTS_TARGET_CANDIDATE_ROWS_H

#include "tests/target/text_case.h"

enum { ROW = 1200 };

typedef struct row {
  const char *name, *x, *w, *y; /* shapes; w is a constant */
  const char *op;
  const char *epilogue; /* text that computes %r from %y, and perhaps from %b: f32[channels] and %s, whose shape is that
                           of %y; NULL: none */
  const char *prologue; /* text that computes %f, the dot's weights, from %w; NULL: the weights are %w */
} row;

#define DOT(rhs) "dot(%x, %w) " DOT_OF("", "", "1", rhs)
#define SMALL_DOT(rhs) "dot(%x, %f) " DOT_OF("", "", "1", rhs)
/* CONV is a convolution in two spatial dimensions; CONV_IN has as many as the list `ones`, whose elements are all 1. */
#define CONV(strides, pads, dilation, groups) CONV_IN("1,1", strides, pads, dilation, groups)
#define CONV_IN(ones, strides, pads, dilation, groups) \
  "convolution(%x, %w) " CONV_LAST(strides, pads, pads, ones, dilation, groups)

/* Epilogues.  $y stands for the shape of the result, $d for the number of its last dimension. */
static const char relu[] =
    "%bs = broadcast(%b) {dimensions=[$d]} : $y\n%a = add(%y, %bs) : $y\n"
    "%z = constant() {value=f32[] 0} : f32[]\n%zs = broadcast(%z) {dimensions=[]} : $y\n"
    "%r = maximum(%a, %zs) : $y\n";
static const char sum_relu[] =
    "%bs = broadcast(%b) {dimensions=[$d]} : $y\n%a = add(%y, %bs) : $y\n%t = add(%a, %s) : $y\n"
    "%z = constant() {value=f32[] 0} : f32[]\n%zs = broadcast(%z) {dimensions=[]} : $y\n%r = maximum(%t, %zs) : $y\n";
/* A residual that is added without a bias or an activation. */
static const char sum[] = "%r = add(%y, %s) : $y\n";
/* A residual that is multiplied, one that is added twice, and one that is added after an activation. */
static const char gate[] = "%g = logistic(%y) : $y\n%r = multiply(%g, %s) : $y\n";
static const char two_sums[] = "%a = add(%y, %s) : $y\n%g = tanh(%a) : $y\n%r = add(%g, %s) : $y\n";
static const char swish_sum[] = "%g = logistic(%y) : $y\n%a = multiply(%y, %g) : $y\n%r = add(%a, %s) : $y\n";
static const char swish[] =
    "%bs = broadcast(%b) {dimensions=[$d]} : $y\n%a = add(%y, %bs) : $y\n"
    "%g = logistic(%a) : $y\n%r = multiply(%a, %g) : $y\n";

static const char hard_swish[] =
    "%bs = broadcast(%b) {dimensions=[$d]} : $y\n%a = add(%y, %bs) : $y\n"
    "%k0 = constant() {value=f32[] 0} : f32[]\n%k3 = constant() {value=f32[] 3} : f32[]\n"
    "%k6 = constant() {value=f32[] 6} : f32[]\n%s3 = broadcast(%k3) {dimensions=[]} : $y\n"
    "%s6 = broadcast(%k6) {dimensions=[]} : $y\n%t = add(%a, %s3) : $y\n"
    "%c = clamp(%k0, %t, %k6) : $y\n%m = multiply(%a, %c) : $y\n"
    "%r = divide(%m, %s6) : $y\n";

/* Sums down to -90, where the logistic function is no normal number of f32; only numbers other than 0 have a finite
 * logarithm. */
#define FAR_BELOW                                                                             \
  "%c30 = constant() {value=f32[] 30} : f32[]\n%c90 = constant() {value=f32[] -90} : f32[]\n" \
  "%c1 = constant() {value=f32[] -1} : f32[]\n%b30 = broadcast(%c30) {dimensions=[]} : $y\n"  \
  "%t = multiply(%y, %b30) : $y\n%u = clamp(%c90, %t, %c1) : $y\n%g = logistic(%u) : $y\n"
static const char log_gate[] = FAR_BELOW "%r = log(%g) : $y\n";
static const char log_swish[] = FAR_BELOW "%m = multiply(%u, %g) : $y\n%a = abs(%m) : $y\n%r = log(%a) : $y\n";

/* Two factors whose product is no number of f32. */
static const char huge_factors[] =
    "%k = constant() {value=f32[] 1e30} : f32[]\n%ks = broadcast(%k) {dimensions=[]} : $y\n"
    "%m = multiply(%y, %ks) : $y\n%r = multiply(%m, %ks) : $y\n";

/* Sums of products of bytes, quantised to bytes: all operations are exact. */
static const char to_bytes[] =
    "%c = convert(%y) {saturate=true, rounding=nearest} : $f\n"
    "%k = constant() {value=f32[] 0.0009765625} : f32[]\n"
    "%ks = broadcast(%k) {dimensions=[]} : $f\n"
    "%m = multiply(%c, %ks) : $f\n%z = constant() {value=f32[] 101} : f32[]\n"
    "%zs = broadcast(%z) {dimensions=[]} : $f\n%a = add(%m, %zs) : $f\n"
    "%n = round-nearest-even(%a) : $f\n"
    "%r = convert(%n) {saturate=true, rounding=nearest} : $u\n";

/* Quantised weights that are dequantised in blocks of 32 or as a matrix, with a scale for each column. */
static const char blocks[] =
    "%c = convert(%w) {saturate=true, rounding=nearest} : s32[16,32,528]\n"
    "%k = constant() {value=s32[] 3} : s32[]\n"
    "%n = broadcast(%k) {dimensions=[]} : s32[16,32,528]\n"
    "%m = subtract(%c, %n) : s32[16,32,528]\n"
    "%g = convert(%m) {saturate=true, rounding=nearest} : f32[16,32,528]\n"
    "%u = broadcast(%b) {dimensions=[2]} : f32[16,32,528]\n"
    "%v = multiply(%g, %u) : f32[16,32,528]\n"
    "%f = reshape(%v) : f32[512,528]\n";
static const char columns[] =
    "%c = convert(%w) {saturate=true, rounding=nearest} : f32[512,640]\n"
    "%u = broadcast(%b) {dimensions=[0]} : f32[512,640]\n"
    "%f = multiply(%c, %u) : f32[512,640]\n";

/* Blocks with an odd number of weights, which kernels read only if each weight is a byte. */
static const char odd_blocks[] =
    "%c = convert(%w) {saturate=true, rounding=nearest} : f32[15,35,528]\n"
    "%u = broadcast(%b) {dimensions=[2]} : f32[15,35,528]\n"
    "%v = multiply(%c, %u) : f32[15,35,528]\n%f = reshape(%v) : f32[525,528]\n";

/* Weights that are computed, so that no library packs them. */
static const char negated[] = "%f = negate(%w) : f32[512,997]\n";

static const char tiny[] =
    "%i = constant() {value=f32[] 1e-35} : f32[]\n%is = broadcast(%i) {dimensions=[]} : f32[64,64]\n"
    "%f = multiply(%w, %is) : f32[64,64]\n";

static const row rows[] = {
    {"dot", "f32[37,64]", "f32[64,48]", "f32[37,48]", DOT("0"), NULL, NULL},
    {"dot, transposed weights", "f32[64,96]", "f32[80,96]", "f32[64,80]", DOT("1"), relu, NULL},
    {"dot, residual", "f32[50,200]", "f32[200,67]", "f32[50,67]", DOT("0"), sum_relu, NULL},
    {"dot of one row", "f32[1,512]", "f32[512,100]", "f32[1,100]", DOT("0"), relu, NULL},
    {"dot of one row, prime", "f32[1,512]", "f32[512,997]", "f32[1,997]", DOT("0"), relu, NULL},
    {"dot of one row, prime, computed weights", "f32[1,512]", "f32[512,997]", "f32[1,997]", SMALL_DOT("0"), relu,
     negated},
    {"dot of one column", "f32[300,512]", "f32[512,1]", "f32[300,1]", DOT("0"), NULL, NULL},
    {"1x1", "f32[1,9,11,48]", "f32[72,48,1,1]", "f32[1,9,11,72]", CONV("1,1", "0,0", "1,1", "1"), sum_relu, NULL},
    {"1x1, batch", "f32[3,7,7,64]", "f32[32,64,1,1]", "f32[3,7,7,32]", CONV("1,1", "0,0", "1,1", "1"), relu, NULL},
    {"1x1, stride 2", "f32[1,9,11,48]", "f32[72,48,1,1]", "f32[1,5,6,72]", CONV("2,2", "0,0", "1,1", "1"), swish, NULL},
    {"3x3", "f32[1,14,14,32]", "f32[48,32,3,3]", "f32[1,14,14,48]", CONV("1,1", "1,1", "1,1", "1"), relu, NULL},
    {"3x3, odd", "f32[2,13,9,17]", "f32[19,17,3,3]", "f32[2,13,9,19]", CONV("1,1", "1,1", "1,1", "1"), sum_relu, NULL},
    {"3x3, deep", "f32[1,7,7,256]", "f32[64,256,3,3]", "f32[1,7,7,64]", CONV("1,1", "1,1", "1,1", "1"), relu, NULL},
    {"3x3, no padding", "f32[1,12,12,16]", "f32[16,16,3,3]", "f32[1,10,10,16]", CONV("1,1", "0,0", "1,1", "1"),
     hard_swish, NULL},
    {"3x3, stride 2", "f32[1,15,15,24]", "f32[40,24,3,3]", "f32[1,8,8,40]", CONV("2,2", "1,1", "1,1", "1"), relu, NULL},
    {"3x3, dilated", "f32[1,14,14,16]", "f32[16,16,3,3]", "f32[1,14,14,16]", CONV("1,1", "2,2", "2,2", "1"), relu,
     NULL},
    {"7x7 on 3 channels", "f32[1,29,31,3]", "f32[16,3,7,7]", "f32[1,15,16,16]", CONV("2,2", "3,3", "1,1", "1"), relu,
     NULL},
    {"groups", "f32[1,10,10,32]", "f32[32,8,3,3]", "f32[1,10,10,32]", CONV("1,1", "1,1", "1,1", "4"), relu, NULL},
    {"depthwise", "f32[1,20,20,48]", "f32[48,1,3,3]", "f32[1,20,20,48]", CONV("1,1", "1,1", "1,1", "48"), relu, NULL},
    {"depthwise, stride 2", "f32[1,20,20,33]", "f32[33,1,5,5]", "f32[1,10,10,33]", CONV("2,2", "2,2", "1,1", "33"),
     swish, NULL},
    {"1-D", "f32[1,200,16]", "f32[24,16,5]", "f32[1,200,24]", CONV_IN("1", "1", "2", "1", "1"), relu, NULL},
    {"3-D", "f32[1,6,7,8,8]", "f32[16,8,3,3,3]", "f32[1,6,7,8,16]", CONV_IN("1,1,1", "1,1,1", "1,1,1", "1,1,1", "1"),
     relu, NULL},
    {"square dot, residual", "f32[64,64]", "f32[64,64]", "f32[64,64]", DOT("0"), sum, NULL},
    {"3x3, residual", "f32[1,14,14,16]", "f32[16,16,3,3]", "f32[1,14,14,16]", CONV("1,1", "1,1", "1,1", "1"), sum,
     NULL},
    {"3x3, residual, batch", "f32[3,9,9,24]", "f32[24,24,3,3]", "f32[3,9,9,24]", CONV("1,1", "1,1", "1,1", "1"),
     swish_sum, NULL},
    {"5x5, residual", "f32[1,9,9,24]", "f32[24,24,5,5]", "f32[1,9,9,24]", CONV("1,1", "2,2", "1,1", "1"), sum_relu,
     NULL},
    {"3x3, far taps, gate", "f32[1,24,24,32]", "f32[32,32,3,3]", "f32[1,24,24,32]", CONV("1,1", "4,4", "4,4", "1"),
     gate, NULL},
    {"3x3, far taps, sum", "f32[1,24,24,32]", "f32[32,32,3,3]", "f32[1,24,24,32]", CONV("1,1", "4,4", "4,4", "1"), sum,
     NULL},
    {"3x3, far taps, sums", "f32[1,24,24,32]", "f32[32,32,3,3]", "f32[1,24,24,32]", CONV("1,1", "4,4", "4,4", "1"),
     two_sums, NULL},
    {"9x9, gate", "f32[1,14,14,16]", "f32[16,16,9,9]", "f32[1,14,14,16]", CONV("1,1", "4,4", "1,1", "1"), gate, NULL},
    {"1-D, far taps, gate", "f32[2,48,32]", "f32[32,32,3]", "f32[2,48,32]", CONV_IN("1", "1", "4", "4", "1"), gate,
     NULL},
    {"groups of 6, gate", "f32[1,14,14,48]", "f32[48,6,5,5]", "f32[1,14,14,48]", CONV("1,1", "2,2", "1,1", "8"), gate,
     NULL},
    {"groups of 6, sums", "f32[2,9,9,12]", "f32[12,6,3,3]", "f32[2,9,9,12]", CONV("1,1", "1,1", "1,1", "2"), two_sums,
     NULL},
    {"groups of 12, gate, 1x1", "f32[2,14,14,48]", "f32[48,12,1,1]", "f32[2,14,14,48]", CONV("1,1", "0,0", "1,1", "4"),
     gate, NULL},
    {"3-D depthwise, gate", "f32[2,6,6,6,24]", "f32[24,1,1,1,1]", "f32[2,6,6,6,24]",
     CONV_IN("1,1,1", "1,1,1", "0,0,0", "1,1,1", "24"), gate, NULL},
    {"3-D groups, sums", "f32[1,6,6,6,24]", "f32[24,2,3,3,3]", "f32[1,6,6,6,24]",
     CONV_IN("1,1,1", "1,1,1", "1,1,1", "1,1,1", "12"), two_sums, NULL},
    {"1x1, residual", "f32[1,9,11,40]", "f32[40,40,1,1]", "f32[1,9,11,40]", CONV("1,1", "0,0", "1,1", "1"), swish_sum,
     NULL},
    {"groups, residual", "f32[1,10,10,32]", "f32[32,8,3,3]", "f32[1,10,10,32]", CONV("1,1", "1,1", "1,1", "4"), sum,
     NULL},
    {"depthwise, residual", "f32[1,20,20,24]", "f32[24,1,3,3]", "f32[1,20,20,24]", CONV("1,1", "1,1", "1,1", "24"), sum,
     NULL},
    {"depthwise 7x7, residual", "f32[2,13,13,36]", "f32[36,1,7,7]", "f32[2,13,13,36]", CONV("1,1", "3,3", "1,1", "36"),
     swish_sum, NULL},
    {"3-D, residual", "f32[1,6,6,6,16]", "f32[16,16,3,3,3]", "f32[1,6,6,6,16]",
     CONV_IN("1,1,1", "1,1,1", "1,1,1", "1,1,1", "1"), sum, NULL},
    {"dot, small gate", "f32[50,200]", "f32[200,67]", "f32[50,67]", DOT("0"), log_gate, NULL},
    {"dot, small swish", "f32[50,200]", "f32[200,67]", "f32[50,67]", DOT("0"), log_swish, NULL},
    {"3x3, small gate", "f32[1,14,14,16]", "f32[16,16,3,3]", "f32[1,14,14,16]", CONV("1,1", "1,1", "1,1", "1"),
     log_gate, NULL},
    {"depthwise, small swish", "f32[1,20,20,24]", "f32[24,1,5,5]", "f32[1,20,20,24]", CONV("1,1", "2,2", "1,1", "24"),
     log_swish, NULL},
    {"dot, huge factors", "f32[37,64]", "f32[64,64]", "f32[37,64]", SMALL_DOT("0"), huge_factors, tiny},
    {"dot, blocks of 4 bits", "f32[3,512]", "s4[16,32,528]", "f32[3,528]", SMALL_DOT("0"), relu, blocks},
    {"dot, odd blocks of 8 bits", "f32[3,525]", "s8[15,35,528]", "f32[3,528]", SMALL_DOT("0"), relu, odd_blocks},
    {"dot, columns of 8 bits", "f32[1,640]", "u8[512,640]", "f32[1,512]", SMALL_DOT("1"), NULL, columns},
    {"bytes, dot", "u8[37,64]", "s8[64,48]", "s32[37,48]", DOT("0"), NULL, NULL},
    {"bytes, transposed weights", "s8[64,96]", "s8[80,96]", "s32[64,80]", DOT("1"), to_bytes, NULL},
    {"bytes, an odd sum", "u8[64,95]", "s8[80,95]", "s32[64,80]", DOT("1"), to_bytes, NULL},
    {"bytes, 1x1", "u8[1,9,11,48]", "s8[72,48,1,1]", "s32[1,9,11,72]", CONV("1,1", "0,0", "1,1", "1"), to_bytes, NULL},
    {"bytes, 1x1, stride 2", "s8[2,9,11,48]", "s8[29,48,1,1]", "s32[2,5,6,29]", CONV("2,2", "0,0", "1,1", "1"),
     to_bytes, NULL},
    {"bytes, 3x3", "s8[2,13,9,20]", "s8[19,20,3,3]", "s32[2,13,9,19]", CONV("1,1", "1,1", "1,1", "1"), NULL, NULL},
    {"bytes, groups", "u8[1,10,10,32]", "s8[32,8,3,3]", "s32[1,10,10,32]", CONV("1,1", "1,1", "1,1", "4"), to_bytes,
     NULL},
    {"bytes, depthwise", "u8[1,20,20,48]", "s8[48,1,3,3]", "s32[1,20,20,48]", CONV("1,1", "1,1", "1,1", "48"), to_bytes,
     NULL},
    {"bytes, depthwise, stride 2", "s8[1,20,20,33]", "s8[33,1,5,5]", "s32[1,10,10,33]", CONV("2,2", "2,2", "1,1", "33"),
     NULL, NULL},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

#endif
