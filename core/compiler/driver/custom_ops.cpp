#include "core/compiler/driver/custom_ops.h"

#include <algorithm>
#include <bit>
#include <deque>

#include "core/compiler/graph/custom.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/import/node_context.h"
#include "core/runtime/plugin/collector.h"

namespace candela::driver {
namespace {

using graph::TensorType, import::CustomNode, import::CustomOp, runtime::plugin::Device;

constexpr size_t kMostText = size_t(1) << 24; ///< of a decomposition

/// A node as the slots take it, with all that its pointers point to.
class Question {
public:
  static Result<std::unique_ptr<Question>> of(const CustomNode& asked) {
    std::unique_ptr<Question> question(new Question(asked));
    CDL_TRY(question->addInputs());
    for (const auto& [name, value] : asked.node.attributes)
      CDL_TRY(question->addAttribute(name, value));
    question->finish();
    return question;
  }
  const cdl_custom_node_t* record() const { return &record_; }
  const std::vector<TensorType>& operands() const { return operands_; }

private:
  /// An attribute; lists and tensors are kept here.
  struct Kept {
    std::vector<int64_t> ints;
    std::vector<double> floats;
    std::vector<const char*> strings;
    std::optional<cdl_custom_value_t> tensor;
  };

  explicit Question(const CustomNode& asked) : asked_(asked), inputs_(asked.inputs.size()) {}

  static cdl_custom_value_t valueOf(Elem elem, const Shape& dims) {
    cdl_custom_value_t value{};
    value.elem = static_cast<uint8_t>(elem);
    value.rank = static_cast<uint8_t>(dims.size());
    std::ranges::copy(dims, value.dims);
    return value;
  }

  /// CDL_CUSTOM_*
  static uint8_t customTypeOf(const import::onnx_io::Attribute& value) {
    if (std::holds_alternative<Tensor>(value)) return CDL_CUSTOM_TENSOR;
    if (std::holds_alternative<float>(value) || std::holds_alternative<std::vector<float>>(value))
      return CDL_CUSTOM_FLOATS;
    if (std::holds_alternative<std::string>(value) ||
        std::holds_alternative<std::vector<std::string>>(value))
      return CDL_CUSTOM_STRINGS;
    return CDL_CUSTOM_INTS;
  }

  Status addInputs() {
    for (size_t i = 0; i < asked_.inputs.size(); ++i) {
      const graph::Value* input = asked_.inputs[i];
      if (!input) continue;
      const TensorType& type = input->type;
      if (type.rank() > CDL_MAX_RANK)
        return badModel("input {} is {}, at most {} dims", i, type.text(), CDL_MAX_RANK);
      if (type.count() == 0)
        return failure(Code::unsupported, "input {} is {}, without elements", i, type.text());
      inputs_[i] = valueOf(type.elem, type.dims);
      operands_.push_back(type);
      if (!input->isConstant() || input->payload().sizeBytes() > CDL_MAX_CUSTOM_DATA) continue;
      CDL_ASSIGN(const Tensor tensor, input->tensor());
      point(inputs_[i], tensor);
    }
    return Status::ok();
  }

  void point(cdl_custom_value_t& value, const Tensor& tensor) {
    contents_.push_back(tensor.bytes);
    value.data = contents_.back().data();
    value.bytes = tensor.sizeBytes();
  }

  Status addAttribute(const std::string& name, const import::onnx_io::Attribute& value) {
    cdl_custom_attr_t attr{};
    attr.name = name.c_str();
    Kept& kept = kept_.emplace_back();
    if (const int64_t* whole = std::get_if<int64_t>(&value)) {
      kept.ints = {*whole};
    } else if (const float* real = std::get_if<float>(&value)) {
      kept.floats = {*real};
    } else if (const std::string* text = std::get_if<std::string>(&value)) {
      kept.strings = {text->c_str()};
      if (text->find('\0') != std::string::npos)
        return badModel("attribute '{}' has a NUL in it", name);
    } else if (const Tensor* tensor = std::get_if<Tensor>(&value)) {
      if (tensor->dims.size() > CDL_MAX_RANK || tensor->count() == 0)
        return badModel("attribute '{}' is {}, expected elements in at most {} dims", name,
                        tensor->typeText(), CDL_MAX_RANK);
      kept.tensor = valueOf(tensor->elem, tensor->dims);
      point(*kept.tensor, *tensor);
      operands_.emplace_back(tensor->elem, tensor->dims);
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
      kept.ints = *ints;
      attr.is_list = 1;
    } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
      kept.floats.assign(floats->begin(), floats->end());
      attr.is_list = 1;
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& text : *texts) {
        kept.strings.push_back(text.c_str());
        if (text.find('\0') != std::string::npos)
          return badModel("attribute '{}' has a NUL in it", name);
      }
      attr.is_list = 1;
    } else {
      return failure(Code::unsupported,
                     "attribute '{}' is a graph or of a type that plugins are not given", name);
    }
    // The type of an empty list is that of the model all the same.
    attr.type = customTypeOf(value);
    attr.count = static_cast<uint32_t>(
        kept.tensor ? 1 : kept.ints.size() + kept.floats.size() + kept.strings.size());
    if (attr.type == CDL_CUSTOM_INTS) attr.ints = kept.ints.data();
    if (attr.type == CDL_CUSTOM_FLOATS) attr.floats = kept.floats.data();
    if (attr.type == CDL_CUSTOM_STRINGS) attr.strings = kept.strings.data();
    attrs_.push_back(attr);
    return Status::ok();
  }

  void finish() {
    for (size_t i = 0; i < attrs_.size(); ++i)
      if (kept_[i].tensor) attrs_[i].tensor = &*kept_[i].tensor;
    record_.header = CDL_HEADER(cdl_custom_node_t);
    record_.domain = asked_.node.domain.c_str();
    record_.op = asked_.node.opType.c_str();
    record_.name = asked_.name.c_str();
    record_.version = asked_.version;
    record_.input_count = static_cast<uint32_t>(inputs_.size());
    record_.output_count = static_cast<uint32_t>(asked_.node.outputs.size());
    record_.attr_count = static_cast<uint32_t>(attrs_.size());
    record_.inputs = inputs_.data();
    record_.attrs = attrs_.data();
  }

  const CustomNode& asked_;
  std::vector<cdl_custom_value_t> inputs_;
  std::vector<TensorType> operands_; ///< of the instruction
  std::deque<Bytes> contents_;
  std::deque<Kept> kept_;
  std::vector<cdl_custom_attr_t> attrs_;
  cdl_custom_node_t record_{};
};

/// What a plugin says wrong is its defect.
template <typename... Args> Status wrong(fmt::format_string<Args...> text, Args&&... args) {
  return failure(Code::internal, "custom_op: {}", fmt::format(text, std::forward<Args>(args)...));
}

Result<TensorType> typeOf(const cdl_custom_value_t& value, size_t output) {
  if (!isValidElem(value.elem))
    return wrong("output {} has the unknown element type {}", output, value.elem);
  const auto elem = static_cast<Elem>(value.elem);
  if (!graph::opInfo(graph::OpKind::Custom).results[0].accepts(elem))
    return wrong("output {} is of {}, which no op stores", output, elemName(elem));
  if (value.rank > CDL_MAX_RANK)
    return wrong("output {} has rank {}, at most {}", output, value.rank, CDL_MAX_RANK);
  const Shape dims(value.dims, value.dims + value.rank);
  if (!elementCount(dims))
    return wrong("output {} has the impossible shape {}", output, shapeText(dims));
  return TensorType(elem, dims);
}

Result<graph::Attr> attrOf(const cdl_attr_t& attr) {
  if (attr.id < CDL_CUSTOM_ATTR_FIRST)
    return wrong("attribute id {}, expected {} or more", attr.id, +CDL_CUSTOM_ATTR_FIRST);
  if (attr.type < 1 || attr.type > 3)
    return wrong("attribute {} has type {}, expected 1 to 3", attr.id, attr.type);
  const int most = attr.type == 3 ? 8 : 1;
  if (attr.count < 1 || attr.count > most)
    return wrong("attribute {} has {} values, expected 1{}", attr.id, attr.count,
                 most > 1 ? " to 8" : "");
  if (attr.type == 1) return graph::Attr(attr.values[0]);
  if (attr.type == 2) return graph::Attr(std::bit_cast<double>(attr.values[0]));
  return graph::Attr(std::vector<int64_t>(attr.values, attr.values + attr.count));
}

Result<CustomOp> claim(const Device& device, const Question& question, const CustomNode& asked) {
  std::vector<cdl_custom_value_t> outputs(asked.node.outputs.size(), cdl_custom_value_t{});
  std::vector<cdl_attr_t> attrs(CDL_MAX_CUSTOM_ATTRS, cdl_attr_t{});
  cdl_custom_claim_t filled{};
  filled.header = CDL_HEADER(cdl_custom_claim_t);
  filled.outputs = outputs.data();
  filled.attrs = attrs.data();
  const std::string plugin = device.plugin().name();
  CDL_TRY(runtime::plugin::callSlot(plugin, CDL_SLOT(device.table(), custom_op), device.handle(),
                                    question.record(), &filled));
  CustomOp op;
  op.attrs = {{"op", import::qualified(asked.node.domain, asked.node.opType)},
              {"plugin", plugin},
              {"fn", int64_t{filled.fn}}};
  if (filled.attr_count > CDL_MAX_CUSTOM_ATTRS)
    return wrong("{} attributes, at most {}", filled.attr_count, CDL_MAX_CUSTOM_ATTRS)
        .context(plugin);
  for (uint16_t i = 0; i < filled.attr_count; ++i) {
    auto attr = attrOf(attrs[i]);
    if (!attr) return attr.status().context(plugin);
    if (!op.attrs.emplace(graph::instrAttrName(attrs[i].id), std::move(attr).value()).second)
      return wrong("attribute {} is given twice", attrs[i].id).context(plugin);
  }
  bool empty = false, full = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto type = typeOf(outputs[i], i);
    if (!type) return type.status().context(plugin);
    (type->count() ? full : empty) = true;
    op.results.push_back(std::move(type).value());
  }
  if (empty && full) return wrong("some outputs have elements and some have none").context(plugin);
  return op;
}

Status checkPorts(const std::vector<graph::Value*>& values, const std::vector<TensorType>& types,
                  const std::string& what) {
  std::vector<std::string> given, expected;
  for (const graph::Value* value : values) given.push_back(value->type.text());
  for (const TensorType& type : types) expected.push_back(type.text());
  if (given == expected) return Status::ok();
  return failure(Code::internal, "{} are ({}), expected ({})", what, fmt::join(given, ", "),
                 fmt::join(expected, ", "));
}

/// The form in other ops, if the plugin has one.
Status decompose(const Device& device, const Question& question, CustomOp& op) {
  if (!device.table().custom_op_decompose) return Status::ok();
  const std::string plugin = device.plugin().name();
  const runtime::plugin::Collector text(kMostText);
  const Status status =
      runtime::plugin::callSlot(plugin, CDL_SLOT(device.table(), custom_op_decompose),
                                device.handle(), question.record(), text.writer());
  if (status.code() == Code::unsupported) return Status::ok();
  CDL_TRY(status.context("custom_op_decompose"));
  Diagnostics diagnostics;
  const std::string where =
      fmt::format("{}: custom_op_decompose of {}", plugin, question.record()->op);
  auto graph = graph::parse(text.text(), where, diagnostics);
  if (!graph) return Status(Code::internal, graph.status().message());
  for (const graph::Graph* each : graph::nestedGraphs(*graph))
    for (const auto& node : each->nodes())
      for (const graph::Value* result : node->results())
        if (!graph::isPlain(result))
          return failure(Code::internal, "{}: '{}' is {}, expected a plain row-major type", where,
                         result->name, result->type.text());
  CDL_TRY(checkPorts(graph->inputs(), question.operands(), where + ": inputs"));
  CDL_TRY(checkPorts(graph->outputs(), op.results, where + ": outputs"));
  op.body = std::make_shared<graph::Graph>(std::move(graph).value());
  return Status::ok();
}

Result<CustomOp> askAll(std::span<const std::shared_ptr<Device>> devices, const CustomNode& asked) {
  CDL_ASSIGN(const auto question, Question::of(asked));
  std::string said;
  for (const auto& device : devices) {
    if (!device->table().custom_op) {
      said += fmt::format("{}{} claims no ops", said.empty() ? "" : "; ", device->plugin().name());
      continue;
    }
    Result<CustomOp> op = claim(*device, *question, asked);
    if (op) {
      CDL_TRY(decompose(*device, *question, *op));
      return op;
    }
    if (op.status().code() != Code::unsupported) return op.status();
    said += (said.empty() ? "" : "; ") + op.status().message();
  }
  return failure(Code::unsupported, "{}",
                 said.empty() ? "no backend that may claim it is named (--backend)" : said);
}

} // namespace

Result<import::ClaimOp> claimBy(std::vector<std::shared_ptr<Device>> devices,
                                bool besideReference) {
  for (const auto& device : devices)
    if (besideReference && !device->table().custom_op)
      return badArgument("the reference runs alone, not beside '{}', which claims no ops",
                         device->plugin().name());
  return import::ClaimOp(
      [all = std::move(devices)](const CustomNode& asked) { return askAll(all, asked); });
}

} // namespace candela::driver
