/* ir.h - HLO: modules of computations of instructions over typed arrays.
 *
 * An instruction has any number of operands and of results.  A value is an instruction with the number of one of its
 * results; there is no tuple type.  A computation is a list of instructions in topological order.  Its parameters come
 * first and in order, and its roots are the values that it returns.  It is closed: its instructions use only values of
 * the computation itself.  Everything is on the module's arena; an instruction that is removed is unlinked, and its
 * memory is freed with the module.  Only one thread at a time may change a module. */
#ifndef HLO_IR_IR_H
#define HLO_IR_IR_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/tensor/literal.h"
#include "base/tensor/shape.h"

enum { HLO_TEXT_VERSION = 1 };
enum { HLO_ANY = -1 };

typedef enum hlo_op {
#define HLO(id, ...) HLO_##id,
#include "hlo/ir/ops.def"
#undef HLO
  HLO_OP_COUNT
} hlo_op;

typedef enum hlo_attr_id {
#define ATTR(id, ...) HLO_ATTR_##id,
#include "hlo/ir/attrs.def"
#undef ATTR
  HLO_ATTR_COUNT
} hlo_attr_id;

typedef enum hlo_attr_kind {
  HLO_KIND_INT,
  HLO_KIND_BOOL,
  HLO_KIND_STRING,
  HLO_KIND_INTS,
  HLO_KIND_DIMS,
  HLO_KIND_SIGNED_DIMS,
  HLO_KIND_FLOATS,
  HLO_KIND_LITERAL,
  HLO_KIND_COMPS,
  HLO_KIND_REDUCER,
  HLO_KIND_COMPARISON,
  HLO_KIND_ROUNDING,
  HLO_KIND_LAYOUT,
  HLO_KIND_ALGORITHM,
  HLO_KIND_FUSION
} hlo_attr_kind;

/* Values of the enumerated attribute kinds.  Their texts are in hlo/ir/op_table.c. */
typedef enum hlo_reducer { /* REPLACE is only for scatter */
                           HLO_REDUCE_ADD,
                           HLO_REDUCE_MUL,
                           HLO_REDUCE_MAX,
                           HLO_REDUCE_MIN,
                           HLO_REDUCE_AND,
                           HLO_REDUCE_OR,
                           HLO_REDUCE_XOR,
                           HLO_REDUCE_REPLACE
} hlo_reducer;
typedef enum hlo_comparison { HLO_EQ, HLO_NE, HLO_LT, HLO_LE, HLO_GT, HLO_GE } hlo_comparison;
/* The layout of a convolution's operand and result: [N, C, spatial...] or [N, spatial..., C].  The kernel is always [O,
 * I/groups, spatial...]. */
typedef enum hlo_layout { HLO_CHANNELS_FIRST, HLO_CHANNELS_LAST } hlo_layout;
/* The algorithm of random bits; see OPS.md. */
typedef enum hlo_algorithm { HLO_PHILOX, HLO_MT19937 } hlo_algorithm;
/* LOOP: elementwise operations and movement.  INPUT: reductions, and operations before and after them.  OUTPUT: a
 * contraction and its epilogue.  ATTENTION: see hlo/analysis/attention.h. */
typedef enum hlo_fusion_kind {
  HLO_FUSION_LOOP,
  HLO_FUSION_INPUT,
  HLO_FUSION_OUTPUT,
  HLO_FUSION_ATTENTION
} hlo_fusion_kind;

typedef enum hlo_kind {
  HLO_STRUCTURE,
  HLO_ELEMENTWISE,
  HLO_MOVEMENT,
  HLO_RANDOM,
  HLO_UPDATE,
  HLO_REDUCTION,
  HLO_WINDOW,
  HLO_SCAN,
  HLO_SORTING,
  HLO_CONTRACTION,
  HLO_CONTROL,
  HLO_SPECIAL
} hlo_kind;

enum hlo_flag { HLO_COMM = 1, HLO_DECL = 2, HLO_EXACT = 4, HLO_EFFECT = 8, HLO_RUN = 16 };

typedef struct hlo_instr hlo_instr;
typedef struct hlo_computation hlo_computation;
typedef struct hlo_module hlo_module;

typedef struct hlo_value {
  hlo_instr *def; /* NULL if there is no value */
  uint32_t index;
} hlo_value;

typedef struct hlo_attr {
  union {
    int64_t i; /* for kinds INT, BOOL and the enumerated ones */
    const char *s;
    struct {
      uint32_t n;
      const int64_t *ints;
    }; /* for kinds INTS, DIMS and SIGNED_DIMS */
    struct {
      uint32_t n_floats;
      const double *floats;
    }; /* for kind FLOATS */
    struct {
      uint32_t n_comps;
      hlo_computation **comps;
    };                    /* for kind COMPS */
    const literal *value; /* for kind LITERAL */
  };
} hlo_attr;

typedef struct hlo_op_info hlo_op_info;
typedef status hlo_shape_rule(const hlo_instr *i, dim_table *dims, shape *results);
struct hlo_op_info {
  const char *name;
  int min_operands, max_operands, n_results; /* HLO_ANY means any number */
  hlo_shape_rule *rule;
  hlo_kind kind;
  unsigned flags;
  uint32_t n_attrs;
  const hlo_attr_id *attrs;
};
const hlo_op_info *hlo_op_get_info(hlo_op op);
/* Returns HLO_OP_COUNT if there is no such operation. */
hlo_op hlo_op_from_name(const char *name, size_t length);
typedef struct hlo_attr_info {
  const char *name;
  hlo_attr_kind kind;
} hlo_attr_info;
const hlo_attr_info *hlo_attr_get_info(hlo_attr_id id);
/* Returns the text of value v of an enumerated kind, or NULL if v is out of range. */
const char *hlo_enum_name(hlo_attr_kind kind, int64_t v);
/* Returns the elementwise operation that combines two elements.  Must not be called for REPLACE. */
hlo_op hlo_reducer_op(hlo_reducer r);

typedef struct hlo_use {
  hlo_instr *user;
  uint32_t operand;
} hlo_use;

struct hlo_instr {
  hlo_op op;
  uint32_t id; /* its position in the list, set by hlo_number */
  uint32_t n_operands, n_results;
  hlo_value *operands;
  shape *shapes;   /* the shapes of the results */
  hlo_attr *attrs; /* in the order of the operation's row in ops.def */
  /* The ONNX nodes from which the instruction comes, such as "a: Conv + b: Relu", for messages and profiles; "" if
   * there are none. */
  const char *source;
  /* The algorithm that computes the instruction, with its parameters, such as "gemm:8x48".  Pass assign_kernels writes
   * it, in a form that its target defines; "" means that nothing is decided yet. */
  const char *config;
  hlo_computation *parent;
  hlo_instr *prev, *next;
  hlo_use *uses; /* the users of all results, in no order; uses as a root are not among them */
  uint32_t n_uses, cap_uses;
  /* In a scheduled computation, true if the instruction may run at the same time as the instruction before it
   * (lower/concurrent_groups.h). */
  bool concurrent;
};

struct hlo_computation {
  const char *name; /* unique in the module */
  hlo_module *module;
  hlo_instr *first, *last;
  uint32_t n_params, cap_params;
  hlo_instr **params;
  uint32_t n_roots;
  hlo_value *roots;
  uint32_t n_ids; /* set by hlo_number; all ids are less than this */
};

/* Says whether a root is the size of another root.  If `axis` is -1, it is an ordinary root.  Otherwise its value is
 * the size of root number `result` along dimension `axis`: the shape of that root has only an upper bound there, and
 * the value says how many of its elements along `axis`, from the first on, are defined.  Size roots come after all
 * ordinary ones. */
typedef struct hlo_size_of {
  uint32_t result;
  int axis;
} hlo_size_of;

/* Says that a root is the next value of a parameter of the same shape, as keys and values of past tokens are.  Whoever
 * runs the module may pass the same memory for both.  If `axis` is not negative, the shape has more room than the value
 * needs: only the first `length` elements along that axis are defined. */
typedef struct hlo_carried {
  int64_t parameter; /* -1 if the root is not carried */
  int axis;
  dim length;
} hlo_carried;

struct hlo_module {
  arena *arena;
  dim_table *dims;
  const char *name;
  uint32_t n_computations, cap_computations;
  hlo_computation **computations; /* after hlo_module_clean callees come before their callers; the entry is last */
  hlo_computation *entry;
  /* The names that the parameters and results of the entry have in the ONNX graph. */
  const char **param_names, **result_names;
  hlo_size_of *size_of; /* for each root of the entry; NULL means that every result has the size that its shape says */
  hlo_carried *carried; /* for each root of the entry; NULL if none is carried */
  /* True if the target's passes have run.  Compiling such a module runs only the last of them again, assign_kernels. */
  bool kernels_assigned;
  str_map names;      /* the names of all computations that were ever made */
  uint32_t next_name; /* the number that was last appended to a name to make it unique */
};

/* --- creating --- */

/* The module is destroyed with its arena. */
hlo_module *hlo_module_create(arena *a, const char *name);
/* The name is made unique.  The new computation is not the entry. */
hlo_computation *hlo_computation_create(hlo_module *m, const char *name);
/* Returns a copy of c in `to`.  If `to` is another module, the computations that c calls are copied, too; otherwise the
 * copy calls the same ones.  The elements of constants are shared in both cases, and must live as long as the copy. */
hlo_computation *hlo_computation_clone(hlo_module *to, const hlo_computation *c);
hlo_module *hlo_module_clone(arena *a, const hlo_module *m);
void hlo_set_roots(hlo_computation *c, uint32_t n, const hlo_value *roots);
hlo_instr *hlo_parameter(hlo_computation *c, shape s);
/* Adds a parameter with the shape of each of the n values, and sets out[] to them.  A value without def has none. */
void hlo_parameters_like(hlo_computation *c, uint32_t n, const hlo_value *like, hlo_value *out);
/* Removes parameter k, which must have no users.  The caller must also remove the corresponding operand of
 * each instruction that calls the computation. */
void hlo_remove_parameter(hlo_computation *c, uint32_t k);

/* Returns a new instruction before `before`, or at the end if that is NULL, with zeroed attributes and unset shapes.
 * Its operands must come before it.  Most code uses hlo/ir/builder.h instead. */
hlo_instr *hlo_instr_create(hlo_computation *c, hlo_instr *before, hlo_op op, uint32_t n_operands,
                            const hlo_value *operands, uint32_t n_results);
/* Returns a copy of `i` in computation `to` with other operands.  The computations that it calls are shared if `to`
 * belongs to the same module, otherwise they are cloned. */
hlo_instr *hlo_instr_clone(hlo_computation *to, hlo_instr *before, const hlo_instr *i, const hlo_value *operands);
/* Infers i->shapes by the operation's shape rule.  For operations whose result shapes are declared (DECL in ops.def),
 * i->shapes must be set before; the rule checks them. */
STATUS_MUST_USE status hlo_infer(hlo_instr *i);

/* --- changing --- */

static inline hlo_value hlo_result(hlo_instr *i, uint32_t index) { return (hlo_value){i, index}; }
static inline bool hlo_value_equal(hlo_value a, hlo_value b) { return a.def == b.def && a.index == b.index; }
void hlo_set_operand(hlo_instr *i, uint32_t k, hlo_value v);
/* Replaces all uses of `old`, as operand and as root, by `new_value`, which must be defined before every user. */
void hlo_replace(hlo_value old, hlo_value new_value);
/* The instruction must have no uses and be neither a root nor a parameter. */
void hlo_remove(hlo_instr *i);
void hlo_move_before(hlo_instr *i, hlo_instr *before);
/* Copies the body of `callee` before `before`, with its parameters replaced by `args`, and sets roots[] to the values
 * of its roots. */
void hlo_inline(hlo_instr *before, const hlo_computation *callee, const hlo_value *args, hlo_value *roots);

/* --- reading --- */

/* Returns the shape of v, never NULL.  The shape of an absent value (def is NULL) has type DTYPE_INVALID and rank 0. */
const shape *hlo_shape(hlo_value v);
static inline dtype hlo_type(hlo_value v) { return (dtype)hlo_shape(v)->type; }
static inline int hlo_rank(hlo_value v) { return hlo_shape(v)->rank; }
/* Returns the attribute, which the operation must have. */
hlo_attr *hlo_attr_of(const hlo_instr *i, hlo_attr_id id);
static inline int64_t hlo_int(const hlo_instr *i, hlo_attr_id id) { return hlo_attr_of(i, id)->i; }
static inline const int64_t *hlo_ints(const hlo_instr *i, hlo_attr_id id) { return hlo_attr_of(i, id)->ints; }
static inline uint32_t hlo_n_ints(const hlo_instr *i, hlo_attr_id id) { return hlo_attr_of(i, id)->n; }
/* Returns the first position of `number` in the list, or -1 if it is not there. */
int hlo_find_int(const hlo_instr *i, hlo_attr_id id, int64_t number);
static inline bool hlo_has_int(const hlo_instr *i, hlo_attr_id id, int64_t number) {
  return hlo_find_int(i, id, number) >= 0;
}
static inline hlo_computation *hlo_callee(const hlo_instr *i, uint32_t k) {
  return hlo_attr_of(i, HLO_ATTR_COMPUTATIONS)->comps[k];
}
/* Returns the number of called computations, which is 0 for operations that call none. */
uint32_t hlo_n_callees(const hlo_instr *i);
/* Returns the literal if v is a constant, otherwise NULL. */
const literal *hlo_literal(hlo_value v);
/* Returns how often the value is used, roots included. */
uint32_t hlo_value_uses(hlo_value v);
bool hlo_is_root(hlo_value v);
/* Numbers the instructions of the computation in list order, from 0. */
void hlo_number(hlo_computation *c);
/* Returns the number of boxes for which the result of i, a non-max-suppression, has room in each batch and class.  A
 * limit of UINT32_MAX means no limit: then there is room for all boxes. */
dim hlo_nms_room(const hlo_instr *i);
/* Returns true if both operands of i, a dot or convolution, are bytes (s8 or u8 each). */
static inline bool hlo_sums_bytes(const hlo_instr *i) {
  for (uint32_t k = 0; k < 2; k++) {
    dtype t = hlo_type(i->operands[k]);
    if (t != DTYPE_S8 && t != DTYPE_U8) {
      return false;
    }
  }
  return true;
}
/* Returns true if the operands of i, a dot or convolution, are so narrow that its sums are s32: both are bytes, or both
 * are s16.  Otherwise the sums have the operands' type. */
static inline bool hlo_widens_sums(const hlo_instr *i) {
  return hlo_sums_bytes(i) || (hlo_type(i->operands[0]) == DTYPE_S16 && hlo_type(i->operands[1]) == DTYPE_S16);
}
/* Returns true if i is a bitcast-convert that leaves the bytes in memory as they are. */
static inline bool hlo_is_bitcast_view(const hlo_instr *i) {
  return i->op == HLO_BITCAST && dtype_same_memory(hlo_type(i->operands[0]), (dtype)i->shapes[0].type);
}
static inline const hlo_op_info *hlo_info(const hlo_instr *i) { return hlo_op_get_info(i->op); }
static inline bool hlo_is_control(const hlo_instr *i) { return hlo_info(i)->kind == HLO_CONTROL; }
/* Returns the number of bytes of all results, whose shapes must be static. */
int64_t hlo_result_bytes(const hlo_instr *i);
/* Returns the number of bytes that all results have if each symbol has its hint as its value (base/dim/guard.h).  A
 * result whose size has no hint counts as 0 bytes.  Use it only for decisions that cannot make a result wrong. */
int64_t hlo_expected_bytes(const hlo_instr *i);
/* hlo_first_concurrent returns the first member of i's concurrent group, which is i itself if i is in no group.
 * hlo_next_concurrent returns the member that follows i, or NULL if there is none. */
static inline const hlo_instr *hlo_first_concurrent(const hlo_instr *i) {
  while (i->concurrent) {
    i = i->prev;
  }
  return i;
}
static inline const hlo_instr *hlo_next_concurrent(const hlo_instr *i) {
  return i->next && i->next->concurrent ? i->next : NULL;
}
/* Returns true if operation, attributes, shapes, config and the number of operands are equal.  The operands themselves
 * and the source are not compared. */
bool hlo_same_operation(const hlo_instr *a, const hlo_instr *b);
/* Returns a hash that is equal for instructions for which hlo_same_operation returns true.  Like the other hashes here,
 * it may differ from process to process. */
uint64_t hlo_operation_hash(const hlo_instr *i);
/* Returns a hash of h and the attributes of i. */
uint64_t hlo_attrs_hash(uint64_t h, const hlo_instr *i);
/* These return a hash of the operations, operands, shapes, attributes, configs and roots, and of the names of
 * computations.  Provenance and all other names do not count. */
uint64_t hlo_module_hash(const hlo_module *m);
uint64_t hlo_computation_hash(const hlo_computation *c);
/* Removes computations that nobody calls, and orders callees before callers. */
void hlo_module_clean(hlo_module *m);

#define HLO_FOR_EACH(i, c) for (hlo_instr *i = (c)->first, *i##_next; i && (i##_next = i->next, 1); i = i##_next)

#endif
