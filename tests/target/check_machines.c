/* check_machines.c - compiles modules that use every emitter for every CPU that the compiler knows: LLVM can select all
 * instructions, and the objects are for the right machine and call nothing but what kernel_externals.def and
 * compiler_calls.def list. */
#include <check.h>
#include <elf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit/llvm/cpus.h"
#include "emit/llvm/target.h"
#include "tests/suite.h"
#include "tests/target/machine_modules.h"
#include "tests/target/object_names.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* What the test knows of an architecture: `vector` is a part of an instruction that adds vectors of f32. */
typedef struct arch {
  const char *name, *triple;
  int elf;
  const char *vector;
} arch;

static const arch archs[] = {
    {"x86_64", "x86_64-linux-gnu", EM_X86_64, "addps"},
    {"aarch64", "aarch64-linux-gnu", EM_AARCH64, "fadd\tv"},
    {"armv7", "armv7-linux-gnueabihf", EM_ARM, "vadd.f32\tq"},
    {"thumbv6m", "thumbv6m-none-eabi", EM_ARM, NULL},
    {"thumbv7em", "thumbv7em-none-eabihf", EM_ARM, NULL},
    {"thumbv8.1m.main", "thumbv8.1m.main-none-eabihf", EM_ARM, NULL},
    {"riscv64", "riscv64-linux-gnu", EM_RISCV, "vfadd.vv"},
    {"riscv32", "riscv32-unknown-elf", EM_RISCV, NULL},
    {"wasm32", "wasm32-unknown-unknown", EM_NONE, "f32x4.add"},
};

static const arch *arch_of(const emit_cpu *c) {
  for (size_t k = 0; k < sizeof archs / sizeof *archs; k++) {
    if (strcmp(archs[k].name, c->arch) == 0) {
      return &archs[k];
    }
  }
  ck_abort_msg("the test has no triple for %s", c->arch);
  return NULL;
}

static emit_target target_of(const emit_cpu *c) {
  emit_target t;
  status s = emit_target_init(memory, arch_of(c)->triple, c->name, 0, &t);
  ck_assert_msg(!s, "%s", status_message(s));
  return t;
}

/* --- what an object may call --- */

typedef enum condition {
  ARM,
  ARM_NO_DIV,
  ARM_NO_F64,
  ARM_NO_F32,
  THUMB1,
  RV32,
  RV32_NO_F64,
  RV32_NO_F32,
  NO_F32
} condition;

static bool holds(condition c, const emit_cpu *cpu, const emit_target *t) {
  bool m = strncmp(cpu->arch, "thumb", 5) == 0, v6 = strcmp(cpu->arch, "thumbv6m") == 0,
       v7 = strcmp(cpu->arch, "armv7") == 0, rv32 = strcmp(cpu->arch, "riscv32") == 0;
  switch (c) {
    case ARM: return m || v7;
    case ARM_NO_DIV: return v6 || (v7 && !emit_has_feature(t->features, "hwdiv-arm"));
    case ARM_NO_F64: return m && !t->f64;
    case ARM_NO_F32: return m && !t->fma;
    case THUMB1: return v6;
    case RV32: return rv32;
    case RV32_NO_F64: return rv32 && !t->f64;
    case RV32_NO_F32: return rv32 && !t->fma;
    default: return (m || rv32) && !t->fma;
  }
}

static bool may_call(const char *name, const emit_cpu *cpu, const emit_target *t) {
  static const char *const everywhere[] = {
#define EXTERNAL(result, name, parameters) #name,
#include "runtime/kernel_externals.def"
#undef EXTERNAL
  };
  static const struct {
    const char *name;
    condition on;
  } somewhere[] = {
#define COMPILER_CALL(name, condition) {#name, condition},
#include "emit/llvm/compiler_calls.def"
#undef COMPILER_CALL
  };
  for (size_t k = 0; k < sizeof everywhere / sizeof *everywhere; k++) {
    if (strcmp(name, everywhere[k]) == 0) {
      return true;
    }
  }
  for (size_t k = 0; k < sizeof somewhere / sizeof *somewhere; k++) {
    if (strcmp(name, somewhere[k].name) == 0 && holds(somewhere[k].on, cpu, t)) {
      return true;
    }
  }
  return false;
}

typedef struct trial {
  const emit_cpu *cpu;
  const emit_target *target;
  const machine_module *module;
  arena *arena;
} trial;

static status try_module(void *data) {
  const trial *t = data;
  const arch *on = arch_of(t->cpu);
  aot_files files;
  TRY(machine_object(t->arena, t->module->text, &(machine){on->triple, t->cpu->name}, "net", &files));
  object_names o = object_names_of(t->arena, files.object);
  ck_assert_int_eq(o.machine, on->elf);
  for (uint32_t k = 0; k < o.n; k++) {
    ck_assert_msg(may_call(o.undefined[k], t->cpu, t->target), "%s, %s: %s calls %s", on->triple, t->cpu->name,
                  t->module->name, o.undefined[k]);
  }
  return NULL;
}

/* A third of the modules is compiled for each CPU, so each module is compiled for a third of the CPUs; make check-full
 * compiles all modules for all CPUs. */
START_TEST(objects) {
  const emit_cpu *c = &emit_cpus[_i];
  uint32_t every = getenv("ONNX_XLA_FULL") ? 1 : 3;
  emit_target target = target_of(c);
  uint32_t n;
  const machine_module *modules = machine_modules(memory, &n);
  for (uint32_t k = (uint32_t)_i % every; k < n; k += every) {
    trial t = {c, &target, &modules[k], arena_create(NULL)};
    status s = guard_run(try_module, &t);
    ck_assert_msg(!s, "%s, %s: %s: %s", target.triple, c->name, modules[k].name, status_message(s));
    arena_destroy(t.arena);
  }
}
END_TEST

/* --- targets --- */

/* The target of a named CPU is what its row says, whatever machine compiles. */
START_TEST(rows) {
  const emit_cpu *c = &emit_cpus[_i];
  emit_target t = target_of(c);
  ck_assert_str_eq(t.cpu, c->llvm);
  ck_assert_str_eq(t.features, c->features);
  ck_assert_int_eq(t.l2_bytes, c->l2_bytes);
  ck_assert_int_eq(t.pointer_bits, strstr(c->arch, "64") ? 64 : 32);
  ck_assert_int_eq(t.lanes, t.vector_bits ? t.vector_bits / 32 : 1);
  emit_target_make_small(&t);
  ck_assert(t.small && t.stack <= 1024);
}
END_TEST

static status add_vectors(void *data) {
  const emit_cpu *c = data;
  const char *text =
      "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%0: f32[4096] \"x\", %1: f32[4096] \"y\") {\n"
      "%2 = add(%0, %1) : f32[4096]\nreturn %2 \"z\"\n}\n}\n";
  const arch *on = arch_of(c);
  const char *assembly;
  TRY(machine_assembly(memory, text, &(machine){on->triple, c->name}, &assembly));
  bool vectors = on->vector && strstr(assembly, on->vector), expected = target_of(c).vector_bits != 0;
  ck_assert_msg(vectors == expected, "%s, %s:\n%s", on->triple, c->name, assembly);
  return NULL;
}

START_TEST(vectors) {
  status s = guard_run(add_vectors, (void *)&emit_cpus[_i]);
  ck_assert_msg(!s, "%s: %s", emit_cpus[_i].name, status_message(s));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("machines");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, rows, 0, (int)emit_n_cpus);
  tcase_add_loop_test(t, vectors, 0, (int)emit_n_cpus);
  tcase_add_loop_test(t, objects, 0, (int)emit_n_cpus);
  return run_suite("machines", t);
}
