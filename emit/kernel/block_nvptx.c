/* block_nvptx.c - threads and kernels of NVIDIA GPUs (block.h). */
#include <assert.h>
#include <string.h>

#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"

enum { GLOBAL_SPACE = 1, SHARED_SPACE = 3 }; /* NVPTX's address spaces */

static LLVMTypeRef nvptx_type(const emit_ir *ir) {
  LLVMTypeRef types[] = {ir->ptr, ir->ptr, ir->i64};
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, sizeof types / sizeof *types, false);
}

static LLVMValueRef call(const emit_ir *ir, const char *intrinsic, int n, LLVMValueRef *args) {
  unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
  assert(id);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, NULL, 0);
  return LLVMBuildCall2(ir->builder, LLVMGlobalGetValueType(f), f, args, (unsigned)n, "");
}

/* Returns the value of a special register, which has 32 bits and is not negative. */
static LLVMValueRef special_register(const emit_ir *ir, const char *intrinsic) {
  return LLVMBuildZExt(ir->builder, call(ir, intrinsic, 0, NULL), ir->i64, "");
}

static LLVMValueRef nvptx_thread(const emit_ir *ir) { return special_register(ir, "llvm.nvvm.read.ptx.sreg.tid.x"); }
static LLVMValueRef nvptx_block(const emit_ir *ir) { return special_register(ir, "llvm.nvvm.read.ptx.sreg.ctaid.x"); }
static LLVMValueRef nvptx_threads(const emit_ir *ir) { return special_register(ir, "llvm.nvvm.read.ptx.sreg.ntid.x"); }

/* --- what threads do together --- */

static void nvptx_barrier(const emit_ir *ir, uint32_t number) {
  (void)number;
  (void)call(ir, "llvm.nvvm.barrier0", 0, NULL);
}

/* All kernels of a module use the same symbol for shared memory, whose size each launch states. */
static LLVMValueRef nvptx_shared(const emit_ir *ir) {
  static const char name[] = "onnx_xla_shared";
  LLVMValueRef v = LLVMGetNamedGlobal(ir->module, name);
  if (!v) {
    v = LLVMAddGlobalInAddressSpace(ir->module, LLVMArrayType2(ir->i8, 0), name, SHARED_SPACE);
    LLVMSetAlignment(v, EMIT_SHARED_ALIGN);
  }
  return v;
}

static void nvptx_fence(const emit_ir *ir) { (void)call(ir, "llvm.nvvm.membar.gl", 0, NULL); }

/* Exchanges 32 bits among the lanes of a warp, all of which take part. */
static LLVMValueRef exchange_word(const emit_ir *ir, emit_lane_rule rule, LLVMValueRef x, unsigned n) {
  static const char *const names[] = {[EMIT_LANE_XOR] = "llvm.nvvm.shfl.sync.bfly.i32",
                                      [EMIT_LANE_UP] = "llvm.nvvm.shfl.sync.up.i32",
                                      [EMIT_LANE_DOWN] = "llvm.nvvm.shfl.sync.down.i32"};
  unsigned last = rule == EMIT_LANE_UP ? 0 : EMIT_WARP - 1; /* the outermost lane that can give a value */
  LLVMValueRef args[] = {LLVMConstAllOnes(ir->i32), x, LLVMConstInt(ir->i32, n, false),
                         LLVMConstInt(ir->i32, last, false)};
  return call(ir, names[rule], 4, args);
}

static LLVMValueRef nvptx_exchange(const emit_ir *ir, emit_lane_rule rule, LLVMValueRef x, unsigned n,
                                   uint32_t number) {
  (void)number;
  LLVMBuilderRef b = ir->builder;
  if (LLVMTypeOf(x) == ir->i32) {
    return exchange_word(ir, rule, x, n);
  }
  LLVMValueRef half = emit_i64(ir, 32), low = LLVMBuildTrunc(b, x, ir->i32, ""),
               high = LLVMBuildTrunc(b, LLVMBuildLShr(b, x, half, ""), ir->i32, "");
  low = LLVMBuildZExt(b, exchange_word(ir, rule, low, n), ir->i64, "");
  high = LLVMBuildZExt(b, exchange_word(ir, rule, high, n), ir->i64, "");
  return LLVMBuildOr(b, LLVMBuildShl(b, high, half, ""), low, "");
}

/* --- copies --- */

static LLVMValueRef in_space(const emit_ir *ir, LLVMValueRef address, unsigned space) {
  return LLVMBuildAddrSpaceCast(ir->builder, address, LLVMPointerTypeInContext(ir->context, space), "");
}

/* Copies of 16 bytes bypass the first-level cache (cg), since a block does not read again what it has copied. */
static void nvptx_copy(const emit_ir *ir, LLVMValueRef to, LLVMValueRef from, unsigned bytes, LLVMValueRef live) {
  const char *name = bytes == 4   ? "llvm.nvvm.cp.async.ca.shared.global.4.s"
                     : bytes == 8 ? "llvm.nvvm.cp.async.ca.shared.global.8.s"
                                  : "llvm.nvvm.cp.async.cg.shared.global.16.s";
  LLVMValueRef args[] = {in_space(ir, to, SHARED_SPACE), in_space(ir, from, GLOBAL_SPACE), live};
  (void)call(ir, name, 3, args);
}

static void nvptx_commit(const emit_ir *ir) { (void)call(ir, "llvm.nvvm.cp.async.commit.group", 0, NULL); }

static void nvptx_await(const emit_ir *ir, unsigned groups) {
  LLVMValueRef n = LLVMConstInt(ir->i32, groups, false);
  (void)call(ir, "llvm.nvvm.cp.async.wait.group", 1, &n);
}

/* --- products of matrices --- */

/* Returns the intrinsic that multiplies factors of these types. */
static const char *mma_intrinsic(dtype rows, dtype columns) {
  switch (rows) {
    case DTYPE_F16: return "llvm.nvvm.mma.m16n8k16.row.col.f32.f32";
    case DTYPE_BF16: return "llvm.nvvm.mma.m16n8k16.row.col.bf16";
    case DTYPE_F32: return "llvm.nvvm.mma.m16n8k8.row.col.tf32";
    case DTYPE_S8:
      return columns == DTYPE_S8 ? "llvm.nvvm.mma.m16n8k32.row.col.s8" : "llvm.nvvm.mma.m16n8k32.row.col.s8.u8";
    default: return columns == DTYPE_U8 ? "llvm.nvvm.mma.m16n8k32.row.col.u8" : "llvm.nvvm.mma.m16n8k32.row.col.u8.s8";
  }
}

static void nvptx_mma(const emit_ir *ir, dtype rows_type, dtype columns_type, const LLVMValueRef *rows,
                      const LLVMValueRef *columns, LLVMValueRef *sums, uint32_t number) {
  enum { ROWS = 4, COLUMNS = 2, SUMS = 4 };
  (void)number;
  LLVMTypeRef word = rows_type == DTYPE_F16 ? LLVMVectorType(ir->f16, 2) : ir->i32;
  LLVMValueRef args[ROWS + COLUMNS + SUMS];
  for (int k = 0; k < ROWS + COLUMNS; k++) {
    args[k] = LLVMBuildBitCast(ir->builder, k < ROWS ? rows[k] : columns[k - ROWS], word, "");
  }
  memcpy(args + ROWS + COLUMNS, sums, SUMS * sizeof *sums);
  LLVMValueRef all = call(ir, mma_intrinsic(rows_type, columns_type), ROWS + COLUMNS + SUMS, args);
  for (unsigned k = 0; k < SUMS; k++) {
    sums[k] = LLVMBuildExtractValue(ir->builder, all, k, "");
  }
}

/* The PTX instruction multiplies 8 rows, so two instructions multiply the 16 rows. */
static void nvptx_mma_f64(const emit_ir *ir, const LLVMValueRef *rows, LLVMValueRef column, LLVMValueRef *sums,
                          uint32_t number) {
  (void)number;
  for (int half = 0; half < 2; half++) {
    LLVMValueRef args[] = {rows[half], column, sums[2 * half], sums[2 * half + 1]};
    LLVMValueRef both = call(ir, "llvm.nvvm.mma.m8n8k4.row.col.f64", 4, args);
    sums[2 * half] = LLVMBuildExtractValue(ir->builder, both, 0, "");
    sums[2 * half + 1] = LLVMBuildExtractValue(ir->builder, both, 1, "");
  }
}

/* Loads four matrices of 8 times 8 factors of 16 bits.  Each lane passes the address of one line of a matrix, which has
 * 16 bytes: lanes 8 m to 8 m + 7 pass the addresses of the lines of matrix m.  The line begins at word number `word` of
 * line number `line` of the memory at `base`, whose lines are `pitch` words apart.  Sets words[4] to what the lane gets
 * of each matrix. */
static void load_matrices(const emit_ir *ir, const char *name, LLVMValueRef base, int64_t pitch, LLVMValueRef line,
                          LLVMValueRef word, LLVMValueRef *words) {
  enum { WORDS = 4 };
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef at = LLVMBuildAdd(b, LLVMBuildMul(b, line, emit_i64(ir, pitch), ""), word, "");
  LLVMValueRef address = LLVMBuildInBoundsGEP2(b, ir->i32, base, &at, 1, "");
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMTypeRef pointer = LLVMTypeOf(address);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, &pointer, 1);
  LLVMValueRef all = LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, &address, 1, "");
  for (unsigned k = 0; k < WORDS; k++) {
    words[k] = LLVMBuildExtractValue(b, all, k, "");
  }
}

/* Returns bit number `bit` of the lane's number, times n. */
static LLVMValueRef lane_bit(const emit_ir *ir, unsigned bit, int64_t n) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef shifted = LLVMBuildLShr(b, nvptx_thread(ir), emit_i64(ir, bit), "");
  return LLVMBuildMul(b, LLVMBuildAnd(b, shifted, emit_i64(ir, 1), ""), emit_i64(ir, n), "");
}

/* Loads as four matrices the first halves of rows 0 to 7 and of rows 8 to 15, then the second halves of the same rows.
 */
static void nvptx_load_fragment(const emit_ir *ir, LLVMValueRef base, int64_t pitch, LLVMValueRef *words) {
  LLVMValueRef row = LLVMBuildAnd(ir->builder, nvptx_thread(ir), emit_i64(ir, EMIT_MMA_ROWS - 1), "");
  load_matrices(ir, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16", base, pitch, row, lane_bit(ir, 4, 4), words);
}

/* Loads the same four matrices where each of them is transposed in memory. */
static void nvptx_load_fragment_across(const emit_ir *ir, LLVMValueRef base, int64_t pitch, LLVMValueRef *words) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef line = LLVMBuildAnd(b, nvptx_thread(ir), emit_i64(ir, 7), "");
  line = LLVMBuildAdd(b, line, lane_bit(ir, 4, 8), "");
  load_matrices(ir, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16", base, pitch, line, lane_bit(ir, 3, 4), words);
}

/* --- the function --- */

/* Declares that parameter k, a pointer, points to an array of n elements that is passed by value (LLVM's byval): the
 * array itself lies in the memory of the kernel's parameters. */
static void pass_array(const emit_ir *ir, unsigned k, LLVMTypeRef element, uint32_t n) {
  static const char by_value[] = "byval", align[] = "align";
  unsigned kinds[] = {LLVMGetEnumAttributeKindForName(by_value, sizeof by_value - 1),
                      LLVMGetEnumAttributeKindForName(align, sizeof align - 1)};
  LLVMTypeRef array = LLVMArrayType2(element, n);
  LLVMAddAttributeAtIndex(ir->function, k + 1, LLVMCreateTypeAttribute(ir->context, kinds[0], array));
  LLVMAddAttributeAtIndex(ir->function, k + 1, LLVMCreateEnumAttribute(ir->context, kinds[1], 8));
}

/* A block of at most this many threads can be launched, however many registers each thread has. */
enum { ANY_REGISTERS = 256 };

/* Tells ptxas the number of threads in a block, so that it gives no thread more registers than a block of that size can
 * have.  This is not done for small blocks, since ptxas would then spill registers in order that more blocks fit on a
 * processor at a time. */
static void require_threads(const emit_ir *ir, uint32_t threads) {
  static const char name[] = "reqntidx";
  LLVMMetadataRef parts[] = {LLVMValueAsMetadata(ir->function),
                             LLVMMDStringInContext2(ir->context, name, sizeof name - 1),
                             LLVMValueAsMetadata(LLVMConstInt(ir->i32, threads, false))};
  LLVMMetadataRef node = LLVMMDNodeInContext2(ir->context, parts, sizeof parts / sizeof *parts);
  LLVMAddNamedMetadataOperand(ir->module, "nvvm.annotations", LLVMMetadataAsValue(ir->context, node));
}

static void nvptx_end(const emit_ir *ir, const emit_kernel_info *info, uint32_t syncs) {
  enum { PTX_KERNEL = 71 }; /* LLVM's calling convention of functions that the driver launches */
  (void)syncs;
  LLVMSetFunctionCallConv(ir->function, PTX_KERNEL);
  pass_array(ir, EMIT_BUFFERS, ir->ptr, info->n_buffers);
  pass_array(ir, EMIT_ARGS, ir->i64, info->n_args ? info->n_args : 1); /* PTX has no parameters without bytes */
  if (info->threads > ANY_REGISTERS) {
    require_threads(ir, info->threads);
  }
}

const emit_block_ops emit_block_nvptx = {.type = nvptx_type,
                                         .thread = nvptx_thread,
                                         .block = nvptx_block,
                                         .threads = nvptx_threads,
                                         .barrier = nvptx_barrier,
                                         .shared = nvptx_shared,
                                         .fence = nvptx_fence,
                                         .exchange = nvptx_exchange,
                                         .mma = nvptx_mma,
                                         .mma_f64 = nvptx_mma_f64,
                                         .load_fragment = nvptx_load_fragment,
                                         .load_fragment_across = nvptx_load_fragment_across,
                                         .copy = nvptx_copy,
                                         .commit = nvptx_commit,
                                         .await = nvptx_await,
                                         .end = nvptx_end};
