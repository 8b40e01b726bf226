/* cache.h - the folder in which measurements and compiled programs are kept from one process to the next, and the
 * defaults of tuning. */
#ifndef PLUGIN_SESSION_CACHE_H
#define PLUGIN_SESSION_CACHE_H

#include "plugin/session/session.h"
#include "plugin/session/store.h"

/* Sets *out to the folder `wanted`; if that is NULL, to $ONNX_XLA_CACHE, $XDG_CACHE_HOME/onnx-xla or
 * $HOME/.cache/onnx-xla.  An empty name means that there is no cache.  The folder is created with mode 0700
 * if it does not exist.  *out is NULL if there is no cache.  *why, on the arena, is then the reason if that
 * is unexpected (the folder belongs to another user, others may write to it, or it cannot be created),
 * otherwise NULL. */
void session_cache_folder(arena *a, const char *wanted, const char **out, const char **why);

/* Opens the store of programs in the cache folder of a session.  Returns false if there is none; *why is as above, or
 * says why the store cannot be opened. */
bool session_cache_open_store(arena *a, const session_options *o, content_store *out, const char **why);

/* Reads "off", "fast" or "full" (NULL means $ONNX_XLA_TUNE, or fast) and finds the tuning log in the cache folder. */
STATUS_MUST_USE status session_set_tuning(arena *a, const char *tune, const char *cache, rt_compile_options *o,
                                          const char **why);

/* Reads "fp32" (or NULL), "tf32", "bf16" or "fp16" into o->numerics.reduced_precision.  To be called after
 * session_set_tuning, since reduced precision is chosen by measuring it. */
STATUS_MUST_USE status session_set_precision(const char *precision, rt_compile_options *o);

#endif
