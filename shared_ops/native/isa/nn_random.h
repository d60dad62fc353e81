// Normal numbers out of uniform ones, by Box and Muller.
#pragma once
#include "vmath.h"
#include "vmath_wide.h"

namespace rillet {
namespace RILLET_ISA {

// z[2p] and z[2p + 1] from u[p] in (0, 1] and turn[p] in [0, 1): sqrt(-2 log u) times the cosine and sine of a full
// turn's part. n: pairs, a multiple of 16.
inline void NormalPairs(const float* u, const float* turn, int64_t n, float* z) {
  for (int64_t i = 0; i < n; i += kLanes) {
    float radius[kLanes], cosine[kLanes], sine[kLanes];
    Store(radius, Sqrt(Set(-2.0f) * Log(Load(u + i))));
    for (int h = 0; h < kLanes; h += kWideLanes) {
      const D angle = WideLoad(turn + i + h) * WideSet(0x1.921fb54442d18p+2);
      WideStore(cosine + h, SinReduced(angle, WideSetBits(1)));
      WideStore(sine + h, SinReduced(angle, WideSetBits(0)));
    }
    for (int l = 0; l < kLanes; ++l) {
      z[2 * (i + l)] = radius[l] * cosine[l];
      z[2 * (i + l) + 1] = radius[l] * sine[l];
    }
  }
}

}  // namespace RILLET_ISA
}  // namespace rillet
