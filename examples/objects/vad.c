/* vad.c - says where speech begins and ends in a stream of sound, with the model silero-vad as an object.
 *
 *   vad [FILE]      16-bit samples of one channel at 16 kHz, in a .wav file or without a header; or standard input
 *
 * A run computes how probable speech is in 512 samples, from these and the 64 before them.  The model's state stays in
 * the context.  Speech ends where the probability falls below 0.35, if it does not reach 0.5 again within 0.1
 * seconds. */
#include <stdio.h>
#include <string.h>

#include "silero.h"

enum { RATE = 16000, STEP = 512, BEFORE = 64, PAUSE = RATE / 10 };

static silero net;
static char memory[SILERO_ARENA_BYTES + SILERO_ALIGN];

/* Returns how many of the first bytes of a file are the header of a .wav file. */
static size_t header_length(const unsigned char *bytes, size_t n) {
  int is_wav = n >= 12 && memcmp(bytes, "RIFF", 4) == 0;
  for (size_t k = 12; is_wav && k + 8 <= n; k += 8 + bytes[k + 4] + bytes[k + 5] * 256u) {
    if (memcmp(bytes + k, "data", 4) == 0) {
      return k + 8;
    }
  }
  return 0;
}

/* Converts n bytes to STEP samples.  If the bytes are too few, the remaining samples are 0. */
static void decode(const unsigned char *bytes, size_t n, float *out) {
  for (size_t k = 0; k < STEP; k++) {
    int value = 2 * k + 1 < n ? bytes[2 * k] + bytes[2 * k + 1] * 256 : 0;
    out[k] = (float)(value < 32768 ? value : value - 65536) / 32768;
  }
}

/* Prints whether speech begins or ends in the step that begins with this sample. */
static void follow(float probability, long sample) {
  static int is_speech = 0;
  static long silence = -1; /* where the silence began after which speech may have ended; -1 if there is none */
  if (probability >= 0.5f) {
    if (!is_speech) {
      printf("%.3f speech begins\n", (double)sample / RATE);
    }
    is_speech = 1;
    silence = -1;
  } else if (is_speech && probability < 0.35f) {
    silence = silence < 0 ? sample : silence;
    is_speech = sample - silence < PAUSE;
    if (!is_speech) {
      printf("%.3f speech ends\n", (double)silence / RATE);
    }
  }
}

int main(int argc, char **argv) {
  static unsigned char bytes[2 * STEP];
  static float samples[BEFORE + STEP];
  const int64_t rate = RATE;
  FILE *sound = argc > 1 ? fopen(argv[1], "rb") : stdin;
  size_t n = sound ? fread(bytes, 1, sizeof bytes, sound) : 0, header = header_length(bytes, n);
  int error = silero_init(&net, NULL);
  error = error ? error : silero_bind(&net, memory + SILERO_ALIGN - (uintptr_t)memory % SILERO_ALIGN);
  error = error ? error : silero_set_in_input(&net, samples);
  error = error ? error : silero_set_in_sr(&net, &rate);
  if (!sound || error) {
    fprintf(stderr, "vad: %s\n", error ? silero_error_text(error) : "the file cannot be opened");
    return 1;
  }
  memmove(bytes, bytes + header, n - header);
  n = n - header + fread(bytes + n - header, 1, header, sound);
  for (long at = 0; n > 0 && !error; at += STEP) {
    decode(bytes, n, samples + BEFORE);
    error = silero_run(&net);
    follow(*silero_out_output(&net), at);
    memmove(samples, samples + STEP, BEFORE * sizeof *samples);
    n = fread(bytes, 1, sizeof bytes, sound);
  }
  return error != 0;
}
