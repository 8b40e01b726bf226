/* check_symbols_graphs.c - loops, and nodes that get sizes from Shape, imported once for all sizes: bound to
 * other sizes, the module must compute what the model computes that is imported for those sizes.  Also graphs whose
 * sizes must be pinned. */
#include "tests/suite.h"
#include "tests/unit/frontend/open_model.h"

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* --- models, each with the input x[rows, columns] --- */

static Onnx__NodeProto *node(Onnx__GraphProto *g, const char *type, const char *inputs, const char *outputs,
                             const char *attributes) {
  Onnx__NodeProto *n = graph_node(memory, g, type, inputs, outputs);
  case_attributes(memory, n, attributes);
  return n;
}

/* Returns a model with the lists `dims` (the dimensions of x) and the scalars `rows` and `columns`. */
static Onnx__ModelProto *model(const char *outputs) {
  Onnx__ModelProto *m = new_model(memory, "", outputs);
  add_input(m, "x", "f32[0,0]:");
  add_constant(m, "zero", "s64[]:0");
  add_constant(m, "one", "s64[]:1");
  add_constant(m, "two", "s64[]:2");
  add_constant(m, "axis", "s64[1]:0");
  node(m->graph, "Shape", "x", "dims", "");
  node(m->graph, "Gather", "dims,zero", "rows", "");
  node(m->graph, "Gather", "dims,one", "columns", "");
  return m;
}

static void loop(Onnx__ModelProto *m, const char *inputs, const char *outputs, Onnx__GraphProto *body) {
  set_graph(memory, node(m->graph, "Loop", inputs, outputs, ""), "body", body);
}

/* Adds up the rows of x in a loop, and returns the sum after each row. */
static Onnx__ModelProto *rows_in_a_loop(void) {
  Onnx__ModelProto *m = model("last,all");
  node(m->graph, "ReduceMin", "x,axis", "least", "keepdims=0");
  Onnx__GraphProto *body = new_graph(memory, "i,go,s", "go2,s2,s3");
  node(body, "Identity", "go", "go2", "");
  node(body, "Gather", "x,i", "row", "");
  node(body, "Add", "s,row", "s2", "");
  node(body, "Identity", "s2", "s3", "");
  loop(m, "rows,,least", "last,all", body);
  return m;
}

/* A loop of at most two iterations, and of none if numbers are not small, so that the size of its scan output
 * depends on data. */
static Onnx__ModelProto *loop_that_ends(void) {
  Onnx__ModelProto *m = model("last,all");
  add_constant(m, "limit", "f32[]:0.5");
  node(m->graph, "ReduceMin", "x,axis", "least", "keepdims=0");
  node(m->graph, "ReduceMin", "x", "lowest", "keepdims=0");
  node(m->graph, "Less", "lowest,limit", "small", "");
  Onnx__GraphProto *body = new_graph(memory, "i,go,s", "go2,s2,s3");
  node(body, "Less", "i,one", "go2", "");
  node(body, "Add", "s,s", "s2", "");
  node(body, "Neg", "s2", "s3", "");
  loop(m, "rows,small,least", "last,all", body);
  return m;
}

/* A loop that runs no iteration for fewer than three rows, and whose state has the shape of x. */
static Onnx__ModelProto *fewer_steps_than_rows(void) {
  Onnx__ModelProto *m = model("last");
  node(m->graph, "Sub", "rows,two", "steps", "");
  Onnx__GraphProto *body = new_graph(memory, "i,go,s", "go2,s2");
  node(body, "Identity", "go", "go2", "");
  node(body, "Add", "s,x", "s2", "");
  loop(m, "steps,,x", "last", body);
  return m;
}

/* A loop whose state is longer after each iteration, so that the number of iterations must be known. */
static Onnx__ModelProto *growing_state(void) {
  Onnx__ModelProto *m = model("last");
  Onnx__GraphProto *body = new_graph(memory, "i,go,s", "go2,s2");
  node(body, "Identity", "go", "go2", "");
  node(body, "Concat", "s,x", "s2", "axis=0");
  loop(m, "rows,,x", "last", body);
  return m;
}

/* A loop appends the rows to a sequence one by one, as PyTorch writes list.append; the sequence then becomes
 * an array again. */
static Onnx__ModelProto *appended_rows(void) {
  Onnx__ModelProto *m = model("y");
  Onnx__GraphProto *body = new_graph(memory, "i,go,s", "go2,s2");
  node(body, "Identity", "go", "go2", "");
  node(body, "Gather", "x,i", "row", "");
  node(body, "SequenceInsert", "s,row", "s2", "");
  node(m->graph, "SequenceEmpty", "", "none", "");
  loop(m, "rows,,none", "list", body);
  node(m->graph, "ConcatFromSequence", "list", "y", "axis=0 new_axis=1");
  return m;
}

static Onnx__ModelProto *scan(const char *attributes) {
  Onnx__ModelProto *m = model("last,all");
  node(m->graph, "ReduceMin", "x,axis", "least", "keepdims=0");
  Onnx__GraphProto *body = new_graph(memory, "s,row", "s2,s3");
  node(body, "Mul", "s,row", "product", "");
  node(body, "Add", "product,least", "s2", "");
  node(body, "Tanh", "s2", "s3", "");
  set_graph(memory, node(m->graph, "Scan", "least,x", "last,all", attributes), "body", body);
  return m;
}
static Onnx__ModelProto *scan_forwards(void) { return scan("num_scan_inputs=1"); }
static Onnx__ModelProto *scan_backwards(void) {
  return scan("num_scan_inputs=1 scan_input_directions=[1] scan_output_axes=[1]");
}

static Onnx__ModelProto *window(const char *type, const char *attributes) {
  Onnx__ModelProto *m = model("y");
  node(m->graph, type, "columns", "y", attributes);
  return m;
}
static Onnx__ModelProto *periodic_window(void) { return window("HannWindow", ""); }
static Onnx__ModelProto *symmetric_window(void) { return window("BlackmanWindow", "periodic=0"); }

/* Transforms frames of four samples of each row; a frame begins every two samples. */
static Onnx__ModelProto *spectrogram(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "last", "s64[1]:-1");
  add_constant(m, "four", "s64[]:4");
  node(m->graph, "Unsqueeze", "x,last", "signal", "");
  node(m->graph, "HannWindow", "four", "taper", "");
  node(m->graph, "STFT", "signal,two,taper", "y", "");
  return m;
}

/* Transforms the columns by a DFT of five points: missing rows count as zeros, and further rows are
 * ignored. */
static Onnx__ModelProto *spectrum(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "five", "s64[]:5");
  add_constant(m, "front", "s64[1]:0");
  add_constant(m, "last", "s64[1]:-1");
  node(m->graph, "Unsqueeze", "x,front", "above", "");
  node(m->graph, "Unsqueeze", "above,last", "signal", "");
  node(m->graph, "DFT", "signal,five,one", "y", "inverse=1");
  return m;
}

static Onnx__ModelProto *grid(const char *attributes) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "theta", "f32[1,2,3]:1,0.25,0.5,-2,1,0.125");
  add_constant(m, "ones", "s64[2]:1,1");
  node(m->graph, "Concat", "ones,dims", "size", "axis=0");
  node(m->graph, "AffineGrid", "theta,size", "y", attributes);
  return m;
}
static Onnx__ModelProto *grid_of_centres(void) { return grid(""); }
static Onnx__ModelProto *grid_of_corners(void) { return grid("align_corners=1"); }

/* Cuts x into blocks by a convolution with four kernels, and adds the blocks up again. */
static Onnx__ModelProto *blocks_of_an_image(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "w", "f32[4,1,2,2]:1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1");
  add_constant(m, "block", "s64[2]:2,2");
  add_constant(m, "columns_of", "s64[3]:1,4,-1");
  add_constant(m, "front", "s64[2]:0,1");
  node(m->graph, "Unsqueeze", "x,front", "image", "");
  node(m->graph, "Conv", "image,w", "cut", "pads=[1,0,0,0] strides=[1,2]");
  node(m->graph, "Reshape", "cut,columns_of", "flat", "");
  node(m->graph, "Col2Im", "flat,dims,block", "y", "pads=[1,0,0,0] strides=[1,2]");
  return m;
}

static Onnx__ModelProto *reshaped(const char *to) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "to", to);
  node(m->graph, "Reshape", "x,to", "y", "");
  return m;
}

/* Need an even number of columns, and one of columns or rows that divides by 4; no size has to be constant. */
static Onnx__ModelProto *halves_of_rows(void) { return reshaped("s64[3]:0,2,-1"); }
static Onnx__ModelProto *rows_of_four(void) { return reshaped("s64[2]:-1,4"); }

/* The determinant of x x^T, which is square. */
static Onnx__ModelProto *determinant(void) {
  Onnx__ModelProto *m = model("y");
  node(m->graph, "Transpose", "x", "t", "");
  node(m->graph, "MatMul", "x,t", "square", "");
  node(m->graph, "Det", "square", "y", "");
  return m;
}

/* The first row of x, and all other rows. */
static Onnx__ModelProto *parts_of_rows(void) {
  Onnx__ModelProto *m = model("y,length");
  add_constant(m, "ones", "s64[1]:1");
  node(m->graph, "Sub", "rows,one", "rest", "");
  node(m->graph, "Unsqueeze", "rest,axis", "rests", "");
  node(m->graph, "Concat", "ones,rests", "split", "axis=0");
  node(m->graph, "SplitToSequence", "x,split", "parts", "");
  node(m->graph, "SequenceAt", "parts,one", "others", "");
  node(m->graph, "SequenceInsert", "parts,others,zero", "more", "");
  node(m->graph, "SequenceErase", "more,one", "fewer", "");
  node(m->graph, "SequenceLength", "fewer", "length", "");
  node(m->graph, "ConcatFromSequence", "fewer", "y", "axis=0");
  return m;
}

static Onnx__ModelProto *stack_of_two(void) {
  Onnx__ModelProto *m = model("y");
  node(m->graph, "Neg", "x", "negative", "");
  node(m->graph, "SequenceConstruct", "x,negative", "both", "");
  node(m->graph, "ConcatFromSequence", "both", "y", "axis=1 new_axis=1");
  return m;
}

static Onnx__ModelProto *map_of_two(void) {
  Onnx__ModelProto *m = model("y");
  Onnx__GraphProto *body = new_graph(memory, "part", "twice");
  node(body, "Concat", "part,x", "twice", "axis=0");
  node(m->graph, "SequenceConstruct", "x,x", "both", "");
  set_graph(memory, node(m->graph, "SequenceMap", "both", "mapped", ""), "body", body);
  node(m->graph, "ConcatFromSequence", "mapped", "y", "axis=1");
  return m;
}

/* The derivative with respect to the kernel of a convolution.  The node reads only the kernel, whose shape is constant,
 * and x has open sizes. */
static Onnx__ModelProto *gradient_of_a_kernel(void) {
  Onnx__ModelProto *m = model("dw");
  add_constant(m, "image_axes", "s64[2]:0,1");
  add_constant(m, "w", "f32[1,1,2,2]:1,2,3,4");
  node(m->graph, "Unsqueeze", "x,image_axes", "image", "");
  node(m->graph, "Conv", "image,w", "sums", "strides=[2,2]");
  node(m->graph, "Mul", "sums,sums", "squares", "");
  node(m->graph, "ReduceSum", "squares", "y", "keepdims=0");
  Onnx__NodeProto *n = domain_node(memory, m, "ai.onnx.preview.training", 1, "Gradient", "dw");
  n->input = names(memory, "w", &n->n_input);
  case_attributes(memory, n, "y=y");
  Onnx__AttributeProto *xs = add_attribute(memory, n, "xs");
  xs->has_type = 1;
  xs->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
  ProtobufCBinaryData name = {1, (uint8_t *)arena_strdup(memory, "w")};
  PB_ADD(memory, xs->strings, xs->n_strings, name);
  return m;
}

/* Appends zeros to a column of numbers until their number is a multiple of 4, as windows of attention need it.  The
 * number of rows to append is computed as exporters write (-rows) % 4 and (4 - rows%4) % 4. */
static Onnx__ModelProto *padded_rows(void) {
  Onnx__ModelProto *m = model("y,halves,t");
  add_constant(m, "four", "s64[]:4");
  add_constant(m, "none", "s64[1]:0");
  add_constant(m, "last", "s64[1]:1");
  add_constant(m, "quarters", "s64[3]:4,-1,1");
  add_constant(m, "pairs", "s64[3]:-1,2,1");
  node(m->graph, "Neg", "rows", "minus", "");
  node(m->graph, "Mod", "minus,four", "more", "");
  node(m->graph, "Mod", "rows,four", "rest", "");
  node(m->graph, "Sub", "four,rest", "up", "");
  node(m->graph, "Mod", "up,four", "also", "");
  node(m->graph, "Unsqueeze", "more,axis", "some", "");
  node(m->graph, "Unsqueeze", "also,axis", "others", "");
  node(m->graph, "Concat", "none,some", "behind", "axis=0");
  node(m->graph, "Concat", "none,others", "before", "axis=0");
  node(m->graph, "ReduceMax", "x,last", "column", "keepdims=0");
  node(m->graph, "Pad", "column,behind", "a", "");
  node(m->graph, "Pad", "column,before", "b", "");
  node(m->graph, "Add", "a,b", "sum", "");
  node(m->graph, "Reshape", "sum,quarters", "y", "");
  node(m->graph, "Reshape", "a,pairs", "halves", "");
  node(m->graph, "Mod", "two,rows", "at", "");
  node(m->graph, "Gather", "x,at", "t", "");
  return m;
}

/* Pads x by a number of rows and of columns that depend on its sizes.  As PyTorch's exporter by tracing writes it, the
 * amounts are a table of pairs, the last dimension first, which is reversed and transposed. */
static Onnx__ModelProto *padded(const char *mode) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "pairs", "s64[2]:-1,2");
  add_constant(m, "list", "s64[1]:-1");
  add_constant(m, "far", "s64[1]:-9223372036854775808");
  node(m->graph, "Mod", "rows,two", "above", "");
  node(m->graph, "Div", "columns,two", "behind", "");
  node(m->graph, "Unsqueeze", "above,axis", "r", "");
  node(m->graph, "Unsqueeze", "behind,axis", "c", "");
  node(m->graph, "Concat", "axis,c,r,axis", "amounts", "axis=0");
  node(m->graph, "Reshape", "amounts,pairs", "table", "");
  node(m->graph, "Slice", "table,list,far,axis,list", "reversed", "");
  node(m->graph, "Transpose", "reversed", "turned", "perm=[1,0]");
  node(m->graph, "Reshape", "turned,list", "pads", "");
  node(m->graph, "Pad", "x,pads", "y", mode);
  return m;
}

static Onnx__ModelProto *amounts_in_pairs(void) { return padded(""); }
static Onnx__ModelProto *amounts_reflected(void) { return padded("mode=reflect"); }
static Onnx__ModelProto *amounts_of_edges(void) { return padded("mode=edge"); }
static Onnx__ModelProto *amounts_wrapped(void) { return padded("mode=wrap"); }

/* Rolls the rows of x back by two, as PyTorch's torch.export writes torch.roll: from row -2 % rows on, then the rows
 * before it. */
static Onnx__ModelProto *rolled_back(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "back", "s64[]:-2");
  node(m->graph, "Mod", "back,rows", "from", "");
  node(m->graph, "Unsqueeze", "from,axis", "at", "");
  node(m->graph, "Unsqueeze", "rows,axis", "end", "");
  node(m->graph, "Slice", "x,at,end,axis", "last", "");
  node(m->graph, "Slice", "x,axis,at,axis", "first", "");
  node(m->graph, "Concat", "last,first", "y", "axis=0");
  return m;
}

/* Takes every second row and column, and enlarges what is left to the shape of x, as pyramids of features do. */
static Onnx__ModelProto *enlarged_to_another(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "starts", "s64[2]:0,0");
  add_constant(m, "steps", "s64[2]:2,2");
  add_constant(m, "both", "s64[2]:0,1");
  node(m->graph, "Slice", "x,starts,dims,both,steps", "less", "");
  node(m->graph, "Resize", "less,,,dims", "y",
       "mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor");
  return m;
}

/* Reshapes each row to a matrix with the root of twice the number of columns as its height, as networks for square
 * pictures do.  A root is no expression of sizes, so the number of columns is pinned, but the number of rows is not. */
static Onnx__ModelProto *root_of_columns(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "rest", "s64[1]:-1");
  node(m->graph, "Mul", "columns,two", "double", "");
  node(m->graph, "Cast", "double", "real", "to=1");
  node(m->graph, "Sqrt", "real", "root", "");
  node(m->graph, "Cast", "root", "height", "to=7");
  node(m->graph, "Unsqueeze", "rows,axis", "r", "");
  node(m->graph, "Unsqueeze", "height,axis", "h", "");
  node(m->graph, "Concat", "r,h,rest", "want", "axis=0");
  node(m->graph, "Reshape", "x,want", "y", "");
  return m;
}

/* Repeats each row as often as there are columns, as PyTorch's exporter writes repeat_interleave: the repetitions that
 * a list of their numbers allows are gathered.  All these numbers are the same size, so it allows all. */
static Onnx__ModelProto *repeated_rows(void) {
  Onnx__ModelProto *m = model("y");
  add_constant(m, "second", "s64[1]:1");
  node(m->graph, "Unsqueeze", "rows,axis", "r", "");
  node(m->graph, "ConstantOfShape", "r", "none", "value=s64[1]:0");
  node(m->graph, "Add", "none,columns", "numbers", "");
  node(m->graph, "ReduceMax", "numbers", "most", "keepdims=0");
  node(m->graph, "Unsqueeze", "most,axis", "o", "");
  node(m->graph, "Unsqueeze", "columns,axis", "c", "");
  node(m->graph, "Concat", "r,o,c", "repeated", "axis=0");
  node(m->graph, "Unsqueeze", "x,second", "once", "");
  node(m->graph, "Expand", "once,repeated", "all", "");
  node(m->graph, "Range", "zero,most,one", "positions", "");
  node(m->graph, "Unsqueeze", "numbers,second", "limits", "");
  node(m->graph, "Less", "positions,limits", "taken", "");
  node(m->graph, "NonZero", "taken", "list", "");
  node(m->graph, "Transpose", "list", "indices", "perm=[1,0]");
  node(m->graph, "GatherND", "all,indices", "y", "");
  return m;
}

/* Numbers the elements of x, as exporters do: by the positions of as many ones. */
static Onnx__ModelProto *positions_of_ones(void) {
  Onnx__ModelProto *m = model("y,list");
  node(m->graph, "ConstantOfShape", "dims", "ones", "value=s64[1]:1");
  node(m->graph, "NonZero", "ones", "list", "");
  node(m->graph, "Transpose", "list", "indices", "perm=[1,0]");
  node(m->graph, "GatherND", "x,indices", "y", "");
  return m;
}

/* Adds up the rows of x and its last row once more, in a loop that takes rows as TensorFlow's exporter writes x[i]: by
 * a step and an end beyond all dimensions, of which the latter is limited as a float, and the former is a state that
 * never changes. */
static Onnx__ModelProto *rows_by_place(void) {
  Onnx__ModelProto *m = model("sum,taken");
  add_constant(m, "far", "s64[1]:1000000000");
  add_constant(m, "ends_at_least", "f32[2]:1000000000,1000000000");
  add_constant(m, "steps", "s64[2]:1000000000,1");
  add_constant(m, "both", "s64[2]:0,1");
  node(m->graph, "Sub", "rows,one", "before", "");
  node(m->graph, "Unsqueeze", "before,axis", "last", "");
  node(m->graph, "Slice", "x,last,far,axis,far", "last_rows", "");
  node(m->graph, "Squeeze", "last_rows,axis", "last_row", "");
  Onnx__GraphProto *body = new_graph(memory, "i,go,s,kept", "go2,s2,kept2,row");
  node(body, "Identity", "go", "go2", "");
  node(body, "Identity", "kept", "kept2", "");
  node(body, "Unsqueeze", "i,axis", "place", "");
  node(body, "Concat", "place,axis", "starts", "axis=0");
  node(body, "Cast", "starts", "real", "to=1");
  node(body, "Max", "real,ends_at_least", "limited", "");
  node(body, "Cast", "limited", "ends", "to=7");
  node(body, "Slice", "x,starts,ends,both,kept", "one_row", "");
  node(body, "Squeeze", "one_row,axis", "row", "");
  node(body, "Add", "s,row", "s2", "");
  loop(m, "rows,,last_row,steps", "sum,,taken", body);
  return m;
}

/* --- what is expected --- */

enum { N_SIZES = 7 };
/* Pairs of a number of rows and a number of columns; the model is imported with symbols for the first
 * pair. */
static const int64_t sizes[N_SIZES][2] = {{6, 8}, {7, 5}, {2, 9}, {1, 4}, {3, 1}, {0, 4}, {4, 0}};

/* served: for each entry of `sizes`, 1 if the module with symbols must be right for it, 0 if its guards may
 * refuse it or the model itself is not valid for it. definitions: as in check_symbols.c. alone: as in
 * onnx_import_options. */
static const struct {
  const char *name;
  Onnx__ModelProto *(*make)(void);
  int served[N_SIZES];
  const char *definitions;
  bool alone;
} graphs[] = {
    {"rows_in_a_loop", rows_in_a_loop, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"loop_that_ends", loop_that_ends, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"fewer_steps_than_rows", fewer_steps_than_rows, {1, 1, 1, 0, 1, 0, 1}, "", false},
    {"growing_state", growing_state, {1}, "x.0=6 ", false},
    {"appended_rows", appended_rows, {1}, "x.0=6 ", false},
    {"scan_forwards", scan_forwards, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"scan_backwards", scan_backwards, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"periodic_window", periodic_window, {1, 1, 1, 1, 1, 1, 1}, "", false},
    {"symmetric_window", symmetric_window, {1, 1, 1, 1, 1, 1, 1}, "", false},
    {"spectrogram", spectrogram, {1, 1, 1, 1, 0, 1, 0}, "", false},
    {"spectrum", spectrum, {1, 1, 0, 0, 0, 0, 0}, "", false},
    {"grid_of_centres", grid_of_centres, {1, 1, 1, 1, 1, 0, 0}, "", false},
    {"grid_of_corners", grid_of_corners, {1, 1, 1, 1, 1, 0, 0}, "", false},
    {"blocks_of_an_image", blocks_of_an_image, {1, 1, 1, 1, 0, 0, 0}, "", false},
    {"halves_of_rows", halves_of_rows, {1, 0, 0, 1, 0, 0, 1}, "x.1=2*x.1.m+0 ", false},
    {"rows_of_four", rows_of_four, {1, 0, 0, 1, 0, 1, 1}, "x.1=4*x.1.m+0 ", false},
    {"determinant", determinant, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"parts_of_rows", parts_of_rows, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"stack_of_two", stack_of_two, {1, 1, 1, 1, 1, 1, 1}, "", false},
    {"map_of_two", map_of_two, {1, 1, 1, 1, 1, 1, 1}, "", false},
    {"padded_rows", padded_rows, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"amounts_in_pairs", amounts_in_pairs, {1, 1, 1, 1, 1, 1, 1}, "", false},
    {"amounts_reflected", amounts_reflected, {1, 1, 1, 0, 1, 0, 0}, "", false},
    {"amounts_of_edges", amounts_of_edges, {1, 1, 1, 1, 1, 0, 0}, "", false},
    {"amounts_wrapped", amounts_wrapped, {1, 1, 1, 1, 1, 1, 1}, "", false},
    {"rolled_back", rolled_back, {1, 1, 1, 0, 1, 0, 1}, "", false},
    {"gradient_of_a_kernel", gradient_of_a_kernel, {1}, "x.0=6 x.1=8 ", false},
    {"repeated_rows", repeated_rows, {1, 1, 1, 1, 1, 0, 0}, "", false},
    {"positions_of_ones", positions_of_ones, {1, 1, 1, 1, 1, 0, 0}, "", false},
    {"rows_by_place", rows_by_place, {1, 1, 1, 1, 1, 0, 1}, "", false},
    {"root_of_columns", root_of_columns, {1}, "x.1=8 ", false},
    {"enlarged_to_another", enlarged_to_another, {1}, "x.0=2*x.0.m+0 x.1=2*x.1.m+0 ", false},
    {"enlarged_to_another, alone", enlarged_to_another, {1, 1, 1, 1, 1, 0, 0}, "", true},
};

static status import_at(Onnx__ModelProto *m, int k, onnx_definitions *definitions, bool alone, hlo_module **out) {
  onnx_input_shape at = {.name = "x", .shape = shape_make(DTYPE_F32, 2, sizes[k])};
  bool complete;
  TRY(import_model(m, &at, 1, definitions, alone, out, &complete));
  CHECK_THAT(complete, STATUS_UNSUPPORTED, "sizes depend on what is computed");
  return NULL;
}

static const char *print_definitions(const onnx_definitions *d) {
  const char *text = "";
  for (uint32_t k = 0; k < d->n; k++) {
    text = arena_printf(memory, "%s%s=%s ", text, d->items[k].symbol, d->items[k].equals);
  }
  return text;
}

START_TEST(graphs_are_right_at_other_sizes) {
  const char *name = graphs[_i].name;
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  Onnx__ModelProto *m = graphs[_i].make();
  status s = import_at(m, 0, &d, graphs[_i].alone, &general);
  ck_assert_msg(!s, "%s: %s", name, status_message(s));
  ck_assert_msg(strcmp(print_definitions(&d), graphs[_i].definitions) == 0, "%s: %s", name, print_definitions(&d));
  for (int k = 0; k < N_SIZES; k++) {
    shape at = shape_make(DTYPE_F32, 2, sizes[k]);
    s = hlo_bind(memory, general, &at, &bound);
    ck_assert_msg((s == NULL) == (graphs[_i].served[k] != 0), "%s, sizes %d: %s", name, k,
                  s ? status_message(s) : "they are served");
    if (!s) {
      s = import_at(m, k, NULL, false, &exact);
      s = s ? s : same_values(exact, bound, SAME_BITS, memory);
      ck_assert_msg(!s, "%s, sizes %d: %s", name, k, status_message(s));
    }
    status_free(s);
  }
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_loop_test(all, graphs_are_right_at_other_sizes, 0, sizeof graphs / sizeof *graphs);
  return run_suite("symbols-graphs", all);
}
