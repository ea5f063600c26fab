#include "tools/candela/simulate/sweep_command.h"

#include <algorithm>
#include <thread>

#include "core/support/file.h"
#include "core/support/text/shell.h"
#include "tools/candela/simulate/sweep.h"

namespace candela::tool {
namespace {

/// The commands that other machines may run.
void listJobs(const Sweep& sweep, Json& report, Console& console) {
  writeConfigurations(sweep);
  report["jobs"] = Json::array();
  for (const SweepJob& job : sweep.jobs) {
    if (!job.refused.empty()) continue;
    std::string line;
    for (const std::string& word : commandOf(sweep, job, "candela"))
      line += (line.empty() ? "" : " ") + shellQuoted(word);
    console.print("{}\n", line);
    report["jobs"].push_back({{"id", job.id},
                              {"command", commandOf(sweep, job, "candela")},
                              {"result", resultOf(sweep, job)}});
  }
}

} // namespace

void SweepArguments::addTo(CLI::App* command) {
  command
      ->add_option(
          "--sweep", file,
          "simulate models on many configurations, in processes; goes on where it was stopped")
      ->type_name("FILE.toml");
  command->add_option("--jobs", jobs, "processes of a sweep (one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--list", list, "only list the simulations of a sweep, with their commands");
}

void SweepArguments::check(const CLI::App* command) const {
  const bool isAlone = file.empty();
  if (isAlone && (list || jobs > 0)) fail(kBadInput, "--list and --jobs are of --sweep");
  if (isAlone) return;
  for (const CLI::Option* option : command->parse_order())
    if (!text::isOneOf(option->get_name(), "--sweep|--jobs|--list|--csv|--html|--json"))
      fail(kBadInput,
           "{}: no option of a sweep, whose file says what is simulated; only --jobs, --list, "
           "--csv, --html and --json stand beside --sweep",
           option->get_name());
}

void sweepModels(const SweepArguments& arguments, const std::string& csvPath,
                 const std::string& htmlPath, Console& console) {
  refuseStandardOutput({{"--html", htmlPath}, {"--csv", csvPath}});
  const Sweep sweep = readSweep(arguments.file);
  Json report = console.report("sweep");
  report["folder"] = sweep.folder;
  if (arguments.list) {
    listJobs(sweep, report, console);
    console.writeJson(report);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const size_t processes =
      arguments.jobs ? arguments.jobs : std::max(1u, std::thread::hardware_concurrency());
  const SweepCounts counts = runSweep(sweep, processes, console);
  const Json rows = sweepRows(sweep);
  const std::string csv = csvPath.empty() ? sweep.folder + "/sweep.csv" : csvPath;
  const std::string html = htmlPath.empty() ? sweep.folder + "/sweep.html" : htmlPath;
  for (const auto& [path, text] :
       {std::pair{csv, sweepCsv(sweep, rows)}, {html, sweepPage(sweep, rows)}})
    check(writeFile(path, text.data(), text.size()), kWorkFailed);
  report["rows"] = rows;
  console.print("{}: {} {}, {} refused, in {}\n  {}\n  {}\n", sweep.file,
                rows.size() - counts.refused - counts.failed,
                sweep.isOfDevices ? "estimated" : "simulated", counts.refused,
                timeText(millisecondsSince(start)), csv, html);
  console.writeJson(report);
  if (counts.failed)
    fail(kWorkFailed, "{}: {} of them failed; run the same command to try them again", sweep.file,
         counts.failed);
}

void refuseStandardOutput(std::initializer_list<std::pair<const char*, std::string>> files) {
  for (const auto& [name, path] : files)
    if (path == "-")
      fail(kBadInput, "{} -: a file is wanted; only --json writes to standard output", name);
}

} // namespace candela::tool
