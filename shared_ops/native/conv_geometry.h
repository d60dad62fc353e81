// Sliding windows over rows and columns: output sizes and padding of convolutions and pools.
// shared_ops/windows.py is the same in Python.
#pragma once
#include "kernel.h"

namespace rillet {

enum class Padding : uint8_t { kSame, kValid, kExplicit };

// Attributes `strides`, `dilations`, `padding`, `pads`, checked. Index 0: rows, 1: columns.
struct WindowAttrs {
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t pads[2][2] = {};  // before, after; only for kExplicit
  Padding padding = Padding::kValid;
};

// One axis of a sliding window: window `o` covers input positions o*stride - before + t*dilation, t in [0, kernel).
struct WindowAxis {
  int64_t input = 0, kernel = 0, stride = 1, dilation = 1;
  int64_t output = 0;
  int64_t before = 0, after = 0;  // padding; SAME puts the odd zero after, as TensorFlow does

  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t padded() const { return input + before + after; }
  // Input position of tap t of window o; outside [0, input) it is padding.
  int64_t at(int64_t o, int64_t t) const { return o * stride - before + t * dilation; }
  // Taps [first, last) of window o lie inside the input.
  int64_t first_tap(int64_t o) const {
    const int64_t start = o * stride - before;
    const int64_t t = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    return t < kernel ? t : kernel;
  }
  int64_t last_tap(int64_t o) const {
    const int64_t room = input - (o * stride - before);
    const int64_t t = room <= 0 ? 0 : (room + dilation - 1) / dilation;
    return t < kernel ? t : kernel;
  }
};

// Reads the attributes. `dilations` and `pads` are read only where the op has them.
Status ReadWindowAttrs(Prepare& ctx, WindowAttrs* attrs, bool has_dilations = true, bool has_pads = true);
// Refuses a padded image of more elements than a tensor may have: strips, offsets and copies of it then fit 64 bits.
Status CheckPaddedSize(Prepare& ctx, int64_t images, int64_t rows, int64_t columns, int64_t channels);
// The geometry of one axis (0: rows, 1: columns) for an input and a window of these sizes, as infer_windows does it.
Status ResolveWindow(Prepare& ctx, const WindowAttrs& attrs, int axis, int64_t input, int64_t kernel, WindowAxis* out);

// Bounds of the attribute `activation` (NONE, RELU, RELU6); clamping is `low > x ? low : x`, then `high < x ? high :
// x`.
struct ActivationBounds {
  bool clamp = false;
  float low = 0, high = 0;
};
Status ReadActivation(Prepare& ctx, ActivationBounds* bounds);

}  // namespace rillet
