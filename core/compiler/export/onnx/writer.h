#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/compiler/export/refusals/refusals.h"
#include "core/compiler/import/onnx_io/model.h"

namespace candela::exporter::onnx {

namespace onnx_io = import::onnx_io;

/// A value of the model that is written.
struct Term {
  std::string name; ///< "": an operand that is absent
  Elem elem = Elem::none;
  Shape dims = {};

  bool isAbsent() const { return name.empty(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};
using Terms = std::vector<Term>;
using Attributes = std::map<std::string, onnx_io::Attribute>;

/// What the writers of one model share.
struct ModelWriter {
  std::set<std::string> names = {}; ///< taken
  Refusals refusals = {};
  bool hasIntegerRows = false, hasFloatRows = false;

  /// `wanted`, or the first of wanted_1, wanted_2, ... that is not taken.
  std::string unique(const std::string& wanted);

private:
  std::map<std::string, int> suffixes_;
};

/// Writes one Graph as the nodes of a graph of ONNX. Shapes are followed beside the names, for
/// formulas that depend on them.
class GraphWriter {
public:
  GraphWriter(ModelWriter& model, onnx_io::Graph& into) : model_(model), into_(into) {}

  /// All nodes of the Graph, each by the function of its op. What cannot be said is among the
  /// model's refusals then.
  void write(const graph::Graph& graph);

  ModelWriter& model() { return model_; }
  onnx_io::Graph& into() { return into_; }

  /// The value's, absent for null.
  Term of(const graph::Value* value);
  Terms operandsOf(const graph::Node& node);
  /// From now on the value is this one: the node that gave the term takes over the value's name.
  void bind(const graph::Value* value, const Term& term);
  /// The value is one that another writer made.
  void alias(const graph::Value* value, const Term& term);
  /// The value has a name in the model, given before anything is written.
  void name(const graph::Value* value, std::string name);
  /// A node that gives the value this name too.
  void copyTo(const graph::Value* value, const std::string& name);
  /// A node of one result, whose element type and dims are those given.
  Term make(const std::string& opType, const Terms& operands, Elem elem, Shape dims,
            Attributes attributes = {});
  /// The results of a node of several.
  Terms makeSeveral(const std::string& opType, const Terms& operands,
                    const std::vector<graph::TensorType>& types, Attributes attributes = {});
  /// Of operands that broadcast, with a result of the first one's type.
  Term op(const std::string& opType, const Terms& operands, Attributes attributes = {});
  /// The same with a result of bool.
  Term test(const std::string& opType, const Term& a, const Term& b);

  // Constants.
  Term constant(const Tensor& tensor, const std::string& hint = "");
  Term ints(const std::vector<int64_t>& values); ///< i64, one dim
  /// A scalar of any number type; the value has to fit.
  Term number(double value, Elem elem);
  Term whole(__int128 value, Elem elem);

  /// The elements of a small integer constant of the Graph; null where they are not known.
  const std::vector<int64_t>* knownInts(const Term& term) const;

  // What formulas are made of.
  Term cast(const Term& x, Elem to);
  Term reshape(const Term& x, const Shape& dims);
  Term transpose(const Term& x, const std::vector<int64_t>& perm);
  Term expand(const Term& x, const Shape& dims);
  /// Dims as broadcasting to `count` of them would place x's only dim at `axis`.
  Term along(const Term& x, int64_t axis, int64_t rank);
  Term where(const Term& condition, const Term& a, const Term& b);
  Term slice(const Term& x, int64_t axis, int64_t first, int64_t end, int64_t step = 1);
  /// min(max(x, low), high) of an integer type.
  Term limit(const Term& x, __int128 low, __int128 high);

private:
  void writeNode(const graph::Node& node);
  void addIdentity(const std::string& from, const std::string& to);
  void writeConstant(const graph::Node& node);

  ModelWriter& model_;
  onnx_io::Graph& into_;
  std::string nodeName_; ///< of nodes that are made
  std::map<const graph::Value*, Term> terms_;
  std::map<const graph::Value*, std::string> names_;
  std::set<std::string> bound_; ///< names of values of the Graph
  std::map<std::string, Term> constants_;
  std::map<std::string, std::vector<int64_t>> knownInts_;
};

/// The scalar in a type's bits.
Tensor scalarOf(double value, Elem elem);

} // namespace candela::exporter::onnx
