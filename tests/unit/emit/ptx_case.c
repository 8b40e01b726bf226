/* ptx_case.c - checks PTX; see ptx_case.h. */
#include "tests/unit/emit/ptx_case.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const ptx_gpus[] = {"sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"};

/* --- the assembler --- */

const char *ptx_assembler(arena *a) {
  static bool told;
  const char *path = getenv("PATH"), *end;
  for (path = path ? path : ""; *path; path = *end ? end + 1 : end) {
    end = path + strcspn(path, ":");
    const char *file = arena_printf(a, "%.*s/ptxas", (int)(end - path), path);
    if (access(file, X_OK) == 0) {
      return file;
    }
  }
  static const char toolkit[] = "/usr/local/cuda/bin/ptxas";
  if (access(toolkit, X_OK) == 0) {
    return toolkit;
  }
  if (!told) {
    fputs("SKIPPED: there is no ptxas, so PTX is not assembled\n", stderr);
    told = true;
  }
  return NULL;
}

/* Returns a new file with that text. */
static const char *written(arena *a, const char *text, size_t size) {
  const char *folder = getenv("TMPDIR");
  char *path = arena_printf(a, "%s/onnx-xla-ptx-XXXXXX", folder ? folder : "/tmp");
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  FILE *f = fdopen(file, "w");
  ck_assert(f && fwrite(text, 1, size, f) == size && fclose(f) == 0);
  return path;
}

/* Fails if the line of ptxas says that registers are kept in memory. */
static void check_spills(const char *line, const char *kernel) {
  const char *spills = strstr(line, "bytes stack frame,");
  int stores = 0, loads = 0;
  if (spills &&
      sscanf(spills, "bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads) == 2) {
    ck_assert_msg(stores == 0 && loads == 0, "%s: %s", kernel, line);
  }
}

static void assemble(arena *a, const char *ptxas, const char *gpu, const char *text, size_t size) {
  const char *path = written(a, text, size);
  FILE *f = popen(arena_printf(a, "'%s' -arch=%s -v '%s' -o /dev/null 2>&1", ptxas, gpu, path), "r");
  ck_assert_ptr_nonnull(f);
  char line[1000], kernel[1000] = "";
  const char *said = "";
  while (fgets(line, sizeof line, f)) {
    if (strstr(line, "Function properties")) {
      snprintf(kernel, sizeof kernel, "%s", line);
    }
    check_spills(line, kernel);
    said = strstr(line, "ptxas info") || strstr(line, "bytes stack frame") ? said : arena_printf(a, "%s%s", said, line);
  }
  int rc = pclose(f);
  ck_assert_msg(rc == 0, "ptxas fails for %s: %s in %s", gpu, said, path);
  unlink(path);
}

/* --- the text --- */

/* Returns true if the instruction begins with one of these names, which a space separates. */
static bool is_any(const char *instruction, const char *names) {
  for (const char *p = names; *p; p += strspn(p, " ")) {
    size_t n = strcspn(p, " ");
    if (strncmp(instruction, p, n) == 0) {
      return true;
    }
    p += n;
  }
  return false;
}

/* Returns true unless the instruction accesses memory by a generic address, which is slower than naming the
 * kind of memory. */
static bool names_memory(const char *instruction) {
  return is_any(instruction,
                "ld.param ld.global ld.local ld.const ld.shared st.param st.global st.local st.shared "
                "atom.global") ||
         !is_any(instruction, "ld. st. atom. red.");
}

/* Returns true unless the instruction is approximate, flushes denormal numbers, or is arithmetic without .rn,
 * which ptxas may contract. */
static bool is_exact(const char *line, const char *instruction) {
  return !strstr(line, ".ftz") && !strstr(line, ".approx") && !strstr(line, ".full") &&
         !is_any(instruction, "add.f add.b add.ftz sub.f sub.b mul.f mul.b mad.f mad.rn");
}

static void check_line(arena *a, const char *line, const char *end, const char *kernel) {
  const char *text = arena_strndup(a, line, (size_t)(end - line)), *instruction = text + strspn(text, "\t ");
  if (*instruction == '@') { /* skips the predicate */
    instruction += strcspn(instruction, "\t ");
    instruction += strspn(instruction, "\t ");
  }
  if (!names_memory(instruction) || !is_exact(text, instruction) ||
      (is_any(instruction, ".extern") && !strstr(instruction, " .shared "))) {
    ck_abort_msg("%s: %s", kernel, text);
  }
}

static void check_text(arena *a, const char *text) {
  const char *kernel = "";
  for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
    end = line + strcspn(line, "\n");
    if (strncmp(line, ".visible .entry", 15) == 0) {
      kernel = arena_strndup(a, line, (size_t)(end - line));
    }
    check_line(a, line, end, kernel);
  }
}

status ptx_check(arena *a, emit_module *m, const char *gpu) {
  const char *text;
  size_t size;
  TRY(status_prefix(emit_module_assembly(m, &text, &size), "%s", gpu));
  ck_assert_msg(strstr(text, arena_printf(a, ".target %s\n", gpu)) != NULL, "%.200s", text);
  arena *lines = arena_create(NULL);
  check_text(lines, text);
  arena_destroy(lines);
  const char *ptxas = ptx_assembler(a);
  if (ptxas) {
    assemble(a, ptxas, gpu, text, size);
  }
  return NULL;
}
