#pragma once

#include "core/compiler/program/program.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/model.h"
#include "tools/candela/support/page.h"

/// One page per kind of file. All throw Failure when the file is malformed.
namespace candela::tool {

/// `backends`: who is asked about operators that import does not know, with the dims that they
/// need; empty: nobody.
/// A model of any format that import reads.
Page inspectModel(const std::string& path, const std::string& backends = "",
                  ImportFlags flags = {});
/// Adds where the nodes of a model or a .cdl file go and the memory map over time, as it is
/// compiled; where that is impossible, a fact says why.
void addModelMemory(Page& page, const ModelOptions& options);
Page inspectText(const std::string& path);   ///< .cdl: a graph or a program
Page inspectBundle(const std::string& path); ///< .cdb
Page inspectImage(const std::string& path);  ///< the flat image of a Program
/// .so; runs the plugin's code where it `loads`. Failure: what does not export cdl_backend_query.
Page inspectPlugin(const std::string& path, bool loads);
Page inspectTensor(const std::string& path); ///< .npy
Page inspectReport(const std::string& path); ///< a JSON report of this tool

/// Nodes but constants, between the graph's inputs and outputs.
void drawGraph(Drawing& drawing, const graph::Graph& graph);
/// Instructions, buffers and a drawing of the waits.
void addProgram(Page& page, const program::Program& program);

} // namespace candela::tool
