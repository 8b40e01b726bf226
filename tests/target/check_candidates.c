/* check_candidates.c - every config that the cpu target has for a contraction computes what the reference evaluator
 * computes, with the same bits in each run and for any number of threads. */
#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/lower/lower.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "base/hash.h"
#include "hlo/text/text.h"
#include "lower/kernels/thunks.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"
#include "tests/suite.h"
#include "tests/target/text_case.h"

/* The largest error, relative to the largest result.  Inputs and weights are random numbers from -1 to 1.  A sum of k
 * products, each rounded once, differs by about sqrt(k) times 2^-24 of its size from the reference, which adds in
 * another order; k is at most 2304.  Winograd's transforms cost some more bits. */
static const double tolerance = 0x1p-17;

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

static float rounded(float x, dtype reduced_precision) {
  uint8_t element[8];
  if (!reduced_precision) {
    return x;
  }
  dtype_store_f64(reduced_precision, element, x, false, DTYPE_ROUND_NEAREST);
  return (float)dtype_load_f64(reduced_precision, element);
}

/* Returns random bytes for a type of integers, otherwise random f32 in [-1, 1), which are rounded to reduced_precision
 * unless that is DTYPE_INVALID. */
static literal random_literal(arena *a, shape s, uint64_t seed, dtype reduced_precision) {
  void *data;
  literal l = literal_new(a, s, &data);
  if (dtype_is_int((dtype)s.type)) {
    for (int64_t k = 0; k < shape_bytes(&s); k++) {
      ((uint8_t *)data)[k] = (uint8_t)(hash_mix(seed, (uint64_t)k) >> 56);
    }
    return l;
  }
  for (int64_t k = 0; k < shape_elements(&s); k++) {
    ((float *)data)[k] = rounded((float)((double)(hash_mix(seed, (uint64_t)k) >> 11) * 0x1p-52 - 1), reduced_precision);
  }
  return l;
}

typedef struct weights {
  arena *arena;
  dtype reduced_precision;
} weights;

/* A function for hlo_parse_options.blob: makes the weights. */
static status random_blob(void *data, uint64_t number, const shape *s, const void **bytes) {
  const weights *w = data;
  const dtype_info *type = dtype_get_info((dtype)s->type);
  if (!dtype_is_int((dtype)s->type)) {
    *bytes = random_literal(w->arena, *s, number + 100, w->reduced_precision).data;
    return NULL;
  }
  int8_t *small = arena_alloc(w->arena, (size_t)shape_elements(s));
  for (int64_t k = 0; k < shape_elements(s); k++) { /* the highest type->bits of 8 random bits, with their sign */
    int x = (int8_t)(hash_mix(number, (uint64_t)k) >> 56);
    small[k] = (int8_t)(x >> (8 - type->bits));
  }
  *bytes = small;
  return NULL;
}

/* Writes the text to `out` with $y and $d replaced.  $f and $u stand for the shape $y with the element type f32 or
 * u8. */
static void fill_in(const char *text, const row *r, char *out) {
  int last = -1;
  for (const char *c = r->y; *c; c++) {
    last += *c == ',' || *c == '[';
  }
  for (; *text; text++) {
    if (*text == '$') {
      char what = text[1];
      out += what == 'd'   ? sprintf(out, "%d", last)
             : what == 'y' ? sprintf(out, "%s", r->y)
                           : sprintf(out, "%s%s", what == 'f' ? "f32" : "u8", strchr(r->y, '['));
      text++;
    } else {
      *out++ = *text;
    }
  }
  *out = '\0';
}

/* Writes the concatenation %joined of %s and the result along the innermost dimension. */
static void add_concatenation(const row *r, char *out) {
  int before = (int)(strrchr(r->y, ',') + 1 - r->y);
  out += sprintf(out, "%%joined = concatenate(%%s, %s) ", r->epilogue ? "%r" : "%y");
  fill_in("{dimension=$d} : ", r, out);
  sprintf(out + strlen(out), "%.*s%d]\n", before, r->y, 2 * atoi(r->y + before));
}

/* What the epilogue adds as %s. */
typedef enum addend {
  GIVEN,    /* an input of the program, which nothing may be written over */
  COMPUTED, /* a computed array that nothing else reads: the result may take its memory */
  OPERAND,  /* the contraction's operand, which nothing else reads either */
  VIEW,     /* a reshape of that operand */
  N_RESIDUALS
} addend;

/* Writes the instructions that compute %x and %s from the inputs %x0 and %s0. */
static void add_operands(const row *r, addend residual, char *out) {
  if (residual != GIVEN) {
    out += sprintf(out, "%%x = negate(%%x0) : %s\n", r->x);
  }
  if (residual == COMPUTED) {
    sprintf(out, "%%s = negate(%%s0) : %s\n", r->y);
  } else if (residual == VIEW) {
    sprintf(out, "%%s = reshape(%%x) : %s\n", r->y);
  }
}

/* Replaces all %s by %x, but not in longer names that begin with %s. */
static void add_operand_itself(char *text) {
  while ((text = strstr(text, "%s"))) {
    text[1] = isalnum((unsigned char)text[2]) ? 's' : 'x';
    text += 2;
  }
}

/* Returns the module of a row.  If `placed`, what the row computes is only a part of the module's result. */
static hlo_module *parse(arena *a, const row *r, dtype reduced_precision, bool placed, addend residual) {
  char text[4000], epilogue[ROW] = "", concatenation[200] = "", operands[200] = "";
  const char *kernel = residual == GIVEN ? "" : "0";
  const char *channels = strrchr(r->y, ',') + 1, *root = placed ? "%joined" : r->epilogue ? "%r" : "%y";
  fill_in(r->epilogue ? r->epilogue : "", r, epilogue);
  if (placed) {
    add_concatenation(r, concatenation);
  }
  add_operands(r, residual, operands);
  snprintf(text, sizeof text,
           "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%%x%s: %s \"x\", %%b: f32[%.*s] \"b\", %%s%s: %s \"s\") {\n"
           "%s%%w = constant() {value=%s blob(1)} : %s\n%s%%y = %s : %s\n%s%sreturn %s \"r\"\n}\n}\n",
           kernel, r->x, (int)strcspn(channels, "]"), channels, kernel, r->y, operands, r->w, r->w,
           r->prologue ? r->prologue : "", r->op, r->y, epilogue, concatenation, root);
  if (residual == OPERAND) {
    add_operand_itself(text);
  }
  weights w = {a, reduced_precision};
  hlo_parse_options options = {.blob = random_blob, .blob_data = &w};
  hlo_module *m = NULL;
  status s = hlo_parse(a, text, strlen(text), &options, &m);
  ck_assert_msg(!s, "%s: %s\n%s", r->name, status_message(s), text);
  return m;
}

/* Fuses the epilogue as the pipeline does. */
static void fuse(arena *a, hlo_module *m) {
  static rt_compile_options options;
  static cpu_asked asked = {.options = &options};
  static const hlo_target target = {.name = "cpu",
                                    .data = &asked,
                                    .takes_epilogue = cpu_takes_epilogue,
                                    .takes_quantized_weights = cpu_takes_quantized_weights,
                                    .takes_in_place_update = cpu_takes_in_place_update,
                                    .channels_last = true};
  static const hlo_pass steps[] = {HLO_STEP(epilogue), HLO_STEP(concat_in_place), HLO_STEP(dce)};
  pass_context c = {.arena = a, .target = &target, .any_order = true, .verify = true};
  status s = hlo_run_passes(m, steps, sizeof steps / sizeof *steps, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}

/* --- one config --- */

/* A CPU and vector width for which code is written. */
typedef struct machine {
  const char *cpu;
  int lanes;
} machine;
static const machine machines[] = {{"native", 0}, {"native", 8}, {"native", 4}, {"native", 1}, {"x86-64", 0}};
enum { N_MACHINES = sizeof machines / sizeof *machines };

typedef struct attempt {
  const row *row;
  const machine *machine;
  uint32_t config, n_configs;
  bool placed; /* the result is a part of a larger one */
  addend residual;
  dtype reduced_precision; /* only configs that round operands to this type are tried; DTYPE_INVALID: only configs that
                              do not round them */
  emit_target target;
  char name[80];
  rt_program *program;
} attempt;

/* Gives the module's contraction the config with the number t->config. */
static status choose(attempt *t, arena *a, hlo_module *m, const cpu_problem_options *options) {
  cpu_config *configs;
  cpu_problem p;
  hlo_instr *i = m->entry->first;
  while (!cpu_problem_of(i, options, &p)) {
    i = i->next;
  }
  t->n_configs = cpu_list_configs(a, &p, &configs);
  CHECK_THAT(t->config < t->n_configs, STATUS_UNSUPPORTED, "no such config");
  CHECK_THAT(!t->reduced_precision || configs[t->config].algorithm == &cpu_reduced_precision_algorithm,
             STATUS_UNSUPPORTED, "not of reduced precision");
  i->config = cpu_config_name(a, &configs[t->config]);
  snprintf(t->name, sizeof t->name, "%s", i->config);
  return NULL;
}

static status compile(attempt *t, arena *a, hlo_module *m) {
  cpu_problem_options problems = {
      .target = &t->target, .threads = 3, .numerics.reduced_precision = t->reduced_precision};
  lower_kernels *kernels = lower_kernels_create(a, &t->target, "cpu.kernel", NULL);
  cpu_plans *plans = cpu_plans_create(a, &problems);
  lower_jobs *jobs = lower_jobs_create(a);
  cpu_lower_options options = {.target = &t->target, .threads = 3, .plans = plans, .jobs = jobs};
  rt_report report = {0};
  size_table sizes;
  lower_object_code code;
  TRY(choose(t, a, m, &problems));
  TRY(cpu_plans_build_given(plans, m));
  TRY(cpu_lower(m, kernels, &options, a, &sizes, &t->program, &report));
  TRY(lower_kernels_compile(kernels, jobs, 1, 1, &code));
  TRY(lower_kernels_attach_program(&sizes, kernels, &code));
  t->program->cpu = code.n ? emit_target_text(a, &t->target) : "";
  return NULL;
}

static literal run(const attempt *t, arena *a, const literal *in, uint32_t threads) {
  rt_executable *e;
  rt_thread_pool *pool;
  void *result;
  literal out = literal_new(a, t->program->results[0].shape, &result);
  const void *params[] = {in[0].data, in[1].data, in[2].data};
  memset(result, 0x5a, (size_t)shape_bytes(&out.shape));
  status s = rt_executable_create(t->program, &cpu_target, NULL, &e);
  ck_assert_msg(!s, "%s, %s: %s", t->row->name, t->name, status_message(s));
  ck_assert_ptr_null(rt_thread_pool_create(threads, &pool));
  for (int k = 0; k < 2 && !s; k++) {
    s = rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = pool}, params, &result);
  }
  ck_assert_msg(!s, "%s, %s: %s", t->row->name, t->name, status_message(s));
  rt_thread_pool_destroy(pool);
  rt_executable_destroy(e);
  return out;
}

static void compare(const attempt *t, const literal *want, const literal *got) {
  double most = 0;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    most = fmax(most, fabs(literal_f64(want, k)));
  }
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    double x = literal_f64(want, k), y = literal_f64(got, k);
    ck_assert_msg(fabs(x - y) <= tolerance * most, "%s, %s: element %lld is %.9g, not %.9g", t->row->name, t->name,
                  (long long)k, y, x);
  }
}

/* Runs the row with config number t->config and compares the results.  Modules are parsed anew each time, since passes
 * and lowering change them. */
static status try_config(void *data) {
  attempt *t = data;
  arena *a = arena_create(NULL);
  hlo_module *m = parse(a, t->row, DTYPE_INVALID, t->placed, t->residual);
  hlo_module *rounded_m = parse(a, t->row, t->reduced_precision, t->placed, t->residual);
  literal in[3], rounded_in[3], want;
  for (uint32_t k = 0; k < 3; k++) { /* the operand, bias, residual */
    shape s = *hlo_shape(hlo_result(m->entry->params[k], 0));
    in[k] = random_literal(a, s, k, DTYPE_INVALID);
    rounded_in[k] = random_literal(a, s, k, k == 0 ? t->reduced_precision : DTYPE_INVALID);
  }
  ck_assert_ptr_null(ref_eval_computation(rounded_m->entry, rounded_in, a, &want));
  fuse(a, m);
  ck_assert_ptr_null(emit_target_init(a, NULL, t->machine->cpu, t->machine->lanes, &t->target));
  status s = compile(t, a, m);
  if (!s) {
    literal one = run(t, a, in, 1), three = run(t, a, in, 3);
    compare(t, &want, &one);
    ck_assert_msg(literal_equal(&one, &three), "%s, %s: other bits with three threads", t->row->name, t->name);
  }
  bool impossible = s && (status_get_code(s) & STATUS_CODE_MASK) == STATUS_UNSUPPORTED;
  ck_assert_msg(!s || impossible, "%s, %s: %s", t->row->name, t->name, status_message(s));
  status_free(s);
  arena_destroy(a);
  return NULL;
}

static void try_all(attempt *t) {
  for (t->n_configs = 1; t->config < t->n_configs; t->config++) {
    ck_assert_ptr_null(guard_run(try_config, t));
  }
}

START_TEST(every_plan) {
  attempt t = {.row = &rows[_i], .machine = machines};
  try_all(&t);
  ck_assert_uint_ge(t.n_configs, 1);
}
END_TEST

/* Each config writes its result into a part of a larger array, on some of the machines. */
START_TEST(every_plan_in_place) {
  for (int k = 0; k < N_MACHINES && *rows[_i].y == 'f'; k += 2) {
    attempt t = {.row = &rows[_i], .machine = &machines[k], .n_configs = 1, .placed = true};
    for (; t.config < t.n_configs; t.config++) {
      ck_assert_ptr_null(guard_run(try_config, &t));
    }
  }
}
END_TEST

/* The result may be written over the residual, unless the contraction reads the residual's memory, too. */
START_TEST(every_plan_over_its_residual) {
  const row *r = &rows[_i];
  bool adds = r->epilogue && strstr(r->epilogue, "%s)"), square = adds && strcmp(r->x, r->y) == 0;
  for (addend one = COMPUTED; adds && one < (square ? N_RESIDUALS : OPERAND); one++) {
    attempt t = {.row = r, .machine = machines, .residual = one};
    try_all(&t);
  }
}
END_TEST

/* Contractions of bytes at all widths, with instructions that multiply bytes and without. */
START_TEST(every_machine) {
  for (int k = 1; k < N_MACHINES && *rows[_i].x != 'f'; k++) {
    attempt t = {.row = &rows[_i], .machine = &machines[k]};
    try_all(&t);
  }
}
END_TEST

/* With both operands rounded beforehand, products are exact in f32, and the tolerance is that of f32. */
START_TEST(every_reduced_precision_plan) {
  static const dtype types[] = {DTYPE_BF16, DTYPE_F16};
  for (int k = 0; k < 2 && *rows[_i].x == 'f'; k++) {
    attempt t = {.row = &rows[_i], .machine = machines, .reduced_precision = types[k]};
    try_all(&t);
  }
}
END_TEST

/* Sets *p to the row's contraction as the tuner gets it. */
static void read_problem(arena *a, const row *r, emit_target *target, cpu_problem *p) {
  hlo_module *m = parse(a, r, DTYPE_INVALID, false, GIVEN);
  fuse(a, m);
  ck_assert_ptr_null(emit_target_init(a, NULL, "native", 0, target));
  hlo_instr *i = m->entry->first;
  cpu_problem_options options = {.target = target, .threads = 2};
  while (i && !cpu_problem_of(i, &options, p)) {
    i = i->next;
  }
  ck_assert_ptr_nonnull(i);
}

/* No two configs have the same name, each has an estimate, and reduced precision is never the first. */
START_TEST(names_differ) {
  arena *a = arena_create(NULL);
  emit_target target;
  cpu_problem p;
  cpu_config *configs;
  read_problem(a, &rows[_i], &target, &p);
  p.options.numerics.reduced_precision = DTYPE_BF16;
  uint32_t n = cpu_list_configs(a, &p, &configs);
  for (uint32_t k = 0; k < n; k++) {
    ck_assert(isfinite(configs[k].estimate) && configs[k].estimate > 0);
    ck_assert_msg(k > 0 || configs[k].algorithm != &cpu_reduced_precision_algorithm, "a narrow way is the best guess");
    for (uint32_t j = 0; j < k; j++) {
      ck_assert_str_ne(cpu_config_name(a, &configs[k]), cpu_config_name(a, &configs[j]));
    }
  }
  arena_destroy(a);
}
END_TEST

static uint32_t winograd_configs(arena *a, const cpu_problem *p) {
  cpu_config *configs;
  uint32_t n = cpu_list_configs(a, p, &configs), found = 0;
  for (uint32_t k = 0; k < n; k++) {
    found += configs[k].algorithm == &cpu_winograd_algorithm;
  }
  return found;
}

/* A contraction that must be exact is not computed by Winograd's algorithm, which rounds differently from a sum of
 * products. */
START_TEST(exact_means_no_winograd) {
  const row *r = rows;
  while (strcmp(r->name, "3x3") != 0) {
    r++;
  }
  arena *a = arena_create(NULL);
  emit_target target;
  cpu_problem p;
  read_problem(a, r, &target, &p);
  ck_assert_uint_gt(winograd_configs(a, &p), 0);
  p.options.numerics.exact = true;
  ck_assert_uint_eq(winograd_configs(a, &p), 0);
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("candidates");
  tcase_set_timeout(c, 60); /* a row compiles some dozens of programs */
  tcase_add_loop_test(c, every_plan, 0, N_ROWS);
  tcase_add_loop_test(c, every_plan_in_place, 0, N_ROWS);
  tcase_add_loop_test(c, every_plan_over_its_residual, 0, N_ROWS);
  tcase_add_loop_test(c, every_machine, 0, N_ROWS);
  tcase_add_loop_test(c, every_reduced_precision_plan, 0, N_ROWS);
  tcase_add_loop_test(c, names_differ, 0, N_ROWS);
  tcase_add_test(c, exact_means_no_winograd);
  return run_suite("candidates", c);
}
