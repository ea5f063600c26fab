// A plugin that breaks one promise of cdl.h, which $CANDELA_TEST_FAULT names; without it, a small
// backend that keeps them all. FAULTS_DOOR says which door it has.
#include <candela/backend.hpp>

#include <cfenv>
#include <cstdlib>
#include <fcntl.h>

namespace {

bool has(const char* fault) {
  const char* wanted = std::getenv("CANDELA_TEST_FAULT");
  return wanted && std::strcmp(wanted, fault) == 0;
}

cdl_plugin_t original; // what the faulty slots call
const cdl_host_t* keptHost = nullptr;
const cdl_option_t* keptOptions = nullptr;

cdl::Status add(const cdl::Binary& op) {
  if (op.fn() != CDL_BINARY_ADD) return cdl::unsupported("only add");
  cdl::forEachRow(
      [](int64_t n, cdl::Row<float> y, cdl::Row<const float> a, cdl::Row<const float> b) {
        for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
      },
      op.y<float>(), op.a<const float>(), op.b<const float>());
  return cdl::ok();
}

template <class Base> class Faulty : public Base {
public:
  Faulty() : Base("abi_faults", "0.1.0") {
    this->option("speed", "how fast", "slow|fast", has("option_default") ? "medium" : "slow");
    this->claim(cdl::Profile::FP32);
#define CDL_X(Struct, function, NAME) this->support(cdl::Kind::Struct, cdl::Support::EMULATED);
    CDL_OPS(CDL_X) // what is NATIVE stands in the table below
#undef CDL_X
  }
  cdl::Status open(uint32_t) override {
    if (has("value_refused") && this->options().get("speed") == "fast")
      return cdl::error(CDL_INTERNAL, "nobody goes so fast");
    if (has("rounding_left")) std::fesetround(FE_DOWNWARD);
    if (has("file_left_open")) (void)!::open("/dev/null", O_RDONLY);
    return cdl::ok();
  }
};

#if FAULTS_DOOR == 1
class Backend : public Faulty<cdl::PrimitiveBackend> {
public:
  cdl::Status binary(const cdl::Binary& op) override { return add(op); }
};
#else
class Stored : public cdl::Executable {
public:
  Stored(const cdl_image_t* image, const void* const* constants)
      : image_(image), constants_(constants) {
    for (uint32_t i = 1; i < image->buffers.count; ++i) {
      const cdl_buffer_t* buffer = cdl_get_buffer(image, i);
      const void* from = constants && buffer->constant ? constants[buffer->constant] : nullptr;
      copies_.push_back(std::string(static_cast<const char*>(from), from ? buffer->bytes : 0));
    }
  }
  cdl::Status execute(const cdl::Addresses& buffers) override {
    const Resolved resolved(*this, buffers);
    return cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
      return add(cdl::Binary{cdl::Op(image_, i, loops, &resolved)});
    });
  }
  uint64_t scratchBytes() const override { return has("scratch_changes") ? 64 * ++asked_ : 0; }
  cdl::Status save(const cdl::Writer& to) const override {
    cdl::Status status = to.write(image_->hash, 32);
    return has("writer_ignored") ? cdl::ok() : status;
  }

private:
  struct Resolved final : cdl::Addresses {
    Resolved(const Stored& s, const cdl::Addresses& b) : stored(s), buffers(b) {}
    void* address(uint32_t buffer, uint64_t bytes) const override {
      const uint32_t constant = cdl_get_buffer(stored.image_, buffer)->constant;
      if (!constant) return buffers.address(buffer, bytes);
      if (has("constants_kept")) return const_cast<void*>(stored.constants_[constant]);
      return const_cast<char*>(stored.copies_[buffer - 1].data());
    }
    cdl::Timings* timings() const override { return buffers.timings(); }
    const Stored& stored;
    const cdl::Addresses& buffers;
  };
  const cdl_image_t* image_;
  const void* const* constants_;
  std::vector<std::string> copies_;
  mutable uint64_t asked_ = 0;
};

class Backend : public Faulty<cdl::ProgramBackend> {
public:
  cdl::Status compile(const cdl_image_t* image, const void* const* constants,
                      std::unique_ptr<cdl::Executable>& executable) override {
    for (uint32_t i = 1; i < image->instrs.count; ++i)
      if (cdl_get_instr(image, i)->kind != CDL_KIND_BINARY ||
          cdl_get_view(image, 1)->elem != CDL_F32)
        return cdl::refused(i, CDL_REASON_VENDOR, "only add of f32");
    if (has("late_refusal")) return cdl::refused(1, CDL_REASON_VENDOR, "not today");
    executable = std::make_unique<Stored>(image, constants);
    return cdl::ok();
  }
  cdl::Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                   std::unique_ptr<cdl::Executable>& executable) override {
    if (!has("blob_believed") && (size != 32 || std::memcmp(blob, image->hash, 32) != 0))
      return cdl::error(CDL_BAD_MODEL, "another image's blob, or a damaged one");
    executable = std::make_unique<Stored>(image, nullptr);
    return cdl::ok();
  }
};
#endif

// ---- Faulty slots over the layer's

cdl_code_t open(const cdl_host_t* host, uint32_t index, const cdl_option_t* options, uint32_t count,
                cdl_device_t** device, cdl_error_t* error) {
  keptHost = host, keptOptions = count ? options : nullptr;
  if (has("host_overread"))
    (void)*const_cast<void (*const volatile*)(void*, const void*, uint64_t, const void*, uint64_t)>(
        &host->cache_put);
  if (has("any_index")) index = 0;
  if (has("handle_on_error") && index) *device = nullptr;
  return original.device_open(host, index, options, count, device, error);
}
cdl_code_t createQueue(cdl_device_t* device, cdl_queue_t** queue, cdl_error_t* error) {
  if (has("host_kept") && keptHost->log) keptHost->log(keptHost->context, 0, "a queue");
  if (has("options_kept") && keptOptions && !*keptOptions->name) return CDL_INTERNAL;
  return original.queue_create(device, queue, error);
}
cdl_code_t createMemory(cdl_device_t* device, uint32_t space, uint64_t bytes, uint64_t alignment,
                        cdl_memory_t** memory, cdl_error_t* error) {
  if (has("any_space")) space = 0;
  cdl_code_t code = original.memory_create(device, space, bytes, alignment, memory, error);
  if (code == CDL_OK) return code;
  if (has("unknown_code")) return 999;
  if (has("no_message") && error && error->text && error->capacity) error->text[0] = 0;
  if (has("message_overflow") && error && error->text)
    std::memset(error->text, 'x', error->capacity + 1);
  if (has("message_endless") && error && error->text)
    std::memset(error->text, 'x', error->capacity);
  if (has("message_unasked")) error->text[0] = 'x';
  return code;
}
cdl_code_t notMapped(cdl_device_t*, cdl_memory_t*, uint64_t, uint64_t, void**, cdl_error_t* error) {
  return cdl_set_error(error, CDL_UNSUPPORTED, "cannot be mapped");
}
// The layer's table, of which one row is NATIVE.
struct Tables {
  cdl_capabilities_t table = *cdl::detail::Entry<Backend>::prototype().capabilities().build(0);
  std::vector<cdl_row_t> rows{table.rows, table.rows + table.row_count};
  cdl_atom_t atoms[2] = {(cdl::rank() == 1), (cdl::rank() >= 2)};
  Tables() {
    cdl_row_t row{};
    for (cdl_row_t& one : rows)
      if (one.kind == CDL_KIND_BINARY && one.fn == CDL_BINARY_ADD && one.elems[0] == CDL_F32)
        one.support = CDL_SUPPORT_NATIVE, row = one;
    if (has("rows_contradict")) row.support = CDL_SUPPORT_EMULATED, rows.push_back(row);
    if (has("row_impossible")) row.atoms = 2, rows.push_back(row);
    table.rows = rows.data(), table.row_count = static_cast<uint32_t>(rows.size());
    table.atoms = atoms, table.atom_count = 2, table.atom_stride = sizeof *atoms;
  }
};
const cdl_capabilities_t* capabilities(cdl_device_t*) {
  static Tables tables;
  static cdl_capabilities_t copies[2];
  static int turn = 0;
  if (has("capabilities_move")) return &(copies[++turn % 2] = tables.table);
  if (has("capabilities_grow")) ++tables.table.engine_count;
  return &tables.table;
}

#if FAULTS_DOOR == 1
const cdl_bindings_t* keptBindings = nullptr;

cdl_code_t run(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
               const int64_t loops[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings,
               cdl_error_t* error) {
  if (has("bindings_believed")) return CDL_OK;
  if (has("bindings_exact") && bindings && bindings->header.struct_size != sizeof *bindings)
    return cdl_set_error(error, CDL_INVALID_ARGUMENT, "bindings of another length");
  if (has("misaligned_taken") && bindings && bindings->buffers && bindings->count > 1 &&
      bindings->buffers[1].offset == 8)
    return CDL_OK;
  if (has("kinds_believed") && image && cdl_get_instr(image, 1)->kind == 200) return CDL_OK;
  if (has("range_believed") && count != 1) return CDL_OK;
  if (has("versions_believed") && image && image->major) return CDL_OK;
  keptBindings = bindings;
  return original.run(queue, image, first, count, loops, bindings, error);
}
cdl_code_t signal(cdl_queue_t* queue, uint64_t value, cdl_error_t* error) {
  if (has("bindings_kept") && keptBindings && keptBindings->count == 0) return CDL_INTERNAL;
  return original.queue_signal(queue, value, error);
}
#else
cdl_code_t compile(cdl_device_t* device, const cdl_image_t* image, const void* const* constants,
                   cdl_executable_t** executable, cdl_refusal_t* refusal, cdl_error_t* error) {
  if (has("images_believed") && image && reinterpret_cast<uintptr_t>(image) % 8 == 0) {
    cdl_code_t code = CDL_OK;
    if (cdl_get_instr(image, 1)->kind == CDL_KIND_BINARY)
      code = original.compile(device, image, constants, executable, refusal, error);
    if (code == CDL_BAD_MODEL) code = CDL_OK;
    return code;
  }
  const cdl_code_t code = original.compile(device, image, constants, executable, refusal, error);
  if (code == CDL_REFUSED && has("refusal_unmeasured") && refusal)
    refusal->reason = CDL_REASON_DTYPE;
  if (code == CDL_REFUSED && has("refusal_of_another") && refusal && CDL_HAS(refusal, instr))
    refusal->instr = 9;
  return code;
}
cdl_code_t support(cdl_executable_t*, uint8_t* list, uint32_t count, cdl_error_t*) {
  for (uint32_t i = 1; i <= count; ++i) list[i] = CDL_SUPPORT_NATIVE;
  return CDL_OK;
}
cdl_code_t profile(cdl_queue_t* queue, cdl_profile_record_t* records, uint32_t capacity,
                   uint32_t* count, cdl_error_t* error) {
  const cdl_code_t code = original.profile_end(queue, records, capacity, count, error);
  if (code != CDL_OK && has("profile_without_begin")) return CDL_OK;
  if (code != CDL_OK) return code;
  *count = 1;
  if (capacity) records[0] = {1, 0, has("profile_backwards") ? 9u : 5u, 7};
  return code;
}
cdl_code_t cost(cdl_device_t*, const cdl_cost_query_t*, uint32_t count, cdl_cost_t* costs,
                cdl_error_t*) {
  static uint64_t asked = 0;
  for (uint32_t i = 0; i < count; ++i) {
    costs[i] = {};
    costs[i].latency_cycles = has("cost_changes") ? ++asked : 7;
  }
  return CDL_OK;
}
#endif

} // namespace

extern "C" CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error);
cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  if (host && out && has("table_overrun")) out->header.struct_size = sizeof *out;
  if (host && out && has("written_first")) out->device_count = 1;
  cdl_host_t any;
  if (host && has("major_ignored") && host->header.struct_size == sizeof any &&
      host->header.major) {
    any = *host;
    any.header.major = CDL_ABI_MAJOR;
    host = &any;
  }
  if (!host && has("null_taken")) return CDL_OK;
  if (host && out && has("numbers_unnamed") && host->header.major != CDL_ABI_MAJOR)
    return cdl_set_error(error, CDL_INCOMPATIBLE, "no");
  const cdl_code_t code = cdl::detail::Entry<Backend>::query(host, out, error);
  if (code != CDL_OK) return code;
  original = cdl::detail::Entry<Backend>::table();
  out->device_open = open;
  out->queue_create = createQueue;
  out->memory_create = createMemory;
  if (has("space_lies")) out->memory_map = notMapped;
  out->device_capabilities = capabilities;
#if FAULTS_DOOR == 1
  out->run = run;
  out->queue_signal = signal;
#else
  out->compile = compile;
  if (has("support_overrun") && CDL_HAS(out, executable_support)) out->executable_support = support;
  if (CDL_HAS(out, profile_end)) out->profile_end = profile;
  if (CDL_HAS(out, cost_batch)) out->cost_batch = cost;
  if (has("half_a_pair") && CDL_HAS(out, executable_save)) out->executable_save = nullptr;
#endif
  return CDL_OK;
}
