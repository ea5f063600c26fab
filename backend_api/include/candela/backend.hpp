// The comfort layer over cdl.h: header-only C++17, the only include of a backend.
//
//   class Acme : public cdl::PrimitiveBackend { ... };   // or cdl::ProgramBackend
//   CDL_BACKEND(Acme)                                    // exports cdl_backend_query, nothing else
//
// Nothing that a backend throws passes the interface. With -DCDL_BACKEND_STATIC=acme the entry is
// acme_backend_query instead, so that several backends can be linked into one program.
#pragma once

#include "candela/backend/capabilities.hpp"
#include "candela/backend/custom.hpp"
#include "candela/backend/device.hpp"
#include "candela/backend/doors.hpp"
#include "candela/backend/entry.hpp"
#include "candela/backend/ops.hpp"
#include "candela/backend/parallel.hpp"
#include "candela/backend/status.hpp"
#include "candela/backend/view.hpp"

#ifdef CDL_BACKEND_STATIC
#define CDL_BACKEND_ENTRY_OF(name) name##_backend_query
#define CDL_BACKEND_ENTRY_NAMED(name) CDL_BACKEND_ENTRY_OF(name)
#define CDL_BACKEND_ENTRY CDL_BACKEND_ENTRY_NAMED(CDL_BACKEND_STATIC)
#else
#define CDL_BACKEND_ENTRY cdl_backend_query
#endif

#define CDL_BACKEND(Class)                                                                         \
  extern "C" CDL_EXPORT cdl_code_t CDL_BACKEND_ENTRY(const cdl_host_t* host, cdl_plugin_t* out,    \
                                                     cdl_error_t* error);                          \
  cdl_code_t CDL_BACKEND_ENTRY(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {    \
    return cdl::detail::Entry<Class>::query(host, out, error);                                     \
  }
