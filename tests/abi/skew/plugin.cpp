// A backend that uses all that the header it is built from has, and nothing that the host does not:
// y = a + b on i32, COPY EMULATED. SKEW_DOOR says which door it has.
#include <candela/backend.hpp>

namespace {

#if CDL_ABI_MINOR >= 4
uint64_t plusFour(uint64_t value) { return value + 4; }
#endif
#if CDL_ABI_MINOR >= 5
uint64_t plusFive(uint64_t value) { return value + 5; }
#endif

cdl::Status add(const cdl::Binary& op) {
  if (op.fn() != CDL_BINARY_ADD) return cdl::unsupported("only add");
  cdl::forEachRow(
      [](int64_t n, cdl::Row<int32_t> y, cdl::Row<const int32_t> a, cdl::Row<const int32_t> b) {
        for (int64_t i = 0; i < n; ++i)
          y[i] = static_cast<int32_t>(uint32_t(a[i]) + uint32_t(b[i]));
      },
      op.y<int32_t>(), op.a<const int32_t>(), op.b<const int32_t>());
  return cdl::ok();
}

// What both doors do: says over the host's services which of them it sees.
template <class Base> class Skew : public Base {
public:
  Skew() : Base("skew", "0.1.0") {
    this->requireHost(0, 2);
    this->claim(cdl::Profile::FP32);
    this->support(cdl::Kind::Binary, cdl::Support::EMULATED);
  }
  cdl::Status open(uint32_t) override {
    const cdl_host_t& host = this->host();
    uint64_t seen = host.log ? 1 : 0;
#if CDL_ABI_MINOR >= 3
    seen |= host.cache_get && host.cache_put ? 2 : 0;
#endif
#if CDL_ABI_MINOR >= 4
    if (host.later_4) seen |= host.later_4(host.context, 100) == 104 ? 4 : 1024;
#endif
#if CDL_ABI_MINOR >= 5
    if (host.later_5) seen |= host.later_5(host.context, 100) == 105 ? 8 : 1024;
#endif
    if (host.log) host.log(host.context, 1, ("services " + std::to_string(seen)).c_str());
    return cdl::ok();
  }
};

#if SKEW_DOOR == 1
class Backend : public Skew<cdl::PrimitiveBackend> {
public:
  cdl::Status binary(const cdl::Binary& op) override { return add(op); }
};
#else
class Interpreted : public cdl::Executable {
public:
  explicit Interpreted(const cdl_image_t* image) : image_(image) {}
  cdl::Status execute(const cdl::Addresses& buffers) override {
    return cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
      return add(cdl::Binary{cdl::Op(image_, i, loops, &buffers)});
    });
  }

private:
  const cdl_image_t* image_;
};

class Backend : public Skew<cdl::ProgramBackend> {
public:
  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    for (uint32_t i = 1; i < image->instrs.count; ++i)
      if (cdl_get_instr(image, i)->fn != CDL_BINARY_ADD)
        return cdl::refused(i, CDL_REASON_VENDOR, "only add");
    executable = std::make_unique<Interpreted>(image);
    return cdl::ok();
  }
};

#if CDL_ABI_MINOR >= 4
cdl_code_t (*compileOfTheLayer)(cdl_device_t*, const cdl_image_t*, const void* const*,
                                cdl_executable_t**, cdl_refusal_t*, cdl_error_t*);

// Fills what a longer refusal has, where the host's is as long.
cdl_code_t compile(cdl_device_t* device, const cdl_image_t* image, const void* const* constants,
                   cdl_executable_t** executable, cdl_refusal_t* refusal, cdl_error_t* error) {
  const cdl_code_t code = compileOfTheLayer(device, image, constants, executable, refusal, error);
  if (code == CDL_REFUSED && refusal && CDL_HAS(refusal, later_4)) refusal->later_4 = 4;
#if CDL_ABI_MINOR >= 5
  if (code == CDL_REFUSED && refusal && CDL_HAS(refusal, later_5)) refusal->later_5 = 5;
#endif
  return code;
}
#endif
#endif

// The tables of the layer with one more row, whose record is as long as this header's.
const cdl_capabilities_t* capabilities(cdl_device_t*) {
  static const cdl_capabilities_t table = [] {
    const cdl_capabilities_t& layer =
        *cdl::detail::Entry<Backend>::prototype().capabilities().build(0);
    static std::vector<cdl_row_t> rows(layer.rows, layer.rows + layer.row_count);
    static cdl_atom_t small{};
    small.subject = CDL_ATOM_ELEMENTS, small.relation = CDL_REL_LE, small.a = 64;
    cdl_row_t row{};
    row.kind = CDL_KIND_BINARY, row.fn = CDL_BINARY_ADD;
    row.elem_count = 3, row.elems[0] = row.elems[1] = row.elems[2] = CDL_I32;
    row.support = CDL_SUPPORT_NATIVE, row.operand_class = CDL_CLASS_BROADCAST,
    row.flags = CDL_ROW_DYNAMIC_LOOPS;
    row.first_atom = 0, row.atoms = 1;
    rows.insert(rows.begin(), row);
#if CDL_ABI_MINOR >= 4
    for (cdl_row_t& any : rows) any.later_4 = ~uint64_t(0);
    small.later_4 = ~uint64_t(0);
#endif
    cdl_capabilities_t longer = layer;
    longer.rows = rows.data(), longer.row_count = static_cast<uint32_t>(rows.size());
    longer.atoms = &small, longer.atom_count = 1, longer.atom_stride = sizeof small;
#if CDL_ABI_MINOR >= 4
    longer.later_4 = 44;
#endif
#if CDL_ABI_MINOR >= 5
    longer.later_5 = 55;
#endif
    return longer;
  }();
  return &table;
}

cdl_code_t query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = cdl::detail::Entry<Backend>::query(host, out, error);
  if (code != CDL_OK) return code;
  out->device_capabilities = capabilities;
#if CDL_ABI_MINOR >= 4
#if SKEW_DOOR == 2
  compileOfTheLayer = out->compile;
  out->compile = compile;
#endif
  if (CDL_HAS(out, later_4)) out->later_4 = plusFour;
#endif
#if CDL_ABI_MINOR >= 5
  if (CDL_HAS(out, later_5)) out->later_5 = plusFive;
#endif
  return CDL_OK;
}

} // namespace

extern "C" CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error);
cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  return query(host, out, error);
}

// The same plugin, had it not said that older hosts will do.
extern "C" CDL_EXPORT cdl_code_t skew_strict_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error);
cdl_code_t skew_strict_query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  struct Strict : Backend {
    Strict() { requireHost(CDL_ABI_MAJOR, CDL_ABI_MINOR); }
  };
  return cdl::detail::Entry<Strict>::query(host, out, error);
}

// The same, of another major version, from a vendor who compares nothing.
extern "C" CDL_EXPORT cdl_code_t skew_major_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                  cdl_error_t* error);
cdl_code_t skew_major_query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = query(host, out, error);
  if (code == CDL_OK) out->header.major = CDL_ABI_MAJOR + 1;
  return code;
}
