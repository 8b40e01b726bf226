/* write.c - see write.h. */
#include "verify/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
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

static status write_file(const char *path, const void *bytes, size_t size) {
  status failed = file_write(path, bytes, size);
  return failed ? status_prefix(failed, "%s", path) : NULL;
}

/* "FOLDER/verify-3", whose module is made, empty, so that nobody else takes the name. */
static status claim_name(arena *a, const char *folder, const char **out) {
  for (int k = 1;; k++) {
    *out = arena_printf(a, "%s/verify-%d", folder, k);
    const char *path = arena_printf(a, "%s.hlo", *out);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    CHECK_THAT(fd >= 0 || errno == EEXIST, STATUS_IO, "%s: %s", path, strerror(errno));
    if (fd >= 0) {
      close(fd);
      return NULL;
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
  const char *name;
  TRY(claim_name(a, folder, &name));
  uint32_t n = m->entry->n_params;
  const char **files = ARENA_NEW_N(a, const char *, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    uint8_t *bytes;
    files[k] = arena_printf(a, "%s.%" PRIu32 ".npy", name, k);
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
