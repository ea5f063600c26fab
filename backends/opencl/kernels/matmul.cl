// MATMUL: one work-item, ROWS rows of 16 columns of y[b] = a[b] . b[b]. A, B: elements of a and b; SUM: of y.
// p[]: 0 work-items, 1 M, 2 N, 3 K, 4 tiles of rows, 5 of columns, 6 accumulate; 7 a: byte offset, batch and row stride;
// 10 b; 13 y; 16 zero point of a: byte offset, type (0: none); 18 of b: byte offset, type (0: none), stride.
// Each element is summed in the order of k.
#define ROWS 8
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define VECTOR(type) GLUE(type, 16)
#define WIDEN(type) GLUE(convert_, VECTOR(type))

kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void matmul(
    constant const long* p, global uchar* yBase, global const uchar* aBase, global const uchar* bBase,
    global const uchar* aZeroBase, global const uchar* bZeroBase) {
  const long id = get_global_id(0);
  if (id >= p[0]) return;
  const long col = id % p[5] * 16, row = id / p[5] % p[4] * ROWS, batch = id / p[5] / p[4], depth = p[3];
  const int rows = (int)min((long)ROWS, p[1] - row), cols = (int)min(16L, p[2] - col);
  global const A* a[ROWS];
  for (int r = 0; r < ROWS; ++r)
    a[r] = (global const A*)(aBase + p[7]) + batch * p[8] + (row + min(r, rows - 1)) * p[9];
  global const B* b = (global const B*)(bBase + p[10]) + batch * p[11] + col;

  SUM aZero = 0, zeros[16];
  for (int j = 0; j < 16; ++j) zeros[j] = 0;
  if (p[17]) aZero = (SUM)load(aZeroBase + p[16], p[17]);
  for (int j = 0; p[19] && j < cols; ++j)
    zeros[j] = (SUM)load(bZeroBase + p[18] + (col + j) * p[20] * bytesOf(p[19]), p[19]);
  const VECTOR(SUM) bZero = vload16(0, zeros);

  VECTOR(SUM) sum[ROWS];
  for (int r = 0; r < ROWS; ++r) sum[r] = (VECTOR(SUM))(0);
  if (cols == 16) {
    for (long k = 0; k < depth; ++k) {
      const VECTOR(SUM) right = WIDEN(SUM)(vload16(0, b + k * p[12])) - bZero;
      for (int r = 0; r < ROWS; ++r) sum[r] += ((SUM)a[r][k] - aZero) * right;
    }
  } else {
    B part[16];
    for (int j = 0; j < 16; ++j) part[j] = 0;
    for (long k = 0; k < depth; ++k) {
      for (int j = 0; j < cols; ++j) part[j] = b[k * p[12] + j];
      const VECTOR(SUM) right = WIDEN(SUM)(vload16(0, part)) - bZero;
      for (int r = 0; r < ROWS; ++r) sum[r] += ((SUM)a[r][k] - aZero) * right;
    }
  }
  for (int r = 0; r < rows; ++r) {
    SUM line[16];
    vstore16(sum[r], 0, line);
    global SUM* y = (global SUM*)(yBase + p[13]) + batch * p[14] + (row + r) * p[15] + col;
    for (int j = 0; j < cols; ++j) y[j] = p[6] ? y[j] + line[j] : line[j];
  }
}
