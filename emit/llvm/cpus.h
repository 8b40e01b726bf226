/* cpus.h - the architectures and CPUs for which code can be written, as data. */
#ifndef EMIT_LLVM_CPUS_H
#define EMIT_LLVM_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* The families of architectures.  target.c says for each family which features give which abilities. */
typedef enum emit_family { EMIT_X86, EMIT_AARCH64, EMIT_ARM, EMIT_CORTEX_M, EMIT_RISCV, EMIT_WASM } emit_family;

/* What is the same for all CPUs of an architecture. */
typedef struct emit_arch {
  const char *name;     /* the first part of LLVM's triples */
  const char *alias;    /* another name that LLVM accepts in triples for the same architecture; NULL if there is none */
  const char *least;    /* LLVM's name of the least CPU */
  const char *baseline; /* the features of the least CPU that LLVM does not know from its name: "+m,+f,..." or "" */
  emit_family family;
  int pointer_bits;
  /* Assembler text that loads the address of the symbol %s into the register of the static chain.  NULL means that no
   * trampolines are written for the architecture (trampoline.h). */
  const char *static_chain;
} emit_arch;

/* A CPU. */
typedef struct emit_cpu {
  const char *arch;     /* the name of its architecture */
  const char *name;     /* what users call it */
  const char *llvm;     /* LLVM's name of the CPU for which instructions are scheduled */
  const char *features; /* the features that code for it may use beyond those of the architecture's least CPU */
  int64_t l2_bytes; /* the size in bytes of the cache or of the memory that each core has for itself, by which blocks
                       are sized; if there are models with several sizes, the smallest usual one */
} emit_cpu;

/* Returns the architecture that the triple names, or NULL if there is no row for it. */
const emit_arch *emit_find_arch(const char *triple);

/* The table of CPUs.  The CPUs of an architecture follow each other, the least one first. */
extern const emit_cpu emit_cpus[];
extern const size_t emit_n_cpus;

/* Returns the CPU of this architecture and name, or NULL if there is none. "generic" is the least CPU of the
 * architecture. */
const emit_cpu *emit_find_cpu(const emit_arch *arch, const char *name);

/* Returns true if "+name" is in the list of features. */
bool emit_has_feature(const char *features, const char *name);

/* Sets *out, on the arena, to `features` with the changes of `list`, such as "+avx512vnni,-avx512fp16", from left to
 * right: a feature is added with those that it needs, or removed with those that need it.  A name is one of a feature
 * that a CPU of the architecture has in the table; otherwise the error is INVALID_ARGUMENT and lists the names. */
STATUS_MUST_USE status emit_change_features(arena *a, const emit_arch *arch, const char *features, const char *list,
                                            const char **out);

#endif
