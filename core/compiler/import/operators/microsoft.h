#pragma once

#include "core/compiler/import/term.h"

/// What the operators of the domain com.microsoft have in common: most of them are ONNX's own with
/// something before or behind.
namespace candela::import {

using Attributes = std::map<std::string, onnx_io::Attribute>;

/// A required input, which optional ones may precede.
Term inputOf(const NodeContext& context, size_t input);

/// The step's attributes without those that are its `own`: for the ONNX operator that they are
/// passed on to, which then judges them.
Attributes attributesBut(NodeContext& context, std::initializer_list<const char*> own);

/// The results of an ONNX operator on operands of the step's choice; null where one is absent.
std::vector<Term> applyAll(const NodeContext& context, const std::string& opType, int opset,
                           const std::vector<Value*>& inputs, const Attributes& attributes,
                           size_t outputs);
/// Its only result.
Term apply(const NodeContext& context, const std::string& opType, int opset,
           const std::vector<Value*>& inputs, const Attributes& attributes = {});

/// x[n, spatial.., c] as x[n, c, spatial..].
Term channelsFirst(const Term& x);
/// And back.
Term channelsLast(const Term& x);

} // namespace candela::import
