#ifndef CANDELA_CORE_REFERENCE_INTERP_MACHINE_H
#define CANDELA_CORE_REFERENCE_INTERP_MACHINE_H

#include <functional>

#include "core/program/program.h"
#include "core/reference/interp/scalar.h"

/// The interpreter's memory, and one instruction on it.
namespace candela::interp {

/// A view's elements, dense.
struct Values {
  Elem elem = Elem::none;
  std::vector<int64_t> dims;
  std::vector<Scalar> items;

  Values() = default;
  Values(Elem elem, std::vector<int64_t> dims);
  int64_t dim(size_t d) const { return dims[d]; }
  /// Elements by their index in 1 to 4 dims.
  Scalar& at(int64_t i) { return items[static_cast<size_t>(i)]; }
  Scalar& at(int64_t i, int64_t j) { return at(i * dims[1] + j); }
  Scalar& at(int64_t i, int64_t j, int64_t k) { return at((i * dims[1] + j) * dims[2] + k); }
  Scalar& at(int64_t i, int64_t j, int64_t k, int64_t l) { return at(((i * dims[1] + j) * dims[2] + k) * dims[3] + l); }
  const Scalar& at(int64_t i) const { return items[static_cast<size_t>(i)]; }
  const Scalar& at(int64_t i, int64_t j) const { return at(i * dims[1] + j); }
  const Scalar& at(int64_t i, int64_t j, int64_t k) const { return at((i * dims[1] + j) * dims[2] + k); }
  const Scalar& at(int64_t i, int64_t j, int64_t k, int64_t l) const {
    return at(((i * dims[1] + j) * dims[2] + k) * dims[3] + l);
  }
};

/// A view's elements by their logical dims, blocks rounded up; and back. Row-major ones stay as they are.
Values unblocked(Values physical, const program::View& view);
Values blocked(Values logical, const program::View& view);

/// Memory with a bit per byte that says whether anything wrote it.
class Memory {
public:
  /// TEMP buffers of one space share a block when `inPlaceArena` and they are placed; all others
  /// have one each.
  static Result<Memory> create(const program::Program& program, bool inPlaceArena);

  /// Fills a whole buffer. The sizes agree.
  void fill(uint32_t buffer, const Bytes& bytes);
  /// Where an element begins: block and byte.
  struct Place {
    uint32_t block;
    uint64_t byte;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  Place place(uint32_t buffer, Elem elem, int64_t element) const;
  /// Failure: a byte of it was never written.
  Result<uint64_t> load(uint32_t buffer, Elem elem, int64_t element) const;
  Status store(uint32_t buffer, Elem elem, int64_t element, uint64_t bits);
  /// The whole content. Failure: a byte was never written.
  Result<Bytes> content(uint32_t buffer) const;

private:
  struct Block {
    std::vector<uint8_t> data;
    std::vector<bool> written;
  };
  Status checkInside(uint32_t buffer, Elem elem, int64_t element) const;

  const program::Program* program_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<Place> where_; ///< of each buffer
};

/// What one instruction sees: its views, decoded, and where results go. Reading keeps the first
/// failure, so that the kinds read like their definitions.
class Call {
public:
  Call(const program::Program& program, const program::Instr& instr, const int64_t iv[CDL_MAX_LOOP_NESTING],
       Memory& memory)
      : instr(instr), program_(program), iv_(iv), memory_(memory) {}

  const program::Instr& instr;
  Values read(const program::View& view);
  Values input(size_t i) { return read(instr.inputs[i]); }
  Values logicalInput(size_t i) {
    checkHalo(instr.inputs[i]);
    return unblocked(input(i), instr.inputs[i]);
  }
  /// Fails when the border around a view of a buffer with a halo does not hold the fill.
  void checkHalo(const program::View& view);
  /// One element of a view, for the kinds that do not read all of it.
  Scalar readAt(const program::View& view, std::initializer_list<int64_t> index);
  /// Writes one element, already encoded. Elements that others of this instruction read are not
  /// written: finish() is.
  void writeAt(const program::View& view, std::initializer_list<int64_t> index, uint64_t bits);
  /// Writes all of output 0: values of the accumulator's type by logical dims, through the epilogue
  /// when there is one.
  void finish(const Values& values);
  /// Writes all of output 0, element type as in the view.
  void write(const Values& values);
  void fail(Status status) {
    if (status_) status_ = std::move(status);
  }
  bool failed() const { return !status_; }
  const Status& status() const { return status_; }
  /// Results lie apart from operands, but for elements that are read and written at the same index.
  void checkOverlaps();

private:
  int64_t elementOf(const program::View& view, const int64_t* index) const;
  /// Calls visit(dense index, element in the buffer) for every element.
  void forEach(const program::View& view, const std::function<void(size_t, int64_t)>& visit) const;
  bool sameElements(const program::View& a, const program::View& b) const;
  Values epilogue(const Values& values);

  const program::Program& program_;
  const int64_t* iv_;
  Memory& memory_;
  Status status_;
};

/// One value of an expr: `acc` and the views' elements at one index.
Scalar evaluate(const program::Expr& expr, const Scalar& acc, const std::function<Scalar(size_t view)>& view);

/// The type of an instruction's own result, before the epilogue; `otherwise` when the epilogue
/// never looks at it.
Elem accumulatorElem(const program::Instr& instr, Elem otherwise);

/// Run the instruction's kind; failures stay in the call.
void runPrimitive(Call& call);
void runComposite(Call& call);

} // namespace candela::interp

#endif
