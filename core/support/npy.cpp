#include <cstring>

#include "core/support/file.h"
#include "core/support/text/scan.h"

namespace candela {
namespace {

char npyLetter(Elem elem) {
  if (elem == Elem::bool_) return 'b';
  if (isFloat(elem)) return 'f';
  return isSigned(elem) ? 'i' : 'u';
}

/// How NumPy calls an element type: "<f4"; empty when it has none like it.
std::string npyType(Elem elem) {
  if (elem == Elem::bf16_ || isStorageOnly(elem)) return "";
  const int bytes = elemBits(elem) / 8;
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', npyLetter(elem), bytes);
}

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
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = 1; i < rank; ++i) strides[i] = strides[i - 1] * in.dims[i - 1];
  for (int64_t i = 0, count = in.count(); i < count; ++i) {
    int64_t from = 0, rest = i;
    for (size_t d = rank; d-- > 0; rest /= in.dims[d]) from += rest % in.dims[d] * strides[d];
    std::memcpy(out.bytes.mutableData() + i * size, in.bytes.data() + from * size, size);
  }
  return out;
}

} // namespace

Result<Tensor> readNpy(const std::string& path) {
  CDL_ASSIGN(const Bytes file, mapFile(path));
  CDL_ASSIGN(Tensor tensor, viewNpy(file, path));
  // Copied: a mapping would fault when someone shortens the file while a model runs.
  tensor.bytes = Bytes::copyOf(tensor.bytes.data(), tensor.bytes.size());
  return tensor;
}

Result<Tensor> viewNpy(const Bytes& file, const std::string& path) {
  const auto* data = reinterpret_cast<const unsigned char*>(file.data());
  if (file.size() < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return badModel("{}: not a .npy file", path);
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
  for (int id = 1; id < kElemCount; ++id)
    if (const Elem elem = static_cast<Elem>(id);
        descr.size() >= 5 && descr.substr(1, 3) == npyType(elem) && descr[4] == descr[0])
      tensor.elem = elem;
  if (tensor.elem == Elem::none)
    return badModel("{}: unsupported .npy type {}", path, descr.substr(0, 8));
  const std::string_view shape = field(header, "shape");
  const size_t close = shape.find(')');
  if (!shape.starts_with('(') || close == shape.npos)
    return badModel("{}: malformed .npy shape", path);
  for (std::string word : text::split(shape.substr(1, close - 1), ',')) {
    std::erase(word, ' ');
    if (word.empty()) continue;
    const auto dim = text::parseNumber<int64_t>(word);
    if (!dim || *dim < 0) return badModel("{}: malformed .npy shape", path);
    tensor.dims.push_back(*dim);
  }
  const auto count = elementCount(tensor.dims);
  const uint64_t available = file.size() - start - length;
  if (!count || elemBytes(tensor.elem, *count) > available)
    return badModel("{}: shape {} needs {} bytes but the file holds {}", path,
                    shapeText(tensor.dims), count ? elemBytes(tensor.elem, *count) : 0, available);
  tensor.bytes = file.slice(start + length, elemBytes(tensor.elem, *count));
  const uintptr_t alignment = std::max(1, elemBits(tensor.elem) / 8);
  if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignment != 0)
    tensor.bytes = Bytes::copyOf(tensor.bytes.data(), tensor.bytes.size());
  if (field(header, "fortran_order").substr(0, 4) == "True") return fromFortran(tensor);
  return tensor;
}

Status writeNpy(const std::string& path, const Tensor& tensor) {
  Elem stored = tensor.elem;
  uint64_t bytes = tensor.sizeBytes();
  Shape dims = tensor.dims;
  if (stored == Elem::bf16_) stored = Elem::u16_;
  if (isStorageOnly(stored)) {
    if (isPacked(stored)) dims = {static_cast<int64_t>(bytes)};
    stored = Elem::u8_;
  }
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", npyType(stored),
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
