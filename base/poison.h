/* poison.h - marks bytes that must not be accessed although they are in a larger piece of allocated memory.
 *
 * AddressSanitizer knows where memory from malloc ends.  An allocator that divides such memory into parts marks the
 * bytes that are in no part yet, so that an access beyond the end of a part is reported as well.  In builds without
 * AddressSanitizer these macros do nothing. */
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
enum { POISON_GAP = 16 }; /* the number of bytes to leave free between two parts */
#define POISON(data, size) __asan_poison_memory_region(data, size)
#define UNPOISON(data, size) __asan_unpoison_memory_region(data, size)
#else
enum { POISON_GAP = 0 };
#define POISON(data, size) ((void)(data), (void)(size))
#define UNPOISON(data, size) ((void)(data), (void)(size))
#endif

#endif
