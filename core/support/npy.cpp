#include <charconv>
#include <cstring>

#include "core/support/file.h"

namespace candela {
namespace {

struct NpyType {
  std::string_view text;
  Elem elem;
};
constexpr NpyType kTypes[] = {{"<f4", Elem::f32_}, {"<f2", Elem::f16_}, {"<f8", Elem::f64_}, {"|i1", Elem::i8_},
                              {"|u1", Elem::u8_},  {"<i2", Elem::i16_}, {"<u2", Elem::u16_}, {"<i4", Elem::i32_},
                              {"<u4", Elem::u32_}, {"<i8", Elem::i64_}, {"<u8", Elem::u64_}, {"|b1", Elem::bool_}};

/// The text after 'key': in the header's Python dict, or empty.
std::string_view field(std::string_view header, std::string_view key) {
  size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return {};
  at = header.find(':', at);
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + 1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

/// Element order of a Fortran array made row-major.
Result<Tensor> fromFortran(const Tensor& in) {
  CDL_ASSIGN(Tensor out, Tensor::zeros(in.elem, in.dims));
  const size_t rank = in.dims.size();
  const int size = elemBits(in.elem) / 8;
  std::vector<int64_t> index(rank, 0), strides(rank, 1);
  for (size_t i = 1; i < rank; ++i) strides[i] = strides[i - 1] * in.dims[i - 1];
  for (int64_t i = 0, count = in.count(); i < count; ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < rank; ++d) from += index[d] * strides[d];
    std::memcpy(out.bytes.mutableData() + i * size, in.bytes.data() + from * size, size);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < in.dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

} // namespace

Result<Tensor> readNpy(const std::string& path) {
  CDL_ASSIGN(Bytes file, mapFile(path));
  const auto* data = reinterpret_cast<const unsigned char*>(file.data());
  if (file.size() < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0) return badModel("{}: not a .npy file", path);
  const unsigned major = data[6];
  if (major < 1 || major > 3) return badModel("{}: .npy version {} is not 1, 2 or 3", path, major);
  const uint64_t start = major == 1 ? 10 : 12;
  if (file.size() < start) return badModel("{}: truncated .npy header", path);
  uint64_t length = data[8] | data[9] << 8;
  if (major > 1) length |= uint64_t(data[10]) << 16 | uint64_t(data[11]) << 24;
  if (file.size() - start < length) return badModel("{}: truncated .npy header", path);
  const std::string_view header(reinterpret_cast<const char*>(data) + start, length);

  Tensor tensor;
  const std::string_view descr = field(header, "descr");
  for (const NpyType& type : kTypes)
    if (descr.size() >= 5 && descr.substr(1, 3) == type.text && descr[4] == descr[0]) tensor.elem = type.elem;
  if (tensor.elem == Elem::none) return badModel("{}: unsupported .npy type {}", path, descr.substr(0, 8));
  std::string_view shape = field(header, "shape");
  if (shape.empty() || shape.front() != '(') return badModel("{}: malformed .npy shape", path);
  shape.remove_prefix(1);
  for (;;) {
    while (!shape.empty() && (shape.front() == ' ' || shape.front() == ',')) shape.remove_prefix(1);
    if (shape.empty()) return badModel("{}: malformed .npy shape", path);
    if (shape.front() == ')') break;
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), dim);
    if (error != std::errc() || dim < 0) return badModel("{}: malformed .npy shape", path);
    tensor.dims.push_back(dim);
    shape.remove_prefix(end - shape.data());
  }
  const auto count = elementCount(tensor.dims);
  const uint64_t available = file.size() - start - length;
  if (!count || elemBytes(tensor.elem, *count) > available)
    return badModel("{}: shape {} needs {} bytes but the file holds {}", path, shapeText(tensor.dims),
                    count ? elemBytes(tensor.elem, *count) : 0, available);
  // Copied: a mapping would fault when someone shortens the file while a model runs.
  tensor.bytes = Bytes::copyOf(data + start + length, elemBytes(tensor.elem, *count));
  if (field(header, "fortran_order").substr(0, 4) == "True") return fromFortran(tensor);
  return tensor;
}

Status writeNpy(const std::string& path, const Tensor& tensor) {
  Elem stored = tensor.elem;
  uint64_t bytes = tensor.sizeBytes();
  Shape dims = tensor.dims;
  if (stored == Elem::bf16_) stored = Elem::u16_;
  if (isStorageOnly(stored)) {
    if (elemBits(stored) == 4) dims = {static_cast<int64_t>(bytes)};
    stored = Elem::u8_;
  }
  std::string_view descr;
  for (const NpyType& type : kTypes)
    if (type.elem == stored) descr = type.text;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                   fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
  header.append((64 - (11 + header.size()) % 64) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(tensor.bytes.data()), bytes);
  return writeFile(path, file.data(), file.size());
}

} // namespace candela
