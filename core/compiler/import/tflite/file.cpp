#include "core/compiler/import/tflite/file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/support/text/utf8.h"

namespace candela::import::tflite {
namespace {

constexpr uint64_t kAlignment = 16; // of a file, as its writers align what is in it
constexpr uint32_t kVersion = 3;
constexpr size_t kMostRank = 8;
// Of names, shapes and lists, for each use: in all, and for each byte of the file.
constexpr uint64_t kMostCopied = uint64_t(64) << 20, kCopiedPerByte = 16;
constexpr flatbuffers::uoffset_t kMostTables = 4000000, kDeepest = 64;

struct ElementType {
  schema::TensorType type;
  Elem elem;
};
constexpr ElementType kElementTypes[] = {
    {schema::TensorType_FLOAT32, Elem::f32_}, {schema::TensorType_FLOAT16, Elem::f16_},
    {schema::TensorType_FLOAT64, Elem::f64_}, {schema::TensorType_BFLOAT16, Elem::bf16_},
    {schema::TensorType_INT2, Elem::i2_},     {schema::TensorType_INT4, Elem::i4_},
    {schema::TensorType_INT8, Elem::i8_},     {schema::TensorType_INT16, Elem::i16_},
    {schema::TensorType_INT32, Elem::i32_},   {schema::TensorType_INT64, Elem::i64_},
    {schema::TensorType_UINT4, Elem::u4_},    {schema::TensorType_UINT8, Elem::u8_},
    {schema::TensorType_UINT16, Elem::u16_},  {schema::TensorType_UINT32, Elem::u32_},
    {schema::TensorType_UINT64, Elem::u64_},  {schema::TensorType_BOOL, Elem::bool_},
};

Elem elemOf(schema::TensorType type) {
  const auto found = std::ranges::find(kElementTypes, type, &ElementType::type);
  return found == std::end(kElementTypes) ? Elem::none : found->elem;
}

template <typename T> size_t sizeOf(const flatbuffers::Vector<T>* vector) {
  return vector ? vector->size() : 0;
}

/// Elements in the order of this machine, as the format has them. Those of 8 bytes may lie
/// anywhere: the verifier looks at 4.
template <typename T> std::vector<T> copied(const flatbuffers::Vector<T>* vector) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<T> values(sizeOf(vector));
  if (!values.empty()) std::memcpy(values.data(), vector->Data(), values.size() * sizeof(T));
  return values;
}

/// Whether it may end up in messages and reports: a name that is not is none.
bool isPrintable(std::string_view text) {
  while (!text.empty()) {
    const text::Character character = text::characterAt(text);
    if (character.bytes == 0 || character.value < 0x20 || character.value == 0x7f) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string printable(const flatbuffers::String* text, const std::string& otherwise) {
  if (!text || text->size() == 0) return otherwise;
  std::string name = text->str();
  return isPrintable(name) ? name : otherwise;
}

/// Tensors of this list exist; -1 may stand for one that is left out.
Status checkIndices(const std::vector<int>& indices, size_t count, bool optional,
                    const char* what) {
  for (const int index : indices)
    if (index < (optional ? -1 : 0) || index >= static_cast<int64_t>(count))
      return badModel("{} {} is none of {} tensors", what, index, count);
  return Status::ok();
}

Status checkScales(const Quantization& quantization, const TensorInfo& info) {
  const size_t count = quantization.scales.size();
  for (const float scale : quantization.scales)
    if (!std::isfinite(scale) || scale < 0) return badModel("its scale is {}", scale);
  if (quantization.zeros.size() != count)
    return badModel("it has {} scales and {} zero points", count, quantization.zeros.size());
  const IntegerRange range = integerRange(info.elem);
  for (const int64_t zero : quantization.zeros)
    if (zero < range.lowest || zero > range.highest)
      return badModel("its zero point {} is no {}", zero, elemName(info.elem));
  if (count == 1) return Status::ok();
  if (quantization.axis < 0 || quantization.axis >= info.rank())
    return badModel("its scales are of dim {}, but it has {}", quantization.axis, info.rank());
  if (const int64_t dim = info.dims[static_cast<size_t>(quantization.axis)];
      dim != static_cast<int64_t>(count))
    return badModel("it has {} scales for a dim of {}", count, dim);
  return Status::ok();
}

Status readQuantization(const schema::QuantizationParameters& table, TensorInfo& info) {
  if (table.details_type() != schema::QuantizationDetails_NONE)
    info.refusal = table.details_type() == schema::QuantizationDetails_BlockwiseQuantization
                       ? "it is quantized in blocks"
                       : "its quantization is a custom one";
  // Floats carry ranges at most, and a bias has the scale of its product.
  if (sizeOf(table.scale()) == 0 || !isInteger(info.elem) || elemBits(info.elem) > 16)
    return Status::ok();
  Quantization quantization{copied(table.scale()), copied(table.zero_point()),
                            table.quantized_dimension()};
  if (quantization.zeros.empty()) quantization.zeros.assign(quantization.scales.size(), 0);
  // Writers leave one zero point for all scales, too.
  if (quantization.zeros.size() == 1)
    quantization.zeros.assign(quantization.scales.size(), quantization.zeros[0]);
  if (quantization.scales.size() == 1) quantization.axis = 0;
  if (quantization.scales == std::vector<float>{0}) return Status::ok(); // as some write "none"
  CDL_TRY(checkScales(quantization, info));
  info.quantization = std::move(quantization);
  return Status::ok();
}

Status readDims(const schema::Tensor& table, TensorInfo& info) {
  const std::vector<int> shape = copied(table.shape()), signature = copied(table.shape_signature());
  if (shape.size() > kMostRank)
    return failure(Code::unsupported, "it has {} dims, more than {}", shape.size(), kMostRank);
  info.dims.assign(shape.begin(), shape.end());
  if (!signature.empty()) {
    if (signature.size() != shape.size())
      return badModel("its shape has {} dims and its signature {}", shape.size(), signature.size());
    info.dims.assign(signature.begin(), signature.end());
  }
  Shape known;
  for (const int64_t dim : info.dims) {
    if (dim < -1) return badModel("it has a dim of {}", dim);
    if (dim >= 0) known.push_back(dim);
  }
  if (!elementCount(known)) return badModel("its shape {} is impossibly large", shapeText(known));
  return Status::ok();
}

Status checkBools(const Tensor& tensor) {
  if (tensor.elem != Elem::bool_) return Status::ok();
  for (int64_t i = 0, count = tensor.count(); i < count; ++i)
    if (tensor.as<uint8_t>()[i] > 1)
      return badModel("element {} of a bool tensor is {}", i, tensor.as<uint8_t>()[i]);
  return Status::ok();
}

} // namespace

std::string builtinName(schema::BuiltinOperator code) {
  const char* name = schema::EnumNameBuiltinOperator(code);
  return *name ? name : fmt::format("operator {}", static_cast<int>(code));
}

Result<File> File::open(Bytes content) {
  if (content.size() < 8) return badModel("no TensorFlow Lite model: {} bytes", content.size());
  if (reinterpret_cast<uintptr_t>(content.data()) % kAlignment != 0)
    content = Bytes::copyOf(content.data(), content.size());
  File file;
  file.content_ = std::move(content);
  // Behind the tables there may be elements: more than the verifier takes.
  const size_t size = std::min<uint64_t>(file.content_.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(file.content_.data()), size,
                                 kDeepest, kMostTables);
  if (!schema::VerifyModelBuffer(verifier))
    return badModel("no TensorFlow Lite model: its tables are damaged or cut off");
  const schema::Model& model = file.model();
  if (model.version() != kVersion)
    return failure(Code::unsupported, "its schema has version {}, expected {}", model.version(),
                   kVersion);
  if (sizeOf(model.subgraphs()) == 0) return badModel("it has no subgraph");
  for (const schema::SubGraph* table : *model.subgraphs()) {
    if (!table) return badModel("subgraph {} is missing", file.subgraphs_.size());
    const std::string which = fmt::format("subgraph {}", file.subgraphs_.size());
    CDL_TRY(file.readSubgraph(*table).context(which));
  }
  return file;
}

Status File::countCopied(uint64_t bytes) {
  copied_ += bytes;
  if (copied_ <= kMostCopied + kCopiedPerByte * content_.size()) return Status::ok();
  return badModel("its tables are shared too often");
}

Status File::countTensor(const schema::Tensor& table) {
  uint64_t bytes = table.name() ? table.name()->size() : 0;
  bytes += sizeof(int64_t) * (sizeOf(table.shape()) + sizeOf(table.shape_signature()));
  if (const auto* quantization = table.quantization()) {
    const uint64_t scale = sizeof(float) + sizeof(int64_t); // with its zero point
    bytes += scale * sizeOf(quantization->scale());
    bytes += sizeof(int64_t) * sizeOf(quantization->zero_point());
  }
  return countCopied(bytes);
}

Status File::readSubgraph(const schema::SubGraph& table) {
  CDL_TRY(countCopied((table.name() ? table.name()->size() : 0) +
                      sizeof(int) * (sizeOf(table.inputs()) + sizeOf(table.outputs()))));
  Subgraph subgraph;
  subgraph.name = printable(table.name(), "");
  for (size_t i = 0; i < sizeOf(table.tensors()); ++i) {
    const auto at = static_cast<flatbuffers::uoffset_t>(i);
    CDL_TRY(countTensor(*table.tensors()->Get(at)));
    const std::string name =
        printable(table.tensors()->Get(at)->name(), fmt::format("tensor_{}", i));
    CDL_ASSIGN(
        TensorInfo info,
        readTensor(*table.tensors()->Get(at), i).context(fmt::format("tensor {} ('{}')", i, name)));
    subgraph.tensors.push_back(std::move(info));
  }
  subgraph.inputs = copied(table.inputs());
  subgraph.outputs = copied(table.outputs());
  const size_t count = subgraph.tensors.size();
  CDL_TRY(checkIndices(subgraph.inputs, count, false, "input"));
  CDL_TRY(checkIndices(subgraph.outputs, count, false, "output"));
  std::vector<bool> isProduced(count);
  for (const int input : subgraph.inputs) isProduced[static_cast<size_t>(input)] = true;
  for (size_t i = 0; i < sizeOf(table.operators()); ++i)
    CDL_TRY(readOperator(*table.operators()->Get(static_cast<flatbuffers::uoffset_t>(i)), subgraph)
                .context(fmt::format("operator {}", i)));
  for (const OperatorInfo& op : subgraph.operators)
    for (const int output : op.outputs)
      if (output >= 0) isProduced[static_cast<size_t>(output)] = true;
  for (size_t i = 0; i < count; ++i) {
    TensorInfo& info = subgraph.tensors[i];
    // What has no element needs no buffer.
    if (!isProduced[i] && !info.content && !info.isVariable && info.elem != Elem::none &&
        std::ranges::count(info.dims, 0) > 0)
      info.content = Tensor{info.elem, info.dims, {}};
  }
  subgraphs_.push_back(std::move(subgraph));
  return Status::ok();
}

Status File::readOperator(const schema::Operator& table, Subgraph& subgraph) {
  const auto* codes = model().operator_codes();
  if (table.opcode_index() >= sizeOf(codes))
    return badModel("its code {} is none of {}", table.opcode_index(), sizeOf(codes));
  const schema::OperatorCode& code = *codes->Get(table.opcode_index());
  CDL_TRY(countCopied((code.custom_code() ? code.custom_code()->size() : 0) +
                      sizeof(int) * (sizeOf(table.inputs()) + sizeOf(table.outputs()))));
  OperatorInfo op{&table,         code.builtin_code(),    "",
                  code.version(), copied(table.inputs()), copied(table.outputs())};
  if (const int old = code.deprecated_builtin_code(); old > op.code)
    op.code = static_cast<schema::BuiltinOperator>(old);
  op.name = builtinName(op.code);
  if (op.code == schema::BuiltinOperator_CUSTOM) op.name = printable(code.custom_code(), "CUSTOM");
  const size_t count = subgraph.tensors.size();
  CDL_TRY(checkIndices(op.inputs, count, true, "input").context(op.name));
  CDL_TRY(checkIndices(op.outputs, count, true, "output").context(op.name));
  subgraph.operators.push_back(std::move(op));
  return Status::ok();
}

Result<TensorInfo> File::readTensor(const schema::Tensor& table, size_t index) {
  TensorInfo info;
  info.name = printable(table.name(), fmt::format("tensor_{}", index));
  info.elem = elemOf(table.type());
  info.isVariable = table.is_variable();
  CDL_TRY(readDims(table, info));
  if (info.elem == Elem::none) {
    const char* name = schema::EnumNameTensorType(table.type());
    info.refusal = *name ? fmt::format("its elements are {}", name)
                         : fmt::format("its elements have type {}", static_cast<int>(table.type()));
    return info;
  }
  if (table.quantization()) CDL_TRY(readQuantization(*table.quantization(), info));
  if (table.sparsity()) {
    info.refusal = "it is sparse";
    return info;
  }
  if (table.external_buffer() != 0) {
    info.refusal = "its elements are in another file";
    return info;
  }
  CDL_TRY(setContent(table, info));
  return info;
}

Result<Bytes> File::bufferOf(const schema::Tensor& table) const {
  const auto* buffers = model().buffers();
  if (table.buffer() >= sizeOf(buffers)) {
    if (table.buffer() == 0) return Bytes(); // none at all
    return badModel("its buffer {} is none of {}", table.buffer(), sizeOf(buffers));
  }
  const schema::Buffer& buffer = *buffers->Get(table.buffer());
  // 0 and 1 stand for "not behind the tables".
  if (buffer.offset() > 1) {
    if (buffer.offset() > content_.size() || buffer.size() > content_.size() - buffer.offset())
      return badModel("its {} bytes at {} leave the file of {}", buffer.size(), buffer.offset(),
                      content_.size());
    return content_.slice(buffer.offset(), buffer.size());
  }
  if (sizeOf(buffer.data()) == 0) return Bytes();
  const auto* first = reinterpret_cast<const std::byte*>(buffer.data()->data());
  return content_.slice(static_cast<uint64_t>(first - content_.data()), buffer.data()->size());
}

Result<Bytes> File::aligned(const Bytes& bytes) {
  Bytes& known = aligned_[{bytes.data(), bytes.size()}];
  if (known.size() != 0) return known;
  CDL_TRY(countCopied(bytes.size()));
  known = Bytes::copyOf(bytes.data(), bytes.size());
  return known;
}

Status File::setContent(const schema::Tensor& table, TensorInfo& info) {
  CDL_ASSIGN(Bytes bytes, bufferOf(table));
  if (bytes.size() == 0) return Status::ok();
  Tensor tensor{info.elem, info.dims, std::move(bytes)};
  const bool isFree = std::ranges::count(info.dims, -1) > 0;
  if (isFree) return badModel("a constant has a free dim");
  if (tensor.bytes.size() != tensor.sizeBytes())
    return badModel("its buffer has {} bytes, but {} needs {}", tensor.bytes.size(),
                    tensor.typeText(), tensor.sizeBytes());
  const uint64_t alignment = std::max(1, elemBits(tensor.elem) / 8);
  if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignment != 0) {
    CDL_ASSIGN(tensor.bytes, aligned(tensor.bytes));
  }
  CDL_TRY(checkBools(tensor));
  info.content = std::move(tensor);
  return Status::ok();
}

} // namespace candela::import::tflite
