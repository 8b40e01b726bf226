/* elf.c - see elf.h.  Numbers are read and written byte by byte, since the object may be for another machine. */
#include "aot/elf.h"

#include <string.h>

/* Where a number is in a header: its offset and its size in bytes. */
typedef struct field {
  uint8_t at, size;
} field;

/* The fields of headers that are used here.  layouts[0] is for files with 32-bit addresses, layouts[1] for 64-bit. */
typedef struct layout {
  /* in the file's header: the offset of the table of section headers, the bytes of an entry, the number of entries, and
   * the number of the section that contains the names of sections */
  field table, entry_size, n_entries, names;
  field name, section_offset, section_size; /* in a section's header */
} layout;

static const layout layouts[] = {
    {{32, 4}, {46, 2}, {48, 2}, {50, 2}, {0, 4}, {16, 4}, {20, 4}},
    {{40, 8}, {58, 2}, {60, 2}, {62, 2}, {0, 4}, {24, 8}, {32, 8}},
};

enum { CLASS_AT = 4, ORDER_AT = 5, CLASS_64 = 2, BIG_ENDIAN_ORDER = 2, HEADER_BYTES = 64 };

typedef struct elf_file {
  uint8_t *bytes;
  const layout *fields;
  bool big_endian;
} elf_file;

static unsigned shift_of(const elf_file *f, field at, unsigned k) { return 8 * (f->big_endian ? at.size - 1 - k : k); }

static uint64_t get(const elf_file *f, uint64_t header, field at) {
  uint64_t n = 0;
  for (unsigned k = 0; k < at.size; k++) {
    n |= (uint64_t)f->bytes[header + at.at + k] << shift_of(f, at, k);
  }
  return n;
}

static void put(const elf_file *f, uint64_t header, field at, uint64_t n) {
  for (unsigned k = 0; k < at.size; k++) {
    f->bytes[header + at.at + k] = (uint8_t)(n >> shift_of(f, at, k));
  }
}

/* Returns where the header of section k is. */
static uint64_t section_at(const elf_file *f, uint64_t k) {
  return get(f, 0, f->fields->table) + k * get(f, 0, f->fields->entry_size);
}

/* Returns where the header of the section is, or 0 if there is no such section. */
static uint64_t find_section(const elf_file *f, const char *section) {
  uint64_t texts = get(f, section_at(f, get(f, 0, f->fields->names)), f->fields->section_offset);
  uint64_t n = get(f, 0, f->fields->n_entries);
  for (uint64_t k = 1; k < n; k++) {
    uint64_t at = section_at(f, k);
    if (strcmp((const char *)f->bytes + texts + get(f, at, f->fields->name), section) == 0) {
      return at;
    }
  }
  return 0;
}

status aot_elf_make_room(arena *a, rt_span object, const char *section, uint64_t bytes, uint64_t align, rt_span *out,
                         char **contents) {
  static const char magic[] = "\177ELF";
  CHECK_THAT(object.size >= HEADER_BYTES && memcmp(object.data, magic, sizeof magic - 1) == 0, STATUS_INTERNAL,
             "the object is no ELF file");
  uint64_t offset = (object.size + align - 1) / align * align;
  elf_file f = {.bytes = arena_alloc(a, offset + bytes)};
  memcpy(f.bytes, object.data, object.size);
  memset(f.bytes + object.size, 0, offset - object.size);
  f.fields = &layouts[f.bytes[CLASS_AT] == CLASS_64];
  f.big_endian = f.bytes[ORDER_AT] == BIG_ENDIAN_ORDER;
  uint64_t header = find_section(&f, section);
  CHECK_THAT(header, STATUS_INTERNAL, "the object has no section %s", section);
  put(&f, header, f.fields->section_offset, offset);
  put(&f, header, f.fields->section_size, bytes);
  *contents = (char *)f.bytes + offset;
  *out = (rt_span){f.bytes, offset + bytes};
  return NULL;
}
