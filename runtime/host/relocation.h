/* relocation.h - patches machine code of this machine's kind; code_loader.c reads the objects. */
#ifndef RUNTIME_HOST_RELOCATION_H
#define RUNTIME_HOST_RELOCATION_H

#include <elf.h>

#include "base/status.h"

/* The machine, as in the header of an ELF object, and the size of a slot (rt_slot_write) in bytes. */
#if defined(__x86_64__)
enum { RT_ELF_MACHINE = EM_X86_64, RT_SLOT_BYTES = 16 };
#elif defined(__aarch64__)
enum { RT_ELF_MACHINE = EM_AARCH64, RT_SLOT_BYTES = 16 };
#elif defined(__riscv) && __riscv_xlen == 64
enum { RT_ELF_MACHINE = EM_RISCV, RT_SLOT_BYTES = 24 };
#elif defined(__arm__)
enum { RT_ELF_MACHINE = EM_ARM, RT_SLOT_BYTES = 16 };
#else
enum { RT_ELF_MACHINE = EM_NONE, RT_SLOT_BYTES = 16 };
#endif

/* One relocation, in the terms of the ABIs: S is the symbol's address with the addend, P the patched address, G the
 * address of the symbol's slot. */
typedef struct rt_patch {
  uint32_t type;
  uint8_t *at;   /* the bytes that are patched */
  uint64_t room; /* the bytes from `at` to the end of the section */
  uint64_t S, P, G;
  int64_t addend;
  bool external; /* whether the symbol is not in the object */
  /* On RISC-V a patch of the lower half of an address names, as its symbol, the instruction with the upper half.
   * `high` is the patch of that instruction, or NULL if that instruction is not patched.  It is NULL for all other
   * patches. */
  const struct rt_patch *high;
} rt_patch;

/* A slot has a symbol's address and a jump to it.  The address is used as an entry of a global offset table.  The jump
 * is used for calls of symbols that are too far away for a relative call. */
void rt_slot_write(uint8_t *slot, uint64_t address);

/* Returns true for the lower half of an address on RISC-V (rt_patch.high). */
bool rt_patch_is_low(uint32_t type);
/* Returns the addend of a relocation on ARM, where it is stored in the bytes to patch: `room` bytes at `at`.  Returns 0
 * on other machines. */
int64_t rt_patch_addend(uint32_t type, const uint8_t *at, uint64_t room);

/* Patches the bytes at p->at.  Returns INVALID_FILE if the patch does not fit, and UNSUPPORTED for an unknown type. */
STATUS_MUST_USE status rt_patch_apply(const rt_patch *p);

#endif
