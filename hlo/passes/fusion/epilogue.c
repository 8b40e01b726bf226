/* epilogue.c - output fusions: bias, normalisation, activation and residual run in the kernel of the convolution or
 * dot before them.
 *
 * Order: best after simplify, batch_norm and transpose_sinking, before the other fusion passes.  Keeps: results (a
 * target may round once at the end instead of after each step).  Breaks: the assumption that every contraction is
 * outside of a fusion.  A fusion has kind output, one contraction, and one result, which is the last of a chain.  Each
 * step of the chain is the only user of the step before it.  A step is one operation that target->takes_epilogue
 * accepts, or an activation of several operations (hlo/analysis/activation.h) that target->takes_activation accepts.
 * The operands of the contraction are operands of the fusion, except weights of small integers that the target scales
 * in the same kernel.  If two contractions are added, the addition goes to the later one. */
#include <string.h>

#include "hlo/passes/fusion/fuse.h"
#include "hlo/analysis/quantized.h"

static bool takes(const pass_context *c, const hlo_instr *contraction, const hlo_instr *consumer, hlo_value v) {
  for (uint32_t k = 0; k < consumer->n_operands; k++) {
    if (hlo_value_equal(consumer->operands[k], v)) {
      return c->target->takes_epilogue(c->target->data, contraction, consumer, k);
    }
  }
  return false;
}

static bool any_taken(const bool *taken, uint32_t n, hlo_instr *const *members) {
  for (uint32_t k = 0; k < n; k++) {
    if (taken[members[k]->id]) {
      return true;
    }
  }
  return false;
}

/* Appends the instructions of the activation that reads `x` to the list members[], whose length is *n.  Returns false
 * if there is no activation, if the target does not support it, if one of its instructions is in another chain already,
 * or if the list would become too long. */
static bool follow_activation(const pass_context *c, hlo_instr *contraction, hlo_instr *x, const bool *taken,
                              hlo_instr **members, uint32_t *n) {
  const hlo_target *t = c->target;
  hlo_activation a;
  if (!t->takes_activation || !hlo_find_activation(x, NULL, NULL, &a) || *n + a.n > FUSE_MAX_MEMBERS ||
      any_taken(taken, a.n, a.members) || !t->takes_activation(t->data, contraction, x, &a)) {
    return false;
  }
  memcpy(members + *n, a.members, a.n * sizeof *members);
  *n += a.n;
  return true;
}

/* Writes the chain that begins with the contraction to members[FUSE_MAX_MEMBERS] and returns its length.  taken[id]
 * says that an instruction is in a chain already. */
static uint32_t follow(const pass_context *c, hlo_instr *contraction, const bool *taken, hlo_instr **members) {
  uint32_t n = 0;
  members[n++] = contraction;
  while (n < FUSE_MAX_MEMBERS) {
    hlo_value v = hlo_result(members[n - 1], 0);
    if (follow_activation(c, contraction, v.def, taken, members, &n)) {
      continue;
    }
    hlo_instr *next = hlo_only_user(v);
    if (!next || next->n_results != 1 || taken[next->id] || !takes(c, contraction, next, v)) {
      break;
    }
    members[n++] = next;
  }
  return n;
}

/* If the target dequantises the contraction's weights in the same kernel, inserts the instructions that do this at the
 * beginning of members[n].  Returns the new number of members. */
static uint32_t precede(const pass_context *c, hlo_instr **members, uint32_t n) {
  const hlo_target *t = c->target;
  hlo_quantized_weights w;
  if (!t->takes_quantized_weights || !hlo_quantized_weights_of(members[0], &w) || !hlo_literal(w.q) ||
      n + w.n > FUSE_MAX_MEMBERS || !t->takes_quantized_weights(t->data, members[0])) {
    return n;
  }
  memmove(members + w.n, members, n * sizeof *members);
  memcpy(members, w.members, w.n * sizeof *members);
  return n + w.n;
}

static status fuse_epilogues(hlo_computation *c, pass_context *context, bool *changed) {
  arena *scratch = context->scratch;
  hlo_fuser f = hlo_fuser_make(c, scratch);
  bool *taken = ARENA_NEW_N(scratch, bool, 2 * (size_t)f.n_ids + 1); /* fusions get new ids */
  hlo_instr *members[FUSE_MAX_MEMBERS], **contractions = ARENA_NEW_N(scratch, hlo_instr *, f.n_ids + 1);
  uint32_t n_contractions = 0;
  HLO_FOR_EACH(i, c) {
    if (hlo_info(i)->kind == HLO_CONTRACTION) {
      contractions[n_contractions++] = i;
    }
  }
  while (n_contractions) { /* the contractions are visited from the last to the first */
    TRY(budget_check(arena_budget(scratch)));
    uint32_t n = follow(context, contractions[--n_contractions], taken, members);
    n = precede(context, members, n);
    if (n == 1) {
      continue;
    }
    for (uint32_t k = 0; k < n; k++) {
      taken[members[k]->id] = true;
    }
    hlo_instr *fusion = hlo_fuse(&f, HLO_FUSION_OUTPUT, n, members);
    taken[fusion->id] = true;
    *changed = true;
    hlo_pass_note(context, "fusions", 1);
    hlo_pass_note(context, "instructions in them", n);
  }
  return NULL;
}

status pass_epilogue(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target->takes_epilogue; k++) {
    TRY(fuse_epilogues(walked[k], c, changed));
  }
  return NULL;
}
