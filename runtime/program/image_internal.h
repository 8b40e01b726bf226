/* image_internal.h - the layout of a .oxla file, for image.c, which reads it, and image_write.c. */
#ifndef RUNTIME_PROGRAM_IMAGE_INTERNAL_H
#define RUNTIME_PROGRAM_IMAGE_INTERNAL_H

#include "base/hash.h"
#include "runtime/program/image.h"
#include "runtime/program/strings.h"

static const char magic[RT_IMAGE_MAGIC] = {'O', 'X', 'L', 'A', '\r', '\n', 0x1a, '\n'};

enum { VERSION = 19, MANY_SIZES = -1, PAGE = 4096, ALIGN = 64, DEPTH_MAX = 100 };

enum { META, PROGRAMS, SOURCE, CODE, CONSTANTS, N_SECTIONS };
static const char *const section_names[N_SECTIONS] = {"meta", "programs", "source", "code", "constants"};

enum {
  HEADER_BYTES = 8 + 4 * 8, /* magic; version, sections, file size, hash */
  ROW_BYTES = 4 * 8,
  TABLE_END = HEADER_BYTES + N_SECTIONS * ROW_BYTES
};

/* Mixes the offset and the hash of a span into the hash of its section.  Must be called for all spans of a section in
 * the order of their offsets. */
static inline uint64_t mix_span(uint64_t h, uint64_t offset, uint64_t hash) {
  return hash_mix(hash_mix(h, offset), hash);
}

#endif
