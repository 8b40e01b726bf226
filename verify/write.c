/* write.c - see write.h. */
#include "verify/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/npy.h"
#include "hlo/text.h"

const char *verify_difference_text(arena *a, const verify_difference *d) {
  return arena_printf(a,
                      "result %" PRIu32 ": %" PRId64 " of %" PRId64 " elements differ; element %" PRId64
                      " is %.9g, not %.9g (%.2g allowed; the largest is %.3g)",
                      d->result, d->n_wrong, d->n_elements, d->element, d->got, d->want, d->allowed,
                      d->largest);
}

static int64_t constant_bytes(const hlo_module *m) {
  int64_t n = 0;
  for (const hlo_instr *i = m->entry->first; i; i = i->next) {
    n += i->op == HLO_CONSTANT ? shape_bytes(&i->shapes[0]) : 0;
  }
  return n;
}

static status write_all(int fd, const char *path, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, (const char *)bytes + done, size - done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    CHECK_THAT(n > 0, STATUS_IO, "%s: %s", path, strerror(errno));
    done += (size_t)n;
  }
  return NULL;
}

/* A new file; nothing is written over. */
static status write_file(const char *path, const void *bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  CHECK_THAT(fd >= 0, STATUS_IO, "%s: %s", path, strerror(errno));
  status failed = write_all(fd, path, bytes, size);
  if (close(fd) != 0 && !failed) {
    failed = status_error(STATUS_IO, "%s: %s", path, strerror(errno));
  }
  return failed;
}

/* "FOLDER/verify-3", of which there is no module yet. */
static const char *free_name(arena *a, const char *folder) {
  for (int k = 1;; k++) {
    const char *name = arena_printf(a, "%s/verify-%d", folder, k);
    if (access(arena_printf(a, "%s.hlo", name), F_OK) != 0) {
      return name;
    }
  }
}

status verify_write(arena *a, const char *folder, hlo_module *m, const literal *inputs, verify_finding *f) {
  const int64_t most = (int64_t)64 << 20;
  const char *text;
  size_t size;
  if (!folder || constant_bytes(m) > most) {
    return NULL;
  }
  const char *name = free_name(a, folder);
  uint32_t n = m->entry->n_params;
  const char **files = ARENA_NEW_N(a, const char *, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    uint8_t *bytes;
    files[k] = arena_printf(a, "%s.%" PRIu32 ".npy", name, k);
    (void)unlink(files[k]);
    TRY(npy_format(a, &inputs[k], &bytes, &size));
    TRY(write_file(files[k], bytes, size));
  }
  f->module = arena_printf(a, "%s.hlo", name);
  TRY(hlo_print(a, m, NULL, &text, &size));
  TRY(write_file(f->module, text, size));
  f->n_inputs = n;
  f->inputs = files;
  return NULL;
}
