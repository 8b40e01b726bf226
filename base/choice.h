/* choice.h - searches the list of words that an option accepts, which tables of options write as "a|b|c".  The header
 * includes no other file of this project, so that clients of the C API may include it. */
#ifndef BASE_CHOICE_H
#define BASE_CHOICE_H

#include <stdbool.h>
#include <string.h>

/* Returns true if the text is one of the words.  Returns false for the empty text. */
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
