// A backend with ops of the domain com.acme, behind either interface (ACME_DOOR). Every other op is
// EMULATED, or the host's.
//
//   Blend   y = gain * x * table (+ bias), then max(y, 0) in mode "relu", which no row takes. Has
//           another form.
//   Halves  the upper and the lower half of x along dim 0. Has none.
//   Tell    is never claimed: the refusal says all that came with the node.
//
// The option `fault` makes its answers wrong in the way that it names.
#include <candela/backend.hpp>

namespace {

constexpr uint16_t kBlend = 7, kHalves = 8;
constexpr uint16_t kGain = CDL_CUSTOM_ATTR_FIRST, kRelu = kGain + 1;

std::string dimsText(const cdl_custom_value_t& value) {
  std::string out = "[";
  for (int d = 0; d < value.rank; ++d) out += cdl::text(d ? "," : "", value.dims[d]);
  return out + "]";
}

/// Everything that a node brings.
std::string told(const cdl_custom_node_t& node) {
  const auto content = [](const cdl_custom_value_t& value) {
    std::string out = value.elem ? cdl::elemName(value.elem) + dimsText(value) : "absent";
    if (value.data) out += cdl::text("=", static_cast<const float*>(value.data)[0], "..");
    return out;
  };
  std::string out = cdl::text("version ", node.version, ", ", node.output_count, " outputs");
  for (uint32_t i = 0; i < node.input_count; ++i) out += "; input " + content(node.inputs[i]);
  for (uint32_t i = 0; i < node.attr_count; ++i) {
    const cdl_custom_attr_t& attr = node.attrs[i];
    out += cdl::text("; ", attr.name, attr.is_list ? " [" : " ");
    for (uint32_t k = 0; k < attr.count; ++k) {
      out += k ? "," : "";
      if (attr.type == CDL_CUSTOM_INTS) out += cdl::text(attr.ints[k]);
      if (attr.type == CDL_CUSTOM_FLOATS) out += cdl::text(attr.floats[k]);
      if (attr.type == CDL_CUSTOM_STRINGS) out += cdl::text("'", attr.strings[k], "'");
      if (attr.type == CDL_CUSTOM_TENSOR) out += content(*attr.tensor);
    }
    out += attr.is_list ? "]" : "";
  }
  return out;
}

cdl::Status compute(const cdl::Custom& op) {
  const auto x = op.input(0).as<const float>();
  if (op.fn() == kHalves) {
    const auto upper = op.output(0).as<float>(), lower = op.output(1).as<float>();
    const int64_t half = upper.elements();
    for (int64_t i = 0; i < half; ++i)
      upper.data()[i] = x.data()[i], lower.data()[i] = x.data()[half + i];
    return cdl::ok();
  }
  const bool hasBias = op.inputs() == 3;
  // the attribute comes behind the inputs
  const auto table = op.input(op.inputs() - 1).as<const float>();
  const auto y = op.output().as<float>();
  const auto gain = static_cast<float>(op.floatAttr(kGain, 1));
  for (int64_t i = 0; i < y.elements(); ++i) {
    y.data()[i] = gain * x.data()[i] * table.data()[i % table.elements()];
    if (hasBias) y.data()[i] += op.input(1).as<const float>().data()[i % table.elements()];
  }
  return cdl::ok();
}

/// What both doors share: claims.
template <class Base> class Acme : public Base, public cdl::CustomOps {
public:
  Acme() : Base("acme", "1.2.0") {
    this->claim(cdl::Profile::FP32);
    this->option("fault", "what to answer wrongly", "string", "");
    const uint8_t f32 = CDL_F32;
    this->native(cdl::Kind::Custom, kBlend, {f32, f32, f32}, {0, 0, 0}, {cdl::attr(kRelu) == 0},
                 CDL_CLASS_DENSE);
    this->native(cdl::Kind::Custom, kBlend, {f32, f32, f32, f32}, {0, 0, 0, 0},
                 {cdl::attr(kRelu) == 0}, CDL_CLASS_DENSE);
    this->native(cdl::Kind::Custom, kHalves, {f32, f32, f32});
  }

  cdl::Status claimNode(const cdl::CustomNode& node, cdl::CustomClaim& claim) override {
    if (node.is("com.acme", "Halves")) return claimHalves(node, claim);
    if (node.is("com.acme", "Tell")) return cdl::unsupported(told(node.record()));
    if (!node.is("com.acme", "Blend")) return cdl::unsupported("has no op of that name");
    const cdl_custom_value_t& x = node.input(0);
    if (x.elem != CDL_F32)
      return cdl::unsupported(cdl::text("x is ", cdl::elemName(x.elem), ", only f32 is blended"));
    const std::string mode = node.stringAttr("mode", "plain");
    if (mode != "plain" && mode != "relu")
      return bad("mode '" + mode + "' is neither plain nor relu");
    const cdl_custom_attr_t* table = node.find("table");
    if (!table || table->type != CDL_CUSTOM_TENSOR) return bad("no tensor 'table'");
    if (x.rank == 0 || table->tensor->rank != 1 || table->tensor->dims[0] != x.dims[x.rank - 1])
      return bad("x is " + dimsText(x) + " but the table " + dimsText(*table->tensor));
    claim.fn(kBlend);
    claim.attr(kGain, node.floatAttr("gain", 1));
    claim.attr(kRelu, int64_t{mode == "relu"});
    claim.output(0, x);
    return cdl::ok();
  }

  std::string decompose(const cdl::CustomNode& node) override {
    if (!node.is("com.acme", "Blend")) return {};
    const std::string fault = this->options().get("fault");
    if (fault == "parse") return "graph @blend(%x: f32[2]) -> (%y: f32[2]) { %y = blend %x }";
    if (fault == "endless") return std::string(size_t(1) << 25, ' ');
    const std::string x = "f32" + dimsText(node.input(0)),
                      row = "f32" + dimsText(*node.find("table")->tensor);
    std::string steps =
        "  %v0 = constant splat(" + std::to_string(node.floatAttr("gain", 1)) + ") : f32[1]\n";
    std::string last = "%x";
    int made = 0;
    const auto step = [&](const std::string& op, const std::string& operand) {
      const std::string result = cdl::text("%v", ++made);
      steps += "  " + result + " = " + op + " " + last + operand + " : " + x + "\n";
      last = result;
    };
    step("mul", ", %v0");
    step("mul", ", %table");
    if (node.has(1)) step("add", ", %bias");
    if (node.stringAttr("mode", "plain") == "relu") step("relu", "");
    if (fault == "type") last = "%table: " + row; // not what was claimed
    return "graph @blend(%x: " + x + (node.has(1) ? ", %bias: " + row : "") + ", %table: " + row +
           ") -> (" + last + (fault == "type" ? "" : ": " + x) + ") {\n" + steps + "}\n";
  }

private:
  cdl::Status claimHalves(const cdl::CustomNode& node, cdl::CustomClaim& claim) {
    const cdl_custom_value_t& x = node.input(0);
    if (x.rank == 0 || x.dims[0] % 2) return bad(dimsText(x) + " has no halves");
    std::vector<int64_t> dims(x.dims, x.dims + x.rank);
    dims[0] /= 2;
    claim.fn(kHalves);
    for (uint32_t i = 0; i < node.outputs(); ++i) claim.output(i, x.elem, dims);
    return cdl::ok();
  }
};

#if ACME_DOOR == 1
class Backend : public Acme<cdl::PrimitiveBackend> {
public:
  cdl::Status custom(const cdl::Custom& op) override { return compute(op); }
};
#else
class Interpreted : public cdl::Executable {
public:
  explicit Interpreted(const cdl_image_t* image) : image_(image) {}
  cdl::Status execute(const cdl::Addresses& buffers) override {
    return cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
      return compute(cdl::Custom{cdl::Op(image_, i, loops, &buffers)});
    });
  }

private:
  const cdl_image_t* image_;
};

class Backend : public Acme<cdl::ProgramBackend> {
public:
  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    for (uint32_t i = 1; i < image->instrs.count; ++i)
      if (cdl_get_instr(image, i)->kind != CDL_KIND_CUSTOM)
        return cdl::refused(i, CDL_REASON_VENDOR, "only custom ops");
    executable = std::make_unique<Interpreted>(image);
    return cdl::ok();
  }
};
#endif

cdl_code_t (*honest)(cdl_device_t*, const cdl_custom_node_t*, cdl_custom_claim_t*, cdl_error_t*);

// The claim, and then what the option says is wrong with it.
cdl_code_t faulty(cdl_device_t* device, const cdl_custom_node_t* node, cdl_custom_claim_t* claim,
                  cdl_error_t* error) {
  const std::string fault = reinterpret_cast<cdl::Backend*>(device)->options().get("fault");
  cdl_custom_value_t& first = claim->outputs[0];
  const cdl_code_t code = honest(device, node, claim, error);
  if (fault == "rank") first.rank = 200;
  if (fault == "dim") first.dims[0] = -3;
  if (fault == "shape") first.dims[0] = first.dims[1] = INT64_MAX / 2;
  if (fault == "elem") first.elem = 99;
  if (fault == "null") claim->outputs = nullptr, first = {};
  if (fault == "id") claim->attrs[0].id = CDL_ATTR_AXIS;
  if (fault == "twice") claim->attrs[1].id = claim->attrs[0].id;
  if (fault == "kind") claim->attrs[0].type = 9;
  if (fault == "values") claim->attrs[0].count = 200;
  if (fault == "count") claim->attr_count = 0xffff;
  if (fault != "text") return code;
  std::memset(error->text, 'x', error->capacity); // without an end
  return 77;
}

} // namespace

extern "C" CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error);
cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = cdl::detail::Entry<Backend>::query(host, out, error);
  if (code == CDL_OK && out->custom_op) {
    honest = out->custom_op;
    out->custom_op = faulty;
  }
  return code;
}
