/* shared_kernel.h - kernels that consist of a table, while their code is a shared function.
 *
 * At the beginning of a call, a record is made on the stack from the kernel's table: it has constants,
 * integer arguments of the call (sizes), and addresses of buffers.  The shared function
 *
 *     void steps(record, begin, end)
 *
 * then computes the steps [begin, end) of the grid.  If there is a precompiled function for it
 * (emit_target.functions), all that LLVM has to compile for such a kernel is its epilogue, whose address is in the
 * record. */
#ifndef EMIT_PRODUCT_SHARED_KERNEL_H
#define EMIT_PRODUCT_SHARED_KERNEL_H

#include "emit/kernel/writer.h"
#include "emit/llvm/function.h"

/* The entries with which all records begin.  Each entry has 8 bytes, even where pointers have 4.  The first entries are
 * the tables of buffers and of arguments, the argument of onnx_xla_expired (runtime/kernel_abi.h), and the address of
 * memory on the stack (`room`).  The entries from EMIT_RECORD_HEAD on belong to the shared function. */
enum { EMIT_RECORD_BUFFERS, EMIT_RECORD_ARGS, EMIT_RECORD_WATCH, EMIT_RECORD_ROOM, EMIT_RECORD_HEAD };

enum { EMIT_STEPS_RECORD, EMIT_STEPS_BEGIN, EMIT_STEPS_END, EMIT_STEPS_PARAMETERS };
#define EMIT_STEPS_TYPES "pii" /* emit_shared.parameters */

/* Writes the code of steps that are computed one after the other. */
void emit_write_steps(emit_ir *w, void (*write_step)(const emit_ir *w, LLVMValueRef record, LLVMValueRef step));

/* Entry number `entry` of a record is argument or buffer number `number` of the call. */
typedef struct emit_record_source {
  int entry;
  uint32_t number;
} emit_record_source;

typedef struct emit_shared_kernel {
  emit_writer *w;
  int n;                   /* the number of entries */
  LLVMValueRef *constants; /* an i64 or pointer for each entry; NULL means 0, or that a call sets the entry */
  emit_record_source *args, *buffers;
  uint32_t n_args, cap_args, n_buffers, cap_buffers;
} emit_shared_kernel;

/* Begins the record of a kernel whose function w is writing; it has n entries. */
void emit_shared_kernel_begin(emit_shared_kernel *k, emit_writer *w, int n);
/* Set an entry: the first to a constant that is an i64 or a pointer, the others to a number, to a size, and to the
 * address of a buffer of the kernel. */
void emit_put(emit_shared_kernel *k, int entry, LLVMValueRef constant);
void emit_put_number(emit_shared_kernel *k, int entry, int64_t number);
void emit_put_size(emit_shared_kernel *k, int entry, dim size);
void emit_put_buffer(emit_shared_kernel *k, int entry, uint32_t buffer);
/* Writes the kernel's code.  `room` is the number of bytes of memory at EMIT_RECORD_ROOM. */
void emit_shared_kernel_write(const emit_shared_kernel *k, const emit_shared *steps, int64_t room);

/* The function that makes the record from a table and calls the steps. */
extern const emit_shared emit_run_table;

#endif
