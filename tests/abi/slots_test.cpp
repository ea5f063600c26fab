// The layout of every struct of cdl.h against the frozen one.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <vector>

extern "C" void cdl_test_print_slots(FILE* to);

namespace {

// "struct field" → "offset size".
using Slots = std::map<std::string, std::string>;

Slots parse(std::istream& text) {
  Slots slots;
  std::string type, field, offset, size;
  while (text >> type >> field >> offset >> size) slots[type + " " + field] = offset + " " + size;
  return slots;
}

Slots compiled() {
  char* data = nullptr;
  size_t size = 0;
  FILE* to = open_memstream(&data, &size);
  cdl_test_print_slots(to);
  std::fclose(to);
  std::istringstream text(std::string(data, size));
  std::free(data);
  return parse(text);
}

// What breaks plugins that were built against the frozen layout: a slot that is gone or lies
// elsewhere. The size of a struct (field ".") may grow, since struct_size and strides say how much
// of it the other side knows.
std::vector<std::string> broken(const Slots& frozen, const Slots& now) {
  std::vector<std::string> lines;
  for (const auto& [slot, place] : frozen) {
    auto found = now.find(slot);
    const bool grows = slot.back() == '.';
    if (found == now.end())
      lines.push_back(slot + ": removed");
    else if (found->second != place && !grows)
      lines.push_back(slot + ": was " + place + ", is " + found->second);
    else if (grows && std::stoul(found->second.substr(2)) < std::stoul(place.substr(2)))
      lines.push_back(slot + ": shrank from " + place + " to " + found->second);
  }
  return lines;
}

const char* const kFrozen = CANDELA_SOURCE_DIR "/backend_api/abi/v0.1.slots";

TEST(Slots, StandWhereTheyWereFrozen) {
  std::ifstream file(kFrozen);
  ASSERT_TRUE(file) << kFrozen;
  const Slots frozen = parse(file), now = compiled();
  ASSERT_GT(frozen.size(), 200u);
  for (const std::string& line : broken(frozen, now))
    ADD_FAILURE() << line << "; existing plugins would read the wrong bytes: append instead of changing";
  for (const auto& [slot, place] : now)
    if (!frozen.count(slot) || (slot.back() == '.' && frozen.at(slot) != place))
      ADD_FAILURE() << slot << " " << place << " is new: raise CDL_ABI_MINOR, add it to tests/abi/slots.inc and append "
                    << "its line to backend_api/abi/ as the next version's list";
}

TEST(Slots, NoticesMovedRemovedAndShrunkOnes) {
  const Slots frozen = {{"t .", "0 16"}, {"t a", "0 8"}, {"t b", "8 8"}};
  EXPECT_TRUE(broken(frozen, frozen).empty());
  EXPECT_TRUE(broken(frozen, {{"t .", "0 24"}, {"t a", "0 8"}, {"t b", "8 8"}, {"t c", "16 8"}}).empty());
  EXPECT_EQ(broken(frozen, {{"t .", "0 16"}, {"t a", "8 8"}, {"t b", "0 8"}}).size(), 2u);
  EXPECT_EQ(broken(frozen, {{"t .", "0 16"}, {"t a", "0 8"}}).size(), 1u);
  EXPECT_EQ(broken(frozen, {{"t .", "0 12"}, {"t a", "0 8"}, {"t b", "8 8"}}).size(), 1u);
}

} // namespace
