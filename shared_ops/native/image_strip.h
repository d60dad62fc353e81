// Zero-padded copies of a few rows of an NHWC image: product kernels read them without a bounds check.
#pragma once
#include <algorithm>

#include "kernel.h"

namespace rillet {

// A window of `rows` by `columns` pixels whose corner is (row, column) of the image; what lies outside is zero.
struct StripWindow {
  int64_t row, column;  // may be negative
  int64_t rows, columns;
};

// image: [height][width][channels]; to: [rows][columns][channels].
inline void CopyStrip(const float* image, int64_t height, int64_t width, int64_t channels, const StripWindow& s,
                      float* to) {
  const int64_t left = std::min(std::max<int64_t>(0, -s.column), s.columns);
  const int64_t inside = std::max<int64_t>(0, std::min(s.columns, width - s.column) - left);
  const int64_t right = s.columns - left - inside;
  const auto bytes = [&](int64_t pixels) { return static_cast<size_t>(pixels * channels) * sizeof(float); };
  for (int64_t i = 0; i < s.rows; ++i, to += s.columns * channels) {
    const int64_t row = s.row + i;
    if (row < 0 || row >= height || inside == 0) {
      memset(to, 0, bytes(s.columns));
      continue;
    }
    memset(to, 0, bytes(left));
    memcpy(to + left * channels, image + (row * width + s.column + left) * channels, bytes(inside));
    memset(to + (left + inside) * channels, 0, bytes(right));
  }
}

// Floats rounded up to a cache line, so that what follows in a workspace is aligned.
inline int64_t Aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

// How many rows of a result a strip takes: about `budget` floats of copied input, at least one row, enough strips for
// the threads where there are fewer images than threads.
inline int64_t StripRows(int64_t rows, int64_t floats_per_row, int64_t budget, int64_t images, int threads) {
  int64_t strip = std::max<int64_t>(1, std::min(rows, budget / std::max<int64_t>(1, floats_per_row)));
  if (images < threads) {
    const int64_t wanted = (threads + images - 1) / std::max<int64_t>(1, images);
    strip = std::min(strip, std::max<int64_t>(1, (rows + wanted - 1) / wanted));
  }
  const int64_t strips = (rows + strip - 1) / std::max<int64_t>(1, strip);
  return strips ? (rows + strips - 1) / strips : 1;  // of even height
}

}  // namespace rillet
