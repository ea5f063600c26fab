#pragma once

#include <schema_generated.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/support/tensor.h"

/// A TensorFlow Lite file, checked: whatever the tables say of indices, shapes and sizes holds.
namespace candela::import::tflite {

/// real = scale * (stored - zero): of all elements, or of each index of dim `axis`.
struct Quantization {
  std::vector<float> scales;  ///< empty: none
  std::vector<int64_t> zeros; ///< as many
  int axis = 0;
  bool operator==(const Quantization&) const = default;
};

struct TensorInfo {
  std::string name; ///< printable
  Elem elem = Elem::none;
  Shape dims; ///< -1: free
  Quantization quantization;
  std::optional<Tensor> content; ///< of a constant
  bool isVariable = false;
  std::string refusal; ///< why no operator can read it; "" where it can
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  bool isQuantized() const { return !quantization.scales.empty(); }
};

struct OperatorInfo {
  const schema::Operator* table;
  schema::BuiltinOperator code;
  std::string name; ///< of the code, or the custom one's
  int version;
  std::vector<int> inputs, outputs; ///< of tensors; -1: left out
};

struct Subgraph {
  std::string name;
  std::vector<TensorInfo> tensors;
  std::vector<int> inputs, outputs;
  std::vector<OperatorInfo> operators;
};

class File {
public:
  /// Failures do not name the file: bad_model.
  static Result<File> open(Bytes content);

  const schema::Model& model() const { return *schema::GetModel(content_.data()); }
  const std::vector<Subgraph>& subgraphs() const { return subgraphs_; }
  uint64_t size() const { return content_.size(); } ///< in bytes

private:
  Status readSubgraph(const schema::SubGraph& table);
  Status readOperator(const schema::Operator& table, Subgraph& subgraph);
  Result<TensorInfo> readTensor(const schema::Tensor& table, size_t index);
  Status setContent(const schema::Tensor& table, TensorInfo& info);
  /// Tables may be shared by many others: what is copied of them for each is bounded.
  Status countCopied(uint64_t bytes);
  Status countTensor(const schema::Tensor& table);
  /// The same elements where their type may lie.
  Result<Bytes> aligned(const Bytes& bytes);
  Result<Bytes> bufferOf(const schema::Tensor& table) const;

  Bytes content_;
  uint64_t copied_ = 0; ///< bytes of tables, once for each use
  std::map<std::pair<const std::byte*, uint64_t>, Bytes>
      aligned_; ///< by where they lie in the file
  std::vector<Subgraph> subgraphs_;
};

/// "CONV_2D", or "operator 300" of a code that is none.
std::string builtinName(schema::BuiltinOperator code);

} // namespace candela::import::tflite
