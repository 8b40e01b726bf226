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

static bool is_npy(const uint8_t *bytes, size_t size) {
  static const char npy[] = "\x93NUMPY";
  return size >= sizeof npy - 1 && memcmp(bytes, npy, sizeof npy - 1) == 0;
}

/* Makes a map of two arrays, the keys and the values. */
static status wrap_map(arena *a, uint32_t n, const literal *items, literal *out) {
  literal_list *list = ARENA_NEW(a, literal_list);
  *list = (literal_list){n, items};
  CHECK_THAT(n == 2, STATUS_INVALID_ARGUMENT, "%" PRIu32 " files for a map; the keys and the values are needed", n);
  *out = literal_map(list);
  return NULL;
}

static status wrap(arena *a, uint32_t n, const literal *items, literal *out) {
  literal_list *list = ARENA_NEW(a, literal_list);
  *list = (literal_list){n, items};
  for (uint32_t k = 1; k < n; k++) {
    CHECK_THAT(items[k].shape.type == items[0].shape.type, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
               "file %" PRIu32 " has %s, but the first has %s; the arrays of a sequence have one type", k + 1,
               SHAPE_STR(NULL, &items[k].shape), SHAPE_STR(NULL, &items[0].shape));
  }
  *out = literal_sequence((dtype)items[0].shape.type, list);
  return NULL;
}

/* Reads a file.  A .npy file for a sequence is its only element. */
static status read_file(arena *a, const char *path, const model_value *v, string_table *strings, literal *out) {
  static const char zip[] = "PK\x03\x04";
  const uint8_t *bytes;
  size_t size;
  TRY(status_name_file(file_map(a, path, &bytes, &size), path));
  if (is_npy(bytes, size)) {
    literal *array = ARENA_NEW(a, literal);
    TRY(npy_parse(a, path, bytes, size, (dtype)v->shape.type, strings, array));
    *out = *array;
    bool sequence = v->shape.kind == SHAPE_SEQUENCE || v->element == SHAPE_SEQUENCE;
    return sequence ? wrap(a, 1, array, out) : NULL;
  }
  CHECK_THAT(size < sizeof zip - 1 || memcmp(bytes, zip, sizeof zip - 1) != 0, STATUS_INVALID_FILE,
             "%s: this is an archive of arrays (.npz): give each array as a .npy file, which numpy.save writes", path);
  return status_name_file(cli_read_pb(a, path, &v->shape, strings, out), path);
}

static status read_files(arena *a, const char *text, const model_value *v, string_table *strings, literal *out) {
  model_value one = {.name = v->name, .shape = shape_scalar((dtype)v->shape.type)};
  literal *items = NULL;
  uint32_t n = 0, cap = 0;
  for (const char *end; text; text = end ? end + 1 : NULL) {
    end = strchr(text, ',');
    const char *path = end ? arena_strndup(a, text, (size_t)(end - text)) : text;
    literal l;
    TRY(read_file(a, path, &one, strings, &l));
    *ARENA_PUSH(a, items, n, cap) = l;
  }
  return v->shape.kind == SHAPE_MAP ? wrap_map(a, n, items, out) : wrap(a, n, items, out);
}

status cli_read_value(arena *a, const char *text, const model_value *v, string_table *strings, literal *out) {
  if (shape_is_array(&v->shape)) {
    return read_file(a, text, v, strings, out);
  }
  if (!*text && v->shape.kind != SHAPE_MAP) {
    dtype type = (dtype)v->shape.type;
    *out = v->shape.kind == SHAPE_OPTIONAL ? literal_absent(type) : literal_sequence(type, ARENA_NEW(a, literal_list));
    return NULL;
  }
  return strchr(text, ',') ? read_files(a, text, v, strings, out) : read_file(a, text, v, strings, out);
}

static status make_folder(const char *dir) {
  CHECK_THAT(mkdir(dir, 0777) == 0 || errno == EEXIST, STATUS_IO, "%s: the folder cannot be made: %s", dir,
             strerror(errno));
  return NULL;
}

static status write_npy(arena *a, const char *path, const literal *l, string_table *strings) {
  uint8_t *bytes;
  size_t size;
  TRY(npy_format(a, l, strings, &bytes, &size));
  return status_name_file(file_write(path, bytes, size), path);
}

/* Writes the arrays of a value: STEM.npy, or STEM_0.npy, STEM_1.npy, ... of a sequence; of a map STEM_0.npy has the
 * keys and STEM_1.npy the values. */
static status write_npys(arena *a, const char *stem, const literal *l, string_table *strings) {
  if (l->shape.kind == SHAPE_ARRAY) {
    return write_npy(a, arena_printf(a, "%s.npy", stem), l, strings);
  }
  for (uint32_t k = 0; literal_is_list(l) && k < literal_elements(l)->n; k++) {
    TRY(write_npys(a, arena_printf(a, "%s_%" PRIu32, stem, k), &literal_elements(l)->items[k], strings));
  }
  return NULL;
}

status cli_write_value(arena *a, const char *dir, const char *format, const model_value *v, uint32_t k,
                       const literal *l, string_table *strings) {
  uint8_t *bytes;
  size_t size;
  TRY(make_folder(dir));
  const char *stem = arena_printf(a, "%s/output_%" PRIu32, dir, k);
  if (strcmp(format, "npy") == 0) {
    return write_npys(a, stem, l, strings);
  }
  TRY(cli_format_pb(a, v, l, strings, &bytes, &size));
  const char *path = arena_printf(a, "%s.pb", stem);
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

static void print_any(FILE *f, const literal *l, int64_t k, const string_table *strings) {
  if (l->shape.type == DTYPE_STR) {
    print_string(f, strings, (uint64_t)literal_i64(l, k));
  } else {
    print_element(f, l, k);
  }
}

static void print_array(FILE *f, const char *name, const literal *l, const string_table *strings) {
  int64_t n = shape_elements(&l->shape);
  dtype type = (dtype)l->shape.type;
  fprintf(f, "%s: %s", name, SHAPE_STR(NULL, &l->shape));
  if (n > 1 && type != DTYPE_STR && !dtype_is_complex(type)) {
    print_range(f, l, n);
  }
  fprintf(f, "  [");
  for (int64_t k = 0; k < n && k < SHOWN; k++) {
    fputs(k ? " " : "", f);
    print_any(f, l, k, strings);
  }
  fputs(n > SHOWN ? " ...]\n" : "]\n", f);
}

static void print_map(FILE *f, const literal *l, const string_table *strings) {
  const literal *keys = &literal_elements(l)->items[0], *values = &literal_elements(l)->items[1];
  int64_t n = shape_elements(&keys->shape);
  fputs("{", f);
  for (int64_t k = 0; k < n && k < SHOWN; k++) {
    fputs(k ? ", " : "", f);
    print_any(f, keys, k, strings);
    fputs(": ", f);
    print_any(f, values, k, strings);
  }
  fputs(n > SHOWN ? ", ...}\n" : "}\n", f);
}

static void print_sequence(FILE *f, const literal_list *list, const string_table *strings) {
  for (uint32_t k = 0; k < list->n && k < SHOWN; k++) {
    const literal *l = &list->items[k];
    fprintf(f, l->shape.kind == SHAPE_MAP ? "  [%" PRIu32 "]: " : "  [%" PRIu32 "]", k);
    if (l->shape.kind == SHAPE_MAP) {
      print_map(f, l, strings);
    } else {
      print_array(f, "", l, strings);
    }
  }
  fputs(list->n > SHOWN ? "  ...\n" : "", f);
}

void cli_print_value(FILE *f, const char *name, const literal *l, const string_table *strings) {
  if (l->shape.kind == SHAPE_ARRAY) {
    print_array(f, name, l, strings);
    return;
  }
  fprintf(f, "%s: %s  ", name, SHAPE_STR(NULL, &l->shape));
  switch (l->shape.kind) {
    case SHAPE_MAP: print_map(f, l, strings); break;
    case SHAPE_OPTIONAL: fputs("no element\n", f); break;
    default:
      fprintf(f, "%" PRIu32 " elements\n", literal_elements(l)->n);
      print_sequence(f, literal_elements(l), strings);
  }
}
