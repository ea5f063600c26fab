#include "core/compiler/quantize/data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/support/compare.h"
#include "core/support/file.h"

namespace candela::quantize {
namespace {

namespace fs = std::filesystem;
using Arrays = std::map<std::string, std::vector<Tensor>>;

uint64_t littleEndian(const std::byte* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return value;
}

/// The members of a .npz: a ZIP archive whose members are stored as they are, as numpy.savez makes
/// it. The directory stands at its end; sizes of 4 GB and more stand in extra fields.
class Archive {
public:
  Archive(Bytes file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<std::map<std::string, Tensor>> read() const {
    constexpr uint64_t kEndBytes = 22, kMostComment = 65535;
    uint64_t end = file_.size() < kEndBytes ? file_.size() : file_.size() - kEndBytes;
    const uint64_t least = end > kMostComment ? end - kMostComment : 0;
    while (end > least && (!fits(end, kEndBytes) || at(end, 4) != 0x06054b50)) --end;
    if (!fits(end, kEndBytes) || at(end, 4) != 0x06054b50)
      return badModel("{}: not a .npz file", path_);
    std::map<std::string, Tensor> members;
    uint64_t entry = at(end + 16, 4);
    for (uint64_t i = 0, count = at(end + 10, 2); i < count; ++i) {
      constexpr uint64_t kEntryBytes = 46;
      if (!fits(entry, kEntryBytes) || at(entry, 4) != 0x02014b50) return cut();
      const uint64_t nameBytes = at(entry + 28, 2), extraBytes = at(entry + 30, 2);
      if (!fits(entry + kEntryBytes, nameBytes + extraBytes)) return cut();
      std::string name(reinterpret_cast<const char*>(file_.data() + entry + kEntryBytes),
                       nameBytes);
      CDL_ASSIGN(const Bytes content, memberAt(entry, name));
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      CDL_ASSIGN(members[name], viewNpy(content, fmt::format("{}: '{}'", path_, name)));
      entry += kEntryBytes + nameBytes + extraBytes + at(entry + 32, 2);
    }
    return members;
  }

private:
  bool fits(uint64_t offset, uint64_t bytes) const {
    return offset <= file_.size() && bytes <= file_.size() - offset;
  }
  uint64_t at(uint64_t offset, int bytes) const {
    return littleEndian(file_.data() + offset, bytes);
  }
  Status cut() const { return badModel("{}: a .npz file that was cut off", path_); }

  Result<Bytes> memberAt(uint64_t entry, const std::string& name) const {
    if (at(entry + 10, 2) != 0)
      return failure(Code::unsupported,
                     "{}: '{}' is compressed: write it with numpy.savez, not savez_compressed",
                     path_, name);
    uint64_t size = at(entry + 24, 4), offset = at(entry + 42, 4);
    constexpr uint64_t kInExtra = 0xffffffff;
    uint64_t extra = entry + 46 + at(entry + 28, 2);
    const uint64_t extraEnd = extra + at(entry + 30, 2);
    while (extra + 4 <= extraEnd && (size == kInExtra || offset == kInExtra)) {
      const uint64_t id = at(extra, 2), bytes = at(extra + 2, 2);
      uint64_t field = extra + 4;
      if (!fits(field, bytes)) return cut();
      if (id == 1 && size == kInExtra && bytes >= 16) {
        size = at(field, 8);
        field += 16; // the compressed size, which is the same
      }
      if (id == 1 && offset == kInExtra && fits(field, 8)) offset = at(field, 8);
      extra += 4 + bytes;
    }
    constexpr uint64_t kHeaderBytes = 30;
    if (!fits(offset, kHeaderBytes) || at(offset, 4) != 0x04034b50) return cut();
    const uint64_t start = offset + kHeaderBytes + at(offset + 26, 2) + at(offset + 28, 2);
    if (!fits(start, size)) return cut();
    return file_.slice(start, size);
  }

  Bytes file_;
  std::string path_;
};

std::string portNames(const std::vector<Port>& ports) {
  std::string names;
  for (const Port& port : ports) names += (names.empty() ? "'" : ", '") + port.name + "'";
  return names.empty() ? "none" : names;
}

bool isPort(const std::vector<Port>& ports, const std::string& name) {
  return std::ranges::find(ports, name, &Port::name) != ports.end();
}

Status addFile(const std::string& path, const std::string& input, const std::vector<Port>& ports,
               Arrays& arrays) {
  CDL_ASSIGN(const Bytes file, mapFile(path));
  if (path.ends_with(".npz")) {
    CDL_ASSIGN(auto members, Archive(file, path).read());
    for (auto& [name, tensor] : members) {
      const std::string target = input.empty() ? name : input;
      if (!isPort(ports, target))
        return badArgument("{}: no input is named '{}'; there are {}", path, target,
                           portNames(ports));
      arrays[target].push_back(std::move(tensor));
    }
    return Status::ok();
  }
  std::string target = input.empty() ? fs::path(path).stem().string() : input;
  if (!isPort(ports, target) && input.empty() && ports.size() == 1) target = ports[0].name;
  if (!isPort(ports, target))
    return badArgument("{}: no input is named '{}'; there are {}: say INPUT=FILE", path, target,
                       portNames(ports));
  CDL_ASSIGN(Tensor tensor, viewNpy(file, path));
  arrays[target].push_back(std::move(tensor));
  return Status::ok();
}

Status addSource(const std::string& source, const std::vector<Port>& ports, Arrays& arrays) {
  std::error_code error;
  if (fs::is_directory(source, error)) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(source, error))
      if (const std::string extension = entry.path().extension().string();
          extension == ".npy" || extension == ".npz")
        files.push_back(entry.path().string());
    if (error) return failure(Code::io, "{}: {}", source, error.message());
    if (files.empty()) return badArgument("{}: no .npy and no .npz file in it", source);
    std::ranges::sort(files);
    for (const std::string& file : files) CDL_TRY(addFile(file, "", ports, arrays));
    return Status::ok();
  }
  const size_t equals = source.find('=');
  if (equals != source.npos && isPort(ports, source.substr(0, equals)) &&
      !fs::exists(source, error))
    return addFile(source.substr(equals + 1), source.substr(0, equals), ports, arrays);
  return addFile(source, "", ports, arrays);
}

/// What a run takes of arrays like this one; nothing where they do not fit the input.
std::optional<Shape> runShape(const Port& port, const Shape& array, int64_t& batch) {
  Shape shape;
  if (array.size() == port.dims.size() && !array.empty()) {
    if (port.dims[0] > 0) batch = port.dims[0];
    shape = array;
    shape[0] = batch;
  } else if (array.size() == port.dims.size() + 1) {
    shape.assign(array.begin() + 1, array.end());
    batch = 1;
  } else {
    return std::nullopt;
  }
  for (size_t i = 0; i < shape.size(); ++i)
    if (port.dims[i] >= 0 && shape[i] != port.dims[i]) return std::nullopt;
  return shape;
}

bool converts(Elem from, Elem to) {
  return from == to || to == Elem::f32_ || (to == Elem::f64_ && from != Elem::none);
}

} // namespace

Result<Samples> Samples::open(const std::vector<std::string>& sources,
                              const std::vector<Port>& ports, int64_t batch,
                              const std::map<std::string, Scaling>& scaling) {
  Samples data;
  data.ports_ = ports;
  data.scaling_ = scaling;
  data.batch_ = batch;
  for (const auto& [name, how] : scaling)
    if (!name.empty() && !isPort(ports, name))
      return badArgument("no input is named '{}'; there are {}", name, portNames(ports));
  for (const std::string& source : sources) CDL_TRY(addSource(source, ports, data.arrays_));
  data.samples_ = -1;
  std::string first;
  for (const Port& port : ports) {
    const auto arrays = data.arrays_.find(port.name);
    if (arrays == data.arrays_.end()) return badArgument("no data for input '{}'", port.name);
    int64_t samples = 0;
    for (const Tensor& array : arrays->second) {
      const auto shape = runShape(port, array.dims, data.batch_);
      if (!shape || !converts(array.elem, port.elem))
        return badArgument("input '{}' is {} but the data is {}, whose first axis counts samples",
                           port.name, typeText(port.elem, port.dims), array.typeText());
      const auto [known, isNew] = data.shapes_.emplace(port.name, *shape);
      if (!isNew && known->second != *shape)
        return badArgument("samples of input '{}' are {} and {}", port.name,
                           shapeText(known->second), shapeText(*shape));
      samples += array.dims[0];
    }
    if (data.samples_ < 0) {
      data.samples_ = samples;
      first = port.name;
    }
    if (samples != data.samples_)
      return badArgument("input '{}' has {} samples but '{}' has {}", port.name, samples, first,
                         data.samples_);
  }
  if (data.samples_ <= 0) return badArgument("the data has no sample");
  if (data.samples_ < data.batch_)
    return badArgument("the data has {} samples but the model takes {} at once", data.samples_,
                       data.batch_);
  return data;
}

Result<Tensor> Samples::tensorOf(const Port& port, int64_t first) const {
  CDL_ASSIGN(Tensor out, Tensor::zeros(port.elem, shapes_.at(port.name)));
  Scaling scaling;
  for (const std::string& key : {std::string(), port.name})
    if (const auto at = scaling_.find(key); at != scaling_.end()) scaling = at->second;
  const int64_t size = out.count() / batch_;
  for (int64_t done = 0; done < batch_; ++done) {
    int64_t sample = first + done;
    const std::vector<Tensor>& arrays = arrays_.at(port.name);
    size_t which = 0;
    for (; sample >= arrays[which].dims[0]; ++which) sample -= arrays[which].dims[0];
    const Tensor& array = arrays[which];
    const uint64_t bytes = elemBytes(array.elem, static_cast<uint64_t>(size));
    if (array.elem == port.elem && scaling.factor == 1 && scaling.offset == 0) {
      std::memcpy(out.bytes.mutableData() + static_cast<uint64_t>(done) * bytes,
                  array.bytes.data() + static_cast<uint64_t>(sample) * bytes, bytes);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) {
      const double real = elementAsReal(array, sample * size + i) * scaling.factor + scaling.offset;
      if (port.elem == Elem::f64_)
        out.mutableAs<double>()[done * size + i] = real;
      else
        out.mutableAs<float>()[done * size + i] = static_cast<float>(real);
    }
  }
  return out;
}

Result<std::vector<Tensor>> Samples::run(int64_t index) const {
  std::vector<Tensor> tensors;
  for (const Port& port : ports_) {
    CDL_ASSIGN(Tensor tensor, tensorOf(port, index * batch_));
    if (tensor.elem == Elem::f32_)
      for (int64_t i = 0; i < tensor.count(); ++i)
        if (!std::isfinite(tensor.as<float>()[i]))
          return badArgument("sample {} of input '{}' has a value that is {}",
                             index * batch_ + i / std::max<int64_t>(1, tensor.count() / batch_),
                             port.name, tensor.as<float>()[i]);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

} // namespace candela::quantize
