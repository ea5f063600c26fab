// The tier `memory`: buffers of the device by the table alone. What is valid must work, what is
// refused must be refused with the documented code and leave the device usable; where cdl.h
// promises nothing (0 bytes, buffers left over at device_close), anything goes but a crash or a
// hang.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "conformance/suite.h"
#include "conformance/tiers/bench.h"
#include "conformance/tiers/memory_import.h"

namespace candela::conformance::tiers {
namespace {

/// Runs the body on the default space, or on every other one in turn.
template <typename Body> Status onSpaces(Bench& bench, const Choice& choice, Body&& body) {
  const auto count = static_cast<uint32_t>(bench.target().spaces().size());
  if (choice.at("space") == "default") return body(0u);
  if (count < 2) return bench.skip("the device declares one memory space");
  for (uint32_t space = 1; space < count; ++space)
    CDL_TRY(body(space).context(fmt::format("space '{}'", bench.target().spaces()[space].name)));
  return Status::ok();
}

bool isLocal(const Bench& bench, uint32_t space) {
  const auto& spaces = bench.target().spaces();
  return space < spaces.size() && (spaces[space].space.flags & CDL_SPACE_LOCAL);
}

uint64_t capacityOf(const Bench& bench, uint32_t space) {
  const auto& spaces = bench.target().spaces();
  return space < spaces.size() ? spaces[space].space.capacity_bytes : 0;
}

// ---- Create and destroy ----

/// Takes bytes, gives them back, lies where it was asked to.
Status create(Bench& bench, const Choice& choice) {
  const uint64_t bytes = numberOf(choice, "bytes");
  return onSpaces(bench, choice, [&](uint32_t space) -> Status {
    if (const uint64_t capacity = capacityOf(bench, space); capacity && capacity < bytes)
      return bench.skip(fmt::format("the space holds {} bytes", capacity));
    const std::string& asked = choice.at("alignment");
    const uint64_t alignment =
        asked == "declared" ? bench.alignment(space) : numberOf(choice, "alignment");
    if (alignment > bench.alignment(space))
      return bench.skip("the space declares a smaller alignment");
    CDL_ASSIGN(cdl_memory_t * memory, bench.create(bytes, space, alignment));
    if (!isLocal(bench, space)) { // a scratchpad is filled by instructions alone
      CDL_ASSIGN(Lane lane, bench.lane());
      const ByteVector content = pattern(bytes, bytes + alignment);
      CDL_TRY(lane.write(memory, 0, content));
      CDL_TRY(lane.expect("what was written", memory, 0, content));
    }
    void* address = nullptr;
    if (bench.table().memory_map &&
        ask(bench.table().memory_map, bench.device(), memory, uint64_t{0}, bytes, &address).code ==
            CDL_OK) {
      if (reinterpret_cast<uintptr_t>(address) % alignment)
        return failure(Code::mismatch, "memory of alignment {} lies at {}", alignment, address);
      CDL_TRY(bench.unmap(memory, address));
    }
    bench.destroy(memory);
    return Status::ok();
  });
}

Status createNothing(Bench& bench, const Choice&) {
  cdl_memory_t* memory = nullptr;
  const Reply reply =
      ask(bench.table().memory_create, bench.device(), 0u, uint64_t{0}, bench.alignment(), &memory);
  if (reply.code == CDL_OK && memory) bench.table().memory_destroy(bench.device(), memory);
  return bench.usable();
}

// ---- Maps ----

constexpr uint64_t kMapped = 3 * kPage + 5;

struct Mappable {
  Lane lane;
  cdl_memory_t* memory;
  ByteVector content;
};
Result<Mappable> mappable(Bench& bench) {
  CDL_ASSIGN(Lane lane, bench.lane());
  ByteVector content = pattern(kMapped, 5);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, content));
  CDL_TRY(lane.sync());
  return Mappable{lane, memory, std::move(content)};
}

Status mapReads(Bench& bench, const Choice&) {
  CDL_ASSIGN(Mappable at, mappable(bench));
  CDL_ASSIGN(std::byte * pointer, bench.map(at.memory, 0, kMapped));
  CDL_TRY(same("the map of what was written", {pointer, kMapped}, at.content));
  return bench.unmap(at.memory, pointer);
}

Status mapWrites(Bench& bench, const Choice&) {
  CDL_ASSIGN(Mappable at, mappable(bench));
  CDL_ASSIGN(std::byte * pointer, bench.map(at.memory, 0, kMapped));
  const ByteVector fresh = pattern(kMapped, 6);
  std::memcpy(pointer, fresh.data(), kMapped);
  CDL_TRY(bench.unmap(at.memory, pointer));
  return at.lane.expect("what was written through the map", at.memory, 0, fresh);
}

Status mapOffset(Bench& bench, const Choice&) {
  CDL_ASSIGN(Mappable at, mappable(bench));
  for (const uint64_t offset : {uint64_t{1}, uint64_t{64}, kPage, kPage + 7}) {
    CDL_ASSIGN(std::byte * pointer, bench.map(at.memory, offset, 100));
    CDL_TRY(same(fmt::format("the map at {}", offset), {pointer, 100},
                 std::span(at.content).subspan(offset, 100)));
    const ByteVector fresh = pattern(100, offset);
    std::memcpy(pointer, fresh.data(), fresh.size());
    std::ranges::copy(fresh, at.content.begin() + static_cast<ptrdiff_t>(offset));
    CDL_TRY(bench.unmap(at.memory, pointer));
  }
  return at.lane.expect("after writes through maps", at.memory, 0, at.content);
}

Status mapAgain(Bench& bench, const Choice&) {
  CDL_ASSIGN(Mappable at, mappable(bench));
  for (int round = 0; round < 20; ++round) {
    CDL_ASSIGN(std::byte * pointer, bench.map(at.memory, 0, kMapped));
    CDL_TRY(same("mapped again", {pointer, kMapped}, at.content));
    at.content[static_cast<size_t>(round)] = pointer[round] = std::byte(200 + round);
    CDL_TRY(bench.unmap(at.memory, pointer));
  }
  return at.lane.expect("after 20 maps", at.memory, 0, at.content);
}

/// The pointer stays valid until unmap: work of the queue is seen through it.
Status mapStays(Bench& bench, const Choice&) {
  CDL_ASSIGN(Mappable at, mappable(bench));
  CDL_ASSIGN(std::byte * pointer, bench.map(at.memory, 0, kMapped));
  const ByteVector fresh = pattern(kMapped, 8);
  CDL_TRY(at.lane.write(at.memory, 0, fresh));
  CDL_TRY(at.lane.sync());
  CDL_TRY(same("a write of the queue, seen through a map", {pointer, kMapped}, fresh));
  return bench.unmap(at.memory, pointer);
}

Status mapMany(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  std::vector<std::pair<cdl_memory_t*, std::byte*>> maps;
  for (uint64_t i = 0; i < 32; ++i) {
    CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, pattern(kPage, i)));
    CDL_TRY(lane.sync());
    CDL_ASSIGN(std::byte * pointer, bench.map(memory, 0, kPage));
    maps.emplace_back(memory, pointer);
  }
  for (uint64_t i = 0; i < maps.size(); ++i) {
    CDL_TRY(same(fmt::format("map {}", i), {maps[i].second, kPage}, pattern(kPage, i)));
    CDL_TRY(bench.unmap(maps[i].first, maps[i].second));
  }
  return Status::ok();
}

// ---- Guards: a transfer touches its own bytes alone ----

constexpr uint64_t kGuarded = 3 * kPage;

Status guardWrite(Bench& bench, const Choice& choice) {
  const uint64_t offset = numberOf(choice, "offset"), bytes = numberOf(choice, "bytes");
  CDL_ASSIGN(Lane lane, bench.lane());
  ByteVector whole = pattern(kGuarded, 1);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, whole));
  const ByteVector part = pattern(bytes, 2);
  CDL_TRY(lane.write(memory, offset, part));
  std::ranges::copy(part, whole.begin() + static_cast<ptrdiff_t>(offset));
  return lane.expect("a buffer of which a part was written", memory, 0, whole);
}

Status guardRead(Bench& bench, const Choice& choice) {
  const uint64_t offset = numberOf(choice, "offset"), bytes = numberOf(choice, "bytes");
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector whole = pattern(kGuarded, 3);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, whole));
  constexpr uint64_t kBand = 256;
  ByteVector host = pattern(bytes + 2 * kBand, 4), expected = host;
  std::copy_n(whole.begin() + static_cast<ptrdiff_t>(offset), bytes, expected.begin() + kBand);
  CDL_TRY(valid("queue_read", ask(bench.table().queue_read, lane.handle(), memory, offset,
                                  static_cast<void*>(host.data() + kBand), bytes)));
  CDL_TRY(same("the host's memory around a read", host, expected));
  return lane.expect("a buffer that was read", memory, 0, whole);
}

Status guardCopy(Bench& bench, const Choice& choice) {
  const uint64_t offset = numberOf(choice, "offset"), bytes = numberOf(choice, "bytes");
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector source = pattern(kGuarded, 5);
  ByteVector whole = pattern(kGuarded, 6);
  CDL_ASSIGN(cdl_memory_t * from, bench.createWith(lane, source));
  CDL_ASSIGN(cdl_memory_t * to, bench.createWith(lane, whole));
  constexpr uint64_t kFrom = 129;
  CDL_TRY(lane.copy(to, offset, from, kFrom, bytes));
  std::copy_n(source.begin() + kFrom, bytes, whole.begin() + static_cast<ptrdiff_t>(offset));
  CDL_TRY(lane.expect("a buffer of which a part was copied over", to, 0, whole));
  return lane.expect("the buffer that was copied from", from, 0, source);
}

// ---- Copies inside one buffer ----

/// What parts that overlap hold then is unpredictable, and so is the answer; all other bytes stay.
Status copyWithin(Bench& bench, uint64_t to, uint64_t from, uint64_t bytes) {
  CDL_ASSIGN(Lane lane, bench.lane());
  ByteVector whole = pattern(kGuarded, 7);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, whole));
  const Reply reply = ask(bench.table().queue_copy, lane.handle(), memory, to, memory, from, bytes);
  const uint64_t low = std::min(to, from), high = std::max(to, from);
  if (high - low >= bytes) {
    CDL_TRY(valid("queue_copy inside one buffer", reply));
    std::memcpy(whole.data() + to, whole.data() + from, bytes);
    return lane.expect("a buffer copied inside itself", memory, 0, whole);
  }
  CDL_TRY(lane.sync());
  const std::span<const std::byte> all(whole);
  CDL_TRY(lane.expect("the bytes before parts that overlap", memory, 0, all.first(low)));
  return lane.expect("the bytes behind parts that overlap", memory, high + bytes,
                     all.subspan(high + bytes));
}
Status copyApart(Bench& bench, const Choice&) { return copyWithin(bench, 2 * kPage, 100, 1000); }
Status copyTouching(Bench& bench, const Choice&) { return copyWithin(bench, 1000, 0, 1000); }
Status copyUp(Bench& bench, const Choice&) { return copyWithin(bench, 100, 93, kPage); }
Status copyDown(Bench& bench, const Choice&) { return copyWithin(bench, 93, 100, kPage); }
Status copyOnto(Bench& bench, const Choice&) { return copyWithin(bench, 50, 50, kPage); }

// ---- Many buffers ----

struct Many {
  Lane lane;
  std::vector<cdl_memory_t*> memory;
};
constexpr uint64_t kMany = 100;
uint64_t sizeOf(uint64_t i) { return 1 + i * 97; }

Result<Many> many(Bench& bench) {
  CDL_ASSIGN(Lane lane, bench.lane());
  Many made{lane, {}};
  for (uint64_t i = 0; i < kMany; ++i) {
    CDL_ASSIGN(made.memory.emplace_back(), bench.create(sizeOf(i)));
  }
  for (uint64_t i = 0; i < kMany; ++i)
    CDL_TRY(made.lane.write(made.memory[i], 0, pattern(sizeOf(i), i)));
  CDL_TRY(made.lane.sync());
  return made;
}
Status expectMany(Many& made, uint64_t step) {
  for (uint64_t i = 0; i < kMany; i += step)
    CDL_TRY(made.lane.expect(fmt::format("buffer {} of {}", i, kMany), made.memory[i], 0,
                             pattern(sizeOf(i), i)));
  return Status::ok();
}

Status manyDistinct(Bench& bench, const Choice&) {
  CDL_ASSIGN(Many made, many(bench));
  return expectMany(made, 1);
}

Status manySurviveOthers(Bench& bench, const Choice&) {
  CDL_ASSIGN(Many made, many(bench));
  for (uint64_t round = 0; round < 50; ++round) {
    CDL_ASSIGN(cdl_memory_t * other,
               bench.createWith(made.lane, pattern(kPage * (1 + round % 7), round)));
    CDL_TRY(made.lane.sync());
    if (round % 3) bench.destroy(other);
  }
  return expectMany(made, 1);
}

Status manyDestroyedBetween(Bench& bench, const Choice&) {
  CDL_ASSIGN(Many made, many(bench));
  for (uint64_t i = 0; i < kMany; ++i)
    if (i % 2) bench.destroy(made.memory[i]);
  CDL_TRY(expectMany(made, 2));
  for (uint64_t i = 1; i < kMany; i += 2) {
    CDL_ASSIGN(made.memory[i], bench.createWith(made.lane, pattern(sizeOf(i), i)));
  }
  return expectMany(made, 1);
}

Status manyBackwards(Bench& bench, const Choice&) {
  CDL_ASSIGN(Many made, many(bench));
  while (made.memory.size() > 1) {
    bench.destroy(made.memory.back());
    made.memory.pop_back();
    const uint64_t last = made.memory.size() - 1;
    CDL_TRY(
        made.lane.expect("the last one left", made.memory.back(), 0, pattern(sizeOf(last), last)));
  }
  return Status::ok();
}

// ---- Parts of buffers as bindings ----

/// x and y in one buffer, at multiples of the alignment, with bytes between and around them.
Status partsOfOne(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 1000));
  CDL_ASSIGN(Lane lane, bench.lane());
  const uint64_t step = (1000 / bench.alignment() + 2) * bench.alignment();
  ByteVector whole = pattern(4 * step, 9);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, whole));
  CDL_TRY(echo->submit(lane, memory, memory, 2 * step, step));
  CDL_TRY(lane.sync());
  std::copy_n(whole.begin() + static_cast<ptrdiff_t>(step), 1000,
              whole.begin() + static_cast<ptrdiff_t>(2 * step));
  return lane.expect("a buffer with x and y in it", memory, 0, whole);
}

Status partsOfSeveral(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 333));
  CDL_ASSIGN(Lane lane, bench.lane());
  const uint64_t alignment = bench.alignment();
  const ByteVector source = pattern(333 + 5 * alignment, 10);
  CDL_ASSIGN(cdl_memory_t * x, bench.createWith(lane, source));
  for (uint64_t at = 0; at < 5; ++at) {
    ByteVector whole = pattern(333 + 7 * alignment, at);
    CDL_ASSIGN(cdl_memory_t * y, bench.createWith(lane, whole));
    CDL_TRY(echo->submit(lane, y, x, (6 - at) * alignment, at * alignment));
    CDL_TRY(lane.sync());
    std::copy_n(source.begin() + static_cast<ptrdiff_t>(at * alignment), 333,
                whole.begin() + static_cast<ptrdiff_t>((6 - at) * alignment));
    CDL_TRY(lane.expect(fmt::format("y at {}", (6 - at) * alignment), y, 0, whole));
  }
  return lane.expect("what x lies in", x, 0, source);
}

// ---- What must be refused ----

Status refuseCreate(Bench& bench, uint32_t space, uint64_t bytes, uint64_t alignment,
                    cdl_code_t code) {
  cdl_memory_t* memory = nullptr;
  const Reply reply =
      ask(bench.table().memory_create, bench.device(), space, bytes, alignment, &memory);
  if (reply.code == CDL_OK && memory) bench.table().memory_destroy(bench.device(), memory);
  CDL_TRY(refused(
      fmt::format("memory_create of {} bytes, alignment {}, in space {}", bytes, alignment, space),
      code, reply));
  return bench.usable();
}

Status badSpace(Bench& bench, const Choice&) {
  const auto count = static_cast<uint32_t>(std::max<size_t>(bench.target().spaces().size(), 1));
  CDL_TRY(refuseCreate(bench, count, 64, 1, CDL_INVALID_ARGUMENT));
  return refuseCreate(bench, UINT32_MAX, 64, 1, CDL_INVALID_ARGUMENT);
}
Status badAlignment(Bench& bench, const Choice&) {
  for (const uint64_t alignment : {uint64_t{0}, uint64_t{3}, uint64_t{48}, UINT64_MAX})
    CDL_TRY(refuseCreate(bench, 0, 64, alignment, CDL_INVALID_ARGUMENT));
  return Status::ok();
}

/// Parts that a buffer of 4096 bytes does not have, to the last of which a sum overflows.
constexpr std::pair<uint64_t, uint64_t> kOutside[] = {{kPage, 1},           {0, kPage + 1},
                                                      {kPage - 8, 9},       {UINT64_MAX, 2},
                                                      {UINT64_MAX - 7, 16}, {1, UINT64_MAX}};

/// `call` is asked for each of them; the buffer stays as it was.
template <typename Call> Status refuseOutside(Bench& bench, std::string_view who, Call&& call) {
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector whole = pattern(kPage, 11);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, whole));
  CDL_TRY(lane.sync());
  for (const auto& [offset, bytes] : kOutside) {
    CDL_TRY(refused(fmt::format("{} of {} bytes at {} of {}", who, bytes, offset, kPage),
                    CDL_INVALID_ARGUMENT, call(lane, memory, offset, bytes)));
    CDL_TRY(lane.expect("the buffer after a refusal", memory, 0, whole));
  }
  return bench.usable();
}

Status outsideWrite(Bench& bench, const Choice&) {
  const ByteVector host = pattern(2 * kPage, 12);
  return refuseOutside(bench, "queue_write",
                       [&](Lane& lane, cdl_memory_t* memory, uint64_t offset, uint64_t bytes) {
                         return ask(bench.table().queue_write, lane.handle(), memory, offset,
                                    static_cast<const void*>(host.data()), bytes);
                       });
}
Status outsideRead(Bench& bench, const Choice&) {
  ByteVector host(2 * kPage);
  return refuseOutside(bench, "queue_read",
                       [&](Lane& lane, cdl_memory_t* memory, uint64_t offset, uint64_t bytes) {
                         return ask(bench.table().queue_read, lane.handle(), memory, offset,
                                    static_cast<void*>(host.data()), bytes);
                       });
}
Status outsideCopyTo(Bench& bench, const Choice&) {
  CDL_ASSIGN(cdl_memory_t * other, bench.create(2 * kPage));
  return refuseOutside(bench, "queue_copy to",
                       [&](Lane& lane, cdl_memory_t* memory, uint64_t offset, uint64_t bytes) {
                         return ask(bench.table().queue_copy, lane.handle(), memory, offset, other,
                                    uint64_t{0}, bytes);
                       });
}
Status outsideCopyFrom(Bench& bench, const Choice&) {
  CDL_ASSIGN(cdl_memory_t * other, bench.create(2 * kPage));
  return refuseOutside(bench, "queue_copy from",
                       [&](Lane& lane, cdl_memory_t* memory, uint64_t offset, uint64_t bytes) {
                         return ask(bench.table().queue_copy, lane.handle(), other, uint64_t{0},
                                    memory, offset, bytes);
                       });
}
Status outsideMap(Bench& bench, const Choice&) {
  if (!bench.table().memory_map) return bench.skip("memory cannot be mapped");
  CDL_ASSIGN(cdl_memory_t * first, bench.create(kPage));
  CDL_ASSIGN(std::byte * pointer, bench.map(first, 0, kPage));
  CDL_TRY(bench.unmap(first, pointer));
  return refuseOutside(
      bench, "memory_map", [&](Lane&, cdl_memory_t* memory, uint64_t offset, uint64_t bytes) {
        void* nowhere = nullptr;
        return ask(bench.table().memory_map, bench.device(), memory, offset, bytes, &nowhere);
      });
}

// ---- Out of memory ----

Status noSuchMachine(Bench& bench, const Choice& choice) {
  return onSpaces(bench, choice, [&](uint32_t space) -> Status {
    for (const uint64_t bytes :
         {uint64_t{1} << 62, uint64_t{INT64_MAX}, UINT64_MAX - 4096, UINT64_MAX})
      CDL_TRY(refuseCreate(bench, space, bytes, bench.alignment(space), CDL_OUT_OF_MEMORY));
    return Status::ok();
  });
}

Status beyondCapacity(Bench& bench, const Choice& choice) {
  return onSpaces(bench, choice, [&](uint32_t space) -> Status {
    const uint64_t capacity = capacityOf(bench, space);
    if (!capacity) return bench.skip("the space has no limit");
    return refuseCreate(bench, space, capacity + bench.alignment(space), bench.alignment(space),
                        CDL_OUT_OF_MEMORY);
  });
}

/// Taken in parts, a space ends too; given back, it is there again.
Status exhaust(Bench& bench, const Choice& choice) {
  return onSpaces(bench, choice, [&](uint32_t space) -> Status {
    const uint64_t capacity = capacityOf(bench, space);
    if (!capacity || capacity > uint64_t{1} << 32)
      return bench.skip("the space has no limit, or one out of reach");
    const uint64_t part = std::max<uint64_t>(capacity / 8, 1);
    for (int round = 0; round < 2; ++round) {
      std::vector<cdl_memory_t*> taken;
      Reply last;
      while (last.code == CDL_OK && taken.size() < 16) {
        cdl_memory_t* memory = nullptr;
        last = ask(bench.table().memory_create, bench.device(), space, part, bench.alignment(space),
                   &memory);
        if (last.code == CDL_OK) taken.push_back(memory);
      }
      for (cdl_memory_t* memory : taken) bench.table().memory_destroy(bench.device(), memory);
      CDL_TRY(refused(fmt::format("more than the {} bytes of the space", capacity),
                      CDL_OUT_OF_MEMORY, last));
      if (taken.empty())
        return failure(Code::mismatch, "not even {} of {} bytes can be had", part, capacity);
    }
    return space ? Status::ok() : bench.usable();
  });
}

// ---- Leaks ----

struct Footprint {
  uint64_t addresses = 0, resident = 0, heap = 0; ///< bytes

  static Footprint now() {
    Footprint print;
    // what malloc keeps for later is no leak: before 2.38, glibc never gives small aligned blocks
    // again
    malloc_trim(0);
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
      unsigned long long pages[2] = {0, 0};
      if (std::fscanf(file, "%llu %llu", &pages[0], &pages[1]) == 2) {
        const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
        print.addresses = pages[0] * page;
        print.resident = pages[1] * page;
      }
      std::fclose(file);
    }
    const struct mallinfo2 heap = mallinfo2();
    print.heap = heap.uordblks + heap.hblkhd;
    return print;
  }
};

/// Runs the body so many times to warm up, then as often again: the process must not grow by more
/// than `margin` bytes meanwhile, and its address space not by more than `addresses`.
template <typename Body>
Status noGrowth(uint64_t rounds, uint64_t margin, Body&& body,
                uint64_t addresses = uint64_t{1} << 30) {
  for (uint64_t i = 0; i < rounds; ++i) CDL_TRY(body(i));
  const Footprint before = Footprint::now();
  for (uint64_t i = 0; i < rounds; ++i) CDL_TRY(body(i));
  const Footprint after = Footprint::now();
  const auto grown = [&](const char* what, uint64_t from, uint64_t to, uint64_t most) {
    if (to <= from + most) return Status::ok();
    return failure(Code::mismatch, "leak: {} grew by {} bytes in {} rounds", what, to - from,
                   rounds);
  };
  // Pages of code that are touched late count as resident too.
  CDL_TRY(grown("the resident memory", before.resident, after.resident,
                std::max(margin, uint64_t{1} << 20)));
  CDL_TRY(grown("the heap", before.heap, after.heap, margin));
  return grown("the address space", before.addresses, after.addresses, addresses);
}

constexpr uint64_t kMegabyte = uint64_t{1} << 20;

/// 100 MB in all, each page touched.
Status leakTouched(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector content = pattern(256 << 10, 13);
  return noGrowth(400, 16 * kMegabyte, [&](uint64_t) -> Status {
    CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, content));
    CDL_TRY(lane.sync());
    bench.destroy(memory);
    return Status::ok();
  });
}

/// 4 GB in all, or eight times what the space holds, not touched.
Status leakLarge(Bench& bench, const Choice&) {
  uint64_t bytes = 16 * kMegabyte;
  if (const uint64_t capacity = capacityOf(bench, 0))
    bytes = std::min(bytes, std::max<uint64_t>(capacity / 4, 1));
  return noGrowth(
      256, 16 * kMegabyte,
      [&](uint64_t) -> Status {
        CDL_ASSIGN(cdl_memory_t * memory, bench.create(bytes));
        bench.destroy(memory);
        return Status::ok();
      },
      256 * kMegabyte);
}

Status leakSmall(Bench& bench, const Choice&) {
  return noGrowth(20000, kMegabyte, [&](uint64_t) -> Status {
    CDL_ASSIGN(cdl_memory_t * memory, bench.create(1));
    bench.destroy(memory);
    return Status::ok();
  });
}

Status leakQueues(Bench& bench, const Choice&) {
  return noGrowth(1000, kMegabyte / 8, [&](uint64_t) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_TRY(lane.sync());
    bench.destroy(lane);
    return Status::ok();
  });
}

Status leakMaps(Bench& bench, const Choice&) {
  CDL_ASSIGN(cdl_memory_t * memory, bench.create(64 << 10));
  return noGrowth(5000, kMegabyte, [&](uint64_t) -> Status {
    CDL_ASSIGN(std::byte * pointer, bench.map(memory, 0, 64 << 10));
    return bench.unmap(memory, pointer);
  });
}

Status leakErrors(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * memory, bench.create(64));
  std::byte byte{};
  return noGrowth(5000, kMegabyte / 4, [&](uint64_t) {
    const Reply reply = ask(bench.table().queue_read, lane.handle(), memory, uint64_t{64},
                            static_cast<void*>(&byte), uint64_t{1});
    return refused("a read behind the end", CDL_INVALID_ARGUMENT, reply);
  });
}

Status leakRuns(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 256));
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * x, bench.createWith(lane, pattern(256, 14)));
  CDL_ASSIGN(cdl_memory_t * y, bench.create(256));
  return noGrowth(3000, kMegabyte / 4, [&](uint64_t) -> Status {
    CDL_TRY(echo->submit(lane, y, x));
    return lane.sync();
  });
}

Status leakExecutables(Bench& bench, const Choice&) {
  if (!bench.compiles()) return bench.skip("the device compiles no programs");
  return noGrowth(
      24, 4 * kMegabyte, [&](uint64_t) { return Echo::make(bench, 256).status(); }, 64 * kMegabyte);
}

Status leakDevices(Bench& bench, const Choice&) {
  return noGrowth(40, 4 * kMegabyte, [&](uint64_t) { return bench.another().status(); });
}

// ---- Devices ----

Status twoDevices(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto second, bench.another());
  Bench other(bench.plugin(), second);
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(Lane otherLane, other.lane());
  const ByteVector content = pattern(kPage, 15), otherContent = pattern(kPage, 16);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, content));
  CDL_ASSIGN(cdl_memory_t * otherMemory, other.createWith(otherLane, otherContent));
  CDL_TRY(lane.expect("the first device's buffer", memory, 0, content));
  return otherLane.expect("the second device's buffer", otherMemory, 0, otherContent);
}

/// The host promises to destroy all objects first; where it did not, other devices must not suffer.
Status leftOver(Bench& bench, const Choice&) {
  {
    CDL_ASSIGN(const auto closing, bench.another());
    cdl_memory_t* memory = nullptr;
    CDL_TRY(valid("memory_create", ask(bench.table().memory_create, closing->handle(), 0u,
                                       uint64_t{kPage}, bench.alignment(), &memory)));
  }
  return bench.usable();
}

using ProbeFamilies = std::vector<std::pair<Probes, Budget>>;

const Axis& spaceAxis() {
  static const Axis axis{"space", {"default", "others"}};
  return axis;
}

/// Memory that is used as it is meant to be.
ProbeFamilies useFamilies() {
  return {
      {{"memory:",
        {{"create", create}},
        {spaceAxis(),
         {"bytes", {"1", "3", "4096", "1000003", "16777216"}},
         {"alignment", {"1", "16", "declared"}}}},
       {1, 16}},
      {{"memory:create/", {{"no_bytes", createNothing}}}, {0, 1}},
      {{"memory:map/",
        {{"reads", mapReads},
         {"writes", mapWrites},
         {"offset", mapOffset},
         {"again", mapAgain},
         {"stays", mapStays},
         {"many", mapMany}}},
       {0, 6}},
      {{"memory:guard/",
        {{"write", guardWrite}, {"read", guardRead}, {"copy", guardCopy}},
        {{"offset", {"0", "1", "4095"}}, {"bytes", {"1", "17", "4096"}}}},
       {0, 12}},
      {{"memory:copy/",
        {{"apart", copyApart},
         {"touching", copyTouching},
         {"up", copyUp},
         {"down", copyDown},
         {"onto", copyOnto}}},
       {0, 5}},
      {{"memory:many/",
        {{"distinct", manyDistinct},
         {"survive_others", manySurviveOthers},
         {"destroyed_between", manyDestroyedBetween},
         {"backwards", manyBackwards}}},
       {0, 4}},
      {{"memory:parts/", {{"of_one", partsOfOne}, {"of_several", partsOfSeveral}}}, {0, 2}},
  };
}

/// Memory that is asked for too much, never freed, or left to another device.
ProbeFamilies limitFamilies() {
  return {
      {{"memory:refused/",
        {{"space", badSpace},
         {"alignment", badAlignment},
         {"write", outsideWrite},
         {"read", outsideRead},
         {"copy_to", outsideCopyTo},
         {"copy_from", outsideCopyFrom},
         {"map", outsideMap}}},
       {0, 7}},
      {{"memory:out_of_memory/",
        {{"no_such_machine", noSuchMachine}, {"capacity", beyondCapacity}, {"exhaust", exhaust}},
        {spaceAxis()},
        true},
       {0, 6}},
      {{"memory:leak/",
        {{"touched", leakTouched},
         {"large", leakLarge},
         {"small", leakSmall},
         {"queues", leakQueues},
         {"maps", leakMaps},
         {"errors", leakErrors},
         {"runs", leakRuns},
         {"executables", leakExecutables},
         {"devices", leakDevices}}},
       {0, 9}},
      {{"memory:device/", {{"two", twoDevices}, {"left_over", leftOver}}}, {0, 2}},
  };
}

} // namespace

Result<std::vector<Case>> memoryCases(const Selection& selection) {
  std::vector<Case> all;
  for (const ProbeFamilies& families : {useFamilies(), limitFamilies()})
    for (const auto& [probes, budget] : families)
      for (Case& one : expand(probes, selection, budget)) all.push_back(std::move(one));
  for (Case& one : memoryImportCases(selection)) all.push_back(std::move(one));
  return all;
}

} // namespace candela::conformance::tiers
