/* host.h - the host program of an object while it is written: its context in the caller's memory, and short functions
 * that write LLVM IR.
 *
 * The context is an array of 64-bit words.  The object's header tells only how many these are.  A word has a pointer, a
 * size, or another number that a run needs.  What is known while compiling (all sizes of a program for one set of
 * sizes) is not in the context but in the code. */
#ifndef AOT_HOST_H
#define AOT_HOST_H

#include "aot/aot.h"
#include "aot/names.h"
#include "emit/llvm/ir.h"
#include "runtime/kernel_abi.h"
#include "runtime/program/sizes.h"

/* The errors that functions of an object return; those from AOT_FIRST_SITE on say which guard or which check failed. */
typedef enum aot_error {
  AOT_OK,
  AOT_NOT_READY,
  AOT_WRONG_CPU,
  AOT_WRONG_SIZES,
  AOT_WRONG_MEMORY,
  AOT_WRONG_VALUE,
  AOT_NO_SUCH,
  AOT_FIRST_SITE
} aot_error;

#define AOT_ROOM "capacity" /* the name of the dimension that says how large carried arrays may grow */
enum { AOT_LIKELY = 64 };   /* the size that the example takes for a symbolic dimension of which nothing is known */

/* A file of weights begins with a mark of the object to which it belongs: AOT_MARK_WORDS words, in a space of
 * AOT_MARK_BYTES bytes. */
enum { AOT_MARK_WORDS = 2, AOT_MARK_BYTES = 64 };

/* What the word WORD_STATE says. */
enum { AOT_INITIALISED = 1, AOT_BOUND };

/* The first words of the context.  The others are lists; aot_host has the index of the first word of each. */
enum {
  WORD_STATE,
  WORD_VERSION,
  WORD_ARENA,
  WORD_SCRATCH,    /* the address in the arena after the ports that are kept, where the intermediate values begin */
  WORD_KEPT_BYTES, /* the bytes of the ports that are kept */
  WORD_WEIGHTS,
  WORD_PARALLEL,
  WORD_USER,
  WORD_SEED,
  WORD_ARENA_BYTES,
  WORD_FIRST_LIST
};

/* Where the array of a port is.  A port's own memory is a part of the arena. */
typedef enum aot_storage {
  AOT_PLAIN,  /* in memory of the caller, or in the port's own */
  AOT_KEPT,   /* in the port's own memory, which keeps its contents from run to run: a state */
  AOT_SHARED, /* in the memory of an input that is kept */
  AOT_COPIED  /* in the port's own memory, from where it is copied to an input that is kept; only for outputs */
} aot_storage;

/* The inputs of a version, or its outputs.  The caller knows the first n_named.  The other inputs are elements of
 * inputs on which sizes depend (rt_io.told), and arrays with room (state.c); the other outputs are dimensions of
 * outputs.  A member whose comment begins with "words" is the index of the first word of a list in the context, which
 * has a word for each port. */
typedef struct aot_ports {
  const char *word; /* "input" or "output" */
  uint32_t n;
  uint32_t n_named;
  const rt_io *io;
  const char **names; /* C identifiers of the first n_named */
  aot_storage *storage;
  uint32_t *kept_in; /* for AOT_SHARED and AOT_COPIED: the number of the input that is kept */
  uint32_t given;    /* words: the caller's memory, or NULL */
  uint32_t used;     /* words: the memory that this run uses, which is aligned */
  uint32_t offsets;  /* words: where the port's own memory is in the arena, if sizes are symbolic */
  uint64_t *at;      /* where the port's own memory is in the arena, if all sizes are numbers; otherwise NULL */
} aot_ports;

/* An array of weights, and its offset in all weights. */
typedef struct aot_constant {
  rt_span bytes;
  uint64_t at;
} aot_constant;

/* What the versions of an object have in common. */
typedef struct aot_object {
  emit_ir *ir;
  arena *arena;
  const aot_options *options;
  uint32_t n_versions;
  const char *upper;  /* the prefix in capitals */
  const char **sites; /* guards and checks that may fail: the texts of errors from AOT_FIRST_SITE on */
  uint32_t n_sites, cap_sites;
  aot_constant *constants; /* each array of weights once */
  uint32_t n_constants, cap_constants;
  uint64_t weights_bytes;
  rt_span weights_data;
  LLVMValueRef weights; /* the weights in the object; NULL if they are separate */
  uint32_t n_words;     /* the words of a context: the most that a version needs */
  uint64_t arena_bytes; /* the most that a version needs if all sizes are numbers, otherwise 0 */
} aot_object;

/* A version while it is written. */
typedef struct aot_host {
  aot_object *object;
  emit_ir *ir;
  arena *arena;
  const rt_program *program;
  const emit_target *target;
  const aot_options *options;
  uint32_t version;
  aot_ports inputs, outputs;
  uint32_t sizes, slots, slot_bytes; /* words: the program's sizes, and the offsets and sizes of its slots */
  uint32_t kept_sizes; /* words: the symbolic sizes of the inputs that are kept, as the last bind that succeeded has set
                          them */
  uint32_t n_words;
  uint64_t *constants; /* where each constant is in the weights */
  uint64_t kept_bytes, arena_bytes;
  uint32_t n_dims; /* the number of symbolic dimensions, which are arguments of bind */
  const char **dims;
  const char **dim_descriptions; /* what each of them is, such as: dimension 0 of input 1 "x" */
  int64_t *likely_dims;          /* the sizes for which the example runs the model */
  uint32_t n_sequences;          /* how many functions of sequences have been begun; their names contain this number */
  uint32_t n_groups;             /* how many concurrent groups are around the sequence that is being written */
  LLVMValueRef context;          /* the context of the function that is being written */
  LLVMValueRef kernel_call;      /* the function that calls a kernel; NULL until it is written */
  LLVMValueRef kernel_buffers, kernel_args; /* tables in the stack frame of the sequence that is being written */
} aot_host;

/* Returns the bytes, rounded up to a multiple of the alignment of buffers. */
static inline uint64_t aot_pad(uint64_t bytes) {
  return (bytes + RT_KERNEL_ALIGN - 1) & ~(uint64_t)(RT_KERNEL_ALIGN - 1);
}

static inline bool aot_is_static(const aot_host *h) { return rt_program_is_static(h->program); }

/* --- functions --- */

/* Who calls a function. */
typedef enum aot_scope {
  AOT_INTERNAL,  /* only functions of the same version */
  AOT_VERSIONED, /* the caller's program; if there are several versions, it calls them through dispatch.c */
  AOT_GLOBAL     /* the caller's program */
} aot_scope;

/* Begins a function, which becomes the current one.  Its parameter 0, if there is one, is taken as the context
 * (aot_host.context). */
LLVMValueRef aot_function(aot_host *h, aot_scope scope, const char *name, LLVMTypeRef result, uint32_t n,
                          const LLVMTypeRef *parameters);
/* Returns the name that aot_function gives to a function. */
const char *aot_symbol(const aot_host *h, aot_scope scope, const char *name);
LLVMValueRef aot_param(const aot_host *h, uint32_t k);
LLVMValueRef aot_call(const aot_host *h, LLVMValueRef function, uint32_t n, LLVMValueRef *args);
/* Writes code that returns the number of an error (aot_error). */
void aot_return(const aot_host *h, int32_t error);
/* Writes code that returns `error`, a value of the function's result type, if `bad` is true.  What is written next is
 * executed if `bad` is false. */
void aot_return_if(const aot_host *h, LLVMValueRef bad, LLVMValueRef error);
/* Adds to the object an error for one guard or check, with this text, and returns the error's number (i32). */
LLVMValueRef aot_site_error(aot_host *h, const char *text);
/* Returns the number of an error as a constant (i32). */
LLVMValueRef aot_error_value(const aot_host *h, int32_t error);

/* --- values --- */

LLVMValueRef aot_i64(const aot_host *h, int64_t v);
/* Returns the address `bytes` bytes after `base`. */
LLVMValueRef aot_offset(const aot_host *h, LLVMValueRef base, LLVMValueRef bytes);
LLVMValueRef aot_binary(const aot_host *h, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef aot_compare(const aot_host *h, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b);
/* Writes code that computes aot_pad of x. */
LLVMValueRef aot_padded(const aot_host *h, LLVMValueRef x);
LLVMValueRef aot_load(const aot_host *h, LLVMTypeRef t, LLVMValueRef address);
void aot_store(const aot_host *h, LLVMValueRef v, LLVMValueRef address);
/* Returns element k of an array of integers or truth values of this type, as an i64. */
LLVMValueRef aot_load_integer(const aot_host *h, dtype type, LLVMValueRef array, LLVMValueRef k);
/* Returns an i1 that is true if the address is NULL or no multiple of `align`. */
LLVMValueRef aot_is_unusable(const aot_host *h, LLVMValueRef address, size_t align);
/* Returns the address of element k of an array of 64-bit words. */
LLVMValueRef aot_element(const aot_host *h, LLVMValueRef words, LLVMValueRef k);
/* Return the address of an internal constant with this content. */
LLVMValueRef aot_table(const aot_host *h, LLVMTypeRef t, uint32_t n, LLVMValueRef *values);
LLVMValueRef aot_numbers(const aot_host *h, uint32_t n, const int64_t *numbers);
LLVMValueRef aot_bytes(const aot_host *h, const void *bytes, size_t n);
LLVMValueRef aot_text(const aot_host *h, const char *text);
/* Adds the constant PREFIX_name, which the caller's program sees. */
void aot_global(const aot_host *h, const char *name, LLVMValueRef value);

/* --- the context --- */

LLVMValueRef aot_word(const aot_host *h, uint32_t word); /* returns the word's address */
LLVMValueRef aot_get(const aot_host *h, uint32_t word);
LLVMValueRef aot_get_ptr(const aot_host *h, uint32_t word);
void aot_set(const aot_host *h, uint32_t word, LLVMValueRef v);
/* Returns a size of the program, as a constant or from the context. */
LLVMValueRef aot_size(const aot_host *h, rt_size s);
/* Returns the size of a port's array in bytes.  A dimension that depends on data counts with its bound. */
LLVMValueRef aot_io_bytes(const aot_host *h, const rt_io *io);
/* If dimension d of output k depends on data, returns the number of the output that contains this dimension.  Otherwise
 * returns 0, which is never the number of such an output, since these come after all others. */
uint32_t aot_size_output(const aot_ports *ports, uint32_t k, int d);
/* Returns the type and the shape of port k, such as f32[?,576], with ? for what is not a number. */
const char *aot_shape_text(arena *a, const aot_ports *ports, uint32_t k);
/* Returns dimension d of port k.  If it depends on data, this is the number that the run has computed. */
LLVMValueRef aot_dimension(const aot_host *h, const aot_ports *ports, uint32_t k, int d);
/* Returns the address of a port's own memory. */
LLVMValueRef aot_own_memory(const aot_host *h, const aot_ports *ports, uint32_t k);
/* Returns the address of a buffer in this run. */
LLVMValueRef aot_address(const aot_host *h, const rt_buffer *b);

/* --- the parts of the host program --- */

/* state.c: which inputs and outputs are kept from run to run. */
STATUS_MUST_USE status aot_choose_storage(aot_host *h);
void aot_write_reset(aot_host *h);
/* room.c: fails if the arena is larger than the options allow. */
STATUS_MUST_USE status aot_check_room(const aot_host *h);
/* layout.c: the words of the context, and the function that binds it to sizes. */
void aot_lay_out_context(aot_host *h);
void aot_write_bind(aot_host *h);
/* thunks.c: sets *out to a function i32(context) that runs the sequence. */
STATUS_MUST_USE status aot_write_sequence(aot_host *h, const rt_sequence *s, LLVMValueRef *out);
/* run.c: the function that runs the program. */
STATUS_MUST_USE status aot_write_run(aot_host *h);
/* ports.c: the functions for inputs and outputs, and their tables. */
void aot_write_ports(aot_host *h);
void aot_write_tables(aot_host *h);
/* dispatch.c: the functions that call those of the version that the processor can run. */
void aot_write_dispatch(aot_host *hosts);
/* entry.c: the weights; the functions that all versions have in common. */
void aot_write_weights(aot_object *x);
/* Copies the weights into the object file that LLVM has written.  It does nothing if the weights are separate, or if
 * LLVM has written them, which it does for files other than ELF. */
STATUS_MUST_USE status aot_fill_weights(const aot_object *x, rt_span *object);
void aot_write_entries(aot_host *hosts);
/* header.c: returns the text of the C header. */
const char *aot_header(const aot_host *h);
/* example.c: a program that runs the object once, and the files that build it. */
void aot_write_example(const aot_host *h, aot_file out[AOT_EXAMPLE_FILES]);

#endif
