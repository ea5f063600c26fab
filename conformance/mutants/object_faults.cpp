// Faults of what is not arithmetic: capability rows, executables, errors.
#include "conformance/mutants/catalogue.h"

namespace candela::conformance::mutants {
namespace {

cdl_plugin_t original; ///< of the table whose slots were replaced

// ---- Capabilities

void loseAtoms(cdl_capabilities_t& table, std::vector<cdl_row_t>& rows) {
  rows[0].first_atom = 7;
  rows[0].atoms = 3;
  table.atom_count = 0;
}
void loseRows(cdl_capabilities_t& table, std::vector<cdl_row_t>&) { table.rows = nullptr; }
void shortenRows(cdl_capabilities_t& table, std::vector<cdl_row_t>&) { table.row_stride = 8; }
void inventElem(cdl_capabilities_t&, std::vector<cdl_row_t>& rows) { rows[0].elems[0] = 200; }
void inventSupport(cdl_capabilities_t&, std::vector<cdl_row_t>& rows) { rows[0].support = 9; }
void loseSpaces(cdl_capabilities_t& table, std::vector<cdl_row_t>&) { table.space_count = 0; }
void claimBaseOnly(cdl_capabilities_t& table, std::vector<cdl_row_t>&) {
  table.profiles = 1u << CDL_PROFILE_BASE;
}

/// Claims everything, and does not run f16.
cdl_code_t refuseHalf(Mutation& m) {
  for (uint32_t v = 0; v <= m.result(); ++v)
    if (m.elem(v) == Elem::f16_) {
      m.message = "f16 is not there yet";
      return CDL_UNSUPPORTED;
    }
  return m.run();
}

// ---- Executables

cdl_code_t callItEmulated(cdl_executable_t*, uint8_t* support, uint32_t count, cdl_error_t*) {
  for (uint32_t i = 1; i < count; ++i) support[i] = CDL_SUPPORT_EMULATED;
  return CDL_OK;
}

cdl_code_t refuseAll(cdl_device_t*, const cdl_image_t*, const void* const*, cdl_executable_t**,
                     cdl_refusal_t* refusal, cdl_error_t*) {
  refusal->instr = 1;
  refusal->reason = CDL_REASON_ATTRIBUTE;
  return CDL_REFUSED;
}

cdl_code_t compileNothing(cdl_device_t*, const cdl_image_t*, const void* const*, cdl_executable_t**,
                          cdl_refusal_t*, cdl_error_t*) {
  return CDL_OK;
}

cdl_code_t signalled(cdl_timeline_t signal, cdl_error_t* error) {
  if (signal.queue) return original.queue_signal(signal.queue, signal.value, error);
  return CDL_OK;
}

cdl_code_t executeNothing(cdl_queue_t*, cdl_executable_t*, const cdl_bindings_t*,
                          const cdl_timeline_t*, uint32_t, cdl_timeline_t signal,
                          cdl_error_t* error) {
  return signalled(signal, error);
}

/// Asks for scratch, and writes the byte behind it.
constexpr uint64_t kScratch = 100;
uint64_t askForScratch(cdl_executable_t*) { return kScratch; }
cdl_code_t executeBehindScratch(cdl_queue_t* queue, cdl_executable_t* executable,
                                const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                                uint32_t waits, cdl_timeline_t signal, cdl_error_t* error) {
  const cdl_binding_t& scratch = bindings->buffers[bindings->count - 1];
  const char byte = '#';
  if (const cdl_code_t code = original.queue_write(
          queue, scratch.memory, scratch.offset + scratch.bytes, &byte, sizeof byte, error))
    return code;
  return original.execute(queue, executable, bindings, wait, waits, signal, error);
}

/// Says CDL_OK, whatever became of it.
cdl_code_t executeAndForget(cdl_queue_t* queue, cdl_executable_t* executable, const cdl_bindings_t*,
                            const cdl_timeline_t* wait, uint32_t waits, cdl_timeline_t signal,
                            cdl_error_t* error) {
  const cdl_bindings_t none{CDL_HEADER(cdl_bindings_t), 0, 0, nullptr};
  (void)original.execute(queue, executable, &none, wait, waits, signal, error);
  return signalled(signal, error);
}

} // namespace

void addObjectFaults(Catalogue& catalogue) {
  const auto rows = [&](const char* faultClass, const char* variant, auto alter) {
    catalogue.add(faultClass, "capability", {}, variant).capabilities = alter;
  };
  catalogue.add("claims_and_refuses", "capability", refuseHalf).tier = "primitives";
  rows("rows_missing", "", loseRows);
  rows("rows_short", "", shortenRows);
  rows("atoms_outside", "", loseAtoms);
  rows("unknown_numbers", "elem", inventElem);
  rows("unknown_numbers", "support", inventSupport);
  rows("no_spaces", "", loseSpaces);
  rows("profile_alone", "", claimBaseOnly);
  const auto slots = [&](const char* faultClass, const char* variant,
                         void (*alter)(cdl_plugin_t&)) {
    Fault& fault = catalogue.add(faultClass, "executable", {}, variant);
    fault.compiles = true;
    fault.table = alter;
  };
  slots("falls_back", "", [](cdl_plugin_t& table) { table.executable_support = callItEmulated; });
  slots("claims_and_refuses", "", [](cdl_plugin_t& table) { table.compile = refuseAll; });
  slots("error_lost", "compile", [](cdl_plugin_t& table) { table.compile = compileNothing; });
  slots("error_lost", "execute", [](cdl_plugin_t& table) {
    original = table;
    table.execute = executeAndForget;
  });
  slots("one_too_many", "scratch", [](cdl_plugin_t& table) {
    original = table;
    table.executable_scratch = askForScratch;
    table.execute = executeBehindScratch;
  });
  slots("does_nothing", "", [](cdl_plugin_t& table) {
    original = table;
    table.execute = executeNothing;
  });
}

} // namespace candela::conformance::mutants
