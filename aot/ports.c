/* ports.c - the functions of an object for its inputs and outputs, and the tables that describe them. */
#include <inttypes.h>

#include "aot/host.h"

/* --- functions --- */

/* Parameter 1 of the functions below is the number of a port. */
static LLVMValueRef number(const aot_host *h) { return LLVMBuildZExt(h->ir->builder, aot_param(h, 1), h->ir->i64, ""); }

static LLVMValueRef is_no_port(const aot_host *h, const aot_ports *ports) {
  return aot_compare(h, LLVMIntUGE, number(h), aot_i64(h, ports->n_named));
}

/* Returns an i1 that is true if the port of parameter 1 is carried from run to run, so that the caller must not give it
 * memory. */
static LLVMValueRef is_carried(const aot_host *h, const aot_ports *ports) {
  int64_t *carried = ARENA_NEW_N(h->arena, int64_t, ports->n_named + 1);
  for (uint32_t k = 0; k < ports->n_named; k++) {
    carried[k] = ports->storage[k] != AOT_PLAIN;
  }
  LLVMValueRef table = aot_numbers(h, ports->n_named + 1, carried);
  return aot_compare(h, LLVMIntNE, aot_load(h, h->ir->i64, aot_element(h, table, number(h))), aot_i64(h, 0));
}

/* Writes int set_input(context, k, memory), or set_output. */
static void write_set(aot_host *h, const aot_ports *ports) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->i32, h->ir->ptr};
  (void)aot_function(h, AOT_GLOBAL, arena_printf(h->arena, "set_%s", ports->word), h->ir->i32, 3, types);
  aot_return_if(h, is_no_port(h, ports), aot_error_value(h, AOT_NO_SUCH));
  if (h->options->n_carried) {
    aot_return_if(h, is_carried(h, ports), aot_error_value(h, AOT_NO_SUCH));
  }
  aot_store(h, aot_param(h, 2), aot_element(h, aot_word(h, ports->given), number(h)));
  aot_return(h, AOT_OK);
}

/* Writes void *input(context, k), or output: returns the memory that the caller gave, otherwise the port's own, or NULL
 * if there is none yet. */
static void write_get(aot_host *h, const aot_ports *ports) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->i32};
  LLVMValueRef none = LLVMConstNull(h->ir->ptr);
  (void)aot_function(h, AOT_VERSIONED, ports->word, h->ir->ptr, 2, types);
  aot_return_if(h, is_no_port(h, ports), none);
  LLVMValueRef given = aot_load(h, h->ir->ptr, aot_element(h, aot_word(h, ports->given), number(h)));
  aot_return_if(h, LLVMBuildIsNotNull(h->ir->builder, given, ""), given);
  aot_return_if(h, aot_compare(h, LLVMIntNE, aot_get(h, WORD_STATE), aot_i64(h, AOT_BOUND)), none);
  LLVMValueRef list = ports->at ? aot_numbers(h, ports->n, (const int64_t *)ports->at) : aot_word(h, ports->offsets);
  LLVMValueRef at = aot_load(h, h->ir->i64, aot_element(h, list, number(h)));
  LLVMBuildRet(h->ir->builder, aot_offset(h, aot_get_ptr(h, WORD_ARENA), at));
}

/* Writes code that returns an error if port k has a dimension that depends on data and that no run has computed yet. */
static void return_if_unknown(const aot_host *h, const aot_ports *ports, uint32_t k) {
  for (int d = 0; d < ports->io[k].shape.rank; d++) {
    uint32_t j = aot_size_output(ports, k, d);
    if (j) {
      LLVMValueRef none = LLVMBuildIsNull(h->ir->builder, aot_get_ptr(h, ports->used + j), "");
      aot_return_if(h, none, aot_error_value(h, AOT_NOT_READY));
    }
  }
}

/* Returns dimension d of port k as a caller sees it.  Of an array with room, a caller sees only the part that is
 * defined. */
static LLVMValueRef seen_dimension(const aot_host *h, const aot_ports *ports, uint32_t k, int d) {
  const rt_io *io = &ports->io[k];
  return io->has_room && io->axis == d ? aot_size(h, io->length) : aot_dimension(h, ports, k, d);
}

/* Writes int input_dims(context, k, dims), or output_dims. */
static void write_dims(aot_host *h, const aot_ports *ports) {
  const emit_ir *w = h->ir;
  LLVMTypeRef types[] = {w->ptr, w->i32, w->ptr};
  (void)aot_function(h, AOT_VERSIONED, arena_printf(h->arena, "%s_dims", ports->word), w->i32, 3, types);
  aot_return_if(h, aot_compare(h, LLVMIntNE, aot_get(h, WORD_STATE), aot_i64(h, AOT_BOUND)),
                aot_error_value(h, AOT_NOT_READY));
  LLVMBasicBlockRef other = emit_block(w, "other");
  LLVMValueRef choose = LLVMBuildSwitch(w->builder, aot_param(h, 1), other, ports->n_named);
  for (uint32_t k = 0; k < ports->n_named; k++) {
    LLVMBasicBlockRef block = emit_block(w, "port");
    LLVMAddCase(choose, LLVMConstInt(w->i32, k, 0), block);
    LLVMPositionBuilderAtEnd(w->builder, block);
    return_if_unknown(h, ports, k);
    for (int d = 0; d < ports->io[k].shape.rank; d++) {
      aot_store(h, seen_dimension(h, ports, k, d), aot_element(h, aot_param(h, 2), aot_i64(h, d)));
    }
    aot_return(h, AOT_OK);
  }
  LLVMPositionBuilderAtEnd(w->builder, other);
  aot_return(h, AOT_NO_SUCH);
}

/* --- tables --- */

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
  aot_global(h, arena_printf(h->arena, "%ss", ports->word), table);
}

void aot_write_ports(aot_host *h) {
  const aot_ports *const lists[] = {&h->inputs, &h->outputs};
  for (int k = 0; k < 2; k++) {
    write_get(h, lists[k]);
    write_dims(h, lists[k]);
  }
}

void aot_write_tables(aot_host *h) {
  const aot_ports *const lists[] = {&h->inputs, &h->outputs};
  for (int k = 0; k < 2; k++) {
    write_set(h, lists[k]);
    add_values(h, lists[k]);
  }
}

const char *aot_shape_text(arena *a, const aot_ports *ports, uint32_t k) {
  const rt_io *io = &ports->io[k];
  const char *text = arena_printf(a, "%s[", dtype_name((dtype)io->shape.type));
  for (int d = 0; d < io->shape.rank; d++) {
    bool open = aot_size_output(ports, k, d) || io->shape.dims[d] < 0;
    text = open ? arena_printf(a, "%s%s?", text, d ? "," : "")
                : arena_printf(a, "%s%s%" PRId64, text, d ? "," : "", io->shape.dims[d]);
  }
  return arena_printf(a, "%s]", text);
}
