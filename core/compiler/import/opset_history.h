#pragma once

#include <string>

#include "core/compiler/import/builder.h"
#include "core/compiler/import/onnx_io/model.h"

/// What ONNX has had when, for diagnostics, and what opset 6 had otherwise.
namespace candela::import {

constexpr int kOldestOpset = 6, kNewestOpset = 28;

/// From when to when the default domain has an operator, or an attribute of one: ": known since
/// opset 18" and the like, to end a diagnostic. Empty when that says nothing of this opset.
std::string knownText(const std::string& opType, const std::string& attribute, int64_t opset);

/// Whether the table says that the operator has no such attribute in this opset.
bool lacksAttribute(const std::string& opType, const std::string& attribute, int64_t opset);

/// Whether an operator means in this opset, 1 to 5, what it means in opset 6.
bool isUnchangedSince(const std::string& opType, int64_t opset);

/// Turns a node of opset 6 and its operands, where opset 7 changed the operator, into what opset 7
/// says: operands that broadcast from an axis on, and `is_test`.
Status raiseOpset6(Builder& build, onnx_io::Node& node, std::vector<Value*>& inputs);

} // namespace candela::import
