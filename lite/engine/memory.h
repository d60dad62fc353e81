// Memory that the engine owns, all of it under one limit.
#pragma once
#include <cstddef>
#include <vector>

namespace rillet {

// The most bytes that a context may hold for one set of shapes; by default the machine's physical memory. 0 restores
// the default.
void SetMemoryLimit(size_t bytes);
size_t MemoryLimit();

// Zeroed blocks, aligned to 64 and followed by kSlack readable bytes, freed together. Null where the limit or the
// machine says no.
class Blocks {
 public:
  Blocks() = default;
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  void* Allocate(size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  std::vector<void*> blocks_;
  size_t bytes_ = 0;
};

}  // namespace rillet
