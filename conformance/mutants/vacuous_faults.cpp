// Backends that look busy.
#include <bit>
#include <map>
#include <string>

#include "conformance/mutants/catalogue.h"

namespace candela::conformance::mutants {
namespace {

cdl_code_t giveZeros(Mutation& m) {
  forEachIndex(m.view(m.result()), [&](const Index& at) { m.set(m.result(), at, 0); });
  return CDL_OK;
}

/// The first operand's elements, one after the other, over and over.
cdl_code_t giveInputs(Mutation& m) {
  std::vector<uint64_t> given;
  if (m.operands() > 0)
    forEachIndex(m.view(0), [&](const Index& at) { given.push_back(m.get(0, at)); });
  size_t next = 0;
  forEachIndex(m.view(m.result()), [&](const Index& at) {
    if (!given.empty()) m.set(m.result(), at, given[next++ % given.size()]);
  });
  return CDL_OK;
}

cdl_code_t doNothing(Mutation&) { return CDL_OK; }

/// Right the first time, and ever after the answer of that time.
cdl_code_t answerFromCache(Mutation& m) {
  const uint32_t y = m.result();
  if (const auto kept = m.memory().results.find(m.key()); kept != m.memory().results.end()) {
    size_t next = 0;
    forEachIndex(m.view(y), [&](const Index& at) { m.set(y, at, kept->second[next++]); });
    return CDL_OK;
  }
  const cdl_code_t code = m.run();
  std::vector<uint64_t>& kept = m.memory().results[m.key()];
  forEachIndex(m.view(y), [&](const Index& at) { kept.push_back(m.get(y, at)); });
  return code;
}

cdl_code_t onlyPowersOfTwo(Mutation& m) {
  const cdl_view_t& y = m.view(m.result());
  for (uint32_t d = 0; d < y.rank; ++d)
    if (!std::has_single_bit(static_cast<uint64_t>(y.dims[d]))) return CDL_OK;
  return m.run();
}

template <uint64_t kRound> cdl_code_t onlyInRun(Mutation& m) {
  if (m.memory().runs[m.key()]++ == kRound) return m.run();
  return CDL_OK;
}

// ---- Of one queue

cdl_plugin_t original; ///< of the table whose slots were replaced

/// What became of a queue since it was made.
struct QueueMemory {
  bool wasRead = false;
  std::map<std::string, uint64_t> runs; ///< outside of loops, by instruction
};
std::map<const cdl_queue_t*, QueueMemory> queues;

void forgetQueue(cdl_device_t* device, cdl_queue_t* queue) {
  queues.erase(queue);
  original.queue_destroy(device, queue);
}
cdl_code_t readAndRemember(cdl_queue_t* queue, cdl_memory_t* from, uint64_t offset, void* to,
                           uint64_t bytes, cdl_error_t* error) {
  queues[queue].wasRead = true;
  return original.queue_read(queue, from, offset, to, bytes, error);
}

bool isUnread(cdl_queue_t* queue, const cdl_image_t*, uint32_t) { return !queues[queue].wasRead; }
bool isOneOfThree(cdl_queue_t* queue, const cdl_image_t* image, uint32_t instr) {
  if (cdl_get_instr(image, instr)->loop) return true;
  std::string key(reinterpret_cast<const char*>(image->hash), sizeof image->hash);
  return queues[queue].runs[key + std::to_string(instr)]++ < 3;
}
template <bool (*isRight)(cdl_queue_t*, const cdl_image_t*, uint32_t)>
cdl_code_t runWhere(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
                    const int64_t loops[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings,
                    cdl_error_t* error) {
  if (!isRight(queue, image, first)) return CDL_OK;
  return original.run(queue, image, first, count, loops, bindings, error);
}
template <bool (*isRight)(cdl_queue_t*, const cdl_image_t*, uint32_t)>
void watchQueues(cdl_plugin_t& table) {
  original = table;
  table.queue_read = readAndRemember;
  table.queue_destroy = forgetQueue;
  table.run = runWhere<isRight>;
}

cdl_code_t neverWriteBack(Mutation& m) {
  m.drop();
  return m.run();
}

} // namespace

void addVacuousFaults(Catalogue& catalogue) {
  catalogue.add("gives_zeros", "primitives", giveZeros);
  catalogue.add("gives_inputs", "primitives", giveInputs);
  catalogue.add("does_nothing", "primitives", doNothing);
  catalogue.add("answers_from_cache", "primitives", answerFromCache);
  catalogue.add("only_powers_of_two", "primitives", onlyPowersOfTwo);
  catalogue.add("only_first_run", "primitives", onlyInRun<0>);
  catalogue.add("only_second_run", "primitives", onlyInRun<1>);
  catalogue.add("only_three_runs", "primitives", {}).table = watchQueues<isOneOfThree>;
  catalogue.add("only_fresh_queue", "primitives", {}).table = watchQueues<isUnread>;
  catalogue.add("never_writes_back", "primitives", neverWriteBack);
}

} // namespace candela::conformance::mutants
