// Inner loops of int8 products, one implementation an ISA: C = requantize(A * B + bias).
//
// Activations are read in a *form* that suits the ISA: as they are, widened to int16, or with the sign bit flipped to
// uint8. A row of A is `taps` pieces of `depth` values: piece t starts at rows[m] + taps[t]. A matrix product has one
// tap; a convolution has one a filter row (or one a filter position where it is dilated).
#pragma once
#include <cstdint>

#include "isa.h"

namespace rillet {

// How an int32 accumulator becomes an int8 output. clamp: some accumulator times its scale may leave int32, so values
// are clamped in float before the conversion; elsewhere saturating packs do the same for less.
struct Epilogue {
  int32_t zero_point, low, high;
  bool clamp;
};

struct GemmS8Args {
  const uint8_t* const* rows;  // m pointers
  int64_t m;
  const int64_t* taps;  // byte offsets
  int64_t tap_count;
  int64_t depth;        // values a tap
  const int8_t* b;      // packed weights of the panels
  const int32_t* bias;  // packed: zero points folded in
  const float* scale;   // packed
  int64_t n;
  int64_t panel_begin, panel_end;
  Epilogue epilogue;
  int8_t* out;
  int64_t out_stride;
};

// Weights are packed into panels of `width` channels (the last one may be narrower: a multiple of `step`), and within a
// panel as [tap][depth / group][position][group], zeros filling up. Position i of a panel holds channel Channel(w, i).
struct GemmS8 {
  int width, step, group;
  int form_bytes;   // of one activation in this form
  int form_offset;  // what the form adds to each value
  int (*Channel)(int width, int position);
  void (*Form)(uint8_t* to, const int8_t* from, int64_t n);  // null: activations are read as they are
  void (*Run)(const GemmS8Args& args);
};

// Depthwise products: output channel c of a pixel is the sum over taps of a[c] * w[tap][c]. Same forms.
struct DepthwiseS8Args {
  const uint8_t* const* rows;  // one pointer a pixel
  int64_t m;
  const int64_t* taps;
  int64_t tap_count;
  int64_t channels;
  const int8_t* w;
  const int32_t* bias;
  const float* scale;
  Epilogue epilogue;
  int8_t* out;
  int64_t out_stride;
};

// A filter of 3 x 3 over whole output rows, its columns side by side: each input column is read and formed once for the
// up to three outputs that use it. Weights are packed as for 12 taps, column by column, the fourth of each being 0.
struct Depthwise3x3Args {
  const uint8_t* const* rows;  // one pointer an output row, to its first tap
  int64_t row_count, columns;  // of the output
  int64_t row_bytes;           // between two rows of the filter
  int64_t pixel_bytes, stride;
  int64_t channels;
  const int8_t* w;
  const int32_t* bias;
  const float* scale;
  Epilogue epilogue;
  int8_t* out;
};

// Weights are packed into blocks of `width` channels: [tap / group][position][group], where position i of a block holds
// channel Channel(width, i). All channel counts are rounded up to `width`.
struct DepthwiseS8 {
  int width, group;
  int weight_bytes;  // 1: int8, 2: int16
  int form_offset;
  int (*Channel)(int width, int position);
  void (*Form)(uint8_t* to, const int8_t* from, int64_t n);  // one byte a value; null: as they are
  void (*Run)(const DepthwiseS8Args& args);
  void (*Run3x3)(const Depthwise3x3Args& args);  // null: there is no such loop
};

#define RILLET_S8(isa)                   \
  namespace isa {                        \
  extern const GemmS8 kGemmS8;           \
  extern const DepthwiseS8 kDepthwiseS8; \
  }
RILLET_S8(scalar)
RILLET_S8(avx2)
RILLET_S8(avx512vnni)
RILLET_S8(neon)
RILLET_S8(neondot)
#undef RILLET_S8

inline int NaturalChannel(int, int position) { return position; }

}  // namespace rillet
