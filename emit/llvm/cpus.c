/* cpus.c - the tables of architectures, CPUs and features; see cpus.h. */
#include "emit/llvm/cpus.h"

#include <string.h>

/* --- architectures --- */

/* Loads and stores of a word are atomic even on processors without atomic instructions; the features atomics-32 and
 * forced-atomics tell LLVM so. */

static const emit_arch archs[] = {
    {"x86_64", NULL, "x86-64", "", EMIT_X86, 64, "leaq \"%s\"(%%rip), %%r10\n"},
    {"aarch64", "arm64", "generic", "", EMIT_AARCH64, 64, NULL},
    {"armv7", "armv7a", "generic", "+neon", EMIT_ARM, 32, NULL},
    {"thumbv6m", NULL, "generic", "+atomics-32", EMIT_CORTEX_M, 32, NULL},
    {"thumbv7em", NULL, "generic", "", EMIT_CORTEX_M, 32, NULL},
    {"thumbv8.1m.main", NULL, "generic", "", EMIT_CORTEX_M, 32, NULL},
    {"riscv64", NULL, "generic-rv64", "+m,+a,+f,+d,+c", EMIT_RISCV, 64, NULL},
    {"riscv32", NULL, "generic-rv32", "+m,+c,+forced-atomics", EMIT_RISCV, 32, NULL},
    {"wasm32", NULL, "generic", "", EMIT_WASM, 32, NULL},
};
enum { N_ARCHS = sizeof archs / sizeof *archs };

static bool is_arch(const char *triple, const char *name) {
  size_t n = name ? strlen(name) : 0;
  return name && strncmp(triple, name, n) == 0 && (triple[n] == '-' || triple[n] == '\0');
}

const emit_arch *emit_find_arch(const char *triple) {
  for (int k = 0; k < N_ARCHS; k++) {
    if (is_arch(triple, archs[k].name) || is_arch(triple, archs[k].alias)) {
      return &archs[k];
    }
  }
  return NULL;
}

/* --- CPUs --- */

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
#define VFP_4 "+fp16,+hwdiv-arm,+vfp4"

enum { KIB = 1 << 10, MIB = 1 << 20 };

const emit_cpu emit_cpus[] = {
    {"x86_64", "x86-64", "x86-64", "", 256 * KIB},
    {"x86_64", "x86-64-v2", "x86-64-v2", V2, 256 * KIB},
    {"x86_64", "nehalem", "nehalem", V2, 256 * KIB},
    {"x86_64", "sandybridge", "sandybridge", SANDY_BRIDGE, 256 * KIB},
    {"x86_64", "x86-64-v3", "x86-64-v3", V3, 256 * KIB},
    {"x86_64", "haswell", "haswell", V3, 256 * KIB},
    {"x86_64", "broadwell", "broadwell", V3, 256 * KIB},
    {"x86_64", "skylake", "skylake", V3, 256 * KIB},
    {"x86_64", "alderlake", "alderlake", ALDER_LAKE, 1280 * KIB},
    {"x86_64", "znver1", "znver1", ZEN, 512 * KIB},
    {"x86_64", "znver2", "znver2", ZEN, 512 * KIB},
    {"x86_64", "znver3", "znver3", ZEN_3, 512 * KIB},
    {"x86_64", "x86-64-v4", "x86-64-v4", V4, 1 * MIB},
    {"x86_64", "skylake-avx512", "skylake-avx512", V4, 1 * MIB},
    {"x86_64", "cascadelake", "cascadelake", CASCADE_LAKE, 1 * MIB},
    {"x86_64", "icelake-server", "icelake-server", ICE_LAKE, 1280 * KIB},
    {"x86_64", "sapphirerapids", "sapphirerapids", SAPPHIRE_RAPIDS, 2 * MIB},
    {"x86_64", "emeraldrapids", "emeraldrapids", SAPPHIRE_RAPIDS, 2 * MIB},
    {"x86_64", "graniterapids", "graniterapids", SAPPHIRE_RAPIDS, 2 * MIB},
    {"x86_64", "znver4", "znver4", ZEN_4, 1 * MIB},
    {"x86_64", "znver5", "znver5", ZEN_5, 1 * MIB},
    {"aarch64", "generic", "generic", "", 256 * KIB},
    {"aarch64", "cortex-a53", "cortex-a53", "", 128 * KIB},
    {"aarch64", "cortex-a72", "cortex-a72", "", 256 * KIB},
    {"aarch64", "cortex-a76", "cortex-a76", "+dotprod", 256 * KIB},
    {"aarch64", "neoverse-n1", "neoverse-n1", "+dotprod", 1 * MIB},
    {"aarch64", "neoverse-v1", "neoverse-v1", "+dotprod", 1 * MIB},
    {"aarch64", "apple-m1", "apple-m1", "+dotprod", 1 * MIB},
    {"armv7", "generic", "generic", "", 128 * KIB},
    {"armv7", "cortex-a8", "cortex-a8", "", 128 * KIB},
    {"armv7", "cortex-a9", "cortex-a9", "+fp16", 128 * KIB},
    {"armv7", "cortex-a7", "cortex-a7", VFP_4, 128 * KIB},
    {"armv7", "cortex-a15", "cortex-a15", VFP_4, 256 * KIB},
    {"thumbv6m", "cortex-m0", "cortex-m0", "", 8 * KIB},
    {"thumbv7em", "cortex-m4-nofp", "cortex-m4", "", 16 * KIB},
    {"thumbv7em", "cortex-m4", "cortex-m4", "+vfp4d16sp", 16 * KIB},
    {"thumbv7em", "cortex-m7", "cortex-m7", "+fp-armv8d16sp", 32 * KIB},
    {"thumbv8.1m.main", "cortex-m55-nomve", "cortex-m55", "+dsp,+fp-armv8d16", 32 * KIB},
    {"riscv64", "generic-rv64", "generic-rv64", "", 128 * KIB},
    {"riscv64", "sifive-u74", "sifive-u74", "", 128 * KIB},
    {"riscv64", "rv64gcv", "generic-rv64", "+v", 256 * KIB},
    {"riscv64", "spacemit-x60", "spacemit-x60", "+v,+zvl256b,+zfhmin,+zvfhmin", 256 * KIB},
    {"riscv32", "generic-rv32", "generic-rv32", "", 16 * KIB},
    {"riscv32", "rv32imfc", "generic-rv32", "+f", 16 * KIB},
    {"riscv32", "rv32imfdc", "generic-rv32", "+f,+d", 32 * KIB},
    {"wasm32", "generic", "generic", "", 256 * KIB},
    {"wasm32", "simd128", "generic", "+simd128", 256 * KIB},
};
const size_t emit_n_cpus = sizeof emit_cpus / sizeof *emit_cpus;

const emit_cpu *emit_find_cpu(const emit_arch *arch, const char *name) {
  for (size_t k = 0; k < emit_n_cpus; k++) {
    const emit_cpu *c = &emit_cpus[k];
    if (strcmp(c->arch, arch->name) == 0 && (strcmp(c->name, name) == 0 || strcmp(name, "generic") == 0)) {
      return c;
    }
  }
  return NULL;
}

bool emit_has_feature(const char *features, const char *name) {
  size_t n = strlen(name);
  for (const char *p = features; (p = strstr(p, name)) != NULL; p += n) {
    if (p > features && p[-1] == '+' && (p[n] == ',' || p[n] == '\0')) {
      return true;
    }
  }
  return false;
}

/* --- changes of features --- */

/* A feature that LLVM takes to need another one of the same architecture family. */
static const struct {
  emit_family family;
  const char *name, *needed;
} needs[] = {
    {EMIT_X86, "ssse3", "sse3"},
    {EMIT_X86, "sse4.1", "ssse3"},
    {EMIT_X86, "sse4.2", "sse4.1"},
    {EMIT_X86, "sse4a", "sse3"},
    {EMIT_X86, "avx", "sse4.2"},
    {EMIT_X86, "avx2", "avx"},
    {EMIT_X86, "f16c", "avx"},
    {EMIT_X86, "fma", "avx"},
    {EMIT_X86, "avxvnni", "avx2"},
    {EMIT_X86, "vaes", "avx2"},
    {EMIT_X86, "vpclmulqdq", "avx"},
    {EMIT_X86, "avx512f", "avx2"},
    {EMIT_X86, "avx512f", "f16c"},
    {EMIT_X86, "avx512f", "fma"},
    {EMIT_X86, "avx512cd", "avx512f"},
    {EMIT_X86, "avx512bw", "avx512f"},
    {EMIT_X86, "avx512dq", "avx512f"},
    {EMIT_X86, "avx512vl", "avx512f"},
    {EMIT_X86, "avx512ifma", "avx512f"},
    {EMIT_X86, "avx512vnni", "avx512f"},
    {EMIT_X86, "avx512vpopcntdq", "avx512f"},
    {EMIT_X86, "avx512bf16", "avx512bw"},
    {EMIT_X86, "avx512bitalg", "avx512bw"},
    {EMIT_X86, "avx512vbmi", "avx512bw"},
    {EMIT_X86, "avx512vbmi2", "avx512bw"},
    {EMIT_X86, "avx512fp16", "avx512bw"},
    {EMIT_X86, "avx512fp16", "avx512dq"},
    {EMIT_X86, "avx512fp16", "avx512vl"},
    {EMIT_ARM, "vfp4", "fp16"},
    {EMIT_RISCV, "d", "f"},
    {EMIT_RISCV, "v", "d"},
    {EMIT_RISCV, "zvl256b", "v"},
    {EMIT_RISCV, "zfhmin", "f"},
    {EMIT_RISCV, "zvfhmin", "v"},
};
enum { N_NEEDS = sizeof needs / sizeof *needs };

/* Returns the list of features without `name`. */
static const char *without(arena *a, const char *features, const char *name) {
  size_t n = strlen(name);
  const char *kept = "";
  for (const char *p = features; *p;) {
    size_t length = strcspn(p, ",");
    if (length != n + 1 || strncmp(p + 1, name, n) != 0) {
      kept = arena_printf(a, "%s%s%.*s", kept, *kept ? "," : "", (int)length, p);
    }
    p += length + (p[length] == ',');
  }
  return kept;
}

/* Each returns the list with `name` and what it needs added, or with `name` and what needs it removed. */
static const char *add(arena *a, const emit_arch *arch, const char *features, const char *name) {
  if (emit_has_feature(features, name) || emit_has_feature(arch->baseline, name)) {
    return features;
  }
  features = arena_printf(a, "%s%s+%s", features, *features ? "," : "", name);
  for (int k = 0; k < N_NEEDS; k++) {
    if (needs[k].family == arch->family && strcmp(needs[k].name, name) == 0) {
      features = add(a, arch, features, needs[k].needed);
    }
  }
  return features;
}

static const char *take_away(arena *a, const emit_arch *arch, const char *features, const char *name) {
  if (!emit_has_feature(features, name)) {
    return features;
  }
  features = without(a, features, name);
  for (int k = 0; k < N_NEEDS; k++) {
    if (needs[k].family == arch->family && strcmp(needs[k].needed, name) == 0) {
      features = take_away(a, arch, features, needs[k].name);
    }
  }
  return features;
}

/* Returns all features that CPUs of the architecture have in the table. */
static const char *known_features(arena *a, const emit_arch *arch) {
  const char *known = "";
  for (size_t k = 0; k < emit_n_cpus; k++) {
    char *rest, *list = arena_strdup(a, strcmp(emit_cpus[k].arch, arch->name) == 0 ? emit_cpus[k].features : "");
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
      known = emit_has_feature(known, name + 1) ? known : arena_printf(a, "%s%s%s", known, *known ? "," : "", name);
    }
  }
  return known;
}

status emit_change_features(arena *a, const emit_arch *arch, const char *features, const char *list, const char **out) {
  const char *known = known_features(a, arch);
  char *rest, *changes = arena_strdup(a, list);
  for (char *c = strtok_r(changes, ",", &rest); c; c = strtok_r(NULL, ",", &rest)) {
    CHECK_THAT(*c == '+' || *c == '-', STATUS_INVALID_ARGUMENT, "feature '%s' must begin with + or -", c);
    CHECK_THAT(emit_has_feature(known, c + 1), STATUS_INVALID_ARGUMENT, "unknown feature '%s' of %s; known are %s",
               c + 1, arch->name, *known ? known : "none");
    features = *c == '+' ? add(a, arch, features, c + 1) : take_away(a, arch, features, c + 1);
  }
  *out = features;
  return NULL;
}
