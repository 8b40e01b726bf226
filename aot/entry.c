/* entry.c - the functions of an object besides bind and run, and its tables. */
#include "aot/host.h"

#include <inttypes.h>
#include <string.h>

#include "aot/cpu.h"
#include "runtime/kernel_abi.h"
#include "runtime/program/object_info.h"

/* --- weights --- */

/* Adds the weights to the module, as one array. */
void aot_write_weights(aot_host *h) {
  const rt_program *p = h->program;
  char *bytes = arena_alloc_aligned(h->arena, h->weights_bytes + 1, RT_KERNEL_ALIGN);
  memset(bytes, 0, h->weights_bytes);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    memcpy(bytes + h->constants[k], p->constants[k].data, p->constants[k].size);
  }
  h->weights_data = (rt_span){bytes, h->weights_bytes};
  if (h->options->separate_weights) {
    return;
  }
  LLVMValueRef data = LLVMConstStringInContext2(h->ir->context, bytes, h->weights_bytes, 1);
  h->weights = LLVMAddGlobal(h->ir->module, LLVMTypeOf(data), arena_printf(h->arena, "%s_weights", h->options->prefix));
  LLVMSetInitializer(h->weights, data);
  LLVMSetGlobalConstant(h->weights, 1);
  LLVMSetLinkage(h->weights, LLVMInternalLinkage);
  LLVMSetAlignment(h->weights, AOT_WEIGHTS_ALIGN);
}

/* Writes int init(context, weights). */
static void write_init(aot_host *h) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->ptr};
  LLVMValueRef check = aot_write_cpu_check(h), weights;
  (void)aot_function(h, true, "init", h->ir->i32, 2, types);
  LLVMBuildMemSet(h->ir->builder, h->context, LLVMConstInt(h->ir->i8, 0, 0), aot_i64(h, (int64_t)h->n_words * 8), 8);
  if (check) {
    LLVMValueRef bad = LLVMBuildNot(h->ir->builder, aot_call(h, check, 0, NULL), "");
    aot_return_if(h, bad, aot_error_value(h, AOT_WRONG_CPU));
  }
  weights = aot_param(h, 1);
  if (h->weights) {
    LLVMValueRef none = LLVMBuildIsNull(h->ir->builder, weights, "");
    weights = LLVMBuildSelect(h->ir->builder, none, h->weights, weights, "");
  }
  LLVMValueRef bits = LLVMBuildPtrToInt(h->ir->builder, weights, h->ir->i64, "");
  LLVMValueRef low = aot_binary(h, LLVMAnd, bits, aot_i64(h, RT_KERNEL_ALIGN - 1));
  LLVMValueRef odd = aot_compare(h, LLVMIntNE, low, aot_i64(h, 0));
  LLVMValueRef missing = LLVMBuildIsNull(h->ir->builder, weights, "");
  aot_return_if(h, LLVMBuildOr(h->ir->builder, odd, missing, ""), aot_error_value(h, AOT_WRONG_MEMORY));
  aot_set(h, WORD_WEIGHTS, weights);
  aot_set(h, WORD_STATE, aot_i64(h, AOT_INITIALISED));
  aot_return(h, AOT_OK);
}

/* --- inputs and outputs --- */

/* Parameter 1 of the functions below is the number of a port. */
static LLVMValueRef number(const aot_host *h) { return LLVMBuildZExt(h->ir->builder, aot_param(h, 1), h->ir->i64, ""); }

static LLVMValueRef is_no_port(const aot_host *h, const aot_ports *ports) {
  return aot_compare(h, LLVMIntUGE, number(h), aot_i64(h, ports->n_named));
}

/* Writes int set_input(context, k, memory). */
static void write_set(aot_host *h, const aot_ports *ports) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->i32, h->ir->ptr};
  (void)aot_function(h, true, arena_printf(h->arena, "set_%s", ports->word), h->ir->i32, 3, types);
  aot_return_if(h, is_no_port(h, ports), aot_error_value(h, AOT_NO_SUCH));
  aot_store(h, aot_param(h, 2), aot_element(h, aot_word(h, ports->given), number(h)));
  aot_return(h, AOT_OK);
}

/* Writes void *input(context, k): the memory that the caller gave, otherwise the port's own. */
static void write_get(aot_host *h, const aot_ports *ports) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->i32};
  LLVMValueRef none = LLVMConstNull(h->ir->ptr);
  (void)aot_function(h, true, ports->word, h->ir->ptr, 2, types);
  aot_return_if(h, is_no_port(h, ports), none);
  LLVMValueRef given = aot_load(h, h->ir->ptr, aot_element(h, aot_word(h, ports->given), number(h)));
  aot_return_if(h, LLVMBuildIsNotNull(h->ir->builder, given, ""), given);
  aot_return_if(h, aot_compare(h, LLVMIntNE, aot_get(h, WORD_STATE), aot_i64(h, AOT_BOUND)), none);
  LLVMValueRef list = ports->at ? aot_numbers(h, ports->n, (const int64_t *)ports->at) : aot_word(h, ports->offsets);
  LLVMValueRef at = aot_load(h, h->ir->i64, aot_element(h, list, number(h)));
  LLVMBuildRet(h->ir->builder, aot_offset(h, aot_get_ptr(h, WORD_ARENA), at));
}

/* Writes int input_dims(context, k, dims). */
static void write_dims(aot_host *h, const aot_ports *ports) {
  const emit_ir *w = h->ir;
  LLVMTypeRef types[] = {w->ptr, w->i32, w->ptr};
  (void)aot_function(h, true, arena_printf(h->arena, "%s_dims", ports->word), w->i32, 3, types);
  aot_return_if(h, aot_compare(h, LLVMIntNE, aot_get(h, WORD_STATE), aot_i64(h, AOT_BOUND)),
                aot_error_value(h, AOT_NOT_READY));
  LLVMBasicBlockRef other = emit_block(w, "other");
  LLVMValueRef choose = LLVMBuildSwitch(w->builder, aot_param(h, 1), other, ports->n_named);
  for (uint32_t k = 0; k < ports->n_named; k++) {
    LLVMBasicBlockRef block = emit_block(w, "port");
    LLVMAddCase(choose, LLVMConstInt(w->i32, k, 0), block);
    LLVMPositionBuilderAtEnd(w->builder, block);
    for (int d = 0; d < ports->io[k].shape.rank; d++) {
      aot_store(h, aot_dimension(h, ports, k, d), aot_element(h, aot_param(h, 2), aot_i64(h, d)));
    }
    aot_return(h, AOT_OK);
  }
  LLVMPositionBuilderAtEnd(w->builder, other);
  aot_return(h, AOT_NO_SUCH);
}

/* --- settings --- */

/* Writes void set_parallel(context, function, user). */
static void write_set_parallel(aot_host *h) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->ptr, h->ir->ptr};
  (void)aot_function(h, true, "set_parallel", LLVMVoidTypeInContext(h->ir->context), 3, types);
  aot_set(h, WORD_PARALLEL, aot_param(h, 1));
  aot_set(h, WORD_USER, aot_param(h, 2));
  LLVMBuildRetVoid(h->ir->builder);
}

/* Writes void set_seed(context, seed). */
static void write_set_seed(aot_host *h) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->i64};
  (void)aot_function(h, true, "set_seed", LLVMVoidTypeInContext(h->ir->context), 2, types);
  aot_set(h, WORD_SEED, aot_param(h, 1));
  LLVMBuildRetVoid(h->ir->builder);
}

/* --- texts and tables --- */

/* Writes const char *error_text(code). */
static void write_error_text(aot_host *h) {
  static const char *const texts[AOT_FIRST_SITE] = {
      [AOT_OK] = "no error",
      [AOT_NOT_READY] = "the context is not initialised, or not bound",
      [AOT_WRONG_CPU] = "the processor lacks features that the code needs",
      [AOT_WRONG_SIZES] = "sizes are negative, too large, or not those of the model",
      [AOT_WRONG_MEMORY] = "the arena or the weights are missing or not aligned",
      [AOT_WRONG_VALUE] = "an input that decides sizes has other contents than the object is bound to",
      [AOT_NO_SUCH] = "there is no such input or output"};
  uint32_t n = AOT_FIRST_SITE + h->n_sites;
  LLVMValueRef *list = ARENA_NEW_N(h->arena, LLVMValueRef, n);
  for (uint32_t k = 0; k < n; k++) {
    list[k] = aot_text(h, k < AOT_FIRST_SITE ? texts[k] : h->sites[k - AOT_FIRST_SITE].text);
  }
  LLVMValueRef table = aot_table(h, h->ir->ptr, n, list);
  (void)aot_function(h, true, "error_text", h->ir->ptr, 1, &h->ir->i32);
  LLVMValueRef code = LLVMBuildZExt(h->ir->builder, aot_param(h, 0), h->ir->i64, "");
  aot_return_if(h, aot_compare(h, LLVMIntUGE, code, aot_i64(h, n)), aot_text(h, "unknown error"));
  LLVMValueRef at = LLVMBuildGEP2(h->ir->builder, h->ir->ptr, table, &code, 1, "");
  LLVMBuildRet(h->ir->builder, aot_load(h, h->ir->ptr, at));
}

static void add_global(const aot_host *h, const char *name, LLVMValueRef value) {
  const char *symbol = arena_printf(h->arena, "%s_%s", h->options->prefix, name);
  LLVMValueRef g = LLVMAddGlobal(h->ir->module, LLVMTypeOf(value), symbol);
  LLVMSetInitializer(g, value);
  LLVMSetGlobalConstant(g, 1);
}

static LLVMValueRef number32(const aot_host *h, int64_t v) {
  return LLVMConstInt(h->ir->i32, (unsigned long long)v, 0);
}

/* Returns the description of a port, an onnx_xla_value of the header. */
static LLVMValueRef describe(const aot_host *h, const aot_ports *ports, uint32_t port, LLVMTypeRef type) {
  const rt_io *io = &ports->io[port];
  int64_t dims[SHAPE_MAX_RANK];
  dtype t = (dtype)io->shape.type;
  for (int k = 0; k < io->shape.rank; k++) {
    dims[k] = io->shape.dims[k] < 0 || aot_size_output(ports, port, k) ? -1 : io->shape.dims[k];
  }
  LLVMValueRef members[] = {aot_text(h, io->name),
                            aot_text(h, dtype_name(t)),
                            number32(h, dtype_get_info(t)->onnx),
                            number32(h, (int64_t)dtype_bytes(t)),
                            number32(h, io->shape.rank),
                            aot_numbers(h, (uint32_t)io->shape.rank, dims)};
  return LLVMConstNamedStruct(type, members, sizeof members / sizeof *members);
}

/* Adds the table of inputs or outputs, which has at least one row, since C has no empty arrays. */
static void add_values(const aot_host *h, const aot_ports *ports) {
  const emit_ir *w = h->ir;
  LLVMTypeRef members[] = {w->ptr, w->ptr, w->i32, w->i32, w->i32, w->ptr};
  LLVMTypeRef type = LLVMStructCreateNamed(w->context, "onnx_xla_value");
  LLVMStructSetBody(type, members, sizeof members / sizeof *members, 0);
  LLVMValueRef *rows = ARENA_NEW_N(h->arena, LLVMValueRef, ports->n_named + 1);
  rows[0] = LLVMConstNull(type);
  for (uint32_t k = 0; k < ports->n_named; k++) {
    rows[k] = describe(h, ports, k, type);
  }
  LLVMValueRef table = LLVMConstArray2(type, rows, ports->n_named ? ports->n_named : 1);
  add_global(h, arena_printf(h->arena, "%ss", ports->word), table);
}

static const char *info_text(const aot_host *h) {
  const char *arena_size = aot_is_static(h) ? arena_printf(h->arena, "%" PRIu64 " bytes", h->arena_bytes) : "by sizes";
  return arena_printf(h->arena, "%smodel: %s\n%sprefix: %s\ntarget: %s\nweights: %" PRIu64 " bytes%s\narena: %s\n",
                      RT_OBJECT_MARK, aot_printable(h->arena, h->options->model), h->options->about, h->options->prefix,
                      h->program->cpu, h->weights_bytes, h->options->separate_weights ? " in a file" : "", arena_size);
}

void aot_write_entries(aot_host *h) {
  const aot_ports *const lists[] = {&h->inputs, &h->outputs};
  write_init(h);
  for (int k = 0; k < 2; k++) {
    write_set(h, lists[k]);
    write_get(h, lists[k]);
    write_dims(h, lists[k]);
    add_values(h, lists[k]);
  }
  write_set_parallel(h);
  write_set_seed(h);
  write_error_text(h);
  const char *info = info_text(h);
  add_global(h, "info", LLVMConstStringInContext2(h->ir->context, info, strlen(info), 0));
}
