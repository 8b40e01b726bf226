/* inputs.h - the inputs of a model that the command line gives: files, shapes and random numbers. */
#ifndef PLUGIN_CLI_INPUTS_H
#define PLUGIN_CLI_INPUTS_H

#include "plugin/cli/options.h"

/* Reads the arrays that --input gives for inputs which have an initializer.  They are constants with which the model is
 * opened. */
STATUS_MUST_USE status cli_read_constants(const cli_args *args, const compiler_model *source, arena *a,
                                          compiler_constant **out, uint32_t *n);

/* Reads what --shape and --input say about the inputs of a model.  Sets *out to a literal for each input: its shape has
 * an element type only if the options give the shape, and its data is NULL unless they give the values.  Fails if an
 * option names an input that the model does not have.  Strings are added to the table. */
STATUS_MUST_USE status cli_tell_inputs(const cli_args *args, const compiler_model *source, string_table *strings,
                                       arena *a, literal **out);

/* Fills the inputs that have no data yet and take at most `bytes` bytes with random numbers from --seed. */
STATUS_MUST_USE status cli_fill_inputs(const cli_args *args, const compiler_model *source, int64_t bytes, arena *a,
                                       literal *inputs);

#endif
