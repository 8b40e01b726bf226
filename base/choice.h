/* choice.h - the words that an option takes, as tables of options write them: "a|b|c".  The header stands alone, so
 * that clients of the C API may include it. */
#ifndef BASE_CHOICE_H
#define BASE_CHOICE_H

#include <stdbool.h>
#include <string.h>

/* Returns true if the text is one of the words, which "" never is. */
static inline bool is_choice(const char *words, const char *text) {
  size_t n = strcspn(text, "|");
  for (const char *word = words; n > 0 && text[n] == '\0' && word; word = strchr(word, '|')) {
    word += *word == '|';
    if (strcspn(word, "|") == n && memcmp(word, text, n) == 0) {
      return true;
    }
  }
  return false;
}

#endif
