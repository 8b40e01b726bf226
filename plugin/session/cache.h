/* cache.h - the folder in which measurements and compiled programs are kept from one process to the next, and what a
 * session does about tuning when nobody says. */
#ifndef PLUGIN_SESSION_CACHE_H
#define PLUGIN_SESSION_CACHE_H

#include "runtime/program/target.h"

/* `wanted`, or (NULL) $ONNX_XLA_CACHE, $XDG_CACHE_HOME/onnx-xla, $HOME/.cache/onnx-xla; an empty name: none.  Made with
 * mode 0700 if it is not there.  *out NULL if there is no cache, and *why (on the arena) says so where that is a
 * surprise: the folder is another user's, others may write to it, or it cannot be made.  *why NULL: no surprise. */
void session_cache_folder(arena *a, const char *wanted, const char **out, const char **why);

/* Reads "off", "fast", "full" (NULL: $ONNX_XLA_TUNE, or fast) and finds the log in the cache folder. */
STATUS_MUST_USE status session_set_tuning(arena *a, const char *tune, const char *cache, rt_compile_options *o,
                                          const char **why);

/* Reads "fp32" (or NULL), "bf16", "fp16" into o->numerics.reduced_precision; after session_set_tuning, for what is
 * narrow is chosen by timing it. */
STATUS_MUST_USE status session_set_precision(const char *precision, rt_compile_options *o);

#endif
