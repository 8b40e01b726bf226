/* text.h - the functions of the compiler library that return text; compiler_api (compiler.h) documents them. */
#ifndef PLUGIN_COMPILER_TEXT_H
#define PLUGIN_COMPILER_TEXT_H

#include "plugin/compiler/compiler.h"

STATUS_MUST_USE status compiler_print(const compiler_model *s, const compile_request *request, const char *after,
                                      bool no_constants, arena *a, const char **text);
STATUS_MUST_USE status compiler_explain(const compiler_model *s, const compile_request *request, const char *node,
                                        arena *a, const char **text);
STATUS_MUST_USE status compiler_opt(arena *a, const char *name, const char *text, size_t size, const char *passes,
                                    const char **out);
const char *compiler_pass_list(arena *a);
const char *compiler_versions(void);

#endif
