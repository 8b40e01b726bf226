/* onnxifi.c - libonnxifi-xla.so: ONNXIFI 1.0, as ONNX's own loader expects it, on top of the core. */
#include "plugin/onnxifi/graph.h"

static onnxStatus read_descriptor(const void *descriptor, onnxTensorDescriptorV1 *out) {
  *out = *(const onnxTensorDescriptorV1 *)descriptor;
  return ONNXIFI_STATUS_SUCCESS;
}

static const ifi_id ids[] = {{"cpu", "onnx-xla cpu", false, NULL}, {"ref", "onnx-xla reference", true, NULL}};

const ifi_abi ifi_the_abi = {
    .library = "onnxifi-xla",
    .extensions = "",
    .ids = ids,
    .n_ids = sizeof ids / sizeof *ids,
    .max_optimization = ONNXIFI_OPTIMIZATION_LOW_DELAY,
    .descriptor_bytes = sizeof(onnxTensorDescriptorV1),
    .read_descriptor = read_descriptor,
};

onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t *auxPropertiesList, size_t onnxModelSize,
                         const void *onnxModel, uint32_t weightsCount, const onnxTensorDescriptorV1 *weightDescriptors,
                         onnxGraph *graph) {
  /* the standard defines no properties */
  bool any = auxPropertiesList && *auxPropertiesList != ONNXIFI_GRAPH_PROPERTY_NONE;
  return ifi_init_graph(backend, any ? ONNXIFI_STATUS_UNSUPPORTED_PROPERTY : ONNXIFI_STATUS_SUCCESS, onnxModelSize,
                        onnxModel, &(ifi_list){weightsCount, weightDescriptors}, graph);
}

onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1 *inputDescriptors,
                          uint32_t outputsCount, const onnxTensorDescriptorV1 *outputDescriptors) {
  return ifi_set_graph_io(graph, &(ifi_list){inputsCount, inputDescriptors},
                          &(ifi_list){outputsCount, outputDescriptors});
}
