/* start.h - the interrupt vectors of a program for a Cortex-M, which every such program includes: a reset switches the
 * floating-point unit on and begins newlib's start-up code; any fault ends the program with a message. */
#ifndef START_H
#define START_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern char __stack;
void _start(void);
void reset(void);

void reset(void) {
#ifdef __ARM_FP
  *(volatile uint32_t *)0xe000ed88 |= 0xf00000;
  __asm__ volatile("dsb\n isb");
#endif
  _start();
}

static void fault(void) {
  static const char text[] = "the program crashed: a fault of the processor\n";
  write(2, text, sizeof text - 1);
  _exit(1);
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {&__stack,
                                                                           (void *)(uintptr_t)reset,
                                                                           (void *)(uintptr_t)fault,
                                                                           (void *)(uintptr_t)fault,
                                                                           (void *)(uintptr_t)fault,
                                                                           (void *)(uintptr_t)fault,
                                                                           (void *)(uintptr_t)fault};

#endif
