/* info.c - the command onnx-xla info. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "plugin/cli/cli.h"
#include "runtime/program/size_text.h"
#include "runtime/program/image.h"
#include "runtime/program/object_info.h"
#include "runtime/program/sizes.h"
#include "runtime/program/told.h"

static uint64_t bytes_of(const rt_span *spans, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < n; k++) {
    bytes += spans[k].size;
  }
  return bytes;
}

static void print_values(const char *what, const rt_io *io, uint32_t n) {
  printf("  %-10s", what);
  for (uint32_t k = 0; k < n; k++) {
    printf("%s %s %s%s", k ? "," : "", io[k].name, SHAPE_STR(NULL, &io[k].shape),
           io[k].value ? " (with fixed contents)" : "");
  }
  fputs("\n", stdout);
}

/* Prints the sizes of a program for many sizes, and the number of slots of its arena, which has no fixed size. */
static void print_sizes(const rt_program *p) {
  printf("  %-10s for many sizes: %" PRIu32 " expressions, %" PRIu32 " slots in the arena\n", "sizes", p->n_sizes,
         p->n_slots);
  size_write_lines(stdout, 2, 10, p);
}

static void print_program(const rt_program *p, uint32_t number) {
  printf("program %" PRIu32 "\n", number);
  print_values("inputs", p->params, rt_program_inputs(p));
  print_values("outputs", p->results, rt_program_outputs(p));
  printf("  %-10s %s %s\n", "for", p->target, p->cpu);
  printf("  %-10s %" PRIu32 " of %" PRIu64 " bytes\n", "constants", p->n_constants,
         bytes_of(p->constants, p->n_constants));
  printf("  %-10s %" PRIu64 " bytes\n", "code", bytes_of(p->code, p->n_code));
  if (rt_program_is_static(p)) {
    printf("  %-10s %" PRIu64 " bytes\n", "arena", p->arena_bytes);
  } else {
    print_sizes(p);
  }
}

/* Returns the next text that describes an object, from `at` on; NULL if there is none.  *at becomes the end of the
 * text, or NULL. */
static const char *next_object(const uint8_t **at, const uint8_t *end) {
  static const char mark[] = RT_OBJECT_MARK;
  const uint8_t *found = memmem(*at, (size_t)(end - *at), mark, sizeof mark - 1);
  const uint8_t *last = found ? memchr(found, 0, (size_t)(end - found)) : NULL;
  *at = last;
  return last ? (const char *)found : NULL;
}

/* Prints what objects in the file say of themselves; a static library may have several. */
static void print_objects(const uint8_t *bytes, size_t size) {
  const uint8_t *at = bytes;
  for (const char *text; at && (text = next_object(&at, bytes + size)) != NULL;) {
    for (; *text; text++) {
      putchar(*text == '\n' || (*text >= ' ' && *text <= '~') ? *text : '?');
    }
  }
}

/* Prints what the file says of itself if it is an object, and sets *found.  Fails if it is no compiled file at all. */
static status cli_info_object(const cli_args *args, arena *a, const char *path, bool *found) {
  const uint8_t *bytes;
  size_t size;
  TRY(file_map(a, path, &bytes, &size));
  const uint8_t *at = bytes;
  bool image = rt_image_begins(bytes, size);
  *found = !image && next_object(&at, bytes + size);
  CHECK_THAT(image || *found, STATUS_INVALID_FILE, "%s: neither a .oxla file nor an object of onnx-xla compile", path);
  CHECK_THAT(image || !args->verify, STATUS_UNSUPPORTED,
             "%s: --verify: an object has no checksums, as .oxla files have", path);
  if (*found) {
    print_objects(bytes, size);
  }
  return NULL;
}

status cli_info(const cli_args *args, arena *a, int *code) {
  (void)code;
  const char *path = args->files.items[0];
  rt_image *image;
  bool is_object;
  TRY(cli_info_object(args, a, path, &is_object));
  if (is_object) {
    return NULL;
  }
  TRY(status_name_file(rt_image_open(a, path, args->verify, &image), path));
  printf("model      %s\n", image->model);
  if (image->model_hash) {
    printf("hash       %016" PRIx64 "\n", image->model_hash);
  }
  printf("made by    %s\n", image->producer);
  for (uint32_t k = 0; k < image->n_programs; k++) {
    print_program(image->programs[k], k + 1);
  }
  if (image->source.size) {
    printf("the file holds the model itself, %" PRIu64 " bytes, since it runs segment by segment\n",
           image->source.size);
  }
  if (args->verify) {
    puts("verified   all checksums are right");
  }
  return NULL;
}
