/* machine.c - see machine.h; the facts come from the operating system and CPUID. */
#include "base/machine/machine.h"

#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* --- cores and memory --- */

uint32_t machine_cores(void) {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return n > 0 ? (uint32_t)n : 1;
}

uint32_t machine_all_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (uint32_t)n : 1;
}

size_t machine_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

uint64_t machine_memory_bytes(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) * machine_page_bytes(); }

uint64_t machine_cache_bytes(int level) {
  static const uint64_t common[] = {32 << 10, 512 << 10, 8 << 20};
  long n = 0;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  n = sysconf(names[level - 1]);
#endif
  return n > 0 ? (uint64_t)n : common[level - 1];
}

/* --- the processor --- */

const char *machine_architecture(void) {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
  return "riscv64";
#elif defined(__arm__) && __ARM_ARCH == 7
  return "armv7";
#else
  return "unknown";
#endif
}

/* Features that the operating system reports in AT_HWCAP (word 0) or AT_HWCAP2 (word 1), by LLVM's names. */
#if !defined(__x86_64__)
static const struct {
  const char *name;
  int word, bit;
} kernel_features[] = {
#if defined(__aarch64__)
    {"neon", 0, 1},  {"crc", 0, 7},   {"lse", 0, 8},      {"fullfp16", 0, 10}, {"rdm", 0, 12},
    {"rcpc", 0, 15}, {"sha3", 0, 17}, {"dotprod", 0, 20}, {"sve", 0, 22},      {"fp16fml", 0, 23},
    {"sve2", 1, 1},  {"i8mm", 1, 13}, {"bf16", 1, 14},
#elif defined(__riscv)
    {"a", 0, 0}, {"c", 0, 2}, {"d", 0, 3}, {"f", 0, 5}, {"m", 0, 12}, {"v", 0, 21},
#elif defined(__arm__)
    {"neon", 0, 12}, {"vfp3", 0, 13}, {"vfp4", 0, 16}, {"fp16", 0, 16}, {"hwdiv-arm", 0, 17}, {"hwdiv", 0, 18},
#endif
    {"", 0, 0}};
#endif

#if defined(__x86_64__)
enum { EAX, EBX, ECX, EDX };

static bool has_bit(unsigned leaf, unsigned subleaf, int word, int bit) {
  unsigned words[4] = {0};
  return __get_cpuid_count(leaf, subleaf, &words[EAX], &words[EBX], &words[ECX], &words[EDX]) && words[word] >> bit & 1;
}
#endif

bool machine_find_feature(const char *name, size_t n, machine_feature *out) {
#if defined(__x86_64__)
/* Only the bit of this feature is read: a virtual machine takes microseconds for each CPUID. */
#define X86_FEATURE_IF(feature, is_here)                       \
  if (strlen(feature) == n && memcmp(feature, name, n) == 0) { \
    *out = (machine_feature){feature, is_here};                \
    return true;                                               \
  }
#define X86_FEATURE(feature) X86_FEATURE_IF(feature, __builtin_cpu_supports(feature) != 0)
#define X86_FEATURE_BIT(feature, leaf, subleaf, word, bit, base) \
  X86_FEATURE_IF(feature, __builtin_cpu_supports(base) && has_bit(leaf, subleaf, word, bit))
#include "base/machine/x86_features.def"
#undef X86_FEATURE
#undef X86_FEATURE_IF
#else
  const unsigned long words[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  for (size_t k = 0; n && k < sizeof kernel_features / sizeof *kernel_features; k++) {
    if (strlen(kernel_features[k].name) == n && memcmp(kernel_features[k].name, name, n) == 0) {
      *out = (machine_feature){kernel_features[k].name, words[kernel_features[k].word] >> kernel_features[k].bit & 1};
      return true;
    }
  }
#endif
  return false;
}

bool machine_has_feature(const char *name) {
  machine_feature f;
  return machine_find_feature(name, strlen(name), &f) && f.here;
}

machine_name machine_processor_name(void) {
  machine_name name = {""};
#if defined(__x86_64__)
  unsigned words[12] = {0};
  for (unsigned k = 0; k < 3; k++) {
    unsigned *w = words + 4 * k;
    (void)__get_cpuid(0x80000002u + k, &w[0], &w[1], &w[2], &w[3]);
  }
  memcpy(name.text, words, sizeof words);
#endif
  return name;
}

#if defined(__x86_64__)
static uint64_t *put_cpuid(uint64_t *at) {
  static const unsigned leaves[][2] = {{0, 0}, {1, 0}, {7, 0}, {7, 1}, {0x80000001u, 0}};
  for (size_t k = 0; k < sizeof leaves / sizeof *leaves; k++) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    (void)__get_cpuid_count(leaves[k][0], leaves[k][1], &a, &b, &c, &d);
    *at++ = a;
    *at++ = leaves[k][0] == 1 ? 0 : b; /* EBX of leaf 1 contains the number of the current core */
    *at++ = c;
    *at++ = d;
  }
  return at;
}
#else
static uint64_t *put_cpuid(uint64_t *at) { return at; }
#endif

machine_identity machine_processor_identity(void) {
  machine_identity id = {{0}};
  uint64_t *at = put_cpuid(id.words);
  *at++ = getauxval(AT_HWCAP);
  *at++ = getauxval(AT_HWCAP2);
  for (int level = 1; level <= 3; level++) {
    *at++ = machine_cache_bytes(level);
  }
  return id;
}
