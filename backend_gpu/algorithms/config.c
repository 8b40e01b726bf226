/* config.c - see config.h. */
#include "backend_gpu/algorithms/config.h"

#include <string.h>

#include "backend_gpu/algorithms/attention.h"
#include "backend_gpu/algorithms/contraction.h"

void gpu_add_config(gpu_config_list *l, gpu_config c) {
  for (uint32_t k = 0; k < l->n; k++) {
    if (strcmp(l->items[k].name, c.name) == 0) {
      return;
    }
  }
  if (l->n < GPU_MOST_CONFIGS) {
    l->items[l->n++] = c;
  }
}

dim gpu_config_scratch(const gpu_config *c, const hlo_instr *i) {
  return gpu_is_attention_config(c) ? gpu_attention_scratch(c, i) : gpu_contraction_scratch(c, i);
}

dim gpu_config_counters(const gpu_config *c, const hlo_instr *i) {
  return gpu_is_attention_config(c) ? gpu_attention_counters(c, i) : gpu_contraction_counters(c, i);
}

uint32_t gpu_list_configs(const gpu_config_options *o, const hlo_instr *i, gpu_config *out) {
  hlo_attention a;
  return hlo_attention_of_fusion(i, &a) ? gpu_list_attention_configs(o, &a, out)
                                        : gpu_list_contraction_configs(o, i, out);
}

bool gpu_find_config(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out) {
  hlo_attention a;
  return hlo_attention_of_fusion(i, &a) ? gpu_find_attention_config(o, &a, name, out)
                                        : gpu_find_contraction_config(o, i, name, out);
}
