#include "instructions.hpp"

#include "elementwise.hpp"

#include <cstring>

namespace cpu {

std::vector<Operand> operandsOf(const Lowering& lowering, const cdl_instr_t& instr) {
  std::vector<Operand> operands;
  for (uint32_t i = 0; i < uint32_t(instr.inputs) + instr.outputs; ++i)
    operands.push_back(lowering.operand(*cdl_get_input(lowering.image, &instr, i)));
  return operands;
}

int64_t attrOf(const Lowering& lowering, const cdl_instr_t& instr, uint16_t id, int64_t missing,
               uint32_t i) {
  const cdl_attr_t* attr = cdl_find_attr(lowering.image, &instr, id);
  return attr && i < attr->count ? attr->values[i] : missing;
}

double realAttrOf(const Lowering& lowering, const cdl_instr_t& instr, uint16_t id, double missing) {
  const cdl_attr_t* attr = cdl_find_attr(lowering.image, &instr, id);
  if (!attr) return missing;
  double value;
  std::memcpy(&value, attr->values, sizeof value);
  return value;
}

std::string exprKey(const Lowering& lowering, const cdl_expr_t& expr) {
  Key key("expr");
  for (uint32_t s = 0; s < expr.steps; ++s) {
    const cdl_step_t& step = *cdl_get_step(lowering.image, expr.first_step + s);
    key << step.kind << step.fn << step.elem << step.flags;
    for (int k = 0; k < step.operands; ++k)
      key << step.in[k].source << step.in[k].elem << step.in[k].index;
    key << static_cast<int64_t>(step.imm);
  }
  return key.text();
}

RescaleForm rescaleForm(const Lowering& lowering, const cdl_instr_t& instr, uint8_t elem) {
  const int width = static_cast<int>(cdl_elem_bits(elem));
  const bool isSigned = isSignedElem(elem);
  RescaleForm form;
  form.aLeftShift = attrOf(lowering, instr, CDL_ATTR_A_LEFT_SHIFT, 0);
  form.bLeftShift = attrOf(lowering, instr, CDL_ATTR_B_LEFT_SHIFT, 0);
  form.clampMin =
      attrOf(lowering, instr, CDL_ATTR_CLAMP_MIN, isSigned ? -(int64_t(1) << (width - 1)) : 0);
  form.clampMax = attrOf(lowering, instr, CDL_ATTR_CLAMP_MAX,
                         (int64_t(1) << (isSigned ? width - 1 : width)) - 1);
  return form;
}

namespace {

/// Whether the products of a RESCALE's operands, aligned, and their sum stay within 63 bits. Sums
/// of products, which i64 holds, stay below 2^39.
bool fitsAlignment(const RescaleForm& form, const std::vector<Operand>& inputs) {
  for (size_t i = 0; i < inputs.size(); i += 4) {
    const uint8_t elem = inputs[i].elem;
    int magnitude = static_cast<int>(cdl_elem_bits(elem)) - (isSignedElem(elem) ? 1 : 0);
    if (elem == CDL_I64) magnitude = 39;
    const int64_t left = i ? form.bLeftShift : form.aLeftShift;
    if (magnitude + 24 + (inputs.size() > 4 ? 1 : 0) + left > 63) return false;
  }
  return true;
}

} // namespace

bool emitMapped(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  std::vector<Operand> inputs = operandsOf(lowering, instr);
  const Operand y = inputs.back();
  inputs.pop_back();
  if (instr.kind == CDL_KIND_FILL) {
    Ty ty;
    if (!isHalf(y.elem) && !typeOf(y.elem, ty)) return refuse(why, "its element type");
    fill(lowering, y, static_cast<uint64_t>(attrOf(lowering, instr, CDL_ATTR_VALUE, 0)));
    return true;
  }
  if (instr.kind == CDL_KIND_ELEMENTWISE) {
    const cdl_expr_t& expr = *cdl_get_expr(lowering.image, instr.expr);
    if (!canComputeExpr(lowering.image, expr)) return refuse(why, "a step of its expression");
    map(lowering, exprKey(lowering, expr), inputs, y,
        [&](Builder& b, const std::vector<Typed>& in) {
          return computeExpr(b, lowering.image, expr, in, nullptr);
        });
    return true;
  }
  if (instr.kind == CDL_KIND_RESCALE) {
    if (cdl_elem_bits(y.elem) > 32) return refuse(why, "a result of 64 bits");
    const RescaleForm form = rescaleForm(lowering, instr, y.elem);
    if (!fitsAlignment(form, inputs)) return refuse(why, "left shifts beyond 63 bits");
    Key key("rescale");
    key << form.aLeftShift << form.bLeftShift << form.clampMin << form.clampMax;
    map(lowering, key.text(), inputs, y, [&](Builder& b, const std::vector<Typed>& in) {
      return computeRescale(b, form, y.elem, in);
    });
    return true;
  }
  std::vector<uint8_t> elems;
  for (const Operand& o : inputs) elems.push_back(o.elem);
  elems.push_back(y.elem);
  if (!canCompute(instr.kind, instr.fn, elems))
    return refuse(why, "the function on these element types");
  if (instr.kind == CDL_KIND_COPY) {
    copy(lowering, inputs[0], y);
    return true;
  }
  const bool saturate = attrOf(lowering, instr, CDL_ATTR_SATURATE, 0) != 0;
  Key key("fn");
  key << instr.kind << instr.fn << saturate;
  map(lowering, key.text(), inputs, y, [&](Builder& b, const std::vector<Typed>& in) {
    return compute(b, instr.kind, instr.fn, y.elem, saturate, in);
  });
  return true;
}

namespace {

/// Whether a kind is mapped element by element.
bool isMapped(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_FILL:
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY:
  case CDL_KIND_RESCALE:
  case CDL_KIND_ELEMENTWISE: return true;
  default: return false;
  }
}

/// Whether it is a layout of activations: blocks of 16 channels, or channels last.
bool isImageLayout(const cdl_layout_t& layout) {
  return hasSteps(layout, {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 16}}) ||
         hasSteps(layout, {{0, 0}, {2, 0}, {3, 0}, {1, 0}});
}

bool isConvWeightLayout(const cdl_layout_t& layout) {
  return hasSteps(layout, {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 16}, {0, 16}}) ||
         hasSteps(layout, {{0, 0}, {2, 0}, {3, 0}, {1, 0}, {0, 16}}) ||
         hasSteps(layout, {{0, 0}, {2, 0}, {3, 0}, {1, 0}, {0, 16}, {1, 2}}) ||
         hasSteps(layout, {{0, 0}, {2, 0}, {3, 0}, {1, 0}, {0, 16}, {1, 4}});
}

/// Whether every view is row-major or in a layout that the emitter of the kind reads by its rank.
/// What is mapped element by element only needs one layout for all.
bool knowsLayouts(const Lowering& lowering, const cdl_instr_t& instr) {
  const uint32_t views = uint32_t(instr.inputs) + instr.outputs;
  const uint16_t last = views ? cdl_get_input(lowering.image, &instr, views - 1)->layout : 0;
  const auto isRead = [&](uint32_t view, uint16_t index) {
    const cdl_layout_t& layout = *cdl_get_layout(lowering.image, index);
    if (isMapped(instr.kind)) return index == last && (index == 0 || !layout.opaque);
    if (index == 0)
      return last == 0 || instr.kind == CDL_KIND_MATMUL || instr.kind == CDL_KIND_CONV2D ||
             instr.kind == CDL_KIND_POOL2D;
    switch (instr.kind) {
    case CDL_KIND_MATMUL: return view == 1 && hasSteps(layout, {{0, 0}, {2, 0}, {1, 0}, {2, 16}});
    case CDL_KIND_CONV2D: return view == 1 ? isConvWeightLayout(layout) : isImageLayout(layout);
    case CDL_KIND_POOL2D: return isImageLayout(layout);
    default: return false;
    }
  };
  for (uint32_t i = 0; i < views; ++i)
    if (!isRead(i, cdl_get_input(lowering.image, &instr, i)->layout)) return false;
  return true;
}

} // namespace

bool emitInstruction(Lowering& lowering, uint32_t index, std::string& why) {
  const cdl_instr_t& instr = *cdl_get_instr(lowering.image, index);
  if (lowering.isDone(index)) return true;
  lowering.begin(index);
  if (!knowsLayouts(lowering, instr)) return refuse(why, "its layouts");
  if (isMapped(instr.kind)) return emitMapped(lowering, instr, why);
  switch (instr.kind) {
  case CDL_KIND_MATMUL: return emitMatmul(lowering, instr, why);
  case CDL_KIND_SCALED_MATMUL: return emitScaledMatmul(lowering, instr, why);
  case CDL_KIND_CONV2D: return emitConv(lowering, instr, why);
  case CDL_KIND_POOL2D: return emitPool(lowering, instr, why);
  case CDL_KIND_REDUCE:
  case CDL_KIND_ARG_REDUCE: return emitReduce(lowering, instr, why);
  case CDL_KIND_ATTENTION: return emitAttention(lowering, instr, why);
  case CDL_KIND_SOFTMAX:
  case CDL_KIND_NORM: return emitRowwise(lowering, instr, why);
  case CDL_KIND_GATHER:
  case CDL_KIND_SCATTER:
  case CDL_KIND_TABLE: return emitIndexed(lowering, instr, why);
  default: return refuse(why, "the kind");
  }
}

} // namespace cpu
