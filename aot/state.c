/* state.c - outputs that become inputs of the next run: which memory they have, and how a stream begins anew.
 *
 * A state of constant size is an input that is kept.  The output that becomes its next value is computed in the input's
 * memory if the program can do that; otherwise it is copied there after the run.  A state that grows is an array with
 * room (hlo/passes/carry.h), which is a parameter after the inputs that the caller knows; the input and the output
 * share its memory. */
#include "aot/host.h"

/* Returns the number of the parameter in which the output is carried, or the number of all parameters if it is not
 * carried. */
static uint32_t parameter_of(const aot_host *h, uint32_t output) {
  uint32_t carried = h->outputs.io[output].carried;
  return carried ? carried - 1 : h->inputs.n;
}

static void share(aot_ports *ports, uint32_t k, uint32_t input) {
  ports->storage[k] = AOT_SHARED;
  ports->kept_in[k] = input;
}

static status choose_storage(aot_host *h, const aot_carry *c) {
  const rt_io *output = &h->outputs.io[c->output], *input = &h->inputs.io[c->input];
  uint32_t parameter = parameter_of(h, c->output);
  bool grows = c->axis >= 0;
  CHECK_THAT(grows ? output->in_place && parameter >= h->options->n_inputs : shape_equal(&output->shape, &input->shape),
             STATUS_UNSUPPORTED, "output '%s' cannot be carried in input '%s': it is not that input with %s",
             output->name, input->name, grows ? "more rows" : "other elements");
  if (grows) {
    h->inputs.storage[parameter] = AOT_KEPT;
    share(&h->inputs, c->input, parameter);
    share(&h->outputs, c->output, parameter);
    return NULL;
  }
  h->inputs.storage[c->input] = AOT_KEPT;
  share(&h->outputs, c->output, c->input);
  if (!output->in_place || parameter != c->input) {
    h->outputs.storage[c->output] = AOT_COPIED;
  }
  return NULL;
}

status aot_choose_storage(aot_host *h) {
  for (uint32_t k = 0; k < h->options->n_carried; k++) {
    TRY(choose_storage(h, &h->options->carried[k]));
  }
  return NULL;
}

/* Writes int reset(context), which sets all states to zeros. */
void aot_write_reset(aot_host *h) {
  const emit_ir *w = h->ir;
  (void)aot_function(h, AOT_VERSIONED, "reset", w->i32, 1, &h->ir->ptr);
  LLVMValueRef bound = aot_compare(h, LLVMIntEQ, aot_get(h, WORD_STATE), aot_i64(h, AOT_BOUND));
  aot_return_if(h, LLVMBuildNot(w->builder, bound, ""), aot_error_value(h, AOT_NOT_READY));
  LLVMBuildMemSet(w->builder, aot_get_ptr(h, WORD_ARENA), LLVMConstInt(w->i8, 0, 0), aot_get(h, WORD_KEPT_BYTES), 64);
  aot_return(h, AOT_OK);
}
