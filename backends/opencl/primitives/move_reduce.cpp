// GATHER and SCATTER along the middle of [O,N,I], and REDUCE along the middle of [O,R,I].
#include "../opencl.hpp"

namespace {

Launch moveOf(const char* kernel, int64_t items, const cdl::Op& op, const cdl::Operand& moved,
              const cdl::Operand& indices, const cdl::Operand& y, const cdl::Operand& whole) {
  Launch launch{"move", "", kernel, items, {}, {&y, &moved, &indices}, {}};
  launch.numbers = {items,         y.dims[0], indices.dims[0], y.dims[2],
                    whole.dims[1], op.fn(),   y.elem,          indices.elem};
  launch.add(moved);
  launch.numbers.resize(12);
  launch.add(indices);
  launch.numbers.resize(16);
  launch.add(y);
  return launch;
}

} // namespace

cdl::Status OpenCl::gather(const cdl::Gather& op) {
  const cdl::Operand x = op.x(), indices = op.indices(), y = op.y();
  if (x.dims[1] == 0 && op.fn() == CDL_GATHER_CLAMP && y.elements() > 0)
    return cdl::error(CDL_BAD_MODEL, "clamps an index into a dim of 0");
  return run(op, moveOf("gather", y.elements(), op, x, indices, y, x));
}

cdl::Status OpenCl::scatter(const cdl::Scatter& op) {
  const cdl::Operand updates = op.updates(), indices = op.indices(), y = op.y();
  return run(op, moveOf("scatter", y.dims[0] * y.dims[2], op, updates, indices, y, y));
}

cdl::Status OpenCl::reduce(const cdl::Reduce& op) {
  const cdl::Operand x = op.x(), y = op.y();
  Launch launch{"reduce", "", "reduce", y.elements(), {}, {&y, &x}, {}};
  launch.numbers = {launch.items, x.dims[1], x.dims[2], op.fn(), y.elem};
  launch.add(x);
  launch.add(y);
  return run(op, launch);
}
