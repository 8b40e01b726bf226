/* entry.c - the weights, and the functions that all versions of an object have in common. */
#include "aot/host.h"

#include <inttypes.h>
#include <string.h>

#include "aot/cpu.h"
#include "aot/elf.h"
#include "base/hash.h"
#include "runtime/kernel_abi.h"
#include "runtime/program/object_info.h"

/* --- weights --- */

/* Writes the mark at the beginning of a file of weights, by which an object recognises its own file: RT_WEIGHTS_MARK
 * and a hash of all bytes after the mark. */
static void weights_mark(const aot_object *x, char *bytes) {
  uint64_t hash = hash_bytes(bytes + AOT_MARK_BYTES, x->weights_bytes - AOT_MARK_BYTES, 0);
  memcpy(bytes, RT_WEIGHTS_MARK, sizeof(uint64_t));
  memcpy(bytes + sizeof(uint64_t), &hash, sizeof hash);
}

/* Copies all weights to `bytes`, and zeros between them. */
static void copy_weights(const aot_object *x, char *bytes) {
  memset(bytes, 0, x->options->separate_weights ? AOT_MARK_BYTES : 0);
  for (uint32_t k = 0; k < x->n_constants; k++) {
    const aot_constant *c = &x->constants[k];
    memcpy(bytes + c->at, c->bytes.data, c->bytes.size);
    memset(bytes + c->at + c->bytes.size, 0, aot_pad(c->bytes.size) - c->bytes.size);
  }
}

static const char *weights_section(const aot_object *x) {
  return arena_printf(x->arena, ".rodata.%s_weights", x->options->prefix);
}

static uint32_t weights_align(const aot_object *x) {
  return x->weights_bytes < AOT_MANY_WEIGHTS ? RT_KERNEL_ALIGN : AOT_PAGE;
}

/* Returns true if the object is an ELF file.  Its weights are then put into it after LLVM has written it. */
static bool writes_elf(const aot_object *x) {
  static const char *const others[] = {"wasm", "apple", "darwin", "macos", "windows", "macho", "coff"};
  bool elf = true;
  for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
    elf = elf && !strstr(x->ir->target->triple, others[k]);
  }
  return elf;
}

/* Returns the weights as a constant of the module. */
static LLVMValueRef weights_constant(const aot_object *x) {
  char *bytes = arena_alloc_aligned(x->arena, x->weights_bytes + 1, RT_KERNEL_ALIGN);
  copy_weights(x, bytes);
  return LLVMConstStringInContext2(x->ir->context, bytes, x->weights_bytes, 1);
}

/* Completes the file of weights, or adds the weights to the module.  For an ELF file the module only gets a section for
 * them, which aot_fill_weights fills later; so LLVM must assume nothing about its contents. */
void aot_write_weights(aot_object *x) {
  if (x->options->separate_weights) {
    char *bytes = arena_alloc_aligned(x->arena, x->weights_bytes, RT_KERNEL_ALIGN);
    copy_weights(x, bytes);
    weights_mark(x, bytes);
    x->weights_data = (rt_span){bytes, x->weights_bytes};
    return;
  }
  LLVMValueRef data = writes_elf(x) ? LLVMConstNull(LLVMArrayType2(x->ir->i8, RT_KERNEL_ALIGN)) : weights_constant(x);
  x->weights = LLVMAddGlobal(x->ir->module, LLVMTypeOf(data), arena_printf(x->arena, "%s_weights", x->options->prefix));
  LLVMSetInitializer(x->weights, data);
  LLVMSetGlobalConstant(x->weights, 1);
  LLVMSetLinkage(x->weights, LLVMInternalLinkage);
  LLVMSetAlignment(x->weights, weights_align(x));
  if (writes_elf(x)) {
    LLVMSetExternallyInitialized(x->weights, 1);
    LLVMSetSection(x->weights, weights_section(x));
  }
}

status aot_fill_weights(const aot_object *x, rt_span *object) {
  char *bytes;
  if (!x->weights || !x->weights_bytes || !writes_elf(x)) {
    return NULL;
  }
  TRY(aot_elf_make_room(x->arena, *object, weights_section(x), x->weights_bytes, weights_align(x), object, &bytes));
  copy_weights(x, bytes);
  return NULL;
}

/* Writes code that returns an error if the weights are missing, not aligned, or those of another object. */
static void check_weights(const aot_host *h, LLVMValueRef weights) {
  aot_return_if(h, aot_is_unusable(h, weights, RT_KERNEL_ALIGN), aot_error_value(h, AOT_WRONG_MEMORY));
  for (uint32_t k = 0; k < AOT_MARK_WORDS && h->options->separate_weights; k++) {
    LLVMValueRef word = aot_load(h, h->ir->i64, aot_element(h, weights, aot_i64(h, k)));
    LLVMValueRef wanted = aot_i64(h, ((const int64_t *)h->object->weights_data.data)[k]);
    aot_return_if(h, aot_compare(h, LLVMIntNE, word, wanted), aot_error_value(h, AOT_WRONG_MEMORY));
  }
}

/* Writes code that sets WORD_VERSION to the last version that the processor can run, and returns an error if it can run
 * none.  checks[k] is the function that checks the processor for version k; NULL means that version k runs on every
 * processor. */
static void choose_version(aot_host *hosts, LLVMValueRef *checks) {
  const aot_host *h = &hosts[0];
  LLVMBuilderRef w = h->ir->builder;
  LLVMValueRef version = aot_i64(h, -1);
  for (uint32_t k = 0; k < h->object->n_versions; k++) {
    LLVMValueRef can = checks[k] ? aot_call(h, checks[k], 0, NULL) : LLVMConstInt(h->ir->i1, 1, 0);
    version = LLVMBuildSelect(w, can, aot_i64(h, k), version, "");
  }
  aot_return_if(h, aot_compare(h, LLVMIntSLT, version, aot_i64(h, 0)), aot_error_value(h, AOT_WRONG_CPU));
  aot_set(h, WORD_VERSION, version);
}

/* Writes int init(context, weights). */
static void write_init(aot_host *hosts) {
  aot_host *h = &hosts[0];
  const aot_object *x = h->object;
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->ptr};
  LLVMValueRef *checks = ARENA_NEW_N(h->arena, LLVMValueRef, x->n_versions);
  for (uint32_t k = 0; k < x->n_versions; k++) {
    checks[k] = aot_write_cpu_check(&hosts[k]);
  }
  (void)aot_function(h, AOT_GLOBAL, "init", h->ir->i32, 2, types);
  LLVMBuildMemSet(h->ir->builder, h->context, LLVMConstInt(h->ir->i8, 0, 0), aot_i64(h, (int64_t)x->n_words * 8), 8);
  choose_version(hosts, checks);
  LLVMValueRef weights = aot_param(h, 1);
  if (x->weights) {
    LLVMValueRef none = LLVMBuildIsNull(h->ir->builder, weights, "");
    weights = LLVMBuildSelect(h->ir->builder, none, x->weights, weights, "");
  }
  check_weights(h, weights);
  aot_set(h, WORD_WEIGHTS, weights);
  aot_set(h, WORD_STATE, aot_i64(h, AOT_INITIALISED));
  aot_return(h, AOT_OK);
}

/* --- settings --- */

/* Writes void set_parallel(context, function, user). */
static void write_set_parallel(aot_host *h) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->ptr, h->ir->ptr};
  (void)aot_function(h, AOT_GLOBAL, "set_parallel", LLVMVoidTypeInContext(h->ir->context), 3, types);
  aot_set(h, WORD_PARALLEL, aot_param(h, 1));
  aot_set(h, WORD_USER, aot_param(h, 2));
  LLVMBuildRetVoid(h->ir->builder);
}

/* Writes void set_seed(context, seed). */
static void write_set_seed(aot_host *h) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->i64};
  (void)aot_function(h, AOT_GLOBAL, "set_seed", LLVMVoidTypeInContext(h->ir->context), 2, types);
  aot_set(h, WORD_SEED, aot_param(h, 1));
  LLVMBuildRetVoid(h->ir->builder);
}

/* --- texts and tables --- */

/* Writes const char *error_text(code). */
static void write_error_text(aot_host *h) {
  static const char *const texts[AOT_FIRST_SITE] = {
      [AOT_OK] = "no error",
      [AOT_NOT_READY] = "the context is not initialised, not bound, or has not run",
      [AOT_WRONG_CPU] = "the processor lacks features that the code needs",
      [AOT_WRONG_SIZES] = "sizes are negative, too large, or not those of the model",
      [AOT_WRONG_MEMORY] =
          "the arena or the weights are missing or not aligned, or the weights are those of another object",
      [AOT_WRONG_VALUE] = "an input that decides sizes has other contents than the object is bound to",
      [AOT_NO_SUCH] = "there is no such input or output"};
  uint32_t n = AOT_FIRST_SITE + h->object->n_sites;
  LLVMValueRef *list = ARENA_NEW_N(h->arena, LLVMValueRef, n);
  for (uint32_t k = 0; k < n; k++) {
    list[k] = aot_text(h, k < AOT_FIRST_SITE ? texts[k] : h->object->sites[k - AOT_FIRST_SITE]);
  }
  LLVMValueRef table = aot_table(h, h->ir->ptr, n, list);
  (void)aot_function(h, AOT_GLOBAL, "error_text", h->ir->ptr, 1, &h->ir->i32);
  LLVMValueRef code = LLVMBuildZExt(h->ir->builder, aot_param(h, 0), h->ir->i64, "");
  aot_return_if(h, aot_compare(h, LLVMIntUGE, code, aot_i64(h, n)), aot_text(h, "unknown error"));
  LLVMValueRef at = LLVMBuildGEP2(h->ir->builder, h->ir->ptr, table, &code, 1, "");
  LLVMBuildRet(h->ir->builder, aot_load(h, h->ir->ptr, at));
}

/* Returns a line for each input or output. */
static const char *ports_text(arena *a, const aot_ports *ports) {
  const char *text = "";
  for (uint32_t k = 0; k < ports->n_named; k++) {
    text = arena_printf(a, "%s%s: %s %s\n", text, ports->word, aot_printable(a, ports->io[k].name),
                        aot_shape_text(a, ports, k));
  }
  return text;
}

/* Returns a line for each size that is open. */
static const char *dims_text(const aot_host *h) {
  const char *text = "";
  for (uint32_t k = 0; k < h->n_dims; k++) {
    text = arena_printf(h->arena, "%sopen size: dim_%s, %s\n", text, h->dims[k], h->dim_descriptions[k]);
  }
  return text;
}

static const char *info_text(const aot_host *hosts) {
  const aot_object *x = hosts[0].object;
  const char *targets = "";
  for (uint32_t k = 0; k < x->n_versions; k++) {
    targets = arena_printf(x->arena, "%starget: %s\n", targets, emit_target_text(x->arena, hosts[k].target));
  }
  const char *memory =
      aot_is_static(hosts) ? arena_printf(x->arena, "%" PRIu64 " bytes", x->arena_bytes) : "depends on sizes";
  return arena_printf(x->arena, "%smodel: %s\n%sprefix: %s\n%sweights: %" PRIu64 " bytes%s\narena: %s\n%s%s%s",
                      RT_OBJECT_MARK, aot_printable(x->arena, x->options->model), x->options->about, x->options->prefix,
                      targets, x->weights_bytes, x->options->separate_weights ? " in a file" : "", memory,
                      ports_text(x->arena, &hosts->inputs), ports_text(x->arena, &hosts->outputs), dims_text(hosts));
}

void aot_write_entries(aot_host *hosts) {
  aot_host *h = &hosts[0];
  write_init(hosts);
  write_set_parallel(h);
  write_set_seed(h);
  write_error_text(h);
  const char *info = info_text(hosts);
  aot_global(h, "info", LLVMConstStringInContext2(h->ir->context, info, strlen(info), 0));
}
