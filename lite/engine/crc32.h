// CRC-32 as zlib computes it (polynomial 0xEDB88320).
#pragma once
#include <cstddef>
#include <cstdint>

namespace rillet {

// Continues from `crc`, the value for the bytes before (0 at the start).
uint32_t Crc32(const void* data, size_t size, uint32_t crc = 0);

}  // namespace rillet
