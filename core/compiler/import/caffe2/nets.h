#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/support/tensor.h"

/// The files of one model: a predict net, the init net that fills its weights, and what is known of
/// its inputs.
namespace candela::import::caffe2 {

namespace proto {
class NetDef;
class OperatorDef;
} // namespace proto

/// real = scale * (stored - zero)
struct Quantization {
  float scale = 1;
  int32_t zero = 0;
};

/// What an operator of an init net makes.
struct Constant {
  Tensor tensor;
  std::optional<Quantization> quantization;
};

/// Of an input, from value_info.json.
struct InputType {
  Elem elem = Elem::f32_;
  Shape dims;
};

struct Nets {
  std::shared_ptr<const proto::NetDef> net;  ///< the predict net
  std::map<std::string, Constant> constants; ///< by blob
  std::map<std::string, InputType> inputs;   ///< by blob
  uint64_t repeatedBytes = 0;                ///< of constants that are one number again and again
};

/// Whether the content begins as a NetDef does: fields by their numbers and wire types, and an
/// operator with a type.
bool isNet(const Bytes& content);

/// The net of a content, with what its own fills make. A file whose name contains "predict" has its
/// init net beside it, by the same name with "init" in the place; value_info.json beside it,
/// {"data": [1, [1, 3, 224, 224]]}, has types (numbers of Caffe2's TensorProto) and shapes of
/// inputs. A content whose operators fill what its other operators read needs no other file: the
/// bytes of an init net with those of its predict net behind them are such.
/// Failures name the file: not_found, io, bad_model; unsupported where a fill has no form.
Result<Nets> openNets(const Bytes& content, const std::string& path);

/// FLOAT of Caffe2's TensorProto.DataType.
inline constexpr int64_t kFloatType = 1;
/// The element type of a number of it; none where we have none.
Elem elemOf(int64_t dataType);

class Arguments;
/// Y_scale and Y_zero_point. Throws a Refusal for numbers that are none.
Quantization quantizationOf(const Arguments& arguments);
/// Throws one where the zero point is no u8.
void needByte(const Quantization& quantization);

/// Whether an operator writes a constant that its arguments hold, whatever the net reads.
bool isFill(const proto::OperatorDef& op);
/// That constant. Failures do not name the operator: bad_model, unsupported, out_of_memory.
Result<Constant> fill(const proto::OperatorDef& op);

} // namespace candela::import::caffe2
