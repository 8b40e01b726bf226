/* general.h - programs for all sizes of a model's inputs.
 *
 * The first program of a session is for the sizes of its first run.  When other sizes come, the model is compiled once
 * for all sizes, and that program is bound to them (runtime/exec/binding.h), which takes microseconds.  If a guard does
 * not hold for some sizes, such as a batch of 1, the model is compiled once more; a session keeps few such programs. */
#ifndef PLUGIN_SESSION_GENERAL_H
#define PLUGIN_SESSION_GENERAL_H

#include "plugin/session/internal.h"

/* Returns true if the next compilation should make a program for all sizes.  Needs the turn (session_take_turn). */
bool general_wants(const session *s);
/* Adds a program for all sizes to the session.  Needs the turn. */
void general_add(session *s, session_program *c);
/* Sets *out to a program for these inputs that is a binding of one for all sizes, or to NULL if none serves them. It is
 * not added to the session's list of programs.  Needs the turn. */
STATUS_MUST_USE status general_bind(session *s, const session_inputs *inputs, session_program **out);

#endif
