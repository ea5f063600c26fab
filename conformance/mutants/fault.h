#pragma once

#include <span>

#include "conformance/mutants/mutation.h"

/// The catalogue of faults that a backend may have, and which of them each part of the interface
/// can have.
namespace candela::conformance::mutants {

/// A row of the matrix: a primitive, or an object of the interface.
struct Subject {
  std::string name; ///< "matmul", "queue"
  /// of a primitive; 0: an object, or what holds for all primitives
  uint16_t kind = 0;
  const char* tier = "primitives"; ///< that shows its faults
};
std::span<const Subject> subjects();

/// A column.
struct FaultClass {
  const char* name;    ///< "offset_ignored"
  const char* summary; ///< what a backend with it does
  bool (*applies)(const Subject& subject);
  bool isQuick = false; ///< `quick` must show it, whatever else it leaves to `full`
};
std::span<const FaultClass> faultClasses();

struct Fault {
  /// "matmul.offset_ignored", or "matmul.offset_ignored.1" where a subject has several of a class.
  std::string name;
  const Subject* subject = nullptr;
  const FaultClass* faultClass = nullptr;
  const char* tier = ""; ///< that must show it
  // What is wrong; null hooks do as they should.
  /// of an instruction
  std::function<cdl_code_t(Mutation&)> run = {};
  /// of a device, once
  std::function<void(cdl_capabilities_t&, std::vector<cdl_row_t>&)> capabilities = {};
  /// slots that do something else
  void (*table)(cdl_plugin_t& table) = nullptr;
  /// it is of a backend of the program API
  bool compiles = false;
  bool hasTwoSpaces = false; ///< of memory; it is of such a backend
  bool hangs = false;        ///< some call of it never returns
};

/// In the order of the matrix: subject by subject, class by class.
const std::vector<Fault>& allFaults();
/// Null when there is none of this name.
const Fault* findFault(std::string_view name);

} // namespace candela::conformance::mutants
