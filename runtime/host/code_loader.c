/* code_loader.c - lays out, relocates and protects the sections of an ELF object. */
#include "runtime/host/code_loader.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arith.h"
#include "base/hash.h"
#include "base/machine.h"

enum { MAX_SECTIONS = 65000, SLOT_BYTES = 16 };
/* so that 32-bit relative addresses reach everything in the image */
static const uint64_t max_image = (uint64_t)1 << 30;

/* Sections with equal protection are adjacent, and each group is on pages of its own. */
typedef enum group { GROUP_CODE, GROUP_CONSTANT, GROUP_DATA, GROUP_COUNT } group;

struct rt_code {
  uint8_t *base; /* NULL until the image is mapped */
  size_t size;
  str_map symbols;
};

/* The state of loading an object.  Before the code there is a slot for every symbol, with the symbol's address and a
 * jump to it.  The jump is used for calls of symbols that are too far away for a relative call; the address is used as
 * an entry of a global offset table. */
typedef struct loading {
  arena *scratch; /* the caller's arena, for small tables */
  rt_code *code;
  rt_resolve_fn *resolve;
  const uint8_t *bytes; /* the object */
  uint64_t size;
  Elf64_Ehdr header;
  Elf64_Shdr *sections;
  uint64_t *place; /* the offset of each section in the image; UINT64_MAX if it is not loaded */
  uint64_t group_end[GROUP_COUNT];
  uint32_t n_symbols;
  const uint8_t *symbol_table; /* an array of Elf64_Sym, perhaps unaligned */
  const char *names;
  uint64_t names_size;
  uint64_t *addresses; /* the addresses of symbols; 0 if not known */
  uint32_t symtab;     /* the index of the section that is the symbol table */
} loading;

#define DAMAGED(...) status_error(STATUS_INVALID_FILE, "machine code is damaged: " __VA_ARGS__)

static bool inside(const loading *l, uint64_t offset, uint64_t size) {
  return offset <= l->size && size <= l->size - offset;
}

/* --- reading the tables --- */

static uint16_t this_machine(void) {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
  return EM_NONE;
#endif
}

static status read_header(loading *l) {
  static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  if (l->size < sizeof l->header || memcmp(l->bytes, magic, sizeof magic) != 0) {
    return DAMAGED("no 64-bit ELF object");
  }
  memcpy(&l->header, l->bytes, sizeof l->header);
  const Elf64_Ehdr *h = &l->header;
  CHECK_THAT(h->e_machine == this_machine(), STATUS_INVALID_FILE,
             "machine code is for another processor (ELF machine %u)", h->e_machine);
  if (h->e_type != ET_REL || h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum > MAX_SECTIONS ||
      !inside(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))) {
    return DAMAGED("bad section table");
  }
  l->sections = ARENA_NEW_N(l->scratch, Elf64_Shdr, h->e_shnum);
  memcpy(l->sections, l->bytes + h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
  for (uint32_t k = 0; k < h->e_shnum; k++) {
    const Elf64_Shdr *s = &l->sections[k];
    if ((s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && !inside(l, s->sh_offset, s->sh_size)) ||
        s->sh_size > max_image || (s->sh_addralign & (s->sh_addralign - 1)) || s->sh_addralign > 4096) {
      return DAMAGED("section %u lies outside of the file", k);
    }
  }
  return NULL;
}

static status read_symbol_table(loading *l) {
  for (uint32_t k = 0; k < l->header.e_shnum; k++) {
    const Elf64_Shdr *s = &l->sections[k];
    if (s->sh_type != SHT_SYMTAB) {
      continue;
    }
    if (s->sh_link >= l->header.e_shnum || l->sections[s->sh_link].sh_type != SHT_STRTAB || l->symbol_table) {
      return DAMAGED("bad symbol table");
    }
    const Elf64_Shdr *strings = &l->sections[s->sh_link];
    l->symtab = k;
    l->n_symbols = (uint32_t)(s->sh_size / sizeof(Elf64_Sym));
    l->symbol_table = l->bytes + s->sh_offset;
    l->names = (const char *)l->bytes + strings->sh_offset;
    l->names_size = strings->sh_size;
    if (l->names_size == 0 || l->names[l->names_size - 1] != '\0') {
      return DAMAGED("symbol names without an end");
    }
  }
  return NULL;
}

static Elf64_Sym symbol_at(const loading *l, uint32_t k) {
  Elf64_Sym s;
  memcpy(&s, l->symbol_table + (uint64_t)k * sizeof s, sizeof s);
  return s;
}

/* --- layout --- */

static group group_of(const Elf64_Shdr *s) {
  return s->sh_flags & SHF_EXECINSTR ? GROUP_CODE : s->sh_flags & SHF_WRITE ? GROUP_DATA : GROUP_CONSTANT;
}

static status lay_out(loading *l) {
  uint64_t page = machine_page_bytes(), at = (uint64_t)l->n_symbols * SLOT_BYTES;
  l->place = ARENA_NEW_N(l->scratch, uint64_t, l->header.e_shnum);
  memset(l->place, 0xff, l->header.e_shnum * sizeof *l->place);
  for (group g = 0; g < GROUP_COUNT; g++) {
    for (uint32_t k = 0; k < l->header.e_shnum; k++) {
      const Elf64_Shdr *s = &l->sections[k];
      if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_NULL || group_of(s) != g) {
        continue;
      }
      at = round_up_u64(at, s->sh_addralign ? s->sh_addralign : 1);
      l->place[k] = at;
      at += s->sh_size;
      if (at > max_image) {
        return DAMAGED("sections of more than %llu bytes", (unsigned long long)max_image);
      }
    }
    l->group_end[g] = at = round_up_u64(at, page);
  }
  return NULL;
}

static void unmap(void *data) {
  rt_code *c = data;
  if (c->base) {
    munmap(c->base, c->size);
  }
}

static status map(loading *l, arena *a) {
  rt_code *c = l->code;
  c->size = l->group_end[GROUP_COUNT - 1];
  if (c->size == 0) {
    return NULL;
  }
  arena_cleanup(a, unmap, c); /* before mmap, so that nothing leaks if memory for the cleanup runs out */
  void *p = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK_THAT(p != MAP_FAILED, STATUS_RESOURCE, "no %zu bytes for machine code: %s", c->size, strerror(errno));
  c->base = p;
  for (uint32_t k = 0; k < l->header.e_shnum; k++) {
    const Elf64_Shdr *s = &l->sections[k];
    if (l->place[k] != UINT64_MAX && s->sh_type != SHT_NOBITS && s->sh_size) {
      memcpy(c->base + l->place[k], l->bytes + s->sh_offset, s->sh_size);
    }
  }
  return NULL;
}

static status protect(const loading *l) {
  static const int protections[GROUP_COUNT] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  uint64_t begin = 0;
  for (group g = 0; g < GROUP_COUNT; g++) {
    uint64_t end = l->group_end[g];
    CHECK_THAT(begin == end || mprotect(l->code->base + begin, end - begin, protections[g]) == 0, STATUS_IO,
               "the system does not let machine code run: %s", strerror(errno));
    begin = end;
  }
  __builtin___clear_cache((char *)l->code->base, (char *)l->code->base + l->group_end[GROUP_CODE]);
  return NULL;
}

/* --- symbols --- */

static void write_slot(uint8_t *slot, uint64_t address) {
  memcpy(slot, &address, 8);
#if defined(__aarch64__)
  static const uint32_t jump[] = {0x58ffffd0 /* ldr x16, slot */, 0xd61f0200 /* br x16 */};
#else
  static const uint8_t jump[] = {0xff, 0x25, 0xf2, 0xff, 0xff, 0xff /* jmp *slot(%rip) */, 0xcc, 0xcc};
#endif
  memcpy(slot + 8, jump, sizeof jump);
}

static status define_symbol(loading *l, uint32_t k) {
  Elf64_Sym s = symbol_at(l, k);
  if (s.st_name >= l->names_size) {
    return DAMAGED("symbol %u has no name", k);
  }
  const char *name = l->names + s.st_name;
  uint8_t type = ELF64_ST_TYPE(s.st_info);
  if (s.st_shndx == SHN_UNDEF) {
    l->addresses[k] = *name ? (uint64_t)(uintptr_t)l->resolve(name) : 0;
  } else if (s.st_shndx == SHN_ABS) {
    l->addresses[k] = s.st_value;
  } else if (s.st_shndx >= l->header.e_shnum || s.st_value > l->sections[s.st_shndx].sh_size) {
    return DAMAGED("symbol '%s' lies outside of its section", name);
  } else if (l->place[s.st_shndx] != UINT64_MAX) {
    l->addresses[k] = (uint64_t)(uintptr_t)l->code->base + l->place[s.st_shndx] + s.st_value;
    if (*name && type != STT_SECTION && type != STT_FILE) {
      *str_map_put(&l->code->symbols, name) = (void *)(uintptr_t)l->addresses[k];
    }
  }
  write_slot(l->code->base + (uint64_t)k * SLOT_BYTES, l->addresses[k]);
  return NULL;
}

static status define_symbols(loading *l) {
  l->addresses = ARENA_NEW_N(l->scratch, uint64_t, l->n_symbols);
  for (uint32_t k = 1; k < l->n_symbols; k++) { /* symbol 0 is the null symbol */
    TRY(define_symbol(l, k));
  }
  return NULL;
}

/* --- relocation, in the terms of the ABI: S is the symbol's address, P the patched address, G the symbol's slot --- */

typedef struct patch {
  uint32_t type;
  uint8_t *at;
  uint64_t room; /* the bytes from `at` to the end of the section */
  uint64_t S, P, G;
  int64_t addend;
  bool external;
} patch;

static status bad_patch(const patch *p, const char *why) { return DAMAGED("relocation of type %u %s", p->type, why); }

static status put(const patch *p, uint64_t value, unsigned bytes) {
  if (p->room < bytes) {
    return bad_patch(p, "lies outside of its section");
  }
  int64_t v = (int64_t)value;
  if (bytes == 4 && v != (int32_t)v) {
    return bad_patch(p, "does not reach its target");
  }
  memcpy(p->at, &value, bytes);
  return NULL;
}

static status patch_x86_64(const patch *p) {
  uint64_t call = p->external ? p->G + 8 + (uint64_t)p->addend : p->S;
  switch (p->type) {
    case R_X86_64_NONE: return NULL;
    case R_X86_64_64: return put(p, p->S, 8);
    case R_X86_64_PC64: return put(p, p->S - p->P, 8);
    case R_X86_64_32S: return put(p, p->S, 4);
    case R_X86_64_PC32: return put(p, p->S - p->P, 4);
    case R_X86_64_PLT32: return put(p, call - p->P, 4);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return put(p, p->G + (uint64_t)p->addend - p->P, 4);
    default: return status_error(STATUS_UNSUPPORTED, "machine code has a relocation of the unknown type %u", p->type);
  }
}

/* Replaces the bits from bit `shift` on of an instruction by the low `bits` bits of the value. */
static status put_bits(const patch *p, uint64_t value, unsigned bits, unsigned shift) {
  uint32_t word, mask = (uint32_t)((((uint64_t)1 << bits) - 1) << shift);
  if (p->room < 4) {
    return bad_patch(p, "lies outside of its section");
  }
  memcpy(&word, p->at, 4);
  word = (word & ~mask) | (((uint32_t)value << shift) & mask);
  memcpy(p->at, &word, 4);
  return NULL;
}

static status patch_page(const patch *p, uint64_t target) {
  int64_t pages = ((int64_t)(target & ~(uint64_t)4095) - (int64_t)(p->P & ~(uint64_t)4095)) / 4096;
  if (pages < -(1 << 20) || pages >= 1 << 20) {
    return bad_patch(p, "does not reach its target");
  }
  TRY(put_bits(p, (uint64_t)pages & 3, 2, 29));
  return put_bits(p, (uint64_t)pages >> 2, 19, 5);
}

static status patch_aarch64(const patch *p) {
  int64_t call = (int64_t)((p->external ? p->G + 8 : p->S) - p->P);
  switch (p->type) {
    case R_AARCH64_NONE: return NULL;
    case R_AARCH64_ABS64: return put(p, p->S, 8);
    case R_AARCH64_PREL64: return put(p, p->S - p->P, 8);
    case R_AARCH64_PREL32: return put(p, p->S - p->P, 4);
    case R_AARCH64_ADR_PREL_PG_HI21: return patch_page(p, p->S);
    case R_AARCH64_ADR_GOT_PAGE: return patch_page(p, p->G);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return put_bits(p, p->S & 4095, 12, 10);
    case R_AARCH64_LDST16_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 1, 12, 10);
    case R_AARCH64_LDST32_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 2, 12, 10);
    case R_AARCH64_LDST64_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 3, 12, 10);
    case R_AARCH64_LDST128_ABS_LO12_NC: return put_bits(p, (p->S & 4095) >> 4, 12, 10);
    case R_AARCH64_LD64_GOT_LO12_NC: return put_bits(p, (p->G & 4095) >> 3, 12, 10);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
      if (call < -(1 << 27) || call >= 1 << 27) {
        return bad_patch(p, "does not reach its target");
      }
      return put_bits(p, (uint64_t)call >> 2, 26, 0);
    default: return status_error(STATUS_UNSUPPORTED, "machine code has a relocation of the unknown type %u", p->type);
  }
}

static status relocate_one(const loading *l, uint32_t section, const Elf64_Rela *r) {
  uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);
  uint64_t size = l->sections[section].sh_size, base = (uint64_t)(uintptr_t)l->code->base;
  if (symbol >= l->n_symbols || r->r_offset > size || l->sections[section].sh_type == SHT_NOBITS) {
    return DAMAGED("a relocation lies outside of its section");
  }
  Elf64_Sym s = symbol ? symbol_at(l, symbol) : (Elf64_Sym){0};
  CHECK_THAT(!symbol || s.st_shndx != SHN_UNDEF || l->addresses[symbol], STATUS_UNSUPPORTED,
             "machine code calls '%s', which this onnx-xla does not have", l->names + s.st_name);
  uint64_t place = l->place[section] + r->r_offset;
  patch p = {.type = (uint32_t)ELF64_R_TYPE(r->r_info),
             .at = l->code->base + place,
             .room = size - r->r_offset,
             .S = l->addresses[symbol] + (uint64_t)r->r_addend,
             .P = base + place,
             .G = base + (uint64_t)symbol * SLOT_BYTES,
             .addend = r->r_addend,
             .external = symbol && s.st_shndx == SHN_UNDEF};
  return l->header.e_machine == EM_X86_64 ? patch_x86_64(&p) : patch_aarch64(&p);
}

static status relocate(const loading *l) {
  for (uint32_t k = 0; k < l->header.e_shnum; k++) {
    const Elf64_Shdr *s = &l->sections[k];
    if (s->sh_type == SHT_REL && s->sh_info < l->header.e_shnum && l->place[s->sh_info] != UINT64_MAX) {
      return DAMAGED("relocations without addends");
    }
    if (s->sh_type != SHT_RELA || s->sh_info >= l->header.e_shnum || l->place[s->sh_info] == UINT64_MAX) {
      continue; /* debug information is not loaded */
    }
    if (s->sh_link != l->symtab || !l->symbol_table) {
      return DAMAGED("relocations without symbols");
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= s->sh_size; at += sizeof(Elf64_Rela)) {
      Elf64_Rela r;
      memcpy(&r, l->bytes + s->sh_offset + at, sizeof r);
      TRY(relocate_one(l, s->sh_info, &r));
    }
  }
  return NULL;
}

status rt_code_load(arena *a, rt_span object, rt_resolve_fn *resolve, rt_code **out) {
  *out = NULL;
  rt_code *code = ARENA_NEW(a, rt_code);
  str_map_init(&code->symbols, a);
  loading l = {.scratch = a, .code = code, .resolve = resolve, .bytes = object.data, .size = object.size};
  TRY(read_header(&l));
  TRY(read_symbol_table(&l));
  TRY(lay_out(&l));
  TRY(map(&l, a));
  if (code->size) {
    TRY(define_symbols(&l));
    TRY(relocate(&l));
    TRY(protect(&l));
  }
  *out = code;
  return NULL;
}

void *rt_code_find(const rt_code *code, const char *name) { return str_map_get(&code->symbols, name); }
