#include "core/compiler/program/passes/pack/pack.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/compiler/program/passes/schedule/described.h"
#include "core/support/out_of_memory.h"

namespace candela::program::passes::pack {

namespace {

using capabilities::Target;

/// What one packing depends on.
struct Request {
  std::string layout;
  uint32_t buffer = kNone;
  Elem elem = Elem::none;
  int64_t offset = 0;
  std::vector<int64_t> dims, strides;
  friend auto operator<=>(const Request&, const Request&) = default;
};

Request requestOf(const View& view, const std::string& layout) {
  return {layout, view.buffer, view.elem, view.offset, view.dims, view.strides};
}

bool asksOpaque(const Target& target, const cdl_row_t& row) {
  return row.support == CDL_SUPPORT_NATIVE && std::ranges::any_of(row.layouts, [&](uint16_t index) {
           return target.layouts()[index].opaque != 0;
         });
}

Bytes contentOf(const Payload& payload) {
  return orThrow(payload.materialize({payload.count()})).bytes;
}

class Packing {
public:
  Packing(Program& program, const Target& target, const Packer& packer)
      : program_(program), target_(target), packer_(packer) {
    for (const Target::Row& entry : target.rows())
      if (asksOpaque(target, entry.row)) rows_.push_back(&entry.row);
  }

  Result<int> run() {
    if (rows_.empty()) return 0;
    for (Instr& instr : program_.instrs) CDL_TRY(choose(instr));
    replaceConstants();
    return static_cast<int>(uses_.size());
  }

private:
  /// An operand that lies in an opaque layout from now on.
  struct Use {
    View* view = nullptr;
    Request request;
  };

  Status choose(Instr& instr) {
    if (instr.prologue) return Status::ok();
    for (const cdl_row_t* row : rows_) {
      if (row->kind != instr.kind || row->fn != instr.fn) continue;
      const std::optional<std::vector<Use>> uses = asked(instr, *row);
      if (!uses) continue;
      CDL_ASSIGN(const bool isPacked, packAll(*uses));
      if (!isPacked) continue;
      uses_.insert(uses_.end(), uses->begin(), uses->end());
      return Status::ok();
    }
    return Status::ok();
  }

  /// The constants that the row wants packed; nullopt where it does not take the instruction then.
  std::optional<std::vector<Use>> asked(Instr& instr, const cdl_row_t& row) const {
    capabilities::InstrDesc desc = schedule::described(program_, instr);
    schedule::describeLayouts(instr, desc);
    std::vector<Use> uses;
    const size_t operands = std::min(instr.operandCount(), std::size(row.layouts));
    for (size_t i = 0; i < operands; ++i) {
      const cdl_layout_t& layout = target_.layouts()[row.layouts[i]];
      if (!layout.opaque) continue;
      View& view = instr.inputs[i];
      if (!canBePacked(program_, view, layout.logical_rank)) return std::nullopt;
      desc.operands[i].layout = layout;
      desc.operands[i].layoutName = target_.layoutName(row.layouts[i]);
      desc.operands[i].cls = capabilities::OperandClass::dense;
      uses.push_back({&view, requestOf(view, desc.operands[i].layoutName)});
    }
    const bool isTaken = target_.query(desc).support == capabilities::Support::native;
    return isTaken && !uses.empty() ? std::optional(std::move(uses)) : std::nullopt;
  }

  /// False where the device does not know one of the layouts for its constant.
  Result<bool> packAll(const std::vector<Use>& uses) {
    for (const Use& use : uses) {
      if (packed_.count(use.request)) continue;
      const Constant& constant = program_.constants[program_.buffers[use.view->buffer].constant];
      Result<Bytes> bytes = packer_(use.request.layout, contentOf(constant.payload), *use.view);
      if (bytes.status().code() == Code::unsupported) return false;
      CDL_TRY(bytes.status().context(
          fmt::format("constant '{}' in layout '{}'", constant.name, use.request.layout)));
      packed_[use.request] = std::move(bytes).value();
    }
    return true;
  }

  /// What was packed takes the place of the plain constant, or stands beside it where that is still
  /// read.
  void replaceConstants() {
    std::map<uint32_t, int> readers;
    for (const Instr& instr : program_.instrs)
      for (const View& view : instr.inputs) ++readers[view.buffer];
    std::map<uint32_t, int> owners;
    for (const Buffer& buffer : program_.buffers) ++owners[buffer.constant];
    for (const Use& use : uses_) --readers[use.request.buffer];

    std::map<Request, uint32_t> buffers;
    for (const Use& use : uses_) {
      auto at = buffers.find(use.request);
      if (at == buffers.end()) {
        const uint32_t plain = use.request.buffer;
        const bool inPlace = readers[plain] == 0 && owners[program_.buffers[plain].constant] == 1;
        if (inPlace) readers[plain] = 1; // by this packing, from now on
        at = buffers.emplace(use.request, store(use.request, inPlace)).first;
      }
      *use.view = opaqueView(std::move(*use.view), use.request.layout);
      use.view->buffer = at->second;
    }
  }

  uint32_t store(const Request& request, bool inPlace) {
    const Bytes& bytes = packed_.at(request);
    const Tensor content{Elem::u8_, {static_cast<int64_t>(bytes.size())}, bytes};
    if (!inPlace) {
      const Buffer plain = program_.buffers[request.buffer];
      const uint32_t added = program_.addConstant(fmt::format("{}.{}", plain.name, request.layout),
                                                  Payload::data(content));
      Buffer& buffer = program_.buffers[added];
      buffer.space = plain.space;
      buffer.alignment = std::max(buffer.alignment, plain.alignment);
      return added;
    }
    Buffer& buffer = program_.buffers[request.buffer];
    buffer.bytes = bytes.size();
    program_.constants[buffer.constant].payload = Payload::data(content);
    return request.buffer;
  }

  Program& program_;
  const Target& target_;
  const Packer& packer_;
  std::vector<const cdl_row_t*> rows_; ///< native ones with opaque layouts
  std::map<Request, Bytes> packed_;
  std::vector<Use> uses_;
};

} // namespace

bool canBePacked(const Program& program, const View& view, uint8_t logicalRank) {
  const Buffer& buffer = program.buffers[view.buffer];
  const bool isFixed = std::ranges::all_of(view.ivStrides, [](int64_t s) { return s == 0; });
  return buffer.role == Role::constant && !buffer.halo && view.layout.isRowMajor() && isFixed &&
         view.dims.size() == logicalRank && view.count() > 0;
}

View opaqueView(View plain, const std::string& layout) {
  View view = denseView(plain.buffer, plain.elem, std::move(plain.dims));
  view.layout.opaque = true;
  view.layout.logicalRank = static_cast<uint8_t>(view.dims.size());
  view.layout.name = layout;
  return view;
}

Result<int> packConstants(Program& program, const Target& target, const Packer& packer) {
  return Packing(program, target, packer).run();
}

} // namespace candela::program::passes::pack
