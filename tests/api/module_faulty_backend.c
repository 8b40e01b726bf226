/* module_faulty_backend.c - the toy backend with a fault: what a node called "bad" computes is wrong by 1. */
#include <string.h>

#include "runtime/exec/executable.h"

#define onnx_xla_backend toy_backend
#include "tests/api/module_toy_backend.c"
#undef onnx_xla_backend

static status run_faulty(const rt_thunk *t, rt_run *r) {
  TRY(run(t, r));
  const rt_program *p = r->program;
  if (t->n_nodes && strncmp(p->nodes[t->nodes[0]].text, "bad:", 4) == 0) {
    *(float *)rt_address(r, &t->buffers[t->n_inputs]) += 1;
  }
  return NULL;
}

static const rt_thunk_kind faulty_kinds[] = {{.name = "toy.loop", .load = load, .run = run_faulty}};
static const rt_target faulty_target = {.abi = RT_ABI, .name = "toy", .kinds = faulty_kinds, .n_kinds = 1};
static const rt_backend faulty = {
    .abi = RT_ABI, .adopt_guard = guard_adopt, .target = &faulty_target, .compiler = &compiler};

rt_backend_entry onnx_xla_backend;

const rt_backend *onnx_xla_backend(uint32_t abi) { return abi == RT_ABI ? &faulty : toy_backend(0); }
