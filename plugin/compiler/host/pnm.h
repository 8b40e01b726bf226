/* pnm.h - decodes images of the formats PBM, PGM and PPM.  (Leptonica decodes few of them, and returns memory that was
 * never written where a file ends too early.) */
#ifndef PLUGIN_COMPILER_HOST_PNM_H
#define PLUGIN_COMPILER_HOST_PNM_H

#include "base/arena.h"

typedef struct pnm_image {
  uint32_t width, height;
  uint8_t *rgb; /* three bytes for each pixel, on the arena */
} pnm_image;

/* Decodes the first image of a file that begins with P1 to P6 and has at most `most_pixels` pixels.  As Pillow does it,
 * numbers are scaled so that the largest is 255. */
STATUS_MUST_USE status pnm_decode(arena *a, const uint8_t *bytes, size_t n, uint64_t most_pixels, pnm_image *out);

#endif
