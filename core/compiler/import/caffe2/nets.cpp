#include "core/compiler/import/caffe2/nets.h"

#include <google/protobuf/io/coded_stream.h>
#include <net.pb.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <set>

#include "core/support/file.h"
#include "core/support/json.h"
#include "core/support/text/shown.h"

namespace candela::import::caffe2 {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRank = 8;
/// Of constants that few bytes of a file ask for.
constexpr uint64_t kMostRepeatedBytes = uint64_t(512) << 20;

/// The fields of a message, one after the other, as far as they are well formed.
class Fields {
public:
  Fields(const std::byte* data, uint64_t size) : at_(data), end_(data + size) {}

  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  struct Field {
    uint64_t number = 0;
    uint32_t wire = 0;
    const std::byte* data = nullptr; ///< of kLength
    uint64_t size = 0;
  };

  bool atEnd() const { return at_ == end_; }
  /// Nullopt where what follows is no field.
  std::optional<Field> next() {
    const std::optional<uint64_t> tag = varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{.number = *tag >> 3, .wire = static_cast<uint32_t>(*tag & 7)};
    switch (field.wire) {
    case kVarint: return varint() ? std::optional(field) : std::nullopt;
    case kFixed64: return skip(8) ? std::optional(field) : std::nullopt;
    case kFixed32: return skip(4) ? std::optional(field) : std::nullopt;
    case kLength: {
      const std::optional<uint64_t> size = varint();
      if (!size) return std::nullopt;
      field.data = at_;
      field.size = *size;
      return skip(*size) ? std::optional(field) : std::nullopt;
    }
    default: return std::nullopt; // groups: nobody writes them
    }
  }

private:
  bool skip(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(end_ - at_)) return false;
    at_ += bytes;
    return true;
  }
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint64_t>(*at_++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  const std::byte* at_;
  const std::byte* end_;
};

/// Whether a message is an operator: texts where an OperatorDef has them, and a type.
bool isOperator(const Fields::Field& message) {
  constexpr uint64_t kType = 4, kLastText = 8;
  Fields fields(message.data, message.size);
  bool hasType = false;
  while (!fields.atEnd()) {
    const auto field = fields.next();
    if (!field) return false;
    if (field->number <= kLastText && field->wire != Fields::kLength) return false;
    hasType |= field->number == kType && field->size > 0;
  }
  return hasType;
}

/// A whole content. Failure: bad_model, naming the file.
Result<std::shared_ptr<const proto::NetDef>> parseNet(const Bytes& content,
                                                      const std::string& path) {
  if (content.size() > INT_MAX)
    return badModel("{}: {} bytes, larger than 2 GB, protobuf's limit", path, content.size());
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(content.data()),
                                                static_cast<int>(content.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  auto net = std::make_shared<proto::NetDef>();
  if (!net->ParsePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return badModel("{}: no net of Caffe2: malformed or truncated protobuf", path);
  return std::shared_ptr<const proto::NetDef>(std::move(net));
}

/// Names go into messages and reports.
Status checkNames(const proto::NetDef& net) {
  const auto isPlain = [](const std::string& name) {
    return !name.empty() && text::shownLine(name) == name;
  };
  const auto check = [&](const auto& names, const char* what) {
    for (const std::string& name : names)
      if (!isPlain(name)) return badModel("{} '{}' is no name", what, text::shownLine(name));
    return Status::ok();
  };
  for (const proto::OperatorDef& op : net.op()) {
    if (!isPlain(op.type())) return badModel("type '{}' is no name", text::shownLine(op.type()));
    CDL_TRY(check(op.input(), "input"));
    CDL_TRY(check(op.output(), "output"));
  }
  CDL_TRY(check(net.external_input(), "input"));
  return check(net.external_output(), "output");
}

/// What an init net makes, by blob. Failures name the file and the operator.
Status addConstants(const proto::NetDef& init, const std::string& path, Nets& nets) {
  for (int i = 0; i < init.op_size(); ++i) {
    const proto::OperatorDef& op = init.op(i);
    auto made =
        fill(op).context(fmt::format("{}: node '{} {}' ({})", path, op.type(), i, op.type()));
    CDL_TRY(made.status());
    const bool isRepeated = op.type() == "ConstantFill";
    if (isRepeated) nets.repeatedBytes += made->tensor.bytes.size();
    if (nets.repeatedBytes > kMostRepeatedBytes)
      return badModel("{}: its ConstantFills make {} bytes, more than {}", path, nets.repeatedBytes,
                      kMostRepeatedBytes);
    nets.constants[op.output(0)] = *std::move(made);
  }
  return Status::ok();
}

/// One entry of value_info.json: [1, [1, 3, 224, 224]].
Result<InputType> inputTypeOf(const nlohmann::json& entry) {
  const bool isEntry = entry.is_array() && entry.size() == 2 && entry[0].is_number_integer() &&
                       entry[1].is_array() && entry[1].size() <= kMostRank;
  if (!isEntry) return badModel("it is no [type, [dims]]");
  InputType type{.elem = elemOf(entry[0].get<int64_t>()), .dims = {}};
  if (type.elem == Elem::none)
    return failure(Code::unsupported, "type {} is not supported", entry[0].get<int64_t>());
  for (const nlohmann::json& dim : entry[1]) {
    if (!dim.is_number_integer()) return badModel("a dim is no integer");
    type.dims.push_back(dim.get<int64_t>());
  }
  if (!elementCount(type.dims)) return badModel("the shape {} is none", shapeText(type.dims));
  return type;
}

/// What stands beside a net of its inputs, if anything does.
Status addInputTypes(const fs::path& file, Nets& nets) {
  std::error_code error;
  if (!fs::exists(file, error)) return Status::ok();
  CDL_ASSIGN(const Bytes content, mapFile(file.string()));
  const auto json =
      parseJson<nlohmann::json>({reinterpret_cast<const char*>(content.data()), content.size()});
  if (!json.is_object()) return badModel("{}: no object of JSON", file.string());
  for (const auto& [name, entry] : json.items()) {
    Result<InputType> type = inputTypeOf(entry).context(
        fmt::format("{}: entry '{}'", file.string(), text::shownLine(name)));
    CDL_TRY(type.status());
    nets.inputs[name] = *std::move(type);
  }
  return Status::ok();
}

/// Takes the fills out of a net that has those of its init net in front. What an init net gives to
/// its predict net is an external output of the one and an external input of the other, and neither
/// of both.
Result<std::shared_ptr<const proto::NetDef>> withoutFills(const proto::NetDef& net,
                                                          const std::string& path, Nets& nets) {
  std::map<std::string, int> writers;
  for (const proto::OperatorDef& op : net.op())
    for (const std::string& output : op.output()) ++writers[output];
  proto::NetDef fills;
  auto rest = std::make_shared<proto::NetDef>();
  rest->set_name(net.name());
  for (const proto::OperatorDef& op : net.op()) {
    const bool isConstant = isFill(op) && op.output_size() == 1 && writers[op.output(0)] == 1;
    *(isConstant ? fills : *rest).add_op() = op;
  }
  CDL_TRY(addConstants(fills, path, nets));
  const std::set<std::string> inputs(net.external_input().begin(), net.external_input().end());
  const auto isGiven = [&](const std::string& name) { return nets.constants.count(name) > 0; };
  for (const std::string& input : net.external_input())
    if (!isGiven(input)) rest->add_external_input(input);
  for (const std::string& output : net.external_output())
    if (!isGiven(output) || !inputs.count(output)) rest->add_external_output(output);
  return std::shared_ptr<const proto::NetDef>(std::move(rest));
}

/// Where the init net of a file lies, by its name; nullopt where the name says nothing of one.
std::optional<fs::path> initPathOf(const fs::path& file) {
  const std::string marker = "predict";
  std::string name = file.filename().string();
  const size_t at = name.rfind(marker);
  if (at == std::string::npos) return std::nullopt;
  return file.parent_path() / name.replace(at, marker.size(), "init");
}

} // namespace

bool isNet(const Bytes& content) {
  constexpr uint64_t kName = 1, kOperator = 2, kLastField = 9;
  Fields fields(content.data(), content.size());
  bool hasOperator = false;
  while (!fields.atEnd()) {
    const auto field = fields.next();
    if (!field || field->number > kLastField) return false;
    const bool isText = field->number == kName || field->number == kOperator;
    if (isText && field->wire != Fields::kLength) return false;
    if (field->number != kOperator || hasOperator) continue;
    if (!isOperator(*field)) return false;
    hasOperator = true;
  }
  return hasOperator;
}

Elem elemOf(int64_t dataType) {
  struct ElementType {
    int64_t number;
    Elem elem;
  };
  static constexpr ElementType kTypes[] = {
      {1, Elem::f32_},  {2, Elem::i32_},  {3, Elem::u8_},   {5, Elem::bool_},
      {6, Elem::u8_},   {7, Elem::i8_},   {8, Elem::u16_},  {9, Elem::i16_},
      {10, Elem::i64_}, {12, Elem::f16_}, {13, Elem::f64_},
  };
  const auto found = std::ranges::find(kTypes, dataType, &ElementType::number);
  return found == std::end(kTypes) ? Elem::none : found->elem;
}

Result<Nets> openNets(const Bytes& content, const std::string& path) {
  Nets nets;
  CDL_ASSIGN(nets.net, parseNet(content, path));
  CDL_TRY(checkNames(*nets.net).context(path));
  if (std::ranges::all_of(nets.net->op(), isFill))
    return badModel(
        "{}: its operators fill constants alone: it is an init net, and the predict net "
        "is asked for",
        path);
  CDL_ASSIGN(nets.net, withoutFills(*nets.net, path, nets));
  const fs::path file(path);
  if (const auto initPath = initPathOf(file)) {
    const std::string name = initPath->string();
    CDL_ASSIGN(const Bytes initContent,
               mapFile(name).context(fmt::format("{}: its init net", path)));
    CDL_ASSIGN(const auto init, parseNet(initContent, name));
    CDL_TRY(checkNames(*init).context(name));
    CDL_TRY(addConstants(*init, name, nets));
  }
  CDL_TRY(addInputTypes(file.parent_path() / "value_info.json", nets));
  return nets;
}

} // namespace candela::import::caffe2
