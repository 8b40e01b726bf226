/* code_loader.c - lays out, relocates and protects the sections of an ELF object of this machine. */
#include "runtime/host/code_loader.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arith.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "runtime/host/relocation.h"

/* Objects have the word size of the machine. */
typedef ElfW(Ehdr) elf_header;
typedef ElfW(Shdr) elf_section;
typedef ElfW(Sym) elf_symbol;
typedef ElfW(Rel) elf_rel;
typedef ElfW(Rela) elf_rela;
#if __SIZEOF_POINTER__ == 8
#define SYMBOL_OF ELF64_R_SYM
#define TYPE_OF ELF64_R_TYPE
enum { ELF_CLASS = ELFCLASS64 };
#else
#define SYMBOL_OF ELF32_R_SYM
#define TYPE_OF ELF32_R_TYPE
enum { ELF_CLASS = ELFCLASS32 };
#endif

enum { MAX_SECTIONS = 65000 };
/* The most bytes of an image, so that 32-bit relative addresses reach everything in it. */
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
  elf_header header;
  elf_section *sections;
  uint64_t *place; /* the offset of each section in the image; UINT64_MAX if it is not loaded */
  uint64_t group_end[GROUP_COUNT];
  uint32_t n_symbols;
  const uint8_t *symbol_table; /* an array of elf_symbol, perhaps unaligned */
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

static status read_header(loading *l) {
  static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', ELF_CLASS, ELFDATA2LSB, EV_CURRENT};
  if (l->size < sizeof l->header || memcmp(l->bytes, magic, sizeof magic) != 0) {
    return DAMAGED("no ELF object of this machine's kind");
  }
  memcpy(&l->header, l->bytes, sizeof l->header);
  const elf_header *h = &l->header;
  CHECK_THAT(h->e_machine == RT_ELF_MACHINE, STATUS_INVALID_FILE,
             "machine code is for another processor (ELF machine %u)", h->e_machine);
  if (h->e_type != ET_REL || h->e_shentsize != sizeof(elf_section) || h->e_shnum > MAX_SECTIONS ||
      !inside(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(elf_section))) {
    return DAMAGED("bad section table");
  }
  l->sections = ARENA_NEW_N(l->scratch, elf_section, h->e_shnum);
  memcpy(l->sections, l->bytes + h->e_shoff, h->e_shnum * sizeof(elf_section));
  for (uint32_t k = 0; k < h->e_shnum; k++) {
    const elf_section *s = &l->sections[k];
    if ((s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && !inside(l, s->sh_offset, s->sh_size)) ||
        s->sh_size > max_image || (s->sh_addralign & (s->sh_addralign - 1)) || s->sh_addralign > 4096) {
      return DAMAGED("section %u lies outside of the file", k);
    }
  }
  return NULL;
}

static status read_symbol_table(loading *l) {
  for (uint32_t k = 0; k < l->header.e_shnum; k++) {
    const elf_section *s = &l->sections[k];
    if (s->sh_type != SHT_SYMTAB) {
      continue;
    }
    if (s->sh_link >= l->header.e_shnum || l->sections[s->sh_link].sh_type != SHT_STRTAB || l->symbol_table) {
      return DAMAGED("bad symbol table");
    }
    const elf_section *strings = &l->sections[s->sh_link];
    l->symtab = k;
    l->n_symbols = (uint32_t)(s->sh_size / sizeof(elf_symbol));
    l->symbol_table = l->bytes + s->sh_offset;
    l->names = (const char *)l->bytes + strings->sh_offset;
    l->names_size = strings->sh_size;
    if (l->names_size == 0 || l->names[l->names_size - 1] != '\0') {
      return DAMAGED("symbol names without an end");
    }
  }
  return NULL;
}

static elf_symbol symbol_at(const loading *l, uint32_t k) {
  elf_symbol s;
  memcpy(&s, l->symbol_table + (uint64_t)k * sizeof s, sizeof s);
  return s;
}

/* --- layout --- */

static group group_of(const elf_section *s) {
  return s->sh_flags & SHF_EXECINSTR ? GROUP_CODE : s->sh_flags & SHF_WRITE ? GROUP_DATA : GROUP_CONSTANT;
}

static status lay_out(loading *l) {
  uint64_t page = machine_page_bytes(), at = (uint64_t)l->n_symbols * RT_SLOT_BYTES;
  l->place = ARENA_NEW_N(l->scratch, uint64_t, l->header.e_shnum);
  memset(l->place, 0xff, l->header.e_shnum * sizeof *l->place);
  for (group g = 0; g < GROUP_COUNT; g++) {
    for (uint32_t k = 0; k < l->header.e_shnum; k++) {
      const elf_section *s = &l->sections[k];
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
    const elf_section *s = &l->sections[k];
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

static status define_symbol(loading *l, uint32_t k) {
  elf_symbol s = symbol_at(l, k);
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
  rt_slot_write(l->code->base + (uint64_t)k * RT_SLOT_BYTES, l->addresses[k]);
  return NULL;
}

static status define_symbols(loading *l) {
  l->addresses = ARENA_NEW_N(l->scratch, uint64_t, l->n_symbols);
  for (uint32_t k = 1; k < l->n_symbols; k++) { /* symbol 0 is the null symbol */
    TRY(define_symbol(l, k));
  }
  return NULL;
}

/* --- relocation --- */

/* Returns relocation k of a table.  Its addend is 0 if the table has no addends. */
static elf_rela relocation_at(const loading *l, const elf_section *table, uint32_t k) {
  const uint8_t *at = l->bytes + table->sh_offset + (uint64_t)k * table->sh_entsize;
  elf_rela r = {0};
  memcpy(&r, at, table->sh_type == SHT_RELA ? sizeof(elf_rela) : sizeof(elf_rel));
  return r;
}

/* Describes relocation k of a table, which patches section table->sh_info. */
static status read_patch(const loading *l, const elf_section *table, uint32_t k, rt_patch *out) {
  elf_rela r = relocation_at(l, table, k);
  uint32_t symbol = (uint32_t)SYMBOL_OF(r.r_info), section = table->sh_info;
  uint64_t size = l->sections[section].sh_size, base = (uint64_t)(uintptr_t)l->code->base;
  if (symbol >= l->n_symbols || r.r_offset > size || l->sections[section].sh_type == SHT_NOBITS) {
    return DAMAGED("a relocation lies outside of its section");
  }
  elf_symbol s = symbol ? symbol_at(l, symbol) : (elf_symbol){0};
  uint64_t place = l->place[section] + r.r_offset;
  *out = (rt_patch){.type = (uint32_t)TYPE_OF(r.r_info),
                    .at = l->code->base + place,
                    .room = size - r.r_offset,
                    .P = base + place,
                    .G = base + (uint64_t)symbol * RT_SLOT_BYTES,
                    .addend = r.r_addend,
                    .external = symbol && s.st_shndx == SHN_UNDEF};
  if (table->sh_type == SHT_REL) {
    out->addend = rt_patch_addend(out->type, out->at, out->room);
  }
  out->S = l->addresses[symbol] + (uint64_t)out->addend;
  CHECK_THAT(!out->type || !out->external || l->addresses[symbol], STATUS_UNSUPPORTED,
             "machine code calls '%s', which this onnx-xla does not have", l->names + s.st_name);
  return NULL;
}

/* For relocation k, which patches the lower half of an address on RISC-V: finds the relocation at address P, which
 * patches the upper half.  It usually comes just before relocation k.  Sets out->at to NULL if there is none. */
static status find_high(const loading *l, const elf_section *table, uint32_t k, uint64_t P, rt_patch *out) {
  uint32_t n = (uint32_t)(table->sh_size / table->sh_entsize);
  uint64_t base = (uint64_t)(uintptr_t)l->code->base + l->place[table->sh_info];
  for (uint32_t back = 1; back < n; back++) {
    uint32_t j = (k + n - back) % n;
    elf_rela r = relocation_at(l, table, j);
    if (base + r.r_offset == P && !rt_patch_is_low((uint32_t)TYPE_OF(r.r_info)) && TYPE_OF(r.r_info) != R_RISCV_RELAX) {
      return read_patch(l, table, j, out);
    }
  }
  *out = (rt_patch){0};
  return NULL;
}

static status relocate_section(const loading *l, const elf_section *table) {
  for (uint32_t k = 0; k < table->sh_size / table->sh_entsize; k++) {
    rt_patch p, high;
    TRY(read_patch(l, table, k, &p));
    if (rt_patch_is_low(p.type)) {
      TRY(find_high(l, table, k, p.S, &high));
      p.high = high.at ? &high : NULL;
    }
    TRY(rt_patch_apply(&p));
  }
  return NULL;
}

static status relocate(const loading *l) {
  for (uint32_t k = 0; k < l->header.e_shnum; k++) {
    const elf_section *s = &l->sections[k];
    bool is_table = s->sh_type == SHT_RELA || s->sh_type == SHT_REL;
    if (!is_table || s->sh_info >= l->header.e_shnum || l->place[s->sh_info] == UINT64_MAX) {
      continue; /* debug information is not loaded */
    }
    if ((s->sh_type == SHT_REL) != (RT_ELF_MACHINE == EM_ARM)) {
      return DAMAGED("relocations %s addends", s->sh_type == SHT_REL ? "without" : "with");
    }
    if (s->sh_entsize != (s->sh_type == SHT_REL ? sizeof(elf_rel) : sizeof(elf_rela))) {
      return DAMAGED("bad relocations");
    }
    if (s->sh_link != l->symtab || !l->symbol_table) {
      return DAMAGED("relocations without symbols");
    }
    TRY(relocate_section(l, s));
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
