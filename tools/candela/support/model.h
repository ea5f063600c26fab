#pragma once

#include <memory>
#include <optional>
#include <set>

#include "candela/candela.hpp"
#include "core/support/tensor.h"
#include "tools/candela/support/command.h"

/// Models and tensors through the embedding API: what run and compile share.
namespace candela::tool {

class TemporaryFile;

/// The options that say how to compile.
struct ModelOptions {
  std::string path, backends = "soft", tile, partition = "preference", pinFile;
  std::string precision = "f32";
  std::vector<std::string> dims, shapes, options, states;
  bool requireNative = false, toPrimitives = false, keepValues = false;
  bool rematerialize = false, unstacked = false, noGroups = false;
  std::string assumedScheme; ///< of --assume-int8; empty: that was not given
  std::string ioLayout;      ///< of --io-layout; empty: that was not given
  /// The file to compile in place of `path`, as layOutBorders() or assumeInt8() wrote it; null
  /// without them.
  std::shared_ptr<const TemporaryFile> rewritten;

  /// The file that is compiled; `path` names it in messages and reports.
  const std::string& compiledPath() const;
  /// MODEL, --backend, --partition, --pin, --dim, --shape, --option, --isa, --require-native,
  /// --precision, --to-primitives, --rematerialize, --unstacked, --no-groups.
  /// `kinds`: of files that the command takes beside models of a format.
  void addTo(CLI::App* command, std::initializer_list<std::string_view> kinds = {".cdl"});
  /// The same without MODEL.
  void addCompilingTo(CLI::App* command);
  /// --partition and --pin alone.
  void addPlacingTo(CLI::App* command);
  /// --tile, of the commands that know it.
  void addTilingTo(CLI::App* command);
  /// --assume-int8, of the commands that show what a model costs and not what it computes.
  void addAssumeInt8To(CLI::App* command);
  /// --io-layout, of the commands that know it.
  void addIoLayoutTo(CLI::App* command);
  /// --state, of the commands that know it.
  void addStatesTo(CLI::App* command);
  /// Hands the number to the host, for what no backend takes, and to every backend that has an
  /// option `threads`. Whether the backends run so many; a note where they do not. Fails where an
  /// option says a number too.
  bool passThreads(int threads, Console& console);
  /// Whether the portable executor runs all of it.
  bool isSoftAlone() const;
  /// What --option threads=N or B.threads=N says.
  std::optional<int> threadsOption() const;
  sdk::Options sdkOptions(Progress& progress) const;
};

/// Whether an option of ModelOptions but the model itself was given.
bool saysHowToCompile(const CLI::App* command);
/// An option of that name, which takes a number of 64 bits.
void addSeedOption(CLI::App* command, std::optional<uint64_t>& seed, const std::string& help,
                   const std::string& name = "--random");

bool endsWith(const std::string& text, std::string_view suffix);
/// Fails where the file is a bundle, for commands that start from the model itself.
void refuseBundle(const std::string& path);
/// The path without its folders.
std::string fileName(const std::string& path);

/// The exit code for a failure of the embedding API: what the user passed is kBadInput, the rest
/// kWorkFailed.
int exitCodeOf(candela_status_t status);
/// Throws Failure with the file in front of the message, unless the message names it.
[[noreturn]] void failWith(const sdk::Error& error, const std::string& path);

/// Compiles. Failures name the file.
sdk::Model compileModel(const ModelOptions& options);

/// The names between commas.
std::vector<std::string> splitList(const std::string& text);

/// NAME=FILE, NAME=1x3 and the like.
struct Binding {
  std::string name, value;
};
/// Fails when there is no '=' or the name is empty.
Binding parseBinding(const std::string& option, const std::string& text);

/// NAME=FILE where both may hold '=': of the ways to cut it that are possible, the one whose name
/// is among `names`, else whose file exists, else the first. Fails where several names fit.
Binding parseFileBinding(const std::string& option, const std::string& text,
                         const std::set<std::string>& names);
/// Whether parseFileBinding() has a choice.
bool hasSeveralCuts(const std::string& text);

/// A .npy file or an ONNX .pb tensor.
Tensor readTensorFile(const std::string& path);
/// Creates the folder with its parents.
void makeFolder(const std::string& path);

/// Files of tensors in one folder: their names, made safe, as .npy.
class TensorFolder {
public:
  explicit TensorFolder(std::string path);
  /// Returns the path that was written.
  std::string write(const std::string& name, const Tensor& tensor);

private:
  std::string path_;
  std::vector<std::string> used_;
};

inline Elem elemOf(const sdk::Port& port) { return static_cast<Elem>(port.elem); }
/// "f32[1,3,8,8]"
std::string portType(const sdk::Port& port);
candela_tensor_t view(const Tensor& tensor);

/// The report of a model, parsed.
Json placementReport(const sdk::Model& model);
/// "arena 6.2 MB   local 64 KB   streamed 14.2 MB": the last two where there are local memories,
/// and constants that each run uploads.
std::string memoryText(const Json& report);
/// "11 nodes, 35 k parameters → cpu", from such a report.
std::string placementLine(const Json& report);
/// The table of --explain and the line below it.
std::string explainText(const Json& report);
/// Copies what reports of run and compile tell about the placement.
void addPlacement(Json& to, const Json& report, bool withNodes);

} // namespace candela::tool
