/* cpu.c - see cpu.h.  On x86-64, CPUID tells which features the processor has, and XGETBV which registers the operating
 * system saves. */
#include "aot/cpu.h"

#include <string.h>

#include "emit/llvm/cpus.h"

enum { EAX, EBX, ECX, EDX };
/* Bits of XCR0: for AVX those of the XMM and YMM registers, for AVX-512 also those of the masks and ZMM registers. */
enum { STATE_NONE, STATE_AVX = 0x6, STATE_AVX512 = 0xe6 };

/* Where CPUID tells of a feature, by Intel's and AMD's manuals: in bit `bit` of register `word` (EAX to EDX) of a leaf.
 * `state` has the bits of XCR0 that must be set, since the feature's instructions use these registers. */
typedef struct feature_bit {
  const char *name; /* LLVM's name of the feature */
  uint32_t leaf;
  uint8_t subleaf, word, bit;
  uint8_t state;
} feature_bit;

static const feature_bit bits[] = {{"sse3", 1, 0, ECX, 0, STATE_NONE},
                                   {"ssse3", 1, 0, ECX, 9, STATE_NONE},
                                   {"fma", 1, 0, ECX, 12, STATE_AVX},
                                   {"sse4.1", 1, 0, ECX, 19, STATE_NONE},
                                   {"sse4.2", 1, 0, ECX, 20, STATE_NONE},
                                   {"movbe", 1, 0, ECX, 22, STATE_NONE},
                                   {"popcnt", 1, 0, ECX, 23, STATE_NONE},
                                   {"avx", 1, 0, ECX, 28, STATE_AVX},
                                   {"f16c", 1, 0, ECX, 29, STATE_AVX},
                                   {"bmi", 7, 0, EBX, 3, STATE_NONE},
                                   {"avx2", 7, 0, EBX, 5, STATE_AVX},
                                   {"bmi2", 7, 0, EBX, 8, STATE_NONE},
                                   {"avx512f", 7, 0, EBX, 16, STATE_AVX512},
                                   {"avx512dq", 7, 0, EBX, 17, STATE_AVX512},
                                   {"avx512ifma", 7, 0, EBX, 21, STATE_AVX512},
                                   {"avx512cd", 7, 0, EBX, 28, STATE_AVX512},
                                   {"avx512bw", 7, 0, EBX, 30, STATE_AVX512},
                                   {"avx512vl", 7, 0, EBX, 31, STATE_AVX512},
                                   {"avx512vbmi", 7, 0, ECX, 1, STATE_AVX512},
                                   {"avx512vbmi2", 7, 0, ECX, 6, STATE_AVX512},
                                   {"gfni", 7, 0, ECX, 8, STATE_NONE},
                                   {"vaes", 7, 0, ECX, 9, STATE_AVX},
                                   {"vpclmulqdq", 7, 0, ECX, 10, STATE_AVX},
                                   {"avx512vnni", 7, 0, ECX, 11, STATE_AVX512},
                                   {"avx512bitalg", 7, 0, ECX, 12, STATE_AVX512},
                                   {"avx512vpopcntdq", 7, 0, ECX, 14, STATE_AVX512},
                                   {"avx512fp16", 7, 0, EDX, 23, STATE_AVX512},
                                   {"avxvnni", 7, 1, EAX, 4, STATE_AVX},
                                   {"avx512bf16", 7, 1, EAX, 5, STATE_AVX512},
                                   {"lzcnt", 0x80000001, 0, ECX, 5, STATE_NONE},
                                   {"sse4a", 0x80000001, 0, ECX, 6, STATE_NONE},
                                   {"xop", 0x80000001, 0, ECX, 11, STATE_AVX},
                                   {"fma4", 0x80000001, 0, ECX, 16, STATE_AVX}};
enum { N_BITS = sizeof bits / sizeof *bits };

/* Returns the registers EAX to EDX after CPUID as a structure. */
static LLVMValueRef cpuid(const emit_ir *w, uint32_t leaf, uint32_t subleaf) {
  static const char code[] = "cpuid", constraints[] = "={ax},={bx},={cx},={dx},{ax},{cx}";
  LLVMTypeRef words[] = {w->i32, w->i32, w->i32, w->i32}, in[] = {w->i32, w->i32};
  LLVMTypeRef type = LLVMFunctionType(LLVMStructTypeInContext(w->context, words, 4, 0), in, 2, 0);
  LLVMValueRef f = LLVMGetInlineAsm(type, code, sizeof code - 1, constraints, sizeof constraints - 1, 1, 0,
                                    LLVMInlineAsmDialectATT, 0);
  LLVMValueRef args[] = {LLVMConstInt(w->i32, leaf, 0), LLVMConstInt(w->i32, subleaf, 0)};
  return LLVMBuildCall2(w->builder, type, f, args, 2, "");
}

/* Returns the low half of XCR0, which says which registers the system saves. */
static LLVMValueRef xgetbv(const emit_ir *w) {
  static const char code[] = "xgetbv", constraints[] = "={ax},={dx},{cx}";
  LLVMTypeRef words[] = {w->i32, w->i32};
  LLVMTypeRef type = LLVMFunctionType(LLVMStructTypeInContext(w->context, words, 2, 0), (LLVMTypeRef[]){w->i32}, 1, 0);
  LLVMValueRef f = LLVMGetInlineAsm(type, code, sizeof code - 1, constraints, sizeof constraints - 1, 1, 0,
                                    LLVMInlineAsmDialectATT, 0);
  LLVMValueRef zero = LLVMConstInt(w->i32, 0, 0);
  return LLVMBuildExtractValue(w->builder, LLVMBuildCall2(w->builder, type, f, &zero, 1, ""), 0, "");
}

static void return_false_unless(const aot_host *h, LLVMValueRef word, uint32_t mask) {
  LLVMValueRef wanted = LLVMConstInt(h->ir->i32, mask, 0), there = LLVMBuildAnd(h->ir->builder, word, wanted, "");
  aot_return_if(h, aot_compare(h, LLVMIntNE, there, wanted), LLVMConstInt(h->ir->i1, 0, 0));
}

/* Writes a check of those `features` that are bits of the same word of CPUID as row `first` of bits[], unless an
 * earlier row has the same word. */
static void check_word(const aot_host *h, const char *features, uint32_t first) {
  const feature_bit *b = &bits[first];
  uint32_t mask = 0;
  for (uint32_t k = 0; k < N_BITS; k++) {
    bool same = bits[k].leaf == b->leaf && bits[k].subleaf == b->subleaf && bits[k].word == b->word;
    mask |= same && emit_has_feature(features, bits[k].name) ? 1u << bits[k].bit : 0;
    if (same && k < first) {
      return; /* an earlier row has checked this word */
    }
  }
  if (mask) {
    LLVMValueRef words = cpuid(h->ir, b->leaf, b->subleaf);
    return_false_unless(h, LLVMBuildExtractValue(h->ir->builder, words, b->word, ""), mask);
  }
}

static uint32_t needed_state(const char *features) {
  uint32_t state = STATE_NONE;
  for (uint32_t k = 0; k < N_BITS; k++) {
    state |= emit_has_feature(features, bits[k].name) ? bits[k].state : 0;
  }
  return state;
}

LLVMValueRef aot_write_cpu_check(aot_host *h) {
  enum { OSXSAVE = 1 << 27, LEAF = 7 };
  const emit_target *t = h->target;
  if (strncmp(t->triple, "x86_64", strlen("x86_64")) != 0 || !*t->features) {
    return NULL;
  }
  LLVMValueRef f = aot_function(h, AOT_INTERNAL, "cpu", h->ir->i1, 0, NULL), no = LLVMConstInt(h->ir->i1, 0, 0);
  LLVMValueRef most = LLVMBuildExtractValue(h->ir->builder, cpuid(h->ir, 0, 0), EAX, "");
  aot_return_if(h, aot_compare(h, LLVMIntULT, most, LLVMConstInt(h->ir->i32, LEAF, 0)), no);
  uint32_t state = needed_state(t->features);
  if (state) {
    return_false_unless(h, LLVMBuildExtractValue(h->ir->builder, cpuid(h->ir, 1, 0), ECX, ""), OSXSAVE);
    return_false_unless(h, xgetbv(h->ir), state);
  }
  for (uint32_t k = 0; k < N_BITS; k++) {
    check_word(h, t->features, k);
  }
  LLVMBuildRet(h->ir->builder, LLVMConstInt(h->ir->i1, 1, 0));
  return f;
}
