# Installs all or nothing: before the first file is copied, every program and library that the rules want must be there.
# A build of single targets, as of the tool alone, has not made all of them.

add_library(candela_installed INTERFACE)

# candela_installs(<target>...): these are installed, and have to be built for that.
function(candela_installs)
  foreach(target IN LISTS ARGN)
    set_property(TARGET candela_installed APPEND PROPERTY CANDELA_FILES $<TARGET_FILE:${target}>)
  endforeach()
endfunction()

install(CODE "foreach(file IN ITEMS $<GENEX_EVAL:$<TARGET_PROPERTY:candela_installed,CANDELA_FILES>>)
    if(NOT EXISTS \"\${file}\")
      list(APPEND missing \"\${file}\")
    endif()
  endforeach()
  if(missing)
    list(JOIN missing \"\\n  \" missing)
    message(FATAL_ERROR \"nothing was installed, for these are not built yet:\\n  \${missing}\\nfirst: cmake --build ${PROJECT_BINARY_DIR}\")
  endif()")
