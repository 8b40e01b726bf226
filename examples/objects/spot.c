/* spot.c - says where a word is spoken in a recording, by another recording of the word.
 *
 *   spot WORD SOUND      16-bit samples of one channel at 16 kHz, in .wav files or without a header
 *
 * One model makes frames of 32 frequencies from samples.  The other one, which was trained for finding keywords, embeds
 * 76 frames, about 0.8 seconds; embeddings of the same word are alike. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "embedding.h"
#include "frames.h"

enum { LEAST = 12640, BINS = 32, WINDOW = 76 * BINS, STEP = 8 * BINS, NUMBERS = 96, ALIGN = 64 };

static void stop_if(int failed, const char *what) {
  if (failed) {
    fprintf(stderr, "spot: %s\n", what);
    exit(1);
  }
}

/* Returns zeroed memory for a context; 0 bytes mean that the model cannot take the sizes. */
static void *memory(uint64_t bytes) {
  char *p = bytes ? calloc(1, bytes + ALIGN) : NULL;
  stop_if(!p, "no memory, or no run of this size");
  return p + ALIGN - (uintptr_t)p % ALIGN;
}

/* Returns the samples of a file, with silence after fewer than LEAST, and sets *n to their number. */
static const float *read_samples(const char *path, int64_t *n) {
  static int16_t file[1 << 21]; /* about two minutes */
  FILE *f = fopen(path, "rb");
  int64_t length = f ? (int64_t)fread(file, 2, sizeof file / 2, f) : 0, from = memcmp(file, "RIFF", 4) == 0 ? 22 : 0;
  stop_if(length <= from || !feof(f) || fclose(f), "a file cannot be read, or is too long");
  *n = length - from < LEAST ? LEAST : length - from;
  float *x = memory((uint64_t)*n * sizeof *x);
  for (int64_t k = from; k < length; k++) {
    x[k - from] = file[k];
  }
  return x;
}

/* Returns the embeddings of a file, which are in the memory of `net`, and sets *n to their number. */
static const float *embed(frames *sound, embedding *net, const char *path, int64_t *n) {
  int64_t samples, dims[4];
  const float *x = read_samples(path, &samples);
  stop_if(frames_init(sound, NULL) || frames_bind(sound, memory(frames_arena_bytes(samples)), samples), "no memory");
  stop_if(frames_set_in_input(sound, x) || frames_run(sound) || frames_output_dims(sound, 0, dims), "no frames");
  *n = (dims[2] * BINS - WINDOW) / STEP + 1;
  stop_if(embedding_init(net, NULL) || embedding_bind(net, memory(embedding_arena_bytes(*n)), *n), "no embeddings");
  for (int64_t k = 0; k < *n * WINDOW; k++) { /* the scale with which the model was trained */
    embedding_in_input_1(net)[k] = frames_out_output(sound)[k / WINDOW * STEP + k % WINDOW] / 10 + 2;
  }
  stop_if(embedding_run(net), "the model cannot be run");
  return embedding_out_conv2d_19(net);
}

/* Returns how alike n numbers are: the cosine of the angle between them as vectors. */
static double likeness(const float *x, const float *y, int64_t n) {
  double xy = 0, xx = 0, yy = 0;
  for (int64_t k = 0; k < n; k++) {
    xy += x[k] * y[k], xx += x[k] * x[k], yy += y[k] * y[k];
  }
  return xy / sqrt(xx * yy);
}

int main(int argc, char **argv) {
  static frames sounds[2];
  static embedding nets[2];
  int64_t n, all;
  stop_if(argc != 3, "usage: spot WORD SOUND");
  const float *word = embed(&sounds[0], &nets[0], argv[1], &n), *x = embed(&sounds[1], &nets[1], argv[2], &all);
  for (int64_t at = 0; at <= all - n; at++, x += NUMBERS) {
    double alike = likeness(word, x, n * NUMBERS);
    if (alike >= 0.85) {
      printf("%.2f %.2f\n", (double)at * 0.08, alike);
    }
  }
}
