/* image_file.c - see image_file.h. */
#include "plugin/compiler/host/image_file.h"

#include <string.h>

#define DAMAGED STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE
#define UNSUPPORTED STATUS_UNSUPPORTED | STATUS_ABOUT_VALUE

const char *const image_format_names[IMAGE_FORMATS] = {"BMP", "JPEG", "JPEG 2000", "PNG", "PNM", "TIFF", "WebP"};

/* --- numbers --- */

static bool has(const image_file *f, size_t at, size_t n) { return at <= f->n && n <= f->n - at; }

/* Returns a number of n bytes, which must be in the file. */
static uint32_t number(const image_file *f, size_t at, int n, bool big_endian) {
  uint32_t out = 0;
  for (int k = 0; k < n; k++) {
    out |= (uint32_t)f->bytes[at + (size_t)k] << 8 * (big_endian ? n - 1 - k : k);
  }
  return out;
}

static uint32_t big(const image_file *f, size_t at, int n) { return number(f, at, n, true); }

/* Makes f->bytes a copy that may be changed. */
static uint8_t *changeable(arena *a, image_file *f) {
  uint8_t *copy = arena_memdup(a, f->bytes, f->n);
  f->bytes = copy;
  return copy;
}

/* --- BMP --- */

static uint32_t little(const image_file *f, size_t at, int n) { return number(f, at, n, false); }

static void put_little(uint8_t *out, size_t at, uint64_t number) {
  for (int k = 0; k < 4; k++) {
    out[at + (size_t)k] = (uint8_t)(number >> 8 * k);
  }
}

enum { BMP_HEADER = 54, BMP_SHORT_HEADER = 40 };

/* Makes a file without the fourth byte of each pixel, which Leptonica takes for a colour. */
static status leave_out_fourth_bytes(arena *a, image_file *f) {
  int64_t width = (int32_t)little(f, 18, 4), height = (int32_t)little(f, 22, 4);
  size_t from = little(f, 10, 4);
  uint64_t rows = (uint64_t)(height < 0 ? -height : height);
  CHECK_THAT(width > 0 && rows > 0 && width <= (int64_t)f->n && rows <= f->n && from <= f->n &&
                 (uint64_t)width * rows <= (f->n - from) / 4,
             DAMAGED, "the file ends in the image");
  size_t stride = ((size_t)width * 3 + 3) / 4 * 4, n = BMP_HEADER + stride * rows;
  uint8_t *out = arena_alloc(a, n);
  memcpy(out, f->bytes, BMP_HEADER);
  put_little(out, 2, n);
  put_little(out, 10, BMP_HEADER);
  put_little(out, 14, BMP_SHORT_HEADER);
  put_little(out, 26, 1 | 24 << 16); /* planes and bits per pixel */
  put_little(out, 34, n - BMP_HEADER);
  put_little(out, 46, 0); /* colours of the palette */
  put_little(out, 50, 0);
  for (size_t k = 0; k < (size_t)width * rows; k++) {
    memcpy(out + BMP_HEADER + k / (size_t)width * stride + k % (size_t)width * 3, f->bytes + from + 4 * k, 3);
  }
  f->bytes = out;
  f->n = n;
  return NULL;
}

/* Leptonica mixes up the bytes of pixels of 16 and 32 bits. */
static status look_at_bmp(arena *a, image_file *f) {
  CHECK_THAT(has(f, 0, BMP_HEADER), DAMAGED, "the file ends in its header");
  CHECK_THAT(little(f, 14, 4) >= BMP_SHORT_HEADER, UNSUPPORTED, "the old short header is not supported");
  uint32_t bits = little(f, 28, 2), compression = little(f, 30, 4);
  CHECK_THAT(bits <= 8 || bits == 24 || (bits == 32 && compression == 0), UNSUPPORTED,
             "%u bits per pixel, compressed in the way %u, are not supported", bits, compression);
  return bits == 32 ? leave_out_fourth_bytes(a, f) : NULL;
}

/* --- JPEG --- */

enum { MOST_SCANS = 500 };

/* Each scan of a progressive file goes over the whole image, so that a small file with many of them takes very long. */
static status look_at_jpeg(arena *a, image_file *f) {
  (void)a;
  int scans = 0;
  for (size_t k = 0; k + 1 < f->n; k++) {
    scans += f->bytes[k] == 0xff && f->bytes[k + 1] == 0xda;
  }
  CHECK_THAT(scans <= MOST_SCANS, UNSUPPORTED, "more than %d scans are not supported", MOST_SCANS);
  return NULL;
}

/* --- JPEG 2000 --- */

static const uint8_t jp2_signature[12] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', '\r', '\n', 0x87, '\n'};
static const uint8_t codestream_start[4] = {0xff, 0x4f, 0xff, 0x51};

typedef struct jp2_box {
  size_t at, end; /* of its contents */
  uint32_t type;
} jp2_box;

/* Finds the box that begins at `at` and ends before `limit`. */
static status find_box(const image_file *f, size_t at, size_t limit, jp2_box *out) {
  CHECK_THAT(limit - at >= 8, DAMAGED, "a box ends too early");
  uint64_t size = big(f, at, 4);
  size_t header = 8;
  out->type = big(f, at + 4, 4);
  if (size == 1) {
    CHECK_THAT(limit - at >= 16, DAMAGED, "a box ends too early");
    size = (uint64_t)big(f, at + 8, 4) << 32 | big(f, at + 12, 4);
    header = 16;
  }
  size = size == 0 ? limit - at : size;
  CHECK_THAT(size >= header && size <= limit - at, DAMAGED, "the size of a box does not fit the file");
  out->at = at + header;
  out->end = at + (size_t)size;
  return NULL;
}

enum {
  BOX_CODESTREAM = 0x6a703263, /* jp2c */
  BOX_HEADER = 0x6a703268,     /* jp2h */
  BOX_COLOUR = 0x636f6c72,     /* colr */
  BOX_PALETTE = 0x70636c72,    /* pclr */
  COLOURS_SRGB = 16,
  COLOURS_GREY = 17,
  MOST_TILES = 4096
};

/* Leptonica takes components for red, green and blue whatever they mean, and entries of palettes for bytes. */
static status look_at_colours(const image_file *f, const jp2_box *header) {
  for (size_t at = header->at; at < header->end;) {
    jp2_box box;
    TRY(find_box(f, at, header->end, &box));
    CHECK_THAT(box.type != BOX_PALETTE, UNSUPPORTED, "a palette is not supported");
    if (box.type == BOX_COLOUR && box.end - box.at >= 7 && f->bytes[box.at] == 1) {
      uint32_t colours = big(f, box.at + 3, 4);
      CHECK_THAT(colours == COLOURS_SRGB || colours == COLOURS_GREY, UNSUPPORTED,
                 "the colour space %u is not supported", colours);
    }
    at = box.end;
  }
  return NULL;
}

/* Returns how many tiles there are along an axis; `at` is the place of the image's size along it. */
static uint64_t tiles(const image_file *f, size_t at) {
  uint32_t size = big(f, at, 4), tile = big(f, at + 16, 4);
  return tile ? ((uint64_t)size + tile - 1) / tile : UINT32_MAX;
}

/* Leptonica reads all components as if they had the size of the first one, and has at most 8 bits for each.  OpenJPEG
 * takes some kilobytes for each tile before it reads any. */
static status look_at_codestream(image_file *f, size_t at) {
  CHECK_THAT(has(f, at, 42) && memcmp(f->bytes + at, codestream_start, 4) == 0, DAMAGED, "there is no codestream");
  uint32_t components = big(f, at + 40, 2);
  CHECK_THAT(components == 1 || components == 3 || components == 4, UNSUPPORTED, "%u components are not supported",
             components);
  CHECK_THAT(has(f, at + 42, 3 * (size_t)components), DAMAGED, "the file ends in its header");
  for (size_t k = 0; k < components; k++) {
    size_t c = at + 42 + 3 * k;
    CHECK_THAT(f->bytes[c] == 7 && f->bytes[c + 1] == 1 && f->bytes[c + 2] == 1, UNSUPPORTED,
               "components are only supported with 8 bits and of the size of the image");
  }
  CHECK_THAT(big(f, at + 16, 4) == 0 && big(f, at + 20, 4) == 0, UNSUPPORTED,
             "an image with an offset is not supported");
  CHECK_THAT(tiles(f, at + 8) * tiles(f, at + 12) <= MOST_TILES, UNSUPPORTED, "more than %d tiles are not supported",
             MOST_TILES);
  f->pixels = (uint64_t)big(f, at + 8, 4) * big(f, at + 12, 4);
  return NULL;
}

static status look_at_jpeg2000(arena *a, image_file *f) {
  (void)a;
  if (memcmp(f->bytes, jp2_signature, sizeof jp2_signature) != 0) {
    return look_at_codestream(f, 0);
  }
  jp2_box box = {0};
  for (size_t at = 0; at < f->n; at = box.end) {
    TRY(find_box(f, at, f->n, &box));
    if (box.type == BOX_HEADER) {
      TRY(look_at_colours(f, &box));
    }
    if (box.type == BOX_CODESTREAM) {
      return look_at_codestream(f, box.at);
    }
  }
  return status_error(DAMAGED, "there is no codestream");
}

/* --- PNG --- */

/* Leaves out chunks tRNS, which say which colours are transparent: alpha is not decoded, but Leptonica decodes greys
 * with such a chunk to other greys. */
static status look_at_png(arena *a, image_file *f) {
  uint8_t *out = NULL;
  size_t kept = 8;
  for (size_t at = 8; at < f->n;) {
    CHECK_THAT(has(f, at, 12) && big(f, at, 4) <= f->n - at - 12, DAMAGED, "a chunk ends too early");
    size_t size = 12 + (size_t)big(f, at, 4);
    bool is_last = memcmp(f->bytes + at + 4, "IEND", 4) == 0;
    if (memcmp(f->bytes + at + 4, "tRNS", 4) == 0) {
      out = out ? out : changeable(a, f);
    } else {
      if (out) {
        memmove(out + kept, out + at, size);
      }
      kept += size;
    }
    at = is_last ? f->n : at + size;
  }
  f->n = kept;
  return NULL;
}

/* --- TIFF --- */

enum {
  TAG_PHOTOMETRIC = 262,
  TAG_ORIENTATION = 274,
  TAG_SAMPLES = 277,
  TAG_PLANES = 284,
  TAG_TILE_WIDTH = 322,
  TAG_TILE_LENGTH = 323,
  TAG_EXTRA_SAMPLES = 338,
  TAG_SAMPLE_FORMAT = 339,
  TAG_WIDTH = 256,
  TAG_LENGTH = 257,
  PHOTOMETRIC_RGB = 2,
  PHOTOMETRIC_YCBCR = 6,
  PHOTOMETRIC_MASK = 4,
  MOST_TILE = 4096
};

typedef struct tiff_fields {
  uint32_t photometric, orientation, samples, planes, tile_width, tile_length, extra_samples, sample_format;
  size_t orientation_at; /* where the field's number is; 0 if there is no field */
} tiff_fields;

static uint32_t *field_of(tiff_fields *t, uint32_t tag) {
  switch (tag) {
    case TAG_PHOTOMETRIC: return &t->photometric;
    case TAG_ORIENTATION: return &t->orientation;
    case TAG_SAMPLES: return &t->samples;
    case TAG_PLANES: return &t->planes;
    case TAG_TILE_WIDTH: return &t->tile_width;
    case TAG_TILE_LENGTH: return &t->tile_length;
    case TAG_EXTRA_SAMPLES: return &t->extra_samples;
    case TAG_SAMPLE_FORMAT: return &t->sample_format;
    default: return NULL;
  }
}

/* Reads the first directory, whose fields of one number have it in their entry. */
static status read_directory(const image_file *f, tiff_fields *out) {
  bool be = f->bytes[0] == 'M';
  size_t at = number(f, 4, 4, be);
  CHECK_THAT(has(f, at, 2), DAMAGED, "there is no directory");
  uint32_t n = number(f, at, 2, be);
  CHECK_THAT(has(f, at + 2, 12 * (size_t)n), DAMAGED, "the directory does not end");
  *out = (tiff_fields){.orientation = 1, .samples = 1, .planes = 1, .sample_format = 1};
  for (size_t k = 0; k < n; k++) {
    size_t entry = at + 2 + 12 * k;
    uint32_t tag = number(f, entry, 2, be), type = number(f, entry + 2, 2, be), count = number(f, entry + 4, 4, be);
    uint32_t *field = field_of(out, tag);
    bool is_short = type == 3, is_long = type == 4;
    if (!field) {
      continue;
    }
    CHECK_THAT(is_short || is_long, UNSUPPORTED, "the field %u is of type %u", tag, type);
    *field = number(f, entry + 8, is_short ? 2 : 4, be);
    if (tag == TAG_EXTRA_SAMPLES) {
      *field = count;
    } else if (tag == TAG_SAMPLE_FORMAT && count > (is_short ? 2 : 1)) {
      size_t list = number(f, entry + 8, 4, be);
      CHECK_THAT(has(f, list, 4), DAMAGED, "the field %u does not end", tag);
      *field = number(f, list, is_short ? 2 : 4, be);
    }
    out->orientation_at = tag == TAG_ORIENTATION && is_short ? entry + 8 : out->orientation_at;
  }
  return NULL;
}

/* Leptonica multiplies colours by alpha, takes the sides of orientation 8 for others, and libtiff takes memory for
 * tiles of any size. */
static status look_at_tiff(arena *a, image_file *f) {
  tiff_fields t;
  CHECK_THAT(has(f, 0, 8), DAMAGED, "the file ends in its header");
  TRY(read_directory(f, &t));
  CHECK_THAT(t.photometric <= PHOTOMETRIC_YCBCR && t.photometric != PHOTOMETRIC_MASK, UNSUPPORTED,
             "colours of kind %u are not supported", t.photometric);
  CHECK_THAT(!t.extra_samples || t.photometric < PHOTOMETRIC_RGB, UNSUPPORTED, "colours with alpha are not supported");
  CHECK_THAT(t.planes == 1 || t.samples == 1 || t.samples == 3, UNSUPPORTED, "%u planes are not supported", t.samples);
  CHECK_THAT(t.sample_format == 1, UNSUPPORTED, "numbers other than unsigned integers are not supported");
  CHECK_THAT(t.tile_width <= MOST_TILE && t.tile_length <= MOST_TILE, UNSUPPORTED, "tiles of %u x %u are not supported",
             t.tile_width, t.tile_length);
  if (t.orientation == 8) {
    CHECK_THAT(t.orientation_at, UNSUPPORTED, "orientation 8 of this type is not supported");
    bool be = f->bytes[0] == 'M';
    changeable(a, f)[t.orientation_at + be] = 6;
    f->half_turn = true;
  }
  return NULL;
}

/* --- all formats --- */

static status look_at_others(arena *a, image_file *f) {
  (void)a;
  (void)f;
  return NULL;
}

static const struct {
  const char *start;
  size_t n;
  image_format format;
} starts[] = {{"BM", 2, IMAGE_BMP},
              {"\xff\xd8\xff", 3, IMAGE_JPEG},
              {(const char *)jp2_signature, sizeof jp2_signature, IMAGE_JPEG2000},
              {(const char *)codestream_start, sizeof codestream_start, IMAGE_JPEG2000},
              {"\x89PNG\r\n\x1a\n", 8, IMAGE_PNG},
              {"II*\0", 4, IMAGE_TIFF},
              {"MM\0*", 4, IMAGE_TIFF}};

static bool find_format(const image_file *f, image_format *out) {
  for (size_t k = 0; k < sizeof starts / sizeof *starts; k++) {
    if (memcmp(f->bytes, starts[k].start, starts[k].n) == 0) {
      *out = starts[k].format;
      return true;
    }
  }
  bool webp = memcmp(f->bytes, "RIFF", 4) == 0 && memcmp(f->bytes + 8, "WEBP", 4) == 0;
  bool pnm = f->bytes[0] == 'P' && f->bytes[1] >= '1' && f->bytes[1] <= '6';
  *out = webp ? IMAGE_WEBP : IMAGE_PNM;
  return webp || pnm;
}

status image_file_look(arena *a, const uint8_t *bytes, size_t n, image_file *out) {
  static status (*const look[IMAGE_FORMATS])(arena *, image_file *) = {
      [IMAGE_BMP] = look_at_bmp,    [IMAGE_JPEG] = look_at_jpeg,  [IMAGE_JPEG2000] = look_at_jpeg2000,
      [IMAGE_PNG] = look_at_png,    [IMAGE_PNM] = look_at_others, [IMAGE_TIFF] = look_at_tiff,
      [IMAGE_WEBP] = look_at_others};
  enum { LEAST = 12 }; /* bytes; the shortest image has more */
  *out = (image_file){.bytes = bytes, .n = n};
  CHECK_THAT(n >= LEAST && find_format(out, &out->format), UNSUPPORTED,
             "the file has none of the formats BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP");
  return status_prefix(look[out->format](a, out), "%s file", image_format_names[out->format]);
}
