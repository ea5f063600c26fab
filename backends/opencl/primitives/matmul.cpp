// MATMUL: tiles of 8 rows and 16 columns.
#include "../opencl.hpp"

cdl::Status OpenCl::matMul(const cdl::MatMul& op) {
  const cdl::Operand a = op.a(), b = op.b(), y = op.y();
  const cdl::Operand aZero = op.hasAZero() ? op.aZero() : cdl::Operand(),
                     bZero = op.hasBZero() ? op.bZero() : cdl::Operand();
  const char* types = a.elem == CDL_F32  ? " -DA=float -DB=float -DSUM=float"
                      : a.elem == CDL_I8 ? " -DA=char -DB=char -DSUM=uint" // unsigned: sums wrap
                                         : " -DA=uchar -DB=char -DSUM=uint";
  const int64_t tileRows = (op.m() + 7) / 8, tileCols = (op.n() + 15) / 16,
                items = y.dims[0] * tileRows * tileCols;
  Launch launch{"matmul", types, "matmul", items, {}, {&y, &a, &b}, {}};
  launch.numbers = {items, op.m(), op.n(), op.k(), tileRows, tileCols, op.accumulate()};
  for (const cdl::Operand* operand : {&a, &b, &y}) {
    launch.add(*operand);
    launch.numbers.pop_back(); // rows are contiguous
  }
  launch.addZero(aZero);
  launch.numbers.pop_back();
  launch.addZero(bZero);
  return run(op, launch);
}
