#include "core/compiler/import/opset_history.h"

#include <algorithm>
#include <set>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

struct Span {
  std::string_view opType, attribute; ///< attribute "": the operator itself
  int first, last;                    ///< opsets
  int seventh;                        ///< the operator's version in opset 7
};
constexpr Span kHistory[] = {
#include "core/compiler/import/generated/onnx_history.inc"
};

const Span* findSpan(std::string_view opType, std::string_view attribute) {
  const auto found = std::ranges::find_if(kHistory, [&](const Span& span) {
    return span.opType == opType && span.attribute == attribute;
  });
  return found == std::end(kHistory) ? nullptr : found;
}

/// The attribute's value, which the node no longer has.
int64_t takeInt(onnx_io::Node& node, const char* name, int64_t fallback) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return fallback;
  const auto* value = std::get_if<int64_t>(&found->second);
  if (!value) throw Failure{badModel("attribute '{}' is no int", name)};
  const int64_t taken = *value;
  node.attributes.erase(found);
  return taken;
}

/// b's dims stand for those of a from `axis` on, or for the last ones.
void broadcastFrom(Builder& build, onnx_io::Node& node, std::vector<Value*>& inputs) {
  const bool broadcast = takeInt(node, "broadcast", 0) != 0;
  const Term a(build, inputs[0]), b(build, inputs[1]);
  const int64_t axis = takeInt(node, "axis", a.rank() - b.rank());
  if (!broadcast && a.shape() != b.shape())
    throw Failure{badModel("operands of shapes {} and {} without broadcast", shapeText(a.shape()),
                           shapeText(b.shape()))};
  if (!broadcast || b.count() == 1) return;
  if (axis < 0 || axis > a.rank() - b.rank())
    throw Failure{
        badModel("axis {} is out of range for ranks {} and {}", axis, a.rank(), b.rank())};
  Shape dims = b.shape();
  dims.resize(static_cast<size_t>(a.rank() - axis), 1);
  inputs[1] = b.reshape(dims).value();
}

} // namespace

std::string knownText(const std::string& opType, const std::string& attribute, int64_t opset) {
  const Span *op = findSpan(opType, ""), *span = findSpan(opType, attribute);
  if (!op) return fmt::format(": no opset up to {} has it", kNewestOpset);
  if (!span) return "";
  if (opset < span->first) return fmt::format(": known since opset {}", span->first);
  return opset > span->last ? fmt::format(": known until opset {}", span->last) : "";
}

bool lacksAttribute(const std::string& opType, const std::string& attribute, int64_t opset) {
  const Span* span = findSpan(opType, attribute);
  return span && (opset < span->first || opset > span->last);
}

bool isUnchangedSince(const std::string& opType, int64_t opset) {
  const Span* op = findSpan(opType, "");
  return op && opset >= op->seventh;
}

Status raiseOpset6(Builder& build, onnx_io::Node& node, std::vector<Value*>& inputs) {
  static const std::set<std::string_view> kBroadcasting = {
      "Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"};
  try {
    if (kBroadcasting.count(node.opType)) broadcastFrom(build, node, inputs);
    if (node.opType == "Gemm") takeInt(node, "broadcast", 0); // later C broadcasts always
    if (node.opType == "BatchNormalization" || node.opType == "Dropout")
      if (takeInt(node, "is_test", 0) == 0)
        return failure(Code::unsupported, "attribute 'is_test' is 0: training {}",
                       node.opType == "Dropout" ? "needs random numbers"
                                                : "of opset 6 is not supported");
    if (node.opType == "PRelu") { // one slope for each channel
      const Term x(build, inputs[0]), slope(build, inputs[1]);
      if (x.rank() > 1 && slope.rank() == 1 && slope.count() != 1) {
        Shape dims(static_cast<size_t>(x.rank() - 1), 1);
        dims[0] = slope.count();
        inputs[1] = slope.reshape(dims).value();
      }
    }
  } catch (const Failure& failed) {
    return failed.status;
  }
  return Status::ok();
}

} // namespace candela::import
