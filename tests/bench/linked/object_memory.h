/* object_memory.h - the memory of an object: its arena, and weights that are mapped from a file. */
#ifndef BENCH_OBJECT_MEMORY_H
#define BENCH_OBJECT_MEMORY_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Returns memory that begins at a page, or NULL if there is not enough. */
static inline void *arena_of(uint64_t bytes) {
  enum { PAGE = 4096 };
  return aligned_alloc(PAGE, (bytes + PAGE) / PAGE * PAGE);
}

/* Returns the contents of a file, or NULL if it cannot be mapped. */
static inline const void *map_weights(const char *path) {
  struct stat s;
  int fd = open(path, O_RDONLY);
  void *bytes =
      fd >= 0 && fstat(fd, &s) == 0 ? mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  return bytes == MAP_FAILED ? NULL : bytes;
}

#endif
