/* backend.h - finds a backend by its name or path. */
#ifndef PLUGIN_COMPILER_BACKEND_H
#define PLUGIN_COMPILER_BACKEND_H

#include "runtime/program/target.h"

/* The name is "cpu", "gpu", "gpu:N", "gpu:host", "ref", or the path of a backend's shared object. */
STATUS_MUST_USE status compiler_backend(const char *name, const rt_backend **out);

#endif
