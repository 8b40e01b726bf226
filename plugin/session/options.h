/* options.h - the options of runtime/program/compile_options.def: copies them, writes them for keys of the compile
 * cache, and prints them. */
#ifndef PLUGIN_SESSION_OPTIONS_H
#define PLUGIN_SESSION_OPTIONS_H

#include "plugin/session/session.h"
#include "runtime/program/program.h"

/* Replaces each text among the options of `o` that compile_options.def lists by a copy on the arena. */
void session_copy_options(arena *a, session_options *o);

/* Appends the options on which compiled programs depend: those that the table marks in_key. */
void session_put_options(rt_writer *w, const session_options *o);

/* Returns the options that a user has set, as in "--lanes=4 --exact", on the arena; "" if there is none. */
const char *session_options_text(arena *a, const session_options *o);

/* Fails if an option is set that would mean nothing to the backend, which was found by this name. */
STATUS_MUST_USE status session_check_taken(const session_options *o, const char *backend);

/* Writes what the options say of open sizes: open_dim, the sizes of dimensions, and their ranges. */
void session_put_dims(rt_writer *w, const session_options *s);

#endif
