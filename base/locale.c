/* locale.c - switches a thread to the locale "C" for as long as it formats numbers. */
#include "base/locale.h"

#include <stdio.h>

/* With glibc nothing is allocated, since its locale "C" is static. */
c_locale c_locale_enter(void) {
  c_locale l = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  l.outer = l.plain ? uselocale(l.plain) : (locale_t)0;
  return l;
}

void c_locale_leave(c_locale l) {
  if (l.plain) {
    uselocale(l.outer);
    freelocale(l.plain);
  }
}

int c_vsnprintf(char *out, size_t room, const char *format, va_list args) {
  c_locale outer = c_locale_enter();
  int n = vsnprintf(out, room, format, args);
  c_locale_leave(outer);
  return n;
}
