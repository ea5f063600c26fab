/* Models that a program makes itself: create a graph, add ops, verify, print, compile. C11. The
 * words of async.h hold here too (Ownership, Threads, Errors, Lifetime).
 *
 *   candela_graph_t* graph;
 *   candela_value_t x, w, y;
 *   candela_graph_create("net", &graph);
 *   candela_graph_input(graph, "x", &type_of_x, &x, error, sizeof error);
 *   candela_graph_constant(graph, "w", &data_of_w, &w, error, sizeof error);
 *   const candela_value_t operands[] = {x, w};
 *   candela_graph_op(graph, "conv", operands, 2, "pads = [1,1,1,1]", "Conv_0", &y, 1, ...);
 *   candela_graph_output(graph, y, "y", error, sizeof error);
 *   candela_compile_graph(graph, &options, &model, error, sizeof error);
 *
 * Ops are those of docs/reference/ops.md, by name, with operands, attributes and types as described
 * there; attributes are written as in .cdl text (docs/reference/cdl.md). A graph belongs to one
 * thread at a time. */
#ifndef CANDELA_GRAPH_H
#define CANDELA_GRAPH_H

#include <candela/candela.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct candela_graph candela_graph_t;

/* A value of one graph: an input, a constant or a result of an op. 0 is none. */
typedef uint32_t candela_value_t;

/* Makes an empty graph. `name` stands for a model's path in messages and reports; NULL: "graph".
 * Ownership: *graph is the caller's, for candela_graph_free
 * Threads: any
 * Errors: those of async.h
 * Lifetime: until candela_graph_free */
CANDELA_API candela_status_t candela_graph_create(const char* name, candela_graph_t** graph);
/* Takes the graph; NULL is allowed. Models that were compiled from it stay. */
CANDELA_API void candela_graph_free(candela_graph_t* graph);

/* Adds an input of this type and shape; data and bytes of `type` are not looked at.
 * Ownership: the text is copied
 * Threads: one
 * Errors: CANDELA_INVALID_ARGUMENT a type, or a name that is taken; nothing is added
 * Lifetime: of the value: the graph's */
CANDELA_API candela_status_t candela_graph_input(candela_graph_t* graph, const char* name,
                                                 const candela_tensor_t* type,
                                                 candela_value_t* value, char* error,
                                                 size_t error_size);
/* Adds a constant; its data is copied.
 * Ownership: the data is the caller's
 * Threads: one
 * Errors: as of candela_graph_input; too few bytes
 * Lifetime: of the value: the graph's */
CANDELA_API candela_status_t candela_graph_constant(candela_graph_t* graph, const char* name,
                                                    const candela_tensor_t* data,
                                                    candela_value_t* value, char* error,
                                                    size_t error_size);
/* Adds a node. An operand that is 0 is absent. `attributes`: "strides = [1,1], group = 2", or
 * NULL. `node`: its name in messages, reports and placements; NULL: that of its first result.
 * The results' types follow.
 * Ownership: all is the caller's
 * Threads: one
 * Errors: CANDELA_INVALID_ARGUMENT an op that there is not, a value that is none, a number of
 * results; CANDELA_BAD_MODEL what the op's rules say of operands and attributes; nothing is
 * added
 * Lifetime: of the values: the graph's */
CANDELA_API candela_status_t candela_graph_op(candela_graph_t* graph, const char* op,
                                              const candela_value_t* operands,
                                              uint32_t operand_count, const char* attributes,
                                              const char* node, candela_value_t* results,
                                              uint32_t result_count, char* error,
                                              size_t error_size);
/* Makes a value an output, behind those that there are.
 * Ownership: the text is copied; NULL: the value's own name
 * Threads: one
 * Errors: CANDELA_INVALID_ARGUMENT
 * Lifetime: the graph's */
CANDELA_API candela_status_t candela_graph_output(candela_graph_t* graph, candela_value_t value,
                                                  const char* name, char* error, size_t error_size);
/* The type and dims of a value; data NULL, bytes what it needs.
 * Threads: one
 * Errors: CANDELA_INVALID_ARGUMENT no such value */
CANDELA_API candela_status_t candela_graph_type(const candela_graph_t* graph, candela_value_t value,
                                                candela_tensor_t* type);

/* Whether everything holds that must hold of a graph, which compiling checks too.
 * Threads: one
 * Errors: CANDELA_BAD_MODEL with what does not */
CANDELA_API candela_status_t candela_graph_verify(const candela_graph_t* graph, char* error,
                                                  size_t error_size);
/* The graph as .cdl text, constants of more than 64 elements by their hash alone. The caller
 * frees it with candela_free_text. NULL where there is none.
 * Threads: one. */
CANDELA_API char* candela_graph_print(const candela_graph_t* graph);

/* Compiles a graph as candela_compile does a file; dims and shapes of the options are not
 * allowed.
 * Ownership: *model is the caller's, for candela_free; the graph stays as it is
 * Threads: one
 * Errors: as candela_compile
 * Lifetime: of the model: its own */
CANDELA_API candela_status_t candela_compile_graph(const candela_graph_t* graph,
                                                   const candela_options_t* options,
                                                   candela_model_t** model, char* error,
                                                   size_t error_size);

/* Adds nodes that compute the gradient of sum(of * weight) with respect to each value of `wrt`;
 * weight 0: 1, of a value of one element. A gradient may be a value that was there before.
 * Ownership: all is the caller's; gradients has room for wrt_count values
 * Threads: one
 * Errors: CANDELA_INVALID_ARGUMENT a value that is none or of no floats, a weight of another type;
 * CANDELA_UNSUPPORTED with node, op and reason, where an op has no gradient: nodes that nothing
 * reads may be left then
 * Lifetime: of the values: the graph's */
CANDELA_API candela_status_t candela_graph_gradients(candela_graph_t* graph, candela_value_t of,
                                                     candela_value_t weight,
                                                     const candela_value_t* wrt, uint32_t wrt_count,
                                                     candela_value_t* gradients, char* error,
                                                     size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
