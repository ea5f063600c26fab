// candela backends --next: what a port should implement next, by what it would bring to some
// models.
#include "tools/candela/commands/next.h"

#include <algorithm>

#include "conformance/report/query.h"
#include "conformance/suite.h"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/passes/passes.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/profile.h"

namespace candela::tool {
namespace {

constexpr size_t kShown = 12;

/// Values or shapes as they were met, in the order of their coming.
class Met {
public:
  void add(const std::string& text) {
    if (std::ranges::find(list_, text) == list_.end()) list_.push_back(text);
  }
  const std::vector<std::string>& list() const { return list_; }
  std::string text() const {
    if (list_.size() <= 6) return fmt::format("{}", fmt::join(list_, " "));
    return fmt::format("{} ... {} ({} of them)", fmt::join(list_.begin(), list_.begin() + 3, " "),
                       list_.back(), list_.size());
  }

private:
  std::vector<std::string> list_;
};

/// A row of a capability table that is missing, or there and not native.
struct Wanted {
  uint16_t kind = 0, fn = 0;
  std::vector<std::string> types; ///< operands first
  std::string cls;                ///< the largest operand class that was met
  /// now: "emulated", "host", or "parts": all that it is made of is native
  std::string why, now;
  std::set<std::string> nodes;
  uint64_t macs = 0;
  double ms = 0;
  std::map<std::string, Met> attrs;
  Met shapes;

  std::string text() const {
    const std::string name = instrText(kind, fn) + " ";
    if (types.empty()) return name;
    const auto result = types.end() - 1;
    const char* arrow = types.size() > 1 ? " -> " : "";
    return fmt::format("{}{}{}{}", name, fmt::join(types.begin(), result, ","), arrow, *result);
  }
  /// The level of the porting guide that asks for it.
  const char* rung() const { return capabilities::isRequiredFn(kind, fn) ? "B1" : "B2"; }
};

using Rows = std::map<std::string, Wanted>;

/// What one model says.
struct Findings {
  std::string model;
  uint64_t nodes = 0, nativeNodes = 0, macs = 0, nativeMacs = 0;
  double ms = 0, nativeMs = 0;
  Rows rows;

  void add(const Findings& other) {
    nodes += other.nodes;
    nativeNodes += other.nativeNodes;
    macs += other.macs;
    nativeMacs += other.nativeMacs;
    ms += other.ms;
    nativeMs += other.nativeMs;
    for (const auto& [key, row] : other.rows) {
      auto [at, isNew] = rows.try_emplace(key, row);
      if (isNew) continue;
      Wanted& sum = at->second;
      for (const std::string& node : row.nodes) sum.nodes.insert(node);
      sum.ms += row.ms;
      sum.macs += row.macs;
      for (const std::string& shape : row.shapes.list()) sum.shapes.add(shape);
      for (const auto& [name, values] : row.attrs)
        for (const std::string& value : values.list()) sum.attrs[name].add(value);
    }
  }
  double share(const Wanted& row) const { return ms > 0 ? row.ms / ms : 0; }
  double macShare(const Wanted& row) const { return macs ? double(row.macs) / double(macs) : 0; }
  /// Heaviest first: by time, then by multiply-accumulates, then by nodes.
  std::vector<const Wanted*> sorted() const {
    std::vector<const Wanted*> list;
    for (const auto& [key, row] : rows) list.push_back(&row);
    std::ranges::stable_sort(list, [](const Wanted* a, const Wanted* b) {
      return std::tuple(a->ms, a->macs, a->nodes.size()) >
             std::tuple(b->ms, b->macs, b->nodes.size());
    });
    return list;
  }
};

/// The conformance cases of a row, as the narrowest query that selects some.
class Queries {
public:
  Queries() {
    conformance::Selection all;
    all.size = conformance::Size::nightly;
    for (const char* tier : {"primitives", "ops"})
      for (conformance::Case& one : check(conformance::findTier(tier)->list(all), kWorkFailed)) {
        const std::string row(conformance::report::rowOf(one.address));
        addresses_[row.substr(0, row.find('/') + 1)].push_back(std::move(one.address));
      }
  }

  std::string of(const Wanted& row) const {
    const std::string head = fmt::format("{}:{}/", isPrimitive(row.kind) ? "primitives" : "ops",
                                         program::kindName(row.kind));
    const auto at = addresses_.find(head);
    if (at == addresses_.end()) return "";
    const std::string fn(fnName(row.kind, row.fn));
    std::vector<std::string> queries;
    for (const std::string& types : namesOf(row.types)) {
      if (!fn.empty()) queries.push_back(fmt::format("{}{}_{}*", head, fn, types));
      if (!fn.empty()) queries.push_back(fmt::format("{}{}:fn={};*", head, types, fn));
      queries.push_back(fmt::format("{}{}*", head, types));
    }
    if (!fn.empty()) queries.push_back(fmt::format("{}{}*", head, fn));
    queries.push_back(head + "*");
    for (const std::string& query : queries)
      if (std::ranges::any_of(at->second, [&](const std::string& a) {
            return conformance::report::matchesQuery(a, query);
          }))
        return query;
    return "";
  }

  /// The cases of the row on layouts of a device's own; "" where there are none.
  std::string onLayouts(const Wanted& row) const {
    const std::string head = fmt::format("ops:{}_layouts/", program::kindName(row.kind));
    const auto at = addresses_.find(head);
    if (at == addresses_.end()) return "";
    std::vector<std::string> queries;
    const std::string fn(fnName(row.kind, row.fn));
    for (const std::string& types : namesOf(row.types))
      queries.push_back(fmt::format("{}{}{}{}*", head, fn, fn.empty() ? "" : "_", types));
    queries.push_back(head + "*");
    for (const std::string& query : queries)
      if (std::ranges::any_of(at->second, [&](const std::string& a) {
            return conformance::report::matchesQuery(a, query);
          }))
        return query;
    return "";
  }

private:
  /// The ways in which families name types, those that say most first.
  static std::vector<std::string> namesOf(const std::vector<std::string>& types) {
    std::vector<std::string> names;
    if (types.empty()) return names;
    const auto join = [&](size_t count) {
      names.push_back(fmt::format("{}", fmt::join(types.begin(), types.begin() + count, "_")));
    };
    for (size_t count = types.size(); count > 1; --count) join(count);
    names.push_back(types.front() + "_" + types.back());
    join(1);
    return names;
  }
  std::map<std::string, std::vector<std::string>> addresses_; ///< by "primitives:binary/"
};

/// The backend as the partitioner asks it.
class Asked {
public:
  explicit Asked(const std::string& backend, const ModelOptions& model) {
    runtime::plugin::Options options;
    for (const std::string& text : model.options) {
      const Binding option = parseBinding("--option", text);
      options[option.name.substr(option.name.find('.') + 1)] = option.value;
    }
    device_ = check(check(runtime::plugin::findDevice(backend)).open(options));
    if (device_->compiles()) nativeOnly_ = device_->target().nativeOnly();
  }
  const capabilities::Target& target() const {
    return nativeOnly_ ? *nativeOnly_ : device_->target();
  }
  bool declaresLayouts() const { return target().layouts().size() > 1; }
  /// Its ops of domains that import does not know.
  import::ClaimOp claims() const { return check(driver::claimBy({device_})); }

private:
  std::shared_ptr<runtime::plugin::Device> device_;
  std::optional<capabilities::Target> nativeOnly_;
};

Wanted& rowOf(Rows& rows, uint16_t kind, uint16_t fn, const std::vector<std::string>& types,
              const std::string& cls) {
  Wanted named;
  named.kind = kind;
  named.fn = fn;
  named.types = types;
  named.cls = cls;
  return rows.try_emplace(named.text() + " " + cls, named).first->second;
}

std::string elemOf(const std::string& operand) { return operand.substr(0, operand.find('[')); }

/// Rows of what ran, and was not native.
void addPrimitives(const std::vector<InstrTime>& instrs,
                   const std::map<std::string, std::string>& whyHost, Findings& found) {
  for (const InstrTime& time : instrs) {
    found.ms += time.ms;
    if (time.support == "native") found.nativeMs += time.ms;
    const auto kind = parseKind(time.kind);
    if (time.support == "native" || !kind) continue;
    const uint16_t fn = parseFn(*kind, time.fn).value_or(0);
    std::vector<std::string> types;
    for (const std::string& operand : time.operands) types.push_back(elemOf(operand));
    Wanted& row = rowOf(found.rows, *kind, fn, types, time.cls);
    row.nodes.insert(time.node);
    row.ms += time.ms;
    row.macs += time.macs;
    row.shapes.add(fmt::format("{}", fmt::join(time.operands, ",")));
    if (!row.now.empty()) continue;
    row.now = time.support;
    const auto host = whyHost.find(time.node);
    if (time.support == "emulated")
      row.why = "its row is EMULATED: override the function of the kind";
    else
      row.why = host == whyHost.end() ? "no row takes what it came from" : host->second;
  }
}

/// Optional rows that would take a node, or a part of it, as it is.
void addOps(const graph::Graph& graph, const capabilities::Target& target,
            const std::vector<InstrTime>& instrs, Findings& found) {
  struct Now {
    double ms = 0;
    bool native = true;
  };
  std::map<std::string, Now> byNode;
  for (const InstrTime& time : instrs) {
    Now& now = byNode[time.node];
    now.ms += time.ms;
    now.native &= time.support == "native";
  }
  for (const auto& node : graph.nodes()) {
    if (node->kind == graph::OpKind::Constant || node->body) continue;
    for (const lowering::decompose::NodeInstr& instr : lowering::decompose::instructionsOf(*node)) {
      if (capabilities::isRequiredFn(instr.kind, instr.fn)) continue;
      const capabilities::InstrDesc desc = lowering::decompose::describe(instr);
      const capabilities::Answer answer = target.query(desc);
      if (answer.support == capabilities::Support::native) continue;
      std::vector<std::string> types, shapes;
      auto cls = capabilities::OperandClass::dense;
      for (const capabilities::OperandDesc& operand : desc.operands) {
        types.emplace_back(elemName(operand.elem));
        shapes.push_back(typeText(elemName(operand.elem), operand.dims));
        cls = std::max(cls, operand.cls);
      }
      Wanted& row = rowOf(found.rows, desc.kind, desc.fn, types,
                          capabilities::classText(static_cast<unsigned>(cls)));
      row.nodes.insert(node->userName());
      row.macs += driver::macs(*node);
      row.shapes.add(fmt::format("{}", fmt::join(shapes, ",")));
      for (const auto& [id, values] : desc.attrs)
        row.attrs[capabilities::attrText(id)].add(fmt::format("{}", fmt::join(values, ",")));
      bool native = true;
      for (const std::string& name : node->provenance)
        if (const auto at = byNode.find(name); at != byNode.end()) {
          row.ms += at->second.ms;
          native &= at->second.native;
        }
      row.why = answer.support == capabilities::Support::emulated
                    ? "its row is EMULATED: override the function of the kind"
                    : answer.detail;
      if (row.now.empty() || !native) row.now = native ? "parts" : "emulated";
    }
  }
}

Findings findingsOf(const std::string& path, const ModelOptions& given, const std::string& backend,
                    const Asked& asked) {
  RunOptions options;
  options.model = given;
  options.model.path = path;
  options.model.backends = backend;
  options.seed = 1;
  refuseBundle(path);
  Session session = openSession(options);
  Findings found;
  found.model = path;
  std::map<std::string, std::string> whyHost;
  for (const Json& node : session.report.value("nodes_detail", Json::array())) {
    const std::string cls = node.value("class", "");
    ++found.nodes;
    found.nativeNodes += cls == "native";
    found.macs += node.value("macs", uint64_t(0));
    found.nativeMacs += node.value("native_macs", uint64_t(0));
    if (cls == "host") whyHost[node.value("node", "")] = node.value("why", "");
  }
  ProfileSum profile;
  try {
    std::vector<double> latencies;
    session.model.profile(true);
    for (int i = 0; i < 2; ++i) { // the first one warms up
      session.run(latencies);
      profile.add(session.model.traceJson());
    }
  } catch (const sdk::Error& error) {
    failWith(error, path);
  }
  const std::vector<InstrTime> instrs = profile.instrs(session.report);
  addPrimitives(instrs, whyHost, found);
  std::string flow;
  for (graph::Graph& graph : readGraphs(path, {given.dims, given.shapes, asked.claims()}, flow)) {
    check(graph::passes::optimize(graph).context(path));
    addOps(graph, asked.target(), instrs, found);
  }
  return found;
}

std::string command(const std::string& backend, const std::string& query) {
  return query.empty()
             ? ""
             : fmt::format("candela conform --backend {} --cases {}", backend, shellQuoted(query));
}

Json toJson(const Findings& found, const std::string& backend, const Queries& queries,
            bool hasLayouts) {
  Json list = Json::array();
  for (const Wanted* row : found.sorted()) {
    Json attrs = Json::object();
    for (const auto& [name, values] : row->attrs) attrs[name] = values.list();
    const std::string query = queries.of(*row);
    list.push_back({{"op", row->text()},
                    {"rung", row->rung()},
                    {"kind", program::kindName(row->kind)},
                    {"function", fnName(row->kind, row->fn)},
                    {"types", row->types},
                    {"operand_class", row->cls},
                    {"now", row->now},
                    {"why", row->why},
                    {"nodes", row->nodes.size()},
                    {"ms", row->ms},
                    {"time_fraction", found.share(*row)},
                    {"macs", row->macs},
                    {"mac_fraction", found.macShare(*row)},
                    {"shapes", row->shapes.list()},
                    {"attributes", std::move(attrs)},
                    {"query", query},
                    {"check", command(backend, query)}});
    if (const std::string onLayouts = hasLayouts ? queries.onLayouts(*row) : ""; !onLayouts.empty())
      list.back().update(
          {{"layout_query", onLayouts}, {"layout_check", command(backend, onLayouts)}});
  }
  return {{"nodes", found.nodes},   {"native_nodes", found.nativeNodes},
          {"macs", found.macs},     {"native_macs", found.nativeMacs},
          {"ms", found.ms},         {"native_ms", found.nativeMs},
          {"next", std::move(list)}};
}

std::string percent(double part) { return fmt::format("{:>5.1f} %", 100 * part); }

void print(const Findings& found, const std::string& title, Console& console,
           const std::string& backend, const Queries* queries, bool hasLayouts) {
  const auto part = [](double of, double all) { return all > 0 ? of / all : 1; };
  console.print("\n{}  {} of {} nodes, {:.1f} % of the time, {:.1f} % of the MACs native\n",
                console.bold(title), found.nativeNodes, found.nodes,
                100 * part(found.nativeMs, found.ms),
                100 * part(double(found.nativeMacs), double(found.macs)));
  const std::vector<const Wanted*> list = found.sorted();
  if (list.empty()) {
    console.print("  every node is native, by the rows that fit it best\n");
    return;
  }
  Table table({"next", "rung", "now", "nodes", "   time", "   MACs", "why"});
  for (size_t i = 0; i < std::min(list.size(), kShown); ++i)
    table.add({list[i]->text(), list[i]->rung(), list[i]->now,
               fmt::format("{:>5}", list[i]->nodes.size()), percent(found.share(*list[i])),
               percent(found.macShare(*list[i])), list[i]->why});
  console.printText(table.text());
  if (list.size() > kShown) console.print("  and {} more: --json\n", list.size() - kShown);
  if (!queries) return;
  for (size_t i = 0; i < std::min(list.size(), kShown); ++i) {
    const Wanted& row = *list[i];
    std::string met = fmt::format("{}; {}", row.cls, row.shapes.text());
    for (const auto& [name, values] : row.attrs) met += fmt::format("; {} {}", name, values.text());
    console.print("{}\n    met    {}\n", row.text(), met);
    if (const std::string query = queries->of(row); !query.empty())
      console.print("    check  {}\n", command(backend, query));
    if (const std::string query = hasLayouts ? queries->onLayouts(row) : ""; !query.empty())
      console.print("    check  {}\n", command(backend, query));
  }
}

} // namespace

Json nextSteps(const std::vector<std::string>& models, const ModelOptions& model,
               const std::string& backend, Console& console) {
  const Asked asked(backend, model);
  const Queries queries;
  Findings all;
  Json each = Json::array();
  std::vector<Findings> found;
  for (const std::string& path : models) {
    found.push_back(findingsOf(path, model, backend, asked));
    // Nodes of several models may have one name.
    Findings counted = found.back();
    for (auto& [key, row] : counted.rows) {
      std::set<std::string> nodes;
      for (const std::string& node : row.nodes) nodes.insert(path + ":" + node);
      row.nodes = std::move(nodes);
    }
    all.add(counted);
  }
  const bool hasLayouts = asked.declaresLayouts();
  print(all, fmt::format("{} in {} model{}", backend, models.size(), models.size() == 1 ? "" : "s"),
        console, backend, &queries, hasLayouts);
  for (const Findings& one : found) {
    Json entry = {{"model", one.model}};
    entry.update(toJson(one, backend, queries, hasLayouts));
    each.push_back(std::move(entry));
    if (found.size() > 1) print(one, fileName(one.model), console, backend, nullptr, hasLayouts);
  }
  Json report = {{"backend", backend}};
  report.update(toJson(all, backend, queries, hasLayouts));
  report["models"] = std::move(each);
  return report;
}

} // namespace candela::tool
