/* image.h - the .oxla file: programs for one model, keyed by their input shapes, over one shared section of constants.
 *
 * Self-contained, but for files that say which other one, their base, has constants of theirs.  Little-endian: a header
 * (magic, version, checksum), a table of sections, page-aligned constants that are mapped and not read.  It is native
 * code and as trusted as a .so; the checks catch damage, not malice. */
#ifndef RUNTIME_PROGRAM_IMAGE_H
#define RUNTIME_PROGRAM_IMAGE_H

#include <stdio.h>

#include "runtime/program/program.h"

typedef struct rt_image {
  const char *model;    /* the module's name */
  const char *producer; /* library versions that made it, for messages */
  const char *target;   /* what the programs, or the source's, run on */
  uint32_t n_programs;
  rt_program **programs;
  rt_span source; /* the model itself, for runs that must compile pieces of it; empty: the programs are all */
  /* Another file, self-contained and known by its producer, whose one program has constants of ours by their names.
   * NULL if there is none. */
  const struct rt_image *base;
  uint64_t identity; /* of a file that was read: what is in it */
} rt_image;

/* Finds a base by its producer, on the arena; NULL if it is not there. */
typedef struct rt_image_finder {
  rt_image *(*find)(void *data, arena *a, const char *name);
  void *data;
} rt_image_finder;

/* Writes a new file beside `path` and renames it, so that no partial file remains.  Equal constants are stored once. */
STATUS_MUST_USE status rt_image_write(const rt_image *image, const char *path);
/* To an open stream, which stays open and need not be a file. */
STATUS_MUST_USE status rt_image_write_stream(const rt_image *image, FILE *f);
/* The same for a path from an open folder on: a regular file, readable by its owner only. */
STATUS_MUST_USE status rt_image_write_at(const rt_image *image, int folder, const char *path);
/* Maps the file for the life of the arena.  verify_constants reads all of it to check their checksum too. */
STATUS_MUST_USE status rt_image_open(arena *a, const char *path, bool verify_constants, rt_image **out);
/* The same for an open descriptor, which stays open; `name` is for messages.  bases NULL: a file with a base is
 * refused. */
STATUS_MUST_USE status rt_image_open_fd(arena *a, int fd, const char *name, bool verify_constants,
                                        const rt_image_finder *bases, rt_image **out);
/* The same for a file that is in memory, and stays for the life of the arena; copied unless it begins at a page. */
STATUS_MUST_USE status rt_image_open_bytes(arena *a, const void *bytes, size_t size, const char *name,
                                           bool verify_constants, rt_image **out);
/* Returns true if the bytes start like a .oxla; RT_IMAGE_MAGIC of them tell. */
enum { RT_IMAGE_MAGIC = 8 };
bool rt_image_begins(const void *bytes, size_t size);

#endif
