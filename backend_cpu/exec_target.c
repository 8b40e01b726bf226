/* exec_target.c - the cpu target: which processors run a program, what its code may call, its kinds of thunk. */
#include "backend_cpu/exec_target.h"

#include <math.h>
#include <string.h>

#include "backend_cpu/exec_kinds.h"
#include "runtime/code_loader.h"

/* --- what kernels may call: emit_externals (emit/compile.h) --- */

/* 1 once the budget (NULL: none) is used up: the kernel then returns, and what it wrote is not looked at. */
static int expired(const void *budget) { return budget_expired(budget); }

static void *resolve(const char *name) {
#define F(function) {#function, (void *)function}
  static const struct {
    const char *name;
    void *address;
  } table[] = {
      F(memcpy), F(memmove), F(memset), F(exp),   F(exp2),  F(expm1), F(log),   F(log2),  F(log10), F(log1p), F(sin),
      F(cos),    F(tan),     F(asin),   F(acos),  F(atan),  F(atan2), F(sinh),  F(cosh),  F(tanh),  F(asinh), F(acosh),
      F(atanh),  F(erf),     F(pow),    F(fmod),  F(fmodf), F(fma),   F(fmaf),  F(sqrt),  F(cbrt),  F(floor), F(ceil),
      F(trunc),  F(rint),    F(floorf), F(ceilf), F(truncf), F(rintf), F(nearbyint), F(nearbyintf), F(round), F(roundf),
      F(roundeven), F(roundevenf), {"onnx_xla_expired", (void *)expired}};
#undef F
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    if (strcmp(table[k].name, name) == 0) {
      return table[k].address;
    }
  }
  return NULL;
}

static status load_code(arena *a, rt_span object, rt_code **out) { return rt_code_load(a, object, resolve, out); }

/* --- processors --- */

/* Whether this processor has a feature by LLVM's name.  What is not listed says nothing about instructions that our kernels
 * use. */
static bool has_feature(const char *name, size_t n) {
#if defined(__x86_64__)
#define F(llvm, gcc) {llvm, __builtin_cpu_supports(gcc) != 0}
  const struct {
    const char *name;
    bool here;
  } table[] = {F("sse3", "sse3"), F("ssse3", "ssse3"), F("sse4.1", "sse4.1"), F("sse4.2", "sse4.2"), F("popcnt", "popcnt"),
               F("avx", "avx"), F("avx2", "avx2"), F("fma", "fma"), F("f16c", "f16c"), F("bmi", "bmi"), F("bmi2", "bmi2"),
               F("lzcnt", "lzcnt"), F("movbe", "movbe"), F("fma4", "fma4"), F("xop", "xop"), F("sse4a", "sse4a"),
               F("avx512f", "avx512f"), F("avx512vl", "avx512vl"), F("avx512bw", "avx512bw"), F("avx512dq", "avx512dq"),
               F("avx512cd", "avx512cd"), F("avx512ifma", "avx512ifma"), F("avx512vbmi", "avx512vbmi"),
               F("avx512vbmi2", "avx512vbmi2"), F("avx512vnni", "avx512vnni"), F("avx512bitalg", "avx512bitalg"),
               F("avx512vpopcntdq", "avx512vpopcntdq"), F("avx512bf16", "avx512bf16"), F("avx512fp16", "avx512fp16"),
               F("avxvnni", "avxvnni"), F("gfni", "gfni"), F("vpclmulqdq", "vpclmulqdq"), F("vaes", "vaes"),
               F("avx512vp2intersect", "avx512vp2intersect"), F("x86-64-v2", "x86-64-v2"), F("x86-64-v3", "x86-64-v3"),
               F("x86-64-v4", "x86-64-v4")};
#undef F
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    if (strlen(table[k].name) == n && memcmp(table[k].name, name, n) == 0) {
      return table[k].here;
    }
  }
#else
  (void)name, (void)n;
#endif
  return true;
}

static const char *this_architecture(void) {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

/* `cpu` is emit_target_text: triple, LLVM's name of the processor, features, lanes. */
static status check_cpu(const char *cpu) {
  const char *architecture = this_architecture(), *name = strchr(cpu, ' ');
  if (*cpu == '\0') { /* no kernels: any machine will do */
    return NULL;
  }
  CHECK_THAT(name && strncmp(cpu, architecture, strlen(architecture)) == 0, STATUS_INVALID_FILE,
             "compiled for %.*s, but this machine is %s", (int)strcspn(cpu, " "), cpu, architecture);
  size_t n = strcspn(++name, " ");
  CHECK_THAT(has_feature(name, n), STATUS_INVALID_FILE, "compiled for %.*s, which this processor is not", (int)n, name);
  for (const char *at = name + n; *at; at++) {
    if (*at == '+') {
      n = strcspn(++at, ", ");
      CHECK_THAT(has_feature(at, n), STATUS_INVALID_FILE,
                 "compiled for a processor with %.*s, which this one lacks: compile with --cpu for it", (int)n, at);
      at += n - 1;
    }
  }
  return NULL;
}

/* --- kinds --- */

static const rt_thunk_kind kinds[] = {
    {"cpu.kernel", cpu_kernel_load, cpu_kernel_run},
    {"cpu.sort", cpu_sort_load, cpu_sort_run},
    {"cpu.nms", cpu_nms_load, cpu_nms_run},
    {"cpu.convolution", cpu_convolution_load, cpu_contraction_run},
    {"cpu.dot", cpu_dot_load, cpu_contraction_run},
};

static void *find_symbol(const rt_code *code, const char *name) { return rt_code_find(code, name); }

const rt_target cpu_target = {.abi = RT_ABI, .name = "cpu", .kinds = kinds, .n_kinds = sizeof kinds / sizeof *kinds,
                              .check_cpu = check_cpu, .load_code = load_code, .find_symbol = find_symbol};
