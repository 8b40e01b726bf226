/* image.h - the .oxla file: programs for one model, keyed by their input shapes, with one shared section of constants.
 *
 * A file is complete, unless it names another file, its base, that has some of its constants.  Numbers are
 * little-endian.  It has a header (magic, version, checksum), a table of sections, and page-aligned constants that are
 * mapped and not read.  It contains native code and is trusted as a .so is; the checks detect damage, not malice. */
#ifndef RUNTIME_PROGRAM_IMAGE_H
#define RUNTIME_PROGRAM_IMAGE_H

#include <stdio.h>

#include "base/tensor/string_table.h"
#include "runtime/program/program.h"

typedef struct rt_image {
  const char *model;    /* the name of the module */
  const char *producer; /* the versions of the libraries that made the programs, for messages */
  const char *target;   /* the target that runs the programs */
  uint64_t model_hash;  /* a hash of the file of the ONNX model, by which people find it again; 0 if there is none */
  /* The numbers of the model's strings, which results of strings have; NULL if it has none. */
  const string_table *strings;
  uint32_t n_programs;
  rt_program **programs;
  /* The model itself, if it must be compiled in parts (segments) while it runs; empty if the programs are sufficient.
   */
  rt_span source;
  /* Another image, with one program and no base of its own, which has some of the constants of this one; NULL if there
   * is none.  A file names its base by the producer text and the identity of the base.  When a file is written, a
   * constant is left to the base if the base has one of the same name and size. */
  const struct rt_image *base;
  uint64_t identity; /* a checksum of the file; only an image that was read has it */
  /* While a file is written, this function is called each time that about a megabyte, or one constant that is larger,
   * was read or written since the last call (`bytes`), so that it can wait and let more important work go first.  NULL
   * if there is no such work. */
  void (*pace)(void *data, uint64_t bytes);
  void *pace_data;
} rt_image;

/* Finds the base of an image (rt_image.base).  `name` is the producer text of the base.  The result is on the arena, or
 * NULL if there is no such image. */
typedef struct rt_image_finder {
  rt_image *(*find)(void *data, arena *a, const char *name);
  void *data;
} rt_image_finder;

/* Writes a new file beside `path` and renames it, so that there is never a partial file.  If `path` is no regular file
 * (a pipe, /dev/full), the image is written to it directly.  Equal constants are stored once. */
STATUS_MUST_USE status rt_image_write(const rt_image *image, const char *path);
/* Writes to an open stream, which stays open and need not be a file. */
STATUS_MUST_USE status rt_image_write_stream(const rt_image *image, FILE *f);
/* Like rt_image_write, for a path relative to an open folder, where whatever is at the path is replaced.  Only the
 * file's owner can read the file. */
STATUS_MUST_USE status rt_image_write_at(const rt_image *image, int folder, const char *path);
/* Maps the file until the arena is destroyed.  With verify_constants, the constants are read to verify their checksums;
 * otherwise they are only mapped. */
STATUS_MUST_USE status rt_image_open(arena *a, const char *path, bool verify_constants, rt_image **out);
/* Like rt_image_open, for an open descriptor, which stays open.  `name` is used in messages.  If bases is NULL, a file
 * that has a base is refused. */
STATUS_MUST_USE status rt_image_open_fd(arena *a, int fd, const char *name, bool verify_constants,
                                        const rt_image_finder *bases, rt_image **out);
/* Like rt_image_open, for a file in memory, which must remain until the arena is destroyed.  It is copied unless its
 * address is a multiple of 64. */
STATUS_MUST_USE status rt_image_open_bytes(arena *a, const void *bytes, size_t size, const char *name,
                                           bool verify_constants, rt_image **out);
/* Returns true if the bytes begin like a .oxla file.  The first RT_IMAGE_MAGIC bytes are enough. */
enum { RT_IMAGE_MAGIC = 8 };
bool rt_image_begins(const void *bytes, size_t size);

#endif
