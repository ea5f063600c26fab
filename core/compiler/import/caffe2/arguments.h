#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/compiler/import/refusal.h"

namespace candela::import::caffe2 {

namespace proto {
class Argument;
class OperatorDef;
} // namespace proto

using Ints = std::vector<int64_t>;

/// The arguments of an operator by name. Those that nobody asks for say how Caffe2 runs it, never
/// what it computes, and are passed over as Caffe2 passes them over.
class Arguments {
public:
  explicit Arguments(const proto::OperatorDef& op) : op_(op) {}

  bool has(const char* name) const { return find(name) != nullptr; }
  /// Throw where the argument holds something else.
  int64_t integer(const char* name, int64_t otherwise) const;
  bool flag(const char* name, bool otherwise) const { return integer(name, otherwise) != 0; }
  float number(const char* name, float otherwise) const;
  std::string text(const char* name, const char* otherwise) const;
  Ints ints(const char* name) const; ///< empty where it is left out
  std::vector<float> floats(const char* name) const;
  std::vector<std::string> texts(const char* name) const;

private:
  const proto::Argument* find(const char* name) const;

  const proto::OperatorDef& op_;
};

} // namespace candela::import::caffe2
