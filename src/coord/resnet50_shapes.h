// SPDX-License-Identifier: Apache-2.0
// For tests: the 161 parameters of ResNet-50 in the order of the model (torchvision's), made from its structure.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tensor/shape.h"

namespace ronde::coord {

using NamedShape = std::pair<std::string, Shape>;

inline std::vector<NamedShape> resnet50_parameters() {
  std::vector<NamedShape> out;
  const auto convolution = [&](const std::string& name, int64_t to, int64_t from, int64_t kernel) {
    out.emplace_back(name + ".weight", Shape{to, from, kernel, kernel});
  };
  const auto norm = [&](const std::string& name, int64_t width) {
    out.emplace_back(name + ".weight", Shape{width});
    out.emplace_back(name + ".bias", Shape{width});
  };
  convolution("conv1", 64, 3, 7);
  norm("bn1", 64);
  constexpr std::array<int, 4> kBlocks{3, 4, 6, 3};
  int64_t in = 64;
  int64_t width = 64;
  for (size_t layer = 0; layer < kBlocks.size(); ++layer, width *= 2) {
    for (int block = 0; block < kBlocks[layer]; ++block) {
      const std::string prefix = cat("layer", layer + 1, ".", block, ".");
      convolution(prefix + "conv1", width, in, 1);
      norm(prefix + "bn1", width);
      convolution(prefix + "conv2", width, width, 3);
      norm(prefix + "bn2", width);
      convolution(prefix + "conv3", width * 4, width, 1);
      norm(prefix + "bn3", width * 4);
      if (block == 0) {
        convolution(prefix + "downsample.0", width * 4, in, 1);
        norm(prefix + "downsample.1", width * 4);
      }
      in = width * 4;
    }
  }
  out.emplace_back("fc.weight", Shape{1000, 2048});
  out.emplace_back("fc.bias", Shape{1000});
  return out;
}

}  // namespace ronde::coord
