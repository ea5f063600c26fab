// CustomOps: a second base of a backend that claims ops of a domain of its own.
#pragma once

#include "candela/backend/doors.hpp"

#include <cstring>
#include <type_traits>

namespace cdl {

/// A node of a model that no core imports. Valid during the call that it was given to.
class CustomNode {
public:
  explicit CustomNode(const cdl_custom_node_t& node) : node_(node) {}

  const cdl_custom_node_t& record() const { return node_; }
  std::string name() const { return node_.name; }
  /// "com.acme.Swirl"
  std::string op() const { return text(node_.domain, ".", node_.op); }
  bool is(const char* domain, const char* op) const {
    return !std::strcmp(node_.domain, domain) && !std::strcmp(node_.op, op);
  }

  uint32_t inputs() const { return node_.input_count; }
  uint32_t outputs() const { return node_.output_count; }
  /// Whether the node has this input; an optional one may be left out.
  bool has(uint32_t i) const { return i < node_.input_count && node_.inputs[i].elem; }
  /// Throws what the user reads when it is not there.
  const cdl_custom_value_t& input(uint32_t i) const {
    if (!has(i)) throw std::invalid_argument(text("input ", i, " is missing"));
    return node_.inputs[i];
  }

  /// The attribute, or null.
  const cdl_custom_attr_t* find(const char* name) const {
    for (uint32_t i = 0; i < node_.attr_count; ++i)
      if (!std::strcmp(node_.attrs[i].name, name)) return &node_.attrs[i];
    return nullptr;
  }
  /// Of one value; `missing` where the node does not give it. Throws where it has another type.
  int64_t intAttr(const char* name, int64_t missing) const {
    const cdl_custom_attr_t* a = one(name, CDL_CUSTOM_INTS, "an integer");
    return a ? a->ints[0] : missing;
  }
  double floatAttr(const char* name, double missing) const {
    const cdl_custom_attr_t* a = one(name, CDL_CUSTOM_FLOATS, "a number");
    return a ? a->floats[0] : missing;
  }
  std::string stringAttr(const char* name, const char* missing) const {
    const cdl_custom_attr_t* a = one(name, CDL_CUSTOM_STRINGS, "a string");
    return a ? a->strings[0] : missing;
  }

private:
  const cdl_custom_attr_t* one(const char* name, uint8_t type, const char* expected) const {
    const cdl_custom_attr_t* a = find(name);
    if (a && (a->type != type || a->is_list))
      throw std::invalid_argument(text("attribute '", name, "' is not ", expected));
    return a;
  }
  const cdl_custom_node_t& node_;
};

/// What a backend says of a node that it claims.
class CustomClaim {
public:
  CustomClaim(cdl_custom_claim_t& claim, uint32_t outputs) : claim_(claim), outputs_(outputs) {}

  /// The function of the instruction, by which rows name the op: native(Kind::Custom, fn, ...).
  void fn(uint16_t number) { claim_.fn = number; }
  void output(uint32_t i, uint8_t elem, const std::vector<int64_t>& dims) {
    if (i >= outputs_)
      throw std::invalid_argument(text("output ", i, " of a node that has ", outputs_));
    if (dims.size() > CDL_MAX_RANK)
      throw std::invalid_argument(text("output ", i, " of rank ", dims.size()));
    cdl_custom_value_t& value = claim_.outputs[i];
    value.elem = elem;
    value.rank = static_cast<uint8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), value.dims);
  }
  /// Like an operand.
  void output(uint32_t i, const cdl_custom_value_t& like) {
    output(i, like.elem, std::vector<int64_t>(like.dims, like.dims + like.rank));
  }
  /// Attributes of the instruction; ids from CDL_CUSTOM_ATTR_FIRST on.
  void attr(uint16_t id, int64_t value) { add(id, 1, {value}); }
  void attr(uint16_t id, double value) {
    int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    add(id, 2, {bits});
  }
  void attr(uint16_t id, const std::vector<int64_t>& values) { add(id, 3, values); }

private:
  void add(uint16_t id, uint8_t type, const std::vector<int64_t>& values) {
    if (values.empty() || values.size() > 8)
      throw std::invalid_argument(
          text("attribute ", id, " of ", values.size(), " values, expected 1 to 8"));
    if (claim_.attr_count == CDL_MAX_CUSTOM_ATTRS)
      throw std::invalid_argument(text("more than ", CDL_MAX_CUSTOM_ATTRS, " attributes"));
    cdl_attr_t& attr = claim_.attrs[claim_.attr_count++];
    attr.id = id;
    attr.type = type;
    attr.count = static_cast<uint8_t>(values.size());
    std::copy(values.begin(), values.end(), attr.values);
  }
  cdl_custom_claim_t& claim_;
  uint32_t outputs_;
};

/// What claims ops that no core imports: class Acme : public cdl::PrimitiveBackend, public
/// cdl::CustomOps. The instruction comes to PrimitiveBackend::custom, or within the Program.
/// Several threads at once; pure.
class CustomOps {
public:
  virtual ~CustomOps() = default;
  /// Fills the claim, or says unsupported("...") or bad("...") with the reason that the user reads.
  virtual Status claimNode(const CustomNode& node, CustomClaim& claim) = 0;
  /// A Graph as text that means the same: its inputs are the operands of the instruction. Empty:
  /// there is none.
  virtual std::string decompose(const CustomNode& node) {
    (void)node;
    return {};
  }
  /// The node breaks a rule of its op.
  static Status bad(const std::string& what) { return error(CDL_BAD_MODEL, what); }
};

namespace detail {

/// The slots over a B that is a CustomOps.
template <class B> struct CustomSlots {
  static CustomOps& of(cdl_device_t* device) {
    return *static_cast<B*>(reinterpret_cast<Backend*>(device));
  }
  static Status claim(cdl_device_t* device, const cdl_custom_node_t* node,
                      cdl_custom_claim_t* claim) {
    CustomClaim filled(*claim, node->output_count);
    try {
      return of(device).claimNode(CustomNode(*node), filled);
    } catch (const std::invalid_argument& wrong) {
      return CustomOps::bad(wrong.what());
    }
  }
  static Status decompose(cdl_device_t* device, const cdl_custom_node_t* node,
                          const cdl_writer_t* writer) {
    const std::string graph = of(device).decompose(CustomNode(*node));
    if (graph.empty()) return unsupported(CustomNode(*node).op() + " has no other form");
    if (writer->write(writer->context, graph.data(), graph.size())) return ok();
    return error(CDL_IO, text("the host took no text of ", graph.size(), " bytes"));
  }
};

} // namespace detail
} // namespace cdl
