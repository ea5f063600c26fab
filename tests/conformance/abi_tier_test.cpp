// The tier `abi` can tell: a plugin that breaks one promise fails the case that asks about it, one
// that keeps them passes all.
#include <gtest/gtest.h>

#include <set>

#include "conformance/port.h"
#include "tests/conformance/run_cases.h"

namespace candela::conformance {
namespace {

/// The addresses that fail, of those that contain `part`.
std::set<std::string> failures(const char* plugin, const char* fault, const std::string& part) {
  setenv("CANDELA_TEST_FAULT", fault, 1);
  Port port(plugin);
  WorkerOptions options;
  options.timeLimitSeconds = 20;
  std::set<std::string> names;
  for (const auto& [name, reason] :
       failuresOf(port, tiers::abi::abiCases({}).orAbort(), part, options))
    names.insert(name);
  return names;
}

struct Fault {
  const char* name;
  const char* shownBy;
};

void expectShown(const char* plugin, const Fault& fault) {
  EXPECT_EQ(failures(plugin, fault.name, fault.shownBy).count(fault.shownBy), 1u)
      << fault.name << " is not shown by " << fault.shownBy;
}

TEST(AbiTier, APluginThatKeepsItsPromisesPasses) {
  EXPECT_EQ(failures(FAULTS_1, "", ""), std::set<std::string>());
  EXPECT_EQ(failures(FAULTS_2, "", ""), std::set<std::string>());
}

TEST(AbiTier, EveryBrokenPromiseIsShownByItsCase) {
  const Fault faults[] = {
      {"table_overrun", "abi:query/table_ends_inside:slot=cancel"},
      {"written_first", "abi:query/other_major:major=1"},
      {"major_ignored", "abi:query/other_major:major=1"},
      {"numbers_unnamed", "abi:query/other_major:major=65535"},
      {"null_taken", "abi:query/null_host"},
      {"option_default", "abi:options/schema"},
      {"value_refused", "abi:options/each_value"},
      {"options_kept", "abi:options/values_are_copied"},
      {"host_overread", "abi:device/short_hosts"},
      {"host_kept", "abi:device/host_is_copied"},
      {"any_index", "abi:device/beyond_count:by=1"},
      {"handle_on_error", "abi:device/beyond_count:by=2"},
      {"rounding_left", "abi:device/leaves_the_process_alone"},
      {"file_left_open", "abi:device/reopened:times=100"},
      {"any_space", "abi:capability/no_other_space"},
      {"space_lies", "abi:capability/every_space_gives_memory"},
      {"capabilities_move", "abi:capability/same_again"},
      {"capabilities_grow", "abi:capability/same_again"},
      {"rows_contradict", "abi:capability/rows_agree"},
      {"row_impossible", "abi:capability/rows_can_be_met"},
      {"unknown_code", "abi:errors/memory_create:buffer=256"},
      {"no_message", "abi:errors/memory_create:buffer=8"},
      {"message_overflow", "abi:errors/memory_create:buffer=1"},
      {"message_endless", "abi:errors/memory_create:buffer=2"},
      {"message_unasked", "abi:errors/memory_create:buffer=null"},
      {"bindings_believed", "abi:bindings/too_small:buffer=output"},
      {"bindings_exact", "abi:bindings/longer"},
      {"bindings_kept", "abi:bindings/gone_after_the_call"},
      {"misaligned_taken", "abi:bindings/misaligned:buffer=input"},
      {"kinds_believed", "abi:images/unknown_kind"},
      {"versions_believed", "abi:images/other_major"},
      {"range_believed", "abi:run/count=4294967295"},
  };
  for (const Fault& fault : faults) expectShown(FAULTS_1, fault);
}

TEST(AbiTier, OfDoorTwoToo) {
  const Fault faults[] = {
      {"late_refusal", "abi:claims/binary_add_f32"},
      {"images_believed", "abi:images/view_beyond_its_buffer"},
      {"refusal_unmeasured", "abi:executable/short_refusals"},
      {"refusal_of_another", "abi:executable/short_refusals"},
      {"constants_kept", "abi:executable/constants_are_copied"},
      {"scratch_changes", "abi:executable/scratch_is_stable"},
      {"support_overrun", "abi:executable/support_is_filled"},
      {"half_a_pair", "abi:table/doors"},
      {"blob_believed", "abi:stored/of_another_image"},
      {"writer_ignored", "abi:stored/writer_fails"},
      {"profile_backwards", "abi:profile/is_sane"},
      {"profile_without_begin", "abi:profile/without_begin"},
      {"cost_changes", "abi:cost/is_pure"},
  };
  for (const Fault& fault : faults) expectShown(FAULTS_2, fault);
}

} // namespace
} // namespace candela::conformance
