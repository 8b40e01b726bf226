/* kernel_texts.h - kernels as HLO text for kernel_case.h: kernels that move elements, and reductions with other
 * operations fused to them. */
#ifndef TESTS_UNIT_EMIT_KERNEL_TEXTS_H
#define TESTS_UNIT_EMIT_KERNEL_TEXTS_H

static const char *const movement_texts[] = {
    "f32[3,5,7](%x: f32[5,7]) {\n%y = broadcast(%x) {dimensions=[1, 2]} : f32[3,5,7]\nreturn %y\n}",
    "f32[6,40](%x: f32[6]) {\n%y = broadcast(%x) {dimensions=[0]} : f32[6,40]\nreturn %y\n}",
    "f32[2,3,8,8](%x: f32[2,3,8,8], %b: f32[3]) {\n%c = broadcast(%b) {dimensions=[1]} : f32[2,3,8,8]\n%y = "
    "add(%x, %c) : "
    "f32[2,3,8,8]\n%z = maximum(%y, %c) : f32[2,3,8,8]\nreturn %z\n}",
    "f32[2,33](%x: f32[2,1]) {\n%y = broadcast(%x) {dimensions=[0, 1]} : f32[2,33]\nreturn %y\n}",
    "f32[9,4](%x: f32[]) {\n%y = broadcast(%x) {dimensions=[]} : f32[9,4]\n%z = negate(%y) : "
    "f32[9,4]\nreturn %z\n}",
    "f32[13,17](%x: f32[17,13]) {\n%y = transpose(%x) {permutation=[1, 0]} : f32[13,17]\nreturn %y\n}",
    "f32[2,20,5,3](%x: f32[2,3,20,5]) {\n%y = transpose(%x) {permutation=[0, 2, 3, 1]} : "
    "f32[2,20,5,3]\nreturn %y\n}",
    "f32[2,32,20](%x: f32[2,20,32]) {\n%y = transpose(%x) {permutation=[0, 2, 1]} : f32[2,32,20]\nreturn "
    "%y\n}",
    "f32[4,30](%x: f32[4,6,5]) {\n%y = reshape(%x) : f32[4,30]\nreturn %y\n}",
    "f32[24,7](%x: f32[8,21]) {\n%y = reverse(%x) {dimensions=[1]} : f32[8,21]\n%z = reshape(%y) : "
    "f32[24,7]\nreturn %z\n}",
    "f32[10,12](%x: f32[3,5,8]) {\n%y = transpose(%x) {permutation=[2, 0, 1]} : f32[8,3,5]\n%z = reshape(%y) "
    ": f32[10,12]\nreturn "
    "%z\n}",
    "f32[64,49](%x: f32[64,7,7], %b: f32[7]) {\n%c = broadcast(%b) {dimensions=[2]} : f32[64,7,7]\n%y = "
    "add(%x, %c) : "
    "f32[64,7,7]\n%z = reshape(%y) : f32[64,49]\nreturn %z\n}",
    "f32[5,40](%x: f32[5,40]) {\n%y = reverse(%x) {dimensions=[0, 1]} : f32[5,40]\nreturn %y\n}",
    "f32[3,17](%x: f32[5,40]) {\n%y = slice(%x) {starts=[1, 5], limits=[4, 39], strides=[1, 2]} : "
    "f32[3,17]\nreturn %y\n}",
    "f32[3,7](%x: f32[3,40]) {\n%y = slice(%x) {starts=[0, 1], limits=[3, 38], strides=[1, 4]} : "
    "f32[3,10]\n%z = slice(%y) "
    "{starts=[0, 3], limits=[3, 10], strides=[1, 1]} : f32[3,7]\nreturn %z\n}",
    "f32[2,20](%x: f32[4,200]) {\n%y = slice(%x) {starts=[1, 7], limits=[4, 200], strides=[2, 10]} : "
    "f32[2,20]\nreturn %y\n}",
    "f32[6,45](%x: f32[5,40], %v: f32[]) {\n%y = pad(%x, %v) {low=[2, 3], high=[-1, 2], interior=[0, 0]} : "
    "f32[6,45]\nreturn %y\n}",
    "f32[5,35](%x: f32[5,40], %v: f32[]) {\n%y = pad(%x, %v) {low=[0, -3], high=[0, -2], interior=[0, 0]} : "
    "f32[5,35]\nreturn %y\n}",
    "f32[10,41](%x: f32[5,20], %v: f32[]) {\n%y = pad(%x, %v) {low=[1, -1], high=[0, 3], interior=[1, 1]} : "
    "f32[10,41]\nreturn %y\n}",
    "f32[5](%x: f32[0], %v: f32[]) {\n%y = pad(%x, %v) {low=[2], high=[3], interior=[0]} : f32[5]\nreturn "
    "%y\n}",
    "f32[2,10,6](%x: f32[2,3,6], %y: f32[2,0,6], %z: f32[2,7,6]) {\n%c = concatenate(%x, %y, %z) "
    "{dimension=1} : f32[2,10,6]\nreturn "
    "%c\n}",
    "f32[3,60](%x: f32[3,33], %y: f32[3,4], %z: f32[3,23]) {\n%c = concatenate(%x, %y, %z) {dimension=1} : "
    "f32[3,60]\n%d = "
    "negate(%c) : f32[3,60]\nreturn %d\n}",
    "f32[40](%x: f32[17], %y: f32[23]) {\n%c = concatenate(%x, %y) {dimension=0} : f32[40]\n%d = reverse(%c) "
    "{dimensions=[0]} : "
    "f32[40]\n%e = add(%c, %d) : f32[40]\nreturn %e\n}",
    "f32[4,70](%x: f32[4,30], %v: f32[]) {\n%p = pad(%x, %v) {low=[0, 3], high=[0, 2], interior=[0, 0]} : "
    "f32[4,35]\n%q = reverse(%p) "
    "{dimensions=[1]} : f32[4,35]\n%c = concatenate(%p, %q) {dimension=1} : f32[4,70]\nreturn %c\n}",
    /* many operands, whose borders are multiples of a vector, are read through a table: in order, in reverse order, and
     * summed up in each column */
    "f32[3,160](%x: f32[3,32], %y: f32[3,64], %z: f32[3,32]) {\n%c = concatenate(%z, %x, %y, %x) {dimension=1} : "
    "f32[3,160]\n%d = negate(%c) : f32[3,160]\nreturn %d\n}",
    "f32[3,192](%x: f32[3,32], %y: f32[3,64], %z: f32[3,32]) {\n%c = concatenate(%z, %x, %y, %x, %z) {dimension=1} : "
    "f32[3,192]\n%d = negate(%c) : f32[3,192]\nreturn %d\n}",
    "bf16[5,112,1](%x: bf16[5,16,1], %y: bf16[5,32,1], %z: bf16[5,0,1]) {\n%c = concatenate(%x, %y, %z, %x, %x, %y) "
    "{dimension=1} : bf16[5,112,1]\n%r = reverse(%c) {dimensions=[1]} : bf16[5,112,1]\n%d = add(%c, %r) : "
    "bf16[5,112,1]\nreturn %d\n}",
    "f32[224](%x: f32[2,3,32], %y: f32[2,3,96], %z: f32[2,3,64]) {\n%c = concatenate(%x, %y, %x, %z) {dimension=2} : "
    "f32[2,3,224]\n%s = reduce(%c) {dimensions=[0, 1], reducer=maximum} : f32[224]\nreturn %s\n}",
    "s32[96,4](%x: s32[4,32], %y: s32[4,32]) {\n%c = concatenate(%x, %y, %x) {dimension=1} : s32[4,96]\n%t = "
    "transpose(%c) {permutation=[1, 0]} : s32[96,4]\nreturn %t\n}",
    "f32[128,40](%x: f32[40,32], %y: f32[40,64]) {\n%c = concatenate(%x, %y, %x) {dimension=1} : f32[40,128]\n%t = "
    "transpose(%c) {permutation=[1, 0]} : f32[128,40]\nreturn %t\n}",
    "f32[16,28](%x: f32[7,16], %y: f32[7,16], %z: f32[16]) {\n%c = concatenate(%x, %y, %y, %x) {dimension=1} : "
    "f32[7,64]\n%r = reshape(%c) : f32[28,16]\n%b = broadcast(%z) {dimensions=[1]} : f32[28,16]\n%a = add(%r, %b) : "
    "f32[28,16]\n%t = transpose(%a) {permutation=[1, 0]} : f32[16,28]\nreturn %t\n}",
    /* the halves of each row interleaved, as ShuffleNet does, with and without vectors that overlap */
    "f32[3,58,2](%x: f32[3,58], %y: f32[3,58]) {\n%c = concatenate(%x, %y) {dimension=1} : f32[3,116]\n%r = "
    "reshape(%c) : "
    "f32[3,2,58]\n%t = transpose(%r) {permutation=[0, 2, 1]} : f32[3,58,2]\nreturn %t\n}",
    "f32[3,64,2](%x: f32[3,48], %y: f32[3,80]) {\n%c = concatenate(%x, %y) {dimension=1} : f32[3,128]\n%r = "
    "reshape(%c) : "
    "f32[3,2,64]\n%t = transpose(%r) {permutation=[0, 2, 1]} : f32[3,64,2]\nreturn %t\n}",
    /* bytes, whose vectors have more lanes than a square has columns: repeated along both dimensions, and channels last
     */
    "u8[6,82](%x: u8[3,41]) {\n%b = broadcast(%x) {dimensions=[0, 2]} : u8[3,2,41,2]\n%r = reshape(%b) : "
    "u8[6,82]\nreturn %r\n}",
    "u8[70,3](%x: u8[3,70]) {\n%t = transpose(%x) {permutation=[1, 0]} : u8[70,3]\nreturn %t\n}",
    "s64[5,40]() {\n%y = iota() {dimension=1} : s64[5,40]\nreturn %y\n}",
    "f32[5,40]() {\n%y = iota() {dimension=0} : f32[5,40]\nreturn %y\n}",
    "u4[40]() {\n%y = iota() {dimension=0} : u4[40]\nreturn %y\n}",
    "bf16[3,20](%x: bf16[20,3]) {\n%i = iota() {dimension=1} : bf16[3,20]\n%t = transpose(%x) "
    "{permutation=[1, 0]} : bf16[3,20]\n%y = "
    "multiply(%i, %t) : bf16[3,20]\nreturn %y\n}",
    "u32[33](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[33]\nreturn %y\n}",
    "u64[3,31](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[3,31]\nreturn %y\n}",
    "u32[8,32](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[8,32]\n%z = not(%y) : "
    "u32[8,32]\nreturn %z\n}",
    "u64[64](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[64]\nreturn %y\n}",
    "u32[5,40](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[40,5]\n%t = transpose(%y) "
    "{permutation=[1, 0]} : u32[5,40]\nreturn %t\n}",
    "u64[37](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[80]\n%t = slice(%y) {starts=[3], "
    "limits=[77], strides=[2]} : u64[37]\nreturn %t\n}",
    "u32[48](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[48]\n%t = reverse(%y) {dimensions=[0]} "
    ": u32[48]\nreturn %t\n}",
    "u32[](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[]\nreturn %y\n}",
    "c64[7,5](%x: c64[5,7]) {\n%y = transpose(%x) {permutation=[1, 0]} : c64[7,5]\nreturn %y\n}",
    "str[40](%x: str[17], %y: str[23]) {\n%c = concatenate(%x, %y) {dimension=0} : str[40]\nreturn %c\n}",
    "pred[3,37](%x: pred[37], %y: f32[3]) {\n%a = broadcast(%x) {dimensions=[1]} : pred[3,37]\nreturn %a\n}",
    "f32[40](%x: f32[40]) {\n%c = constant() {value=f32[4] {1, 2, 3, 4}} : f32[4]\n%b = broadcast(%c) "
    "{dimensions=[1]} : f32[10,4]\n%r = "
    "reshape(%b) : f32[40]\n%y = multiply(%x, %r) : f32[40]\nreturn %y\n}",
    "f32[2,3,4,5];f32[120](%x: f32[2,3,4,5]) {\n%y = negate(%x) : f32[2,3,4,5]\n%z = reshape(%x) : "
    "f32[120]\n%w = sqrt(%z) : "
    "f32[120]\nreturn %y, %w\n}",
    "f32[1](%x: f32[1]) {\n%y = negate(%x) : f32[1]\nreturn %y\n}",
    "f32[](%x: f32[]) {\n%y = negate(%x) : f32[]\nreturn %y\n}",
    "f32[0,3](%x: f32[0,3]) {\n%y = negate(%x) : f32[0,3]\nreturn %y\n}",
    "f32[3000](%x: f32[3000], %y: f32[3000]) {\n%z = add(%x, %y) : f32[3000]\nreturn %z\n}",
    "f32[100003](%x: f32[100003], %y: f32[100003]) {\n%z = multiply(%x, %y) : f32[100003]\nreturn %z\n}",
    /* vectors that run across a short innermost dimension */
    "f32[5,64](%x: f32[5,64]) {\n%a = slice(%x) {starts=[0, 1], limits=[5, 64], strides=[1, 2]} : f32[5,32]\n%b "
    "= slice(%x) {starts=[0, 0], limits=[5, 64], strides=[1, 2]} : f32[5,32]\n%c = negate(%a) : f32[5,32]\n%d = "
    "reshape(%c) : f32[5,32,1]\n%e = reshape(%b) : f32[5,32,1]\n%f = concatenate(%d, %e) {dimension=2} : "
    "f32[5,32,2]\n%g = reshape(%f) : f32[5,64]\n%y = add(%g, %x) : f32[5,64]\nreturn %y\n}",
    "f32[7,24](%x: f32[7,24]) {\n%a = slice(%x) {starts=[0, 1], limits=[7, 24], strides=[1, 2]} : f32[7,12]\n%b "
    "= slice(%x) {starts=[0, 0], limits=[7, 24], strides=[1, 2]} : f32[7,12]\n%c = negate(%a) : f32[7,12]\n%d = "
    "reshape(%c) : f32[7,12,1]\n%e = reshape(%b) : f32[7,12,1]\n%f = concatenate(%d, %e) {dimension=2} : "
    "f32[7,12,2]\n%g = reshape(%f) : f32[7,24]\n%y = add(%g, %x) : f32[7,24]\nreturn %y\n}",
    "f32[9,8](%x: f32[9,8]) {\n%a = slice(%x) {starts=[0, 1], limits=[9, 8], strides=[1, 2]} : f32[9,4]\n%b = "
    "slice(%x) {starts=[0, 0], limits=[9, 8], strides=[1, 2]} : f32[9,4]\n%c = negate(%a) : f32[9,4]\n%d = "
    "reshape(%c) : f32[9,4,1]\n%e = reshape(%b) : f32[9,4,1]\n%f = concatenate(%d, %e) {dimension=2} : "
    "f32[9,4,2]\n%g = reshape(%f) : f32[9,8]\n%y = add(%g, %x) : f32[9,8]\nreturn %y\n}",
    "f32[6,6](%x: f32[6,6]) {\n%a = slice(%x) {starts=[0, 1], limits=[6, 6], strides=[1, 2]} : f32[6,3]\n%b = "
    "slice(%x) {starts=[0, 0], limits=[6, 6], strides=[1, 2]} : f32[6,3]\n%c = negate(%a) : f32[6,3]\n%d = "
    "reshape(%c) : f32[6,3,1]\n%e = reshape(%b) : f32[6,3,1]\n%f = concatenate(%d, %e) {dimension=2} : "
    "f32[6,3,2]\n%g = reshape(%f) : f32[6,6]\n%y = add(%g, %x) : f32[6,6]\nreturn %y\n}",
    "f64[3,20](%x: f64[3,20]) {\n%a = slice(%x) {starts=[0, 1], limits=[3, 20], strides=[1, 2]} : f64[3,10]\n%b "
    "= slice(%x) {starts=[0, 0], limits=[3, 20], strides=[1, 2]} : f64[3,10]\n%c = negate(%a) : f64[3,10]\n%d = "
    "reshape(%c) : f64[3,10,1]\n%e = reshape(%b) : f64[3,10,1]\n%f = concatenate(%d, %e) {dimension=2} : "
    "f64[3,10,2]\n%g = reshape(%f) : f64[3,20]\n%y = add(%g, %x) : f64[3,20]\nreturn %y\n}",
    "s8[4,96](%x: s8[4,96]) {\n%a = slice(%x) {starts=[0, 1], limits=[4, 96], strides=[1, 2]} : s8[4,48]\n%b = "
    "slice(%x) {starts=[0, 0], limits=[4, 96], strides=[1, 2]} : s8[4,48]\n%c = negate(%a) : s8[4,48]\n%d = "
    "reshape(%c) : s8[4,48,1]\n%e = reshape(%b) : s8[4,48,1]\n%f = concatenate(%d, %e) {dimension=2} : "
    "s8[4,48,2]\n%g = reshape(%f) : s8[4,96]\n%y = add(%g, %x) : s8[4,96]\nreturn %y\n}",
    "bf16[5,40](%x: bf16[5,40]) {\n%a = slice(%x) {starts=[0, 1], limits=[5, 40], strides=[1, 2]} : "
    "bf16[5,20]\n%b = slice(%x) {starts=[0, 0], limits=[5, 40], strides=[1, 2]} : bf16[5,20]\n%c = negate(%a) : "
    "bf16[5,20]\n%d = reshape(%c) : bf16[5,20,1]\n%e = reshape(%b) : bf16[5,20,1]\n%f = concatenate(%d, %e) "
    "{dimension=2} : bf16[5,20,2]\n%g = reshape(%f) : bf16[5,40]\n%y = add(%g, %x) : bf16[5,40]\nreturn %y\n}",
    "f32[37,4](%x: f32[37,4], %a: f32[37,4]) {\n%b = slice(%x) {starts=[0, 0], limits=[37, 2], strides=[1, 1]} : "
    "f32[37,2]\n%c = slice(%a) {starts=[0, 2], limits=[37, 4], strides=[1, 1]} : f32[37,2]\n%d = subtract(%b, "
    "%c) : f32[37,2]\n%e = add(%b, %c) : f32[37,2]\n%y = concatenate(%d, %e) {dimension=1} : f32[37,4]\nreturn "
    "%y\n}",
    "f32[29,2](%x: f32[29,85]) {\n%b = slice(%x) {starts=[0, 83], limits=[29, 85], strides=[1, 1]} : "
    "f32[29,2]\n%y = negate(%b) : f32[29,2]\nreturn %y\n}",
    "f32[29,8](%x: f32[29,3], %z: f32[29,5]) {\n%b = concatenate(%x, %z) {dimension=1} : f32[29,8]\n%y = "
    "negate(%b) : f32[29,8]\nreturn %y\n}",
    "f32[29,8](%x: f32[29,0], %z: f32[29,8]) {\n%b = concatenate(%x, %z) {dimension=1} : f32[29,8]\n%y = "
    "negate(%b) : f32[29,8]\nreturn %y\n}",
    "f32[6,10,14](%x: f32[6,5,7], %z: f32[6,10,14]) {\n%b = broadcast(%x) {dimensions=[0, 1, 3]} : "
    "f32[6,5,2,7,2]\n%c = reshape(%b) : f32[6,10,14]\n%y = maximum(%c, %z) : f32[6,10,14]\nreturn %y\n}",
    "f32[3,16,12](%x: f32[6,5,8,6], %z: f32[]) {\n%p = slice(%x) {starts=[0, 1, 0, 0], limits=[6, 3, 8, 6], "
    "strides=[1, 1, 1, 1]} : f32[6,2,8,6]\n%r = reshape(%p) : f32[3,2,2,8,6]\n%t = transpose(%r) "
    "{permutation=[0, 3, 1, 4, 2]} : f32[3,8,2,6,2]\n%u = reshape(%t) : f32[3,16,12]\n%b = broadcast(%z) "
    "{dimensions=[]} : f32[3,16,12]\n%y = maximum(%u, %b) : f32[3,16,12]\nreturn %y\n}",
    "c64[11,4](%x: c64[11,2], %z: c64[11,2]) {\n%b = concatenate(%z, %x) {dimension=1} : c64[11,4]\n%y = "
    "negate(%b) : c64[11,4]\nreturn %y\n}",
};

static const char *const fused_reductions[] = {
    /* the producer inlined, two reductions in one loop, an epilogue */
    "f32[5];f32[5](%x: f32[5,100]) {\n%s = reduce(%x) {dimensions=[1], reducer=add} : f32[5]\n%q = "
    "multiply(%x, %x) : "
    "f32[5,100]\n%r = reduce(%q) {dimensions=[1], reducer=add} : f32[5]\nreturn %s, %r\n}",
    "f32[5,1](%x: f32[5,100], %b: f32[100]) {\n%c = broadcast(%b) {dimensions=[1]} : f32[5,100]\n%d = "
    "subtract(%x, %c) : "
    "f32[5,100]\n%e = exponential(%d) : f32[5,100]\n%s = reduce(%e) {dimensions=[1], reducer=add} : "
    "f32[5]\n%l = log(%s) : f32[5]\n%r = "
    "reshape(%l) : f32[5,1]\nreturn %r\n}",
    "f32[40](%x: f32[30,40]) {\n%s = reduce(%x) {dimensions=[0], reducer=add} : f32[40]\n%y = multiply(%s, "
    "%s) : f32[40]\nreturn "
    "%y\n}",
    "f32[3,40](%x: f32[3,40]) {\n%m = reduce(%x) {dimensions=[1], reducer=maximum} : f32[3]\n%b = "
    "broadcast(%m) {dimensions=[0]} : "
    "f32[3,40]\n%d = subtract(%x, %b) : f32[3,40]\n%e = exponential(%d) : f32[3,40]\nreturn %e\n}",
    "f32[6](%x: f32[2,3,6,7,8]) {\n%t = transpose(%x) {permutation=[1, 3, 2, 0, 4]} : f32[3,7,6,2,8]\n%s = "
    "reduce(%t) "
    "{dimensions=[0, 1, 3, 4], reducer=add} : f32[6]\nreturn %s\n}",
    "f32[2,3](%x: f32[2,3,5,5], %b: f32[5]) {\n%c = broadcast(%b) {dimensions=[3]} : f32[2,3,5,5]\n%y = "
    "multiply(%x, %c) : "
    "f32[2,3,5,5]\n%s = reduce(%y) {dimensions=[2, 3], reducer=add} : f32[2,3]\nreturn %s\n}",
};

enum {
  N_MOVEMENT = sizeof movement_texts / sizeof *movement_texts,
  N_FUSED = sizeof fused_reductions / sizeof *fused_reductions
};

#endif
