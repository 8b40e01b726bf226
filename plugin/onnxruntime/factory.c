/* factory.c - the factory of providers, which ONNX Runtime gets from the library, and the provider of a session with
 * its options. */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "plugin/onnxruntime/internal.h"

/* Minor versions of ONNX Runtime 1.x, which are also the versions of its interface. */
enum { FIRST_WITH_RANKS = ORT_SHAPE_API, FIRST_WITH_BODIES = 25 };

typedef struct factory {
  OrtEpFactory table; /* must be the first member */
  const OrtApi *api;
  bool early, tells_ranks; /* as in ort_provider */
  char name[128]; /* the name under which the library was registered; the provider's devices have the same name */
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

typedef enum option_type {
  option_text,
  option_flag,
  option_count,
  option_choice
} option_type; /* option_choice is a text that is one of `choices` */

/* Provider options are in the session's configuration as ep.<the provider's name in lower case>.<name>, and ONNX
 * Runtime's own options for compiled models, which are marked as `general`, as ep.<name>. */
static const struct option {
  const char *name;
  bool general;
  option_type type;
  size_t place, room;
  const char *choices; /* the allowed words, as "a|b|c" */
} known_options[] = {
#define PLACE(field) offsetof(ort_options, field), sizeof(((ort_options *)0)->field)
#define PUBLIC_OPTION(member, type, name, argument) {#name, false, option_##type, PLACE(name), argument},
#include "runtime/program/compile_options.def"
    {"backend", false, option_text, PLACE(backend), NULL},
    {"fallback", false, option_text, PLACE(fallback), NULL},
    {"cache_dir", false, option_text, PLACE(cache_dir), NULL},
    {"check_memory", false, option_flag, PLACE(check_memory), NULL},
    {"claim", false, option_choice, PLACE(claim), "cost|all"},
    {"verify", false, option_flag, PLACE(verify), NULL},
    {"context_enable", true, option_flag, PLACE(context_enable), NULL},
    {"context_embed_mode", true, option_flag, PLACE(context_embed), NULL},
    {"context_file_path", true, option_text, PLACE(context_path), NULL},
#undef PLACE
};

static OrtStatus *wrong_option(const ort_provider *p, const struct option *o, const char *text, const char *rule) {
  return ort_fail(p, "onnx-xla: option '%s' is \"%s\"; it must be %s", o->name, text, rule);
}

static OrtStatus *set_flag(const ort_provider *p, const struct option *o, const char *text, bool *out) {
  *out = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
  bool off = !*text || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
  return *out || off ? NULL : wrong_option(p, o, text, "0 or 1");
}

static OrtStatus *set_count(const ort_provider *p, const struct option *o, const char *text, int *out) {
  char *end;
  long n = strtol(text, &end, 10);
  *out = (int)n;
  return *end || n < 0 || n > 4096 ? wrong_option(p, o, text, "a number from 0 to 4096") : NULL;
}

static OrtStatus *set_option(ort_provider *p, const struct option *o, const char *text) {
  char *place = (char *)&p->options + o->place;
  switch (o->type) {
    case option_flag: return set_flag(p, o, text, (bool *)place);
    case option_count: return set_count(p, o, text, (int *)(void *)place);
    case option_choice:
      if (*text && !is_choice(o->choices, text)) {
        return wrong_option(p, o, text, o->choices);
      }
      break;
    case option_text: break;
  }
  return (size_t)snprintf(place, o->room, "%s", text) < o->room ? NULL : wrong_option(p, o, text, "shorter");
}

/* Reads one option.  `key` is its name without "ep." and the provider's name; `general` is true if the option
 * was given without the provider's name. */
static OrtStatus *read_option(ort_provider *p, const char *key, bool general, const char *text) {
  for (size_t k = 0; k < sizeof known_options / sizeof *known_options; k++) {
    if (known_options[k].general == general && strcmp(known_options[k].name, key) == 0) {
      return set_option(p, &known_options[k], text);
    }
  }
  return general ? NULL : ort_fail(p, "onnx-xla: there is no option '%s'", key);
}

static OrtStatus *read_options(ort_provider *p, const OrtSessionOptions *o) {
  char own[192];
  OrtKeyValuePairs *all;
  const char *const *keys, *const *texts;
  size_t n;
  OrtStatus *failed = NULL;
  snprintf(own, sizeof own, "ep.%s.", p->name);
  for (char *c = own; *c; c++) {
    *c = (char)tolower((unsigned char)*c);
  }
  ORT_TRY(p->api->GetSessionOptionsConfigEntries(o, &all));
  p->api->GetKeyValuePairs(all, &keys, &texts, &n);
  for (size_t k = 0; k < n && !failed; k++) {
    bool is_own = strncmp(keys[k], own, strlen(own)) == 0;
    if (is_own || strncmp(keys[k], "ep.", 3) == 0) {
      failed = read_option(p, keys[k] + (is_own ? strlen(own) : 3), !is_own, texts[k]);
    }
  }
  p->api->ReleaseKeyValuePairs(all);
  return failed;
}

/* --- providers --- */

static const char *provider_name(const OrtEp *self) { return ((const ort_provider *)self)->name; }

static OrtStatus *get_capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
  return ort_claim((ort_provider *)self, graph, support);
}

static OrtStatus *compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **nodes, size_t n,
                          OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
  for (size_t k = 0; k < n; k++) {
    infos[k] = NULL;
  }
  ((ort_provider *)self)->has_compiled = true;
  for (size_t k = 0; k < n; k++) {
    ORT_TRY(
        ort_compile((ort_provider *)self, graphs[k], nodes[k], &infos[k], context_nodes ? &context_nodes[k] : NULL));
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
  *p = (ort_provider){.ep = {.ort_version_supported = ORT_API_VERSION,
                             .GetName = provider_name,
                             .GetCapability = get_capability,
                             .Compile = compile,
                             .ReleaseNodeComputeInfos = release_infos},
                      .api = f->api,
                      .logger = logger,
                      .name = f->name,
                      .early = f->early,
                      .tells_ranks = f->tells_ranks};
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

/* Returns no data transfer, since arrays stay in the host's memory. */
static OrtStatus *no_transfer(OrtEpFactory *self, void **out) {
  (void)self;
  *out = NULL;
  return NULL;
}

/* Adds the CPU as the only supported device. */
static OrtStatus *supported_devices(OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t n,
                                    OrtEpDevice **out, size_t room, size_t *n_out) {
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

/* Returns the minor version of ONNX Runtime 1.x; INT_MAX for other versions. */
static int minor_version(const OrtApiBase *base) {
  int major = 0, minor = 0;
  return sscanf(base->GetVersionString(), "%d.%d", &major, &minor) == 2 && major == 1 ? minor : INT_MAX;
}

OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *default_logger,
                             OrtEpFactory **factories, size_t max_factories, size_t *num_factories) {
  (void)default_logger;
  *num_factories = 0;
  const OrtApi *api = base->GetApi(ORT_API_VERSION);
  if (!api) { /* without the table no status can be made */
    fprintf(stderr, "onnx-xla: ONNX Runtime %s is too old for a plugin that compiles: 1.23 is the first\n",
            base->GetVersionString());
    return NULL;
  }
  factory *f = max_factories ? calloc(1, sizeof *f) : NULL;
  if (!f) {
    return api->CreateStatus(ORT_INVALID_ARGUMENT, "onnx-xla: there is no room for a factory");
  }
  f->table = (OrtEpFactory){.ort_version_supported = ORT_API_VERSION,
                            .GetName = factory_name,
                            .GetVendor = factory_vendor,
                            .GetSupportedDevices = supported_devices,
                            .CreateEp = create_ep,
                            .ReleaseEp = release_ep,
                            .GetVendorId = factory_vendor_id,
                            .GetVersion = factory_version,
                            .CreateDataTransfer = no_transfer,
                            .IsStreamAware = is_stream_aware};
  f->api = api;
  int minor = minor_version(base); /* read from the text of ONNX Runtime's version, since asking it for a newer
                                      interface than it has would print an error */
  f->early = minor < FIRST_WITH_BODIES;
  f->tells_ranks = minor >= FIRST_WITH_RANKS;
  snprintf(f->name, sizeof f->name, "%s", registered_name && *registered_name ? registered_name : ORT_EP_NAME);
  factories[0] = &f->table;
  *num_factories = 1;
  return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *self) {
  free(self);
  return NULL;
}
