/* locale.h - numbers as text, whatever locale the program around us has set. */
#ifndef BASE_LOCALE_H
#define BASE_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* What puts a thread's locale aside for "C", in which a decimal point is a point. */
typedef struct c_locale {
  locale_t plain, outer;
} c_locale;
c_locale c_locale_enter(void);
void c_locale_leave(c_locale l);

/* vsnprintf in "C". */
int c_vsnprintf(char *out, size_t room, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

#endif
