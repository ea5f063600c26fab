// A device that multiplies by constants in a layout of its own: panels of as many columns as the
// option `columns` says, one behind the other, each row by row, the last one filled up with zeros.
#include "backends/template/template.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

class Packed : public Template {
public:
  Packed() {
    option("columns", "columns of a panel", "int", "8");
    option("refuses", "rows from which on a constant is not packed; 0: none", "int", "0");
    option("fails", "what packing does instead of a panel",
           "nothing|lost|throw|empty|narrow|unsteady|deaf", "nothing");
    const uint16_t panels = opaqueLayout("panels", 3);
    native(cdl::Kind::MatMul, 0, {CDL_F32, CDL_F32, CDL_F32}, {0, panels, 0});
  }

  cdl::Status packConstant(const std::string& layout, const cdl::Operand& constant,
                           const cdl::Writer& to) override {
    if (layout != "panels") return cdl::unsupported("no layout '" + layout + "'");
    if (constant.dims[0] != 1 && constant.strides[0] != 0)
      return cdl::unsupported("panels are of single matrices");
    if (number("refuses") && constant.dims[1] >= number("refuses"))
      return cdl::unsupported(cdl::text(constant.dims[1], " rows are too many"));
    if (fails("lost")) return cdl::error(CDL_DEVICE_LOST, "the device went while it packed");
    if (fails("throw")) throw std::runtime_error("thrown while it packed");
    if (fails("empty")) return cdl::ok();
    const auto b = constant.as<const float>()[0];
    std::vector<float> panel(static_cast<size_t>(b.dim(0) * number("columns")));
    for (int64_t first = 0; first < b.dim(1); first += number("columns")) {
      std::fill(panel.begin(), panel.end(), 0.0f);
      const int64_t width = std::min(number("columns") - fails("narrow"), b.dim(1) - first);
      for (int64_t k : b.range(0))
        for (int64_t j = 0; j < width; ++j)
          panel[static_cast<size_t>(k * number("columns") + j)] = b(k, first + j);
      const cdl::Status status = to.write(panel.data(), panel.size() * sizeof(float));
      if (!status.isOk() && !fails("deaf")) return status;
    }
    const int count = ++packings_;
    return fails("unsteady") ? to.write(&count, sizeof count) : cdl::ok();
  }

  cdl::Status matMul(const cdl::MatMul& op) override {
    if (std::string(op.layoutName(op.b())) != "panels") return Template::matMul(op);
    const auto a = op.a<const float>();
    const auto y = op.y<float>();
    const auto* panels = static_cast<const float*>(op.b().data);
    const int64_t k = a.dim(2), columns = number("columns");
    for (int64_t batch : y.range(0))
      for (int64_t i : y.range(1))
        for (int64_t j : y.range(2)) {
          const float* column = panels + j / columns * columns * k + j % columns;
          float sum = op.accumulate() ? y(batch, i, j) : 0;
          for (int64_t p = 0; p < k; ++p) sum += a(batch, i, p) * column[p * columns];
          y(batch, i, j) = sum;
        }
    return cdl::ok();
  }

private:
  int64_t number(const char* name) const {
    return std::strtoll(options().get(name).c_str(), nullptr, 10);
  }
  bool fails(const char* how) const { return options().get("fails") == how; }

  std::atomic<int> packings_ = 0;
};
CDL_BACKEND(Packed)
