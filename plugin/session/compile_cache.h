/* compile_cache.h - what a session keeps in a cache folder: its model's description, programs with their weights, and
 * kernels.
 *
 * The key of a program contains everything on which it depends: the contents of the model and of the files beside it,
 * constants, shapes (and contents of inputs on which sizes depend), all options that the compiler uses, the processor,
 * the files of libonnx-xla and libonnx-xla-compiler, and the version of the target's kernel library.  If sizes depend
 * on what the model computes, there is no single program, and only kernels are kept. */
#ifndef PLUGIN_SESSION_COMPILE_CACHE_H
#define PLUGIN_SESSION_COMPILE_CACHE_H

#include "plugin/session/internal.h"

/* Computes the key of the model in the session's file.  If the cache has the model's description, s->source is set to
 * it, and the model itself is not opened.  If the cache's folder cannot be used, s->cache stays NULL and s->warning
 * says why. s->cache also stays NULL if the options or the target do not allow a cache, or if the model's file or its
 * external data cannot be read. */
void compile_cache_open(session *s);
/* Must be called after the model was opened.  Adds the files of external data to the key.  Closes the cache if one of
 * them cannot be read, or if the model's file has changed since compile_cache_open. */
void compile_cache_check_model(session *s);
void compile_cache_close(session *s);
/* Returns the secret of the folder, under which the names of constants are hashed, or NULL if there is no cache. */
const hash_secret *compile_cache_secret(const session *s);

/* Returns the program for these inputs, on `a`, if the folder has one that was tuned in the way `tune`; otherwise NULL.
 * If `tune` is RT_TUNE_KNOWN, one that was tuned with RT_TUNE_FAST is preferred.  Sets *tuned to the way in which the
 * returned program was tuned. */
const rt_program *compile_cache_find(session *s, const session_inputs *inputs, rt_tune tune, arena *a, rt_tune *tuned);
/* Removes from the folder the program that compile_cache_find or compile_cache_find_general looked for last, because it
 * could not be used. */
void compile_cache_forget(session *s);
/* Stores the program.  A thread in the background does this, or the caller if no thread can be started.
 * compile_cache_close waits for the thread, and logs the first failure as a warning.  Does nothing in a forked child.
 */
void compile_cache_put(session *s, const session_inputs *inputs, rt_tune tune, session_program *c);

/* Adds to the weight pool the kernels that any model, compiled with the same options, has left in the cache's folder.
 * If there are many, only those that were used last are added.  Kernels that no program retains remain in the pool
 * until its next collection.  The caller has taken the turn (session_take_turn). */
void compile_cache_map_kernels(session *s, rt_weight_pool *pool);
/* Stores the first n code objects of a program as kernels for compile_cache_map_kernels.  Failures are treated as by
 * compile_cache_put.  Thread-safe. */
void compile_cache_put_kernels(session *s, const rt_program *p, uint32_t n);

/* Like compile_cache_find and compile_cache_put, for the model's programs for all sizes, which are numbered from 0.
 * The functions have no parameter `inputs`, since only programs that do not depend on the contents of an input
 * (rt_io.value) are stored. */
const rt_program *compile_cache_find_general(session *s, uint32_t number, arena *a);
void compile_cache_put_general(session *s, uint32_t number, session_program *c);

#endif
