/* ptx_internal.h - a module of PTX after parsing, and the parts of the interpreter. */
#ifndef TESTS_PTX_PTX_INTERNAL_H
#define TESTS_PTX_PTX_INTERNAL_H

#include "tests/ptx/ptx.h"

/* The operations. */
typedef enum ptx_op {
#define PTX_OP(name) PTX_##name,
#define PTX_SCALAR(name) PTX_##name,
#include "tests/ptx/ptx_ops.def"
  PTX_OPS
} ptx_op;

/* What the bits of a value stand for. */
typedef enum ptx_kind { PTX_BITS, PTX_UNSIGNED, PTX_SIGNED, PTX_FLOAT, PTX_BFLOAT, PTX_TF32, PTX_PRED } ptx_kind;

typedef struct ptx_type {
  ptx_kind kind;
  int bits;
} ptx_type;

typedef enum ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_PARAM, PTX_CONST } ptx_space;

/* What a name stands for. */
typedef enum ptx_place {
  PTX_NOWHERE,
  PTX_IN_FRAME,  /* `value` is an offset in the memory of the function's frame: parameters and local arrays */
  PTX_IN_SHARED, /* an offset in the block's shared memory */
  PTX_IN_MODULE  /* an address */
} ptx_place;

typedef struct ptx_operand {
  enum { PTX_REGISTER, PTX_NUMBER, PTX_SPECIAL, PTX_ADDRESS, PTX_LIST, PTX_CODE, PTX_NONE } kind;
  uint32_t reg;   /* of a register, and of an address if has_register */
  uint64_t value; /* a number's bits; which special register; what is added to an address; the instruction of a label */
  bool has_register, negated;
  ptx_place place; /* of the name in an address */
  uint32_t n;      /* of a list */
  struct ptx_operand *items;
  const char *name; /* of a label */
} ptx_operand;

/* The special registers. */
typedef enum ptx_special { PTX_TID, PTX_NTID, PTX_CTAID, PTX_NCTAID, PTX_LANEID, PTX_ZERO, PTX_ONE } ptx_special;

enum { PTX_MOST_OPERANDS = 6, PTX_MOST_MODIFIERS = 12 };

typedef struct ptx_instr {
  ptx_op op;
  ptx_type types[4]; /* the types in the name, in order */
  int n_types;
  ptx_space space;
  int vector;                                /* 1, 2 or 4 */
  const char *modifiers[PTX_MOST_MODIFIERS]; /* what else is in the name */
  int n_modifiers;
  int64_t guard; /* the register of the predicate, or -1 */
  bool guard_negated;
  ptx_operand operands[PTX_MOST_OPERANDS];
  int n;
  const struct ptx_function *callee;
  const char *text; /* for messages */
  int line;
} ptx_instr;

struct ptx_function {
  const char *name;
  bool is_entry;
  uint32_t n_registers;
  /* The memory of a frame: parameters, what is returned, arguments of calls, local arrays. */
  size_t frame_bytes, parameters[64], parameter_bytes[64], returned, returned_bytes;
  uint32_t n_parameters;
  ptx_instr *code;
  uint32_t n, capacity;
  const struct ptx_module *module;
};

/* An array of a module, with its contents. */
typedef struct ptx_array {
  uint64_t begin, end;
} ptx_array;

struct ptx_module {
  ptx_function **functions;
  uint32_t n, capacity;
  ptx_array *arrays;
  uint32_t n_arrays, arrays_capacity;
  size_t shared_bytes; /* of arrays with a size; the arrays whose size the launch gives begin behind them */
};

/* Returns true if the name of the instruction has this part. */
bool ptx_has(const ptx_instr *i, const char *modifier);

/* Returns the error that the interpreter does not know the instruction. */
STATUS_MUST_USE static inline status ptx_unknown(const ptx_instr *i) {
  return status_error(STATUS_UNSUPPORTED, "line %d of the PTX: the interpreter does not know %s", i->line, i->text);
}

/* The type that the instruction's operands and results have, unless it converts. */
static inline ptx_type ptx_type_of(const ptx_instr *i) { return i->types[0]; }

/* --- scalars (scalar.c) --- */

/* Computes one result from the bits of the operands.  Only for operations that ptx_ops.def calls scalar. */
STATUS_MUST_USE status ptx_scalar(const ptx_instr *i, const uint64_t *operands, uint64_t *result);

/* Conversions that more than one file needs. */
double ptx_to_double(ptx_type t, uint64_t bits);
float ptx_to_float(uint64_t bits);
uint64_t ptx_of_float(float x);
int64_t ptx_to_signed(int bits, uint64_t value);

/* --- what a warp does together (warp.c) --- */

enum { PTX_WARP = 32 };

/* The operands and the results of an instruction for each thread of a warp: operands[k][lane] and results[k][lane].
 * Each item of a list counts as an operand. */
typedef struct ptx_warp {
  uint64_t operands[32][PTX_WARP], results[8][PTX_WARP];
  uint32_t present; /* bit k is set if lane k executes the instruction */
  const uint8_t *shared;
  size_t shared_bytes;
} ptx_warp;

/* Computes the results of all lanes that are present. */
STATUS_MUST_USE status ptx_collective(const ptx_instr *i, ptx_warp *w);

#endif
