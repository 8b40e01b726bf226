/* ocr.c - reads the line of text in a picture with a PP-OCR recognition model; it uses onnx-xla.h only.
 *
 *   ocr MODEL.onnx PICTURE.ppm      (a binary .ppm or .pgm file with 8 bits for each sample)
 *
 * The model's input is a picture of 48 rows and any width.  The output has a row for each group of a few columns of the
 * picture: the probabilities of all characters in a list, which is in the model's metadata.  The text is found by CTC
 * decoding: the most probable character of each row, without repetitions and then without blanks. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx-xla.h"

enum { HEIGHT = 48, MIN_WIDTH = 16, MAX_PIXELS = 1 << 26 };

static void die(const char *what, const char *why) {
  fprintf(stderr, "ocr: %s: %s\n", what, why);
  exit(1);
}

static void check(const char *what, oxla_error *error) {
  if (error) {
    die(what, oxla_error_message(error));
  }
}

/* --- pictures --- */

typedef struct picture {
  int width, height, channels; /* channels: 1 for grey, 3 for red, green and blue */
  unsigned char *samples;
} picture;

/* Reads a number of the header, after white space and comments. */
static int read_number(FILE *f) {
  int c = getc(f), n = 0;
  while (isspace(c) || c == '#') {
    while (c == '#' && (c = getc(f)) != '\n' && c != EOF) {
      c = '#';
    }
    c = getc(f);
  }
  for (; isdigit(c) && n < MAX_PIXELS; c = getc(f)) {
    n = n * 10 + (c - '0');
  }
  return n;
}

static picture read_picture(const char *path) {
  FILE *f = fopen(path, "rb");
  picture p = {0};
  if (!f) {
    die(path, "cannot be opened");
  }
  int p_letter = getc(f), kind = getc(f);
  p.width = read_number(f);
  p.height = read_number(f);
  int depth = read_number(f);
  p.channels = kind == '6' ? 3 : 1;
  if (p_letter != 'P' || (kind != '5' && kind != '6') || depth != 255 || p.width < 1 || p.height < 1 ||
      p.height > MAX_PIXELS / p.width) {
    die(path, "is not a binary .ppm or .pgm picture with 8 bits for each sample");
  }
  size_t size = (size_t)p.width * (size_t)p.height * (size_t)p.channels;
  p.samples = malloc(size);
  if (!p.samples || fread(p.samples, 1, size, f) != size) {
    die(path, "is shorter than its header says");
  }
  fclose(f);
  return p;
}

static float sample(const picture *p, int x, int y, int channel) {
  return p->samples[((size_t)y * (size_t)p->width + (size_t)x) * (size_t)p->channels + (size_t)(channel % p->channels)];
}

/* Interpolates bilinearly at a point that is given in pixels. */
static float sample_between(const picture *p, float x, float y, int channel) {
  x = x < 0 ? 0 : x > (float)(p->width - 1) ? (float)(p->width - 1) : x;
  y = y < 0 ? 0 : y > (float)(p->height - 1) ? (float)(p->height - 1) : y;
  int x0 = (int)x, y0 = (int)y, x1 = x0 + (x0 < p->width - 1), y1 = y0 + (y0 < p->height - 1);
  float fx = x - (float)x0, fy = y - (float)y0;
  float top = sample(p, x0, y0, channel) * (1 - fx) + sample(p, x1, y0, channel) * fx;
  float bottom = sample(p, x0, y1, channel) * (1 - fx) + sample(p, x1, y1, channel) * fx;
  return top * (1 - fy) + bottom * fy;
}

/* Returns the model's input, which the caller frees: planes of blue, green and red with 48 rows, and samples from -1 to
 * 1. */
static float *prepare(const picture *p, int *width) {
  float scale = (float)p->height / HEIGHT;
  *width = (int)((float)p->width / scale + 0.5f);
  *width = *width < MIN_WIDTH ? MIN_WIDTH : *width;
  float *out = malloc(3 * HEIGHT * (size_t)*width * sizeof *out), *at = out;
  if (!out) {
    die("picture", "out of memory");
  }
  for (int channel = 2; channel >= 0; channel--) {
    for (int y = 0; y < HEIGHT; y++) {
      for (int x = 0; x < *width; x++) {
        float v = sample_between(p, ((float)x + 0.5f) * scale - 0.5f, ((float)y + 0.5f) * scale - 0.5f, channel);
        *at++ = v / 127.5f - 1;
      }
    }
  }
  return out;
}

/* --- text --- */

/* Returns character n of the list, which has one line for each character, and its length in bytes.  Character 0 is the
 * blank and has no line.  Returns NULL for the number after the end of the list, which means a space. */
static const char *find_character(const char *list, int64_t n, int *length) {
  for (; n > 1 && *list; n--) {
    const char *end = strchr(list, '\n');
    list = end ? end + 1 : "";
  }
  *length = (int)strcspn(list, "\n");
  return *length ? list : NULL;
}

/* Prints the text of the scores, [1, positions, characters].  Spaces at the ends are not printed, since they come from
 * the margin of the picture. */
static void print_text(const oxla_tensor *scores, const char *list) {
  int64_t places = scores->dims[1], characters = scores->dims[2], last = 0;
  int printed = 0, space = 0;
  for (int64_t place = 0; place < places; place++) {
    const float *row = (const float *)scores->data + place * characters;
    int64_t best = 0;
    for (int64_t c = 1; c < characters; c++) {
      best = row[c] > row[best] ? c : best;
    }
    if (best && best != last) {
      int length;
      const char *character = find_character(list, best, &length);
      if (character) {
        printf("%s%.*s", space && printed ? " " : "", length, character);
        printed = 1;
      }
      space = !character;
    }
    last = best;
  }
  putchar('\n');
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: ocr MODEL.onnx PICTURE.ppm\n");
    return 2;
  }
  picture p = read_picture(argv[2]);
  int width;
  float *pixels = prepare(&p, &width);

  oxla_model *model;
  check(argv[1], oxla_load(argv[1], NULL, &model));
  const char *characters = oxla_metadata(model, "character");
  if (!characters || oxla_input_count(model) != 1 || oxla_output_count(model) != 1) {
    die(argv[1], "is not a text recognition model with its characters in the metadata");
  }

  oxla_run *run;
  oxla_tensor scores;
  check(argv[1], oxla_run_create(model, &run));
  check(argv[2],
        oxla_set_input(run, oxla_input_name(model, 0), OXLA_FLOAT, 4, (int64_t[]){1, 3, HEIGHT, width}, pixels));
  check(argv[2], oxla_execute(run));
  check(argv[1], oxla_get_output(run, oxla_output_name(model, 0), &scores));
  if (scores.type != OXLA_FLOAT || scores.rank != 3) {
    die(argv[1], "has an output that is not an f32 array of rank 3");
  }
  print_text(&scores, characters);

  oxla_run_destroy(run);
  oxla_model_destroy(model);
  free(pixels);
  free(p.samples);
  return 0;
}
