#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/support/hash.h"
#include "core/support/tensor.h"

/// What is stored and deployed: steps, constants, Programs and the executables that backends made
/// of them (.cdb).
namespace candela::runtime::bundle {

inline constexpr uint32_t kNoConstant = UINT32_MAX;

/// A tensor that crosses a partition's border, with the model's own name where it has one.
struct BundleValue {
  std::string name;
  Elem elem = Elem::none;
  Shape dims;
  uint32_t constant = kNoConstant; ///< its content, when nothing computes it

  uint64_t sizeBytes() const { return elemBytes(elem, elementCount(dims).value_or(0)); }
  std::string typeText() const { return candela::typeText(elem, dims); }
  /// Whether a tensor that is bound to it has its type. Failure: invalid_argument with both types.
  Status checkInput(const Tensor& given) const { return checkInput(given.elem, given.dims); }
  Status checkInput(Elem given, std::span<const int64_t> givenDims) const;
};

enum class StepKind : uint8_t { run = 0, soft = 1, copy = 2 };

struct BundleStep {
  StepKind kind = StepKind::run;
  uint32_t partition = 0;                ///< run, soft
  std::vector<uint32_t> inputs, outputs; ///< values, in the order of the Program's bound buffers
};

struct BundleConstant {
  Hash hash{};
  Bytes bytes;
};

/// An output that is the input of the next run: indices among the bundle's inputs and outputs.
struct BundleState {
  uint32_t input = 0, output = 0;
};

/// An output that is no output of the model: kept for a dump.
struct KeptValue {
  std::string name, node;
};

/// What a partition holds of its device's memory between its runs. Partitions that do not hold
/// everything take turns: the device has no room for all of them at once.
enum class Holding : uint8_t {
  everything = 0, ///< constants, and the memory that runs work in
  constants = 1,
  nothing = 2, ///< constants too are uploaded for each run: they stream
};

/// One Program for one backend.
struct BundlePartition {
  std::string backend; ///< NAME or NAME:N, of its device N; empty: soft
  std::string backendVersion;
  std::map<std::string, std::string> options;
  Bytes image; ///< the flat image of cdl.h
  /// per image constant from 1: index into the bundle's, or kNoConstant for a splat
  std::vector<uint32_t> constants;
  /// The backend's own blob, with the constants in it; where there is one `constants` is empty.
  Bytes executable;
  Holding holding = Holding::everything;
  uint64_t streamedBytes = 0; ///< that are uploaded for each run
};

/// `count` products of matrices, [rows, terms] by [terms, columns] each.
struct Products {
  uint64_t count = 0, rows = 0, terms = 0, columns = 0;
  uint64_t macs() const { return count * rows * terms * columns; }
};

/// Where a node of the model went, for reports.
struct NodePlacement {
  enum class Class : uint8_t { native = 0, emulated = 1, host = 2 };
  std::string node, op, on, why;
  Class cls = Class::host;
  uint64_t macs = 0;       ///< multiply-accumulates per run
  uint64_t nativeMacs = 0; ///< of them, those in native instructions
  Products products{};     ///< `count` is 0 of a node that is not that
  /// of its operands, of its results; of these the elements
  uint64_t bytesIn = 0, bytesOut = 0, elements = 0;
  std::string shape{}; ///< driver::shapeOf(); empty where nobody said it
};

/// Why a model is where it is, by another policy than the order of backends; for reports.
struct PlacementPolicy {
  struct Rates { ///< of one target, in SI units
    std::string name;
    double macsPerSecond = 0, elementsPerSecond = 0, bytesPerSecond = 0, nodeSeconds = 0;
    double linkBytesPerSecond = 0, linkSeconds = 0, partSeconds = 0;
    std::string computeSource, linkSource;
  };
  std::string name;
  bool isLeast = false; ///< proved, of what the policy weighs
  /// of one run, by the rates
  double computeSeconds = 0, transferSeconds = 0, startSeconds = 0;
  double preferenceSeconds = 0; ///< of the same by preference; 0: not compared
  std::vector<double> stageSeconds;
  std::vector<Rates> rates;
};

struct FlowBundle; // flow_bundle.h

struct Bundle {
  std::string model;
  uint64_t modelNodes = 0, parameters = 0;
  std::vector<BundleValue> values;
  std::vector<uint32_t> inputs, outputs;
  std::vector<BundleConstant> constants;
  std::vector<BundlePartition> partitions;
  std::vector<BundleStep> steps;
  std::vector<BundleState> states;
  std::vector<NodePlacement> placement;
  std::vector<KeptValue> kept;               ///< the last outputs, in their order; not stored
  std::optional<PlacementPolicy> policy;     ///< nullopt: by preference; not stored
  uint64_t arenaBytes = 0, maxLiveBytes = 0; ///< the largest over the partitions
  uint64_t localBytes = 0;                   ///< likewise, of arenas in local memories
  /// of a model that decides at run: in the place of steps
  std::shared_ptr<const FlowBundle> flow;

  /// Shares equal contents; returns the index.
  uint32_t addConstant(const Hash& hash, const Bytes& bytes);
};

/// Writes through a temporary file. Failure: io.
Status saveBundle(const Bundle& bundle, const std::string& path);
/// Maps the file; constants and images share it. Every length, index and image is checked. Failure:
/// bad_model naming the file, or incompatible for another version.
Result<Bundle> loadBundle(const std::string& path);
/// The same of a file's content, which the bundle goes on to use; `name` stands for it in messages.
Result<Bundle> parseBundle(const Bytes& content, const std::string& name);
/// True when the file begins like a bundle.
bool isBundle(const std::string& path);

/// Instructions that one run of a checked image executes, loops counted; 2^32 + 1 when there are
/// more than 2^32, which verifyBundle refuses.
uint64_t executions(const cdl_image_t* image);

/// Binds outputs to inputs by "INPUT=OUTPUT". Failure: invalid_argument for a name that is not
/// there or is bound twice, or for two types.
Status addStates(Bundle& bundle, const std::vector<std::string>& texts);
Status verifyStates(const Bundle& bundle);

/// Indices, images and shapes fit together.
Status verifyBundle(const Bundle& bundle);

} // namespace candela::runtime::bundle
