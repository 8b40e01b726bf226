/* object_names.c - see object_names.h. */
#include "tests/target/object_names.h"

#include <check.h>
#include <elf.h>
#include <string.h>

static void put(arena *a, object_names *o, const char *name) { *ARENA_PUSH(a, o->undefined, o->n, o->cap) = name; }

/* --- ELF --- */

/* Both widths have the same members. */
#define READ_ELF(bits)                                                      \
  static object_names elf##bits(arena *a, const char *bytes) {              \
    const Elf##bits##_Ehdr *e = (const void *)bytes;                        \
    const Elf##bits##_Shdr *s = (const void *)(bytes + e->e_shoff);         \
    object_names o = {.machine = e->e_machine, .flags = e->e_flags};        \
    for (int k = 0; k < e->e_shnum; k++) {                                  \
      const char *text = bytes + s[s[k].sh_link].sh_offset;                 \
      const Elf##bits##_Sym *y = (const void *)(bytes + s[k].sh_offset);    \
      size_t n = s[k].sh_type == SHT_SYMTAB ? s[k].sh_size / sizeof *y : 0; \
      for (size_t j = 1; j < n; j++) {                                      \
        if (y[j].st_shndx == SHN_UNDEF) {                                   \
          put(a, &o, text + y[j].st_name);                                  \
        }                                                                   \
      }                                                                     \
    }                                                                       \
    return o;                                                               \
  }

READ_ELF(32)
READ_ELF(64)

/* --- WebAssembly --- */

typedef struct reader {
  const unsigned char *at, *end;
} reader;

static uint32_t number(reader *r) {
  uint32_t v = 0;
  for (int shift = 0; r->at < r->end; shift += 7) {
    unsigned char c = *r->at++;
    v |= (uint32_t)(c & 127) << shift;
    if (c < 128) {
      break;
    }
  }
  return v;
}

static const char *text(arena *a, reader *r) {
  uint32_t n = number(r);
  const char *s = arena_strndup(a, (const char *)r->at, n);
  r->at += n;
  return s;
}

enum { FUNCTION, TABLE, MEMORY, GLOBAL, IMPORTS = 2 };

static void skip_limits(reader *r) {
  uint32_t flags = number(r);
  (void)number(r);
  if (flags & 1) {
    (void)number(r);
  }
}

/* Adds the functions that the object imports.  The memory, the table and the globals, such as the stack pointer, are
 * left out, since the linker makes them. */
static void read_imports(arena *a, reader *r, object_names *o) {
  for (uint32_t n = number(r); n > 0; n--) {
    (void)text(a, r);
    const char *name = text(a, r);
    switch (*r->at++) {
      case FUNCTION:
        (void)number(r);
        put(a, o, name);
        break;
      case TABLE:
        r->at++;
        skip_limits(r);
        break;
      case MEMORY: skip_limits(r); break;
      case GLOBAL: r->at += 2; break;
      default: ck_abort_msg("import %s of an unknown kind", name);
    }
  }
}

static object_names wasm(arena *a, rt_span object) {
  object_names o = {0};
  reader r = {(const unsigned char *)object.data + 8, (const unsigned char *)object.data + object.size};
  while (r.at < r.end) {
    unsigned char section = *r.at++;
    uint32_t size = number(&r);
    reader in = {r.at, r.at + size};
    if (section == IMPORTS) {
      read_imports(a, &in, &o);
    }
    r.at += size;
  }
  return o;
}

object_names object_names_of(arena *a, rt_span object) {
  const char *bytes = object.data;
  ck_assert_uint_gt(object.size, 64);
  if (memcmp(bytes, "\0asm", 4) == 0) {
    return wasm(a, object);
  }
  ck_assert(memcmp(bytes, ELFMAG, SELFMAG) == 0 && bytes[EI_DATA] == ELFDATA2LSB);
  return bytes[EI_CLASS] == ELFCLASS32 ? elf32(a, bytes) : elf64(a, bytes);
}
