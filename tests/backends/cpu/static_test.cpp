// The backend linked in: it opens the same compiler, and needs it as little for what is stored.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/compiler/driver/pipeline.h"

extern "C" cdl_code_t cpu_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                        cdl_error_t* error);

namespace candela {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<runtime::session::Session>> compileDigits() {
  runtime::plugin::registerStatic("cpu", cpu_backend_query);
  CDL_ASSIGN(const auto plugin, runtime::plugin::findPlugin("cpu"));
  CDL_ASSIGN(const auto device, plugin->open(0, {}));
  CDL_ASSIGN(auto model, driver::loadAny(CANDELA_SOURCE_DIR "/examples/digits/digits.onnx",
                                         {.dims = {{"N", 1}}}));
  const std::vector<std::shared_ptr<runtime::plugin::Device>> devices = {device};
  return driver::compile(std::get<graph::Graph>(std::move(model)), "digits", devices, {});
}

bool isLoaded(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos) return true;
  return false;
}

// One after the other in one process, since a library that was opened stays.
TEST(CpuStatic, OpensTheCompilerWhenItHasTo) {
  setenv("CANDELA_PLUGIN_PATH", "/no/such/folder:/no/such/folder", 1);
  auto session = compileDigits();
  ASSERT_FALSE(session);
  EXPECT_EQ(session.status().code(), Code::not_found);
  EXPECT_NE(session.status().message().find(
                "cpu: compiling needs candela_cpu_compiler.so, and there is none in: "),
            std::string::npos)
      << session.status().message();
  const std::string& error = session.status().message();
  const size_t named = error.find("/no/such/folder");
  EXPECT_NE(named, std::string::npos) << error;
  EXPECT_EQ(error.find("/no/such/folder", named + 1), std::string::npos) << error;
  EXPECT_FALSE(isLoaded("libLLVM"));

  const std::string folder = fs::path(COMPILER_cpu).parent_path();
  setenv("CANDELA_PLUGIN_PATH", ("/no/such/folder::" + folder).c_str(), 1);
  session = compileDigits();
  ASSERT_TRUE(session) << session.status().message();
  EXPECT_TRUE(isLoaded("libLLVM"));
  EXPECT_TRUE(isLoaded("candela_cpu_compiler.so"));

  const std::string path =
      (fs::temp_directory_path() / fmt::format("candela_static_{}.cdb", getpid())).string();
  ASSERT_TRUE((*session)->save(path));
  auto bundle = runtime::bundle::loadBundle(path);
  ASSERT_TRUE(bundle) << bundle.status().message();
  auto loaded = runtime::session::Session::create(*std::move(bundle));
  fs::remove(path);
  ASSERT_TRUE(loaded) << loaded.status().message();
  const runtime::bundle::BundleValue& port =
      (*session)->bundle().values[(*session)->bundle().inputs[0]];
  const std::vector<Tensor> in = {*randomTensor(port.elem, port.dims, 1)};
  const auto expected = (*session)->run(in), out = (*loaded)->run(in);
  ASSERT_TRUE(expected && out);
  for (int64_t i = 0; i < (*out)[0].count(); ++i)
    EXPECT_EQ((*out)[0].as<float>()[i], (*expected)[0].as<float>()[i]) << i;
}

} // namespace
} // namespace candela
