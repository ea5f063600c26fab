// The second level: CONV2D and POOL2D, 16 neighbours along a row of y at a time.
#include "../opencl.hpp"

namespace {

/// Numbers 4 to 17 of window.cl: extents and the window.
void addWindow(Launch& launch, const cdl::Window& op, const cdl::Shape& x, const cdl::Shape& y,
               int64_t kernelHeight, int64_t kernelWidth) {
  launch.numbers.insert(launch.numbers.end(),
                        {x.dims[2], x.dims[3], kernelHeight, kernelWidth, y.dims[2], y.dims[3],
                         op.stride(0), op.stride(1), op.dilation(0), op.dilation(1), op.padBegin(0),
                         op.padBegin(1)});
}

const char* poolTypes(uint8_t elem) {
  switch (elem) {
  case CDL_F32: return " -DA=float -DSUM=float -DLOWEST=-INFINITY -DLARGER=maxFloat";
  case CDL_I8: return " -DA=char -DSUM=int -DLOWEST=-128 -DLARGER=max";
  default: return " -DA=uchar -DSUM=int -DLOWEST=0 -DLARGER=max";
  }
}

} // namespace

cdl::Status OpenCl::conv2d(const cdl::Conv2d& op) {
  cdl::Operand x = op.x(), w = op.w(), y = op.y();
  const cdl::Operand xZero = op.hasXZero() ? op.xZero() : cdl::Operand(),
                     wZero = op.hasWZero() ? op.wZero() : cdl::Operand();
  // One pixel of x for one of y: rows may be as long as the image, since all is dense.
  bool isPointwise = w.dims[2] == 1 && w.dims[3] == 1;
  for (int d = 0; d < 2; ++d)
    isPointwise = isPointwise && op.stride(d) == 1 && op.padBegin(d) == 0 && op.padEnd(d) == 0;
  if (isPointwise)
    for (cdl::Operand* image : {&x, &y}) image->dims[3] *= std::exchange(image->dims[2], 1);
  const int64_t group = op.group(), outputs = w.dims[0] / group;
  const bool isDepthwise = outputs == 1;
  const int64_t tileRows = isDepthwise ? 1 : (outputs + 7) / 8, tileCols = (y.dims[3] + 15) / 16;
  const int64_t items = y.dims[0] * group * tileRows * y.dims[2] * tileCols;
  const char* types = productTypes(x.elem);
  Launch launch{"window",     types, isDepthwise ? "conv_depthwise" : "conv", items, {},
                {&y, &x, &w}, {}};
  launch.numbers = {items, outputs, w.dims[1], group};
  addWindow(launch, op, x, y, w.dims[2], w.dims[3]);
  launch.numbers.insert(launch.numbers.end(), {op.accumulate(), 0});
  for (const cdl::Operand* operand : {&x, &w, &y}) launch.add(*operand);
  launch.addZero(xZero);
  launch.numbers.pop_back();
  launch.addZero(wZero);
  launch.numbers.insert(launch.numbers.end(), {tileRows, tileCols});
  return run(op, launch);
}

cdl::Status OpenCl::pool2d(const cdl::Pool2d& op) {
  const cdl::Operand x = op.x(), y = op.y();
  const char* types = poolTypes(x.elem);
  Launch launch{"window", types, "pool", y.elements(), {}, {&y, &x}, {}};
  launch.numbers = {launch.items, y.dims[1], 0, 1};
  addWindow(launch, op, x, y, op.kernel(0), op.kernel(1));
  launch.numbers.insert(launch.numbers.end(), {op.fn(), op.countIncludePad()});
  launch.add(x);
  launch.numbers.resize(28);
  launch.add(y);
  launch.numbers.resize(40);
  launch.numbers.insert(launch.numbers.end(), {op.padEnd(0), op.padEnd(1)});
  return run(op, launch);
}
