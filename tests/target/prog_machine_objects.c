/* prog_machine_objects.c - for tests that run objects of other machines:
 *
 *   prog_machine_objects write TRIPLE CPU
 *     writes into the current folder, for each module of machine_modules.h, the object mNUMBER.o and its header;
 *     nets.c, a program that runs all objects; and `inputs`, which that program reads
 *   prog_machine_objects compare NAME...
 *     compares the file `outputs`, which that program has written, with the results of the reference evaluator;
 *     the names are those of the objects mNUMBER that were not run */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "base/file.h"
#include "hlo/text/text.h"
#include "tests/target/machine_modules.h"
#include "tests/target/text_case.h"

static arena *memory;

static status parse(arena *a, const machine_module *m, hlo_module **out, literal **inputs) {
  TRY(hlo_parse(a, m->text, strlen(m->text), NULL, out));
  *inputs = ARENA_NEW_N(a, literal, (*out)->entry->n_params + 1);
  case_inputs(a, *out, m->low, m->high, *inputs);
  return NULL;
}

/* --- writing --- */

typedef struct output {
  const machine *on;
  FILE *source, *inputs;
  const char *calls; /* the statements of main */
} output;

static status write_inputs(arena *a, const machine_module *m, const char *net, output *to) {
  hlo_module *module;
  literal *in;
  TRY(parse(a, m, &module, &in));
  uint32_t n = module->entry->n_params;
  for (uint32_t k = 0; k < n; k++) {
    fwrite(in[k].data, 1, (size_t)shape_bytes(&in[k].shape), to->inputs);
  }
  fprintf(to->source, "#include \"%s.h\"\n", net);
  to->calls =
      arena_printf(memory, "%s  run_%s(&all, %" PRIu32 ", %" PRIu32 ");\n", to->calls, net, n, module->entry->n_roots);
  return NULL;
}

static status write_module(arena *a, const machine_module *m, const char *net, output *to) {
  aot_files files;
  TRY(machine_object(a, m->text, to->on, net, &files));
  TRY(file_write(arena_printf(a, "%s.o", net), files.object.data, files.object.size));
  TRY(file_write(arena_printf(a, "%s.h", net), files.header, strlen(files.header)));
  return write_inputs(a, m, net, to);
}

static status write_all(void *data) {
  uint32_t n;
  const machine_module *modules = machine_modules(memory, &n);
  output to = {data, fopen("nets.c", "w"), fopen("inputs", "wb"), ""};
  CHECK_THAT(to.source && to.inputs, STATUS_INVALID_FILE, "the files cannot be written");
  for (uint32_t k = 0; k < n; k++) {
    arena *a = arena_create(NULL);
    TRY(status_prefix(write_module(a, &modules[k], arena_printf(a, "m%" PRIu32, k), &to), "%s", modules[k].name));
    arena_destroy(a);
  }
  fprintf(to.source, "#include \"run_nets.h\"\n");
  for (uint32_t k = 0; k < n; k++) {
    fprintf(to.source, "NET(m%" PRIu32 ")\n", k);
  }
  fprintf(to.source,
          "int main(int argc, char **argv) {\n  nets all = begin(argc, argv);\n%s  return fclose(all.out) != 0;\n}\n",
          to.calls);
  fclose(to.inputs);
  fclose(to.source);
  return NULL;
}

/* --- comparing --- */

/* Adds the number of results that differ to *different. */
static status compare_module(arena *a, const machine_module *m, FILE *outputs, int *different) {
  hlo_module *module;
  literal *in;
  TRY(parse(a, m, &module, &in));
  uint32_t n = module->entry->n_roots;
  literal *want = ARENA_NEW_N(a, literal, n);
  TRY(ref_eval_computation(module->entry, in, a, want));
  for (uint32_t k = 0; k < n; k++) {
    void *data;
    literal got = literal_new(a, want[k].shape, &data);
    size_t bytes = (size_t)shape_bytes(&got.shape);
    CHECK_THAT(fread(data, 1, bytes, outputs) == bytes, STATUS_INVALID_FILE, "the outputs end too early");
    const char *difference = case_difference(a, &want[k], &got, m->tolerance);
    if (difference) {
      printf("FAIL %s: result %" PRIu32 ", %s\n", m->name, k, difference);
      ++*different;
    }
  }
  return NULL;
}

typedef struct comparison {
  int different, n_left_out;
  char **left_out;
} comparison;

static bool is_left_out(const comparison *c, const char *net) {
  for (int k = 0; k < c->n_left_out; k++) {
    if (strcmp(c->left_out[k], net) == 0) {
      return true;
    }
  }
  return false;
}

static status compare_all(void *data) {
  uint32_t n;
  comparison *c = data;
  const machine_module *modules = machine_modules(memory, &n);
  FILE *outputs = fopen("outputs", "rb");
  CHECK_THAT(outputs, STATUS_INVALID_FILE, "there are no outputs");
  for (uint32_t k = 0; k < n; k++) {
    arena *a = arena_create(NULL);
    if (!is_left_out(c, arena_printf(a, "m%" PRIu32, k))) {
      TRY(status_prefix(compare_module(a, &modules[k], outputs, &c->different), "%s", modules[k].name));
    }
    arena_destroy(a);
  }
  CHECK_THAT(fgetc(outputs) == EOF, STATUS_INVALID_FILE, "there are more outputs than results");
  fclose(outputs);
  printf("%" PRIu32 " modules, %d of them left out; %d results differ\n", n, c->n_left_out, c->different);
  return NULL;
}

int main(int argc, char **argv) {
  bool writes = argc == 4 && strcmp(argv[1], "write") == 0;
  if (!writes && !(argc >= 2 && strcmp(argv[1], "compare") == 0)) {
    fprintf(stderr, "usage: prog_machine_objects write TRIPLE CPU, or prog_machine_objects compare NAME...\n");
    return 2;
  }
  memory = arena_create(NULL);
  comparison c = {0, argc - 2, argv + 2};
  machine on = writes ? (machine){argv[2], argv[3]} : (machine){NULL, NULL};
  status s = writes ? guard_run(write_all, &on) : guard_run(compare_all, &c);
  if (s) {
    printf("FAIL %s\n", status_message(s));
  }
  arena_destroy(memory);
  return s || c.different ? 1 : 0;
}
