#pragma once

#include <optional>

#include "core/compiler/quantize/observer.h"

/// From what a value was to the range that its integers cover, and to their steps.
namespace candela::quantize {

enum class Calibrator : uint8_t {
  minmax,        ///< everything that was seen
  movingAverage, ///< of the runs' own ranges
  percentile,    ///< all but the outermost share
  entropy,       ///< the least loss of information (Kullback-Leibler) that costs no accuracy
  mse,           ///< the least square of the error
};
enum class Scheme : uint8_t {
  asymmetric,     ///< a zero point wherever it has to be
  symmetric,      ///< zero point 0, signed
  symmetricUint8, ///< zero point 0, without a sign where no value has one
  powerOfTwo,     ///< symmetric with steps that are powers of two
};

/// "minmax", "moving-average", ...; nullopt: there is none of that name.
std::optional<Calibrator> parseCalibrator(std::string_view name);
std::optional<Scheme> parseScheme(std::string_view name);
std::string_view calibratorName(Calibrator calibrator);
std::string_view schemeName(Scheme scheme);

struct Range {
  double lowest = 0, highest = 0;
};
/// real = scale * (stored - zero).
struct Quantization {
  Elem elem = Elem::u8_;
  float scale = 1;
  int64_t zero = 0;
  double lowest() const;
  double highest() const;
};

struct CalibrationOptions {
  Calibrator calibrator = Calibrator::minmax;
  Scheme scheme = Scheme::asymmetric;
  Elem elem = Elem::u8_;      ///< u8, i8 or i16; symmetric ones take the signed type
  double percentile = 99.999; ///< of the values that are within the range
};

/// The range that the calibrator chooses of what was seen. Of nothing: 0 to 0.
Range calibrate(const Observer& seen, const CalibrationOptions& options);
/// The steps that cover the range, 0 among them exactly. A range of 0 has steps of 1.
Quantization quantizationOf(const Range& range, Scheme scheme, Elem elem);
/// Both.
Quantization chooseQuantization(const Observer& seen, const CalibrationOptions& options);

/// The share of values beyond the range, by the histogram.
double saturation(const Observer& seen, const Quantization& quantization);
/// The mean square of what rounding and clamping change, by the histogram.
double expectedError(const Histogram& histogram, uint64_t zeros, const Quantization& quantization);

} // namespace candela::quantize
