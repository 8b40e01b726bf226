/* model_description.h - what a session says about a model (its inputs, outputs and properties), as bytes.
 *
 * The cache folder keeps it beside the model's programs, so that a session needs no compiler to describe a model. */
#ifndef PLUGIN_SESSION_MODEL_DESCRIPTION_H
#define PLUGIN_SESSION_MODEL_DESCRIPTION_H

#include "plugin/session/internal.h"
#include "plugin/session/store.h"

/* Writes s->kind, s->type and s->dims. */
void model_description_put_shape(rt_writer *w, const shape *s);

/* Returns the description of `x` as bytes on `a`, which contain the key of the build and a checksum. */
rt_span model_description_write(arena *a, const compiler_model *x, const fingerprints *f, content_key build);

/* Returns the model that is described, on `a`, or NULL if another build wrote the description or it is damaged.  Names
 * are those in `bytes`, which must live as long as the model. */
compiler_model *model_description_read(arena *a, rt_span bytes, const fingerprints *f, content_key build);

/* Returns the name of the model in a description, which any build may have written, or "unknown" if the bytes are not a
 * description. */
const char *model_description_name(rt_span description);

#endif
