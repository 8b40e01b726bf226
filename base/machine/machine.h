/* machine.h - describes the machine: cores, memory, caches and processor.
 *
 * Only the number of cores may change while a process runs. */
#ifndef BASE_MACHINE_MACHINE_H
#define BASE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the number of cores that the calling thread may run on; at least 1. */
uint32_t machine_cores(void);
/* Returns the number of cores of the whole machine, including those that this process may not use; at least 1. */
uint32_t machine_all_cores(void);

size_t machine_page_bytes(void);
uint64_t machine_memory_bytes(void);
/* Returns the size in bytes of the data cache of a level from 1 to 3.  If the system does not tell it, which happens in
 * some virtual machines and with some C libraries, a common size is returned. */
uint64_t machine_cache_bytes(int level);

/* Returns the processor's architecture as in LLVM's triples, or "unknown". */
const char *machine_architecture(void);

/* A feature of processors by LLVM's name: on x86-64 a row of x86_features.def, elsewhere a feature that the operating
 * system reports (AT_HWCAP). */
typedef struct machine_feature {
  const char *name;
  bool here; /* whether this processor has the feature */
} machine_feature;

/* Searches the features that are known here for a name of n bytes.  Returns false if no feature has that name. */
bool machine_find_feature(const char *name, size_t n, machine_feature *out);
/* Returns true if the name is known here and the processor has the feature. */
bool machine_has_feature(const char *name);

/* The processor's name, such as "AMD EPYC 9R14"; "" if the processor does not report it. */
typedef struct machine_name {
  char text[49];
} machine_name;

machine_name machine_processor_name(void);

/* Identifies a processor by the features that CPUID and the operating system report, and by its caches.  Two processors
 * with the same identity run the same code at the same speed, as far as this can be known. */
typedef struct machine_identity {
  uint64_t words[25];
} machine_identity;

machine_identity machine_processor_identity(void);

#endif
