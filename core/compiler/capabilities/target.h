#pragma once

#include "core/support/tensor.h"

/// What a backend declares, as data, and the evaluator that answers "supported?" from it. No vendor
/// code runs here.
namespace candela::capabilities {

enum class Support : uint8_t {
  none = CDL_SUPPORT_NONE,
  emulated = CDL_SUPPORT_EMULATED,
  native = CDL_SUPPORT_NATIVE
};
enum class OperandClass : uint8_t { dense = 1, broadcast = 2, rowStrided = 3, affine = 4 };

/// The class of a view: dims and strides in elements.
OperandClass classify(std::span<const int64_t> dims, std::span<const int64_t> strides);

/// One operand or result of a question.
struct OperandDesc {
  Elem elem = Elem::none;
  Shape dims;
  OperandClass cls = OperandClass::dense;
  bool isConstant = false;
  cdl_layout_t layout{};    ///< count 0: row-major, if it is not opaque; its name is not looked at
  std::string layoutName{}; ///< of an opaque one
  /// Of the second operand of MATMUL: its class with the last two dims exchanged.
  OperandClass byColumns = OperandClass::affine;
};
/// Sets the classes of operand `index` of an instruction, whose dims are known. MATMUL repeats a
/// batch by stride 0 in every class.
void classifyInput(uint16_t kind, size_t index, std::span<const int64_t> strides,
                   OperandDesc& operand);
/// Opaque ones are the same by their records' names alone: those of one table.
bool sameLayout(const cdl_layout_t& a, const cdl_layout_t& b);

/// "Can you do this instruction?" Operands first, then results. attrs: (CDL_ATTR_*, values);
/// defaults are filled in by the evaluator from spec/primitives.toml where the question leaves them
/// out.
struct InstrDesc {
  uint16_t kind = 0, fn = 0;
  std::vector<OperandDesc> operands;
  std::vector<std::pair<uint16_t, std::vector<int64_t>>> attrs;
  uint64_t stepKinds = 0; ///< mask of 1 << kind of the steps of its expr; 0: none
  /// of the steps that compute operand 0, which is then described as if it lay in memory
  uint64_t prologueKinds = 0;
};

/// Whether a row takes these types, operands first. What it would give with an expression is no
/// promise of the plain instruction.
bool takesElems(const cdl_row_t& row, std::span<const uint8_t> elems, bool hasExpr);

struct Answer {
  Support support = Support::none;
  uint16_t reason = CDL_REASON_NONE; ///< CDL_REASON_* when none: of the row that came closest
  std::string detail;                ///< "kernel x stride 33 > 32 (row 7)"
  int row = -1;
};

/// A capability table, copied out of a plugin (or soft's own). Immutable, shared by threads.
class Target {
public:
  /// Checks the table: ids, counts, atoms, profiles (BASE and one more), required rows of claimed
  /// profiles present. `isHost`: the built-in soft executor, whose every row counts as host work.
  static Result<Target> fromCapabilities(std::string name, const cdl_capabilities_t& capabilities,
                                         bool isHost);

  const std::string& name() const { return name_; }
  bool isHost() const { return isHost_; }
  bool claims(unsigned profile) const { return profiles_ >> profile & 1; }
  uint32_t alignment() const { return alignment_; }
  uint32_t engines() const { return engines_; }

  /// The best row's answer: native before emulated before none.
  Answer query(const InstrDesc& desc) const;
  /// Without the emulated rows: what a backend that compiles whole programs (the program API) is
  /// asked for, since the host cannot step in between.
  Target nativeOnly() const;
  /// True when some row has this kind, whatever the function and the types.
  bool hasKind(uint16_t kind) const;

  struct Row {
    cdl_row_t row;
    std::vector<cdl_atom_t> atoms;
  };
  const std::vector<Row>& rows() const { return rows_; }
  /// What rows refer to; [0] is row-major. The name of an opaque one is its index.
  const std::vector<cdl_layout_t>& layouts() const { return layouts_; }
  /// Of an opaque layout, as pack_constant knows it; "" where an older table has none.
  const std::string& layoutName(uint32_t index) const { return layoutNames_[index]; }
  struct SpaceInfo {
    std::string name;
    cdl_space_t space;
  };
  const std::vector<SpaceInfo>& spaces() const { return spaces_; }
  /// The one that is for constants alone; null: they lie in the default space.
  const SpaceInfo* constantSpace() const;
  /// By what tiles are chosen, as declared: 0 stands for a default. nullopt: nothing is declared.
  const std::optional<cdl_tiling_t>& tiling() const { return tiling_; }

private:
  Status read(const cdl_capabilities_t& table);
  Status readLayouts(const cdl_capabilities_t& table);
  Status readSpaces(const cdl_capabilities_t& table);
  Status readTiling(const cdl_tiling_t& tiling);

  std::string name_;
  bool isHost_ = false;
  uint32_t profiles_ = 0, alignment_ = 64, engines_ = 1;
  std::vector<Row> rows_;
  std::vector<cdl_layout_t> layouts_;
  std::vector<std::string> layoutNames_; ///< of each layout; "" of those that are not opaque
  std::vector<SpaceInfo> spaces_;
  std::optional<cdl_tiling_t> tiling_;
};

} // namespace candela::capabilities
