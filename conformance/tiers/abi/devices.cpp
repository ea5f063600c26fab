// Devices: opened often, at once, from threads, on hosts that offer nothing; and what they leave
// behind.
#include <dirent.h>

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstring>
#include <thread>

#include "conformance/tiers/abi/abi.h"
#include "core/support/threads.h"

namespace candela::conformance::tiers::abi {
namespace {

Status openAndClose(Port& port) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  CDL_TRY(device->queue().status());
  return Status::ok();
}

size_t entries(const char* folder) {
  size_t count = 0;
  if (DIR* open = opendir(folder)) {
    while (readdir(open)) ++count;
    closedir(open);
  }
  return count;
}

Outcome reopened(Port& port) {
  CDL_TRY(openAndClose(port)); // what a first one makes for good
  const size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int turn = 0; turn < 100; ++turn)
    CDL_TRY(openAndClose(port).context(fmt::format("opened {} times", turn + 2)));
  if (const size_t now = entries("/proc/self/fd"); now > files)
    return wrong("100 devices were closed, {} files are open more than before", now - files);
  if (const size_t now = entries("/proc/self/task"); now > threads)
    return wrong("100 devices were closed, {} threads run more than before", now - threads);
  return CaseResult::passed();
}

Outcome twoAtOnce(Port& port) {
  CDL_ASSIGN(auto first, RawDevice::open(port));
  CDL_ASSIGN(auto second, RawDevice::open(port));
  if (first->handle == second->handle) return wrong("two open devices have one handle");
  std::vector<std::string> contents = {std::string(64, 'a'), std::string(64, 'b')};
  RawDevice* devices[] = {first.get(), second.get()};
  std::vector<cdl_queue_t*> queues(2);
  std::vector<cdl_memory_t*> memories(2);
  for (size_t d = 0; d < 2; ++d) {
    CDL_ASSIGN(queues[d], devices[d]->queue());
    CDL_ASSIGN(memories[d], devices[d]->memory(queues[d], contents[d]));
  }
  first.reset(); // the other one goes on
  CDL_ASSIGN(const std::string left, second->read(queues[1], memories[1], 64));
  if (left != contents[1]) return wrong("closing one device changed the memory of the other");
  return CaseResult::passed();
}

Outcome fromThreads(Port& port) {
  CDL_TRY(port.plugin().status()); // loaded once, here
  std::vector<Status> said(4, Status::ok());
  atTheSameTime(said.size(), [&](size_t i) {
    for (int turn = 0; turn < 8 && said[i]; ++turn) said[i] = openAndClose(port);
  });
  for (const Status& status : said) CDL_TRY(status);
  return CaseResult::passed();
}

/// `by`: how far beyond the last device.
Check beyondCount(uint32_t by) {
  return [=](Port& port) -> Outcome {
    CDL_TRY(port.opens());
    CDL_ASSIGN(const cdl_plugin_t table, tableOf(port));
    const cdl_host_t host = plainHost();
    char place = 0;
    auto* const before = reinterpret_cast<cdl_device_t*>(&place);
    cdl_device_t* device = before;
    Said said;
    const uint32_t index = by ? table.device_count + by - 1 : UINT32_MAX;
    const cdl_code_t code = table.device_open(&host, index, nullptr, 0, &device, said.error());
    CDL_TRY(refusedBy(fmt::format("device {} of {}", index, table.device_count), code, said,
                      {CDL_NOT_FOUND}));
    if (device != before) return wrong("an open that failed changed the handle");
    return CaseResult::passed();
  };
}

Outcome names(Port& port) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  if (!device->table.device_name) return missing("device_name");
  const char* first = device->table.device_name(device->handle);
  if (!first || !*first) return wrong("the device has no name");
  const std::string kept = first;
  CDL_TRY(device->queue().status());
  const char* second = device->table.device_name(device->handle);
  if (!second || kept != second || kept != first) return wrong("the name '{}' changed", kept);
  return CaseResult::passed();
}

/// The struct may be gone after the call; the device works on.
Outcome hostIsCopied(Port& port) {
  CDL_ASSIGN(const Sample* sample, claimedSample(port));
  const cdl_host_t plain = plainHost();
  CDL_ASSIGN(PageEnd host, PageEnd::of(&plain, sizeof plain));
  CDL_ASSIGN(const auto device, RawDevice::open(port, host.as<cdl_host_t>()));
  host.release();
  if (!sample) return CaseResult::of(device->queue().status());
  CDL_ASSIGN(const auto work, Work::on(*device, *sample));
  CDL_TRY(work->runWell().status());
  return CaseResult::passed();
}

/// Hosts whose struct ends after its header, or after some of its services.
Outcome shortHosts(Port& port) {
  for (size_t bytes :
       {sizeof(cdl_header_t), offsetof(cdl_host_t, log), offsetof(cdl_host_t, log) + 4,
        offsetof(cdl_host_t, parallel_for), offsetof(cdl_host_t, cache_put)}) {
    std::string text(bytes, '\0');
    cdl_host_t plain = plainHost();
    plain.header.struct_size = static_cast<uint16_t>(bytes);
    std::memcpy(text.data(), &plain, bytes);
    CDL_ASSIGN(const PageEnd host, PageEnd::of(text.data(), bytes));
    CDL_ASSIGN(const auto device, RawDevice::open(port, host.as<cdl_host_t>()));
    CDL_TRY(device->queue().status().context(fmt::format("a host of {} bytes", bytes)));
  }
  return CaseResult::passed();
}

/// Rounding, denormals, locale and signals are as they were.
Outcome leavesTheProcessAlone(Port& port) {
  struct State {
    std::fenv_t environment;
    std::string locale;
    void (*handlers[32])(int);
  };
  const auto take = [] {
    State state{};
    std::fegetenv(&state.environment);
    state.locale = std::setlocale(LC_ALL, nullptr);
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction action{};
      sigaction(signal, nullptr, &action);
      state.handlers[signal] = action.sa_handler;
    }
    return state;
  };
  CDL_ASSIGN(const Sample* sample, claimedSample(port)); // loads the plugin
  std::fesetround(FE_UPWARD);
  const State before = take();
  Status status = openAndClose(port);
  if (status && sample) {
    auto device = RawDevice::open(port);
    status = device.status();
    if (device) {
      auto work = Work::on(**device, *sample);
      status = work ? (*work)->runWell().status() : work.status();
    }
  }
  const int rounding = std::fegetround();
  const State after = take();
  std::fesetround(FE_TONEAREST);
  CDL_TRY(status);
  if (rounding != FE_UPWARD) return wrong("the rounding direction was changed");
#if defined(__x86_64__)
  constexpr unsigned kControl = 0xffc0; // denormals, masks and rounding; the flags may rise
  if ((before.environment.__mxcsr & kControl) != (after.environment.__mxcsr & kControl))
    return wrong("the floating-point control word was {:#x} and is {:#x}",
                 before.environment.__mxcsr, after.environment.__mxcsr);
#endif
  if (before.locale != after.locale)
    return wrong("the locale was {} and is {}", before.locale, after.locale);
  for (int signal = 1; signal < 32; ++signal)
    if (before.handlers[signal] != after.handlers[signal])
      return wrong("signal {} has another handler", signal);
  return CaseResult::passed();
}

} // namespace

std::vector<Named> deviceChecks() {
  return {
      {"device/two_at_once", twoAtOnce},
      {"device/reopened:times=100", reopened},
      {"device/from_threads", fromThreads},
      {"device/beyond_count:by=1", beyondCount(1)},
      {"device/beyond_count:by=2", beyondCount(2)},
      {"device/beyond_count:by=all", beyondCount(0)},
      {"device/name", names},
      {"device/host_is_copied", hostIsCopied},
      {"device/short_hosts", shortHosts},
      {"device/leaves_the_process_alone", leavesTheProcessAlone},
  };
}

} // namespace candela::conformance::tiers::abi
