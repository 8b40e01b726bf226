/* regex.c - see regex.h. */
#include "plugin/compiler/host/regex.h"

#include "plugin/compiler/host/library.h"
#include "plugin/compiler/host/regex_pattern.h"

#ifdef PCRE2_LIBRARY

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static struct {
#define PCRE2_FUNCTION(name) __typeof__(pcre2_##name##_8) *name;
#include "plugin/compiler/host/pcre2_functions.def"
#undef PCRE2_FUNCTION
} pcre2;

static const dynamic_function functions[] = {
#define PCRE2_FUNCTION(name) {"pcre2_" #name "_8", offsetof(__typeof__(pcre2), name)},
#include "plugin/compiler/host/pcre2_functions.def"
#undef PCRE2_FUNCTION
};

static host_library library = {.title = "PCRE2",
                               .file = PCRE2_LIBRARY,
                               .n_functions = sizeof functions / sizeof *functions,
                               .functions = functions,
                               .pointers = &pcre2,
                               .lock = PTHREAD_MUTEX_INITIALIZER};

struct regex {
  pcre2_compile_context *compiling;
  pcre2_match_context *matching;
  pcre2_match_data *data;
  pcre2_code *code;
};

static void free_regex(void *data) {
  regex *r = data;
  pcre2.code_free(r->code);
  pcre2.match_data_free(r->data);
  pcre2.match_context_free(r->matching);
  pcre2.compile_context_free(r->compiling);
}

static const char *message_of(int code, char text[128]) {
  *text = '\0';
  pcre2.get_error_message(code, (PCRE2_UCHAR *)text, 128);
  return text;
}

static status compile(const char *pattern, regex *r) {
  /* as in RE2, $ is the end alone, and under the flag m a line may begin at the end */
  const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C;
  enum { MOST_KILOBYTES = 64 << 10 };
  int code;
  size_t at;
  r->compiling = pcre2.compile_context_create(NULL);
  r->matching = pcre2.match_context_create(NULL);
  r->data = pcre2.match_data_create(1, NULL);
  CHECK_THAT(r->compiling && r->matching && r->data, STATUS_RESOURCE, "out of memory");
  pcre2.set_newline(r->compiling, PCRE2_NEWLINE_LF);
  pcre2.set_match_limit(r->matching, REGEX_MOST_STEPS);
  pcre2.set_heap_limit(r->matching, MOST_KILOBYTES);
  r->code = pcre2.compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &code, &at, r->compiling);
  CHECK_THAT(r->code, STATUS_INVALID_MODEL, "%s", message_of(code, (char[128]){0}));
  return NULL;
}

status regex_create(arena *a, const char *pattern, regex **out) {
  const char *translated;
  TRY(host_library_open(&library));
  TRY(regex_translate(a, pattern, &translated));
  *out = ARENA_NEW(a, regex);
  arena_cleanup(a, free_regex, *out);
  return compile(translated, *out);
}

static bool is_not_utf8(int result) { return result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21; }

static status check(int result) {
  bool limit = result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT || result == PCRE2_ERROR_HEAPLIMIT;
  CHECK_THAT(!limit, STATUS_RESOURCE, "a string needs more than %d steps to be matched", REGEX_MOST_STEPS);
  CHECK_THAT(!is_not_utf8(result), STATUS_INVALID_ARGUMENT, "a string is not UTF-8");
  CHECK_THAT(result >= 0 || result == PCRE2_ERROR_NOMATCH, STATUS_RESOURCE, "%s", message_of(result, (char[128]){0}));
  return NULL;
}

status regex_matches(regex *r, const char *text, size_t n, bool *out) {
  int result = pcre2.match(r->code, (PCRE2_SPTR)text, n, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, r->data, r->matching);
  *out = result >= 0;
  return is_not_utf8(result) ? NULL : check(result);
}

status regex_find(regex *r, const char *text, size_t n, size_t from, bool *found, size_t *start, size_t *end) {
  /* the first call for a text checks all of it */
  int result = pcre2.match(r->code, (PCRE2_SPTR)text, n, from, from ? PCRE2_NO_UTF_CHECK : 0, r->data, r->matching);
  *found = result >= 0;
  TRY(check(result));
  *start = *found ? pcre2.get_ovector_pointer(r->data)[0] : 0;
  *end = *found ? pcre2.get_ovector_pointer(r->data)[1] : 0;
  return NULL;
}

#else

static status without_pcre2(void) {
  return status_error(STATUS_UNSUPPORTED | STATUS_ABOUT_OPERATOR, "onnx-xla was built without PCRE2");
}

status regex_create(arena *a, const char *pattern, regex **out) {
  (void)a, (void)pattern, (void)out;
  return without_pcre2();
}

status regex_matches(regex *r, const char *text, size_t n, bool *out) {
  (void)r, (void)text, (void)n, (void)out;
  return without_pcre2();
}

status regex_find(regex *r, const char *text, size_t n, size_t from, bool *found, size_t *start, size_t *end) {
  (void)r, (void)text, (void)n, (void)from, (void)found, (void)start, (void)end;
  return without_pcre2();
}

#endif
