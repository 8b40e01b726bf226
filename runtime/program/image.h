/* image.h - the .oxla file: programs for one model, keyed by their input shapes, with one shared section of constants.
 *
 * It is self-contained, unless it names another file, its base, that has some of its constants.  Numbers are
 * little-endian.  It has a header (magic, version, checksum), a table of sections, and page-aligned constants that are
 * mapped and not read.  It contains native code and is trusted as a .so is; the checks detect damage, not malice. */
#ifndef RUNTIME_PROGRAM_IMAGE_H
#define RUNTIME_PROGRAM_IMAGE_H

#include <stdio.h>

#include "runtime/program/program.h"

typedef struct rt_image {
  const char *model;    /* the module's name */
  const char *producer; /* the versions of the libraries that made it, for messages */
  const char *target;   /* the target that runs the programs */
  uint32_t n_programs;
  rt_program **programs;
  /* The model itself, for models that run segment by segment and must be compiled; empty if the programs are all that
   * is needed. */
  rt_span source;
  /* An image without a base of its own, which has some of the constants of this one.  It is found by its producer text,
   * and its constants by their names.  NULL if there is none. */
  const struct rt_image *base;
  uint64_t identity; /* a checksum of the contents, for a file that was read */
} rt_image;

/* Finds the image on which another one is based (rt_image.base).  `name` is the producer of the base.  The result is on
 * the arena, or NULL if there is no such image. */
typedef struct rt_image_finder {
  rt_image *(*find)(void *data, arena *a, const char *name);
  void *data;
} rt_image_finder;

/* Writes a new file beside `path` and renames it, so that there is never a partial file.  Equal constants are stored
 * once. */
STATUS_MUST_USE status rt_image_write(const rt_image *image, const char *path);
/* Writes to an open stream, which stays open and need not be a file. */
STATUS_MUST_USE status rt_image_write_stream(const rt_image *image, FILE *f);
/* Does the same for a path relative to an open folder.  The file can be read by its owner only. */
STATUS_MUST_USE status rt_image_write_at(const rt_image *image, int folder, const char *path);
/* Maps the file until the arena is destroyed.  With verify_constants all of it is read to check the checksums of
 * constants as well. */
STATUS_MUST_USE status rt_image_open(arena *a, const char *path, bool verify_constants, rt_image **out);
/* Does the same for an open descriptor, which stays open; `name` is used in messages.  If bases is NULL, a file with a
 * base is refused. */
STATUS_MUST_USE status rt_image_open_fd(arena *a, int fd, const char *name, bool verify_constants,
                                        const rt_image_finder *bases, rt_image **out);
/* Does the same for a file in memory, which must remain until the arena is destroyed.  It is copied unless it begins at
 * a page boundary. */
STATUS_MUST_USE status rt_image_open_bytes(arena *a, const void *bytes, size_t size, const char *name,
                                           bool verify_constants, rt_image **out);
/* Returns true if the bytes, of which RT_IMAGE_MAGIC are enough, start like a .oxla file. */
enum { RT_IMAGE_MAGIC = 8 };
bool rt_image_begins(const void *bytes, size_t size);

#endif
