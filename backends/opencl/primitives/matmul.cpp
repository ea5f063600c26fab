// MATMUL: tiles of 8 rows and 16 columns.
#include "../opencl.hpp"

const char* productTypes(uint8_t elem) {
  switch (elem) {
  case CDL_F32: return " -DA=float -DB=float -DSUM=float";
  case CDL_I8: return " -DA=char -DB=char -DSUM=uint";
  default: return " -DA=uchar -DB=char -DSUM=uint";
  }
}

cdl::Status OpenCl::matMul(const cdl::MatMul& op) {
  const cdl::Operand a = op.a(), b = op.b(), y = op.y();
  const cdl::Operand aZero = op.hasAZero() ? op.aZero() : cdl::Operand(),
                     bZero = op.hasBZero() ? op.bZero() : cdl::Operand();
  const char* types = productTypes(a.elem);
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
