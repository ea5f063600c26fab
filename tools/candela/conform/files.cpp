// candela conform: the files that it writes and reads.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "conformance/report/certificate.h"
#include "conformance/report/html.h"
#include "conformance/report/merge.h"
#include "core/support/file.h"
#include "tools/candela/conform/conform.h"

namespace candela::tool {
namespace {

namespace fs = std::filesystem;

/// A file to be written, and who asks for it.
struct Output {
  std::string option, file;
};

/// Why writeFile could not write there; empty where it can. Leaves nothing behind.
std::string obstacleTo(const std::string& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) return "is a folder";
  if (fs::exists(status) && !fs::is_regular_file(status)) // written in place, as a device is
    return access(file.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
  if (const fs::path folder = fs::path(file).parent_path();
      !folder.empty() && !fs::exists(folder, error))
    return fmt::format("there is no folder {}", folder.string());
  const std::string probe =
      // in the folder that takes it, under the longest name
      fmt::format("{}.tmp{}", file, getpid());
  const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return std::strerror(errno);
  close(fd);
  unlink(probe.c_str());
  return "";
}

/// The report's file beside the certificate: that of --json where it lies there.
std::string reportBeside(const fs::path& certificate, const std::string& json) {
  const auto folder = [](const fs::path& file) {
    return fs::weakly_canonical(fs::absolute(file).parent_path());
  };
  if (!json.empty() && json != "-" && folder(json) == folder(certificate)) return json;
  fs::path report = certificate;
  return report.replace_extension(".report.json").string();
}

/// In the order in which they are written: a certificate names the report beside it.
std::vector<Output> outputsOf(const ConformArguments& arguments, const std::string& json) {
  std::vector<Output> outputs;
  const auto add = [&](const char* option, const std::string& file) {
    if (!file.empty() && file != "-") outputs.push_back({option, file});
  };
  add("--json", json);
  add("--junit", arguments.junit);
  add("--html", arguments.html);
  if (arguments.certificate.empty()) return outputs;
  if (const std::string beside = reportBeside(arguments.certificate, json); beside != json)
    add("--certificate", beside);
  add("--certificate", arguments.certificate);
  return outputs;
}

/// What a certificate says and what it does not, a line each.
void printScope(const conformance::report::Scope& scope, Console& console) {
  console.print("  of      {}\n  result  {}\n  unsigned: it binds what ran to the files, and does "
                "not say who ran it\n",
                scope.of, scope.result);
}

} // namespace

conformance::report::Report mergeConform(const ConformArguments& arguments) {
  std::vector<conformance::report::Report> shards;
  for (const std::string& file : arguments.merged)
    shards.push_back(check(conformance::report::readReport(file)));
  return check(conformance::report::mergeReports(std::move(shards), arguments.merged));
}

void checkConformFiles(const ConformArguments& arguments, const Console& console) {
  const std::vector<Output> outputs = outputsOf(arguments, console.jsonPath);
  std::map<fs::path, std::string> taken;
  for (const auto& [option, file] : outputs) {
    if (const std::string why = obstacleTo(file); !why.empty())
      fail(kBadInput, "{} {}: cannot be written: {}", option, file, why);
    std::error_code error;
    // /dev/null takes any number
    if (fs::exists(file, error) && !fs::is_regular_file(file, error)) continue;
    const auto [at, fresh] = taken.emplace(fs::weakly_canonical(fs::absolute(file)), option);
    if (!fresh) fail(kBadInput, "{} {}: {} writes there too", option, file, at->second);
  }
}

void writeConformFiles(const ConformArguments& arguments, const conformance::report::Report& report,
                       Console& console) {
  const Json json = conformance::report::reportJson(report);
  const std::string text = conformance::report::reportText(json);
  if (console.jsonPath == "-") console.writeJson(json);
  const std::string beside =
      arguments.certificate.empty() ? "" : reportBeside(arguments.certificate, console.jsonPath);
  std::string failed;
  bool hasReport = true; // beside the certificate
  for (const auto& [option, file] : outputsOf(arguments, console.jsonPath)) {
    if (file == arguments.certificate && !hasReport) continue;
    const Json certificate =
        file == arguments.certificate
            ? conformance::report::certificateOf(report, fs::path(beside).filename().string(), text)
            : Json();
    std::string content = text;
    if (option == "--junit")
      content = conformance::report::junitXml(report);
    else if (option == "--html")
      content = conformance::report::htmlPage(report);
    else if (file == arguments.certificate)
      content = conformance::report::reportText(certificate);
    const Status written = writeFile(file, content.data(), content.size());
    if (!written) failed += (failed.empty() ? "" : "; ") + written.message();
    hasReport = hasReport && (written || file != beside);
    if (!written || file != arguments.certificate) continue;
    console.print("certificate  {}\n", file);
    printScope(conformance::report::scopeOf(report), console);
  }
  if (!failed.empty()) {
    console.finish();
    fail(kWorkFailed, "{}", failed);
  }
}

void verifyConform(const ConformArguments& arguments, Console& console) {
  std::string plugin;
  if (!arguments.backend.empty()) {
    plugin = check(conformance::report::pluginFileOf(arguments.backend));
    if (plugin.empty())
      fail(kBadInput,
           "--backend {}: is a part of candela and has no file that a certificate could bind",
           arguments.backend);
  }
  const conformance::report::Verification verified =
      check(conformance::report::verifyCertificate(arguments.verify, plugin));
  const bool valid = verified.problems.empty();
  Json report = console.report("conform-verify");
  report["certificate"] = arguments.verify;
  report["valid"] = valid;
  report["problems"] = verified.problems;
  if (!plugin.empty()) report["plugin"] = plugin;
  report["scope"] = {{"of", verified.scope.of}, {"result", verified.scope.result}};
  report["signed"] = false;
  console.writeJson(report);
  for (const std::string& problem : verified.problems)
    console.print("{}  {}\n", console.red("REFUSED"), problem);
  console.finish();
  if (!valid)
    fail(kWorkFailed, "{}: {} of its fields do not fit", arguments.verify,
         verified.problems.size());
  console.print("{}  {}: its fields, its report{} fit\n", console.green("valid"), arguments.verify,
                plugin.empty() ? "" : fmt::format(" and {}", plugin));
  printScope(verified.scope, console);
}

} // namespace candela::tool
