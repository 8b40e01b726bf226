/* locale.h - formats numbers as text, independent of the locale that the surrounding program has set. */
#ifndef BASE_LOCALE_H
#define BASE_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* c_locale_enter switches the calling thread to the locale "C", whose decimal separator is a point, and returns what
 * c_locale_leave needs to restore the thread's previous locale. */
typedef struct c_locale {
  locale_t plain, outer;
} c_locale;
c_locale c_locale_enter(void);
void c_locale_leave(c_locale l);

/* Like vsnprintf, in the locale "C". */
int c_vsnprintf(char *out, size_t room, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

#endif
