/* geometry.h - describes a dot or convolution as the geometry of a library call (cpu_geometry). */
#ifndef BACKEND_CPU_ALGORITHMS_GEOMETRY_H
#define BACKEND_CPU_ALGORITHMS_GEOMETRY_H

#include "backend_cpu/runtime/contraction.h"
#include "hlo/ir/ir.h"

/* Sets g's sizes, strides and types to those of a dot or convolution, but not the members for its epilogue and parts.
 * Returns false if the library has no call for it. */
bool cpu_geometry_of(const hlo_instr *contraction, cpu_geometry *g);

/* Sets g's sizes and strides, but not the types.  Returns false if the library has no call for operands of such
 * sizes. */
bool cpu_geometry_sizes(const hlo_instr *contraction, cpu_geometry *g);

/* `dims` is a mask of dimensions of the dot's result.  Sets *out to the mask of those of the library's dimensions
 * [batch, m, n] that these dimensions make up.  Dimensions of one element do not matter.  Returns false if they make up
 * only a part of one of the three. */
bool cpu_dot_dims(const hlo_instr *dot, uint32_t dims, uint32_t *out);

double cpu_geometry_multiplications(const cpu_geometry *g);

#endif
