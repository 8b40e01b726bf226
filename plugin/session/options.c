/* options.c - copies the options of compile_options.def, writes them for keys of the compile cache, prints them, and
 * knows which backend takes which. */
#include "plugin/session/options.h"

#include <stddef.h>
#include <string.h>

typedef enum option_type { option_flag, option_count, option_text, option_choice } option_type;

/* A row of compile_options.def that is an option for users. */
typedef struct option {
  option_type type;
  bool in_key;
  const char *name; /* the name of the command line's option */
  size_t offset;    /* the offset of the member in session_options */
} option;

static const option options[] = {
#define in_key true
#define no_key false
#define USER_OPTION(member, key, scope, type, name, option, ...) \
  {option_##type, key, option, offsetof(session_options, member)},
#include "runtime/program/compile_options.def"
#undef in_key
#undef no_key
};
enum { N_OPTIONS = sizeof options / sizeof *options };

static bool is_text(const option *o) { return o->type == option_text || o->type == option_choice; }

static const char *text_value(const session_options *s, const option *o) {
  return is_text(o) ? *(const char *const *)(const void *)((const char *)s + o->offset) : NULL;
}

/* Returns the value of an option that is a flag or a count. */
static int64_t number_of(const session_options *s, const option *o) {
  const void *value = (const char *)s + o->offset;
  return o->type == option_flag ? *(const bool *)value : *(const uint32_t *)value;
}

void session_copy_options(arena *a, session_options *s) {
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    const char *value = text_value(s, &options[k]);
    if (value) {
      *(const char **)(void *)((char *)s + options[k].offset) = arena_strdup(a, value);
    }
  }
}

/* Writes those members of `o` that are part of keys but are not options for users. */
static void put_fields(rt_writer *w, const rt_compile_options *o) {
#define put_in_key(value) rt_put_i64(w, value);
#define put_no_key(value)
#define NUMERICS_FIELD(key, name, ...) put_##key(o->numerics.name)
#define COMPILE_FIELD(key, name, ...) put_##key(o->name)
#include "runtime/program/compile_options.def"
#undef put_in_key
#undef put_no_key
}

void session_put_options(rt_writer *w, const session_options *s) {
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    const option *o = &options[k];
    if (o->in_key && is_text(o)) {
      rt_put_text(w, text_value(s, o));
    } else if (o->in_key) {
      rt_put_i64(w, number_of(s, o));
    }
  }
  put_fields(w, &s->compile);
}

void session_put_dims(rt_writer *w, const session_options *s) {
  rt_put_i64(w, s->open_dim);
  rt_put_i64(w, s->keep_open);
  rt_put_i64(w, s->n_dims);
  for (uint32_t k = 0; k < s->n_dims; k++) {
    rt_put_text(w, s->dims[k].name);
    rt_put_i64(w, s->dims[k].value);
  }
  for (uint32_t k = 0; k < s->n_ranges; k++) {
    rt_put_text(w, s->ranges[k].name);
    rt_put_i64(w, s->ranges[k].least);
    rt_put_i64(w, s->ranges[k].most);
  }
}

static const char *text_of(arena *a, const session_options *s, const option *o) {
  if (is_text(o)) {
    const char *value = text_value(s, o);
    return value ? arena_printf(a, "--%s=%s", o->name, value) : "";
  }
  int64_t number = number_of(s, o);
  return !number                  ? ""
         : o->type == option_flag ? arena_printf(a, "--%s", o->name)
                                  : arena_printf(a, "--%s=%d", o->name, (int)number);
}

const char *session_options_text(arena *a, const session_options *s) {
  const char *all = "";
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    const char *one = text_of(a, s, &options[k]);
    all = *one ? arena_printf(a, "%s%s%s", all, *all ? " " : "", one) : all;
  }
  return all;
}

/* --- which backend takes which option --- */

/* The options that backends other than the processor's take.  They read these, or what the option permits or promises
 * holds for them anyway: the reference evaluator, for instance, runs no pass and never rounds operands.  The
 * processor's backend takes all options, and so may the backend of a shared object. */
static const struct {
  size_t offset;
  bool gpu, reference;
} taken[] = {
    {offsetof(session_options, compile.cpu), true, false},
    {offsetof(session_options, compile.skip_passes), true, true},
    {offsetof(session_options, compile.threads), true, true},
    {offsetof(session_options, compile.unchecked), true, true},
    {offsetof(session_options, compile.numerics.exact), true, true},
    {offsetof(session_options, compile.numerics.deterministic), true, true},
    {offsetof(session_options, precision), true, true},
    {offsetof(session_options, tune), true, true},
    {offsetof(session_options, specialise), true, true},
    {offsetof(session_options, program_memory), true, true},
};

static bool is_taken(const option *o, bool by_reference) {
  for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) {
    if (taken[k].offset == o->offset) {
      return by_reference ? taken[k].reference : taken[k].gpu;
    }
  }
  return false;
}

static bool is_set(const session_options *s, const option *o) {
  return is_text(o) ? text_value(s, o) != NULL : number_of(s, o) != 0;
}

status session_check_taken(const session_options *s, const char *backend) {
  if (strcmp(backend, session_default_backend()) == 0 || strchr(backend, '/')) {
    return NULL;
  }
  for (uint32_t k = 0; k < N_OPTIONS; k++) {
    CHECK_THAT(!is_set(s, &options[k]) || is_taken(&options[k], strcmp(backend, "ref") == 0), STATUS_INVALID_ARGUMENT,
               "backend %s has no option --%s", backend, options[k].name);
  }
  return NULL;
}
