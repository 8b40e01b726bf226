/* ort_factory.c - what ONNX Runtime finds in the library: a factory of providers, and each session's provider. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/ort_parts.h"

enum { LATER_API = 25 }; /* ort_provider's `early` ends with it */

typedef struct factory {
  OrtEpFactory table; /* first */
  const OrtApi *api;
  bool early; /* ort_provider's */
  char name[128]; /* that the library was registered under; devices show it */
} factory;

/* --- errors and messages --- */

OrtStatus *ort_fail(const ort_provider *p, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return p->api->CreateStatus(ORT_EP_FAIL, text);
}

OrtStatus *ort_no_memory(const ort_provider *p) { return ort_fail(p, "onnx-xla: out of memory"); }

OrtStatus *ort_from_error(const ort_provider *p, const char *what, oxla_error *error) {
  if (!error) {
    return NULL;
  }
  OrtStatus *s = ort_fail(p, "onnx-xla: %s: %s", what, oxla_error_message(error));
  oxla_error_free(error);
  return s;
}

void ort_log(const ort_provider *p, OrtLoggingLevel level, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  OrtStatus *failed = p->api->Logger_LogMessage(p->logger, level, text, __FILE__, __LINE__, __func__);
  if (failed) {
    p->api->ReleaseStatus(failed);
  }
}

/* --- options --- */

/* An entry of the session's configuration; "" where there is none. */
static OrtStatus *read_entry(const OrtApi *api, const OrtSessionOptions *o, const char *key, size_t capacity, char *out) {
  int there = 0;
  *out = '\0';
  ORT_TRY(api->HasSessionConfigEntry(o, key, &there));
  return there ? api->GetSessionConfigEntry(o, key, out, &capacity) : NULL;
}

/* Provider options stand in the configuration as ep.<the provider's name in small letters>.<key>. */
static OrtStatus *read_option(const ort_provider *p, const OrtSessionOptions *o, const char *key, size_t capacity, char *out) {
  char full[192];
  snprintf(full, sizeof full, "ep.%s.%s", p->name, key);
  for (char *c = full; *c; c++) {
    *c = (char)tolower((unsigned char)*c);
  }
  return read_entry(p->api, o, full, capacity, out);
}

static bool is_on(const char *text) { return strcmp(text, "1") == 0 || strcmp(text, "true") == 0; }

static OrtStatus *read_options(ort_provider *p, const OrtSessionOptions *o) {
  const OrtApi *api = p->api;
  ort_options *out = &p->options;
  char text[64];
  ORT_TRY(read_option(p, o, "backend", sizeof out->backend, out->backend));
  ORT_TRY(read_option(p, o, "cache_dir", sizeof out->cache_dir, out->cache_dir));
  ORT_TRY(read_option(p, o, "tune", sizeof out->tune, out->tune));
  ORT_TRY(read_option(p, o, "threads", sizeof text, text));
  char *end;
  long threads = strtol(text, &end, 10);
  if (*end || threads < 0 || threads > 4096) {
    return api->CreateStatus(ORT_INVALID_ARGUMENT, "onnx-xla: option 'threads' is no number from 0 to 4096");
  }
  out->threads = (int)threads;
  ORT_TRY(read_option(p, o, "claim", sizeof text, text));
  out->claim_all = strcmp(text, "all") == 0;
  ORT_TRY(read_option(p, o, "verify", sizeof text, text));
  out->verify = is_on(text);
  ORT_TRY(read_entry(api, o, "ep.context_enable", sizeof text, text));
  out->context_enable = is_on(text);
  ORT_TRY(read_entry(api, o, "ep.context_embed_mode", sizeof text, text));
  out->context_embed = is_on(text);
  return read_entry(api, o, "ep.context_file_path", sizeof out->context_path, out->context_path);
}

/* --- providers --- */

static const char *provider_name(const OrtEp *self) { return ((const ort_provider *)self)->name; }

static OrtStatus *get_capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
  return ort_claim((ort_provider *)self, graph, support);
}

static OrtStatus *compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **nodes, size_t n, OrtNodeComputeInfo **infos,
                          OrtNode **context_nodes) {
  for (size_t k = 0; k < n; k++) {
    infos[k] = NULL;
  }
  ((ort_provider *)self)->has_compiled = true;
  for (size_t k = 0; k < n; k++) {
    ORT_TRY(ort_compile((ort_provider *)self, graphs[k], nodes[k], &infos[k], context_nodes ? &context_nodes[k] : NULL));
  }
  return NULL;
}

static void release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t n) {
  (void)self;
  for (size_t k = 0; k < n; k++) {
    ort_fused_destroy(infos[k]);
  }
}

static OrtStatus *create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, size_t n, const OrtSessionOptions *options,
                            const OrtLogger *logger, OrtEp **out) {
  (void)devices, (void)metadata, (void)n;
  const factory *f = (factory *)self;
  *out = NULL;
  ort_provider *p = calloc(1, sizeof *p);
  if (!p) {
    return f->api->CreateStatus(ORT_EP_FAIL, "onnx-xla: out of memory");
  }
  *p = (ort_provider){.ep = {.ort_version_supported = ORT_API_VERSION, .GetName = provider_name, .GetCapability = get_capability,
                             .Compile = compile, .ReleaseNodeComputeInfos = release_infos},
                      .api = f->api, .logger = logger, .name = f->name, .early = f->early};
  OrtStatus *failed = read_options(p, options);
  if (failed) {
    free(p);
    return failed;
  }
  *out = &p->ep;
  return NULL;
}

static void release_ep(OrtEpFactory *self, OrtEp *ep) {
  (void)self;
  free(ep);
}

/* --- the factory --- */

static const char *factory_name(const OrtEpFactory *self) { return ((const factory *)self)->name; }
static const char *factory_vendor(const OrtEpFactory *self) { return (void)self, "onnx-xla"; }
static uint32_t factory_vendor_id(const OrtEpFactory *self) { return (void)self, 0; }
static const char *factory_version(const OrtEpFactory *self) { return (void)self, PACKAGE_VERSION; }
static bool is_stream_aware(const OrtEpFactory *self) { return (void)self, false; }

/* Arrays stay in the host's memory. */
static OrtStatus *no_transfer(OrtEpFactory *self, void **out) {
  (void)self;
  *out = NULL;
  return NULL;
}

/* The CPU. */
static OrtStatus *supported_devices(OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t n, OrtEpDevice **out,
                                    size_t room, size_t *n_out) {
  const OrtApi *api = ((factory *)self)->api;
  *n_out = 0;
  for (size_t k = 0; k < n && *n_out < room; k++) {
    if (api->HardwareDevice_Type(devices[k]) == OrtHardwareDeviceType_CPU) {
      ORT_TRY(api->GetEpApi()->CreateEpDevice(self, devices[k], NULL, NULL, &out[*n_out]));
      ++*n_out;
    }
  }
  return NULL;
}

OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *default_logger,
                             OrtEpFactory **factories, size_t max_factories, size_t *num_factories) {
  (void)default_logger;
  *num_factories = 0;
  const OrtApi *api = base->GetApi(ORT_API_VERSION);
  if (!api) { /* there is nothing to make a status with */
    fprintf(stderr, "onnx-xla: ONNX Runtime %s is too old for a plugin that compiles: 1.23 is the first\n",
            base->GetVersionString());
    return NULL;
  }
  factory *f = max_factories ? calloc(1, sizeof *f) : NULL;
  if (!f) {
    return api->CreateStatus(ORT_INVALID_ARGUMENT, "onnx-xla: no room for a factory");
  }
  f->table = (OrtEpFactory){.ort_version_supported = ORT_API_VERSION, .GetName = factory_name, .GetVendor = factory_vendor,
                            .GetSupportedDevices = supported_devices, .CreateEp = create_ep, .ReleaseEp = release_ep,
                            .GetVendorId = factory_vendor_id, .GetVersion = factory_version,
                            .CreateDataTransfer = no_transfer, .IsStreamAware = is_stream_aware};
  f->api = api;
  f->early = !base->GetApi(LATER_API);
  snprintf(f->name, sizeof f->name, "%s", registered_name && *registered_name ? registered_name : ORT_EP_NAME);
  factories[0] = &f->table;
  *num_factories = 1;
  return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *self) {
  free(self);
  return NULL;
}
