/* specialise.h - compiles and tunes programs in the background.
 *
 * The first run of a model does not wait for measurements: its program is compiled with the algorithms that the tuning
 * log and estimates choose, for all sizes if the model leaves some open.  Then a thread with low priority compiles the
 * model once more for the sizes of that run, and measures algorithms while no run is in progress.  Between two later
 * runs the tuned program takes the place of the first one.  If the first program is for all sizes, tuning begins only
 * when its first sizes have come a few times; other sizes that come often get tuned programs later.
 *
 * The segments of a model that runs segment by segment are not tuned in the background: they keep the algorithms of the
 * log and of estimates, unless specialise=full tunes them as they are compiled. */
#ifndef PLUGIN_SESSION_SPECIALISE_H
#define PLUGIN_SESSION_SPECIALISE_H

#include "plugin/session/internal.h"

/* Reads "auto" (or NULL), "off" or "full". */
STATUS_MUST_USE status specialise_read(const char *word, specialise *out);

/* Must be called by each thread that opens a session.  If it is the main thread and later ends the process, all
 * specialisations are ended before destructors and handlers of atexit run.  (If another thread ends the process, a
 * handler of atexit ends them.) */
void specialise_end_at_exit(void);

/* Returns true if specialise_wants would be true for a program for one set of sizes that is compiled now and
 * has untuned contractions.  The caller has the turn (session_take_turn). */
bool specialise_would(const session *s);
/* Returns true if the program is one that specialise_begin should tune at once.  The caller has the turn
 * (session_take_turn). */
bool specialise_wants(const session *s, const session_program *c);
/* Starts to tune the program, which is in one of the session's lists.  If there is no memory or no thread for that,
 * nothing happens.  The caller has the turn (session_take_turn). */
void specialise_begin(session *s, session_program *c);
/* Counts a run of a binding of a program for all sizes.  If the sizes of the binding have come often, begins to tune a
 * program for them, unless another thread has the turn, or another program is being tuned.  As long as no program of
 * the session was tuned, a few times are enough. */
void specialise_after_run(session *s, session_program *c);
/* Cancels what specialise_begin has started and waits for its end, which takes some milliseconds.  It takes longer if
 * the program is provisional (rt_compile_options) and the session has a cache: the model is then compiled once more,
 * without measurements, so that the next process finds a better program in the cache. */
void specialise_end(session *s);

#endif
