/* abi.h - declares the parts of ONNX Runtime's C interface that a plugin execution provider needs (API version 23, ONNX
 * Runtime 1.23).
 *
 * Debian 12 has no headers of ONNX Runtime, so the parts in use are declared here, under their original
 * names. Functions are only ever appended to the tables of the interface, so the position of a function is
 * fixed; positions that are not used are gaps.  If a real header is installed, tests/build/test-ort-abi
 * compares the positions with it. onnxruntime_c_api.h and onnxruntime_ep_c_api.h document the functions. */
#ifndef PLUGIN_ONNXRUNTIME_ABI_H
#define PLUGIN_ONNXRUNTIME_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ORT_SHAPE_API is the first version of the interface with TensorTypeAndShape_HasShape. */
enum { ORT_API_VERSION = 23, ORT_SHAPE_API = 24 };

#define ORT_OPAQUE(name) typedef struct name name
ORT_OPAQUE(OrtEpDevice);
ORT_OPAQUE(OrtEpGraphSupportInfo);
ORT_OPAQUE(OrtExternalInitializerInfo);
ORT_OPAQUE(OrtGraph);
ORT_OPAQUE(OrtHardwareDevice);
ORT_OPAQUE(OrtKernelContext);
ORT_OPAQUE(OrtKeyValuePairs);
ORT_OPAQUE(OrtLogger);
ORT_OPAQUE(OrtMemoryInfo);
ORT_OPAQUE(OrtNode);
ORT_OPAQUE(OrtNodeComputeContext);
ORT_OPAQUE(OrtOpAttr);
ORT_OPAQUE(OrtSessionOptions);
ORT_OPAQUE(OrtStatus);
ORT_OPAQUE(OrtTensorTypeAndShapeInfo);
ORT_OPAQUE(OrtTypeInfo);
ORT_OPAQUE(OrtValue);
ORT_OPAQUE(OrtValueInfo);
typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;

typedef enum OrtErrorCode {
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11
} OrtErrorCode;
typedef enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE,
  ORT_LOGGING_LEVEL_INFO,
  ORT_LOGGING_LEVEL_WARNING
} OrtLoggingLevel;
typedef enum OrtHardwareDeviceType { OrtHardwareDeviceType_CPU } OrtHardwareDeviceType;
typedef enum ONNXType { ONNX_TYPE_UNKNOWN, ONNX_TYPE_TENSOR } ONNXType;
typedef enum OrtOpAttrType {
  ORT_OP_ATTR_UNDEFINED,
  ORT_OP_ATTR_INT,
  ORT_OP_ATTR_INTS,
  ORT_OP_ATTR_FLOAT,
  ORT_OP_ATTR_FLOATS,
  ORT_OP_ATTR_STRING,
  ORT_OP_ATTR_STRINGS,
  ORT_OP_ATTR_GRAPH,
  ORT_OP_ATTR_TENSOR
} OrtOpAttrType;
typedef int ONNXTensorElementDataType; /* numbers up to 16 are those of TensorProto.DataType; larger numbers
                                          mean other types than in TensorProto */

/* The functions at positions [from, to) of a table, which are not used. */
#define ORT_GAP(from, to) void (*gap_##from[(to) - (from)])(void)
#define ORT_FN(name, ...) OrtStatus *(*name)(__VA_ARGS__)

typedef struct OrtModelEditorApi {
  ORT_GAP(0, 6);
  ORT_FN(CreateNode, const char *operator_name, const char *domain_name, const char *node_name,
         const char *const *input_names, size_t input_names_len, const char *const *output_names,
         size_t output_names_len, OrtOpAttr **attributes, size_t attribs_len, OrtNode **node);
} OrtModelEditorApi;

typedef struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
} OrtNodeFusionOptions;

typedef struct OrtEpApi {
  ORT_FN(CreateEpDevice, OrtEpFactory *ep_factory, const OrtHardwareDevice *hardware_device,
         const OrtKeyValuePairs *ep_metadata, const OrtKeyValuePairs *ep_options, OrtEpDevice **ep_device);
  void (*ReleaseEpDevice)(OrtEpDevice *device);
  ORT_FN(EpGraphSupportInfo_AddNodesToFuse, OrtEpGraphSupportInfo *graph_support_info, const OrtNode *const *nodes,
         size_t num_nodes, const OrtNodeFusionOptions *node_fusion_options);
} OrtEpApi;

typedef struct OrtApi {
  OrtStatus *(*CreateStatus)(OrtErrorCode code, const char *msg);
  ORT_GAP(1, 2);
  const char *(*GetErrorMessage)(const OrtStatus *status);
  ORT_GAP(3, 51);
  ORT_FN(GetTensorMutableData, OrtValue *value, void **out);
  ORT_GAP(52, 53);
  ORT_FN(GetStringTensorDataLength, const OrtValue *value, size_t *len);
  ORT_FN(GetStringTensorContent, const OrtValue *value, void *s, size_t s_len, size_t *offsets, size_t offsets_len);
  ORT_FN(CastTypeInfoToTensorInfo, const OrtTypeInfo *type_info, const OrtTensorTypeAndShapeInfo **out);
  ORT_FN(GetOnnxTypeFromTypeInfo, const OrtTypeInfo *type_info, ONNXType *out);
  ORT_GAP(57, 60);
  ORT_FN(GetTensorElementType, const OrtTensorTypeAndShapeInfo *info, ONNXTensorElementDataType *out);
  ORT_FN(GetDimensionsCount, const OrtTensorTypeAndShapeInfo *info, size_t *out);
  ORT_FN(GetDimensions, const OrtTensorTypeAndShapeInfo *info, int64_t *dim_values, size_t dim_values_length);
  ORT_GAP(63, 65);
  ORT_FN(GetTensorTypeAndShape, const OrtValue *value, OrtTensorTypeAndShapeInfo **out);
  ORT_GAP(66, 88);
  ORT_FN(KernelContext_GetInputCount, const OrtKernelContext *context, size_t *out);
  ORT_FN(KernelContext_GetOutputCount, const OrtKernelContext *context, size_t *out);
  ORT_FN(KernelContext_GetInput, const OrtKernelContext *context, size_t index, const OrtValue **out);
  ORT_FN(KernelContext_GetOutput, OrtKernelContext *context, size_t index, const int64_t *dim_values, size_t dim_count,
         OrtValue **out);
  ORT_GAP(92, 93);
  void (*ReleaseStatus)(OrtStatus *status);
  ORT_GAP(94, 96);
  void (*ReleaseValue)(OrtValue *value);
  ORT_GAP(97, 99);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *info);
  ORT_GAP(100, 211);
  ORT_FN(CreateOpAttr, const char *name, const void *data, int len, OrtOpAttrType type, OrtOpAttr **op_attr);
  void (*ReleaseOpAttr)(OrtOpAttr *op_attr);
  ORT_GAP(213, 247);
  ORT_FN(Logger_LogMessage, const OrtLogger *logger, OrtLoggingLevel log_severity_level, const char *message,
         const char *file_path, int line_number, const char *func_name);
  ORT_GAP(248, 272);
  ORT_FN(ReadOpAttr, const OrtOpAttr *op_attr, OrtOpAttrType type, void *data, size_t len, size_t *out);
  ORT_GAP(273, 289);
  ORT_FN(GetValueInfoName, const OrtValueInfo *value_info, const char **name);
  ORT_FN(GetValueInfoTypeInfo, const OrtValueInfo *value_info, const OrtTypeInfo **type_info);
  const OrtModelEditorApi *(*GetModelEditorApi)(void);
  ORT_GAP(292, 298);
  void (*GetKeyValuePairs)(const OrtKeyValuePairs *kvps, const char *const **keys, const char *const **values,
                           size_t *num_entries);
  ORT_GAP(299, 300);
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs *kvps);
  ORT_GAP(301, 307);
  OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice *device);
  ORT_GAP(308, 317);
  const OrtEpApi *(*GetEpApi)(void);
  ORT_FN(GetTensorSizeInBytes, const OrtValue *ort_value, size_t *size);
  ORT_GAP(319, 326);
  ORT_FN(ValueInfo_GetInitializerValue, const OrtValueInfo *value_info, const OrtValue **initializer_value);
  ORT_FN(ValueInfo_GetExternalInitializerInfo, const OrtValueInfo *value_info, OrtExternalInitializerInfo **info);
  ORT_GAP(328, 330);
  ORT_FN(ValueInfo_IsGraphOutput, const OrtValueInfo *value_info, bool *is_graph_output);
  ORT_FN(ValueInfo_IsConstantInitializer, const OrtValueInfo *value_info, bool *is_constant_initializer);
  ORT_FN(ValueInfo_IsFromOuterScope, const OrtValueInfo *value_info, bool *is_from_outer_scope);
  ORT_FN(Graph_GetName, const OrtGraph *graph, const char **graph_name);
  ORT_FN(Graph_GetModelPath, const OrtGraph *graph, const char **model_path);
  ORT_FN(Graph_GetOnnxIRVersion, const OrtGraph *graph, int64_t *onnx_ir_version);
  ORT_FN(Graph_GetNumOperatorSets, const OrtGraph *graph, size_t *num_operator_sets);
  ORT_FN(Graph_GetOperatorSets, const OrtGraph *graph, const char **domains, int64_t *opset_versions,
         size_t num_operator_sets);
  ORT_FN(Graph_GetNumInputs, const OrtGraph *graph, size_t *num_inputs);
  ORT_FN(Graph_GetInputs, const OrtGraph *graph, const OrtValueInfo **inputs, size_t num_inputs);
  ORT_FN(Graph_GetNumOutputs, const OrtGraph *graph, size_t *num_outputs);
  ORT_FN(Graph_GetOutputs, const OrtGraph *graph, const OrtValueInfo **outputs, size_t num_outputs);
  ORT_FN(Graph_GetNumInitializers, const OrtGraph *graph, size_t *num_initializers);
  ORT_FN(Graph_GetInitializers, const OrtGraph *graph, const OrtValueInfo **initializers, size_t num_initializers);
  ORT_FN(Graph_GetNumNodes, const OrtGraph *graph, size_t *num_nodes);
  ORT_FN(Graph_GetNodes, const OrtGraph *graph, const OrtNode **nodes, size_t num_nodes);
  ORT_FN(Graph_GetParentNode, const OrtGraph *graph, const OrtNode **node);
  ORT_GAP(347, 348);
  ORT_FN(Node_GetId, const OrtNode *node, size_t *node_id);
  ORT_FN(Node_GetName, const OrtNode *node, const char **node_name);
  ORT_FN(Node_GetOperatorType, const OrtNode *node, const char **operator_type);
  ORT_FN(Node_GetDomain, const OrtNode *node, const char **domain_name);
  ORT_FN(Node_GetSinceVersion, const OrtNode *node, int *since_version);
  ORT_FN(Node_GetNumInputs, const OrtNode *node, size_t *num_inputs);
  ORT_FN(Node_GetInputs, const OrtNode *node, const OrtValueInfo **inputs, size_t num_inputs);
  ORT_FN(Node_GetNumOutputs, const OrtNode *node, size_t *num_outputs);
  ORT_FN(Node_GetOutputs, const OrtNode *node, const OrtValueInfo **outputs, size_t num_outputs);
  ORT_FN(Node_GetNumImplicitInputs, const OrtNode *node, size_t *num_implicit_inputs);
  ORT_FN(Node_GetImplicitInputs, const OrtNode *node, const OrtValueInfo **implicit_inputs, size_t num_implicit_inputs);
  ORT_FN(Node_GetNumAttributes, const OrtNode *node, size_t *num_attributes);
  ORT_FN(Node_GetAttributes, const OrtNode *node, const OrtOpAttr **attributes, size_t num_attributes);
  ORT_FN(Node_GetAttributeByName, const OrtNode *node, const char *attribute_name, const OrtOpAttr **attribute);
  ORT_FN(OpAttr_GetTensorAttributeAsOrtValue, const OrtOpAttr *attribute, OrtValue **attr_tensor);
  ORT_FN(OpAttr_GetType, const OrtOpAttr *attribute, OrtOpAttrType *type);
  ORT_FN(OpAttr_GetName, const OrtOpAttr *attribute, const char **name);
  ORT_FN(Node_GetNumSubgraphs, const OrtNode *node, size_t *num_subgraphs);
  ORT_FN(Node_GetSubgraphs, const OrtNode *node, const OrtGraph **subgraphs, size_t num_subgraphs,
         const char **attribute_names);
  ORT_GAP(367, 369);
  void (*ReleaseExternalInitializerInfo)(OrtExternalInitializerInfo *info);
  const char *(*ExternalInitializerInfo_GetFilePath)(const OrtExternalInitializerInfo *info);
  int64_t (*ExternalInitializerInfo_GetFileOffset)(const OrtExternalInitializerInfo *info);
  ORT_GAP(372, 379);
  ORT_FN(GetSessionOptionsConfigEntries, const OrtSessionOptions *options, OrtKeyValuePairs **out);
  ORT_GAP(380, 390);
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo *info); /* exists from ORT_SHAPE_API on */
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

/* --- the functions that a provider implements --- */

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  ORT_FN(CreateState, OrtNodeComputeInfo *self, OrtNodeComputeContext *compute_context, void **compute_state);
  ORT_FN(Compute, OrtNodeComputeInfo *self, void *compute_state, OrtKernelContext *kernel_context);
  void (*ReleaseState)(OrtNodeComputeInfo *self, void *compute_state);
};

struct OrtEp {
  uint32_t ort_version_supported;
  const char *(*GetName)(const OrtEp *self);
  ORT_FN(GetCapability, OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *graph_support_info);
  ORT_FN(Compile, OrtEp *self, const OrtGraph **graphs, const OrtNode **fused_nodes, size_t count,
         OrtNodeComputeInfo **node_compute_infos, OrtNode **ep_context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp *self, OrtNodeComputeInfo **node_compute_infos, size_t num_node_compute_infos);
  ORT_GAP(5, 13); /* optional functions, which are NULL here */
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char *(*GetName)(const OrtEpFactory *self);
  const char *(*GetVendor)(const OrtEpFactory *self);
  ORT_FN(GetSupportedDevices, OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t num_devices,
         OrtEpDevice **ep_devices, size_t max_ep_devices, size_t *num_ep_devices);
  ORT_FN(CreateEp, OrtEpFactory *self, const OrtHardwareDevice *const *devices,
         const OrtKeyValuePairs *const *ep_metadata_pairs, size_t num_devices, const OrtSessionOptions *session_options,
         const OrtLogger *logger, OrtEp **ep);
  void (*ReleaseEp)(OrtEpFactory *self, OrtEp *ep);
  uint32_t (*GetVendorId)(const OrtEpFactory *self);
  const char *(*GetVersion)(const OrtEpFactory *self);
  ORT_GAP(8, 11); /* optional functions, which are NULL here */
  /* required, since ONNX Runtime calls it without checking for NULL */
  ORT_FN(CreateDataTransfer, OrtEpFactory *self, void **data_transfer);
  bool (*IsStreamAware)(const OrtEpFactory *self);
  ORT_GAP(13, 14);
};

/* The functions that the library exports. */
OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *default_logger,
                             OrtEpFactory **factories, size_t max_factories, size_t *num_factories);
OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

#endif
