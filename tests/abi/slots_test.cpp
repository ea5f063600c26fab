// The layout of every struct of cdl.h, and the type of every slot, against the frozen ones.
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

// "struct field" → "offset size type"; of a struct itself, field ".": "0 size".
using Slots = std::map<std::string, std::string>;

Slots parse(std::istream& text) {
  Slots slots;
  std::string type, field, place;
  while (text >> type >> field && std::getline(text >> std::ws, place))
    slots[type + " " + field] = place;
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

// What breaks plugins that were built against the frozen layout: a slot that is gone, lies
// elsewhere or has another type, a constant of another value. The size of a struct (field ".") may
// grow, since struct_size and strides say how much of it the other side knows.
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

// One list per version: what it added. The size of a struct is that of the last one that made it
// longer.
const char* const kFrozen[] = {CANDELA_SOURCE_DIR "/backend_api/abi/v0.1.slots",
                               CANDELA_SOURCE_DIR "/backend_api/abi/v0.2.slots",
                               CANDELA_SOURCE_DIR "/backend_api/abi/v0.3.slots",
                               CANDELA_SOURCE_DIR "/backend_api/abi/v0.4.slots"};

TEST(Slots, StandWhereTheyWereFrozen) {
  Slots frozen;
  const Slots now = compiled();
  for (const char* path : kFrozen) {
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    for (const auto& [slot, place] : parse(file)) frozen[slot] = place;
  }
  ASSERT_GT(frozen.size(), 200u);
  for (const std::string& line : broken(frozen, now))
    ADD_FAILURE() << line
                  << "; existing plugins would read the wrong bytes: append instead of changing";
  for (const auto& [slot, place] : now)
    if (slot.find("(constant)") == std::string::npos && // a new kind or code is no slot
        (!frozen.count(slot) || (slot.back() == '.' && frozen.at(slot) != place)))
      ADD_FAILURE() << slot << " " << place
                    << " is new: raise CDL_ABI_MINOR and append its line to "
                    << "backend_api/abi/ as the next version's list";
}

TEST(Slots, NamesMovedRemovedRetypedAndShrunkOnes) {
  const auto change = [](std::string from, std::string to) {
    std::string text = "t . 0 16\nt a 0 8 void (*)(int)\nt b 8 8 void*\nCDL_A (constant) 7 0\n";
    std::istringstream frozen(text);
    text.replace(text.find(from), from.size(), to);
    std::istringstream now(text);
    return broken(parse(frozen), parse(now));
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(change("t a", "t a"), Lines());
  EXPECT_EQ(change("t . 0 16", "t . 0 24"), Lines());
  EXPECT_EQ(change("CDL_A", "t c 16 8 int64_t\nCDL_A"), Lines());
  EXPECT_EQ(change("t a 0 8", "t a 8 8"),
            Lines({"t a: was 0 8 void (*)(int), is 8 8 void (*)(int)"}));
  EXPECT_EQ(change("t b 8 8 void*\n", ""), Lines({"t b: removed"}));
  EXPECT_EQ(change("(int)", "(long)"),
            Lines({"t a: was 0 8 void (*)(int), is 0 8 void (*)(long)"}));
  EXPECT_EQ(change("t . 0 16", "t . 0 12"), Lines({"t .: shrank from 0 16 to 0 12"}));
  EXPECT_EQ(change("(constant) 7", "(constant) 8"), Lines({"CDL_A (constant): was 7 0, is 8 0"}));
}

} // namespace
