/* split_similar.c - takes the constants out of similar functions; see split_similar.h.
 *
 * The values of a function (parameters, blocks, instructions) are numbered in order.  Functions are similar if their
 * instructions have equal opcodes and types, and if each operand is a value of the same number, the same constant, or a
 * constant that may differ.  An operand of the last kind is a hole.  Whether functions without their holes are in fact
 * equal need not be decided here, since mergefunc does. */
#include "emit/llvm/split_similar.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "emit/llvm/function.h"
#include "emit/llvm/trampoline.h"

/* A function of fewer than FEWEST_INSTRS instructions takes no longer to compile than one that calls another.  There
 * must be INSTRS_FOR_ARGUMENT instructions for each argument, since an argument takes an instruction itself, and
 * INSTRS_FOR_DIVISION for each division by a variable, which may take as long as that many instructions. */
enum {
  FEWEST_INSTRS = 16,
  INSTRS_FOR_ARGUMENT = 4,
  INSTRS_FOR_DIVISION = 25,
  MOST_ARGUMENTS = 32,
  MOST_PARAMETERS = 64
};

typedef struct numbered {
  LLVMValueRef value;
  uint32_t number;
} numbered;

typedef struct body {
  LLVMValueRef function;
  uint64_t hash; /* a hash of the opcodes, types and details (detail_of) */
  LLVMValueRef *instrs;
  numbered *values; /* sorted by address; NULL until numbers are needed */
  uint32_t n_instrs, n_values;
  uint32_t n_divisions;
  bool calls; /* whether it calls functions other than LLVM's intrinsics */
} body;

typedef struct hole {
  uint32_t instr, operand, argument;
} hole;

/* Similar functions.  Holes that have the same constants in each function are one argument, which is described by the
 * first of them. */
typedef struct group {
  body **members;
  hole *holes;
  uint32_t n_members, members_cap, n_holes, holes_cap;
  hole arguments[MOST_ARGUMENTS];
  uint32_t n_arguments;
} group;

/* --- reading functions --- */

static bool is_function(LLVMValueRef v) { return LLVMIsAFunction(v) && !LLVMGetIntrinsicID(v); }

static bool divides(LLVMValueRef i) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  return opcode == LLVMUDiv || opcode == LLVMURem || opcode == LLVMSDiv || opcode == LLVMSRem;
}

/* Returns a part of what mergefunc compares besides opcode, type and operands: the part that often differs. */
static uint64_t detail_of(LLVMValueRef i) {
  switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAlloca: return (uintptr_t)LLVMGetAllocatedType(i);
    case LLVMGetElementPtr: return (uintptr_t)LLVMGetGEPSourceElementType(i);
    case LLVMICmp: return (uint64_t)LLVMGetICmpPredicate(i);
    case LLVMFCmp: return (uint64_t)LLVMGetFCmpPredicate(i);
    default: return 0;
  }
}

static uint64_t hash_instr(uint64_t hash, LLVMValueRef i) {
  uint64_t facts[] = {(uint64_t)LLVMGetInstructionOpcode(i), (uint64_t)LLVMGetNumOperands(i), (uintptr_t)LLVMTypeOf(i),
                      detail_of(i)};
  hash = hash_bytes(facts, sizeof facts, hash);
  unsigned lanes = LLVMIsAShuffleVectorInst(i) ? LLVMGetNumMaskElements(i) : 0;
  for (unsigned k = 0; k < lanes; k++) {
    hash = hash_mix(hash, (uint64_t)LLVMGetMaskValue(i, k));
  }
  return hash;
}

static body read_body(arena *a, LLVMValueRef f) {
  body b = {.function = f, .hash = (uint64_t)(uintptr_t)LLVMGlobalGetValueType(f)};
  uint32_t cap = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
      b.hash = hash_instr(b.hash, i);
      b.calls |= LLVMIsACallInst(i) && is_function(LLVMGetCalledValue(i));
      b.n_divisions += divides(i);
      *ARENA_PUSH(a, b.instrs, b.n_instrs, cap) = i;
    }
  }
  return b;
}

static int by_address(const void *x, const void *y) {
  const numbered *a = x, *b = y;
  return (a->value > b->value) - (a->value < b->value);
}

static void add_value(body *b, LLVMValueRef v) {
  b->values[b->n_values] = (numbered){v, b->n_values};
  b->n_values++;
}

static void number_values(arena *a, body *b) {
  if (b->values) {
    return;
  }
  unsigned n_params = LLVMCountParams(b->function), n_blocks = LLVMCountBasicBlocks(b->function);
  b->values = ARENA_NEW_N(a, numbered, n_params + n_blocks + b->n_instrs);
  for (unsigned k = 0; k < n_params; k++) {
    add_value(b, LLVMGetParam(b->function, k));
  }
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(b->function); block; block = LLVMGetNextBasicBlock(block)) {
    add_value(b, LLVMBasicBlockAsValue(block));
  }
  for (uint32_t k = 0; k < b->n_instrs; k++) {
    add_value(b, b->instrs[k]);
  }
  qsort(b->values, b->n_values, sizeof *b->values, by_address);
}

/* Returns true if x and y are equal constants, or have the same number in their functions. */
static bool same_value(const body *a, LLVMValueRef x, const body *b, LLVMValueRef y) {
  if (x == y) {
    return true;
  }
  numbered *p = bsearch(&(numbered){x, 0}, a->values, a->n_values, sizeof *p, by_address);
  numbered *q = p ? bsearch(&(numbered){y, 0}, b->values, b->n_values, sizeof *q, by_address) : NULL;
  return q && p->number == q->number;
}

/* --- holes --- */

static bool is_number(LLVMValueRef v) { return LLVMIsAConstantInt(v) && LLVMGetIntTypeWidth(LLVMTypeOf(v)) == 64; }

/* Returns true if v is a constant float or vector of floats. */
static bool is_float(LLVMValueRef v) {
  LLVMTypeKind kind = LLVMGetTypeKind(emit_scalar_type(LLVMTypeOf(v)));
  return (kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind) &&
         (LLVMIsAConstantFP(v) || LLVMIsAConstantDataVector(v) || LLVMIsAConstantAggregateZero(v));
}

/* Returns true if v is a function like llvm.smin, for which a call with variables is as good as one with constants. */
static bool is_minimum(LLVMValueRef v) {
  static const char *const names[] = {"llvm.smin", "llvm.smax", "llvm.umin", "llvm.umax"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    if (LLVMIsAFunction(v) && LLVMGetIntrinsicID(v) == LLVMLookupIntrinsicID(names[k], strlen(names[k]))) {
      return true;
    }
  }
  return false;
}

/* Returns true if a variable may stand for x, an operand of instruction i of body b.  Divisions by constants are fast,
 * so they stay except in functions that leave most of their work to functions that they call, and in those that do much
 * else. */
static bool may_vary(const body *b, LLVMValueRef i, LLVMValueRef x) {
  if (is_float(x)) {
    return LLVMIsACallInst(i) || LLVMIsABinaryOperator(i) || LLVMIsAFCmpInst(i) || LLVMIsASelectInst(i);
  }
  if (!is_number(x) && !LLVMIsAGlobalVariable(x) && !is_function(x)) {
    return false;
  }
  if (divides(i)) {
    return b->calls || b->n_divisions * INSTRS_FOR_DIVISION <= b->n_instrs;
  }
  switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMAnd:
    case LLVMOr:
    case LLVMICmp:
    case LLVMSelect:
    case LLVMPHI:
    case LLVMGetElementPtr:
    case LLVMLoad:
    case LLVMStore: return true;
    case LLVMCall: return is_function(LLVMGetCalledValue(i)) || (is_number(x) && is_minimum(LLVMGetCalledValue(i)));
    default: return false;
  }
}

static bool same_kind(LLVMValueRef x, LLVMValueRef y) {
  return is_function(x) ? is_function(y) && LLVMGlobalGetValueType(x) == LLVMGlobalGetValueType(y)
         : is_float(x)  ? is_float(y) && LLVMTypeOf(x) == LLVMTypeOf(y)
                        : LLVMGetValueKind(x) == LLVMGetValueKind(y) && LLVMTypeOf(x) == LLVMTypeOf(y);
}

/* Returns true if i reserves a constant number of elements on the stack; similar functions may all reserve the most. */
static bool is_array_on_stack(LLVMValueRef i) { return LLVMIsAAllocaInst(i) && is_number(LLVMGetOperand(i, 0)); }

static bool similar_instrs(const body *a, LLVMValueRef i, const body *b, LLVMValueRef j) {
  int n = LLVMGetNumOperands(i);
  if (LLVMGetInstructionOpcode(i) != LLVMGetInstructionOpcode(j) || LLVMTypeOf(i) != LLVMTypeOf(j) ||
      n != LLVMGetNumOperands(j)) {
    return false;
  }
  for (int k = 0; k < n && !(is_array_on_stack(i) && is_array_on_stack(j)); k++) {
    LLVMValueRef x = LLVMGetOperand(i, (unsigned)k), y = LLVMGetOperand(j, (unsigned)k);
    if (!same_value(a, x, b, y) && !(may_vary(a, i, x) && may_vary(b, j, y) && same_kind(x, y))) {
      return false;
    }
  }
  return true;
}

static bool similar(arena *a, body *x, body *y) {
  if (x->hash != y->hash || x->n_instrs != y->n_instrs) {
    return false;
  }
  number_values(a, x);
  number_values(a, y);
  for (uint32_t k = 0; k < x->n_instrs; k++) {
    if (!similar_instrs(x, x->instrs[k], y, y->instrs[k])) {
      return false;
    }
  }
  return true;
}

static LLVMValueRef constant_in(const body *b, hole h) { return LLVMGetOperand(b->instrs[h.instr], h.operand); }

static bool differs(const group *g, hole x) {
  LLVMValueRef first = constant_in(g->members[0], x);
  bool differs = false;
  for (uint32_t m = 1; m < g->n_members && !differs; m++) {
    differs = constant_in(g->members[m], x) != first;
  }
  return differs && may_vary(g->members[0], g->members[0]->instrs[x.instr], first);
}

static bool same_constants(const group *g, hole x, hole y) {
  for (uint32_t m = 0; m < g->n_members; m++) {
    if (constant_in(g->members[m], x) != constant_in(g->members[m], y)) {
      return false;
    }
  }
  return true;
}

/* Finds the group's holes and arguments.  Returns false if there are too many arguments. */
static bool find_holes(arena *a, group *g) {
  const body *first = g->members[0];
  for (uint32_t i = 0; i < first->n_instrs; i++) {
    uint32_t n = (uint32_t)LLVMGetNumOperands(first->instrs[i]);
    for (hole h = {i, 0, 0}; h.operand < n; h.operand++) {
      if (!differs(g, h)) {
        continue;
      }
      for (h.argument = 0; h.argument < g->n_arguments; h.argument++) {
        if (same_constants(g, h, g->arguments[h.argument])) {
          break;
        }
      }
      if (h.argument == MOST_ARGUMENTS) {
        return false;
      }
      if (h.argument == g->n_arguments) {
        g->arguments[g->n_arguments++] = h;
      }
      *ARENA_PUSH(a, g->holes, g->n_holes, g->holes_cap) = h;
    }
  }
  return g->n_arguments * INSTRS_FOR_ARGUMENT <= first->n_instrs;
}

/* --- taking the constants out --- */

/* Makes the arrays on the stack of all members as large as the largest. */
static void reserve_most(const group *g) {
  for (uint32_t k = 0; k < g->members[0]->n_instrs; k++) {
    LLVMValueRef most = NULL;
    for (uint32_t m = 0; m < g->n_members && is_array_on_stack(g->members[m]->instrs[k]); m++) {
      LLVMValueRef n = LLVMGetOperand(g->members[m]->instrs[k], 0);
      most = most && LLVMConstIntGetZExtValue(most) >= LLVMConstIntGetZExtValue(n) ? most : n;
    }
    for (uint32_t m = 0; m < g->n_members && most; m++) {
      LLVMSetOperand(g->members[m]->instrs[k], 0, most);
    }
  }
}

/* Removes what loads state about the sizes of arrays (LLVM's "dereferenceable") where that differs among the members,
 * since mergefunc would then not merge them. */
static void forget_sizes(const emit_ir *w, const group *g) {
  static const char name[] = "dereferenceable";
  unsigned kind = LLVMGetMDKindIDInContext(w->context, name, sizeof name - 1);
  for (uint32_t k = 0; k < g->members[0]->n_instrs; k++) {
    LLVMValueRef first = g->members[0]->instrs[k];
    bool differs = false;
    if (LLVMGetInstructionOpcode(first) != LLVMLoad) {
      continue;
    }
    for (uint32_t m = 1; m < g->n_members; m++) {
      differs |= LLVMGetMetadata(g->members[m]->instrs[k], kind) != LLVMGetMetadata(first, kind);
    }
    for (uint32_t m = 0; m < g->n_members && differs; m++) {
      LLVMSetMetadata(g->members[m]->instrs[k], kind, NULL);
    }
  }
}

static void copy_attributes(const emit_ir *w, LLVMValueRef from, LLVMValueRef to) {
  unsigned n_params = LLVMCountParams(from);
  for (unsigned k = 0; k <= n_params + 1; k++) {
    LLVMAttributeIndex at = k <= n_params ? k : (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    unsigned n = LLVMGetAttributeCountAtIndex(from, at);
    LLVMAttributeRef *all = ARENA_NEW_N(w->arena, LLVMAttributeRef, n + 1);
    LLVMGetAttributesAtIndex(from, at, all);
    for (unsigned j = 0; j < n; j++) {
      LLVMAddAttributeAtIndex(to, at, all[j]);
    }
  }
}

/* Adds a function without code that takes the parameters of `from` and a pointer, its static chain (trampoline.h). */
static LLVMValueRef add_function(emit_ir *w, LLVMValueRef from, bool divides_by_variable) {
  LLVMTypeRef old = LLVMGlobalGetValueType(from), types[MOST_PARAMETERS + 1];
  unsigned n = LLVMCountParamTypes(old);
  LLVMGetParamTypes(old, types);
  types[n++] = w->ptr;
  LLVMValueRef f = emit_add_internal_function(w, "similar", LLVMFunctionType(LLVMGetReturnType(old), types, n, false));
  copy_attributes(w, from, f);
  emit_mark_static_chain(w, f);
  if (divides_by_variable) {
    w->function = f;
    emit_divide_plainly(w);
  }
  return f;
}

static void move_code(LLVMValueRef from, LLVMValueRef to) {
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(from); b; b = LLVMGetFirstBasicBlock(from)) {
    LLVMRemoveBasicBlockFromParent(b);
    LLVMAppendExistingBasicBlock(to, b);
  }
  for (unsigned k = 0; k < LLVMCountParams(from); k++) {
    LLVMReplaceAllUsesWith(LLVMGetParam(from, k), LLVMGetParam(to, k));
  }
}

/* Writes the code of `from`, which returns nothing: a call of `to`, with `constants` after the parameters of `from`. */
static void write_call(emit_ir *w, LLVMValueRef from, LLVMValueRef to, LLVMValueRef constants) {
  LLVMValueRef arguments[MOST_PARAMETERS + 1];
  unsigned n = LLVMCountParams(from);
  LLVMGetParams(from, arguments);
  arguments[n] = constants;
  w->function = from;
  LLVMPositionBuilderAtEnd(w->builder, emit_block(w, "entry"));
  LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(to), to, arguments, n + 1, "");
  LLVMBuildRetVoid(w->builder);
}

/* Moves the code of member m to a function that takes a record of the constants. */
static void take_constants_out(emit_ir *w, const group *g, const body *m) {
  LLVMValueRef constants[MOST_ARGUMENTS], values[MOST_ARGUMENTS];
  for (uint32_t k = 0; k < g->n_arguments; k++) {
    constants[k] = constant_in(m, g->arguments[k]);
  }
  LLVMValueRef record = LLVMConstStructInContext(w->context, constants, g->n_arguments, false);
  LLVMTypeRef type = LLVMTypeOf(record);
  bool divides_by_variable = false;
  for (uint32_t k = 0; k < g->n_holes; k++) {
    divides_by_variable |= divides(m->instrs[g->holes[k].instr]);
  }
  LLVMValueRef to = add_function(w, m->function, divides_by_variable),
               chain = LLVMGetParam(to, LLVMCountParams(m->function));
  move_code(m->function, to);
  LLVMPositionBuilderBefore(w->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(to)));
  for (uint32_t k = 0; k < g->n_arguments; k++) {
    LLVMValueRef at = LLVMBuildStructGEP2(w->builder, type, chain, k, "");
    values[k] = LLVMBuildLoad2(w->builder, LLVMTypeOf(constants[k]), at, "");
  }
  for (uint32_t k = 0; k < g->n_holes; k++) {
    LLVMSetOperand(m->instrs[g->holes[k].instr], g->holes[k].operand, values[g->holes[k].argument]);
  }
  write_call(w, m->function, to, emit_static_chain(emit_constant_data(w, record, "constants")));
}

/* --- groups --- */

static void split(emit_ir *w, group *g) {
  if (g->n_members > 1 && find_holes(w->arena, g) && g->n_holes) {
    forget_sizes(w, g);
    reserve_most(g);
    for (uint32_t m = 0; m < g->n_members; m++) {
      take_constants_out(w, g, g->members[m]);
    }
  }
}

static group *find_group(arena *a, group *groups, uint32_t n, body *b) {
  for (uint32_t k = 0; k < n; k++) {
    if (similar(a, groups[k].members[0], b)) {
      return &groups[k];
    }
  }
  return NULL;
}

static bool returns_nothing(LLVMValueRef f) {
  return LLVMGetTypeKind(LLVMGetReturnType(LLVMGlobalGetValueType(f))) == LLVMVoidTypeKind;
}

void emit_split_similar(emit_ir *w) {
  uint32_t n_groups = 0, cap = 0;
  group *groups = NULL;
  for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f) || LLVMCountParams(f) > MOST_PARAMETERS || !returns_nothing(f) || emit_only_calls(f)) {
      continue;
    }
    body *b = ARENA_NEW(w->arena, body);
    *b = read_body(w->arena, f);
    if (b->n_instrs < FEWEST_INSTRS) {
      continue;
    }
    group *g = find_group(w->arena, groups, n_groups, b);
    if (!g) {
      g = ARENA_PUSH(w->arena, groups, n_groups, cap);
      *g = (group){0};
    }
    *ARENA_PUSH(w->arena, g->members, g->n_members, g->members_cap) = b;
  }
  for (uint32_t k = 0; k < n_groups; k++) {
    split(w, &groups[k]);
  }
}
