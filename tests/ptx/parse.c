/* parse.c - reads PTX; see ptx.h. */
#include <ctype.h>
#include <string.h>

#include "tests/ptx/parse_internal.h"

/* --- operands --- */

static status read_operand(ptx_parser *p, ptx_operand *o);

/* Reads what is between brackets: a register or a name, and a number that is added to it. */
static status read_address(ptx_parser *p, ptx_operand *o) {
  const char *w;
  *o = (ptx_operand){.kind = PTX_ADDRESS};
  TRY(ptx_need_word(p, &w));
  const ptx_symbol *s = ptx_find_symbol(p, w);
  if (ptx_find_register(p, w, &o->reg)) {
    o->has_register = true;
  } else if (s) {
    o->place = s->place;
    o->value = s->value;
  } else {
    NEED(ptx_is_number(w), p, "'%s' is unknown", w);
    o->value = ptx_number_of(w);
  }
  while (ptx_take(p, '+')) {
    uint64_t more;
    TRY(ptx_read_number(p, &more));
    o->value += more;
  }
  return NULL;
}

static status read_list(ptx_parser *p, char end, ptx_operand *o) {
  uint32_t capacity = 0;
  *o = (ptx_operand){.kind = PTX_LIST};
  while (!ptx_take(p, end)) {
    ptx_operand item;
    TRY(read_operand(p, &item));
    *ARENA_PUSH(p->arena, o->items, o->n, capacity) = item;
    (void)ptx_take(p, ',');
  }
  return NULL;
}

/* Reads a word: a register, a number, or the name of a variable.  Any other word is taken for a label or a function,
 * which may be defined later in the text (see resolve). */
static status read_word_operand(ptx_parser *p, ptx_operand *o) {
  const char *w;
  TRY(ptx_need_word(p, &w));
  const ptx_symbol *s = ptx_find_symbol(p, w);
  *o = (ptx_operand){.kind = PTX_REGISTER, .name = w};
  if (strcmp(w, "_") == 0) {
    o->kind = PTX_NONE;
  } else if (ptx_find_register(p, w, &o->reg)) {
  } else if (ptx_find_special(w, &o->value)) {
    o->kind = PTX_SPECIAL;
  } else if (ptx_is_number(w)) {
    o->kind = PTX_NUMBER;
    o->value = ptx_number_of(w);
  } else if (s) {
    *o = (ptx_operand){.kind = PTX_ADDRESS, .place = s->place, .value = s->value};
    if (ptx_take(p, '+')) {
      uint64_t more;
      TRY(ptx_read_number(p, &more));
      o->value += more;
    }
  } else {
    NEED(*w != '%', p, "'%s' is unknown", w);
    o->kind = PTX_CODE;
  }
  return NULL;
}

static status read_operand(ptx_parser *p, ptx_operand *o) {
  if (ptx_take(p, '[')) {
    TRY(read_address(p, o));
    return ptx_need(p, ']');
  }
  if (ptx_take(p, '{')) {
    return read_list(p, '}', o);
  }
  if (ptx_take(p, '(')) {
    return read_list(p, ')', o);
  }
  if (ptx_take(p, '-')) {
    TRY(read_operand(p, o));
    NEED(o->kind == PTX_NUMBER, p, "'-' before what is no number");
    o->value = -o->value;
    return NULL;
  }
  bool negated = ptx_take(p, '!');
  TRY(read_word_operand(p, o));
  o->negated = negated;
  return NULL;
}

/* --- instructions --- */

static bool find_op(const char *name, ptx_op *out) {
  static const char *const names[] = {
#define PTX_OP(name) #name,
#define PTX_SCALAR(name) #name,
#include "tests/ptx/ptx_ops.def"
  };
  for (int k = 0; k < PTX_OPS; k++) {
    if (strcmp(names[k], name) == 0) {
      *out = (ptx_op)k;
      return true;
    }
  }
  return false;
}

static bool find_space(const char *w, ptx_space *out) {
  static const char *const names[] = {"", "global", "shared", "local", "param", "const"};
  for (int k = PTX_GLOBAL; k <= PTX_CONST; k++) {
    if (strcmp(names[k], w) == 0) {
      *out = (ptx_space)k;
      return true;
    }
  }
  return false;
}

bool ptx_has(const ptx_instr *i, const char *modifier) {
  for (int k = 0; k < i->n_modifiers; k++) {
    if (strcmp(i->modifiers[k], modifier) == 0) {
      return true;
    }
  }
  return false;
}

/* Divides an opcode such as "ld.global.nc.v2.u64" at its dots, and sets the fields of *i that its parts give. */
static status read_opcode(ptx_parser *p, const char *text, ptx_instr *i) {
  char *copy = arena_strdup(p->arena, text), *rest = NULL, *part = strtok_r(copy, ".", &rest);
  *i = (ptx_instr){.vector = 1, .guard = -1, .text = text, .line = p->line};
  NEED(part && find_op(part, &i->op), p, "the operation of '%s' is unknown", text);
  while ((part = strtok_r(NULL, ".", &rest)) != NULL) {
    ptx_type type;
    if (ptx_find_type(part, &type)) {
      NEED(i->n_types < 4, p, "'%s' has too many types", text);
      i->types[i->n_types++] = type;
    } else if (find_space(part, &i->space)) {
    } else if (part[0] == 'v' && isdigit((unsigned char)part[1]) && !part[2]) {
      i->vector = part[1] - '0';
    } else {
      NEED(i->n_modifiers < PTX_MOST_MODIFIERS, p, "'%s' has too many parts", text);
      i->modifiers[i->n_modifiers++] = part;
    }
  }
  return NULL;
}

static status read_operands(ptx_parser *p, ptx_instr *i) {
  while (!ptx_take(p, ';')) {
    NEED(i->n < PTX_MOST_OPERANDS, p, "'%s' has too many operands", i->text);
    TRY(read_operand(p, &i->operands[i->n++]));
    NEED(ptx_take(p, ',') || *p->p == ';', p, "',' or ';' is missing before '%.20s'", p->p);
  }
  return NULL;
}

/* Reads an instruction whose first word was read. */
static status read_instruction(ptx_parser *p, const char *first, int64_t guard, bool negated) {
  ptx_instr i;
  TRY(read_opcode(p, first, &i));
  i.guard = guard;
  i.guard_negated = negated;
  TRY(read_operands(p, &i));
  ptx_function *f = p->function;
  *ARENA_PUSH(p->arena, f->code, f->n, f->capacity) = i;
  return NULL;
}

static status read_guarded(ptx_parser *p) {
  const char *w;
  uint32_t reg;
  bool negated = ptx_take(p, '!');
  TRY(ptx_need_word(p, &w));
  NEED(ptx_find_register(p, w, &reg), p, "'%s' is unknown", w);
  TRY(ptx_need_word(p, &w));
  return read_instruction(p, w, reg, negated);
}

/* --- functions --- */

static status read_registers(ptx_parser *p) {
  const char *name;
  TRY(ptx_need_word(p, &name)); /* the type is skipped, since each instruction names it anew */
  do {
    uint64_t count = 0;
    TRY(ptx_need_word(p, &name));
    if (ptx_take(p, '<')) {
      TRY(ptx_read_number(p, &count));
      TRY(ptx_need(p, '>'));
    }
    *ARENA_PUSH(p->arena, p->registers, p->n_registers, p->registers_capacity) =
        (ptx_registers){name, p->function->n_registers, (uint32_t)count};
    p->function->n_registers += count ? (uint32_t)count : 1;
  } while (ptx_take(p, ','));
  return ptx_need(p, ';');
}

/* Reads a local array, or the argument of a call. */
static status read_local(ptx_parser *p) {
  size_t align, bytes;
  const char *name;
  uint64_t count;
  TRY(ptx_read_layout(p, &align, &bytes));
  TRY(ptx_read_name(p, &name, &count));
  ptx_define(p, name, PTX_IN_FRAME, ptx_extend_frame(p->function, align, bytes * count));
  return ptx_need(p, ';');
}

static status skip_to(ptx_parser *p, char c) {
  p->p = strchr(p->p, c);
  NEED(p->p, p, "'%c' is missing", c);
  p->p++;
  return NULL;
}

/* Reads what begins with a word in a function: a declaration, a label, an instruction. */
static status read_statement(ptx_parser *p, const char *w) {
  if (strcmp(w, ".reg") == 0) {
    return read_registers(p);
  }
  if (strcmp(w, ".local") == 0 || strcmp(w, ".param") == 0) {
    return read_local(p);
  }
  if (*w == '.') { /* .pragma, .loc */
    return skip_to(p, strcmp(w, ".loc") == 0 ? '\n' : ';');
  }
  if (ptx_take(p, ':')) {
    *ARENA_PUSH(p->arena, p->labels, p->n_labels, p->labels_capacity) = (ptx_label){w, p->function->n};
    return NULL;
  }
  return read_instruction(p, w, -1, false);
}

static ptx_function *find_function(const ptx_module *m, const char *name) {
  for (uint32_t k = 0; k < m->n; k++) {
    if (strcmp(m->functions[k]->name, name) == 0) {
      return m->functions[k];
    }
  }
  return NULL;
}

/* Sets the value of each operand that is a label to the number of the label's instruction, and the callee of a call. */
static status resolve(ptx_parser *p, ptx_instr *i) {
  for (int k = 0; k < i->n; k++) {
    ptx_operand *o = &i->operands[k];
    if (o->kind != PTX_CODE) {
      continue;
    }
    uint32_t j = 0;
    while (j < p->n_labels && strcmp(p->labels[j].name, o->name) != 0) {
      j++;
    }
    i->callee = i->op == PTX_call ? find_function(p->module, o->name) : NULL;
    NEED(j < p->n_labels || i->callee, p, "'%s' is unknown", o->name);
    o->value = j < p->n_labels ? p->labels[j].at : 0;
  }
  return NULL;
}

static status read_body(ptx_parser *p) {
  p->n_registers = p->n_labels = 0;
  for (int depth = 1; depth > 0;) {
    if (ptx_take(p, '}')) {
      depth--;
    } else if (ptx_take(p, '{')) {
      depth++;
    } else if (ptx_take(p, '@')) {
      TRY(read_guarded(p));
    } else {
      const char *w;
      TRY(ptx_need_word(p, &w));
      TRY(read_statement(p, w));
    }
  }
  for (uint32_t k = 0; k < p->function->n; k++) {
    TRY(resolve(p, &p->function->code[k]));
  }
  return NULL;
}

/* Reads "(.param .u64 name, ...)": the function's parameters or, if `returned` is set, what it returns. */
static status read_parameters(ptx_parser *p, bool returned) {
  ptx_function *f = p->function;
  while (!ptx_take(p, ')')) {
    const char *w, *name;
    size_t align, bytes;
    uint64_t count;
    TRY(ptx_need_word(p, &w));
    NEED(strcmp(w, ".param") == 0, p, "'%s' in a list of parameters", w);
    TRY(ptx_read_layout(p, &align, &bytes));
    TRY(ptx_read_name(p, &name, &count));
    size_t at = ptx_extend_frame(f, align, bytes * count);
    ptx_define(p, name, PTX_IN_FRAME, at);
    if (returned) {
      f->returned = at;
      f->returned_bytes = bytes * count;
    } else {
      NEED(f->n_parameters < 64, p, "%s has more than 64 parameters", f->name);
      f->parameters[f->n_parameters] = at;
      f->parameter_bytes[f->n_parameters++] = bytes * count;
    }
    (void)ptx_take(p, ',');
  }
  return NULL;
}

/* Skips ".maxntid 256, 1, 1" and its like, which stand between the parameters and the body. */
static void skip_limits(ptx_parser *p) {
  ptx_skip_space(p);
  while (*p->p && *p->p != '{' && *p->p != ';') {
    p->p++;
  }
}

static status read_function(ptx_parser *p, bool is_entry) {
  ptx_function *f = p->function = ARENA_NEW(p->arena, ptx_function);
  p->n_symbols = p->module_symbols;
  *f = (ptx_function){.is_entry = is_entry, .module = p->module};
  if (ptx_take(p, '(')) {
    TRY(read_parameters(p, true));
  }
  TRY(ptx_need_word(p, &f->name));
  if (ptx_take(p, '(')) {
    TRY(read_parameters(p, false));
  }
  skip_limits(p);
  ptx_function *known = find_function(p->module, f->name);
  if (known) { /* the function was declared before */
    *known = *f;
    p->function = f = known;
  } else {
    *ARENA_PUSH(p->arena, p->module->functions, p->module->n, p->module->capacity) = f;
  }
  if (ptx_take(p, ';')) {
    return NULL;
  }
  TRY(ptx_need(p, '{'));
  return read_body(p);
}

/* --- the module --- */

/* Reads "= {1, 2}" or "= 1" into the elements of an array. */
static status read_values(ptx_parser *p, uint8_t *to, size_t bytes, uint64_t count) {
  bool many = ptx_take(p, '{');
  for (uint64_t k = 0; k < count; k++) {
    uint64_t value;
    TRY(ptx_read_number(p, &value));
    memcpy(to + k * bytes, &value, bytes);
    if (!ptx_take(p, ',')) {
      break;
    }
  }
  return many ? ptx_need(p, '}') : NULL;
}

static status read_variable(ptx_parser *p, bool is_shared) {
  size_t align, bytes;
  const char *name;
  uint64_t count;
  TRY(ptx_read_layout(p, &align, &bytes));
  TRY(ptx_read_name(p, &name, &count));
  if (is_shared) {
    ptx_module *m = p->module;
    size_t at = (m->shared_bytes + align - 1) / align * align;
    ptx_define(p, name, PTX_IN_SHARED, at);
    m->shared_bytes = at + bytes * count;
  } else {
    uint8_t *data = arena_alloc_aligned(p->arena, bytes * (count ? count : 1), align < 16 ? 16 : align);
    memset(data, 0, bytes * (count ? count : 1));
    uint64_t begin = (uint64_t)(uintptr_t)data;
    ptx_define(p, name, PTX_IN_MODULE, begin);
    *ARENA_PUSH(p->arena, p->module->arrays, p->module->n_arrays, p->module->arrays_capacity) =
        (ptx_array){begin, begin + bytes * count};
    if (ptx_take(p, '=')) {
      TRY(read_values(p, data, bytes, count));
    }
  }
  p->module_symbols = p->n_symbols;
  return ptx_need(p, ';');
}

static status read_directive(ptx_parser *p, const char *w) {
  if (strcmp(w, ".entry") == 0 || strcmp(w, ".func") == 0) {
    return read_function(p, strcmp(w, ".entry") == 0);
  }
  if (strcmp(w, ".shared") == 0 || strcmp(w, ".global") == 0 || strcmp(w, ".const") == 0) {
    p->n_symbols = p->module_symbols;
    return read_variable(p, strcmp(w, ".shared") == 0);
  }
  if (strcmp(w, ".version") == 0 || strcmp(w, ".target") == 0 || strcmp(w, ".address_size") == 0) {
    return skip_to(p, '\n');
  }
  NEED(strcmp(w, ".visible") == 0 || strcmp(w, ".extern") == 0 || strcmp(w, ".weak") == 0, p, "what is '%s'?", w);
  return NULL;
}

status ptx_parse(arena *a, const char *text, ptx_module **out) {
  ptx_parser p = {.arena = a, .p = text, .line = 1, .module = ARENA_NEW(a, ptx_module)};
  *p.module = (ptx_module){0};
  for (ptx_skip_space(&p); *p.p; ptx_skip_space(&p)) {
    const char *w;
    TRY(ptx_need_word(&p, &w));
    TRY(read_directive(&p, w));
  }
  *out = p.module;
  return NULL;
}

const ptx_function *ptx_find_entry(const ptx_module *m, const char *name) {
  const ptx_function *f = find_function(m, name);
  return f && f->is_entry ? f : NULL;
}

size_t ptx_parameter_bytes(const ptx_function *f, unsigned k) {
  return k < f->n_parameters ? f->parameter_bytes[k] : 0;
}
