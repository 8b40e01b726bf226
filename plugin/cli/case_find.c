/* case_find.c - finds test cases in folders, and reads lists of cases. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "plugin/cli/case.h"

enum { MAX_DEPTH = 32 };
static const double RTOL = 1e-3, ATOL = 1e-7;

static bool exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

/* --- data.json: one object, of which only the members "url", "rtol" and "atol" are read --- */

typedef struct json {
  const char *at, *end;
} json;

static void skip_blanks(json *j) {
  while (j->at < j->end && strchr(" \t\r\n", *j->at)) {
    j->at++;
  }
}

static bool accept(json *j, char c) {
  skip_blanks(j);
  if (j->at < j->end && *j->at == c) {
    j->at++;
    return true;
  }
  return false;
}

/* Reads a string without its quotes.  Escapes are not decoded, since paths and names have none. */
static const char *read_string(json *j, arena *a) {
  if (!accept(j, '"')) {
    return NULL;
  }
  const char *start = j->at;
  while (j->at < j->end && *j->at != '"') {
    j->at += *j->at == '\\' && j->at + 1 < j->end ? 2 : 1;
  }
  const char *text = arena_strndup(a, start, (size_t)(j->at - start));
  return accept(j, '"') ? text : NULL;
}

/* Reads any other value, up to the comma or brace that ends it. */
static const char *read_other(json *j, arena *a) {
  int depth = 0;
  skip_blanks(j);
  const char *start = j->at;
  for (; j->at < j->end; j->at++) {
    depth += *j->at == '{' || *j->at == '[';
    if (depth == 0 && (*j->at == ',' || *j->at == '}')) {
      break;
    }
    depth -= *j->at == '}' || *j->at == ']';
    if (*j->at == '"') {
      (void)read_string(j, a);
      j->at--;
    }
  }
  return arena_strndup(a, start, (size_t)(j->at - start));
}

static status set_number(const char *key, const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  CHECK_THAT(end != text && *out >= 0, STATUS_INVALID_FILE, "\"%s\" is not a number", key);
  return NULL;
}

static status parse_json(json j, arena *a, cli_case *c, const char **url) {
  CHECK_THAT(accept(&j, '{'), STATUS_INVALID_FILE, "is not a JSON object");
  while (!accept(&j, '}')) {
    const char *key = read_string(&j, a);
    CHECK_THAT(key && accept(&j, ':'), STATUS_INVALID_FILE, "a key is missing or has no value");
    skip_blanks(&j);
    const char *value = j.at < j.end && *j.at == '"' ? read_string(&j, a) : read_other(&j, a);
    CHECK_THAT(value, STATUS_INVALID_FILE, "a string does not end");
    if (strcmp(key, "url") == 0) {
      *url = value;
    } else if (strcmp(key, "rtol") == 0) {
      TRY(set_number(key, value, &c->rtol));
    } else if (strcmp(key, "atol") == 0) {
      TRY(set_number(key, value, &c->atol));
    }
    if (!accept(&j, ',')) {
      CHECK_THAT(accept(&j, '}'), STATUS_INVALID_FILE, "a comma is missing");
      break;
    }
  }
  return NULL;
}

static status read_json(arena *a, const char *path, cli_case *c, const char **url) {
  const uint8_t *bytes;
  size_t size;
  TRY(file_map(a, path, &bytes, &size));
  return status_name_file(parse_json((json){(const char *)bytes, (const char *)bytes + size}, a, c, url), path);
}

/* --- one folder --- */

/* Finds the file of a light model (cli_case.light_output in case.h), which data.json names by its path in ONNX's source
 * tree.  It is searched for in the folders above the case, directly or in a subfolder "light". */
static const char *find_light(arena *a, const char *path, const char *url) {
  const char *slash = strrchr(url, '/'), *base = slash ? slash + 1 : url, *up = path;
  for (int k = 0; k < 8; k++) {
    const char *there = arena_printf(a, "%s/%s", up, url);
    if (exists(there)) {
      return there;
    }
    there = arena_printf(a, "%s/light/%s", up, base);
    if (exists(there)) {
      return there;
    }
    up = arena_printf(a, "%s/..", up);
  }
  return NULL;
}

static const char *without_suffix(arena *a, const char *path, const char *suffix) {
  size_t n = strlen(path), m = strlen(suffix);
  return n > m && strcmp(path + n - m, suffix) == 0 ? arena_strndup(a, path, n - m) : path;
}

/* Returns the last two parts of a path. */
static const char *case_name(arena *a, const char *path) {
  char *full = realpath(path, NULL);
  const char *text = full ? arena_strdup(a, full) : path;
  free(full);
  const char *last = strrchr(text, '/'), *at = last;
  while (at && at > text && at[-1] != '/') {
    at--;
  }
  return at ? at : text;
}

static status describe_case(arena *a, const char *path, bool has_model, bool has_json, cli_case *c) {
  const char *url = NULL;
  *c = (cli_case){.path = path,
                  .name = case_name(a, path),
                  .rtol = RTOL,
                  .atol = ATOL,
                  .model = arena_printf(a, "%s/model.onnx", path)};
  if (has_json) {
    TRY(read_json(a, arena_printf(a, "%s/data.json", path), c, &url));
  }
  if (!has_model) {
    CHECK_THAT(url, STATUS_INVALID_FILE, "%s/data.json: the object has no \"url\" of a model", path);
    c->model = find_light(a, path, url);
    CHECK_THAT(c->model, STATUS_INVALID_FILE, "%s/data.json: the model %s does not exist", path, url);
    c->light_output = arena_printf(a, "%s_output_", without_suffix(a, c->model, ".onnx"));
  }
  return NULL;
}

/* --- trees --- */

typedef struct names {
  uint32_t n, cap;
  const char **items;
} names;

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static status list_folder(arena *a, const char *path, names *out) {
  DIR *d = opendir(path);
  CHECK_THAT(d, STATUS_IO, "%s: the folder cannot be read: %s", path, strerror(errno));
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] != '.') {
      *ARENA_PUSH(a, out->items, out->n, out->cap) = arena_strdup(a, e->d_name);
    }
  }
  closedir(d);
  if (out->n) {
    qsort(out->items, out->n, sizeof *out->items, by_name);
  }
  return NULL;
}

static bool is_folder(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static status search(arena *a, const char *path, int depth, cli_cases *out) {
  names entries = {0};
  bool model = false, described = false, data = false;
  CHECK_THAT(depth < MAX_DEPTH, STATUS_INVALID_ARGUMENT, "%s: folders are nested too deeply", path);
  TRY(list_folder(a, path, &entries));
  for (uint32_t k = 0; k < entries.n; k++) {
    model |= strcmp(entries.items[k], "model.onnx") == 0;
    described |= strcmp(entries.items[k], "data.json") == 0;
    data |= strncmp(entries.items[k], "test_data_set_", 14) == 0;
  }
  if ((model && data) || (described && !model)) {
    return describe_case(a, path, model, described, ARENA_PUSH(a, out->items, out->n, out->cap));
  }
  for (uint32_t k = 0; k < entries.n; k++) {
    const char *below = arena_printf(a, "%s/%s", path, entries.items[k]);
    if (is_folder(below)) {
      TRY(search(a, below, depth + 1, out));
    }
  }
  return NULL;
}

status cli_find_cases(arena *a, const char *dir, cli_cases *out) {
  size_t n = strlen(dir);
  while (n > 1 && dir[n - 1] == '/') {
    n--;
  }
  return search(a, arena_strndup(a, dir, n), 0, out);
}

/* --- lists --- */

status cli_read_expected(arena *a, const char *path, cli_expect_list *out) {
  const uint8_t *bytes;
  size_t size;
  *out = (cli_expect_list){0};
  if (!path) {
    return NULL;
  }
  TRY(status_name_file(file_map(a, path, &bytes, &size), path));
  char *text = arena_strndup(a, (const char *)bytes, size);
  for (char *line = text, *next; line; line = next) {
    next = strchr(line, '\n');
    if (next) {
      *next++ = '\0';
    }
    line += strspn(line, " \t\r");
    size_t n = strcspn(line, " \t\r");
    if (n && *line != '#') {
      const char *reason = line + n + strspn(line + n, " \t\r");
      *ARENA_PUSH(a, out->items, out->n, out->cap) = (cli_expected){arena_strndup(a, line, n), reason, false};
    }
  }
  return NULL;
}

cli_expected *cli_find_expected(const cli_expect_list *list, const cli_case *c) {
  const char *slash = strrchr(c->name, '/'), *folder = slash ? slash + 1 : c->name;
  for (uint32_t k = 0; k < list->n; k++) {
    const char *name = list->items[k].name;
    if (strcmp(name, c->name) == 0 || strcmp(name, folder) == 0 || strcmp(name, c->path) == 0) {
      return &list->items[k];
    }
  }
  return NULL;
}
