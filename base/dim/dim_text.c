/* dim_text.c - prints and parses dimension expressions. */
#include <string.h>

#include "base/dim/dim_nodes.h"

/* --- printing --- */

/* How tightly an operator binds its operands; an operand that binds less tightly gets parentheses. */
typedef enum binding { BIND_SUM, BIND_TERM, BIND_FACTOR, BIND_OPERAND } binding;

static void put_dim(text_builder *out, const dim_table *t, dim d, binding place);

static void put_infix(text_builder *out, const dim_table *t, dim d, const char *sign, binding operands) {
  put_dim(out, t, dim_lhs(t, d), operands);
  text_builder_put(out, sign);
  put_dim(out, t, dim_rhs(t, d), operands);
}

static void put_call(text_builder *out, const dim_table *t, dim d, const char *name, const char *between,
                     binding arguments) {
  text_builder_put(out, name);
  put_infix(out, t, d, between, arguments);
  text_builder_put(out, ")");
}

static void put_sum(text_builder *out, const dim_table *t, dim d) {
  if (dim_get_kind(t, d) == DIM_ADD) {
    put_dim(out, t, dim_lhs(t, d), BIND_SUM);
    d = dim_rhs(t, d);
    text_builder_put(out, dim_get_kind(t, d) == DIM_NEG ? "" : "+");
  }
  if (dim_get_kind(t, d) == DIM_NEG) {
    text_builder_put(out, "-");
    d = dim_lhs(t, d);
  }
  put_dim(out, t, d, BIND_TERM);
}

static void put_open(text_builder *out, const dim_table *t, dim d) {
  switch (dim_get_kind(t, d)) {
    case DIM_CONST: text_builder_put_number(out, d); return;
    case DIM_SYMBOL: text_builder_put(out, dim_name(t, d)); return;
    case DIM_BOUNDED:
      text_builder_put(out, "<=");
      text_builder_put_number(out, dim_lhs(t, d));
      text_builder_put(out, ":");
      text_builder_put(out, dim_name(t, d));
      return;
    case DIM_ADD:
    case DIM_NEG: put_sum(out, t, d); return;
    case DIM_MUL: put_infix(out, t, d, "*", BIND_FACTOR); return;
    case DIM_FLOORDIV: put_infix(out, t, d, "/", BIND_OPERAND); return;
    case DIM_MOD: put_infix(out, t, d, "%", BIND_OPERAND); return;
    case DIM_CEILDIV: put_call(out, t, d, "ceil(", "/", BIND_OPERAND); return;
    case DIM_MAX_OF: put_call(out, t, d, "max(", ",", BIND_SUM); return;
    case DIM_MIN_OF: put_call(out, t, d, "min(", ",", BIND_SUM); return;
  }
}

static bool needs_parentheses(dim_kind kind, binding place) {
  switch (kind) {
    case DIM_ADD:
    case DIM_NEG: return place > BIND_SUM;
    case DIM_FLOORDIV:
    case DIM_MOD: return place > BIND_TERM;
    case DIM_MUL: return place > BIND_FACTOR;
    default: return false;
  }
}

static void put_dim(text_builder *out, const dim_table *t, dim d, binding place) {
  bool parentheses = needs_parentheses(dim_get_kind(t, d), place);
  text_builder_put(out, parentheses ? "(" : "");
  put_open(out, t, d);
  text_builder_put(out, parentheses ? ")" : "");
}

const char *dim_print(arena *a, const dim_table *t, dim d) {
  if (d == DIM_OVERFLOW) {
    return "?";
  }
  text_builder out = {.arena = a};
  put_dim(&out, t, d, BIND_SUM);
  return text_builder_end(&out);
}

/* --- parsing --- */

typedef struct reader {
  dim_table *table;
  const char *at;
  int depth;
} reader;

/* The deepest nesting of operands in the text of an expression; no expression of DIM_MOST_NODES nodes nests deeper
 * (dim_node.size).  Deeper text is refused, so that the parser's recursion is bounded. */
enum { DEPTH_MAX = DIM_MOST_NODES / 2 + 1 };

static status parse_sum(reader *r, dim *out);
static status parse_signed_sum(reader *r, dim *out);

/* Reads an operator that is in `set`, and the blanks around it.  Returns the operator, or 0 if there is none.  "->" and
 * the beginnings of comments are not operators. */
static char accept_operator(reader *r, const char *set) {
  const char *p = r->at + strspn(r->at, " ");
  if (!*p || !strchr(set, *p) || (*p == '-' && p[1] == '>') || (*p == '/' && (p[1] == '/' || p[1] == '*'))) {
    return 0;
  }
  r->at = p + 1 + strspn(p + 1, " ");
  return *p;
}

static status expect(reader *r, char c) {
  CHECK_THAT(accept_operator(r, (char[]){c, 0}), STATUS_INVALID_FILE, "'%c' expected in a dimension at '%.20s'", c,
             r->at);
  return NULL;
}

static status parse_number(reader *r, dim *out) {
  int64_t n = 0;
  for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
    n = n * 10 + (*r->at - '0');
    CHECK_THAT(n <= DIM_MAX, STATUS_INVALID_FILE, "a dimension is larger than 2^56");
  }
  *out = n;
  return NULL;
}

static bool starts_number(const reader *r) { return *r->at >= '0' && *r->at <= '9'; }

static status parse_name(reader *r, size_t *length) {
  *length = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  CHECK_THAT(*length && !starts_number(r), STATUS_INVALID_FILE, "a dimension expected at '%.20s'", r->at);
  r->at += *length;
  return NULL;
}

static status parse_bounded(reader *r, dim *out) {
  size_t length;
  dim bound;
  CHECK_THAT(r->at[0] == '<' && r->at[1] == '=', STATUS_INVALID_FILE, "'<=' expected in a dimension");
  r->at += 2;
  CHECK_THAT(starts_number(r), STATUS_INVALID_FILE, "a number expected after '<=' in a dimension");
  TRY(parse_number(r, &bound));
  CHECK_THAT(*r->at == ':', STATUS_INVALID_FILE, "':' expected after the bound of a dimension");
  r->at++;
  TRY(parse_name(r, &length));
  dim size = dim_symbol_n(r->table, r->at - length, length);
  *out = dim_bounded(r->table, bound, dim_name(r->table, size));
  return NULL;
}

typedef dim dim_function(dim_table *t, dim a, dim b);

static dim_function *function_of(const char *name, size_t length) {
  static const struct {
    const char *name;
    dim_function *function;
  } functions[] = {{"ceil", dim_ceildiv}, {"max", dim_max}, {"min", dim_min}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0) {
      return functions[i].function;
    }
  }
  return NULL;
}

static status parse_operand(reader *r, dim *out);

/* Parses the rest of max(a,b), min(a,b) or ceil(a/b) after the '('.  Of a maximum or minimum, a and b may be negative
 * constants: max(n-5,-3). */
static status parse_call(reader *r, dim_function *function, dim *out) {
  dim a, b;
  bool is_ceil = function == dim_ceildiv;
  TRY(is_ceil ? parse_operand(r, &a) : parse_signed_sum(r, &a));
  TRY(expect(r, is_ceil ? '/' : ','));
  TRY(is_ceil ? parse_operand(r, &b) : parse_signed_sum(r, &b));
  TRY(expect(r, ')'));
  *out = function(r->table, a, b);
  return NULL;
}

static status parse_name_or_call(reader *r, dim *out) {
  size_t length;
  TRY(parse_name(r, &length));
  const char *name = r->at - length;
  dim_function *function = *r->at == '(' ? function_of(name, length) : NULL;
  if (!function) {
    *out = dim_symbol_n(r->table, name, length);
    return NULL;
  }
  r->at++;
  return parse_call(r, function, out);
}

static status parse_operand(reader *r, dim *out) {
  CHECK_THAT(r->depth < DEPTH_MAX, STATUS_INVALID_FILE, "a dimension is nested too deeply");
  r->depth++;
  if (starts_number(r)) {
    TRY(parse_number(r, out));
  } else if (*r->at == '<') {
    TRY(parse_bounded(r, out));
  } else if (accept_operator(r, "(")) {
    TRY(parse_sum(r, out));
    TRY(expect(r, ')'));
  } else {
    TRY(parse_name_or_call(r, out));
  }
  r->depth--;
  return NULL;
}

static status parse_term(reader *r, dim *out) {
  TRY(parse_operand(r, out));
  for (char sign; (sign = accept_operator(r, "*/%"));) {
    dim operand;
    TRY(parse_operand(r, &operand));
    dim_function *function = sign == '*' ? dim_mul : sign == '/' ? dim_floordiv : dim_mod;
    *out = function(r->table, *out, operand);
  }
  return NULL;
}

/* Parses a sum.  Positive and negative terms are added separately, since only the result must not be negative.  If
 * `is_signed`, the result may be negative, too. */
static status parse_terms(reader *r, bool is_signed, dim *out) {
  dim plus = 0, minus = 0;
  char sign = accept_operator(r, "-");
  do {
    dim term;
    TRY(parse_term(r, &term));
    dim *side = sign == '-' ? &minus : &plus;
    *side = dim_add(r->table, *side, term);
  } while ((sign = accept_operator(r, "+-")));
  *out = is_signed ? dim_signed_sub(r->table, plus, minus) : dim_sub(r->table, plus, minus);
  return NULL;
}

static status parse_sum(reader *r, dim *out) { return parse_terms(r, false, out); }

static status parse_signed_sum(reader *r, dim *out) { return parse_terms(r, true, out); }

static status parse_whole(dim_table *t, const char **start, bool is_signed, dim *out) {
  reader r = {.table = t, .at = *start};
  TRY(parse_terms(&r, is_signed, out));
  CHECK_THAT(*out != DIM_OVERFLOW, STATUS_INVALID_FILE, "dimension '%.*s' is negative, too large or too complex",
             (int)(r.at - *start < 60 ? r.at - *start : 60), *start);
  *start = r.at;
  return NULL;
}

status dim_parse(dim_table *t, const char **start, dim *out) { return parse_whole(t, start, false, out); }

status dim_parse_signed(dim_table *t, const char **start, dim *out) { return parse_whole(t, start, true, out); }
