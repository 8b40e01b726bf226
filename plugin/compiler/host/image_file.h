/* image_file.h - looks at an image file before it is decoded.  What Leptonica would decode to other pixels than
 * the formats mean, what would make it read or take memory without bounds, and what is in none of the formats that ONNX
 * lists is refused here. */
#ifndef PLUGIN_COMPILER_HOST_IMAGE_FILE_H
#define PLUGIN_COMPILER_HOST_IMAGE_FILE_H

#include "base/arena.h"

typedef enum image_format {
  IMAGE_BMP,
  IMAGE_JPEG,
  IMAGE_JPEG2000,
  IMAGE_PNG,
  IMAGE_PNM,
  IMAGE_TIFF,
  IMAGE_WEBP,
  IMAGE_FORMATS
} image_format;

extern const char *const image_format_names[IMAGE_FORMATS];

typedef struct image_file {
  image_format format;
  const uint8_t *bytes; /* those that were given, or a changed copy on the arena */
  size_t n;
  bool half_turn;  /* whether what is decoded from `bytes` must be turned by half a turn */
  uint64_t pixels; /* how many are decoded, where Leptonica looks for it elsewhere than the decoder; otherwise 0 */
} image_file;

STATUS_MUST_USE status image_file_look(arena *a, const uint8_t *bytes, size_t n, image_file *out);

#endif
