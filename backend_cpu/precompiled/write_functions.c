/* write_functions.c - a program that the build runs: it compiles the shared functions of kernels for some kinds of
 * processors of this machine's architecture.  It writes them as assembly, and the tables of
 * backend_cpu/runtime/functions.h as C.
 *
 *     write_functions FUNCTIONS.s TABLES.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "emit/contraction/precompiled.h"
#include "emit/kernel/compile.h"

/* The processors for which functions are compiled, by the names of emit/llvm/cpus.c; those of other architectures are
 * left out.  The least able one comes first. */
static const char *const cpus[] = {"x86-64-v3", "x86-64-v4"};

typedef struct tables {
  arena *arena;
  emit_module *module;
  FILE *file;
  const char *sets; /* the entries of cpu_function_sets */
  uint32_t n_sets;
  uint32_t n, cap; /* the functions of the set that is being written */
  const char **names;
} tables;

static void add_name(void *data, const char *name) {
  tables *t = data;
  *ARENA_PUSH(t->arena, t->names, t->n, t->cap) = arena_strdup(t->arena, name);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void write_table(tables *t, const char *target) {
  qsort(t->names, t->n, sizeof *t->names, by_name);
  for (uint32_t k = 0; k < t->n; k++) {
    fprintf(t->file, "HIDDEN void %s(void);\n", t->names[k]);
  }
  fprintf(t->file, "static const named_function set_%u[] = {\n", t->n_sets);
  for (uint32_t k = 0; k < t->n; k++) {
    fprintf(t->file, "  {\"%s\", %s},\n", t->names[k], t->names[k]);
  }
  fputs("};\n", t->file);
  t->sets = arena_printf(t->arena, "%s  {\"%s\", %u, set_%u},\n", t->sets, target, t->n, t->n_sets);
  t->n_sets++;
  t->n = 0;
}

/* Writes the functions for a processor, if it is one of this machine's architecture. */
static status add_set(tables *t, const char *cpu) {
  emit_target target;
  status unknown = emit_target_init(t->arena, NULL, cpu, 0, &target);
  if (unknown) {
    status_free(unknown);
    return NULL;
  }
  emit_target least = emit_target_baseline(&target);
  TRY(t->module ? NULL : emit_module_create(t->arena, &least, "functions", &t->module));
  emit_module_set_target(t->module, &target);
  emit_write_precompiled(t->module);
  emit_module_export(t->module, add_name, t);
  emit_module_set_target(t->module, &least);
  write_table(t, emit_target_text(t->arena, &target));
  return NULL;
}

static void write_tables_end(const tables *t) {
  fprintf(t->file, "const function_set cpu_function_sets[] = {\n%s  {\"\", 0, NULL}};\n", t->sets);
  fprintf(t->file, "const uint32_t cpu_n_function_sets = %u;\n", t->n_sets);
}

typedef struct paths {
  arena *arena;
  const char *assembly, *tables;
} paths;

static status write_all(void *data) {
  const paths *p = data;
  tables t = {.arena = p->arena, .file = fopen(p->tables, "w"), .sets = ""};
  const char *assembly = "";
  size_t size = 0;
  CHECK_THAT(t.file, STATUS_IO, "%s: cannot be written", p->tables);
  fputs(
      "#include \"backend_cpu/runtime/functions.h\"\n"
      "#define HIDDEN __attribute__((visibility(\"hidden\")))\n",
      t.file);
  for (size_t k = 0; k < sizeof cpus / sizeof *cpus; k++) {
    TRY(add_set(&t, cpus[k]));
  }
  write_tables_end(&t);
  CHECK_THAT(fclose(t.file) == 0, STATUS_IO, "%s: cannot be written", p->tables);
  TRY(t.module ? emit_module_assembly(t.module, &assembly, &size) : NULL);
  return file_write(p->assembly, assembly, size);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fputs("usage: write_functions FUNCTIONS.s TABLES.c\n", stderr);
    return 2;
  }
  paths p = {arena_create(NULL), argv[1], argv[2]};
  status s = guard_run(write_all, &p);
  if (s) {
    fprintf(stderr, "write_functions: %s\n", status_message(s));
  }
  arena_destroy(p.arena);
  return s != NULL;
}
