/* compile.c - LLVM modules: creating and destroying them, LLVM's passes, and code as objects or text. */
#include "emit/kernel/compile.h"

#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "base/headroom.h"
#include "emit/kernel/module.h"
#include "emit/llvm/metadata.h"
#include "emit/llvm/split_similar.h"
#include "emit/llvm/trampoline.h"

struct emit_module {
  emit_ir ir;
  emit_target target;
  LLVMTargetMachineRef machine;
  const char *error; /* the first error that LLVM reported */
  bool spent;
};

emit_ir *emit_module_ir_of(emit_module *m) { return &m->ir; }

/* Records the message of an error that LLVM reports.  After a failed instruction selection, LLVM's emission function
 * still returns success, so the recorded message is the only sign of the failure. */
static void complain(LLVMDiagnosticInfoRef info, void *data) {
  emit_module *m = data;
  if (LLVMGetDiagInfoSeverity(info) == LLVMDSError && !m->error) {
    char *text = LLVMGetDiagInfoDescription(info);
    m->error = arena_strdup(m->ir.arena, text);
    LLVMDisposeMessage(text);
  }
}

void emit_module_destroy(emit_module *m) {
  if (!m || !m->ir.context) {
    return;
  }
  if (m->ir.builder) {
    emit_ir_finish(&m->ir);
  }
  if (m->ir.module) {
    LLVMDisposeModule(m->ir.module);
  }
  if (m->machine) {
    LLVMDisposeTargetMachine(m->machine);
  }
  LLVMContextDispose(m->ir.context);
  m->ir.context = NULL;
}

static void destroy(void *m) { emit_module_destroy(m); }

static status fail(arena *a, const char *what, char *message) {
  const char *text = message ? arena_strdup(a, message) : "";
  LLVMDisposeMessage(message);
  return status_error(STATUS_INTERNAL, "LLVM: %s: %s", what, text);
}

status emit_module_create(arena *a, const emit_target *t, const char *name, emit_module **out) {
  TRY(headroom_check(HEADROOM_LIBRARY));
  emit_start_llvm();
  emit_module *m = ARENA_NEW(a, emit_module);
  m->target = *t;
  LLVMTargetRef target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(t->triple, &target, &message)) {
    return fail(a, t->triple, message);
  }
  arena_cleanup(a, destroy, m);
  m->ir.arena = a;
  m->ir.context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(m->ir.context, complain, m);
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext(name, m->ir.context);
  emit_ir_init(&m->ir, a, &m->target, m->ir.context, module);
  m->machine =
      LLVMCreateTargetMachine(target, t->triple, t->least, emit_target_llvm_features(a, t), LLVMCodeGenLevelDefault,
                              t->absolute ? LLVMRelocStatic : LLVMRelocPIC, LLVMCodeModelSmall);
  CHECK_THAT(m->machine, STATUS_INTERNAL, "LLVM has no code generator for %s", t->triple);
  LLVMSetTarget(module, t->triple);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(m->machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  *out = m;
  return NULL;
}

/* The emitters write code nearly as it should run.  The passes only compute once what several lanes or results have in
 * common, and hoist invariant code.  More passes (instcombine, simplifycfg, O2) make compiling slower and no kernel
 * faster. */
static const char passes[] = "function(early-cse,loop-mssa(licm))";

/* Keeps one of several equal functions, such as the epilogues of layers with equally many channels.  Of equal kernels,
 * one calls the other; this is not done for blocks of threads, since their kernels cannot be called.  The pass runs
 * before the other passes, which then have less to do. */
static const char merging_passes[] = "mergefunc";

/* Further passes for modules with coroutines (block_host.c): they split each function where its thread waits. */
static const char coroutine_passes[] = "coro-early,cgscc(coro-split),coro-cleanup,globaldce";

static const char tune_cpu[] = "tune-cpu";

static bool has_attribute(LLVMValueRef f, const char *name) {
  return LLVMGetStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, name, (unsigned)strlen(name));
}

static void add_flag(const emit_module *m, const char *name) {
  emit_add_attribute(&m->ir, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, name);
}

/* Gives the functions that have no target yet the attributes of the module's target.  Instructions are scheduled for
 * the target's CPU, but only the listed features are used.  If `features` is false, the features are not stated, so
 * that those of the module's target machine apply.  The functions are marked as throwing no exceptions, since on 32-bit
 * ARM the tables for unwinding would require a library. */
static void mark_functions(emit_module *m, bool features) {
  const char *text = features ? emit_target_llvm_features(m->ir.arena, &m->target) : "";
  for (LLVMValueRef f = LLVMGetFirstFunction(m->ir.module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f) || has_attribute(f, tune_cpu)) {
      continue;
    }
    m->ir.function = f;
    emit_add_text_attribute(&m->ir, tune_cpu, m->target.cpu);
    add_flag(m, "nounwind");
    if (m->target.small) {
      add_flag(m, "minsize");
      add_flag(m, "optsize");
    }
    if (*text && !has_attribute(f, EMIT_TARGET_FEATURES)) { /* unless emit_divide_plainly has stated them */
      emit_add_text_attribute(&m->ir, EMIT_TARGET_FEATURES, text);
    }
  }
}

const emit_target *emit_module_target(const emit_module *m) { return &m->target; }

void emit_module_set_target(emit_module *m, const emit_target *t) {
  mark_functions(m, true);
  m->target = *t;
}

void emit_module_export(emit_module *m, void (*tell)(void *data, const char *name), void *data) {
  for (LLVMValueRef f = LLVMGetFirstFunction(m->ir.module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    if (LLVMGetLinkage(f) == LLVMInternalLinkage) {
      LLVMSetLinkage(f, LLVMExternalLinkage);
      LLVMSetVisibility(f, LLVMHiddenVisibility);
      tell(data, LLVMGetValueName2(f, &length));
    }
  }
}

static status run_passes(emit_module *m, const char *names) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(m->ir.module, names, m->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (error) {
    char *text = LLVMGetErrorMessage(error);
    status s = status_error(STATUS_INTERNAL, "LLVM: passes: %s", text);
    LLVMDisposeErrorMessage(text);
    return s;
  }
  return NULL;
}

static status finish(emit_module *m) {
  CHECK_THAT(!m->spent, STATUS_INTERNAL, "the module is spent");
  m->spent = true;
  mark_functions(m, false); /* the target machine, m->machine, has the features */
  bool ranges = m->target.execution != EMIT_BLOCKS;
  bool runs_soon = ranges && m->target.functions; /* LLVM's time counts more than the code's */
  if (runs_soon) {
    emit_split_similar(&m->ir);
  }
  char *message = NULL;
  if (LLVMVerifyModule(m->ir.module, LLVMReturnStatusAction, &message)) {
    return fail(m->ir.arena, "a wrong module", message);
  }
  LLVMDisposeMessage(message);
  if (ranges) {
    TRY(run_passes(m, merging_passes));
  }
  if (runs_soon) {
    emit_write_trampolines(&m->ir);
  }
  TRY(run_passes(m, passes));
  return LLVMGetNamedFunction(m->ir.module, "llvm.coro.begin") ? run_passes(m, coroutine_passes) : NULL;
}

static status generate(emit_module *m, LLVMCodeGenFileType type, const char **bytes, size_t *size) {
  TRY(headroom_check(HEADROOM_LIBRARY));
  TRY(finish(m));
  LLVMMemoryBufferRef buffer = NULL;
  char *message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(m->machine, m->ir.module, type, &message, &buffer)) {
    return fail(m->ir.arena, "code generation", message);
  }
  *size = LLVMGetBufferSize(buffer);
  char *copy = arena_alloc_aligned(m->ir.arena, *size + 1, 64);
  memcpy(copy, LLVMGetBufferStart(buffer), *size);
  *bytes = copy;
  LLVMDisposeMemoryBuffer(buffer);
  CHECK_THAT(!m->error, STATUS_INTERNAL, "LLVM: %s", m->error);
  return NULL;
}

status emit_module_object(emit_module *m, const void **bytes, size_t *size) {
  const char *data = NULL;
  TRY(generate(m, LLVMObjectFile, &data, size));
  *bytes = data;
  return NULL;
}

status emit_module_assembly(emit_module *m, const char **text, size_t *size) {
  return generate(m, LLVMAssemblyFile, text, size);
}

static bool is_ptx(const emit_target *t) {
  static const char nvptx[] = "nvptx";
  return t->execution == EMIT_BLOCKS && strncmp(t->triple, nvptx, sizeof nvptx - 1) == 0;
}

status emit_module_code(emit_module *m, const void **bytes, size_t *size) {
  const char *text;
  if (!is_ptx(&m->target)) {
    return emit_module_object(m, bytes, size);
  }
  TRY(emit_module_assembly(m, &text, size));
  *bytes = text;
  ++*size;
  return NULL;
}

status emit_module_ir(emit_module *m, const char **text, size_t *size) {
  TRY(finish(m));
  char *printed = LLVMPrintModuleToString(m->ir.module);
  *text = arena_strdup(m->ir.arena, printed);
  *size = strlen(printed);
  LLVMDisposeMessage(printed);
  return NULL;
}
