// Where every value of a run lies: which values share memory, and at which offset of the arena.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel.h"
#include "model.h"

namespace rillet {

struct Plan {
  std::vector<int32_t> root;   // of each tensor: the tensor whose memory it uses (itself, if it has its own)
  std::vector<size_t> offset;  // of each root in the arena
  std::vector<uint8_t> copy;   // of each operation: 1 if its kAlias kernel cannot share memory here and has to copy
  size_t bytes = 0;            // of the arena, with kSlack at the end
};

// `values`: the shapes of this run; values marked `constant` lie elsewhere, as variables do. `keep_all`: every value
// keeps its memory to the end of the run.
Plan MakePlan(const Model& model, const std::vector<Tensor>& values, bool keep_all);

}  // namespace rillet
