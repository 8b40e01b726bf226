/* poison.h - bytes that nobody may touch although they belong to a larger piece of memory.
 *
 * AddressSanitizer knows the ends of what malloc gave.  Who divides such a piece tells it here which bytes nobody was
 * given, so that what runs over its own part is reported too.  Other builds make nothing of it. */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define POISON_IS_SEEN 1
#endif
#elif defined __SANITIZE_ADDRESS__
#define POISON_IS_SEEN 1
#endif

#ifdef POISON_IS_SEEN
#include <sanitizer/asan_interface.h>
enum { POISON_GAP = 16 }; /* bytes to leave between two parts */
#define POISON(data, size) __asan_poison_memory_region(data, size)
#define UNPOISON(data, size) __asan_unpoison_memory_region(data, size)
#else
enum { POISON_GAP = 0 };
#define POISON(data, size) ((void)(data), (void)(size))
#define UNPOISON(data, size) ((void)(data), (void)(size))
#endif

#endif
