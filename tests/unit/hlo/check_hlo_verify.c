/* check_hlo_verify.c - tests the verifier with broken modules, the shape rules with wrong operands and attributes, and
 * the runner of passes with passes that break modules. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/suite.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }

static void teardown(void) { arena_destroy(memory); }

static void no_error(status s) { ck_assert_msg(!s, "%s", status_message(s)); }

static void expect_error(status s, const char *words) {
  ck_assert_msg(s != NULL, "no failure, but expected: %s", words);
  ck_assert_msg(strstr(status_message(s), words) != NULL, "message: %s\nexpected: %s", status_message(s), words);
  status_free(s);
}

static const char sample[] =
    "onnx-xla hlo 1\n"
    "module \"m\" {\n"
    "  computation square(%0: f32[4]) {\n"
    "    %1 = multiply(%0, %0) : f32[4]\n"
    "    return %1\n"
    "  }\n"
    "  entry main(%0: f32[4], %1: s32[4]) {\n"
    "    %2 = fusion(%0) {kind=loop, computations=[square]} : f32[4]\n"
    "    %3, %4 = sort(%2, %1) {dimension=0, descending=false} : f32[4], s32[4]\n"
    "    %5 = add(%3, %0) : f32[4] @\"sum\"\n"
    "    return %5, %4\n"
    "  }\n"
    "}\n";

static hlo_module *make_module(void) {
  hlo_module *m = NULL;
  no_error(hlo_parse(memory, sample, strlen(sample), NULL, &m));
  return m;
}

/* --- the verifier; each function breaks one thing --- */

static hlo_instr *nth(hlo_module *m, int n) {
  hlo_instr *i = m->entry->first;
  for (; n > 0; n--) {
    i = i->next;
  }
  return i;
}

static void break_prev(hlo_module *m) { nth(m, 3)->prev = nth(m, 1); }
static void break_cycle(hlo_module *m) { nth(m, 4)->next = nth(m, 2); }
static void break_last(hlo_module *m) { m->entry->last = nth(m, 3); }
static void break_parent(hlo_module *m) { nth(m, 3)->parent = m->computations[0]; }
static void break_params(hlo_module *m) { m->entry->params[1] = m->entry->params[0]; }
static void break_index(hlo_module *m) { nth(m, 1)->attrs[0].i = 0; }
static void break_late_param(hlo_module *m) { nth(m, 3)->op = HLO_PARAMETER; }
static void break_n_params(hlo_module *m) { m->entry->n_params = 1; }
static void break_order(hlo_module *m) { hlo_move_before(nth(m, 4), nth(m, 3)); }
static void break_foreign(hlo_module *m) { nth(m, 4)->operands[0].def = m->computations[0]->first; }
static void break_missing(hlo_module *m) { nth(m, 4)->operands[0].def = NULL; }
static void break_result(hlo_module *m) { nth(m, 4)->operands[0].index = 2; }
static void break_uses(hlo_module *m) { nth(m, 2)->n_uses = 0; }
static void break_use_twice(hlo_module *m) { nth(m, 0)->uses[1] = nth(m, 0)->uses[0]; }
static void break_use(hlo_module *m) { nth(m, 0)->uses[0].operand = 9; }
static void break_root(hlo_module *m) { m->entry->roots[0].def = m->computations[0]->first; }
static void break_shape(hlo_module *m) { nth(m, 4)->shapes[0].dims[0] = 5; }
static void break_type(hlo_module *m) { nth(m, 3)->shapes[1].type = DTYPE_S64; }
static void break_bool(hlo_module *m) { nth(m, 3)->attrs[1].i = 2; }
static void break_enum(hlo_module *m) { nth(m, 2)->attrs[0].i = 99; }
static void break_callee(hlo_module *m) { nth(m, 2)->attrs[1].comps[0] = NULL; }
static void break_recursion(hlo_module *m) { nth(m, 2)->attrs[1].comps[0] = m->entry; }
static void break_signature(hlo_module *m) { hlo_parameter(m->computations[0], shape_scalar(DTYPE_F32)); }
static void break_entry(hlo_module *m) { m->entry = m->computations[0]; }
static void break_arity(hlo_module *m) { nth(m, 4)->n_operands = 1; }

static void break_callee_order(hlo_module *m) {
  hlo_computation *c = m->computations[0];
  hlo_instr *i = hlo_instr_create(c, NULL, HLO_FUSION, 1, &(hlo_value){c->first, 0}, 1);
  i->attrs[1].n_comps = 1;
  i->attrs[1].comps = ARENA_NEW(memory, hlo_computation *);
  i->attrs[1].comps[0] = c;
  i->shapes[0] = c->first->shapes[0];
}

static void break_name(hlo_module *m) { m->computations[0]->name = "main"; }

static const struct {
  void (*damage)(hlo_module *m);
  const char *words;
} damages[] = {
    {break_prev, "main: instruction 3 is not linked to the one before"},
    {break_cycle, "not linked"},
    {break_last, "no proper end"},
    {break_parent, "not linked"},
    {break_params, "parameter 1 is numbered or listed wrongly"},
    {break_index, "parameter 1 is numbered or listed wrongly"},
    {break_late_param, "the 2 parameters must stand first"},
    {break_n_params, "the 1 parameters must stand first"},
    {break_order, "main: sum: %3 add: operand 0 is used before it is computed"},
    {break_foreign, "operand 0 is of another computation"},
    {break_missing, "operand 0 is missing"},
    {break_result, "operand 0 is result 2 of 2"},
    {break_uses, "5 operands but 4 uses"},
    {break_use_twice, "is listed twice"},
    {break_use, "does not fit an operand"},
    {break_root, "root 0 is of another computation"},
    {break_shape, "result 0 is f32[5] but should be f32[4]"},
    {break_type, "result 1 is s64[4] but should be s32[4]"},
    {break_bool, "%3 sort: descending: 2 is no bool"},
    {break_enum, "%2 fusion: kind: 99 has no name"},
    {break_callee, "computation 0 is missing"},
    {break_recursion, "computation main is called before its definition"},
    {break_signature, "square takes 2 arguments but gets 1"},
    {break_entry, "the entry computation must be the last"},
    {break_arity, "add has 1 operands; at least 2 are needed"},
    {break_callee_order, "computation square is called before its definition"},
    {break_name, "another computation has the same name"},
};

START_TEST(damaged_modules) {
  hlo_module *m = make_module();
  no_error(hlo_verify(m));
  damages[_i].damage(m);
  expect_error(hlo_verify(m), damages[_i].words);
}
END_TEST

/* --- shape rules --- */

/* The parameters of the entry to which each tested line is added.  A line whose `words` are NULL is valid. */
static const char params[] =
    "%a: f32[8,64], %b: f32[32,10], %n: f32[n,4], %m: f32[m,4], %k: f32[4], %p: pred[4], %c: c64[4], %s: str[4], %i: "
    "s32[4], "
    "%z: f32[], %q: seq<f32[]>, %img: f32[1,4,9,9], %ker: f32[6,2,3,3], %st: s64[2], %d: f32[<=100:n,8], "
    "%bx: f32[1,5,4], %sc: f32[1,2,5], %mo: s64[]";

static const struct {
  const char *line, *words;
} rules[] = {
    {"dot(%a, %b) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[8,10]",
     "A is f32[8,64] but B is f32[32,10]; K 64 != 32"},
    {"dot(%a, %a) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[1], rhs_contract=[1]} : f32[8]", NULL},
    {"dot(%a, %a) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[0], rhs_contract=[0]} : f32[8]",
     "which is already in use"},
    {"dot(%a, %a) {lhs_batch=[2], rhs_batch=[0], lhs_contract=[], rhs_contract=[]} : f32[8]", "outside of rank 2"},
    {"dot(%a, %a) {lhs_batch=[], rhs_batch=[0], lhs_contract=[], rhs_contract=[]} : f32[8]", "rhs_batch has 1 entries"},
    {"add(%a, %b) : f32[8,64]", "A is f32[8,64] but B is f32[32,10]; the dimensions must be equal"},
    {"add(%n, %m) : f32[n,4]", "A is f32[n,4] but B is f32[m,4]; the dimensions are not known to be equal"},
    {"add(%k, %i) : f32[4]", "the element types differ"},
    {"add(%p, %p) : pred[4]", "its type must be integer, float or complex"},
    {"add(%q, %q) : seq<f32[]>", "operand 0 is seq<f32>; an array is needed"},
    {"maximum(%c, %c) : c64[4]", "its type must be integer or float"},
    {"exponential(%i) : s32[4]", "operand 0 is s32[4]; its type must be float"},
    {"shift-left(%p, %p) : pred[4]", "must be integer"},
    {"compare(%s, %s) {comparison=eq} : pred[4]", NULL},
    {"compare(%s, %s) {comparison=lt} : pred[4]", "must be pred, integer or float"},
    {"convert(%s) {saturate=true, rounding=nearest} : f32[4]", "operand 0 is str[4]"},
    {"convert(%k) {saturate=true, rounding=nearest} : f32[5]", "operand 0 is f32[4] but the result is f32[5]"},
    {"bitcast-convert(%k) : f16[4]", "f32 has 32 bits but f16 has 16"},
    {"select(%p, %k, %k) : f32[4]", NULL},
    {"select(%k, %k, %k) : f32[4]", "its type must be pred"},
    {"clamp(%z, %k, %z) : f32[4]", NULL},
    {"clamp(%n, %k, %z) : f32[4]", "low is f32[n,4] but the operand is f32[4]"},
    {"complex(%i, %i) : c64[4]", "its type must be float"},
    {"broadcast(%k) {dimensions=[1]} : f32[2,4]", NULL},
    {"broadcast(%k) {dimensions=[0]} : f32[2,4]", "f32[4] to f32[2,4]: dimension 0: 4 != 2"},
    {"broadcast(%a) {dimensions=[1,0]} : f32[64,8]", "dimensions must be increasing"},
    {"broadcast(%a) {dimensions=[0]} : f32[64,8]", "dimensions has 1 entries instead of 2"},
    {"reshape(%n) : f32[4*n]", NULL},
    {"reshape(%a) : f32[511]", "512 elements are not 511"},
    {"reshape(%a) : s32[512]", "the types differ"},
    {"transpose(%a) {permutation=[1,1]} : f32[64,64]", "already in use"},
    {"slice(%a) {starts=[0,0], limits=[9,64], strides=[1,1]} : f32[9,64]", "limit of dimension 0: 9 is greater than 8"},
    {"slice(%a) {starts=[5,0], limits=[4,64], strides=[1,1]} : f32[0,64]", "start of dimension 0: 5 is greater than 4"},
    {"slice(%a) {starts=[0,0], limits=[8,64], strides=[0,1]} : f32[8,64]", "strides[0] is 0"},
    {"slice(%d) {starts=[0,0], limits=[101,8], strides=[1,1]} : f32[101,8]", "101 is greater than <=100:n"},
    {"pad(%k, %z) {low=[-5], high=[0], interior=[0]} : f32[0]", "dimension 0 is negative"},
    {"pad(%k, %z) {low=[-5], high=[2], interior=[0]} : f32[1]", NULL},
    {"pad(%k, %z) {low=[0], high=[0], interior=[72057594037927936]} : f32[1]", "too large"},
    {"pad(%k, %k) {low=[0], high=[0], interior=[0]} : f32[4]", "operand 1 is f32[4] instead of f32[]"},
    {"concatenate(%n, %m) {dimension=0} : f32[m+n,4]", NULL},
    {"concatenate(%n, %m) {dimension=1} : f32[n,8]", "not known to be equal"},
    {"concatenate(%n, %k) {dimension=0} : f32[n,8]", "the ranks differ"},
    {"dynamic-slice(%a, %st) {sizes=[9,1]} : f32[9,1]", "size of dimension 0: 9 is greater than 8"},
    {"dynamic-slice(%k, %st) {sizes=[1]} : f32[1]", "the starts are s64[2] instead of s64[1]"},
    {"dynamic-update-slice(%b, %a, %st) : f32[32,10]", "update dimension 1: 64 is greater than 10"},
    {"gather(%a, %i) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=1, sizes=[1,64]} : f32[4,64]",
     NULL},
    {"gather(%a, %i) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=1, sizes=[0,64]} : f32[4,64]",
     "slice size of collapsed dimension 0: 0 != 1"},
    {"gather(%a, %i) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0,1], "
     "index_vector_dim=1, sizes=[1,64]} : f32[4,64]",
     "index_map has 2 entries"},
    {"gather(%a, %i) {offset_dims=[7], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=1, sizes=[1,64]} : f32[4,64]",
     "offset_dims[0] is 7, outside of rank 2"},
    {"gather(%a, %i) {offset_dims=[0,1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=1, sizes=[1,64]} : f32[4,64]",
     "offset_dims has 2 entries but 1 dimensions"},
    {"gather(%a, %i) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=5, sizes=[1,64]} : f32[4,64]",
     "index_vector_dim 5 is outside"},
    {"scatter(%a, %i, %a) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=1, reducer=add} : f32[8,64]",
     "updates dimension 0: 8 != 4"},
    {"reduce(%a) {dimensions=[0], reducer=and} : f32[64]", "reducer and: operand 0 is f32[8,64]"},
    {"reduce(%a) {dimensions=[0], reducer=replace} : f32[64]", "reducer replace is not allowed here"},
    {"reduce(%p) {dimensions=[0], reducer=maximum} : pred[]", NULL},
    {"arg-reduce(%z) {dimension=0, largest=true, last=false} : s64[]", "dimension 0 is outside of rank 0"},
    {"reduce-window(%k) {window=[2], strides=[1], low=[-1], high=[0], rhs_dilation=[1], reducer=add} : f32[2]",
     "crops"},
    {"reduce-window(%k) {window=[1], strides=[1], low=[-1], high=[0], rhs_dilation=[1], reducer=add} : f32[3]", NULL},
    {"reduce-window(%k) {window=[9], strides=[1], low=[0], high=[0], rhs_dilation=[1], reducer=add} : f32[0]", NULL},
    {"reduce-window(%n) {window=[2,2], strides=[2,1], low=[0,0], high=[0,0], rhs_dilation=[1,1], reducer=add} : "
     "f32[n/2,3]",
     NULL},
    {"reduce-window(%k) {window=[72057594037927936], strides=[1], low=[0], high=[0], rhs_dilation=[72057594037927936], "
     "reducer=add} : f32[0]",
     "too large"},
    {"rng-bit-generator(%k) {algorithm=philox} : u32[4]", "philox takes u64[3]"},
    {"rng-bit-generator(%k) {algorithm=mt19937} : u32[4]", "mt19937 takes u64[1]"},
    {"cumulative(%k) {dimension=0, reducer=xor, exclusive=false, backward=false} : f32[4]", "the reducer must be add"},
    {"convolution(%img, %ker) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=2, "
     "layout=channels-first} : f32[1,6,7,7]",
     NULL},
    {"convolution(%img, %ker) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[2,1], rhs_dilation=[1,1], groups=2, "
     "layout=channels-first} : f32[1,6,15,7]",
     NULL},
    {"convolution(%img, %ker) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
     "layout=channels-first} : f32[1,6,7,7]",
     "B is f32[6,2,3,3]; input channels 4 != 2"},
    {"convolution(%img, %ker) {strides=[1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=2, "
     "layout=channels-first} : f32[1,6,7,7]",
     "strides has 1 entries instead of 2"},
    {"convolution(%img, %ker) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=0, "
     "layout=channels-first} : f32[1,6,7,7]",
     "groups is 0"},
    {"sort(%z) {dimension=0, descending=true} : f32[]", "outside of rank 0"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %mo, %z) {limit=3} : s64[6,3], s64[]", NULL},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %mo, %z, %z) {limit=8} : s64[10,3], s64[]", NULL},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %mo, %z) {limit=3} : s64[10,3], s64[]",
     "is declared s64[10,3] but is s64[6,3]"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %mo, %z) {limit=-1} : s64[6,3], s64[]",
     "limit is -1"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %z, %z) {limit=3} : s64[6,3], s64[]",
     "operand 2 is f32[] instead of s64[]"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %mo, %mo) {limit=3} : s64[6,3], s64[]",
     "operand 3 is s64[] instead of f32[]"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %bx, %mo, %z) {limit=3} : s64[6,3], s64[]",
     "boxes 5 != 4"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%sc, %sc, %mo, %z) {limit=3} : s64[6,3], s64[]",
     "corners of a box 5 != 4"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%a, %sc, %mo, %z) {limit=3} : s64[6,3], s64[]",
     "corners are f32[8,64]"},
    {"abs(%z) : f32[]\n%rows, %size = non-max-suppression(%bx, %sc, %mo) {limit=3} : s64[6,3], s64[]", "at least 4"},
    {"abs(%z) : f32[]\ncheck(%mo) {name=\"most\", limits=[5,7], from_end=true} : ()", NULL},
    {"abs(%z) : f32[]\ncheck(%z) {name=\"z\", limits=[], from_end=false} : ()", "operand 0 is f32[]"},
    {"custom-call(%q) {name=\"f\", ints=[], floats=[]} : opt<f32[]>", NULL},
};

START_TEST(shape_rules) {
  const char *text = arena_printf(
      memory, "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%s) {\n%%r = %s\nreturn %%r }\n}\n", params, rules[_i].line);
  hlo_module *m = NULL;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  if (rules[_i].words) {
    expect_error(s, rules[_i].words);
  } else {
    no_error(s);
  }
}
END_TEST

/* --- the runner of passes --- */

static status pass_nothing(hlo_module *m, pass_context *c, bool *changed) {
  hlo_pass_note(c, "calls", 1);
  return NULL;
}

/* Turns the add into a multiply and back, until it has run three times. */
static status pass_three_times(hlo_module *m, pass_context *c, bool *changed) {
  static int runs;
  if (++runs <= 3) {
    hlo_instr *i = m->entry->last;
    i->op = i->op == HLO_ADD ? HLO_MUL : HLO_ADD;
    *changed = true;
  }
  return NULL;
}

static status pass_secret(hlo_module *m, pass_context *c, bool *changed) {
  m->entry->last->op = HLO_SUB;
  return NULL;
}

static status pass_breaking(hlo_module *m, pass_context *c, bool *changed) {
  m->entry->last->shapes[0].dims[0] = 99;
  *changed = true;
  return NULL;
}

static status pass_greedy(hlo_module *m, pass_context *c, bool *changed) {
  arena_alloc(c->scratch, (size_t)1 << 40);
  return NULL;
}

static status count_dumps(void *data, const char *file, const hlo_module *m) {
  const char **last = data;
  *last = arena_strdup(memory, file);
  return NULL;
}

START_TEST(groups_run_until_nothing_changes) {
  const char *last = "";
  const hlo_pass group[] = {HLO_STEP(three_times), HLO_STEP(nothing)};
  const hlo_pass steps[] = {HLO_GROUP("group", group), HLO_STEP(nothing)};
  pass_context c = {.arena = memory, .verify = true, .check_changed = true, .dump = count_dumps, .dump_data = &last};
  no_error(hlo_run_passes(make_module(), steps, 2, &c));
  ck_assert_uint_eq(c.n_records, 2);
  ck_assert_uint_eq(c.records[0].runs, 4);
  ck_assert_uint_eq(c.records[0].changes, 3);
  ck_assert_uint_eq(c.records[1].runs, 5);
  ck_assert_uint_eq(c.n_notes, 1);
  ck_assert_int_eq(c.notes[0].value, 5);
  ck_assert_str_eq(last, "004-final.hlo");
}
END_TEST

static const struct {
  hlo_pass step;
  status_code code;
  const char *words;
} bad_passes[] = {
    {HLO_STEP(secret), STATUS_INTERNAL, "pass secret: it changed the module and did not say so"},
    {HLO_STEP(breaking), STATUS_INTERNAL, "pass breaking: it left a module that breaks a rule: main: sum:"},
    {HLO_STEP(greedy), STATUS_RESOURCE, "pass greedy: the memory limit is used up"},
};

START_TEST(passes_that_misbehave) {
  mem_budget budget = {.limit = (uint64_t)64 << 20};
  arena *a = arena_create(&budget);
  hlo_module *m = NULL;
  no_error(hlo_parse(a, sample, strlen(sample), NULL, &m));
  pass_context c = {.arena = a, .check_changed = true};
  status s = hlo_run_passes(m, &bad_passes[_i].step, 1, &c);
  ck_assert_int_eq(status_get_code(s), bad_passes[_i].code);
  expect_error(s, bad_passes[_i].words);
  arena_destroy(a);
}
END_TEST

START_TEST(passes_by_name) {
  const hlo_pass *steps = NULL;
  uint32_t n = 0, n_rows = 0;
  no_error(hlo_pass_parse_list(memory, "", &steps, &n));
  ck_assert_uint_eq(n, 0);
  expect_error(hlo_pass_parse_list(memory, "no-such-pass", &steps, &n), "there is no pass 'no-such-pass'");
  const hlo_pass_info *rows = hlo_pass_list(&n_rows);
  for (uint32_t k = 0; k < n_rows; k++) {
    ck_assert_ptr_eq(hlo_pass_find(rows[k].name, strlen(rows[k].name)), &rows[k]);
    ck_assert_msg(k == 0 || strcmp(rows[k - 1].name, rows[k].name) < 0, "%s is not in order", rows[k].name);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("verify");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, damaged_modules, 0, sizeof damages / sizeof *damages);
  tcase_add_loop_test(c, shape_rules, 0, sizeof rules / sizeof *rules);
  tcase_add_test(c, groups_run_until_nothing_changes);
  tcase_add_loop_test(c, passes_that_misbehave, 0, sizeof bad_passes / sizeof *bad_passes);
  tcase_add_test(c, passes_by_name);
  return run_suite("hlo_verify", c);
}
