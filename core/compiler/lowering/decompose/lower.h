#pragma once

#include <set>

#include "core/compiler/lowering/decompose/describe.h"

namespace candela::lowering::decompose {

/// True for what needs no instruction: constants and reshapes.
bool isAlias(const graph::Node& node);

/// Stands between whose part a target does not do and why, in what lowering fails with.
inline constexpr std::string_view kCannotDoIt = " cannot do it: ";

struct LowerOptions {
  bool toPrimitives = false; ///< ignore every optional op and function: end at the required rows of
                             ///< the 13 primitives
  /// fuse follows: what a target has in its products alone may count on that
  bool stack = true;
};

/// The target's answer to the node as it is: of the instruction that it likes least, native when
/// all are.
capabilities::Answer ask(const graph::Node& node, const capabilities::Target& target,
                         const LowerOptions& options = {});

/// Whether the node adds a constant to sums of i64 that a product leaves, or scales them, on a
/// target that has no instruction for that and does it in the product's own. Whether the product is
/// the target's is the caller's question.
bool endsInProduct(const graph::Node& node, const capabilities::Target& target);

/// The same of a loop: of what its body does and of what moves its values.
capabilities::Answer askBody(const graph::Node& loop, const capabilities::Target& target,
                             const LowerOptions& options);

/// lower() for the body of a loop. Failure too when the target does not move its values.
Status lowerBody(const graph::Node& loop, const capabilities::Target& target,
                 const LowerOptions& options);

/// Replaces every node that the target does not take as it is by its decomposition, recursively,
/// until each node is an alias or has an instruction that the target answers native or emulated.
/// Failure: unsupported, naming the node and why.
Status lower(graph::Graph& graph, const capabilities::Target& target,
             const LowerOptions& options = {});

/// The builder that decompositions speak. Every method appends nodes before the one that is being
/// lowered and carries its provenance. Shapes are exact. Constants are folded where that makes them
/// smaller.
class Lowering {
public:
  Lowering(graph::Graph& graph, graph::Node* at, const capabilities::Target& target)
      : graph_(graph), at_(at), target_(target) {}

  /// What cannot be built (sizes beyond every limit). Thrown by the builder, caught by lower().
  struct Failure {
    Status status;
  };

  using Value = graph::Value*;
  // Elementwise; operands broadcast.
  Value add(Value a, Value b) { return binary(graph::OpKind::Add, a, b); }
  Value sub(Value a, Value b) { return binary(graph::OpKind::Sub, a, b); }
  Value mul(Value a, Value b) { return binary(graph::OpKind::Mul, a, b); }
  Value div(Value a, Value b) { return binary(graph::OpKind::Div, a, b); }
  Value min(Value a, Value b) { return binary(graph::OpKind::Min, a, b); }
  Value max(Value a, Value b) { return binary(graph::OpKind::Max, a, b); }
  Value equal(Value a, Value b) { return binary(graph::OpKind::Equal, a, b); }
  Value less(Value a, Value b) { return binary(graph::OpKind::Less, a, b); }
  Value select(Value cond, Value a, Value b) { return node(graph::OpKind::Select, {cond, a, b}); }
  Value unary(graph::OpKind kind, Value x) { return node(kind, {x}); }
  Value binary(graph::OpKind kind, Value a, Value b) { return node(kind, {a, b}); }
  Value cast(Value x, Elem to); ///< x itself when it has that type
  // Movement.
  Value reshape(Value x, Shape shape); ///< x itself when it has that shape
  Value affine(Value x, int64_t offset, Shape dims, std::vector<int64_t> strides);
  Value transpose(Value x, const std::vector<int64_t>& perm); ///< x itself for the identity
  Value broadcast(Value x, const Shape& shape);
  /// x[n.., spatial..] with lo/hi of `bits` around it; x itself when all are 0.
  Value pad(Value x, const std::vector<int64_t>& lo, const std::vector<int64_t>& hi, uint64_t bits);
  Value place(std::vector<Value> pieces, Shape dims, std::vector<int64_t> offsets,
              std::vector<int64_t> steps, uint64_t bits, bool fill);
  Value take(Value x3, Value index1) {
    return node(graph::OpKind::Take, {x3, index1}, {{"mode", std::string("clamp")}});
  }
  // Reductions over one axis of any tensor (kept as 1), and over a [o,r,i] form.
  Value reduceAxis(Value x, int axis, const char* fn);
  Value reduce3(Value x3, const char* fn) {
    return node(graph::OpKind::Reduce, {x3}, {{"fn", std::string(fn)}});
  }
  Value matmul(Value a3, Value b3, Elem to) {
    return node(graph::OpKind::BatchMatmul, {a3, b3}, {{"to", to}});
  }
  // Constants. Floats are rounded to the type once.
  Value scalar(Elem elem, double value) { return splat(elem, {}, value); }
  Value constant(Payload payload, const Shape& shape);
  Value constant(Tensor tensor);
  Value splat(Elem elem, const Shape& shape, double value);
  /// The outputs of a copy of the body's nodes over these inputs.
  std::vector<Value> inlined(const graph::Graph& body, const std::vector<Value>& inputs);
  /// Null operands are absent; those at the end may be given too.
  Value node(graph::OpKind kind, std::vector<Value> operands, graph::Attrs attrs = {});

  /// The type to compute in: f32 for a 16-bit float where the target converts both ways and has
  /// FP32, else `elem`.
  Elem wide(Elem elem) const;
  /// True when `node` was appended by this builder.
  bool made(const graph::Node* node) const { return made_.count(node) != 0; }
  graph::Graph& graph() { return graph_; }
  const capabilities::Target& target() const { return target_; }

private:
  graph::Graph& graph_;
  graph::Node* at_;
  const capabilities::Target& target_;
  std::set<const graph::Node*> made_;
};

using Values = std::vector<graph::Value*>;
// One per composite record of spec/ops/, in decompose/ops/<family>.cpp: values for the node's
// results (null: not made because nobody uses it). A missing one is a link error.
#define CANDELA_OP(Kind, name) Result<Values> lower##Kind(Lowering& l, const graph::Node& node);
CANDELA_COMPOSITES(CANDELA_OP)
#undef CANDELA_OP

/// What the body of a custom op says; empty when it has none.
Values lowerCustom(Lowering& l, const graph::Node& node);
/// Whose refusal says most: the target whose plugin claims the op, else the last one.
size_t claimantOf(const graph::Node& node, std::span<const capabilities::Target* const> targets);
/// For ops that have an instruction which the target does not take: optional functions by required
/// ones, small integers by way of i32, casts in two steps, operands expanded where stride 0 is
/// refused. Empty when there is no such way. `why` is the target's answer.
Result<Values> lowerElementwise(Lowering& l, const graph::Node& node,
                                const capabilities::Answer& why);

} // namespace candela::lowering::decompose
