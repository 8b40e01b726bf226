/* function_set.h - functions that were compiled when the library was built, and that code of programs calls by name. */
#ifndef BASE_MACHINE_FUNCTION_SET_H
#define BASE_MACHINE_FUNCTION_SET_H

#include <stdint.h>

typedef struct named_function {
  const char *name;
  void (*address)(void); /* of any type */
} named_function;

typedef struct function_set {
  const char *target; /* for which machine the functions are, as emit_target_text (emit/llvm/target.h) describes it */
  uint32_t n;
  const named_function *functions; /* in the order of their names (strcmp) */
} function_set;

/* Returns the function of that name, or NULL if there is none. */
const named_function *function_set_find(const function_set *s, const char *name);

#endif
