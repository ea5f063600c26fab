// hello_run MODEL IMAGES.npy: runs a model on a file of f32 images and prints the best class of
// each of the first few.
#include <algorithm>
#include <candela/candela.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace sdk = candela::sdk;

int main(int argc, char** argv) try {
  if (argc != 3) throw sdk::Error(CANDELA_INVALID_ARGUMENT, "usage: hello_run MODEL IMAGES.npy");
  // The floats of a .npy file of version 1 begin behind 10 bytes and the header, whose length
  // stands at 8.
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> npy((std::istreambuf_iterator<char>(file)), {});
  const size_t start = npy.size() < 10 ? 0
                                       : 10 + static_cast<unsigned char>(npy[8]) +
                                             256 * static_cast<unsigned char>(npy[9]);
  if (start == 0 || start > npy.size())
    throw sdk::Error(CANDELA_IO, std::string(argv[2]) + ": not a .npy file");
  std::vector<float> images(reinterpret_cast<const float*>(npy.data() + start),
                            reinterpret_cast<const float*>(npy.data() + start) +
                                (npy.size() - start) / sizeof(float));

  sdk::Options options;
  options.dims = {"N=1"};
  const sdk::Model model = sdk::Model::compile(argv[1], options);
  const sdk::Port in = model.inputs().at(0), out = model.outputs().at(0);
  const size_t imageSize = in.bytes / sizeof(float), classes = out.bytes / sizeof(float);
  if (in.elem != CANDELA_F32 || out.elem != CANDELA_F32 || imageSize == 0 || classes == 0)
    throw sdk::Error(CANDELA_UNSUPPORTED, "the model does not turn floats into floats");

  std::vector<float> scores(classes);
  candela_tensor_t input{in.elem, static_cast<uint32_t>(in.dims.size()), {}, nullptr, in.bytes};
  std::copy(in.dims.begin(), in.dims.end(), input.dims);
  const size_t count = std::min<size_t>(images.size() / imageSize, 10);
  for (size_t i = 0; i < count; ++i) {
    input.data = images.data() + i * imageSize;
    std::vector<candela_tensor_t> outputs{{out.elem, 0, {}, scores.data(), out.bytes}};
    model.run({input}, outputs);
    std::printf("image %zu: %s %td\n", i, out.name.c_str(),
                std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  return count > 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "hello_run: %s\n", error.what());
  return 1;
}
