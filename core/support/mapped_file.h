#pragma once

#include <memory>
#include <vector>

#include "core/support/tensor.h"

/// What mapFile maps, and what others may do to it meanwhile: who writes into a mapped file changes
/// what was read, and who cuts it off makes the next access a SIGBUS.
namespace candela {

/// Files of up to this size are copied when they are read: what is done to them later is no matter.
inline constexpr uint64_t kCopiedBytes = uint64_t(32) << 20;

class MappedFile;

/// Whether these bytes are those of a mapped file: pages that are dropped are read again.
bool isMapped(const Bytes& bytes);
/// From now on who reads what is no longer there of a mapped file ends the process with this status
/// and a message. For programs, never for a library.
void endOnCutFiles(int status);

/// The files that this thread maps while it lives, its own and those of watches within.
class FileWatch {
public:
  FileWatch();
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  using Files = std::vector<std::weak_ptr<const MappedFile>>;
  /// Those that are still in use.
  Files take();

private:
  friend void watchFile(const std::shared_ptr<const MappedFile>& file);
  FileWatch* outer_;
  Files files_;
};

/// Whether the files that are still in use have the size and the time of their last change that
/// they were mapped with.
/// Failure: io, naming the file.
Status checkUnchanged(const FileWatch::Files& files);

} // namespace candela
