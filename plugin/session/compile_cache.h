/* compile_cache.h - what a session keeps in a cache folder: its model's description and programs.
 *
 * The key of a program contains everything on which it depends: the contents of the model and of the files beside it,
 * constants, shapes (and contents of inputs on which sizes depend), all options that the compiler uses, the processor,
 * and the builds of both halves and of the library of kernels.  If sizes depend on what the model computes, there is no
 * single program, and nothing is kept. */
#ifndef PLUGIN_SESSION_COMPILE_CACHE_H
#define PLUGIN_SESSION_COMPILE_CACHE_H

#include "plugin/session/internal.h"

/* Identifies the model in the session's file.  If its description is in the cache, s->source is set to it, without the
 * model itself.  If the folder cannot be used, there is no cache, and s->warning says why; a model that cannot be read
 * has no cache either. */
void compile_cache_open(session *s);
/* Is called after the model was opened.  If the file is not the one that compile_cache_open saw, the cache is closed.
 */
void compile_cache_check_model(session *s);
void compile_cache_close(session *s);
/* Returns the secret with which names in the folder's programs are made, or NULL if there is no cache. */
const hash_secret *compile_cache_secret(const session *s);

/* Returns the program for these inputs, tuned at least as much, on `a`, or NULL if it must be compiled. */
const rt_program *compile_cache_find(session *s, const session_inputs *inputs, rt_tune tune, arena *a);
/* Removes the program that was found last, which could not be used. */
void compile_cache_forget(session *s);
/* Stores the program on a thread of its own, whose end compile_cache_close awaits.  Failures are ignored. */
void compile_cache_put(session *s, const session_inputs *inputs, rt_tune tune, session_program *c);

#endif
