/* pnm.c - see pnm.h. */
#include "plugin/compiler/host/pnm.h"

#include <math.h>
#include <string.h>

#define DAMAGED STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE

typedef struct reader {
  const uint8_t *at, *end;
  bool plain;              /* whether the numbers are text */
  uint32_t channels, most; /* `most` is 1 if the numbers are bits, of which 1 is black */
  bool bits;
} reader;

static bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Skips blanks and comments, which go to the end of the line. */
static void skip_blanks(reader *r) {
  bool comment = false;
  for (; r->at < r->end && (comment || is_blank(*r->at) || *r->at == '#'); r->at++) {
    comment = comment ? *r->at != '\n' && *r->at != '\r' : *r->at == '#';
  }
}

static bool at_digit(const reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

static status read_number(reader *r, uint32_t *out) {
  enum { MOST = 1 << 30 };
  uint64_t number = 0;
  skip_blanks(r);
  CHECK_THAT(at_digit(r), DAMAGED, "a number is missing");
  for (; at_digit(r); r->at++) {
    number = number > MOST ? number : number * 10 + (*r->at - '0');
  }
  CHECK_THAT(number <= MOST, DAMAGED, "a number is too large");
  *out = (uint32_t)number;
  return NULL;
}

static status read_header(reader *r, pnm_image *out) {
  uint8_t kind = r->at[1] - '0';
  r->plain = kind <= 3;
  r->channels = kind % 3 == 0 ? 3 : 1;
  r->bits = kind % 3 == 1;
  r->at += 2;
  TRY(read_number(r, &out->width));
  TRY(read_number(r, &out->height));
  r->most = 1;
  if (!r->bits) {
    TRY(read_number(r, &r->most));
  }
  CHECK_THAT(r->most >= 1 && r->most <= UINT16_MAX, DAMAGED, "the largest number is %u", r->most);
  if (!r->plain) {
    CHECK_THAT(r->at < r->end && is_blank(*r->at), DAMAGED, "the header does not end");
    r->at++;
  }
  return NULL;
}

/* Returns how many bytes the image has at least; in text, each number has one. */
static uint64_t least_bytes(const reader *r, const pnm_image *i) {
  uint64_t row = (uint64_t)i->width * r->channels;
  row = r->plain ? row : r->bits ? (row + 7) / 8 : row * (r->most > UINT8_MAX ? 2 : 1);
  return row * i->height;
}

/* Reads number `column` of a row.  In text, bits need nothing between them. */
static status read_sample(reader *r, uint64_t column, uint32_t *out) {
  if (r->plain && r->bits) {
    skip_blanks(r);
    CHECK_THAT(at_digit(r) && *r->at <= '1', DAMAGED, "a bit is missing");
    *out = *r->at++ - '0';
  } else if (r->plain) {
    TRY(read_number(r, out));
    CHECK_THAT(*out <= r->most, DAMAGED, "the number %u, of which the largest is %u", *out, r->most);
  } else if (r->bits) {
    *out = r->at[column / 8] >> (7 - column % 8) & 1;
  } else {
    *out = r->most > UINT8_MAX ? (uint32_t)(r->at[2 * column] << 8 | r->at[2 * column + 1]) : r->at[column];
  }
  return NULL;
}

static uint8_t scaled(const reader *r, uint32_t sample) {
  if (r->bits) {
    return sample ? 0 : UINT8_MAX;
  }
  return sample >= r->most ? UINT8_MAX : (uint8_t)nearbyint((double)sample / r->most * UINT8_MAX);
}

static status read_row(reader *r, uint32_t width, uint8_t *rgb) {
  for (uint64_t k = 0; k < (uint64_t)width * r->channels; k++) {
    uint32_t sample;
    TRY(read_sample(r, k, &sample));
    memset(rgb, scaled(r, sample), 3 / r->channels);
    rgb += 3 / r->channels;
  }
  return NULL;
}

status pnm_decode(arena *a, const uint8_t *bytes, size_t n, uint64_t most_pixels, pnm_image *out) {
  reader r = {.at = bytes, .end = bytes + n};
  TRY(read_header(&r, out));
  uint64_t pixels = (uint64_t)out->width * out->height;
  CHECK_THAT(pixels > 0, DAMAGED, "an image of %u x %u", out->width, out->height);
  CHECK_THAT(pixels <= most_pixels, STATUS_RESOURCE, "an image of %u x %u; at most %llu pixels are decoded", out->width,
             out->height, (unsigned long long)most_pixels);
  CHECK_THAT(least_bytes(&r, out) <= (uint64_t)(r.end - r.at), DAMAGED, "the file ends in the image");
  out->rgb = arena_calloc(a, pixels, 3);
  for (uint32_t y = 0; y < out->height; y++) {
    TRY(read_row(&r, out->width, out->rgb + (size_t)y * out->width * 3));
    r.at += r.plain ? 0 : least_bytes(&r, &(pnm_image){.width = out->width, .height = 1});
  }
  return NULL;
}
