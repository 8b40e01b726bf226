/* check_size_text.c - the text that tells users which sizes a program for all sizes serves. */
#include "runtime/program/size_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

static void assert_lines(const rt_program *p, const char *expected) {
  char *text;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  size_write_lines(f, 1, 6, p);
  fclose(f);
  ck_assert_msg(strcmp(text, expected) == 0, "%s", text);
  free(text);
}

/* Inputs a[n,4,past], b[n], c[1,n+past]; the numbers of the nodes are -1, -2, -3. */
START_TEST(lines) {
  rt_size_node sizes[] = {{DIM_SYMBOL, 0, 0, "n"}, {DIM_SYMBOL, 0, 2, "past"}, {DIM_ADD, -1, -2, NULL}};
  rt_guard guards[] = {{DIM_AT_MOST, -1, 512, "n <= 512", "g: Gather"}, {DIM_NOT_EQUAL, -2, 0, "past != 0", "fold"}};
  rt_definition definitions[] = {{"m", "4", "s: Shape"},
                                 {"total", "n+past", "add: Add"},
                                 {"k", "1", "Shape that makes \"a: b\""},
                                 {"l", "32", "ns: x: Where"},
                                 {"empty", "", "s: Shape"}};
  rt_io params[] = {{.name = "a", .shape = shape_make(DTYPE_F32, 3, (dim[]){-1, 4, -2})},
                    {.name = "b", .shape = shape_make(DTYPE_F32, 1, (dim[]){-1})},
                    {.name = "c", .shape = shape_make(DTYPE_F32, 2, (dim[]){1, -3})}};
  rt_program p = {.n_params = 3,
                  .params = params,
                  .n_sizes = 3,
                  .sizes = sizes,
                  .n_guards = 2,
                  .guards = guards,
                  .n_definitions = 5,
                  .definitions = definitions};
  assert_lines(&p,
               " symbol n: a[0], b[0]\n"
               " symbol past: a[2]\n"
               " pin    m = 4: s: Shape\n"
               " definition total = n+past: add: Add\n"
               " pin    k = 1: Shape that makes \"a: b\"\n"
               " pin    l = 32: ns: x: Where\n"
               " definition empty = : s: Shape\n"
               " pins   2 by Shape, 1 by Where\n"
               " guard  n <= 512: g: Gather\n"
               " guard  past != 0: fold\n");
}
END_TEST

int main(void) {
  TCase *c = tcase_create("size_text");
  tcase_add_test(c, lines);
  return run_suite("size_text", c);
}
