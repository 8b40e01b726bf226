/* relocation.c - what each type of relocation does.  There is a part for each machine, and only the part for this
 * machine is compiled.  The functions before the parts are inline, since not every part uses all of them. */
#include "runtime/host/relocation.h"

#include <string.h>

static inline status bad_patch(const rt_patch *p, const char *why) {
  return status_error(STATUS_INVALID_FILE, "machine code is damaged: relocation of type %u %s", p->type, why);
}

static status unknown(const rt_patch *p) {
  return status_error(STATUS_UNSUPPORTED, "machine code has a relocation of the unknown type %u", p->type);
}

static inline status outside(const rt_patch *p) { return bad_patch(p, "lies outside of its section"); }
static inline status too_far(const rt_patch *p) { return bad_patch(p, "does not reach its target"); }

/* Returns true if the number is representable in `bits` bits with a sign. */
static inline bool fits(int64_t v, unsigned bits) {
  return v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1);
}

/* Writes `value` as a number of 4 or 8 bytes.  Fails if `bytes` is 4 and the value is no signed 32-bit number. */
static inline status put(const rt_patch *p, uint64_t value, unsigned bytes) {
  if (p->room < bytes) {
    return outside(p);
  }
  if (bytes == 4 && !fits((int64_t)value, 32)) {
    return too_far(p);
  }
  memcpy(p->at, &value, bytes);
  return NULL;
}

/* Replaces the bits of the mask in an instruction of 4 bytes. */
static inline status put_masked(const rt_patch *p, uint32_t mask, uint32_t value) {
  uint32_t word;
  if (p->room < sizeof word) {
    return outside(p);
  }
  memcpy(&word, p->at, sizeof word);
  word = (word & ~mask) | (value & mask);
  memcpy(p->at, &word, sizeof word);
  return NULL;
}

#if defined(__x86_64__)

void rt_slot_write(uint8_t *slot, uint64_t address) {
  static const uint8_t jump[] = {0xff, 0x25, 0xf2, 0xff, 0xff, 0xff /* jmp *slot(%rip) */, 0xcc, 0xcc};
  memcpy(slot, &address, sizeof address);
  memcpy(slot + 8, jump, sizeof jump);
}

static status apply(const rt_patch *p) {
  uint64_t call = p->external ? p->G + 8 + (uint64_t)p->addend : p->S;
  switch (p->type) {
    case R_X86_64_64: return put(p, p->S, 8);
    case R_X86_64_PC64: return put(p, p->S - p->P, 8);
    case R_X86_64_32S: return put(p, p->S, 4);
    case R_X86_64_PC32: return put(p, p->S - p->P, 4);
    case R_X86_64_PLT32: return put(p, call - p->P, 4);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return put(p, p->G + (uint64_t)p->addend - p->P, 4);
    default: return unknown(p);
  }
}

#elif defined(__aarch64__)

void rt_slot_write(uint8_t *slot, uint64_t address) {
  static const uint32_t jump[] = {0x58ffffd0 /* ldr x16, slot */, 0xd61f0200 /* br x16 */};
  memcpy(slot, &address, sizeof address);
  memcpy(slot + 8, jump, sizeof jump);
}

/* Replaces `bits` bits from bit `shift` on. */
static status put_bits(const rt_patch *p, uint64_t value, unsigned bits, unsigned shift) {
  return put_masked(p, (uint32_t)((((uint64_t)1 << bits) - 1) << shift), (uint32_t)value << shift);
}

static status put_page(const rt_patch *p, uint64_t target) {
  int64_t pages = ((int64_t)(target & ~(uint64_t)4095) - (int64_t)(p->P & ~(uint64_t)4095)) / 4096;
  if (!fits(pages, 21)) {
    return too_far(p);
  }
  TRY(put_bits(p, (uint64_t)pages & 3, 2, 29));
  return put_bits(p, (uint64_t)pages >> 2, 19, 5);
}

static status apply(const rt_patch *p) {
  int64_t call = (int64_t)((p->external ? p->G + 8 : p->S) - p->P);
  switch (p->type) {
    case R_AARCH64_ABS64: return put(p, p->S, 8);
    case R_AARCH64_PREL64: return put(p, p->S - p->P, 8);
    case R_AARCH64_PREL32: return put(p, p->S - p->P, 4);
    case R_AARCH64_ADR_PREL_PG_HI21: return put_page(p, p->S);
    case R_AARCH64_ADR_GOT_PAGE: return put_page(p, p->G);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return put_bits(p, p->S & 4095, 12, 10);
    case R_AARCH64_LDST16_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 1, 12, 10);
    case R_AARCH64_LDST32_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 2, 12, 10);
    case R_AARCH64_LDST64_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 3, 12, 10);
    case R_AARCH64_LDST128_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 4, 12, 10);
    case R_AARCH64_LD64_GOT_LO12_NC: return put_bits(p, (p->G & 4095) >> 3, 12, 10);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return fits(call, 28) ? put_bits(p, (uint64_t)call >> 2, 26, 0) : too_far(p);
    default: return unknown(p);
  }
}

#elif defined(__riscv)

void rt_slot_write(uint8_t *slot, uint64_t address) {
  static const uint32_t jump[] = {0x00000317 /* auipc t1, 0 */, 0xff833303 /* ld t1, -8(t1) */, 0x00030067 /* jr t1 */};
  memcpy(slot, &address, sizeof address);
  memcpy(slot + 8, jump, sizeof jump);
}

bool rt_patch_is_low(uint32_t type) { return type == R_RISCV_PCREL_LO12_I || type == R_RISCV_PCREL_LO12_S; }

/* The upper half of a 32-bit number is rounded, since the lower 12 bits are added with their sign. */
static status put_high(const rt_patch *p, int64_t v) {
  return fits(v + 0x800, 32) ? put_masked(p, 0xfffff000, (uint32_t)(v + 0x800)) : too_far(p);
}
static status put_low_i(const rt_patch *p, int64_t v) { return put_masked(p, 0xfff00000, (uint32_t)v << 20); }
static status put_low_s(const rt_patch *p, int64_t v) {
  return put_masked(p, 0xfe000f80, ((uint32_t)v >> 5 & 0x7f) << 25 | ((uint32_t)v & 31) << 7);
}

/* Returns `n` bits from bit `from` on, moved to bit `to`. */
static uint32_t move_bits(int64_t v, unsigned from, unsigned n, unsigned to) {
  return ((uint32_t)((uint64_t)v >> from) & ((1u << n) - 1)) << to;
}

static status put_branch(const rt_patch *p, int64_t v) {
  uint32_t bits = move_bits(v, 12, 1, 31) | move_bits(v, 5, 6, 25) | move_bits(v, 1, 4, 8) | move_bits(v, 11, 1, 7);
  return fits(v, 13) ? put_masked(p, 0xfe000f80, bits) : too_far(p);
}

static status put_jump(const rt_patch *p, int64_t v) {
  uint32_t bits = move_bits(v, 20, 1, 31) | move_bits(v, 1, 10, 21) | move_bits(v, 11, 1, 20) | move_bits(v, 12, 8, 12);
  return fits(v, 21) ? put_masked(p, 0xfffff000, bits) : too_far(p);
}

/* Replaces the bits of the mask in an instruction of 2 bytes. */
static status put_short(const rt_patch *p, uint16_t mask, uint32_t value) {
  uint16_t half;
  if (p->room < sizeof half) {
    return outside(p);
  }
  memcpy(&half, p->at, sizeof half);
  half = (uint16_t)((half & ~mask) | (value & mask));
  memcpy(p->at, &half, sizeof half);
  return NULL;
}

static status put_short_branch(const rt_patch *p, int64_t v) {
  uint32_t bits = move_bits(v, 8, 1, 12) | move_bits(v, 3, 2, 10) | move_bits(v, 6, 2, 5) | move_bits(v, 1, 2, 3) |
                  move_bits(v, 5, 1, 2);
  return fits(v, 9) ? put_short(p, 0x1c7c, bits) : too_far(p);
}

static status put_short_jump(const rt_patch *p, int64_t v) {
  uint32_t bits = move_bits(v, 11, 1, 12) | move_bits(v, 4, 1, 11) | move_bits(v, 8, 2, 9) | move_bits(v, 10, 1, 8) |
                  move_bits(v, 6, 1, 7) | move_bits(v, 7, 1, 6) | move_bits(v, 1, 3, 3) | move_bits(v, 5, 1, 2);
  return fits(v, 12) ? put_short(p, 0x1ffc, bits) : too_far(p);
}

/* A call is two instructions: auipc and jalr. */
static status put_call(const rt_patch *p, int64_t v) {
  rt_patch second = *p;
  if (p->room < 8) {
    return outside(p);
  }
  second.at += 4;
  TRY(put_high(p, v));
  return put_low_i(&second, v);
}

/* Adds S to the number that is patched (sign is 1), subtracts S from it (-1), or sets it to S (0). */
static status put_sum(const rt_patch *p, unsigned bytes, int sign) {
  uint64_t value = 0;
  if (p->room < bytes) {
    return outside(p);
  }
  memcpy(&value, p->at, bytes);
  value = sign > 0 ? value + p->S : sign < 0 ? value - p->S : p->S;
  memcpy(p->at, &value, bytes);
  return NULL;
}

/* Returns the address whose upper half p patches, relative to the instruction that is patched. */
static int64_t high_target(const rt_patch *p) { return (int64_t)((p->type == R_RISCV_GOT_HI20 ? p->G : p->S) - p->P); }

static status apply_difference(const rt_patch *p) {
  switch (p->type) {
    case R_RISCV_ADD8: return put_sum(p, 1, 1);
    case R_RISCV_ADD16: return put_sum(p, 2, 1);
    case R_RISCV_ADD32: return put_sum(p, 4, 1);
    case R_RISCV_ADD64: return put_sum(p, 8, 1);
    case R_RISCV_SUB8: return put_sum(p, 1, -1);
    case R_RISCV_SUB16: return put_sum(p, 2, -1);
    case R_RISCV_SUB32: return put_sum(p, 4, -1);
    case R_RISCV_SUB64: return put_sum(p, 8, -1);
    case R_RISCV_SET8: return put_sum(p, 1, 0);
    case R_RISCV_SET16: return put_sum(p, 2, 0);
    case R_RISCV_SET32: return put_sum(p, 4, 0);
    default: return unknown(p);
  }
}

static status apply(const rt_patch *p) {
  int64_t relative = (int64_t)(p->S - p->P), call = p->external ? (int64_t)(p->G + 8 - p->P) : relative;
  if (rt_patch_is_low(p->type) &&
      (!p->high || (p->high->type != R_RISCV_PCREL_HI20 && p->high->type != R_RISCV_GOT_HI20))) {
    return bad_patch(p, "has no upper half");
  }
  switch (p->type) {
    case R_RISCV_64: return put(p, p->S, 8);
    case R_RISCV_32_PCREL: return put(p, (uint64_t)relative, 4);
    case R_RISCV_GOT_HI20:
    case R_RISCV_PCREL_HI20: return put_high(p, high_target(p));
    case R_RISCV_PCREL_LO12_I: return put_low_i(p, high_target(p->high));
    case R_RISCV_PCREL_LO12_S: return put_low_s(p, high_target(p->high));
    case R_RISCV_CALL:
    case R_RISCV_CALL_PLT: return put_call(p, call);
    case R_RISCV_BRANCH: return put_branch(p, relative);
    case R_RISCV_JAL: return put_jump(p, relative);
    case R_RISCV_RVC_BRANCH: return put_short_branch(p, relative);
    case R_RISCV_RVC_JUMP: return put_short_jump(p, relative);
    case R_RISCV_RELAX: return NULL; /* only marks instructions that a linker may shorten */
    default: return apply_difference(p);
  }
}

#elif defined(__arm__)

void rt_slot_write(uint8_t *slot, uint64_t address) {
  static const uint32_t jump = 0xe51ff010; /* ldr pc, slot; pc is read as this instruction's address plus 8 */
  memcpy(slot, &address, sizeof address);
  memcpy(slot + 8, &jump, sizeof jump);
}

/* Returns the low `bits` bits as a signed number. */
static int64_t sign_extend(uint32_t v, unsigned bits) { return (int32_t)(v << (32 - bits)) >> (32 - bits); }

int64_t rt_patch_addend(uint32_t type, const uint8_t *at, uint64_t room) {
  uint32_t word = 0;
  memcpy(&word, at, room < sizeof word ? (size_t)room : sizeof word);
  switch (type) {
    case R_ARM_CALL:
    case R_ARM_PC24:
    case R_ARM_JUMP24: return sign_extend(word, 24) * 4;
    case R_ARM_PREL31: return sign_extend(word, 31);
    case R_ARM_MOVW_ABS_NC:
    case R_ARM_MOVT_ABS:
    case R_ARM_MOVW_PREL_NC:
    case R_ARM_MOVT_PREL: return sign_extend((word >> 4 & 0xf000) | (word & 0xfff), 16);
    default: return (int32_t)word;
  }
}

/* Addresses wrap around at 32 bits. */
static status put_word(const rt_patch *p, uint64_t value) { return put_masked(p, UINT32_MAX, (uint32_t)value); }

static status put_half(const rt_patch *p, uint64_t value) {
  return put_masked(p, 0x000f0fff, ((uint32_t)value & 0xf000) << 4 | ((uint32_t)value & 0xfff));
}

static status apply(const rt_patch *p) {
  uint64_t target = p->external ? p->G + 8 + (uint64_t)p->addend : p->S;
  int64_t call = (int32_t)(uint32_t)(target - p->P);
  switch (p->type) {
    case R_ARM_V4BX: return NULL; /* only marks a bx instruction, which all supported processors have */
    case R_ARM_ABS32: return put_word(p, p->S);
    case R_ARM_REL32: return put_word(p, p->S - p->P);
    case R_ARM_GOT_PREL: return put_word(p, p->G + (uint64_t)p->addend - p->P);
    case R_ARM_PREL31: return put_masked(p, 0x7fffffff, (uint32_t)(p->S - p->P));
    case R_ARM_MOVW_ABS_NC: return put_half(p, p->S);
    case R_ARM_MOVT_ABS: return put_half(p, p->S >> 16);
    case R_ARM_MOVW_PREL_NC: return put_half(p, p->S - p->P);
    case R_ARM_MOVT_PREL: return put_half(p, (p->S - p->P) >> 16);
    case R_ARM_CALL:
    case R_ARM_PC24:
    case R_ARM_JUMP24:
      if (!p->external && (call & 1)) {
        return bad_patch(p, "calls Thumb code"); /* kernels are ARM code, and external functions are reached by slots */
      }
      return fits(call, 26) ? put_masked(p, 0x00ffffff, (uint32_t)call >> 2) : too_far(p);
    default: return unknown(p);
  }
}

#else

void rt_slot_write(uint8_t *slot, uint64_t address) { memcpy(slot, &address, sizeof address); }

static status apply(const rt_patch *p) { return unknown(p); }

#endif

#if !defined(__riscv)
bool rt_patch_is_low(uint32_t type) { return (void)type, false; }
#endif

#if !defined(__arm__)
int64_t rt_patch_addend(uint32_t type, const uint8_t *at, uint64_t room) { return (void)type, (void)at, (void)room, 0; }
#endif

/* Type 0 patches nothing on any machine. */
status rt_patch_apply(const rt_patch *p) { return p->type == 0 ? NULL : apply(p); }
