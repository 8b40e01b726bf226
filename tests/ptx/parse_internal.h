/* parse_internal.h - the parser of PTX, and its words, types and names (parse_names.c). */
#ifndef TESTS_PTX_PARSE_INTERNAL_H
#define TESTS_PTX_PARSE_INTERNAL_H

#include "tests/ptx/ptx_internal.h"

/* A name of the module or of a function, and what it stands for. */
typedef struct ptx_symbol {
  const char *name;
  ptx_place place;
  uint64_t value;
} ptx_symbol;

/* Registers `name`0 to `name`(count - 1), or the register `name` if count is 0. */
typedef struct ptx_registers {
  const char *name;
  uint32_t first, count;
} ptx_registers;

typedef struct ptx_label {
  const char *name;
  uint32_t at;
} ptx_label;

typedef struct ptx_parser {
  arena *arena;
  const char *p;
  int line;
  ptx_module *module;
  ptx_function *function; /* the function that is being read */
  ptx_symbol *symbols;    /* the symbols of the module (the first module_symbols), then those of the function */
  uint32_t n_symbols, symbols_capacity, module_symbols;
  ptx_registers *registers;
  uint32_t n_registers, registers_capacity;
  ptx_label *labels;
  uint32_t n_labels, labels_capacity;
} ptx_parser;

/* Fails, with the number of the line, unless the condition holds. */
#define NEED(condition, p, ...)                                                                              \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      return status_prefix(status_error(STATUS_INVALID_FILE, __VA_ARGS__), "line %d of the PTX", (p)->line); \
    }                                                                                                        \
  } while (0)

/* Skips spaces and comments. */
void ptx_skip_space(ptx_parser *p);
/* Returns true and moves behind the next character if it is c. */
bool ptx_take(ptx_parser *p, char c);
/* Moves behind the next character; fails if it is not c. */
STATUS_MUST_USE status ptx_need(ptx_parser *p, char c);
/* Sets *out to the next word, on the arena, and moves behind it; fails if what comes next is no word. */
STATUS_MUST_USE status ptx_need_word(ptx_parser *p, const char **out);
/* Returns true if the word is a number. */
bool ptx_is_number(const char *w);
/* Returns the value of 12 or 0x1f, or the bits of 0f3F800000 and 0d3FF0000000000000. */
uint64_t ptx_number_of(const char *w);
/* Reads a number, which may be negative. */
STATUS_MUST_USE status ptx_read_number(ptx_parser *p, uint64_t *out);
/* Finds the type of a name such as "u32".  Returns false if there is none. */
bool ptx_find_type(const char *w, ptx_type *out);
/* Reads ".align 8 .b8" or ".u64"; *bytes is the size of an element. */
STATUS_MUST_USE status ptx_read_layout(ptx_parser *p, size_t *align, size_t *bytes);
/* Reads "name", "name[]" or "name[8]"; *count is 1, 0 or the number in brackets. */
STATUS_MUST_USE status ptx_read_name(ptx_parser *p, const char **name, uint64_t *count);
/* Adds a symbol. */
void ptx_define(ptx_parser *p, const char *name, ptx_place place, uint64_t value);
/* Returns the symbol of that name that was added last, or NULL if there is none. */
const ptx_symbol *ptx_find_symbol(const ptx_parser *p, const char *name);
/* Finds the number of a register of the function.  Returns false if there is none of that name. */
bool ptx_find_register(const ptx_parser *p, const char *name, uint32_t *out);
/* Finds a special register, and sets *out to its ptx_special.  Returns false if there is none of that name. */
bool ptx_find_special(const char *name, uint64_t *out);
/* Adds this many bytes to the memory of the function's frames, and returns their offset there. */
size_t ptx_extend_frame(ptx_function *f, size_t align, size_t bytes);

#endif
