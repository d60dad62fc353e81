// Philox4x32-10, the counter-based generator (Salmon et al. 2011). shared_ops/philox.py is the same in Python.
#pragma once
#include <cstdint>

namespace rillet {

struct PhiloxKey {
  uint32_t k0, k1;
};

// The key of an operation's numbers. The seed is scrambled (splitmix64), so that neighbouring seeds share nothing.
inline PhiloxKey KeyOf(int64_t seed, int64_t stream) {
  uint64_t z = static_cast<uint64_t>(seed) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  z ^= static_cast<uint64_t>(stream);
  return {static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)};
}

// Four words for the counter (block, attempt, step): element i of a tensor is word i mod 4 of block i div 4.
inline void Philox(PhiloxKey key, uint64_t block, uint32_t attempt, uint64_t step, uint32_t* words) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32) + (attempt << 24);
  uint32_t c2 = static_cast<uint32_t>(step), c3 = static_cast<uint32_t>(step >> 32);
  for (int turn = 0; turn < 10; ++turn) {
    const uint64_t p0 = uint64_t{c0} * 0xD2511F53u, p1 = uint64_t{c2} * 0xCD9E8D57u;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key.k0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key.k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    key.k0 += 0x9E3779B9u;
    key.k1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

// [0, 1) from the upper 24 bits: every value is exact, and 1 cannot occur.
inline float UniformOf(uint32_t bits) { return static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24f; }

}  // namespace rillet
