/* categories.c - the importers of operators of ai.onnx.ml that look up keys: LabelEncoder, CategoryMapper and
 * OneHotEncoder. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/ml/scores.h"

/* --- sorted keys --- */

/* A key and its position in the list of keys.  Integers are compared as integers, floats as f64, which is exact for
 * both types. */
typedef struct key {
  int64_t integer;
  double number;
  int64_t position;
} key;

static int by_key(const void *a, const void *b) {
  const key *x = a, *y = b;
  int order = (x->integer > y->integer) - (x->integer < y->integer);
  order = order ? order : (x->number > y->number) - (x->number < y->number);
  return order ? order : (x->position > y->position) - (x->position < y->position);
}

static bool same_key(const key *a, const key *b) { return a->integer == b->integer && a->number == b->number; }

/* Sets keys[] to the keys of the list without NaN, sorted, and equal ones in the order of their positions.  Returns
 * their number, and the position of the first NaN, or -1. */
static int64_t sorted_keys(const literal *list, key *keys, int64_t *nan_at) {
  int64_t count = 0, n = shape_elements(&list->shape);
  bool floats = dtype_is_float((dtype)list->shape.type);
  *nan_at = -1;
  for (int64_t k = 0; k < n; k++) {
    key at = {floats ? 0 : literal_i64(list, k), floats ? literal_f64(list, k) : 0, k};
    if (isnan(at.number)) {
      *nan_at = *nan_at < 0 ? k : *nan_at;
    } else {
      keys[count++] = at;
    }
  }
  qsort(keys, (size_t)count, sizeof *keys, by_key);
  return count;
}

/* --- LabelEncoder --- */

enum { N_KINDS = 4 };

/* The names of the attributes that give keys, or values, as lists of strings, floats and integers, and as a tensor. */
typedef struct list_names {
  const char *strings, *floats, *integers, *tensor;
} list_names;

static status tensor_list(const onnx_node *n, const char *name, literal *out) {
  const Onnx__TensorProto *t;
  TRY(onnx_attr_tensor(n->proto, name, &t));
  TRY(onnx_node_tensor(n, t, out));
  dtype type = (dtype)out->shape.type;
  CHECK_THAT(type == DTYPE_STR || type == DTYPE_S16 || type == DTYPE_S32 || type == DTYPE_S64 || type == DTYPE_F32 ||
                 type == DTYPE_F64,
             STATUS_INVALID_MODEL, "%s is %s; the standard does not allow this type", name, dtype_name(type));
  return NULL;
}

/* Reads the one of the attributes that is given as an array of one dimension. */
static status read_list(const onnx_node *n, const list_names *names, literal *out, const char **name) {
  const char *const all[N_KINDS] = {names->strings, names->floats, names->integers, names->tensor};
  int given = -1;
  for (int k = 0; k < N_KINDS; k++) {
    if (onnx_attr_has(n->proto, all[k])) {
      CHECK_THAT(given < 0, STATUS_INVALID_MODEL, "%s and %s are both given", all[given], all[k]);
      given = k;
    }
  }
  CHECK_THAT(given >= 0, STATUS_INVALID_MODEL, "none of %s, %s, %s and %s is given", names->strings, names->floats,
             names->integers, names->tensor);
  *name = all[given];
  size_t count = 0;
  if (given == 0) {
    const int64_t *numbers;
    TRY(onnx_node_strings(n, *name, &numbers, &count));
    *out = literal_make(shape_make(DTYPE_STR, 1, (dim[]){(dim)count}), numbers);
  } else if (given == 1) {
    const float *floats;
    TRY(onnx_attr_floats(n->proto, *name, &floats, &count));
    *out = literal_make(shape_make(DTYPE_F32, 1, (dim[]){(dim)count}), floats);
  } else if (given == 2) {
    const int64_t *integers;
    TRY(onnx_attr_ints(n->proto, *name, &integers, &count));
    *out = literal_make(shape_make(DTYPE_S64, 1, (dim[]){(dim)count}), integers);
  } else {
    TRY(tensor_list(n, *name, out));
  }
  return NULL;
}

/* Returns the value of a key that is not in the list: `default_tensor`, which version 4 has, or the attribute for the
 * type. */
static status read_default(const onnx_node *n, dtype type, hlo_value *out) {
  if (onnx_attr_has(n->proto, "default_tensor")) {
    literal l;
    TRY(tensor_list(n, "default_tensor", &l));
    CHECK_THAT((dtype)l.shape.type == type && shape_elements(&l.shape) == 1, STATUS_INVALID_MODEL,
               "default_tensor is %s; one %s is needed", SHAPE_STR(onnx_dims(n), &l.shape), dtype_name(type));
    *out = hlo_reshape(n->b, hlo_constant(n->b, l), 0, NULL);
    return NULL;
  }
  float number;
  int64_t integer;
  TRY(onnx_attr_float(n->proto, "default_float", -0.0F, &number));
  TRY(onnx_attr_int(n->proto, "default_int64", -1, &integer));
  if (type == DTYPE_STR) {
    TRY(onnx_node_string(n, "default_string", "_Unused", &integer));
    *out = hlo_constant(n->b, literal_scalar_i64(n->arena, type, integer));
    return NULL;
  }
  if (dtype_is_float(type)) {
    *out = hlo_scalar(n->b, type, (double)number);
    return NULL;
  }
  int64_t bound = type == DTYPE_S16 ? INT16_MAX : type == DTYPE_S32 ? INT32_MAX : INT64_MAX;
  CHECK_THAT(integer <= bound && integer >= -bound - 1, STATUS_INVALID_MODEL,
             "default_int64 is %" PRId64 ", but the values are %s", integer, dtype_name(type));
  *out = hlo_scalar_int(n->b, type, integer);
  return NULL;
}

/* A list of keys that is searched, in constants: sorted, without repetitions, and filled to a power of two with the
 * last key. */
typedef struct lookup {
  int64_t size, nan_at;   /* the number of keys; the position of the value of NaN, or -1 */
  hlo_value keys, values; /* [size] */
} lookup;

/* Returns a constant with the elements of the list at these positions. */
static hlo_value picked(const onnx_node *n, const literal *list, const int64_t *positions, int64_t count) {
  size_t bytes = dtype_bytes((dtype)list->shape.type);
  char *data;
  literal out = literal_new(n->arena, shape_make((dtype)list->shape.type, 1, &count), (void **)&data);
  for (int64_t k = 0; k < count; k++) {
    memcpy(data + (size_t)k * bytes, (const char *)list->data + (size_t)positions[k] * bytes, bytes);
  }
  return hlo_constant(n->b, out);
}

/* Returns numbers of strings as s64, by which they can be sorted and searched; other arrays are returned as they are.
 */
static hlo_value as_numbers(hlo_builder *b, hlo_value x) {
  return hlo_type(x) == DTYPE_STR ? hlo_bitcast(b, x, DTYPE_S64) : x;
}

/* Makes the constants.  Of equal keys the first one counts. */
static lookup make_lookup(const onnx_node *n, const literal *list, const literal *values) {
  int64_t given = shape_elements(&list->shape);
  key *keys = ARENA_NEW_N(n->arena, key, (size_t)given + 1);
  lookup l = {.size = 1};
  int64_t sorted = sorted_keys(list, keys, &l.nan_at), count = 0;
  for (int64_t k = 0; k < sorted; k++) {
    if (k == 0 || !same_key(&keys[count - 1], &keys[k])) {
      keys[count++] = keys[k];
    }
  }
  if (count == 0) {
    l.size = 0;
    return l;
  }
  while (l.size < count) {
    l.size *= 2;
  }
  int64_t *positions = ARENA_NEW_N(n->arena, int64_t, (size_t)l.size);
  for (int64_t k = 0; k < l.size; k++) {
    positions[k] = keys[k < count ? k : count - 1].position;
  }
  l.keys = as_numbers(n->b, picked(n, list, positions, l.size));
  l.values = picked(n, values, positions, l.size);
  return l;
}

/* Returns the values of the keys in x, which have the keys' type, and `otherwise` in place of those that are no keys.
 */
static hlo_value looked_up(const onnx_node *n, hlo_value x, const literal *keys, const literal *values,
                           hlo_value otherwise) {
  hlo_builder *b = n->b;
  shape s = shape_with_type(*hlo_shape(x), (dtype)values->shape.type);
  hlo_value y = hlo_broadcast(b, otherwise, s, NULL);
  lookup l = make_lookup(n, keys, values);
  x = as_numbers(b, x);
  if (l.size) {
    hlo_value at = onnx_search(b, l.keys, x);
    hlo_value found = hlo_compare(b, HLO_EQ, hlo_take(b, l.keys, at, 0), x);
    y = hlo_select(b, found, hlo_take(b, l.values, at, 0), y);
  }
  if (l.nan_at >= 0 && n->since >= 4) { /* before, NaN was equal to no key */
    hlo_value for_nan = onnx_along(b, picked(n, values, &l.nan_at, 1), &s, 0);
    y = hlo_select(b, hlo_compare(b, HLO_NE, x, x), for_nan, y);
  }
  return y;
}

status onnx_import_ml_label_encoder(onnx_node *n) {
  static const list_names key_names = {"keys_strings", "keys_floats", "keys_int64s", "keys_tensor"};
  static const list_names value_names = {"values_strings", "values_floats", "values_int64s", "values_tensor"};
  hlo_value x = n->in[0], otherwise;
  literal keys, values;
  const char *key_name, *value_name;
  TRY(read_list(n, &key_names, &keys, &key_name));
  TRY(read_list(n, &value_names, &values, &value_name));
  int64_t n_keys = shape_elements(&keys.shape), n_values = shape_elements(&values.shape);
  CHECK_THAT(n_keys == n_values, STATUS_INVALID_MODEL, "%s has %" PRId64 " elements, but %s has %" PRId64, key_name,
             n_keys, value_name, n_values);
  CHECK_THAT((dtype)keys.shape.type == hlo_type(x), STATUS_INVALID_MODEL, "the keys in %s are %s; X is %s", key_name,
             dtype_name((dtype)keys.shape.type), SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  TRY(read_default(n, (dtype)values.shape.type, &otherwise));
  n->out[0] = looked_up(n, x, &keys, &values, otherwise);
  return NULL;
}

/* --- CategoryMapper, and LabelEncoder of version 1 --- */

/* Maps strings to their numbers, or numbers to strings. */
static status import_mapper(onnx_node *n, const literal *strings, const literal *numbers) {
  hlo_value x = n->in[0], otherwise;
  bool to_numbers = hlo_type(x) == DTYPE_STR;
  TRY(read_default(n, to_numbers ? DTYPE_S64 : DTYPE_STR, &otherwise));
  n->out[0] = to_numbers ? looked_up(n, x, strings, numbers, otherwise) : looked_up(n, x, numbers, strings, otherwise);
  return NULL;
}

static literal list_of(dtype type, const int64_t *elements, size_t count) {
  return literal_make(shape_make(type, 1, (dim[]){(dim)count}), elements);
}

status onnx_import_ml_category_mapper(onnx_node *n) {
  const int64_t *strings, *numbers;
  size_t n_strings, n_numbers;
  TRY(onnx_node_strings(n, "cats_strings", &strings, &n_strings));
  TRY(onnx_attr_ints(n->proto, "cats_int64s", &numbers, &n_numbers));
  CHECK_THAT(n_strings == n_numbers, STATUS_INVALID_MODEL, "cats_strings has %zu elements, but cats_int64s has %zu",
             n_strings, n_numbers);
  const literal from = list_of(DTYPE_STR, strings, n_strings), to = list_of(DTYPE_S64, numbers, n_numbers);
  return import_mapper(n, &from, &to);
}

/* The number of a class is its position in the list. */
status onnx_import_ml_label_encoder_1(onnx_node *n) {
  const int64_t *classes;
  size_t count;
  TRY(onnx_node_strings(n, "classes_strings", &classes, &count));
  int64_t *numbers = ARENA_NEW_N(n->arena, int64_t, count);
  for (size_t k = 0; k < count; k++) {
    numbers[k] = (int64_t)k;
  }
  const literal from = list_of(DTYPE_STR, classes, count), to = list_of(DTYPE_S64, numbers, count);
  return import_mapper(n, &from, &to);
}

/* --- OneHotEncoder --- */

/* Returns x as s64, towards zero, or the numbers of its strings.  *whole tells which elements s64 has; its def is NULL
 * if that is so for all. */
static hlo_value as_integers(hlo_builder *b, hlo_value x, hlo_value *whole) {
  *whole = (hlo_value){0};
  x = as_numbers(b, x);
  if (dtype_is_float(hlo_type(x))) {
    *whole =
        hlo_binary(b, HLO_AND, onnx_compare_scalar(b, HLO_GE, x, -0x1p63), onnx_compare_scalar(b, HLO_LT, x, 0x1p63));
  }
  return hlo_convert(b, x, DTYPE_S64);
}

/* Returns pred[count], which is true at the last position of each category. */
static hlo_value last_of_equals(const onnx_node *n, const int64_t *categories, int64_t count) {
  key *keys = ARENA_NEW_N(n->arena, key, (size_t)count);
  uint8_t *last;
  int64_t nan_at;
  literal list = literal_make(shape_make(DTYPE_S64, 1, &count), categories);
  literal out = literal_new(n->arena, shape_make(DTYPE_PRED, 1, &count), (void **)&last);
  sorted_keys(&list, keys, &nan_at);
  for (int64_t k = 0; k < count; k++) {
    last[keys[k].position] = k + 1 == count || !same_key(&keys[k], &keys[k + 1]);
  }
  return hlo_constant(n->b, out);
}

/* If `zeros` is 0, the run fails if an element of X is no category.  Of equal categories the last one counts. */
status onnx_import_ml_one_hot_encoder(onnx_node *n) {
  hlo_builder *b = n->b;
  const int64_t *categories;
  int64_t count;
  bool zeros;
  hlo_value whole;
  TRY(onnx_need_rank(n, 0, "X", 0, 2));
  TRY(ml_read_labels(n, "cats_int64s", "cats_strings", &categories, &count));
  bool of_strings = onnx_attr_has(n->proto, "cats_strings");
  CHECK_THAT((hlo_type(n->in[0]) == DTYPE_STR) == of_strings, STATUS_INVALID_MODEL,
             "X is %s, but %s gives the categories", SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)),
             of_strings ? "cats_strings" : "cats_int64s");
  TRY(onnx_attr_bool(n->proto, "zeros", true, &zeros));
  const shape *given = onnx_in_shape(n, 0);
  int64_t rank = given->rank, leading[] = {0, 1};
  shape s = shape_make(DTYPE_S64, (int)rank + 1, (dim[]){given->dims[0], given->dims[1], count});
  s.dims[rank] = count;
  TRY(shape_check(&s, "Y"));
  hlo_value x = hlo_broadcast(b, as_integers(b, n->in[0], &whole), s, leading);
  hlo_value same = hlo_compare(b, HLO_EQ, x, onnx_along(b, hlo_s64s(b, categories, count), &s, rank));
  same = hlo_binary(b, HLO_AND, same, onnx_along(b, last_of_equals(n, categories, count), &s, rank));
  if (whole.def) {
    shape flags = shape_with_type(s, DTYPE_PRED);
    same = hlo_binary(b, HLO_AND, same, hlo_broadcast(b, whole, flags, leading));
  }
  if (!zeros) {
    hlo_value unknown = hlo_unary(b, HLO_NOT, hlo_reduce(b, same, HLO_REDUCE_OR, 1, &rank));
    TRY(onnx_check_below(n, hlo_convert(b, unknown, DTYPE_S64), "the flag of an unknown category in X", 1));
  }
  n->out[0] = hlo_convert(b, same, DTYPE_F32);
  return NULL;
}
