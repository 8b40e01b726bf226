/* target.c - the table of known CPUs and the properties of a target; see target.h. */
#include "emit/llvm/target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "emit/llvm/target.h"

/* A known CPU: the features that code for it may use beyond the baseline of its architecture. */
typedef struct cpu_row {
  const char *arch, *name, *features;
} cpu_row;

#define V2 "+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"
#define SANDY_BRIDGE V2 ",+avx"
#define V3 SANDY_BRIDGE ",+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
#define ALDER_LAKE V3 ",+avxvnni,+gfni,+vaes,+vpclmulqdq"
#define ZEN V3 ",+sse4a"
#define ZEN_3 ZEN ",+vaes,+vpclmulqdq"
#define V4 V3 ",+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
#define CASCADE_LAKE V4 ",+avx512vnni"
#define ICE_LAKE \
  CASCADE_LAKE   \
  ",+avx512bitalg,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vpopcntdq,+gfni,+vaes,+vpclmulqdq"
#define SAPPHIRE_RAPIDS ICE_LAKE ",+avx512bf16,+avx512fp16,+avxvnni"
#define ZEN_4 ICE_LAKE ",+avx512bf16,+sse4a"
#define ZEN_5 ZEN_4 ",+avxvnni"

static const cpu_row cpus[] = {
    {"x86_64", "x86-64", ""},
    {"x86_64", "x86-64-v2", V2},
    {"x86_64", "nehalem", V2},
    {"x86_64", "sandybridge", SANDY_BRIDGE},
    {"x86_64", "x86-64-v3", V3},
    {"x86_64", "haswell", V3},
    {"x86_64", "broadwell", V3},
    {"x86_64", "skylake", V3},
    {"x86_64", "alderlake", ALDER_LAKE},
    {"x86_64", "znver1", ZEN},
    {"x86_64", "znver2", ZEN},
    {"x86_64", "znver3", ZEN_3},
    {"x86_64", "x86-64-v4", V4},
    {"x86_64", "skylake-avx512", V4},
    {"x86_64", "cascadelake", CASCADE_LAKE},
    {"x86_64", "icelake-server", ICE_LAKE},
    {"x86_64", "sapphirerapids", SAPPHIRE_RAPIDS},
    {"x86_64", "emeraldrapids", SAPPHIRE_RAPIDS},
    {"x86_64", "graniterapids", SAPPHIRE_RAPIDS},
    {"x86_64", "znver4", ZEN_4},
    {"x86_64", "znver5", ZEN_5},
    {"aarch64", "generic", ""},
    {"aarch64", "cortex-a53", ""},
    {"aarch64", "cortex-a72", ""},
    {"aarch64", "cortex-a76", ""},
    {"aarch64", "neoverse-n1", ""},
    {"aarch64", "neoverse-v1", ""},
    {"aarch64", "apple-m1", ""},
    {"riscv64", "generic-rv64", "+m,+a,+f,+d,+c"},
};
enum { N_CPUS = sizeof cpus / sizeof *cpus };

/* Loop strength reduction takes half of LLVM's time for kernels with many addresses, such as depthwise convolutions,
 * and finds nothing: the emitters write loops whose counters are few and whose addresses the processor adds by itself.
 * LLVM has no other way to leave the pass out; a version that does not know the option ignores it. */
static void leave_out_passes(void) {
  static const char *const arguments[] = {"onnx-xla", "-disable-lsr"};
  LLVMParseCommandLineOptions(sizeof arguments / sizeof *arguments, arguments, "");
}

static void start_llvm(void) {
  leave_out_passes();
  LLVMInitializeAllTargetInfos();
  LLVMInitializeAllTargets();
  LLVMInitializeAllTargetMCs();
  LLVMInitializeAllAsmPrinters();
  LLVMInitializeAllAsmParsers(); /* for inline assembly */
}

void emit_start_llvm(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_llvm);
}

/* Returns a copy, on the arena, of a string that LLVM allocated, and frees that. */
static const char *take(arena *a, char *message) {
  const char *s = arena_strdup(a, message);
  LLVMDisposeMessage(message);
  return s;
}

static bool is_arch(const char *triple, const char *arch) {
  size_t n = strlen(arch);
  return strncmp(triple, arch, n) == 0 && (triple[n] == '-' || triple[n] == '\0');
}

/* Returns true if "+name" is in the list of features. */
static bool has(const char *features, const char *name) {
  size_t n = strlen(name);
  for (const char *p = features; (p = strstr(p, name)) != NULL; p += n) {
    if (p > features && p[-1] == '+' && (p[n] == ',' || p[n] == '\0')) {
      return true;
    }
  }
  return false;
}

static const char *const x86_features[] = {
#define X86_FEATURE(name) name,
#include "base/x86_features.def"
#undef X86_FEATURE
};
enum { N_X86_FEATURES = sizeof x86_features / sizeof *x86_features };

/* Returns the features of this machine that code may use. */
static const char *host_features(arena *a) {
  const char *all = take(a, LLVMGetHostCPUFeatures()), *text = "";
  for (int k = 0; k < N_X86_FEATURES; k++) {
    if (has(all, x86_features[k])) {
      text = arena_printf(a, "%s%s+%s", text, *text ? "," : "", x86_features[k]);
    }
  }
  return text;
}

const char *emit_target_llvm_features(arena *a, const emit_target *t) {
  const char *text = t->features;
  for (int k = 0; k < N_X86_FEATURES && is_arch(t->triple, "x86_64"); k++) {
    if (!has(t->features, x86_features[k])) {
      text = arena_printf(a, "%s%s-%s", text, *text ? "," : "", x86_features[k]);
    }
  }
  return text;
}

/* Sets the members that follow from the features. */
static void set_abilities(emit_target *t) {
  const char *f = t->features;
  if (is_arch(t->triple, "x86_64")) {
    bool v4 = has(f, "avx512vl") && has(f, "avx512dq") && has(f, "avx512bw");
    t->least = "x86-64";
    t->vector_bits = v4 ? 512 : has(f, "avx") ? 256 : 128;
    t->fma = has(f, "fma");
    t->f16 = has(f, "f16c");
    t->rounding = has(f, "sse4.1");
    t->scalef = v4;
    t->permutes = v4 && has(f, "avx512vbmi");
    t->dots = v4 ? has(f, "avx512vnni") : t->vector_bits == 256 && has(f, "avxvnni");
  } else if (is_arch(t->triple, "aarch64")) {
    t->least = "generic";
    t->vector_bits = 128;
    t->fma = t->f16 = t->rounding = true;
  } else if (is_arch(t->triple, "riscv64")) {
    t->least = "generic-rv64";
    t->fma = true;
  } else {
    t->least = t->cpu;
  }
}

static void this_machine(arena *a, emit_target *t) {
  t->cpu = take(a, LLVMGetHostCPUName());
  t->features = is_arch(t->triple, "x86_64") ? host_features(a) : is_arch(t->triple, "riscv64") ? "+m,+a,+f,+d,+c" : "";
}

static status named_cpu(arena *a, const char *cpu, emit_target *t) {
  const char *known = "native";
  for (int k = 0; k < N_CPUS; k++) {
    if (!is_arch(t->triple, cpus[k].arch)) {
      continue;
    }
    known = arena_printf(a, "%s, %s", known, cpus[k].name);
    /* "generic" means the first, and so the least, CPU of the architecture. */
    bool first = k == 0 || strcmp(cpus[k - 1].arch, cpus[k].arch) != 0;
    if (strcmp(cpu, cpus[k].name) == 0 || (first && strcmp(cpu, "generic") == 0)) {
      t->cpu = cpus[k].name;
      t->features = cpus[k].features;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT, "unknown CPU '%s' for %s; known are %s", cpu, t->triple, known);
}

status emit_target_init(arena *a, const char *triple, const char *cpu, int lanes, emit_target *out) {
  emit_start_llvm();
  const char *host = take(a, LLVMGetDefaultTargetTriple());
  *out = (emit_target){.triple = triple ? take(a, LLVMNormalizeTargetTriple(triple)) : host,
                       .libm = true,
                       .stack = true,
                       .execution = EMIT_RANGES};
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
  CHECK_THAT(lanes == 0 || lanes == 1 || lanes == 4 || lanes == 8 || lanes == 16, STATUS_INVALID_ARGUMENT,
             "%d lanes; 1, 4, 8 and 16 are possible", lanes);
  /* AVX-512 has 32 vector registers, as have the other known architectures. */
  out->registers = is_arch(out->triple, "x86_64") && out->vector_bits < 512 ? 16 : 32;
  out->lanes = lanes ? lanes : out->vector_bits >= 128 ? out->vector_bits / 32 : 1;
  return NULL;
}

emit_target emit_target_baseline(const emit_target *t) {
  emit_target least = *t;
  if (is_arch(t->triple, "x86_64")) { /* elsewhere features are part of how functions are called */
    least.cpu = t->least;
    least.features = "";
    set_abilities(&least);
  }
  return least;
}

status emit_target_nvptx(arena *a, const char *cpu, emit_target *out) {
  emit_start_llvm();
  *out = (emit_target){.triple = "nvptx64-nvidia-cuda",
                       .cpu = arena_strdup(a, cpu),
                       .least = arena_strdup(a, cpu),
                       .features = "+ptx70",
                       .lanes = 1,
                       .registers = 32,
                       .fma = true,
                       .f16 = true,
                       .rounding = true,
                       .execution = EMIT_BLOCKS};
  CHECK_THAT(strncmp(cpu, "sm_", 3) == 0 && atoi(cpu + 3) >= 70 && atoi(cpu + 3) <= 90, STATUS_INVALID_ARGUMENT,
             "unknown GPU '%s'; sm_70 to sm_90 are known", cpu);
  if (atoi(cpu + 3) > 80) {
    out->features = "+ptx78";
  }
  return NULL;
}

const char *emit_target_text(arena *a, const emit_target *t) {
  return arena_printf(a, "%s %s %s %d", t->triple, t->cpu, t->features, t->lanes);
}
