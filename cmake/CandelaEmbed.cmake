# Text files that a program carries within itself: styles, scripts and templates stay files that editors know.

# candela_text(<variable> <file>): a string literal of C++ that holds the file's text. CMake runs anew when the file changes.
function(candela_text variable file)
  file(READ ${file} text)
  string(LENGTH "${text}" length)
  string(FIND "${text}" ")__\"" end)
  if(length GREATER 65536) # what the standard wants of a compiler
    message(FATAL_ERROR "${file}: ${length} bytes, and a string literal holds 65536")
  elseif(NOT end EQUAL -1)
    message(FATAL_ERROR "${file}: )__\" would end the string literal")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  set(${variable} "R\"__(${text})__\"" PARENT_SCOPE)
endfunction()

# candela_embed(<target> HEADER <header> TEXTS <constant> <file> [<constant> <file>]...)
# Defines the constants, with their namespaces, that the header declares as `extern const std::string_view`.
function(candela_embed target)
  cmake_parse_arguments(EMBED "" "HEADER" "TEXTS" ${ARGN})
  set(source "#include \"${EMBED_HEADER}\"\n")
  while(EMBED_TEXTS)
    list(POP_FRONT EMBED_TEXTS constant file)
    candela_text(literal ${file})
    string(APPEND source "\nconstinit const std::string_view ${constant} = ${literal};\n")
  endwhile()
  cmake_path(GET EMBED_HEADER STEM name)
  candela_write_source(${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp "${source}")
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
endfunction()

# candela_write_source(<file> <text>): writes what differs alone, so that the rest is not compiled anew.
function(candela_write_source file text)
  file(WRITE ${file}.new "${text}")
  file(COPY_FILE ${file}.new ${file} ONLY_IF_DIFFERENT)
  set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
