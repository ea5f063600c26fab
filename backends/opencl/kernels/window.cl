// CONV2D and POOL2D. A: elements of x; B: of w; SUM: of y.
// LARGER, LOWEST: of a pool.
// p[]: 0 work-items, 1 C of y within a group, 2 of x within a group, 3 group, 4 H, 5 W, 6 kernel's height, 7 width,
// 8 OH, 9 OW, 10 strides, 12 dilations, 14 pads at the beginning, 16 accumulate or pool function, 17 count the padding,
// 18 x: byte offset, four strides; 23 w; 28 y; 33 zero point of x: byte offset, type (0: none); 35 of w: byte offset,
// type (0: none), stride; 38 tiles of rows, 39 of columns; 40 pads at the end.
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define VECTOR(type) GLUE(type, 16)

#ifdef B
#define ROWS 8
// `rows` channels of 16 neighbours along a row of y, each summed in the order of channel, height and width.
inline __attribute__((always_inline)) void convolve(constant const long* p, global uchar* yBase,
                                                    global const uchar* xBase, global const uchar* wBase,
                                                    global const uchar* xZeroBase, global const uchar* wZeroBase,
                                                    const int rows) {
  long id = get_global_id(0);
  if (id >= p[0]) return;
  const long ow = id % p[39] * 16, oh = id / p[39] % p[8];
  id = id / p[39] / p[8];
  const long first = id % p[38] * rows, group = id / p[38] % p[3], n = id / p[38] / p[3], o = group * p[1] + first;
  const int live = (int)min((long)rows, p[1] - first), cols = (int)min(16L, p[9] - ow);
  global const B* w[ROWS];
  SUM wZero[ROWS];
  for (int r = 0; r < rows; ++r) {
    const long at = o + min(r, live - 1);
    w[r] = (global const B*)(wBase + p[23]) + at * p[24];
    wZero[r] = p[36] ? (SUM)load(wZeroBase + p[35] + at * p[37] * bytesOf(p[36]), p[36]) : (SUM)0;
  }
  const SUM xZero = p[34] ? (SUM)load(xZeroBase + p[33], p[34]) : (SUM)0;

  VECTOR(SUM) sum[ROWS];
  for (int r = 0; r < rows; ++r) sum[r] = (VECTOR(SUM))(0);
  for (long c = 0; c < p[2]; ++c)
    for (long kh = 0; kh < p[6]; ++kh) {
      const long h = oh * p[10] + kh * p[12] - p[14];
      if (h < 0 || h >= p[4]) continue;
      global const A* line = (global const A*)(xBase + p[18]) + n * p[19] + (group * p[2] + c) * p[20] + h * p[21];
      for (long kw = 0; kw < p[7]; ++kw) {
        const long from = ow * p[11] + kw * p[13] - p[15], step = p[11];
        SUM x[16];
        if (from >= 0 && from + (cols - 1) * step < p[5] && cols == 16) {
          if (step == 1) for (int j = 0; j < 16; ++j) x[j] = (SUM)line[from + j] - xZero;
          else for (int j = 0; j < 16; ++j) x[j] = (SUM)line[from + j * step] - xZero;
        } else {
          for (int j = 0; j < 16; ++j) {
            const long at = from + j * step;
            x[j] = j < cols && at >= 0 && at < p[5] ? (SUM)line[at] - xZero : (SUM)0;
          }
        }
        const VECTOR(SUM) right = vload16(0, x);
        for (int r = 0; r < rows; ++r)
          sum[r] += ((SUM)w[r][c * p[25] + kh * p[26] + kw * p[27]] - wZero[r]) * right;
      }
    }
  for (int r = 0; r < live; ++r) {
    SUM line[16];
    vstore16(sum[r], 0, line);
    global SUM* y = (global SUM*)(yBase + p[28]) + n * p[29] + (o + r) * p[30] + oh * p[31] + ow;
    for (int j = 0; j < cols; ++j) y[j] = p[16] ? y[j] + line[j] : line[j];
  }
}

#define CONV(name, rows)                                                                                              \
  kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void name(                                                \
      constant const long* p, global uchar* y, global const uchar* x, global const uchar* w,                          \
      global const uchar* xZero, global const uchar* wZero) {                                                         \
    convolve(p, y, x, w, xZero, wZero, rows);                                                                         \
  }
CONV(conv, ROWS)
CONV(conv_depthwise, 1)

#else
// One element of y.
kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void pool(constant const long* p, global uchar* yBase,
                                                                     global const uchar* xBase) {
  long id = get_global_id(0);
  if (id >= p[0]) return;
  const long ow = id % p[9], oh = id / p[9] % p[8], c = id / p[9] / p[8] % p[1], n = id / p[9] / p[8] / p[1];
  global const A* x = (global const A*)(xBase + p[18]) + n * p[19] + c * p[20];
  SUM acc = p[16] == 0 ? LOWEST : (SUM)0;
  long count = 0;
  for (long kh = 0; kh < p[6]; ++kh)
    for (long kw = 0; kw < p[7]; ++kw) {
      const long h = oh * p[10] + kh * p[12] - p[14], w = ow * p[11] + kw * p[13] - p[15];
      // What lies behind the padding counts for nothing.
      if (p[17] && h < p[4] + p[40] && w < p[5] + p[41]) ++count;
      if (h < 0 || h >= p[4] || w < 0 || w >= p[5]) continue;
      const SUM value = (SUM)x[h * p[21] + w * p[22]];
      if (!p[17]) ++count;
      acc = p[16] == 1 ? acc + value : LARGER(acc, value);
    }
  global A* y = (global A*)(yBase + p[28]) + n * p[29] + c * p[30] + oh * p[31] + ow * p[32];
  *y = (A)(p[16] == 0 ? acc : count ? acc / (SUM)count : (SUM)0);
}
#endif
