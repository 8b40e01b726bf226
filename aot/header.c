/* header.c - the C header of an object.  It is C99, and documents the functions for whoever calls them. */
#include "aot/host.h"
#include "aot/text.h"

#include <inttypes.h>

/* Returns C's type of the elements.  A type that C lacks becomes an integer type of the same size.  For a complex type
 * it is the type of the two parts. */
static const char *c_type(dtype t) {
  const dtype_info *info = dtype_get_info(t);
  static const char *const integers[][2] = {
      {"int8_t", "uint8_t"}, {"int16_t", "uint16_t"}, {"int32_t", "uint32_t"}, {"int64_t", "uint64_t"}};
  switch (t) {
    case DTYPE_F32: return "float";
    case DTYPE_F64: return "double";
    case DTYPE_C64: return "float";
    case DTYPE_C128: return "double";
    default: break;
  }
  int size = info->bytes == 1 ? 0 : info->bytes == 2 ? 1 : info->bytes == 4 ? 2 : 3;
  return integers[size][info->kind != DTYPE_CLASS_SIGNED];
}

/* Puts the symbolic dimensions as parameters of a function; `before` stands before the first one. */
static void put_dims(aot_lines *t, const char *before) {
  for (uint32_t k = 0; k < t->h->n_dims; k++) {
    aot_put(t, "%sint64_t dim_%s", k ? ", " : before, t->h->dims[k]);
  }
}

/* --- the parts --- */

static void put_beginning(aot_lines *t) {
  const aot_host *h = t->h;
  aot_put(
      t,
      "/* %s - runs the model %s, whose code is in the object beside this file.\n"
      " *\n"
      " * Written by onnx-xla compile.  The functions allocate nothing and keep no state but the context, so several\n"
      " * contexts may be used in several threads at once.  A context lies in the caller's memory and may be moved "
      "only\n"
      " * before %s_init.  Functions that return int return 0, or an error for which %s_error_text has a text.\n"
      " *\n"
      " *   static %s context;\n"
      " *   %s_init(&context, NULL);\n"
      " *   %s_bind(&context, memory%s);      memory: %s_arena_bytes(%s) bytes, aligned to %s_ALIGN\n"
      " *   fill the inputs, %s_run(&context), read the outputs\n"
      " */\n"
      "#ifndef %s_H\n#define %s_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
      aot_printable(h->arena, h->options->header), aot_printable(h->arena, h->options->model), h->options->prefix,
      h->options->prefix, h->options->prefix, h->options->prefix, h->options->prefix, h->n_dims ? ", sizes" : "",
      h->options->prefix, h->n_dims ? "sizes" : "", h->object->upper, h->options->prefix, h->object->upper,
      h->object->upper);
}

/* Puts the types that all headers of this kind have in common. */
static void put_common(aot_lines *t) {
  aot_put(t,
          "#ifndef ONNX_XLA_OBJECT\n"
          "#define ONNX_XLA_OBJECT 1\n"
          "/* An input or output: its name in the model; the name of its element type, the number that ONNX gives\n"
          " * the type, and the size of an element in bytes; the number of dimensions; and the dimensions, which are\n"
          " * -1 where they are open or depend on data. */\n"
          "typedef struct onnx_xla_value {\n"
          "  const char *name, *type;\n"
          "  int32_t onnx_type, element_bytes, rank;\n"
          "  const int64_t *dims;\n"
          "} onnx_xla_value;\n\n"
          "/* Calls body(data, begin, end) for parts of [0, n) that together are all of it, on any threads and in any\n"
          " * order, and returns when all calls have returned.  A part of less than `grain` is not worth a thread.\n"
          " * A body never calls such a function itself. */\n"
          "typedef void onnx_xla_parallel(void *user, int64_t n, int64_t grain,\n"
          "                               void (*body)(void *data, int64_t begin, int64_t end), void *data);\n"
          "#endif\n\n");
}

/* Puts the pool of threads, for programs that ask for it. */
static void put_pool(aot_lines *t) { aot_put_template(t, AOT_POOL, 0, NULL); }

static void put_context(aot_lines *t) {
  const aot_host *h = t->h;
  const char *p = h->options->prefix;
  aot_put(t, "enum { %s_ALIGN = 64, %s_INPUTS = %" PRIu32 ", %s_OUTPUTS = %" PRIu32 " };\n", h->object->upper,
          h->object->upper, h->inputs.n_named, h->object->upper, h->outputs.n_named);
  if (aot_is_static(h)) {
    aot_put(t, "#define %s_ARENA_BYTES ((size_t)%" PRIu64 "u)\n", h->object->upper, h->object->arena_bytes);
  }
  aot_put(t, "/* The context.  Only the functions below know what is in it. */\n");
  aot_put(t, "typedef struct %s {\n  uint64_t words[%" PRIu32 "];\n} %s;\n\n", p, h->object->n_words, p);
}

static void put_errors(aot_lines *t) {
  static const char *const names[AOT_FIRST_SITE] = {"OK",           "ERROR_NOT_READY", "ERROR_CPU",    "ERROR_SIZES",
                                                    "ERROR_MEMORY", "ERROR_VALUE",     "ERROR_NO_SUCH"};
  aot_put(t, "/* Errors; other numbers say which size or which index the model cannot take. */\nenum {\n");
  for (int k = 0; k < AOT_FIRST_SITE; k++) {
    aot_put(t, "  %s_%s = %d%s\n", t->h->object->upper, names[k], k, k + 1 < AOT_FIRST_SITE ? "," : "");
  }
  aot_put(t, "};\n");
  aot_put(t, "/* Returns a text in static memory. */\nconst char *%s_error_text(int error);\n\n",
          t->h->options->prefix);
}

/* Puts a comment that says what the symbolic dimensions are. */
static void put_open_sizes(aot_lines *t) {
  const aot_host *h = t->h;
  aot_put(t, h->n_dims ? "/* The sizes that are open:\n" : "");
  for (uint32_t k = 0; k < h->n_dims; k++) {
    aot_put(t, " * dim_%s: %s\n", h->dims[k], h->dim_descriptions[k]);
  }
  aot_put(t, h->n_dims ? " */\n" : "");
}

static void put_functions(aot_lines *t) {
  const aot_host *h = t->h;
  const char *p = h->options->prefix;
  aot_put(t, "/* Begins the use of a context.  `weights` is %s, aligned to 64 bytes. */\n",
          h->object->weights ? "NULL for the weights in the object, or a copy of them"
                             : "the contents of the file of weights");
  aot_put(t, "int %s_init(%s *n, const void *weights);\n", p, p);
  put_open_sizes(t);
  aot_put(t, "/* Returns the bytes of memory that a context needs%s. */\n",
          h->n_dims ? " for these sizes; 0 if the model cannot take them" : "");
  aot_put(t, "uint64_t %s_arena_bytes(", p);
  put_dims(t, "");
  aot_put(t, "%s);\n", h->n_dims ? "" : "void");
  aot_put(t,
          "/* Gives the context its memory, aligned to %s_ALIGN%s.  It may be called again.  Inputs and outputs for\n"
          " * which the caller gives no memory lie in it. */\n",
          h->object->upper, h->n_dims ? ", and the sizes of the inputs" : "");
  aot_put(t, "int %s_bind(%s *n, void *arena", p, p);
  put_dims(t, ", ");
  aot_put(t, ");\n");
  aot_put(t, "/* Computes the outputs from the inputs. */\nint %s_run(%s *n);\n", p, p);
  if (h->options->n_carried) {
    aot_put(
        t,
        "/* Sets what is carried from run to run to zeros, as it is after the first bind, and after a bind with other\n"
        " * memory, or with other sizes of what is carried. */\nint %s_reset(%s *n);\n",
        p, p);
  }
  aot_put(t,
          "/* Lets runs use threads: they call parallel(user, ...).  With NULL they use only the caller's thread.  If\n"
          " * ONNX_XLA_POOL is defined before this header is included, the header has a pool of threads. */\n"
          "void %s_set_parallel(%s *n, onnx_xla_parallel *parallel, void *user);\n",
          p, p);
  aot_put(t,
          "/* Sets the seed of random operators, which is 0 at first. */\nvoid %s_set_seed(%s *n, uint64_t seed);\n\n",
          p, p);
}

static void put_generic(aot_lines *t) {
  const char *p = t->h->options->prefix;
  aot_put(
      t,
      "/* The inputs and outputs by their numbers.  %s_set_input lets runs read memory of the caller, and\n"
      " * %s_set_output lets them write to it.  Memory whose elements are not aligned is copied; NULL means memory\n"
      " * in the arena.  %s_input and %s_output return the memory in use.  An output may begin exactly where an\n"
      " * input does; if it cannot be computed there, it is copied there after the run.  Otherwise the memory of\n"
      " * an output must not overlap that of another input or output.  %s_output_dims returns dimensions that\n"
      " * depend on data only after a run%s. */\n",
      p, p, p, p, p,
      t->h->options->n_carried ? "; of an output that is carried and grows, it returns the rows that are defined" : "");
  aot_put(t, "extern const onnx_xla_value %s_inputs[], %s_outputs[];\n", p, p);
  aot_put(t, "int %s_set_input(%s *n, uint32_t k, const void *memory);\n", p, p);
  aot_put(t, "int %s_set_output(%s *n, uint32_t k, void *memory);\n", p, p);
  aot_put(t, "void *%s_input(%s *n, uint32_t k);\nvoid *%s_output(%s *n, uint32_t k);\n", p, p, p, p);
  aot_put(t, "int %s_input_dims(const %s *n, uint32_t k, int64_t *dims);\n", p, p);
  aot_put(t, "int %s_output_dims(const %s *n, uint32_t k, int64_t *dims);\n", p, p);
  aot_put(t, "/* Says what the object was compiled from, and for which processor. */\nextern const char %s_info[];\n\n",
          p);
}

/* Defines macros for those numbers of a port's shape that are constants: its dimensions, and its number of elements,
 * which is the largest possible one if dimensions depend on data. */
static void put_constants(aot_lines *t, const char *name, const aot_ports *ports, uint32_t port) {
  const shape *s = &ports->io[port].shape;
  if (shape_is_static(s)) {
    aot_put(t, "#define %s_ELEMENTS ((size_t)%" PRId64 ")\n", name, shape_elements(s));
  }
  for (int k = 0; k < s->rank; k++) {
    if (s->dims[k] >= 0 && !aot_size_output(ports, port, k)) {
      aot_put(t, "#define %s_DIM%d ((size_t)%" PRId64 ")\n", name, k, s->dims[k]);
    }
  }
}

/* Says that a run takes only the contents for which the input's elements decided sizes: those of the whole input, or of
 * single elements (rt_io.told). */
static void put_contents(aot_lines *t, uint32_t port) {
  const aot_ports *inputs = &t->h->inputs;
  const rt_io *io = &inputs->io[port];
  enum { MOST_SHOWN = 8 };
  int64_t n = io->value ? shape_elements(&io->shape) : 0;
  literal value = literal_make(io->shape, io->value);
  if (n > MOST_SHOWN || (n > 0 && !dtype_is_int((dtype)io->shape.type))) {
    aot_put(t, ";\n * a run takes only the contents for which the object was compiled");
    return;
  }
  for (int64_t k = 0; k < n; k++) {
    aot_put(t, ";\n * element %" PRId64 " must be %" PRId64, k, literal_i64(&value, k));
  }
  for (uint32_t k = inputs->n_named; k < inputs->n; k++) {
    const rt_io *told = &inputs->io[k];
    if (told->told == port + 1 && told->shape.dims[0] >= 0) {
      aot_put(t, ";\n * element %" PRIu32 " must be %" PRId64, told->element, told->shape.dims[0]);
    }
  }
}

/* Puts a comment that describes a port. */
static void put_description(aot_lines *t, const aot_ports *ports, uint32_t port) {
  aot_put(t, "/* %s \"%s\": ", ports->word, aot_printable(t->h->arena, ports->io[port].name));
  aot_put(t, "%s", aot_shape_text(t->h->arena, ports, port));
  if (ports->storage[port] != AOT_PLAIN) {
    bool grows = ports->storage[port] == AOT_SHARED && ports->kept_in[port] >= t->h->inputs.n_named;
    aot_put(t, ", carried from run to run%s", grows ? ";\n * it is the beginning of an array with more room" : "");
  }
  if (ports == &t->h->inputs) {
    put_contents(t, port);
  }
  aot_put(t, " */\n");
}

static void put_accessors(aot_lines *t, const aot_ports *ports, const char *short_word, bool is_input) {
  const char *p = t->h->options->prefix;
  for (uint32_t k = 0; k < ports->n_named; k++) {
    const char *type = c_type((dtype)ports->io[k].shape.type), *name = ports->names[k];
    put_description(t, ports, k);
    put_constants(t,
                  arena_printf(t->h->arena, "%s_%s_%s", t->h->object->upper, aot_capitals(t->h->arena, short_word),
                               aot_capitals(t->h->arena, name)),
                  ports, k);
    aot_put(t, "static inline %s%s *%s_%s_%s(%s *n) { return (%s *)%s_%s(n, %" PRIu32 "); }\n",
            is_input ? "" : "const ", type, p, short_word, name, p, type, p, ports->word, k);
    if (ports->storage[k] == AOT_PLAIN) {
      aot_put(t, "static inline int %s_set_%s_%s(%s *n, %s%s *memory) { return %s_set_%s(n, %" PRIu32 ", memory); }\n",
              p, short_word, name, p, is_input ? "const " : "", type, p, ports->word, k);
    }
  }
  aot_put(t, "\n");
}

static void put_end(aot_lines *t) { aot_put(t, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"); }

const char *aot_header(const aot_host *h) {
  aot_lines t = {.h = h};
  put_beginning(&t);
  put_common(&t);
  put_pool(&t);
  aot_put(&t, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  put_context(&t);
  put_errors(&t);
  put_functions(&t);
  put_generic(&t);
  put_accessors(&t, &h->inputs, "in", true);
  put_accessors(&t, &h->outputs, "out", false);
  put_end(&t);
  return t.bytes;
}
