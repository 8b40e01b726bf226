/* opt.c - the command onnx-xla opt. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/cli/cli.h"

static status read_stdin(arena *a, const uint8_t **bytes, size_t *size) {
  enum { CHUNK = 65536 };
  size_t n = 0, room = CHUNK;
  uint8_t *text = arena_alloc(a, room);
  for (;;) {
    ssize_t got = read(STDIN_FILENO, text + n, room - n);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    CHECK_THAT(got >= 0, STATUS_IO, "standard input cannot be read: %s", strerror(errno));
    if (got == 0) {
      break;
    }
    n += (size_t)got;
    if (n == room) {
      text = arena_grow(a, text, room, 2 * room);
      room *= 2;
    }
  }
  *bytes = text;
  *size = n;
  return NULL;
}

status cli_opt(const cli_args *args, arena *a, int *code) {
  const compiler_api *compiler;
  const uint8_t *bytes;
  const char *text;
  size_t size;
  if (!args->list && !args->passes) {
    fprintf(stderr, "onnx-xla opt: -p NAME,... is missing (onnx-xla opt --list lists the passes)\n");
    *code = CLI_USAGE;
    return NULL;
  }
  TRY(session_open_compiler(&compiler));
  if (args->list) {
    fputs(compiler->pass_list(a), stdout);
    return NULL;
  }
  const char *path = args->files.items[0];
  bool piped = strcmp(path, "-") == 0;
  TRY(piped ? read_stdin(a, &bytes, &size) : status_name_file(file_map(a, path, &bytes, &size), path));
  TRY(compiler->opt(a, piped ? "standard input" : path, (const char *)bytes, size, args->passes, &text));
  if (!args->output || strcmp(args->output, "-") == 0) {
    fputs(text, stdout);
    return NULL;
  }
  return status_name_file(file_write(args->output, text, strlen(text)), args->output);
}
