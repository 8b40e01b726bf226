/* target.c - the properties of a target; see target.h. */
#include "emit/llvm/target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "base/machine/machine.h"
#include "emit/llvm/cpus.h"

/* Tells LLVM to leave out loop strength reduction.  That pass takes half of LLVM's time for kernels with many
 * addresses, such as depthwise convolutions, and finds nothing: the emitters write loops whose counters are few and
 * whose addresses the processor adds by itself.  LLVM's C API has no other way to leave the pass out.  A version of
 * LLVM that does not know the option ignores it. */
static void leave_out_passes(void) {
  static const char *const arguments[] = {"onnx-xla", "-disable-lsr"};
  LLVMParseCommandLineOptions(sizeof arguments / sizeof *arguments, arguments, "");
}

/* Registers one of LLVM's targets.  Registering all targets would link all of LLVM's code generators into our library.
 */
#define START(target)                                                                                          \
  (LLVMInitialize##target##TargetInfo(), LLVMInitialize##target##Target(), LLVMInitialize##target##TargetMC(), \
   LLVMInitialize##target##AsmPrinter())

static void start_llvm(void) {
  leave_out_passes();
  START(X86);
  START(AArch64);
  START(ARM);
  START(RISCV);
  START(WebAssembly);
  START(NVPTX);
  /* The parsers are needed for inline assembly.  NVPTX needs none, since it copies inline assembly into the PTX as it
   * is. */
  LLVMInitializeX86AsmParser();
  LLVMInitializeAArch64AsmParser();
  LLVMInitializeARMAsmParser();
  LLVMInitializeRISCVAsmParser();
  LLVMInitializeWebAssemblyAsmParser();
}
#undef START

void emit_start_llvm(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_llvm);
}

/* Returns a copy, on the arena, of a string that LLVM allocated, and frees the string. */
static const char *take(arena *a, char *message) {
  const char *s = arena_strdup(a, message);
  LLVMDisposeMessage(message);
  return s;
}

static const char *const x86_features[] = {
#define X86_FEATURE(name) name,
#include "base/machine/x86_features.def"
#undef X86_FEATURE
};
enum { N_X86_FEATURES = sizeof x86_features / sizeof *x86_features };

/* Returns the features of this machine that code may use.  On architectures other than x86-64 and aarch64 there are
 * none. */
static const char *host_features(arena *a, emit_family family) {
  static const char *const aarch64[] = {"dotprod"};
  const char *const *names = family == EMIT_X86 ? x86_features : aarch64;
  const char *all = take(a, LLVMGetHostCPUFeatures()), *text = "";
  int n = family == EMIT_X86 ? N_X86_FEATURES : family == EMIT_AARCH64 ? 1 : 0;
  for (int k = 0; k < n; k++) {
    if (emit_has_feature(all, names[k])) {
      text = arena_printf(a, "%s%s+%s", text, *text ? "," : "", names[k]);
    }
  }
  return text;
}

const char *emit_target_llvm_features(arena *a, const emit_target *t) {
  const emit_arch *arch = emit_find_arch(t->triple);
  const char *base = arch ? arch->baseline : "";
  const char *text = arena_printf(a, "%s%s%s", base, *base && *t->features ? "," : "", t->features);
  for (int k = 0; k < N_X86_FEATURES && arch && arch->family == EMIT_X86; k++) {
    if (!emit_has_feature(t->features, x86_features[k])) {
      text = arena_printf(a, "%s%s-%s", text, *text ? "," : "", x86_features[k]);
    }
  }
  return text;
}

/* --- abilities: the members that follow from the features --- */

/* The bytes of stack that a kernel may take (emit_target.stack).  LARGE_STACK is for systems whose threads have stacks
 * of a megabyte or more.  WebAssembly's linker gives a program 64 KiB unless told otherwise, and microcontrollers have
 * stacks of a few KiB. */
enum { LARGE_STACK = 256 << 10, WASM_STACK = 16 << 10, SMALL_STACK = 1 << 10 };

/* Returns true if code for the target may use a feature: one that is listed, or that the architecture's least CPU has
 * already. */
static bool can(const emit_target *t, const char *feature) {
  return emit_has_feature(t->features, feature) || emit_has_feature(emit_find_arch(t->triple)->baseline, feature);
}

static void x86_abilities(emit_target *t) {
  bool v4 = can(t, "avx512vl") && can(t, "avx512dq") && can(t, "avx512bw");
  t->vector_bits = v4 ? 512 : can(t, "avx") ? 256 : 128;
  t->registers = v4 ? 32 : 16;
  t->fma = can(t, "fma");
  t->f64 = true;
  t->f16 = can(t, "f16c");
  t->rounding = can(t, "sse4.1");
  t->scalef = v4;
  t->unaligned = true;
  t->compares_maximum = true;
  t->permutes = v4 && can(t, "avx512vbmi");
  t->dots = v4 ? can(t, "avx512vnni") : t->vector_bits == 256 && can(t, "avxvnni");
  t->dots_s16 = t->vector_bits != 256 || can(t, "avx2");
}

static void aarch64_abilities(emit_target *t) {
  t->vector_bits = 128;
  t->registers = 32;
  t->dots = t->signed_dots = can(t, "dotprod");
  t->fma = t->f64 = t->f16 = t->rounding = t->unaligned = true;
}

static void arm_abilities(emit_target *t) {
  t->vector_bits = 128;
  t->registers = 16;
  t->fma = can(t, "vfp4");
  t->f64 = true;
  t->maximum_bits = 32;
  t->f16 = can(t, "fp16");
}

/* A Cortex-M has no vectors: its registers are those of its floating-point unit, or the few that a Thumb instruction
 * can name.  For roundeven LLVM 19 writes a call, although the newer Cortex-M processors have an instruction. */
static void cortex_m_abilities(emit_target *t) {
  bool both = can(t, "fp-armv8d16"), unit = both || can(t, "fp-armv8d16sp") || can(t, "vfp4d16sp");
  t->registers = unit ? 32 : 8;
  t->fma = t->f16 = unit;
  t->f64 = both;
  t->maximum_bits = unit ? 32 : 0;
  t->stack = SMALL_STACK;
}

/* Vectors have the least length that the features promise: 256 bits with zvl256b, otherwise the 128 bits of v.  LLVM
 * assumes the same. */
static void riscv_abilities(emit_target *t) {
  bool v = can(t, "v");
  t->vector_bits = !v ? 0 : can(t, "zvl256b") ? 256 : 128;
  t->registers = 32;
  t->fma = can(t, "f");
  t->f64 = can(t, "d");
  t->maximum_bits = t->f64 ? 64 : t->fma ? 32 : 0;
  t->f16 = can(t, "zfhmin") && (!v || can(t, "zvfhmin"));
  t->stack = t->pointer_bits == 32 ? SMALL_STACK : LARGE_STACK;
}

/* A WebAssembly engine keeps values in the registers of the machine on which it runs, of which there are at least 16.
 */
static void wasm_abilities(emit_target *t) {
  t->vector_bits = can(t, "simd128") ? 128 : 0;
  t->registers = 16;
  t->f64 = t->rounding = true;
  t->absolute = true;
  t->stack = WASM_STACK;
}

static void set_abilities(emit_target *t) {
  static void (*const rows[])(emit_target *) = {
      [EMIT_X86] = x86_abilities,           [EMIT_AARCH64] = aarch64_abilities, [EMIT_ARM] = arm_abilities,
      [EMIT_CORTEX_M] = cortex_m_abilities, [EMIT_RISCV] = riscv_abilities,     [EMIT_WASM] = wasm_abilities};
  const emit_arch *arch = emit_find_arch(t->triple);
  t->least = t->cpu;
  t->pointer_bits = 8 * (int)sizeof(void *);
  t->registers = 32;
  t->stack = LARGE_STACK;
  t->maximum_bits = 64;
  if (arch) {
    t->least = arch->least;
    t->pointer_bits = arch->pointer_bits;
    rows[arch->family](t);
  }
}

/* --- the machine --- */

/* Sets t to this machine's processor.  This is the only place where code may come to depend on the machine that
 * compiles it. */
static void this_machine(arena *a, emit_target *t) {
  const emit_arch *arch = emit_find_arch(t->triple);
  t->cpu = take(a, LLVMGetHostCPUName());
  t->features = arch ? host_features(a, arch->family) : "";
  t->l2_bytes = (int64_t)machine_cache_bytes(2);
}

static status unknown_cpu(arena *a, const emit_arch *arch, const char *cpu, const char *triple) {
  const char *known = "native";
  for (size_t k = 0; k < emit_n_cpus; k++) {
    if (arch && strcmp(emit_cpus[k].arch, arch->name) == 0) {
      known = arena_printf(a, "%s, %s", known, emit_cpus[k].name);
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT, "unknown CPU '%s' for %s; known are %s", cpu, triple, known);
}

static status named_cpu(arena *a, const char *cpu, emit_target *t) {
  const emit_arch *arch = emit_find_arch(t->triple);
  const emit_cpu *found = arch ? emit_find_cpu(arch, cpu) : NULL;
  if (!found) {
    return unknown_cpu(a, arch, cpu, t->triple);
  }
  t->cpu = found->llvm;
  t->features = found->features;
  t->l2_bytes = found->l2_bytes;
  return NULL;
}

static status set_lanes(int lanes, emit_target *t) {
  CHECK_THAT(lanes == 0 || lanes == 1 || lanes == 4 || lanes == 8 || lanes == 16, STATUS_INVALID_ARGUMENT,
             "%d lanes; 1, 4, 8 and 16 are possible", lanes);
  t->lanes = lanes ? lanes : t->vector_bits >= 128 ? t->vector_bits / 32 : 1;
  return NULL;
}

status emit_target_init(arena *a, const char *triple, const char *cpu, int lanes, emit_target *out) {
  emit_start_llvm();
  const char *host = take(a, LLVMGetDefaultTargetTriple());
  *out = (emit_target){
      .triple = triple ? take(a, LLVMNormalizeTargetTriple(triple)) : host, .libm = true, .execution = EMIT_RANGES};
  LLVMTargetRef target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(out->triple, &target, &message)) {
    return status_error(STATUS_INVALID_ARGUMENT, "%s: %s", out->triple, take(a, message));
  }
  bool here = strcmp(out->triple, host) == 0;
  CHECK_THAT(here || strcmp(cpu, "native") != 0, STATUS_INVALID_ARGUMENT, "native is a CPU of %s, not of %s", host,
             out->triple);
  if (strcmp(cpu, "native") == 0) {
    this_machine(a, out);
  } else {
    TRY(named_cpu(a, cpu, out));
  }
  set_abilities(out);
  return set_lanes(lanes, out);
}

status emit_target_change_features(arena *a, const char *list, int lanes, emit_target *t) {
  const emit_arch *arch = emit_find_arch(t->triple);
  CHECK_THAT(arch, STATUS_INVALID_ARGUMENT, "features of %s are not known", t->triple);
  TRY(emit_change_features(a, arch, t->features, list, &t->features));
  set_abilities(t);
  return set_lanes(lanes, t);
}

void emit_target_make_small(emit_target *t) {
  t->small = true;
  t->stack = t->stack < SMALL_STACK ? t->stack : SMALL_STACK;
}

emit_target emit_target_baseline(const emit_target *t) {
  emit_target least = *t;
  const emit_arch *arch = emit_find_arch(t->triple);
  if (arch && arch->family == EMIT_X86) { /* on other architectures, features may change the calling convention */
    least.cpu = t->least;
    least.features = "";
    set_abilities(&least);
  }
  return least;
}

/* --- blocks of threads --- */

/* The bytes of stack that a thread may take for rows and tiles.  This is little, since thousands of threads exist at
 * the same time. */
enum { THREAD_STACK = 1 << 10 };

/* Sets what code for blocks of threads may use.  This is the same for all GPUs and for a CPU that emulates one, so that
 * all get the same instructions. */
static void set_blocks(emit_target *t) {
  t->execution = EMIT_BLOCKS;
  t->lanes = 1;
  t->registers = 32;
  t->pointer_bits = t->maximum_bits = 64;
  t->fma = t->f64 = t->f16 = t->rounding = true;
  t->stack = THREAD_STACK;
}

/* The GPUs, each with the lowest version of PTX that has its instructions. */
static const struct {
  const char *cpu, *features;
} gpus[] = {{"sm_75", "+ptx70"}, {"sm_80", "+ptx70"}, {"sm_86", "+ptx71"}, {"sm_87", "+ptx74"},
            {"sm_89", "+ptx78"}, {"sm_90", "+ptx78"}, {"sm_90a", "+ptx80"}};

status emit_target_nvptx(arena *a, const char *cpu, emit_target *out) {
  emit_start_llvm();
  const char *known = "";
  for (size_t k = 0; k < sizeof gpus / sizeof *gpus; k++) {
    if (strcmp(gpus[k].cpu, cpu) == 0) {
      *out = (emit_target){
          .triple = "nvptx64-nvidia-cuda", .cpu = gpus[k].cpu, .least = gpus[k].cpu, .features = gpus[k].features};
      set_blocks(out);
      out->mma = strcmp(cpu, "sm_75") != 0; /* sm_75 multiplies smaller matrices only, and of fewer types */
      return NULL;
    }
    known = arena_printf(a, "%s%s%s", known, *known ? ", " : "", gpus[k].cpu);
  }
  return status_error(STATUS_INVALID_ARGUMENT, "unknown GPU '%s'; known are %s", cpu, known);
}

status emit_target_blocks_host(arena *a, emit_target *out) {
  emit_target cpu;
  TRY(emit_target_init(a, NULL, "native", 1, &cpu));
  CHECK_THAT(cpu.pointer_bits == 64 && cpu.maximum_bits == 64 && cpu.fma && cpu.f64 && cpu.f16 && cpu.rounding,
             STATUS_UNSUPPORTED, "%s lacks instructions of GPUs, such as fused multiply-adds, that it has to emulate",
             cpu.cpu);
  *out = (emit_target){.triple = cpu.triple,
                       .cpu = cpu.cpu,
                       .least = cpu.least,
                       .features = cpu.features,
                       .absolute = cpu.absolute,
                       .mma = true,
                       .emulated = true};
  set_blocks(out);
  return NULL;
}

/* Returns true if each feature of the list of n characters is one of t's. */
static bool has_all(const emit_target *t, const char *list, size_t n) {
  for (size_t at = 0; at < n;) {
    char name[32] = "";
    size_t length = 0;
    for (at += list[at] == '+'; at < n && list[at] != ','; at++) {
      name[length < sizeof name - 1 ? length++ : length] = list[at];
    }
    name[length] = '\0';
    at++;
    if (!emit_has_feature(t->features, name)) {
      return false;
    }
  }
  return true;
}

bool emit_target_includes(const emit_target *t, const char *text) {
  enum { TRIPLE, CPU, FEATURES, LANES, WORDS };
  const char *words[WORDS];
  size_t lengths[WORDS];
  for (int k = 0; k < WORDS; k++) {
    words[k] = text;
    lengths[k] = strcspn(text, " ");
    text += lengths[k] + (k + 1 < WORDS);
  }
  return !t->small && strlen(t->triple) == lengths[TRIPLE] && strncmp(t->triple, words[TRIPLE], lengths[TRIPLE]) == 0 &&
         has_all(t, words[FEATURES], lengths[FEATURES]) && atoi(words[LANES]) == t->lanes;
}

const char *emit_target_text(arena *a, const emit_target *t) {
  const char *blocks = t->execution == EMIT_BLOCKS ? " blocks" : "";
  const char *functions = t->functions ? " functions" : "";
  return arena_printf(a, "%s %s %s %d%s%s", t->triple, t->cpu, t->features, t->lanes, blocks, functions);
}
