#pragma once

#include "tools/candela/support/console.h"

/// What `candela inspect` found, in a form that knows no file format: shown as text, JSON, HTML or
/// a graph for dot.
namespace candela::tool {

/// A list of equal things. Cells are JSON values: numbers, texts or lists.
struct PageTable {
  std::string name; ///< the key in JSON
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;
};

struct Drawing {
  struct Node {
    std::string id, label, detail;
  };
  struct Edge {
    std::string from, to, label;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// A picture for the HTML form alone.
struct Figure {
  std::string title, caption;
  std::string markup; ///< HTML as it is
};

struct Page {
  std::string kind; ///< "ONNX model", of the format's name, "graph", ...
  std::string file;
  std::vector<std::pair<std::string, Json>> facts;
  std::vector<PageTable> tables;
  Drawing drawing; ///< no nodes: this kind has none
  std::vector<Figure> figures = {};

  void fact(std::string name, Json value) { facts.emplace_back(std::move(name), std::move(value)); }
};

/// For a terminal; long tables end after `maxRows` with how many more there are.
std::string pageText(const Page& page, const Console& console, size_t maxRows);
/// Adds kind, facts, and each table as a list of objects.
void pageJson(const Page& page, Json& to);
/// One self-contained HTML file, figures first. A field finds rows and parts of figures by their
/// text; without scripts the page has everything but that.
std::string pageHtml(const Page& page);
/// For Graphviz.
std::string drawingDot(const Page& page);

} // namespace candela::tool
