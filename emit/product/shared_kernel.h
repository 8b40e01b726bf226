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

/* The first entries of all records.  An entry has 8 bytes, also if it is a pointer of 4.  They are: the tables of
 * buffers and of arguments, what onnx_xla_expired takes, and memory on the stack (`room`).  The entries from
 * EMIT_RECORD_HEAD on belong to the shared function. */
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
/* Set an entry: to an i64 or pointer that is a constant, a number, a size, the address of a buffer. */
void emit_put(emit_shared_kernel *k, int entry, LLVMValueRef constant);
void emit_put_number(emit_shared_kernel *k, int entry, int64_t number);
void emit_put_size(emit_shared_kernel *k, int entry, dim size);
void emit_put_buffer(emit_shared_kernel *k, int entry, uint32_t buffer);
/* Writes the kernel's code.  `room` is the number of bytes of memory at EMIT_RECORD_ROOM. */
void emit_shared_kernel_write(const emit_shared_kernel *k, const emit_shared *steps, int64_t room);

/* The function that makes the record from a table and calls the steps. */
extern const emit_shared emit_run_table;

#endif
