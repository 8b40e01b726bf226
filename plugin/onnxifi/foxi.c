/* foxi.c - libfoxi-xla.so: foxi's descriptors and onnxInitGraph, on top of the ONNXIFI core. */
#include "plugin/onnxifi/foxi_internal.h"

_Static_assert(sizeof(foxiTensorDescriptorV1) == 96, "the layout of foxi on machines of 64 bits");

/* Quantised and offline arrays are refused, since an ONNX model does not declare such inputs and weights. */
static onnxStatus read_descriptor(const void *descriptor, onnxTensorDescriptorV1 *out) {
  const foxiTensorDescriptorV1 *d = descriptor;
  *out = (onnxTensorDescriptorV1){.tag = d->tag,
                                  .name = d->name,
                                  .dataType = d->dataType,
                                  .memoryType = d->memoryType,
                                  .dimensions = d->dimensions,
                                  .shape = d->shape,
                                  .buffer = d->buffer};
  return d->quantizationParams ? ONNXIFI_STATUS_UNSUPPORTED_DATATYPE
         : d->isOffline        ? ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE
                               : ONNXIFI_STATUS_SUCCESS;
}

/* By default Caffe2 uses the second ID for ONNX models and the first one for models of its own format. */
static const ifi_id ids[] = {{"cpu", "onnx-xla cpu", false, NULL},
                             {"cpu", "onnx-xla cpu (ONNX models)", false, NULL},
                             {"ref", "onnx-xla reference", true, NULL}};

const ifi_abi ifi_the_abi = {
    .library = "foxi-xla",
    .extensions = "onnx_extension_function",
    .ids = ids,
    .n_ids = sizeof ids / sizeof *ids,
    .max_optimization = ONNXIFI_OPTIMIZATION_AOT,
    .descriptor_bytes = sizeof(foxiTensorDescriptorV1),
    .read_descriptor = read_descriptor,
    .set_input_type = foxi_set_input_type,
    .fills_batches = true,
};

/* AOT changes nothing: a graph whose shapes are fixed is compiled by onnxInitGraph in any case, and others cannot be.
 * Instrumenting nodes is not supported, since a trace has no times of nodes. */
static onnxStatus check_properties(const uint64_t *list) {
  for (; list && *list != ONNXIFI_GRAPH_PROPERTY_NONE; list++) {
    if (*list != ONNXIFI_GRAPH_PROPERTY_AOT) {
      return ONNXIFI_STATUS_UNSUPPORTED_PROPERTY;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* Two arguments are not used: maxSeqLength is for Caffe2's own sparse lookups, and deferredWeightReader reads weights
 * that a descriptor marks as offline, which read_descriptor refuses. */
onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t *auxPropertiesList, size_t onnxModelSize,
                         const void *onnxModel, uint32_t weightsCount, const foxiTensorDescriptorV1 *weightDescriptors,
                         onnxGraph *graph, uint32_t maxSeqLength, void *deferredWeightReader) {
  (void)maxSeqLength;
  (void)deferredWeightReader;
  return ifi_init_graph(backend, check_properties(auxPropertiesList), onnxModelSize, onnxModel,
                        &(ifi_list){weightsCount, weightDescriptors}, graph);
}

onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t inputsCount, const foxiTensorDescriptorV1 *inputDescriptors,
                          uint32_t outputsCount, const foxiTensorDescriptorV1 *outputDescriptors) {
  return ifi_set_graph_io(graph, &(ifi_list){inputsCount, inputDescriptors},
                          &(ifi_list){outputsCount, outputDescriptors});
}
