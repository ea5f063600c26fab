#include "tools/candela/simulate/layer_shapes.h"

#include <map>

namespace candela::tool {

void addShapes(Json& layers, const Json& placement) {
  const Json nodes = placement.value("nodes_detail", Json::array());
  std::map<std::string, const Json*> byName;
  for (const Json& node : nodes) {
    const auto [known, isNew] = byName.try_emplace(node.value("node", ""), &node);
    const bool multipliesFirst = node.contains("products") && !known->second->contains("products");
    if (!isNew && multipliesFirst) known->second = &node;
  }
  for (Json& layer : layers) {
    const auto node = byName.find(layer.value("name", ""));
    if (node == byName.end()) continue;
    for (const char* key : {"op", "shape", "products"})
      if (node->second->contains(key)) layer[key] = node->second->at(key);
  }
}

} // namespace candela::tool
