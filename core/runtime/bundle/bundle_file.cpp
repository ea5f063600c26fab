#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/runtime/bundle/payloads.h"
#include "core/support/file.h"

// The file: a header, the manifest (protobuf), then payloads, each at a multiple of 64 so that it
// can be used where it is mapped. The header's hash covers the manifest; every payload's own hash
// stands in the manifest or in its image.
namespace candela::runtime::bundle {
namespace {

struct FileHeader {
  char magic[4];
  uint16_t major, minor;
  uint64_t manifestBytes, payloadOffset;
  uint8_t hash[32];
};
constexpr char kMagic[4] = {'C', 'D', 'L', 'B'};
constexpr uint16_t kMajor = 0, kMinor = 2;

void fill(proto::Partition& out, PayloadWriter& payloads, const BundlePartition& in) {
  out.set_backend(in.backend);
  out.set_backend_version(in.backendVersion);
  for (const auto& [key, value] : in.options) (*out.mutable_options())[key] = value;
  for (uint32_t c : in.constants) out.add_constants(c + 1);
  payloads.add(out.mutable_image(), in.image);
  payloads.add(out.mutable_executable(), in.executable);
  out.set_holding(static_cast<uint32_t>(in.holding));
  out.set_streamed_bytes(in.streamedBytes);
}

Result<BundlePartition> read(const proto::Partition& in, const Bytes& payloads) {
  BundlePartition partition;
  partition.backend = in.backend();
  partition.backendVersion = in.backend_version();
  partition.options.insert(in.options().begin(), in.options().end());
  for (uint32_t c : in.constants()) partition.constants.push_back(c - 1);
  CDL_ASSIGN(partition.image, take(payloads, in.image()));
  CDL_TRY(checkImageHash(partition.image));
  CDL_ASSIGN(partition.executable, take(payloads, in.executable()));
  if (in.holding() > static_cast<uint32_t>(Holding::nothing))
    return badModel("unknown holding {} of a partition", in.holding());
  partition.holding = static_cast<Holding>(in.holding());
  partition.streamedBytes = in.streamed_bytes();
  return partition;
}

} // namespace

void fill(proto::Manifest& out, PayloadWriter& payloads, const Bundle& in) {
  out.set_model(std::filesystem::path(in.model).filename().string()); // the same from every folder
  out.set_model_nodes(in.modelNodes);
  out.set_parameters(in.parameters);
  out.set_arena_bytes(in.arenaBytes);
  out.set_max_live_bytes(in.maxLiveBytes);
  out.set_local_bytes(in.localBytes);
  for (const BundleValue& value : in.values) {
    proto::Value* v = out.add_values();
    v->set_name(value.name);
    v->set_elem(static_cast<uint32_t>(value.elem));
    for (int64_t dim : value.dims) v->add_dims(dim);
    v->set_constant(value.constant + 1); // kNoConstant wraps to 0
  }
  for (uint32_t v : in.inputs) out.add_inputs(v);
  for (uint32_t v : in.outputs) out.add_outputs(v);
  for (const BundleConstant& constant : in.constants) {
    proto::Constant* c = out.add_constants();
    c->set_hash(constant.hash.data(), constant.hash.size());
    payloads.add(c->mutable_data(), constant.bytes);
  }
  for (const BundlePartition& partition : in.partitions)
    fill(*out.add_partitions(), payloads, partition);
  for (const BundleStep& step : in.steps) {
    proto::Step* s = out.add_steps();
    s->set_kind(static_cast<uint32_t>(step.kind));
    s->set_partition(step.partition);
    for (uint32_t v : step.inputs) s->add_inputs(v);
    for (uint32_t v : step.outputs) s->add_outputs(v);
  }
  for (const BundleState& state : in.states) {
    proto::State* s = out.add_states();
    s->set_input(state.input);
    s->set_output(state.output);
  }
  for (const NodePlacement& node : in.placement) {
    proto::Placement* p = out.add_placement();
    p->set_node(node.node);
    p->set_op(node.op);
    p->set_on(node.on);
    p->set_why(node.why);
    p->set_placement_class(static_cast<uint32_t>(node.cls));
    p->set_macs(node.macs);
    p->set_native_macs(node.nativeMacs);
    for (const uint64_t each :
         {node.products.count, node.products.rows, node.products.terms, node.products.columns})
      p->add_products(each);
    p->set_bytes_in(node.bytesIn);
    p->set_bytes_out(node.bytesOut);
    p->set_elements(node.elements);
    p->set_shape(node.shape);
  }
  if (in.flow) fillFlow(*out.mutable_flow(), payloads, *in.flow);
}

Result<Bundle> read(const proto::Manifest& in, const Bytes& payloads) {
  Bundle out;
  out.model = in.model();
  out.modelNodes = in.model_nodes();
  out.parameters = in.parameters();
  out.arenaBytes = in.arena_bytes();
  out.maxLiveBytes = in.max_live_bytes();
  out.localBytes = in.local_bytes();
  for (const proto::Value& v : in.values()) {
    if (!isValidElem(v.elem()))
      return badModel("value {} has unknown element type {}", v.name(), v.elem());
    out.values.push_back({v.name(), static_cast<Elem>(v.elem()),
                          Shape(v.dims().begin(), v.dims().end()), v.constant() - 1});
  }
  out.inputs.assign(in.inputs().begin(), in.inputs().end());
  out.outputs.assign(in.outputs().begin(), in.outputs().end());
  for (const proto::Constant& c : in.constants()) {
    BundleConstant constant;
    if (c.hash().size() != constant.hash.size())
      return badModel("a constant's hash has {} bytes", c.hash().size());
    std::memcpy(constant.hash.data(), c.hash().data(), constant.hash.size());
    CDL_ASSIGN(constant.bytes, take(payloads, c.data()));
    if (sha256(constant.bytes.data(), constant.bytes.size()) != constant.hash)
      return badModel("a constant of {} bytes does not have its hash {}", constant.bytes.size(),
                      hashText(constant.hash));
    out.constants.push_back(std::move(constant));
  }
  for (const proto::Partition& p : in.partitions()) {
    CDL_ASSIGN(BundlePartition partition, read(p, payloads));
    out.partitions.push_back(std::move(partition));
  }
  for (const proto::Step& s : in.steps()) {
    if (s.kind() > static_cast<uint32_t>(StepKind::copy))
      return badModel("unknown step kind {}", s.kind());
    out.steps.push_back({static_cast<StepKind>(s.kind()),
                         s.partition(),
                         {s.inputs().begin(), s.inputs().end()},
                         {s.outputs().begin(), s.outputs().end()}});
  }
  for (const proto::State& s : in.states()) out.states.push_back({s.input(), s.output()});
  for (const proto::Placement& p : in.placement()) {
    if (p.placement_class() > 2) return badModel("unknown placement class {}", p.placement_class());
    Products products;
    if (p.products_size() == 4)
      products = {p.products(0), p.products(1), p.products(2), p.products(3)};
    out.placement.push_back({p.node(), p.op(), p.on(), p.why(),
                             static_cast<NodePlacement::Class>(p.placement_class()), p.macs(),
                             p.native_macs(), products, p.bytes_in(), p.bytes_out(), p.elements(),
                             p.shape()});
  }
  if (in.has_flow()) {
    CDL_ASSIGN(out.flow, readFlow(in.flow(), payloads));
  }
  return out;
}

bool isBundle(const std::string& path) {
  return startOf(path, sizeof kMagic) == std::string_view(kMagic, sizeof kMagic);
}

Status saveBundle(const Bundle& bundle, const std::string& path) {
  proto::Manifest manifest;
  PayloadWriter payloads;
  fill(manifest, payloads, bundle);
  std::string text;
  bool isWritten;
  {
    google::protobuf::io::StringOutputStream stream(&text);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true); // equal bundles are equal files
    isWritten = manifest.SerializeToCodedStream(&coded) && !coded.HadError();
  }
  if (!isWritten)
    return failure(Code::unsupported, "{}: its manifest of more than 2 GiB cannot be written",
                   path);
  FileHeader header{};
  std::memcpy(header.magic, kMagic, 4);
  header.major = kMajor;
  header.minor = kMinor;
  header.manifestBytes = text.size();
  header.payloadOffset = align64(sizeof(header) + text.size());
  const Hash hash = sha256(text.data(), text.size());
  std::memcpy(header.hash, hash.data(), hash.size());
  const std::string gap(header.payloadOffset - sizeof(header) - text.size(), '\0');
  return writeFile(path, [&](std::FILE* file) {
    return std::fwrite(&header, sizeof(header), 1, file) == 1 &&
           (text.empty() || std::fwrite(text.data(), text.size(), 1, file) == 1) &&
           (gap.empty() || std::fwrite(gap.data(), gap.size(), 1, file) == 1) &&
           payloads.write(file);
  });
}

Result<Bundle> loadBundle(const std::string& path) {
  CDL_ASSIGN(const Bytes file, mapFile(path));
  return parseBundle(file, path);
}

Result<Bundle> parseBundle(const Bytes& file, const std::string& path) {
  FileHeader header{};
  if (file.size() < sizeof(header) || std::memcmp(file.data(), kMagic, 4) != 0)
    return badModel("{}: not a bundle", path);
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.major != kMajor || header.minor != kMinor)
    return failure(Code::incompatible, "{}: bundle version {}.{}, this program reads {}.{}", path,
                   header.major, header.minor, kMajor, kMinor);
  if (header.payloadOffset > file.size() || header.payloadOffset % 64 ||
      header.payloadOffset < sizeof(header) ||
      header.manifestBytes > header.payloadOffset - sizeof(header) ||
      header.manifestBytes > INT32_MAX)
    return badModel("{}: truncated bundle", path);
  const std::byte* text = file.data() + sizeof(header);
  const Hash hash = sha256(text, header.manifestBytes);
  if (std::memcmp(hash.data(), header.hash, hash.size()) != 0)
    return badModel("{}: damaged bundle", path);
  proto::Manifest manifest;
  if (!manifest.ParseFromArray(text, static_cast<int>(header.manifestBytes)))
    return badModel("{}: malformed manifest", path);
  const Bytes payloads = file.slice(header.payloadOffset, file.size() - header.payloadOffset);
  CDL_ASSIGN(Bundle bundle, read(manifest, payloads).context(path));
  CDL_TRY(verifyBundle(bundle).context(path));
  return bundle;
}

} // namespace candela::runtime::bundle
