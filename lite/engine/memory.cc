#include "memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "kernel.h"

namespace rillet {
namespace {
std::atomic<size_t> g_limit{0};
}

void SetMemoryLimit(size_t bytes) { g_limit = bytes; }

size_t MemoryLimit() {
  if (const size_t limit = g_limit) return limit;
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

Blocks::~Blocks() {
  for (void* p : blocks_) std::free(p);
}

void* Blocks::Allocate(size_t bytes) {
  const size_t limit = MemoryLimit();
  if (bytes > limit || bytes_ > limit - bytes) return nullptr;
  const size_t size = (bytes + kSlack + 63) / 64 * 64;
  void* p = std::aligned_alloc(64, size);
  if (!p) return nullptr;
  blocks_.push_back(p);
  bytes_ += bytes;
  return std::memset(p, 0, size);
}

}  // namespace rillet
