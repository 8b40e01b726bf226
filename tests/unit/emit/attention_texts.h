/* attention_texts.h - entry computations that compute attention, for tests of its kernels: layouts, masks,
 * rows without any key, sizes of heads.  Numbers of batches, queries and keys are symbols. */
#ifndef TESTS_UNIT_EMIT_ATTENTION_TEXTS_H
#define TESTS_UNIT_EMIT_ATTENTION_TEXTS_H

/* The softmax of %x, whose shape is `full`, with rows of shape `kept`, along dimension `last`. */
#define SOFTMAX(full, kept, last, dims)                                                                        \
  "%m = reduce(%x) {dimensions=[" last "], reducer=maximum} : " kept "\n%mb = broadcast(%m) {dimensions=" dims \
  "} : " full "\n%d = subtract(%x, %mb) : " full "\n%e = exponential(%d) : " full                              \
  "\n%s = reduce(%e) {dimensions=[" last "], reducer=add} : " kept "\n%sb = broadcast(%s) {dimensions=" dims   \
  "} : " full "\n%p = divide(%e, %sb) : " full "\n"
/* %y is %x times 1/8. */
#define EIGHTH(y, x, type)                                                                                             \
  "%c8 = constant() {value=f32[] 0.125} : f32[]\n%b8 = broadcast(%c8) {dimensions=[]} : " type "\n" y " = multiply(" x \
  ", %b8) : " type "\n"
#define LOW(type) "%low = constant() {value=f32[] -inf} : f32[]\n%lowb = broadcast(%low) {dimensions=[]} : " type "\n"

#define HEADS \
  "%qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : f32[b,3,n,m]\n"
#define OF_HEADS SOFTMAX("f32[b,3,n,m]", "f32[b,3,n]", "3", "[0,1,2]")
#define TIMES_V(type) \
  "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : " type "\n"

static const char *const attention_texts[] = {
    /* heads as slices of projections, scaled and masked; the result is transposed to their layout */
    "(%q: f32[b,n,3,16], %k: f32[b,m,3,16], %v: f32[b,m,3,16], %mask: f32[m]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} : f32[b,3,n,m]\n" EIGHTH(
        "%scaled", "%qk", "f32[b,3,n,m]") "%maskb = broadcast(%mask) {dimensions=[3]} : f32[b,3,n,m]\n%x = "
                                          "add(%scaled, %maskb) : f32[b,3,n,m]\n" OF_HEADS
    "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]} : f32[b,3,n,16]\n"
    "%y = transpose(%pv) {permutation=[0,2,1,3]} : f32[b,n,3,16]\nreturn %y\n}",
    /* causal, with a mask for each batch */
    "(%q: f32[b,3,n,64], %k: f32[b,3,m,64], %v: f32[b,3,m,32], %on: pred[b,m]) {\n" HEADS EIGHTH(
        "%z", "%qk", "f32[b,3,n,m]") "%i = iota() {dimension=2} : s32[b,3,n,m]\n%j = iota() {dimension=3} : "
                                     "s32[b,3,n,m]\n%seen = compare(%i, %j) {comparison=ge} : pred[b,3,n,m]\n%onb = "
                                     "broadcast(%on) {dimensions=[0,3]} : pred[b,3,n,m]\n%both = or(%seen, %onb) : "
                                     "pred[b,3,n,m]\n" LOW("f32[b,3,n,m]") "%x = select(%both, %z, %lowb) : "
                                                                           "f32[b,3,n,m]\n" OF_HEADS
                                                                               TIMES_V("f32[b,3,n,32]") "return %pv\n}",
    /* one token of a decoder: one query, m past keys and a new one, and a mask for queries and keys */
    "(%q: f32[1,3,1,64], %k: f32[1,3,m+1,64], %v: f32[1,3,m+1,64], %mask: f32[1,1,1,m+1], %past: f32[m]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : f32[1,3,1,m+1]\n"
    "%r = reshape(%mask) : f32[1,1,m+1]\n%maskb = broadcast(%r) {dimensions=[0,2,3]} : f32[1,3,1,m+1]\n"
    "%x = add(%qk, %maskb) : f32[1,3,1,m+1]\n" SOFTMAX("f32[1,3,1,m+1]", "f32[1,3,1]", "3", "[0,1,2]")
        TIMES_V("f32[1,3,1,64]") "return %pv\n}",
    /* keys as columns, heads of twenty elements, and a bias for each head */
    "(%q: f32[b,3,n,20], %k: f32[b,3,20,m], %v: f32[b,3,m,20], %bias: f32[3,n,m]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : f32[b,3,n,m]\n"
    "%bb = broadcast(%bias) {dimensions=[1,2,3]} : f32[b,3,n,m]\n%x = add(%qk, %bb) : f32[b,3,n,m]\n" OF_HEADS
        TIMES_V("f32[b,3,n,20]") "return %pv\n}",
    /* heads that share keys and values */
    "(%q: f32[b,6,n,32], %k0: f32[b,2,m,32], %v0: f32[b,2,m,32]) {\n"
    "%k1 = reshape(%k0) : f32[b,2,1,m,32]\n%k2 = reshape(%k1) : f32[b,2,m,32]\n"
    "%k3 = broadcast(%k2) {dimensions=[0,1,3,4]} : f32[b,2,3,m,32]\n%k = reshape(%k3) : f32[b,6,m,32]\n"
    "%v3 = broadcast(%v0) {dimensions=[0,1,3,4]} : f32[b,2,3,m,32]\n%v = reshape(%v3) : f32[b,6,m,32]\n"
    "%qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : f32[b,6,n,m]\n" EIGHTH(
        "%x", "%qk", "f32[b,6,n,m]") SOFTMAX("f32[b,6,n,m]", "f32[b,6,n]", "3", "[0,1,2]")
        TIMES_V("f32[b,6,n,32]") "return %pv\n}",
    /* slices of one projection */
    "(%all: f32[b,n,3,3,32]) {\n"
    "%q1 = slice(%all) {starts=[0,0,0,0,0], limits=[b,n,1,3,32], strides=[1,1,1,1,1]} : f32[b,n,1,3,32]\n"
    "%k1 = slice(%all) {starts=[0,0,1,0,0], limits=[b,n,2,3,32], strides=[1,1,1,1,1]} : f32[b,n,1,3,32]\n"
    "%v1 = slice(%all) {starts=[0,0,2,0,0], limits=[b,n,3,3,32], strides=[1,1,1,1,1]} : f32[b,n,1,3,32]\n"
    "%q = reshape(%q1) : f32[b,n,3,32]\n%k = reshape(%k1) : f32[b,n,3,32]\n%v = reshape(%v1) : f32[b,n,3,32]\n"
    "%qk = dot(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} : f32[b,3,n,n]\n" EIGHTH(
        "%x", "%qk", "f32[b,3,n,n]") SOFTMAX("f32[b,3,n,n]", "f32[b,3,n]", "3", "[0,1,2]")
    "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]} : f32[b,3,n,32]\n"
    "return %pv\n}",
    /* the sequence comes before the batch; the queries are the last part of a longer array */
    "(%q0: f32[n+m,b,2,16], %k: f32[m,b,2,16], %v: f32[b,2,m,16], %short: f32[n]) {\n"
    "%q = slice(%q0) {starts=[m,0,0,0], limits=[n+m,b,2,16], strides=[1,1,1,1]} : f32[n,b,2,16]\n"
    "%x = dot(%q, %k) {lhs_batch=[1,2], rhs_batch=[1,2], lhs_contract=[3], rhs_contract=[3]} : f32[b,2,n,m]\n" SOFTMAX(
        "f32[b,2,n,m]", "f32[b,2,n]", "3", "[0,1,2]") TIMES_V("f32[b,2,n,16]") "return %pv\n}",
    /* the sequence comes before the batch, also in the values and in the result */
    "(%q: f32[n,b,16], %k: f32[m,b,16], %v: f32[m,b,32]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[1], rhs_batch=[1], lhs_contract=[2], rhs_contract=[2]} : f32[b,n,m]\n" EIGHTH(
        "%x", "%qk", "f32[b,n,m]") SOFTMAX("f32[b,n,m]", "f32[b,n]", "2", "[0,1]")
    "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[1], lhs_contract=[2], rhs_contract=[0]} : f32[b,n,32]\n"
    "%y = transpose(%pv) {permutation=[1,0,2]} : f32[n,b,32]\nreturn %y\n}",
    /* columns of q and k that no vector divides */
    "(%q: f32[n,7], %k: f32[m,7], %v: f32[m,48]) {\n"
    "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m]\n" SOFTMAX(
        "f32[n,m]", "f32[n]", "1",
        "[0]") "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,48]\n"
               "return %pv\n}",
    /* wide heads, constant numbers of queries and of keys, any number of batches */
    "(%q: f32[b,9,256], %k: f32[b,37,256], %v: f32[b,37,512]) {\n"
    "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[b,9,37]\n" SOFTMAX(
        "f32[b,9,37]", "f32[b,9]", "2",
        "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[b,9,512]\n"
                 "return %pv\n}",
    /* keys before number 300 are masked, so that whole blocks of keys are; if there are no others, results
     * are NaN */
    "(%q: f32[n,16], %k: f32[m,16], %v: f32[m,16]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m]\n"
    "%j = iota() {dimension=1} : s32[n,m]\n%c300 = constant() {value=s32[] 300} : s32[]\n"
    "%b300 = broadcast(%c300) {dimensions=[]} : s32[n,m]\n%on = compare(%j, %b300) {comparison=ge} : pred[n,m]\n" LOW(
        "f32[n,m]") "%x = select(%on, %qk, %lowb) : f32[n,m]\n" SOFTMAX("f32[n,m]", "f32[n]", "1", "[0]")
    "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,16]\nreturn %pv\n}",
    /* scores whose exponentials are 0 unless their maximum is subtracted */
    "(%q: f32[n,16], %k: f32[m,16], %v: f32[m,16]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m]\n"
    "%c = constant() {value=f32[] -1000} : f32[]\n%cb = broadcast(%c) {dimensions=[]} : f32[n,m]\n%x = add(%qk, "
    "%cb) : f32[n,m]\n" SOFTMAX("f32[n,m]", "f32[n]", "1", "[0]")
    "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,16]\nreturn %pv\n}",
    /* rows all of whose keys are masked: results are NaN, although the total is not */
    "(%q: f32[n,16], %k: f32[m,16], %v: f32[m,16], %on: pred[n]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m]\n"
    "%onb = broadcast(%on) {dimensions=[0]} : pred[n,m]\n" LOW(
        "f32[n,m]") "%x = select(%onb, %qk, %lowb) : f32[n,m]\n"
    "%m = reduce(%x) {dimensions=[1], reducer=maximum} : f32[n]\n%mb = broadcast(%m) {dimensions=[0]} : f32[n,m]\n"
    "%d = subtract(%x, %mb) : f32[n,m]\n%e = exponential(%d) : f32[n,m]\n"
    "%s0 = reduce(%e) {dimensions=[1], reducer=add} : f32[n]\n%c0 = constant() {value=f32[] 0} : f32[]\n"
    "%zero = broadcast(%c0) {dimensions=[]} : f32[n]\n%c1 = constant() {value=f32[] 1} : f32[]\n"
    "%one = broadcast(%c1) {dimensions=[]} : f32[n]\n%some = compare(%s0, %zero) {comparison=gt} : pred[n]\n"
    "%s = select(%some, %s0, %one) : f32[n]\n%sb = broadcast(%s) {dimensions=[0]} : f32[n,m]\n"
    "%p = divide(%e, %sb) : f32[n,m]\n"
    "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,16]\nreturn %pv\n}",
    /* rows all of whose keys are masked: the maximum and the total are replaced there; scores pass through
     * tanh */
    "(%q: f32[b,n,16], %k: f32[b,m,16], %v: f32[b,m,16], %on: pred[b,n]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[b,n,m]\n"
    "%t = tanh(%qk) : f32[b,n,m]\n%onb = broadcast(%on) {dimensions=[0,1]} : pred[b,n,m]\n" LOW(
        "f32[b,n,m]") "%x = select(%onb, %t, %lowb) : f32[b,n,m]\n"
    "%m0 = reduce(%x) {dimensions=[2], reducer=maximum} : f32[b,n]\n%lowk = broadcast(%low) {dimensions=[]} : f32[b,n]\n"
    "%none = compare(%m0, %lowk) {comparison=eq} : pred[b,n]\n%c0 = constant() {value=f32[] 0} : f32[]\n"
    "%zero = broadcast(%c0) {dimensions=[]} : f32[b,n]\n%mx = select(%none, %zero, %m0) : f32[b,n]\n"
    "%mb = broadcast(%mx) {dimensions=[0,1]} : f32[b,n,m]\n%d = subtract(%x, %mb) : f32[b,n,m]\n"
    "%e = exponential(%d) : f32[b,n,m]\n%s0 = reduce(%e) {dimensions=[2], reducer=add} : f32[b,n]\n"
    "%c1 = constant() {value=f32[] 1} : f32[]\n%one = broadcast(%c1) {dimensions=[]} : f32[b,n]\n"
    "%empty = compare(%s0, %zero) {comparison=eq} : pred[b,n]\n%s = select(%empty, %one, %s0) : f32[b,n]\n"
    "%sb = broadcast(%s) {dimensions=[0,1]} : f32[b,n,m]\n%p = divide(%e, %sb) : f32[b,n,m]\n"
    "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[b,n,16]\n"
    "return %pv\n}",
};

/* The first 300 keys are masked, so that the first tiles have no key.  In the first text their maximum becomes 0, and
 * later scores are so small that e^(0 - score) is infinite; in the second one it stays -infinity. */
#define MASKED_TILES(define, shift) \
  "(%q: f32[n,8], %k: f32[m+300,8], %v: f32[m+300,8], %more: f32[m]) {\n"                                                       \
  "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m+300]\n"                \
  "%c = constant() {value=f32[] -1000} : f32[]\n%cb = broadcast(%c) {dimensions=[]} : f32[n,m+300]\n"                 \
  "%y = add(%qk, %cb) : f32[n,m+300]\n%j = iota() {dimension=1} : s32[n,m+300]\n%c300 = constant() {value=s32[] "     \
  "300} : s32[]\n%b300 = broadcast(%c300) {dimensions=[]} : s32[n,m+300]\n%on = compare(%j, %b300) {comparison=ge} : " \
  "pred[n,m+300]\n" LOW("f32[n,m+300]") "%x = select(%on, %y, %lowb) : f32[n,m+300]\n"                                \
  "%m0 = reduce(%x) {dimensions=[1], reducer=maximum} : f32[n]\n" define                                               \
  "%mb = broadcast(" shift ") {dimensions=[0]} : f32[n,m+300]\n%d = subtract(%x, %mb) : f32[n,m+300]\n"                     \
  "%e = exponential(%d) : f32[n,m+300]\n%s = reduce(%e) {dimensions=[1], reducer=add} : f32[n]\n"                     \
  "%sb = broadcast(%s) {dimensions=[0]} : f32[n,m+300]\n%p = divide(%e, %sb) : f32[n,m+300]\n"                        \
  "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,8]\nreturn %pv\n}"

static const char *const attention_masked_tiles[] = {
    MASKED_TILES("%lowk = broadcast(%low) {dimensions=[]} : f32[n]\n%none = compare(%m0, %lowk) {comparison=eq} : "
                 "pred[n]\n%c0 = constant() {value=f32[] 0} : f32[]\n%zero = broadcast(%c0) {dimensions=[]} : f32[n]\n"
                 "%mx = select(%none, %zero, %m0) : f32[n]\n",
                 "%mx"),
    MASKED_TILES("", "%m0")};

/* Where the softmax is NaN, 0 stands for it: in rows all of whose keys are masked, and in rows that have a NaN, which
 * is the logarithm of a negative number. */
#define WITHOUT_NAN(full, truth)                      \
  "%isnan = compare(%p, %p) {comparison=ne} : " truth \
  "\n%c0 = constant() {value=f32[] 0} : f32[]\n"      \
  "%zero = broadcast(%c0) {dimensions=[]} : " full "\n%weights = select(%isnan, %zero, %p) : " full "\n"
static const char *const attention_without_nan[] = {
    "(%q: f32[n,16], %k: f32[m,16], %v: f32[m,48], %on: pred[n]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m]\n"
    "%onb = broadcast(%on) {dimensions=[0]} : pred[n,m]\n" LOW(
        "f32[n,m]") "%x = select(%onb, %qk, %lowb) : f32[n,m]\n" SOFTMAX("f32[n,m]", "f32[n]", "1", "[0]")
        WITHOUT_NAN("f32[n,m]", "pred[n,m]")
    "%pv = dot(%weights, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,48]\n"
    "return %pv\n}",
    "(%q: f32[b,n,20], %k: f32[b,m,20], %v: f32[b,m,20], %w: f32[b,n]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[b,n,m]\n"
    "%log = log(%w) : f32[b,n]\n%logb = broadcast(%log) {dimensions=[0,1]} : f32[b,n,m]\n"
    "%x = add(%qk, %logb) : f32[b,n,m]\n" SOFTMAX("f32[b,n,m]", "f32[b,n]", "2", "[0,1]")
        WITHOUT_NAN("f32[b,n,m]", "pred[b,n,m]")
    "%pv = dot(%weights, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[b,n,20]\n"
    "return %pv\n}"};

enum { ATTENTION_TEXTS = sizeof attention_texts / sizeof *attention_texts };

#endif
