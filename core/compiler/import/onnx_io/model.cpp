#include "core/compiler/import/onnx_io/model.h"

#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/compiler/import/onnx_io/external_data.h"
#include "core/compiler/import/onnx_io/messages.h"
#include "core/compiler/import/onnx_io/payloads.h"
#include "core/support/file.h"
#include "core/support/text/scan.h"

namespace candela::import::onnx_io {
namespace {

using onnx::AttributeProto, onnx::TensorProto, onnx::TypeProto;

Result<Elem> elemOf(const TensorProto& proto) {
  const int type = proto.data_type();
  if (const auto elem = elemFromOnnx(type)) return *elem;
  if (type == TensorProto::UNDEFINED) return badModel("no element type");
  if (onnx::TensorProto_DataType_IsValid(type)) {
    const auto name =
        onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type));
    return failure(Code::unsupported, "element type {} ({}) is not supported", name, type);
  }
  return failure(Code::unsupported, "element type {} is not supported", type);
}

constexpr int kSixBits = 6;
bool isSixBits(Elem elem) { return elem == Elem::f6e2m3_ || elem == Elem::f6e3m2_; }
/// What raw bytes of this many elements are: four 6-bit ones lie in three bytes, the low bits
/// first.
uint64_t rawBytes(Elem elem, int64_t count) {
  return isSixBits(elem) ? (static_cast<uint64_t>(count) * kSixBits + 7) / 8
                         : elemBytes(elem, count);
}

/// 6-bit elements as we hold them, in bytes of their own.
Result<Tensor> unpackSixBits(Tensor tensor) {
  const Bytes packed = tensor.bytes;
  CDL_ASSIGN(tensor.bytes, Bytes::allocate(tensor.sizeBytes()));
  for (uint64_t i = 0; i < tensor.sizeBytes(); ++i)
    for (uint64_t b = 0; b < kSixBits; ++b) {
      const uint64_t at = i * kSixBits + b;
      tensor.bytes.mutableData()[i] |= (packed.data()[at / 8] >> (at % 8) & std::byte(1)) << b;
    }
  return tensor;
}

/// Bytes as they stand in a file, copied when they do not lie as the elements want them. A bool
/// that is neither 0 nor 1 would mean different things to different readers.
Result<Tensor> fromBytes(Tensor tensor) {
  if (isSixBits(tensor.elem)) return unpackSixBits(std::move(tensor));
  const uintptr_t alignment = std::max(1, elemBits(tensor.elem) / 8);
  if (!tensor.bytes.data() || reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignment != 0) {
    CDL_ASSIGN(Bytes bytes, Bytes::allocate(tensor.bytes.size()));
    if (bytes.size()) std::memcpy(bytes.mutableData(), tensor.bytes.data(), bytes.size());
    tensor.bytes = std::move(bytes);
  }
  if (tensor.elem != Elem::bool_) return tensor;
  for (int64_t i = 0, count = tensor.count(); i < count; ++i)
    if (tensor.as<uint8_t>()[i] > 1)
      return badModel("element {} of a bool tensor is {}", i, tensor.as<uint8_t>()[i]);
  return tensor;
}

Result<uint64_t> parseSize(const std::string& key, const std::string& text) {
  const auto value = text::parseNumber<uint64_t>(text);
  if (!value) return badModel("external data {} '{}' is no byte count", key, text);
  return *value;
}

Result<Bytes> externalBytes(const TensorProto& proto, ExternalData& external, uint64_t size) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      CDL_ASSIGN(offset, parseSize(entry.key(), entry.value()));
    }
    if (entry.key() == "length") {
      CDL_ASSIGN(length, parseSize(entry.key(), entry.value()));
    }
  }
  return external.read(location, offset, length, size);
}

Status wrongCount(const char* field, int64_t have, const Tensor& tensor, int64_t need) {
  return badModel("{} has {} values but {} needs {}", field, have, tensor.typeText(), need);
}

/// Fields whose values are the elements as they are.
template <typename T, typename Field>
Result<Tensor> copyField(Tensor tensor, const char* name, const Field& field) {
  if (field.size() != tensor.count()) return wrongCount(name, field.size(), tensor, tensor.count());
  CDL_ASSIGN(tensor.bytes, Bytes::allocate(tensor.sizeBytes()));
  if (field.size()) std::memcpy(tensor.bytes.mutableData(), field.data(), field.size() * sizeof(T));
  return tensor;
}

/// Fields whose values are wider than the elements: each must fit.
template <typename Field>
Result<Tensor> narrowField(Tensor tensor, const char* name, const Field& field) {
  const bool packed = isPacked(tensor.elem); // the elements of a byte in each value
  const int64_t per = elemsPerByte(tensor.elem), need = (tensor.count() + per - 1) / per;
  if (field.size() != need) return wrongCount(name, field.size(), tensor, need);
  CDL_ASSIGN(tensor.bytes, Bytes::allocate(tensor.sizeBytes()));
  const int size = std::max(1, elemBits(tensor.elem) / 8);
  // Floats and packed elements stand as their bits.
  const bool bits = packed || isFloat(tensor.elem);
  const int width = isSixBits(tensor.elem) ? kSixBits : 8 * size;
  const IntegerRange range =
      bits ? IntegerRange{0, (__int128(1) << width) - 1} : integerRange(tensor.elem);
  for (int64_t i = 0; i < need; ++i) {
    const __int128 value = field.Get(static_cast<int>(i));
    // Writers that sign-extend packed signed elements exist.
    if ((value < range.lowest || value > range.highest) && !(packed && value >= -128 && value < 0))
      return badModel("{} holds {} at {}, which is no {}", name, static_cast<int64_t>(value), i,
                      elemName(tensor.elem));
    std::memcpy(tensor.bytes.mutableData() + i * size, &value, size);
  }
  return tensor;
}

/// A TensorProto in any of its storage forms. Takes raw bytes out of the proto instead of copying
/// them. Failures do not name the tensor: `unsupported` for element types that we do not have, else
/// bad_model or what the external file gave.
Result<Tensor> takeTensor(TensorProto& proto, ExternalData& external) {
  if (proto.has_segment())
    return failure(Code::unsupported, "a segment or a sequence, not a tensor");
  Tensor tensor;
  CDL_ASSIGN(tensor.elem, elemOf(proto));
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  const auto count = elementCount(tensor.dims);
  if (!count) return badModel("impossible shape {}", shapeText(tensor.dims));
  const uint64_t size = rawBytes(tensor.elem, *count);

  if (proto.data_location() == TensorProto::EXTERNAL) {
    CDL_ASSIGN(tensor.bytes, externalBytes(proto, external, size));
    return fromBytes(std::move(tensor));
  }
  if (proto.has_raw_data()) {
    if (proto.raw_data().size() != size)
      return badModel("raw data has {} bytes but {} needs {}", proto.raw_data().size(),
                      tensor.typeText(), size);
    std::shared_ptr<std::string> raw(proto.release_raw_data());
    tensor.bytes = Bytes::wrap(raw->data(), size, raw);
    return fromBytes(std::move(tensor));
  }
  switch (tensor.elem) {
  case Elem::f32_: return copyField<float>(std::move(tensor), "float_data", proto.float_data());
  case Elem::f64_: return copyField<double>(std::move(tensor), "double_data", proto.double_data());
  case Elem::i64_: return copyField<int64_t>(std::move(tensor), "int64_data", proto.int64_data());
  case Elem::u64_:
    return copyField<uint64_t>(std::move(tensor), "uint64_data", proto.uint64_data());
  case Elem::u32_: return narrowField(std::move(tensor), "uint64_data", proto.uint64_data());
  default: return narrowField(std::move(tensor), "int32_data", proto.int32_data());
  }
}

// Fields that are newer than the schema we are built with.
constexpr int kNodeOverload = 8;
constexpr int kFunctionOverload = 13;
constexpr int kFunctionAttributeProto = 11;

/// Bytes of the UTF-8 sequence that begins with this one; 0: none does.
int sequenceLength(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

/// Names end up in messages, reports and text forms: they must be UTF-8 (which the format asks for)
/// and printable.
bool isPrintable(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) return false;
    const int length = sequenceLength(byte);
    if (length == 0 || text.size() - i < static_cast<size_t>(length)) return false;
    uint32_t point = length == 1 ? byte : byte & (0x7f >> length);
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    if ((length == 3 && point < 0x800) || (length == 4 && (point < 0x10000 || point > 0x10ffff)) ||
        (point >= 0xd800 && point < 0xe000))
      return false;
    i += length;
  }
  return true;
}

/// "ai.onnx" is the long name of the default domain.
std::string domainOf(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string unknownString(const google::protobuf::UnknownFieldSet& fields, int number) {
  std::string value;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == number &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      value = fields.field(i).length_delimited();
  return value;
}

/// What a message calls a node before we know that its names are printable.
std::string nodeContext(const onnx::NodeProto& proto, size_t index) {
  const std::string op = isPrintable(proto.op_type()) ? proto.op_type() : "?";
  const bool named = !proto.name().empty() && isPrintable(proto.name());
  return fmt::format("node '{}' ({})", named ? proto.name() : fmt::format("{}_{}", op, index), op);
}

/// What the nodes of the graph and of those within it read, and what these graphs give.
void collectReads(const onnx::GraphProto& graph, std::unordered_set<std::string_view>& names) {
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const auto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) collectReads(attribute.g(), names);
  }
}

class Reader {
public:
  Reader(const std::string& path, const Payloads& payloads)
      : external_(path), payloads_(payloads) {}

  Status model(onnx::ModelProto& proto, Model& model) {
    model.irVersion = proto.ir_version();
    model.producer = isPrintable(proto.producer_name()) ? proto.producer_name() : "";
    for (const auto& property : proto.metadata_props())
      if (property.key() == kIntegerRows) model.integerRows = property.value() == "1";
    CDL_TRY(opsets(proto.opset_import(), model.opsets));
    if (!proto.has_graph()) return badModel("no graph in it");
    CDL_TRY(graph(*proto.mutable_graph(), model.graph));
    for (int i = 0; i < proto.functions_size(); ++i) {
      Function& target = model.functions.emplace_back();
      CDL_TRY(function(*proto.mutable_functions(i), target)
                  .context(fmt::format("function '{}'", target.name)));
    }
    return Status::ok();
  }

private:
  Status graph(onnx::GraphProto& proto, Graph& graph) {
    graph.name = isPrintable(proto.name()) ? proto.name() : "";
    if (proto.sparse_initializer_size() > 0)
      return failure(Code::unsupported, "{} sparse initializers are not supported",
                     proto.sparse_initializer_size());
    // once, where there is something to leave out
    std::optional<std::unordered_set<std::string_view>> reads;
    const auto isRead = [&](const std::string& name) {
      if (!reads) collectReads(proto, reads.emplace());
      return reads->count(name) > 0;
    };
    for (onnx::TensorProto& tensorProto : *proto.mutable_initializer()) {
      std::string key;
      CDL_TRY(name(tensorProto.name(), "an initializer's name", key));
      auto tensor = take(tensorProto);
      if (!tensor && tensor.status().code() == Code::unsupported && !isRead(key)) continue;
      CDL_TRY(tensor.status().context(fmt::format("initializer '{}'", key)));
      graph.initializers.push_back({key, *std::move(tensor)});
    }
    const auto infos = [&](const auto& field, std::vector<ValueInfo>& out) {
      for (const auto& info : field) CDL_TRY(valueInfo(info, out.emplace_back()));
      return Status::ok();
    };
    CDL_TRY(infos(proto.input(), graph.inputs));
    CDL_TRY(infos(proto.output(), graph.outputs));
    CDL_TRY(infos(proto.value_info(), graph.values));
    return nodes(*proto.mutable_node(), graph.nodes);
  }

  Status node(onnx::NodeProto& proto, Node& node) {
    CDL_TRY(name(proto.name(), "the name", node.name));
    CDL_TRY(name(proto.op_type(), "the operator's name", node.opType));
    CDL_TRY(name(domainOf(proto.domain()), "the domain", node.domain));
    CDL_TRY(
        name(unknownString(proto.unknown_fields(), kNodeOverload), "the overload", node.overload));
    CDL_TRY(names(proto.input(), node.inputs, "input"));
    CDL_TRY(names(proto.output(), node.outputs, "output"));
    for (AttributeProto& attributeProto : *proto.mutable_attribute()) {
      std::string key;
      CDL_TRY(name(attributeProto.name(), "an attribute's name", key));
      if (node.attributes.count(key) || node.attributeRefs.count(key))
        return badModel("attribute '{}' is given twice", key);
      if (!attributeProto.ref_attr_name().empty()) {
        CDL_TRY(name(attributeProto.ref_attr_name(), "a referenced attribute's name",
                     node.attributeRefs[key]));
        continue;
      }
      CDL_TRY(attribute(attributeProto, node.attributes[key])
                  .context(fmt::format("attribute '{}'", key)));
    }
    return Status::ok();
  }

  Status function(onnx::FunctionProto& proto, Function& function) {
    const auto& fields = proto.unknown_fields();
    CDL_TRY(name(proto.name(), "a function's name", function.name));
    CDL_TRY(name(domainOf(proto.domain()), "a function's domain", function.domain));
    CDL_TRY(
        name(unknownString(fields, kFunctionOverload), "a function's overload", function.overload));
    CDL_TRY(names(proto.input(), function.inputs, "input"));
    CDL_TRY(names(proto.output(), function.outputs, "output"));
    CDL_TRY(names(proto.attribute(), function.attributes, "attribute"));
    for (int i = 0; i < fields.field_count(); ++i) {
      if (fields.field(i).number() != kFunctionAttributeProto) continue;
      AttributeProto attributeProto;
      if (fields.field(i).type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
          !attributeProto.ParsePartialFromString(fields.field(i).length_delimited()))
        return badModel("malformed default of an attribute");
      std::string key;
      CDL_TRY(name(attributeProto.name(), "an attribute's name", key));
      CDL_TRY(attribute(attributeProto, function.attributeDefaults[key])
                  .context(fmt::format("attribute '{}'", key)));
    }
    CDL_TRY(opsets(proto.opset_import(), function.opsets));
    return nodes(*proto.mutable_node(), function.nodes);
  }

  Status valueInfo(const onnx::ValueInfoProto& proto, ValueInfo& info) {
    CDL_TRY(name(proto.name(), "a value's name", info.name));
    const TypeProto& type = proto.type();
    switch (type.value_case()) {
    case TypeProto::kTensorType: break;
    case TypeProto::kSequenceType: info.what = "a sequence"; return Status::ok();
    case TypeProto::kMapType: info.what = "a map"; return Status::ok();
    case TypeProto::kOptionalType: info.what = "an optional"; return Status::ok();
    case TypeProto::kSparseTensorType: info.what = "a sparse tensor"; return Status::ok();
    default: return Status::ok();
    }
    const auto& tensor = type.tensor_type();
    if (const auto elem = elemFromOnnx(tensor.elem_type()))
      info.elem = *elem;
    else if (onnx::TensorProto_DataType_IsValid(tensor.elem_type()) && tensor.elem_type() != 0)
      info.what =
          fmt::format("a tensor of {}", onnx::TensorProto_DataType_Name(tensor.elem_type()));
    else if (tensor.elem_type() != 0)
      info.what = fmt::format("a tensor of element type {}", tensor.elem_type());
    info.hasShape = tensor.has_shape();
    for (const auto& dim : tensor.shape().dim()) {
      Dim& out = info.dims.emplace_back();
      CDL_TRY(name(dim.dim_param(), "a dim's name", out.name)
                  .context(fmt::format("value '{}'", info.name)));
      // exporters write it for each dim that they do not know
      if (out.name == "?") out.name.clear();
      if (dim.has_dim_value() && dim.dim_value() >= 0) out.value = dim.dim_value();
    }
    return Status::ok();
  }

  Status attribute(AttributeProto& proto, Attribute& out) {
    switch (proto.type()) {
    case AttributeProto::FLOAT: out = proto.f(); break;
    case AttributeProto::INT: out = static_cast<int64_t>(proto.i()); break;
    case AttributeProto::STRING: out = proto.s(); break;
    case AttributeProto::FLOATS:
      out = std::vector<float>(proto.floats().begin(), proto.floats().end());
      break;
    case AttributeProto::INTS:
      out = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      break;
    case AttributeProto::STRINGS:
      out = std::vector(proto.strings().begin(), proto.strings().end());
      break;
    case AttributeProto::TENSOR: {
      auto tensor = take(*proto.mutable_t());
      if (!tensor && tensor.status().code() != Code::unsupported) return tensor.status();
      if (tensor)
        out = std::move(tensor).value();
      else
        out = UnsupportedAttribute{fmt::format("a tensor, but its {}", tensor.status().message())};
      break;
    }
    case AttributeProto::GRAPH: {
      auto body = std::make_shared<Graph>();
      CDL_TRY(graph(*proto.mutable_g(), *body));
      out = std::move(body);
      break;
    }
    default:
      out =
          UnsupportedAttribute{"of type " + onnx::AttributeProto_AttributeType_Name(proto.type())};
    }
    return Status::ok();
  }

  template <typename Field>
  Status opsets(const Field& field, std::map<std::string, int64_t>& opsets) {
    for (const auto& opset : field) {
      std::string domain;
      CDL_TRY(name(domainOf(opset.domain()), "an opset's domain", domain));
      const auto [known, added] = opsets.emplace(domain, opset.version());
      if (!added && known->second != opset.version())
        return badModel("domain '{}' is imported as version {} and as version {}", opset.domain(),
                        known->second, opset.version());
    }
    return Status::ok();
  }

  template <typename Field>
  Status names(const Field& field, std::vector<std::string>& out, const char* what) {
    for (const std::string& text : field)
      CDL_TRY(
          name(text, what, out.emplace_back()).context(fmt::format("{} {}", what, out.size() - 1)));
    return Status::ok();
  }

  /// Takes a name that is printable.
  Status name(std::string text, const char* what, std::string& out) {
    if (!isPrintable(text)) return badModel("{} is not printable UTF-8 text", what);
    out = std::move(text);
    return Status::ok();
  }

  template <typename Field> Status nodes(Field& field, std::vector<Node>& out) {
    for (onnx::NodeProto& proto : field)
      CDL_TRY(node(proto, out.emplace_back()).context(nodeContext(proto, out.size() - 1)));
    return Status::ok();
  }

  /// Empties the proto.
  Result<Tensor> take(TensorProto& proto) {
    TensorProto whole; // freed here, elements and all
    whole.Swap(&proto);
    CDL_TRY(payloads_.restore(whole));
    return takeTensor(whole, external_);
  }

  ExternalData external_;
  const Payloads& payloads_;
};

} // namespace

Result<Model> readModel(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapProtobuf(path));
  return parseModel(bytes, path);
}

Result<Model> parseModel(const Bytes& content, const std::string& path) {
  CDL_TRY(checkSize(content, path));
  const Payloads payloads(content);
  onnx::ModelProto proto;
  CDL_TRY(parseFile(payloads.rest(), proto, "ONNX model").context(path));
  Model model;
  model.path = path;
  CDL_TRY(Reader(path, payloads).model(proto, model).context(path));
  return model;
}

Result<Tensor> tensorOf(TensorProto& proto, const std::string& path) {
  ExternalData external(path);
  return takeTensor(proto, external);
}

} // namespace candela::import::onnx_io
