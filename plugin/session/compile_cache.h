/* compile_cache.h - what a session has from a cache folder: its model's description and programs.
 *
 * A program's key holds everything that it depends on: the contents of the model and of the files beside it, constants,
 * shapes (and contents of inputs that decide sizes), all options that compiling looks at, the processor, and the builds
 * of both halves and of the library of kernels.  Where sizes depend on what the model computes there is no one program,
 * and nothing is kept. */
#ifndef PLUGIN_SESSION_COMPILE_CACHE_H
#define PLUGIN_SESSION_COMPILE_CACHE_H

#include "plugin/session/internal.h"

/* Finds out what the model in the session's file is.  If its description is in the cache, s->source becomes that, with
 * no model behind it. Where the folder cannot be used there is no cache, and s->warning says so; a model that cannot be
 * read has none either. */
void compile_cache_open(session *s);
/* Once the model has been opened: it must still be what compile_cache_open has seen, or there is no cache any more. */
void compile_cache_check_model(session *s);
void compile_cache_close(session *s);
/* What names in the folder's programs are made with; NULL if there is no cache. */
const hash_secret *compile_cache_secret(const session *s);

/* The program for these inputs, tuned as much or more, on `a`; NULL if it must be compiled. */
const rt_program *compile_cache_find(session *s, const session_inputs *inputs, rt_tune tune, arena *a);
/* What was found last turned out to be no good. */
void compile_cache_forget(session *s);
/* Best effort, and by a thread of its own, whose end compile_cache_close awaits. */
void compile_cache_put(session *s, const session_inputs *inputs, rt_tune tune, session_program *c);

#endif
