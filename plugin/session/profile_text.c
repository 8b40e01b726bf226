/* profile_text.c - writes profiles as JSON and as Chrome's trace events. */
#include <inttypes.h>

#include "base/locale.h"

#include "plugin/session/profile.h"
#include "runtime/program/size_text.h"

/* Writes a JSON string.  Control characters, and bytes that are not UTF-8, become '?'. */
static void put_text(FILE *f, const char *text) {
  putc('"', f);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    int more = *c < 0x80                 ? 0
               : *c >= 0xc2 && *c < 0xe0 ? 1
               : *c >= 0xe0 && *c < 0xf0 ? 2
               : *c >= 0xf0 && *c < 0xf5 ? 3
                                         : -1;
    bool whole = more > 0;
    for (int k = 1; whole && k <= more; k++) {
      whole = (c[k] & 0xc0) == 0x80;
    }
    if (whole) {
      fwrite(c, 1, (size_t)more + 1, f);
      c += more;
    } else if (*c == '"' || *c == '\\') {
      fprintf(f, "\\%c", *c);
    } else {
      putc(*c < 0x20 || *c >= 0x7f ? '?' : *c, f);
    }
  }
  putc('"', f);
}

static void put_named_text(FILE *f, const char *key, const char *text) {
  fprintf(f, "\"%s\": ", key);
  put_text(f, text);
}

/* Returns billions per second; 0 if no time was measured. */
static double giga(double amount, double seconds) { return seconds > 0 ? 1e-9 * amount / seconds : 0; }

static void put_thunk(FILE *f, const run_profile *p, const run_profile_row *row) {
  const rt_profiled *t = row->thunk;
  double operations = row->calls * (double)t->operations, bytes = row->calls * (double)t->bytes;
  double gflops = giga(operations, row->median), gbytes = giga(bytes, row->median);
  fprintf(f, "{\"number\": %td, ", t - p->raw->thunks);
  put_named_text(f, "kind", t->kind);
  fputs(", ", f);
  put_named_text(f, "label", t->label);
  fputs(", ", f);
  put_named_text(f, "note", t->note);
  fprintf(f, ", \"depth\": %" PRIu32 ", \"calls\": %.6g, \"min_ms\": %.6f, \"median_ms\": %.6f, \"share\": %.6f, ",
          t->depth, row->calls, 1e3 * row->min, 1e3 * row->median, row->share);
  fprintf(f,
          "\"operations\": %.17g, \"bytes\": %.17g, \"gflops\": %.4f, \"of_peak\": %.4f, \"gbytes\": %.4f, "
          "\"of_memory\": %.4f}",
          operations, bytes, gflops, 1e9 * gflops / p->roofline.flops_all, gbytes, 1e9 * gbytes / p->roofline.read_all);
}

static void put_groups(FILE *f, const char *key, const run_profile_groups *g) {
  fprintf(f, ",\n \"%s\": [", key);
  for (uint32_t k = 0; k < g->n; k++) {
    const run_profile_group *x = &g->items[k];
    fputs(k ? ",\n  {" : "\n  {", f);
    put_named_text(f, "name", x->name);
    fprintf(f, ", \"count\": %" PRIu32 ", \"median_ms\": %.6f, \"share\": %.6f}", x->count, 1e3 * x->seconds, x->share);
  }
  fputs("]", f);
}

/* Writes a member of a JSON object, and then `end`. */
static void put_pair(FILE *f, const char *key, const char *text, const char *end) {
  put_named_text(f, key, text);
  fputs(end, f);
}

/* Writes which sizes a program for all sizes serves. */
static void put_sizes(FILE *f, const rt_program *p) {
  const char *comma = "";
  fputs("\n  {\"symbols\": [", f);
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    if (size_is_symbol(p, k)) {
      fprintf(f, "%s{", comma);
      put_pair(f, "name", p->sizes[k].name, ", ");
      put_pair(f, "input", p->params[p->sizes[k].a].name, ", ");
      fprintf(f, "\"dimension\": %d}", (int)p->sizes[k].b);
      comma = ", ";
    }
  }
  fputs("],\n   \"definitions\": [", f);
  for (uint32_t k = 0; k < p->n_definitions; k++) {
    fputs(k ? ", {" : "{", f);
    put_pair(f, "symbol", p->definitions[k].symbol, ", ");
    put_pair(f, "equals", p->definitions[k].equals, ", ");
    fprintf(f, "\"pin\": %s, ", size_is_pin(&p->definitions[k]) ? "true" : "false");
    put_pair(f, "source", p->definitions[k].source, "}");
  }
  fputs("],\n   \"guards\": [", f);
  for (uint32_t k = 0; k < p->n_guards; k++) {
    fputs(k ? ", {" : "{", f);
    put_pair(f, "guard", p->guards[k].text, ", ");
    put_pair(f, "source", p->guards[k].source, "}");
  }
  fputs("]}", f);
}

static void put_generals(FILE *f, const run_profile *p) {
  fprintf(f, " \"bindings\": %" PRIu32 ", \"binding_us\": %.3f,\n \"all_sizes\": [", p->bindings, 1e6 * p->binding);
  for (const session_program *g = p->generals; g; g = g->next) {
    put_sizes(f, g->program);
    fputs(g->next ? "," : "", f);
  }
  fputs("],\n", f);
}

static void write_json(const run_profile *p, FILE *f) {
  const rt_roofline *r = &p->roofline;
  fputs("{", f);
  put_named_text(f, "model", p->model);
  fputs(", ", f);
  put_named_text(f, "backend", p->backend);
  fprintf(f, ", \"threads\": %" PRIu32 ", \"runs\": %" PRIu32 ", ", p->threads, p->raw->n_runs);
  fprintf(f, "\"min_ms\": %.6f, \"median_ms\": %.6f, \"gaps_ms\": %.6f,\n", 1e3 * p->min, 1e3 * p->median,
          1e3 * p->gaps);
  fprintf(f, " \"roofline\": {\"gflops_1\": %.2f, \"gflops\": %.2f, \"gbytes_1\": %.2f, \"gbytes\": %.2f},\n",
          1e-9 * r->flops_one, 1e-9 * r->flops_all, 1e-9 * r->read_one, 1e-9 * r->read_all);
  put_generals(f, p);
  fputs(" \"thunks\": [", f);
  for (uint32_t k = 0; k < p->raw->n_thunks; k++) {
    fputs(k ? ",\n  " : "\n  ", f);
    put_thunk(f, p, &p->rows[k]);
  }
  fputs("]", f);
  put_groups(f, "kinds", &p->kinds);
  put_groups(f, "operators", &p->operators);
  put_groups(f, "nodes", &p->nodes);
  fputs("}\n", f);
}

static void put_event(FILE *f, const run_profile *p, const rt_profile_event *e) {
  const rt_profiled *t = &p->raw->thunks[e->thunk];
  fputs(",\n{", f);
  put_named_text(f, "name", t->label);
  fputs(", ", f);
  put_named_text(f, "cat", t->kind);
  fprintf(f, ", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f, \"args\": {",
          1e-3 * (double)e->begin, 1e-3 * (double)(e->end - e->begin));
  put_named_text(f, "note", t->note);
  double seconds = 1e-9 * (double)(e->end - e->begin);
  fprintf(f, ", \"gflops\": %.4f, \"gbytes\": %.4f}}", giga((double)t->operations, seconds),
          giga((double)t->bytes, seconds));
}

static void write_trace(const run_profile *p, FILE *f) {
  fputs(
      "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, "
      "\"args\": {",
      f);
  put_named_text(f, "name", p->model);
  fputs("}}", f);
  for (uint32_t k = 0; k < p->raw->n_events; k++) {
    put_event(f, p, &p->raw->events[k]);
  }
  fputs("]}\n", f);
}

void run_profile_write_json(const run_profile *p, FILE *f) {
  c_locale outer = c_locale_enter();
  write_json(p, f);
  c_locale_leave(outer);
}

void run_profile_write_trace(const run_profile *p, FILE *f) {
  c_locale outer = c_locale_enter();
  write_trace(p, f);
  c_locale_leave(outer);
}
