/* tensor.c - see tensor.h. */
#include "plugin/cli/tensor.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/tensor/npy.h"

/* --- files --- */

status cli_read_tensor(arena *a, const char *path, dtype raw, string_table *strings, literal *out) {
  static const char npy[] = "\x93NUMPY", zip[] = "PK\x03\x04";
  const uint8_t *bytes;
  size_t size;
  TRY(status_name_file(file_map(a, path, &bytes, &size), path));
  if (size >= sizeof npy - 1 && memcmp(bytes, npy, sizeof npy - 1) == 0) {
    return npy_parse(a, path, bytes, size, raw, strings, out);
  }
  CHECK_THAT(size < sizeof zip - 1 || memcmp(bytes, zip, sizeof zip - 1) != 0, STATUS_INVALID_FILE,
             "%s: this is an archive of arrays (.npz): give each array as a .npy file, which numpy.save writes", path);
  return status_name_file(cli_read_pb(a, path, strings, out), path);
}

static status make_folder(const char *dir) {
  CHECK_THAT(mkdir(dir, 0777) == 0 || errno == EEXIST, STATUS_IO, "%s: the folder cannot be made: %s", dir,
             strerror(errno));
  return NULL;
}

status cli_write_tensor(arena *a, const char *dir, const char *format, const char *name, uint32_t k, const literal *l,
                        string_table *strings) {
  uint8_t *bytes;
  size_t size;
  TRY(make_folder(dir));
  if (strcmp(format, "npy") == 0) {
    TRY(npy_format(a, l, strings, &bytes, &size));
  } else {
    TRY(cli_format_pb(a, name, l, strings, &bytes, &size));
  }
  const char *path = arena_printf(a, "%s/output_%" PRIu32 ".%s", dir, k, format);
  return status_name_file(file_write(path, bytes, size), path);
}

/* --- random arrays --- */

/* The generator splitmix64, which gives the same numbers on every machine. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Returns how many different values a random integer can have.  Integers of up to 8 bits are usually pixels or
 * quantised numbers; wider ones are usually indices into arrays of unknown length, so they are only 0 or 1. */
static int64_t integer_range(const dtype_info *t) { return t->bits <= 8 ? (int64_t)1 << t->bits : 2; }

static status fill(dtype type, uint8_t *at, int64_t n, uint64_t seed, const mem_budget *time) {
  enum { LOOK = 1 << 20 }; /* elements between two checks of the time */
  const dtype_info *info = dtype_get_info(type);
  dtype part = type == DTYPE_C64 ? DTYPE_F32 : type == DTYPE_C128 ? DTYPE_F64 : type;
  int64_t range = integer_range(info), low = dtype_is_signed(type) && info->bits <= 8 ? -range / 2 : 0;
  int64_t count = part == type ? n : 2 * n;
  for (int64_t k = 0; k < count; k++, at += dtype_bytes(part)) {
    if (k % LOOK == 0) {
      TRY(budget_check(time));
    }
    uint64_t r = next_random(&seed);
    if (dtype_is_float(part)) {
      dtype_store_f64(part, at, (double)(r >> 40) * 0x1p-24, true, DTYPE_ROUND_NEAREST);
    } else if (type == DTYPE_PRED) {
      *at = r >> 63;
    } else {
      dtype_store_i64(type, at, low + (int64_t)((r >> 32) % (uint64_t)range));
    }
  }
  return NULL;
}

status cli_random_tensor(arena *a, const shape *s, uint64_t seed, const mem_budget *time, literal *out) {
  void *data;
  *out = literal_new(a, *s, &data);
  /* strings stay 0, the empty string */
  return s->type == DTYPE_STR ? NULL : fill((dtype)s->type, data, shape_elements(s), seed, time);
}

/* --- summaries --- */

enum { SHOWN = 8 };

static void print_element(FILE *f, const literal *l, int64_t k) {
  dtype type = (dtype)l->shape.type;
  if (type == DTYPE_U64) {
    fprintf(f, "%" PRIu64, (uint64_t)literal_i64(l, k));
  } else if (dtype_is_int(type) || type == DTYPE_PRED) {
    fprintf(f, "%" PRId64, literal_i64(l, k));
  } else if (dtype_is_complex(type)) {
    const uint8_t *at = (const uint8_t *)l->data + (size_t)k * dtype_bytes(type);
    dtype part = type == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    fprintf(f, "%.5g%+.5gi", dtype_load_f64(part, at), dtype_load_f64(part, at + dtype_bytes(part)));
  } else {
    fprintf(f, "%.6g", literal_f64(l, k));
  }
}

static void print_range(FILE *f, const literal *l, int64_t n) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t not_finite = 0;
  for (int64_t k = 0; k < n; k++) {
    double v = literal_f64(l, k);
    if (isfinite(v)) {
      low = v < low ? v : low;
      high = v > high ? v : high;
      sum += v;
    } else {
      not_finite++;
    }
  }
  if (n > not_finite) {
    fprintf(f, "  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)(n - not_finite));
  }
  if (not_finite) {
    fprintf(f, "  not finite %" PRId64, not_finite);
  }
}

/* Prints a string in quotes, without what would disturb a terminal, and cut if it is long. */
static void print_string(FILE *f, const string_table *strings, uint64_t number) {
  enum { LONGEST = 40 };
  size_t n = 0;
  const char *text = string_table_text(strings, number, &n);
  fputc('"', f);
  for (size_t k = 0; text && k < n && k < LONGEST; k++) {
    fputc(iscntrl((unsigned char)text[k]) ? '?' : text[k], f);
  }
  fputs(n > LONGEST ? "...\"" : "\"", f);
}

void cli_print_tensor(FILE *f, const char *name, const literal *l, const string_table *strings) {
  int64_t n = shape_elements(&l->shape);
  dtype type = (dtype)l->shape.type;
  fprintf(f, "%s: %s", name, SHAPE_STR(NULL, &l->shape));
  if (n > 1 && type != DTYPE_STR && !dtype_is_complex(type)) {
    print_range(f, l, n);
  }
  fprintf(f, "  [");
  for (int64_t k = 0; k < n && k < SHOWN; k++) {
    fputs(k ? " " : "", f);
    if (type == DTYPE_STR) {
      print_string(f, strings, (uint64_t)literal_i64(l, k));
    } else {
      print_element(f, l, k);
    }
  }
  fputs(n > SHOWN ? " ...]\n" : "]\n", f);
}
