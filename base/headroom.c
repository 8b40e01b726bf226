/* headroom.c - reserves address space and releases it at once, to find out whether there is room. */
#include "base/headroom.h"

#include <sys/mman.h>

status headroom_check(size_t bytes) {
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK_THAT(room != MAP_FAILED, STATUS_RESOURCE, "the process may not take %zu MiB of memory more", bytes >> 20);
  munmap(room, bytes);
  return NULL;
}
