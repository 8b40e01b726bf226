/* composites.c - the table of composites. */
#include "hlo/ir/composites.h"

#include <string.h>

static const hlo_composite_info infos[] = {
#define COMPOSITE(id, name, version, operands, ints, floats, results) {name, version, operands, ints, floats, results},
#include "hlo/ir/composites.def"
#undef COMPOSITE
};

const hlo_composite_info *hlo_composite_get_info(hlo_composite_id id) { return &infos[id]; }

hlo_composite_id hlo_composite_from_name(const char *name) {
  int k = 0;
  while (k < HLO_COMPOSITE_COUNT && strcmp(infos[k].name, name) != 0) {
    k++;
  }
  return (hlo_composite_id)k;
}
