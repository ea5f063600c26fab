#include "core/compiler/import/onnx_io/write.h"

#include <onnx/onnx_pb.h>

#include <cerrno>
#include <set>

#include "core/compiler/import/onnx_io/messages.h"
#include "core/compiler/import/onnx_io/payloads.h"
#include "core/support/file.h"

namespace candela::import::onnx_io {
namespace {

using onnx::AttributeProto;

void setTensor(const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_data_type(elemToOnnx(tensor.elem));
  for (const int64_t dim : tensor.dims) proto.add_dims(dim);
  proto.set_raw_data(tensor.bytes.data(), tensor.sizeBytes());
}

/// Of a kind that may be written anew; graphs and what is not supported stay as the file has them.
bool setAttribute(const Attribute& value, AttributeProto& proto) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&value)) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(*text);
  } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
    proto.set_type(AttributeProto::TENSOR);
    setTensor(*tensor, *proto.mutable_t());
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    proto.set_type(AttributeProto::INTS);
    proto.mutable_ints()->Assign(ints->begin(), ints->end());
  } else if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
    proto.set_type(AttributeProto::FLOATS);
    proto.mutable_floats()->Assign(reals->begin(), reals->end());
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    proto.set_type(AttributeProto::STRINGS);
    for (const std::string& each : *texts) proto.add_strings(each);
  } else {
    return false;
  }
  return true;
}

void setInfo(const ValueInfo& info, onnx::ValueInfoProto& proto) {
  proto.set_name(info.name);
  if (info.elem == Elem::none) return;
  auto& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(elemToOnnx(info.elem));
  if (!info.hasShape) return;
  tensor.mutable_shape();
  for (const Dim& dim : info.dims) {
    auto& made = *tensor.mutable_shape()->add_dim();
    if (dim.value >= 0)
      made.set_dim_value(dim.value);
    else if (!dim.name.empty())
      made.set_dim_param(dim.name);
  }
}

void setInfos(const Graph& graph, onnx::GraphProto& proto) {
  proto.set_name(graph.name.empty() ? "main" : graph.name);
  for (const ValueInfo& input : graph.inputs) setInfo(input, *proto.add_input());
  for (const ValueInfo& output : graph.outputs) setInfo(output, *proto.add_output());
}

void addInitializer(const Initializer& initializer, onnx::GraphProto& proto) {
  onnx::TensorProto& tensor = *proto.add_initializer();
  setTensor(initializer.tensor, tensor);
  tensor.set_name(initializer.name);
}

const std::string& firstOf(const google::protobuf::RepeatedPtrField<std::string>& names) {
  static const std::string none;
  for (const std::string& name : names)
    if (!name.empty()) return name;
  return none;
}

void setNode(const Node& node, onnx::NodeProto& proto);

/// A graph that no file has.
void setGraph(const Graph& graph, AttributeProto& proto) {
  proto.set_type(AttributeProto::GRAPH);
  setInfos(graph, *proto.mutable_g());
  for (const Node& node : graph.nodes) setNode(node, *proto.mutable_g()->add_node());
  for (const Initializer& initializer : graph.initializers)
    addInitializer(initializer, *proto.mutable_g());
}

/// The node on top of what the file says of it, if it has it.
void setNode(const Node& node, onnx::NodeProto& proto) {
  proto.set_name(node.name);
  proto.set_op_type(node.opType);
  proto.set_domain(node.domain);
  proto.clear_input();
  proto.clear_output();
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (const std::string& output : node.outputs) proto.add_output(output);
  std::map<std::string, AttributeProto> old;
  for (const AttributeProto& attribute : proto.attribute()) old[attribute.name()] = attribute;
  proto.clear_attribute();
  for (const auto& [name, value] : node.attributes) {
    AttributeProto made;
    made.set_name(name);
    const auto known = old.find(name);
    if (known != old.end()) made.set_doc_string(known->second.doc_string());
    const auto* graph = std::get_if<std::shared_ptr<Graph>>(&value);
    if (setAttribute(value, made)) {
      *proto.add_attribute() = std::move(made);
    } else if (known != old.end()) {
      *proto.add_attribute() = known->second;
    } else if (graph && *graph) {
      setGraph(**graph, made);
      *proto.add_attribute() = std::move(made);
    }
  }
}

void setNodes(const Graph& graph, onnx::GraphProto& proto) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> old;
  old.Swap(proto.mutable_node());
  std::map<std::string, const onnx::NodeProto*> byOutput;
  for (const onnx::NodeProto& node : old) byOutput[firstOf(node.output())] = &node;
  for (const Node& node : graph.nodes) {
    onnx::NodeProto& made = *proto.add_node();
    const auto named = std::ranges::find_if(node.outputs, [](const auto& o) { return !o.empty(); });
    const auto known = named == node.outputs.end() ? byOutput.end() : byOutput.find(*named);
    if (known != byOutput.end() && known->second->op_type() == node.opType) made = *known->second;
    setNode(node, made);
  }
}

/// Element types and dims as they stand in the graph; infos of what has no shape there stay.
void setTypes(const std::vector<ValueInfo>& values,
              google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* infos) {
  for (const ValueInfo& value : values)
    for (onnx::ValueInfoProto& info : *infos) {
      if (info.name() != value.name || !value.hasShape || !info.type().has_tensor_type()) continue;
      auto& tensor = *info.mutable_type()->mutable_tensor_type();
      if (value.elem != Elem::none) tensor.set_elem_type(elemToOnnx(value.elem));
      onnx::TensorShapeProto& shape = *tensor.mutable_shape();
      shape.clear_dim();
      for (const Dim& dim : value.dims) {
        auto& made = *shape.add_dim();
        if (!dim.name.empty())
          made.set_dim_param(dim.name);
        else if (dim.value >= 0)
          made.set_dim_value(dim.value);
      }
    }
}

/// Infos of values that are gone are gone too; inputs and outputs have their types.
void keepInfos(const Graph& graph, onnx::GraphProto& proto) {
  std::set<std::string> values, inputs;
  for (const Node& node : graph.nodes) values.insert(node.outputs.begin(), node.outputs.end());
  for (const ValueInfo& input : graph.inputs) inputs.insert(input.name);
  const auto keep = [](auto* infos, const std::set<std::string>& names) {
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> kept;
    for (auto& info : *infos)
      if (names.count(info.name())) kept.Add()->Swap(&info);
    infos->Swap(&kept);
  };
  keep(proto.mutable_value_info(), values);
  keep(proto.mutable_input(), inputs);
  setTypes(graph.inputs, proto.mutable_input());
  setTypes(graph.outputs, proto.mutable_output());
}

void setIntegerRows(bool integerRows, onnx::ModelProto& proto) {
  if (!integerRows) return;
  for (auto& property : *proto.mutable_metadata_props())
    if (property.key() == kIntegerRows) {
      property.set_value("1");
      return;
    }
  auto* property = proto.add_metadata_props();
  property->set_key(kIntegerRows);
  property->set_value("1");
}

/// Nodes of one operator of another format share its name, those of ONNX have each its own.
void nameApart(onnx::GraphProto& graph, std::set<std::string>& taken) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    std::string name = node.name();
    for (int i = 1; !taken.insert(name).second; ++i)
      name = fmt::format("{}/{}:{}", node.name(), node.op_type(), i);
    node.set_name(name);
    for (AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) nameApart(*attribute.mutable_g(), taken);
  }
}

/// What else there is to say of a model whose file is not of ONNX.
onnx::ModelProto begun(const Model& model) {
  onnx::ModelProto proto;
  proto.set_producer_name(model.producer);
  for (const auto& [domain, version] : model.opsets) {
    auto& opset = *proto.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  setInfos(model.graph, *proto.mutable_graph());
  return proto;
}

} // namespace

Status writeModel(const Model& model, const std::string& path) {
  Bytes content;
  if (model.isOnnx) {
    CDL_ASSIGN(content, mapProtobuf(model.path));
  }
  return writeModel(model, content, path);
}

Status writeModel(const Model& model, const Bytes& content, const std::string& path) {
  const Payloads payloads(model.isOnnx ? content : Bytes());
  onnx::ModelProto proto;
  if (!model.isOnnx) proto = begun(model);
  if (model.isOnnx) {
    CDL_TRY(parseFile(payloads.rest(), proto, "ONNX model").context(model.path));
  }
  proto.set_ir_version(model.irVersion);
  for (auto& opset : *proto.mutable_opset_import()) {
    const std::string domain = opset.domain() == "ai.onnx" ? "" : opset.domain();
    if (const auto known = model.opsets.find(domain); known != model.opsets.end())
      opset.set_version(known->second);
  }
  setIntegerRows(model.integerRows, proto);
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.clear_initializer();
  uint64_t size = proto.ByteSizeLong();
  for (const Initializer& initializer : model.graph.initializers)
    size += initializer.tensor.sizeBytes() + initializer.name.size() + 64;
  if (size > INT_MAX)
    return failure(Code::unsupported, "{}: {} bytes, larger than 2 GB, protobuf's limit", path,
                   size);
  setNodes(model.graph, graph);
  keepInfos(model.graph, graph);
  std::set<std::string> taken;
  if (!model.isOnnx) nameApart(graph, taken);
  for (const Initializer& initializer : model.graph.initializers)
    addInitializer(initializer, graph);
  // Elements that the reader left out of what it parsed.
  for (onnx::NodeProto& node : *graph.mutable_node())
    for (AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_g())
        for (onnx::TensorProto& tensor : *attribute.mutable_g()->mutable_initializer())
          CDL_TRY(payloads.restore(tensor));
  std::string text;
  if (!proto.SerializeToString(&text))
    return failure(Code::internal, "{}: the model could not be written down", path);
  return writeFile(path, text.data(), text.size());
}

} // namespace candela::import::onnx_io
