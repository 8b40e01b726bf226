/* print.c - the printer; text.h describes the format. */
#include <inttypes.h>
#include <string.h>

#include "hlo/text/text_internal.h"

typedef struct printer {
  text_out out;
  const hlo_print_options *options;
  const dim_table *dims;
  uint32_t *first; /* for each instruction id: the number printed for its first result; if it is NULL, values are
                      printed by instruction id */
  arena *scratch;  /* temporary memory, such as for the texts of shapes */
} printer;

/* --- names, values and attributes --- */

static bool is_plain_name(const char *name) {
  return name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == strlen(name);
}

static void put_name(printer *p, const char *name) {
  if (is_plain_name(name)) {
    text_puts(&p->out, name);
  } else {
    text_put_quoted(&p->out, name);
  }
}

static void put_value(printer *p, hlo_value v) {
  if (p->first) {
    text_printf(&p->out, "%%%u", p->first[v.def->id] + v.index);
  } else {
    text_printf(&p->out, v.def->n_results > 1 ? "%%%u.%u" : "%%%u", v.def->id, v.index);
  }
}

static void put_dim(printer *p, dim d) {
  if (dim_is_const(d)) {
    text_printf(&p->out, "%" PRId64, d);
  } else if (d == DIM_OVERFLOW) {
    text_puts(&p->out, "?");
  } else {
    text_puts(&p->out, dim_print(p->scratch, p->dims, d));
  }
}

static void put_shape(printer *p, const shape *s) { text_puts(&p->out, shape_print(p->scratch, p->dims, s)); }

static void put_ints(printer *p, hlo_attr_kind kind, const hlo_attr *v) {
  text_puts(&p->out, "[");
  for (uint32_t k = 0; k < v->n; k++) {
    text_puts(&p->out, k ? "," : "");
    if (kind != HLO_KIND_INTS) {
      put_dim(p, v->ints[k]);
    } else {
      text_printf(&p->out, "%" PRId64, v->ints[k]);
    }
  }
  text_puts(&p->out, "]");
}

static void put_floats(printer *p, const hlo_attr *v) {
  text_puts(&p->out, "[");
  for (uint32_t k = 0; k < v->n_floats; k++) {
    text_puts(&p->out, k ? "," : "");
    text_put_double(&p->out, v->floats[k]);
  }
  text_puts(&p->out, "]");
}

static void put_computations(printer *p, const hlo_attr *v) {
  text_puts(&p->out, "[");
  for (uint32_t k = 0; k < v->n_comps; k++) {
    text_puts(&p->out, k ? "," : "");
    put_name(p, v->comps[k]->name);
  }
  text_puts(&p->out, "]");
}

static void put_attr(printer *p, hlo_attr_kind kind, const hlo_attr *v) {
  switch (kind) {
    case HLO_KIND_INT: text_printf(&p->out, "%" PRId64, v->i); break;
    case HLO_KIND_BOOL: text_puts(&p->out, v->i ? "true" : "false"); break;
    case HLO_KIND_STRING: text_put_quoted(&p->out, v->s ? v->s : ""); break;
    case HLO_KIND_INTS:
    case HLO_KIND_DIMS:
    case HLO_KIND_SIGNED_DIMS: put_ints(p, kind, v); break;
    case HLO_KIND_FLOATS: put_floats(p, v); break;
    case HLO_KIND_LITERAL:
      put_shape(p, &v->value->shape);
      text_puts(&p->out, " ");
      text_put_literal(&p->out, v->value, p->options);
      break;
    case HLO_KIND_COMPS: put_computations(p, v); break;
    default: {
      const char *name = hlo_enum_name(kind, v->i);
      text_puts(&p->out, name ? name : "?");
    }
  }
}

static void put_config(printer *p, const hlo_instr *i) {
  if (*i->config) {
    text_puts(&p->out, " config=");
    text_put_quoted(&p->out, i->config);
  }
}

static void put_source(printer *p, const hlo_instr *i) {
  if (i->source && i->source[0] && !p->options->no_sources) {
    text_puts(&p->out, " @");
    text_put_quoted(&p->out, i->source);
  }
}

/* --- instructions and computations --- */

static void put_instr(printer *p, hlo_instr *i) {
  const hlo_op_info *info = hlo_info(i);
  for (uint32_t k = 0; k < i->n_results; k++) {
    text_puts(&p->out, k ? ", " : "");
    put_value(p, hlo_result(i, k));
  }
  text_printf(&p->out, "%s%s(", i->n_results ? " = " : "", info->name);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    text_puts(&p->out, k ? ", " : "");
    put_value(p, i->operands[k]);
  }
  text_puts(&p->out, ")");
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    const hlo_attr_info *attr = hlo_attr_get_info(info->attrs[k]);
    text_printf(&p->out, "%s%s=", k ? ", " : " {", attr->name);
    put_attr(p, attr->kind, &i->attrs[k]);
  }
  text_puts(&p->out, info->n_attrs ? "} : " : " : ");
  for (uint32_t k = 0; k < i->n_results; k++) {
    text_puts(&p->out, k ? ", " : "");
    put_shape(p, &i->shapes[k]);
  }
  text_puts(&p->out, i->n_results ? "" : "()");
  put_config(p, i);
  put_source(p, i);
}

static void put_optional_name(printer *p, const char *const *names, uint32_t k) {
  if (names && names[k]) {
    text_puts(&p->out, " ");
    text_put_quoted(&p->out, names[k]);
  }
}

static void put_header(printer *p, const hlo_computation *c, bool entry) {
  text_puts(&p->out, entry ? "  entry " : "  computation ");
  put_name(p, c->name);
  text_puts(&p->out, "(");
  for (uint32_t k = 0; k < c->n_params; k++) {
    text_puts(&p->out, k ? ", " : "");
    put_value(p, hlo_result(c->params[k], 0));
    text_puts(&p->out, ": ");
    put_shape(p, &c->params[k]->shapes[0]);
    put_optional_name(p, entry ? c->module->param_names : NULL, k);
    put_source(p, c->params[k]);
  }
  text_puts(&p->out, ") {\n");
}

static void put_carried(printer *p, const hlo_carried *c) {
  if (c->parameter >= 0) {
    text_printf(&p->out, " carried in %" PRId64, c->parameter);
  }
  if (c->parameter >= 0 && c->axis >= 0) {
    text_printf(&p->out, ":%d to ", c->axis);
    put_dim(p, c->length);
  }
}

static void put_roots(printer *p, const hlo_computation *c, bool entry) {
  text_puts(&p->out, "    return");
  for (uint32_t k = 0; k < c->n_roots; k++) {
    text_puts(&p->out, k ? ", " : " ");
    put_value(p, c->roots[k]);
    put_optional_name(p, entry ? c->module->result_names : NULL, k);
    if (entry && c->module->size_of && c->module->size_of[k].axis >= 0) {
      text_printf(&p->out, " size of %u:%d", c->module->size_of[k].result, c->module->size_of[k].axis);
    }
    if (entry && c->module->carried) {
      put_carried(p, &c->module->carried[k]);
    }
  }
  text_puts(&p->out, "\n  }\n");
}

static void put_computation(printer *p, hlo_computation *c, bool entry) {
  p->scratch = arena_create(arena_budget(c->module->arena));
  hlo_number(c);
  p->first = ARENA_NEW_N(p->scratch, uint32_t, c->n_ids + 1);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    p->first[i->id + 1] = p->first[i->id] + i->n_results;
  }
  put_header(p, c, entry);
  for (hlo_instr *i = c->first; i && !p->out.error; i = i->next) {
    if (i->op != HLO_PARAMETER) {
      text_puts(&p->out, "    ");
      put_instr(p, i);
      text_puts(&p->out, "\n");
    }
  }
  put_roots(p, c, entry);
  arena_destroy(p->scratch);
  p->scratch = NULL;
}

/* --- entry points --- */

typedef struct print_job {
  printer *printer;
  const hlo_module *module;
} print_job;

static status print_module(void *data) {
  printer *p = ((print_job *)data)->printer;
  const hlo_module *m = ((print_job *)data)->module;
  text_printf(&p->out, "onnx-xla hlo %d\nmodule ", HLO_TEXT_VERSION);
  text_put_quoted(&p->out, m->name);
  text_puts(&p->out, m->kernels_assigned ? " kernels_assigned {\n" : " {\n");
  for (uint32_t k = 0; k < m->n_computations; k++) {
    put_computation(p, m->computations[k], m->computations[k] == m->entry);
  }
  text_puts(&p->out, "}\n");
  return text_finish(&p->out);
}

status hlo_print_to(const hlo_module *m, const hlo_print_options *options, hlo_sink sink) {
  static const hlo_print_options plain;
  printer p = {.out.sink = sink, .options = options ? options : &plain, .dims = m->dims};
  c_locale outer = c_locale_enter();
  status s = guard_run(print_module, &(print_job){&p, m});
  c_locale_leave(outer);
  arena_destroy(p.scratch);
  return s;
}

typedef struct growing {
  arena *arena;
  char *text;
  size_t n, cap;
} growing;

static status append(void *data, const char *text, size_t n) {
  growing *g = data;
  if (g->n + n + 1 > g->cap) {
    size_t cap = (g->n + n + 1) * 2;
    g->text = arena_grow(g->arena, g->text, g->cap, cap);
    g->cap = cap;
  }
  memcpy(g->text + g->n, text, n);
  g->n += n;
  g->text[g->n] = '\0';
  return NULL;
}

status hlo_print(arena *a, const hlo_module *m, const hlo_print_options *options, const char **text, size_t *size) {
  growing g = {.arena = a};
  TRY(hlo_print_to(m, options, (hlo_sink){append, &g}));
  *text = g.text;
  if (size) {
    *size = g.n;
  }
  return NULL;
}

const char *hlo_instr_text(arena *a, const hlo_instr *i) {
  static const hlo_print_options elided = {.literals = HLO_LITERAL_ELIDE, .small_elements = 8};
  growing g = {.arena = a};
  printer p = {.out.sink = {append, &g}, .options = &elided, .dims = i->parent->module->dims, .scratch = a};
  c_locale outer = c_locale_enter();
  put_instr(&p, (hlo_instr *)i);
  status_free(text_finish(&p.out)); /* cannot fail, since append does not */
  c_locale_leave(outer);
  return g.text;
}
