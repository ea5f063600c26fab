# The few functions that every CMakeLists.txt here uses.

# What every target of the project is compiled with; never part of an installed interface.
# At -O3 GCC 12 warns of overlapping copies inside of std::string where there are none (PR 105329).
add_library(candela_build_flags INTERFACE)
target_compile_options(candela_build_flags INTERFACE
  -Wall -Wextra $<$<CONFIG:Release>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual> $<$<BOOL:${CANDELA_WERROR}>:-Werror>)
if(CANDELA_SANITIZE)
  target_compile_options(candela_build_flags INTERFACE -fsanitize=${CANDELA_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(candela_build_flags INTERFACE -fsanitize=${CANDELA_SANITIZE})
endif()

# candela_add_room(<name> SOURCES <file>... [DEPS <target>...] [PRIVATE_DEPS <target>...])
# One room of core/: a static library candela_<name>, also Candela::<name>. Includes are spelled from the
# repository's root ("core/graph/graph.h"). DEPS must agree with tests/hygiene/rules.toml.
function(candela_add_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(candela_${name} STATIC ${ROOM_SOURCES})
  add_library(Candela::${name} ALIAS candela_${name})
  target_include_directories(candela_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(candela_${name} PUBLIC ${ROOM_DEPS} PRIVATE ${ROOM_PRIVATE_DEPS} $<BUILD_INTERFACE:candela_build_flags>)
endfunction()
