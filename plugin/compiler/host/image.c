/* image.c - ImageDecoder, by Leptonica, which calls the common decoder of each format.  Its pixels are those of Pillow,
 * by which ONNX's reference implementation decodes; where that keeps what a file has (a palette's indices, alpha, CMYK,
 * one channel of grey), the standard's three channels are what Pillow's convert("RGB") gives: alpha is dropped.  Of 16
 * bits the upper 8 are taken.  A file that is damaged is refused, although the standard allows an empty result. */
#include <limits.h>
#include <string.h>

#include "frontend/import/importer.h"
#include "plugin/compiler/host/image_file.h"
#include "plugin/compiler/host/library.h"
#include "plugin/compiler/host/pnm.h"
#include "plugin/compiler/interpreter_internal.h"

#ifdef LEPTONICA_LIBRARY

#include <leptonica/allheaders.h>

static struct {
#define LEPTONICA_FUNCTION(name) __typeof__(name) *name;
#include "plugin/compiler/host/leptonica_functions.def"
#undef LEPTONICA_FUNCTION
} leptonica;

static const dynamic_function functions[] = {
#define LEPTONICA_FUNCTION(name) {#name, offsetof(__typeof__(leptonica), name)},
#include "plugin/compiler/host/leptonica_functions.def"
#undef LEPTONICA_FUNCTION
};

static void say_nothing(const char *text) { (void)text; }

/* Leptonica writes to standard error what is wrong with a file, whoever in the process calls it.  So it is silenced
 * only where nobody else has loaded it.  (libjpeg and libpng still write a line about damaged files: Leptonica does not
 * let their messages be caught.) */
static void silence(void) {
  (void)leptonica.setMsgSeverity(L_SEVERITY_NONE);
  leptonica.leptSetStderrHandler(say_nothing);
}

static host_library library = {.title = "Leptonica",
                               .file = LEPTONICA_LIBRARY,
                               .n_functions = sizeof functions / sizeof *functions,
                               .functions = functions,
                               .pointers = &leptonica,
                               .prepare = silence,
                               .lock = PTHREAD_MUTEX_INITIALIZER};

typedef enum pixel_format { PIXEL_RGB, PIXEL_BGR, PIXEL_GREY } pixel_format;

static status read_pixel_format(const interpreted_node *n, pixel_format *out) {
  static const char *const names[] = {[PIXEL_RGB] = "RGB", [PIXEL_BGR] = "BGR", [PIXEL_GREY] = "Grayscale"};
  const char *given;
  TRY(onnx_attr_string(n->outer->arena, n->node, "pixel_format", "RGB", &given));
  for (int k = 0; k < 3; k++) {
    if (strcmp(given, names[k]) == 0) {
      *out = (pixel_format)k;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_MODEL, "pixel_format is \"%.20s\"; it must be RGB, BGR or Grayscale", given);
}

/* --- memory --- */

/* As many pixels as Pillow decodes at most. */
enum { MOST_PIXELS = 178956970 };

/* Bytes that decoding takes at most for each pixel, with what the library of the format takes. */
static const uint64_t bytes_per_pixel[IMAGE_FORMATS] = {
    [IMAGE_BMP] = 8, [IMAGE_JPEG] = 16, [IMAGE_JPEG2000] = 40, [IMAGE_PNG] = 16, [IMAGE_TIFF] = 16, [IMAGE_WEBP] = 16};

static status count_pixels(const image_file *f, uint64_t *out) {
  l_int32 format, w, h, bits, samples, is_palette;
  CHECK_THAT(
      leptonica.pixReadHeaderMem(f->bytes, f->n, &format, &w, &h, &bits, &samples, &is_palette) == 0 && w > 0 && h > 0,
      STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE, "the header is damaged or of an unusual kind");
  *out = (uint64_t)w * (uint64_t)h > f->pixels ? (uint64_t)w * (uint64_t)h : f->pixels;
  CHECK_THAT(*out <= MOST_PIXELS, STATUS_RESOURCE, "an image of %llu pixels; at most %d are decoded",
             (unsigned long long)*out, MOST_PIXELS);
  return NULL;
}

/* --- decoding --- */

static PIX *read_pixels(const image_file *f) {
  l_int32 warnings;
  switch (f->format) {
    case IMAGE_BMP: return leptonica.pixReadMemBmp(f->bytes, f->n);
    case IMAGE_JPEG: return leptonica.pixReadMemJpeg(f->bytes, f->n, 0, 1, &warnings, 0);
    case IMAGE_JPEG2000: return leptonica.pixReadMemJp2k(f->bytes, f->n, 1, NULL, 0, 0);
    case IMAGE_PNG: return leptonica.pixReadMemPng(f->bytes, f->n);
    case IMAGE_TIFF: return leptonica.pixReadMemTiff(f->bytes, f->n, 0);
    default: return leptonica.pixReadMemWebP(f->bytes, f->n);
  }
}

/* Returns the pixels as words of 32 bits, red first; NULL if the file cannot be decoded. */
static PIX *decode(const image_file *f) {
  PIX *read = read_pixels(f), *words = NULL;
  l_int32 depth = 0;
  if (read && leptonica.pixGetDimensions(read, NULL, NULL, &depth) == 0) {
    words = depth == 32 ? read : leptonica.pixConvertTo32(read);
  }
  if (words != read) {
    leptonica.pixDestroy(&read);
  }
  return words;
}

/* The grey of ITU-R 601, in the integers in which Pillow computes it. */
static uint8_t grey_of(uint32_t r, uint32_t g, uint32_t b) {
  return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16);
}

static void write_pixel(uint8_t r, uint8_t g, uint8_t b, pixel_format format, uint8_t *out) {
  if (format == PIXEL_GREY) {
    *out = grey_of(r, g, b);
    return;
  }
  out[0] = format == PIXEL_RGB ? r : b;
  out[1] = g;
  out[2] = format == PIXEL_RGB ? b : r;
}

/* Makes an array [H,W,C]. */
static status new_image(const interpreted_node *n, int64_t h, int64_t w, pixel_format format, host_array **out) {
  shape s = shape_make(DTYPE_U8, 3, (dim[]){h, w, format == PIXEL_GREY ? 1 : 3});
  return host_array_new(n->run, &s, out);
}

static status copy_pixels(const interpreted_node *n, PIX *words, bool half_turn, pixel_format format,
                          host_array **out) {
  l_int32 w, h;
  leptonica.pixGetDimensions(words, &w, &h, NULL);
  TRY(new_image(n, h, w, format, out));
  const uint32_t *from = leptonica.pixGetData(words);
  size_t stride = (size_t)leptonica.pixGetWpl(words), channels = format == PIXEL_GREY ? 1 : 3;
  uint8_t *to = host_array_data(*out);
  for (size_t y = 0; y < (size_t)h; y++) {
    const uint32_t *row = from + (half_turn ? (size_t)h - 1 - y : y) * stride;
    for (size_t x = 0; x < (size_t)w; x++, to += channels) {
      uint32_t word = row[half_turn ? (size_t)w - 1 - x : x];
      write_pixel((uint8_t)(word >> L_RED_SHIFT), (uint8_t)(word >> L_GREEN_SHIFT), (uint8_t)(word >> L_BLUE_SHIFT),
                  format, to);
    }
  }
  return NULL;
}

static status decode_pnm(const interpreted_node *n, const image_file *f, pixel_format format, host_array **out) {
  pnm_image i;
  TRY(pnm_decode(n->outer->arena, f->bytes, f->n, MOST_PIXELS, &i));
  TRY(new_image(n, i.height, i.width, format, out));
  uint8_t *to = host_array_data(*out);
  for (size_t k = 0; k < (size_t)i.height * i.width; k++) {
    write_pixel(i.rgb[3 * k], i.rgb[3 * k + 1], i.rgb[3 * k + 2], format, to + k * (format == PIXEL_GREY ? 1 : 3));
  }
  return NULL;
}

/* The decoders do not ask the budget for memory, so as much is taken from it while they run. */
static status decode_by_leptonica(const interpreted_node *n, const image_file *f, pixel_format format,
                                  host_array **out) {
  uint64_t pixels;
  TRY(count_pixels(f, &pixels));
  size_t bytes = (size_t)(pixels * bytes_per_pixel[f->format]);
  void *reserved = budget_alloc(n->run->budget, bytes, 64);
  CHECK_THAT(reserved, STATUS_RESOURCE, "out of memory: no %zu bytes for decoding", bytes);
  PIX *words = decode(f);
  budget_free(n->run->budget, reserved, bytes, 64);
  CHECK_THAT(words, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE, "it is damaged or of an unusual kind");
  status failed = copy_pixels(n, words, f->half_turn, format, out);
  leptonica.pixDestroy(&words);
  return failed;
}

static status decode_image(const interpreted_node *n, const image_file *f, pixel_format format, host_array **out) {
  status failed = f->format == IMAGE_PNM ? decode_pnm(n, f, format, out) : decode_by_leptonica(n, f, format, out);
  return status_prefix(failed, "%s file", image_format_names[f->format]);
}

status interpret_image_decoder(const interpreted_node *n) {
  host_array *x, *y;
  image_file f;
  pixel_format format;
  TRY(host_library_open(&library));
  TRY(read_pixel_format(n, &format));
  TRY(interpreter_input(n, 0, &x));
  const shape *s = host_array_shape(x);
  CHECK_THAT(s->kind == SHAPE_ARRAY && s->type == DTYPE_U8 && s->rank == 1, STATUS_INVALID_MODEL,
             "encoded_stream is %s; bytes in one dimension are needed", SHAPE_STR(NULL, s));
  CHECK_THAT(s->dims[0] <= INT_MAX, STATUS_UNSUPPORTED, "encoded_stream is %s", SHAPE_STR(NULL, s));
  TRY(budget_check(n->run->options->budget));
  status failed = image_file_look(n->outer->arena, host_array_data(x), (size_t)s->dims[0], &f);
  failed = failed ? failed : decode_image(n, &f, format, &y);
  TRY(status_prefix(failed, "encoded_stream '%s'", n->node->input[0]));
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}

#else

status interpret_image_decoder(const interpreted_node *n) {
  (void)n;
  return status_error(STATUS_UNSUPPORTED | STATUS_ABOUT_OPERATOR, "onnx-xla was built without Leptonica");
}

#endif
