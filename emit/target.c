/* target.c - see target.h. */
#include "emit/target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "emit/module.h"

/* What CPUs can do, one row a name.  bits: of the vectors that kernels use. */
enum { FMA = 1, F16 = 2, ROUNDING = 4, DOTS = 8, PERMUTES = 16 };
typedef struct cpu_row {
  const char *arch, *name;
  int bits;
  unsigned has;
} cpu_row;

static const cpu_row cpus[] = {
    {"x86_64", "x86-64", 128, 0},
    {"x86_64", "x86-64-v2", 128, ROUNDING},
    {"x86_64", "nehalem", 128, ROUNDING},
    {"x86_64", "sandybridge", 256, ROUNDING},
    {"x86_64", "x86-64-v3", 256, FMA | F16 | ROUNDING},
    {"x86_64", "haswell", 256, FMA | F16 | ROUNDING},
    {"x86_64", "broadwell", 256, FMA | F16 | ROUNDING},
    {"x86_64", "skylake", 256, FMA | F16 | ROUNDING},
    {"x86_64", "alderlake", 256, FMA | F16 | ROUNDING | DOTS},
    {"x86_64", "znver1", 256, FMA | F16 | ROUNDING},
    {"x86_64", "znver2", 256, FMA | F16 | ROUNDING},
    {"x86_64", "znver3", 256, FMA | F16 | ROUNDING},
    {"x86_64", "x86-64-v4", 512, FMA | F16 | ROUNDING},
    {"x86_64", "skylake-avx512", 512, FMA | F16 | ROUNDING},
    {"x86_64", "cascadelake", 512, FMA | F16 | ROUNDING | DOTS},
    {"x86_64", "icelake-server", 512, FMA | F16 | ROUNDING | DOTS | PERMUTES},
    {"x86_64", "sapphirerapids", 512, FMA | F16 | ROUNDING | DOTS | PERMUTES},
    {"x86_64", "emeraldrapids", 512, FMA | F16 | ROUNDING | DOTS | PERMUTES},
    {"x86_64", "graniterapids", 512, FMA | F16 | ROUNDING | DOTS | PERMUTES},
    {"x86_64", "znver4", 512, FMA | F16 | ROUNDING | DOTS | PERMUTES},
    {"x86_64", "znver5", 512, FMA | F16 | ROUNDING | DOTS | PERMUTES},
    {"aarch64", "generic", 128, FMA | F16 | ROUNDING},
    {"aarch64", "cortex-a53", 128, FMA | F16 | ROUNDING},
    {"aarch64", "cortex-a72", 128, FMA | F16 | ROUNDING},
    {"aarch64", "cortex-a76", 128, FMA | F16 | ROUNDING},
    {"aarch64", "neoverse-n1", 128, FMA | F16 | ROUNDING},
    {"aarch64", "neoverse-v1", 128, FMA | F16 | ROUNDING},
    {"aarch64", "apple-m1", 128, FMA | F16 | ROUNDING},
    {"riscv64", "generic-rv64", 0, FMA},
};
enum { N_CPUS = sizeof cpus / sizeof *cpus };

static void start_llvm(void) {
  LLVMInitializeAllTargetInfos();
  LLVMInitializeAllTargets();
  LLVMInitializeAllTargetMCs();
  LLVMInitializeAllAsmPrinters();
}

void emit_start_llvm(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_llvm);
}

/* A copy of a string that LLVM made. */
static const char *take(arena *a, char *message) {
  const char *s = arena_strdup(a, message);
  LLVMDisposeMessage(message);
  return s;
}

static bool is_arch(const char *triple, const char *arch) {
  size_t n = strlen(arch);
  return strncmp(triple, arch, n) == 0 && (triple[n] == '-' || triple[n] == '\0');
}

/* Is "+name" in the list of features? */
static bool has(const char *features, const char *name) {
  size_t n = strlen(name);
  for (const char *p = features; (p = strstr(p, name)) != NULL; p += n) {
    if (p > features && p[-1] == '+' && (p[n] == ',' || p[n] == '\0')) {
      return true;
    }
  }
  return false;
}

static status this_machine(arena *a, emit_target *t) {
  t->cpu = take(a, LLVMGetHostCPUName());
  t->features = take(a, LLVMGetHostCPUFeatures());
  if (is_arch(t->triple, "x86_64")) {
    t->vector_bits =
        has(t->features, "avx512vl") && has(t->features, "avx512dq") && has(t->features, "avx512bw") ? 512
        : has(t->features, "avx")                                                                    ? 256
                                                                                                     : 128;
    t->fma = has(t->features, "fma");
    t->f16 = has(t->features, "f16c");
    t->rounding = has(t->features, "sse4.1");
    t->scalef = t->vector_bits == 512;
    t->permutes = t->vector_bits == 512 && has(t->features, "avx512vbmi");
    t->dots = t->vector_bits == 512 ? has(t->features, "avx512vnni") : t->vector_bits == 256 && has(t->features, "avxvnni");
  } else if (is_arch(t->triple, "aarch64")) {
    t->vector_bits = 128;
    t->fma = t->f16 = t->rounding = true;
  }
  return NULL;
}

static status named_cpu(arena *a, const char *cpu, emit_target *t) {
  const char *known = "native";
  for (int k = 0; k < N_CPUS; k++) {
    if (!is_arch(t->triple, cpus[k].arch)) {
      continue;
    }
    known = arena_printf(a, "%s, %s", known, cpus[k].name);
    bool first =
        k == 0 || strcmp(cpus[k - 1].arch, cpus[k].arch) != 0; /* the least of its kind is "generic" */
    if (strcmp(cpu, cpus[k].name) == 0 || (first && strcmp(cpu, "generic") == 0)) {
      t->cpu = cpus[k].name;
      t->features = is_arch(t->triple, "riscv64") ? "+m,+a,+f,+d,+c" : "";
      t->vector_bits = cpus[k].bits;
      t->fma = cpus[k].has & FMA;
      t->f16 = cpus[k].has & F16;
      t->rounding = cpus[k].has & ROUNDING;
      t->dots = cpus[k].has & DOTS;
      t->permutes = cpus[k].has & PERMUTES;
      t->scalef = is_arch(t->triple, "x86_64") && cpus[k].bits == 512;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT, "unknown CPU '%s' for %s; known are %s", cpu, t->triple,
                      known);
}

status emit_target_init(arena *a, const char *triple, const char *cpu, int lanes, emit_target *out) {
  emit_start_llvm();
  const char *host = take(a, LLVMGetDefaultTargetTriple());
  *out = (emit_target){.triple = triple ? take(a, LLVMNormalizeTargetTriple(triple)) : host};
  LLVMTargetRef target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(out->triple, &target, &message)) {
    return status_error(STATUS_INVALID_ARGUMENT, "%s: %s", out->triple, take(a, message));
  }
  bool here = strcmp(out->triple, host) == 0;
  CHECK_THAT(here || strcmp(cpu, "native") != 0, STATUS_INVALID_ARGUMENT, "native is a CPU of %s, not of %s",
             host, out->triple);
  TRY(strcmp(cpu, "native") == 0 ? this_machine(a, out) : named_cpu(a, cpu, out));
  CHECK_THAT(lanes == 0 || lanes == 1 || lanes == 4 || lanes == 8 || lanes == 16, STATUS_INVALID_ARGUMENT,
             "%d lanes; 1, 4, 8 and 16 are possible", lanes);
  /* The 16 more of AVX-512; other architectures that we know have 32. */
  out->registers = is_arch(out->triple, "x86_64") && out->vector_bits < 512 ? 16 : 32;
  out->lanes = lanes ? lanes : out->vector_bits >= 128 ? out->vector_bits / 32 : 1;
  return NULL;
}

status emit_target_nvptx(arena *a, const char *cpu, emit_target *out) {
  emit_start_llvm();
  *out = (emit_target){.triple = "nvptx64-nvidia-cuda",
                       .cpu = arena_strdup(a, cpu),
                       .features = "+ptx70",
                       .lanes = 1,
                       .registers = 32,
                       .fma = true,
                       .f16 = true,
                       .rounding = true,
                       .gpu = true};
  CHECK_THAT(strncmp(cpu, "sm_", 3) == 0 && atoi(cpu + 3) >= 70 && atoi(cpu + 3) <= 90,
             STATUS_INVALID_ARGUMENT, "unknown GPU '%s'; sm_70 to sm_90 are known", cpu);
  if (atoi(cpu + 3) > 80) {
    out->features = "+ptx78";
  }
  return NULL;
}

const char *emit_target_text(arena *a, const emit_target *t) {
  return arena_printf(a, "%s %s %s %d", t->triple, t->cpu, t->features, t->lanes);
}
