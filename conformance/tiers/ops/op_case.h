#pragma once

#include "conformance/family.h"
#include "conformance/trial_builder.h"
#include "core/compiler/driver/packing.h"
#include "core/compiler/lowering/decompose/describe.h"

/// Instructions that are more than a primitive, judged by what they mean and tried beside what they
/// mean.
namespace candela::conformance::tiers::ops {

using Values = std::vector<graph::Value*>;

/// One instruction, said twice.
struct OpCase {
  struct Operand {
    Elem elem;
    Shape dims;
    TrialBuilder::Fill fill;
    bool constant = false;
  };
  using Write = std::function<Result<Values>(graph::Graph&, const Values& operands)>;

  std::vector<Operand> operands;
  /// A graph whose last node becomes the instruction.
  Write whole;
  /// The same results by other nodes: what is judged by and, lowered, what is tried as well; null:
  /// as `whole`.
  Write parts;
  /// What no node says of the instruction.
  std::function<void(lowering::decompose::NodeInstr&, const Values& operands)> change;
  bool accumulates = false; ///< the last operand is what the result holds before
  /// On every tuple of layouts that a row of the device claims and that is not all row-major.
  bool onClaimedLayouts = false;
};

/// The case, ready to run; for those who look at it without a device too.
class OpTrial {
public:
  using Packer = program::passes::pack::Packer;
  /// Failure: the suite made a case that is none.
  static Result<OpTrial> make(OpCase made, std::string_view address);

  /// The instruction as a Program in these spaces, on these layouts of operands and results; fewer:
  /// row-major. What the packer makes of constants lies on opaque ones; without one they keep their
  /// content. Failure: a layout that does not fit.
  Result<program::Program> program(const capabilities::Target& target,
                                   std::span<const cdl_layout_t> layouts = {},
                                   const Packer& packer = nullptr) const;
  /// The tuples of layouts that the instruction is to be tried on: one of row-major ones, or what
  /// the device claims.
  std::vector<std::vector<cdl_layout_t>> layouts(const capabilities::Target& target) const;
  /// What `parts` becomes with nothing but primitives that the device claims. Failure: it does not
  /// have them all.
  Result<program::Program> decomposition(const capabilities::Target& target) const;

  /// Logical, in the order of the operands that are no constants.
  std::vector<Tensor> inputs(uint64_t salt) const;
  /// Of logical inputs: the oracle's answer, and around it the running error analysis of `parts`.
  Result<judge::Expectation> expect(std::span<const Tensor> inputs) const;

  /// The instruction, and where that is right its decomposition, both within the same bounds.
  CaseResult tryOut(Port& port) const;

private:
  struct Built {
    graph::Graph graph;
    Values operands, results;
  };
  Result<Built> build(const OpCase::Write& write) const;
  /// Inputs and expectations as they lie in memory.
  Trial trialOn(program::Program program) const;

  OpCase case_;
  std::string address_;
  uint64_t seed_ = 0;
  std::shared_ptr<const Built> whole_, parts_;
  lowering::decompose::NodeInstr instr_;
};

/// A family of such cases: `make` says what a choice is.
struct OpFamily {
  Family family; ///< without `run`
  Budget budget;
  std::function<OpCase(const Choice&)> make;
};

/// Every case with its trial, in the order of the tier.
struct OpSubject {
  std::string address;
  std::function<Result<OpTrial>()> make;
};
std::vector<OpSubject> opSubjects(const Selection& selection);

} // namespace candela::conformance::tiers::ops
