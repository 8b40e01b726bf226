/* provenance.c - tells from which nodes of the ONNX model a thunk comes, and collects all nodes in the program. */
#include "lower/provenance.h"

#include <string.h>

#include "hlo/analysis/queries.h"

provenance provenance_make(arena *a, rt_program *program) {
  provenance p = {.arena = a, .program = program};
  str_map_init(&p.numbers, a);
  return p;
}

/* Returns the operator in the source of an instruction, which is text such as "name: Operator". */
static const char *operator_of(const char *source) {
  const char *found = source;
  for (const char *at = source; (at = strstr(at, ": ")); at += 2) {
    found = at + 2;
  }
  return found;
}

static uint32_t number_of(provenance *p, const char *source) {
  rt_program *to = p->program;
  void **number = str_map_put(&p->numbers, source);
  if (!*number) {
    const char *text = arena_strdup(p->arena, source);
    *ARENA_PUSH(p->arena, to->nodes, to->n_nodes, p->cap_nodes) = (rt_node){text, operator_of(text)};
    *ARENA_PUSH(p->arena, p->listed, p->n_listed, p->cap_listed) = 0;
    *number = (void *)(uintptr_t)to->n_nodes;
  }
  return (uint32_t)(uintptr_t)*number - 1;
}

typedef struct node_list {
  uint32_t n, cap;
  uint32_t *numbers;
} node_list;

static void add_node(provenance *p, node_list *list, const char *source) {
  uint32_t number = number_of(p, source);
  if (p->listed[number] != p->n_thunks) {
    p->listed[number] = p->n_thunks;
    *ARENA_PUSH(p->arena, list->numbers, list->n, list->cap) = number;
  }
}

/* Returns true if the node of an instruction in a fusion is listed for the fusion's thunk.  Constants, broadcasts and
 * iotas do not count, since passes merge equal ones that come from many nodes. */
static bool is_member(const hlo_instr *i) { return i->op != HLO_PARAMETER && i->op != HLO_CONSTANT && !hlo_is_free(i); }

/* Adds the node of an instruction to the list; for a fusion, adds the nodes of its members, in their order. */
static void add_nodes(provenance *p, node_list *list, const hlo_instr *i) {
  uint32_t before = list->n;
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j; j = j->next) {
    if (is_member(j)) {
      add_nodes(p, list, j);
    }
  }
  if (list->n == before && *i->source) {
    add_node(p, list, i->source);
  }
}

/* Returns the index in the list of the node from which a fusion's contraction comes.  The other nodes of the list
 * belong to its epilogue.  Returns the length of the list if there is no contraction. */
static uint32_t contraction_in(provenance *p, const node_list *list, const hlo_instr *i) {
  const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL;
  while (j && j->op != HLO_DOT && j->op != HLO_CONVOLUTION) {
    j = j->next;
  }
  uint32_t k = 0, number = j && *j->source ? number_of(p, j->source) : UINT32_MAX;
  while (k < list->n && list->numbers[k] != number) {
    k++;
  }
  return k;
}

static const char *operation_of(arena *a, const hlo_instr *i) {
  return i->op == HLO_FUSION ? arena_printf(a, "%s fusion", hlo_enum_name(HLO_KIND_FUSION, hlo_int(i, HLO_ATTR_FUSION)))
                             : hlo_info(i)->name;
}

void provenance_tell(provenance *p, const hlo_instr *i, rt_thunk *t) {
  node_list list = {0};
  p->n_thunks++;
  add_nodes(p, &list, i);
  t->operation = operation_of(p->arena, i);
  t->n_nodes = list.n;
  t->nodes = list.numbers;
  t->contraction = contraction_in(p, &list, i);
}
