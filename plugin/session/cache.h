/* cache.h - the folder in which measurements and compiled programs are kept from one process to the next, and the
 * defaults of tuning. */
#ifndef PLUGIN_SESSION_CACHE_H
#define PLUGIN_SESSION_CACHE_H

#include "plugin/session/session.h"
#include "plugin/session/store.h"

/* Sets *out to the folder `wanted`; if that is NULL, to $ONNX_XLA_CACHE, $XDG_CACHE_HOME/onnx-xla or
 * $HOME/.cache/onnx-xla.  An empty name means that there is no cache.  The folder is created with mode 0700 if it does
 * not exist.  *out is NULL if there is no cache.  If that is because the folder cannot be used (it belongs to another
 * user, others may write to it, or it cannot be created), *why is the reason, on the arena; otherwise *why is NULL. */
void session_cache_folder(arena *a, const char *wanted, const char **out, const char **why);

/* Opens the store of programs in the cache folder of a session.  Returns false if there is no folder or if the store
 * cannot be opened.  *why is then the reason, on the arena, or NULL if no cache is wanted. */
bool session_cache_open_store(arena *a, const session_options *o, content_store *out, const char **why);

/* Sets o->tune and, unless that is RT_TUNE_OFF, o->tune_log: a file in the cache folder, or NULL if there is no folder.
 * `tune` is "off", "known", "fast" or "full"; NULL means "off" if results must be deterministic, otherwise
 * $ONNX_XLA_TUNE or "fast".  Any other word, and with deterministic results any word but "off", is INVALID_ARGUMENT.
 * `cache` and `why` are as `wanted` and `why` for session_cache_folder; *why is also NULL if tuning is off. */
STATUS_MUST_USE status session_set_tuning(arena *a, const char *tune, const char *cache, rt_compile_options *o,
                                          const char **why);

/* Reads "fp32" (or NULL), "tf32", "bf16" or "fp16" into o->numerics.reduced_precision.  Must be called after
 * session_set_tuning: bf16 and fp16 are errors if tuning is off, since measuring decides where they are used.  All but
 * fp32 are errors if numerics.exact is set. */
STATUS_MUST_USE status session_set_precision(const char *precision, rt_compile_options *o);

#endif
