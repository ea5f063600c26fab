// What every program begins with. Elements are computed with in 32 bits: floats by their bits, integers and bools widened.
#pragma OPENCL FP_CONTRACT OFF

// Element types, as cdl_enums.h counts them.
#define F32 1
#define I8 5
#define U8 6
#define I32 9
#define BOOL 13

int bytesOf(long elem) { return elem == F32 || elem == I32 ? 4 : 1; }

int load(global const uchar* at, long elem) {
  return elem == F32 || elem == I32 ? *(global const int*)at : elem == I8 ? (int)*(global const char*)at : (int)*at;
}

void store(global uchar* at, long elem, int value) {
  if (elem == F32 || elem == I32)
    *(global int*)at = value;
  else
    *at = (uchar)value;
}

// The smaller and the larger; NaN propagates.
float minFloat(float a, float b) { return a < b || a != a ? a : b; }
float maxFloat(float a, float b) { return a > b || a != a ? a : b; }
