# The few functions that every CMakeLists.txt here uses.

# What every target of the project is compiled with; never part of an installed interface.
# At -O3 GCC 12 warns of overlapping copies inside of std::string where there are none (PR 105329).
add_library(candela_build_flags INTERFACE)
target_compile_options(candela_build_flags INTERFACE
  -Wall -Wextra $<$<CONFIG:Release>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual> $<$<BOOL:${CANDELA_WERROR}>:-Werror>)
if(CANDELA_SANITIZE)
  target_compile_options(candela_build_flags INTERFACE -fsanitize=${CANDELA_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  if(CANDELA_SANITIZE_FAST) # with GCC 12 two fifths of the time to compile; what AddressSanitizer sees too is left to it
    target_compile_options(candela_build_flags INTERFACE -O0 -fno-sanitize=null,alignment,object-size,vptr)
  else() # Rooms at -O1: optimizing the checks costs more time than it saves. Tests and their plugins run too little even for that.
    target_compile_options(candela_build_flags INTERFACE
      $<IF:$<IN_LIST:$<TARGET_PROPERTY:TYPE>,STATIC_LIBRARY$<SEMICOLON>OBJECT_LIBRARY>,-O1,-O0>)
  endif()
  target_link_options(candela_build_flags INTERFACE -fsanitize=${CANDELA_SANITIZE})
else()
  # Programs hold little that runs long: the command takes a quarter less time to compile at -O1, a test two fifths at -O0.
  set(optimization $<IF:$<BOOL:$<TARGET_PROPERTY:CANDELA_IS_TEST>>,-O0,-O1>)
  target_compile_options(candela_build_flags INTERFACE
    $<$<AND:$<CONFIG:RelWithDebInfo>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:${optimization}>)
endif()

# Headers of the standard library, fmt and GoogleTest, parsed once for each group of targets: a quarter of the time of a
# build from nothing. Off for whoever edits: a source that leans on it builds here alone.
option(CANDELA_PCH "Precompile the headers of others" OFF)
if(CANDELA_PCH)
  if(CANDELA_CCACHE) # which asks for these before it keeps what was compiled so
    foreach(language IN ITEMS C CXX)
      set(CMAKE_${language}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CANDELA_CCACHE})
    endforeach()
    target_compile_options(candela_build_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  endif()
  # GCC 12 warns of std::string and std::optional where it warns of nothing without precompiled headers.
  target_compile_options(candela_build_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=array-bounds
    -Wno-error=restrict -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=maybe-uninitialized>)
  find_package(fmt REQUIRED)
  set(headers <algorithm> <bit> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map>
    <memory> <numeric> <optional> <random> <ranges> <set> <span> <string> <string_view> <thread> <unordered_map> <variant>
    <vector> <fmt/format.h> <fmt/ranges.h>)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
  add_library(candela_precompiled_rooms OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  add_executable(candela_precompiled_programs ${PROJECT_BINARY_DIR}/precompiled.cpp)
  set(groups rooms programs)
  if(CANDELA_WITH_TESTS)
    find_package(GTest REQUIRED)
    add_executable(candela_precompiled_tests ${PROJECT_BINARY_DIR}/precompiled.cpp)
    set_target_properties(candela_precompiled_tests PROPERTIES CANDELA_IS_TEST ON)
    target_link_libraries(candela_precompiled_tests PRIVATE GTest::gmock GTest::gtest)
    target_precompile_headers(candela_precompiled_tests PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    list(APPEND groups tests)
  endif()
  foreach(group IN LISTS groups)
    target_link_libraries(candela_precompiled_${group} PRIVATE fmt::fmt candela_build_flags)
    target_precompile_headers(candela_precompiled_${group} PRIVATE ${headers})
  endforeach()
endif()

# candela_precompile(<target> rooms|programs|tests): it reads those headers, if that is wanted.
function(candela_precompile target group)
  if(CANDELA_PCH)
    target_precompile_headers(${target} REUSE_FROM candela_precompiled_${group})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:fmt::fmt>) # its definitions are those of the headers
  endif()
endfunction()

# A room's sources compiled sixteen at once, which again saves half of a build from nothing. Off for whoever edits: one change
# compiles sixteen files.
option(CANDELA_UNITY "Compile the sources of a room in batches" OFF)

# candela_batch(<target> [LOCAL <name>...]): if that is wanted. LOCAL: names that several sources use for different things, each
# for itself, and no header does: each source has its own of them in a batch too.
function(candela_batch target)
  cmake_parse_arguments(BATCH "" "" "LOCAL" ${ARGN})
  if(NOT CANDELA_UNITY)
    return()
  endif()
  set(before "#define CANDELA_BATCH_JOIN_(a, b) a##_##b\n#define CANDELA_BATCH_JOIN(a, b) CANDELA_BATCH_JOIN_(a, b)\n")
  set(after "#undef CANDELA_BATCH_JOIN_\n#undef CANDELA_BATCH_JOIN\n")
  foreach(local IN LISTS BATCH_LOCAL)
    string(APPEND before "#define ${local} CANDELA_BATCH_JOIN(${local}, CANDELA_BATCH_ID)\n")
    string(APPEND after "#undef ${local}\n")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  if(BATCH_LOCAL)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_UNIQUE_ID CANDELA_BATCH_ID
      UNITY_BUILD_CODE_BEFORE_INCLUDE "${before}" UNITY_BUILD_CODE_AFTER_INCLUDE "${after}")
  endif()
endfunction()

# candela_add_room(<name> [SEPARATE] SOURCES <file>... [LOCAL <name>...] [DEPS <target>...] [PRIVATE_DEPS <target>...])
# One room of core/ or conformance/: a static library candela_<name>, also Candela::<name>. Includes are spelled from
# the repository's root ("core/support/status.h"). DEPS must agree with tests/hygiene/rules.toml. SEPARATE: its sources are compiled
# one by one. LOCAL: as of candela_batch.
function(candela_add_room name)
  cmake_parse_arguments(ROOM "SEPARATE" "" "SOURCES;LOCAL;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(candela_${name} STATIC ${ROOM_SOURCES})
  add_library(Candela::${name} ALIAS candela_${name})
  target_include_directories(candela_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(candela_${name} PUBLIC ${ROOM_DEPS} PRIVATE ${ROOM_PRIVATE_DEPS} $<BUILD_INTERFACE:candela_build_flags>)
  candela_precompile(candela_${name} rooms)
  if(NOT ROOM_SEPARATE)
    candela_batch(candela_${name} LOCAL ${ROOM_LOCAL})
  endif()
endfunction()
